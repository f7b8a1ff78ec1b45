"""Result of a bench in one JSON file; imports neither engines nor recipes, for the report.

<folder>/bench.json                             the result
<folder>/<task>/<split>/<engine>/<recipe>/      the run directory of each cell
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from searchapp import resources
from searchapp.app.comparison import Difference
from searchapp.errors import DataError, UsageError
from searchapp.files import atomic_file, replace_nonfinite
from searchapp.lucene.dataclass import dataclass

FILE = "bench.json"
FORMAT = 2


@dataclass(frozen=True, slots=True)
class System:
    """A recipe with its parameters on an engine: a row of a bench."""

    name: str
    recipe: str
    parameters: Mapping[str, Any]
    engine: str


@dataclass(frozen=True, slots=True)
class Cell:
    """The run of a system on a split."""

    run: str  # the run directory, relative to the folder of the bench
    digest: str = ""  # the digest of the run's manifest
    ranked: bool = False  # whether this bench ranked it, instead of keeping an earlier run
    seconds: float = 0.0  # the time of ranking
    error: str | None = None  # why there is no run, or why the run has no figures
    exit_code: int = 0  # the exit code of the error
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchMeasure:
    """The figures of all systems under a measure, in a column."""

    name: str
    official: bool
    topics: int  # number of tested topics
    figures: tuple[float | None, ...]  # None for a system without a figure
    # Figure − baseline; None for the baseline, without a figure, and for a figure that is not a mean over
    # topics.
    differences: tuple[Difference | None, ...]


@dataclass(frozen=True, slots=True)
class BenchColumn:
    """A split of a task, or a group of its topics, which shares the runs of the split."""

    task: str  # the name of the task's table in the plan
    split: str
    group: str | None
    cells: tuple[Cell | None, ...]  # None for a system whose recipe does not rank this task
    measures: tuple[BenchMeasure, ...]
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The displayed name: `nlps dev`, `nlps dev long`."""
        return " ".join(filter(None, (self.task, self.split, self.group)))

    @property
    def official(self) -> BenchMeasure | None:
        """The measure that ranks submissions, otherwise the first measure."""
        official = (measure for measure in self.measures if measure.official)
        return next(official, next(iter(self.measures), None))


@dataclass(frozen=True, slots=True)
class BenchResult:
    """The systems of a bench compared in each column."""

    folder: Path
    file: str  # the file of the plan
    searchapp: str
    created: str
    baseline: int  # the number of the baseline's system
    systems: tuple[System, ...]
    columns: tuple[BenchColumn, ...]
    permutations: int
    seed: int
    notes: tuple[str, ...] = field(default=())

    @property
    def cells(self) -> list[tuple[System, BenchColumn, Cell]]:
        return [
            (system, column, cell)
            for column in self.columns
            if column.group is None
            for system, cell in zip(self.systems, column.cells, strict=True)
            if cell is not None
        ]

    @property
    def failed(self) -> list[tuple[System, BenchColumn, Cell]]:
        return [row for row in self.cells if row[2].error is not None]

    def runs(self) -> list[Path]:
        return [self.folder / cell.run for _, _, cell in self.cells if cell.error is None]

    def to_json(self) -> dict[str, Any]:
        described = asdict(self)
        del described["folder"]
        return {"format": FORMAT, **described}


def write_bench(result: BenchResult) -> None:
    """Write the result into its folder, with null for numbers that are not finite.

    Raises:
        SearchappError: the file can't be written.
    """
    described = replace_nonfinite(result.to_json(), None)
    text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_file(result.folder / FILE) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")


def is_bench(folder: Path) -> bool:
    """Return whether a folder has the result of a bench."""
    return (folder / FILE).is_file()


def read_bench(folder: Path) -> BenchResult:
    """Return the result of a bench.

    Raises:
        UsageError: the folder has none.
        DataError: the file is damaged or of another format.
    """
    path = folder / FILE
    if not path.is_file():
        raise UsageError(f"{folder} has no {FILE}: `searchapp bench` makes it")
    described = resources.read_json(path, file_names=True)
    if described.get("format") != FORMAT:
        raise DataError(
            f"{path}: format {described.get('format')!r} is not the format {FORMAT} that this version of searchapp "
            "reads: run the bench again"
        )
    try:
        result: BenchResult = from_json(BenchResult, {**described, "folder": folder})
        systems = len(result.systems)
        if not 0 <= result.baseline < systems:
            raise ValueError(f"baseline {result.baseline}")
        for column in result.columns:
            rows = [
                column.cells,
                *(row for measure in column.measures for row in (measure.figures, measure.differences)),
            ]
            if any(len(row) != systems for row in rows):
                raise ValueError(f"{column.name} lacks the cell of a system")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"{path}: not a bench result of searchapp ({error!r}): run the bench again"
        ) from error
    return result


_type_hints = cache(get_type_hints)


def from_json(kind: Any, value: Any) -> Any:
    """Return a value of a type from the JSON of `dataclasses.asdict`; null as a float is nan.

    Raises:
        KeyError: a field is missing.
        TypeError, ValueError: the value has another type.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else from_json(arguments[0], value)
    if origin is tuple:
        return tuple(from_json(arguments[0], item) for item in value)
    if origin is Mapping:
        return {str(name): from_json(arguments[1], item) for name, item in dict(value).items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _type_hints(kind)
        return kind(**{part.name: from_json(hints[part.name], value[part.name]) for part in fields(kind)})
    if kind is float:
        return math.nan if value is None else float(value)
    return value if kind is Any else kind(value)
