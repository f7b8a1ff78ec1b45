"""Load the ranking of the latest query in pages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from textual.timer import Timer

from searchapp.app.saved_searches import SearchQuery
from searchapp.app.search import QueryNotes, SearchRequest, TaskSearcher, likeness
from searchapp.errors import EngineError
from searchapp.lucene.dataclass import dataclass
from searchapp.ranking.search_results import SearchResult
from searchapp.tui.kit.background import SearchQueue, SearchRequestKind
from searchapp.tui.kit.judging import GradingScreen
from searchapp.tui.search.hits import COMPARED, PAGE, HitRows, Listing, read_markup

# Debounce: faster keys are searched for together.
QUIET_SECONDS = 0.03

# Delay between showing the ranking of a typed text and fetching more pages, so that further keys need not wait.
REST_SECONDS = 0.1

# After a key, the user counts as typing for this time.
TYPING_SECONDS = 0.5

# Delay between showing the ranking of a typed text and comparing it with another one, and looking for words that find
# nothing: the last word may not be complete yet.
PAUSE_SECONDS = 0.3

RETRY_SECONDS = 1.0
# Exponential back-off after engine failures.
LONGEST_RETRY_SECONDS = 5.0


def request_of(query: SearchQuery) -> SearchRequest:
    """Return the request for the first page of a query."""
    return SearchRequest(
        query.text, query.recipe, query.filters, size=PAGE, literal=query.literal, like=query.like
    )


def similar_query(query: SearchQuery, result: SearchResult) -> SearchQuery:
    """Return the query for documents similar to a hit."""
    return replace(query, text=likeness(result.text), like=result.hit.document_id, literal=True)


class RankingScreen(GradingScreen):
    """A screen with rankings; `RankingLoader` calls its methods."""

    def show_ranking(self, loader: RankingLoader, listing: Listing, cursor: int) -> None:
        raise NotImplementedError

    def show_page(self, loader: RankingLoader, indexes: range) -> None:
        raise NotImplementedError

    def show_moves(self) -> None:
        """Show the moves between two rankings, once the ids of both are read."""
        raise NotImplementedError

    def show_notes(self, notes: QueryNotes) -> None:
        """Show what finds nothing in the query of the ranking."""
        raise NotImplementedError

    def show_complete(self, loader: RankingLoader, listing: Listing, cursor: int, *, is_chosen: bool) -> None:
        """Show the ranking with external models; the cursor is on the document that the user has chosen, if any."""
        raise NotImplementedError

    def show_incomplete(self, loader: RankingLoader, error: Exception) -> None:
        """Report that the ranking stays without external models."""
        raise NotImplementedError

    def show_failure(self, loader: RankingLoader, error: Exception) -> None:
        """Report that the query has no ranking; the previous ranking stays."""
        raise NotImplementedError


class RankingLoader:
    """Loads the ranking of a list whenever the query changes.

    If the recipe asks external models, it first loads the ranking of the other signals.

    Args:
        screen: shows the answers, and has timers
        rows: the list
        quick: answers recipes of one query
        slow: answers recipes of several signals, which may need training
        external: answers recipes that ask external models
        searcher: knows the recipes
    """

    def __init__(
        self,
        screen: RankingScreen,
        rows: HitRows,
        quick: SearchQueue,
        slow: SearchQueue,
        external: SearchQueue,
        searcher: TaskSearcher,
    ) -> None:
        self.query = SearchQuery()
        self.rows = rows
        # The ranking on the screen, possibly of an earlier query.
        self.listing: Listing | None = None
        # The query has neither been answered nor failed.
        self.is_waiting = False
        # Why the query has no ranking, if it failed.
        self.error: Exception | None = None
        self._screen = screen
        self._queues = quick, slow, external
        self._searcher = searcher
        self._number = 0
        self._cursor = 0
        self._last_key = 0.0
        # The query was typed, and not chosen.
        self._is_typed = False
        self._debounce: Timer | None = None
        self._retry: Timer | None = None
        self._rest: Timer | None = None
        self._pause: Timer | None = None
        # When external models were asked, if they have not answered.
        self._models_since: float | None = None
        self._rest_until = 0.0
        self._is_fetching = False
        self._follows = True
        self._failures = 0
        self._since = 0.0

    @property
    def recipe(self) -> str:
        return self.query.recipe or self._searcher.task.info.search_recipe

    @property
    def request(self) -> SearchRequest:
        """The request for the first page of the query, without external models while the screen has none of them."""
        listing = self.listing
        return replace(request_of(self.query), offline=listing is not None and listing.request.offline)

    def is_quick(self, request: SearchRequest) -> bool:
        return self._searcher.recipe_of(request).is_one_query

    @property
    def awaits_models(self) -> bool:
        """Whether the ranking on the screen lacks the external models, which will be or are asked."""
        return self.listing is not None and self.listing.request.offline and self._follows

    @property
    def waited_for_models(self) -> float:
        """Seconds since external models were asked."""
        return 0.0 if self._models_since is None else time.monotonic() - self._models_since

    @property
    def tries_again(self) -> bool:
        return self._retry is not None

    @property
    def waited(self) -> float:
        """Seconds since the query was sent."""
        return time.monotonic() - self._since if self.is_waiting else 0.0

    @property
    def is_current(self) -> bool:
        return self.listing is not None and self.listing.request == self.request

    @property
    def queue(self) -> SearchQueue:
        """The queue for requests about the displayed ranking."""
        return self.queue_of(self.request if self.listing is None else self.listing.request)

    def queue_of(self, request: SearchRequest) -> SearchQueue:
        quick, slow, external = self._queues
        if self._searcher.recipe_of(request).external:
            return external
        return quick if self.is_quick(request) else slow

    def typed(self, query: SearchQuery) -> None:
        """Change the query at once or, after a fast key, when no key follows."""
        self.query, self._cursor, self._is_typed, self.error = query, 0, True, None
        self._wait()
        self._number += 1  # drops pending answers
        now = time.monotonic()
        is_slow, self._last_key = now - self._last_key > QUIET_SECONDS, now
        if is_slow and self._debounce is None:
            self.ask()
            return
        if self._debounce is not None:
            self._debounce.stop()
        self._debounce = self._screen.set_timer(QUIET_SECONDS, self.ask)

    def seek(self, query: SearchQuery, cursor: int = 0) -> None:
        self.query, self._cursor, self._is_typed, self.error = query, cursor, False, None
        self.ask()

    def ask_again(self) -> None:
        if self.is_current:
            self._cursor = self.rows.cursor
        self.ask()

    def stop(self) -> None:
        """Drop the ranking and pending requests."""
        self._cancel()
        self.listing = self.error = None
        self.is_waiting = self._is_fetching = False
        for queue in self._queues:
            queue.forget(SearchRequestKind.search)
            queue.forget(SearchRequestKind.page)

    def _cancel(self) -> None:
        for timer in (self._debounce, self._retry, self._rest, self._pause):
            if timer is not None:
                timer.stop()
        self._debounce = self._retry = self._rest = self._pause = None
        self._models_since = None
        self._follows = True
        self._rest_until = 0.0
        self._number += 1
        for queue in self._queues:
            queue.forget(SearchRequestKind.ids)
            queue.forget(SearchRequestKind.notes)

    def ask(self) -> None:
        self._cancel()
        self._wait()
        number, request, cursor = self._number, request_of(self.query), self._cursor
        if request.text.strip() and self._searcher.recipe_of(request).external:
            request = replace(request, offline=True)

        def failed(error: Exception) -> None:
            if number == self._number:
                self.is_waiting = False
                self._fail(error)

        queue = self.queue_of(request)
        for other in self._queues:
            if other is not queue:
                other.forget(SearchRequestKind.search)
        queue.ask(
            SearchRequestKind.search,
            lambda searcher: _first_listing(searcher, request, cursor),
            lambda listing: self._receive(number, listing, cursor),
            failed,
        )

    def _ask_models(self, cursor: int) -> None:
        """Rank with the external models; `cursor` is the one that the ranking without them was opened at."""
        number, request = self._number, request_of(self.query)
        self._models_since = time.monotonic()

        def work(searcher: TaskSearcher) -> Listing:
            listing = _first_listing(searcher, request, cursor)
            listing.ids = _first_ids(searcher, request)
            return listing

        def receive(listing: Listing) -> None:
            if number != self._number:
                return
            self._models_since, self._is_fetching = None, False
            result, place = self.rows.result, self.rows.cursor
            is_chosen = place != cursor or (self.rows.has_focus and not cursor)
            ids = listing.ids or ()
            if is_chosen and result is not None and result.hit.document_id in ids:
                place = ids.index(result.hit.document_id)
            self.listing = listing
            for queue in self._queues:
                queue.forget(SearchRequestKind.page)
            self._screen.show_complete(self, listing, place, is_chosen=is_chosen)

        def failed(error: Exception) -> None:
            if number == self._number:
                self._models_since, self._follows = None, False
                self._screen.show_incomplete(self, error)
                self._retry_later(error)

        self.queue_of(request).ask(SearchRequestKind.search, work, receive, failed)

    def fetch(self, indexes: range) -> None:
        """Fetch the missing pages at these indexes one by one."""
        listing = self.listing
        number = None if listing is None else listing.missing(indexes)
        if listing is None or number is None or self._is_fetching:
            return
        rest = self._rest_until - time.monotonic()
        if rest > 0:
            if self._rest is not None:
                self._rest.stop()
            self._rest = self._screen.set_timer(rest, lambda: self.fetch(indexes))
            return
        self._is_fetching = True
        request = listing.page_request(number)

        def receive(page: list[SearchResult]) -> None:
            self._is_fetching = False
            listing.pages[number] = page
            if listing is self.listing:
                self._screen.show_page(self, range(number * PAGE, (number + 1) * PAGE))

        def failed(error: Exception) -> None:
            self._is_fetching = False
            if listing is self.listing:
                self._fail(error)

        def work(searcher: TaskSearcher) -> list[SearchResult]:
            results = searcher.search(request)
            read_markup(results, self.rows.notation)
            return results

        self.queue_of(request).ask(SearchRequestKind.page, work, receive, failed)

    def _wait(self) -> None:
        if not self.is_waiting:
            self.is_waiting, self._since = True, time.monotonic()

    def _receive(self, number: int, listing: Listing, cursor: int) -> None:
        if number != self._number:
            return  # the query has changed
        self.is_waiting = False
        self._failures = 0
        self.listing, self.error = listing, None
        self._is_fetching = False
        now = time.monotonic()
        if cursor == 0 and now - self._last_key < TYPING_SECONDS:
            self._rest_until = now + REST_SECONDS
        for queue in self._queues:
            queue.forget(SearchRequestKind.page)
        self._screen.show_ranking(self, listing, cursor)
        if self._is_typed:
            self._pause = self._screen.set_timer(PAUSE_SECONDS, lambda: self._study(cursor))
        else:
            self._study(cursor)

    def _study(self, cursor: int) -> None:
        """Ask for more about the ranking than its hits, which was opened at a cursor."""
        listing = self.listing
        if listing is not None and listing.request.offline:
            self._ask_models(cursor)
        if self.rows.is_compared:
            self.ask_ids()
        if listing is not None and listing.request.text.strip() and not self.rows.is_second:
            self._ask_notes(listing)

    def ask_ids(self) -> None:
        """Read the ids of the first hits, to compare the ranking with another one."""
        listing = self.listing
        if listing is None:
            return

        def receive(ids: Sequence[str]) -> None:
            listing.ids = ids
            self._screen.show_moves()

        self.queue_of(listing.request).ask(
            SearchRequestKind.ids,
            lambda searcher: _first_ids(searcher, listing.request),
            receive,
            lambda _error: None,  # the hits are shown without moves
        )

    def _ask_notes(self, listing: Listing) -> None:
        number, request, total = self._number, listing.request, listing.total

        def receive(notes: QueryNotes) -> None:
            if number == self._number:
                self._screen.show_notes(notes)

        self.queue_of(request).ask(
            SearchRequestKind.notes,
            lambda searcher: searcher.notes(request, total),
            receive,
            lambda _error: None,  # the hits are shown without notes
        )

    def _fail(self, error: Exception) -> None:
        self.error = error
        self._screen.show_failure(self, error)
        self._retry_later(error)

    def _retry_later(self, error: Exception) -> None:
        if isinstance(error, EngineError) and self._retry is None:
            seconds = min(RETRY_SECONDS * 2 ** min(self._failures, 10), LONGEST_RETRY_SECONDS)
            self._failures += 1
            self._retry = self._screen.set_timer(seconds, self.ask_again)


def _first_listing(searcher: TaskSearcher, request: SearchRequest, cursor: int) -> Listing:
    """Return the hits of a request, with the first page and the one of the cursor."""
    first = cursor // PAGE
    answer = searcher.first_page(request)
    pages = {0: answer.results}
    if first:
        pages[first] = searcher.search(replace(request, first=first * PAGE))
    return Listing(request, answer.total, pages, searcher.is_ranked(request))


def _first_ids(searcher: TaskSearcher, request: SearchRequest) -> list[str]:
    return [hit.document_id for hit in searcher.ranking(request, COMPARED)]


@dataclass(frozen=True, slots=True)
class Position:
    """A query with the index of the hit under the cursor."""

    query: SearchQuery
    cursor: int


class PositionHistory:
    """The positions to go back and forward to."""

    def __init__(self) -> None:
        self._previous: list[Position] = []
        self._next: list[Position] = []

    def leave(self, position: Position) -> None:
        self._previous.append(position)
        self._next.clear()

    def back(self, position: Position) -> Position | None:
        return self._step(self._previous, self._next, position)

    def forward(self, position: Position) -> Position | None:
        return self._step(self._next, self._previous, position)

    @staticmethod
    def _step(source: list[Position], target: list[Position], position: Position) -> Position | None:
        if not source:
            return None
        target.append(position)
        return source.pop()
