"""What else can be sought on the search screen: with filters, another recipe, words from before, what is similar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from searchapp.app.facets import Facet, facets, toggled
from searchapp.app.past import Past
from searchapp.errors import EngineError
from searchapp.ranking.language import Filter
from searchapp.tui.palette import Offer
from searchapp.tui.picking import Choice, Picking
from searchapp.tui.search.asking import Kind
from searchapp.tui.search.facets import Filtering
from searchapp.tui.search.parts import SearchView
from searchapp.tui.search.searching import RETRY_SECONDS


class Choosing:
    """Seeks something else, chosen from what there is; `past` are the words that were searched for before."""

    def __init__(self, screen: SearchView, past: Past) -> None:
        self._screen = screen
        self._past = past
        self._filtering: Filtering | None = None

    def filter(self) -> None:
        if not self._screen.searcher.fields(self._screen.searching.sought.recipe).facets:
            self._screen.head.tell(
                f"the documents of {self._screen.searched.name} have no fields to filter by", "$warning"
            )
            return
        dialog = Filtering(lambda one: self._toggle(dialog, one), lambda: self._set_filters(dialog, ()))
        self._filtering = dialog
        self._screen.app.push_screen(dialog)
        self._count(dialog)

    def count_again(self) -> None:
        """Count in the documents as they are now, if the counts are in sight."""
        if self._filtering is not None and self._filtering.is_attached:
            self._count(self._filtering)

    def _toggle(self, dialog: Filtering, one: Filter) -> None:
        self._set_filters(dialog, toggled(self._screen.searching.sought.filters, one))

    def _set_filters(self, dialog: Filtering, filters: tuple[Filter, ...]) -> None:
        self._screen.seek(replace(self._screen.searching.sought, filters=filters))
        self._count(dialog)

    def _count(self, dialog: Filtering) -> None:
        """Count what filters would leave, and show that in a dialog."""
        request = self._screen.searching.sought.request

        def came(found: list[Facet]) -> None:
            if dialog.is_attached:
                dialog.show(found)

        def failed(error: Exception) -> None:
            self._screen.tell_error(error)
            if isinstance(error, EngineError):
                self._screen.set_timer(RETRY_SECONDS, again)

        def again() -> None:
            if dialog.is_attached and request == self._screen.searching.sought.request:
                self._count(dialog)

        self._screen.searching.asker_of(request).ask(
            Kind.counts, lambda searcher: facets(searcher, request), came, failed
        )

    def choose_recipe(self) -> None:
        names = self._screen.searcher.recipes
        now = self._screen.recipe
        choices = [
            Choice(name, self._screen.searcher.recipe(name).about, "●" if name == now else "○")
            for name in names
        ]

        def chosen(place: int | None) -> None:
            if place is not None:
                self.rank_with(names[place])

        self._screen.app.push_screen(
            Picking("Rank with", choices, names.index(now) if now in names else 0), chosen
        )

    def rank_with(self, recipe: str) -> None:
        """Rank what is sought with a recipe."""
        self._screen.seek(replace(self._screen.searching.sought, recipe=recipe))
        if not self._screen.searcher.recipe(recipe).is_one_query:
            self._screen.head.tell(f"{recipe} is being prepared …", lasts=False)

    def search_again(self, text: str) -> None:
        """Search for a text from before."""
        self._screen.leave_for(replace(self._screen.searching.sought, text=text, like=None, literal=False))

    def offers(self) -> Iterator[Offer]:
        """The recipes and the texts from before, for the palette."""
        searcher = self._screen.searcher
        for name in searcher.recipes:
            yield Offer(f"{name}  {searcher.recipe(name).about}", partial(self.rank_with, name), "recipe")
        for text in self._past.texts:
            yield Offer(text, partial(self.search_again, text), "searched")

    def recall(self) -> None:
        texts = self._past.texts
        if not texts:
            self._screen.head.tell(
                f"nothing was searched for in {self._screen.searched.name} before", "$warning"
            )
            return

        def chosen(place: int | None) -> None:
            if place is not None:
                self.search_again(texts[place])

        self._screen.app.push_screen(Picking("Searched for before", [Choice(text) for text in texts]), chosen)

    def like(self) -> None:
        result = self._screen.result()
        if result is None:
            return
        if not result.text.strip():
            self._screen.head.tell("this document has no words that others could have too", "$warning")
            return
        self._screen.leave_for(self._screen.searching.sought.of_document(result))
