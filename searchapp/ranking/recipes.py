"""Recipes: the named ways in which a task ranks, each a list of signals and one fusion.

They are data, kept as TOML beside the query templates that they refer to:

    [mine]
    about = "Premises of solved statements that are alike, which vote, and bm25 beside."
    signals = [
      { signal = "direct", template = "bm25", weight = 0.8 },
      { signal = "neighbours", template = "similar", k = 100, power = 3.0 },
    ]
    fusion = { by = "sum", scale = "shares" }
    parameters = { answer = 0.25 }

A recipe with one direct signal may name its `template` alone. A signal is known by its kind or, where there are
several of a kind, by its `name`. `template`, which by default is that of the first direct signal, is what a search
asks and what is marked in documents.

`shard_warnings` names the templates that may rank differently on several shards of Elasticsearch than on one. All that
both engines support does not: the engine sends it in a form that keeps the statistics whole. Of what Elasticsearch
alone supports some chooses words by what each shard holds, such as `more_like_this` and whatever is fuzzy; of the rest
nobody has shown that it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from searchapp import tasks
from searchapp.errors import DataError, UsageError
from searchapp.model import Topic
from searchapp.ranking import fusion
from searchapp.ranking.fusion import Fusion, LearnedFusion
from searchapp.ranking.signals import KINDS, signal_class
from searchapp.ranking.signals.base import Need, Signal, Trained
from searchapp.ranking.signals.direct import Direct
from searchapp.ranking.templates import (
    NUMBER,
    TEXT,
    WEIGHT,
    RecipeName,
    RecipeTable,
    TopicQuery,
    meanings,
    topic_query,
)
from searchapp.resources import RecipeBook
from searchapp.text import alternatives, choices_hint, suggestion


@dataclass(frozen=True, slots=True)
class Recipe:
    """The signals of a recipe, the first of which retrieves candidates, and how they are fused.

    `query` is what a search asks and what is marked in documents. `parameters` are those of all its templates.
    `overrides` are the values that were set, `written` is the recipe as a file may have it, with these, `tuned` what it
    says of how they were found.
    """

    name: str
    about: str
    query: TopicQuery
    signals: tuple[Signal, ...]
    fusion: Fusion
    parameters: Mapping[str, Any]
    written: Mapping[str, Any] = field(default_factory=dict)
    tuned: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def needs(self, need: Need) -> bool:
        """Whether one of the signals needs it, or the fusion."""
        needed = [signal.needs for signal in self.signals]
        if len(self.signals) > 1:
            needed.append(self.fusion.needs)
        return any(need in one for one in needed)

    @property
    def learns(self) -> bool:
        """Whether it ranks by solved topics."""
        return any(self.needs(need) for need in (Need.examples, Need.labels, Need.terms, Need.model))

    @property
    def trained(self) -> tuple[Trained, ...]:
        """Those of its signals that rank by a model."""
        return tuple(signal for signal in self.signals if isinstance(signal, Trained))

    @property
    def is_learned(self) -> bool:
        """Whether a model fuses its signals."""
        return len(self.signals) > 1 and isinstance(self.fusion, LearnedFusion)

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        """What a search asks, and the queries of the signals."""
        return (self.query, *(query for signal in self.signals for query in signal.queries))

    @property
    def takes_words(self) -> bool:
        """Whether it ranks words that a person types: it asks for no more of a topic than texts to match."""
        return all(query.template.topic_fields <= query.template.matched for query in self._of_topics)

    def typed(self, words: str) -> Topic:
        """The words that a person types as a topic: each text that the recipe asks for is these words."""
        fields = set().union(*(query.template.matched for query in self._of_topics))
        return Topic("", words, dict.fromkeys(sorted(fields), words))

    @property
    def _of_topics(self) -> tuple[TopicQuery, ...]:
        return tuple(query for signal in self.signals for query in signal.queries) or (self.query,)

    @property
    def is_one_query(self) -> bool:
        """Whether its ranking is that of its query, and no other signal counts."""
        return len(self.signals) == 1 and isinstance(self.signals[0], Direct)

    def body(self, topic: Topic, depth: int) -> dict[str, Any]:
        """The search body that retrieves the first `depth` documents for a topic."""
        return self.query.body(topic, depth)

    def reaching(self, depth: int) -> Recipe:
        """The recipe with windows of at least this depth, as which it ranks a run of it."""
        signals = [
            replace(signal, window=depth) if 0 < signal.window < depth else signal for signal in self.signals
        ]
        return replace(self, signals=tuple(signals))

    def raised(self, depth: int) -> list[str]:
        """A sentence about each signal whose window a depth raises."""
        return [
            f"the depth {depth:,} raises the window {signal.window:,} of the signal {signal.name}, so that the ranking "
            f"may differ from that of a lower depth"
            for signal in self.signals
            if 0 < signal.window < depth
        ]

    def manifest(self) -> dict[str, Any]:
        """What a run records of the recipe."""
        described: dict[str, Any] = {
            "name": self.name,
            "template": self.query.template.name,
            "template_digest": self.query.digest,
            "parameters": dict(self.parameters),
            "signals": [signal.manifest() for signal in self.signals],
        }
        described |= {"set": dict(self.overrides)} if self.overrides else {}
        described |= {"tuned": dict(self.tuned)} if self.tuned else {}
        return described | ({"fusion": self.fusion.manifest()} if len(self.signals) > 1 else {})


_INSIDE: Mapping[str, tuple[str, ...]] = {
    "bool": ("must", "should", "filter", "must_not"),
    "dis_max": ("queries",),
    "constant_score": ("filter",),
    "function_score": ("query",),
    "boosting": ("positive", "negative"),
}
"""The queries that hold others, and where."""

_ALONE = frozenset(
    {
        "match",
        "multi_match",
        "match_phrase",
        "term",
        "terms",
        "ids",
        "exists",
        "prefix",
        "range",
        "match_all",
        "match_none",
    }
)
_OF_WORDS = (None, "best_fields", "most_fields")
"""The types of `multi_match` that score each field by its own words."""

_FUNCTIONS = frozenset({"filter", "weight", "field_value_factor"})


def shard_warnings(recipe: Recipe, shards: int) -> Iterator[str]:
    """A sentence for each template of a recipe that may rank differently on this many shards than on one."""
    if shards == 1:
        return
    templates = {query.template.name: query.template for one in recipe.signals for query in one.queries}
    for name, template in templates.items():
        why = shard_dependence(template.body.get("query", {}))
        if why is not None:
            yield (
                f"{name} may rank differently on these {shards} shards than on one, for {why}: see docs/engines.md, "
                "or index with --shards 1"
            )


def shard_dependence(query: Any) -> str | None:
    """What in a query may have other statistics on several shards; None if nothing has."""
    return next(_outside(query), None)


def _outside(query: Any) -> Iterator[str]:
    for kind, content in _queries(query):
        if kind in _INSIDE:
            for name in _INSIDE[kind]:
                yield from _outside(content.get(name))
            if kind == "function_score":
                yield from _outside_functions(content)
        elif kind not in _ALONE:
            yield f"its `{kind}`"
        elif kind == "multi_match":
            if content.get("type") not in _OF_WORDS:
                yield f"its `multi_match` of the type {content['type']}"
            if "fuzziness" in content:
                yield "its fuzzy `multi_match`"
        elif kind == "match" and any(
            isinstance(asked, Mapping) and "fuzziness" in asked for asked in content.values()
        ):
            yield "its fuzzy `match`"


def _outside_functions(content: Mapping[str, Any]) -> Iterator[str]:
    functions = content.get("functions", [content])
    for function in functions if isinstance(functions, list) else []:
        if isinstance(function, Mapping):
            yield from _outside(function.get("filter"))
            for name, given in function.items():
                if name not in _FUNCTIONS and isinstance(given, Mapping) and name != "query":
                    yield f"its `{name}` in a `function_score`"


def _queries(query: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The kind and content of a query, or of each of a list."""
    for one in query if isinstance(query, list) else [query]:
        if isinstance(one, Mapping):
            yield from ((kind, content) for kind, content in one.items() if isinstance(content, Mapping))


