"""Compare runs: significance of differences, the topics they come from, and whether unjudged documents explain them.

Runs are comparable if they rank the same topics over the same documents and have learned from the same
judgments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from searchapp.app.comparison import (
    Alike,
    ComparedBreakdown,
    ComparedRow,
    ComparedRun,
    Comparison,
    Difficulty,
    Doubt,
    Measured,
    Move,
    ScoredRun,
    Scoring,
    Testing,
    TopicDifference,
    TopicDifferences,
    Values,
    measure_names,
    measured,
    pairs_of,
    scored_run,
    spread_if_large,
)
from searchapp.app.evaluate import JUDGED, GoldSource, Judgments, Subject, evaluate_judged, of_run
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import Breakdown, Row
from searchapp.evaluation.measures import require_measures
from searchapp.evaluation.overlap import overlap
from searchapp.evaluation.significance import PERMUTATIONS, SEED, mean, paired, solved_by
from searchapp.files import distinct_names
from searchapp.formats.problems import some
from searchapp.judging.judgments import Unjudged
from searchapp.model import Run
from searchapp.progress import Progress, SilentProgress
from searchapp.runs import directory
from searchapp.runs.directory import Manifest, StoredRun
from searchapp.tasks.base import Grades, Task
from searchapp.text import counted


def require_comparable(runs: Sequence[StoredRun], *, anyway: bool) -> tuple[str, ...]:
    """What the runs do not share with the first of them, in clauses; nothing where they can be compared.

    Raises:
        DataError: there is something, and nobody wants them to be compared anyway; or they are of several tasks, which
            nothing can be compared of.
    """
    first, *others = runs
    for other in others:
        if (other.manifest.task, not other.manifest.task_file) != (
            first.manifest.task,
            not first.manifest.task_file,
        ):
            raise DataError(
                f"{other.path} is a run of {other.manifest.task} and {first.path} one of {first.manifest.task}: name "
                "runs of one task"
            )
    found = tuple(
        f"{one} ({other.path}, {first.path})" for other in others for one in _differing(first, other)
    )
    if found and not anyway:
        more = f", and {len(found) - 1} more of the kind" if len(found) > 1 else ""
        raise DataError(
            f"the runs can't be compared, for {found[0]}{more}: rank again what is out of date, or "
            "compare with --anyway"
        )
    return found


def _differing(first: StoredRun, other: StoredRun) -> Iterator[str]:
    """What differs between two runs of a task, in clauses."""
    one, two = first.manifest, other.manifest
    if one.split != two.split:
        yield f"their splits differ: {two.split} and {one.split}"
    for key in sorted(one.layout.keys() & two.layout.keys()):
        if one.layout[key] != two.layout[key]:
            yield f"{key} in {Path(two.task_file).name} has changed between them"
    changed = sorted(
        name
        for name in one.data_digests.keys() & two.data_digests.keys()
        if one.data_digests[name] != two.data_digests[name]
    )
    if changed:
        yield f"the data has changed between them: {some(changed)}"
    if one.variant or two.variant:
        pass  # a variant exists to rank with different mappings
    elif one.mapping_digest != two.mapping_digest:
        yield "the index mapping has changed between them, and with it the terms of the documents"
    elif one.index_digest != two.index_digest and not changed:
        yield "the documents that were indexed differ"
    yield from _topics(first, other)
    yield from _judgments(one, two)


def _topics(first: StoredRun, other: StoredRun) -> Iterator[str]:
    topics, others = (
        dict.fromkeys((*(ranking.topic_id for ranking in run.run), *run.manifest.empty))
        for run in (first, other)
    )
    for lacking, there in ((others, topics), (topics, others)):
        without = [topic for topic in there if topic not in lacking]
        if without:
            path = other.path if lacking is others else first.path
            topics_ = "topic" if len(without) == 1 else "topics"
            yield f"{path} has no ranking of {len(without):,} {topics_} of the other: {some(without)}"


def _judgments(one: Manifest, two: Manifest) -> Iterator[str]:
    """What people had judged is known to a run that was made with it: its figures are those of another experiment."""
    known, others = directory.judgments_digest(one), directory.judgments_digest(two)
    if known == others:
        return
    if known and others:
        yield "they have learned from different judgments"
    else:
        yield "one of them has learned from judgments (rank --with-judgments)"


TopicRankings = Mapping[str, Sequence[str]]


def topic_differences(
    numbers: tuple[int, int],
    values: tuple[Values, Values],
    rankings: tuple[TopicRankings, TopicRankings],
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


DocumentRanks = Mapping[str, Mapping[str, int]]
"""The rank of each document of each topic."""


def doubts(
    runs: Sequence[StoredRun], judgments: Judgments, source: GoldSource, pairs: Sequence[tuple[int, int]]
) -> dict[tuple[str, tuple[int, int]], Doubt]:
    """What unjudged documents can have to do with the difference of each pair under each measure of the source."""
    subjects = [Subject.stored(run, source) for run in runs]
    bounds = [_bounds(one, judgments, source) for one in subjects]
    seen = [_values(one, judgments, source) for one in subjects]
    ranks = [
        {
            one.topic_id: {document: rank for rank, document in enumerate(one.document_ids(), 1)}
            for one in run.run
        }
        for run in runs
    ]
    best = max((_best(one, judgments.grades) for one in subjects), default=1)
    found = {}
    for first, second in pairs:
        # What would favour either run: which one is behind depends on the measure.
        favouring = {
            winner: replace(judgments, grades=_favouring(judgments.grades, ranks[winner], ranks[loser], best))
            for winner, loser in ((first, second), (second, first))
        }
        favoured = {
            winner: [_values(subjects[number], labelled, source) for number in (first, second)]
            for winner, labelled in favouring.items()
        }
        for name in source.measures:
            difference = _difference(seen[first][name], seen[second][name])
            behind = first if difference > 0 else second
            turned = _difference(*(one[name] for one in favoured[behind]))
            low = bounds[second][name][0] - bounds[first][name][1]
            high = bounds[second][name][1] - bounds[first][name][0]
            due = _due(difference, low, high, turned)
            found[name, (first, second)] = Doubt(
                (bounds[first][name], bounds[second][name]), low, high, turned, due
            )
    return found


def _due(difference: float, low: float, high: float, turned: float) -> str:
    """Whether a difference can be due to unjudged documents alone; "none" where there is none."""
    if difference == 0 or math.isnan(difference):
        return "none"
    if turned == 0 or (turned > 0) != (difference > 0):
        return "yes"
    return "no" if low > 0 or high < 0 else "unknown"


def _bounds(subject: Subject, judgments: Judgments, source: GoldSource) -> dict[str, tuple[float, float]]:
    found = evaluate_judged(
        subject, replace(judgments, unjudged=Unjudged.bounds), _with_judged(source), official_too=False
    ).measures.values
    return {name: (found[f"{name} lower"], found[f"{name} upper"]) for name in source.measures}


def _with_judged(source: GoldSource) -> GoldSource:
    return replace(source, measures=(*source.measures, *JUDGED))


def _values(subject: Subject, judgments: Judgments, source: GoldSource) -> Mapping[str, Mapping[str, float]]:
    return evaluate_judged(subject, judgments, source, official_too=False).measures.per_topic


def _difference(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    return mean(paired(first, second).differences)


def _best(subject: Subject, grades: Grades) -> int:
    """The best grade that a document can have."""
    if subject.task is not None:
        return len(subject.task.info.grades) - 1
    return max((grade for of_topic in grades.values() for grade in of_topic.values()), default=1)


def _favouring(grades: Grades, winner: DocumentRanks, loser: DocumentRanks, best: int) -> Grades:
    """The grades with those unjudged documents relevant that the one run ranks higher than the other, or alone."""
    found = {}
    for topic, known in grades.items():
        here, there = winner.get(topic, {}), loser.get(topic, {})
        higher = {
            document: best
            for document, rank in here.items()
            if document not in known and rank < there.get(document, math.inf)
        }
        found[topic] = {**known, **higher}
    return found


USUAL_DEPTH = 10
"""How deep gained and lost documents are looked for under a measure without a cut-off."""

SOLVED_FROM = 0.5
"""The value from which on a topic is solved."""

_CUTOFF = re.compile(r"@(\d+)$")


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Which runs to compare, and how.

    `source` says where the gold comes from and by what figures are broken down. Its measures are tested, the first one
    being that by which topics are looked at, and the official figure behind them; without any it comes first, and some
    that the task names behind it. With `judgments` these are the gold. `baseline` is the run that all others are
    compared with; without one all pairs of more than two runs are. With `anyway` runs are compared that do not share
    their topics, data or documents. `depth` is how many documents of a ranking count for gained and lost ones, by
    default the cut-off of the first measure. With `alone` there may be one run, of which nothing is tested.
    """

    runs: tuple[Path, ...]
    source: GoldSource
    judgments: Judgments | None = None
    baseline: Path | None = None
    anyway: bool = False
    depth: int | None = None
    solved_from: float = SOLVED_FROM
    permutations: int = PERMUTATIONS
    seed: int = SEED
    alone: bool = False


