"""A handle on one version of an index in the home folder."""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice

import numpy as np

from searchapp import processes
from searchapp.engines.base import (
    BEST_FIRST,
    NO_TERMS,
    Body,
    Counts,
    Found,
    Index,
    IndexInfo,
    Terms,
    one_by_one,
)
from searchapp.engines.embedded import native, topk
from searchapp.engines.embedded.body import BodyReader, Frame, Request
from searchapp.engines.embedded.counting import counts
from searchapp.engines.embedded.explain import Explainer
from searchapp.engines.embedded.highlight import Emitted, Highlighter
from searchapp.engines.embedded.memory import Answer, Memory, Packed, packed, unpacked
from searchapp.engines.embedded.pruning import Pruned, Pruner
from searchapp.engines.embedded.queries.parse import Parser
from searchapp.engines.embedded.queries.readers import READERS
from searchapp.engines.embedded.queries.settle import settled
from searchapp.engines.embedded.refusals import invalid
from searchapp.engines.embedded.rows import Rows
from searchapp.engines.embedded.schema import Analyzer, Analyzers
from searchapp.engines.embedded.scoring import Scorer, finite_scores
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage import verified
from searchapp.engines.embedded.storage.reader import IndexReader, Numbers
from searchapp.engines.embedded.sums import Scores
from searchapp.engines.embedded.together import Together
from searchapp.engines.waiting import require_wanted
from searchapp.errors import DataError, EngineRefused, QueryRefused, Replaced
from searchapp.model import AnalysisStep, Hits
from searchapp.progress import Advance, no_progress

_log = logging.getLogger("searchapp.requests")

BATCH_BODIES = 64
"""Topics whose terms are gathered together."""

TOGETHER = 8
"""Of fewer topics each is scored by itself."""

LARGE, BATCH_OF_LARGE = 200_000, 8
"""From so many documents on a batch has so many: a topic takes so long that gathering terms gains nothing."""

FIRST_OF_LARGE = 64
"""Topics there from which on the start of processes pays; what these have in common is prepared for the processes."""


