"""The interface of official scorers (scores, breakdowns, options), and functions on rankings that scorers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from searchapp.errors import UsageError
from searchapp.model import Run
from searchapp.options import flag, option

P = TypeVar("P")
"""The predictions of a submission, as a scorer takes them."""
P_contra = TypeVar("P_contra", contravariant=True)

Qrels = Mapping[str, Mapping[str, int]]
"""Grades by topic and document, by the names that the scorer has for them."""

Figures = Mapping[str, float | None]
"""Figures of one topic or file by their official names; None where the topic is left out of a figure."""


@dataclass(frozen=True, slots=True)
class OfficialScore:
    """The figures that the organisers' scorer yields for the same files.

    `values` has all of them by their official names ("MAP@500"), as fractions (nan where theirs is); `measure`
    names the one that ranks submissions. `per_topic` has the single results in the order of the gold.
    `warnings` are sentences that say where a figure misleads, `honest` has what it would be if it did not.
    """

    measure: str
    values: Mapping[str, float]
    per_topic: Mapping[str, float | Figures] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    honest: Mapping[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The figure that ranks submissions."""
        return self.values[self.measure]

    def of_topics(self, name: str | None = None) -> dict[str, float | None]:
        """What one of the figures, by default that which ranks submissions, is the mean of: a value a topic.

        None where a topic is left out of it; nothing for a figure that is no mean of values that the scorer has.
        """
        name = self.measure if name is None else name
        found = {topic: _of_topic(given, name, self.measure) for topic, given in self.per_topic.items()}
        return found if any(value is not None for value in found.values()) else {}


_OF_ONE = {"MAP": "AP", "MRR": "RR"}
"""What the means of the organisers are means of."""


def of_one(measure_name: str) -> str:
    """What a measure of many topics is called for one of them.

    >>> of_one("MAP@500"), of_one("MRR (whole labels)"), of_one("mean NDCG"), of_one("F1")
    ('AP@500', 'RR', 'NDCG', 'F1')
    """
    name = measure_name.removeprefix("mean ").partition(" (")[0]
    kind, at, cutoff = name.partition("@")
    return f"{_OF_ONE.get(kind, kind)}{at}{cutoff}"


def _of_topic(given: float | Figures | None, wanted: str, ranks: str) -> float | None:
    """The figure of a topic that the wanted one is the mean of, where `ranks` names the one that ranks submissions."""
    if not isinstance(given, Mapping):
        return given if wanted == ranks else None
    for name in (wanted, of_one(wanted), of_one(wanted).lower()):
        if name in given:
            return given[name]
    return None


