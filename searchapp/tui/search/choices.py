"""What is chosen from lists: recipes, filters, past searches, saved searches by some of the letters of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from searchapp.app.saved_searches import (
    LastPosition,
    RecentSearches,
    SavedSearchFile,
    StoredSearch,
    last_position,
    store_position,
)
from searchapp.app.search import Facet, facets, toggled
from searchapp.errors import EngineError, SearchappError
from searchapp.ranking.query_language import FieldFilter
from searchapp.text import visible_line
from searchapp.tui.kit.background import SearchRequestKind
from searchapp.tui.kit.dialogs import Choice, Choose, Picking, WordsDialog
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.widgets import shortened
from searchapp.tui.search.panes import SearchView
from searchapp.tui.search.requests import RETRY_SECONDS, Sought

CHOSEN, NOT_CHOSEN = "●", "○"


class Filtering(Picking):
    """Chooses values; `toggle` is called with each, and what it changes comes with `show`."""

    def __init__(self, toggle: Callable[[FieldFilter], object], clear: Callable[[], object]) -> None:
        super().__init__("Only documents with", [])
        self._toggle = toggle
        self._clear = clear
        self._filters: list[FieldFilter] = []

    @property
    def hint(self) -> str:
        return "↵ choose, and again: drop    ^x drop all    esc done"

    def show(self, found: Sequence[Facet]) -> None:
        """Show values; those that are chosen are marked."""
        self._filters = [FieldFilter(one.field, value) for one in found for value, _count in one.values]
        width = max((len(f"{count:,}") for one in found for _value, count in one.values), default=0)
        self.replace(
            [
                Choice(
                    f"{one.field}: {value}",
                    f"{count:>{width},}",
                    CHOSEN if value in one.chosen else NOT_CHOSEN,
                )
                for one in found
                for value, count in one.values
            ]
        )

    def chosen(self, place: int) -> None:
        self._toggle(self._filters[place])

    def further(self) -> dict[str, Callable[[], object]]:
        return {"ctrl+x": self._clear}


class Choosing:
    """Seeks something else, chosen from what there is; `past` are the words that were searched for before."""

    def __init__(self, screen: SearchView, past: RecentSearches) -> None:
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

    def _toggle(self, dialog: Filtering, one: FieldFilter) -> None:
        self._set_filters(dialog, toggled(self._screen.searching.sought.filters, one))

    def _set_filters(self, dialog: Filtering, filters: tuple[FieldFilter, ...]) -> None:
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
            SearchRequestKind.counts, lambda searcher: facets(searcher, request), came, failed
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


LONGEST = 200
"""Characters of a name that are looked at."""


def spread(letters: str, name: str) -> int | None:
    """The characters of a name from the first of some letters to the last, in their order; None without them.

    Textual has a search of this kind, which tries all places that a letter could have: in a long name that takes for
    ever.

    >>> spread("nsg", "normal subgroups"), spread("sub", "normal subgroups"), spread("gn", "normal subgroups")
    (11, 3, None)
    """
    name = name[:LONGEST].lower()
    end = -1
    for letter in letters.lower():
        end = name.find(letter, end + 1)
        if end < 0:
            return None
    begin = end + 1  # as near to the end as they can begin
    for letter in reversed(letters.lower()):
        begin = name.rfind(letter, 0, begin)
    return end - begin + 1


class FuzzyPicking(Picking):
    """A list that a few letters leave the best of: first what has all the words, then what has the letters in order."""

    def fitting(self, words: str) -> Sequence[int]:
        whole = super().fitting(words)
        letters = "".join(words.split())
        has_words = set(whole)
        spreads = {
            place: found
            for place, one in enumerate(self.choices)
            if place not in has_words and (found := spread(letters, one.name)) is not None
        }
        return [*whole, *sorted(spreads, key=lambda place: spreads[place])]


NAME_CELLS = 40


def kept(sought: Sought) -> StoredSearch:
    """What is sought, to be kept."""
    return StoredSearch(sought.text, sought.recipe, sought.filters, sought.like, sought.literal)


def sought_again(search: StoredSearch) -> Sought:
    """What was kept, to be sought."""
    return Sought(search.text, search.recipe, search.filters, search.like, search.literal)


def described(search: StoredSearch) -> str:
    """A search in a line: its words, the recipe and the filters."""
    words = search.text if search.like is None else f"like {search.like}"
    filters = [f"{one.field}: {one.value}" for one in search.filters]
    return " · ".join(filter(None, (visible_line(words), search.recipe, *filters)))


class SavedSearches(FuzzyPicking):
    """Chooses a saved search; `delete` is called with one to delete."""

    def __init__(self, searches: Sequence[tuple[str, StoredSearch]], delete: Callable[[str], object]) -> None:
        super().__init__("Saved searches", _choices(searches))
        self._names = [name for name, _search in searches]
        self._delete = delete

    @property
    def hint(self) -> str:
        return "↑↓ move    ↵ open    ^x delete    esc back"

    def show(self, searches: Sequence[tuple[str, StoredSearch]]) -> None:
        """Show these from now on."""
        self._names = [name for name, _search in searches]
        self.replace(_choices(searches))

    def further(self) -> dict[str, Callable[[], object]]:
        return {"ctrl+x": self._ask}

    def _ask(self) -> None:
        place = self.place
        if place is None:
            return
        name = self._names[place]

        def answer(key: str | None) -> None:
            if key == "y":
                self._delete(name)

        question = f"Delete the saved search {shortened(name, NAME_CELLS)}?"
        self.app.push_screen(Choose(question, [("y", "Yes"), ("n", "No")]), answer)


def _choices(searches: Sequence[tuple[str, StoredSearch]]) -> list[Choice]:
    return [Choice(name, described(search)) for name, search in searches]


class Keeping:
    """Saves searches, opens them again, and the screen where it was left."""

    def __init__(self, screen: SearchView, home: Path) -> None:
        self._screen = screen
        self._home = home
        self._saved = SavedSearchFile(home, screen.searched.name)
        self._lost = ""
        self._restored: LastPosition | None = None

    # Saved searches

    def save(self) -> None:
        """Ask for a name, and save what is sought under it."""
        search = kept(self._screen.searching.sought)
        if not search.text.strip() and not search.filters:
            self._screen.head.tell("there is nothing to save: type what to search for", "$warning")
            return
        self._screen.app.push_screen(
            WordsDialog("Save this search as"), lambda name: self._save_as(name, search) if name else None
        )

    def _save_as(self, name: str, search: StoredSearch) -> None:
        before = self._saved.searches().get(name)
        if before is None or before == search:
            self._save(name, search)
            return
        question = f"{shortened(name, NAME_CELLS)} is saved already: {described(before)}. Save this one in its place?"
        self._screen.app.push_screen(
            Choose(question, [("y", "Yes"), ("n", "No")]),
            lambda key: self._save(name, search) if key == "y" else None,
        )

    def _save(self, name: str, search: StoredSearch) -> None:
        try:
            self._saved.save(name, search)
        except SearchappError as error:
            self._screen.tell_error(error)
        else:
            opens = self._screen.keys.shown("saved")
            words = f"saved as {shortened(name, NAME_CELLS)}: {opens} opens it"
            self._screen.head.tell(words, "$success")

    def open(self) -> None:
        """Offer the saved searches."""
        searches = [*self._saved.searches().items()]
        if not searches:
            saves = self._screen.keys.shown("save")
            self._screen.head.tell(
                f"no search of {self._screen.searched.name} is saved: {saves} saves the present one",
                "$warning",
            )
            return

        def chosen(place: int | None) -> None:
            if place is not None:
                self._screen.leave_for(self._possible(sought_again(searches[place][1])))

        def delete(name: str) -> None:
            try:
                self._saved.delete(name)
            except SearchappError as error:
                self._screen.tell_error(error)
            searches[:] = self._saved.searches().items()
            dialog.show(searches)

        dialog = SavedSearches(searches, delete)
        self._screen.app.push_screen(dialog, chosen)

    # Where the screen is left

    def restore(self) -> bool:
        """Go where the screen of this task was left; whether that is known."""
        last = last_position(self._home, self._screen.searched.name)
        if last is None:
            return False
        self._restored = last
        self._screen.seek(self._possible(sought_again(last.search)), last.cursor)
        if last.cells == self._screen.app.size.width and last.widths:
            # Widths that were chosen are dropped when the screen gets its size, which it does now.
            self._screen.call_after_refresh(lambda: self._set_widths(last.widths))
        return True

    def _set_widths(self, widths: Mapping[str, int]) -> None:
        self._screen.panes.widths = widths

    def keep(self) -> None:
        """Keep where the screen is left."""
        widths, cells = self._screen.panes.widths, self._screen.app.size.width
        search = kept(self._screen.searching.sought)
        cursor = self._screen.hits.cursor
        if not self._screen.searching.is_current:  # nobody has waited for the hits
            restored = self._restored
            cursor = restored.cursor if restored is not None and restored.search == search else 0
        position = LastPosition(search, cursor, cells, widths)
        store_position(self._home, self._screen.searched.name, position)

    def lost(self) -> str:
        """What could not be sought of what was kept, for those who see the hits; it is said once."""
        lost, self._lost = self._lost, ""
        return lost

    def _possible(self, sought: Sought) -> Sought:
        """What was sought, without a recipe and filters that are no longer there."""
        searcher, gone = self._screen.searcher, []
        if sought.recipe is not None and sought.recipe not in searcher.recipes:
            gone.append(f"the recipe {shortened(sought.recipe, NAME_CELLS)}")
            sought = replace(sought, recipe=None)
        known = searcher.fields(sought.recipe).facets
        filters = tuple(one for one in sought.filters if one.field in known)
        if filters != sought.filters:
            gone.append("a filter")
        self._lost = f"{' and '.join(gone)} of this search can't be used any more" if gone else ""
        return replace(sought, filters=filters)
