"""Random search bodies on random documents: both engines answer the same, or the embedded one refuses by name."""

from __future__ import annotations

import copy
import json
import re
import secrets
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from searchapp.digests import digest_json
from searchapp.engines.base import BEYOND_FLOAT32, Found, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.searching import SEARCH_TYPE, _found
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.engines.embedded.index import EmbeddedIndex
from searchapp.errors import EngineRefused, SearchappError
from searchapp.model import Document
from searchapp.settings import Settings
from tests.engines.embedded.conftest import unordered
from tests.search import asking, mappings
from tests.search.drawing import Draw
from tests.search.reducing import smallest
from tests.server.rest import Server

BODIES_AN_INDEX = 200
"""Making an index on the server takes much longer than searching it."""

BODY_STEPS, DOCUMENT_STEPS = 300, 30
"""How many smaller cases are tried; each list of documents needs an index of its own."""

Json = dict[str, Any]
Case = dict[str, Any]
"""`mapping`, `documents` and `bodies`."""

NAMED = re.compile(
    "|".join(
        [
            "does not support",  # a piece of a query, a body or a mapping
            "is not supported by the embedded engine",  # a piece of an analyzer
            re.escape(BEYOND_FLOAT32),
        ]
    )
)
"""How the embedded engine refuses what a server answers."""

MALFORMED = "a query must be an object"
"""Elasticsearch skips a number or a text in front of a query in a list of queries."""

REFUSED = "refused: "

EAGER = re.compile("Missing value for field|must not produce negative scores|returned an invalid score")
"""How the server fails on a document's values."""

BROKEN = "unsupported_operation_exception"
"""How the server fails on sound queries, such as a disjunction with a `function_score` that has no functions."""

PARTS = 4
"""Of a hit: id and score, source, highlights, explanation."""

Outcome = str | list[Any]
"""The hits with all that comes with them, or why there are none."""


def cases(seed: int, count: int, first: int = 0) -> Iterator[Case]:
    """Indexes with bodies, `count` bodies in all, from the `first` index on.

    The n-th index of a seed is always the same, as long as it has all of its bodies.
    """
    number = first
    while count > 0:
        draw = Draw(f"query {seed} {number}")
        case = {"mapping": mappings.mapping(draw), "documents": mappings.documents(draw)}
        case["bodies"] = [asking.body(draw) for _ in range(min(count, BODIES_AN_INDEX))]
        yield case
        number += 1
        count -= BODIES_AN_INDEX


@dataclass(frozen=True, slots=True)
class Difference:
    """What the engines do differently, and the smaller case that shows it."""

    case: Case
    said: str


