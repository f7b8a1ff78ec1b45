"""A ranking of any length, of which only the pages are there that somebody has come by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from searchapp.app.search import SearchRequest
from searchapp.ranking.search import SearchResult

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
