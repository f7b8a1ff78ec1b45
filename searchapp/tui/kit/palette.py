"""The palette: everything that can be done on the screen in front, found by words.

It is Textual's own, with three things of ours: what it shows is harmless, keys are taken in their order, and Enter does
what is best for the words as they are, also where the list is still that of the words before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.command import (
    Command,
    CommandInput,
    CommandList,
    CommandPalette,
    DiscoveryHit,
    Hit,
    Hits,
    Provider,
    SearchIcon,
)
from textual.containers import Horizontal, Vertical
from textual.fuzzy import Matcher
from textual.widgets import LoadingIndicator

from searchapp.tui.kit.content import Content
from searchapp.tui.kit.line import Line
from searchapp.tui.kit.widgets import shortened

LONGEST_CELLS = 100
"""Longer words are cut."""

KEY_CELLS = 7

TERSE = 0.01
"""What the share of its text that was typed adds to the score of an offer: of equal ones the shortest is first."""

MOST = 200
"""Offers of a kind that are listed."""

AT_ONCE = 200
"""Offers that are looked through before keys are taken again."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be done: what, in words; `kind` is what it is about, `key` what else does it."""

    words: str
    do: Callable[[], object]
    kind: str = ""
    key: str = ""

    @property
    def text(self) -> str:
        """What is shown and looked through."""
        return shortened(f"{self.kind}: {self.words}" if self.kind else self.words, LONGEST_CELLS)

    def shown(self, text: Content) -> Content:
        """The text with its key before it."""
        return Content.assemble((f"{self.key:<{KEY_CELLS}} ", "bold $primary"), text)


class Ranking:
    """How well offers go with words: the letters of the words must follow each other in an offer's text."""

    def __init__(self, words: str) -> None:
        self._letters = "".join(words.lower().split())
        self.matcher = Matcher(words)

    def score(self, text: str) -> float:
        """How well a text goes with the words; 0 if it does not."""
        letters = iter(text.lower())
        if not all(letter in letters for letter in self._letters):  # quick, and most texts end here
            return 0.0
        score = self.matcher.match(text)
        return score + TERSE * len(self._letters) / len(text) if score else 0.0


def _few_of_each(offers: Sequence[Offer]) -> Iterator[Offer]:
    """The first offers of each kind."""
    count: dict[str, int] = {}
    for offer in offers:
        count[offer.kind] = count.get(offer.kind, 0) + 1
        if count[offer.kind] <= MOST:
            yield offer


class Offers(Provider):
    """Gives the palette what there is to offer."""

    async def discover(self) -> Hits:
        palette = self._palette
        palette.sought = ""
        for offer in _few_of_each(palette.offers):
            yield DiscoveryHit(offer.shown(Content(offer.text)), offer.do, offer.text)

    async def search(self, query: str) -> Hits:
        palette = self._palette
        palette.sought = query
        ranking = Ranking(query)
        count: dict[str, int] = {}
        for place, offer in enumerate(palette.offers):
            if place % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            text = offer.text
            score = ranking.score(text)
            if score > 0 and count.get(offer.kind, 0) < MOST:
                count[offer.kind] = count.get(offer.kind, 0) + 1
                shown = Content(text)
                for start, end in _marked(text, query):
                    shown = shown.stylize("bold $match", start, end)
                yield Hit(score, offer.shown(shown), offer.do, text)

    @property
    def _palette(self) -> Palette:
        palette = self.app.screen
        assert isinstance(palette, Palette)
        return palette


def _marked(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Where the words stand in a text."""
    lower = text.lower()
    for word in words.lower().split():
        start = lower.find(word)
        if start >= 0 and len(lower) == len(text):
            yield start, start + len(word)


class PaletteLine(CommandInput, Line):
    """The line of the palette."""


class Palette(CommandPalette):
    """The palette on a screen.

    Args:
        offers: what there is to offer at once
        further: gives what takes longer to find, in the background
    """

    AUTO_FOCUS = "PaletteLine"
    HINT: ClassVar[str] = "what to do, in a few letters"

    def __init__(self, offers: Sequence[Offer], further: Callable[[], Sequence[Offer]]) -> None:
        super().__init__(providers=[Offers])
        self.offers = list(offers)
        self.sought: str | None = None
        """What is being looked for, and what the list is of."""
        self._listed: str | None = None
        self._moves: list[str] = []
        """Keys that move in the list of these words, from before it was there."""
        self._has_moved = False
        """Whether somebody has gone to a line of the list of these words."""
        self._further = further
        self._line = PaletteLine(lambda _words: self._do_best(), hint=self.HINT)

    def compose(self) -> ComposeResult:
        with Vertical(id="--container"):
            with Horizontal(id="--input"):
                yield SearchIcon()
                yield self._line
            with Vertical(id="--results"):
                yield CommandList()
                yield LoadingIndicator()

    def on_mount(self) -> None:
        self.run_worker(self._add_further(), "the palette", exit_on_error=False)

    def on_click(self, event: events.Click) -> None:
        """Leave a click alone that comes when a key has closed the palette already: there is nothing to close."""
        if not self.is_current:
            event.prevent_default()

    async def _add_further(self) -> None:
        self.offers += await asyncio.to_thread(self._further)
        self._gather_commands(self._line.value.strip())

    def _refresh_command_list(
        self, command_list: CommandList, commands: list[Command], clear_current: bool
    ) -> None:
        if not self.query(CommandList):
            return  # the palette was closed meanwhile, and is being taken apart
        place, here = command_list.highlighted, None
        if self._has_moved and self._is_current and place is not None:
            option = command_list.get_option_at_index(place)
            here = option.hit.text if isinstance(option, Command) else None
        super()._refresh_command_list(command_list, commands, clear_current)
        self._listed = self.sought
        texts = [option.hit.text for option in command_list.options if isinstance(option, Command)]
        if here in texts:  # what comes late moves nobody to another line
            command_list.highlighted = texts.index(here)
        self._move()

    def take(self, event: events.Key) -> bool:
        moves = {
            "down": "cursor_down",
            "up": "cursor_up",
            "pagedown": "page_down",
            "pageup": "page_up",
        }
        if event.key == "escape":
            self._action_escape()
        elif event.key in moves:
            self._moves.append(moves[event.key])
            self._move()
        elif self._line.take(event):
            self._moves.clear()
            self._has_moved = False
        return True

    def _move(self) -> None:
        """Move in the list as keys said, once it is that of the words."""
        if not self._is_current:
            return
        self._has_moved = self._has_moved or bool(self._moves)
        moves, self._moves = self._moves, []
        for move in moves:
            if move == "cursor_down":
                self._action_cursor_down()
            else:
                self._action_command_list(move)

    @property
    def _is_current(self) -> bool:
        """Whether the list is that of the words as they are."""
        return self.is_mounted and self._listed == self._line.value.strip()

    def _do_best(self) -> None:
        """Do what is chosen in the list, or what goes best with the words where it is not theirs yet."""
        if self._is_current:
            self._select_or_command()
            return
        words = self._line.value.strip()
        if not words:
            return
        ranking = Ranking(words)
        scores = [(ranking.score(offer.text), offer) for offer in self.offers]
        score, best = max(scores, key=lambda one: one[0], default=(0.0, None))
        if best is not None and score > 0:
            self._cancel_gather_commands()
            self.dismiss()
            self.app.call_later(best.do)
