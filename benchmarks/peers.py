"""Compare the embedded engine with Elasticsearch, Lucene, tantivy, bm25s and PISA on the same tokens.

    pip install -e '.[dev,bench]'
    python benchmarks/peers.py --data DIR --size nlps 10000 100000 1000000 --minutes 30
    python benchmarks/peers.py --data DIR --size 10000000 --minutes 90 --work FOLDER --resume
    python benchmarks/peers.py --table benchmarks/results/peers-*.json
    python benchmarks/peers_figure.py benchmarks/results/peers-*.json

Documents and queries are made once, with terms separated by spaces, so that the analysis of systems does not matter
(`peer_collections.py`). Each system indexes them into one segment on disk. In each round, each system in turn opens its
index in a new process and warms up: with all single queries, the first 64 queries of a batch, and for at least
`--warm-up` seconds. Then it is measured with single queries to depth 10 and 1,000 in one thread, and with a batch in
`--threads` threads or processes. The median and the 99th percentile are over all single queries of all rounds; other
figures are medians of the rounds. Systems that are not installed are excluded, with the reason. k1 is 1.2 and b 0.75,
the fixed values of tantivy.

Peak memory is the resident set of the largest process, as the operating system counts it, including mapped files. For
Elasticsearch it is that of the server since the start of the step, including the heap.

The script prints its progress. With `--minutes`, a further round starts only if it would end in time with the duration
of the round before, so that all rounds are complete; the file has their number. The file of a size is written after
each system; `--resume` continues it. Collections and indexes stay in `--work`, and are used again if they are up to
date, until `--clean` removes them: about 20 GiB for 10 million documents.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from peer_base import K1, B, System, Unavailable  # noqa: E402
from peer_collections import NLPS, Collection, prepare_collection  # noqa: E402
from peer_results import OtherMeasurement, Results, table  # noqa: E402
from peer_steps import MIB, Steps, compile_lucene, with_server  # noqa: E402
from peer_systems import SAME_INDEX, SYSTEMS  # noqa: E402
from usage import make_parser  # noqa: E402

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measure sizes, or print tables of results."""
    options = _options()
    if options.table:
        for file in options.table:
            print(table(json.loads(file.read_text())))
    elif options.step:
        _step(options)
    else:
        with contextlib.ExitStack() as stack:
            try:
                for size in options.size:
                    print(table(_Measurement(options, size, stack).run()), flush=True)
            except OtherMeasurement as error:
                sys.exit(str(error))


