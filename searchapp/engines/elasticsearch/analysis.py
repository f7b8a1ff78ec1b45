"""Analysis on a server: adaptation of Elasticsearch 8 to the terms of 9, and the reported steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

from searchapp.engines.elasticsearch.client import Server
from searchapp.model import AnalysisStep, Token

T = TypeVar("T")

ADDED = "searchapp_short_stems"  # name of the filter that is added on a server of 8.x

ADDED_AMONG_KEYWORDS = f"{ADDED}_among_keywords"  # name of the filter if words may be marked as keywords

# Types of token filters that mark keywords, or may contain such filters.
MARKING = frozenset({"keyword_marker", "keyword_repeat", "stemmer_override", "condition", "multiplexer"})

_STEMS = [f"{first}{twice}{twice}" for first in "aeo" for twice in "bdfgmnprt"]

# Endings that the stemmer removes: -ed, -ing, the plural, and apostrophes.
_ENDINGS = ["".join(parts) for parts in product(("ed", "ing"), ("", "ly"), ("", "s"), ("", "'", "'s", "'s'"))]


def _words(stem: str) -> list[str]:
    return [f"{before}{stem}{ending}" for before in ("", "'") for ending in _ENDINGS]


# Snowball's English stemmer in Lucene 10 (Elasticsearch 9) keeps a final double consonant of stems of three letters
# that begin with a, e or o: "adding" becomes `add`, and `ad` in Lucene 9. On version 8, one of these filters removes
# the endings of such words first. Words marked as keywords must keep their endings; the filter that respects marks
# also marks the words that it changes, which protects them from later stemmers, so it is used only if words may be
# marked.
SHORT_STEMS: Mapping[str, Mapping[str, Any]] = {
    ADDED: {
        "type": "pattern_replace",
        "pattern": "^'?([aeo](?:bb|dd|ff|gg|mm|nn|pp|rr|tt))(?:ed|ing)(?:ly)?s?(?:'s'|'s|')?$",
        "replacement": "$1",
    },
    ADDED_AMONG_KEYWORDS: {
        "type": "stemmer_override",
        "rules": [", ".join(_words(stem)) + f" => {stem}" for stem in _STEMS],
    },
}


def analysis_for(server: Server, analysis: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `analysis` of an index's settings, adapted if the server may be of version 8."""
    adapted = copy.deepcopy(dict(analysis))
    if not server.may_be_older:
        return adapted
    filters: Mapping[str, Any] = adapted.get("filter") or {}
    added: set[str] = set()
    for kind in ("analyzer", "normalizer"):
        for described in (adapted.get(kind) or {}).values():
            names = described.get("filter") if isinstance(described, dict) else None
            names_list = [names] if isinstance(names, str) else names
            if isinstance(names_list, list):
                with_stems = with_short_stems(
                    names_list, lambda name: filters.get(name, name) if isinstance(name, str) else None
                )
                if len(with_stems) > len(names_list):
                    added.update(SHORT_STEMS.keys() & with_stems)
                    described["filter"] = with_stems
    if added:
        adapted["filter"] = {**filters, **{name: dict(SHORT_STEMS[name]) for name in sorted(added)}}
    return adapted


def with_short_stems(filters: Sequence[T], described: Callable[[T], object]) -> list[T | str]:
    """Insert the name of one of `SHORT_STEMS` before each English stemmer in the token filters of an analyzer.

    `described` returns the definition of a filter, or its name if it is built in.
    """
    adapted: list[T | str] = []
    may_be_marked = False
    for filter_ in filters:
        definition = described(filter_)
        if stems_english(definition):
            adapted.append(ADDED_AMONG_KEYWORDS if may_be_marked else ADDED)
        adapted.append(filter_)
        type_ = definition.get("type") if isinstance(definition, Mapping) else definition
        may_be_marked |= str(type_) in MARKING
    return adapted


def stems_english(described: object) -> bool:
    """Return whether a token filter is Snowball's English stemmer."""
    if not isinstance(described, Mapping):
        return described == "snowball"  # the built-in one
    language = str(described.get("language", described.get("name", ""))).lower()
    if described.get("type") == "snowball":
        return language in ("", "english")
    return described.get("type") == "stemmer" and language == "porter2"


def without_added(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the steps of token filters without `SHORT_STEMS`."""
    return [step for step in steps if step["name"] not in SHORT_STEMS]


def analysis_steps(detail: Mapping[str, Any]) -> list[AnalysisStep]:
    """Parse the steps in the `detail` of an answer, without added filters."""
    if not detail["custom_analyzer"]:
        analyzer = detail["analyzer"]
        return [AnalysisStep("analyzer", analyzer["name"], tokens=_tokens(analyzer["tokens"]))]
    steps = [
        AnalysisStep("char_filter", step["name"], text="".join(step["filtered_text"]))
        for step in detail.get("charfilters", ())
    ]
    tokenizer = detail["tokenizer"]
    steps.append(AnalysisStep("tokenizer", tokenizer["name"], tokens=_tokens(tokenizer["tokens"])))
    steps += [
        AnalysisStep("filter", step["name"], tokens=_tokens(step["tokens"]))
        for step in without_added(detail.get("tokenfilters", ()))
    ]
    return steps


def _tokens(tokens: Iterable[Mapping[str, Any]]) -> tuple[Token, ...]:
    return tuple(
        Token(token["token"], token["position"], token["start_offset"], token["end_offset"])
        for token in tokens
    )
