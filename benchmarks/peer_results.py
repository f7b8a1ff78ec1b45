"""What `peers.py` measured: the file that it is kept in, the figures of a system, and the table of a size."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

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


class Different(Exception):
    """A file of results is of another measurement; the message says in what."""


class Results:
    """The results of a size, written after each system is built and after each of its rounds.

    `value` is what the file has. With `resume` what the file has is kept, if it was measured under the same `facts`;
    otherwise it is replaced.
    """

    def __init__(self, file: Path, facts: dict[str, Any], *, resume: bool) -> None:
        self.file = file
        self.value: dict[str, Any] = {**facts, "systems": {}, "left out": {}}
        if resume and file.exists():
            before = json.loads(file.read_text())
            differ = [name for name, fact in facts.items() if before.get(name) != fact]
            if differ:
                raise Different(
                    f"{file} has other measurements, of another {', '.join(differ)}: leave --resume out to replace them"
                )
            self.value = {**before, "left out": {}}

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        systems: dict[str, dict[str, Any]] = self.value["systems"]
        return systems

    def rounds(self, name: str) -> int:
        """How many rounds of a system there are."""
        return len(self.systems[name]["rounds"]) if name in self.systems else 0

    def write(self) -> None:
        """Write the file whole, or leave it as it was."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.value, indent=1) + "\n")
        new.replace(self.file)


def figures(result: dict[str, Any], name: str) -> dict[str, float | None]:
    """The figures of a system: ms of single queries, ms a query of a batch, s, MiB; None where there is none.

    The median and the 99th percentile of single queries are those of all queries of all rounds together; all else is
    the median of the rounds.
    """
    measured = result["systems"][name]
    built = measured["built"]
    rounds = measured["rounds"]
    found: dict[str, float | None] = {
        "build s": built["s"],
        "disk MiB": built["disk MiB"],
        "build MiB": _memory(built),
        "open ms": _median([one["open"] for one in rounds]),
        "search MiB": _median([_memory(one) for one in rounds]),
    }
    for depth in ("depth 10", "depth 1000"):
        times = [ms for one in rounds for ms in one["workloads"][depth]["ms"]]
        found[f"{depth} median ms"] = _median(times)
        found[f"{depth} p99 ms"] = statistics.quantiles(times, n=100)[98] if times else None
        took = [ms for one in rounds for ms in one["workloads"][depth].get("took ms", ())]
        found[f"{depth} took ms"] = _median(took)
    batch = _median([one["workloads"]["batch"]["ms"][0] for one in rounds])
    return found | {"batch ms": None if batch is None else batch / result["queries"]["batch"]}


def _memory(measured: dict[str, Any]) -> float | None:
    """Peak memory: that of the server, where there is one."""
    memory: float | None = measured["server MiB"] if "server MiB" in measured else measured["MiB"]
    return memory


def _median(values: list[Any]) -> float | None:
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def table(result: dict[str, Any]) -> str:
    """The figures of a size as a Markdown table, with what must be known to read it."""
    rounds = {name: len(one["rounds"]) for name, one in result["systems"].items()}
    some = f"{min(rounds.values(), default=0)}" if len(set(rounds.values())) < 2 else "as many as below"
    words = [
        f"{result['documents']:,} documents, {result['tokens']:,} tokens; k1 {result['k1']}, b {result['b']}",
        f"rounds: {some}",
        f"{result['queries']['single']:,} single queries in one thread, a batch of {result['queries']['batch']:,} in "
        f"{result['threads of a batch']}",
        f"each workload warmed up by its queries, {result['warm-up s']:g} s at least",
    ]
    lines = ["; ".join(words), ""]
    lines.append("| system | " + " | ".join(COLUMNS.values()) + " | same first 10 |")
    lines.append("|---|" + "---:|" * (len(COLUMNS) + 1))
    for name, measured in result["systems"].items():
        if measured["rounds"]:
            found = figures(result, name)
            cells = " | ".join(_shown(found[column]) for column in COLUMNS)
            agreement = measured.get("same first 10")
            lines.append(f"| {name} | {cells} | {'' if agreement is None else f'{agreement:.3f}'} |")
    lines.append("")
    for name, measured in result["systems"].items():
        for last in measured["rounds"][-1:]:
            segments = last["segments"]
            lines.append(
                f"{name}: {last['version']}, {segments} segment{'s' * (segments != 1)}, {rounds[name]} "
                f"round{'s' * (rounds[name] != 1)}"
            )
    lines += [f"{name} is left out: {why}" for name, why in result["left out"].items()]
    return "\n".join(lines) + "\n"


def _shown(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
