"""`searchapp judge`: judge the documents of a run."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from pathlib import Path

import typer

from searchapp.cli.commands import TaskArgument, command
from searchapp.cli.judgment_options import AnnotatorOption, LogOption, RankNowOption, SharedOption, team
from searchapp.cli.output import for_person, has_screen, say, warn
from searchapp.config.settings import Settings
from searchapp.errors import UsageError
from searchapp.judging.events import Kind
from searchapp.options import flag, option
from searchapp.text import counted

app = typer.Typer()


@command(app)
def judge(
    settings: Settings,
    task: TaskArgument,
    run: Path | None = option(
        "Run directory, or TREC run, whose rankings are judged; without one, what a recipe ranks now.",
        completes="runs",
    ),
    recipe: RankNowOption = None,
    annotator: AnnotatorOption = None,
    kind: Kind = option("Whether the annotator is a person or a model.", default=Kind.person),
    blind: bool = flag("Hide ranks, scores and other people's grades, and shuffle the documents."),
    seed: int | None = option("Seed of the order with --blind; by default one for each annotator.", min=0),
    assignment: Path | None = option(
        "File of `judgments assign`: only the annotator's topics, in their order."
    ),
    topic: str | None = option("Topic to begin with."),
    depth: str | None = option(
        "Documents of each ranking to judge, of those that have a score; all: every document, those "
        "without a score last and marked.",
        metavar="N|all",
        show_default="the task's judging depth; of a pool, all",
    ),
    see_others: bool = flag("Show what others say of a document before you have judged it; the log says so."),
    data: Path | None = option(
        "Folder with the topics, if they are not where the run had them, or fetched with `data get`."
    ),
    split: str | None = option(
        "Split of a TREC run's topics, any by default; without a run the one that is ranked.",
        show_default="without a run dev, or the first that is there",
        completes="splits",
    ),
    log_file: LogOption = None,
    plain: bool = flag("Ordinary prompts, for screen readers and simple terminals."),
    shared: SharedOption = None,
) -> None:
    """Judge the documents of a run, topic by topic; every key that is pressed is saved at once.

    Without --run a recipe ranks the topics of a split now, each when it is opened.
    """
    from searchapp.app.inspection.pages import LocalFirst, RunPages, require_topic
    from searchapp.app.inspection.topics import TopicsRequest, open_now
    from searchapp.app.sessions import PATIENCE_SECONDS, annotator_name, judging_session, usual_depth
    from searchapp.judging import assignment as assignments
    from searchapp.judging.events import Author, Channel
    from searchapp.judging.log import JudgmentLog, Presence
    from searchapp.judging.session import Session, own_seed, summary
    from searchapp.tasks import load
    from searchapp.tui.kit import keys
    from searchapp.tui.kit.status import summed_up

    if seed is not None and not blind:
        raise UsageError("--seed is for the order with --blind only: add --blind, or leave it out")
    if see_others and blind:
        raise UsageError("--see-others shows what --blind hides: choose one of them")
    if recipe is not None and run is not None:
        raise UsageError("--recipe ranks now, and --run names what was ranked: leave one of them out")
    most, unscored = _depth(depth)
    simple = plain or os.environ.get("TERM") == "dumb"
    if not simple and not has_screen():
        raise UsageError("the screen for judging needs a terminal: use --plain for ordinary prompts")
    loaded = load(task)
    name = annotator_name(annotator or settings.annotator)
    assigned = None if assignment is None else assignments.read(assignment)
    own = keys.load(settings.of_user, loaded.info.grades)
    author = Author(name, kind, Channel.plain if simple else Channel.interface)
    together = settings.shared if shared is None else shared
    with (
        ExitStack() as opened,
        closing(LocalFirst(settings, for_person(settings), warn, copy=together)) as documents,
        JudgmentLog(log_file or settings.judgments, PATIENCE_SECONDS, warn) as log,
        team(settings, log, loaded.name, together) as synchronizer,
        Presence(log.path, loaded.name, name) as presence,
    ):
        # An assignment says which split it is of, a TREC run does not.
        of_split = split
        if assigned is not None and (run is None or run.is_file()):
            of_split = split or assigned.split
        if run is None:
            request = TopicsRequest(recipe=recipe, split=of_split, data=data, depth=most)
            run_pages, _ = open_now(opened, loaded, request, settings, for_person(settings), documents)
        else:
            run_pages = RunPages.open(loaded, documents, run, data, home=settings.home, split=of_split)
        topics = run_pages.topics
        if assigned is not None:
            topics = assigned.topics_in(loaded.name, run_pages.split or "", topics, name)
        require_topic(run_pages, topics, topic)
        for note in run_pages.notes:
            warn(note)
        if depth is None:
            most = usual_depth(run_pages)
        judging = judging_session(
            Session(log, loaded.name, author),
            run_pages,
            topics,
            most,
            (own_seed(name) if seed is None else seed) if blind else None,
            unscored=unscored,
            see_others=see_others,
        )
        judging.session.synchronizer = synchronizer
        log.damage.report = judging.session.news.append
        of_what = f"{loaded.name} {run_pages.split or run_pages.name}"
        title = f"{of_what} · {name}{' · blind' if blind else ''}"
        if assigned is not None:
            title += f" · {len(topics):,} assigned"
        if simple:
            from searchapp.tui.judge.prompts import JudgePrompts

            for other in presence.others:
                warn(
                    f"{name} judges {loaded.name} in another window already ({other}): the latest judgment counts"
                )
            JudgePrompts(judging, run_pages, title, topic).converse()
        else:
            from searchapp.tui.judge.screen import JudgeApp

            screen = JudgeApp(judging, run_pages, own, title, topic, presence)
            screen.run()
            if screen.return_code:
                raise typer.Exit(screen.return_code)
        log.damage.report = warn
        for words in (*judging.session.news, *run_pages.news):
            warn(words)
        for line in summed_up(summary(judging), loaded.info.grades):
            say(settings, line)
        left = judging.session.waiting
        say(
            settings,
            f"every judgment is in {log.path}"
            if not left
            else f"{counted(left, 'judgment')} {'is' if left == 1 else 'are'} not in {log.path}",
        )


def _depth(given: str | None) -> tuple[int | None, bool]:
    """How many documents of each ranking are to be judged, None for all, and whether also those without a score.

    Raises:
        UsageError: it is neither a number nor all.
    """
    if given is None or given == "all":
        return None, given == "all"
    if not given.isdecimal() or int(given) < 1:
        raise UsageError(f"--depth {given}: give a number from 1 on, or all")
    return int(given), False
