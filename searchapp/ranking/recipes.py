"""Reads the recipes of a task: the named ways in which it ranks, each a list of signals and one fusion.

They are data, kept as TOML beside the query templates that they refer to:

    [mine]
    about = "Premises of solved statements that are alike, which vote, and bm25 beside."
    signals = [
      { signal = "direct", template = "bm25", weight = 0.8 },
      { signal = "neighbours", template = "similar", k = 100, power = 3.0 },
    ]
    fusion = { by = "sum", scale = "shares" }
    parameters = { answer = 0.25 }

A signal is known by its kind or, where there are several of a kind, by its `name`. `template`, which by default is that
of the first direct signal, is what a search asks and what is marked in documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.names import meant, refused
from searchapp.ranking import earlier, fusion
from searchapp.ranking.fusion import Fusion
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals import KINDS
from searchapp.ranking.signals.base import Need, Signal
from searchapp.ranking.signals.direct import Direct
from searchapp.ranking.tables import WEIGHT, RecipeName, Table, topic_query
from searchapp.ranking.templates import TopicQuery
from searchapp.resources import RecipeBook

_TYPES: Mapping[str, tuple[type, str]] = {
    "about": (str, "text in quotes"),
    "template": (str, "text in quotes"),
    "parameters": (Mapping, "a table"),
    "signals": (list, "a list of tables"),
    "fusion": (Mapping, "a table"),
    "neighbours": (Mapping, "a table"),
    "labelled": (Mapping, "a table"),
    "baseline": (str, "text in quotes"),
}
_SIGNAL = "signal"
_NAME = "name"
_BY = "by"


def names(task: str | RecipeBook) -> list[str]:
    """The names of a task's recipes; a task that ships with searchapp may be given by its name."""
    return sorted(_book(task).recipes)


