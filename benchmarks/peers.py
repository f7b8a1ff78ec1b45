"""The embedded engine beside its peers: Elasticsearch, plain Lucene, tantivy, bm25s, PISA, on the same tokens.

    pip install -e '.[bench]'
    python benchmarks/peers.py --data DIR --size nlps      [--rounds 5] [--systems embedded lucene ...] [--url URL]
    python benchmarks/peers.py --data DIR --size 1000000   [--work FOLDER] [--warm-up 2]
    python benchmarks/peers.py --table benchmarks/results/peers-*.json

One size a command. Documents and queries are made once, terms separated by spaces, so that no system's analysis counts
(`peer_collections.py`). Each system indexes them to one segment on disk; then in each round each system in turn, in a
new process of its own, opens its index, warms up (every single query once, the first 64 of a batch, and at least
`--warm-up` seconds), and is measured:
single queries to depth 10 and 1,000 in one thread, and one batch in `--threads` threads or processes. Of each round the
median and the 99th percentile of the single queries are taken, and medians of these over the rounds are printed. What
is not installed is left out, with the reason. k1 is 1.2 and b 0.75, which tantivy does not let one choose.

Peak memory is that of the largest process, as the operating system counts it; for Elasticsearch it is what the server
has in use, whose heap is given. An index and its collection stay in `--work` until they are removed with `--clean`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from peer_base import K1, B, System, Unavailable  # noqa: E402
from peer_collections import Collection, prepared  # noqa: E402
from peer_systems import SAME_INDEX, SYSTEMS  # noqa: E402

LUCENE = Path(__file__).parent / "lucene"
RESULTS = Path(__file__).parent / "results"
MIB = 2**20


def main() -> None:
    """Measure one size, or print tables of what was measured."""
    options = _options()
    if options.table:
        for file in options.table:
            print(table(json.loads(file.read_text())))
    elif options.step:
        _step(options)
    else:
        print(table(_measured(options, options.out or RESULTS / f"peers-{options.size}.json")))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the task nlps")
    parser.add_argument("--size", default="nlps", help="nlps, or a number of synthetic documents")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="that a batch may use")
    parser.add_argument("--warm-up", type=float, default=2.0, help="seconds of each workload, at least")
    parser.add_argument("--url", help="an Elasticsearch; without it one is started, as the tests do")
    parser.add_argument("--heap", default="1g", help="of the Elasticsearch that is started")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "searchapp-peers")
    parser.add_argument("--clean", action="store_true", help="remove collection and indexes at the end")
    parser.add_argument("--out", type=Path, help="where the JSON goes: benchmarks/results/peers-SIZE.json")
    parser.add_argument(
        "--table", type=Path, nargs="+", help="print the tables of these files, measure nothing"
    )
    parser.add_argument("--step", choices=["prepare", "build", "measure"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.table and not options.data:
        parser.error("--data is missing")
    return options


def _measured(options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Build and measure all systems of a size; what is known is written after each round."""
    folder = options.work / options.size
    # In a process of its own: what this one has ever used counts for those that it starts, see getrusage(2).
    subprocess.run(_command(options, "prepare"), check=True)
    collection = Collection(folder / "collection")
    systems: dict[str, dict[str, Any]] = {}
    found: dict[str, list[list[int]]] = {}
    try:
        with contextlib.ExitStack() as stack:
            skipped = _start_elasticsearch(options, stack) | _compile_lucene(options)
            result = _result(options, collection) | {"systems": systems, "left out": skipped}
            for name in [name for name in options.systems if name not in skipped]:
                _say(f"{options.size}: building {name}")
                if built := _in_a_process(options, name, "build", skipped):
                    systems[name] = {"built": built, "rounds": []}
            for number in range(options.rounds):
                for name in list(systems):
                    _say(f"{options.size}: round {number + 1} of {options.rounds}, {name}")
                    measured = _in_a_process(options, name, "measure", skipped)
                    if measured is None:
                        del systems[name]
                        continue
                    for took in measured["workloads"].values():
                        found.setdefault(name, took.pop("first", []))
                    systems[name]["rounds"].append(measured)
                    systems[name]["same first 10"] = _agreement(found.get("embedded"), found[name])
                result["rounds"] = number + 1
                out.parent.mkdir(parents=True, exist_ok=True)
                out.write_text(json.dumps(result, indent=1) + "\n")
        return result
    finally:
        if options.clean:
            shutil.rmtree(folder)


