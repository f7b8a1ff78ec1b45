"""The suggester `term` of search bodies: indexed terms that resemble the terms of a text.

Source: org.apache.lucene.search.spell.DirectSpellChecker, org.elasticsearch.search.suggest.term.{TermSuggester,
TermSuggestionBuilder}

The suggestions are those of one shard: Elasticsearch compares frequencies within each shard.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import KEYWORD, Field
from searchapp.lucene.index.reader import FieldReader, IndexReader
from searchapp.lucene.queries import fuzzy
from searchapp.lucene.queries.query import Parser
from searchapp.lucene.records import Token
from searchapp.lucene.search.string_distance import DISTANCES

# Computes the `suggest` of a response from the segments.
Suggest = Callable[[Sequence[IndexReader]], dict[str, Any]]

_MODES = ("missing", "popular", "always")
_SORTS = ("score", "frequency")


class _Candidate(NamedTuple):
    term: str
    score: float  # float32
    frequency: int


@dataclass(frozen=True, slots=True)
class _TermSuggester:
    field: Field
    tokens: tuple[Token, ...]
    size: int
    shard_size: int
    mode: str
    accuracy: float
    sort: str
    distance: Callable[[str, str], float] | None
    max_edits: int
    max_inspections: int
    max_term_frequency: float  # from 1 on a number of documents, below it a share
    prefix: int
    min_word_length: int
    min_document_frequency: float  # like `max_term_frequency`

    def entries(self, segments: Sequence[IndexReader]) -> list[dict[str, Any]]:
        entries = []
        for token in self.tokens:
            candidates = self._candidates(token.term, segments)[: self.size]
            options = [
                {"text": term, "score": parameters.decimal(score), "freq": frequency}
                for term, score, frequency in candidates
            ]
            length = token.end - token.start
            entries.append({"text": token.term, "offset": token.start, "length": length, "options": options})
        return entries

    def _candidates(self, term: str, segments: Sequence[IndexReader]) -> list[_Candidate]:
        """Return at most `shard_size` suggestions for a term in the requested order."""
        fields = [segment.fields[self.field.name] for segment in segments]
        documents = segments[0].whole_count
        frequency = fields[0].document_frequency(term)
        greatest = self.max_term_frequency
        most = greatest if greatest >= 1 else math.ceil(parameters.to_float32(greatest * documents))
        is_present = self.mode == "missing" and frequency > 0
        if len(term) < self.min_word_length or is_present or frequency > most:
            return []
        if len(term) > fuzzy.LONGEST_TERM:
            raise unsupported(f"suggestions for a term of more than {fuzzy.LONGEST_TERM} characters")
        least = frequency if self.mode == "popular" else 0
        threshold = self.min_document_frequency
        if threshold >= 1:
            least = max(least, int(threshold))
        elif threshold > 0:
            least = max(least, int(parameters.to_float32(threshold * documents)) - 1)
        inspections = self.shard_size * self.max_inspections
        found = self._similar(fields, term, 1, least, inspections)
        if self.max_edits > 1 and len(found) < inspections:
            found = self._similar(fields, term, self.max_edits, least, inspections) | found
        ordered = sorted(found.values(), key=lambda own: own.term.encode("utf-16-be", "surrogatepass"))
        keys: list[Callable[[_Candidate], float]] = [lambda own: -own.frequency, lambda own: -own.score]
        for key in keys if self.sort == "score" else reversed(keys):
            ordered.sort(key=key)
        return ordered[: self.shard_size]

    def _similar(
        self, fields: Sequence[FieldReader], term: str, edits: int, least: int, most: int
    ) -> dict[str, _Candidate]:
        """Return at most `most` terms within some edits that are in more than `least` documents."""
        known: dict[str, int] = {}
        for field in fields:
            known |= fuzzy.similar_terms(field.terms, term, edits, max(self.prefix, edits - 1))
        best: list[
            tuple[float, int, _Candidate]
        ] = []  # a heap; of equal scores, the last term is dropped first
        for number, (other, own_edits) in enumerate(sorted(known.items())):
            weight = fuzzy.weight(term, other, own_edits)
            frequency = fields[0].document_frequency(other)
            # Lucene compares this weight with scores, even if they are of another distance.
            if other == term or frequency <= least or (len(best) == most and weight <= best[0][0]):
                continue
            score = weight if self.distance is None else self.distance(term, other)
            if score >= self.accuracy:
                heapq.heappush(best, (score, -number, _Candidate(other, score, frequency)))
                if len(best) > most:
                    heapq.heappop(best)
        return {candidate.term: candidate for _score, _number, candidate in best}


def read_suggest(value: Any, parser: Parser) -> Suggest:
    """Read the `suggest` of a search body.

    Raises:
        Refused: lists all problems with JSON paths.
    """
    problems = ErrorCollector()
    suggesters: dict[str, _TermSuggester] = {}
    described = parameters.mapping(value, "`suggest`")
    text = described.get("text")
    for name, suggestion in described.items():
        if name == "text" and not isinstance(suggestion, Mapping):
            continue
        with problems.at(f"suggest.{name}"):
            suggesters[name] = _read(
                parameters.mapping(suggestion, f"the suggestion {name}"), name, text, parser
            )
    problems.raise_if_any()
    return lambda segments: {name: own.entries(segments) for name, own in suggesters.items()}


_OF_TERM = (
    "field", "analyzer", "size", "shard_size", "suggest_mode", "accuracy", "sort", "string_distance", "max_edits",
    "max_inspections", "max_term_freq", "prefix_length", "min_word_length", "min_doc_freq",
)  # fmt: skip


def _read(suggestion: Mapping[str, Any], name: str, general_text: Any, parser: Parser) -> _TermSuggester:
    for kind in ("phrase", "completion"):
        if kind in suggestion:
            raise unsupported(f"the suggester `{kind}`")
    known_only(suggestion, {"text", "term"}, f"the suggestion {name}")
    if "term" not in suggestion:
        raise invalid(f"the suggestion {name} names no suggester")
    text = suggestion.get("text", general_text)
    if text is None:
        raise invalid(f"the suggestion {name} has no `text`")
    text = parameters.raw_text(text, f"`text` of the suggestion {name}")
    options = parameters.mapping(suggestion["term"], f"`term` of the suggestion {name}")
    known_only(options, _OF_TERM, "the suggester `term`")
    parameters.without_lists(options, _OF_TERM, "the suggester `term`")
    field = parser.field(parameters.name(options.get("field"), "`field` of the suggester `term`"))
    if field is None:
        raise invalid(f"the suggestion {name} is for an unknown field")
    if not (field.is_text or field.type == KEYWORD):
        raise unsupported(f"suggestions from {field.name}, which is neither text nor a keyword")
    analyzer = options.get("analyzer") or field.search_analyzer or field.analyzer or "keyword"
    size = _at_least(1, options, "size", 5)
    return _TermSuggester(
        field=field,
        tokens=tuple(parser.analyzers.analyzer(analyzer).tokens(text)),
        size=size,
        shard_size=_at_least(1, options, "shard_size", max(size, 5)),
        mode=parameters.choice(options.get("suggest_mode", "missing"), _MODES, "`suggest_mode`"),
        accuracy=parameters.share(options.get("accuracy", 0.5), "`accuracy`"),
        sort=parameters.choice(options.get("sort", "score"), _SORTS, "`sort` of the suggester `term`"),
        distance=DISTANCES[
            parameters.choice(options.get("string_distance", "internal"), DISTANCES, "`string_distance`")
        ],
        max_edits=_edits(options),
        max_inspections=_at_least(1, options, "max_inspections", 5),
        max_term_frequency=_frequency(options, "max_term_freq", 0.01),
        prefix=_at_least(0, options, "prefix_length", 1),
        min_word_length=_at_least(1, options, "min_word_length", 4),
        min_document_frequency=_frequency(options, "min_doc_freq", 0),
    )


def _at_least(least: int, options: Mapping[str, Any], name: str, default: int) -> int:
    number = parameters.integer(options.get(name, default), f"`{name}`")
    if number < least:
        raise invalid(f"`{name}` must be at least {least}, but is {number}")
    return number


def _edits(options: Mapping[str, Any]) -> int:
    edits = _at_least(1, options, "max_edits", fuzzy.MOST_EDITS)
    if edits > fuzzy.MOST_EDITS:
        raise invalid(f"`max_edits` must be 1 or 2, but is {edits}")
    return edits


def _frequency(options: Mapping[str, Any], name: str, default: float) -> float:
    number = parameters.number(options.get(name, default), f"`{name}`")
    if number < 0 or (number > 1 and number != int(number)):
        raise invalid(f"`{name}` must be a share from 0 to 1 or a whole number, but is {number:g}")
    return number
