"""The result of a bench as one HTML file, see `html`."""

from __future__ import annotations

import shlex
from pathlib import Path

from searchapp.app.bench import BenchResult
from searchapp.report import bench_wording, wording
from searchapp.report.html import Section, rendered


def bench_page(found: BenchResult) -> bytes:
    """The bench as HTML in UTF-8; the same result gives the same bytes."""
    file = Path(found.file).name
    there = [
        (Section("bench-heatmap", "Figures"), bool(bench_wording.official(found))),
        (Section("bench-tests", "Differences"), len(found.systems) > 1),
        (Section("bench-measures", "All measures"), any(column.measures for column in found.columns)),
        (Section("bench-again", "How to get these numbers again"), True),
    ]
    return rendered(
        "bench.html",
        [section for section, is_there in there if is_there],
        _warnings(found),
        found=found,
        names=[system.name for system in found.systems],
        baseline=found.systems[found.baseline].name,
        b=bench_wording,
        w=wording,
        most=bench_wording.greatest(found),
        file=file,
        command=shlex.join(["searchapp", "bench", file, "--json"]),
    )


def _warnings(found: BenchResult) -> list[str]:
    """What must not be missed: which cells have no figures, and where a figure misleads."""
    warnings = [
        f"{column.name}, {system.name} has no figures: {cell.error}" for system, column, cell in found.failed
    ]
    for column in found.columns:
        warnings += [f"{column.name}: {warning}" for warning in column.warnings]
        for system, cell in zip(found.systems, column.cells, strict=True):
            if cell is not None and column.group is None:
                warnings += [f"{column.name}, {system.name}: {warning}" for warning in cell.warnings]
    return warnings