class EmbeddedIndex:
    """An `Index` whose files this process has open, from which it answers even after a newer version serves."""

    is_at_hand = True

    def __init__(self, reader: IndexReader, analyzers: Analyzers, memory: Memory | None = None) -> None:
        self._reader = reader
        self._memory = memory
        self._analyzers = analyzers
        self._bodies = BodyReader(Parser(reader.schema, analyzers, READERS, partial(settled, reader=reader)))
        rows = Rows(reader)
        self._scorer = Scorer(reader, rows)
        self._pruner = Pruner(reader, rows, analyzers)
        self._together = Together(reader, rows)
        self._emitted = Emitted(analyzers)
        self._found: tuple[str, Scores] | None = None
        """The scores of the query that was asked last, whose next hits are often asked for."""

        self.is_closed = False

    @property
    def info(self) -> IndexInfo:
        return self._reader.info

    def search(self, bodies: Iterable[Body], advance: Advance = no_progress) -> Iterator[Hits]:
        if self._memory is not None:
            yield from self._remembered(list(bodies), self._memory, advance)
            return
        done = 0
        try:
            for answers in self._searched(bodies):
                yield from (self._hits(documents, scores) for documents, scores in answers)
                done += len(answers)
                advance(len(answers))
        except QueryRefused as error:
            raise QueryRefused(str(error), done + error.place) from error

    def _remembered(self, bodies: Sequence[Body], memory: Memory, advance: Advance) -> Iterator[Hits]:
        """The hits of bodies, of which only those are searched that have not been before, and each once."""
        keys = memory.keys(bodies)
        # What is new is settled here: others may ask the same index while these hits are drawn.
        first: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            if memory.get(key) is None:
                first.setdefault(key, place)
        new = list(first.values())
        repeated = {key for key, count in Counter(keys).items() if count > 1}
        held: dict[bytes, Answer] = {}
        searched = chain.from_iterable(self._searched(bodies[place] for place in new))
        done = 0
        for place, key in enumerate(keys):
            if first.get(key) == place:
                try:
                    answer = next(searched)
                except QueryRefused as error:  # by its place in the batch, which begins with what comes next
                    raise QueryRefused(str(error), new[done + error.place]) from error
                done += 1
                memory.put(key, answer)
                if key in repeated:
                    held[key] = answer
            else:
                known = held.get(key) or memory.get(key)
                assert known is not None  # it was there before, or is the answer of an earlier place
                answer = known
            yield self._hits(*answer)
            advance(1)

    def search_beside(self, asked: Sequence[tuple[Index, Body]]) -> list[Hits]:
        return one_by_one(asked)

    def _searched(self, bodies: Iterable[Body]) -> Iterator[list[Answer]]:
        """The answers to the bodies, by batches."""
        waiting = iter(bodies)
        worth_it = processes.WORTH_IT
        if self._reader.count >= LARGE:
            first = list(islice(waiting, FIRST_OF_LARGE))
            waiting = chain(first, waiting)
            if len(first) == FIRST_OF_LARGE:
                self._prepare(first)
            worth_it = FIRST_OF_LARGE // BATCH_OF_LARGE
        batches = processes.in_batches(waiting, self._batch_size, max(TOGETHER, self._batch_size // 4))
        found = processes.spread(self._answers, batches, worth_it=worth_it, here=True)
        if self._reader.count < LARGE and native.library() is not None:
            # What the first batch makes of the index and the analyzers, processes that are forked later have. NumPy
            # makes rows of its terms besides, which takes it as long as two processes save.
            found = chain(map(self._answers, islice(batches, 1)), found)
        for sent, pruned, together in found:
            answers = unpacked(sent)
            self._tell(len(answers), pruned, together)
            yield answers

    @property
    def _batch_size(self) -> int:
        return BATCH_BODIES if self._reader.count < LARGE else BATCH_OF_LARGE

    def _prepare(self, bodies: Sequence[Body]) -> None:
        """Have at hand what processes need that answer bodies like these; what is refused here is refused there."""
        require_wanted()
        queries = []
        with self._damage_reported():
            for body in bodies:
                with suppress(EngineRefused), finite_scores():
                    queries.append(self._bodies.ranked(body).query)
            self._pruner.prepare(queries)

    def _answers(self, bodies: Sequence[Body]) -> tuple[Packed, int, int]:
        """The best documents of each body of a batch; for how many of these not all documents were scored, and how many
        the compiled functions scored.

        What the others have in common is computed together.
        """
        require_wanted()
        with self._damage_reported():
            requests: list[Request] = []
            with _next_is_named(requests):
                for body in bodies:
                    requests.append(self._bodies.ranked(body))
            alone = len(requests) < TOGETHER
            some = [self._pruned(request, alone=alone) for request in requests]
            found: list[Answer | None] = [None if one is None else one[:2] for one in some]
            pruned = sum(one is not None for one in some)
            compiled = sum(one is not None and one.is_compiled for one in some)
            self._answer_together(requests, found)
            left = found.count(None)
            # The body that is refused is refused again when it is answered, by its place.
            with suppress(EngineRefused), finite_scores():
                self._scorer.prepare(
                    request.query for request, one in zip(requests, found, strict=True) if one is None
                )
            answers: list[Answer] = []
            with _next_is_named(answers):
                for request, one in zip(requests, found, strict=True):
                    answers.append(self._best(request) if one is None else one)
            return packed(answers), pruned, compiled + len(answers) - pruned - left

    def _answer_together(self, requests: Sequence[Request], found: list[Answer | None]) -> None:
        """Put the answers into `found` that can be had together, of the requests that have none."""
        places = [place for place, one in enumerate(found) if one is None]
        if not places:
            return
        with suppress(EngineRefused), finite_scores():
            answers = self._together.best([requests[place] for place in places])
            for place, answer in zip(places, answers, strict=True):
                found[place] = answer

    def _pruned(self, request: Request, *, alone: bool = True) -> Pruned | None:
        """The best documents of a query where they can be found without scoring all documents, None elsewhere."""
        frame = request.frame
        if frame.after is not None:
            return None
        found = self._pruner.best(request.query, frame.first + frame.size, alone=alone)
        if found is None or not frame.first:
            return found
        return Pruned(found.documents[frame.first :], found.scores[frame.first :], found.is_compiled)

    def _tell(self, answers: int, pruned: int, together: int = 0) -> None:
        """Say how a batch was searched, to those who want to know."""
        queries = "1 query" if answers == 1 else f"{answers} queries"
        compiled = f", {together} scored by compiled functions" if together else ""
        _log.info("%s: %s, %d of them pruned%s", self.info.version, queries, pruned, compiled)

    def find(self, body: Body, terms: Terms = NO_TERMS) -> list[Found]:  # noqa: ARG002  # each is known
        require_wanted()
        with self._damage_reported(), finite_scores():
            request = self._bodies.read(body)
            frame = request.frame
            schema, query = self._reader.schema, request.query
            explainer = Explainer(self._reader, self._scorer) if frame.explain else None
            highlighter = None
            if frame.highlight is not None:
                highlighter = Highlighter.of(frame.highlight, request.marked, schema, self._emitted)
            documents, scores = self._best_again(request, f"{frame.counts_all} {body.get('query')!r}")
            hits = self._hits(documents, scores)
            sources = self._reader.sources.sources(documents.tolist())
            return [
                Found(
                    hit=hit,
                    source=frame.source.apply(source),
                    highlights=highlighter.highlights(source) if highlighter else {},
                    explanation=explainer.explanation(query, document) if explainer else None,
                )
                for hit, document, source in zip(hits, documents.tolist(), sources, strict=True)
            ]

    def page(self, body: Body, terms: Terms = NO_TERMS) -> tuple[list[Found], int]:
        found = self.find(body, terms)
        frame = self._bodies.frame(body)
        is_all = frame.first == 0 and frame.after is None and len(found) < frame.size
        return found, len(found) if is_all else self.counts(body["query"], {}).total

    def analyze(
        self, text: str, *, field: str | None = None, analyzer: str | None = None
    ) -> list[AnalysisStep]:
        if analyzer is not None:
            return self._analyzers.analyzer(analyzer).steps(text)
        return self._analyzer_of(field).steps(text)

    def frequencies(self, terms: Terms) -> dict[str, dict[str, int]]:
        fields = {name: field for name, field in self._reader.fields.items() if not field.field.is_number}
        with self._damage_reported():
            return {
                name: {term: fields[name].document_frequency(term) if name in fields else 0 for term in some}
                for name, some in terms.items()
            }

    def unknown(self, terms: Terms) -> Terms:  # noqa: ARG002  # none is
        return NO_TERMS

    def counts(self, query: Body, fields: Mapping[str, int]) -> Counts:
        require_wanted()
        with self._damage_reported(), finite_scores():
            matching = self._scorer.matching(self._bodies.read({"query": query, "sort": BEST_FIRST}).query)
            return counts(self._reader, matching, fields)

    def twin(self) -> EmbeddedIndex:
        try:
            return EmbeddedIndex(IndexReader(self._reader.folder, self._reader.mapping), self._analyzers)
        except DataError:
            if self._reader.folder.is_dir():
                raise
            raise Replaced(self.info.version) from None

    def close(self) -> None:
        self.is_closed = True
        self._reader.close()

    def verify(self) -> None:
        """Read every file and compare it with the digest it was written with.

        Raises:
            DataError: a file was altered.
            SearchappError: a file can't be read.
        """
        verified.verify(self._reader.folder, self._reader.manifest)

    def _analyzer_of(self, name: str | None) -> Analyzer:
        if name is None:
            return self._analyzers.analyzer("standard")
        field = self._reader.schema.fields.get(name)
        if field is None:
            raise invalid(f"the index {self.info.name} has no field {name}")
        return self._analyzers.analyzer(field.analyzer or "keyword")

    def _best(self, request: Request) -> Answer:
        return self._best_of(self._scored(request), request.frame)

    def _scored(self, request: Request) -> Scores:
        scorer = self._scorer.complete if request.frame.counts_all else self._scorer
        return scorer.scores(request.query)

    def _best_again(self, request: Request, words: str) -> Answer:
        """The best documents of a query in these words; if all are scored, the scores are kept for its next hits."""
        if self._found is None or self._found[0] != words:
            pruned = self._pruned(request)
            self._tell(1, pruned is not None, int(pruned is not None and pruned.is_compiled))
            if pruned is not None:
                return pruned[:2]
            self._found = words, self._scored(request)
        return self._best_of(self._found[1], request.frame)

    def _best_of(self, scores: Scores, frame: Frame) -> Answer:
        first, size = frame.first, frame.size
        if frame.after is not None:
            score, id_ = frame.after
            scores = topk.behind(scores, self._reader.ranks, score, self._reader.ids.place_behind(id_))
        documents = topk.best(scores, self._reader.ranks, first + size)[first:]
        return documents.astype(np.int32), scores.values[documents]

    def _hits(self, documents: Numbers, scores: Float32s) -> Hits:
        return Hits(self._reader.ids_of(documents), scores.tolist())

    @contextmanager
    def _damage_reported(self) -> Iterator[None]:
        """Report an altered file as such: what it yields makes little sense, but must not end in a traceback."""
        try:
            yield
        except (IndexError, TypeError, ValueError, OverflowError, MemoryError, sqlite3.Error):
            if self._reader.folder.is_dir():
                self.verify()
            raise


@contextmanager
def _next_is_named(done: Sequence[object]) -> Iterator[None]:
    """Name the body of a batch that is refused: it is the next after those that are done."""
    try:
        with finite_scores():
            yield
    except EngineRefused as error:
        raise QueryRefused(str(error), len(done)) from error
