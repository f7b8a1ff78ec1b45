"""Compare analyzers with `_analyze` of a real Elasticsearch, in requests of many texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from searchapp.engines.elasticsearch.analysis import (
    SHORT_STEMS,
    analysis_for,
    with_short_stems,
    without_added,
)
from searchapp.engines.elasticsearch.client import Server as ServerVersion
from searchapp.lucene.analysis import AnalysisRegistry, Analyzer
from searchapp.lucene.analysis.characters import from_utf16_units
from searchapp.lucene.analysis.token_filters import TokenStream
from searchapp.model import AnalysisStep, Token
from tests.server.rest import Server

TEXTS_PER_REQUEST = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """A text with two different analyses."""

    analyzer: str
    text: str
    expected: list[Token]
    actual: list[Token]


class AnalysisOracle:
    """An index on a real server with analyzers."""

    def __init__(self, server: Server, index: str, analysis: Mapping[str, Any]) -> None:
        self._server = server
        self._index = index
        self.registry = AnalysisRegistry(analysis)
        version = server_of(server)
        body = {
            "settings": {
                "number_of_shards": 1,
                "number_of_replicas": 0,
                "index.analyze.max_token_count": 10_000_000,
                "analysis": analysis_for(version, analysis),
            }
        }
        response = server.request("PUT", f"/{index}", body, timeout=60)
        if response.status != 200:
            raise Rejected(response.json()["error"]["reason"])

    def close(self) -> None:
        self._server.request("DELETE", f"/{self._index}", timeout=60)

    def difference(self, analyzer: str, texts: Iterable[str]) -> Difference | None:
        """Return the first text that the server analyzes differently, None if there is none."""
        ours = self.registry.analyzer(analyzer)
        for batch in _batches(texts):
            if self._tokens(analyzer, batch) != _joined_tokens(ours, batch):
                for text in batch:
                    expected, actual = self._tokens(analyzer, [text]), ours.tokens(text)
                    if expected != actual:
                        return Difference(analyzer, text, expected, actual)
                raise AssertionError(
                    f"{analyzer}: the texts differ only as a list, probably in their end offsets"
                )
        return None

    def steps(self, analyzer: str, text: str) -> list[AnalysisStep]:
        """Return the server's analysis step by step."""
        return list(_steps(self._analyze({"analyzer": analyzer, "text": text, "explain": True})["detail"]))

    def _tokens(self, analyzer: str, texts: Sequence[str]) -> list[Token]:
        return [_token(token) for token in self._analyze({"analyzer": analyzer, "text": texts})["tokens"]]

    def _analyze(self, body: Mapping[str, Any]) -> Any:
        response = self._server.request("POST", f"/{self._index}/_analyze", body, timeout=120)
        assert response.status == 200, response.body[:1000]
        return json.loads(response.body)


