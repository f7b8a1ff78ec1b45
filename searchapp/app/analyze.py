"""Show the analysis of texts step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from searchapp.engines.base import Index
from searchapp.errors import UsageError
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.index_settings import mapped_fields
from searchapp.model import AnalysisStep, Token
from searchapp.ranking.highlighting import search_analyzer
from searchapp.ranking.search_results import text_fields
from searchapp.tasks.base import Task
from searchapp.text import choices_hint


@dataclass(frozen=True, slots=True)
class Analysis:
    """The steps of an analyzer on a text."""

    # "field" for the analyzer that indexes a field, "search" for the one of its queries, or "analyzer".
    kind: str
    name: str
    steps: Sequence[AnalysisStep]


@dataclass(frozen=True, slots=True)
class StepPair:
    """One step of the analysis of two texts; a text that skips the step keeps its previous terms."""

    name: str
    document: AnalysisStep | None  # None before the first step of the document's text
    query: AnalysisStep | None
    is_of_document: bool = True  # whether the document's text takes the step
    is_of_query: bool = True

    @property
    def common(self) -> frozenset[str]:
        """The terms that both have after the step."""
        if self.document is None or self.query is None:
            return frozenset()
        return _terms(self.document.tokens) & _terms(self.query.tokens)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The analyses of a document's text and of a query in a field."""

    field: str
    steps: Sequence[StepPair]


def fields_of(task: Task) -> list[str]:
    """Return the names of the text fields and sub-fields of a task's documents."""
    return text_fields(task.index_mapping()["mappings"]["properties"])


def analyze(
    task: Task, index: Index, text: str, *, field: str | None = None, analyzer: str | None = None
) -> list[Analysis]:
    """Analyze a text in a field, by a named analyzer or, with neither, in every text field.

    A field whose queries have another analyzer has two analyses.

    Raises:
        UsageError: the field or the analyzer is unknown, or both are given.
        EngineError: the engine failed, or rejected the text.
    """
    require(task, field, analyzer)
    if analyzer:
        return [Analysis("analyzer", analyzer, index.analyze(text, analyzer=analyzer))]
    names = [field] if field else fields_of(task)
    mapping = task.index_mapping()
    analyses = []
    for name in names:
        analyses.append(Analysis("field", name, index.analyze(text, field=name)))
        if of_queries := _searching(mapping, name):
            analyses.append(Analysis("search", name, index.analyze(text, analyzer=of_queries)))
    return analyses


def require(task: Task, field: str | None, analyzer: str | None) -> None:
    """Check that a task has a field or an analyzer.

    Raises:
        UsageError: it lacks it, or both are given.
    """
    if field and analyzer:
        raise UsageError("--field and --analyzer exclude each other: give one of them")
    fields = fields_of(task)
    analyzers = sorted(task.index_mapping().get("settings", {}).get("analysis", {}).get("analyzer", {}))
    if field and field not in fields:
        raise UsageError(f"{task.name} has no text field {choices_hint(field, fields)}")
    if analyzer and analyzer not in analyzers:
        choice = choices_hint(analyzer, analyzers) if analyzers else f"{analyzer!r}: choose a field instead"
        raise UsageError(f"{task.name} has no analyzer {choice}")


def side_by_side(task: Task, index: Index, field: str, text: str, query: str) -> SideBySide:
    """Analyze a document's text and a query in a field.

    Raises:
        as `analyze` does.
    """
    require(task, field, None)
    mapping = task.index_mapping()
    of_text = index.analyze(text, field=field)
    if of_queries := _searching(mapping, field):
        of_query = index.analyze(query, analyzer=of_queries)
    else:
        of_query = index.analyze(query, field=field)
    return SideBySide(field, list(_paired(of_text, of_query)))


def _searching(mapping: Mapping[str, Any], field: str) -> str | None:
    """Return the analyzer of queries on a field, None if it also indexes the field."""
    described = next(
        mapped.described
        for mapped in mapped_fields(mapping["mappings"]["properties"])
        if mapped.name == field
    )
    if described.get("search_analyzer", described.get("analyzer")) == described.get("analyzer"):
        return None
    return search_analyzer(mapping, described)


def _paired(of_text: Sequence[AnalysisStep], of_query: Sequence[AnalysisStep]) -> Iterator[StepPair]:
    """Pair steps of the same name, in the order of the document's steps; other steps stay single."""
    document: AnalysisStep | None = None
    query: AnalysisStep | None = None
    unpaired = list(of_query)
    for step in of_text:
        index = next((number for number, other in enumerate(unpaired) if _name(other) == _name(step)), None)
        for query in unpaired[: index or 0]:
            yield StepPair(_name(query), document, query, is_of_document=False)
        document = step
        if index is None:
            yield StepPair(_name(step), document, query, is_of_query=False)
        else:
            query = unpaired[index]
            yield StepPair(_name(step), document, query)
            del unpaired[: index + 1]
    for query in unpaired:
        yield StepPair(_name(query), document, query, is_of_document=False)


def _name(step: AnalysisStep) -> str:
    return f"{step.kind} {step.name}".strip()


def _terms(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.term for token in tokens)
