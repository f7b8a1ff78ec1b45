from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

import pytest
from textual import events
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.geometry import Region
from textual.keys import _character_to_key
from textual.pilot import Pilot

import searchapp
from searchapp.app.inspection.pages import LocalFirst, RunPages
from searchapp.config.settings import Settings
from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action, Author, Event, Kind
from searchapp.judging.log import JudgmentLog, Presence
from searchapp.judging.session import Adjudication, JudgingSession, SeenDocument, Session
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit import screen as kit_screen
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.content import Form, Notation, Plain
from searchapp.tui.kit.descriptions import document_label
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.kit.widgets import TextLine
from tests.cli.conftest import EMBEDDED, run_command
from tests.profile import FULL

TIMEOUT_SECONDS = 60
"""How long a test waits for threads and processes."""

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "use"
SAMPLES = Path(searchapp.__file__).parent / "samples"
SPLITS = {"nlps": "dev", "explanation-2019": "dev", "explanation-2021": "dev", "checkthat": "training"}


parse_rules = Stylesheet._parse_rules
parsed_rules: dict[Any, list[RuleSet]] = {}


def parse_once(sheet: Stylesheet, *args: Any, **kwargs: Any) -> list[RuleSet]:
    """Parse a style sheet, or return its rules from a cache: all apps have the same styles."""
    key = (args, tuple(kwargs.items()), tuple(sheet._variables.items()))
    if key not in parsed_rules:
        parsed_rules[key] = parse_rules(sheet, *args, **kwargs)
    return parsed_rules[key]


render_update = Compositor.render_update


def render_without_terminal(
    compositor: Compositor, full: bool = False, screen_stack: Any = None, simplify: bool = False
) -> Any:
    """Draw every changed widget without composing the screen.

    Composing takes a seventh of a screen's test, and without a terminal Textual discards the result. `screen_text`
    composes the screens that a test reads.
    """
    if full:
        return render_update(compositor, full, screen_stack, simplify)
    visible_screen_stack.set(screen_stack or [])
    changed = compositor._dirty_regions.copy()
    compositor._dirty_regions.clear()
    if changed:
        list(compositor._get_renders(Region.from_union(changed).intersection(compositor.size.region)))
    return None


freeze_objects = kit_screen.freeze_objects

if not FULL:
    # Tests of the program in a terminal use none of these replacements.
    Compositor.render_update = render_without_terminal  # type: ignore[assignment]
    Stylesheet._parse_rules = parse_once  # type: ignore[assignment]
    # Screens exclude existing objects from garbage collection while they run. Here these are all tests and modules, and
    # including them again takes a fifth of a screen's test.
    kit_screen.freeze_objects = lambda *, after_others: None


@dataclass(frozen=True)
class SampleRuns:
    """A home directory with indexes and runs of samples, made on first use."""

    home: Path

    @cache  # noqa: B019  # one object serves all tests
    def run(self, task: str) -> Path:
        path = self.home / "runs" / task
        options = ["--data", SAMPLES / task, "--home", self.home]
        for command in (["index", task], ["rank", task, "--split", SPLITS[task], "--out", path]):
            result = run_command(*command, *options, environment=EMBEDDED)
            assert result.code == 0, result.stderr
        return path


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> SampleRuns:
    return SampleRuns(tmp_path_factory.mktemp("judging"))


def typing(lines: Iterable[str], out: TextIO) -> Callable[[str], str]:
    """Return a function that writes a prompt to `out` and reads the next of these lines, then the end of the input."""
    remaining = iter(lines)

    def ask(prompt: str) -> str:
        out.write(prompt)
        try:
            return next(remaining)
        except StopIteration:
            raise EOFError from None

    return ask


