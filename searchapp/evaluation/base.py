"""The interface of official scorers, and functions on rankings that scorers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from searchapp.errors import UsageError
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Run
from searchapp.options import flag, option

P = TypeVar("P")  # the predictions of a submission in the form of its scorer
P_contra = TypeVar("P_contra", contravariant=True)

Qrels = Mapping[str, Mapping[str, int]]  # grades by topic and document, in the scorer's names

# Figures of one topic or file by official name; None if the topic does not count for a figure.
Figures = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class OfficialScore:
    """The figures of the official scorer for the same files."""

    # The figure that ranks submissions.
    measure: str
    # All figures by their official names ("MAP@500"), as fractions; nan where the official figure is.
    values: Mapping[str, float]
    # The results of single topics, in the order of the gold.
    per_topic: Mapping[str, float | Figures] = field(default_factory=dict)
    # Messages on misleading figures.
    warnings: tuple[str, ...] = ()
    # Correct values of misleading figures.
    honest: Mapping[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        return self.values[self.measure]

    def of_topics(self, name: str | None = None) -> dict[str, float | None]:
        """Return the values by topic whose mean is a figure, by default the one that ranks submissions.

        None for a topic that does not count; empty for a figure that is not a mean.
        """
        name = self.measure if name is None else name
        values = {topic: _of_topic(given, name, self.measure) for topic, given in self.per_topic.items()}
        return values if any(value is not None for value in values.values()) else {}


_OF_ONE = {"MAP": "AP", "MRR": "RR"}


def topic_measure_name(measure_name: str) -> str:
    """Return the name of a measure for a single topic: AP@500 for MAP@500."""
    name = measure_name.removeprefix("mean ").partition(" (")[0]
    kind, at, cutoff = name.partition("@")
    return f"{_OF_ONE.get(kind, kind)}{at}{cutoff}"


def _of_topic(given: float | Figures | None, name: str, ranking_name: str) -> float | None:
    if not isinstance(given, Mapping):
        return given if name == ranking_name else None
    names = (name, topic_measure_name(name), topic_measure_name(name).lower())
    return next((given[key] for key in names if key in given), None)


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """The figures of one group of a breakdown."""

    group: str
    # The number of topics, or of `Breakdown.counted`, in the means.
    count: int
    values: Mapping[str, float]
    # The names of its topics in `Scored.qrels`; empty for a group of something else.
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Figures by group."""

    # The name for `evaluate --by`.
    name: str
    title: str
    rows: tuple[BreakdownRow, ...]
    counted: str = "topics"
    # The figure, a fraction, that is displayed as bars too.
    histogram: str | None = None

    def to_json(self) -> dict[str, Any]:
        rows = [{"group": row.group, self.counted: row.count, **row.values} for row in self.rows]
        return {"title": self.title, "rows": rows}


@dataclass(frozen=True, slots=True)
class Scored:
    """The result of a scorer for a submission."""

    official: OfficialScore
    # The number of topics with gold.
    topics: int
    # The rankings for the field's measures, each document once.
    rankings: Mapping[str, Sequence[str]]
    # The grades for the field's measures, above 0 for relevant documents.
    qrels: Qrels


@dataclass(frozen=True, slots=True)
class ScorerOptions:
    """Arguments of the official scripts, without the files."""

    cutoff: int | None = option("nlps: cut-off of the official scorer; default: 500.", min=1)
    hierarchy: Path | None = option(
        "smart-types-dbpedia: TSV file of the type hierarchy, if it is not in --data."
    )
    knowledge_base: str | None = option(
        "smart-relations: knowledge base for the official scorer; default: the task's own.",
        "--kb",
    )
    # The split to score in a gold file with several splits, such as the folds of a train file; None: all.
    split: str | None = None
    lenient: bool = flag(
        "Continue, with a warning, where the official scorer stops. checkthat: ignore debates that are too "
        "short for P@50 in that figure; smart-types-wikidata: compare whole labels; explanation-2019: read "
        "questions in the layout of WorldTree 2. No effect on other tasks."
    )


@dataclass(frozen=True, slots=True)
class GoldFiles:
    """The gold files of a submission, and further arguments of the official scripts."""

    files: Sequence[Path]
    options: ScorerOptions = field(default_factory=ScorerOptions)
    # The folder of the task's other files, which some breakdowns need, if it is known.
    folder: Path | None = None

    @property
    def file(self) -> Path:
        (path,) = self.files
        return path

    def require_folder(self) -> Path:
        """Return the folder.

        Raises:
            UsageError: it is not known.
        """
        if self.folder is None:
            raise UsageError("a breakdown needs the task's other files: give --data and --split")
        return self.folder


class Scorer(Protocol[P]):
    """The official scorer of a task."""

    @property
    def files_make_one(self) -> bool:
        """Whether several prediction files are one submission, paired with as many gold files."""

    def read(self, files: Sequence[Path]) -> P:
        """Read the official files of a submission.

        Raises:
            NotScorable: the official script stops on the files or rejects them.
            DataError: a file is missing or can't be read.
        """

    def predictions(self, run: Run) -> P:
        """Return the result of `read` for the official files of a run."""

    def qrels(self, gold: GoldFiles) -> Qrels:
        """Read the grades of gold files for `Scored.qrels`.

        Raises:
            NotScorable: the official script stops on a file or rejects it.
            DataError: a gold file is missing or can't be read.
        """

    def score(self, predictions: P, gold: GoldFiles) -> Scored:
        """Score predictions against gold files.

        Raises:
            NotScorable: the official script stops on them or rejects them.
            DataError: a gold file is missing or can't be read.
        """


class BreakdownScorer(Protocol[P_contra]):
    """A scorer with breakdowns."""

    @property
    def breakdowns(self) -> tuple[str, ...]: ...

    def breakdown(self, predictions: P_contra, gold: GoldFiles, wanted: Sequence[str]) -> Iterable[Breakdown]:
        """Compute the breakdowns of these names, which may need the gold's folder."""


# A ranking as `formats.two_column` reads it: each fact once; None is a missing value, which occupies a rank.
Ranked = Sequence[str | None]

Predictions = Mapping[str, Ranked]  # the ranking of each question

Terms = Callable[[str], frozenset[str]]  # returns the stemmed content words of a text


def ranks_of(ranked: Ranked, facts: Collection[str]) -> dict[str, int]:
    """Return the ranks, from 1, of the ranked facts."""
    wanted = facts if isinstance(facts, Mapping | set | frozenset) else set(facts)
    return {fact: rank for rank, fact in enumerate(ranked, 1) if fact in wanted and fact is not None}


def average_precision(ranks: Iterable[int], relevant: int) -> float:
    """Return the sum of the precisions at the ranks of relevant facts, divided by their total number."""
    return (
        math.fsum(count / rank for count, rank in enumerate(sorted(ranks), 1)) / relevant if relevant else 0.0
    )


def without(ranked: Ranked, excluded: Collection[str]) -> list[str | None]:
    """Remove facts from a ranking; later facts move up."""
    return [fact for fact in ranked if fact not in excluded]


def distinct(ranked: Ranked) -> Sequence[str]:
    """Remove missing values from a ranking."""
    return ranked if None not in ranked else [fact for fact in ranked if fact is not None]  # type: ignore[return-value]


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 without values."""
    return math.fsum(values) / len(values) if values else 0.0
