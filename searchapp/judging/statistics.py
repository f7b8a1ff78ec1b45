"""Who has judged how much, how fast, and where people disagree."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from searchapp.judging.agreement import Level, Weights, cohen_kappa, krippendorff_alpha, pairs_of
from searchapp.judging.compact import Compact
from searchapp.judging.events import Action, Kind
from searchapp.judging.fold import Key, View, standing
from searchapp.judging.pace import seconds_each


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """One annotator's work on a task, as it stands now.

    `seconds` is the median time from one judgment to the next, breaks left out; None without two in a row. `grades`
    counts the documents that have each grade.
    """

    annotator: str
    kind: Kind
    topics: int
    graded: int
    cant_tell: int
    skipped: int
    seconds: float | None
    first: str
    last: str
    grades: Mapping[int, int]


def progress(folded: Compact, view: View) -> list[AnnotatorProgress]:
    """The work of each annotator, in the order in which they began; `view` is that of the same events."""
    by_annotator = sorted(folded.works.items(), key=lambda one: one[1].began)
    topics: defaultdict[str, set[str]] = defaultdict(set)
    actions: defaultdict[str, Counter[Action]] = defaultdict(Counter)
    grades: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for topic_id in view.topics():
        for annotator in folded.works:
            for said in view.said(annotator, topic_id).values():
                topics[annotator].add(topic_id)
                actions[annotator][said.action] += 1
                if said.grade is not None:
                    grades[annotator][said.grade] += 1
    return [
        AnnotatorProgress(
            annotator,
            Kind(work.kind),
            topics=len(topics[annotator]),
            graded=actions[annotator][Action.grade],
            cant_tell=actions[annotator][Action.cant_tell],
            skipped=actions[annotator][Action.skip],
            seconds=seconds_each(folded.moments(annotator)),
            first=work.first,
            last=work.last,
            grades=dict(sorted(grades[annotator].items())),
        )
        for annotator, work in by_annotator
    ]


@dataclass(frozen=True, slots=True)
class Pair:
    """How two annotators agree on the documents that both have graded."""

    annotators: tuple[str, str]
    documents: int
    kappa: float
    linear: float
    quadratic: float


@dataclass(frozen=True, slots=True)
class InSight:
    """How many of some grades were given in view of others' judgments, and of how many that is not known."""

    grades: int
    in_sight: int
    unknown: int

    @classmethod
    def of(cls, counts: Counter[bool | None]) -> InSight:
        """Of grades counted by what their events say of it."""
        return cls(counts.total(), counts[True], counts[None])


@dataclass(frozen=True, slots=True)
class Agreement:
    """How annotators agree: all together, two by two, and on each topic.

    `alpha` is Krippendorff's, ordinal, over all documents with at least two grades; `topics` has it for each topic with
    the number of such documents. `disputed` are documents by how far their grades lie apart, the farthest first.
    `in_sight` says how many of the grades on documents with several were given in view of others', and `in_sight_by`
    how many of each annotator's.
    """

    annotators: tuple[str, ...]
    documents: int
    alpha: float
    pairs: tuple[Pair, ...]
    topics: Mapping[str, tuple[int, float]]
    disputed: tuple[tuple[Key, Mapping[str, int]], ...]
    in_sight: InSight
    in_sight_by: Mapping[str, InSight]


def agreement(view: View, annotators: Collection[str] | None = None) -> Agreement:
    """The agreement of these annotators, or of all; models are annotators like others here."""
    grades: defaultdict[Key, dict[str, int]] = defaultdict(dict)
    seen: defaultdict[str, Counter[bool | None]] = defaultdict(Counter)
    for key in view.judged_documents():
        opinions = [
            opinion
            for opinion in view.opinions(*key)
            if opinion.grade is not None and (annotators is None or opinion.annotator in annotators)
        ]
        for opinion in opinions:
            assert opinion.grade is not None  # or it would not be among them
            grades[key][opinion.annotator] = opinion.grade
            if len(opinions) > 1:
                seen[opinion.annotator][opinion.event.saw_others] += 1
    several = {key: given for key, given in grades.items() if len(given) > 1}
    by_annotator: defaultdict[str, dict[Key, int]] = defaultdict(dict)
    by_topic: defaultdict[str, list[list[int]]] = defaultdict(list)
    for key, given in grades.items():
        for annotator, grade in given.items():
            by_annotator[annotator][key] = grade
    for (topic_id, _), given in several.items():
        by_topic[topic_id].append(list(given.values()))
    pairs = tuple(
        Pair(both, len(pairs), *(cohen_kappa(pairs, weights) for weights in Weights))
        for both, pairs in pairs_of(by_annotator).items()
        if pairs
    )
    disputed = sorted(
        ((key, given) for key, given in several.items() if len(set(given.values())) > 1),
        key=lambda one: (min(one[1].values()) - max(one[1].values()), one[0]),
    )
    return Agreement(
        tuple(sorted(by_annotator)),
        len(several),
        krippendorff_alpha([list(given.values()) for given in several.values()], Level.ordinal),
        pairs,
        {topic: (len(units), krippendorff_alpha(units, Level.ordinal)) for topic, units in by_topic.items()},
        tuple(disputed),
        InSight.of(sum(seen.values(), Counter())),
        {name: InSight.of(seen[name]) for name in sorted(seen)},
    )


def judged_in(path: Path) -> dict[str, int]:
    """How many documents were graded for each task: once for each annotator and topic, without what was undone.

    The file is neither made nor written to.

    Raises:
        sqlite3.Error: it is no judgment log, or can't be read.
    """
    if not path.exists():
        return {}
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as database:
        retractions: dict[str, list[str]] = {}
        for own, refers in database.execute("SELECT id, refers FROM events WHERE action = 'retract'"):
            retractions.setdefault(refers, []).append(own)
        undone = [
            (event,) for event in retractions if not standing(event, lambda one: retractions.get(one, ()))
        ]
        database.execute("CREATE TEMP TABLE undone (id TEXT PRIMARY KEY)")
        database.executemany("INSERT INTO undone VALUES (?)", undone)
        rows = database.execute(
            "SELECT task, count(*) FROM (SELECT DISTINCT task, annotator, topic_id, document_id FROM events "
            "WHERE action = 'grade' AND id NOT IN (SELECT id FROM undone)) GROUP BY task"
        )
        return {str(task): int(count) for task, count in rows}
