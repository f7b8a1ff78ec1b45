"""Indexing a collection of which a little has changed, against indexing all of it.

    python benchmarks/changes.py --data DIR [--sizes 100000 1000000] [--shares 0.01 0.1] [--repeat 5]

The documents are those of `growth.py`. Of each share that changes a third gets another text, a third is deleted and a
third is new. Three ways are measured one after the other, each in a new process: *whole* builds an index from all
documents, *changed* compares them with those of the version that serves, which is done while they are read anyway, and
takes over what has not changed, where little has by a small part beside that version; *merged* then makes one version
of all that. In the end the versions of the first and the last are compared byte by byte. Seconds are those of all
processes at work, once the documents are in memory. With `--repeat` all ways are measured so often in turn: the figures
are medians, the ratio that of *changed* and *whole*.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from filecmp import cmp
from pathlib import Path
from tempfile import TemporaryDirectory

from growth import MAPPING, Generator
from usage import work

from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.engines.embedded.storage.layout import MANIFEST
from searchapp.engines.embedded.storage.verified import STAMP
from searchapp.model import Document
from searchapp.settings import Settings

CHANGED, WHOLE, MERGED = "changed", "whole", "merged"


def edited(documents: Iterable[Document], share: float) -> Iterator[Document]:
    """The documents, a share of which has changed, spread evenly."""
    step = round(1 / share) if share else 0
    for number, document in enumerate(documents):
        edit = number // step % 3 if step and number % step == 0 else None
        if edit == 0:
            yield Document(document.id, f"{document.text} {document.text[:40]}")
        elif edit == 1:
            yield Document(f"new{number}", document.text[::-1])
        if edit not in (0, 2):
            yield document


def build(home: Path, data: Path, size: int, share: float, step: str) -> dict[str, float]:
    """Build an index, with what can be carried over from the version that serves if there is one."""
    name = CHANGED if step == MERGED else step
    documents = list(edited(Generator(data).documents(size), share))
    gc.collect()
    gc.freeze()  # or Python would look through the documents for garbage, which are not there together elsewhere
    engine = EmbeddedEngine.at(Settings(home=home))
    engine.index_info(name)  # the files were copied: they are verified anew, which others need not do
    begin = work()
    comparison = engine.compare(name, MAPPING)
    for _ in comparison.watch(documents) if comparison else ():
        pass
    carried = comparison.carried(merged=step == MERGED) if comparison else None
    spec = IndexSpec(MAPPING, len(documents), f"{size}-{share}")
    engine.build(name, spec, documents, carried=carried)
    return {
        "documents": len(documents),
        "carried": carried.documents if carried else 0,
        "work": work() - begin,
    }


def _version(home: Path, name: str) -> Path:
    (folder,) = home.glob(f"indexes/*-{name}")
    return folder / (folder / "current").read_text().split()[0]


def _require_same_files(home: Path) -> None:
    folders = [_version(home, name) for name in (CHANGED, WHOLE)]
    ours, whole = ({file.name for file in folder.iterdir()} - {MANIFEST, STAMP} for folder in folders)
    other = [name for name in whole if not cmp(folders[0] / name, folders[1] / name, shallow=False)]
    if ours != whole or other:
        raise SystemExit(f"the two versions differ in {', '.join(sorted(ours ^ whole) + other)}")


def _print(size: int, share: float, pairs: Sequence[Sequence[dict[str, float]]]) -> None:
    """A row of the table, of figures of indexing all documents, of indexing changed ones and of merging these."""
    seconds = [statistics.median(pair[place]["work"] for pair in pairs) for place in (0, 1, 2)]
    ratio = statistics.median(changed["work"] / whole["work"] for whole, changed, _merged in pairs)
    cells = [f"{value:.2f}" for value in seconds] + [f"{ratio:.3f}"]
    taken_over = pairs[0][1]["carried"]
    print(f"| {size:,} | {share:.1%} | {taken_over:,} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure every size and share, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1], help="shares that change")
    parser.add_argument("--repeat", type=int, default=1, help="pairs that are measured")
    parser.add_argument("--step", choices=[CHANGED, WHOLE, MERGED], help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        ((size,), (share,)) = options.sizes, options.shares
        print(json.dumps(build(options.home, options.data, size, share, options.step)))
        return

    def measured(home: Path, size: int, share: float, step: str) -> dict[str, float]:
        given = ["--step", step, "--home", home, "--sizes", size, "--shares", share]
        command = [sys.executable, __file__, "--data", options.data, *given]
        printed = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout
        figures: dict[str, float] = json.loads(printed)
        return figures

    print("| documents | changed | taken over | whole s | s | merged s | ratio |")
    print("|---:" * 7 + "|", flush=True)
    for size in options.sizes:
        with TemporaryDirectory(prefix="searchapp-changes-") as folder:
            first = Path(folder) / "first"
            measured(first, size, 0, CHANGED)
            for share in options.shares:
                pairs = []
                for _ in range(options.repeat):
                    home = Path(folder) / f"{share}"
                    shutil.copytree(first, home)
                    pairs.append([measured(home, size, share, step) for step in (WHOLE, CHANGED, MERGED)])
                    _require_same_files(home)
                    shutil.rmtree(home)
                _print(size, share, pairs)


if __name__ == "__main__":
    main()
