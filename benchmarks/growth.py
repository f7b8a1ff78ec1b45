"""How time and memory of the embedded engine grow: 10,000, 100,000 and 1,000,000 synthetic documents.

    python benchmarks/growth.py --data DIR [--sizes 10000 100000 1000000]

Documents are drawn from the nlps knowledge base's own distributions: its document lengths, and its words by their
frequencies (one seed, so every run makes the same ones). They are indexed in one field with the built-in analyzer
`english`. Each size is indexed in one new process and searched in another, so that the peak memory of each, as the
operating system counts it, is its own; while indexing, that of the processes that analyze is added.
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
from pathlib import Path
from typing import Any

from searchapp.engines.base import IndexSpec
from searchapp.model import Document
from searchapp.processes import cores
from searchapp.settings import Settings

SEED = 20260101
QUERIES = 200
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
        draw = random.Random(SEED)
        for number in range(count):
            yield Document(str(number), self._text(draw, draw.choice(self._lengths)))

    def queries(self, count: int) -> list[str]:
        """Queries of three to eight words."""
        draw = random.Random(SEED + 1)
        return [self._text(draw, draw.randint(3, 8)) for _ in range(count)]

    def _text(self, draw: random.Random, length: int) -> str:
        return " ".join(draw.choices(self._words, cum_weights=self._cumulative, k=length))


def index(home: Path, data: Path, size: int) -> dict[str, float]:
    """Index documents; seconds without drawing them, and the peak memory in MiB."""
    from searchapp.engines.embedded import EmbeddedEngine

    generator = Generator(data)
    begin = time.perf_counter()
    for _ in generator.documents(size):
        pass
    drawing = time.perf_counter() - begin
    engine = EmbeddedEngine.at(Settings(home=home))
    begin = time.perf_counter()
    engine.build("growth", IndexSpec(MAPPING, size, f"{SEED}-{size}"), generator.documents(size))
    return {"seconds": time.perf_counter() - begin - drawing, "MiB": _peak_mib(processes=cores())}


def search(home: Path, data: Path, size: int) -> dict[str, float]:  # noqa: ARG001  # as `index`
    """Open the index and search; milliseconds, and the peak memory in MiB after opening and after searching."""
    from searchapp.engines.embedded import EmbeddedEngine

    queries = Generator(data).queries(QUERIES)
    before = _peak_mib()
    engine = EmbeddedEngine.at(Settings(home=home))
    begin = time.perf_counter()
    opened = engine.open("growth")
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
        "MiB": _peak_mib(),
    }


def _peak_mib(processes: int = 0) -> float:
    """The peak of this process, plus `processes` times that of its largest child: no less than what was in use."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak += processes * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def _in_a_new_process(step: str, home: Path, data: Path, size: int) -> dict[str, float]:
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
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    measured: dict[str, float] = json.loads(printed)
    return measured


def main() -> None:
    """Measure every size and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--step", choices=["index", "search"], help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        measure = {"index": index, "search": search}[options.step]
        print(json.dumps(measure(options.home, options.data, options.sizes[0])))
        return
    print(
        "| documents | index s | index MiB | disk MiB | open ms | open MiB | query ms | query p99 ms | search MiB |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for size in options.sizes:
        home = Path(tempfile.mkdtemp(prefix="searchapp-growth-"))
        try:
            built = _in_a_new_process("index", home, options.data, size)
            disk = sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) / 2**20
            found = _in_a_new_process("search", home, options.data, size)
        finally:
            shutil.rmtree(home)
        cells = [built["seconds"], built["MiB"], disk, *(found[key] for key in found)]
        print(f"| {size:,} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
