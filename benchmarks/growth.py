"""Measure how time, memory and disk of the embedded engine grow with the number of synthetic documents.

    python benchmarks/growth.py --data DIR [--sizes 12000 100000 1000000 10000000] [--keep FOLDER] [--figure FILE]

Lengths and words of the documents are drawn from the distributions of the nlps knowledge base with a fixed seed. They
are indexed in one field with the built-in analyzer `english`. Each size is indexed in one new process and searched in
another, to measure the memory of each.

The memory of the process and its children is sampled five times a second. Shared pages count once (Linux's proportional
set size), and mapped files count as far as they are in memory. The table has the maximum. On other systems it is the
peak of the process plus that of its largest child times the number of cores. Documents are drawn while they are
indexed; the time of drawing is measured on the first 100,000 and subtracted.
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
from peers_figure import draw
from usage import cpu_seconds, make_parser, peak_mib, peak_mib_of

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.model import Document
from searchapp.processes import cores

SEED = 20260101
QUERIES = 200
DRAWN = 100_000
"""Documents that are drawn to measure the time of drawing."""

NUMBERS = 1 << 20
"""Random numbers that are drawn at once."""

BINS = 1 << 17
"""Bins of equal width for looking up words."""

MAX_REJECTIONS = 1000
"""Upper bound of the numbers that `Random.choice` rejects in a row."""

NAME, PREFIX = "single", "searchapp-single"
SAMPLE_SECONDS = 0.2
LINES = {"index s": "a", "disk MiB": "b", "query ms": "c", "search MiB": "d"}
"""Columns of the figure, and their colours."""

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
        """Yield the first `count` documents of an infinite, deterministic sequence."""
        for number, text in enumerate(islice(self._texts(), count)):
            yield Document(str(number), text)

    def _texts(self) -> Iterator[str]:
        """Yield texts equal to `_text(draw, draw.choice(self._lengths))` with `draw = random.Random(SEED)`.

        Looks up a million random numbers at once, because drawing must not take longer than indexing.
        """
        _version, (*key, position), _gauss = random.Random(SEED).getstate()
        twister = np.random.MT19937()
        twister.state = {
            "bit_generator": "MT19937",
            "state": {"key": np.array(key, np.uint32), "pos": position},
        }
        vocabulary = np.array(self._words, object)
        lengths = len(self._lengths)
        shift = np.uint64(32 - lengths.bit_length())  # as in `Random.choice`
        longest = 2 * max(self._lengths) + MAX_REJECTIONS
        numbers = np.empty(0, np.uint64)
        while True:
            numbers = np.concatenate([numbers, twister.random_raw(NUMBERS)])
            chosen = (numbers >> shift).tolist()
            begins, sizes, used = [], [], 0
            while used + longest < len(numbers):
                while chosen[used] >= lengths:
                    used += 1
                begins.append(used + 1)
                sizes.append(self._lengths[chosen[used]])
                used += 1 + 2 * sizes[-1]
            ends = np.cumsum(sizes)
            first = np.arange(ends[-1]) * 2 + np.repeat(begins - 2 * (ends - sizes), sizes)
            upper, lower = numbers[first] >> np.uint64(5), numbers[first + 1] >> np.uint64(6)
            fractions = (upper * 67108864.0 + lower) / 9007199254740992.0  # as in `Random.random`
            words = vocabulary[self._word_numbers(fractions)].tolist()
            for begin, end in pairwise([0, *ends.tolist()]):
                yield " ".join(words[begin:end])
            numbers = numbers[used:]

    def _word_numbers(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the numbers of the words that `Random.choices` takes for these fractions of all counts."""
        cumulative = np.array(self._cumulative[:-1])
        total = self._cumulative[-1] + 0.0
        # Most bins lie within the range of one word; only the other bins need a search.
        edges = np.searchsorted(cumulative, np.arange(BINS + 1) / BINS * total, "right")
        bins = (fractions * BINS).astype(np.int64)
        words = edges[bins]
        ambiguous = np.flatnonzero(edges[bins + 1] != words)
        words[ambiguous] = np.searchsorted(cumulative, fractions[ambiguous] * total, "right")
        return words

    def queries(self, count: int) -> list[str]:
        """Return queries of three to eight words."""
        draw = random.Random(SEED + 1)
        return [self._text(draw, draw.randint(3, 8)) for _ in range(count)]

    def _text(self, draw: random.Random, length: int) -> str:
        return " ".join(draw.choices(self._words, cum_weights=self._cumulative, k=length))


