"""Result of a bench: recipes on the splits of tasks, each figure beside that of a baseline; one JSON file.

    <folder>/bench.json                             the result
    <folder>/<task>/<split>/<engine>/<recipe>/      the run of each cell, a run directory like any other

Apart from `experiments.bench`, so that a report of a bench imports neither engines nor recipes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from searchapp import resources
from searchapp.app.comparison import Difference, Measured
from searchapp.errors import DataError, UsageError
from searchapp.files import atomic_file, replace_nonfinite

FILE = "bench.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class System:
    """What makes the runs of a row: a recipe with its parameters, on an engine; `name` distinguishes it."""

    name: str
    recipe: str
    parameters: Mapping[str, Any]
    engine: str


@dataclass(frozen=True, slots=True)
class Cell:
    """The run of a system on a split.

    `run` is its run directory, relative to the folder of the bench, and `digest` that of its manifest; where `error`
    says in a sentence why there is none, or why it has no figures, `exit_code` is what a command would have ended with.
    `made` says that it was ranked by this bench, not kept from one before; `seconds` is the time that the ranking took.
    """

    run: str
    digest: str = ""
    made: bool = False
    seconds: float = 0.0
    error: str | None = None
    exit_code: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchMeasure:
    """A measure in a column: the figure of each system in their order, and its difference to that of the baseline.

    A figure is None where the system has none there. A difference is None for the baseline itself, without figures, and
    for a figure that is no mean over topics. `topics` counts those that are tested.
    """

    name: str
    is_official: bool
    topics: int
    figures: tuple[float | None, ...]
    differences: tuple[Difference | None, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A split of a task, or a group of its topics: the cell of each system in their order, and the measures.

    `task` is the table of the bench's file. A cell is None where the recipe is not for this task. A group shares its
    runs with the whole split.
    """

    task: str
    split: str
    group: str | None
    cells: tuple[Cell | None, ...]
    measures: tuple[BenchMeasure, ...]
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What people read: `nlps dev`, `nlps dev long`."""
        return " ".join(filter(None, (self.task, self.split, self.group)))

    @property
    def official(self) -> BenchMeasure | None:
        """The measure that ranks submissions; the first one where it is not among them, None without any."""
        return next((one for one in self.measures if one.is_official), next(iter(self.measures), None))


@dataclass(frozen=True, slots=True)
class BenchResult:
    """A bench, made from the plan in `file`: `columns` of splits and groups, in which the `systems` are compared.

    `baseline` is the number of the system that all others are compared with, in each column by itself.
    """

    folder: Path
    file: str
    searchapp: str
    created: str
    baseline: int
    systems: tuple[System, ...]
    columns: tuple[Column, ...]
    permutations: int
    seed: int
    notes: tuple[str, ...] = field(default=())

    @property
    def failed(self) -> list[tuple[System, Column, Cell]]:
        """The cells without figures, each once."""
        return [
            (system, column, cell)
            for column in self.columns
            if column.group is None
            for system, cell in zip(self.systems, column.cells, strict=True)
            if cell is not None and cell.error is not None
        ]

    def runs(self) -> list[Path]:
        """The run directories that have figures."""
        return [
            self.folder / cell.run
            for column in self.columns
            if column.group is None
            for cell in column.cells
            if cell is not None and cell.error is None
        ]

    def to_json(self) -> dict[str, Any]:
        """What `bench --json` prints and bench.json holds; what is not a number is nan."""
        described = asdict(self)
        del described["folder"]
        return {"format": FORMAT, **described}


def write_bench(result: BenchResult) -> None:
    """Write the result into its folder, whole or not at all.

    Raises:
        SearchappError: it can't be written.
    """
    write_json(result.folder / FILE, result.to_json(), indent=1)


def write_json(path: Path, described: Any, indent: int | None = None) -> None:
    """Write JSON, whole or not at all, with null in the place of what is not a number.

    Raises:
        SearchappError: it can't be written.
    """
    text = json.dumps(replace_nonfinite(described, None), indent=indent, ensure_ascii=False, allow_nan=False)
    with atomic_file(path) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")


def is_bench(folder: Path) -> bool:
    """Whether a folder has the result of a bench."""
    return (folder / FILE).is_file()


def read_bench(folder: Path) -> BenchResult:
    """The result of a bench.

    Raises:
        UsageError: the folder has none.
        DataError: it is not what searchapp writes.
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
        return _result(folder, described)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(f"{path}: not a bench of searchapp ({error!r}): run the bench again") from error


def _result(folder: Path, described: Mapping[str, Any]) -> BenchResult:
    found: BenchResult = record_of(BenchResult, {**described, "folder": folder})
    systems = len(found.systems)
    if not 0 <= found.baseline < systems:
        raise ValueError(f"baseline {found.baseline}")
    for column in found.columns:
        counts = {len(held) for one in column.measures for held in (one.figures, one.differences)}
        if {len(column.cells), *counts} != {systems}:
            raise ValueError(f"{column.name} has not a cell for each system")
    return found


_type_hints = cache(get_type_hints)


def record_of(kind: Any, value: Any) -> Any:
    """Read back as a type what `dataclasses.asdict` and JSON have made of it; null is nan where a number must be.

    Raises:
        KeyError: a field is missing.
        TypeError, ValueError: it is of another type.
    """
    of, parts = get_origin(kind), get_args(kind)
    if of is UnionType:
        return None if value is None else record_of(parts[0], value)
    if of is tuple:
        return tuple(record_of(parts[0], one) for one in value)
    if of is Mapping:
        return {str(name): record_of(parts[1], one) for name, one in dict(value).items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _type_hints(kind)
        return kind(**{one.name: record_of(hints[one.name], value[one.name]) for one in fields(kind)})
    if kind is float:
        return math.nan if value is None else float(value)
    return value if kind is Any else kind(value)


def measure_of(
    measured: Measured, figures: Sequence[float | None], present: Sequence[int], baseline: int
) -> BenchMeasure:
    """A measure of all systems, from what is measured of those that are `present`; `figures` are those of all."""
    differences: list[Difference | None] = [None] * len(figures)
    for pair in measured.pairs:
        if present[pair.first] == baseline:
            differences[present[pair.second]] = pair.difference
    return BenchMeasure(
        measured.name, measured.is_official, measured.topics, tuple(figures), tuple(differences)
    )
