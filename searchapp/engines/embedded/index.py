"""A handle on one version of an index in the home folder."""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice

from searchapp import processes
from searchapp.engines.base import (
    BEST_FIRST,
    NO_TERMS,
    Body,
    Counts,
    Explanation,
    Found,
    Index,
    IndexInfo,
    Terms,
    one_by_one,
)
from searchapp.engines.embedded import native
from searchapp.engines.embedded.body import BodyReader, Request
from searchapp.engines.embedded.counting import counts
from searchapp.engines.embedded.highlight import Emitted, Highlighter
from searchapp.engines.embedded.memory import Answer, Memory, Packed, packed, unpacked
from searchapp.engines.embedded.parts import Parts, shared_out
from searchapp.engines.embedded.pruning import Pruned
from searchapp.engines.embedded.queries.nodes import Query
from searchapp.engines.embedded.queries.parse import Parser
from searchapp.engines.embedded.queries.readers import READERS
from searchapp.engines.embedded.queries.settle import settled
from searchapp.engines.embedded.refusals import invalid
from searchapp.engines.embedded.schema import Analyzer, Analyzers
from searchapp.engines.embedded.scoring import finite_scores
from searchapp.engines.embedded.searcher import Searcher
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.reader import IndexReader, Numbers
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

    def __init__(
        self, reader: IndexReader | Parts, analyzers: Analyzers, memory: Memory | None = None
    ) -> None:
        self._reader = reader
        self._memory = memory
        self._analyzers = analyzers
        self._bodies = BodyReader(
            Parser(reader.schema, analyzers, READERS, partial(settled, reader=reader.parts[0]))
        )
        self._searchers = [Searcher(part, analyzers) for part in reader.parts]
        self._emitted = Emitted(analyzers)
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
            for searcher in self._searchers:
                searcher.pruner.prepare(queries)

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
            asked = requests if len(self._searchers) == 1 else [request.from_first() for request in requests]
            every = [searcher.found(asked, alone=alone) for searcher in self._searchers]
            answers: list[Answer] = []
            with _next_is_named(answers):
                for place, request in enumerate(requests):
                    answers.append(
                        self._merged(
                            request,
                            [
                                searcher.best(asked[place]) if (one := found[place]) is None else one
                                for searcher, (found, _pruned, _compiled) in zip(
                                    self._searchers, every, strict=True
                                )
                            ],
                        )
                    )
            _found, pruned, compiled = every[0]  # those of the base, which is nearly all
            return packed(answers), pruned, compiled

    def _merged(self, request: Request, answers: Sequence[Answer]) -> Answer:
        """The answer to a request from those that the parts give to it, see `Request.from_first`."""
        if len(answers) == 1:
            return answers[0]
        assert isinstance(self._reader, Parts)
        return self._reader.merged(answers, request.frame.first, request.frame.size)

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
            highlighter = None
            if frame.highlight is not None:
                highlighter = Highlighter.of(frame.highlight, request.marked, schema, self._emitted)
            documents, scores = self._best_again(request, f"{frame.counts_all} {body.get('query')!r}")
            hits = self._hits(documents, scores)
            sources = self._reader.sources_of(documents)
            explanations = self._explanations(query, documents) if frame.explain else {}
            return [
                Found(
                    hit=hit,
                    source=frame.source.apply(source),
                    highlights=highlighter.highlights(source) if highlighter else {},
                    explanation=explanations.get(document),
                )
                for hit, document, source in zip(hits, documents.tolist(), sources, strict=True)
            ]

    def _explanations(self, query: Query, documents: Numbers) -> dict[int, Explanation]:
        """How a query comes to the scores of documents, by their numbers."""
        found: dict[int, Explanation] = {}
        shares = shared_out(documents, self._reader.parts)
        for searcher, (places, numbers) in zip(self._searchers, shares, strict=True):
            explanations = searcher.explanations(query, numbers.tolist())
            found |= zip(documents[places].tolist(), explanations, strict=True)
        return found

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
            read = self._bodies.read({"query": query, "sort": BEST_FIRST}).query
            return counts([(one.reader, one.matching(read)) for one in self._searchers], fields)

    def twin(self) -> EmbeddedIndex:
        try:
            return EmbeddedIndex(self._reader.reopened(), self._analyzers)
        except DataError:
            if self._reader.is_there:
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
        self._reader.verify()

    def _analyzer_of(self, name: str | None) -> Analyzer:
        if name is None:
            return self._analyzers.analyzer("standard")
        field = self._reader.schema.fields.get(name)
        if field is None:
            raise invalid(f"the index {self.info.name} has no field {name}")
        return self._analyzers.analyzer(field.analyzer or "keyword")

    def _best_again(self, request: Request, words: str) -> Answer:
        """The best documents of a query in these words; if all are scored, the scores are kept for its next hits."""
        asked = request if len(self._searchers) == 1 else request.from_first()
        is_new = not self._searchers[0].remembers(words)
        answers = [searcher.best_again(asked, words) for searcher in self._searchers]
        if is_new:
            first = answers[0]
            self._tell(1, isinstance(first, Pruned), int(isinstance(first, Pruned) and first.is_compiled))
        return self._merged(request, [answer[:2] for answer in answers])

    def _hits(self, documents: Numbers, scores: Float32s) -> Hits:
        return Hits(self._reader.ids_of(documents), scores.tolist())

    @contextmanager
    def _damage_reported(self) -> Iterator[None]:
        """Report an altered file as such: what it yields makes little sense, but must not end in a traceback."""
        try:
            yield
        except (IndexError, TypeError, ValueError, OverflowError, MemoryError, sqlite3.Error):
            if self._reader.is_there:
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
