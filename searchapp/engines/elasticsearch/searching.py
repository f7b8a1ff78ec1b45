"""A handle on one version of an index: search, highlight, explain, analyze."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeVar

from elasticsearch import Elasticsearch

from searchapp.engines.base import (
    ALL_DOCUMENTS,
    BEST_FIRST,
    NO_TERMS,
    Index,
    SearchHit,
    Terms,
    hit_score,
    search_hit,
    search_one_by_one,
)
from searchapp.engines.elasticsearch.analysis import analysis_steps
from searchapp.engines.elasticsearch.connection import (
    Connection,
    NotYet,
    forbidden,
    is_forbidden,
    is_of_client,
    may_pass,
    reason,
    unreadable,
)
from searchapp.errors import EngineBusy, EngineError, EngineRefused, EngineUnreachable, QueryRefused, Replaced
from searchapp.lucene.index.index_settings import mapped_fields
from searchapp.lucene.queries.dsl import normal_body
from searchapp.lucene.search.spelling import (
    SHORTEST_TERM,
    SimilarTerm,
    closest,
    edit_distance,
    edits_allowed,
)
from searchapp.model import (
    AnalysisStep,
    Body,
    Counts,
    Document,
    Hits,
    IndexInfo,
    document_of,
)
from searchapp.progress import Advance, no_progress

# The fields to return for a batch of searches.
ANSWER_FIELDS = [
    "responses.status",
    "responses.error",
    "responses.timed_out",
    "responses._shards.total",
    "responses._shards.successful",
    "responses._shards.failed",
    "responses._shards.failures",
    "responses.hits.hits._id",
    "responses.hits.hits._score",
    "responses.hits.hits.sort",
]

# The keys of a hit that do not differ between servers.
HIT_KEYS = ("_id", "_score", "_source", "highlight", "_explanation", "fields", "sort")

_LEAVES_AS_IT_IS = frozenset({"type", "index", "store", "similarity", "norms", "copy_to", "fields", "meta"})


def sorts_by_id(properties: Mapping[str, Any]) -> bool:
    """Return whether hits are sorted by unmodified ids, given the `properties` of a mapping."""
    field = properties.get("id", {})  # unknown options may fold ids or omit long ones
    return bool(field.get("type") == "keyword" and field.keys() <= _LEAVES_AS_IT_IS)


def ids_and_scores(body: Body) -> Body:
    """Return the body for a search that needs only ids and scores; the index must sort by id."""
    if body.get("sort") != BEST_FIRST:
        return body
    # The ids come from the sort values: decompressing stored ids takes half the time of a deep ranking.
    return {**body, "_source": False, "stored_fields": "_none_"}


def hits_of(response: Mapping[str, Any], number: int) -> Hits:
    """Return the hits of the query with the index `number` in a batch.

    Raises:
        EngineRefused: equal scores can't be sorted by id.
    """
    hits = response.get("hits", {}).get("hits", ())  # `filter_path` drops empty lists
    ids = [hit["_id"] if "_id" in hit else hit["sort"][-1] for hit in hits]
    if not all(isinstance(id_, str) for id_ in ids):
        raise EngineRefused(
            "a document's id is missing from the sort field: index again with a mapping without the "
            "setting `index.mapping.ignore_above`"
        )
    return Hits(ids, [hit_score(hit, number) for hit in hits])


# Types of fields whose minimum and maximum a shard knows.
NUMBERS = frozenset(
    {
        "long",
        "integer",
        "short",
        "byte",
        "double",
        "float",
        "half_float",
        "scaled_float",
        "unsigned_long",
        "date",
        "date_nanos",
        "ip",
    }
)


def number_fields(properties: Mapping[str, Any]) -> frozenset[str]:
    """Return the full names of numeric fields in the `properties` of a mapping."""
    return frozenset(field.name for field in mapped_fields(properties) if field.type in NUMBERS)


def shard_safe(body: Body, numbers: frozenset[str], field: str = "id") -> Body:
    """Return the body for an index of several shards with the given numeric fields; highlights stay the same.

    `field` is an indexed text or keyword field.
    """
    query = body.get("query")
    safe = _ShardSafeQuery(numbers, field).query(query)
    if safe == query:
        return body
    highlight = body.get("highlight")
    marks = {"highlight": {"highlight_query": query, **highlight}} if isinstance(highlight, Mapping) else {}
    return {**body, "query": safe, **marks}


# `dfs_query_then_fetch` collects the statistics of all shards before ranking, so that they rank as one shard. But
# each shard first simplifies the query, and reports no statistics for the clauses that it drops:
# - A shard drops the query around a required, filtering or excluding clause (on numbers, or on the existence of a
#   field) that matches none or all of its documents. The rewritten clause is "this clause or a missing document, but
#   not another missing document", which a shard cannot simplify.
# - A phrase reports no statistics from a shard that has none of its words. The added clause scores the same words and
#   never matches.
# Clauses that never match change no score. Equal clauses get equal additions, because Lucene merges a clause of
# `should` with an equal clause of `filter`.
class _ShardSafeQuery:
    """Rewrites a query; unknown parts stay unchanged, because the server rejects invalid ones."""

    def __init__(self, numbers: frozenset[str], field: str) -> None:
        self._numbers = numbers
        self._field = field
        self._clause_numbers: dict[str, int] = {}

    def query(self, query: Any) -> Any:
        if isinstance(query, list):
            return [self.query(clause) for clause in query]
        if not isinstance(query, Mapping) or len(query) != 1:
            return query
        ((kind, content),) = query.items()
        if not isinstance(content, Mapping):
            return query
        if kind in _INSIDE:
            inner = {name: self.query(content[name]) for name in _INSIDE[kind] if name in content}
            return {kind: {**content, **inner}}
        if kind == "match_phrase":
            words = _words(content)
            if words is None:
                return query
            scored_words = {"bool": {"must": [words], "filter": [self._never(query, "required")]}}
            return {"bool": {"should": [query, scored_words], "minimum_should_match": 1}}
        if kind in ("range", "exists", "geo_bounding_box") or _searches_any(self._numbers, kind, content):
            return {
                "bool": {
                    "should": [query, self._never(query, "required")],
                    "must_not": [self._never(query, "excluded")],
                    "minimum_should_match": 1,
                }
            }
        return query

    def _never(self, query: Mapping[str, Any], where: str) -> dict[str, Any]:
        # Equal required and excluded clauses would let a shard drop the query, so `where` distinguishes them.
        number = self._clause_numbers.setdefault(json.dumps(query, sort_keys=True), len(self._clause_numbers))
        return {"term": {self._field: {"value": f"\u0000 no document {number} {where}"}}}


# Keys of subqueries whose scores or documents count.
_INSIDE: Mapping[str, tuple[str, ...]] = {
    "bool": ("must", "should", "filter", "must_not"),
    "dis_max": ("queries",),
    "constant_score": ("filter",),
    "function_score": ("query",),
    "boosting": ("positive",),
    "nested": ("query",),
}


def _words(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the query that scores the words of a phrase; None for an unknown form."""
    if len(content) != 1:
        return None
    ((field, content_of_field),) = content.items()
    described = content_of_field if isinstance(content_of_field, Mapping) else {"query": content_of_field}
    if "query" not in described:
        return None
    return {"match": {field: {name: described[name] for name in ("query", "analyzer") if name in described}}}