_TYPES: Mapping[str, tuple[type, str]] = {
    "about": (str, "text in quotes"),
    "template": (str, "text in quotes"),
    "parameters": (Mapping, "a table"),
    "signals": (list, "a list of tables"),
    "fusion": (Mapping, "a table"),
    "tuned": (Mapping, "a table"),
}
_FUSIONS: Mapping[str, type[Fusion]] = {**fusion.KINDS, LearnedFusion.by: LearnedFusion}
_SIGNAL = "signal"
_NAME = "name"
_BY = "by"
_RECIPE = "recipe."


def names(task: str | RecipeBook) -> list[str]:
    """The names of a task's recipes; a task that ships with searchapp may be given by its name."""
    return sorted(_book(task).recipes)


def load(task: str | RecipeBook, name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """A task's recipe, with some of its parameters set to other values.

    What can be set are the parameters of the templates, what signals and fusion have besides templates by its key (`k`)
    or, where several have it, with the signal's name before (`neighbours.k`), and the weight of a signal by its name.
    A task that ships with searchapp may be given by its name.

    Raises:
        UsageError: there is no such recipe, or it has no such parameter, or the value is of the wrong kind.
        DataError: the recipe or its template is not what it should be.
    """
    book = _book(task)
    written = book.recipes.get(name)
    if written is None:
        raise UsageError(f"{book.task} has no recipe {choices_hint(name, names(book))}")
    place = RecipeName(book, name)
    _require_types(place, written)
    described = deepcopy(dict(written))
    described.setdefault("signals", [{_SIGNAL: Direct.kind, "template": described.get("template")}])
    reading = _Reading(place, described)
    for key, value in (overrides or {}).items():
        reading = reading.with_value(key, value)
    return replace(reading.recipe, overrides=dict(overrides or {}))


def settable(task: str | RecipeBook, recipe: Recipe) -> list[Settable]:
    """What can be set of a recipe, in the order in which it is written, with the values that it has.

    A task that ships with searchapp may be given by its name.

    Raises:
        as `load` does.
    """
    place = RecipeName(_book(task), recipe.name)
    return [one.settable for one in _Reading(place, deepcopy(dict(recipe.written))).places.values()]


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
        raise place.wrong(f"has the unknown key {key!r}{suggestion(key, _TYPES)}")
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
            raise DataError(f"the recipe {place} has no signal {choices_hint(table[_SIGNAL], KINDS)}")
        name = table.setdefault(_NAME, table[_SIGNAL])
        if not isinstance(name, str) or not name:
            raise place.wrong(f"has a signal whose name is {name!r}, and not text in quotes")
        if name in tables:
            raise place.wrong(f"has two signals {name}: give each a {_NAME}")
        tables[name] = table
    if not tables:
        raise place.wrong("has no signals")
    return tables


@dataclass(frozen=True, slots=True)
class Settable:
    """Something of a recipe that can be set by its `name`: its value now, which ones it can have, what it means.

    The `full` name is right too: with that of the signal before, even where there is no other one of the key.
    It is the `key` of the signal `of` this name, or of the templates or the fusion. A value that is left out is None.
    """

    name: str
    full: str
    of: str
    key: str
    value: object
    kind: str
    about: str


def _named(full: str, of: str, key: str, value: object, kind: str, about: str) -> Settable:
    return Settable(full, full, of, key, value, kind, about)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something stands that can be set."""

    settable: Settable
    table: MutableMapping[str, Any]
    key: str

    @property
    def is_written(self) -> bool:
        """Whether it stands in the recipe, and is not left out."""
        return self.key in self.table


class _Reading:
    """A recipe as it is written, which is changed by `with_value`; what it amounts to, and what can be set of it."""

    def __init__(self, place: RecipeName, described: dict[str, Any]) -> None:
        self._place = place
        self._described = described
        self._tables = tables = _tables(place, described)
        parameters = described.setdefault("parameters", {})
        read = {
            name: RecipeTable(place, name, table, parameters, is_fused=len(tables) > 1)
            for name, table in tables.items()
        }
        signals = tuple(_signal(read[name], table) for name, table in tables.items())
        query = _query(place, described, signals, parameters)
        queries = {one.template.name: one for one in (query, *(one for it in signals for one in it.queries))}
        used = frozenset().union(*(one.template.variables for one in queries.values()))
        for key in sorted({f"{_RECIPE}{key}" for key in parameters} - used):
            raise DataError(
                f"{query.template.name}: the variable {key} is set, but the template does not use it"
            )
        if any(need in signals[0].needs for need in (Need.candidates, Need.leaders)):
            raise place.wrong(
                f"begins with {signals[0].name}, which needs candidates: put a signal before it"
            )
        written = described.setdefault("fusion", {_BY: fusion.SumFusion.by})
        of_fusion = RecipeTable(place, "fusion", written, parameters)
        fused = _fusion(place, written, of_fusion)
        self.recipe = Recipe(
            place.recipe,
            described.get("about", ""),
            query,
            signals,
            fused,
            parameters,
            deepcopy(described),
            described.get("tuned", {}),
        )
        self.places = dict(self._found(read, of_fusion, list(queries.values())))

    def with_value(self, key: str, value: object) -> _Reading:
        """The recipe with another value of a parameter.

        Raises:
            UsageError: it has no such parameter, or the value is of the wrong kind.
        """
        by_full = {one.settable.full: one for one in self.places.values()}
        found = self.places.get(key) or by_full.get(key)
        if found is None:
            shared = [full for full in self.places if full.endswith(f".{key}")]
            if shared:
                raise UsageError(
                    f"the recipe {self._place} has several parameters {key}: name {' or '.join(shared)}"
                )
            there = ", ".join(sorted(self.places)) or "none"
            raise UsageError(
                f"the recipe {self._place} has no parameter {key!r}{suggestion(key, self.places)}: it has {there}"
            )
        found.table[found.key] = value
        try:
            return _Reading(self._place, self._described)
        except DataError as error:  # the file is right, or it would not have been read before
            raise UsageError(f"{key}={value}: {error}") from error

    def _found(
        self, read: Mapping[str, RecipeTable], of_fusion: RecipeTable, queries: Sequence[TopicQuery]
    ) -> Iterator[tuple[str, _Place]]:
        """What can be set, by the name under which it can be."""
        found: dict[str, list[_Place]] = {}

        def add(short: str, place: _Place) -> None:
            found.setdefault(short, []).append(place)

        described = self._described["parameters"]
        for key, value in described.items():
            kind = NUMBER if isinstance(value, int | float) and not isinstance(value, bool) else TEXT
            about = "; ".join(one.template.where(f"{_RECIPE}{key}") for one in queries if one.uses(key))
            add(
                key,
                _Place(_named(f"parameters.{key}", "templates", key, value, kind, about), described, key),
            )
        for signal, (name, table) in zip(self.recipe.signals, read.items(), strict=True):
            of_keys = meanings(type(signal))
            for key, (value, kind) in table.settable.items():
                if key != WEIGHT or len(read) > 1:
                    one = _named(f"{name}.{key}", name, key, value, kind, of_keys[key])
                    add(name if key == WEIGHT else key, _Place(one, self._tables[name], key))
        if len(read) > 1:
            of_keys = meanings(type(self.recipe.fusion))
            for key, (value, kind) in of_fusion.settable.items():
                one = _named(f"fusion.{key}", "fusion", key, value, kind, of_keys[key])
                add(key, _Place(one, self._described["fusion"], key))
        for short, places in found.items():
            written = [one for one in places if one.is_written] or places
            for place in places:
                name = short if [place] == written else place.settable.name
                yield name, replace(place, settable=replace(place.settable, name=name))


def _signal(table: RecipeTable, described: Mapping[str, Any]) -> Signal:
    signal = signal_class(described[_SIGNAL]).read(table)
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


def _fusion(place: RecipeName, written: Mapping[str, Any], table: RecipeTable) -> Fusion:
    by = str(written.get(_BY))
    if by not in _FUSIONS:
        hint = (
            f" (did you mean {fusion.ReciprocalRankFusion.by}?)" if "rank" in by else suggestion(by, _FUSIONS)
        )
        raise DataError(
            f"the recipe {place} has no fusion by {by!r}{hint}: choose {alternatives(list(_FUSIONS))}"
        )
    read = _FUSIONS[by].read(table)
    table.finish(_BY)
    return read


def _book(task: str | RecipeBook) -> RecipeBook:
    return tasks.load(task).recipe_book() if isinstance(task, str) else task
