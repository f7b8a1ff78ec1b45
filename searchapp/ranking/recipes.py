"""Recipes: the named ways in which a task ranks, each a list of signals and one fusion.

They are TOML files beside the query templates:

    [mine]
    about = "Premises of similar training topics, which vote, combined with bm25."
    signals = [
      { signal = "direct", template = "bm25", weight = 0.8 },
      { signal = "neighbours", template = "similar", k = 100, power = 3.0 },
    ]
    fusion = { method = "sum", normalization = "max" }
    parameters = { answer = 0.25 }

A recipe with one direct signal can have its `template` alone. Several signals of a kind need a `name`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from copy import deepcopy
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from searchapp import tasks
from searchapp.errors import DataError, UsageError
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.index_settings import mapped_fields
from searchapp.lucene.queries import dsl
from searchapp.model import Topic
from searchapp.ranking import fusion, paging
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
from searchapp.text import alternatives, choices_hint, key_suggestion, suggestion


@dataclass(frozen=True, slots=True)
class Recipe:
    """The signals of a recipe and their fusion; the first signal retrieves candidates."""

    name: str
    about: str
    query: TopicQuery  # for searches and highlights; by default the first direct signal's query
    signals: tuple[Signal, ...]
    fusion: Fusion
    parameters: Mapping[str, Any]  # of all templates
    written: Mapping[str, Any] = field(default_factory=dict)  # as in a file, with the overrides
    tuned: Mapping[str, Any] = field(default_factory=dict)  # the record of its tuning
    overrides: Mapping[str, Any] = field(default_factory=dict)  # the values set by the user

    def needs(self, need: Need) -> bool:
        needed = [signal.needs for signal in self.signals]
        if len(self.signals) > 1:
            needed.append(self.fusion.needs)
        return any(need in needs for needs in needed)

    @property
    def learns(self) -> bool:
        return any(self.needs(need) for need in (Need.examples, Need.labels, Need.terms, Need.model))

    def files(self) -> list[Path]:
        """Return the files that signals read, beside the data of the task."""
        return [file for signal in self.signals for file in signal.files()]

    @property
    def trained(self) -> tuple[Trained, ...]:
        return tuple(signal for signal in self.signals if isinstance(signal, Trained))

    @property
    def is_learned(self) -> bool:
        return len(self.signals) > 1 and isinstance(self.fusion, LearnedFusion)

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        return (self.query, *(query for signal in self.signals for query in signal.queries))

    @property
    def takes_words(self) -> bool:
        return all(query.template.topic_fields <= query.template.matched for query in self._topic_queries)

    def typed(self, words: str, like: str = "") -> Topic:
        fields = set().union(*(query.template.matched for query in self._topic_queries))
        return Topic("", words, dict.fromkeys(sorted(fields), words), like=like)

    @property
    def external(self) -> tuple[str, ...]:
        """The names of the signals that ask an external model about typed words."""
        return tuple(signal.name for signal in self.signals if signal.is_external)

    @property
    def offline(self) -> Recipe:
        """The recipe without external signals, or its query alone if none of the others can be the first one."""
        if not self.external:
            return self
        signals = tuple(signal for signal in self.signals if not signal.is_external)
        if not signals or signals[0].needs & {Need.candidates, Need.leaders}:
            signals = (Direct(name=Direct.kind, query=self.query),)
        return replace(
            self,
            name=f"{self.name} without {' and '.join(self.external)}",
            signals=signals,
            # Its model is of all signals.
            fusion=self.fusion.unlearned,
        )

    @property
    def _topic_queries(self) -> tuple[TopicQuery, ...]:
        return tuple(query for signal in self.signals for query in signal.queries) or (self.query,)

    @property
    def is_one_query(self) -> bool:
        return len(self.signals) == 1 and isinstance(self.signals[0], Direct)

    def body(self, topic: Topic, depth: int) -> dict[str, Any]:
        return self.query.body(topic, depth)

    def reaching(self, depth: int) -> Recipe:
        """Return the recipe with windows of at least this depth."""
        signals = [
            replace(signal, window=depth) if 0 < signal.window < depth else signal for signal in self.signals
        ]
        return replace(self, signals=tuple(signals))

    def raised(self, depth: int) -> list[str]:
        """Return a sentence for each signal whose window is below the depth."""
        return [
            f"the depth {depth:,} raises the window {signal.window:,} of the signal {signal.name}, so "
            "the ranking may differ from one at a lower depth"
            for signal in self.signals
            if 0 < signal.window < depth
        ]

    def manifest(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "name": self.name,
            "template": self.query.template.name,
            "template_digest": self.query.digest,
            "parameters": dict(self.parameters),
            "signals": [signal.manifest() for signal in self.signals],
        }
        record |= {"set": dict(self.overrides)} if self.overrides else {}
        record |= {"tuned": dict(self.tuned)} if self.tuned else {}
        return record | ({"fusion": self.fusion.manifest()} if len(self.signals) > 1 else {})


# The types of `multi_match` that score each field by its own words.
_TYPES_BY_FIELD = (None, "best_fields", "bool_prefix", "most_fields")

# The parts of a body that determine hits and scores.
_RANKING = ("query", "post_filter", "rescore")

# A server counts the first terms of each shard, and adds fractions in another order.
AGGREGATIONS_ON_ONE_SHARD = frozenset({"terms", "sum", "avg", "stats", "extended_stats"})

STACKING_FILTERS = frozenset(
    {
        *("cjk_bigram", "common_grams", "dictionary_decompounder", "edge_ngram", "hyphenation_decompounder"),
        *("keyword_repeat", "multiplexer", "ngram", "pattern_capture", "shingle", "synonym", "synonym_graph"),
        *("word_delimiter", "word_delimiter_graph"),
    }
)

_SHARD_INDEPENDENT_FUNCTIONS = frozenset(
    {"filter", "query", "weight", "field_value_factor", "gauss", "exp", "linear"}
)


def shard_warnings(
    recipe: Recipe, mapping: Mapping[str, Any], shards: int, *, is_foreign: bool = False
) -> Iterator[str]:
    """Yield a sentence for each of the recipe's templates whose ranking may depend on the number of shards."""
    templates = {query.template.name: query.template for signal in recipe.signals for query in signal.queries}
    for name, template in templates.items():
        ranking = {key: template.body[key] for key in _RANKING if key in template.body}
        yield from body_shard_warnings(name, ranking, mapping, shards, is_foreign=is_foreign)


