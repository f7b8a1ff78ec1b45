"""Compare runs that rank the same topics over the same documents and have learned from the same judgments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from searchapp.app.comparison import (
    ComparedBreakdown,
    ComparedRow,
    ComparedRun,
    Comparison,
    Difficulty,
    Doubt,
    Measured,
    Move,
    RunOverlap,
    RunPair,
    ScoredRun,
    Scoring,
    TopicDifference,
    TopicDifferences,
    Values,
    list_pairs,
    measure_names,
    measured,
    score_run,
    spread_if_large,
)
from searchapp.app.evaluate import (
    JUDGED,
    Evaluation,
    GoldSource,
    Judgments,
    Subject,
    evaluate_judged,
    of_run,
)
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import Breakdown
from searchapp.evaluation.measures import require_measures
from searchapp.evaluation.overlap import overlap
from searchapp.evaluation.significance import PERMUTATIONS, SEED, mean, paired, successful_runs
from searchapp.files import distinct_names
from searchapp.formats.problems import some
from searchapp.judging.judgments import Unjudged
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Run
from searchapp.progress import Progress, SilentProgress
from searchapp.runs import directory
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Grades, Task
from searchapp.text import counted


def require_comparable(runs: Sequence[StoredRun], *, force: bool) -> tuple[str, ...]:
    """Return clauses on the differences of runs from the first one.

    Raises:
        DataError: there are differences and `force` is not set; or the runs are of several tasks.
    """
    first, *others = runs
    for other in others:
        if (other.manifest.task, not other.manifest.task_file) != (
            first.manifest.task,
            not first.manifest.task_file,
        ):
            raise DataError(
                f"{other.path} is a run of {other.manifest.task}, {first.path} of {first.manifest.task}: "
                "compare runs of one task"
            )
    clauses = tuple(
        f"{clause} ({other.path}, {first.path})" for other in others for clause in _differing(first, other)
    )
    if clauses and not force:
        more = f" (and {counted(len(clauses) - 1, 'more difference')})" if len(clauses) > 1 else ""
        raise DataError(
            f"the runs can't be compared: {clauses[0]}{more}; rank outdated runs again, or compare with --force"
        )
    return clauses


def _differing(first: StoredRun, other: StoredRun) -> Iterator[str]:
    manifest, other_manifest = first.manifest, other.manifest
    if manifest.split != other_manifest.split:
        yield f"their splits differ: {other_manifest.split} and {manifest.split}"
    for key in sorted(manifest.layout.keys() & other_manifest.layout.keys()):
        if manifest.layout[key] != other_manifest.layout[key]:
            yield f"their settings of {key} in {Path(other_manifest.task_file).name} differ"
    changed = sorted(
        name
        for name in manifest.data_digests.keys() & other_manifest.data_digests.keys()
        if manifest.data_digests[name] != other_manifest.data_digests[name]
    )
    if changed:
        yield f"their data differs: {some(changed)}"
    if manifest.variant or other_manifest.variant:
        pass  # a variant exists to rank with different mappings
    elif manifest.mapping_digest != other_manifest.mapping_digest:
        yield "their index mappings differ, and with them the terms of the documents"
    elif manifest.index_digest != other_manifest.index_digest and not changed:
        yield "their indexed documents differ"
    topics, others = (
        dict.fromkeys((*(ranking.topic_id for ranking in run.run), *run.manifest.empty_topics))
        for run in (first, other)
    )
    for path, own, of_other in ((other.path, others, topics), (first.path, topics, others)):
        lacking = [topic for topic in of_other if topic not in own]
        if lacking:
            noun = "topic" if len(lacking) == 1 else "topics"
            yield f"{path} does not rank {len(lacking):,} {noun} of the other run: {some(lacking)}"
    judgments = directory.judgments_digest(manifest), directory.judgments_digest(other_manifest)
    if all(judgments) and judgments[0] != judgments[1]:
        yield "they were trained on different judgments"
    elif judgments[0] != judgments[1]:
        yield "only one of them was trained on judgments (rank --with-judgments)"


TopicRankings = Mapping[str, Sequence[str]]


def topic_differences(
    pair: RunPair,
    values: tuple[Values, Values],
    rankings: tuple[TopicRankings, TopicRankings],
    grades: Grades,
    depth: int,
) -> TopicDifferences:
    """Return the topics for which both runs have a value, the greatest gain of the second first."""
    both = paired(*values)
    topics = []
    for topic, first, second in zip(both.topics, both.first.tolist(), both.second.tolist(), strict=True):
        relevant = tuple(
            Move(document, grade, *(_rank(ranking.get(topic, ()), document) for ranking in rankings))
            for document, grade in grades.get(topic, {}).items()
            if grade > 0
        )
        topics.append(TopicDifference(topic, first, second, relevant, depth))
    topics.sort(key=lambda topic: -topic.difference)
    return TopicDifferences(*pair, tuple(topics))


def _rank(ranking: Sequence[str], document: str) -> int | None:
    return ranking.index(document) + 1 if document in ranking else None


def _difficulty(values: Sequence[Values], success_threshold: float) -> Iterator[Difficulty]:
    """Yield topics by how many runs solve them, each group by ascending mean."""
    run_counts = successful_runs(values, success_threshold)
    for count in range(len(values) + 1):
        topics = sorted(
            (topic for topic, runs in run_counts.items() if runs == count),
            key=lambda topic: mean([of_run.get(topic) or 0.0 for of_run in values]),
        )
        known = ([value for topic in topics if (value := of_run.get(topic)) is not None] for of_run in values)
        yield Difficulty(count, tuple(topics), tuple(map(mean, known)))


def _compared_breakdowns(runs: Sequence[Sequence[Breakdown]]) -> Iterator[ComparedBreakdown]:
    for breakdowns in zip(*runs, strict=True):
        of_runs = [{row.group: row for row in breakdown.rows} for breakdown in breakdowns]
        compared = []
        for group in dict.fromkeys(group for rows in of_runs for group in rows):
            rows = [of_run.get(group) for of_run in of_runs]
            present = [row for row in rows if row is not None]
            values = {
                name: tuple(None if row is None else row.values.get(name) for row in rows)
                for name in dict.fromkeys(name for row in present for name in row.values)
            }
            compared.append(ComparedRow(group, present[0].count, values))
        first = breakdowns[0]
        yield ComparedBreakdown(first.name, first.title, first.counted, tuple(compared))


DocumentRanks = Mapping[str, Mapping[str, int]]  # the rank of each document of each topic


def _doubts(
    runs: Sequence[StoredRun], judgments: Judgments, source: GoldSource, pairs: Sequence[RunPair]
) -> dict[tuple[str, RunPair], Doubt]:
    """Return the influence of unjudged documents on the difference of each pair under each measure of the source."""
    subjects = [Subject.stored(run, source) for run in runs]

    def values(run: int, judgments: Judgments) -> Mapping[str, Mapping[str, float]]:
        return evaluate_judged(subjects[run], judgments, source, official_too=False).measures.per_topic

    def bounds(subject: Subject) -> dict[str, tuple[float, float]]:
        bounded = replace(judgments, unjudged=Unjudged.bounds)
        judged = replace(source, measures=(*source.measures, *JUDGED))
        figures = evaluate_judged(subject, bounded, judged, official_too=False).measures.values
        return {name: (figures[f"{name} lower"], figures[f"{name} upper"]) for name in source.measures}

    of_runs = [bounds(subject) for subject in subjects]
    known = [values(run, judgments) for run in range(len(runs))]
    ranks = [
        {
            ranking.topic_id: {document: rank for rank, document in enumerate(ranking.document_ids(), 1)}
            for ranking in run.run
        }
        for run in runs
    ]
    best = max((_best_grade(subject, judgments.grades) for subject in subjects), default=1)
    doubts = {}
    for first, second in pairs:
        favoured = {}
        for winner, loser in ((first, second), (second, first)):
            grades = _favour(judgments.grades, ranks[winner], ranks[loser], best)
            favoured[winner] = [values(run, replace(judgments, grades=grades)) for run in (first, second)]
        for name in source.measures:
            difference = _mean_difference(known[first][name], known[second][name])
            behind = first if difference > 0 else second
            reversed_ = _mean_difference(*(of_run[name] for of_run in favoured[behind]))
            (lower, upper), (lower_too, upper_too) = of_runs[first][name], of_runs[second][name]
            low, high = lower_too - upper, upper_too - lower
            doubts[name, (first, second)] = Doubt(
                ((lower, upper), (lower_too, upper_too)),
                low,
                high,
                reversed_,
                _doubt_kind(difference, low, high, reversed_),
            )
    return doubts


def _doubt_kind(difference: float, low: float, high: float, reversed_: float) -> str:
    if difference == 0 or math.isnan(difference):
        return "none"
    if reversed_ == 0 or (reversed_ > 0) != (difference > 0):
        return "yes"
    return "no" if low > 0 or high < 0 else "unknown"


def _mean_difference(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    return mean(paired(first, second).differences)


def _best_grade(subject: Subject, grades: Grades) -> int:
    if subject.task is not None:
        return len(subject.task.info.grades) - 1
    return max((grade for of_topic in grades.values() for grade in of_topic.values()), default=1)


def _favour(grades: Grades, winner: DocumentRanks, loser: DocumentRanks, best: int) -> Grades:
    """Return the grades if unjudged documents are relevant that only the winner ranks, or ranks higher."""
    return {
        topic: {
            **known,
            **{
                document: best
                for document, rank in winner.get(topic, {}).items()
                if document not in known and rank < loser.get(topic, {}).get(document, math.inf)
            },
        }
        for topic, known in grades.items()
    }


USUAL_DEPTH = 10  # rank up to which gained and lost documents count under a measure without a cut-off

SUCCESS_THRESHOLD = 0.5  # default smallest value of a successful topic

_CUTOFF = re.compile(r"@(\d+)$")


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """The runs to compare."""

    runs: tuple[Path, ...]
    # The gold and the breakdowns. Its measures are tested with the official one, which comes first only by
    # default.
    source: GoldSource
    judgments: Judgments | None = None  # judgments as gold
    baseline: Path | None = None  # the baseline; without one all pairs of more than two runs are compared
    force: bool = False  # whether runs are compared that do not share their topics, data or documents
    # How many documents count for gained and lost ones; by default the cut-off of the first measure.
    depth: int | None = None
    success_threshold: float = SUCCESS_THRESHOLD
    permutations: int = PERMUTATIONS
    seed: int = SEED
    alone: bool = False  # whether a single run is allowed


def compare(request: CompareRequest, progress: Progress | None = None) -> Comparison:
    """Compare run directories.

    Raises:
        UsageError: the request is invalid.
        DataError: the runs can't be compared, or they or the gold are invalid.
        NotScorable: the official scorer rejects a run.
    """
    return compare_read(request, read_runs(request, progress), progress)


def read_runs(request: CompareRequest, progress: Progress | None = None) -> list[StoredRun]:
    """Validate a request, and return its run directories.

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
    """Return the task of the runs of a request, and the source of their gold.

    Raises:
        UsageError: there is no such run, or the file of its task is gone.
        DataError: its manifest is invalid.
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
    baseline, judgments = baseline_of(request), request.judgments
    task, gold = of_run(stored[0], request.source)
    differing = require_comparable(stored, force=request.force)
    scoring = Scoring(request.source, judgments)
    grades = scoring.grades(task, gold)
    ranked = sum(len(ranking.hits) for run in stored for ranking in run.run)
    with (progress or SilentProgress()).stage("scoring runs", len(stored)) as advance:
        scored = spread_if_large(
            lambda number: score_run(stored[number], scoring, task, grades), len(stored), ranked
        )
        advance(len(scored))
    names = measure_names(scored, request.source.measures)
    pairs = compared_pairs(request)
    doubts: Mapping[tuple[str, RunPair], Doubt] = {}
    if judgments is not None and judgments.unjudged is Unjudged.nonrelevant:
        of_field = tuple(name for name in names if name in scored[0].evaluation.measures.values)
        doubts = _doubts(stored, judgments, replace(request.source, measures=of_field, also=()), pairs)
    rankings = [{ranking.topic_id: ranking.document_ids() for ranking in run.run} for run in stored]

    def overlap_or_tests(number: int) -> Measured | RunOverlap:
        if number < len(pairs):
            first, second = pairs[number]
            return RunOverlap(first, second, overlap(rankings[first], rankings[second]))
        return measured(
            names[number - len(pairs)],
            scored,
            pairs,
            request.permutations,
            request.seed,
            jointly=True,
            doubts=doubts,
        )

    results = spread_if_large(overlap_or_tests, len(pairs) + len(names), ranked)
    measures = tuple(result for result in results if isinstance(result, Measured))
    cutoff = _CUTOFF.search(names[0])
    depth = request.depth or (int(cutoff[1]) if cutoff else USUAL_DEPTH)
    values = measures[0].values
    against = "the given gold" if request.source.gold else "the official gold"
    return Comparison(
        task=task.name,
        split=gold.split,
        runs=tuple(
            _compared_run(run, evaluated.evaluation, name)
            for run, evaluated, name in zip(stored, scored, distinct_names(request.runs), strict=True)
        ),
        baseline=baseline,
        measures=measures,
        against=against if judgments is None else "the judgments",
        treatment=_treatment(judgments, scored),
        topics=tuple(
            topic_differences(
                (first, second),
                (values[first], values[second]),
                (rankings[first], rankings[second]),
                grades,
                depth,
            )
            for first, second in pairs or [(0, 0)]
        ),
        difficulty=tuple(_difficulty(values, request.success_threshold)),
        breakdowns=tuple(_compared_breakdowns([run.evaluation.breakdowns for run in scored])),
        overlaps=tuple(result for result in results if isinstance(result, RunOverlap)),
        depth=depth,
        success_threshold=request.success_threshold,
        permutations=request.permutations,
        seed=request.seed,
        differing=differing,
        notes=tuple(_notes(measures, pairs, baseline)),
        evaluations=tuple(run.evaluation for run in scored),
    )


def baseline_of(request: CompareRequest) -> int | None:
    """Validate the runs of a request, and return the number of the baseline, None without one.

    Raises:
        UsageError: the request is invalid.
    """
    paths = [path.resolve() for path in request.runs]
    if len(paths) < (1 if request.alone else 2):
        raise UsageError("at least two runs are needed: add another one")
    for number, path in enumerate(paths):
        if path in paths[:number]:
            raise UsageError(f"{request.runs[number]} is given twice: give each run once")
        if path.is_file():
            raise UsageError(
                f"{request.runs[number]} is a file, not a run directory: `searchapp runs import` makes one "
                "from another tool's run"
            )
    if request.judgments is not None and request.judgments.unjudged is Unjudged.bounds:
        raise UsageError("compare always shows the bounds of differences: leave out --unjudged bounds")
    if request.baseline is None:
        return 0 if len(paths) == 2 else None
    if request.baseline.resolve() not in paths:
        raise UsageError(f"the baseline {request.baseline} is not among the runs: add it to them")
    return paths.index(request.baseline.resolve())


def compared_pairs(request: CompareRequest) -> list[RunPair]:
    """Return the pairs of runs that are compared, by their numbers.

    Raises:
        UsageError: the request is invalid.
    """
    return list_pairs(len(request.runs), baseline_of(request))


def _compared_run(run: StoredRun, evaluation: Evaluation, name: str) -> ComparedRun:
    manifest, official, measures = run.manifest, evaluation.official, evaluation.measures.values
    return ComparedRun(
        name=name,
        path=str(run.path),
        tag=manifest.tag,
        system=manifest.system,
        digest=manifest.digest,
        official=official.values.get(official.measure),
        judged={cut: measures[cut] for cut in JUDGED if cut in measures},
        warnings=evaluation.warnings,
    )


def _treatment(judgments: Judgments | None, scored: Sequence[ScoredRun]) -> str:
    if judgments is None:
        return "documents without gold count as not relevant, as in the official scorer"
    if judgments.unjudged is Unjudged.condensed:
        return "unjudged documents are removed from the rankings"
    counts = [run.evaluation.judged or {} for run in scored]
    of = ", ".join(
        f"{count.get('retrieved_judged', 0):,} of {count.get('retrieved', 0):,}" for count in counts
    )
    return f"unjudged documents count as not relevant; judged among the retrieved documents: {of}"


def _notes(measures: Sequence[Measured], pairs: Sequence[RunPair], baseline: int | None) -> Iterator[str]:
    for measure in measures:
        if not measure.complete:
            yield (
                f"{measure.name}: these means cover the {counted(measure.topics, 'topic')} for which every "
                "run has a value, and can differ from those of `searchapp evaluate`"
            )
    if len(pairs) > 1:
        kind = "comparisons with the baseline" if baseline is not None else "pairwise comparisons"
        yield (
            f"the p-values of each test and measure are corrected for {len(pairs)} {kind} (Holm; Benjamini "
            "and Hochberg), but not for the number of measures"
        )
