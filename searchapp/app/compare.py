"""Compares runs: whether a difference can be told from chance, and where it is.

Nothing is measured here: the figures, and the value of each topic that they are means of, are those of `evaluate_run`
and `evaluate_judged`, which `searchapp evaluate` prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from searchapp.app.comparable import require_comparable
from searchapp.app.compare_unjudged import doubts
from searchapp.app.compare_where import compared_breakdowns, difficulty, topic_differences
from searchapp.app.comparison import Alike, ComparedRun, Comparison, Corrected, Doubt, Measured, Pair, Values
from searchapp.app.evaluate import Evaluation, GoldSource, evaluate_run, gold_files, of_run
from searchapp.app.judged import JUDGED, Judgments, Subject, evaluate_judged
from searchapp.app.topic_figures import topic_ids
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.measures import require_measures
from searchapp.evaluation.multiple_comparisons import (
    benjamini_hochberg,
    blocks,
    holm,
    randomised_tukey,
    tukey,
)
from searchapp.evaluation.overlap import overlap
from searchapp.evaluation.significance import PERMUTATIONS, SEED, PairTests, mean, pair_tests, paired
from searchapp.judging.treatment import Unjudged
from searchapp.model import Run
from searchapp.progress import Progress, Silent
from searchapp.runs import directory
from searchapp.runs.directory import StoredRun
from searchapp.tasks.base import Grades, Part, Task

USUAL_MEASURES = 3
"""How many of the measures that a task names are tested beside its official one, where nobody says which."""

USUAL_DEPTH = 10
"""How deep gained and lost documents are looked for under a measure without a cut-off."""

SOLVED_FROM = 0.5
"""The value from which on a topic is solved."""

ROUNDING = 1e-12
"""By which values may differ that were added up in two ways."""

_CUTOFF = re.compile(r"@(\d+)$")


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Which runs to compare, and how.

    `source` says where the gold comes from and by what figures are broken down. Its measures are tested, the first one
    being that by which topics are looked at, and the official figure behind them; without any it comes first, and some
    that the task names behind it. With `judgments` these are the gold. `baseline` is the run that all others are
    compared with; without one all pairs of more than two runs are. With `anyway` runs are compared that do not share
    their topics, data or documents. `depth` is how many documents of a ranking count for gained and lost ones, by
    default the cut-off of the first measure.
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


@dataclass(frozen=True, slots=True)
class _Scored:
    """A run that has been scored; `values` has those of each topic by its id, for each figure that has such values."""

    stored: StoredRun
    evaluation: Evaluation
    values: Mapping[str, Values]


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
    task, _gold = gold_of(request)
    require_measures(_asked(request, task))
    stored = []
    with (progress or Silent()).stage("reading runs", len(request.runs)) as advance:
        for path in request.runs:
            stored.append(directory.read(path))
            advance(1)
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
    grades = gold_grades(task, gold) if request.judgments is None else request.judgments.grades
    scored = []
    with (progress or Silent()).stage("scoring runs", len(stored)) as advance:
        for one in stored:
            scored.append(_scored(one, request, task, grades))
            advance(1)
    names = _measure_names(scored, request)
    pairs = pairs_of(request)
    doubtful = _doubts(scored, request, pairs, names)
    measures = tuple(_measured(name, scored, pairs, request, doubtful) for name in names)
    rankings = [{one.topic_id: one.document_ids() for one in run.stored.run} for run in scored]
    depth = request.depth or _depth(names[0])
    values = measures[0].values
    return Comparison(
        task=task.name,
        split=gold.split,
        runs=tuple(_described(one, name) for one, name in zip(scored, run_names(request.runs), strict=True)),
        baseline=baseline,
        measures=measures,
        against=_against(request),
        treatment=_treatment(request, scored),
        topics=tuple(
            topic_differences(
                (one, other), (values[one], values[other]), (rankings[one], rankings[other]), grades, depth
            )
            for one, other in pairs
        ),
        difficulty=difficulty(values, request.solved_from),
        breakdowns=compared_breakdowns([one.evaluation.breakdowns for one in scored]),
        alike=tuple(Alike(one, other, overlap(rankings[one], rankings[other])) for one, other in pairs),
        depth=depth,
        solved_from=request.solved_from,
        permutations=request.permutations,
        seed=request.seed,
        differing=differing,
        notes=tuple(_notes(measures, pairs, baseline)),
    )


def baseline_of(request: CompareRequest) -> int | None:
    """The number of the baseline, None without one.

    Raises:
        UsageError: the request makes no sense.
    """
    places = [path.resolve() for path in request.runs]
    if len(places) < 2:
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


def _of_scorer(name: str, task: Task) -> bool:
    """Whether a name is that of the official figure, whatever its cut-off is: no measure of ir-measures."""
    return name.partition("@")[0] == task.info.official_measure.partition("@")[0]


def _asked(request: CompareRequest, task: Task) -> tuple[str, ...]:
    """The measures that are asked for beside the official figures."""
    return tuple(name for name in request.source.measures if not _of_scorer(name, task))


def _scored(stored: StoredRun, request: CompareRequest, task: Task, grades: Grades) -> _Scored:
    measures = _asked(request, task)
    if request.judgments is None:
        found = evaluate_run(stored, replace(request.source, measures=measures))
    else:
        measures = tuple(dict.fromkeys((*measures, *JUDGED))) if measures else ()
        source = replace(request.source, measures=measures)
        found = evaluate_judged(Subject.stored(stored, source), request.judgments, source)
    topics = next(iter(found.measures.per_topic.values()), {})
    ids = topic_ids(list(topics), grades)
    official = {name: found.of_topics(name) for name in found.official.values}
    # Its own topics may be called otherwise than those of the measures, in the same order.
    named = topic_ids(list(found.official.per_topic), list(topics)) if topics else {}
    values: dict[str, Values] = {
        name: {ids.get(named.get(topic, topic), topic): value for topic, value in of_topics.items()}
        for name, of_topics in official.items()
        if of_topics
    }
    for name, of_measure in found.measures.per_topic.items():
        values.setdefault(name, {ids.get(topic, topic): value for topic, value in of_measure.items()})
    return _Scored(stored, found, values)


def gold_grades(task: Task, gold: GoldSource) -> Grades:
    """The grades of the gold by the ids of topics and documents.

    Raises:
        as `evaluate` does.
    """
    files = gold_files(task, gold)
    if gold.split is None:
        raise UsageError(f"name the split of {task.reference} with --split")
    return task.official.grades(files, Part(task.collection(gold.folder(task) or Path()), gold.split))


def _measure_names(scored: Sequence[_Scored], request: CompareRequest) -> list[str]:
    """The figures that every run has a value a topic for: those asked for, and the official one.

    Raises:
        UsageError: one that was asked for has none.
    """
    official = scored[0].evaluation.official.measure
    there = [name for name in scored[0].values if all(name in one.values for one in scored)]
    asked = list(dict.fromkeys(request.source.measures))
    for name in asked:
        if name not in there:
            raise UsageError(
                f"there is no measure {name!r} with a value for each topic: the runs have {', '.join(there)}"
            )
    measured = [name for name in scored[0].evaluation.measures.values if name in there and name not in JUDGED]
    wanted = [*asked, official] if asked else [official, *measured[:USUAL_MEASURES]]
    names = [name for name in dict.fromkeys(wanted) if name in there]
    if not names:
        raise DataError("the runs have no figure with a value for each topic: choose one with --measure")
    # A measure that the official one is, as AP is CheckThat's MAP, is not tested twice.
    same = [
        name
        for name in names
        if name != official
        and official in names
        and all(_same(one.values[name], one.values[official]) for one in scored)
    ]
    return [name for name in names if name not in same or name in asked]


def _same(values: Values, others: Values) -> bool:
    """Whether two measures have the same value for each topic."""
    both = paired(values, others)
    return len(both.topics) == len(values) == len(others) and bool((abs(both.differences) < ROUNDING).all())


def pairs_of(request: CompareRequest) -> list[tuple[int, int]]:
    """The pairs of runs that are compared, by their numbers: with the baseline, or all of them.

    Raises:
        UsageError: the request makes no sense.
    """
    baseline, runs = baseline_of(request), len(request.runs)
    if baseline is not None:
        return [(baseline, other) for other in range(runs) if other != baseline]
    return [(one, other) for one in range(runs) for other in range(one + 1, runs)]


def _measured(
    name: str,
    scored: Sequence[_Scored],
    pairs: Sequence[tuple[int, int]],
    request: CompareRequest,
    doubtful: Mapping[tuple[str, tuple[int, int]], Doubt],
) -> Measured:
    values = tuple(one.values[name] for one in scored)
    both = {pair: paired(values[pair[0]], values[pair[1]]) for pair in pairs}
    tests = {
        pair: pair_tests(one, permutations=request.permutations, seed=request.seed)
        for pair, one in both.items()
    }
    corrected = _corrected(list(tests.values()))
    topics, table = blocks(values)
    several = len(scored) > 2
    of_all = tukey(table) if several else None
    at_random = randomised_tukey(table, seed=request.seed) if several else None
    official = scored[0].evaluation.official.measure
    figures = [_figure(one, name) for one in scored]
    means = tuple(mean(column) for column in table.T)
    return Measured(
        name=name,
        is_official=name == official,
        topics=len(topics),
        means=means,
        values=values,
        pairs=tuple(
            Pair(
                first=pair[0],
                second=pair[1],
                tests=tests[pair],
                corrected=held,
                tukey=None if of_all is None else of_all.p[min(pair), max(pair)],
                randomised_tukey=None if at_random is None else at_random.p[min(pair), max(pair)],
                only_first=len(both[pair].only_first),
                only_second=len(both[pair].only_second),
                doubt=doubtful.get((name, pair)),
            )
            for pair, held in zip(pairs, corrected, strict=True)
        ),
        tukey=of_all,
        randomised_tukey=at_random,
        complete=all(
            figure is None or abs(figure - one) <= 1e-9 for figure, one in zip(figures, means, strict=True)
        ),
    )


def _figure(one: _Scored, name: str) -> float | None:
    """What `evaluate` says of a run under a figure."""
    found = one.evaluation.official.values.get(name, one.evaluation.measures.values.get(name))
    return None if found is None else float(found)


def _corrected(tests: Sequence[PairTests]) -> list[dict[str, Corrected]]:
    """The p-values of each pair, each test corrected for the number of pairs."""
    found: list[dict[str, Corrected]] = [{} for _ in tests]
    for name in tests[0].p_values:
        p_values = [one.p_values[name] for one in tests]
        rows = zip(found, p_values, holm(p_values), benjamini_hochberg(p_values), strict=True)
        for one, p, by_holm, by_rate in rows:
            one[name] = Corrected(p, by_holm, by_rate)
    return found


def _doubts(
    scored: Sequence[_Scored], request: CompareRequest, pairs: Sequence[tuple[int, int]], names: Sequence[str]
) -> dict[tuple[str, tuple[int, int]], Doubt]:
    """What unjudged documents can have to do with each difference; nothing where the gold is the organisers'."""
    if request.judgments is None or request.judgments.unjudged is not Unjudged.nonrelevant:
        return {}
    measured = [name for name in names if name in scored[0].evaluation.measures.values]
    source = replace(request.source, measures=tuple(measured))
    return doubts([one.stored for one in scored], request.judgments, source, pairs)


def _described(one: _Scored, name: str) -> ComparedRun:
    manifest, found = one.stored.manifest, one.evaluation
    return ComparedRun(
        name=name,
        path=str(one.stored.path),
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


def _treatment(request: CompareRequest, scored: Sequence[_Scored]) -> str:
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