def index(home: Path, data: Path, size: int) -> dict[str, float]:
    """Index documents; return wall-clock time and processor time without the time of drawing them."""
    from searchapp.engines.embedded import EmbeddedEngine

    generator = Generator(data)
    drawn = min(size, DRAWN)
    begin, cpu = time.perf_counter(), cpu_seconds()
    for _ in generator.documents(drawn):
        pass
    drawing = (time.perf_counter() - begin) * size / drawn
    drawing_cpu = (cpu_seconds() - cpu) * size / drawn
    engine = EmbeddedEngine.at(Settings(home=home, index_prefix=PREFIX))
    begin, cpu = time.perf_counter(), cpu_seconds()
    engine.build(NAME, IndexSpec(MAPPING, size, f"{SEED}-{size}"), generator.documents(size))
    return {"seconds": time.perf_counter() - begin - drawing, "work s": cpu_seconds() - cpu - drawing_cpu}


def search(home: Path, data: Path, size: int) -> dict[str, float]:  # noqa: ARG001  # same parameters as `index`
    """Open the index and search; return milliseconds, and the memory of opening in MiB."""
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
    """Return an upper bound of the peak memory: this process plus `processes` times its largest child."""
    return peak_mib() + processes * peak_mib_of(resource.getrusage(resource.RUSAGE_CHILDREN))


def _family(process: int) -> Iterator[int]:
    """Yield the ids of a process and its descendants."""
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                yield from _family(int(child))


def _resident_mib(process: int) -> float:
    """Return the memory of a process and its descendants with shared pages counted once; 0 if unknown."""
    total = 0
    for member in _family(process):
        with suppress(OSError, StopIteration):  # the process has ended
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
            total += int(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return total / 1024


class _Result(NamedTuple):
    figures: dict[str, float]
    mib: float


def _run_step(step: str, home: Path, data: Path, size: int) -> _Result:
    arguments = ["--data", data, "--step", step, "--home", home, "--sizes", size]
    command = [sys.executable, __file__, *map(str, arguments)]
    peak = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, _resident_mib(process.pid))
            time.sleep(SAMPLE_SECONDS)
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(process.returncode)
    figures: dict[str, float] = json.loads(printed)
    upper_bound = figures.pop("rusage MiB")
    return _Result(figures, peak or upper_bound)


def main() -> None:
    """Measure all sizes and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[12_000, 100_000, 1_000_000])
    parser.add_argument(
        "--keep",
        type=Path,
        help="folder for a folder with the index of each size, which `single_queries.py --keep` can use",
    )
    parser.add_argument("--figure", type=Path, help="an SVG file for the table as lines")
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
    lines: dict[str, list[tuple[int, float]]] = {name: [] for name in LINES}
    for size in options.sizes:
        home = (
            options.keep / str(size) if options.keep else Path(tempfile.mkdtemp(prefix="searchapp-growth-"))
        )
        try:
            built = _run_step("index", home, options.data, size)
            disk = sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) / 2**20
            searched = _run_step("search", home, options.data, size)
        finally:
            if not options.keep:
                shutil.rmtree(home)
        cells = [*built.figures.values(), built.mib, disk, *searched.figures.values(), searched.mib]
        print(f"| {size:,} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |", flush=True)
        drawn = built.figures["seconds"], disk, searched.figures["median ms"], searched.mib
        for name, value in zip(LINES, drawn, strict=True):
            lines[name].append((size, value))
    if options.figure:
        styles = {name: (colour, "") for name, colour in LINES.items()}
        options.figure.write_text(draw(lines, "the embedded engine by the number of documents", styles))


if __name__ == "__main__":
    main()
