"""Random analyzers on random texts, against `_analyze` of a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchapp.engines.elasticsearch.analysis import ADDED_AMONG_KEYWORDS, with_short_stems
from searchapp.lucene.analysis import BadSettings, NotSupported
from searchapp.model import Token
from tests.analysis.parity import InlineOracle, Rejected, built_analyzer
from tests.search import pieces, texts
from tests.search.drawing import Draw

MOST_TOKENS = 10_000
"""What `_analyze` gives at most where no index says otherwise; n-grams of long shingles are more."""

STEMMERS = {"porter_stem", "snowball", "stemmer", "stemmer_override"}
"""Types of token filters that leave keywords alone."""

BUILT_IN = ["standard", "simple", "whitespace", "keyword", "stop", "english"]

Case = dict[str, Any]


def cases(seed: int, count: int, first: int = 0) -> Iterator[Case]:
    """Analyzers with texts from the `first` on; the n-th case of a seed is always the same."""
    for number in range(first, first + count):
        yield case(Draw(f"analyzer {seed} {number}"))


def case(draw: Draw) -> Case:
    """An analyzer and texts for it: mostly any pieces in a row, or synonyms, or HTML."""
    kind = draw.number(0, 19)
    if kind < 3:
        words = [*pieces.SYNONYM_WORDS, *pieces.SYNONYM_WORDS, "😀"]
        return {
            "analyzer": pieces.with_synonyms(draw),
            "texts": draw.several(lambda: " ".join(draw.several(lambda: draw.one(words), 14)), 8, 1),
        }
    if kind < 6:
        return {"analyzer": pieces.with_html(draw), "texts": draw.several(lambda: texts.html(draw), 20, 1)}
    chosen: Any = draw.one(BUILT_IN) if kind == 6 else pieces.analyzer(draw)
    return {"analyzer": chosen, "texts": draw.several(lambda: texts.text(draw), 8, 1)}


class NotCompared(Exception):
    """A case that says nothing: it is refused by name, or has more tokens than `_analyze` gives.

    Or docs/use/elasticsearch.md says how 8.19 differs.
    """


def differs(oracle: InlineOracle, case: Case) -> bool:
    """Whether a case, which may be a part of one that makes no sense, shows a difference."""
    try:
        return difference(oracle, case) is not None
    except (NotCompared, KeyError, TypeError, AttributeError):
        return False


def _stems_again(analyzer: Mapping[str, Any]) -> bool:
    """Whether a filter that leaves keywords alone follows one that makes keywords, as 8.19 is told, of short stems."""
    told = with_short_stems(analyzer.get("filter", ()), lambda piece: piece)
    if ADDED_AMONG_KEYWORDS not in told:
        return False
    later = told[told.index(ADDED_AMONG_KEYWORDS) + 2 :]
    return any(str(one.get("type") if isinstance(one, dict) else one) in STEMMERS for one in later)


def difference(oracle: InlineOracle, case: Case) -> str | None:
    """What the two analyses of a case differ in, None for nothing.

    Raises:
        NotCompared: it can't be told.
    """
    analyzer, several = case["analyzer"], case["texts"]
    if not (analyzer and several):
        raise NotCompared
    if oracle.is_older and not isinstance(analyzer, str) and _stems_again(analyzer):
        raise NotCompared
    if oracle.is_older and isinstance(analyzer, str):
        several = several[
            :1
        ]  # between the texts of a list, `_analyze` has another gap there for what is built in
    try:
        ours: list[Token] | str = oracle.ours(analyzer, several)
    except NotSupported as error:
        raise NotCompared from error
    except BadSettings as error:
        ours = str(error)
    if len(ours) > MOST_TOKENS:
        raise NotCompared
    try:
        theirs: list[Token] | str = oracle.servers(analyzer, several)
    except Rejected as error:
        theirs = str(error)
    if isinstance(ours, str) and isinstance(theirs, str):
        return None
    if isinstance(ours, str) or isinstance(theirs, str):
        return f"here: {_short(ours)}\nthere: {_short(theirs)}"
    if ours == theirs:
        return _lengths_differ(oracle, analyzer, several)
    here, there = set(ours) - set(theirs), set(theirs) - set(ours)
    return f"only here: {_short(sorted(here, key=_place))}\nonly there: {_short(sorted(there, key=_place))}"


def _lengths_differ(oracle: InlineOracle, analyzer: Any, several: list[str]) -> str | None:
    """What the first text with words of synonyms over several positions differs in."""
    if isinstance(analyzer, str) or all(one.get("type") != "synonym" for one in analyzer["filter"]):
        return None
    ours = built_analyzer(analyzer)
    for text in several[:2]:
        here, there = ours.stream(text).lengths or [1] * len(ours.terms(text)), oracle.lengths(analyzer, text)
        if here != there:
            return f"positions that tokens of {text!r} reach over, here: {here}\nthere: {there}"
    return None


def _place(token: Token) -> tuple[int, int, int, str]:
    return token.position, token.start, token.end, token.term


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 1500 else f"{text[:1500]}…"
