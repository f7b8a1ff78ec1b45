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
from searchapp.judging.events import Action, Author, Event, Kind
from searchapp.judging.log import JudgmentLog, Presence
from searchapp.judging.session import Adjudication, JudgingSession, SeenDocument, Session
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit import screen as kit_screen
from searchapp.tui.kit.content import Form, Notation, Plain
from searchapp.tui.kit.descriptions import document_label
from searchapp.tui.kit.judging import WorkApp
from searchapp.tui.kit.screen import KeyApp, KeyScreen
from searchapp.tui.kit.widgets import TextLine
from tests.cli.conftest import EMBEDDED, run_command
from tests.profile import FULL

PATIENCE_SECONDS = 60
"""How long a test waits for what comes from elsewhere."""

SAMPLES = Path(searchapp.__file__).parent / "samples"
SPLITS = {"nlps": "dev", "explanation-2019": "dev", "explanation-2021": "dev", "checkthat": "training"}


parse_rules = Stylesheet._parse_rules
parsed: dict[Any, list[RuleSet]] = {}


def parse_once(sheet: Stylesheet, *asked: Any, **more: Any) -> list[RuleSet]:
    """The rules of a text of looks, which are read and left as they are; every app has the same ones."""
    key = (asked, tuple(more.items()), tuple(sheet._variables.items()))
    if key not in parsed:
        parsed[key] = parse_rules(sheet, *asked, **more)
    return parsed[key]


render_update = Compositor.render_update