def compare(request: CompareRequest, progress: Progress | None = None) -> Comparison:
    """Compare run directories.

    Raises:
        UsageError: the request makes no sense.
        DataError: the runs can't be compared, or they or the gold are not what they should be.
        NotScorable: the organisers' scorer would not score a run.
    """
    return compare_read(request, read_runs(request, progress), progress)


def read_runs(request: CompareRequest, progress: Progress | None = None) -> list[StoredRun]:
    """The run directories of a request, once it is clear that it makes sense.

    Raises:
        as `compare` does.
    """
    baseline_of(request)
    manifests = [directory.read_manifest(path) for path in request.runs]
    task, _gold = gold_of(request)
    require_measures(Scoring(request.source, request.judgments).measures(task))
    ranked = sum(manifest.hits for manifest in manifests)
    with (progress or SilentProgress()).stage("reading runs", len(manifests)) as advance:
        stored = spread_if_large(lambda number: directory.read(request.runs[number]), len(manifests), ranked)
        advance(len(stored))
    return stored


def gold_of(request: CompareRequest) -> tuple[Task, GoldSource]:
    """The task of the runs of a request, and where their gold comes from.

    Raises:
        UsageError: there is no such run, or the file of its task is gone.
        DataError: its manifest is not what it should be.
    """
    first = request.runs[0]
    return of_run(StoredRun(first, directory.read_manifest(first), Run("", ())), request.source)


