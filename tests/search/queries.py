"""Compare both engines on random search bodies and documents."""

from __future__ import annotations

import copy
import json
import re
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.client import Server as ServerVersion
from searchapp.engines.elasticsearch.searching import search_header
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import SearchappError
from searchapp.files import digest_json
from searchapp.lucene.queries.dsl import normal_body
from searchapp.model import Document
from searchapp.ranking.recipes import STACKING_FILTERS, ranking_shard_dependence
from tests.search import comparing, entries, mappings, older_version, random_bodies
from tests.search.comparing import REFUSED, UNSUPPORTED, Json, Outcome
from tests.search.drawing import Draw
from tests.search.reducing import smallest
from tests.search.segments import copy_in_segments
from tests.server.rest import Server

BODIES_AN_INDEX = 200
"""An index has many bodies, because indexing on the server takes much longer than searching."""

CANDIDATES = 1500
"""Bodies of an index in a search for differences, which compares most of those with hits."""

WITH_HITS = 0.6

BODY_STEPS, DOCUMENT_STEPS = 300, 30
"""Numbers of smaller cases to try; each list of documents needs its own index."""

Case = dict[str, Any]
"""An object with `mapping`, `documents` and `bodies`."""

MALFORMED = "a query must be an object"
"""The error of the embedded engine for a number or text before a query in a list, which Elasticsearch skips."""

EAGER = re.compile("Missing value for field|must not produce negative scores|returned an invalid score")
"""The server's errors for a document's values."""


