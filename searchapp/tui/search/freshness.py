"""Whether the ranking in sight is that of what is sought, and of the index that serves; and if not, why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from searchapp.app.search import Searcher
from searchapp.engines.base import IndexInfo
from searchapp.errors import SearchappError
from searchapp.ranking.language import BrokenQuery
from searchapp.tasks.base import Task
from searchapp.tui.background import Post
from searchapp.tui.content import entitle
from searchapp.tui.head import Banner
from searchapp.tui.search.asking import Asker, Kind
from searchapp.tui.search.hits import HitRows
from searchapp.tui.search.learning import Learning
from searchapp.tui.search.searching import Searching

LOOK_SECONDS = 1.0
"""How often it is looked how long an answer takes."""

SLOW_SECONDS = 1.5
"""After which an answer is late, and the ranking in sight is called one from before."""

LOOKS = 3
"""Every how manyth time the engine is asked whether another version of the index serves, while nobody asks else."""

FROM_BEFORE = "the hits below are those from before"
NONE_YET = "there are no hits yet"


def title_of(task: Task, info: IndexInfo) -> str:
    """What the first line of the screen begins with."""
    return f"{task.name} · {info.documents:,} documents"


class Shown(Protocol):
    """The screen that shows the ranking, as far as this part asks it."""

    searched: Task
    searching: Searching
    quick: Asker
    slow: Asker
    learning: Learning
    hits: HitRows
    error: Exception | None

    @property
    def head(self) -> Banner: ...
    def forget_documents(self) -> None:
        """Show nothing any more that comes from the documents of another version of the index."""

    def draw_sought(self) -> None:
        """Show what is sought, and what is wrong with that."""


class Freshness:
    """Sees to it that nobody takes an old ranking for a new one."""

    def __init__(self, screen: Shown, info: IndexInfo) -> None:
        self._screen = screen
        self._info = info
        self._news = ""
        self._title = "Hits"
        self._looks = 0
        self._was_old = False

    def asker(self, name: str, searcher: Callable[[], Searcher], post: Post, later: Callable[..., object],
              other: Callable[[], Asker], lanes: int) -> Asker:  # fmt: skip
        """An asker that notices when the index is built again; the `other` one is told."""
        return Asker(
            name,
            searcher,
            post,
            later,
            lanes=lanes,
            replaced=lambda: self._replaced(other()),
            opened=self._opened,
        )

    @property
    def is_old(self) -> bool:
        """Whether the ranking in sight is not that of what is sought, because the engine fails or is slow."""
        error = self._screen.error
        is_trouble = error is not None and not isinstance(error, BrokenQuery)
        return is_trouble or self._screen.searching.waited >= SLOW_SECONDS

    @property
    def words(self) -> str:
        """That the ranking is old, if it is."""
        if not self.is_old or not (self.is_late or isinstance(self._screen.error, SearchappError)):
            return ""
        return NONE_YET if self._screen.searching.listing is None else FROM_BEFORE

    @property
    def is_late(self) -> bool:
        return self._screen.searching.waited >= SLOW_SECONDS

    def begun(self) -> None:
        """Something else is searched for: what was said until now goes when it is found."""
        self._screen.head.lasts = False

    def found(self, title: str) -> None:
        """There is another ranking, of this title; tell the news of the index, if there is any."""
        self._title = title
        head = self._screen.head
        if not head.lasts:
            head.tell(self._news, "$primary", lasts=False)
        elif self._news:
            head.tell(self._news, "$primary", add=True, lasts=False)
        self._news = ""

    def draw(self) -> None:
        """Mark the ranking if it is old."""
        self._was_old = self.is_old
        entitle(self._screen.hits, self.title)

    @property
    def title(self) -> str:
        """What the ranking is, and whether it is old."""
        has_hits = self._screen.searching.listing is not None
        return f"From before: {self._title}" if self._was_old and has_hits else self._title

    def look(self) -> None:
        """Say how long an answer takes that is late; if nobody asks, look whether another version serves."""
        searching = self._screen.searching
        if self.is_late:
            if not self._screen.learning.is_at_work:
                self._screen.head.tell(
                    f"no answer for {int(searching.waited)} s yet", "$warning", lasts=False
                )
            if not self._was_old:
                self._screen.draw_sought()
            return
        self._looks += 1
        is_resting = not searching.is_waiting and self._screen.error is None and self._screen.quick.is_idle
        if is_resting and self._looks % LOOKS == 0:
            self._screen.quick.ask(
                Kind.version,
                lambda searcher: searcher.require_serving(),
                lambda _nothing: None,
                lambda _error: None,  # what is searched for next says it
            )

    def _replaced(self, other: Asker) -> None:
        """The version that was asked is gone: search in the one that serves."""
        other.renew()
        self._screen.searching.ask_again()

    def _opened(self, info: IndexInfo) -> None:
        """Another version is asked from now on."""
        if info == self._info:
            return
        self._info = info
        self._news = f"the index was built again: the hits are those of {info.version} from now on"
        self._screen.head.retitle(title_of(self._screen.searched, info))
        self._screen.forget_documents()
        if not self._screen.searching.is_waiting:
            self._screen.searching.ask_again()