def load(task: str | RecipeBook, name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """A task's recipe, with some of its parameters set to other values.

    What can be set are the parameters of the templates, the numbers of signals and fusion by their key (`k`) or, where
    several signals have it, with the signal's name before (`neighbours.k`), and the weight of a signal by its name.
    A task that ships with searchapp may be given by its name.

    Raises:
        UsageError: there is no such recipe, or it has no such parameter, or the value is of the wrong kind.
        DataError: the recipe or its template is not what it should be.
    """
    book = _book(task)
    written = book.recipes.get(name)
    if written is None:
        raise UsageError(f"{book.task} has no recipe {refused(name, names(book))}")
    place = RecipeName(book, name)
    _require_types(place, written)
    described = deepcopy(earlier.brought_up(place, written))
    tables = _tables(place, described)
    for key, value in (overrides or {}).items():
        _set(place, described, tables, key, value)
    parameters = described.setdefault("parameters", {})
    signals = tuple(
        _signal(place, kind, table, parameters)
        for kind, table in zip(tables, described["signals"], strict=True)
    )
    query = _query(place, described, signals, parameters)
    used = query.template.variables.union(*(one.template.variables for it in signals for one in it.queries))
    for key in sorted({f"recipe.{key}" for key in parameters} - used):
        raise DataError(f"{query.template.name}: the variable {key} is set, but the template does not use it")
    if any(need in signals[0].needs for need in (Need.candidates, Need.leaders)):
        raise place.wrong(f"begins with {signals[0].name}, which needs candidates: put a signal before it")
    return Recipe(
        name, described.get("about", ""), query, signals, _fusion(place, described, parameters), parameters
    )


def require_words(task: str | RecipeBook, recipe: Recipe) -> None:
    """Make sure that a recipe of a task can rank words that a person types.

    Raises:
        UsageError: it needs more than words.
    """
    if recipe.takes_words:
        return
    book = _book(task)
    suited = [other for other in names(book) if load(book, other).takes_words]
    raise UsageError(
        f"the recipe {book.task}/{recipe.name} needs more of a topic than words, which `searchapp rank` has: "
        f"search with --recipe {' or '.join(suited) or 'of your own'}"
    )


def _require_types(place: RecipeName, written: Mapping[str, Any]) -> None:
    for key in sorted(written.keys() - _TYPES):
        raise place.wrong(f"has the unknown key {key!r}{meant(key, _TYPES)}")
    if "template" not in written and "signals" not in written:
        raise place.wrong("names no template")
    for key, value in written.items():
        type_, kind = _TYPES[key]
        if not isinstance(value, type_):
            raise DataError(f"the recipe {place}: {key} must be {kind}: correct {place.book.file.name}")


def _tables(place: RecipeName, described: Mapping[str, Any]) -> dict[str, MutableMapping[str, Any]]:
    """The tables of the signals by the names of the signals, in their order."""
    tables: dict[str, MutableMapping[str, Any]] = {}
    for table in described["signals"]:
        if not isinstance(table, MutableMapping) or not isinstance(table.get(_SIGNAL), str):
            raise place.wrong(f"has a signal that does not say which: write {{ {_SIGNAL} = … }}")
        if table[_SIGNAL] not in KINDS:
            raise DataError(f"the recipe {place} has no signal {refused(table[_SIGNAL], KINDS)}")
        name = table.setdefault(_NAME, table[_SIGNAL])
        if not isinstance(name, str) or not name:
            raise place.wrong(f"has a signal whose name is {name!r}, and not text in quotes")
        if name in tables:
            raise place.wrong(f"has two signals {name}: give each a {_NAME}")
        tables[name] = table
    if not tables:
        raise place.wrong("has no signals")
    return tables


def _set(
    place: RecipeName,
    described: dict[str, Any],
    tables: Mapping[str, MutableMapping[str, Any]],
    key: str,
    value: object,
) -> None:
    """Set a parameter to a value."""
    settable = dict(_settable(described, tables))
    if key not in settable:
        shared = [full for full in settable if full.endswith(f".{key}")]
        if shared:
            raise UsageError(f"the recipe {place} has several parameters {key}: name {' or '.join(shared)}")
        there = ", ".join(sorted(settable)) or "none"
        raise UsageError(f"the recipe {place} has no parameter {key!r}{meant(key, settable)}: it has {there}")
    table, place_in_it = settable[key]
    table[place_in_it] = value


def _settable(
    described: dict[str, Any], tables: Mapping[str, MutableMapping[str, Any]]
) -> Iterator[tuple[str, tuple[MutableMapping[str, Any], str]]]:
    """What can be set, by the name under which it can be, and where it stands."""
    found: dict[str, list[tuple[str, tuple[MutableMapping[str, Any], str]]]] = {}
    for key in described.get("parameters", {}):
        found.setdefault(key, []).append((f"parameters.{key}", (described["parameters"], key)))
    for name, table in tables.items():
        for key in table.keys() - {_SIGNAL, _NAME, WEIGHT, "template"}:
            found.setdefault(key, []).append((f"{name}.{key}", (table, key)))
        if len(tables) > 1:
            found.setdefault(name, []).append((f"{name}.{WEIGHT}", (table, WEIGHT)))
    for key in described.get("fusion", {}).keys() - {_BY, "scale"}:
        found.setdefault(key, []).append((f"fusion.{key}", (described["fusion"], key)))
    for key, places in found.items():
        if len(places) == 1:
            yield key, places[0][1]
        else:
            yield from places


def _signal(
    place: RecipeName, name: str, described: Mapping[str, Any], parameters: Mapping[str, Any]
) -> Signal:
    table = Table(place, name, described, parameters)
    signal = KINDS[described[_SIGNAL]].read(table)
    table.finish(_SIGNAL, _NAME)
    return signal


def _query(
    place: RecipeName,
    described: Mapping[str, Any],
    signals: tuple[Signal, ...],
    parameters: Mapping[str, Any],
) -> TopicQuery:
    if "template" in described:
        return topic_query(place.book, described["template"], parameters)
    direct = next((signal.query for signal in signals if isinstance(signal, Direct)), None)
    if direct is None:
        raise place.wrong("names no template, which says what a search asks, and has no direct signal")
    return direct


def _fusion(place: RecipeName, described: Mapping[str, Any], parameters: Mapping[str, Any]) -> Fusion:
    written = described.get("fusion", {_BY: fusion.Sum.by})
    by = written.get(_BY)
    if by not in fusion.KINDS:
        raise DataError(f"the recipe {place} has no fusion by {refused(str(by), fusion.KINDS)}")
    table = Table(place, "fusion", written, parameters)
    read = fusion.KINDS[by].read(table)
    table.finish(_BY)
    return read


def _book(task: str | RecipeBook) -> RecipeBook:
    return resources.recipe_book(task) if isinstance(task, str) else task
