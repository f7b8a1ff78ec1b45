"""A create-index body, read as far as the embedded engine supports it.

A *field* here is what postings are kept of: `text` and its sub-field `text.prose` are two fields with one
source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded import names, parameters
from searchapp.engines.embedded.refusals import invalid, known_only, unsupported
from searchapp.engines.embedded.similarity import BM25, DEFAULT_B, DEFAULT_K1
from searchapp.engines.index_settings import NOT_INDEXED, canonical
from searchapp.errors import DataError
from searchapp.model import AnalysisStep, Token

TEXT = "text"
KEYWORD = "keyword"
INTEGERS = {"long": 63, "integer": 31, "short": 15, "byte": 7}
"""Bits that the absolute value of a number of the type may have."""
FLOATS = ("double", "float")

_WITHOUT_EFFECT = ("number_of_replicas", "auto_expand_replicas", "refresh_interval")
"""Settings of a server's indexes that no ranking depends on."""

MOST_META, LONGEST_META_KEY, LONGEST_META_VALUE = 5, 20, 50
"""What Elasticsearch keeps of the `meta` of a field, in entries and in characters."""

_PARAMETERS = {
    TEXT: {"type", "fields", "analyzer", "search_analyzer", "similarity", "meta"},
    KEYWORD: {"type", "fields", "meta"},
    **{number: {"type", "fields", "meta"} for number in (*INTEGERS, *FLOATS)},
}


class BulkTokens(Protocol):
    """The tokens of texts: see `searchapp.analysis.bulk`."""

    @property
    def vocabulary(self) -> list[str]:
        """The terms."""

    @property
    def terms(self) -> NDArray[np.int32]:
        """The number of each token's term."""

    @property
    def positions(self) -> NDArray[np.int32]:
        """The position of each token."""

    @property
    def counts(self) -> NDArray[np.int32]:
        """How many tokens each text has."""


class BulkAnalysis(Protocol):
    """An analyzer for many texts at once."""

    def tokens(self, texts: Sequence[str]) -> BulkTokens | None:
        """The tokens of texts, no two of a text at one position; None for texts to be analyzed one by one."""


class Analyzer(Protocol):
    """What is asked of an analyzer: see `searchapp.analysis`."""

    branches: bool

    @property
    def bulk(self) -> BulkAnalysis | None:
        """The same for many texts at once; None for one that has to be asked text by text."""

    @property
    def different(self) -> Callable[[str], tuple[str, ...] | None] | None:
        """The terms of a text, each of which comes once and is alone on its position, None for a text of which that is
        not so simple; None for an analyzer of which it never is."""

    def graph(self, text: str) -> list[tuple[str, int, int]] | None:
        """The terms, positions and lengths in positions; None if every length is 1. For one that `branches`."""

    def terms(self, text: str) -> list[tuple[str, int]]:
        """The terms and their positions, in the order in which they are emitted."""

    def joined(self, texts: Sequence[str]) -> tuple[list[str], list[int]]:
        """The terms of several values of one field, and their positions."""

    def tokens(self, text: str) -> list[Token]:
        """The terms with the characters of the text that they stand for."""

    def emitted(self, text: str) -> list[Token]:
        """As `tokens`, but with the halves of characters that the index has as U+FFFD."""

    def steps(self, text: str) -> list[AnalysisStep]:
        """What each piece of the analyzer makes of the text."""


class Analyzers(Protocol):
    """The analyzers of an index by name."""

    def analyzer(self, name: str) -> Analyzer:
        """A custom or a built-in analyzer."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an index.

    `source` is the property that its values come from. Analyzers and similarity are None where the type has
    none: a keyword is scored by BM25 without lengths, a number not at all.
    """

    name: str
    type: str
    source: str
    analyzer: str | None = None
    search_analyzer: str | None = None
    similarity: BM25 | None = None

    @property
    def is_text(self) -> bool:
        return self.type == TEXT

    @property
    def is_number(self) -> bool:
        return self.type in INTEGERS or self.type in FLOATS


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of an index by name, in the order of the mapping, and its settings for analysis.

    `stored` are the properties that come with a document and are not indexed.
    """

    fields: Mapping[str, Field]
    analysis: Mapping[str, Any]
    stored: frozenset[str] = frozenset()

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> Schema:
        """Read a create-index body.

        Raises:
            EngineRefused: the body has something that the embedded engine does not support, or that makes no sense.
        """
        known_only(mapping, {"settings", "mappings"}, "a mapping")
        try:
            settings = _object(canonical(mapping), "settings")
        except DataError as error:
            raise invalid(str(error)) from error
        one_shard = {"number_of_shards"} if str(settings.get("number_of_shards")) == "1" else set()
        known = {"analysis", "similarity", *_WITHOUT_EFFECT, *one_shard}
        known_only(settings, known, "the settings of an index")
        mappings = _object(mapping, "mappings")
        known_only(mappings, {"dynamic", "_meta", "properties"}, "`mappings`")
        if mappings.get("dynamic", "strict") != "strict":
            raise unsupported(f"`dynamic: {mappings['dynamic']}`, only `strict`")
        _object(mappings, "_meta")
        analysis = _object(settings, "analysis")
        reader = _Reader(analysis, _similarities(_object(settings, "similarity")))
        properties = _object(mappings, "properties")
        stored = frozenset(name for name, described in properties.items() if described == NOT_INDEXED)
        names.check(properties, stored)
        indexed = {name: described for name, described in properties.items() if name not in stored}
        fields = {field.name: field for field in reader.fields(indexed)}
        names.check_number(properties, len(fields) + len(stored))
        return cls(fields, analysis, stored)


def _object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of a mapping that must be an object if it is there."""
    return parameters.mapping(given.get(name, {}), f"`{name}` of a mapping")


