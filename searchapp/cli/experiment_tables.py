"""Comparisons, benches, ablations and learning curves as tables in a terminal, as CSV, as Markdown and as LaTeX.

Imports NumPy (through `app.comparison`): commands import this module when they print.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from searchapp.app.comparison import number, p_value, signed
from searchapp.cli.tables import (
    GAP,
    TESTED,
    Column,
    csv_table,
    exactly,
    for_latex,
    for_markdown,
    latex_comments,
    latex_table,
    markdown_table,
    print_columns,
    tested,
)
from searchapp.report.wording import (
    DUE,
    STEPS,
    bench_legend,
    between,
    comparison_legend,
    curve_heading,
    curve_legend,
    doubted,
    effect,
    figures_of,
    greatest,
    lines_of,
    marks,
    moves,
    official,
    pairs,
    step,
    tests_table,
)
from searchapp.text import counted, visible, visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import Alike, Comparison, Measured, TopicDifferences
    from searchapp.app.experiments.ablation import Ablation
    from searchapp.app.experiments.bench_result import BenchMeasure, BenchResult, Difference
    from searchapp.app.experiments.bench_result import Column as BenchColumn
    from searchapp.app.experiments.learning_curve import LearningCurve
    from searchapp.cli.output import Console


COMPARISON_COLUMNS = (
    "measure",
    "first",
    "second",
    "topics",
    "mean_first",
    "mean_second",
    *TESTED,
    "p_tukey",
    "p_randomised_tukey",
    "difference_low",
    "difference_high",
    "due_to_unjudged",
)
"""Of the CSV: a row a measure and pair of runs, every figure at full precision, nothing where there is none."""


def comparison_csv(found: Comparison) -> str:
    """The comparison for a spreadsheet."""
    return csv_table(COMPARISON_COLUMNS, _comparison_rows(found))


def _comparison_rows(found: Comparison) -> Iterator[list[object]]:
    for measured, pair in pairs(found):
        doubt = pair.doubt
        yield [
            measured.name,
            found.runs[pair.first].name,
            found.runs[pair.second].name,
            pair.tests.topics,
            *map(exactly, (pair.tests.first, pair.tests.second)),
            *tested(pair),
            *map(
                exactly,
                (
                    pair.tukey,
                    pair.randomised_tukey,
                    None if doubt is None else doubt.low,
                    None if doubt is None else doubt.high,
                ),
            ),
            "" if doubt is None else doubt.due,
        ]


def tests_columns(found: Comparison) -> list[Column]:
    """The tests as columns of a table."""
    heading, rows = tests_table(found)
    return [Column(name, [row[place] for row in rows], place < 2) for place, name in enumerate(heading)]


def comparison_markdown(found: Comparison) -> str:
    """The comparison as a Markdown table, and below it what must be known of it."""
    said = [f"- {for_markdown(one)}" for one in comparison_legend(found)]
    return "\n".join([*markdown_table(tests_columns(found)), "", *said]) + "\n"


def comparison_latex(found: Comparison) -> str:
    """The comparison as a table for LaTeX with the package booktabs, and what must be known of it as comments."""
    return "\n".join([*latex_comments(comparison_legend(found)), *latex_table(tests_columns(found))]) + "\n"


def bars(values: Sequence[float], width: int) -> list[str]:
    """A bar for each value, the longest being `width` blocks: those below 0 are of another kind."""
    greatest = max(map(abs, values), default=0.0) or 1.0
    return [("█" if value > 0 else "░") * round(width * abs(value) / greatest) for value in values]


DIFFERENCE_BAR = 30
"""Blocks of the longest bar."""


def print_comparison(console: Console, found: Comparison, topics: int) -> None:
    """Print the figures, the tests, and where the runs differ, with so many topics of either end."""
    _print_figures(console, found)
    _print_heading(console, "Differences")
    first, *columns = tests_columns(found)
    print_columns(console, first, columns)
    _print_doubts(console, found)
    for one in found.topics if topics else ():
        _print_topics(console, found, one, topics)
    _print_difficulty(console, found)
    _print_alike(console, found.alike, [run.name for run in found.runs])
    _print_breakdowns(console, found)
    console.print()
    for line in comparison_legend(found):
        _print_line(console, line)


def _print_heading(console: Console, text: str) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(visible(text), style="bold"))


def _print_line(console: Console, text: str) -> None:
    from rich.text import Text

    console.print(Text(visible_line(text)), soft_wrap=True)


def _print_figures(console: Console, found: Comparison) -> None:
    """The mean of each run under each measure, and how much of its first documents is judged."""
    names = ["topics", *(f"{one.name}{' (official)' if one.is_official else ''}" for one in found.measures)]
    judged = list(dict.fromkeys(cut for run in found.runs for cut in run.judged))
    columns = []
    for place, run in enumerate(found.runs):
        cells = [f"{found.measures[0].topics:,}", *(number(one.means[place]) for one in found.measures)]
        cells += [number(run.judged.get(cut)) for cut in judged]
        columns.append(Column(run.name + (" (baseline)" if place == found.baseline else ""), cells))
    print_columns(console, Column("mean", [*names, *judged], is_text=True), columns)


def _print_doubts(console: Console, found: Comparison) -> None:
    """What unjudged documents can have to do with each difference."""
    rows = [(one.name, pair, doubt) for one, pair, doubt in doubted(found)]
    if not rows:
        return
    _print_heading(console, "What documents that nobody has judged can do to these differences")
    names = [run.name for run in found.runs]
    print_columns(
        console,
        Column("measure", [name for name, _, _ in rows], is_text=True),
        [
            Column(
                "runs", [f"{names[pair.first]} → {names[pair.second]}" for _, pair, _ in rows], is_text=True
            ),
            Column("difference", [signed(pair.tests.mean) for _, pair, _ in rows]),
            Column("at least", [signed(doubt.low) for _, _, doubt in rows]),
            Column("at most", [signed(doubt.high) for _, _, doubt in rows]),
            Column("in the other's favour", [signed(doubt.reversed) for _, _, doubt in rows]),
            Column("the difference is", [DUE[doubt.due] for _, _, doubt in rows], is_text=True),
        ],
    )


def _print_topics(console: Console, found: Comparison, one: TopicDifferences, count: int) -> None:
    """The topics of either end with bars, and what became of their relevant documents."""
    first, second = found.runs[one.first].name, found.runs[one.second].name
    gains = [topic for topic in one.topics if topic.difference > 0][:count]
    losses = [topic for topic in one.topics if topic.difference < 0][-count:]
    chosen = [*gains, *losses]
    _print_heading(
        console,
        f"{found.measures[0].name} by topic: {second} less {first}, the first {counted(found.depth, 'document')}",
    )
    if not chosen:
        _print_line(console, "no topic differs")
        return
    print_columns(
        console,
        Column("topic", [topic.topic_id for topic in chosen], is_text=True),
        [
            Column(first, [number(topic.first) for topic in chosen]),
            Column(second, [number(topic.second) for topic in chosen]),
            Column("difference", [signed(topic.difference) for topic in chosen]),
            Column("", bars([topic.difference for topic in chosen], DIFFERENCE_BAR), is_text=True),
            Column("gained +, lost -, moved", [", ".join(moves(topic)) for topic in chosen], is_text=True),
        ],
    )


def _print_difficulty(console: Console, found: Comparison) -> None:
    """How many topics are solved by none of the runs, by one, ..., by all."""
    _print_heading(
        console, f"Topics by difficulty: solved from {found.measures[0].name} {found.solved_from:g} on"
    )
    groups = found.difficulty
    runs = len(found.runs)
    print_columns(
        console,
        Column("solved by", [f"{one.solved_by} of {runs} runs" for one in groups], is_text=True),
        [
            Column("topics", [f"{len(one.topics):,}" for one in groups]),
            *(
                Column(run.name, [number(one.means[place]) for one in groups])
                for place, run in enumerate(found.runs)
            ),
            Column("such as", [", ".join(map(visible_line, one.topics[:3])) for one in groups], is_text=True),
        ],
    )


def _print_alike(console: Console, alike: Sequence[Alike], names: Sequence[str]) -> None:
    overlap = alike[0].overlap
    _print_heading(
        console,
        f"How alike the rankings are: RBO with p = {overlap.persistence:g}; tau over the documents that both have "
        f"among their first {overlap.tau_depth}",
    )
    print_columns(
        console,
        Column("runs", [f"{names[one.first]} → {names[one.second]}" for one in alike], is_text=True),
        [
            Column("topics", [f"{one.overlap.topics:,}" for one in alike]),
            Column("same", [f"{one.overlap.same:,}" for one in alike]),
            Column("RBO", [number(one.overlap.rbo) for one in alike]),
            Column("tau", [number(one.overlap.tau) for one in alike]),
            *(
                Column(f"Jaccard@{k}", [number(one.overlap.jaccard[k]) for one in alike])
                for k in overlap.jaccard
            ),
        ],
    )


def _print_breakdowns(console: Console, found: Comparison) -> None:
    for one in found.breakdowns:
        _print_heading(console, one.title)
        for figure in figures_of(one):
            held = [row.values.get(figure, (None,) * len(found.runs)) for row in one.rows]
            columns = [Column(one.counted, [str(row.count) for row in one.rows])]
            columns += [
                Column(f"{figure} {run.name}", [number(values[place]) for values in held])
                for place, run in enumerate(found.runs)
            ]
            if len(found.runs) == 2:
                columns.append(Column("difference", [_less(*values) for values in held]))
            print_columns(console, Column(one.name, [row.group for row in one.rows], is_text=True), columns)


def _less(first: float | None, second: float | None) -> str:
    return "–" if first is None or second is None else signed(second - first)


BETTER = ("black on #e6f5d0", "black on #b8e186", "black on #7fbc41", "white on #4d9221")
WORSE = ("black on #fde0ef", "black on #f1b6da", "white on #c51b7d", "white on #8e0152")
"""Shades that people tell apart who don't tell red from green: C. Brewer's PiYG."""

BENCH_COLUMNS = (
    "task",
    "split",
    "group",
    "engine",
    "system",
    "recipe",
    "measure",
    "official",
    "topics",
    "value",
    "baseline",
    *TESTED,
    "run",
    "digest",
    "error",
)
"""Of the CSV: a row a column of the bench, system and measure."""


def print_bench(console: Console, found: BenchResult) -> None:
    """Print the figures of every system, and below them a heatmap of the differences to the baseline."""
    for heading, first, columns in _bench_tables(found):
        if heading:
            console.print()
            _print_styled_line(console, heading, "bold")
        print_columns(console, first, columns)
    console.print()
    for line in bench_legend(found):
        _print_styled_line(console, line)


def _print_styled_line(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text

    console.print(Text(visible_line(text), style=style), soft_wrap=True)


def _bench_tables(found: BenchResult) -> Iterator[tuple[str, Column, list[Column]]]:
    """A heading, the first column, and the others of each table."""
    rows = lines_of(found)
    names = [column.name for column, _ in rows]
    measures = Column(
        "measure",
        ["–" if one is None else one.name + (" (official)" if one.is_official else "") for _, one in rows],
        is_text=True,
    )
    topics = Column("topics", [f"{one.topics:,}" if one and one.topics else "–" for _, one in rows])
    yield (
        "",
        Column("task", names, is_text=True),
        [
            measures,
            topics,
            *(
                Column(
                    system.name + (" (baseline)" if place == found.baseline else ""),
                    [_bench_figure(column, one, place) for column, one in rows],
                )
                for place, system in enumerate(found.systems)
            ),
        ],
    )
    ranking = official(found)
    others = [place for place in range(len(found.systems)) if place != found.baseline]
    if not ranking or not others:
        return
    most = greatest(found)
    columns = []
    for place in others:
        differences = [measure.differences[place] for _, measure in ranking]
        columns.append(
            Column(
                found.systems[place].name,
                [heat(one, most) for one in differences],
                is_text=True,
                styles=[_style(one, most) for one in differences],
            )
        )
    yield (
        f"Difference to {found.systems[found.baseline].name}",
        Column("task", [column.name for column, _ in ranking], is_text=True),
        [Column("measure", [measure.name for _, measure in ranking], is_text=True), *columns],
    )


def _bench_figure(column: BenchColumn, measure: BenchMeasure | None, place: int) -> str:
    cell = column.cells[place]
    if cell is None:
        return ""
    if cell.error is not None:
        return "failed"
    return number(None if measure is None else measure.figures[place])


def heat(difference: Difference | None, greatest: float) -> str:
    """A difference with its marks, and blocks that say without colours how large it is."""
    if difference is None:
        return "–"
    blocks = ("█" if difference.mean > 0 else "░") * step(difference, greatest)
    return f"{signed(difference.mean)}{marks(difference):<3} {blocks:<{STEPS}}"


def _style(difference: Difference | None, greatest: float) -> str:
    shade = 0 if difference is None else step(difference, greatest)
    if difference is None or not shade:
        return ""
    return (BETTER if difference.mean > 0 else WORSE)[shade - 1]


def bench_csv(found: BenchResult) -> str:
    """The bench for a spreadsheet."""
    return csv_table(BENCH_COLUMNS, _bench_rows(found))


def _bench_rows(found: BenchResult) -> Iterator[list[object]]:
    for column, measure in lines_of(found):
        for place, system in enumerate(found.systems):
            cell = column.cells[place]
            if cell is None:
                continue
            difference = None if measure is None else measure.differences[place]
            yield [
                column.task,
                column.split,
                column.group or "",
                system.engine,
                system.name,
                system.recipe,
                "" if measure is None else measure.name,
                "" if measure is None else str(measure.is_official).lower(),
                "" if measure is None else measure.topics,
                exactly(None if measure is None else measure.figures[place]),
                found.systems[found.baseline].name,
                *_of_difference(difference),
                cell.run,
                cell.digest,
                cell.error or "",
            ]


def _of_difference(one: Difference | None) -> list[object]:
    if one is None:
        return [""] * 12
    at_random = one.corrected["randomisation"]
    return [
        *map(exactly, (one.mean, one.low, one.high)),
        one.wins,
        one.ties,
        one.losses,
        *map(
            exactly,
            (
                one.effect,
                one.corrected["t-test"].p,
                one.corrected["wilcoxon"].p,
                at_random.p,
                at_random.holm,
                at_random.benjamini_hochberg,
            ),
        ),
    ]


def bench_markdown(found: BenchResult) -> str:
    """The bench as Markdown tables, and below them what must be known of them."""
    lines: list[str] = []
    for heading, first, columns in _bench_tables(found):
        lines += [f"**{for_markdown(heading)}**", ""] if heading else []
        lines += [*markdown_table([first, *columns]), ""]
    return "\n".join([*lines, *(f"- {for_markdown(visible(one))}" for one in bench_legend(found))]) + "\n"


def bench_latex(found: BenchResult) -> str:
    """The bench as tables for LaTeX with the package booktabs, and what must be known of them as comments."""
    lines = latex_comments(bench_legend(found))
    for heading, first, columns in _bench_tables(found):
        lines += ["", rf"\textbf{{{for_latex(heading)}}}\par"] if heading else []
        lines += latex_table([first, *columns])
    return "\n".join(lines) + "\n"


ABLATION_COLUMNS = (
    "task",
    "splits",
    "recipe",
    "measure",
    "official",
    "topics",
    "kind",
    "signal",
    "feature",
    "figure",
    *("gain" if name == "difference" else name for name in TESTED),
    "cpu_seconds",
    "cpu_saved",
    "clock_seconds",
)
"""Of the CSV: a row a measure and variant."""


def print_ablation(console: Console, found: Ablation) -> None:
    """Print a table a measure, and what must be known of them."""
    from rich.text import Text

    for place, measured in enumerate(found.measures):
        if place:
            console.print()
        console.print(Text(visible_line(_ablation_heading(found, measured)), style="bold"), soft_wrap=True)
        first, *columns = _ablation_columns(found, measured)
        print_columns(console, first, columns, bold=[0])
    console.print()
    for line in _ablation_legend(found):
        console.print(Text(visible_line(line)), soft_wrap=True)


def ablation_csv(found: Ablation) -> str:
    """The ablation for a spreadsheet."""
    return csv_table(ABLATION_COLUMNS, _ablation_rows(found))


def ablation_markdown(found: Ablation) -> str:
    """The ablation as Markdown tables, and below them what must be known of them."""
    lines: list[str] = []
    for measured in found.measures:
        lines += [f"**{for_markdown(_ablation_heading(found, measured))}**", ""]
        lines += [*markdown_table(_ablation_columns(found, measured)), ""]
    return "\n".join([*lines, *(f"- {for_markdown(one)}" for one in _ablation_legend(found))]) + "\n"


def ablation_latex(found: Ablation) -> str:
    """The ablation as tables for LaTeX with the package booktabs, and what must be known of them as comments."""
    lines = latex_comments(_ablation_legend(found))
    for measured in found.measures:
        lines += ["", rf"\textbf{{{for_latex(_ablation_heading(found, measured))}}}\par"]
        lines += latex_table(_ablation_columns(found, measured))
    return "\n".join(lines) + "\n"


def _ablation_heading(found: Ablation, measured: Measured) -> str:
    official = " (official)" if measured.is_official else ""
    where = f"{found.task} {', '.join(found.splits)}, recipe {found.recipe['name']}"
    return f"{where}: {measured.name}{official} of {counted(measured.topics, 'topic')}"


def _ablation_columns(found: Ablation, measured: Measured) -> list[Column]:
    rows = list(found.rows(measured))
    tests = [None if pair is None else pair.tests for _, _, pair in rows]
    corrected = [None if pair is None else pair.corrected["randomisation"] for _, _, pair in rows]
    won = [None if one is None else one.outcomes for one in tests]
    return [
        Column("recipe", [variant.name for variant, _, _ in rows], is_text=True),
        Column(measured.name, [number(figure) for _, figure, _ in rows]),
        Column("gain", ["" if one is None else signed(one.mean) for one in tests]),
        Column("95% interval", ["" if one is None else between(one.interval, sign=True) for one in tests]),
        Column(
            "won/tied/lost", ["" if one is None else f"{one.wins}/{one.ties}/{one.losses}" for one in won]
        ),
        Column("d_z", ["" if one is None else effect(one.effect) for one in tests]),
        Column("randomisation", ["" if one is None else p_value(one.p) for one in corrected]),
        Column("Holm", ["" if one is None else p_value(one.holm) for one in corrected]),
        Column("CPU s", [f"{variant.cpu:.2f}" for variant, _, _ in rows]),
        Column(
            "cost", ["" if pair is None else f"{found.saved(variant):+z.2f}" for variant, _, pair in rows]
        ),
    ]


def _ablation_rows(found: Ablation) -> Iterator[list[object]]:
    for measured in found.measures:
        for variant, figure, pair in found.rows(measured):
            yield [
                found.task,
                " ".join(found.splits),
                found.recipe["name"],
                measured.name,
                str(measured.is_official).lower(),
                measured.topics,
                variant.kind.value,
                variant.signal,
                variant.feature,
                exactly(figure),
                *([""] * len(TESTED) if pair is None else tested(pair)),
                exactly(variant.cpu),
                exactly(found.saved(variant)),
                exactly(variant.clock),
            ]


def _ablation_legend(found: Ablation) -> Iterator[str]:
    """What must be known to read the figures, in sentences."""
    yield (
        "gain: what the recipe as it is has more, so what the part gains that is missing; interval: BCa bootstrap over "
        f"topics; p-values are two-sided, of the randomisation test "
        f"({counted(found.permutations, 'sign vector')} of seed "
        f"{found.seed}), corrected by Holm among the variants of one kind"
    )
    yield (
        f"CPU s: seconds of processors for ranking {counted(found.topics, 'topic')} to depth {found.depth:,}, "
        "without indexing "
        "and training; cost: what the missing part takes of them"
    )
    if found.folds > 1:
        yield f"topics are ranked in {found.folds:,} folds, each by the solved topics of the others"
    yield (
        "weights and parameters are those of the recipe in every row; the learned fusion is trained anew for the "
        "signals that are left"
        if found.learned
        else "weights and parameters are those of the recipe in every row; none is chosen anew for what is left"
    )
    if found.told:
        yield (
            f"{', '.join(found.told)}: told what signals before it rank highest, in every row as in the recipe as it "
            "is, whether these count or not"
        )
    completed = [variant.name for variant in found.variants if variant.completed]
    if completed:
        yield (
            f"{', '.join(completed)}: the official scorer asks for more documents than are retrieved; those of the "
            "other signals follow in the order of their ids"
        )


GAIN_BAR, SHORT_GAIN_BAR = 30, 10
"""Blocks of the longest bar, where there is room and where there is little."""

CURVE_COLUMNS = (
    "judged",
    "judgments",
    "samples",
    "score",
    "lowest",
    "highest",
    "gain",
    "low",
    "high",
    "p_randomisation",
)
"""Of the CSV: a row a point."""


def print_curve(console: Console, found: LearningCurve) -> None:
    """Print the points, with a bar for each gain, and what must be known of them."""
    from rich.text import Text

    console.print(Text(visible_line(curve_heading(found)), style="bold"), soft_wrap=True)
    first, *columns = _curve_columns(found)
    gains = [0.0 if one.gain is None else one.gain.mean for one in found.points]
    every = (first, *columns)
    room = console.width - sum(one.width + GAP for one in every)
    if room < SHORT_GAIN_BAR:  # so headings are broken
        room = console.width - sum(one.least_width + GAP for one in every)
    shown = bars(gains, max(SHORT_GAIN_BAR, min(GAIN_BAR, room)))
    print_columns(console, first, [*columns, Column("", shown, is_text=True)])
    console.print()
    for line in curve_legend(found):
        console.print(Text(visible_line(line)), soft_wrap=True)


def curve_csv(found: LearningCurve) -> str:
    """The points for a spreadsheet."""
    return csv_table(
        CURVE_COLUMNS,
        (
            [
                one.judged,
                exactly(one.judgments),
                len(one.values),
                *map(exactly, (one.score, min(one.values), max(one.values))),
                *map(
                    exactly,
                    (None,) * 4
                    if one.gain is None
                    else (
                        one.gain.mean,
                        one.gain.interval.low,
                        one.gain.interval.high,
                        one.gain.randomisation.p,
                    ),
                ),
            ]
            for one in found.points
        ),
    )


def curve_markdown(found: LearningCurve) -> str:
    """The points as a Markdown table, and below it what must be known of them."""
    lines = [f"**{for_markdown(curve_heading(found))}**", "", *markdown_table(_curve_columns(found)), ""]
    return "\n".join([*lines, *(f"- {for_markdown(one)}" for one in curve_legend(found))]) + "\n"


def _curve_columns(found: LearningCurve) -> list[Column]:
    points = found.points
    gains = [one.gain for one in points]
    return [
        Column("judged topics", [f"{one.judged:,}" for one in points]),
        Column("judgments", [f"{one.judgments:,.0f}" for one in points]),
        Column("samples", [f"{len(one.values):,}" for one in points]),
        Column(found.measure, [number(one.score) for one in points]),
        Column("lowest", [number(min(one.values)) for one in points]),
        Column("highest", [number(max(one.values)) for one in points]),
        Column("gain", ["" if one is None else signed(one.mean) for one in gains]),
        Column("95% interval", ["" if one is None else between(one.interval, sign=True) for one in gains]),
        Column("p", ["" if one is None else p_value(one.randomisation.p) for one in gains]),
    ]
