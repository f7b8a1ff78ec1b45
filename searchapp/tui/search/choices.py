"""Choose queries from lists: recipes, filters, recent and saved searches; restore the screen's last
position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from searchapp.app.saved_searches import (
    LastPosition,
    RecentSearches,
    SavedSearchFile,
    SearchQuery,
    last_position,
    store_position,
)
from searchapp.app.search import Facet, facets, toggle_filter
from searchapp.errors import EngineError, SearchappError
from searchapp.ranking.query_language import FieldFilter
from searchapp.text import visible_line
from searchapp.tui.kit.background import SearchRequestKind
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.dialogs import Choice, Choose, Picking, WordsDialog
from searchapp.tui.kit.palette import Offer
from searchapp.tui.kit.widgets import shortened
from searchapp.tui.search.panes import SearchView
from searchapp.tui.search.requests import RETRY_SECONDS, similar_query

CHOSEN, NOT_CHOSEN = "●", "○"


class FilterDialog(Picking):
    """Chooses filters, and shows their counts."""

    def __init__(self, toggle: Callable[[FieldFilter], object], clear: Callable[[], object]) -> None:
        super().__init__("Only documents with", [])
        self._toggle = toggle
        self._clear = clear
        self._filters: list[FieldFilter] = []

    @property
    def hint(self) -> str:
        return "↵ choose or drop    ^x drop all    esc done"

    def show(self, facets: Sequence[Facet]) -> None:
        values = [(facet, value, count) for facet in facets for value, count in facet.values]
        self._filters = [FieldFilter(facet.field, value) for facet, value, _count in values]
        width = max((len(f"{count:,}") for _facet, _value, count in values), default=0)
        self.replace(
            [
                Choice(
                    f"{facet.field}: {value}",
                    f"{count:>{width},}",
                    CHOSEN if value in facet.chosen else NOT_CHOSEN,
                )
                for facet, value, count in values
            ]
        )

    def chosen(self, index: int) -> None:
        self._toggle(self._filters[index])

    def key_actions(self) -> dict[str, Callable[[], object]]:
        return {"ctrl+x": self._clear}


class QueryChoices:
    """Changes the query by choices from lists."""

    def __init__(self, screen: SearchView, recent: RecentSearches) -> None:
        self._screen = screen
        self._recent = recent
        self._dialog: FilterDialog | None = None
        # The error of the last count.
        self._count_error: Exception | None = None

    @property
    def _query(self) -> SearchQuery:
        return self._screen.loader.query

    def filter(self) -> None:
        if not self._screen.searcher.fields(self._query.recipe).facets:
            name = self._screen.searched.name
            self._screen.head.tell(f"the documents of {name} have no fields to filter by", "$warning")
            return
        dialog = FilterDialog(
            lambda chosen: self._set_filters(dialog, toggle_filter(self._query.filters, chosen)),
            lambda: self._set_filters(dialog, ()),
        )
        self._dialog = dialog
        self._screen.app.push_screen(dialog)
        self._count(dialog)

    def count_again(self) -> None:
        if self._dialog is not None and self._dialog.is_attached:
            self._count(self._dialog)

    def _set_filters(self, dialog: FilterDialog, filters: tuple[FieldFilter, ...]) -> None:
        self._screen.seek(replace(self._query, filters=filters))
        self._count(dialog)

    def _count(self, dialog: FilterDialog) -> None:
        query, request = self._query, self._screen.loader.request

        def receive(counts: list[Facet]) -> None:
            self._count_error = None
            self._screen.head.clear_ended()
            if dialog.is_attached:
                dialog.show(counts)

        def failed(error: Exception) -> None:
            self._count_error = error
            head, holds = self._screen.head, lambda: self._count_error is error
            head.show_state(error_text(error), "$error", holds=holds)
            if isinstance(error, EngineError):
                self._screen.set_timer(RETRY_SECONDS, retry)

        def retry() -> None:
            if dialog.is_attached and query == self._query:
                self._count(dialog)

        self._screen.loader.queue_of(request).ask(
            SearchRequestKind.counts, lambda searcher: facets(searcher, request), receive, failed
        )

    def choose_recipe(self) -> None:
        self._choose("Rank with", self._screen.recipe, self.rank_with)

    def choose_second(self) -> None:
        """Choose the recipe of a second ranking, beside that of the query."""
        first, second = self._screen.loaders
        self._choose(
            f"Beside {shortened(first.recipe, NAME_CELLS)}, rank with", second.recipe, self._rank_beside
        )

    def _choose(self, title: str, present: str, then: Callable[[str], object]) -> None:
        searcher = self._screen.searcher
        names = searcher.recipes
        choices = [
            Choice(name, searcher.recipe(name).about, CHOSEN if name == present else NOT_CHOSEN)
            for name in names
        ]

        cursor = names.index(present) if present in names else 0
        self._screen.pick(Picking(title, choices, cursor), lambda index: then(names[index]))

    def rank_with(self, recipe: str) -> None:
        self._screen.seek(replace(self._query, recipe=recipe))
        self._prepare(recipe)

    def _rank_beside(self, recipe: str) -> None:
        self._screen.split(recipe)
        self._prepare(recipe)

    def _prepare(self, recipe: str) -> None:
        if not self._screen.searcher.recipe(recipe).is_one_query:
            loaders = self._screen.loaders
            is_waiting = lambda: any(loader.is_waiting for loader in loaders)  # noqa: E731
            self._screen.head.show_state(f"preparing {recipe} …", holds=is_waiting)

    def search_again(self, text: str) -> None:
        self._screen.leave_for(replace(self._query, text=text, like=None, literal=False))

    def offers(self) -> Iterator[Offer]:
        searcher = self._screen.searcher
        for name in searcher.recipes:
            yield Offer(f"{name}  {searcher.recipe(name).about}", partial(self.rank_with, name), "recipe")
        for text in self._recent.texts:
            yield Offer(text, partial(self.search_again, text), "searched")

    def recall(self) -> None:
        texts = self._recent.texts
        if not texts:
            name = self._screen.searched.name
            self._screen.head.tell(f"no recent queries in {name}", "$warning")
            return
        dialog = Picking("Recent queries", [Choice(text) for text in texts])
        self._screen.pick(dialog, lambda index: self.search_again(texts[index]))

    def like(self) -> None:
        result = self._screen.result()
        if result is None:
            return
        if not result.text.strip():
            self._screen.head.tell("this document has no text to compare others with", "$warning")
            return
        self._screen.leave_for(similar_query(self._query, result))


# Maximum characters of a name that are matched.
LONGEST = 200


def spread(letters: str, name: str) -> int | None:
    """Return the length of the shortest part of a name with all letters in order, or None.

    Textual's fuzzy search tries every position of every letter, which is slow for long names.

    >>> spread("nsg", "normal subgroups"), spread("sub", "normal subgroups"), spread("gn", "normal subgroups")
    (11, 3, None)
    """
    name = name[:LONGEST].lower()
    end = -1
    for letter in letters.lower():
        end = name.find(letter, end + 1)
        if end < 0:
            return None
    begin = end + 1
    for letter in reversed(letters.lower()):
        begin = name.rfind(letter, 0, begin)
    return end - begin + 1


class FuzzyPicking(Picking):
    """A list filtered by words, then by letters in order."""

    def fitting(self, words: str) -> Sequence[int]:
        with_words = super().fitting(words)
        letters = "".join(words.split())
        spreads = {
            index: length
            for index, choice in enumerate(self.choices)
            if index not in with_words and (length := spread(letters, choice.name)) is not None
        }
        return [*with_words, *sorted(spreads, key=spreads.__getitem__)]


NAME_CELLS = 40
YES_NO = (("y", "Yes"), ("n", "No"))


def describe(query: SearchQuery) -> str:
    """Return words, recipe and filters of a query in a line."""
    words = query.text if query.like is None else f"like {query.like}"
    filters = [f"{chosen.field}: {chosen.value}" for chosen in query.filters]
    return " · ".join(filter(None, (visible_line(words), query.recipe, *filters)))


class SavedQueryDialog(FuzzyPicking):
    """Chooses a saved search; `delete` receives the name of one to delete."""

    def __init__(self, searches: Sequence[tuple[str, SearchQuery]], delete: Callable[[str], object]) -> None:
        super().__init__("Saved searches", _choices(searches))
        self._names = [name for name, _search in searches]
        self._delete = delete

    @property
    def hint(self) -> str:
        return "↑↓ move    ↵ open    ^x delete    esc back"

    def show(self, searches: Sequence[tuple[str, SearchQuery]]) -> None:
        self._names = [name for name, _search in searches]
        self.replace(_choices(searches))

    def key_actions(self) -> dict[str, Callable[[], object]]:
        return {"ctrl+x": self._ask}

    def _ask(self) -> None:
        index = self.index
        if index is None:
            return
        name = self._names[index]

        def answer(key: str | None) -> None:
            if key == "y":
                self._delete(name)

        self.app.push_screen(
            Choose(f"Delete the saved search {shortened(name, NAME_CELLS)}?", YES_NO), answer
        )


def _choices(searches: Sequence[tuple[str, SearchQuery]]) -> list[Choice]:
    return [Choice(name, describe(search)) for name, search in searches]


class SavedQueries:
    """Saves and opens searches, and restores the last position."""

    def __init__(self, screen: SearchView, home: Path) -> None:
        self._screen = screen
        self._home = home
        self._saved = SavedSearchFile(home, screen.searched.name)
        self._lost = ""
        self._restored: LastPosition | None = None

    def save(self) -> None:
        query = self._screen.loader.query
        if not query.text.strip() and not query.filters:
            self._screen.head.tell("nothing to save: type a query first", "$warning")
            return
        self._screen.app.push_screen(
            WordsDialog("Save this search as"), lambda name: self._save_as(name, query) if name else None
        )

    def _save_as(self, name: str, query: SearchQuery) -> None:
        before = self._saved.searches().get(name)
        if before is None or before == query:
            self._save(name, query)
            return
        question = f"{shortened(name, NAME_CELLS)} already exists: {describe(before)}. Replace it?"
        self._screen.app.push_screen(
            Choose(question, YES_NO),
            lambda key: self._save(name, query) if key == "y" else None,
        )

    def _save(self, name: str, query: SearchQuery) -> None:
        try:
            self._saved.save(name, query)
        except SearchappError as error:
            self._screen.tell_error(error)
        else:
            opens = self._screen.keys.shown("saved")
            words = f"saved as {shortened(name, NAME_CELLS)}: {opens} opens it"
            self._screen.head.tell(words, "$success")

    def open(self) -> None:
        searches = [*self._saved.searches().items()]
        if not searches:
            name, key = self._screen.searched.name, self._screen.keys.shown("save")
            self._screen.head.tell(f"no saved searches in {name}: {key} saves this one", "$warning")
            return

        def delete(name: str) -> None:
            try:
                self._saved.delete(name)
            except SearchappError as error:
                self._screen.tell_error(error)
            searches[:] = self._saved.searches().items()
            dialog.show(searches)

        dialog = SavedQueryDialog(searches, delete)
        self._screen.pick(dialog, lambda index: self._screen.leave_for(self._usable(searches[index][1])))

    # The last position

    def restore(self) -> bool:
        """Go to the last position of this task, if any."""
        last = last_position(self._home, self._screen.searched.name)
        if last is None:
            return False
        self._restored = last
        self._screen.seek(self._usable(last.search), last.cursor)
        if last.cells == self._screen.app.size.width and last.widths:
            # The screen drops chosen widths when it gets its size, so set them afterwards.
            self._screen.call_after_refresh(setattr, self._screen.panes, "widths", last.widths)
        return True

    def keep_position(self) -> None:
        widths, cells = self._screen.panes.widths, self._screen.app.size.width
        query, cursor = self._screen.loader.query, self._screen.hits.cursor
        if not self._screen.loader.is_current:  # the screen was left before the hits arrived
            restored = self._restored
            cursor = restored.cursor if restored is not None and restored.search == query else 0
        store_position(self._home, self._screen.searched.name, LastPosition(query, cursor, cells, widths))

    def pop_lost(self) -> str:
        """Return, once, the sentence about lost parts of a saved query."""
        lost, self._lost = self._lost, ""
        return lost

    def _usable(self, query: SearchQuery) -> SearchQuery:
        searcher, lost = self._screen.searcher, []
        if query.recipe is not None and query.recipe not in searcher.recipes:
            lost.append(f"the recipe {shortened(query.recipe, NAME_CELLS)}")
            query = replace(query, recipe=None)
        known = searcher.fields(query.recipe).facets
        filters = tuple(chosen for chosen in query.filters if chosen.field in known)
        if filters != query.filters:
            lost.append("a filter")
        self._lost = f"this saved search lost {' and '.join(lost)}: no longer available" if lost else ""
        return replace(query, filters=filters)
