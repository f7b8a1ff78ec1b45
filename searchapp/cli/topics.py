"""`searchapp topics`: the topics of a run beside their gold."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.app.topic_figures import Order
from searchapp.cli.commands import JsonOption, TaskArgument, command
from searchapp.cli.judgment_options import LogOption, RankNowOption
from searchapp.cli.output import for_person, has_screen, print_json, stdout_console, warn
from searchapp.config.settings import Settings
from searchapp.errors import DataError
from searchapp.model import Run
from searchapp.options import flag, option
from searchapp.tasks import load
from searchapp.text import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.app.inspection.topics import Missed, RunTopics, TopicsRequest
    from searchapp.app.topic_figures import Figures
    from searchapp.judging.session import Session

NOT_RELEVANT = 10
"""Documents of a topic that are not relevant and are printed: the first ones."""

TEXT_CHARACTERS = 80
"""Of a topic or document, where one stands on a line."""


app = typer.Typer()


@command(app)
def topics(
    settings: Settings,
    task: TaskArgument,
    run: Path | None = option(
        "Run directory, or TREC run; without one, what a recipe ranks now.", completes="runs"
    ),
    recipe: RankNowOption = None,
    split: str | None = option(
        "Split whose topics are ranked, or those of a TREC run.",
        show_default="dev, or the first that is there",
        completes="splits",
    ),
    depth: int | None = option(
        "Documents of each ranking that count: gold behind them is missed.", min=1, show_default="all"
    ),
    topic: str | None = option("Topic to begin with; without a terminal the only one."),
    order: Order = option(
        "Order of the topics: as in the run, worst first, or most missed first.", default=Order.file
    ),
    failures: bool = flag(
        "Only topics that miss gold, or have other documents before it, the worst first; with --topic "
        "also its first documents that are not relevant."
    ),
    data: Path | None = option(
        "Folder with the topics and their gold, if they are not where the run had them."
    ),
    annotator: str | None = option(
        "Name of who judges on the screen; by default SEARCHAPP_ANNOTATOR, or that of the account.",
        completes="annotators",
    ),
    log_file: LogOption = None,
    plain: bool = flag("Print the topics, or one of them, instead of opening the screen."),
    as_json: JsonOption = False,
) -> None:
    """Walk the topics of a run: the figure of each, its ranking with the gold marked, and the gold that is missed.

    On a terminal a screen opens. Without one, or with --plain or --json, the topics are printed with their figures,
    or with --topic one of them with its gold: the rank of each relevant document, or why it has none.
    """
    from searchapp.app.inspection.topics import TopicsRequest, open_topics

    loaded = load(task)
    request = TopicsRequest(run, recipe, split, data, depth)
    on_screen = not plain and not as_json and has_screen()
    with ExitStack() as opened:
        found = open_topics(opened, loaded, request, settings, for_person(settings), warn)
        for note in found.pages.notes:
            warn(note)
        if on_screen:
            start = topic, order, failures
            _screen(opened, found, request, settings, start, (annotator, log_file))
        elif topic is not None:
            found.require(topic)
            _print_topic(found, topic, failures=failures, as_json=as_json)
        else:
            _print_topics(found, order, settings, failures=failures, as_json=as_json)


def _screen(
    opened: ExitStack,
    topics: RunTopics,
    request: TopicsRequest,
    settings: Settings,
    start: tuple[str | None, Order, bool],
    who: tuple[str | None, Path | None],
) -> None:
    """Open the screen."""
    from searchapp.app.sessions import grading_session
    from searchapp.tui.gold import actions
    from searchapp.tui.topics.screen import TopicsApp, topics_screen

    annotator, log_file = who
    topic, order, failing = start
    task = topics.task

    def session() -> Session:
        return grading_session(
            opened, log_file or settings.judgments, task.name, annotator or settings.annotator
        )

    own = actions.load(settings.of_user, task.info.grades)
    screen = topics_screen(topics, request, settings, session, topic, order, failing=failing)
    app = TopicsApp(screen, own.theme, own.spacing)
    app.run()
    if app.return_code:
        raise typer.Exit(app.return_code)


def _print_topics(
    found: RunTopics, order: Order, settings: Settings, *, failures: bool, as_json: bool
) -> None:
    """Print the figures of all topics."""
    with for_person(settings).stage("reading rankings", len(found.topics)) as advance:
        rankings = []
        for ranking in found.rankings():
            rankings.append(ranking)
            advance(1)
    figures = found.figures(Run(found.pages.name, tuple(rankings)))
    if figures.instead_of is not None:
        warn(f"{figures.name} in place of {found.task.info.official_measure}: {figures.instead_of}")
    if failures and order is Order.file:
        order = Order.worst
    topics = found.in_order(order, figures)
    if failures:
        topics = [one for one in topics if one in figures.topics and figures.topics[one].fails]
    if as_json:
        print_json(_described(found, figures, topics))
        return
    console = stdout_console()
    width = max(map(len, (*map(visible_line, topics), "topic")))
    console.print(f"{'topic':<{width}}  {figures.name:>8}  {'missed':>9}", markup=False, soft_wrap=True)
    for topic in topics:
        one = figures.topics[topic]
        value = "" if one.value is None else f"{one.value:.4f}"
        text = _shortened(found.pages.topic(topic).text)
        missed = f"{one.missed}/{one.relevant}"
        console.print(
            f"{visible_line(topic):<{width}}  {value:>8}  {missed:>9}  {text}", markup=False, soft_wrap=True
        )


def _described(found: RunTopics, figures: Figures, topics: Sequence[str]) -> dict[str, object]:
    return {
        "task": found.task.name,
        "split": found.part.split,
        "run": found.pages.name,
        "measure": figures.name,
        "instead_of": figures.instead_of,
        "topics": [{"id": topic, **asdict(figures.topics[topic])} for topic in topics],
    }


def _print_topic(found: RunTopics, topic: str, *, failures: bool, as_json: bool) -> None:
    """Print the gold of a topic: where it is ranked, what became of what is missed, and of `failures` what is first."""
    from searchapp.app.inspection.topics import what_became

    ranked = found.ranking(topic)
    if ranked.no_gold is not None:
        raise DataError(ranked.no_gold)
    missed = found.look_for_missed(topic)
    if missed.differs:
        warn("the recipe ranks otherwise now than for the run: the ranks of missed gold are those of now")
    ranks = {document: rank for rank, document in enumerate(ranked.documents[: found.depth], start=1)}
    placed = sorted((ranks[one], one) for one in ranked.relevant if one in ranks)
    others = [(rank, ranked.documents[rank - 1]) for rank in ranked.not_relevant[:NOT_RELEVANT]]
    if as_json:
        described = {
            "task": found.task.name,
            "run": found.pages.name,
            "topic": topic,
            "documents": len(ranked.documents),
            "gold": [{"id": one, "grade": ranked.relevant[one], "rank": rank} for rank, one in placed],
            "missed": [_described_missed(one) for one in missed.documents],
        }
        if failures:
            described["not_relevant"] = [{"id": one, "rank": rank} for rank, one in others]
        print_json(described)
        return
    lines = [(f"rank {rank:,}", one) for rank, one in placed]
    lines += [(f"missed: {what_became(one.why)}", one.document_id) for one in missed.documents]
    if failures:
        lines += [(f"not relevant: rank {rank:,}", one) for rank, one in others]
    named = [one for _, one in lines]
    texts = dict(zip(named, map(_shortened, found.pages.texts(named)), strict=True))
    console = stdout_console()
    console.print(_shortened(found.pages.topic(topic).text), markup=False, soft_wrap=True)
    width = max((len(what) for what, _ in lines), default=0)
    ids = max((len(visible_line(one)) for _, one in lines), default=0)
    for what, one in lines:
        console.print(
            f"  {what:<{width}}  {visible_line(one):<{ids}}  {texts[one]}", markup=False, soft_wrap=True
        )


def _described_missed(one: Missed) -> dict[str, object]:
    why = one.why
    return {
        "id": one.document_id,
        "grade": one.grade,
        "standing": None if why is None else why.standing.value,
        "rank": None if why is None else why.rank,
    }


def _shortened(text: str) -> str:
    line = visible_line(" ".join(text[: 10 * TEXT_CHARACTERS].split()))
    return line if len(line) <= TEXT_CHARACTERS else f"{line[: TEXT_CHARACTERS - 1]}…"
