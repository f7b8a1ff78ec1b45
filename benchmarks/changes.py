"""Compare indexing a collection with few changes with indexing all documents.

    python benchmarks/changes.py --data DIR [--sizes 100000 1000000] [--shares 0.01 0.1] [--repeat 5]

The documents are those of `growth.py`. A third of the changed documents has another text, a third is deleted, a third
is new. Three builds are measured in turn, each in a new process. *whole* indexes all documents. *changed* compares the
documents with the live version and takes over unchanged ones; with few changes it adds a small segment to the version.
*merged* then merges all segments. Seconds are the processor time of all processes, with the documents in memory. Before
the merge, each query is searched to depth 10 in both versions; milliseconds are the median processor time. The script
ends with an error if hits differ, before or after the merge. With `--repeat`, figures are medians of all rounds; the
ratio is *changed* / *whole*.
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
from usage import cpu_seconds, make_parser

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.model import Document, Hits

CHANGED, WHOLE, MERGED, SEARCHED = "changed", "whole", "merged", "searched"

QUERIES, ROUNDS = 200, 3


def edited(documents: Iterable[Document], share: float) -> Iterator[Document]:
    """Yield the documents with a share of changes, spread evenly."""
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
    """Build an index with the unchanged documents of the live version, if one exists."""
    name = CHANGED if step == MERGED else step
    documents = list(edited(Generator(data).documents(size), share))
    gc.collect()
    gc.freeze()  # outside of this script, documents are not all in memory, where the collector would search them
    engine = EmbeddedEngine.at(Settings(home=home))
    engine.index_info(name)  # verifies the copied files, which is not part of a build
    begin = cpu_seconds()
    comparison = engine.compare(name, MAPPING)
    for _ in comparison.watch(documents) if comparison else ():
        pass
    carried = comparison.carried(merged=step == MERGED) if comparison else None
    spec = IndexSpec(MAPPING, len(documents), f"{size}-{share}")
    engine.build(name, spec, documents, carried=carried)
    return {
        "documents": len(documents),
        "carried": carried.documents if carried else 0,
        "work": cpu_seconds() - begin,
    }


def search(home: Path, data: Path) -> dict[str, float]:
    """Search both versions; return the median milliseconds of a query."""
    engine = EmbeddedEngine.at(Settings(home=home))
    indexes = {name: engine.open(name) for name in (WHOLE, CHANGED)}
    times: dict[str, list[float]] = {name: [] for name in indexes}
    bodies = [body(words, 10) for words in Generator(data).queries(QUERIES)]
    for counts in (False, *[True] * ROUNDS):  # the first round warms up
        for request in bodies:
            hits: list[Hits] = []
            for name, index in indexes.items():
                begin = time.process_time()
                hits += index.search([request])
                times[name] += [(time.process_time() - begin) * 1000] if counts else []
            if hits[0] != hits[1]:
                raise SystemExit(f"the versions have different hits for {request['query']}")
    return {name: statistics.median(values) for name, values in times.items()}


def _print(size: int, share: float, rounds: Sequence[dict[str, dict[str, float]]]) -> None:
    """Print a row of the table from the figures of each step in each round."""
    seconds = [
        statistics.median(figures[step]["work"] for figures in rounds) for step in (WHOLE, CHANGED, MERGED)
    ]
    ratio = statistics.median(figures[CHANGED]["work"] / figures[WHOLE]["work"] for figures in rounds)
    queries = [statistics.median(figures[SEARCHED][name] for figures in rounds) for name in (WHOLE, CHANGED)]
    cells = [*map("{:.2f}".format, seconds), f"{ratio:.3f}", *map("{:.3f}".format, queries)]
    taken_over = rounds[0][CHANGED]["carried"]
    print(f"| {size:,} | {share:.1%} | {taken_over:,} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure all sizes and shares, and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument(
        "--shares", type=float, nargs="+", default=[0.01, 0.1], help="shares of changed documents"
    )
    parser.add_argument("--repeat", type=int, default=1, help="rounds")
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

    def measure(home: Path, size: int, share: float, step: str) -> dict[str, float]:
        arguments = ["--step", step, "--home", home, "--sizes", size, "--shares", share]
        command = [sys.executable, __file__, "--data", options.data, *arguments]
        printed = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout
        figures: dict[str, float] = json.loads(printed)
        return figures

    print("| documents | changed | taken over | whole s | s | merged s | ratio | query, whole ms | ms |")
    print("|---:" * 9 + "|", flush=True)
    for size in options.sizes:
        with TemporaryDirectory(prefix="searchapp-changes-") as folder:
            first = Path(folder) / "first"
            measure(first, size, 0, CHANGED)
            for share in options.shares:
                rounds = []
                for _ in range(options.repeat):
                    home = Path(folder) / f"{share}"
                    shutil.copytree(first, home)
                    steps = (WHOLE, CHANGED, SEARCHED, MERGED)
                    rounds.append({step: measure(home, size, share, step) for step in steps})
                    measure(home, size, share, SEARCHED)  # checks the hits of the merged version
                    shutil.rmtree(home)
                _print(size, share, rounds)


if __name__ == "__main__":
    main()
