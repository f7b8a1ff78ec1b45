"""What is sought, and the answers: a ranking in pages; the latest request alone counts, whatever comes when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from textual.timer import Timer

from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.errors import EngineError
from searchapp.ranking.query_language import FieldFilter
from searchapp.ranking.search_results import SearchResult
from searchapp.tui.kit.background import SearchQueue, SearchRequestKind

PAGE = 20
"""How many hits are asked for at a time: what it takes to mark them is most of what a search takes."""


@dataclass
class Listing:
    """The hits of a request: `total` of them, in pages by their numbers from 0."""

    request: SearchRequest
    total: int = 0
    pages: dict[int, Sequence[SearchResult]] = field(default_factory=dict)

    def hit(self, place: int) -> SearchResult | None:
        """The hit at a place from 0; None while it is not there."""
        number, offset = divmod(place, PAGE)
        page = self.pages.get(number, ())
        return page[offset] if offset < len(page) else None

    def missing(self, places: Iterable[int]) -> int | None:
        """The number of the first page that is not there of those that have these places."""
        numbers = dict.fromkeys(place // PAGE for place in places if 0 <= place < self.total)
        return next((number for number in numbers if number not in self.pages), None)

    def page_request(self, number: int) -> SearchRequest:
        """The request for a page."""
        return replace(self.request, size=PAGE, first=number * PAGE)


QUIET_SECONDS = 0.03
"""Keys that follow each other faster are waited for: only the text that they end in is searched for."""

REST_SECONDS = 0.1
"""From an answer to a typed text until more of its ranking is fetched: who types on is not kept waiting by that."""

TYPING_SECONDS = 0.5
"""After a key for which somebody is typing."""

RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 5.0
"""After which an engine that failed is asked again: each time it is twice as long, until it is the longer one."""

LONGEST_LIKENESS = 4_000
"""Characters of a document that others are sought by which are like it."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What somebody looks for: a typed text or, with `like`, whatever is like the document of that id.

    A `literal` text is words alone.
    """

    text: str = ""
    recipe: str | None = None
    filters: tuple[FieldFilter, ...] = ()
    like: str | None = None
    literal: bool = False

    @property
    def request(self) -> SearchRequest:
        return SearchRequest(self.text, self.recipe, self.filters, size=PAGE, literal=self.literal)

    def of_document(self, result: SearchResult) -> Sought:
        """What is like a document, among the same ones and ranked likewise."""
        text = result.text[:LONGEST_LIKENESS]
        if len(result.text) > LONGEST_LIKENESS:
            text = text.rpartition(" ")[0] or text
        return replace(self, text=text, like=result.hit.document_id, literal=True)


class Shows(Protocol):
    """Takes in what comes of a search."""

    @property
    def place(self) -> int:
        """The line of the ranking that the cursor is on."""

    def found(self, listing: Listing, cursor: int) -> None:
        """There is another ranking."""

    def prepare(self, results: Sequence[SearchResult]) -> None:
        """Get ready, in whatever thread, for hits that are about to be shown."""

    def page_came(self, places: range) -> None:
        """There is more of the ranking: the hits at these places."""

    def failed(self, error: Exception) -> None:
        """There is no ranking of what is sought now; the one before stays."""

    def set_timer(self, delay: float, callback: Callable[[], object] | None = None) -> Timer:
        """Have something called later."""


class Searching:
    """Searches for what is sought, again and again.

    Args:
        shows: takes in the answers, and has timers
        quick: is asked what an engine answers by itself
        slow: is asked for recipes of several signals, which may have to learn first
        is_quick: whether a recipe is the former's
    """

    def __init__(
        self, shows: Shows, quick: SearchQueue, slow: SearchQueue, is_quick: Callable[[str | None], bool]
    ) -> None:
        self.sought = Sought()
        self.listing: Listing | None = None
        """The ranking in sight, which may be of what was sought before."""
        self._shows = shows
        self._quick = quick
        self._slow = slow
        self._is_quick = is_quick
        self._number = 0
        self._cursor = 0
        self._last_key = 0.0
        self._soon: Timer | None = None
        self._later: Timer | None = None
        self._resting: Timer | None = None
        self._rest_until = 0.0
        self._is_fetching = False
        self._failures = 0
        self._since = 0.0
        self.is_waiting = False
        """Whether what is sought was neither found yet, nor could it not be."""

    @property
    def tries_again(self) -> bool:
        """Whether an engine that failed will be asked again."""
        return self._later is not None

    @property
    def waited(self) -> float:
        """For how many seconds what is sought has been waited for; 0 when it is not."""
        return time.monotonic() - self._since if self.is_waiting else 0.0

    @property
    def is_current(self) -> bool:
        """Whether the ranking in sight is that of what is sought."""
        return self.listing is not None and self.listing.request == self.sought.request

    @property
    def asker(self) -> SearchQueue:
        """Who answers for the ranking in sight."""
        request = self.sought.request if self.listing is None else self.listing.request
        return self.asker_of(request)

    def asker_of(self, request: SearchRequest) -> SearchQueue:
        """Who answers a request."""
        return self._quick if self._is_quick(request.recipe) else self._slow

    def typed(self, sought: Sought) -> None:
        """Seek something else, at once or, if keys follow each other fast, when they have ended."""
        self.sought, self._cursor = sought, 0
        self._wait()
        self._number += 1  # whatever is still to come is of another text
        now = time.monotonic()
        is_slow, self._last_key = now - self._last_key > QUIET_SECONDS, now
        if is_slow and self._soon is None:
            self.ask()
            return
        if self._soon is not None:
            self._soon.stop()
        self._soon = self._shows.set_timer(QUIET_SECONDS, self.ask)

    def seek(self, sought: Sought, cursor: int = 0) -> None:
        """Seek something else at once, and put the cursor on a line of what is found."""
        self.sought, self._cursor = sought, cursor
        self.ask()

    def ask_again(self) -> None:
        """Ask for what is sought, of which the ranking in sight may be; its cursor stays on its line."""
        if self.is_current:
            self._cursor = self._shows.place
        self.ask()

    def ask(self) -> None:
        """Ask for what is sought."""
        for timer in (self._soon, self._later, self._resting):
            if timer is not None:
                timer.stop()
        self._soon = self._later = self._resting = None
        self._rest_until = 0.0
        self._number += 1
        self._wait()
        number, request, cursor = self._number, self.sought.request, self._cursor
        first = cursor // PAGE

        def work(searcher: TaskSearcher) -> Listing:
            found = searcher.first_page(request)
            pages = {0: found.results}
            if first:
                pages[first] = searcher.search(replace(request, first=first * PAGE))
            return Listing(request, found.total, pages)

        asker = self.asker_of(request)
        for other in (self._quick, self._slow):
            if other is not asker:
                other.forget(SearchRequestKind.search)
        asker.ask(
            SearchRequestKind.search,
            work,
            lambda listing: self._came(number, listing, cursor),
            lambda error: self._failed(number, error),
        )

    def fetch(self, places: range) -> None:
        """Fetch the pages that are missing of these places of the ranking, one after the other."""
        listing = self.listing
        number = None if listing is None else listing.missing(places)
        if listing is None or number is None or self._is_fetching:
            return
        rest = self._rest_until - time.monotonic()
        if rest > 0:
            if self._resting is not None:
                self._resting.stop()
            self._resting = self._shows.set_timer(rest, lambda: self.fetch(places))
            return
        self._is_fetching = True
        request = listing.page_request(number)

        def came(page: list[SearchResult]) -> None:
            self._is_fetching = False
            listing.pages[number] = page
            if listing is self.listing:
                self._shows.page_came(range(number * PAGE, (number + 1) * PAGE))

        def failed(error: Exception) -> None:
            self._is_fetching = False
            if listing is self.listing:
                self._shows.failed(error)
                self._try_again(error)

        def work(searcher: TaskSearcher) -> list[SearchResult]:
            results = searcher.search(request)
            self._shows.prepare(results)
            return results

        self.asker_of(request).ask(SearchRequestKind.page, work, came, failed)

    def _wait(self) -> None:
        if not self.is_waiting:
            self.is_waiting, self._since = True, time.monotonic()

    def _came(self, number: int, listing: Listing, cursor: int) -> None:
        if number != self._number:
            return  # somebody has typed on
        self.is_waiting = False
        self._failures = 0
        self.listing = listing
        self._is_fetching = False
        now = time.monotonic()
        if cursor == 0 and now - self._last_key < TYPING_SECONDS:
            self._rest_until = now + REST_SECONDS
        for asker in (self._quick, self._slow):
            asker.forget(SearchRequestKind.page)
        self._shows.found(listing, cursor)

    def _failed(self, number: int, error: Exception) -> None:
        if number != self._number:
            return
        self.is_waiting = False
        self._shows.failed(error)
        self._try_again(error)

    def _try_again(self, error: Exception) -> None:
        """An engine that does not answer is asked again after a while, unless somebody types on before."""
        if isinstance(error, EngineError) and self._later is None:
            seconds = min(RETRY_SECONDS * 2 ** min(self._failures, 10), LONGEST_RETRY_SECONDS)
            self._failures += 1
            self._later = self._shows.set_timer(seconds, self.ask_again)


@dataclass(frozen=True, slots=True)
class Position:
    """Where somebody was: what they sought, and on which line of it they were."""

    sought: Sought
    cursor: int


class Trail:
    """The positions that somebody went away from, to walk back to and on again."""

    def __init__(self) -> None:
        self._behind: list[Position] = []
        self._ahead: list[Position] = []

    def leave(self, here: Position) -> None:
        """Go somewhere else by choice: what was ahead is forgotten."""
        self._behind.append(here)
        self._ahead.clear()

    def back(self, here: Position) -> Position | None:
        """The position before; None if there is none."""
        return self._walk(self._behind, self._ahead, here)

    def forward(self, here: Position) -> Position | None:
        """The position that was gone back from; None if there is none."""
        return self._walk(self._ahead, self._behind, here)

    @staticmethod
    def _walk(source: list[Position], target: list[Position], here: Position) -> Position | None:
        if not source:
            return None
        target.append(here)
        return source.pop()
