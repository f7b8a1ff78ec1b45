"""Search space of a tuning: the possible values of parameters, and the combinations that are tried."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from searchapp.errors import UsageError
from searchapp.files import parse_json
from searchapp.formats.problems import Problems
from searchapp.formats.toml_files import TomlFile, TomlTable
from searchapp.lucene.dataclass import dataclass

STEPS = 5  # default number of values of a range in a grid

MAX_TRIALS = 10_000

DIGITS = 4  # significant digits of a number of a range

ParameterValues = dict[str, Any]  # the value of each parameter by its name


class SearchMethod(StrEnum):
    """The selection of combinations of values."""

    grid = "grid"  # all of them
    random = "random"  # random ones, each parameter independently
    halving = "halving"  # as random; the best third of them on ever more topics


@dataclass(frozen=True, slots=True)
class Dimension:
    """A parameter with its possible values: `values`, or numbers from `low` to `high`."""

    name: str
    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False  # whether numbers are spread by their logarithm
    steps: int = STEPS  # how many numbers a grid has
    whole: bool = False  # whether numbers are rounded to whole ones

    def grid(self) -> tuple[Any, ...]:
        if self.values:
            return self.values
        shares = (step / max(self.steps - 1, 1) for step in range(self.steps))
        return tuple(dict.fromkeys(self._at(share) for share in shares))

    def drawn(self, source: random.Random) -> Any:
        if self.values:
            return self.values[int(source.random() * len(self.values))]
        return self._at(source.random())

    @property
    def bounds(self) -> tuple[Any, ...]:
        """Values whose validity implies that all values are valid."""
        return self.values or (self._at(0.0), self._at(1.0))

    def _at(self, share: float) -> float | int:
        if share in (0.0, 1.0):
            value = self.high if share else self.low
            return round(value) if self.whole else value
        if self.log:
            value = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        if self.whole:
            return round(value)
        rounded = float(f"{value:.{DIGITS}g}")
        return min(max(rounded, self.low), self.high)

    def to_json(self) -> dict[str, Any]:
        if self.values:
            return {"name": self.name, "values": list(self.values)}
        ends = {"name": self.name, "from": self.low, "to": self.high, "steps": self.steps}
        return ends | ({"scale": "log"} if self.log else {}) | ({"whole": True} if self.whole else {})


def read_params(options: Sequence[str]) -> list[Dimension]:
    """Return the dimensions of options `--param`.

    Raises:
        UsageError: an option is invalid.
    """
    return [_of_option(option) for option in options]


def read_space(path: Path) -> list[Dimension]:
    """Return the dimensions of a TOML file.

    Raises:
        InvalidFiles: the file is missing or has problems.
    """
    problems = Problems()
    root = TomlFile(path, problems).root
    params = root.table("params", required=True)
    dimensions = [_of_table(params, key) for key in params.content] if params is not None else []
    root.finish()
    problems.raise_if_any()
    return [dimension for dimension in dimensions if dimension is not None]


def _of_option(option: str) -> Dimension:
    name, equals, text = option.partition("=")
    if not equals or not name or not text:
        raise UsageError(f"--param {option}: use the form NAME=VALUE,VALUE or NAME=LOW:HIGH")
    parts = text.split(":")
    if len(parts) == 1 or text[0] in '[{"':
        return _of_values(name, tuple(map(_value, text.split(","))), f"--param {option}")
    low, high, *steps = parts
    log = "log" in steps[:1]
    steps = steps[1:] if log else steps
    try:
        (count,) = steps or [str(STEPS)]
        numbers = float(low), float(high), int(count)
    except ValueError:
        raise UsageError(f"--param {option}: use the form NAME=LOW:HIGH[:log][:STEPS]") from None
    return _of_range(name, *numbers, log=log, where=f"--param {option}")


def _of_table(params: TomlTable, key: str) -> Dimension | None:
    value = params.raw(key)
    where = f"[params] {key}"
    try:
        if isinstance(value, list):
            return _of_values(key, tuple(value), where)
        if isinstance(value, dict) and {"from", "to"} <= value.keys() <= {"from", "to", "scale", "steps"}:
            low, high, steps = value["from"], value["to"], value.get("steps", STEPS)
            numeric = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
            if numeric and isinstance(steps, int) and value.get("scale", "linear") in ("linear", "log"):
                log = value.get("scale") == "log"
                return _of_range(key, float(low), float(high), steps, log=log, where=where)
        form = '[1, 2], or { from = 0.1, to = 2, scale = "log", steps = 5 }'
        raise UsageError(f"{where}: write a list of values, or a range: {form}")
    except UsageError as error:
        params.wrong("wrong value", str(error), key)
        return None


def _of_values(name: str, values: tuple[Any, ...], where: str) -> Dimension:
    if not values or any(value == "" for value in values):
        raise UsageError(f"{where}: a value is empty")
    if any(not isinstance(value, str | int | float) for value in values):
        raise UsageError(f"{where}: values must be numbers or words")
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise UsageError(f"{where}: values must be finite")
    if len({repr(value) for value in values}) < len(values):
        raise UsageError(f"{where}: a value is repeated")
    return Dimension(name, values)


def _of_range(name: str, low: float, high: float, steps: int, *, log: bool, where: str) -> Dimension:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"{where}: the range must go from a lower to a higher number")
    if log and low <= 0:
        raise UsageError(f"{where}: a logarithmic range must begin above 0")
    if not 2 <= steps <= MAX_TRIALS:
        raise UsageError(f"{where}: the number of steps must be from 2 to {MAX_TRIALS:,}")
    return Dimension(name, low=low, high=high, log=log, steps=steps)


def _value(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


def propose_values(
    space: Sequence[Dimension], search: SearchMethod, trials: int | None, seed: int
) -> list[ParameterValues]:
    """Return the combinations of values that are tried, each once.

    Args:
        space: the parameters with their values or ranges
        search: grid, random search or successive halving
        trials: the limit of a grid, or the number of random combinations
        seed: the seed of a random search

    Raises:
        UsageError: the grid has more.
    """
    if search is SearchMethod.grid:
        count = math.prod(len(dimension.grid()) for dimension in space)
        if count > (trials or MAX_TRIALS):
            raise UsageError(
                f"the grid has {count:,} combinations, more than {trials or MAX_TRIALS:,}: give fewer values "
                "or more --trials, or use --search random"
            )
        names = [dimension.name for dimension in space]
        grids = [dimension.grid() for dimension in space]
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*grids)]
    return list(itertools.islice(_drawn(space, seed), trials or 30))


def _drawn(space: Sequence[Dimension], seed: int) -> Iterator[ParameterValues]:
    seen: set[str] = set()
    for number in itertools.count():
        source = random.Random(f"{seed}:{number}")
        values = {dimension.name: dimension.drawn(source) for dimension in space}
        if repr(values) not in seen:
            seen.add(repr(values))
            yield values
        elif number > 100 * len(seen) + 100:
            return


@dataclass(frozen=True, slots=True)
class Rung:
    """A stage of successive halving: the best trials so far, on some topics."""

    trials: int
    topics: int


ETA = 3  # one of ETA trials reaches the next rung, which has ETA times as many topics

LEAST_TOPICS = 20  # of a rung: fewer are too noisy


def rungs(trials: int, topics: int) -> list[Rung]:
    """Return the rungs of successive halving: each of about the same cost, the last one on all topics.

    >>> rungs(27, 900)
    [Rung(trials=27, topics=33), Rung(trials=9, topics=100), Rung(trials=3, topics=300), Rung(trials=1, topics=900)]
    """
    counts = [trials]
    while counts[-1] > 1:
        counts.append(max(1, counts[-1] // ETA))
    while len(counts) > 1 and topics // ETA ** (len(counts) - 1) < LEAST_TOPICS:
        counts.pop()
    last = len(counts) - 1
    return [Rung(count, topics // ETA ** (last - number)) for number, count in enumerate(counts)]


def with_kinds(space: Sequence[Dimension], whole: Mapping[str, bool]) -> list[Dimension]:
    """Return the dimensions, with parameters of whole numbers marked.

    Raises:
        UsageError: a parameter occurs twice, or there is none.
    """
    if not space:
        raise UsageError(
            "no parameter to tune: give --param NAME=VALUES or --space FILE (`searchapp tasks show TASK "
            "--recipe R` lists the parameters)"
        )
    names = [dimension.name for dimension in space]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{name} is given twice")
    return [
        replace(dimension, whole=whole.get(dimension.name, False) and not dimension.values)
        for dimension in space
    ]
