"""Indexing a collection of which a little has changed, against indexing all of it.

    python benchmarks/changes.py --data DIR [--sizes 100000 1000000] [--shares 0.01 0.1] [--repeat 5]

The documents are those of `growth.py`. Of each share that changes a third gets another text, a third is deleted and a
third is new. Three ways are measured one after the other, each in a new process: *whole* builds an index from all
documents, *changed* compares them with those of the version that serves, which is done while they are read anyway, and
takes over what has not changed, where little has by a small segment beside that of the version; *merged* then makes one
segment of all that. Seconds are those of all processes at work, once the documents are in memory. Before all is merged
both versions are searched, query by query in turn, to depth 10: milliseconds of work, which are medians of all queries;
hits that are not the same, then or once all is merged, end the program.
With `--repeat` all is measured so often in turn: the figures are medians, the ratio that of *changed* and *whole*.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from growth import MAPPING, Generator
from single_queries import body
from usage import parser_of, work

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.model import Document, Hits

CHANGED, WHOLE, MERGED, SEARCHED = "changed", "whole", "merged", "searched"

QUERIES, ROUNDS = 200, 3


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


def search(home: Path, data: Path) -> dict[str, float]:
    """Search what was built of all documents and what was changed: the median milliseconds of a query."""
    engine = EmbeddedEngine.at(Settings(home=home))
    indexes = {name: engine.open(name) for name in (WHOLE, CHANGED)}
    took: dict[str, list[float]] = {name: [] for name in indexes}
    bodies = [body(words, 10) for words in Generator(data).queries(QUERIES)]
    for counts in (False, *[True] * ROUNDS):  # the first round warms up
        for asked in bodies:
            hits: list[Hits] = []
            for name, index in indexes.items():
                begin = time.process_time()
                hits += index.search([asked])
                took[name] += [(time.process_time() - begin) * 1000] if counts else []
            if hits[0] != hits[1]:
                raise SystemExit(f"the two versions give other hits to {asked['query']}")
    return {name: statistics.median(of_name) for name, of_name in took.items()}


def _print(size: int, share: float, rounds: Sequence[dict[str, dict[str, float]]]) -> None:
    """A row of the table, of the figures of each step in each round."""
    seconds = [statistics.median(one[step]["work"] for one in rounds) for step in (WHOLE, CHANGED, MERGED)]
    ratio = statistics.median(one[CHANGED]["work"] / one[WHOLE]["work"] for one in rounds)
    queries = [statistics.median(one[SEARCHED][name] for one in rounds) for name in (WHOLE, CHANGED)]
    cells = [*map("{:.2f}".format, seconds), f"{ratio:.3f}", *map("{:.3f}".format, queries)]
    taken_over = rounds[0][CHANGED]["carried"]
    print(f"| {size:,} | {share:.1%} | {taken_over:,} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure every size and share, and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1], help="shares that change")
    parser.add_argument("--repeat", type=int, default=1, help="rounds that are measured")
    parser.add_argument("--step", choices=[CHANGED, WHOLE, MERGED, SEARCHED], help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        ((size,), (share,)) = options.sizes, options.shares
        if options.step == SEARCHED:
            print(json.dumps(search(options.home, options.data)))
        else:
            print(json.dumps(build(options.home, options.data, size, share, options.step)))
        return

    def measured(home: Path, size: int, share: float, step: str) -> dict[str, float]:
        given = ["--step", step, "--home", home, "--sizes", size, "--shares", share]
        command = [sys.executable, __file__, "--data", options.data, *given]
        printed = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout
        figures: dict[str, float] = json.loads(printed)
        return figures

    print("| documents | changed | taken over | whole s | s | merged s | ratio | query, whole ms | ms |")
    print("|---:" * 9 + "|", flush=True)
    for size in options.sizes:
        with TemporaryDirectory(prefix="searchapp-changes-") as folder:
            first = Path(folder) / "first"
            measured(first, size, 0, CHANGED)
            for share in options.shares:
                rounds = []
                for _ in range(options.repeat):
                    home = Path(folder) / f"{share}"
                    shutil.copytree(first, home)
                    steps = (WHOLE, CHANGED, SEARCHED, MERGED)
                    rounds.append({step: measured(home, size, share, step) for step in steps})
                    measured(home, size, share, SEARCHED)  # the merged version gives the same hits
                    shutil.rmtree(home)
                _print(size, share, rounds)


if __name__ == "__main__":
    main()