def cases(seed: int, count: int, first: int = 0, at_once: int = BODIES_AN_INDEX) -> Iterator[Case]:
    """Yield cases of `at_once` bodies with `count` bodies in total, from the case number `first` on.

    A seed and a number always give the same case, if the case has all of its bodies.
    """
    number = first
    while count > 0:
        draw = Draw(f"query {seed} {number}")
        case = {"mapping": mappings.mapping(draw), "documents": mappings.documents(draw)}
        case["bodies"] = [random_bodies.body(draw) for _ in range(min(count, at_once))]
        yield case
        number += 1
        count -= at_once


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the engines, and the smallest case found that shows it."""

    case: Case
    text: str


class EnginePair:
    """Both engines, with a temporary home folder and prefix. `close` deletes them."""

    def __init__(self, server: Server) -> None:
        self._folder = TemporaryDirectory(prefix="searchapp-search-")
        self._prefix = f"search-{secrets.token_hex(4)}"
        self._settings = Settings(home=Path(self._folder.name), url=server.url, index_prefix=self._prefix)
        self._server = server
        self._elasticsearch = ElasticsearchEngine.connect(self._settings)
        self._is_older = ServerVersion(self._elasticsearch.info().version).is_older
        self._embedded = EmbeddedEngine.at(self._settings)

    def close(self) -> None:
        self._elasticsearch.close()
        self._embedded.close()
        self._server.delete_indices(self._prefix)
        self._folder.cleanup()


class ComparedEngines(EnginePair):
    """Both engines, compared on cases; the server's index has one segment, several ones, or several `shards`."""

    def __init__(self, server: Server, shards: int = 1) -> None:
        super().__init__(server)
        self._shards = shards
        self._version_patches = ExitStack()
        if self._is_older:
            self._version_patches.enter_context(older_version.rewriting())
        self.bodies, self.with_hits = 0, 0
        self.counts: Counter[str] = Counter()
        self._built = 0
        self._documents: list[Document] = []
        self._segmented_copy = ""
        """The name of a copy of the server's index with several segments."""

    def close(self) -> None:
        self._version_patches.close()
        super().close()

    def differences(self, case: Case) -> Iterator[Difference]:
        """Yield the differences in a case: its mapping, its documents or the outcomes of its bodies."""
        with self.index(case) as (index, difference):
            if difference:
                yield Difference({**case, "bodies": []}, difference)
            if index is not None:
                yield from self._compare(index, case)

    def record(self, case: Case) -> tuple[list[Json], list[Outcome | None]]:
        """Return the documents that both engines accept, and the server's outcome of each body.

        The outcome is None if the embedded engine does not support the body, its explanation or the mapping, and if the
        server fails by its own fault.

        Raises:
            AssertionError: The engines differ.
        """
        with self.index(case) as (index, difference):
            assert not difference, difference
            if index is None:
                return [], [None] * len(case["bodies"])
            differences = [f"{entry.case['bodies']}\n{entry.text}" for entry in self._compare(index, case)]
            assert not differences, "\n".join(differences)
            ours = [comparing.embedded_outcome(index, body) for body in case["bodies"]]
            outcomes = [
                theirs if comparing.outcome_difference(outcome, theirs) is None else None
                for outcome, theirs in zip(ours, self._server_outcomes(case["bodies"]), strict=True)
            ]
            return [document.source() for document in self._documents], outcomes

    def reduced_differences(self, case: Case) -> Iterator[Difference]:
        """Yield the differences in a case, each with a case reduced in few steps.

        Of the bodies without hits, so many are compared that at least `WITH_HITS` of all have hits.
        """
        differences = []
        with self.index(case) as (index, difference):
            if difference:
                yield Difference({**case, "bodies": []}, difference)
            if index is not None:
                chosen = {**case, "bodies": self._mostly_with_hits(index, case)}
                differences = [
                    self._with_smaller_body(index, entry) for entry in self._compare(index, chosen)
                ]
        for entry in differences:
            yield self._with_fewer_documents(entry)

    def outcomes(self, index: EmbeddedIndex, body: Json) -> tuple[Outcome, Outcome]:
        """Return the outcomes of a body in the embedded engine and on the server's latest index."""
        ours, theirs = comparing.embedded_outcome(index, body), self._server_outcomes([body])[0]
        return self._comparable(body, ours), self._comparable(body, theirs)

    def _comparable(self, body: Json, outcome: Outcome) -> Outcome:
        """Return the outcome of a body without what depends on the server's version."""
        return older_version.comparable(body, outcome) if self._is_older else outcome

    def _with_smaller_body(self, index: EmbeddedIndex, difference: Difference) -> Difference:
        differences = [difference]

        def differs(body: Any) -> bool:
            if not isinstance(body, dict):
                return False
            smaller = next(self._compare(index, {**difference.case, "bodies": [body]}), None)
            differences.append(smaller) if smaller else None
            return smaller is not None

        smallest(difference.case["bodies"][0], differs, BODY_STEPS)
        return differences[-1]

    def _with_fewer_documents(self, difference: Difference) -> Difference:
        differences = [difference]

        def differs(documents: Any) -> bool:
            try:
                smaller = next(self.differences({**differences[-1].case, "documents": documents}), None)
            except (KeyError, TypeError, AttributeError):
                return False  # a document has no id or no text
            differences.append(smaller) if smaller and smaller.case["bodies"] else None
            return smaller is not None

        smallest(difference.case["documents"], differs, DOCUMENT_STEPS)
        return differences[-1]

    @contextmanager
    def index(self, case: Case) -> Iterator[tuple[EmbeddedIndex | None, str]]:
        """Index a case; yield the embedded index, None if an engine rejects it, and the difference in indexing."""
        # a new engine for each case, so that its files are closed
        self._embedded = EmbeddedEngine.at(self._settings)
        with closing(self._embedded):
            documents, difference = self._build(case)
            self._documents = documents or []
            yield (None if documents is None else self._embedded.open("both")), difference

    def _compare(self, index: EmbeddedIndex, case: Case) -> Iterator[Difference]:
        bodies = case["bodies"]
        ours = [comparing.embedded_outcome(index, body) for body in bodies]
        if self._shards > 1:
            yield from self._compare_on_shards(case, ours)
            return
        segmented = self._search_server(self._segmented_copy or self._version, bodies)
        for body, our, their, copied in zip(
            bodies, ours, self._server_outcomes(bodies), segmented, strict=True
        ):
            text = self._unexpected_difference(body, our, their)
            if not text and not body.keys() & {
                "rescore",
                "knn",
            }:  # which order equal scores by the numbers of documents
                text = comparing.segment_difference(our, copied)
            if text:
                yield Difference({**case, "bodies": [body]}, text)
        for differing_bodies, text in comparing.batch_differences(index, bodies, ours):
            yield Difference({**case, "bodies": differing_bodies}, text)

    def _compare_on_shards(self, case: Case, ours: Sequence[Outcome]) -> Iterator[Difference]:
        """Yield differences of ids and scores of the queries that rank alike on any number of shards."""
        index = self._elasticsearch.open("both")
        pairs = [
            (body, outcome)
            for body, outcome in zip(case["bodies"], ours, strict=True)
            if ranking_shard_dependence(body) is None
        ]
        sent = [dict(index._sent_body({**body, "explain": False})) for body, _outcome in pairs]
        for (body, outcome), theirs in zip(pairs, self._search_server(self._version, sent), strict=True):
            if text := comparing.segment_difference(outcome, theirs):
                yield Difference({**case, "bodies": [body]}, f"on {self._shards} shards, {text}")

    def _mostly_with_hits(self, index: EmbeddedIndex, case: Case) -> list[Json]:
        """Return the bodies with hits among the first ones of the others, and count them."""
        have_hits = [comparing.has_hits(comparing.embedded_outcome(index, body)) for body in case["bodies"]]
        others = int(sum(have_hits) * (1 - WITH_HITS) / WITH_HITS)
        chosen = []
        for body, has_hits in zip(case["bodies"], have_hits, strict=True):
            if has_hits:
                self.counts.update(entries.used(body, case["mapping"], index.index.reader.schema))
            else:
                others -= 1
            if has_hits or others >= 0:
                chosen.append(body)
        self.bodies += len(chosen)
        self.with_hits += sum(have_hits)
        return chosen

    def _unexpected_difference(self, body: Json, ours: Outcome, theirs: Outcome) -> str | None:
        """Return the difference of two outcomes of a body, None if there is none or it is allowed."""
        text = comparing.unexpected_difference(self._comparable(body, ours), self._comparable(body, theirs))
        return None if text and (_is_eager(body, theirs) or self._has_invalid_query(body, ours)) else text

    def _build(self, case: Case) -> tuple[list[Document] | None, str]:
        """Return the documents that both engines index, None if they reject the case, and the difference."""
        mapping = older_version.mapping(case["mapping"]) if self._is_older else case["mapping"]
        mapping = mapping if self._shards == 1 else _without_stacks(mapping)
        documents = [document(source) for source in case["documents"]]
        difference = ""
        while error := self._build_error(self._embedded, mapping, documents):
            if UNSUPPORTED.search(error):
                return None, difference
            bad = next((document for document in documents if f"the document {document.id}: " in error), None)
            if bad is None:
                break
            # Earlier documents may have decided on the types of fields.
            probed = documents[: documents.index(bad) + 1]
            if self._build_error(self._elasticsearch, mapping, probed, "probe") is None:
                difference = f"only the embedded engine rejects the document {bad.source()}: {error}"
            documents.remove(bad)
        server_error = self._build_error(self._elasticsearch, mapping, documents)
        self._segmented_copy = ""
        if server_error is None and documents and self._shards == 1:
            sources = [document.source() for document in documents]
            self._segmented_copy = copy_in_segments(self._server, self._version, sources)
        if (error is None) != (server_error is None):
            return None, f"indexing, embedded engine: {error}\nserver: {server_error}"
        return (documents if error is None else None), difference

    def _build_error(
        self, engine: Any, mapping: Json, documents: Sequence[Document], name: str = "both"
    ) -> str | None:
        """Build an index; return the error, None if there is none."""
        self._built += 1
        shards = self._shards if engine is self._elasticsearch else 1
        spec = IndexSpec(
            copy.deepcopy(mapping), len(documents), digest_json([self._built, shards]), shards=shards
        )
        try:
            engine.build(name, spec, documents)
        except SearchappError as error:
            return str(error)
        return None

    def _server_outcomes(self, bodies: Sequence[Json]) -> list[Outcome]:
        """Return the server's outcome of each body, by one request."""
        return self._search_server(self._version, bodies)

    @property
    def _version(self) -> str:
        """The name of the server's index, which has one segment."""
        index = self._elasticsearch.index_info("both")
        assert index is not None
        return index.version

    def _has_invalid_query(self, body: Json, outcome: Outcome) -> bool:
        """Whether the embedded engine rejects a body for an inner query that the server rejects too as a body.

        The server does not check some inner queries if the query around them can't match.
        """
        if not isinstance(outcome, str) or not outcome.startswith(REFUSED):
            return False
        if MALFORMED in outcome:
            return True
        inner = [{**body, "size": 50, "query": query} for query in random_bodies.queries_in(body)]
        return any(isinstance(theirs, str) for theirs in self._server_outcomes(inner))

    def _search_server(self, index: str, bodies: Sequence[Json]) -> list[Outcome]:
        if not bodies:
            return []
        lines = [line for body in bodies for line in (search_header(body), _normalized(body))]
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        answer = self._server.request("POST", f"/{index}/_msearch", content, timeout=300)
        responses = answer.json().get("responses")
        if responses is not None:
            return [
                comparing.server_outcome(response, body)
                for response, body in zip(responses, bodies, strict=True)
            ]
        if len(bodies) == 1:
            return [comparing.server_outcome(answer.json(), bodies[0])]
        half = len(bodies) // 2  # an invalid body makes the whole request fail
        return self._search_server(index, bodies[:half]) + self._search_server(index, bodies[half:])


