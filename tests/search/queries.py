"""Random search bodies on random documents: both engines answer the same, or the embedded one refuses by name."""

from __future__ import annotations

import copy
import json
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.client import Server as Answering
from searchapp.engines.elasticsearch.searching import SEARCH_TYPE
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import SearchappError
from searchapp.files import digest_json
from searchapp.lucene.queries.dsl import normal_form
from searchapp.model import Document
from tests.search import asking, comparing, mappings, older
from tests.search.comparing import NAMED, REFUSED, Json, Outcome
from tests.search.drawing import Draw
from tests.search.reducing import smallest
from tests.search.segments import copy_in_segments
from tests.server.rest import Server

BODIES_AN_INDEX = 200
"""Making an index on the server takes much longer than searching it."""

BODY_STEPS, DOCUMENT_STEPS = 300, 30
"""How many smaller cases are tried; each list of documents needs an index of its own."""

Case = dict[str, Any]
"""`mapping`, `documents` and `bodies`."""

MALFORMED = "a query must be an object"
"""Elasticsearch skips a number or a text in front of a query in a list of queries."""

EAGER = re.compile("Missing value for field|must not produce negative scores|returned an invalid score")
"""How the server fails on a document's values."""


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


class EnginePair:
    """Both engines, with a home folder and a prefix of their own; to be closed."""

    def __init__(self, server: Server) -> None:
        self._folder = TemporaryDirectory(prefix="searchapp-search-")
        self._prefix = f"search-{secrets.token_hex(4)}"
        self._settings = Settings(home=Path(self._folder.name), url=server.url, index_prefix=self._prefix)
        self._server = server
        self._elasticsearch = ElasticsearchEngine.connect(self._settings)
        self._is_older = Answering(self._elasticsearch.info().version).is_older
        self._embedded = EmbeddedEngine.at(self._settings)

    def close(self) -> None:
        self._elasticsearch.close()
        self._embedded.close()
        self._server.delete_indices(self._prefix)
        self._folder.cleanup()


class Engines(EnginePair):
    """Both engines, which are asked random bodies on random documents."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._as_there = ExitStack()
        if self._is_older:
            self._as_there.enter_context(older.rewriting())
        self._built = 0
        self._kept: list[Document] = []
        self._in_segments = ""
        """The name of a copy of the server's index with several segments."""

    def close(self) -> None:
        self._as_there.close()
        super().close()

    def differences(self, case: Case) -> Iterator[Difference]:
        """What differs in a case: its mapping, its documents, or the answers to its bodies."""
        with self.indexed(case) as (index, said):
            if said:
                yield Difference({**case, "bodies": []}, said)
            if index is not None:
                yield from self._compared(index, case)

    def recorded(self, case: Case) -> tuple[list[Json], list[Outcome | None]]:
        """The documents that both engines take, and the server's outcome of each body.

        None stands for a body that the embedded engine refuses by name, if only for its explanation or its mapping, and
        for one that the server fails on by a fault of its own.

        Raises:
            AssertionError: the engines differ.
        """
        with self.indexed(case) as (index, said):
            assert not said, said
            if index is None:
                return [], [None] * len(case["bodies"])
            different = [f"{one.case['bodies']}\n{one.said}" for one in self._compared(index, case)]
            assert not different, "\n".join(different)
            found = [
                there if comparing.differing(comparing.here(index, body), there) is None else None
                for body, there in zip(case["bodies"], self._there(case["bodies"]), strict=True)
            ]
            return [document.source() for document in self._kept], found

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
        here, there = comparing.here(index, body), self._there([body])[0]
        return self._said(here), self._said(there)

    def _said(self, outcome: Outcome) -> Outcome:
        """An outcome as it is compared: what the server's version says in words of its own is left out."""
        return comparing.in_words_of_both(outcome) if self._is_older else outcome

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
            self._kept = documents or []
            yield (None if documents is None else self._embedded.open("both")), said

    def _compared(self, index: EmbeddedIndex, case: Case) -> Iterator[Difference]:
        bodies = case["bodies"]
        ours = [comparing.here(index, body) for body in bodies]
        in_segments = self._answers(self._in_segments, bodies) if self._in_segments else self._there(bodies)
        for body, here, there, other in zip(bodies, ours, self._there(bodies), in_segments, strict=True):
            if said := self._told(body, here, there) or comparing.in_segments(here, other):
                yield Difference({**case, "bodies": [body]}, said)
        for different, said in comparing.in_a_batch(index, bodies, ours):
            yield Difference({**case, "bodies": different}, said)

    def _told(self, body: Json, here: Outcome, there: Outcome) -> str | None:
        """What two outcomes of a body differ in, None if they may."""
        said = comparing.told(self._said(here), self._said(there))
        return None if said and (_is_eager(body, there) or self._is_senseless(body, here)) else said

    def _built_in_both(self, case: Case) -> tuple[list[Document] | None, str]:
        """The documents that both engines have indexed, None for none at all, and what differed on the way."""
        mapping = case["mapping"]
        kept = [document(source) for source in case["documents"]]
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
        self._in_segments = ""
        if there is None and kept:
            sources = [document.source() for document in kept]
            self._in_segments = copy_in_segments(self._server, self._version, sources)
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
        return self._answers(self._version, bodies)

    @property
    def _version(self) -> str:
        """The name of the server's index, which has one segment."""
        index = self._elasticsearch.index_info("both")
        assert index is not None
        return index.version

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
        lines = [line for body in bodies for line in ({"search_type": SEARCH_TYPE}, _sent(body))]
        sent = "".join(json.dumps(line) + "\n" for line in lines).encode()
        answer = self._server.request("POST", f"/{index}/_msearch", sent, timeout=300)
        responses = answer.json().get("responses")
        if responses is not None:
            return [comparing.there(response) for response in responses]
        if len(bodies) == 1:
            return [comparing.there(answer.json())]
        half = len(bodies) // 2  # one body that is no search at all spoils the request for all
        return self._answers(index, bodies[:half]) + self._answers(index, bodies[half:])


def _sent(body: Json) -> Json:
    """A body as the engine sends it for one shard."""
    return {**body, "query": normal_form(body["query"])} if "query" in body else body


def _is_eager(body: Json, there: Outcome) -> bool:
    """Whether the server may have failed on a document that matches nothing but what must not match.

    Lucene looks at documents that a `function_score` with `min_score` excludes before it knows that all else matches.
    """
    parts = json.dumps(body)
    return (
        isinstance(there, str) and bool(EAGER.search(there)) and "must_not" in parts and "min_score" in parts
    )


def document(source: Json) -> Document:
    """The document whose JSON this is."""
    fields = {name: value for name, value in source.items() if name not in ("id", "text")}
    return Document(source["id"], source["text"], fields)


def engines(server: Server) -> closing[Engines]:
    """Both engines, for a `with`."""
    return closing(Engines(server))
