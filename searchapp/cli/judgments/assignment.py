"""`searchapp judgments pool`, `assign` and `adjudicate`: what is judged, by whom, and who decides disagreements."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import DataOption, JsonOption, OverwriteOption, TaskArgument, command, data_of
from searchapp.cli.judgment_options import LogOption, of_task, open_log, require_known
from searchapp.cli.output import for_person, has_screen, print_json, say, warn
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError, EngineError, UsageError
from searchapp.files import whole_file
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.app.inspection.pages import Pages
    from searchapp.judging.session import SeenDocument, Session
    from searchapp.model import Topic
    from searchapp.tasks.base import Task


app = typer.Typer()


@command(app)
def adjudicate(
    settings: Settings,
    task: TaskArgument,
    annotator: str = option("Name of the annotator who decides.", default=REQUIRED, completes="annotators"),
    between: list[str] | None = option(
        "Only between this annotator and others named, a model too; can be given several times. "
        "All people by default.",
        completes="annotators",
    ),
    run: Path | None = option(
        "Run directory, or TREC run: its topics, and what its recipe matches. A document whose text "
        "has changed since it was ranked is not graded.",
        completes="runs",
    ),
    data: DataOption = None,
    topic: str | None = option("Decide on this topic only."),
    document: str | None = option("Decide on this document only."),
    grade: int | None = option("The deciding grade, without being asked.", min=0),
    reason: str = option("With --grade: why, for the record.", default=""),
    log: LogOption = None,
    plain: bool = flag("Ordinary prompts, for screen readers and simple terminals."),
) -> None:
    """Go through the documents that annotators disagree on, and write deciding events.

    One key decides, saves and moves on. With --topic, --document and --grade one decision is written without a
    question. Without a terminal there are prompts.
    """
    from searchapp.app.sessions import PATIENCE_SECONDS
    from searchapp.judging.events import Action, Author, Channel
    from searchapp.judging.log import Presence
    from searchapp.judging.session import Adjudication, Session

    loaded = load(task)
    if not annotator.strip():
        raise UsageError("who decides? Name the annotator with --annotator NAME")
    if reason and grade is None:
        raise UsageError("--reason is that of --grade: on the screen and in prompts write it there")
    simple = plain or os.environ.get("TERM") == "dumb"
    simple = simple or grade is not None or not has_screen()
    with open_log(settings, log, loaded.name, patience=PATIENCE_SECONDS if grade is None else None) as opened:
        _, view = of_task(opened, loaded.name)
        require_known(between, view, loaded.name)
        author = Author(annotator.strip(), channel=Channel.plain if simple else Channel.interface)
        session = Session(opened, loaded.name, author, (Action.adjudicate,))
        if grade is not None:
            seen = _place(session, loaded, topic, document, grade)
            if run is not None:
                with _pages(settings, loaded, run, data, [seen.topic_id]) as pages:
                    pages.require_as_ranked(seen.document_id)
            _decide(settings, session, seen, grade, reason)
            return
        adjudication = Adjudication(session, between, topic, document)
        total = len(adjudication.disputes)
        if adjudication.next_open() is None and (simple or not total):
            told = f"all {total:,} disputed documents are decided" if total else "nobody disagrees"
            if total == 1:
                told = "the only disputed document is decided"
            say(settings, f"there is nothing to decide: {told} on {loaded.name}")
            return
        title = f"{loaded.name} · {author.annotator} decides"
        wanted = {dispute.topic_id for dispute in adjudication.disputes}
        with (
            _pages(settings, loaded, run, data, wanted) as pages,
            Presence(opened.path, loaded.name, author.annotator) as presence,
        ):
            opened.damage.report = session.news.append
            if simple:
                from searchapp.tui.adjudicate.prompts import AdjudicatePrompts

                for other in presence.others:
                    warn(
                        f"{author.annotator} is at {loaded.name} in another window already ({other}): what is "
                        "said last holds"
                    )
                AdjudicatePrompts(adjudication, pages, title).converse()
            else:
                from searchapp.tui.adjudicate.screen import AdjudicateApp
                from searchapp.tui.kit import keys

                own = keys.load(settings.of_user, loaded.info.grades)
                screen = AdjudicateApp(adjudication, pages, own, title, presence)
                screen.run()
                if screen.return_code:
                    raise typer.Exit(screen.return_code)
        opened.damage.report = warn
        for words in session.news:
            warn(words)
        decided = adjudication.decided
        are = "is" if decided == 1 else "are"
        say(settings, f"{decided:,} of {counted(total, 'disputed document')} {are} decided")


@command(app)
def pool(
    settings: Settings,
    runs: list[Path] = argument("Run directories, or TREC runs.", completes="runs"),
    out: Path = option("Run directory to write.", default=REQUIRED),
    depth: int = option("Documents that each run gives a topic.", default=10, min=1),
    task: str | None = option("Task of TREC runs, where no run directory says it."),
    split: str | None = option("--task: the split of the topics."),
    data: Path | None = option("--task: folder with the task's official files."),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a pool of the top of several runs: a run directory that can be judged like any other.

    Documents come in the order of the best rank that a run gives them. TREC runs are ordered by score, as trec_eval
    does.
    """
    from searchapp.app.pool import scope_of, write_pool

    if (task is None) != (split is None):
        raise UsageError("name both the task and the split of TREC runs: --task and --split")
    with ExitStack() as stack:
        scope = None
        if task is not None and split is not None:
            loaded = load(task)
            engine = stack.enter_context(closing(open_engine(settings)))
            scope = scope_of(loaded, engine, data_of(settings, loaded, data), split)
        written = write_pool(runs, depth, out, scope, overwrite=overwrite)
    manifest = written.manifest
    for note in written.notes:
        warn(note)
    if as_json:
        print_json({"run": str(out), "topics": manifest.topics, "documents": manifest.hits})
    say(
        settings,
        f"{counted(manifest.hits, 'document')} of {counted(manifest.topics, 'topic')}, the first {depth} of "
        f"{counted(len(runs), 'run')}, written to {out}",
    )


