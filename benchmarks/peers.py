"""The embedded engine beside its peers: Elasticsearch, plain Lucene, tantivy, bm25s, PISA, on the same tokens.

    pip install -e '.[dev,bench]'
    python benchmarks/peers.py --data DIR --size nlps 10000 100000 1000000 --minutes 30
    python benchmarks/peers.py --data DIR --size 10000000 --minutes 90 --work FOLDER --resume
    python benchmarks/peers.py --table benchmarks/results/peers-*.json
    python benchmarks/peers_figure.py benchmarks/results/peers-*.json

Documents and queries are made once, terms separated by spaces, so that no system's analysis counts
(`peer_collections.py`). Each system indexes them to one segment on disk; then in each round each system in turn, in a
new process of its own, opens its index, warms up (every single query once, the first 64 of a batch, and at least
`--warm-up` seconds), and is measured: single queries to depth 10 and 1,000 in one thread, and one batch in `--threads`
threads or processes. The median and the 99th percentile are those of all single queries of all rounds; other figures
are medians of the rounds. What is not installed is left out, with the reason. k1 is 1.2 and b 0.75, which tantivy does
not let one choose.

Peak memory is the greatest resident set of the largest process, as the operating system counts it, with what is mapped
of an index; for Elasticsearch it is that of the server since the step began, with the heap that it is given.

How far it is is said meanwhile. With `--minutes` a further round of a size begins only if it ends in time when it takes
as long as the one before: whatever is measured is measured whole, and the file says of how many rounds. The file of
a size is written after each system; `--resume` goes on with it. Collections and indexes stay in `--work`, and are taken
from there as long as they would be the same, until `--clean` removes them: some 20 GiB for 10 million documents.
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
from peer_collections import NLPS, Collection, prepared  # noqa: E402
from peer_results import Different, Results, table  # noqa: E402
from peer_steps import MIB, Steps, compile_lucene, with_server  # noqa: E402
from peer_systems import SAME_INDEX, SYSTEMS  # noqa: E402
from usage import parser_of  # noqa: E402

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measure some sizes, or print tables of what was measured."""
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
                    print(table(_Measurement(options, size, stack).carried_out()), flush=True)
            except Different as error:
                sys.exit(str(error))