def _searches_any(fields: Set[str], kind: str, content: Mapping[str, Any]) -> bool:
    """Return whether a query may search one of the fields; a pattern may stand for each of them."""
    if kind != "multi_match":
        return kind in ("term", "terms", "match") and not content.keys().isdisjoint(fields)
    listed = content.get("fields") or ["*"]
    names = listed if isinstance(listed, list | tuple) else [listed]
    return any("*" in str(name) or str(name).partition("^")[0] in fields for name in names)


BATCH_BODIES = 64
BATCH_BYTES = 1024 * 1024
BATCH_HITS = 100_000
TERMS_AT_ONCE = 1000  # maximum number of terms in a request for document frequencies
KNOWN_TERMS = 200_000  # cached document frequencies, about 40 MB
SIMILAR_TERMS = 50  # suggestions for a term, among which are the most frequent of the closest ones
# Counts are exact for fields with at most this many values, for any number of shards.
VALUES_OF_A_SHARD = 10_000
DEFAULT_HITS = 10  # number of hits for a body without `size`

# All shards rank with the statistics of the whole index, so that 3 shards give the scores of 1 shard, bit for bit.
# With a single shard, Elasticsearch ignores the search type (`TransportSearchAction.adjustSearchType`).
SEARCH_TYPE = "dfs_query_then_fetch"


def search_header(body: Body, index: str | None = None) -> dict[str, str]:
    """Return the header of a search in a multi-search; None for the index of the request.

    With `knn`, a server chooses `SEARCH_TYPE` itself, and rejects any type.
    """
    values = {"index": index, "search_type": None if body.get("knn") else SEARCH_TYPE}
    return {key: value for key, value in values.items() if value is not None}


