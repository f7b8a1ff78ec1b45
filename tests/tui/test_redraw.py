"""Whatever was done before, a screen shows what one shows that has just been opened on the same log."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from searchapp.judging.events import Action, Author
from searchapp.judging.session import Adjudication, JudgingSession, SeenDocument, Session
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.judging import WorkScreen
from searchapp.tui.kit.widgets import RowList, TextLine, TextPane
from tests.profile import FULL
from tests.tui.conftest import Judging, drive, settled

SEEDS = range(30 if FULL else 2)
SIZES = [(160, 45), (80, 24)]
ACTIONS = 60 if FULL else 20
EVERY = 1 if FULL else 4
"""After every how many actions the screens are compared: what is drawn wrongly mostly stays so for a while."""

P = Pilot[None]
S = TypeVar("S", bound=WorkScreen)

JUDGING = [
    *["0", "1"] * 6, *["u"] * 5, *["U"] * 2, "s", "s", "x", *["space", "shift+down", "shift+up"] * 3,
    "down", "up", "pagedown", "end", "home", "g", "g", "G", "G", "]", "[", "tab", "shift+tab", "t", "m", "z", "b",
    ">", "<", ".", "comma", "escape", "n odd ↵", "r 0 too general ↵", "r x cut off ↵", "f ring ↵", "f ⎋",
    "slash group ↵", "slash zzz ↵", "l ↵", "l ↑ ↵", *["ben"] * 4, *["window"] * 3, *["undoing"] * 2,
]  # fmt: skip
"""Keys, and what happens elsewhere: Ben judges, and so does the same annotator, who also takes something back."""

DECIDING = [
    *["0", "1"] * 5, *["u"] * 4, *["U"] * 2, "down", "up", "end", "home", "g", "]", "[", "tab", "m", "z", "b", ">",
    "<", "escape", "n odd ↵", "r 1 as it says ↵", "f ring ↵", "f 60 ↵", "f zzz ↵", "f ⎋", *["ben"] * 4, *["lea"] * 2,
    *["window"] * 2, *["undoing"] * 2,
]  # fmt: skip


async def type_in(pilot: P, action: str) -> None:
    """Press what an action is written as: single keys, and words letter by letter."""
    names = {"↵": "enter", "⎋": "escape", "↑": "up"}
    for part in action.split(" "):
        if part in names or part in ("space", "slash", "comma") or "+" in part or part in KEYS:
            await pilot.press(names.get(part, part))
        else:
            await pilot.press(*part)


KEYS = {"down", "up", "pagedown", "end", "home", "tab", "escape", "."}


def drawn(screen: Screen[None]) -> list[list[tuple[str, str]]]:
    """What stands on a screen and how it looks, but for the first line, which says what was just done."""
    strips = screen._compositor.render_strips()[1:]
    return [
        [(segment.text, str(segment.style)) for segment in strip.simplify() if segment.text]
        for strip in strips
    ]


def put_alike(fresh: S, worn: S) -> None:
    """Bring a screen into the state of another: panes, filter, cursors, how far they are scrolled."""
    fresh.panes._widths = dict(worn.panes._widths)
    fresh.panes._read(worn.panes.is_reading)
    fresh.panes._zoom(worn.panes._zoomed)
    fresh.set_class(worn.has_class("-topics"), "-topics")
    focused = worn.focused
    fresh.set_focus(None if focused is None else fresh.query_one(f"#{focused.id}"))


def scroll_alike(fresh: WorkScreen, worn: WorkScreen) -> None:
    for kind in (RowList, TextPane):
        for one in worn.query(kind):
            other = fresh.query_one(f"#{one.id}", kind)
            other.scroll_to(y=one.scroll_offset.y, animate=False, force=True, immediate=True)
    for name in ("#topic", *(["#opinions"] if worn.query("#opinions") else [])):
        fresh.query_one(name).scroll_to(y=worn.query_one(name).scroll_offset.y, animate=False, immediate=True)


async def compare(pilot: P, worn: S, make: Callable[[], S], alike: Callable[[S, S], Awaitable[None]]) -> None:
    app = pilot.app
    before = drawn(worn)
    fresh = make()
    await app.push_screen(fresh)
    put_alike(fresh, worn)
    await pilot.pause(0)
    await alike(fresh, worn)
    await pilot.pause()
    scroll_alike(fresh, worn)
    await settled(pilot)
    expected = drawn(fresh)
    app.pop_screen()
    await pilot.pause(0)
    for line, (shown, wanted) in enumerate(zip(before, expected, strict=True), 2):
        assert shown == wanted, f"line {line}:\n{shown}\n{wanted}"


async def answer(pilot: P, rng: random.Random, worn: WorkScreen) -> None:
    """Answer what is asked, if something is."""
    while pilot.app.screen is not worn:
        await pilot.press(rng.choice(["y", "y", "n", "escape", "G"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_judging_screen_shows_what_a_fresh_one_does(judging: Judging, seed: int) -> None:
    rng = random.Random(seed)
    depth, show_others = rng.choice([3, 12, None]), rng.random() < 0.3
    app = judging.app(depth=depth, show_others=show_others)

    def make() -> JudgeScreen:
        run_pages = judging.run_pages
        session = JudgingSession(
            judging.session("ann"),
            run_pages.topics,
            run_pages.ranking,
            run_pages.rankings.length,
            run_pages.name,
            depth,
            show_others=show_others,
        )
        return JudgeScreen(session, run_pages, app.work.keys, "title", worn_topic())

    def worn_topic() -> str:
        assert isinstance(app.work, JudgeScreen)
        return app.work.topic_id

    async def alike(fresh: JudgeScreen, worn: JudgeScreen) -> None:
        words = worn.query_one("#filter", TextLine).value
        fresh.query_one("#filter", TextLine).value = words
        fresh.topics.filter(words)
        fresh.topics.put(worn.topics.cursor)
        while fresh._reading.notation != worn._reading.notation:
            fresh._toggle_maths()
        fresh.ranking.selected |= worn.ranking.selected
        fresh._finder.words, fresh.ranking.matching = worn._finder.words, worn.ranking.matching
        fresh.go(worn.ranking.cursor)
        fresh.ranking.refresh()

    def elsewhere(what: str, screen: JudgeScreen) -> None:
        documents = judging.judging.order(screen.topic_id).documents
        some = [
            SeenDocument(screen.topic_id, one, "run", 1)
            for one in rng.sample(documents, min(3, len(documents)))
        ]
        session = judging.session("ben" if what == "ben" else "ann")
        if what == "undoing":
            session.undo()
        elif rng.random() < 0.2:
            session.skip(some[0])
        elif rng.random() < 0.2:
            session.note(some[0], "from elsewhere")
        else:
            session.grade(some, rng.randrange(2), rng.choice(["", "by definition"]))
        screen.control.refresh()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        done = []
        for number in range(1, ACTIONS + 1):
            action = rng.choice(JUDGING)
            done.append(action)
            if action in ("ben", "window", "undoing"):
                elsewhere(action, screen)
            else:
                await type_in(pilot, action)
            await answer(pilot, rng, screen)
            await settled(pilot)
            if number % EVERY:
                continue
            try:
                await compare(pilot, screen, make, alike)
            except AssertionError as error:
                raise AssertionError(f"after {done}: {error}") from error

    drive(app, steps, size=SIZES[seed % 2])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_adjudicating_screen_shows_what_a_fresh_one_does(judging: Judging, seed: int) -> None:
    rng = random.Random(seed)
    app = judging.adjudicating()

    def make() -> AdjudicateScreen:
        session = Session(judging.log, "nlps", Author("kim"), (Action.adjudicate,))
        adjudication = Adjudication(session)
        return AdjudicateScreen(adjudication, judging.run_pages, keys, "title")

    async def alike(fresh: AdjudicateScreen, worn: AdjudicateScreen) -> None:
        words = worn.query_one("#filter", TextLine).value
        fresh.query_one("#filter", TextLine).value = words
        fresh.filtered(words)
        while fresh._notation != worn._notation:
            fresh._toggle_maths()
        fresh._go(worn.disputes.cursor)

    def elsewhere(what: str, screen: AdjudicateScreen) -> None:
        topic = rng.choice(judging.judging.topics[:3])
        document = rng.choice(judging.judging.order(topic).documents[:5])
        if what == "undoing":
            judging.session("ben").undo()
        elif what == "ben":
            judging.session("ben").grade([SeenDocument(topic, document)], rng.randrange(2), "once more")
        else:
            who = Session(
                judging.log, "nlps", Author("lea" if what == "lea" else "kim"), (Action.adjudicate,)
            )
            who.adjudicate(SeenDocument(topic, document), rng.randrange(2), "seen")
        screen.control.refresh()

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        done = []
        for number in range(1, ACTIONS + 1):
            action = rng.choice(DECIDING)
            done.append(action)
            if action in ("ben", "lea", "window", "undoing"):
                elsewhere(action, screen)
            else:
                await type_in(pilot, action)
            await answer(pilot, rng, screen)
            await settled(pilot)
            if number % EVERY:
                continue
            try:
                await compare(pilot, screen, make, alike)
            except AssertionError as error:
                raise AssertionError(f"after {done}: {error}") from error

    from searchapp.tasks import load
    from searchapp.tui.kit.keys import load as load_keys

    keys = load_keys(judging.home, load("nlps").info.grades).keys
    drive(app, steps, size=SIZES[seed % 2])