class Engines:
    """Both engines, with a prefix of their own; to be closed."""

    def __init__(self, server: Server) -> None:
        self._folder = TemporaryDirectory(prefix="searchapp-search-")
        self._prefix = f"search-{secrets.token_hex(4)}"
        self._settings = Settings(home=Path(self._folder.name), url=server.url, index_prefix=self._prefix)
        self._server = server
        self._elasticsearch = ElasticsearchEngine.connect(self._settings)
        self._embedded = EmbeddedEngine.at(self._settings)
        self._built = 0

    def close(self) -> None:
        self._elasticsearch.close()
        self._embedded.close()
        self._server.delete_indices(self._prefix)
        self._folder.cleanup()

    def differences(self, case: Case) -> Iterator[Difference]:
        """What differs in a case: its mapping, its documents, or the answers to its bodies."""
        with self.indexed(case) as (index, said):
            if said:
                yield Difference({**case, "bodies": []}, said)
            if index is not None:
                yield from self._compared(index, case)

    def reduced(self, case: Case) -> Iterator[Difference]:
        """What differs in a case, each made as small as it can be quickly."""
        found = []
        with self.indexed(case) as (index, said):
            if said:
                yield Difference({**case, "bodies": []}, said)
            if index is not None:
                for difference in self._compared(index, case):
                    found.append(self._with_smaller_body(index, difference))
        for difference in found:
            yield self._with_fewer_documents(difference)

    def outcomes(self, index: EmbeddedIndex, body: Json) -> tuple[Outcome, Outcome]:
        """What the embedded engine and the server say to a body on the index that was made last."""
        return _here(index, body), self._there([body])[0]

    def _with_smaller_body(self, index: EmbeddedIndex, difference: Difference) -> Difference:
        found = [difference]

        def differs(body: Any) -> bool:
            if not isinstance(body, dict):
                return False
            smaller = next(self._compared(index, {**difference.case, "bodies": [body]}), None)
            found.append(smaller) if smaller else None
            return smaller is not None

        smallest(difference.case["bodies"][0], differs, BODY_STEPS)
        return found[-1]

    def _with_fewer_documents(self, difference: Difference) -> Difference:
        found = [difference]

        def differs(documents: Any) -> bool:
            try:
                smaller = next(self.differences({**found[-1].case, "documents": documents}), None)
            except (KeyError, TypeError, AttributeError):
                return False  # one of them has no id or no text
            found.append(smaller) if smaller and smaller.case["bodies"] else None
            return smaller is not None

        smallest(difference.case["documents"], differs, DOCUMENT_STEPS)
        return found[-1]

    @contextmanager
    def indexed(self, case: Case) -> Iterator[tuple[EmbeddedIndex | None, str]]:
        """The embedded index of a case if both engines take it, and what differed on the way."""
        self._embedded = EmbeddedEngine.at(self._settings)  # one that closes its files
        with closing(self._embedded):
            documents, said = self._built_in_both(case)
            yield (None if documents is None else self._embedded.open("both")), said

    def _compared(self, index: EmbeddedIndex, case: Case) -> Iterator[Difference]:
        ours = [_here(index, body) for body in case["bodies"]]
        theirs = self._there(case["bodies"])
        for body, here, there in zip(case["bodies"], ours, theirs, strict=True):
            said = _told(here, there)
            if said and not _is_eager(body, there) and not self._is_senseless(body, here):
                yield Difference({**case, "bodies": [body]}, said)
        yield from _ranked(index, case, ours)

    def _built_in_both(self, case: Case) -> tuple[list[Document] | None, str]:
        """The documents that both engines have indexed, None for none at all, and what differed on the way."""
        mapping = case["mapping"]
        kept = [_document(source) for source in case["documents"]]
        said = ""
        while here := self._refusal(self._embedded, mapping, kept):
            if NAMED.search(here):
                return None, said
            bad = next((document for document in kept if f"the document {document.id}: " in here), None)
            if bad is None:
                break
            if self._refusal(self._elasticsearch, mapping, [bad], "probe") is None:
                said = f"the document {bad.source()} is refused here only: {here}"
            kept.remove(bad)
        there = self._refusal(self._elasticsearch, mapping, kept)
        if (here is None) != (there is None):
            return None, f"indexing, here: {here}\nthere: {there}"
        return (kept if here is None else None), said

    def _refusal(
        self, engine: Any, mapping: Json, documents: Sequence[Document], name: str = "both"
    ) -> str | None:
        """Build an index; returns why it was refused."""
        self._built += 1
        spec = IndexSpec(copy.deepcopy(mapping), len(documents), digest_json(self._built))
        try:
            engine.build(name, spec, documents)
        except SearchappError as error:
            return str(error)
        return None

    def _there(self, bodies: Sequence[Json]) -> list[Outcome]:
        """What the server says to each body, in one request."""
        index = self._elasticsearch.index_info("both")
        assert index is not None
        return self._answers(index.version, bodies)

    def _is_senseless(self, body: Json, here: Outcome) -> bool:
        """Whether the embedded engine refuses a body for a query inside it that the server refuses too, asked alone.

        The server does not look at what can't match beside what never does.
        """
        if not isinstance(here, str) or not here.startswith(REFUSED):
            return False
        if MALFORMED in here:
            return True
        alone = [{**body, "size": 50, "query": query} for query in asking.queries_in(body)]
        return any(isinstance(there, str) for there in self._there(alone))

    def _answers(self, index: str, bodies: Sequence[Json]) -> list[Outcome]:
        if not bodies:
            return []
        lines = [line for body in bodies for line in ({"search_type": SEARCH_TYPE}, body)]
        sent = "".join(json.dumps(line) + "\n" for line in lines).encode()
        answer = self._server.request("POST", f"/{index}/_msearch", sent, timeout=300)
        responses = answer.json().get("responses")
        if responses is not None:
            return [_answered(response) for response in responses]
        if len(bodies) == 1:
            return [f"{REFUSED}{answer.body[:300]!r}"]
        half = len(bodies) // 2  # one body that is no search at all spoils the request for all
        return self._answers(index, bodies[:half]) + self._answers(index, bodies[half:])


