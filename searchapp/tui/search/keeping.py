"""Searches that outlast the session: those that are saved under a name, and where the screen is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from searchapp.app.kept_searches import KeptSearch, LastPosition, Saved, keep_position, last_position
from searchapp.errors import SearchappError
from searchapp.tui.dialogs import Choose, Words
from searchapp.tui.fuzzy import FuzzyPicking
from searchapp.tui.picking import Choice
from searchapp.tui.rows import shortened
from searchapp.tui.search.parts import SearchView
from searchapp.tui.search.searching import Sought
from searchapp.visible import visible_line

NAME_CELLS = 40


def kept(sought: Sought) -> KeptSearch:
    """What is sought, to be kept."""
    return KeptSearch(sought.text, sought.recipe, sought.filters, sought.like, sought.literal)


def sought_again(search: KeptSearch) -> Sought:
    """What was kept, to be sought."""
    return Sought(search.text, search.recipe, search.filters, search.like, search.literal)


def described(search: KeptSearch) -> str:
    """A search in a line: its words, the recipe and the filters."""
    words = search.text if search.like is None else f"like {search.like}"
    filters = [f"{one.field}: {one.value}" for one in search.filters]
    return " · ".join(filter(None, (visible_line(words), search.recipe, *filters)))


class SavedSearches(FuzzyPicking):
    """Chooses a saved search; `delete` is called with one to delete."""

    def __init__(self, searches: Sequence[tuple[str, KeptSearch]], delete: Callable[[str], object]) -> None:
        super().__init__("Saved searches", _choices(searches))
        self._names = [name for name, _search in searches]
        self._delete = delete

    @property
    def hint(self) -> str:
        return "↑↓ move    ↵ open    ^x delete    esc back"

    def show(self, searches: Sequence[tuple[str, KeptSearch]]) -> None:
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


def _choices(searches: Sequence[tuple[str, KeptSearch]]) -> list[Choice]:
    return [Choice(name, described(search)) for name, search in searches]


class Keeping:
    """Saves searches, opens them again, and the screen where it was left."""

    def __init__(self, screen: SearchView, home: Path) -> None:
        self._screen = screen
        self._home = home
        self._saved = Saved(home, screen.searched.name)
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
            Words("Save this search as"), lambda name: self._save_as(name, search) if name else None
        )

    def _save_as(self, name: str, search: KeptSearch) -> None:
        before = self._saved.searches().get(name)
        if before is None or before == search:
            self._save(name, search)
            return
        question = f"{shortened(name, NAME_CELLS)} is saved already: {described(before)}. Save this one in its place?"
        self._screen.app.push_screen(
            Choose(question, [("y", "Yes"), ("n", "No")]),
            lambda key: self._save(name, search) if key == "y" else None,
        )

    def _save(self, name: str, search: KeptSearch) -> None:
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
        keep_position(self._home, self._screen.searched.name, position)

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