def body_shard_warnings(
    name: str, body: Mapping[str, Any], mapping: Mapping[str, Any], shards: int, *, is_foreign: bool = False
) -> Iterator[str]:
    """Yield a sentence for each effect of the number of shards on the answer to the search body `name`."""
    if shards == 1:
        return
    or_else = "" if is_foreign else ", or index with --shards 1"
    for effect, reason in _shard_effects(body, mapping):
        yield (
            f"{name} may {effect} on these {shards} shards than on one, because of "
            f"{reason}: see docs/reference/engines.md{or_else}"
        )


def _shard_effects(body: Mapping[str, Any], mapping: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the number of shards may change in an answer, with its cause in the body or the mapping."""
    if (reason := ranking_shard_dependence(body)) is not None:
        yield "rank differently", reason
    if names := sorted(_stacking_analyzers(mapping)):
        yield "rank differently", f"the analyzer `{names[0]}`, which may put several terms at one position"
    if body.get("suggest"):
        yield "suggest other terms", "its `suggest`"
    kinds = {kind for key in ("aggs", "aggregations") for kind in _aggregations(body.get(key))}
    if dependent := sorted(kinds & AGGREGATIONS_ON_ONE_SHARD):
        yield "count differently", f"its aggregation `{dependent[0]}`"


def _stacking_analyzers(mapping: Mapping[str, Any]) -> Iterator[str]:
    """Yield the analyzers of queries that may put several terms at one position: a shard scores those that it has."""
    analysis = mapping.get("settings", {}).get("analysis", {})
    analyzers, filters = analysis.get("analyzer", {}), analysis.get("filter", {})
    for mapped in mapped_fields(mapping["mappings"].get("properties", {})):
        name = mapped.described.get("search_analyzer", mapped.described.get("analyzer", "default"))
        pieces = analyzers.get(name, {}).get("filter", ())
        for piece in [pieces] if isinstance(pieces, str) else pieces:
            described = filters.get(piece, {})
            only_shingles = described.get("output_unigrams") in (False, "false")
            if described.get("type", piece) in STACKING_FILTERS and not only_shingles:
                yield name


def _aggregations(content: Any) -> Iterator[str]:
    """Yield the types of aggregations, also of inner ones."""
    for aggregation in content.values() if isinstance(content, Mapping) else ():
        if isinstance(aggregation, Mapping):
            yield from aggregation
            for key in ("aggs", "aggregations"):
                yield from _aggregations(aggregation.get(key))


def ranking_shard_dependence(body: Mapping[str, Any]) -> str | None:
    """Return the part of a search body whose hits or scores may depend on the number of shards, if any."""
    for name in ("rescore", "knn"):  # which order equal scores by the numbers of documents
        if body.get(name) and not paging.finds_nearest(body):
            return f"its `{name}`"
    return shard_dependence(body.get("query")) or shard_dependence(body.get("post_filter"))


def shard_dependence(query: Any) -> str | None:
    """Return the part of a query whose statistics may depend on the number of shards, if any."""
    return next(_shard_dependent_parts(query), None)


def _shard_dependent_parts(query: Any) -> Iterator[str]:
    for kind, content in _queries(query):
        known = dsl.KINDS.get(kind)
        if known is None or not known.on_shards:
            yield f"its `{kind}`"
            continue
        for name in (*known.scored, *known.unscored):
            yield from _shard_dependent_parts(content.get(name))
        if kind == "function_score":
            yield from _shard_dependent_functions(content)
        elif kind == "multi_match":
            if content.get("type") not in _TYPES_BY_FIELD:
                yield f"its `multi_match` of the type {content['type']}"
            if "fuzziness" in content:
                yield "its fuzzy `multi_match`"
        elif kind in ("match", "match_bool_prefix") and any(
            isinstance(parameters, Mapping) and "fuzziness" in parameters for parameters in content.values()
        ):
            yield f"its fuzzy `{kind}`"


def _shard_dependent_functions(content: Mapping[str, Any]) -> Iterator[str]:
    functions = content.get("functions", [content])
    for function in functions if isinstance(functions, list) else []:
        if isinstance(function, Mapping):
            yield from _shard_dependent_parts(function.get("filter"))
            for name, content_of_function in function.items():
                if name not in _SHARD_INDEPENDENT_FUNCTIONS and isinstance(content_of_function, Mapping):
                    yield f"its `{name}` in a `function_score`"


def _queries(query: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for clause in query if isinstance(query, list) else [query]:
        if isinstance(clause, Mapping):
            yield from ((kind, content) for kind, content in clause.items() if isinstance(content, Mapping))


_TYPES: Mapping[str, tuple[type, str]] = {
    "about": (str, "text in quotes"),
    "template": (str, "text in quotes"),
    "parameters": (Mapping, "a table"),
    "signals": (list, "a list of tables"),
    "fusion": (Mapping, "a table"),
    "tuned": (Mapping, "a table"),
}
_FUSIONS: Mapping[str, type[Fusion]] = {**fusion.KINDS, LearnedFusion.method: LearnedFusion}
_SIGNAL = "signal"
_NAME = "name"
_METHOD = "method"
_RECIPE = "recipe."


def names(task: str | RecipeBook) -> list[str]:
    """Return the names of a task's recipes; a string is a shipped task."""
    return _book(task).names


def load(task: str | RecipeBook, name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """Return a task's recipe, with other values of some parameters.

    The keys of `overrides` are parameters of templates, the keys of a signal or the fusion (`k`, or `neighbours.k` if
    several have it), and a signal's name for its weight. A string is a shipped task.

    Raises:
        UsageError: the recipe or a parameter is unknown, or a value has a wrong type.
        DataError: the recipe or its template is invalid.
    """
    book = _book(task)
    stored = book.recipes.get(name)
    if stored is None:
        raise UsageError(f"{book.task} has no recipe {choices_hint(name, names(book))}")
    place = RecipeName(book, name)
    _require_types(place, stored)
    recipe = deepcopy(dict(stored))
    recipe.setdefault("signals", [{_SIGNAL: Direct.kind, "template": recipe.get("template")}])
    written_recipe = _WrittenRecipe(place, recipe)
    for key, value in (overrides or {}).items():
        written_recipe = written_recipe.with_value(key, value)
    return replace(written_recipe.recipe, overrides=dict(overrides or {}))


def settable(task: str | RecipeBook, recipe: Recipe) -> list[Settable]:
    """Return the settable parameters of a recipe, with their values; raises the errors of `load`."""
    place = RecipeName(_book(task), recipe.name)
    return _WrittenRecipe(place, deepcopy(dict(recipe.written))).settable


def require_words(task: str | RecipeBook, recipe: Recipe) -> None:
    """Check that a recipe can rank typed words.

    Raises:
        UsageError: it needs more than words.
    """
    if recipe.takes_words:
        return
    book = _book(task)
    suitable = [other for other in names(book) if load(book, other).takes_words]
    raise UsageError(
        f"the recipe {book.task}/{recipe.name} needs a complete topic, as in `searchapp rank`: search "
        f"with --recipe {' or '.join(suitable) or 'of your own'}"
    )


def _require_types(place: RecipeName, written: Mapping[str, Any]) -> None:
    for key in sorted(written.keys() - _TYPES):
        raise place.wrong(f"has the unknown key {key!r}{key_suggestion(key, _TYPES)}")
    if "template" not in written and "signals" not in written:
        raise place.wrong("names no template")
    for key, value in written.items():
        type_, kind = _TYPES[key]
        if not isinstance(value, type_):
            raise DataError(f"the recipe {place}: {key} must be {kind}: correct {place.book.file.name}")


def _tables(place: RecipeName, described: Mapping[str, Any]) -> dict[str, MutableMapping[str, Any]]:
    tables: dict[str, MutableMapping[str, Any]] = {}
    for table in described["signals"]:
        if not isinstance(table, MutableMapping) or not isinstance(table.get(_SIGNAL), str):
            raise place.wrong(f"has a signal without a kind: write {{ {_SIGNAL} = … }}")
        if table[_SIGNAL] not in KINDS:
            raise DataError(f"the recipe {place} has no signal {choices_hint(table[_SIGNAL], KINDS)}")
        name = table.setdefault(_NAME, table[_SIGNAL])
        if not isinstance(name, str) or not name:
            raise place.wrong(f"has a signal with the name {name!r}, which is not a string")
        if name in tables:
            raise place.wrong(f"has two signals named {name}: give each its own {_NAME}")
        tables[name] = table
    if not tables:
        raise place.wrong("has no signals")
    return tables


@dataclass(frozen=True, slots=True)
class Settable:
    """A parameter of a recipe that can be set."""

    name: str  # the key, or the full name if the key is ambiguous
    full: str  # the signal's name and the key
    of: str  # the name of the signal, or "templates" or "fusion"
    key: str
    value: object  # None if omitted
    kind: str  # the possible values, in words
    about: str
    table: MutableMapping[str, Any] = field(repr=False, compare=False)


class _WrittenRecipe:
    def __init__(self, place: RecipeName, described: dict[str, Any]) -> None:
        self._place = place
        self._described = described
        self._tables = tables = _tables(place, described)
        parameters = described.setdefault("parameters", {})
        recipe_tables = {
            name: RecipeTable(place, name, table, parameters, is_fused=len(tables) > 1)
            for name, table in tables.items()
        }
        signals = tuple(_signal(recipe_tables[name], table) for name, table in tables.items())
        query = _query(place, described, signals, parameters)
        queries = {
            query.template.name: query
            for query in (query, *(query for signal in signals for query in signal.queries))
        }
        used = frozenset().union(*(query.template.variables for query in queries.values()))
        for key in sorted({f"{_RECIPE}{key}" for key in parameters} - used):
            raise DataError(
                f"{query.template.name}: the parameter {key} is set, but the template does not use it"
            )
        if signals[0].needs & {Need.candidates, Need.leaders}:
            raise place.wrong(
                f"begins with {signals[0].name}, which needs candidates: put a signal before it"
            )
        fusion_values = described.setdefault("fusion", {_METHOD: fusion.SumFusion.method})
        fusion_table = RecipeTable(place, "fusion", fusion_values, parameters)
        recipe_fusion = _fusion(place, fusion_table)
        self.recipe = Recipe(
            place.recipe,
            described.get("about", ""),
            query,
            signals,
            recipe_fusion,
            parameters,
            deepcopy(described),
            described.get("tuned", {}),
        )
        self.settable = self._settable(recipe_tables, fusion_table, list(queries.values()))

    def with_value(self, key: str, value: object) -> _WrittenRecipe:
        named = {parameter.name: parameter for parameter in self.settable}
        parameter = named.get(key) or {parameter.full: parameter for parameter in self.settable}.get(key)
        if parameter is None:
            shared = [name for name in named if name.endswith(f".{key}")]
            if shared:
                raise UsageError(
                    f"the recipe {self._place} has several parameters {key}: name {' or '.join(shared)}"
                )
            names = ", ".join(sorted(named)) or "none"
            raise UsageError(
                f"the recipe {self._place} has no parameter {key!r}{key_suggestion(key, named)}: it has {names}"
            )
        parameter.table[parameter.key] = value
        try:
            return _WrittenRecipe(self._place, self._described)
        except DataError as error:  # the file itself was valid when it was read
            raise UsageError(f"{key}={value}: {error}") from error

    def _settable(
        self,
        recipe_tables: Mapping[str, RecipeTable],
        fusion_table: RecipeTable,
        queries: Sequence[TopicQuery],
    ) -> list[Settable]:
        by_key: dict[str, list[Settable]] = {}

        def add(
            of: str, table: MutableMapping[str, Any], key: str, value: object, kind: str, about: str
        ) -> None:
            full = f"{'parameters' if of == 'templates' else of}.{key}"
            short = of if key == WEIGHT and of in recipe_tables else key
            by_key.setdefault(short, []).append(Settable(full, full, of, key, value, kind, about, table))

        parameters = self._described["parameters"]
        for key, value in parameters.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            about = "; ".join(query.template.where(f"{_RECIPE}{key}") for query in queries if query.uses(key))
            add("templates", parameters, key, value, NUMBER if is_number else TEXT, about)
        sources = [
            (name, self._tables[name], recipe_tables[name], meanings(type(signal)))
            for name, signal in zip(recipe_tables, self.recipe.signals, strict=True)
        ]
        if len(recipe_tables) > 1:
            meanings_by_key = meanings(type(self.recipe.fusion))
            sources.append(("fusion", self._described["fusion"], fusion_table, meanings_by_key))
        for of, table, values, meanings_by_key in sources:
            for key, (value, kind) in values.settable.items():
                if key != WEIGHT or len(recipe_tables) > 1:
                    add(of, table, key, value, kind, meanings_by_key[key])
        settable = []
        for short, parameters_of_key in by_key.items():
            written = [each for each in parameters_of_key if each.key in each.table] or parameters_of_key
            for parameter in parameters_of_key:
                settable.append(replace(parameter, name=short) if written == [parameter] else parameter)
        return settable


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
        raise place.wrong("has neither a template for searches nor a direct signal")
    return direct


def _fusion(place: RecipeName, table: RecipeTable) -> Fusion:
    method = str(table.required(_METHOD))
    if method not in _FUSIONS:
        hint = (
            f" (did you mean {fusion.ReciprocalRankFusion.method}?)"
            if "rank" in method
            else suggestion(method, _FUSIONS)
        )
        raise DataError(
            f"the recipe {place} has no fusion {method!r}{hint}: choose {alternatives(list(_FUSIONS))}"
        )
    recipe_fusion = _FUSIONS[method].read(table)
    table.finish(_METHOD)
    return recipe_fusion


def _book(task: str | RecipeBook) -> RecipeBook:
    return tasks.load(task).recipe_book() if isinstance(task, str) else task