def compare_read(
    request: CompareRequest, stored: Sequence[StoredRun], progress: Progress | None = None
) -> Comparison:
    """Compare the runs of a request, which have been read.

    Raises:
        as `compare` does.
    """
    baseline = baseline_of(request)
    task, gold = of_run(stored[0], request.source)
    differing = require_comparable(stored, anyway=request.anyway)
    scoring = Scoring(request.source, request.judgments)
    grades = scoring.grades(task, gold)
    ranked = sum(len(ranking.hits) for one in stored for ranking in one.run)
    with (progress or SilentProgress()).stage("scoring runs", len(stored)) as advance:
        scored = spread_if_large(
            lambda number: scored_run(stored[number], scoring, task, grades), len(stored), ranked
        )
        advance(len(scored))
    names = measure_names(scored, request.source.measures)
    pairs = compared_pairs(request)
    doubtful = _doubts(stored, scored, request, pairs, names)
    testing = Testing(request.permutations, request.seed)
    rankings = [{one.topic_id: one.document_ids() for one in run.run} for run in stored]

    def tested_or_likened(number: int) -> Measured | Alike:
        if number < len(pairs):
            one, other = pairs[number]
            return Alike(one, other, overlap(rankings[one], rankings[other]))
        return measured(names[number - len(pairs)], scored, pairs, testing, doubtful)

    found = spread_if_large(tested_or_likened, len(pairs) + len(names), ranked)
    alike = tuple(one for one in found if isinstance(one, Alike))
    measures = tuple(one for one in found if isinstance(one, Measured))
    depth = request.depth or _depth(names[0])
    values = measures[0].values
    return Comparison(
        task=task.name,
        split=gold.split,
        runs=tuple(
            _described(one, figures, name)
            for one, figures, name in zip(stored, scored, distinct_names(request.runs), strict=True)
        ),
        baseline=baseline,
        measures=measures,
        against=_against(request),
        treatment=_treatment(request, scored),
        topics=tuple(
            topic_differences(
                (one, other), (values[one], values[other]), (rankings[one], rankings[other]), grades, depth
            )
            for one, other in pairs or [(0, 0)]
        ),
        difficulty=difficulty(values, request.solved_from),
        breakdowns=compared_breakdowns([one.evaluation.breakdowns for one in scored]),
        alike=alike,
        depth=depth,
        solved_from=request.solved_from,
        permutations=request.permutations,
        seed=request.seed,
        differing=differing,
        notes=tuple(_notes(measures, pairs, baseline)),
        evaluations=tuple(one.evaluation for one in scored),
    )