def _result(options: argparse.Namespace, collection: Collection) -> dict[str, Any]:
    """What must be known of a run besides its figures."""
    machine = {
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    return {
        "size": options.size,
        **collection.facts,
        "k1": K1,
        "b": B,
        "rounds": 0,
        "queries": {name: len(collection.queries(name)) for name in ("single", "batch")},
        "threads of a batch": options.threads,
        "warm-up s": options.warm_up,
        "heap of the server": options.heap,
        "machine": machine,
    }


def _agreement(ours: list[list[int]] | None, theirs: list[list[int]]) -> float | None:
    """The share of the first ten hits of the embedded engine that another system has among its first ten."""
    if ours is None:
        return None
    shares = [len({*mine} & {*other}) / len(mine) for mine, other in zip(ours, theirs, strict=True) if mine]
    return statistics.mean(shares)


def _in_a_process(
    options: argparse.Namespace, name: str, step: str, skipped: dict[str, str]
) -> dict[str, Any] | None:
    """What a step of a system reports, with the peak memory of its largest process; None if it can't be done."""
    command = [*_command(options, step), "--systems", name]
    owner = SAME_INDEX.get(name)
    if step == "build" and owner in options.systems and owner not in skipped:
        return {"as": owner}
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, text=True, env=_environment())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        said, complaint = output.read().strip().splitlines(), errors.read().strip().splitlines()
    if process.returncode or not said:
        skipped[name] = (complaint or ["it said nothing"])[-1].removeprefix("peer_base.Unavailable: ")
        _say(f"{name} is left out: {skipped[name]}")
        return None
    report: dict[str, Any] = json.loads(said[-1])
    kib = 1 / 1024 if sys.platform != "darwin" else 1 / MIB
    return {"MiB": usage.ru_maxrss * kib, "cpu s": usage.ru_utime + usage.ru_stime, **report}


def _command(options: argparse.Namespace, step: str) -> list[str]:
    command = [sys.executable, __file__, "--step", step, "--size", options.size, "--data", str(options.data)]
    command += ["--work", str(options.work), "--threads", str(options.threads)]
    return [*command, "--warm-up", str(options.warm_up), *(["--url", options.url] if options.url else [])]


def _environment() -> dict[str, str]:
    """One thread for each library that would start its own."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "DISABLE_TQDM": "1"}


def _step(options: argparse.Namespace) -> None:
    """What a process of its own does: prints its report as one line."""
    folder = options.work / options.size
    if options.step == "prepare":
        prepared(folder / "collection", options.data, options.size)
        return
    (name,) = options.systems
    collection = Collection(folder / "collection")
    system = _system(options, name, folder)
    if options.step == "build":
        begin = time.perf_counter()
        system.build(collection)
        report: dict[str, Any] = {"s": time.perf_counter() - begin, "disk MiB": system.disk() / MIB}
    else:
        report = system.measured(collection, options.size, options.warm_up)
        report.setdefault("version", system.version)
    print(json.dumps(report))


def _system(options: argparse.Namespace, name: str, folder: Path) -> System:
    index = folder / f"index-{name}"
    owner = SAME_INDEX.get(name)
    if owner and not index.exists():
        index = folder / f"index-{owner}"
    return SYSTEMS[name](index, options.threads, options.url)


def _start_elasticsearch(options: argparse.Namespace, stack: contextlib.ExitStack) -> dict[str, str]:
    """Start a server for as long as it is needed, unless one is given; which systems have none, and why."""
    asked = [name for name in options.systems if name.startswith("elasticsearch")]
    if not asked or options.url:
        return {}
    from tests.server.distribution import wanted_version
    from tests.server.errors import ServerError
    from tests.server.node import Node, free_port

    try:
        node = stack.enter_context(Node(version=wanted_version(), heap=options.heap, port=free_port()))
    except ServerError as error:
        return dict.fromkeys(asked, str(error))
    options.url = node.url
    return {}


def _compile_lucene(options: argparse.Namespace) -> dict[str, str]:
    """Compile the Java program against what Maven fetches; why Lucene can't be measured, if so."""
    if "lucene" in options.systems:
        try:
            os.environ["PEERS_JAVA"] = os.pathsep.join(map(str, _compiled(options.work / "lucene")))
        except Unavailable as error:
            return {"lucene": str(error)}
    return {}


