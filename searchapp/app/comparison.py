"""What comparing runs comes to: the figures of each, the tests of their differences, and where these are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from searchapp.evaluation.multiple_comparisons import RandomisedTukey, Tukey
from searchapp.evaluation.overlap import Overlap
from searchapp.evaluation.significance import PairTests

if TYPE_CHECKING:
    from searchapp.app.evaluate import Evaluation

Values = Mapping[str, float | None]
"""A value a topic, None where it has none."""

SMALLEST_P = 1e-4
"""p-values below it are shown as such: no more is meant by them, and tests at random can't tell more."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the runs: what distinguishes it from the others, its tag and what made it, its digest.

    `official` is its official figure, over the topics that the scorer takes. `judged` has the share of its first
    documents that are judged, Judged@k, where judgments or qrels are the gold. `warnings` say where a figure misleads.
    """

    name: str
    path: str
    tag: str
    system: str
    digest: str
    official: float | None
    judged: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Corrected:
    """A p-value, and what it is among all pairs of runs that are tested under the measure."""

    p: float
    holm: float
    benjamini_hochberg: float


@dataclass(frozen=True, slots=True)
class Doubt:
    """What documents that nobody has judged can have to do with a difference.

    The figures of either run lie between its bounds: all of its unjudged documents not relevant, or all as relevant as
    can be. From them come `low` and `high`, between which the difference lies whatever these documents are. `reversed`
    is the difference where those are relevant that the run with the lower figure ranks higher, or alone: one that can
    be. `due` is "no" where the difference keeps its sign between `low` and `high`, "yes" where that one has another
    sign or is 0, and "unknown" in between.
    """

    bounds: tuple[tuple[float, float], tuple[float, float]]
    low: float
    high: float
    reversed: float
    due: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs under a measure, by their numbers; a difference is that of the second less the first.

    `corrected` has the p-value of each test. `tukey` and `randomised_tukey` are those of the pair among all runs, None
    of two runs alone. `only_first` and `only_second` count the topics that the other run has no value for.
    """

    first: int
    second: int
    tests: PairTests
    corrected: Mapping[str, Corrected]
    tukey: float | None = None
    randomised_tukey: float | None = None
    only_first: int = 0
    only_second: int = 0
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs under one measure: a mean and the values of each, by the ids of topics, and the pairs that are tested.

    The means are those over the `topics` that every run has a value for. `complete` says that these are all that the
    figure of any run is a mean of.
    """

    name: str
    is_official: bool
    topics: int
    means: tuple[float, ...]
    values: tuple[Values, ...]
    pairs: tuple[Pair, ...]
    tukey: Tukey | None = None
    randomised_tukey: RandomisedTukey | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Move:
    """A relevant document of a topic: its grade, and its rank in each of two rankings, None where it is not in one."""

    document_id: str
    grade: int
    first: int | None
    second: int | None


@dataclass(frozen=True, slots=True)
class TopicDifference:
    """A topic in two runs: a value in each, and its relevant documents with their ranks in both.

    `gained` are those that only the second run has among its first `depth` documents, `lost` those that only the first
    has, `moved` those that both have at other ranks.
    """

    topic_id: str
    first: float
    second: float
    documents: tuple[Move, ...]
    depth: int

    @property
    def gained(self) -> list[Move]:
        return [one for one in self.documents if not self._in(one.first) and self._in(one.second)]

    @property
    def lost(self) -> list[Move]:
        return [one for one in self.documents if self._in(one.first) and not self._in(one.second)]

    @property
    def moved(self) -> list[Move]:
        there = (one for one in self.documents if self._in(one.first) and self._in(one.second))
        return [one for one in there if one.first != one.second]

    def _in(self, rank: int | None) -> bool:
        return rank is not None and rank <= self.depth

    @property
    def difference(self) -> float:
        """The second less the first."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class TopicDifferences:
    """The topics of two runs under the first measure, the greatest gain first."""

    first: int
    second: int
    topics: tuple[TopicDifference, ...]


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Topics by the share of runs that solve them: `solved_by` is a number of runs, with its topics, the hardest first.

    `means` has the mean of each run over these topics.
    """

    solved_by: int
    topics: tuple[str, ...]
    means: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A group of a breakdown: how much it counts, and each figure in each run, None where a run has none."""

    group: str
    count: int
    values: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class ComparedBreakdown:
    """A breakdown of the task in all runs; `name`, `title` and `counted` are those of `evaluation.base.Breakdown`."""

    name: str
    title: str
    counted: str
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True)
class Alike:
    """How alike the rankings of two runs are, whatever is relevant."""

    first: int
    second: int
    overlap: Overlap


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two or more runs of one split beside each other.

    The first of `measures` is the one that topics are looked at by. `baseline` is the number of the run that all others
    are compared with, None where every pair is. `against` says what the gold is, `treatment` how documents count that
    it does not name. `differing` are sentences on what the runs do not share, which were compared all the same.
    `depth` is how many documents of a ranking count for `gained` and `lost`, `solved_from` the value from which on a
    topic is solved. `notes` are sentences on the comparison, `evaluations` what `evaluate` says of each run. One run
    alone has no pairs, and is beside itself in `topics`.
    """

    task: str
    split: str | None
    runs: tuple[ComparedRun, ...]
    baseline: int | None
    measures: tuple[Measured, ...]
    against: str
    treatment: str
    topics: tuple[TopicDifferences, ...]
    difficulty: tuple[Difficulty, ...]
    breakdowns: tuple[ComparedBreakdown, ...]
    alike: tuple[Alike, ...]
    depth: int
    solved_from: float
    permutations: int
    seed: int
    differing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """What must not be missed: what the runs do not share, and where a figure misleads."""
        about: dict[str, list[str]] = {}
        for run in self.runs:
            for warning in run.warnings:
                about.setdefault(warning, []).append(run.name)
        found = [f"the runs are compared although {one}" for one in self.differing]
        for warning, names in about.items():
            found.append(
                warning if any(run.path in warning for run in self.runs) else f"{', '.join(names)}: {warning}"
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """What `compare --json` prints."""
        names = [run.name for run in self.runs]
        return {
            "task": self.task,
            "split": self.split,
            "comparable": not self.differing,
            "differing": list(self.differing),
            "against": self.against,
            "unjudged": self.treatment,
            "baseline": None if self.baseline is None else names[self.baseline],
            "runs": [asdict(run) for run in self.runs],
            "permutations": self.permutations,
            "seed": self.seed,
            "measures": [_measured(one, names) for one in self.measures],
            "overlap": [
                {"first": names[one.first], "second": names[one.second], **one.overlap.to_json()}
                for one in self.alike
            ],
            "topics": {
                "measure": self.measures[0].name,
                "depth": self.depth,
                "pairs": [_differences(one, names) for one in self.topics],
            },
            "difficulty": {
                "solved_from": self.solved_from,
                "groups": [
                    {
                        "solved_by": one.solved_by,
                        "share": one.solved_by / len(names),
                        "topics": list(one.topics),
                        "means": dict(zip(names, one.means, strict=True)),
                    }
                    for one in self.difficulty
                ],
            },
            "breakdowns": {
                one.name: {
                    "title": one.title,
                    "rows": [
                        {
                            "group": row.group,
                            one.counted: row.count,
                            "values": {
                                figure: dict(zip(names, held, strict=True))
                                for figure, held in row.values.items()
                            },
                        }
                        for row in one.rows
                    ],
                }
                for one in self.breakdowns
            },
            "notes": list(self.notes),
        }


def number(value: float | None) -> str:
    """A figure with four digits, – where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.4f}"


