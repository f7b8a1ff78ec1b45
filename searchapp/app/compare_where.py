"""Where runs differ: topic by topic, in their relevant documents, by difficulty, and by the breakdowns of the task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from searchapp.app.comparison import (
    ComparedBreakdown,
    ComparedRow,
    Difficulty,
    Move,
    TopicDifference,
    TopicDifferences,
    Values,
)
from searchapp.evaluation.base import Breakdown, Row
from searchapp.evaluation.significance import mean, paired, solved_by
from searchapp.tasks.base import Grades

Rankings = Mapping[str, Sequence[str]]


def topic_differences(
    numbers: tuple[int, int],
    values: tuple[Values, Values],
    rankings: tuple[Rankings, Rankings],
    grades: Grades,
    depth: int,
) -> TopicDifferences:
    """The topics that two runs both have a value for, the greatest gain of the second first."""
    both = paired(*values)
    topics = []
    for topic, first, second in zip(both.topics, both.first.tolist(), both.second.tolist(), strict=True):
        ranked, ranked_too = (one.get(topic, ()) for one in rankings)
        relevant = tuple(moves(grades.get(topic, {}), ranked, ranked_too))
        topics.append(TopicDifference(topic, first, second, relevant, depth))
    topics.sort(key=lambda one: -one.difference)
    return TopicDifferences(*numbers, tuple(topics))


def moves(grades: Mapping[str, int], first: Sequence[str], second: Sequence[str]) -> Iterator[Move]:
    """The relevant documents and their ranks in two rankings.

    >>> [(one.document_id, one.first, one.second) for one in moves({"a": 1, "b": 2, "c": 0}, ["a", "b"], ["b", "c"])]
    [('a', 1, None), ('b', 2, 1)]
    """
    for document, grade in grades.items():
        if grade > 0:
            yield Move(document, grade, _rank(first, document), _rank(second, document))


def _rank(ranking: Sequence[str], document: str) -> int | None:
    return ranking.index(document) + 1 if document in ranking else None


def difficulty(values: Sequence[Values], solved_from: float) -> tuple[Difficulty, ...]:
    """Topics by how many runs solve them, those that none does first; in a group the least mean first."""
    solved = solved_by(values, solved_from)

    def over_runs(topic: str) -> float:
        return mean([one.get(topic) or 0.0 for one in values])

    groups = []
    for count in range(len(values) + 1):
        topics = sorted((topic for topic, by in solved.items() if by == count), key=over_runs)
        means = (mean([value for topic in topics if (value := one.get(topic)) is not None]) for one in values)
        groups.append(Difficulty(count, tuple(topics), tuple(means)))
    return tuple(groups)


def compared_breakdowns(runs: Sequence[Sequence[Breakdown]]) -> tuple[ComparedBreakdown, ...]:
    """The breakdowns of all runs beside each other; a group that a run lacks has no figure there."""
    found = []
    for number, breakdown in enumerate(runs[0]):
        rows: list[dict[str, Row]] = [{row.group: row for row in one[number].rows} for one in runs]
        groups = dict.fromkeys(group for one in rows for group in one)
        compared = []
        for group in groups:
            there = [one.get(group) for one in rows]
            figures = dict.fromkeys(name for row in there if row is not None for name in row.values)
            count = next(row.count for row in there if row is not None)
            held = {
                name: tuple(None if row is None else row.values.get(name) for row in there)
                for name in figures
            }
            compared.append(ComparedRow(group, count, held))
        found.append(ComparedBreakdown(breakdown.name, breakdown.title, breakdown.counted, tuple(compared)))
    return tuple(found)
