"""Results of `peers.py`: their file, the figures of a system, and the table of a size."""

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


class OtherMeasurement(Exception):
    """A file of results belongs to another measurement; the message names the differences."""


class Results:
    """The results of a size, written after the build of each system and after each of its rounds.

    `value` is the content of the file. `resume` continues an existing file, which must have the same `facts`; otherwise
    the file is replaced.
    """

    def __init__(self, file: Path, facts: dict[str, Any], *, resume: bool) -> None:
        self.file = file
        self.value: dict[str, Any] = {**facts, "systems": {}, "left out": {}}
        if resume and file.exists():
            before = json.loads(file.read_text())
            differ = [name for name, fact in facts.items() if before.get(name) != fact]
            if differ:
                raise OtherMeasurement(
                    f"{file} has measurements with another {', '.join(differ)}: omit --resume to replace them"
                )
            self.value = {**before, "left out": {}}

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        systems: dict[str, dict[str, Any]] = self.value["systems"]
        return systems

    def rounds(self, name: str) -> int:
        """Return the number of rounds of a system."""
        return len(self.systems[name]["rounds"]) if name in self.systems else 0

    def write(self) -> None:
        """Write the file atomically."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.value, indent=1) + "\n")
        new.replace(self.file)


def figures(result: dict[str, Any], name: str) -> dict[str, float | None]:
    """Return the figures of a system: ms of single queries, ms per query of a batch, s, MiB; None if unknown.

    The median and the 99th percentile of single queries are over all queries of all rounds; other figures are medians
    of the rounds.
    """
    built, rounds = result["systems"][name]["built"], result["systems"][name]["rounds"]
    values: dict[str, float | None] = {
        "build s": built["s"],
        "disk MiB": built["disk MiB"],
        "build MiB": _memory(built),
        "open ms": _median([figures["open"] for figures in rounds]),
        "search MiB": _median([_memory(figures) for figures in rounds]),
    }
    for depth in ("depth 10", "depth 1000"):
        times = [ms for figures in rounds for ms in figures["workloads"][depth]["ms"]]
        values[f"{depth} median ms"] = _median(times)
        values[f"{depth} p99 ms"] = statistics.quantiles(times, n=100)[98] if times else None
        took = [ms for figures in rounds for ms in figures["workloads"][depth].get("took ms", ())]
        values[f"{depth} took ms"] = _median(took)
    batch = _median([figures["workloads"]["batch"]["ms"][0] for figures in rounds])
    return values | {"batch ms": None if batch is None else batch / result["queries"]["batch"]}


def _memory(measured: dict[str, Any]) -> float | None:
    """Return the peak memory, of the server if there is one."""
    memory: float | None = measured["server MiB"] if "server MiB" in measured else measured["MiB"]
    return memory


def _median(values: list[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def table(result: dict[str, Any]) -> str:
    """Return the figures of a size as a Markdown table with the conditions of the measurement."""
    rounds = {name: len(system["rounds"]) for name, system in result["systems"].items()}
    equal = len(set(rounds.values())) < 2
    conditions = [
        f"{result['documents']:,} documents, {result['tokens']:,} tokens; k1 {result['k1']}, b {result['b']}",
        f"rounds: {min(rounds.values(), default=0) if equal else 'see below'}",
        f"{result['queries']['single']:,} single queries in one thread, a batch of {result['queries']['batch']:,} in "
        f"{result['threads of a batch']}",
        f"each workload warmed up by its queries for at least {result['warm-up s']:g} s",
    ]
    lines = ["; ".join(conditions), ""]
    lines.append("| system | " + " | ".join(COLUMNS.values()) + " | same first 10 |")
    lines.append("|---|" + "---:|" * (len(COLUMNS) + 1))
    for name, measured in result["systems"].items():
        if measured["rounds"]:
            values = figures(result, name)
            cells = " | ".join(_shown(values[column]) for column in COLUMNS)
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
    lines += [f"{name} is missing: {reason}" for name, reason in result["left out"].items()]
    return "\n".join(lines) + "\n"


def _shown(value: float | None) -> str:
    """Format with three significant digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
