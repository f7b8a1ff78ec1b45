"""What the official scorer of every task looks like here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from searchapp.model import Run

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

    nearest: int | None = None
    hierarchy: Path | None = None
    knowledge_base: str | None = None
    split: str | None = None
    lenient: bool = False


class Scorer(Protocol):
    """The official scorer of a task.

    With `files_make_one` several prediction files are one submission, paired with as many gold files; without,
    each is a submission of its own. `breakdowns` are the names of what `breakdown` can compute.
    """

    files_make_one: bool
    breakdowns: tuple[str, ...]

    def read(self, files: Sequence[Path]) -> Any:
        """The predictions in the organisers' files, as `score` takes them.

        Raises:
            NotScorable: their script stops on the files or refuses them.
            DataError: a file is missing or can't be read.
        """

    def predictions(self, run: Run) -> Any:
        """What `read` would give for the official files of a run."""

    def qrels(self, gold: Sequence[Path], options: ScorerOptions) -> Qrels:
        """The grades of gold files by topic and document, as `Scored.qrels` has them.

        Raises:
            NotScorable: the organisers' script stops on a file or refuses it.
            DataError: a gold file is missing or can't be read.
        """

    def score(self, predictions: Any, gold: Sequence[Path], options: ScorerOptions) -> Scored:
        """The official figures of predictions against gold files.

        Raises:
            NotScorable: the organisers' script stops or refuses.
            DataError: a gold file is missing or can't be read.
        """

    def breakdown(
        self, predictions: Any, gold: Sequence[Path], data: Path, split: str, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        """The breakdowns of these names, for which the task's other files in the folder `data` are needed."""
