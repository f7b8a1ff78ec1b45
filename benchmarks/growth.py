"""How time, memory and disk of the embedded engine grow with the documents: synthetic ones, from 10,000 on.

    python benchmarks/growth.py --data DIR [--sizes 10000 100000 1000000 10000000] [--keep FOLDER]

Documents are drawn from the nlps knowledge base's own distributions: its document lengths, and its words by their
frequencies (one seed, so every run makes the same ones). They are indexed in one field with the built-in analyzer
`english`. Each size is indexed in one new process and searched in another, so that the memory of each is its own.

Memory is looked at from outside, five times a second: that of the process and of all that it has forked, each page
that they share counted once (Linux's proportional set size), mapped files included as far as they are in memory. The
greatest sum is printed. Elsewhere than on Linux it is the greatest size of the process itself, with its largest child
as often as there are cores. The documents are drawn as they are indexed and never kept; the time that drawing takes is
measured on the first 100,000 and taken off.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from usage import parser_of, peak, peak_of, work

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.model import Document
from searchapp.processes import cores

SEED = 20260101
QUERIES = 200
DRAWN = 100_000
"""Documents that are drawn to know how long that takes."""

NUMBERS = 1 << 20
"""Random numbers that are drawn at a time."""

PARTS = 1 << 17
"""Equal parts of the scale from which words are drawn."""

REFUSED = 1000
"""More numbers than `Random.choice` ever refuses in a row."""

NAME, PREFIX = "single", "searchapp-single"
LOOK_SECONDS = 0.2
MAPPING: dict[str, Any] = {
    "mappings": {
        "dynamic": "strict",
        "properties": {"id": {"type": "keyword"}, "text": {"type": "text", "analyzer": "english"}},
    }
}


class Generator:
    """Draws documents and queries from the distributions of real texts."""

    def __init__(self, data: Path) -> None:
        texts = json.loads((data / "knowledge_base.json").read_text(encoding="utf-8")).values()
        split = [text.split() for text in texts]
        counts = Counter(word for words in split for word in words)
        self._lengths = [len(words) for words in split]
        self._words = list(counts)
        self._cumulative: list[int] = []
        for word in self._words:
            self._cumulative.append((self._cumulative[-1] if self._cumulative else 0) + counts[word])

    def documents(self, count: int) -> Iterator[Document]:
        """The first `count` documents of an endless, repeatable sequence."""
        for number, text in enumerate(islice(self._texts(), count)):
            yield Document(str(number), text)

    def _texts(self) -> Iterator[str]:
        """For ever what `_text(draw, draw.choice(self._lengths))` gives with `draw = random.Random(SEED)`.

        The same words from the same random numbers, but a million of these are looked up at a time: drawing must not
        take longer than indexing.
        """
        _version, (*key, position), _gauss = random.Random(SEED).getstate()
        twister = np.random.MT19937()
        twister.state = {
            "bit_generator": "MT19937",
            "state": {"key": np.array(key, np.uint32), "pos": position},
        }
        vocabulary = np.array(self._words, object)
        lengths = len(self._lengths)
        shift = np.uint64(32 - lengths.bit_length())  # as `Random.choice` has it
        longest = 2 * max(self._lengths) + REFUSED
        numbers = np.empty(0, np.uint64)
        while True:
            numbers = np.concatenate([numbers, twister.random_raw(NUMBERS)])
            chosen = (numbers >> shift).tolist()
            begins, sizes, at = [], [], 0
            while at + longest < len(numbers):
                while chosen[at] >= lengths:
                    at += 1
                begins.append(at + 1)
                sizes.append(self._lengths[chosen[at]])
                at += 1 + 2 * sizes[-1]
            ends = np.cumsum(sizes)
            first = np.arange(ends[-1]) * 2 + np.repeat(begins - 2 * (ends - sizes), sizes)
            upper, lower = numbers[first] >> np.uint64(5), numbers[first + 1] >> np.uint64(6)
            fractions = (upper * 67108864.0 + lower) / 9007199254740992.0  # as `Random.random` has it
            words = vocabulary[self._places(fractions)].tolist()
            for begin, end in pairwise([0, *ends.tolist()]):
                yield " ".join(words[begin:end])
            numbers = numbers[at:]

    def _places(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        """Which words `Random.choices` takes for some fractions of all counts."""
        cumulative = np.array(self._cumulative[:-1])
        total = self._cumulative[-1] + 0.0
        # Most of the equal parts of the scale lie within one word's: only in the others a word is searched for.
        edges = np.searchsorted(cumulative, np.arange(PARTS + 1) / PARTS * total, "right")
        parts = (fractions * PARTS).astype(np.int64)
        places = edges[parts]
        open_ = np.flatnonzero(edges[parts + 1] != places)
        places[open_] = np.searchsorted(cumulative, fractions[open_] * total, "right")
        return places

    def queries(self, count: int) -> list[str]:
        """Queries of three to eight words."""
        draw = random.Random(SEED + 1)
        return [self._text(draw, draw.randint(3, 8)) for _ in range(count)]

    def _text(self, draw: random.Random, length: int) -> str:
        return " ".join(draw.choices(self._words, cum_weights=self._cumulative, k=length))


def index(home: Path, data: Path, size: int) -> dict[str, float]:
    """Index documents; seconds by the clock and at work in all processes, without those of drawing them."""
    from searchapp.engines.embedded import EmbeddedEngine

    generator = Generator(data)
    drawn = min(size, DRAWN)
    begin, worked = time.perf_counter(), work()
    for _ in generator.documents(drawn):
        pass
    drawing = (time.perf_counter() - begin) * size / drawn
    drawing_work = (work() - worked) * size / drawn
    engine = EmbeddedEngine.at(Settings(home=home, index_prefix=PREFIX))
    begin, worked = time.perf_counter(), work()
    engine.build(NAME, IndexSpec(MAPPING, size, f"{SEED}-{size}"), generator.documents(size))
    return {"seconds": time.perf_counter() - begin - drawing, "work s": work() - worked - drawing_work}


def search(home: Path, data: Path, size: int) -> dict[str, float]:  # noqa: ARG001  # as `index`
    """Open the index and search; milliseconds, and by how many MiB opening makes the process larger."""
    from searchapp.engines.embedded import EmbeddedEngine

    queries = Generator(data).queries(QUERIES)
    before = _peak_mib()
    engine = EmbeddedEngine.at(Settings(home=home, index_prefix=PREFIX))
    begin = time.perf_counter()
    opened = engine.open(NAME)
    opening = time.perf_counter() - begin
    after_opening = _peak_mib()
    times = []
    for words in queries:
        body = {
            "size": 10,
            "_source": False,
            "sort": [{"_score": "desc"}, {"id": "asc"}],
            "query": {"match": {"text": {"query": words}}},
        }
        begin = time.perf_counter()
        list(opened.search([body]))
        times.append(time.perf_counter() - begin)
    return {
        "open ms": opening * 1000,
        "open MiB": after_opening - before,
        "median ms": statistics.median(times) * 1000,
        "p99 ms": statistics.quantiles(times, n=100)[98] * 1000,
    }


def _peak_mib(processes: int = 0) -> float:
    """The peak of this process, plus `processes` times that of its largest child: no less than what was in use."""
    return peak() + processes * peak_of(resource.getrusage(resource.RUSAGE_CHILDREN))


def _family(process: int) -> Iterator[int]:
    """A process and all that it has forked."""
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                yield from _family(int(child))


def _resident_mib(process: int) -> float:
    """What a process and its children have in memory, shared pages once; 0 where the system does not say."""
    total = 0
    for member in _family(process):
        with suppress(OSError, StopIteration):  # it has ended meanwhile
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
            total += int(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return total / 1024


class _Measured(NamedTuple):
    figures: dict[str, float]
    mib: float


def _in_a_new_process(step: str, home: Path, data: Path, size: int) -> _Measured:
    command = [
        sys.executable,
        __file__,
        "--data",
        str(data),
        "--step",
        step,
        "--home",
        str(home),
        "--sizes",
        str(size),
    ]
    peak = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, _resident_mib(process.pid))
            time.sleep(LOOK_SECONDS)
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(process.returncode)
    figures: dict[str, float] = json.loads(printed)
    known = figures.pop("rusage MiB")
    return _Measured(figures, peak or known)


def main() -> None:
    """Measure every size and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument(
        "--keep",
        type=Path,
        help="folder in which the index of each size stays, in a folder of its own: for `single_queries.py --keep`",
    )
    parser.add_argument("--step", choices=["index", "search"], help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        measure = {"index": index, "search": search}[options.step]
        figures = measure(options.home, options.data, options.sizes[0])
        print(json.dumps({**figures, "rusage MiB": _peak_mib(processes=cores())}))
        return
    print(
        "| documents | index s | work s | index MiB | disk MiB | open ms | open MiB | query ms | query p99 ms | "
        "search MiB |"
    )
    print("|---:" * 10 + "|", flush=True)
    for size in options.sizes:
        home = (
            options.keep / str(size) if options.keep else Path(tempfile.mkdtemp(prefix="searchapp-growth-"))
        )
        try:
            built = _in_a_new_process("index", home, options.data, size)
            disk = sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) / 2**20
            found = _in_a_new_process("search", home, options.data, size)
        finally:
            if not options.keep:
                shutil.rmtree(home)
        cells = [*built.figures.values(), built.mib, disk, *found.figures.values(), found.mib]
        print(f"| {size:,} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