@dataclass(frozen=True, slots=True)
class Row:
    """One group of a breakdown: over how many topics (or whatever `Breakdown.counted` says) its figures are means.

    `topics` are the names of its topics in `Scored.qrels`; none where it is no group of topics.
    """

    group: str
    count: int
    values: Mapping[str, float]
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Figures by group. `name` is what `evaluate --by` takes, `title` says what is broken down and how.

    `histogram` names the figure, a fraction, that people are shown as bars too.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    counted: str = "topics"
    histogram: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The breakdown as `evaluate --json` has it."""
        rows = [{"group": row.group, self.counted: row.count, **row.values} for row in self.rows]
        return {"title": self.title, "rows": rows}


@dataclass(frozen=True, slots=True)
class Scored:
    """What a scorer makes of a submission.

    `topics` counts the topics with gold. `rankings` and `qrels` are what the field's measures are computed
    from: each document once, grades above 0 relevant.
    """

    official: OfficialScore
    topics: int
    rankings: Mapping[str, Sequence[str]]
    qrels: Qrels


@dataclass(frozen=True, slots=True)
class ScorerOptions:
    """What the organisers' scripts take besides the files.

    `nearest`: the cut-off of nlps. `hierarchy`: the type hierarchy of smart-types-dbpedia, when it is not in the
    data. `knowledge_base`: the option `--kb` of the relation scorers. `split`: which questions of the gold files
    count where a file holds several splits, such as the folds of a train file; None means all of them.
    `lenient`: go on where their script stops, by leaving something out or comparing otherwise, and say so in a
    warning.
    """

    nearest: int | None = option("nlps: the scorer's cut-off; 500 by default.", min=1)
    hierarchy: Path | None = option(
        "smart-types-dbpedia: the TSV file of the type hierarchy, where it is not in --data."
    )
    knowledge_base: str | None = option(
        "smart-relations: the knowledge base that the organisers' script is given, by default the task's.",
        "--kb",
    )
    split: str | None = None
    lenient: bool = flag(
        "Continue, with a warning, where the official scorer stops. checkthat: leave debates that are "
        "too short for P@50 out of that figure; smart-types-wikidata: compare whole labels; explanation-2019: read "
        "questions in the layout of WorldTree 2. No effect on other tasks."
    )


@dataclass(frozen=True, slots=True)
class GoldFiles:
    """What a submission is scored against: gold files, and what the organisers' scripts take besides them.

    `folder` holds the other files of the task, some of which breakdowns need; None where nobody knows it.
    """

    files: Sequence[Path]
    options: ScorerOptions = field(default_factory=ScorerOptions)
    folder: Path | None = None

    @property
    def file(self) -> Path:
        """The gold file, of a task that has one."""
        (path,) = self.files
        return path

    def require_folder(self) -> Path:
        """The folder.

        Raises:
            UsageError: nobody knows it.
        """
        if self.folder is None:
            raise UsageError("a breakdown needs the task's other files: name them with --data and --split")
        return self.folder


class Scorer(Protocol[P]):
    """The official scorer of a task; P is what it takes as the predictions of a submission.

    With `files_make_one` several prediction files are one submission, paired with as many gold files; without,
    each is a submission of its own.
    """

    @property
    def files_make_one(self) -> bool:
        """Whether several files are one submission."""

    def read(self, files: Sequence[Path]) -> P:
        """The predictions in the organisers' files, as `score` takes them.

        Raises:
            NotScorable: their script stops on the files or refuses them.
            DataError: a file is missing or can't be read.
        """

    def predictions(self, run: Run) -> P:
        """What `read` would give for the official files of a run."""

    def qrels(self, gold: GoldFiles) -> Qrels:
        """The grades of gold files by topic and document, as `Scored.qrels` has them.

        Raises:
            NotScorable: the organisers' script stops on a file or refuses it.
            DataError: a gold file is missing or can't be read.
        """

    def score(self, predictions: P, gold: GoldFiles) -> Scored:
        """The official figures of predictions against gold files.

        Raises:
            NotScorable: the organisers' script stops or refuses.
            DataError: a gold file is missing or can't be read.
        """


class BreakdownScorer(Protocol[P_contra]):
    """A scorer whose figures can be broken down; `breakdowns` are the names of what `breakdown` can compute."""

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """The names."""

    def breakdown(self, predictions: P_contra, gold: GoldFiles, wanted: Sequence[str]) -> Iterable[Breakdown]:
        """The breakdowns of these names, for which the task's other files in the gold's folder may be needed."""


Ranked = Sequence[str | None]
"""A ranking as `formats.two_column` reads it: each fact once; None is a missing value, which takes up a rank."""

Predictions = Mapping[str, Ranked]
"""The ranking of each question."""

Terms = Callable[[str], frozenset[str]]
"""The content words of a text, without inflection."""


def ranks_of(ranked: Ranked, facts: Collection[str]) -> dict[str, int]:
    """The rank, from 1 on, of those of the facts that are ranked."""
    wanted = facts if isinstance(facts, Mapping | set | frozenset) else set(facts)
    return {fact: rank for rank, fact in enumerate(ranked, 1) if fact in wanted and fact is not None}


def average_precision(ranks: Iterable[int], wanted: int) -> float:
    """The precisions at the ranks of relevant facts, summed and divided by the number of all of them."""
    return math.fsum(found / rank for found, rank in enumerate(sorted(ranks), 1)) / wanted if wanted else 0.0


def without(ranked: Ranked, left_out: Collection[str]) -> list[str | None]:
    """A ranking from which some facts are taken out: those behind them move up."""
    return [fact for fact in ranked if fact not in left_out]


def distinct(ranked: Ranked) -> Sequence[str]:
    """A ranking without missing values."""
    return ranked if None not in ranked else [fact for fact in ranked if fact is not None]  # type: ignore[return-value]


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0