class InlineOracle:
    """Many small analyzers, defined in requests over one connection."""

    def __init__(self, server: Server) -> None:
        self.is_older = server_of(server).is_older
        self._connection = server.connect(timeout=60)

    def __enter__(self) -> InlineOracle:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ours(self, analyzer: str | Mapping[str, Any], texts: Sequence[str]) -> list[Token]:
        """Return the tokens of the registry, and check that they are the same with and without offsets."""
        built = built_analyzer(analyzer)
        streams = [built.stream(text, offsets=True) for text in texts]
        for text, stream in zip(texts, streams, strict=True):
            assert built.terms(text) == list(zip(stream.terms, stream.positions, strict=True))
        tokens = _join(built, streams)
        terms = [(token.term, token.position) for token in tokens]
        assert list(zip(*built.joined(texts), strict=True)) == terms, "indexing gives other terms"
        return tokens

    def servers(self, analyzer: str | Mapping[str, Any], texts: Sequence[str]) -> list[Token]:
        """Return the tokens of the server."""
        return [_token(token) for token in self._analyze(analyzer, texts)]

    def lengths(self, analyzer: str | Mapping[str, Any], text: str) -> list[int]:
        """Return the position lengths of a text's tokens by the server."""
        return [token.get("positionLength", 1) for token in self._analyze(analyzer, [text])]

    def _analyze(self, analyzer: str | Mapping[str, Any], texts: Sequence[str]) -> list[dict[str, Any]]:
        definition = {"analyzer": analyzer} if isinstance(analyzer, str) else self._adapted(analyzer)
        body = json.dumps({**definition, "text": texts})
        self._connection.request("POST", "/_analyze", body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        content = json.loads(response.read())
        if response.status != 200:
            raise Rejected(content["error"]["reason"])
        tokens: list[dict[str, Any]] = content["tokens"]
        return tokens

    def _adapted(self, analyzer: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an inline analyzer with the filters that the engine adds for servers of the older version."""
        if not self.is_older:
            return analyzer
        filters = with_short_stems(analyzer.get("filter", ()), lambda piece: piece)
        inline = [SHORT_STEMS.get(piece, piece) if isinstance(piece, str) else piece for piece in filters]
        return {**analyzer, "filter": inline}


def server_of(server: Server) -> ServerVersion:
    """Return the version of a server as the engine knows it."""
    return ServerVersion(server.request("GET", "/").json()["version"]["number"])


def built_analyzer(analyzer: str | Mapping[str, Any]) -> Analyzer:
    """Return the analyzer with a name or an inline definition."""
    if isinstance(analyzer, str):
        return AnalysisRegistry({}).analyzer(analyzer)
    sections: dict[str, dict[str, Any]] = {"char_filter": {}, "filter": {}}
    names: dict[str, Any] = {"tokenizer": "cut"}
    for kind, section in sections.items():
        section.update({f"{kind}{i}": piece for i, piece in enumerate(analyzer[kind])})
        names[kind] = list(section)
    tokenizer = {"cut": analyzer["tokenizer"]}
    registry = AnalysisRegistry({**sections, "tokenizer": tokenizer, "analyzer": {"it": names}})
    return registry.analyzer("it")


class Rejected(Exception):
    """The server rejects settings or an inline analyzer."""


def _batches(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    rest = iter(texts)
    while batch := list(islice(rest, TEXTS_PER_REQUEST)):
        yield batch


def _joined_tokens(analyzer: Analyzer, texts: Iterable[str]) -> list[Token]:
    """Return the tokens of several texts as values of one field, as the server does for a list."""
    return _join(analyzer, (analyzer.stream(text, offsets=True) for text in texts))


def _join(analyzer: Analyzer, streams: Iterable[TokenStream]) -> list[Token]:
    tokens = []
    position, offset = -1, 0
    for stream in streams:
        for term, term_position, (start, end) in zip(
            stream.terms, stream.positions, stream.spans or (), strict=True
        ):
            tokens.append(Token(term, position + 1 + term_position, offset + start, offset + end))
        position += stream.end_position
        position += analyzer.position_increment_gap
        offset += stream.end_offset + 1
    return tokens


def _token(token: Mapping[str, Any]) -> Token:
    # `_analyze` returns half a surrogate pair, which `truncate` can leave; the index has U+FFFD instead
    return Token(
        from_utf16_units(token["token"]), token["position"], token["start_offset"], token["end_offset"]
    )


def _steps(detail: Mapping[str, Any]) -> Iterator[AnalysisStep]:
    if not detail["custom_analyzer"]:
        analyzer = detail["analyzer"]
        yield AnalysisStep("analyzer", analyzer["name"], tokens=tuple(map(_token, analyzer["tokens"])))
        return
    for step in detail.get("charfilters", ()):
        yield AnalysisStep("char_filter", step["name"], text="".join(step["filtered_text"]))
    for kind, parts in (
        ("tokenizer", [detail["tokenizer"]]),
        ("filter", detail.get("tokenfilters", ())),
    ):
        for step in without_added(parts):
            yield AnalysisStep(kind, step["name"], tokens=tuple(map(_token, step["tokens"])))
