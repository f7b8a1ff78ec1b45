"""Compare both engines on random texts as users type them, on sample collections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

from searchapp import tasks
from searchapp.app.index import index_task, open_index
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.engines.base import Engine
from searchapp.errors import SearchappError
from searchapp.formats.problems import Problems
from searchapp.model import Document
from searchapp.progress import SilentProgress
from searchapp.ranking.query_language import BrokenQuery, FieldFilter, FieldKind, SearchFields
from searchapp.ranking.search_results import SearchResult
from searchapp.resources import SAMPLES
from searchapp.tasks.base import Collection, Task
from tests.search.comparing import sorted_explanation
from tests.search.drawing import Draw
from tests.search.queries import EnginePair
from tests.search.reducing import smallest
from tests.server.rest import Server

TASKS = ("checkthat", "nlps", "smart-types-dbpedia")
"""Samples with keyword and number fields, with formulae and with several text fields."""

Outcome = tuple[Any, ...]

# fmt: off
FORMULAE = [
    "$x$", "$x \\circ y = y \\circ x$", r"\(x\)", r"\struct {R, +}", "$5", "$5 -the $6", "$$a b$$", "x^{-1}", "f(x)",
    "$", "$$", r"\{a, b\}", "$(a$", "G/H", "$a) b$", r"\$x$",
]
HARD = [
    "the", "of", "THE", "don't", "a*b", "*", "**", "f:", ":x", "é", "ÉTÉ", "😀", "Å", "ﬁ", "-", "+", "--", "+-", "- 1",
    "\u3000", "AND", "OR", "NOT", "{{topic.text}}", "\\", "\\\\", "&amp;", "%", "x~2", "[1 TO 5]", "/a.*/", "\x00",
    "x" * 300,
]
ESCAPED = [r"\-1", r"\+x", r"\(", r"\)", r"\"", r"ring\*", r"\text:the", r"\speaker:x", '"a \\" b"', r"\\-x", r"\x"]
PIECES = ['"', "(", ")", "\\", "+", "-", "*", ":", "$", " ", "\ud800", '""', "()", "+(", '-"', "text:", "line:", "\\*"]
NUMBERS = [
    "0", "1", "5", "-5", "+3", "007", "1.0", "1e3", "9" * 19, "9" * 30, "9" * 500, "x", "", "٣", "1_0", "nan",
    "inf", "3*",
]
# fmt: on


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words, adjacent words and field values of the documents of a task."""

    words: Sequence[str]
    neighbours: Sequence[str]
    fields: dict[str, Sequence[str]]
    kinds: dict[str, FieldKind]

    @classmethod
    def of(cls, task: Task, collection: Collection) -> Vocabulary:
        """Return the vocabulary of a collection's documents, sorted."""
        documents = list(collection.documents.read(Problems()))
        texts = [document.text.split() for document in documents]
        kinds = dict(SearchFields.of(task.index_mapping(), {}).kinds)
        values = {
            name: sorted({str(source[name]) for source in map(Document.source, documents) if name in source})
            for name in kinds
        }
        return cls(
            sorted({word for text in texts for word in text}),
            sorted({" ".join(pair) for text in texts for pair in pairwise(text)}),
            {name: texts for name, texts in values.items() if texts},
            kinds,
        )


class Typist:
    """Generate random queries."""

    def __init__(self, draw: Draw, vocabulary: Vocabulary) -> None:
        self._draw = draw
        self._vocabulary = vocabulary

    def request(self, recipes: Sequence[str], filters: Sequence[str]) -> SearchRequest:
        """Return a request with a text and random options."""
        draw = self._draw
        chosen = (
            draw.several(lambda: self._filter(draw.choice(filters)), 3, 1)
            if filters and draw.chance(0.2)
            else ()
        )
        return SearchRequest(
            self.text(),
            draw.choice(recipes) if draw.chance(0.3) else None,
            tuple(chosen),
            size=draw.choice([50, 50, 10, 1]),
            first=draw.choice([0] * 9 + [3, 20, 1_000]),
            explain=draw.chance(0.15),
            literal=draw.chance(0.05),
        )

    def text(self) -> str:
        """Return a typed text; one in seven has typing errors."""
        draw = self._draw
        typed = draw.choice([" ", " ", " ", "  ", "\t"]).join(draw.several(lambda: self._clause(0), 6, 1))
        for _ in range(draw.number(1, 3) if draw.chance(0.15) else 0):
            position = draw.number(0, len(typed))
            typed = typed[:position] + draw.choice([*PIECES, ""]) + typed[position + draw.number(0, 1) :]
        return typed

    def _clause(self, depth: int) -> str:
        return self._draw.choice(["", "", "", "", "", "+", "-"]) + self._atom(depth)

    def _atom(self, depth: int) -> str:
        draw = self._draw
        kind = draw.number(0, 11)
        if kind < 4:
            return self._word()
        if kind == 4:
            return '"' + draw.choice(self._vocabulary.neighbours).replace('"', "") + '"'
        if kind == 5:
            return '"' + " ".join(draw.several(self._word, 4)).replace('"', '\\"') + '"'
        if kind == 6:
            word = self._word()
            return word[: draw.number(1, 5)] + "*"
        if kind in (7, 8):
            return self._in_field(depth)
        if kind == 9 and depth < 3:
            return "(" + " ".join(draw.several(lambda: self._clause(depth + 1), 4)) + ")"
        return draw.choice([*FORMULAE, *HARD, *ESCAPED])

    def _word(self) -> str:
        return self._draw.choice(self._vocabulary.words)

    def _in_field(self, depth: int) -> str:
        draw, name = self._draw, self._draw.choice(sorted(self._vocabulary.kinds))
        if draw.chance(0.1):
            return f"{name}:{self._atom(depth)}"
        return f"{name}:{self._value(name)}"

    def _value(self, name: str) -> str:
        draw, kind = self._draw, self._vocabulary.kinds[name]
        if kind is FieldKind.text or name not in self._vocabulary.fields:
            return draw.choice(
                [
                    self._word(),
                    f'"{self._word()}"',
                    f"({self._word()} -{self._word()})",
                    self._word()[:3] + "*",
                ]
            )
        if kind is not FieldKind.value and draw.chance(0.4):
            return draw.choice(NUMBERS)
        value = draw.choice(self._vocabulary.fields[name])
        return draw.choice([value, f'"{value}"', value[:2] + "*", f"(+{value})"])

    def _filter(self, name: str) -> FieldFilter:
        values = self._vocabulary.fields.get(name, ("x",))
        odd = NUMBERS if self._vocabulary.kinds[name] is not FieldKind.value else ["", "x", "\ud800"]
        return FieldFilter(
            name, self._draw.choice(values) if self._draw.chance(0.8) else self._draw.choice(odd)
        )


