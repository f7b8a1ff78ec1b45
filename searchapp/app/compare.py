"""Compares runs: whether a difference can be told from chance, and where it is.

Nothing is measured here: the figures, and the tests of their differences, are those of `scored_runs`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from searchapp.app.comparable import require_comparable
from searchapp.app.compare_unjudged import doubts
from searchapp.app.compare_where import compared_breakdowns, difficulty, topic_differences
from searchapp.app.comparison import Alike, ComparedRun, Comparison, Doubt, Measured
from searchapp.app.evaluate import GoldSource, of_run
from searchapp.app.judged import JUDGED, Judgments
from searchapp.app.scored_runs import (
    ScoredRun,
    Scoring,
    Testing,
    measure_names,
    measured,
    pairs_of,
    scored_run,
    spread_if_large,
)
from searchapp.errors import UsageError
from searchapp.evaluation.measures import require_measures
from searchapp.evaluation.overlap import overlap
from searchapp.evaluation.significance import PERMUTATIONS, SEED
from searchapp.judging.treatment import Unjudged
from searchapp.model import Run
from searchapp.progress import Progress, Silent
from searchapp.runs import directory
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Task

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
    with (progress or Silent()).stage("reading runs", len(manifests)) as advance:
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
    with (progress or Silent()).stage("scoring runs", len(stored)) as advance:
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
            for one, figures, name in zip(stored, scored, run_names(request.runs), strict=True)
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


def run_names(paths: Sequence[Path]) -> list[str]:
    """What distinguishes the runs: their paths without the folders that all of them share."""
    shared = 0
    parts = [path.parts for path in paths]
    while all(len(one) > shared + 1 for one in parts) and len({one[shared] for one in parts}) == 1:
        shared += 1
    return [str(Path(*one[shared:])) for one in parts]


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
                f"{one.name}: the means here are over the {one.topics:,} topics that every run has a value for, not "
                "those that `searchapp evaluate` prints"
            )
    if len(pairs) > 1:
        of = "with the baseline" if baseline is not None else "of two runs"
        notes.append(
            f"the p-values of each test and measure are corrected for {len(pairs)} comparisons {of}, by Holm and by "
            "Benjamini and Hochberg; not for the number of measures"
        )
    return notes
