"""Who has judged how much, how fast, and where people disagree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from searchapp.judging.agreement import Level, Weights, cohen_kappa, krippendorff_alpha, pairs_of
from searchapp.judging.events import Action, Event, Kind
from searchapp.judging.fold import Key, Opinion, View
from searchapp.judging.pace import seconds_each, tells_pace


@dataclass(frozen=True, slots=True)
class Progress:
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


def progress(events: Sequence[Event], view: View) -> list[Progress]:
    """The work of each annotator, in the order in which they began."""
    by_annotator: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_annotator[event.annotator].append(event)
    found = []
    for annotator, own in by_annotator.items():
        opinions = [
            (topic_id, opinion)
            for topic_id, document_id in view.judged_documents()
            if (opinion := view.opinion(annotator, topic_id, document_id)) is not None
        ]
        actions = Counter(opinion.action for _, opinion in opinions)
        # By the moment, not by its text: times from elsewhere may be of another zone.
        in_order = sorted(own, key=lambda event: event.order)
        found.append(
            Progress(
                annotator,
                own[-1].kind,
                topics=len({topic_id for topic_id, _ in opinions}),
                graded=actions[Action.grade],
                cant_tell=actions[Action.cant_tell],
                skipped=actions[Action.skip],
                seconds=_pace(own),
                first=in_order[0].time,
                last=in_order[-1].time,
                grades=dict(
                    sorted(
                        Counter(opinion.grade for _, opinion in opinions if opinion.grade is not None).items()
                    )
                ),
            )
        )
    return found


def _pace(events: Iterable[Event]) -> float | None:
    return seconds_each(event.order[0] for event in events if tells_pace(event))


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
    """How many of some grades were given in sight of what others say, and of how many that is not known."""

    grades: int
    in_sight: int
    unknown: int

    @classmethod
    def of(cls, opinions: Collection[Opinion]) -> InSight:
        counts = Counter(opinion.event.saw_others for opinion in opinions)
        return cls(len(opinions), counts[True], counts[None])


@dataclass(frozen=True, slots=True)
class Agreement:
    """How annotators agree: all together, two by two, and on each topic.

    `alpha` is Krippendorff's, ordinal, over all documents with at least two grades; `topics` has it for each topic with
    the number of such documents. `disputed` are documents by how far their grades lie apart, the farthest first.
    `in_sight` says how many of the grades on documents with several were given in sight of others, and `in_sight_by`
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
    opinions: defaultdict[Key, list[Opinion]] = defaultdict(list)
    for key in view.judged_documents():
        for opinion in view.opinions(*key):
            if opinion.grade is not None and (annotators is None or opinion.annotator in annotators):
                grades[key][opinion.annotator] = opinion.grade
                opinions[key].append(opinion)
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
    compared = [opinion for key in several for opinion in opinions[key]]
    of_each: defaultdict[str, list[Opinion]] = defaultdict(list)
    for opinion in compared:
        of_each[opinion.annotator].append(opinion)
    return Agreement(
        tuple(sorted(by_annotator)),
        len(several),
        krippendorff_alpha([list(given.values()) for given in several.values()], Level.ordinal),
        pairs,
        {topic: (len(units), krippendorff_alpha(units, Level.ordinal)) for topic, units in by_topic.items()},
        tuple(disputed),
        InSight.of(compared),
        {name: InSight.of(of_each[name]) for name in sorted(of_each)},
    )
