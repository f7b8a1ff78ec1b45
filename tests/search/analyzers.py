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

MAX_TOKENS = 10_000
"""The default limit of `_analyze`, which n-grams of long shingles exceed."""

STEMMERS = {"porter_stem", "snowball", "stemmer", "stemmer_override"}
"""Types of token filters that do not change keywords."""

BUILT_IN = [
    "cjk",
    "fingerprint",
    "standard",
    "simple",
    "whitespace",
    "keyword",
    "stop",
    "english",
    "pattern",
    *pieces.LANGUAGES,
]

Case = dict[str, Any]


def cases(seed: int, count: int, first: int = 0) -> Iterator[Case]:
    """Yield analyzers with texts from the number `first` on; a seed and a number always give the same case."""
    for number in range(first, first + count):
        yield case(Draw(f"analyzer {seed} {number}"))


def case(draw: Draw) -> Case:
    """Return an analyzer and texts: random pieces, synonyms or HTML."""
    kind = draw.number(0, 19)
    if kind < 3:
        words = [*pieces.SYNONYM_WORDS, *pieces.SYNONYM_WORDS, "😀"]
        return {
            "analyzer": pieces.with_synonyms(draw),
            "texts": draw.several(lambda: " ".join(draw.several(lambda: draw.choice(words), 14)), 8, 1),
        }
    if kind < 6:
        return {"analyzer": pieces.with_html(draw), "texts": draw.several(lambda: texts.html(draw), 20, 1)}
    if kind == 8:
        return {
            "analyzer": pieces.with_scripts(draw),
            "texts": draw.several(lambda: texts.scripts(draw), 8, 1),
        }
    if kind == 7:
        return {
            "analyzer": pieces.with_types(draw),
            "texts": draw.several(lambda: texts.addresses(draw), 8, 1),
        }
    chosen: Any = draw.choice(BUILT_IN) if kind == 6 else pieces.analyzer(draw)
    return {"analyzer": chosen, "texts": draw.several(lambda: texts.text(draw), 8, 1)}


class NotCompared(Exception):
    """A case is not supported, has too many tokens, or differs in 8.19 as docs/use/elasticsearch.md describes."""


def differs(oracle: InlineOracle, case: Case) -> bool:
    """Whether a case, which may be invalid, shows a difference."""
    try:
        return difference(oracle, case) is not None
    except (NotCompared, KeyError, TypeError, AttributeError):
        return False


CHANGED = ("german", "swedish", "path_hierarchy", "dictionary_decompounder")
"""Languages with other stemmers or stop words in 8.19, a tokenizer with other positions, a filter with other words."""


def _stems_again(analyzer: str | Mapping[str, Any]) -> bool:
    """Whether the filters that mark short stems as keywords for 8.19 precede a stemmer."""
    if isinstance(analyzer, str):
        return False
    filters = with_short_stems(analyzer.get("filter", ()), lambda piece: piece)
    if ADDED_AMONG_KEYWORDS not in filters:
        return False
    later = filters[filters.index(ADDED_AMONG_KEYWORDS) + 2 :]
    return any(str(piece.get("type") if isinstance(piece, dict) else piece) in STEMMERS for piece in later)


def difference(oracle: InlineOracle, case: Case) -> str | None:
    """Return the difference of the two analyses of a case, None if there is none.

    Raises:
        NotCompared: The analyses can't be compared.
    """
    analyzer, texts_ = case["analyzer"], case["texts"]
    if not (analyzer and texts_):
        raise NotCompared
    if oracle.is_older and (any(name in str(analyzer).lower() for name in CHANGED) or _stems_again(analyzer)):
        raise NotCompared
    if analyzer == "fingerprint" or (oracle.is_older and isinstance(analyzer, str)):
        # without an index, some built-in analyzers have another gap between the texts of a list
        texts_ = texts_[:1]
    if not isinstance(analyzer, str) and any(map(_reads_partly, analyzer["filter"])):
        # the offsets of the next text depend on how far the tokenizer has read
        texts_ = texts_[:1]
    try:
        ours: list[Token] | str = oracle.ours(analyzer, texts_)
    except NotSupported as error:
        raise NotCompared from error
    except BadSettings as error:
        ours = str(error)
    if len(ours) > MAX_TOKENS:
        raise NotCompared
    try:
        theirs: list[Token] | str = oracle.servers(analyzer, texts_)
    except Rejected as error:
        theirs = str(error)
    if isinstance(ours, str) and isinstance(theirs, str):
        return None
    if isinstance(ours, str) or isinstance(theirs, str):
        return f"ours: {_short(ours)}\ntheirs: {_short(theirs)}"
    if ours == theirs:
        return _lengths_differ(oracle, analyzer, texts_)
    only_ours, only_theirs = (
        _short(sorted(tokens, key=_position)) for tokens in (set(ours) - set(theirs), set(theirs) - set(ours))
    )
    return f"only ours: {only_ours}\nonly theirs: {only_theirs}"


def _reads_partly(piece: Mapping[str, Any]) -> bool:
    return piece["type"] == "limit" and str(piece.get("consume_all_tokens")).lower() != "true"


def _lengths_differ(oracle: InlineOracle, analyzer: Any, texts_: list[str]) -> str | None:
    """Return the first difference in the position lengths of tokens that may form a graph."""
    graphs = ("common_grams", "flatten_graph", "synonym", "synonym_graph", "word_delimiter_graph")
    if isinstance(analyzer, str) or all(piece.get("type") not in graphs for piece in analyzer["filter"]):
        return None
    built = built_analyzer(analyzer)
    for text in texts_[:2]:
        ours = built.stream(text).lengths or [1] * len(built.terms(text))
        theirs = oracle.lengths(analyzer, text)
        if ours != theirs:
            return f"position lengths of the tokens of {text!r}, ours: {ours}\ntheirs: {theirs}"
    return None


def _position(token: Token) -> tuple[int, int, int, str]:
    return token.position, token.start, token.end, token.term


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 1500 else f"{text[:1500]}…"
