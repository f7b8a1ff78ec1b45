"""`searchapp judge`, `topics`, and `judgments adjudicate`, `pool` and `assign`."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.app.pooling import DEPTH, STRATA, PoolDesign, PoolOrder, parse_strata
from searchapp.app.topic_figures import Order
from searchapp.cli.commands import (
    DataOption,
    JsonOption,
    OverwriteOption,
    SeedOption,
    TaskArgument,
    command,
    data_of,
    run_screen,
)
from searchapp.cli.judgment_options import (
    AnnotatorOption,
    LogOption,
    RankNowOption,
    open_judgments,
)
from searchapp.cli.model_options import ModelOptions, judge_and_report
from searchapp.cli.output import (
    can_move_cursor,
    for_person,
    has_screen,
    print_json,
    require_screen,
    say,
    stdout_console,
    warn,
    warn_all,
    warn_at_once,
)
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError, EngineError, UsageError
from searchapp.files import atomic_file
from searchapp.formats.problems import Problems
from searchapp.judging.events import Action, Author, Channel, Kind, annotator_name
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load
from searchapp.text import be, counted, visible_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from searchapp.app.inspection.pages import Pages
    from searchapp.app.inspection.topics import AnnotatorGold, RunTopics, TopicsRequest
    from searchapp.app.sessions import JudgingRequest
    from searchapp.judging.log import JudgmentLog, Presence
    from searchapp.judging.session import Adjudication, JudgingSession, SeenDocument, Session
    from searchapp.model import Topic
    from searchapp.progress import Progress
    from searchapp.tasks.base import Task
    from searchapp.tui.adjudicate.screen import AdjudicateScreen
    from searchapp.tui.judge.screen import JudgeScreen
    from searchapp.tui.topics.screen import TopicsScreen


app, judgments_app = typer.Typer(), typer.Typer()


@command(app)
def judge(
    settings: Settings,
    task: TaskArgument,
    run: Path | None = option(
        "Run directory or TREC run to judge; without one, a recipe ranks now.",
        completes="runs",
    ),
    recipe: RankNowOption = None,
    annotator: AnnotatorOption = None,
    kind: Kind = option("Kind of annotator.", default=Kind.person),
    blind: bool = flag("Hide ranks, scores and the grades of others, and shuffle the documents."),
    seed: int | None = option("Seed of the order with --blind; default: one per annotator.", min=0),
    assignment: Path | None = option(
        "File of `judgments assign`: show only the annotator's topics, in their order."
    ),
    topic: str | None = option("First topic to show."),
    depth: str | None = option(
        "Number of documents with a score to judge per topic; all: every document, with unscored documents "
        "last and marked.",
        metavar="N|all",
        show_default="the task's judging depth; of a pool, all",
    ),
    show_others: bool = flag("Show the grades of others before you judge a document; the log records this."),
    goal: int | None = option(
        "Number of documents to judge in this session; the first line shows the progress.",
        min=1,
        show_default="the setting judge.goal",
    ),
    data: Path | None = option(
        "Folder with the topics; default: the folder that the run records, or the folder of `data get`."
    ),
    split: str | None = option(
        "Split of a TREC run's topics, default: any; without a run, the split to rank.",
        show_default="without a run dev, or the first available split",
        completes="splits",
    ),
    log_file: LogOption = None,
    plain: bool = flag("Use prompts instead of a screen, for screen readers and simple terminals."),
    shared: bool | None = option(
        "Exchange judgments with all users of the same Elasticsearch; default: SEARCHAPP_SHARED.",
        "--shared/--no-shared",
    ),
    *,
    by_model: ModelOptions,
) -> None:
    """Judge the documents of a run topic by topic; every key press is saved immediately.

    Without --run, a recipe ranks the topics of a split now, each when you open it.

    With --command or --model-url, a model judges instead of you. Its judgments are of the kind `model`, and do not
    count as gold unless you name it. Each answer is stored in the home directory, so a stopped command resumes, and no
    question is asked twice.
    """
    if seed is not None and not blind:
        raise UsageError("--seed requires --blind: add --blind, or leave out --seed")
    if show_others and blind:
        raise UsageError("--show-others and --blind exclude each other: give one of them")
    if recipe is not None and run is not None:
        raise UsageError("--recipe and --run exclude each other: give one of them")
    if depth not in (None, "all") and (not depth.isdecimal() or int(depth) < 1):
        raise UsageError(f"--depth {depth}: give a number from 1, or all")
    limit = int(depth) if depth not in (None, "all") else None
    source = by_model.source() if by_model.is_given else None
    if source is None:
        by_model.require_none()
    else:
        people_only = {
            "--blind": blind,
            "--plain": plain,
            "--show-others": show_others,
            "--topic": topic is not None,
            "--goal": goal is not None,
        }
        if given := [flag for flag, is_given in people_only.items() if is_given]:
            raise UsageError(
                f"{given[0]} is for people who judge: leave it out with --command or --model-url"
            )
    simple = source is not None or plain or not can_move_cursor()
    if not simple:
        require_screen("judging", "use --plain for prompts")
    # The name of the account or of a person in the settings must not become that of a model.
    name = annotator_name(annotator or (settings.annotator if source is None else source.model))

    def request() -> JudgingRequest:
        from searchapp.app.sessions import JudgingRequest
        from searchapp.judging import assignment as assignments
        from searchapp.judging.session import own_seed

        return JudgingRequest(
            load(task),
            Author(
                name,
                kind if source is None else Kind.model,
                Channel.plain if simple else Channel.interface,
            ),
            run,
            recipe,
            split,
            data,
            None if assignment is None else assignments.read(assignment),
            topic,
            limit,
            every_document=depth == "all",
            seed=(own_seed(name) if seed is None else seed) if blind else None,
            show_others=show_others,
            log=log_file,
            shared=settings.shared if shared is None else shared,
        )

    @contextmanager
    def opening(progress: Progress) -> Iterator[JudgeScreen]:
        from searchapp.tui.judge.screen import open_judge_screen

        requested = request()
        tell = partial(say, settings)
        with open_judge_screen(requested, settings, progress, warn, tell, goal) as screen:
            yield screen
            _report_work(settings, requested, screen.judging)

    if source is not None:
        judge_and_report(request(), source, by_model, settings)
    elif simple:
        _judge_in_prompts(request(), settings, goal)
    else:
        run_screen(settings, "judge", f"{Path(task).stem} · {name}", opening)


def _judge_in_prompts(request: JudgingRequest, settings: Settings, goal: int | None) -> None:
    from searchapp.app.sessions import open_judging
    from searchapp.tui.judge.prompts import JudgePrompts
    from searchapp.tui.kit import keys

    task, name = request.task, request.author.annotator
    own = keys.load(settings.of_user, task.info.grades)
    opened = open_judging(request, settings, for_person(settings), warn, partial(say, settings))
    with opened as (judging, pages, title, presence):
        warn_all(
            f"{name} is already judging {task.name} in another window ({other}): the latest judgment counts"
            for other in presence.others
        )
        JudgePrompts(
            *(judging, pages, title, request.topic), goal=goal or own.goal, next_topic=own.next_topic
        ).converse()
        _report_work(settings, request, judging)


def _report_work(settings: Settings, request: JudgingRequest, judging: JudgingSession) -> None:
    from searchapp.judging.session import summary
    from searchapp.tui.kit.descriptions import session_summary

    for line in session_summary(summary(judging), request.task.info.grades):
        say(settings, line)
    path = request.log or settings.judgments
    if left := judging.session.waiting:
        say(settings, f"{counted(left, 'judgment')} not saved in {path}")
    else:
        say(settings, f"all judgments are saved in {path}")


# Maximum number of printed documents of a topic that are not relevant.
NOT_RELEVANT = 10

# Length of a topic or document on a line.
TEXT_CHARACTERS = 80


@command(app)
def topics(
    settings: Settings,
    task: TaskArgument,
    run: Path | None = option(
        "Run directory or TREC run; without one, a recipe ranks now.", completes="runs"
    ),
    recipe: RankNowOption = None,
    split: str | None = option(
        "Split to rank, or split of a TREC run's topics.",
        show_default="dev, or the first available split",
        completes="splits",
    ),
    depth: int | None = option(
        "Depth of the rankings: relevant documents below it count as missed.", min=1, show_default="all"
    ),
    topic: str | None = option("First topic to show; without a screen, the only one."),
    order: Order = option(
        "Order of the topics: as in the file, worst first, or most missed first.", default=Order.file
    ),
    failures: bool = flag(
        "Show only topics with missed relevant documents or with others ranked before them, worst first; "
        "with --topic, also print its first non-relevant documents."
    ),
    data: Path | None = option(
        "Folder with the topics and their gold; default: the folder that the run records."
    ),
    judgments: bool = flag("Use the annotator's own grades instead of the gold."),
    annotator: str | None = option(
        "Name of the annotator, for judging on the screen and for --judgments; default: SEARCHAPP_ANNOTATOR, "
        "or the name of the account.",
        completes="annotators",
    ),
    log_file: LogOption = None,
    plain: bool = flag("Print the topics, or one topic, instead of opening a screen."),
    as_json: JsonOption = False,
) -> None:
    """Show the topics of a run: figures, rankings with relevant documents marked, and missed relevant documents.

    On a terminal, a screen opens. Otherwise, or with --plain or --json, print the topics with their figures, or with
    --topic one topic with its relevant documents: the rank of each, or why it has none. Without gold, the topics have
    no figures.
    """
    name = annotator_name(annotator or settings.annotator) if judgments else None

    def request() -> tuple[Task, TopicsRequest, AnnotatorGold | None]:
        from searchapp.app.inspection.topics import AnnotatorGold, TopicsRequest
        from searchapp.app.sessions import judged_by_now
        from searchapp.judging.judgments import Aggregation

        loaded = load(task)
        gold = None
        if name is not None:
            by = Aggregation(annotators=(name,))
            gold = AnnotatorGold(lambda: judged_by_now(log_file or settings.judgments, loaded.name, by))
        return loaded, TopicsRequest(run, recipe, split, data, depth, name, log_file), gold

    def opening(progress: Progress) -> AbstractContextManager[TopicsScreen]:
        from searchapp.tui.topics.screen import open_topics_screen

        return open_topics_screen(
            *(*request(), settings, progress, warn),
            annotator=annotator,
            start=topic,
            order=order,
            failing=failures,
        )

    if not plain and not as_json and has_screen():
        require_screen("topics", "use --plain to print the topics")
        title = " · ".join([Path(task).stem, *([run.name] if run else [])])
        run_screen(settings, "topics", title, opening)
        return

    from searchapp.app.inspection.topics import open_topics

    loaded, requested, gold = request()
    if name is not None:
        with open_judgments(settings, log_file, loaded.name, [name]):
            pass  # the annotator has judged the task
    with ExitStack() as stack:
        opened = open_topics(stack, loaded, requested, settings, for_person(settings), warn, gold)
        if topic is not None:
            opened.require(topic)
            _print_topic(opened, topic, failures=failures, as_json=as_json)
        else:
            _print_topics(opened, order, settings, failures=failures, as_json=as_json)
        warn_all(opened.pages.notes)


def _print_topics(
    opened: RunTopics, order: Order, settings: Settings, *, failures: bool, as_json: bool
) -> None:
    from searchapp.app.topic_figures import FiguresByTopic, TopicFigures

    no_gold = opened.why_no_gold()
    if no_gold is None:
        figures = opened.all_figures(for_person(settings))
    elif failures or order is not Order.file:
        raise UsageError(f"--failures and --order need gold, or your grades with --judgments: {no_gold}")
    else:
        figures = FiguresByTopic("", {})
    topics = opened.in_order(Order.worst if failures and order is Order.file else order, figures)
    if failures:
        topics = [topic for topic in topics if topic in figures.topics and figures.topics[topic].fails]
    of_topics = {topic: figures.topics.get(topic, TopicFigures(None, 0, 0)) for topic in topics}
    if as_json:
        print_json(
            {
                "task": opened.task.name,
                "split": opened.part.name,
                "run": opened.pages.name,
                "measure": figures.name or None,
                "fallback_reason": figures.instead_of,
                "no_gold": no_gold,
                "topics": [{"id": topic, **asdict(figures)} for topic, figures in of_topics.items()],
            }
        )
    else:
        console = stdout_console()
        width = max(map(len, (*map(visible_line, topics), "topic")))
        heading = "" if no_gold else f"{figures.name:>8}  {'missed':>9}  "
        console.print(f"{'topic':<{width}}  {heading}".rstrip(), soft_wrap=True)
        for topic, own in of_topics.items():
            value = "" if own.value is None else f"{own.value:.4f}"
            missed = f"{own.missed}/{own.relevant}" if topic in figures.topics else ""
            scored = "" if no_gold else f"{value:>8}  {missed:>9}  "
            text = _shortened(opened.pages.topic(topic).text)
            console.print(f"{visible_line(topic):<{width}}  {scored}{text}", soft_wrap=True)
    if no_gold is not None:
        warn(no_gold)
    if figures.instead_of is not None:
        warn(f"{figures.name} instead of {opened.task.info.official_measure}: {figures.instead_of}")


def _print_topic(opened: RunTopics, topic: str, *, failures: bool, as_json: bool) -> None:
    """Print the rank of each relevant document, or the reason without one; with `failures` also the first others.

    Without gold, print the first documents.
    """
    from searchapp.app.inspection.topics import MissedGold, short_status

    ranked, no_gold = opened.ranking(topic), opened.why_no_gold()
    if no_gold is None and ranked.no_gold is not None:
        raise DataError(ranked.no_gold)
    if no_gold is not None and failures:
        raise UsageError(f"--failures needs gold, or your grades with --judgments: {no_gold}")
    missed = MissedGold(()) if no_gold else opened.look_for_missed(topic)
    warnings = [no_gold] if no_gold else []
    if missed.differs:
        warnings.append(
            "the recipe now ranks differently than in the run: the "
            "ranks of missed documents are those of the present ranking"
        )
    ranks = {document: rank for rank, document in enumerate(ranked.documents[: opened.depth], start=1)}
    result = sorted((ranks[document], document) for document in ranked.relevant if document in ranks)
    others = [(rank, ranked.documents[rank - 1]) for rank in ranked.not_relevant[:NOT_RELEVANT]]
    if as_json:
        described = {
            "task": opened.task.name,
            "run": opened.pages.name,
            "topic": topic,
            "no_gold": no_gold,
            "documents": len(ranked.documents),
            "gold": [{"id": entry, "grade": ranked.relevant[entry], "rank": rank} for rank, entry in result],
            "missed": [
                {
                    "id": entry.document_id,
                    "grade": entry.grade,
                    "status": None if entry.reason is None else entry.reason.status.value,
                    "rank": None if entry.reason is None else entry.reason.rank,
                }
                for entry in missed.documents
            ],
        }
        if failures:
            described["not_relevant"] = [{"id": entry, "rank": rank} for rank, entry in others]
        if no_gold:
            described["ranking"] = [{"id": entry, "rank": rank} for rank, entry in others]
        print_json(described)
        warn_all(warnings)
        return
    lines = [(f"rank {rank:,}", document) for rank, document in result]
    lines += [(f"missed: {short_status(entry.reason)}", entry.document_id) for entry in missed.documents]
    if failures or no_gold:
        words = "" if no_gold else "not relevant: "
        lines += [(f"{words}rank {rank:,}", document) for rank, document in others]
    texts = opened.pages.texts([document for _, document in lines])
    console = stdout_console()
    console.print(_shortened(opened.pages.topic(topic).text), soft_wrap=True)
    width = max((len(state) for state, _ in lines), default=0)
    id_width = max((len(visible_line(document)) for _, document in lines), default=0)
    for (state, document), text in zip(lines, texts, strict=True):
        line = f"  {state:<{width}}  {visible_line(document):<{id_width}}  {_shortened(text)}"
        console.print(line, soft_wrap=True)
    warn_all(warnings)


def _shortened(text: str) -> str:
    line = visible_line(" ".join(text[: 10 * TEXT_CHARACTERS].split()))
    return line if len(line) <= TEXT_CHARACTERS else f"{line[: TEXT_CHARACTERS - 1]}…"


@command(judgments_app)
def adjudicate(
    settings: Settings,
    task: TaskArgument,
    annotator: str = option("Name of the annotator who decides.", default=REQUIRED, completes="annotators"),
    between: list[str] | None = option(
        "Only disagreements among these annotators, people or models; repeatable. Default: all people.",
        completes="annotators",
    ),
    run: Path | None = option(
        "Run directory or TREC run whose topics and matches are shown; a document that has changed since it "
        "was ranked can't be graded.",
        completes="runs",
    ),
    data: DataOption = None,
    topic: str | None = option("Only this topic."),
    document: str | None = option("Only this document."),
    grade: int | None = option("Decide with this grade, without a prompt.", min=0),
    reason: str = option("With --grade: the reason to record.", default=""),
    log: LogOption = None,
    plain: bool = flag("Use prompts instead of a screen, for screen readers and simple terminals."),
) -> None:
    """Decide on the documents whose grades disagree, and record the decisions.

    One key decides, saves and goes to the next document. With --topic, --document and --grade, one decision is recorded
    without a prompt. Without a terminal there are prompts instead of a screen.
    """
    loaded = load(task)
    if not annotator.strip():
        raise UsageError("no annotator: give your name with --annotator NAME")
    if reason and grade is None:
        raise UsageError("--reason requires --grade: on the screen and in prompts, type the reason there")
    simple = plain or not can_move_cursor() or grade is not None or not has_screen()
    author = Author(annotator.strip(), channel=Channel.plain if simple else Channel.interface)

    @contextmanager
    def session() -> Iterator[tuple[JudgmentLog, Session]]:
        from searchapp.app.sessions import PATIENCE_SECONDS
        from searchapp.judging.guidelines import read_guidelines
        from searchapp.judging.session import Session

        patience = PATIENCE_SECONDS if grade is None else None
        with open_judgments(settings, log, loaded.name, between, patience=patience) as (opened_log, _):
            guidelines = read_guidelines(loaded.info.guidelines)
            yield opened_log, Session(opened_log, loaded.name, author, (Action.adjudicate,), guidelines)

    @contextmanager
    def disputes(progress: Progress) -> Iterator[tuple[Adjudication, Pages, Presence] | None]:
        from searchapp.judging.log import Presence
        from searchapp.judging.session import Adjudication

        with session() as (opened_log, opened):
            adjudication = Adjudication(opened, between, topic, document)
            total = len(adjudication.disputes)
            if adjudication.next_open() is None and (simple or not total):
                yield None
                state = f"all {total:,} disputed documents are decided" if total else "no grades disagree"
                if total == 1:
                    state = "the only disputed document is decided"
                say(settings, f"{loaded.name}: {state}")
                return
            topics_in_dispute = {dispute.topic_id for dispute in adjudication.disputes}
            with (
                _pages(settings, progress, loaded, run, data, topics_in_dispute) as pages,
                Presence(opened_log.path, loaded.name, author.annotator) as presence,
            ):
                opened_log.damage.report = opened.news.append
                yield adjudication, pages, presence
            opened_log.damage.report = warn
            warn_all(opened.news)
            decided = adjudication.decided
            say(settings, f"{decided:,} of {counted(total, 'disputed document')} {be(decided)} decided")

    @contextmanager
    def opening(progress: Progress) -> Iterator[AdjudicateScreen | None]:
        from searchapp.tui.adjudicate.screen import AdjudicateScreen
        from searchapp.tui.kit import keys

        own = keys.load(settings.of_user, loaded.info.grades)
        with disputes(progress) as opened:
            if opened is None:
                yield None
            else:
                adjudication, pages, presence = opened
                yield AdjudicateScreen(adjudication, pages, own.keys, title, presence)

    title = f"{loaded.name} · {author.annotator} decides"
    if grade is not None:
        with session() as (_, opened):
            seen = _document_to_grade(opened, loaded, topic, document, grade)
            if run is not None:
                with _pages(settings, for_person(settings), loaded, run, data, [seen.topic_id]) as pages:
                    pages.require_as_ranked(seen.document_id)
            outcome = opened.adjudicate(seen, grade, reason)
        if outcome.not_saved:
            raise outcome.not_saved
        say(settings, f"topic {seen.topic_id}, document {seen.document_id}: decided, grade {grade}")
    elif simple:
        with disputes(for_person(settings)) as open_disputes:
            if open_disputes is not None:
                _decide_in_prompts(loaded, title, *open_disputes)
    else:
        run_screen(settings, "judge", title, opening)


def _decide_in_prompts(
    task: Task, title: str, adjudication: Adjudication, pages: Pages, presence: Presence
) -> None:
    from searchapp.tui.adjudicate.prompts import AdjudicatePrompts

    name = adjudication.session.author.annotator
    warn_all(
        f"{name} is already deciding on {task.name} in another window ({other}): the latest decision counts"
        for other in presence.others
    )
    warn_at_once()
    AdjudicatePrompts(adjudication, pages, title).converse()


@command(judgments_app)
def pool(
    settings: Settings,
    runs: list[Path] = argument("Run directories or TREC runs.", completes="runs"),
    out: Path = option("Run directory to write.", default=REQUIRED),
    by: PoolOrder = option(
        "depth: best rank in any run; rrf: reciprocal rank fusion; mtf: move-to-front by the judgments so far; "
        "disagreement: where the runs differ most; sample: a stratified random sample, for `evaluate --sample`.",
        default=PoolOrder.depth,
    ),
    depth: int | None = option("Documents per topic from each run.", min=1, show_default=str(DEPTH)),
    size: int | None = option("Documents per topic of the pool.", min=1, show_default="all"),
    strata: str | None = option(
        "--by sample: strata by best rank, and the share of each that is drawn: 10=1,100=0.2 draws all documents "
        "to rank 10 and a fifth of those to rank 100.",
        metavar="RANK=SHARE,...",
        show_default="10=1,100=0.2",
    ),
    seed: SeedOption = None,
    unjudged: bool = flag("Leave out documents that have a grade, as --by mtf always does."),
    log: LogOption = None,
    task: str | None = option("Task of TREC runs, if no run directory records it."),
    split: str | None = option("With --task: split of the topics."),
    data: Path | None = option("With --task: folder with the task's official files."),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pool the first documents of several runs: a run directory that can be judged like any other.

    --by chooses the order of the documents, and --size how many of them to judge. TREC runs are ordered by score, as
    trec_eval does. While you judge a pool, ranks, scores and measures are hidden.
    """
    from searchapp.app.pool import scope_of, write_pool
    from searchapp.app.sessions import judged_by_now

    design = _pool_design(settings, by, depth, size, strata, seed, unjudged=unjudged)
    path = log or settings.judgments
    if (task is None) != (split is None):
        raise UsageError("TREC runs need both --task and --split")
    with ExitStack() as stack:
        scope = None
        if task is not None and split is not None:
            loaded = load(task)
            engine = stack.enter_context(closing(open_engine(settings)))
            scope = scope_of(loaded, engine, data_of(settings, loaded, data), split)
        written = write_pool(
            runs, design, out, scope, lambda task: judged_by_now(path, task), overwrite=overwrite
        )
    manifest = written.manifest
    warn_all(written.notes)
    if as_json:
        print_json({"run": str(out), "topics": manifest.topics, "documents": manifest.hits})
    say(
        settings,
        f"wrote {counted(manifest.hits, 'document')} for {counted(manifest.topics, 'topic')} to {out}, "
        f"{'sampled from' if by is PoolOrder.sample else 'of'} the first {manifest.recipe['depth']} of "
        f"{counted(len(runs), 'run')}",
    )