def _options() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the task nlps")
    parser.add_argument(
        "--size", nargs="+", default=[NLPS], type=_size, help="nlps, or numbers of synthetic documents"
    )
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds; the maximum with --minutes")
    parser.add_argument("--minutes", type=float, help="time limit of a size; at least one round is measured")
    parser.add_argument("--resume", action="store_true", help="continue existing results")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count() or 1, help="threads or processes of a batch"
    )
    parser.add_argument("--warm-up", type=float, default=2.0, help="minimum seconds for each workload")
    parser.add_argument("--url", help="address of Elasticsearch; by default one is started, as in tests")
    parser.add_argument("--heap", default="1g", help="heap of a started Elasticsearch")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "searchapp-peers",
        help="folder of collections and indexes, which the user of a started server can enter",
    )
    parser.add_argument("--clean", action="store_true", help="remove collection and indexes at the end")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of peers-SIZE.json")
    parser.add_argument("--table", type=Path, nargs="+", help="only print the tables of these files")
    parser.add_argument("--step", choices=["prepare", "ready", "build", "measure"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.table and not options.data:
        parser.error("--data is missing")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def _size(text: str) -> str:
    if text != NLPS and not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is neither {NLPS} nor a number of documents")
    return text


class _Measurement:
    """The measurement of a size; closing `stack` stops its server."""

    def __init__(self, options: argparse.Namespace, size: str, stack: contextlib.ExitStack) -> None:
        self._options = options
        self._size = size
        self._stack = stack
        self._begin = time.monotonic()
        self._steps = Steps(size, options.data, options.work, options.threads, options.warm_up, options.url)
        self._systems: list[str] = list(options.systems)

    def run(self) -> dict[str, Any]:
        """Build and measure all systems of the size.

        Raises:
            OtherMeasurement: the results to continue belong to another measurement.
        """
        options, steps = self._options, self._steps
        steps.prepare()
        results = Results(
            options.out / f"peers-{self._size}.json",
            _facts(options, self._size, Collection(steps.folder / "collection")),
            resume=options.resume,
        )
        try:
            if any(results.rounds(name) < options.rounds for name in self._systems):
                self._start_requirements(results)
                for name in self._systems[:]:
                    self._build(name, results)
                for number in range(options.rounds):
                    begin = time.monotonic()
                    self._round(number, results)
                    if self._is_late(time.monotonic() - begin):
                        self._log(f"the {options.minutes:g} minutes are over after {number + 1} rounds")
                        break
            results.write()
            return results.value
        finally:
            if options.clean:
                shutil.rmtree(steps.folder)

    def _start_requirements(self, results: Results) -> None:
        """Start a server and compile Lucene; exclude systems for which this fails."""
        server_systems = [name for name in self._systems if name.startswith("elasticsearch")]
        if server_systems:
            try:
                self._steps = with_server(self._steps, self._options.heap, self._stack)
                self._options.url = self._steps.url  # further sizes use it, too
            except Unavailable as error:
                for name in server_systems:
                    self._exclude(name, str(error), results)
        if "lucene" in self._systems:
            try:
                compile_lucene(self._options.work)
            except Unavailable as error:
                self._exclude("lucene", str(error), results)

    def _exclude(self, name: str, reason: str, results: Results) -> None:
        self._log(f"{name} is excluded: {reason}")
        results.value["left out"][name] = reason
        results.systems.pop(name, None)
        self._systems.remove(name)

    def _build(self, name: str, results: Results) -> None:
        """Index the documents unless an index is up to date."""
        known = results.systems.setdefault(name, {"built": {}, "rounds": []})
        owner = SAME_INDEX.get(name)
        if owner in self._systems:
            self._record_index(known, {**results.systems[owner]["built"], "as": owner})
            return
        file = self._steps.folder / f"built-{name}.json"
        try:
            ready = self._steps.run("ready", name)
            built = json.loads(file.read_text()) if ready["ready"] and file.exists() else {}
            if built.get("key") == ready["key"]:
                self._log(f"the index of {name} is up to date")
            else:
                self._log(f"indexing {name}")
                file.unlink(missing_ok=True)
                built = self._steps.run("build", name) | {"key": ready["key"]}
                file.write_text(json.dumps(built))
            self._record_index(known, built)
            results.write()
        except Unavailable as error:
            self._exclude(name, str(error), results)

    def _record_index(self, known: dict[str, Any], built: dict[str, Any]) -> None:
        """Record an index; drop rounds of another index or version."""
        if known["rounds"] and known["built"].get("key") != built["key"]:
            self._log("the rounds of an older index are dropped")
            known["rounds"] = []
        known["built"] = built

    def _round(self, number: int, results: Results) -> None:
        """Measure the systems that do not have this round yet."""
        for name in [name for name in self._systems if results.rounds(name) <= number]:
            self._log(f"round {number + 1} of {self._options.rounds}, {name}")
            try:
                measured = self._steps.run("measure", name)
            except Unavailable as error:
                self._exclude(name, str(error), results)
                continue
            for took in measured["workloads"].values():
                first = took.pop("first", None)
                if first is not None and took is measured["workloads"]["depth 10"]:
                    self._first_hits_file(name).write_text(json.dumps(first))
            results.systems[name]["rounds"].append(measured)
            results.systems[name]["same first 10"] = self._agreement(name)
            results.write()

    def _is_late(self, seconds: float) -> bool:
        """Return whether a round of this duration would exceed the time limit."""
        if self._options.minutes is None:
            return False
        return bool(time.monotonic() - self._begin + seconds > 60 * self._options.minutes)

    def _first_hits_file(self, name: str) -> Path:
        """Return the file of the first hits of a system."""
        return self._steps.folder / f"first-{name}.json"

    def _agreement(self, name: str) -> float | None:
        """Return the share of the first ten hits of the embedded engine that are among the first ten of a system."""
        if not self._first_hits_file("embedded").exists():
            return None
        embedded, other = (
            json.loads(self._first_hits_file(system).read_text()) for system in ("embedded", name)
        )
        shares = [
            len({*expected} & {*actual}) / len(expected)
            for expected, actual in zip(embedded, other, strict=True)
            if expected
        ]
        return statistics.mean(shares)

    def _log(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {self._size}: {text}", file=sys.stderr, flush=True)


def _facts(options: argparse.Namespace, size: str, collection: Collection) -> dict[str, Any]:
    """Return the conditions of a measurement."""
    counts = {name: collection.facts[name] for name in ("documents", "tokens", "terms")}
    return {
        "size": size,
        **counts,
        "k1": K1,
        "b": B,
        "queries": {name: len(collection.queries(name)) for name in ("single", "batch")},
        "threads of a batch": options.threads,
        "warm-up s": options.warm_up,
        "heap of the server": options.heap,
        "machine": {
            "processors": os.cpu_count(),
            "python": platform.python_version(),
            "system": platform.platform(),
        },
    }


def _step(options: argparse.Namespace) -> None:
    """Run a step in this process; print its report as one line."""
    (size,) = options.size
    folder = options.work / size
    if options.step == "prepare":
        prepare_collection(folder / "collection", options.data, size)
        return
    (name,) = options.systems
    collection = Collection(folder / "collection")
    system = _system(options, name, folder)
    if options.step == "ready":
        report: dict[str, Any] = {"key": system.key(collection), "ready": system.is_ready(collection)}
    elif options.step == "build":
        system.begin()
        begin = time.perf_counter()
        system.build(collection)
        report = {"s": time.perf_counter() - begin, "disk MiB": system.disk() / MIB, **system.memory()}
        system.keep(collection)
    else:
        system.begin()
        report = system.measure(collection, size, options.warm_up) | system.memory()
        report.setdefault("version", system.version)
    print(json.dumps(report))


def _system(options: argparse.Namespace, name: str, folder: Path) -> System:
    index = folder / f"index-{name}"
    owner = SAME_INDEX.get(name)
    if owner and not index.exists():
        index = folder / f"index-{owner}"
    return SYSTEMS[name](index, options.threads, options.url)


if __name__ == "__main__":
    main()
