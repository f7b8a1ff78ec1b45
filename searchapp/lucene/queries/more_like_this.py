"""The query `more_like_this`: documents with the characteristic terms of texts or documents.

    org.elasticsearch.index.query.MoreLikeThisQueryBuilder
    org.elasticsearch.common.lucene.search.{MoreLikeThisQuery, XMoreLikeThis}
    org.elasticsearch.index.termvectors.TermVectorsService

Terms are selected by tf · idf with the document frequencies of the index. Of terms with equal weights, the order in
Java's hash table and in Lucene's priority queue decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, known_only, unsupported
from searchapp.lucene.index.mapping import (
    FLATTENED,
    ROOT,
    Field,
    Schema,
    by_depth,
    indexed_text,
    source_value,
)
from searchapp.lucene.index.reader import Mask, SegmentReader
from searchapp.lucene.queries.boolean import Bool, with_minimum
from searchapp.lucene.queries.fulltext import NAMELESS
from searchapp.lucene.queries.match_all import Ids, MatchNone
from searchapp.lucene.queries.query import Boost, Leaf, Parser, Query, Wrapper, apply_boost_parameter
from searchapp.lucene.queries.scores import ScoreRows, Scores
from searchapp.lucene.queries.term import Term
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE

MOST_TOKENS = 5_000  # of a text; further ones are ignored

Words = Counter[str]  # the terms of a field in texts or documents, in the order of Java's insertions


class WeighedTerm(NamedTuple):
    """A term of a field with its weight, tf · idf as float32."""

    field: str
    term: str
    weight: np.float32


@dataclass(frozen=True, slots=True)
class MoreLikeThis(Wrapper):
    """A disjunction of terms, which Lucene creates from texts while it rewrites."""

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return MoreLikeThis(children[0])

    @property
    def clause_count(self) -> int:
        return 1

    def rewritten(self) -> Query:
        return self.query

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        return self.query.matching(rows, boost, scope)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return self.query.scores(rows, boost, scope)

    def notation(self, schema: Schema) -> str:
        raise unsupported("the explanation of the query `more_like_this` inside `boosting`")

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        return self.query.explanation(rows, document, boost)

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        # Lucene selects terms by the statistics of the highlighted text alone.
        raise unsupported("highlights of the query `more_like_this`")


@dataclass(frozen=True, slots=True)
class _Selection:
    """The parameters that select terms."""

    parser: Parser
    most_terms: int
    least_frequency: int
    least_documents: int
    most_documents: int
    least_length: int
    most_length: int
    stop_words: frozenset[str]
    skipped: set[tuple[str, str]] = field(default_factory=set)

    def accepts(self, name: str, term: str) -> bool:
        length = len(term.encode("utf-16-le", "surrogatepass")) // 2
        is_noise = length < self.least_length or 0 < self.most_length < length
        return not is_noise and term not in self.stop_words and (name, term) not in self.skipped

    def best(self, words: Words, names: Sequence[str]) -> list[WeighedTerm]:
        """Return the terms with the greatest weights, in ascending order.

        Args:
            words: the terms with their frequencies
            names: the fields to search; each term is searched for in the one where it is most frequent
        """
        reader = self.parser.reader
        queue = _Queue(min(self.most_terms, len(words)))
        for term in _in_order_of_hashes(words):
            frequency = words[term]
            counts = [
                reader.fields[name].document_frequency(term) if name in reader.fields else 0 for name in names
            ]
            documents = max(counts)
            if not documents or frequency < self.least_frequency:
                continue
            if not self.least_documents <= documents <= self.most_documents:
                continue
            idf = np.float32(math.log((reader.whole_count + 1) / (documents + 1)) + 1.0)
            queue.offer(
                WeighedTerm(names[counts.index(documents)], term, np.float32(np.float32(frequency) * idf))
            )
        return list(queue.drain())


class _Queue:
    """The greatest weights: Lucene's `PriorityQueue`, whose heap determines which of equal ones stay."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[WeighedTerm] = []

    def offer(self, term: WeighedTerm) -> None:
        heap = self._heap
        if len(heap) < self._limit:
            heap.append(term)
            index = len(heap)
            while index > 1 and term.weight < heap[index // 2 - 1].weight:
                heap[index - 1] = heap[index // 2 - 1]
                index //= 2
            heap[index - 1] = term
        elif heap and heap[0].weight < term.weight:
            self._sink(term)

    def _sink(self, term: WeighedTerm) -> None:
        """Replace the smallest term."""
        heap = self._heap
        index, size = 1, len(heap)
        while 2 * index <= size:
            child = 2 * index
            if child < size and heap[child].weight < heap[child - 1].weight:
                child += 1
            if not heap[child - 1].weight < term.weight:
                break
            heap[index - 1] = heap[child - 1]
            index = child
        heap[index - 1] = term

    def drain(self) -> Iterator[WeighedTerm]:
        while self._heap:
            yield self._heap[0]
            last = self._heap.pop()
            if self._heap:
                self._sink(last)


def _in_order_of_hashes(words: Iterable[str]) -> list[str]:
    """Return texts in the order of Java's `HashMap`, given in the order of their insertion."""
    terms = list(words)
    capacity = 16
    while len(terms) > capacity * 3 // 4:
        capacity *= 2
    return sorted(terms, key=lambda term: _java_hash(term) & (capacity - 1))


def _java_hash(text: str) -> int:
    """Return the hash of a text with its upper bits mixed into the lower ones, as in `HashMap.hash`."""
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2").tolist()
    code = 0
    for unit in units:
        code = (31 * code + unit) & 0xFFFFFFFF
    return code ^ (code >> 16)


# Documents


def _read_items(likes: Any, label: str) -> tuple[list[str], list[Mapping[str, Any]]]:
    """Return the texts and the documents of `like` or `unlike`."""
    texts: list[str] = []
    items: list[Mapping[str, Any]] = []
    for like in likes if isinstance(likes, list | tuple) else [likes]:
        if isinstance(like, Mapping):
            items.append(_item(like, label))
        else:
            texts.append(parameters.raw_text(like, label))
    return texts, items


def _item(item: Mapping[str, Any], label: str) -> Mapping[str, Any]:
    known_only(item, {"_id", "doc", "fields"}, f"a document in {label}")
    if ("_id" in item) == ("doc" in item):
        raise invalid(f"a document in {label} needs `_id` or `doc`, and not both")
    if "doc" in item:
        parameters.mapping(item["doc"], f"`doc` in {label}")
    if "fields" in item:
        names = parameters.listed(item["fields"], f"`fields` in {label}")
        item = {**item, "fields": [parameters.raw_text(name, f"a field in {label}") for name in names]}
    return item


def _words_of_item(parser: Parser, item: Mapping[str, Any], names: Sequence[str] | None) -> dict[str, Words]:
    """Return the terms of a document by field; `names` are the default fields, None for all."""
    schema = parser.reader.schema
    selected = item.get("fields") or (None if "doc" in item else names)
    if selected is None and any(
        stored.ignore_above is not None or stored.ignores_malformed for stored in schema.fields.values()
    ):
        # Elasticsearch also searches its field `_ignored`.
        raise unsupported(
            "a document without `fields` in the query `more_like_this` on a mapping with `ignore_above` or "
            "`ignore_malformed`"
        )
    chosen = [
        stored.bound(parser.analyzers)
        for stored in schema.fields.values()
        if stored.has_terms and stored.type != FLATTENED and (selected is None or stored.name in selected)
    ]
    for name in selected or ():
        if "*" in name:
            raise unsupported(
                f"the pattern `{name}` for the fields of a document in the query `more_like_this`"
            )
    source = item.get("doc")
    if source is None:
        document_id = parameters.raw_text(item["_id"], "`_id` of a document")
        for part in (parser.reader, *parser.reader.others):
            if isinstance(part, SegmentReader) and (number := part.document(document_id)) is not None:
                (source,) = part.sources_of(np.array([number]))
                break
        else:
            return {}
    try:
        block = schema.block(source)
        texts = {
            stored: [*_texts(parser, stored, source, block[-1].values, is_new="doc" in item)]
            for stored in chosen
        }
    except (TypeError, OverflowError) as error:
        raise unsupported(
            f"a document in the query `more_like_this` that can't be indexed ({error})"
        ) from error
    if len(block) > 1 and ("doc" in item or any(schema.scope(stored.name) != ROOT for stored in chosen)):
        raise unsupported("the fields of nested objects of a document in the query `more_like_this`")
    words = {
        stored.name: Counter(_terms(parser, stored.analyzer or "keyword", texts[stored])) for stored in chosen
    }
    return {name: Counter(dict(sorted(counts.items(), key=_bytes_of))) for name, counts in words.items()}


def _bytes_of(entry: tuple[str, int]) -> bytes:
    return entry[0].encode("utf-8", "surrogatepass")


def _texts(
    parser: Parser, stored: Field, source: Mapping[str, Any], values: Mapping[str, list[Any]], *, is_new: bool
) -> Iterator[str]:
    """Yield the values of a field in a document: as indexed, or those of the source for most keywords of an index."""
    present: Iterable[Any] = stored.indexed(values.get(stored.source, ()))
    if not (stored.is_text or stored.is_stored or is_new):
        copied = [name for name, targets in parser.reader.schema.copies.items() if stored.source in targets]
        paths = [name.split(".") for name in (stored.source, *copied)]
        present = chain.from_iterable(by_depth(source_value(source, path)) for path in paths)
    for value in present:
        yield stored.normalized(indexed_text(value, stored))


def _terms(parser: Parser, analyzer: str, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for _position, terms in parser.terms(analyzer, text):
            yield from terms


# Reading

_KNOWN = (
    "fields", "like", "unlike", "max_query_terms", "min_term_freq", "min_doc_freq", "max_doc_freq",
    "min_word_length", "max_word_length", "stop_words", "analyzer", "minimum_should_match", "boost_terms", "include",
    "fail_on_unsupported_field",
)  # fmt: skip


def read_more_like_this(parser: Parser, content: Any) -> Query:
    """Read `more_like_this`."""
    query = "more_like_this"
    options = parser.options(content, query, _KNOWN)
    options = {name: value for name, value in options.items() if value is not None}

    def number(name: str, default: int) -> int:
        value = parameters.integer(options.get(name, default), f"`{name}`")
        if value < 0:
            raise invalid(f"`{name}` of the query `{query}` is {value}, but must not be negative")
        return value

    likes, like_items = _read_items(options.get("like", ()), f"`like` of the query `{query}`")
    unlikes, unlike_items = _read_items(options.get("unlike", ()), f"`unlike` of the query `{query}`")
    if not likes and not like_items:
        raise invalid(f"the query `{query}` needs `like`")
    stop_words = parameters.listed(options.get("stop_words", ()), "`stop_words`")
    most_terms = number("max_query_terms", 25)
    if most_terms == 0:
        raise invalid(f"`max_query_terms` of the query `{query}` must be positive")
    selection = _Selection(
        parser,
        most_terms,
        number("min_term_freq", 2),
        number("min_doc_freq", 5),
        number("max_doc_freq", parameters.LARGEST_INTEGER),
        number("min_word_length", 0),
        number("max_word_length", 0),
        frozenset(parameters.raw_text(word, "a word of `stop_words`") for word in stop_words),
    )
    factor = np.float32(parameters.number(options.get("boost_terms", 0), "`boost_terms`"))
    if factor < 0:
        raise unsupported(f"a negative `boost_terms` of the query `{query}`")
    minimum = parameters.raw_text(options.get("minimum_should_match", "30%"), "minimum_should_match")
    includes_items = parameters.flag(options.get("include", False), "`include`")
    analyzer = None
    if "analyzer" in options:
        analyzer = parameters.raw_text(options["analyzer"], "`analyzer`")
        parser.analyzers.named(analyzer)
    fields = _fields(parser, options, needs_field=bool(likes or unlikes))
    if fields is not None and not fields:
        raise unsupported(f"the query `{query}` without a text or keyword field")
    names = None if fields is None else [stored.name for stored in fields]
    if unlikes and fields:
        chosen = analyzer or fields[0].analyzer or "keyword"
        selection.skipped.update((fields[0].name, term) for term in _terms(parser, chosen, unlikes))
    if like_items:
        for item in unlike_items:
            for name, words in _words_of_item(parser, item, names).items():
                selection.skipped.update((name, term) for term in words)
    clauses: list[Query] = []
    if like_items:
        by_field: dict[str, Words] = {}
        for item in like_items:
            for name, words in _words_of_item(parser, item, names).items():
                accepted = {term: count for term, count in words.items() if selection.accepts(name, term)}
                by_field.setdefault(name, Counter()).update(accepted)
        best = [
            term
            for name, words in by_field.items()
            for term in _weighed(selection.best(words, [name]), factor)
        ]
        clauses.append(_disjunction(best, minimum))
    if likes and fields:
        chosen = analyzer or fields[0].analyzer or "keyword"
        words = Counter()
        for text in likes:
            terms = islice(_terms(parser, chosen, [text]), MOST_TOKENS)
            words.update(term for term in terms if selection.accepts(fields[0].name, term))
        clauses.append(_disjunction(_weighed(selection.best(words, names or ()), factor), minimum))
    result: Query = MoreLikeThis(Bool(should=tuple(clauses)))
    if like_items:
        ids = tuple(
            sorted({parameters.raw_text(item["_id"], "an id") for item in like_items if "_id" in item})
        )
        excluded = (Ids(ids),) if ids and not includes_items else ()
        result = Bool(should=(result,), must_not=excluded)
    return apply_boost_parameter(result, options, query)


def _weighed(best: Sequence[WeighedTerm], factor: np.float32) -> list[Query]:
    """Return the queries of terms, with boosts relative to the smallest weight if the factor is not 0."""
    queries: list[Query] = []
    for name, term, weight in best:
        query = Term(name, term)
        boost = np.float32(np.float32(factor * weight) / best[0].weight)
        queries.append(Boost(query, float(boost)) if factor else query)
    return queries


def _disjunction(terms: Sequence[Query], minimum: str) -> Query:
    query = with_minimum(Bool(should=tuple(terms)), minimum)
    return query if terms else MatchNone(late=True)


def _fields(parser: Parser, options: Mapping[str, Any], *, needs_field: bool) -> list[Field] | None:
    """Return the fields to search; None for all fields of documents."""
    query = "more_like_this"
    named = options.get("fields")
    if named is None:
        defaults = parser.reader.schema.default_fields
        if defaults == ("*",):
            if needs_field:
                raise invalid(f"the query `{query}` with a text needs `fields`")
            return None
        raise unsupported(f"the query `{query}` without `fields`, but with `index.query.default_field`,")
    if not parameters.listed(named, f"`fields` of the query `{query}`"):
        raise invalid(f"the query `{query}` has no `fields`")
    fails = parameters.flag(options.get("fail_on_unsupported_field", True), "`fail_on_unsupported_field`")
    fields = []
    for name in named:
        name = parameters.raw_text(name, f"a field of the query `{query}`")
        found = parser.field(name or NAMELESS)
        if found is None:
            raise unsupported(f"the unknown field {name} in the query `{query}`")
        if found.has_terms and found.type != FLATTENED:
            fields.append(found)
        elif fails:
            raise invalid(f"the query `{query}` needs text or keyword fields, {name} is {found.type}")
    return fields