@command(app)
def assign(
    settings: Settings,
    task: TaskArgument,
    split: str = option("Split whose topics are shared out.", default=REQUIRED, completes="splits"),
    out: Path = option("File to write, for `judge --assignment`; - is stdout.", default=REQUIRED),
    quota: list[str] = option(
        "An annotator and how many topics; can be given several times.",
        "--to",
        default=REQUIRED,
        metavar="NAME=TOPICS",
    ),
    data: DataOption = None,
    overlap: float = option("Share of each quota that several people judge.", default=0.2, min=0, max=1),
    per_topic: int = option("How many people judge such a topic.", default=2, min=2),
    seed: int = option("Seed that decides which topics are drawn, and their order.", default=0),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Share topics out among annotators, some of them to several, so that agreement can be measured."""
    from searchapp.formats.problems import Problems
    from searchapp.judging.assignment import Assigned, write
    from searchapp.judging.assignment import assign as shared_out
    from searchapp.tasks.folders import data_folder

    quotas = _quotas(quota)
    problems = Problems()
    loaded = load(task)
    topics = loaded.collection(data_folder(loaded, settings.home, data)).topics(split, problems)
    problems.raise_if_any()
    found = shared_out(
        [topic.id for topic in topics], quotas, overlap if len(quotas) > 1 else 0, per_topic, seed
    )
    assigned = Assigned(loaded.name, split, found)
    with whole_file(out, replace=overwrite) as file:
        write(file, assigned)
    if as_json:
        print_json(assigned.to_json())
    say(settings, f"written to {out}; with DIR a run of {split}, each judges with:")
    for name, own in found.topics.items():
        judge = shlex.join(["judge", task, "--assignment", str(out), "--annotator", name])
        shared = len(set(own) & set(found.shared))
        say(
            settings,
            f"  searchapp {judge} --run DIR   ({counted(len(own), 'topic')}, {shared:,} of them shared)",
        )


def _quotas(given: list[str]) -> dict[str, int]:
    """How many topics each takes, by the name that `judge --annotator` makes of theirs: without blanks around it."""
    quotas: dict[str, int] = {}
    for one in given:
        name, equals, number = one.rpartition("=")
        name = name.strip()
        if not equals or not name or not number.isdecimal():
            raise UsageError(f"--to {one}: use the form NAME=TOPICS, for instance ann=20")
        if name in quotas:
            raise UsageError(f"--to {one}: {name} has a quota already")
        quotas[name] = int(number)
    return quotas


def _place(session: Session, task: Task, topic: str | None, document: str | None, grade: int) -> SeenDocument:
    """The document that --grade decides on.

    Raises:
        UsageError: nobody names it or has judged it, or the task does not have the grade.
    """
    from searchapp.judging.session import SeenDocument

    if topic is None or document is None:
        raise UsageError("--grade decides on one document: name it with --topic and --document")
    if grade >= len(task.info.grades):
        raise UsageError(f"{task.name} has the grades 0 to {len(task.info.grades) - 1}, not {grade}")
    if not session.view.opinions(topic, document):
        raise UsageError(f"nobody has judged document {document} of topic {topic}: check both ids")
    return SeenDocument(topic, document)


def _decide(settings: Settings, session: Session, seen: SeenDocument, grade: int, reason: str) -> None:
    """Write one decision."""
    outcome = session.adjudicate(seen, grade, reason)
    if outcome.not_saved:
        raise outcome.not_saved
    say(settings, f"topic {seen.topic_id}, document {seen.document_id}: decided, grade {grade}")


@contextmanager
def _pages(
    settings: Settings, task: Task, run: Path | None, data: Path | None, wanted: Collection[str]
) -> Iterator[Pages]:
    """Topics and documents: of a run, or of the task's files and index; ids alone, where there are none."""
    from searchapp.app.inspection.pages import LocalFirst, Pages, RunPages, topics_of
    from searchapp.tasks.folders import data_folder

    with closing(LocalFirst(settings, for_person(settings), warn, copy=settings.shared)) as documents:
        if run is not None:
            yield RunPages.open(task, documents, run, data, home=settings.home)
            return
        folder: Path | None = None
        topics: dict[str, Topic] = {}
        try:
            folder = data_folder(task, settings.home, data)
            topics = topics_of(task, task.collection(folder), wanted)
        except DataError as error:
            warn(str(error))
        if not topics:
            warn("the texts of the topics are missing: name a run with --run, or their folder with --data")
        try:
            index = documents.index(task, folder)
        except EngineError as error:
            warn(f"the documents are missing: {error}")
            index = None
        yield Pages(
            task,
            index,
            topics,
            spare=lambda: documents.spare(task, folder),
            newer=lambda: documents.index(task, folder),
        )