def render_unseen(
    compositor: Compositor, full: bool = False, screen_stack: Any = None, simplify: bool = False
) -> Any:
    """Draw every widget that has changed, for a terminal that is not there.

    They are not put together: where each is cut by others takes a seventh of a screen's test, and Textual throws the
    result away. What a test looks at, it has put together itself.
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
    Compositor.render_update = render_unseen  # type: ignore[assignment]
    Stylesheet._parse_rules = parse_once  # type: ignore[assignment]
    # Screens exclude the present objects from garbage collection while they run. Here these are all tests and modules:
    # including them again afterwards takes a fifth of the time of a screen's test.
    kit_screen.freeze_objects = lambda *, after_others: None


@dataclass(frozen=True)
class Prepared:
    """A home folder with the indexes of some samples, and a run of each."""

    home: Path

    @cache  # noqa: B019  # there is one for all tests
    def run(self, task: str) -> Path:
        path = self.home / "runs" / task
        options = ["--data", SAMPLES / task, "--home", self.home]
        for command in (["index", task], ["rank", task, "--split", SPLITS[task], "--out", path]):
            result = run_command(*command, *options, environment=EMBEDDED)
            assert result.code == 0, result.stderr
        return path


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("judging"))


def typing(lines: Iterable[str], out: TextIO) -> Callable[[str], str]:
    """Answers prompts, which are written to `out`, with these lines; the end of the input follows them."""
    typed = iter(lines)

    def ask(prompt: str) -> str:
        out.write(prompt)
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    return ask


class Judging:
    """The judging screen on a sample, with a log of its own."""

    def __init__(self, prepared: Prepared, log: Path) -> None:
        self._prepared = prepared
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
        unscored: bool = True,
        presence: Presence | None = None,
    ) -> WorkApp:
        path = self._prepared.run(task)
        loaded = load(task)
        on_disk = LocalFirst(Settings(home=self._prepared.home), SilentProgress(), pytest.fail, copy=False)
        run_pages = RunPages.open(loaded, self._opened.enter_context(closing(on_disk)), path)
        self.run_pages = run_pages
        session = self.session("ann", task)
        self.judging = JudgingSession(
            session,
            run_pages.topics,
            run_pages.ranking,
            run_pages.rankings.length if unscored else run_pages.scored,
            run_pages.name,
            depth,
            seed,
            show_others=show_others,
            require=run_pages.require_as_ranked,
        )
        settings = keys.load(self.home, loaded.info.grades)
        title = f"{task} {SPLITS[task]} · ann"
        screen = JudgeScreen(self.judging, run_pages, settings.keys, title, start, presence)
        return WorkApp(screen, settings)

    def adjudicating(self, between: tuple[str, ...] | None = None) -> WorkApp:
        """The adjudicating screen after three people and a model have judged two topics of the sample."""
        self.app()
        documents = {topic: self.judging.order(topic).documents[:4] for topic in self.judging.topics[:2]}
        for name, grades in {"ann": (1, 0, 1, 1), "ben": (0, 0, 1, 0)}.items():
            for grade in (0, 1):
                places = [
                    SeenDocument(topic, document)
                    for topic, own in documents.items()
                    for document, given in zip(own, grades, strict=True)
                    if given == grade
                ]
                words = "by definition" if grade and name == "ann" else ""
                self.session(name).grade(places, grade, words)
        bot = Session(self.log, "nlps", Author("bot", Kind.model))
        bot.grade([SeenDocument(topic, own[1]) for topic, own in documents.items()], 1, "cosine 0.83")
        first, *_ = documents.items()
        self.session("eve").cant_tell(SeenDocument(first[0], first[1][0]), "needs the whole page")
        session = Session(self.log, "nlps", Author("kim"), (Action.adjudicate,))
        self.adjudication = Adjudication(session, between)
        settings = keys.load(self.home, load("nlps").info.grades)
        screen = AdjudicateScreen(self.adjudication, self.run_pages, settings.keys, "nlps · kim decides")
        return WorkApp(screen, settings)

    def begin(self, document: str) -> str:
        """How a document is called in what is said of it."""
        notation = Notation(self.run_pages.task.info.markup, Form.written)
        return document_label(document, self.run_pages.texts([document])[0], notation)

    def close(self) -> None:
        self._opened.close()

    def events(self) -> list[Event]:
        return [event for _place, event in self.log.events()]


@pytest.fixture
def judging(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judging]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    judging = Judging(prepared, tmp_path / "judgments.sqlite")
    yield judging
    judging.close()


S = TypeVar("S", bound=KeyScreen)


def drive(
    app: KeyApp,
    steps: Callable[[Pilot[None], S], Awaitable[None]],
    size: tuple[int, int] = (160, 45),
) -> None:
    """Run an interface without a terminal, and do the steps in it."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            pilot.press = partial(press, pilot)  # type: ignore[method-assign]
            await settled(pilot)
            await steps(pilot, cast(S, app.main))

    asyncio.run(run())


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and wait until all that they did is drawn.

    Textual's own `press` waits twice after each key until the processor is idle, which takes most of the time of a
    test; screens that take keys in their order need no more than that the messages are handled. A key is pressed once
    the screen in front is painted, as a person does.
    """
    for key in keys:
        await painted(pilot)
        pilot.app.post_message(key_event(key))
        await pilot.pause(0)
    await pilot.pause()


async def painted(pilot: Pilot[None]) -> None:
    """Wait until the screen in front is painted, if it is one that counts that."""
    await until(pilot, lambda: not isinstance(screen := pilot.app.screen, KeyScreen) or screen.is_painted)


def key_event(key: str) -> events.Key:
    """A key as the terminal sends it."""
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    character = {"space": " ", "slash": "/"}.get(key, key)
    return events.Key(name, character if len(character) == 1 else None)


async def settled(pilot: Pilot[None]) -> None:
    """Wait until everything that was begun is done and drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def text_of(app: KeyApp) -> str:
    """What stands on the screen."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, text_of(pilot.app)  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        await pilot.pause(0)


def question(app: KeyApp) -> str:
    """What is asked; nothing if nothing is."""
    asked = app.screen.query(".question > Plain, Plain.question")
    return str(asked.first(Plain).render()) if asked else ""


def require_complete(screen: KeyScreen) -> None:
    """Every pane and every line for words is described, with actions that there are; every action does something."""
    about = f"the table beside {type(screen).__module__}: "
    panes = {one.id for one in screen.query("*") if one.can_focus}
    assert panes == screen.ABOUT.keys(), f"{about}describe each pane that can have the focus, and no other"
    names = {one.name for one in screen.keys.actions}
    for one in screen.ABOUT.values():
        assert set(one.actions) <= names, f"{about}{one.title} names an action that no key has"
    lines = {one.id for one in screen.query(TextLine)}
    assert {name for name, one in screen.ABOUT.items() if one.line} == lines, (
        f"{about}lines for words have line=True"
    )
    done = {*screen._common(), *screen.actions()}
    idle = {name for name in names - done if not name.startswith("grade_")}
    assert not idle, "actions() in the screen's module says what these do"