def baseline_of(request: CompareRequest) -> int | None:
    """The number of the baseline, None without one.

    Raises:
        UsageError: the request makes no sense.
    """
    places = [path.resolve() for path in request.runs]
    if len(places) < (1 if request.alone else 2):
        raise UsageError("two runs are compared at least: name another one")
    for number, place in enumerate(places):
        if place in places[:number]:
            raise UsageError(f"{request.runs[number]} is named twice: name each run once")
        if place.is_file():
            raise UsageError(
                f"{request.runs[number]} is a file: `searchapp runs import` makes a run directory of another tool's run"
            )
    if request.judgments is not None and request.judgments.unjudged is Unjudged.bounds:
        raise UsageError("compare says the bounds of every difference: leave out --unjudged bounds")
    if request.baseline is None:
        return 0 if len(places) == 2 else None
    if request.baseline.resolve() not in places:
        raise UsageError(f"the baseline {request.baseline} is not among the runs: name it with them too")
    return places.index(request.baseline.resolve())


def compared_pairs(request: CompareRequest) -> list[tuple[int, int]]:
    """The pairs of runs that are compared, by their numbers.

    Raises:
        UsageError: the request makes no sense.
    """
    return pairs_of(len(request.runs), baseline_of(request))


def _doubts(
    stored: Sequence[StoredRun],
    scored: Sequence[ScoredRun],
    request: CompareRequest,
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
) -> dict[tuple[str, tuple[int, int]], Doubt]:
    """What unjudged documents can have to do with each difference; nothing where the gold is the organisers'."""
    if request.judgments is None or request.judgments.unjudged is not Unjudged.nonrelevant:
        return {}
    of_field = [name for name in names if name in scored[0].evaluation.measures.values]
    source = replace(request.source, measures=tuple(of_field), also=())
    return doubts(stored, request.judgments, source, pairs)


def _described(one: StoredRun, scored: ScoredRun, name: str) -> ComparedRun:
    manifest, found = one.manifest, scored.evaluation
    return ComparedRun(
        name=name,
        path=str(one.path),
        tag=manifest.tag,
        system=manifest.system,
        digest=manifest.digest,
        official=found.official.values.get(found.official.measure),
        judged={cut: found.measures.values[cut] for cut in JUDGED if cut in found.measures.values},
        warnings=found.warnings,
    )


def _depth(name: str) -> int:
    found = _CUTOFF.search(name)
    return int(found[1]) if found else USUAL_DEPTH


def _against(request: CompareRequest) -> str:
    if request.judgments is not None:
        return "what people have judged"
    return "the gold of the organisers" if not request.source.gold else "the given gold"


def _treatment(request: CompareRequest, scored: Sequence[ScoredRun]) -> str:
    """How documents count that the gold does not name, in a sentence."""
    if request.judgments is None:
        return "documents that the gold does not name count as not relevant, as in the organisers' scorer"
    if request.judgments.unjudged is Unjudged.condensed:
        return "documents that nobody has judged are left out of the rankings"
    counted = [one.evaluation.judged or {} for one in scored]
    of = ", ".join(f"{one.get('retrieved_judged', 0):,} of {one.get('retrieved', 0):,}" for one in counted)
    return f"documents that nobody has judged count as not relevant; judged are {of} that are retrieved"


def _notes(measures: Sequence[Measured], pairs: Sequence[tuple[int, int]], baseline: int | None) -> list[str]:
    notes = []
    for one in measures:
        if not one.complete:
            notes.append(
                f"{one.name}: the means here are over the {counted(one.topics, 'topic')} that every run has a value "
                "for, not "
                "those that `searchapp evaluate` prints"
            )
    if len(pairs) > 1:
        of = "with the baseline" if baseline is not None else "of two runs"
        notes.append(
            f"the p-values of each test and measure are corrected for {len(pairs)} comparisons {of}, by Holm and by "
            "Benjamini and Hochberg; not for the number of measures"
        )
    return notes
