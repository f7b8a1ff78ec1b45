"""Result of a bench: recipes on the splits of tasks, each figure beside that of a baseline; one JSON file.

    <folder>/bench.json                             the result
    <folder>/<task>/<split>/<engine>/<recipe>/      the run of each cell, a run directory like any other

Apart from `experiments.bench`, so that a report of a bench imports neither engines nor recipes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from searchapp import resources
from searchapp.app.comparison import Corrected, Difference, Measured
from searchapp.errors import DataError, UsageError
from searchapp.files import whole_file

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
    text = json.dumps(without_nan(result.to_json()), indent=1, ensure_ascii=False, allow_nan=False)
    with whole_file(result.folder / FILE) as file:
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
    systems = tuple(System(**one) for one in described["systems"])
    baseline = described["baseline"]
    if not isinstance(baseline, int) or not 0 <= baseline < len(systems):
        raise ValueError(f"baseline {baseline!r}")
    columns = tuple(column_of(one) for one in described["columns"])
    for column in columns:
        if {len(column.cells), *(len(one.figures) for one in column.measures)} != {len(systems)}:
            raise ValueError(f"{column.name} has not a cell for each system")
    return BenchResult(
        folder=folder,
        file=str(described["file"]),
        searchapp=str(described["searchapp"]),
        created=str(described["created"]),
        baseline=baseline,
        systems=systems,
        columns=columns,
        permutations=int(described["permutations"]),
        seed=int(described["seed"]),
        notes=tuple(map(str, described["notes"])),
    )


def column_of(described: Mapping[str, Any]) -> Column:
    """A column as `dataclasses.asdict` describes it, read back."""
    return Column(
        task=str(described["task"]),
        split=str(described["split"]),
        group=None if described["group"] is None else str(described["group"]),
        cells=tuple(
            None if one is None else Cell(**{**one, "warnings": tuple(map(str, one["warnings"]))})
            for one in described["cells"]
        ),
        measures=tuple(_measure(one) for one in described["measures"]),
        warnings=tuple(map(str, described["warnings"])),
    )


def _measure(described: Mapping[str, Any]) -> BenchMeasure:
    figures = tuple(None if one is None else float(one) for one in described["figures"])
    differences = tuple(None if one is None else _difference(one) for one in described["differences"])
    if len(figures) != len(differences):
        raise ValueError("figures and differences are not of the same systems")
    return BenchMeasure(
        str(described["name"]),
        bool(described["is_official"]),
        int(described["topics"]),
        figures,
        differences,
    )


def _difference(described: Mapping[str, Any]) -> Difference:
    corrected = {
        str(test): Corrected(**{name: _number(value) for name, value in held.items()})
        for test, held in described["corrected"].items()
    }
    mean, low, high, effect = (_number(described[name]) for name in ("mean", "low", "high", "effect"))
    wins, ties, losses = (int(described[name]) for name in ("wins", "ties", "losses"))
    return Difference(mean, low, high, wins, ties, losses, effect, corrected)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def without_nan(value: Any) -> Any:
    """The same with null in the place of what is not a number, which JSON can't hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value


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
