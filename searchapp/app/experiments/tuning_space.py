"""Search space of a tuning: parameters with the values that they may have, and which combinations are tried."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from searchapp.errors import UsageError
from searchapp.files import parse_json
from searchapp.formats.problems import Problems
from searchapp.formats.toml_files import TomlFile, TomlTable

STEPS = 5
"""How many numbers of a range a grid takes where nobody says it."""

MOST = 10_000
"""Trials that are the most of a search."""

DIGITS = 4
"""Significant digits of a number of a range, so that people can read what is found."""

Values = dict[str, Any]
"""A value for each parameter by its name."""


class Search(StrEnum):
    """Which values are tried."""

    grid = "grid"
    """All combinations."""

    random = "random"
    """Some, drawn with a seed, each parameter by itself."""

    halving = "halving"
    """As random; the best third of them on ever more topics."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A parameter with the values that it may have: `values`, or numbers from `low` to `high`.

    The latter are spread by their logarithm with `log`, and are `steps` in a grid. Of a parameter that takes `whole`
    numbers they are rounded.
    """

    name: str
    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    steps: int = STEPS
    whole: bool = False

    def grid(self) -> tuple[Any, ...]:
        """The values of a grid, each once."""
        if self.values:
            return self.values
        shares = (step / max(self.steps - 1, 1) for step in range(self.steps))
        return tuple(dict.fromkeys(self._at(share) for share in shares))

    def drawn(self, source: random.Random) -> Any:
        """A value that is drawn at random."""
        if self.values:
            return self.values[int(source.random() * len(self.values))]
        return self._at(source.random())

    @property
    def bounds(self) -> tuple[Any, ...]:
        """Values of which all are right if these are."""
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
        """As a log has it."""
        if self.values:
            return {"name": self.name, "values": list(self.values)}
        ends = {"name": self.name, "from": self.low, "to": self.high, "steps": self.steps}
        return ends | ({"scale": "log"} if self.log else {}) | ({"whole": True} if self.whole else {})


def read_over(given: Sequence[str]) -> list[Dimension]:
    """The dimensions of options.

    Raises:
        UsageError: one is not of the form.
    """
    return [_of_option(one) for one in given]


def read_space(path: Path) -> list[Dimension]:
    """The dimensions of a TOML file.

    Raises:
        InvalidFiles: it is missing or has problems.
    """
    problems = Problems()
    root = TomlFile(path, problems).root
    over = root.table("over", required=True)
    found = [_of_table(over, key) for key in over.keys()] if over is not None else []  # noqa: SIM118
    root.finish()
    problems.raise_if_any()
    return [one for one in found if one is not None]


def _of_option(given: str) -> Dimension:
    name, equals, text = given.partition("=")
    if not equals or not name or not text:
        raise UsageError(f"--over {given}: use the form NAME=VALUE,VALUE or NAME=LOW:HIGH")
    parts = text.split(":")
    if len(parts) == 1 or text[0] in '[{"':
        values = tuple(_value(one) for one in text.split(","))
        return _of_values(name, values, f"--over {given}")
    low, high, *rest = parts
    log = "log" in rest[:1]
    steps = rest[1:] if log else rest
    try:
        numbers = float(low), float(high), int(steps[0]) if steps else STEPS
    except ValueError:
        raise UsageError(f"--over {given}: use the form NAME=LOW:HIGH, :log and :STEPS behind it") from None
    if len(steps) > 1:
        raise UsageError(f"--over {given}: use the form NAME=LOW:HIGH, :log and :STEPS behind it")
    return _of_range(name, *numbers, log=log, where=f"--over {given}")


def _of_table(over: TomlTable, key: str) -> Dimension | None:
    value = over.raw(key)
    where = f"[over] {key}"
    try:
        if isinstance(value, list):
            return _of_values(key, tuple(value), where)
        if isinstance(value, dict) and {"from", "to"} <= value.keys() <= {"from", "to", "scale", "steps"}:
            low, high, steps = value["from"], value["to"], value.get("steps", STEPS)
            right = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (low, high))
            if right and isinstance(steps, int) and value.get("scale", "linear") in ("linear", "log"):
                log = value.get("scale") == "log"
                return _of_range(key, float(low), float(high), steps, log=log, where=where)
        form = '[1, 2], or { from = 0.1, to = 2, scale = "log", steps = 5 }'
        raise UsageError(f"{where}: write a list of values, or a range: {form}")
    except UsageError as error:
        over.wrong("wrong value", str(error), key)
        return None


def _of_values(name: str, values: tuple[Any, ...], where: str) -> Dimension:
    if not values or any(value == "" for value in values):
        raise UsageError(f"{where}: a value is empty")
    if any(not isinstance(value, str | int | float) for value in values):
        raise UsageError(f"{where}: values must be numbers or words")
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise UsageError(f"{where}: values must be finite")
    if len({repr(value) for value in values}) < len(values):
        raise UsageError(f"{where}: a value is there twice")
    return Dimension(name, values)


def _of_range(name: str, low: float, high: float, steps: int, *, log: bool, where: str) -> Dimension:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"{where}: the range must go from a number to a greater one")
    if log and low <= 0:
        raise UsageError(f"{where}: a range by logarithm must begin above 0")
    if not 2 <= steps <= MOST:
        raise UsageError(f"{where}: the steps must be from 2 to {MOST:,}")
    return Dimension(name, low=low, high=high, log=log, steps=steps)


def _value(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


def proposed(space: Sequence[Dimension], search: Search, trials: int | None, seed: int) -> list[Values]:
    """What is tried, in its order: each combination of values once.

    Of a grid `trials` are the most that there may be; of a random search so many are drawn, or as many as there are.

    Raises:
        UsageError: the grid has more.
    """
    if search is Search.grid:
        count = math.prod(len(one.grid()) for one in space)
        if count > (trials or MOST):
            raise UsageError(
                f"the grid has {count:,} combinations, more than {trials or MOST:,}: give fewer values, more --trials, "
                "or search with --search random"
            )
        return [
            {one.name: value for one, value in zip(space, values, strict=True)}
            for values in itertools.product(*(one.grid() for one in space))
        ]
    return list(itertools.islice(_drawn(space, seed), trials or 30))


def _drawn(space: Sequence[Dimension], seed: int) -> Iterator[Values]:
    """Combinations at random, each once; ends when hardly any are left that have not been drawn."""
    seen: set[str] = set()
    for number in itertools.count():
        source = random.Random(f"{seed}:{number}")
        values = {one.name: one.drawn(source) for one in space}
        if repr(values) not in seen:
            seen.add(repr(values))
            yield values
        elif number > 100 * len(seen) + 100:
            return


@dataclass(frozen=True, slots=True)
class Rung:
    """A stage of successive halving: the best so many trials, on so many topics."""

    trials: int
    topics: int


ETA = 3
"""Of how many trials one goes on to the next rung, on as many times as many topics."""

LEAST_TOPICS = 20
"""Topics that a rung has at least: fewer say next to nothing."""


def rungs(trials: int, topics: int) -> list[Rung]:
    """The rungs of successive halving: each of about the same cost, the last one on all topics.

    >>> rungs(27, 900)
    [Rung(trials=27, topics=33), Rung(trials=9, topics=100), Rung(trials=3, topics=300), Rung(trials=1, topics=900)]
    """
    found = [Rung(trials, topics)]
    while found[-1].trials > 1:
        found.append(Rung(max(1, found[-1].trials // ETA), topics))
    while len(found) > 1 and topics // ETA ** (len(found) - 1) < LEAST_TOPICS:
        found.pop()  # the rungs with the fewest topics say nothing: the last one has more trials then
    last = len(found) - 1
    return [Rung(one.trials, topics // ETA ** (last - place)) for place, one in enumerate(found)]


def of_kinds(space: Sequence[Dimension], whole: Mapping[str, bool]) -> list[Dimension]:
    """The dimensions with what is known of the parameters: which of them take whole numbers.

    Raises:
        UsageError: a parameter is there twice, or there is none.
    """
    if not space:
        raise UsageError(
            "say what to tune over, with --over NAME=VALUES or --space FILE: `searchapp tasks show TASK --recipe R` "
            "lists what can be set"
        )
    names = [one.name for one in space]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{name} is tuned over twice")
    return [replace(one, whole=whole.get(one.name, False) and not one.values) for one in space]