def _options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the task nlps")
    parser.add_argument(
        "--size", nargs="+", default=[NLPS], type=_size, help="nlps, or numbers of synthetic documents"
    )
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=5, help="at most, with --minutes")
    parser.add_argument("--minutes", type=float, help="that a size may take; at least one round is measured")
    parser.add_argument("--resume", action="store_true", help="go on with the results that there are")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="that a batch may use")
    parser.add_argument("--warm-up", type=float, default=2.0, help="seconds of each workload, at least")
    parser.add_argument("--url", help="an Elasticsearch; without it one is started, as the tests do")
    parser.add_argument("--heap", default="1g", help="of the Elasticsearch that is started")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "searchapp-peers",
        help="folder that keeps collections and indexes, where the user of a server that is started may go",
    )
    parser.add_argument("--clean", action="store_true", help="remove collection and indexes at the end")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder that peers-SIZE.json is written to")
    parser.add_argument(
        "--table", type=Path, nargs="+", help="print the tables of these files, measure nothing"
    )
    parser.add_argument("--step", choices=["prepare", "ready", "build", "measure"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.table and not options.data:
        parser.error("--data is missing")
    if options.rounds < 1:
        parser.error("--rounds: there must be one at least")
    return options


def _size(given: str) -> str:
    if given != NLPS and not (given.isdecimal() and int(given) > 0):
        raise argparse.ArgumentTypeError(f"{given!r} is neither {NLPS} nor a number of documents")
    return given


class _Measurement:
    """The measurement of one size; what is started for it is stopped with `stack`."""

    def __init__(self, options: argparse.Namespace, size: str, stack: contextlib.ExitStack) -> None:
        self._options = options
        self._size = size
        self._stack = stack
        self._begin = time.monotonic()
        self._steps = Steps(size, options.data, options.work, options.threads, options.warm_up, options.url)
        self._systems: list[str] = list(options.systems)

    def carried_out(self) -> dict[str, Any]:
        """Build and measure all systems of the size.

        Raises:
            Different: the file of results that is to be gone on with is of another measurement.
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
                self._start_what_is_needed(results)
                for name in self._systems[:]:
                    self._build(name, results)
                for number in range(options.rounds):
                    begin = time.monotonic()
                    self._round(number, results)
                    if self._is_late(time.monotonic() - begin):
                        self._say(f"the {options.minutes:g} minutes are over after {number + 1} rounds")
                        break
            results.write()
            return results.value
        finally:
            if options.clean:
                shutil.rmtree(steps.folder)

    def _start_what_is_needed(self, results: Results) -> None:
        """Start a server and compile Lucene; systems for which that fails are left out."""
        asked = [name for name in self._systems if name.startswith("elasticsearch")]
        if asked:
            try:
                self._steps = with_server(self._steps, self._options.heap, self._stack)
                self._options.url = self._steps.url  # also of further sizes
            except Unavailable as error:
                for name in asked:
                    self._leave_out(name, str(error), results)
        if "lucene" in self._systems:
            try:
                compile_lucene(self._options.work)
            except Unavailable as error:
                self._leave_out("lucene", str(error), results)

    def _leave_out(self, name: str, why: str, results: Results) -> None:
        self._say(f"{name} is left out: {why}")
        results.value["left out"][name] = why
        results.systems.pop(name, None)
        self._systems.remove(name)

    def _build(self, name: str, results: Results) -> None:
        """Index the documents, unless that was done before."""
        known = results.systems.setdefault(name, {"built": {}, "rounds": []})
        owner = SAME_INDEX.get(name)
        if owner in self._systems:
            self._take(known, {**results.systems[owner]["built"], "as": owner})
            return
        file = self._steps.folder / f"built-{name}.json"
        try:
            ready = self._steps.run("ready", name)
            kept = json.loads(file.read_text()) if ready["ready"] and file.exists() else {}
            if kept.get("key") == ready["key"]:
                self._say(f"{name} is indexed already")
            else:
                self._say(f"indexing {name}")
                file.unlink(missing_ok=True)
                kept = self._steps.run("build", name) | {"key": ready["key"]}
                file.write_text(json.dumps(kept))
            self._take(known, kept)
            results.write()
        except Unavailable as error:
            self._leave_out(name, str(error), results)

    def _take(self, known: dict[str, Any], built: dict[str, Any]) -> None:
        """Take an index; rounds that were measured with another one, or by another version, do not count."""
        if known["rounds"] and known["built"].get("key") != built["key"]:
            self._say("the rounds of an older index are left out")
            known["rounds"] = []
        known["built"] = built

    def _round(self, number: int, results: Results) -> None:
        """Measure each system once more, as far as that was not done before."""
        for name in [name for name in self._systems if results.rounds(name) <= number]:
            self._say(f"round {number + 1} of {self._options.rounds}, {name}")
            try:
                measured = self._steps.run("measure", name)
            except Unavailable as error:
                self._leave_out(name, str(error), results)
                continue
            for took in measured["workloads"].values():
                first = took.pop("first", None)
                if first is not None and took is measured["workloads"]["depth 10"]:
                    self._first(name).write_text(json.dumps(first))
            results.systems[name]["rounds"].append(measured)
            results.systems[name]["same first 10"] = self._agreement(name)
            results.write()

    def _is_late(self, seconds: float) -> bool:
        """Whether a round that takes so long would end too late."""
        if self._options.minutes is None:
            return False
        return bool(time.monotonic() - self._begin + seconds > 60 * self._options.minutes)

    def _first(self, name: str) -> Path:
        """Where the first hits of a system are kept."""
        return self._steps.folder / f"first-{name}.json"

    def _agreement(self, name: str) -> float | None:
        """The share of the first ten hits of the embedded engine that another system has among its first ten."""
        if not self._first("embedded").exists():
            return None
        ours, theirs = (json.loads(self._first(one).read_text()) for one in ("embedded", name))
        shares = [
            len({*mine} & {*other}) / len(mine) for mine, other in zip(ours, theirs, strict=True) if mine
        ]
        return statistics.mean(shares)

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {self._size}: {text}", file=sys.stderr, flush=True)


def _facts(options: argparse.Namespace, size: str, collection: Collection) -> dict[str, Any]:
    """What must be known of a measurement besides its figures."""
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
    """What a process of its own does: prints its report as one line."""
    (size,) = options.size
    folder = options.work / size
    if options.step == "prepare":
        prepared(folder / "collection", options.data, size)
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
        report = system.measured(collection, size, options.warm_up) | system.memory()
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
