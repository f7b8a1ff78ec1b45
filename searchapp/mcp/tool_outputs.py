"""The results of the tools, whose JSON schemas clients receive.

Texts of documents, topics, files and servers are made harmless here: signs replace control characters and invisible
characters, which could act on the terminal or the page of a client, or hide instructions from the user.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from searchapp.text import visible


def harmless(value: Any) -> Any:
    """Show control characters in all texts of a value; undefined numbers become None, as JSON has none."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {harmless(name): harmless(of_name) for name, of_name in value.items()}
    if isinstance(value, Sequence):
        return [harmless(item) for item in value]
    return value


class ToolOutput(BaseModel):
    """The structured result of a tool, or a part of it."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _harmless(cls, fields: Any) -> Any:
        return harmless(fields)


class ToolPage(ToolOutput):
    """One page of a list."""

    total: int = Field(description="Number of entries on all pages.")
    next_cursor: str | None = Field(
        description="The argument cursor for the next page; null on the last one."
    )


Figures = Mapping[str, float | None]


class ListedTask(ToolOutput):
    """A task, and whether its documents are indexed."""

    name: str = Field(description="The argument task of other tools.")
    title: str
    about: str
    splits: Sequence[str]
    recipes: Sequence[str] = Field(description="Ways to rank its topics.")
    grades: Sequence[str] = Field(description="The labels of the grades 0, 1, …")
    official_measure: str
    documents: int | None = Field(description="Number of indexed documents; null if it can't be searched.")
    indexed_sample: bool = Field(
        description="Whether the index has only the sample that ships with searchapp."
    )
    judged: int = Field(description="Number of judged documents.")


class TaskPage(ToolPage):
    """The known tasks."""

    engine: str | None = Field(description="The search engine; null if it does not answer.")
    problem: str = Field(description="Why the engine does not answer.")
    tasks: list[ListedTask]


class ShortText(ToolOutput):
    """The text of a topic or document, which may be cut."""

    text: str
    is_cut: bool = Field(description="Whether the text is longer.")


class ListedTopic(ShortText):
    """A topic, with its figures in a run if one is given."""

    id: str
    value: float | None = Field(description="The measure in the run, null if it has none.")
    relevant: int | None = Field(description="Number of relevant documents.")
    missed: int | None = Field(description="Number of relevant documents that the run does not rank.")


class TopicPage(ToolPage):
    """The topics of a split, or of a run."""

    task: str
    split: str
    run: str | None
    measure: str | None = Field(description="The measure of the topics in the run.")
    topics: list[ListedTopic]
    notes: Sequence[str]


class FoundDocument(ShortText):
    """A document with its place in a ranking, and the part of its text with the most matches."""

    rank: int
    id: str
    score: float | None


class FoundDocuments(ToolPage):
    """The documents that match words, best first."""

    task: str
    recipe: str
    documents: list[FoundDocument]
    notes: Sequence[str] = Field(description="Words that no document has, and queries that find more.")


class DocumentField(ToolOutput):
    """A field of a document besides its text."""

    name: str
    value: str
    is_cut: bool


class DocumentText(ToolPage):
    """A part of a document's text."""

    total: int = Field(description="Number of characters of the text.")
    task: str
    id: str
    text: str
    fields: list[DocumentField] = Field(description="The other fields, on the first page.")


class GuidelinesText(ToolPage):
    """A part of the guidelines of a task."""

    total: int = Field(description="Number of characters of the guidelines; 0 if the task has none.")
    task: str
    text: str = Field(description="Markdown.")


class ScorePart(ToolOutput):
    """A line of an explanation: parts of a part follow it with a greater depth."""

    depth: int
    value: float | None
    what: str


class ScoreExplanation(ToolOutput):
    """Why a document has its rank, or none."""

    task: str
    document: str
    sentence: str
    status: str
    rank: int | None
    score: float | None
    signals: Figures = Field(description="The score by each signal of a recipe with several.")
    parts: list[ScorePart]
    is_cut: bool = Field(description="Whether there are further parts.")


class RunEntry(ToolOutput):
    """A run: the rankings of the topics of a split by one system."""

    name: str = Field(description="The argument run of other tools.")
    task: str
    split: str
    system: str = Field(description="The recipe, or the imported system.")
    tags: Sequence[str]
    topics: int
    depth: int | None
    created: str
    measure: str | None
    value: float | None = Field(description="The official figure, if it has been computed.")


class RunPage(ToolPage):
    """The known runs, the latest first."""

    runs: list[RunEntry]


class RankedDocument(FoundDocument):
    """A document of a run."""

    is_indexed: bool
    grade: int | None = Field(description="The grade that this session's annotator has given.")


class RunRanking(ToolPage):
    """The documents that a run ranks for a topic, best first."""

    run: str
    task: str
    split: str | None
    topic: str
    topic_text: str
    is_topic_cut: bool
    documents: list[RankedDocument]
    notes: Sequence[str]


class FigureGroup(ToolOutput):
    """A group of topics in a breakdown."""

    group: str
    count: int
    values: Figures


class RunFigures(ToolOutput):
    """The figures of a run, as fractions."""

    run: str
    task: str | None
    split: str | None
    topics: int
    official_measure: str
    official: Figures = Field(description="The figures of the official scorer.")
    corrected: Figures = Field(description="Correct values of misleading official figures.")
    measures: Figures
    breakdowns: dict[str, list[FigureGroup]]
    warnings: Sequence[str]


class ComparedPair(ToolOutput):
    """The difference of two runs under a measure, second − first."""

    measure: str
    first: str
    second: str
    difference: float | None
    low: float | None = Field(description="Lower end of the 95 % bootstrap interval.")
    high: float | None
    p: float | None = Field(
        description="Of the randomisation test, corrected for all pairs by Holm's method."
    )
    wins: int = Field(description="Number of topics for which the second run is better.")
    ties: int
    losses: int


class RunComparison(ToolOutput):
    """The means of runs, and tests of their differences."""

    task: str
    split: str | None
    topics: int
    means: dict[str, Figures] = Field(description="By measure and run.")
    pairs: list[ComparedPair]
    notes: Sequence[str]


class SavedJudgment(ToolOutput):
    """A judgment that is in the log."""

    annotator: str
    task: str
    topic: str
    document: str
    grade: int | None
    label: str
    left: int = Field(description="How many judgments this session may still give.")