class JudgingHarness:
    """Opens the judging and adjudication screens on a sample, with a log of its own."""

    def __init__(self, samples: SampleRuns, log: Path) -> None:
        self._samples = samples
        self._opened = ExitStack()
        self.log = self._opened.enter_context(JudgmentLog(log))
        self.home = log.parent

    def session(self, name: str, task: str = "nlps") -> Session:
        return Session(self.log, task, Author(name))

    def app(
        self,
        task: str = "nlps",
        *,
        seed: int | None = None,
        depth: int | None = None,
        start: str | None = None,
        show_others: bool = False,
        hide_ranks: bool = False,
        unscored: bool = True,
        presence: Presence | None = None,
    ) -> KeyApp:
        path = self._samples.run(task)
        loaded = load(task)
        on_disk = LocalFirst(Settings(home=self._samples.home), SilentProgress(), pytest.fail, copy=False)
        run_pages = RunPages.open(loaded, self._opened.enter_context(closing(on_disk)), path)
        self.run_pages = run_pages
        session = self.session("ann", task)
        self.own_session = JudgingSession(
            session,
            run_pages.topics,
            run_pages.ranking,
            run_pages.rankings.length if unscored else run_pages.scored,
            run_pages.name,
            depth,
            seed,
            show_others=show_others,
            hide_ranks=hide_ranks,
            require=run_pages.require_as_ranked,
        )
        settings = keys.load(self.home, loaded.info.grades)
        title = f"{task} {SPLITS[task]} · ann"
        screen = JudgeScreen(
            *(self.own_session, run_pages, settings.keys, title, start, presence),
            goal=settings.goal,
            next_topic=settings.next_topic,
        )
        return KeyApp(screen, settings.theme, settings.spacing)

    def adjudicating(self, between: tuple[str, ...] | None = None) -> KeyApp:
        """Open the adjudication screen after three people and a model have judged two topics of the sample."""
        self.app()
        documents = {
            topic: self.own_session.order(topic).documents[:4] for topic in self.own_session.topics[:2]
        }
        for name, grades in {"ann": (1, 0, 1, 1), "ben": (0, 0, 1, 0)}.items():
            for grade in (0, 1):
                targets = [
                    SeenDocument(topic, document)
                    for topic, topic_documents in documents.items()
                    for document, document_grade in zip(topic_documents, grades, strict=True)
                    if document_grade == grade
                ]
                reason = "by definition" if grade and name == "ann" else ""
                self.session(name).grade(targets, grade, reason)
        bot = Session(self.log, "nlps", Author("bot", Kind.model))
        bot.grade(
            [SeenDocument(topic, topic_documents[1]) for topic, topic_documents in documents.items()],
            1,
            "cosine 0.83",
        )
        first, *_ = documents.items()
        self.session("eve").cant_tell(SeenDocument(first[0], first[1][0]), "needs the whole page")
        session = Session(self.log, "nlps", Author("kim"), (Action.adjudicate,))
        self.adjudication = Adjudication(session, between)
        settings = keys.load(self.home, load("nlps").info.grades)
        screen = AdjudicateScreen(self.adjudication, self.run_pages, settings.keys, "nlps · kim decides")
        return KeyApp(screen, settings.theme, settings.spacing)

    def label(self, document: str, form: Form = Form.rendered) -> str:
        """Return how messages name a document; prompts use the form `written`."""
        notation = Notation(self.run_pages.task.info.markup, form)
        return document_label(document, self.run_pages.texts([document])[0], notation)

    def close(self) -> None:
        self._opened.close()

    def events(self) -> list[Event]:
        return [event for _position, event in self.log.events()]


@pytest.fixture
def judging(samples: SampleRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgingHarness]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    judging = JudgingHarness(samples, tmp_path / "judgments.sqlite")
    yield judging
    judging.close()


S = TypeVar("S", bound=KeyScreen)


def drive(
    app: KeyApp,
    steps: Callable[[Pilot[None], S], Awaitable[None]],
    size: tuple[int, int] = (160, 45),
) -> None:
    """Run an app without a terminal and carry out the steps in it."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            pilot.press = partial(press, pilot)  # type: ignore[method-assign]
            await wait_until_idle(pilot)
            await steps(pilot, cast(S, app.main))

    asyncio.run(run())


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, each after the current screen is painted, and wait until their effects are drawn.

    Textual's own `press` waits twice after each key until the processor is idle, which takes most of the time of a
    test. Screens queue keys, so that it is enough that messages are handled.
    """
    for key in keys:
        await wait_until_painted(pilot)
        pilot.app.post_message(key_event(key))
        await pilot.pause(0)
    await pilot.pause()


async def wait_until_painted(pilot: Pilot[None]) -> None:
    """Wait until the current screen is painted, if it is a `KeyScreen`."""
    await wait_until(
        pilot, lambda: not isinstance(screen := pilot.app.screen, KeyScreen) or screen.is_painted
    )


def key_event(key: str) -> events.Key:
    """Return the event of a key as the terminal sends it."""
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    character = {"space": " ", "slash": "/"}.get(key, key)
    return events.Key(name, character if len(character) == 1 else None)


async def wait_until_idle(pilot: Pilot[None]) -> None:
    """Wait until all workers have finished and their results are drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def screen_text(pilot: Pilot[Any]) -> str:
    """Return the text of the current screen."""
    lines = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)


async def wait_until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, screen_text(pilot)
        await asyncio.sleep(0.01)
        await pilot.pause(0)


def question(pilot: Pilot[Any]) -> str:
    """Return the open question, or an empty text."""
    labels = pilot.app.screen.query(".question > Plain, Plain.question")
    return str(labels.first(Plain).render()) if labels else ""


def fail_to_save(*_: object) -> int:
    """Replace `JudgmentLog.append` by a failure."""
    raise NotSaved("the disk is full")


def require_complete(screen: KeyScreen) -> None:
    """Require that each pane and each input line is described, and that each action exists and is implemented."""
    hint = f"the table beside {type(screen).__module__}: "
    panes = {widget.id for widget in screen.query("*") if widget.can_focus}
    assert panes == screen.ABOUT.keys(), f"{hint}describe each pane that can have the focus, and no other"
    names = {action.name for action in screen.keys.actions}
    for pane in screen.ABOUT.values():
        assert set(pane.actions) <= names, f"{hint}{pane.title} names an action that no key has"
    lines = {line.id for line in screen.query(TextLine)}
    assert {name for name, pane in screen.ABOUT.items() if pane.line} == lines, (
        f"{hint}input lines have line=True"
    )
    implemented = {*screen._common(), *screen.actions()}
    missing = {name for name in names - implemented if not name.startswith("grade_")}
    assert not missing, "actions() in the screen's module lacks these"