def signed(value: float) -> str:
    """A difference with its sign."""
    return "–" if math.isnan(value) else f"{value:+.4f}"


def p_value(value: float | None) -> str:
    """A p-value, which is not shown more exactly than anybody means it."""
    if value is None or math.isnan(value):
        return "–"
    return f"<{SMALLEST_P:.4f}" if value < SMALLEST_P else f"{value:.4f}"


def _measured(one: Measured, names: Sequence[str]) -> dict[str, Any]:
    return {
        "measure": one.name,
        "official": one.is_official,
        "topics": one.topics,
        "complete": one.complete,
        "means": dict(zip(names, one.means, strict=True)),
        "pairs": [
            {
                "first": names[pair.first],
                "second": names[pair.second],
                "only_first": pair.only_first,
                "only_second": pair.only_second,
                "tests": pair.tests.to_json(),
                "corrected": {test: asdict(held) for test, held in pair.corrected.items()},
                "tukey": pair.tukey,
                "randomised_tukey": pair.randomised_tukey,
                "unjudged": None if pair.doubt is None else asdict(pair.doubt),
            }
            for pair in one.pairs
        ],
        "tukey": None
        if one.tukey is None
        else {"margin": one.tukey.margin, "error": one.tukey.error, "degrees": one.tukey.degrees},
        "randomised_tukey": None if one.randomised_tukey is None else {"trials": one.randomised_tukey.trials},
        "per_topic": {name: dict(held) for name, held in zip(names, one.values, strict=True)},
    }


def _differences(one: TopicDifferences, names: Sequence[str]) -> dict[str, Any]:
    return {
        "first": names[one.first],
        "second": names[one.second],
        "topics": [
            {
                "id": topic.topic_id,
                "first": topic.first,
                "second": topic.second,
                "difference": topic.difference,
                "gained": [asdict(move) for move in topic.gained],
                "lost": [asdict(move) for move in topic.lost],
                "moved": [asdict(move) for move in topic.moved],
            }
            for topic in one.topics
        ],
    }
