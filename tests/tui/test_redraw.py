"""After any actions a screen shows the same as a new screen on the same log."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from searchapp.judging.events import Action, Author
from searchapp.judging.session import Adjudication, JudgingSession, SeenDocument, Session
from searchapp.tasks import load
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.judging import WorkScreen
from searchapp.tui.kit.keys import load as load_keys
from searchapp.tui.kit.widgets import RowList, TextLine, TextPane
from tests.profile import FULL
from tests.tui.conftest import JudgingHarness, drive, wait_until_idle

SEEDS = range(30 if FULL else 2)
SIZES = [(160, 45), (80, 24)]
ACTIONS = 60 if FULL else 20
COMPARED_EVERY = 1 if FULL else 4
"""Screens are compared after this many actions, because drawing errors usually last for several actions."""

P = Pilot[None]
S = TypeVar("S", bound=WorkScreen)

JUDGING_ACTIONS = [
    *["0", "1"] * 6, *["u"] * 5, *["U"] * 2, "s", "s", "x", *["space", "shift+down", "shift+up"] * 3,
    "down", "up", "pagedown", "end", "home", "g", "g", "G", "G", "]", "[", "tab", "shift+tab", "t", "m", "z", "b",
    ">", "<", ".", "comma", "escape", "n odd ↵", "r 0 too general ↵", "r x cut off ↵", "f ring ↵", "f ⎋",
    "slash group ↵", "slash zzz ↵", "l ↵", "l ↑ ↵", *["ben"] * 4, *["window"] * 3, *["undoing"] * 2,
]  # fmt: skip
"""Keys, and actions in other programs: Ben judges, the same annotator judges in another window or undoes."""

ADJUDICATION_ACTIONS = [
    *["0", "1"] * 5, *["u"] * 4, *["U"] * 2, "down", "up", "end", "home", "g", "]", "[", "tab", "m", "z", "b", ">",
    "<", "escape", "n odd ↵", "r 1 as it says ↵", "f ring ↵", "f 60 ↵", "f zzz ↵", "f ⎋", *["ben"] * 4, *["lea"] * 2,
    *["window"] * 2, *["undoing"] * 2,
]  # fmt: skip

ELSEWHERE = {"ben", "lea", "window", "undoing"}


async def carry_out(pilot: P, action: str) -> None:
    """Press the keys of an action, whose words are typed letter by letter."""
    names = {"↵": "enter", "⎋": "escape", "↑": "up"}
    for part in action.split(" "):
        if part in names or part in ("space", "slash", "comma") or "+" in part or part in KEYS:
            await pilot.press(names.get(part, part))
        else:
            await pilot.press(*part)


KEYS = {"down", "up", "pagedown", "end", "home", "tab", "escape", "."}


def styled_text(screen: Screen[None]) -> list[list[tuple[str, str]]]:
    """Return text and styles of a screen without the first line, which reports the last action."""
    strips = screen._compositor.render_strips()[1:]
    return [
        [(segment.text, str(segment.style)) for segment in strip.simplify() if segment.text]
        for strip in strips
    ]


def copy_state(fresh: S, used: S) -> None:
    """Give a screen the panes and the focus of another one."""
    fresh.panes._widths, fresh.panes._heights = dict(used.panes._widths), dict(used.panes._heights)
    fresh.panes._read(used.panes.is_reading)
    fresh.panes._zoom(used.panes._zoomed)
    fresh.set_class(used.has_class("-topics"), "-topics")
    focused = used.focused
    fresh.set_focus(None if focused is None else fresh.query_one(f"#{focused.id}"))


def copy_scrolling(fresh: WorkScreen, used: WorkScreen) -> None:
    for kind in (RowList, TextPane):
        for widget in used.query(kind):
            other = fresh.query_one(f"#{widget.id}", kind)
            other.scroll_to(y=widget.scroll_offset.y, animate=False, force=True, immediate=True)
    for name in ("#topic", *(["#opinions"] if used.query("#opinions") else [])):
        fresh.query_one(name).scroll_to(y=used.query_one(name).scroll_offset.y, animate=False, immediate=True)


async def compare(pilot: P, used: S, make: Callable[[], S], copy: Callable[[S, S], Awaitable[None]]) -> None:
    app = pilot.app
    before = styled_text(used)
    fresh = make()
    await app.push_screen(fresh)
    copy_state(fresh, used)
    await pilot.pause(0)
    await copy(fresh, used)
    await pilot.pause()
    copy_scrolling(fresh, used)
    await wait_until_idle(pilot)
    expected = styled_text(fresh)
    app.pop_screen()
    await pilot.pause(0)
    for line, (actual, correct) in enumerate(zip(before, expected, strict=True), 2):
        assert actual == correct, f"line {line}:\n{actual}\n{correct}"


async def answer(pilot: P, rng: random.Random, used: WorkScreen) -> None:
    """Answer open questions at random."""
    while pilot.app.screen is not used:
        await pilot.press(rng.choice(["y", "y", "n", "escape", "}"]))


async def act_and_compare(
    pilot: P,
    rng: random.Random,
    screen: S,
    possible_actions: Sequence[str],
    act_elsewhere: Callable[[str, S], None],
    make: Callable[[], S],
    copy: Callable[[S, S], Awaitable[None]],
) -> None:
    """Carry out random actions and compare the screen with a new one from time to time."""
    actions = []
    for number in range(1, ACTIONS + 1):
        action = rng.choice(possible_actions)
        actions.append(action)
        if action in ELSEWHERE:
            act_elsewhere(action, screen)
        else:
            await carry_out(pilot, action)
        await answer(pilot, rng, screen)
        await wait_until_idle(pilot)
        if number % COMPARED_EVERY:
            continue
        try:
            await compare(pilot, screen, make, copy)
        except AssertionError as error:
            raise AssertionError(f"after {actions}: {error}") from error


@pytest.mark.parametrize("seed", SEEDS)
def test_the_judging_screen_shows_what_a_new_one_does(judging: JudgingHarness, seed: int) -> None:
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
        return JudgeScreen(session, run_pages, app.main.keys, "title", used_topic())

    def used_topic() -> str:
        assert isinstance(app.main, JudgeScreen)
        return app.main.topic_id

    async def copy(fresh: JudgeScreen, used: JudgeScreen) -> None:
        text = used.query_one("#filter", TextLine).value
        fresh.query_one("#filter", TextLine).value = text
        fresh.topics.filter(text)
        fresh.topics.put(used.topics.cursor)
        while fresh._reading.notation != used._reading.notation:
            fresh._toggle_maths()
        fresh.ranking.selected |= used.ranking.selected
        fresh._finder.words, fresh.ranking.matching = used._finder.words, used.ranking.matching
        fresh.go(used.ranking.cursor)
        fresh.ranking.refresh()

    def act_elsewhere(author: str, screen: JudgeScreen) -> None:
        documents = judging.own_session.order(screen.topic_id).documents
        targets = [
            SeenDocument(screen.topic_id, document, "run", 1)
            for document in rng.sample(documents, min(3, len(documents)))
        ]
        session = judging.session("ben" if author == "ben" else "ann")
        if author == "undoing":
            session.undo()
        elif rng.random() < 0.2:
            session.skip(targets[0])
        elif rng.random() < 0.2:
            session.note(targets[0], "from elsewhere")
        else:
            session.grade(targets, rng.randrange(2), rng.choice(["", "by definition"]))
        screen.control.refresh()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await act_and_compare(pilot, rng, screen, JUDGING_ACTIONS, act_elsewhere, make, copy)

    drive(app, steps, size=SIZES[seed % 2])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_adjudication_screen_shows_what_a_new_one_does(judging: JudgingHarness, seed: int) -> None:
    rng = random.Random(seed)
    app = judging.adjudicating()

    def make() -> AdjudicateScreen:
        session = Session(judging.log, "nlps", Author("kim"), (Action.adjudicate,))
        adjudication = Adjudication(session)
        return AdjudicateScreen(adjudication, judging.run_pages, keys, "title")

    async def copy(fresh: AdjudicateScreen, used: AdjudicateScreen) -> None:
        text = used.query_one("#filter", TextLine).value
        fresh.query_one("#filter", TextLine).value = text
        fresh.filtered(text)
        while fresh._notation != used._notation:
            fresh._toggle_maths()
        fresh._go(used.disputes.cursor)

    def act_elsewhere(author: str, screen: AdjudicateScreen) -> None:
        topic = rng.choice(judging.own_session.topics[:3])
        document = rng.choice(judging.own_session.order(topic).documents[:5])
        if author == "undoing":
            judging.session("ben").undo()
        elif author == "ben":
            judging.session("ben").grade([SeenDocument(topic, document)], rng.randrange(2), "once more")
        else:
            session = Session(
                judging.log, "nlps", Author("lea" if author == "lea" else "kim"), (Action.adjudicate,)
            )
            session.adjudicate(SeenDocument(topic, document), rng.randrange(2), "seen")
        screen.control.refresh()

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await act_and_compare(pilot, rng, screen, ADJUDICATION_ACTIONS, act_elsewhere, make, copy)

    keys = load_keys(judging.home, load("nlps").info.grades).keys
    drive(app, steps, size=SIZES[seed % 2])
