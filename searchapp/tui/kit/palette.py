"""The palette: all actions of the front screen, found by words.

Textual's palette, but harmless text, keys in the order of typing, and Enter that uses the typed words even
while the list belongs to earlier ones.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from textual.widgets.option_list import Option

from searchapp.lucene.dataclass import dataclass
from searchapp.tui.kit.content import Content
from searchapp.tui.kit.widgets import TextLine, shortened

# Longer words are cut.
LONGEST_CELLS = 100

KEY_CELLS = 7

# Weight of the matched share of an offer's text: among equal offers the shortest comes first.
TERSE = 0.01

# Maximum listed offers of a kind.
MOST = 200

# Number of offers to score before handling keys again.
AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Offer:
    """An action in the palette."""

    words: str
    do: Callable[[], object]
    # Its subject, shown before the words.
    kind: str = ""

    # The key that does the same.
    key: str = ""

    @property
    def text(self) -> str:
        return shortened(f"{self.kind}: {self.words}" if self.kind else self.words, LONGEST_CELLS)

    def shown(self, text: Content) -> Content:
        return Content.assemble((f"{self.key:<{KEY_CELLS}} ", "bold $primary"), text)


class OfferMatcher:
    """Scores offers that contain the letters of the words in order."""

    def __init__(self, words: str) -> None:
        self._letters = "".join(words.lower().split())
        self.matcher = Matcher(words)

    def score(self, text: str) -> float:
        letters = iter(text.lower())
        if not all(letter in letters for letter in self._letters):  # rejects most texts quickly
            return 0.0
        score = self.matcher.match(text)
        return score + TERSE * len(self._letters) / len(text) if score else 0.0


class OfferProvider(Provider):
    """Supplies the palette with its offers."""

    async def discover(self) -> Hits:
        palette = self._palette
        palette.listing = ""
        count = Counter[str]()
        for offer in palette.offers:
            count[offer.kind] += 1
            if count[offer.kind] <= MOST:
                yield DiscoveryHit(offer.shown(Content(offer.text)), offer.do, offer.text)

    async def search(self, query: str) -> Hits:
        palette = self._palette
        palette.listing = query
        matcher = OfferMatcher(query)
        count = Counter[str]()
        for index, offer in enumerate(palette.offers):
            if index % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            text = offer.text
            score = matcher.score(text)
            if score > 0 and count[offer.kind] < MOST:
                count[offer.kind] += 1
                shown = Content(text)
                for start, end in _matches(text, query):
                    shown = shown.stylize("bold $match", start, end)
                yield Hit(score, offer.shown(shown), offer.do, text)

    @property
    def _palette(self) -> Palette:
        palette = self.app.screen
        assert isinstance(palette, Palette)
        return palette


def _matches(text: str, words: str) -> Iterator[tuple[int, int]]:
    lower = text.lower()
    for word in words.lower().split():
        start = lower.find(word)
        if start >= 0 and len(lower) == len(text):
            yield start, start + len(word)


class PaletteLine(CommandInput, TextLine):
    """The line of the palette."""


class Palette(CommandPalette):
    """The palette; `further` returns offers that take longer to compute, in another thread."""

    AUTO_FOCUS = "PaletteLine"
    HINT: ClassVar[str] = "what to do, in a few letters"

    def __init__(self, offers: Sequence[Offer], further: Callable[[], Sequence[Offer]]) -> None:
        super().__init__(providers=[OfferProvider])
        self.offers = list(offers)
        # The words of the list in progress.
        self.listing: str | None = None
        # The words of the displayed list.
        self._listed: str | None = None
        # Cursor moves that wait for the list of the present words.
        self._moves: list[str] = []
        # The user has moved the cursor in the list of the present words.
        self._has_moved = False
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
        if not self.is_current:
            event.prevent_default()

    async def _add_further(self) -> None:
        self.offers += await asyncio.to_thread(self._further)
        self._gather_commands(self._line.value.strip())

    def _refresh_command_list(
        self, command_list: CommandList, commands: list[Command], clear_current: bool
    ) -> None:
        if not self.query(CommandList):
            return  # the user has closed the palette
        index, current = command_list.highlighted, None
        if self._has_moved and self._is_current and index is not None:
            option = command_list.get_option_at_index(index)
            current = option.hit.text if isinstance(option, Command) else None
        super()._refresh_command_list(command_list, commands, clear_current)
        self._listed = self.listing
        texts = [option.hit.text for option in command_list.options if isinstance(option, Command)]
        if current in texts:  # late offers must not move the cursor
            command_list.highlighted = texts.index(current)
        self._move()

    def _start_no_matches_countdown(self, search_value: str) -> None:
        # At once: Textual waits half a second, in which an empty list looks unfinished.
        if search_value and self.query(CommandList):
            words = Content.styled("no match", "$faint")
            self.query_one(CommandList).add_option(Option(words, disabled=True, id=self._NO_MATCHES))
        self._list_visible = bool(search_value)

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
        if not self._is_current:
            return
        self._has_moved = self._has_moved or bool(self._moves)
        moves, self._moves = self._moves, []
        for move in moves:
            if move == "cursor_down":
                self._action_cursor_down()
            # Textual fails to move by a page in a list that was not drawn yet.
            elif not move.startswith("page") or self.query_one(CommandList).scrollable_content_region:
                self._action_command_list(move)

    @property
    def _is_current(self) -> bool:
        return self.is_mounted and self._listed == self._line.value.strip()

    def _do_best(self) -> None:
        """Do the selected offer, or the best one for words whose list is not ready."""
        if self._is_current:
            self._select_or_command()
            return
        words = self._line.value.strip()
        if not words:
            return
        matcher = OfferMatcher(words)
        scores = [(matcher.score(offer.text), offer) for offer in self.offers]
        score, best = max(scores, key=lambda scored: scored[0], default=(0.0, None))
        if best is not None and score > 0:
            self._cancel_gather_commands()
            self.dismiss()
            self.app.call_later(best.do)