def _is_object(body: Any) -> bool:
    return isinstance(body, dict)


def _answered(response: Json) -> Outcome:
    if "error" in response:
        return f"{REFUSED}{json.dumps(response['error'])[:600]}"
    if response["_shards"]["failed"]:
        return f"{REFUSED}{json.dumps(response['_shards']['failures'])[:600]}"
    try:
        return [_comparable(_found(hit)) for hit in response["hits"]["hits"]]
    except EngineRefused as error:
        return f"{REFUSED}{error}"


def _here(index: EmbeddedIndex, body: Json) -> Outcome:
    """What the embedded engine says to a body, without explanations if it refuses just them."""
    try:
        return _asked(index, body)
    except SearchappError as error:
        if "explanation of" not in str(error):
            return f"{REFUSED}{error}"
    except Exception:  # whatever it is, it must not end the search
        return f"crashed: {traceback.format_exc()[-1000:]}"
    return [one[:-1] for one in _asked(index, {**body, "explain": False})]


def _ranked(index: EmbeddedIndex, case: Case, found: Sequence[Outcome]) -> Iterator[Difference]:
    """Which bodies rank in another way among others than alone."""
    answered = [place for place, outcome in enumerate(found) if not isinstance(outcome, str)]
    bodies = [case["bodies"][place] for place in answered]
    try:
        rankings = [list(map(tuple, hits)) for hits in index.search(bodies)]
    except SearchappError as error:
        yield Difference({**case, "bodies": bodies}, f"refused in a batch only: {error}")
        return
    for place, ranking in zip(answered, rankings, strict=True):
        alone = [one[0] for one in found[place]]
        if ranking != alone:
            said = f"in a batch: {_short(ranking)}\nalone: {_short(alone)}"
            yield Difference({**case, "bodies": [case["bodies"][place]]}, said)


def _asked(index: EmbeddedIndex, body: Json) -> list[tuple[Any, ...]]:
    return [_comparable(one) for one in index.find(body)]


def _is_eager(body: Json, there: Outcome) -> bool:
    """Whether the server may have failed on a document that matches nothing but what must not match.

    Lucene looks at documents that a `function_score` with `min_score` excludes before it knows that all else matches.
    """
    parts = json.dumps(body)
    return (
        isinstance(there, str) and bool(EAGER.search(there)) and "must_not" in parts and "min_score" in parts
    )


def _told(here: Outcome, there: Outcome) -> str | None:
    """What two outcomes differ in, None if they may be."""
    if isinstance(here, str) and here.startswith(REFUSED) and (isinstance(there, str) or NAMED.search(here)):
        return None
    unexplained = not isinstance(here, str) and bool(here) and len(here[0]) < PARTS
    if isinstance(there, str) and (BROKEN in there or unexplained):
        return None
    if not isinstance(here, str) and not isinstance(there, str):
        if unexplained:
            there = [one[:-1] for one in there]
        if here == there:
            return None
    return f"here:  {_short(here)}\nthere: {_short(there)}"


def _document(source: Json) -> Document:
    fields = {name: value for name, value in source.items() if name not in ("id", "text")}
    return Document(source["id"], source["text"], fields)


def _comparable(found: Found) -> tuple[Any, ...]:
    explanation = None if found.explanation is None else unordered(found.explanation)
    highlights = {name: list(texts) for name, texts in found.highlights.items()}
    return (tuple(found.hit), _typed(found.source), highlights, explanation)


def _typed(value: Any) -> Any:
    """A source in which 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def _short(outcome: Outcome) -> str:
    text = ascii(outcome)
    return text if len(text) <= 1200 else f"{text[:1200]}…"


def engines(server: Server) -> closing[Engines]:
    """Both engines, for a `with`."""
    return closing(Engines(server))