T = TypeVar("T")


Frequencies = dict[tuple[str, str], int]  # document frequencies by field and term


class SearchItem(NamedTuple):
    """A body of a batch, and the version that it searches."""

    version: str
    body: Body


class ElasticsearchIndex:
    """An `Index` on a server.

    Args:
        numbers: numeric fields of the mapping.
        known: document frequencies that handles on the same version share.
        sorts_by_id: whether `BEST_FIRST` sorts by unmodified ids, see `sorts_by_id`.
    """

    is_local = False
    text_or_id = "id"  # a text or keyword field

    def __init__(
        self,
        connection: Connection,
        info: IndexInfo,
        numbers: frozenset[str] = frozenset(),
        known: Frequencies | None = None,
        *,
        sorts_by_id: bool = False,
    ) -> None:
        self._connection = connection
        self._info = info
        self._numbers = numbers
        self._sorts_by_id = sorts_by_id
        self._known: Frequencies = {} if known is None else known
        self._is_asked_alone = False
        self._index: str | None = info.version  # None if bodies name what they search
        self._analyzing_index = info.version

    @property
    def info(self) -> IndexInfo:
        return self._info

    def search(self, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
        done = 0
        for batch in _batches(map(self._ranking_body, bodies)):
            try:
                responses = self._responses(batch)
            except QueryRefused as error:
                raise QueryRefused.of(error, done + error.place) from error
            for number, response in enumerate(responses):
                yield self._hits_of(response, done + number)
            done += len(batch)
            advance(len(batch))

    def search_beside(self, requests: Sequence[tuple[Index, Body]]) -> list[Hits]:
        own_asks = [
            SearchItem(index.info.version, index._ranking_body(body))
            for index, body in requests
            if isinstance(index, ElasticsearchIndex) and index._connection is self._connection
        ]
        if len(own_asks) < len(requests) or self._is_asked_alone:
            return search_one_by_one(requests)
        try:
            responses = self._multi_search(own_asks)
            return [self._hits_of(response, number) for number, response in enumerate(responses)]
        except EngineBusy:
            raise
        except EngineRefused:  # one body is invalid and then fails alone; or the server rejects such requests
            answers = search_one_by_one(requests)
            self._is_asked_alone = True
            return answers

    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[SearchHit]:
        hits = self._search_and_count(self._sent_body(body), _pairs(terms)[:TERMS_AT_ONCE])[0]["hits"]
        return [self._search_hit(hit) for hit in hits["hits"]]

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[SearchHit], int]:
        sent_body = {**self._sent_body(body), "track_total_hits": True}
        hits = self._search_and_count(sent_body, _pairs(terms)[:TERMS_AT_ONCE])[0]["hits"]
        return [self._search_hit(hit) for hit in hits["hits"]], hits["total"]["value"]

    def answer(self, body: Body) -> dict[str, Any]:
        response = self._search(self._sent_body(body))
        hits = [{key: hit[key] for key in HIT_KEYS if key in hit} for hit in response["hits"]["hits"]]
        parts = {key: response[key] for key in ("aggregations", "suggest") if key in response}
        return {"hits": {**response["hits"], "hits": hits}, **parts}

    def unknown(self, terms: Terms) -> Terms:
        unknown: dict[str, list[str]] = {}
        for field, term in _pairs(terms):
            if (field, term) not in self._known:
                unknown.setdefault(field, []).append(term)
        return unknown

    def frequencies(self, terms: Terms) -> dict[str, dict[str, int]]:
        # Another thread may clear `_known` concurrently.
        counts = {pair: self._known[pair] for pair in _pairs(terms) if pair in self._known}
        unknown = [pair for pair in _pairs(terms) if pair not in counts]
        for start in range(0, len(unknown), TERMS_AT_ONCE):
            batch = unknown[start : start + TERMS_AT_ONCE]
            counts |= self._search_and_count({"size": 0, "track_total_hits": False}, batch)[1]
        return {field: {term: counts[field, term] for term in of_field} for field, of_field in terms.items()}

    def similar_terms(self, terms: Terms, size: int) -> dict[str, dict[str, list[SimilarTerm]]]:
        pairs = [(field, term) for field, term in _pairs(terms) if edits_allowed(term)]
        suggestions = {
            str(number): {
                "text": term,
                "term": {
                    "field": field,
                    "analyzer": "keyword",  # the text is a term
                    "max_edits": edits_allowed(term),
                    "prefix_length": 1,
                    "min_word_length": SHORTEST_TERM,
                    "size": SIMILAR_TERMS,
                    "sort": "score",  # the fewest edits first
                },
            }
            for number, (field, term) in enumerate(pairs)
        }
        similar: dict[str, dict[str, list[SimilarTerm]]] = {
            field: {term: [] for term in of_field} for field, of_field in terms.items()
        }
        if not pairs:
            return similar
        answer = self._search({"size": 0, "track_total_hits": False, "suggest": suggestions})["suggest"]
        for number, (field, term) in enumerate(pairs):
            options = [option for entry in answer[str(number)] for option in entry["options"]]
            candidates = (
                SimilarTerm(option["text"], edit_distance(term, option["text"]), option["freq"])
                for option in options
            )
            similar[field][term] = closest(candidates, size)
        return similar

    def _search_and_count(
        self, body: Body, terms: Sequence[tuple[str, str]]
    ) -> tuple[Mapping[str, Any], Frequencies]:
        if not terms:
            return self._search(body), {}
        filters = [{"term": {field: {"value": term}}} for field, term in terms]
        counting = {"every": {"global": {}, "aggs": {"terms": {"filters": {"filters": filters}}}}}
        answer = self._search({**body, "aggs": counting})
        buckets = answer["aggregations"]["every"]["terms"]["buckets"]
        counts = {term: bucket["doc_count"] for term, bucket in zip(terms, buckets, strict=True)}
        if len(self._known) + len(terms) > KNOWN_TERMS:
            self._known.clear()
        self._known.update(counts)
        return answer, counts

    def counts(self, query: Body, fields: Mapping[str, int]) -> Counts:
        aggregations = {
            name: {"terms": {"field": name, "size": most, "shard_size": max(most, VALUES_OF_A_SHARD)}}
            for name, most in fields.items()
        }
        body = {
            "query": query,
            "size": 0,
            "track_total_hits": True,
            **({"aggs": aggregations} if aggregations else {}),
        }
        answer = self._search(body)
        values = {
            name: [(str(bucket["key"]), int(bucket["doc_count"])) for bucket in counted["buckets"]]
            for name, counted in answer.get("aggregations", {}).items()
        }
        return Counts(answer["hits"]["total"]["value"], values)

    def _hits_of(self, response: Mapping[str, Any], number: int) -> Hits:
        return hits_of(response, number)

    def _search_hit(self, hit: Mapping[str, Any]) -> SearchHit:
        return search_hit(hit)

    def _sent_body(self, body: Body) -> Body:
        """Return the body to send, for equal rankings from several segments and shards."""
        sent = normal_body(body)
        return sent if self._info.shards == 1 else shard_safe(sent, self._numbers, self.text_or_id)

    def _ranking_body(self, body: Body) -> Body:
        sent_body = self._sent_body(body)
        return ids_and_scores(sent_body) if self._sorts_by_id else sent_body

    def _search(self, body: Body) -> Mapping[str, Any]:
        def search(client: Elasticsearch) -> Mapping[str, Any]:
            answer: Mapping[str, Any] = client.search(
                index=self._index, search_type=search_header(body).get("search_type"), body=dict(body)
            ).body
            if problem := self._partial(answer, self._info.version):
                raise NotYet(problem)
            return answer

        return self._on_this_version("search", search)

    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        detail = self._on_this_version(
            "analyze",
            lambda client: client.indices.analyze(
                index=self._analyzing_index, text=text, field=field, analyzer=analyzer, explain=True
            ),
        )["detail"]
        return analysis_steps(detail)

    def stored_documents(self) -> Iterator[Document]:
        body = dict(ALL_DOCUMENTS)
        while hits := self._search(body)["hits"]["hits"]:
            yield from map(self._stored_document, hits)
            body["search_after"] = hits[-1]["sort"]

    def _stored_document(self, hit: Mapping[str, Any]) -> Document:
        return document_of(hit["_id"], hit["_source"])

    def twin(self) -> ElasticsearchIndex:
        return ElasticsearchIndex(
            self._connection, self._info, self._numbers, self._known, sorts_by_id=self._sorts_by_id
        )

    def close(self) -> None:
        """Do nothing: the engine owns the connection."""

    def _responses(self, bodies: Sequence[Body]) -> list[Mapping[str, Any]]:
        """Return the responses to a batch.

        Raises:
            QueryRefused: has the index of the body in the batch.
        """
        try:
            return self._multi_search([SearchItem(self._info.version, body) for body in bodies])
        except EngineRefused as error:
            problem = unreadable(error.__cause__)
            if problem is None:
                raise
            if len(bodies) == 1:
                raise self._query_refused(problem, 0) from error
        # The server rejects the whole batch without naming the invalid body: bisect it.
        half = len(bodies) // 2
        first = self._responses(bodies[:half])
        try:
            return first + self._responses(bodies[half:])
        except QueryRefused as error:
            raise QueryRefused.of(error, half + error.place) from error

    def _multi_search(self, asks: Sequence[SearchItem]) -> list[Mapping[str, Any]]:
        """Return the responses; repeat searches that were rejected as busy or incomplete."""
        responses: dict[int, Mapping[str, Any]] = {}
        own = self._info.version
        index = self._index if all(ask.version == own for ask in asks) else None
        has_indexes = index is None and self._index is not None

        def send_rest(client: Elasticsearch) -> None:
            missing_numbers = [number for number in range(len(asks)) if number not in responses]
            lines: list[Body] = []
            for number in missing_numbers:
                version, body = asks[number]
                lines += [search_header(body, version if has_indexes else None), body]
            answer = client.msearch(index=index, searches=lines, filter_path=ANSWER_FIELDS)
            problem: EngineError | None = None
            for number, response in zip(missing_numbers, answer["responses"], strict=True):
                retry_error = self._retry_error(response, asks[number].version)
                if retry_error is None:
                    responses[number] = self._checked(response, number)
                problem = retry_error or problem
            if problem is not None:
                raise NotYet(problem)

        self._on_this_version("search", send_rest)
        return [responses[number] for number in range(len(asks))]

    def _on_this_version(self, action: str, request: Callable[[Elasticsearch], T]) -> T:
        """Send a request for this handle's version of the index.

        Raises:
            Replaced: the version is gone; the server's own error for this case varies.
        """
        index = self._info.version
        try:
            return self._connection.call(f"{action} in {index}", request)
        except EngineRefused as error:
            if isinstance(error, EngineBusy) or is_of_client(error):
                raise
            if not self._connection.call(
                f"look for {index}", lambda client: client.indices.exists(index=index)
            ):
                raise Replaced(index) from error
            raise

    def _checked(self, response: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        if "error" not in response:
            return response
        if is_forbidden(response["error"]):
            action = f"search in {self._info.version}"
            raise forbidden(self._connection.url, action, reason(response["error"]))
        raise self._query_refused(reason(response["error"]), number)

    def _query_refused(self, problem: str, number: int) -> QueryRefused:
        return QueryRefused(
            f"{self._connection.url} refused a query on {self._info.version}: {problem}", number
        )

    def _retry_error(self, response: Mapping[str, Any], version: str) -> EngineError | None:
        """Return the error if the search of a batch must be repeated."""
        error = response.get("error")
        if error is None:
            return self._partial(response, version)
        if not may_pass(response["status"], error):
            return None
        url, after = self._connection.url, f"even after {self._connection.patience:.0f} s ({reason(error)})"
        if response["status"] == 429:
            return EngineBusy(f"{url} is too busy to search, {after}: try again later")
        return EngineUnreachable(
            f"{url} could not search {version}, {after}: check the cluster's health and run the command again"
        )

    def _partial(self, response: Mapping[str, Any], version: str) -> EngineError | None:
        """Return the error if shards are missing from a response, whose ranking would be wrong."""
        shards = response["_shards"]
        if not response["timed_out"] and not shards["failed"] and shards["successful"] == shards["total"]:
            return None
        failures = shards.get("failures")
        detail = reason(failures[0].get("reason")) if failures else "some shards did not answer"
        return EngineUnreachable(
            f"{self._connection.url} searched only some shards of {version}, even after "
            f"{self._connection.patience:.0f} s ({detail}): check the cluster's health and run the command again"
        )


def _pairs(terms: Terms) -> list[tuple[str, str]]:
    return [(field, term) for field, of_field in terms.items() for term in of_field]


def _batches(bodies: Iterable[Body]) -> Iterator[list[Body]]:
    batch: list[Body] = []
    size = hits = 0
    for body in bodies:
        length, depth = len(json.dumps(body)), int(body.get("size", DEFAULT_HITS))
        if batch and (len(batch) == BATCH_BODIES or size + length > BATCH_BYTES or hits + depth > BATCH_HITS):
            yield batch
            batch, size, hits = [], 0, 0
        batch.append(body)
        size += length
        hits += depth
    if batch:
        yield batch