def _compiled(folder: Path) -> Sequence[Path]:
    """Java's home, the jars of Lucene and the compiled program.

    Raises:
        Unavailable: Java 21 or newer, which Lucene 10 needs, or Maven is missing, or the artifacts can't be fetched.
    """
    from tests.server.java import find_java

    home = find_java()
    if home is None or not (home / "bin" / "javac").exists():
        raise Unavailable("there is no Java 21 or newer with a compiler, which Lucene 10 needs")
    jars, classes = folder / "jars", folder / "classes"
    if not jars.is_dir():
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        command = ["mvn", "-B", "-q", "-f", str(LUCENE / "pom.xml"), goal, f"-DoutputDirectory={jars}"]
        _run(command, "Maven could not fetch Lucene")
    classes.mkdir(exist_ok=True)
    _run(
        [f"{home}/bin/javac", "-cp", f"{jars}/*", "-d", str(classes), str(LUCENE / "Peers.java")],
        "Peers.java does not compile",
    )
    return home, jars, classes


def _run(command: Sequence[str], problem: str) -> None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"{problem}: {error}") from error
    if answer.returncode:
        raise Unavailable(f"{problem}: {(answer.stdout + answer.stderr).strip().splitlines()[:1]}")


def figures(result: dict[str, Any], name: str) -> dict[str, float]:
    """The figures of a system: ms of single queries (median, 99th percentile), ms a query of a batch, s, MiB."""
    measured = result["systems"][name]
    built = measured["built"]
    if "as" in built:
        built = result["systems"][built["as"]]["built"]
    rounds = measured["rounds"]
    found = {
        "build s": built["s"],
        "disk MiB": built["disk MiB"],
        "build MiB": built["MiB"],
        "open ms": statistics.median(one["open"] for one in rounds),
        "search MiB": statistics.median(one.get("server MiB", one["MiB"]) for one in rounds),
    }
    for depth in ("depth 10", "depth 1000"):
        times = [one["workloads"][depth]["ms"] for one in rounds]
        found[f"{depth} median ms"] = statistics.median(map(statistics.median, times))
        found[f"{depth} p99 ms"] = statistics.median(statistics.quantiles(some, n=100)[98] for some in times)
        if "took ms" in rounds[0]["workloads"][depth]:
            found[f"{depth} took ms"] = statistics.median(
                statistics.median(one["workloads"][depth]["took ms"]) for one in rounds
            )
    batch = statistics.median(one["workloads"]["batch"]["ms"][0] for one in rounds)
    return found | {"batch ms": batch / result["queries"]["batch"]}


COLUMNS = {
    "build s": "build s",
    "build MiB": "build MiB",
    "disk MiB": "disk MiB",
    "open ms": "open ms",
    "depth 10 median ms": "10: median ms",
    "depth 10 p99 ms": "10: 99 % ms",
    "depth 1000 median ms": "1,000: median ms",
    "depth 1000 p99 ms": "1,000: 99 % ms",
    "batch ms": "batch, ms a query",
    "search MiB": "search MiB",
}


def table(result: dict[str, Any]) -> str:
    """The figures of a size as a Markdown table, with what must be known to read it."""
    words = f"{result['documents']:,} documents, {result['tokens']:,} tokens; medians of {result['rounds']} rounds"
    lines = [
        f"{words}; k1 {result['k1']}, b {result['b']}; a batch in {result['threads of a batch']} threads",
        "",
    ]
    lines.append("| system | " + " | ".join(COLUMNS.values()) + " | same first 10 |")
    lines.append("|---|" + "---:|" * (len(COLUMNS) + 1))
    for name, measured in result["systems"].items():
        found = figures(result, name)
        cells = " | ".join(_shown(found[column]) for column in COLUMNS)
        agreement = measured["same first 10"]
        lines.append(f"| {name} | {cells} | {'' if agreement is None else f'{agreement:.3f}'} |")
    lines.append("")
    for name, measured in result["systems"].items():
        last = measured["rounds"][-1]
        segments = f", {last['segments']} segment(s)" if "segments" in last else ""
        lines.append(f"{name}: {last['version']}{segments}")
    lines += [f"{name} is left out: {reason}" for name, reason in result["left out"].items()]
    return "\n".join(lines) + "\n"


def _shown(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
