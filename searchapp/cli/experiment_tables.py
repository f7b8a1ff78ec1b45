"""Comparisons, benches, ablations, tunings and learning curves as tables and CSV rows.

Imports NumPy (through `app.comparison`), so commands import this module when they print.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from searchapp.app.comparison import Difference, number, signed
from searchapp.cli.tables import GAP, Printout, ResultTable, TableColumn, exactly, tested, text_column
from searchapp.report.wording import (
    DUE,
    STEPS,
    bench_legend,
    between,
    comparison_legend,
    curve_heading,
    curve_legend,
    doubted,
    figures_of,
    greatest,
    lines_of,
    marks,
    moves,
    official,
    pairs,
    step,
    tests_cells,
    tests_table,
)
from searchapp.text import counted, visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from searchapp.app.comparison import Comparison, Measured, RunOverlap, TopicDifferences
    from searchapp.app.experiments.ablation import Ablation
    from searchapp.app.experiments.bench_result import BenchColumn, BenchMeasure, BenchResult
    from searchapp.app.experiments.learning_curve import LearningCurve
    from searchapp.app.experiments.tuning import TuneResult
    from searchapp.evaluation.significance import PairTests


def difference_columns(
    differences: Sequence[Difference | None], headings: Mapping[str, str]
) -> Iterator[TableColumn]:
    """Make the columns of differences and their tests; `headings` are by the names of `tests_cells`."""
    cells = [None if difference is None else tests_cells(difference) for difference in differences]
    for name, heading in headings.items():
        yield TableColumn(heading, ["" if cell is None else cell[name] for cell in cells])


def _of_tests(tests: PairTests | None) -> Difference | None:
    return None if tests is None else Difference.of(tests)


def bars(values: Sequence[float], width: int) -> list[str]:
    """Make a bar for each value, the longest of `width` blocks; negative values have lighter ones."""
    greatest = max(map(abs, values), default=0.0) or 1.0
    return [("█" if value > 0 else "░") * round(width * abs(value) / greatest) for value in values]


# Maximum length of the bar of a topic's difference.
DIFFERENCE_BAR = 30


def comparison_printout(comparison: Comparison, topics: int) -> Printout:
    """Format figures, tests and the `topics` most different topics; Markdown and LaTeX have only the tests."""
    heading, rows = tests_table(comparison)
    tests = [TableColumn(name, [row[index] for row in rows], index < 2) for index, name in enumerate(heading)]
    return Printout(
        tables=[
            _figures_table(comparison),
            ResultTable(tests, "Differences"),
            *_doubts_tables(comparison),
            *(_topics_table(comparison, topic, topics) for topic in comparison.topics if topics),
            _difficulty_table(comparison),
            _alike_table(comparison.overlaps, [run.name for run in comparison.runs]),
            *_breakdown_tables(comparison),
        ],
        legend=list(comparison_legend(comparison)),
        rows=_comparison_rows(comparison),
        written=[ResultTable(tests)],
    )


def _comparison_rows(comparison: Comparison) -> Iterator[dict[str, object]]:
    for measured, pair in pairs(comparison):
        doubt = pair.unjudged
        yield {
            "measure": measured.name,
            "first": comparison.runs[pair.first].name,
            "second": comparison.runs[pair.second].name,
            "topics": pair.tests.topics,
            "mean_first": exactly(pair.tests.first),
            "mean_second": exactly(pair.tests.second),
            **tested(pair.difference),
            "p_tukey": exactly(pair.tukey),
            "p_randomised_tukey": exactly(pair.randomised_tukey),
            "difference_low": exactly(None if doubt is None else doubt.low),
            "difference_high": exactly(None if doubt is None else doubt.high),
            "due_to_unjudged": "" if doubt is None else doubt.due,
        }


def _figures_table(comparison: Comparison) -> ResultTable:
    names = [
        "topics",
        *(f"{measure.name}{' (official)' if measure.is_official else ''}" for measure in comparison.measures),
    ]
    judged = list(dict.fromkeys(cut for run in comparison.runs for cut in run.judged))
    columns = [text_column("mean", [*names, *judged])]
    for index, run in enumerate(comparison.runs):
        cells = [
            f"{comparison.measures[0].topics:,}",
            *(number(measure.means[index]) for measure in comparison.measures),
        ]
        cells += [number(run.judged.get(cut)) for cut in judged]
        columns.append(TableColumn(run.name + (" (baseline)" if index == comparison.baseline else ""), cells))
    return ResultTable(columns)


def _doubts_tables(comparison: Comparison) -> Iterator[ResultTable]:
    """Show the possible influence of unjudged documents on each difference."""
    rows = doubted(comparison)
    if not rows:
        return
    names = [run.name for run in comparison.runs]
    runs = [f"{names[pair.first]} → {names[pair.second]}" for _, pair, _ in rows]
    yield ResultTable(
        [
            text_column("measure", [measured.name for measured, _, _ in rows]),
            text_column("runs", runs),
            TableColumn("difference", [signed(pair.tests.mean) for _, pair, _ in rows]),
            TableColumn("at least", [signed(doubt.low) for _, _, doubt in rows]),
            TableColumn("at most", [signed(doubt.high) for _, _, doubt in rows]),
            TableColumn("favouring the worse run", [signed(doubt.reversed) for _, _, doubt in rows]),
            text_column("the difference is", [DUE[doubt.due] for _, _, doubt in rows]),
        ],
        "Possible influence of unjudged documents on these differences",
    )


def _topics_table(comparison: Comparison, differences: TopicDifferences, count: int) -> ResultTable:
    first, second = comparison.runs[differences.first].name, comparison.runs[differences.second].name
    chosen = differences.ends(count)
    documents = counted(comparison.depth, "document")
    heading = f"{comparison.measures[0].name} by topic: {second} − {first}, first {documents}"
    if not chosen:
        return ResultTable([], heading, instead="no topic differs")
    return ResultTable(
        [
            text_column("topic", [topic.topic_id for topic in chosen]),
            TableColumn(first, [number(topic.first) for topic in chosen]),
            TableColumn(second, [number(topic.second) for topic in chosen]),
            TableColumn("difference", [signed(topic.difference) for topic in chosen]),
            text_column("", bars([topic.difference for topic in chosen], DIFFERENCE_BAR)),
            text_column("gained +, lost -, moved", [", ".join(moves(topic)) for topic in chosen]),
        ],
        heading,
    )


def _difficulty_table(comparison: Comparison) -> ResultTable:
    groups, runs = comparison.difficulty, comparison.runs
    return ResultTable(
        [
            text_column("success in", [f"{group.successful_runs} of {len(runs)} runs" for group in groups]),
            TableColumn("topics", [f"{len(group.topics):,}" for group in groups]),
            *(
                TableColumn(run.name, [number(group.means[at]) for group in groups])
                for at, run in enumerate(runs)
            ),
            text_column("such as", [", ".join(map(visible_line, group.topics[:3])) for group in groups]),
        ],
        f"Topics by difficulty: success is {comparison.measures[0].name} of at least {comparison.success_threshold:g}",
    )


def _alike_table(alike: Sequence[RunOverlap], names: Sequence[str]) -> ResultTable:
    of_first = alike[0].overlap
    overlaps = [pair.overlap for pair in alike]
    return ResultTable(
        [
            text_column("runs", [f"{names[pair.first]} → {names[pair.second]}" for pair in alike]),
            TableColumn("topics", [f"{overlap.topics:,}" for overlap in overlaps]),
            TableColumn("same", [f"{overlap.same:,}" for overlap in overlaps]),
            TableColumn("RBO", [number(overlap.rbo) for overlap in overlaps]),
            TableColumn("tau", [number(overlap.tau) for overlap in overlaps]),
            *(
                TableColumn(f"Jaccard@{k}", [number(overlap.jaccard[k]) for overlap in overlaps])
                for k in of_first.jaccard
            ),
        ],
        f"Similarity of the rankings: RBO with p = {of_first.persistence:g}; tau over the documents in the "
        f"first {of_first.tau_depth} of both",
    )


def _breakdown_tables(comparison: Comparison) -> Iterator[ResultTable]:
    for breakdown in comparison.breakdowns:
        for table, figure in enumerate(figures_of(breakdown)):
            rows = [row.values.get(figure, (None,) * len(comparison.runs)) for row in breakdown.rows]
            columns = [
                text_column(breakdown.name, [row.group for row in breakdown.rows]),
                TableColumn(breakdown.counted, [str(row.count) for row in breakdown.rows]),
            ]
            columns += [
                TableColumn(f"{figure} {run.name}", [number(values[index]) for values in rows])
                for index, run in enumerate(comparison.runs)
            ]
            if len(comparison.runs) == 2:
                differences = [
                    "–" if first is None or second is None else signed(second - first)
                    for first, second in rows
                ]
                columns.append(TableColumn("difference", differences))
            yield ResultTable(columns, "" if table else breakdown.title)


BETTER = ("black on #e6f5d0", "black on #b8e186", "black on #7fbc41", "white on #4d9221")
WORSE = ("black on #fde0ef", "black on #f1b6da", "white on #c51b7d", "white on #8e0152")


def bench_printout(bench: BenchResult) -> Printout:
    """Format the figures of every system above a heat map of the differences to the baseline."""
    return Printout(list(_bench_tables(bench)), list(bench_legend(bench)), _bench_rows(bench))


def _bench_tables(bench: BenchResult) -> Iterator[ResultTable]:
    rows = lines_of(bench)
    names = [
        "–" if pair is None else pair.name + (" (official)" if pair.official else "") for _, pair in rows
    ]
    yield ResultTable(
        [
            text_column("task", [column.name for column, _ in rows]),
            text_column("measure", names),
            TableColumn("topics", [f"{pair.topics:,}" if pair and pair.topics else "–" for _, pair in rows]),
            *(
                TableColumn(
                    system.name + (" (baseline)" if index == bench.baseline else ""),
                    [_bench_figure(column, pair, index) for column, pair in rows],
                )
                for index, system in enumerate(bench.systems)
            ),
        ]
    )
    ranking = official(bench)
    others = [index for index in range(len(bench.systems)) if index != bench.baseline]
    if not ranking or not others:
        return
    most = greatest(bench)
    columns = [
        text_column("task", [column.name for column, _ in ranking]),
        text_column("measure", [measure.name for _, measure in ranking]),
    ]
    for index in others:
        differences = [measure.differences[index] for _, measure in ranking]
        columns.append(
            TableColumn(
                bench.systems[index].name,
                [heat(difference, most) for difference in differences],
                is_text=True,
                styles=[_style(difference, most) for difference in differences],
            )
        )
    yield ResultTable(columns, f"Difference from {bench.systems[bench.baseline].name}")


def _bench_figure(column: BenchColumn, measure: BenchMeasure | None, index: int) -> str:
    cell = column.cells[index]
    if cell is None:
        return ""
    if cell.error is not None:
        return "failed"
    return number(None if measure is None else measure.figures[index])


def heat(difference: Difference | None, greatest: float) -> str:
    """Format a difference with its marks, and blocks that show its size without colours."""
    if difference is None:
        return "–"
    blocks = ("█" if difference.mean > 0 else "░") * step(difference, greatest)
    return f"{signed(difference.mean)}{marks(difference):<3} {blocks:<{STEPS}}"


def _style(difference: Difference | None, greatest: float) -> str:
    shade = 0 if difference is None else step(difference, greatest)
    if difference is None or not shade:
        return ""
    return (BETTER if difference.mean > 0 else WORSE)[shade - 1]


def _bench_rows(bench: BenchResult) -> Iterator[dict[str, object]]:
    for column, measure in lines_of(bench):
        for index, system in enumerate(bench.systems):
            cell = column.cells[index]
            if cell is None:
                continue
            yield {
                "task": column.task,
                "split": column.split,
                "group": column.group or "",
                "engine": system.engine,
                "system": system.name,
                "recipe": system.recipe,
                "measure": "" if measure is None else measure.name,
                "official": "" if measure is None else str(measure.official).lower(),
                "topics": "" if measure is None else measure.topics,
                "value": exactly(None if measure is None else measure.figures[index]),
                "baseline": bench.systems[bench.baseline].name,
                **tested(None if measure is None else measure.differences[index]),
                "run": cell.run,
                "digest": cell.digest,
                "error": cell.error or "",
            }


def ablation_printout(ablation: Ablation) -> Printout:
    """Make a table for each measure."""
    tables = [_ablation_table(ablation, measured) for measured in ablation.measures]
    return Printout(tables, list(_ablation_legend(ablation)), _ablation_rows(ablation))


def _ablation_table(ablation: Ablation, measured: Measured) -> ResultTable:
    official = " (official)" if measured.is_official else ""
    where = f"{ablation.task} {', '.join(ablation.splits)}, recipe {ablation.recipe['name']}"
    heading = f"{where}: {measured.name}{official} of {counted(measured.topics, 'topic')}"
    rows = list(ablation.rows(measured))
    costs = ["" if pair is None else f"{ablation.saved(variant):+z.2f}" for variant, _, pair in rows]
    shown = ("95% interval", "won/tied/lost", "d_z", "randomisation", "Holm")
    columns = [
        text_column("recipe", [variant.name for variant, _, _ in rows]),
        TableColumn(measured.name, [number(figure) for _, figure, _ in rows]),
        *difference_columns(
            [None if pair is None else pair.difference for _, _, pair in rows],
            {"difference": "gain", **{name: name for name in shown}},
        ),
        TableColumn("CPU s", [f"{variant.cpu_seconds:.2f}" for variant, _, _ in rows]),
        TableColumn("cost", costs),
    ]
    return ResultTable(columns, heading, bold=[0])


def _ablation_rows(ablation: Ablation) -> Iterator[dict[str, object]]:
    for measured in ablation.measures:
        for variant, figure, pair in ablation.rows(measured):
            tests = tested(None if pair is None else pair.difference)
            yield {
                "task": ablation.task,
                "splits": " ".join(ablation.splits),
                "recipe": ablation.recipe["name"],
                "measure": measured.name,
                "official": str(measured.is_official).lower(),
                "topics": measured.topics,
                "kind": variant.kind.value,
                "signal": variant.signal,
                "feature": variant.feature,
                "figure": exactly(figure),
                **{"gain" if name == "difference" else name: cell for name, cell in tests.items()},
                "cpu_seconds": exactly(variant.cpu_seconds),
                "cpu_seconds_saved": exactly(ablation.saved(variant)),
                "wall_seconds": exactly(variant.wall_seconds),
            }


def _ablation_legend(ablation: Ablation) -> Iterator[str]:
    yield (
        "gain: full recipe − variant, the gain of the missing part; interval: BCa bootstrap over topics; "
        f"p-values: two-sided randomisation test ({counted(ablation.permutations, 'sign vector')} with seed "
        f"{ablation.seed}), Holm-corrected among the variants of one kind"
    )
    yield (
        f"CPU s: processor seconds for ranking {counted(ablation.topics, 'topic')} to depth "
        f"{ablation.depth:,}, without indexing and training; cost: processor seconds of the missing part"
    )
    if ablation.folds > 1:
        yield f"topics are ranked in {ablation.folds:,} folds, each with the training topics of the other folds"
    yield (
        "weights and parameters are those of the recipe in every row; the learned fusion is trained again "
        "for the remaining signals"
        if ablation.learned
        else "weights and parameters are those of the recipe in every row; none is tuned again for a variant"
    )
    if ablation.dependent:
        yield (
            f"{', '.join(ablation.dependent)}: depends on the first documents of earlier signals; in every "
            "row they are those of the full recipe"
        )
    completed = [variant.name for variant in ablation.variants if variant.completed]
    if completed:
        yield (
            f"{', '.join(completed)}: the official scorer requires more documents than are retrieved; "
            "documents of the other signals follow in the order of their ids"
        )


SHOWN_TRIALS = 10


def trials_table(tune_result: TuneResult) -> ResultTable:
    """Show the best trials and the recipe before tuning, with intervals and tests."""
    best = [trial for trial in tune_result.trials[:SHOWN_TRIALS] if trial.error is None]
    best += [] if tune_result.shipped in best else [tune_result.shipped]
    topics = TableColumn("topics", [f"{result.topics:,}" for result in best])
    return ResultTable(
        [
            text_column("trial", ["original" if result.trial == 0 else str(result.trial) for result in best]),
            *(
                TableColumn(dimension.name, [str(result.set.get(dimension.name, "")) for result in best])
                for dimension in tune_result.request.params
            ),
            *([] if all(result.complete for result in best) else [topics]),
            TableColumn(tune_result.measure, [number(result.value) for result in best]),
            TableColumn("95% interval", [between(result.interval) for result in best]),
            *difference_columns(
                [_of_tests(result.tests) for result in best],
                {"difference": "difference", "95% interval": "95% interval", "randomisation": "p"},
            ),
        ],
        bold=[0],
    )


# Maximum length of the bar of a gain in wide and in narrow terminals.
GAIN_BAR, SHORT_GAIN_BAR = 30, 10


def curve_printout(learning_curve: LearningCurve, width: int) -> Printout:
    """Show the points, with a bar for each gain, in `width` columns."""
    columns = _curve_columns(learning_curve)
    gains = [0.0 if point.gain is None else point.gain.mean for point in learning_curve.points]
    room = width - sum(column.width + GAP for column in columns)
    if room < SHORT_GAIN_BAR:  # so headings are broken
        room = width - sum(column.least_width + GAP for column in columns)
    shown = bars(gains, max(SHORT_GAIN_BAR, min(GAIN_BAR, room)))
    heading = curve_heading(learning_curve)
    return Printout(
        tables=[ResultTable([*columns, text_column("", shown)], heading)],
        legend=list(curve_legend(learning_curve)),
        rows=_curve_rows(learning_curve),
        written=[ResultTable(columns, heading)],
    )


def _curve_rows(learning_curve: LearningCurve) -> Iterator[dict[str, object]]:
    for point in learning_curve.points:
        gain = tested(_of_tests(point.gain))
        yield {
            "judged": point.judged,
            "judgments": exactly(point.judgments),
            "samples": len(point.values),
            "score": exactly(point.score),
            "lowest": exactly(min(point.values)),
            "highest": exactly(max(point.values)),
            "gain": gain["difference"],
            **{name: gain[name] for name in ("low", "high", "p_randomisation")},
        }


def _curve_columns(learning_curve: LearningCurve) -> list[TableColumn]:
    points = learning_curve.points
    return [
        TableColumn("judged topics", [f"{point.judged:,}" for point in points]),
        TableColumn("judgments", [f"{point.judgments:,.0f}" for point in points]),
        TableColumn("samples", [f"{len(point.values):,}" for point in points]),
        TableColumn(learning_curve.measure, [number(point.score) for point in points]),
        TableColumn("lowest", [number(min(point.values)) for point in points]),
        TableColumn("highest", [number(max(point.values)) for point in points]),
        *difference_columns(
            [_of_tests(point.gain) for point in points],
            {"difference": "gain", "95% interval": "95% interval", "randomisation": "p"},
        ),
    ]