def _without_stacks(mapping: Json) -> Json:
    """Return a mapping whose queries have one term at a position, because shards score several by those they have.

    It adds no fields, whose types may depend on the first shard.
    """
    changed = copy.deepcopy(mapping)
    changed["mappings"]["dynamic"] = False
    filters = changed["settings"]["analysis"]["filter"]
    filters.update(
        {name: {"type": "lowercase"} for name, piece in filters.items() if piece["type"] in STACKING_FILTERS}
    )
    return changed


def _normalized(body: Json) -> Json:
    """Return a body as the engine sends it to one shard."""
    return dict(normal_body(body))


def _is_eager(body: Json, outcome: Outcome) -> bool:
    """Whether the server may have failed on a document that matches only a `must_not` clause.

    Lucene scores documents of an excluded `function_score` with `min_score` before it checks the other clauses.
    """
    text = json.dumps(body)
    return (
        isinstance(outcome, str)
        and bool(EAGER.search(outcome))
        and "must_not" in text
        and "min_score" in text
    )


def document(source: Json) -> Document:
    """Return the document of a JSON object."""
    fields = {name: value for name, value in source.items() if name not in ("id", "text")}
    return Document(source["id"], source["text"], fields)


def engines(server: Server, shards: int = 1) -> closing[ComparedEngines]:
    """Return both engines as a context manager."""
    return closing(ComparedEngines(server, shards))