@cache
def _sample(name: str) -> tuple[Task, Vocabulary]:
    task = tasks.load(name)
    return task, Vocabulary.of(task, task.collection(SAMPLES / name))


class SampleEngines(EnginePair):
    """Both engines with indexed samples. `close` deletes them."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._searchers: dict[str, tuple[TaskSearcher, ...]] = {}

    def searchers(self, name: str) -> tuple[TaskSearcher, ...]:
        """Return the searchers of a task's sample in the embedded engine and Elasticsearch; index it first."""
        if name not in self._searchers:
            self._searchers[name] = tuple(
                self._searcher(name, engine) for engine in (self._embedded, self._elasticsearch)
            )
        return self._searchers[name]

    def _searcher(self, name: str, engine: Engine) -> TaskSearcher:
        task, _ = _sample(name)
        index_task(task, engine, task.collection(SAMPLES / name), SilentProgress())
        return TaskSearcher(
            task, engine, open_index(task, engine), SilentProgress(), lambda: task.collection(SAMPLES / name)
        )

    def requests(self, name: str, seed: int, count: int) -> Iterator[SearchRequest]:
        """Yield requests for a task; a seed always gives the same requests."""
        searcher, _ = self.searchers(name)
        typist = Typist(Draw(f"typed {name} {seed}"), _sample(name)[1])
        for _ in range(count):
            yield typist.request(searcher.recipes, searcher.fields().filters)

    def difference(self, name: str, request: SearchRequest) -> str | None:
        """Return the difference of the engines' outcomes for the smallest text that shows it, None if there is none."""
        if self._first_difference(name, request) is None:
            return None
        text = smallest(
            request.text, lambda text: self._first_difference(name, replace(request, text=text)) is not None
        )
        request = replace(request, text=text)
        return f"{name}: {request!a}\n{self._first_difference(name, request)}"

    def kind(self, name: str, request: SearchRequest) -> str:
        """Return the kind of a request's outcome: `hits`, `none`, `broken` or `refused`."""
        first, *_ = outcome(self.searchers(name)[0], request)
        return first if isinstance(first, str) else "hits" if first else "none"

    def _first_difference(self, name: str, request: SearchRequest) -> str | None:
        ours, theirs = (outcome(searcher, request, self._is_older) for searcher in self.searchers(name))
        return None if ours == theirs else f"ours:   {ascii(ours)[:1200]}\ntheirs: {ascii(theirs)[:1200]}"


def outcome(searcher: TaskSearcher, request: SearchRequest, is_older: bool = False) -> Outcome:
    """Return the hits of a request with details and counts, or the error.

    If the server `is_older`, explanations have only the value.
    """
    try:
        results, counts = searcher.search(request), searcher.counts(request)
    except BrokenQuery as error:
        return "broken", error.at, error.what
    except SearchappError as error:
        return "refused", type(error).__name__
    return (
        [_comparable(result, is_older) for result in results],
        counts.total,
        {name: list(values) for name, values in counts.values.items()},
    )


def _comparable(result: SearchResult, is_older: bool) -> Outcome:
    explanation = None if result.explanation is None else sorted_explanation(result.explanation)
    if is_older and explanation is not None:
        explanation = {"value": explanation["value"]}
    return result.rank, tuple(result.hit), result.text, dict(result.source), result.matches, explanation


def engines(server: Server) -> closing[SampleEngines]:
    """Return both engines as a context manager."""
    return closing(SampleEngines(server))
