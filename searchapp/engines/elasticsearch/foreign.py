"""Indexes of other programs, which are only read: privileges `read` and `view_index_metadata` suffice.

A handle reads one point in time: other programs may write meanwhile, but all its answers are of the same documents.
Its `IndexInfo` has a digest of the mapping, the unique ids of the indexes, and the number, maximum and sum of the
sequence numbers of all documents, which changes with every added, changed or removed document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from elasticsearch import ApiError, Elasticsearch

from searchapp.engines.base import BEST_FIRST, Index, SearchHit, search_hit, search_one_by_one
from searchapp.engines.elasticsearch.connection import Connection, is_of_client, kinds
from searchapp.engines.elasticsearch.searching import (
    ElasticsearchIndex,
    Frequencies,
    SearchItem,
    hits_of,
    number_fields,
)
from searchapp.errors import DataError, EngineBusy, EngineError, EngineRefused, Replaced
from searchapp.files import digest_json
from searchapp.formats.problems import shown, unusable_id
from searchapp.lucene.analysis.options import LIMITS
from searchapp.lucene.analysis.registry import DEFAULT, AnalysisRegistry
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import BadSettings, NotSupported
from searchapp.lucene.index.index_settings import canonical, mapped_fields
from searchapp.lucene.index.mapping import analyzers_of
from searchapp.model import AnalysisStep, Body, Document, ForeignIndex, Hit, Hits, IndexInfo, document_of

T = TypeVar("T")

KEEP_ALIVE = "30m"  # after the last request of a handle, the server forgets its point in time

# The settings that affect rankings.
_KEPT_SETTINGS = ("analysis", "similarity", *LIMITS)

_LONGEST_MARKED_TEXT = 1_000_000  # characters: the server rejects highlights of longer texts

_FORGOTTEN = "search_context_missing_exception"


@dataclass(frozen=True, slots=True)
class ForeignState:
    """The indexes behind a name: the first one, their unique ids, shards, and common mapping."""

    first: str
    ids: Mapping[str, str]
    shards: int
    created: str
    mapping: dict[str, Any]


def read_foreign(connection: Connection, index: str) -> ForeignState:
    """Read mappings and settings of the indexes behind a name, an alias or a pattern.

    Raises:
        EngineRefused: there is none, they define a field or an analyzer differently, or a privilege is missing.
    """
    found = connection.look_up(
        f"read the mapping of {index}",
        lambda client: client.indices.get(index=index, features=["mappings", "settings"]),
    )
    if not found:
        raise EngineRefused(
            f"{connection.url} has no index, alias or pattern {index} that this user may see: check its name"
        )
    kept: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    fields: dict[str, Mapping[str, Any]] = {}
    ids: dict[str, str] = {}
    shards = created = 0
    for name in sorted(found):
        settings, mappings = found[name]["settings"]["index"], found[name]["mappings"]
        properties = mappings.get("properties", {})
        if mappings.get("_source", {}).get("enabled") is False:
            raise EngineRefused(f"{name} does not store its documents (`_source` is disabled)")
        kept_here = {key: settings[key] for key in _KEPT_SETTINGS if key in settings}
        described = {field.name: _without_inner(field.described) for field in mapped_fields(properties)}
        differing = [field for field in described if fields.get(field, described[field]) != described[field]]
        if ids and (kept_here != kept or differing):
            part = f"the field {differing[0]}" if differing else "their analysis"
            raise EngineRefused(
                f"{name} and other indexes of {index} differ in {part}: name indexes with equal mappings, separated by "
                "commas"
            )
        kept = kept_here
        fields |= described
        _merge(merged, properties)
        ids[name] = settings["uuid"]
        shards += int(settings.get("number_of_shards", 1))
        created = max(created, int(settings.get("creation_date", 0)))
    mapping = canonical({"settings": kept, "mappings": {"properties": merged}})
    date = datetime.fromtimestamp(created / 1000, UTC).isoformat(timespec="seconds")
    return ForeignState(min(ids), ids, shards, date, mapping)


def _without_inner(described: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if key not in ("properties", "fields")}


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, Mapping):
            present = into.get(key)
            into[key] = dict(present) if isinstance(present, Mapping) else {}
            _merge(into[key], value)
        else:
            into[key] = value


def foreign_info(
    connection: Connection, name: str, foreign: ForeignIndex, mapping: Mapping[str, Any]
) -> IndexInfo:
    """Return the present state of an index; see `Engine.foreign_info`."""
    return _info(connection, name, foreign, mapping, _state(connection, foreign, mapping), None)


def open_foreign(
    connection: Connection, name: str, foreign: ForeignIndex, mapping: Mapping[str, Any]
) -> PointInTimeIndex:
    """Return a handle on the present state of an index; see `Engine.open_foreign`."""
    state = _state(connection, foreign, mapping)
    point = connection.call(
        f"open {foreign.index}",
        lambda client: client.open_point_in_time(index=foreign.index, keep_alive=KEEP_ALIVE),
    )["id"]
    info = _info(connection, name, foreign, mapping, state, point)
    return PointInTimeIndex(connection, info, foreign, mapping, state.first, point)


def _state(connection: Connection, foreign: ForeignIndex, mapping: Mapping[str, Any]) -> ForeignState:
    state = read_foreign(connection, foreign.index)
    if path := _difference(mapping, state.mapping):
        raise EngineRefused(
            f"{path} of {foreign.index} has changed since the task's mapping was read: `searchapp tasks new NEW.toml "
            f"--from-index {foreign.index}` writes the present one to NEW.mapping.json, for `mapping` in the task file"
        )
    return state


def _difference(mapping: Mapping[str, Any], present: Mapping[str, Any]) -> str:
    """Return the path of the first part of a mapping that the present one lacks; new fields do not count."""
    for key, value in mapping.items():
        other = present.get(key, {} if isinstance(value, Mapping) else None)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            inner = "" if key == "_meta" else _difference(value, other)
            if inner:
                return f"{key}.{inner}"
        elif other != value:
            return key
    return ""


def _info(
    connection: Connection,
    name: str,
    foreign: ForeignIndex,
    mapping: Mapping[str, Any],
    state: ForeignState,
    point: str | None,
) -> IndexInfo:
    body: dict[str, Any] = {"size": 0, "track_total_hits": True, **_reference(point)}

    def count(client: Elasticsearch, aggregations: Mapping[str, Any]) -> Any:
        index = None if point else foreign.index
        return client.search(index=index, body={**body, **aggregations}, allow_partial_search_results=False)

    action = f"count the documents of {foreign.index}"
    try:
        numbers = {"aggs": {"numbers": {"stats": {"field": "_seq_no"}}}}
        answer = connection.call(action, lambda client: count(client, numbers))
        sequence = answer["aggregations"]["numbers"]
    except EngineRefused as error:
        if isinstance(error, EngineBusy) or is_of_client(error):
            raise
        answer = connection.call(action, lambda client: count(client, {}))  # sequence numbers can't be read
        sequence = {}
    documents = int(answer["hits"]["total"]["value"])
    mapping_digest = digest_json(mapping)
    changing = [documents, sequence.get("max"), sequence.get("sum")]
    return IndexInfo(
        name=name,
        version=foreign.index,
        documents=documents,
        digest=digest_json({"mapping": mapping_digest, "indexes": state.ids, "documents": changing}),
        mapping_digest=mapping_digest,
        shards=state.shards,
        created=state.created,
        is_foreign=True,
    )


def _reference(point: str | None) -> dict[str, Any]:
    return {"pit": {"id": point, "keep_alive": KEEP_ALIVE}} if point else {}


class PointInTimeIndex(ElasticsearchIndex):
    """An `Index` on one point in time of another program's index.

    Its documents have the ids, texts and fields that a `ForeignIndex` describes. `ids` queries take these ids. Equal
    scores are sorted by the id field or, without one, by shard and position, which only this point in time has.

    Raises:
        Replaced: the server has forgotten the point in time.
    """

    def __init__(
        self,
        connection: Connection,
        info: IndexInfo,
        foreign: ForeignIndex,
        mapping: Mapping[str, Any],
        first: str,
        point: str,
        known: Frequencies | None = None,
        places: dict[str, int] | None = None,
        *,
        is_twin: bool = False,
    ) -> None:
        numbers = number_fields(mapping["mappings"]["properties"])
        super().__init__(connection, info, numbers, known, sorts_by_id=foreign.id is not None)
        self._index = None
        self._foreign = foreign
        self._mapping = mapping
        self._analyzing_index = first
        self._point = point
        self._is_twin = is_twin
        self._is_closed = False
        self._places = {} if places is None else places  # of the last hits of answers, by id
        self.text_or_id = foreign.id or foreign.text[0]

    def search_beside(self, requests: Sequence[tuple[Index, Body]]) -> list[Hits]:
        return search_one_by_one(requests)

    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        # The server's analysis needs the privilege `manage`.
        if field is not None:
            fields = {
                mapped.name: mapped for mapped in mapped_fields(self._mapping["mappings"]["properties"])
            }
            analyzer = fields[field].described.get("analyzer", DEFAULT)
        assert analyzer is not None
        with suppress(NotSupported, BadSettings):
            return list(self._analyzers.analyzer(analyzer).steps(text))
        return super().analyze(text, analyzer=analyzer)

    @cached_property
    def _analyzers(self) -> AnalysisRegistry:
        return analyzers_of(self._mapping)

    def twin(self) -> PointInTimeIndex:
        return PointInTimeIndex(
            self._connection,
            self._info,
            self._foreign,
            self._mapping,
            self._analyzing_index,
            self._point,
            self._known,
            self._places,
            is_twin=True,
        )

    def close(self) -> None:
        """Let the server forget the point in time, as it does anyway after a while; a twin does nothing."""
        if self._is_twin or self._is_closed:
            return
        self._is_closed = True
        with suppress(EngineError):
            self._connection.cleanup_connection().look_up(
                "close a point in time", lambda client: client.close_point_in_time(id=self._point)
            )

    def _search(self, body: Body) -> Mapping[str, Any]:
        return super()._search(self._pointed(body))

    def _multi_search(self, asks: Sequence[SearchItem]) -> list[Mapping[str, Any]]:
        return super()._multi_search([ask._replace(body=self._pointed(ask.body)) for ask in asks])

    def _pointed(self, body: Body) -> Body:
        """Return the body for this point in time, with the index's own ids, order and paths."""
        pointed: dict[str, Any] = {**body, **_reference(self._point)}
        for key in ("query", "post_filter"):
            if key in pointed:
                pointed[key] = self._with_own_ids(pointed[key])
        if "highlight" in pointed:
            highlight = self._with_own_ids(pointed["highlight"])
            pointed["highlight"] = {"max_analyzed_offset": _LONGEST_MARKED_TEXT, **highlight}
        if pointed.get("_source") is True:
            pointed["_source"] = list(dict.fromkeys((*self._foreign.text, *self._foreign.fields.values())))
        if pointed.get("size") != 0:
            sort = pointed.get("sort", BEST_FIRST)
            keys = [sort] if isinstance(sort, str | Mapping) else list(sort)
            last = {"_shard_doc": "asc"} if self._foreign.id is None else {self._foreign.id: "asc"}
            pointed["sort"] = [*(key for key in keys if key != BEST_FIRST[-1]), last]
        if "search_after" in pointed and self._foreign.id is None:
            *values, id_ = pointed["search_after"]
            pointed["search_after"] = [*values, self._places.get(id_, id_)]
        return pointed

    def _with_own_ids(self, query: Any) -> Any:
        if self._foreign.id is None:
            return query
        if isinstance(query, list):
            return [self._with_own_ids(clause) for clause in query]
        if not isinstance(query, Mapping):
            return query
        match query:
            case {"ids": {"values": values, **further}} if len(query) == 1:
                return {
                    "terms": {self._foreign.id: [values] if isinstance(values, str) else values, **further}
                }
        return {key: self._with_own_ids(value) for key, value in query.items()}

    def _hits_of(self, response: Mapping[str, Any], number: int) -> Hits:
        answer = response.get("hits", {}).get("hits", ())
        hits = [{**hit, "_id": self._id(hit)} for hit in answer]
        ids = [hit["_id"] for hit in hits]
        if len({*ids}) < len(ids):
            twice = next(id_ for id_ in ids if ids.count(id_) > 1)
            raise DataError(
                f"several documents of {self._info.version} have the id {shown(twice)} in the field "
                f"{self._foreign.id or '_id'}: choose another field with `id` in [documents] of the task file"
            )
        if answer and self._foreign.id is None:
            self._places[ids[-1]] = answer[-1]["sort"][-1]
        return hits_of({"hits": {"hits": hits}}, number)

    def _search_hit(self, hit: Mapping[str, Any]) -> SearchHit:
        id_ = self._id(hit)
        read = search_hit({**hit, "_id": id_})
        return SearchHit(
            Hit(id_, read.hit.score), self._document(id_, read.source), read.highlights, read.explanation
        )

    def _stored_document(self, hit: Mapping[str, Any]) -> Document:
        id_, source = self._id(hit), hit["_source"]
        document = self._document(id_, source).items()
        renamed = {name: value for name, value in document if self._foreign.fields.get(name) != name}
        return document_of(id_, {**source, **renamed})

    def _id(self, hit: Mapping[str, Any]) -> str:
        # The server adds the number `_shard_doc` to the sort values, except after `search_after` without it.
        id_ = (
            hit["_id"]
            if self._foreign.id is None
            else hit["sort"][-2 if isinstance(hit["sort"][-1], int) else -1]
        )
        if not isinstance(id_, str):
            raise DataError(
                f"a document of {self._info.version} has no id in the field {self._foreign.id}: choose another field "
                "with `id` in [documents] of the task file, or leave it out to use `_id`"
            )
        if problem := unusable_id(id_):
            raise DataError(
                f"a document of {self._info.version} has an unusable id ({problem[1]}): choose a keyword field "
                "with other ids with `id` in [documents] of the task file"
            )
        return id_

    def _document(self, id_: str, source: Mapping[str, Any]) -> dict[str, Any]:
        texts = (str(value) for path in self._foreign.text for value in values_at(source, path))
        fields = ((name, list(values_at(source, path))) for name, path in self._foreign.fields.items())
        return {
            "id": id_,
            "text": "\n".join(text for text in texts if text.strip()),
            **{name: values[0] if len(values) == 1 else values for name, values in fields if values},
        }

    def _on_this_version(self, action: str, request: Callable[[Elasticsearch], T]) -> T:
        def send(client: Elasticsearch) -> T:
            try:
                return request(client)
            except ApiError as error:
                self._require_remembered(error.body)
                raise

        return super()._on_this_version(action, send)

    def _retry_error(self, response: Mapping[str, Any], version: str) -> EngineError | None:
        self._require_remembered(response.get("error"))
        return super()._retry_error(response, version)

    def _partial(self, response: Mapping[str, Any], version: str) -> EngineError | None:
        self._require_remembered(response["_shards"])
        return super()._partial(response, version)

    def _require_remembered(self, error: object) -> None:
        if _FORGOTTEN in kinds(error):
            raise Replaced(self._info.version)


def values_at(source: Any, path: str) -> Iterator[Any]:
    """Yield the values at a dotted path of a document's source; each item of a list counts.

    >>> list(values_at({"a": [{"b": 1}, {"b": [2, 3]}], "a.b": 4}, "a.b"))
    [4, 1, 2, 3]
    """
    if isinstance(source, list):
        for item in source:
            yield from values_at(item, path)
    elif not path:
        if source is not None:
            yield source
    elif isinstance(source, Mapping):
        for key in source:
            if path == key or path.startswith(f"{key}."):
                yield from values_at(source[key], path[len(key) + 1 :])