def _pool_design(
    settings: Settings,
    by: PoolOrder,
    depth: int | None,
    size: int | None,
    strata: str | None,
    seed: int | None,
    *,
    unjudged: bool,
) -> PoolDesign:
    """Return the design of a pool.

    Raises:
        UsageError: options exclude each other, or the strata are invalid.
    """
    if by is PoolOrder.sample:
        for name, is_given in (("--depth", depth), ("--size", size), ("--unjudged", unjudged)):
            if is_given:
                raise UsageError(f"--by sample excludes {name}: --strata give the ranks and shares")
        drawn = STRATA if strata is None else parse_strata(strata)
        return PoolDesign(by, strata=drawn, seed=settings.seed_of(seed, 0))
    for option_name, value in (("--strata", strata), ("--seed", seed)):
        if value is not None:
            raise UsageError(f"{option_name} requires --by sample: add it, or leave out {option_name}")
    return PoolDesign(by, DEPTH if depth is None else depth, size, unjudged=unjudged)


@command(judgments_app)
def assign(
    settings: Settings,
    task: TaskArgument,
    split: str = option("Split whose topics are assigned.", default=REQUIRED, completes="splits"),
    out: Path = option("File to write, for `judge --assignment`; - is stdout.", default=REQUIRED),
    quota: list[str] = option(
        "An annotator and the number of topics to judge; repeat it for each annotator.",
        default=REQUIRED,
        metavar="NAME=TOPICS",
    ),
    data: DataOption = None,
    overlap: float = option(
        "Fraction of each quota that several annotators judge.", default=0.2, min=0, max=1
    ),
    annotators_per_topic: int = option("Number of annotators of each shared topic.", default=2, min=2),
    seed: SeedOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Assign topics to annotators, some topics to several annotators, to measure agreement."""
    from searchapp.judging.assignment import Assigned, write
    from searchapp.judging.assignment import assign as shared_out
    from searchapp.tasks.folders import data_folder

    quotas = _quotas(quota)
    problems = Problems()
    loaded = load(task)
    topics = loaded.collection(data_folder(loaded, settings.home, data)).topics(split, problems)
    problems.raise_if_any()
    result = shared_out(
        [topic.id for topic in topics],
        quotas,
        overlap if len(quotas) > 1 else 0,
        annotators_per_topic,
        settings.seed_of(seed, 0),
    )
    assigned = Assigned(loaded.name, split, result)
    with atomic_file(out, replace=overwrite) as file:
        write(file, assigned)
    if as_json:
        print_json(assigned.to_json())
    say(settings, f"wrote {out}; to judge a run DIR of {split}, each annotator types:")
    for name, own in result.topics.items():
        judge = shlex.join(["judge", task, "--assignment", str(out), "--annotator", name])
        shared = len(set(own) & set(result.shared))
        say(
            settings,
            f"  searchapp {judge} --run DIR   ({counted(len(own), 'topic')}, {shared:,} of them shared)",
        )


def _quotas(given: list[str]) -> dict[str, int]:
    quotas: dict[str, int] = {}
    for quota in given:
        name, equals, number = quota.rpartition("=")
        name = name.strip()
        if not equals or not name or not number.isdecimal():
            raise UsageError(f"--quota {quota}: use the form NAME=TOPICS, such as ann=20")
        if name in quotas:
            raise UsageError(f"--quota {quota}: {name} has a quota already")
        quotas[name] = int(number)
    return quotas


def _document_to_grade(
    session: Session, task: Task, topic: str | None, document: str | None, grade: int
) -> SeenDocument:
    """Return the document of `--grade`.

    Raises:
        UsageError: it is not judged, or the task lacks the grade.
    """
    from searchapp.judging.session import SeenDocument

    if topic is None or document is None:
        raise UsageError("--grade decides on one document: give --topic and --document")
    if grade >= len(task.info.grades):
        raise UsageError(f"{task.name} has the grades 0 to {len(task.info.grades) - 1}, not {grade}")
    if not session.view.opinions(topic, document):
        raise UsageError(f"document {document} of topic {topic} has no judgment: check both ids")
    return SeenDocument(topic, document)


@contextmanager
def _pages(
    settings: Settings,
    progress: Progress,
    task: Task,
    run: Path | None,
    data: Path | None,
    topic_ids: Collection[str],
) -> Iterator[Pages]:
    """Open the topics and documents of a run, or of the task's files and index; ids alone where these are missing."""
    from searchapp.app.inspection.pages import LocalFirst, Pages, RunPages, topics_of
    from searchapp.tasks.folders import data_folder

    with closing(LocalFirst(settings, progress, warn, copy=settings.shared)) as documents:
        if run is not None:
            yield RunPages.open(task, documents, run, data, home=settings.home)
            return
        folder: Path | None = None
        topics: dict[str, Topic] = {}
        try:
            folder = data_folder(task, settings.home, data)
            topics = topics_of(task, task.collection(folder), topic_ids)
        except DataError as error:
            warn(str(error))
        if not topics:
            warn("no texts of the topics: give a run with --run, or the folder of the topics with --data")
        try:
            index = documents.index(task, folder)
        except EngineError as error:
            warn(f"no texts of the documents: {error}")
            index = None
        yield Pages(
            task,
            index,
            topics,
            spare=lambda: documents.spare(task, folder),
            newer=lambda: documents.index(task, folder),
        )
