"""A handle on one version of an index: search, highlight, explain, analyze."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from searchapp.engines.base import (
    NO_TERMS,
    Body,
    Counts,
    Found,
    Index,
    IndexInfo,
    Terms,
    one_by_one,
)
from searchapp.engines.elasticsearch.analyzed import analysis_steps
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.failures import (
    NotYet,
    forbidden,
    is_forbidden,
    is_of_client,
    may_pass,
    reason,
    unreadable,
)
from searchapp.engines.elasticsearch.hits import ANSWER_FIELDS, found_of, hits_of, ids_and_scores
from searchapp.engines.elasticsearch.whole import whole
from searchapp.errors import (
    EngineBusy,
    EngineError,
    EngineRefused,
    EngineUnreachable,
    QueryRefused,
    Replaced,
)
from searchapp.model import AnalysisStep, Hits
from searchapp.progress import Advance, no_progress

BATCH_BODIES = 64
BATCH_BYTES = 1024 * 1024
BATCH_HITS = 100_000
TERMS_AT_ONCE = 1000
"""Terms that one request counts documents for."""
KNOWN_TERMS = 200_000
"""Terms whose frequencies are kept, in some 40 MB."""
VALUES_OF_A_SHARD = 10_000
"""The values that a shard counts: the counts are exact where a field has no more, whatever the number of shards."""
DEFAULT_HITS = 10
"""What Elasticsearch gives for a body without `size`."""

# Each shard counts its own terms; only with this search type do all shards rank with the statistics of the whole
# index, so that 3 shards give the scores of 1 shard to the last bit. Where there is but one, Elasticsearch searches as
# if nothing had been said (`TransportSearchAction.adjustSearchType`).
SEARCH_TYPE = "dfs_query_then_fetch"

T = TypeVar("T")


Frequencies = dict[tuple[str, str], int]
"""In how many documents a term of a field stands."""


class _Ask(NamedTuple):
    """A search of a batch, and the version of an index that it is for."""

    version: str
    body: Body


class ElasticsearchIndex:
    """An `Index` on a server.

    Args:
        numbers: the fields on numbers of its mapping
        sorts_by_id: whether what `BEST_FIRST` sorts by is each document's id as it is, see `sorts_by_id`
        known: what handles on the same version have learned of its terms
    """

    is_at_hand = False

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
        self._client = connection.client
        self._info = info
        self._numbers = numbers
        self._sorts_by_id = sorts_by_id
        self._known: Frequencies = {} if known is None else known
        self._is_asked_alone = False

    @property
    def info(self) -> IndexInfo:
        return self._info

    def search(self, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
        done = 0
        for batch in _batches(map(self._ranked, bodies)):
            try:
                responses = self._responses(batch)
            except QueryRefused as error:
                raise QueryRefused(str(error), done + error.place) from error
            for place, response in enumerate(responses):
                yield hits_of(response, done + place)
            done += len(batch)
            advance(len(batch))

    def search_beside(self, asked: Sequence[tuple[Index, Body]]) -> list[Hits]:
        asks = [
            _Ask(index.info.version, index._ranked(body))
            for index, body in asked
            if isinstance(index, ElasticsearchIndex) and index._connection is self._connection
        ]
        if len(asks) < len(asked) or self._is_asked_alone:
            return one_by_one(asked)
        try:
            return [hits_of(response, place) for place, response in enumerate(self._multi_search(asks))]
        except EngineBusy:
            raise
        except (
            EngineRefused
        ):  # by one of them, which then says so itself; or the server takes no such requests
            alone = one_by_one(asked)
            self._is_asked_alone = True
            return alone

    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[Found]:
        return [
            found_of(hit)
            for hit in self._learning(self._asked(body), _pairs(terms)[:TERMS_AT_ONCE])["hits"]["hits"]
        ]

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[Found], int]:
        asked = {**self._asked(body), "track_total_hits": True}
        hits = self._learning(asked, _pairs(terms)[:TERMS_AT_ONCE])["hits"]
        return [found_of(hit) for hit in hits["hits"]], hits["total"]["value"]

    def unknown(self, terms: Terms) -> Terms:
        left = {
            field: [term for term in some if (field, term) not in self._known]
            for field, some in terms.items()
        }
        return {field: some for field, some in left.items() if some}

    def frequencies(self, terms: Terms) -> dict[str, dict[str, int]]:
        # What is known may be forgotten while this goes on, by other threads too.
        found = {pair: self._known[pair] for pair in _pairs(terms) if pair in self._known}
        left = [pair for pair in _pairs(terms) if pair not in found]
        for start in range(0, len(left), TERMS_AT_ONCE):
            some = left[start : start + TERMS_AT_ONCE]
            found |= self._counted(self._learning({"size": 0, "track_total_hits": False}, some), some)
        return {field: {term: found[field, term] for term in some} for field, some in terms.items()}

    def _learning(self, body: Body, terms: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
        """The answer to a body, with the frequencies of some terms, which are kept."""
        if not terms:
            return self._search(body)
        filters = [{"term": {field: {"value": term}}} for field, term in terms]
        counting = {"every": {"global": {}, "aggs": {"terms": {"filters": {"filters": filters}}}}}
        answer = self._search({**body, "aggs": counting})
        if len(self._known) + len(terms) > KNOWN_TERMS:
            self._known.clear()
        self._known.update(self._counted(answer, terms))
        return answer

    @staticmethod
    def _counted(answer: Mapping[str, Any], terms: Sequence[tuple[str, str]]) -> Frequencies:
        buckets = answer["aggregations"]["every"]["terms"]["buckets"]
        return {term: bucket["doc_count"] for term, bucket in zip(terms, buckets, strict=True)}

    def counts(self, query: Body, fields: Mapping[str, int]) -> Counts:
        wanted = {
            name: {"terms": {"field": name, "size": most, "shard_size": max(most, VALUES_OF_A_SHARD)}}
            for name, most in fields.items()
        }
        body = {"query": query, "size": 0, "track_total_hits": True, **({"aggs": wanted} if wanted else {})}
        answer = self._search(body)
        values = {
            name: [(str(bucket["key"]), int(bucket["doc_count"])) for bucket in counted["buckets"]]
            for name, counted in answer.get("aggregations", {}).items()
        }
        return Counts(answer["hits"]["total"]["value"], values)

    def _asked(self, body: Body) -> Body:
        """The body as it is sent: several shards shall rank as one."""
        return body if self._info.shards == 1 else whole(body, self._numbers)

    def _ranked(self, body: Body) -> Body:
        """The body as it is sent where nothing but ids and scores of its hits is wanted."""
        asked = self._asked(body)
        return ids_and_scores(asked) if self._sorts_by_id else asked

    def _search(self, body: Body) -> Mapping[str, Any]:
        def whole(index: str) -> Mapping[str, Any]:
            answer: Mapping[str, Any] = self._client.search(
                index=index, search_type=SEARCH_TYPE, body=dict(body)
            ).body
            if problem := self._partial(answer, index):
                raise NotYet(problem)
            return answer

        return self._on_this_version("search", whole)

    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        detail = self._on_this_version(
            "analyze",
            lambda index: self._client.indices.analyze(
                index=index, text=text, field=field, analyzer=analyzer, explain=True
            ),
        )["detail"]
        return analysis_steps(detail)

    def twin(self) -> ElasticsearchIndex:
        return ElasticsearchIndex(
            self._connection, self._info, self._numbers, self._known, sorts_by_id=self._sorts_by_id
        )

    def close(self) -> None:
        """Nothing is open: the connection is the engine's."""

    def _responses(self, bodies: Sequence[Body]) -> list[Mapping[str, Any]]:
        """The responses to a batch.

        A server reads all searches of a batch before it makes the first one, and refuses the whole batch for one that
        it can't read, without saying which: halves of the batch, and halves of those, find it.

        Raises:
            QueryRefused: with the place in the batch.
        """
        try:
            return self._multi_search([_Ask(self._info.version, body) for body in bodies])
        except EngineRefused as error:
            problem = unreadable(error.__cause__)
            if problem is None:
                raise
            if len(bodies) == 1:
                raise self._query_refused(problem, 0) from error
        half = len(bodies) // 2
        first = self._responses(bodies[:half])
        try:
            return first + self._responses(bodies[half:])
        except QueryRefused as error:
            raise QueryRefused(str(error), half + error.place) from error

    def _multi_search(self, asks: Sequence[_Ask]) -> list[Mapping[str, Any]]:
        """The responses; searches that were put off, or answered by some shards only, are sent again."""
        responses: dict[int, Mapping[str, Any]] = {}
        is_one_index = all(ask.version == self._info.version for ask in asks)

        def send_the_rest(index: str) -> None:
            rest = [place for place in range(len(asks)) if place not in responses]
            heads = [{} if is_one_index else {"index": asks[place].version} for place in rest]
            lines = [
                line for place, head in zip(rest, heads, strict=True) for line in (head, asks[place].body)
            ]
            answer = self._client.msearch(
                index=index if is_one_index else None,
                searches=lines,
                search_type=SEARCH_TYPE,
                filter_path=ANSWER_FIELDS,
            )
            problem: EngineError | None = None
            for place, response in zip(rest, answer["responses"], strict=True):
                put_off = self._put_off(response, asks[place].version)
                if put_off is None:
                    responses[place] = self._answered(response, place)
                problem = put_off or problem
            if problem is not None:
                raise NotYet(problem)

        self._on_this_version("search", send_the_rest)
        return [responses[place] for place in range(len(asks))]

    def _on_this_version(self, what: str, request: Callable[[str], T]) -> T:
        """Send a request to this handle's version of the index."""
        index = self._info.version
        try:
            return self._connection.call(f"{what} in {index}", lambda: request(index))
        except EngineRefused as error:
            if not isinstance(error, EngineBusy) and not is_of_client(error):
                self._require_version(error)
            raise

    def _require_version(self, error: EngineRefused | None = None) -> None:
        """Raise `Replaced` if this version is gone: what a server says of a version that goes just now varies."""
        index = self._info.version
        exists = self._connection.call(f"look for {index}", lambda: self._client.indices.exists(index=index))
        if not exists:
            raise Replaced(index) from error

    def _answered(self, response: Mapping[str, Any], place: int) -> Mapping[str, Any]:
        """The response to a search of a batch, unless the server refused that search."""
        if "error" not in response:
            return response
        if is_forbidden(response["error"]):
            what = f"search in {self._info.version}"
            raise forbidden(self._connection.url, what, reason(response["error"]))
        raise self._query_refused(reason(response["error"]), place)

    def _query_refused(self, problem: str, place: int) -> QueryRefused:
        return QueryRefused(
            f"{self._connection.url} refused a query on {self._info.version}: {problem}", place
        )

    def _put_off(self, response: Mapping[str, Any], version: str) -> EngineError | None:
        """Why the response to a search of a batch is none to use, if another attempt may bring one."""
        error = response.get("error")
        if error is None:
            return self._partial(response, version)
        if not may_pass(response["status"], error):
            return None
        url, after = self._connection.url, f"even after {self._connection.patience:.0f} s ({reason(error)})"
        if response["status"] == 429:
            return EngineBusy(f"{url} is too busy to search, {after}: try again when it has less to do")
        return EngineUnreachable(
            f"{url} could not search {version}, {after}: "
            "look at the cluster's health and run the command again"
        )

    def _partial(self, response: Mapping[str, Any], version: str) -> EngineError | None:
        """Why a response is not that of the whole index, if it is not: it would rank silently wrong."""
        shards = response["_shards"]
        if not response["timed_out"] and not shards["failed"] and shards["successful"] == shards["total"]:
            return None
        failures = shards.get("failures")
        detail = reason(failures[0].get("reason")) if failures else "some shards did not answer"
        return EngineUnreachable(
            f"{self._connection.url} answers for a part of {version} only, even after "
            f"{self._connection.patience:.0f} s ({detail}): look at the cluster's health and run the command again"
        )


def _pairs(terms: Terms) -> list[tuple[str, str]]:
    return [(field, term) for field, some in terms.items() for term in some]


def _batches(bodies: Iterable[Body]) -> Iterator[list[Body]]:
    """Bodies in groups of at most `BATCH_BODIES` and, a single larger one apart, `BATCH_BYTES` and `BATCH_HITS`."""
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