class _Reader:
    def __init__(self, analysis: Mapping[str, Any], similarities: Mapping[str, BM25]) -> None:
        self._analyzers = _object(analysis, "analyzer")
        self._similarities = similarities

    def fields(self, properties: Mapping[str, Any]) -> Iterator[Field]:
        for name, described in properties.items():
            yield self._field(name, name, parameters.mapping(described, f"the field {name}"))
            for inner, also in _object(described, "fields").items():
                names.check_inner(name, inner)
                if "fields" in parameters.mapping(also, f"the sub-field {name}.{inner}"):
                    raise invalid(f"the sub-field {name}.{inner} has sub-fields of its own")
                yield self._field(f"{name}.{inner}", name, also)

    def _field(self, name: str, source: str, described: Mapping[str, Any]) -> Field:
        kind = str(described.get("type", "object"))
        if kind not in _PARAMETERS:
            raise unsupported(f"the type `{kind}` of the field {name}")
        known_only(described, _PARAMETERS[kind], f"the field {name}")
        _check_meta(_object(described, "meta"), name)
        if kind == KEYWORD:
            return Field(name, kind, source, similarity=self._similarities["default"])
        if kind != TEXT:
            return Field(name, kind, source)
        similarity = str(described.get("similarity") or "default")
        if similarity not in self._similarities:
            raise unsupported(f"the similarity `{similarity}` of the field {name}")
        default = self._default("default", "standard")
        for given in ("analyzer", "search_analyzer"):
            if given in described:
                parameters.name(described[given], f"`{given}` of the field {name}")
        analyzer = described.get("analyzer", default)
        searching = described.get("analyzer") or self._default("default_search", default)
        return Field(
            name,
            kind,
            source,
            analyzer=analyzer,
            search_analyzer=described.get("search_analyzer", searching),
            similarity=self._similarities[similarity],
        )

    def _default(self, name: str, otherwise: str) -> str:
        return name if name in self._analyzers else otherwise


def _check_meta(meta: Mapping[str, Any], name: str) -> None:
    """Elasticsearch keeps a few short words about a field, and nothing else."""
    if len(meta) > MOST_META:
        raise invalid(f"`meta` of the field {name} has more than {MOST_META} entries")
    for key, value in meta.items():
        if not isinstance(value, str) or len(key) > LONGEST_META_KEY or len(value) > LONGEST_META_VALUE:
            raise invalid(
                f"`meta` of the field {name} must have keys of at most {LONGEST_META_KEY} characters and values that "
                f"are text of at most {LONGEST_META_VALUE}, unlike {key!r}"
            )


def _similarities(described: Mapping[str, Any]) -> dict[str, BM25]:
    read = {"default": BM25(), "BM25": BM25()}
    for name, options in described.items():
        place = f"the similarity {name}"
        given = {key: value for key, value in parameters.mapping(options, place).items() if value is not None}
        if not given:
            continue  # to Elasticsearch it does not exist
        if name in ("BM25", "boolean") or "." in name:
            raise invalid(f"{place} has a name that is taken or has a dot")
        if "type" not in given:
            raise invalid(f"{place} has no `type`")
        if parameters.raw_text(given["type"], f"the type of {place}") != "BM25":
            raise unsupported(f"the type `{given['type']}` of {place}")
        known_only(given, {"type", "k1", "b", "discount_overlaps"}, place)
        if not parameters.flag(given.get("discount_overlaps", True), f"`discount_overlaps` of {place}"):
            raise unsupported(f"`discount_overlaps: false` of {place}")
        k1, b = (
            _setting(given, key, default, place) for key, default in (("k1", DEFAULT_K1), ("b", DEFAULT_B))
        )
        if not (0 <= k1 < float("inf") and 0 <= b <= 1):
            raise invalid(
                f"{place} has k1 {k1:g} and b {b:g}, but k1 must not be negative and b be from 0 to 1"
            )
        read[name] = BM25(k1, b)
    return read


def _setting(given: Mapping[str, Any], key: str, default: float, place: str) -> float:
    """A number among the settings of an index, which Elasticsearch keeps as text."""
    place = f"{key} of {place}"
    return parameters.any_number(parameters.raw_text(given.get(key, default), place), place)
