"""The panes of the search screen: the words and what is wrong with them, the hits, the document.

`SearchView` is what the parts of the screen may ask of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.style import Style

from searchapp.app.inspection.pages import Page, page_of, stands_in_text, with_neighbours
from searchapp.app.search import SearchRequest, SolvedTopic, SolvedTopicIndex, TaskSearcher, solved_topics
from searchapp.judging.events import grade_label
from searchapp.judging.view import Opinion
from searchapp.model import Hit, Markup, Topic
from searchapp.ranking.highlighting import ELLIPSIS, Span, snippet
from searchapp.ranking.query_language import BrokenQuery, FieldFilter
from searchapp.ranking.search_results import SearchResult
from searchapp.tasks.base import Task, TaskInfo
from searchapp.text import counted, visible_line, visible_spans
from searchapp.tui.kit import descriptions
from searchapp.tui.kit.background import BackgroundQueue, Post, SearchQueue, SearchRequestKind
from searchapp.tui.kit.content import Content, Form, Notation, Plain, entitle
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.dialogs import Choice, Picking, TextDialog
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.kit.widgets import RowList, RowPart, TextLine, TextPane, fitted, one_line, shortened
from searchapp.tui.search.requests import Listing, Searching, Sought

READ, WINDOW = 640, 480
"""Of a longer text only about this many characters are looked at for a line, those with the most matches: as it is
written, and as it is shown."""

_LEAD = 120
"""Characters before the first match that are among them."""

_ID_CELLS = 14
_SCORE_FROM = 52
"""Scores are shown in a list that is at least this wide."""

_IDS_FROM = 36


@dataclass(frozen=True, slots=True)
class Marked:
    """A hit that is to be compared with another one: of which ranking, at which rank."""

    request: SearchRequest
    place: tuple[int, Hit]


Mark = Callable[[str], RowPart]
"""What was said of a document, in a sign."""


class HitRows(RowList):
    """The hits: what was said of each, its rank, its id, a piece of it with what matches, and its score."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--match", "rows--rank", "rows--zero", "rows--some", "rows--most", "rows--aside",
    }  # fmt: skip

    class Wanted(Message):
        """A line is in sight whose hit is not there."""

    def __init__(self, mark: Mark, markup: Markup) -> None:
        super().__init__(id="hits")
        self.listing = Listing(SearchRequest(""))
        self.notation = Notation(markup)
        self._mark = mark
        self.marked: Marked | None = None
        self._mark_cells = 0
        self._lines: dict[int, Sequence[RowPart]] = {}
        self._width = 0
        self._id_cells = 0
        self._is_wanted = False

    def open(self, listing: Listing, cursor: int, mark_cells: int) -> None:
        """Show another ranking; marks of documents take this many cells, 0 where there are none."""
        self.listing = listing
        self._mark_cells = mark_cells
        self._id_cells = 0
        self._forget()
        self.show(listing.total, cursor)

    def page_came(self, places: range) -> None:
        """Draw what is there by now."""
        self._is_wanted = False
        for place in self.visible_places:
            if place in places:
                self.redraw(place)

    def show_in(self, notation: Notation) -> None:
        """Show texts in another form."""
        self.notation = notation
        self._forget()
        self.refresh()

    def mark_place(self, result: SearchResult | None) -> None:
        """Mark a hit to be compared, or none any more."""
        self.marked = None if result is None else Marked(self.listing.request, (result.rank, result.hit))
        self.refresh()

    @property
    def _marked_rank(self) -> int | None:
        is_here = self.marked is not None and self.marked.request is self.listing.request
        return self.marked.place[0] if self.marked is not None and is_here else None

    @property
    def result(self) -> SearchResult | None:
        """The hit that the cursor is on."""
        return self.listing.hit(self.cursor) if self.count else None

    def parts(self, place: int, width: int) -> Sequence[RowPart]:
        if width != self._width:
            self._width = width
            self._lines.clear()
        result = self.listing.hit(place)
        sign = "◆" if place + 1 == self._marked_rank else "▶" if place == self.cursor else " "
        pointer = (sign, "rows--begun")
        digits = max(3, len(f"{self.count:,}"))
        rank = (f"{place + 1:>{digits},} ", "rows--rank")
        if result is None:
            self._want()
            return [pointer, rank, ("…", "rows--faint")]
        if place not in self._lines:
            self._lines[place] = self._parts(result, width - digits - 2 - self._marked_cells)
        mark: Sequence[RowPart] = ()
        if self._mark_cells:
            sign, look = self._mark(result.hit.document_id)
            mark = [(f"{sign:>{self._mark_cells}} ", look)]
        return [pointer, *mark, rank, *self._lines[place]]

    @property
    def _marked_cells(self) -> int:
        return self._mark_cells + 1 if self._mark_cells else 0

    def _parts(self, result: SearchResult, cells: int) -> list[RowPart]:
        """The id, the piece of text and the score, in this many cells."""
        parts: list[RowPart] = []
        score = f" {result.hit.score:>9,.3f} " if cells >= _SCORE_FROM else " "
        left = cells - len(score)
        if cells >= _IDS_FROM:
            width = self._id_width()
            parts.append((_id(result.hit.document_id, width) + "  ", "rows--faint"))
            left -= width + 2
        parts += piece(result.text, result.matches, left, self.notation)
        parts.append((score, "rows--rank"))
        return parts

    def _id_width(self) -> int:
        """The cells of ids: what those of the first page take, whichever others are there, but no more than a few."""
        if not self._id_cells:
            ids = [one.hit.document_id for one in self.listing.pages.get(0, ())]
            self._id_cells = min(_ID_CELLS, max((cell_len(visible_line(one)) for one in ids), default=1))
        return self._id_cells

    def _want(self) -> None:
        if not self._is_wanted:
            self._is_wanted = True
            self.post_message(self.Wanted())

    def _forget(self) -> None:
        self._lines.clear()
        self._is_wanted = False


def prepare(results: Sequence[SearchResult], notation: Notation) -> None:
    """Read the markup that lines of these hits will show, which takes most of the time to draw them, ahead of that.

    Any thread may do so: what a text looks like is kept.
    """
    for one in results:
        notation.rewritten(_window(one.text, one.matches, READ)[0])


def _id(document_id: str, cells: int) -> str:
    """An id in exactly so many cells: of a long one the end, by which ids differ.

    >>> _id("valley_governors:16", 10), _id("7", 3)
    ('…ernors:16', '7  ')
    """
    shown = visible_line(document_id)
    if cell_len(shown) > cells:
        while cell_len(shown) >= cells:
            shown = shown[1:]
        shown = f"…{shown}"
    return fitted(shown, cells)


def piece(text: str, matches: Sequence[Span], cells: int, notation: Notation) -> list[RowPart]:
    """A piece of a text in exactly so many cells, with what matches in it."""
    if cells <= 0:
        return []
    text, spans = _window(text, matches, READ)
    found = notation.rewritten(text)
    text, spans = _window(found.text, found.moved(spans), WINDOW)
    shown, marked = visible_spans(*snippet(text, spans, cells))
    parts: list[RowPart] = []
    left, last = cells, 0
    for start, end, look in [*((*span, "rows--match") for span in marked), (len(shown), len(shown), "")]:
        for words, part_look in ((shown[last:start], "rows--text"), (shown[start:end], look)):
            if words and left > 0:
                words = words if cell_len(words) <= left else fitted(words, left)
                parts.append((words, part_look))
                left -= cell_len(words)
        last = max(last, end)
    parts.append((" " * left, "rows--text"))
    return parts


def _window(text: str, matches: Sequence[Span], length: int) -> tuple[str, list[Span]]:
    """The part of a long text that has the most matches, about so many characters of it, and those."""
    if len(text) <= length:
        return text, list(matches)
    begin, most, last = 0, 0, 0
    for first, (start, _end) in enumerate(matches):
        while last < len(matches) and matches[last][1] <= start + length - _LEAD:
            last += 1
        if last - first > most and start > length - _LEAD:
            begin, most = start - _LEAD, last - first
        elif last - first > most:
            begin, most = 0, last - first
    end = begin + length
    inside = [(a - begin, min(b, end) - begin) for a, b in matches if a >= begin and a < end]
    return (ELLIPSIS if begin else "") + text[begin:end], [
        (a + (begin > 0), b + (begin > 0)) for a, b in inside
    ]


ANSWERS = 50
"""Documents of a solved topic whose texts are shown."""


class Solved:
    """The solved topics of a task, read once, in a thread of their own, when they are wanted first.

    Args:
        searcher: knows the task's files
        post: has the answer taken in, in the thread of the screen
    """

    def __init__(self, searcher: TaskSearcher, post: Post) -> None:
        self.topics: SolvedTopicIndex | None = None
        """None while they are not there."""

        self.trouble = ""
        """Why there are none."""

        self._asker = BackgroundQueue("solved topics", lambda: searcher, post)
        self._is_wanted = False
        self._waiting: list[Callable[[], object]] = []
        self._once: list[Callable[[], object]] = []

    def want(self, then: Callable[[], object]) -> None:
        """Read them, unless that was done; `then` is called when they come."""
        if self.topics is not None:
            return
        self._waiting = [then]
        if not self._is_wanted:
            self._is_wanted = True
            self._asker.ask(SearchRequestKind.topics, _read, self._came, self._failed)

    def once(self, there: Callable[[], object]) -> None:
        """Do something when they come, besides; they were wanted before."""
        self._once.append(there)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being read."""
        return self._asker.is_idle

    def close(self) -> None:
        """Wait for nothing any more."""
        self._asker.close()

    def _came(self, found: SolvedTopicIndex | None) -> None:
        if found is None:
            self._take(SolvedTopicIndex(), "the task's files are not at hand: name their folder with --data")
        else:
            self._take(found, "" if len(found) else "no topic of the task's files is solved")

    def _failed(self, error: Exception) -> None:
        self._take(SolvedTopicIndex(), f"the solved topics can't be read: {error_text(error)}")

    def _take(self, found: SolvedTopicIndex, trouble: str) -> None:
        self.topics, self.trouble = found, trouble
        for then in (*self._waiting, *self._once):
            then()
        self._once.clear()


def _read(searcher: TaskSearcher) -> SolvedTopicIndex | None:
    collection = searcher.collection
    return None if collection is None else solved_topics(searcher.task, collection)


class SolvedPage(TextDialog):
    """A solved topic with the documents of its gold; `here` is the document that led to it."""

    IS_FULL = True

    def __init__(self, solved: SolvedTopic, labels: Sequence[str], notation: Notation, here: str) -> None:
        super().__init__(f"Solved topic {shortened(solved.topic.id, 60)} of {solved.split}")
        self._solved = solved
        self._labels = labels
        self._notation = notation
        self._here = here
        self._texts: Mapping[str, str] = {}

    @property
    def answers(self) -> list[str]:
        """The documents whose texts are wanted."""
        return [document for document, _grade in self._solved.answers[:ANSWERS]]

    def show_texts(self, texts: Mapping[str, str]) -> None:
        """Show what the documents say."""
        self._texts = texts
        if self.is_attached:
            self.draw(changed=False)

    def text(self) -> Content:
        answers = self._solved.answers
        count = f"{len(answers):,} document{'s' * (len(answers) != 1)} of its gold"
        lines = [descriptions.topic_page(self._solved.topic, self._notation), Content("")]
        lines.append(Content.styled(count, "bold $accent"))
        for document, grade in answers[:ANSWERS]:
            look = "bold $match" if document == self._here else ""
            said = f"  {grade_said(grade, self._labels)}  " if len(self._labels) > 2 else "  "
            name = shortened(document, 32)
            text = one_line(self._texts.get(document, ""), self._notation)
            left = max(10, self.room - len(name) - len(said))
            lines.append(
                Content.assemble((name, look or "$primary"), (said, "$faint"), shortened(text, left))
            )
        if len(answers) > ANSWERS:
            lines.append(Content.styled(f"… and {len(answers) - ANSWERS:,} more", "$faint"))
        return Content("\n").join(lines)


def grade_said(grade: float, labels: Sequence[str]) -> str:
    """A grade of gold in words, as far as the task has words for it.

    >>> grade_said(1.0, ("not relevant", "relevant")), grade_said(6.0, ("no", "yes")), grade_said(0.5, ())
    ('1 relevant', '6', '0.5')
    """
    whole = int(grade)
    return grade_label(whole, labels) if whole == grade and whole < len(labels) else f"{grade:g}"


LONGEST = 100_000
"""Characters of a text that are laid out: a longer one is cut, and all of it is a key away."""


LONGEST_ID = 32
"""In cells: a longer one is cut, so that rank and score stay in sight."""

CITING = 10
"""Topics that are listed below a document that they cite."""

KEPT = 200
"""Documents whose neighbours are kept."""

_SECTION = "section"


class Section(Enum):
    """What is shown of a document besides its text; each can be folded."""

    neighbours = "Its neighbours in its text"
    fields = "Fields"
    grades = "Gold and grades"
    citing = "Topics that cite it"


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a document for the topic that was chosen: by oneself, by others as far as that is to be seen."""

    topic: Topic | None = None
    own: Opinion | None = None
    others: Sequence[Opinion] = ()
    words: str = ""


class Reading(Vertical):
    """The pane with a document; `whole` is how a key that shows all of a long one is called."""

    def __init__(self, info: TaskInfo, whole: str, solved: Solved) -> None:
        super().__init__(id="text")
        self._info = info
        self._whole = whole
        self._solved = solved
        self._pane = TextPane(id="document")
        self._shown: tuple[object, ...] | None = None
        self._draw: Callable[[], object] = lambda: None
        self._near: dict[str, Page] = {}
        """Pages with their neighbours, by document."""

        self.folded: set[Section] = set()
        self.notation = Notation(info.markup)

    def compose(self) -> ComposeResult:
        yield self._pane

    def forget(self) -> None:
        """Show neighbours no more that were fetched before: the documents are others by now."""
        self._near.clear()
        self._shown = None

    def on_resize(self) -> None:
        self._draw()

    def on_unmount(self) -> None:
        self._solved.close()

    def show_none(self, why: str, look: str = "$faint") -> None:
        """Say why there is no document."""
        self._shown = None
        entitle(self._pane, "Document")
        self._pane.show(Content.styled(why, look))

    def show(self, result: SearchResult, asker: SearchQueue, said: Said | None = None) -> None:
        """Show a hit from its beginning, unless it is in sight already.

        Its neighbours and the topics that cite it come when they are there.
        """
        document = result.hit.document_id
        key = document, result.matches
        changed, self._shown = key != self._shown, key
        name = shortened(document, LONGEST_ID)
        entitle(self._pane, f"Document {name} · rank {result.rank:,} · {result.hit.score:.4f}")
        page = page_of(document, result.source, result.matches)

        def draw(*, changed: bool = False) -> None:
            if self._shown == key:
                near = self._near.get(document, page)
                whole = replace(page, before=near.before, behind=near.behind)
                self._pane.show(self._content(whole, said or Said()), changed=changed)

        self._draw = draw
        draw(changed=changed)
        self._solved.want(lambda: self._draw())
        if self._info.context is not None and stands_in_text(result.source, self._info.context):
            self._ask_neighbours(page, result, asker, self._info.context)

    def _ask_neighbours(
        self, page: Page, result: SearchResult, asker: SearchQueue, context: tuple[str, str]
    ) -> None:
        if page.document_id in self._near:
            return

        def came(whole: Page) -> None:
            while len(self._near) >= KEPT:
                del self._near[next(iter(self._near))]
            self._near[page.document_id] = whole
            self._draw()

        asker.ask(
            SearchRequestKind.document,
            lambda searcher: with_neighbours(page, searcher.index, result.source, context),
            came,
            lambda _error: None,  # the document is there without them
        )

    # Sections

    def toggle(self, section: Section) -> None:
        """Fold a section, or unfold it, for this document and all that follow."""
        self.folded ^= {section}
        self._draw()

    def choose_sections(self) -> None:
        """Ask which sections are to be folded."""
        self.app.push_screen(Folding(self))

    @property
    def sections(self) -> list[Section]:
        """Those that documents of the task may have."""
        return [one for one in Section if one is not Section.neighbours or self._info.context is not None]

    def on_click(self, event: events.Click) -> None:
        name = event.style.meta.get(_SECTION)
        if name is not None:
            self.toggle(Section[name])

    def citing(self, document_id: str) -> Sequence[SolvedTopic] | None:
        """The solved topics that a document is an answer to; None while they are not there."""
        return None if self._solved.topics is None else self._solved.topics.citing(document_id)

    # What is shown

    def _content(self, page: Page, said: Said) -> Content:
        rest = len(page.text) - LONGEST
        if rest > 0:
            spans = tuple((start, min(end, LONGEST)) for start, end in page.matches if start < LONGEST)
            page = replace(page, text=page.text[:LONGEST], matches=spans)
        if Section.neighbours in self.folded:
            page = replace(page, before=(), behind=())
        lines = descriptions.text_lines(page, self.notation)
        if rest > 0:
            note = f"… {counted(rest, 'more character')}: {self._whole} opens all of it"
            lines += [Content(""), Content.styled(note, "$warning")]
        of_section: dict[Section, Callable[[], list[Content]]] = {
            Section.fields: lambda: descriptions.field_lines(page, stored=self.notation.form is Form.stored),
            Section.grades: lambda: self._grades(page.document_id, said),
            Section.citing: lambda: self._citing(page.document_id),
        }
        for section, content in of_section.items():
            inside = content()
            if inside:
                is_folded = section in self.folded
                lines += [Content(""), self._heading(section, page.document_id, is_folded=is_folded)]
                lines += [] if is_folded else inside
        return Content("\n").join(lines)

    def _heading(self, section: Section, document: str, *, is_folded: bool) -> Content:
        count = ""
        if section is Section.citing:
            citing = self.citing(document)
            count = "" if citing is None else f" · {len(citing):,}"
        title = Content.styled(f"{'▸' if is_folded else '▾'} {section.value}{count}", "$accent")
        clicked: Style = Style.from_meta({_SECTION: section.name})
        return title.stylize(clicked)

    def _grades(self, document: str, said: Said) -> list[Content]:
        """What is said of a document for the topic that was chosen, the gold first."""
        labels, lines = self._info.grades, []
        solved = self._solved.topics
        if said.topic is not None and solved is not None:
            topic = solved.topic(said.topic.id)
            gold = "not known" if topic is None else grade_said(topic.gold.get(document, 0.0), labels)
            lines.append(Content.assemble(("gold  ", "$faint"), gold))
        if said.own is not None:
            lines.append(Content.assemble(("you  ", "$faint"), descriptions.opinion_text(said.own, labels)))
        for one in said.others:
            lines.append(
                Content.assemble((f"{one.annotator}  ", "$faint"), descriptions.opinion_text(one, labels))
            )
        if said.words:
            lines.append(Content.assemble(("✎ ", "$accent"), (said.words, "italic")))
        return lines

    def _citing(self, document: str) -> list[Content]:
        """The topics that cite a document, a line each."""
        citing = self.citing(document)
        if citing is None:
            return [Content.styled("reading the solved topics …", "$faint")]
        if self._solved.trouble:
            return [Content.styled(self._solved.trouble, "$faint")]
        if not citing:
            return [Content.styled("none of the solved topics", "$faint")]
        room = max(20, self._pane.size.width - 4)
        lines = []
        for one in citing[:CITING]:
            name = f"{shortened(one.topic.id, LONGEST_ID)} {one.split}  "
            words = shortened(one_line(one.topic.text, self.notation), max(8, room - len(name)))
            lines.append(Content.assemble((name, "$faint"), words))
        if len(citing) > CITING:
            lines.append(Content.styled(f"… and {len(citing) - CITING:,} more", "$faint"))
        return lines


class Folding(Picking):
    """Chooses the sections that are shown."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        super().__init__("Shown of a document", self._choices())

    @property
    def hint(self) -> str:
        return "↵ fold, and again: unfold    esc done"

    def _choices(self) -> list[Choice]:
        folded = self._reading.folded
        return [Choice(one.value, sign="○" if one in folded else "●") for one in self._reading.sections]

    def chosen(self, place: int) -> None:
        self._reading.toggle(self._reading.sections[place])
        self.replace(self._choices())


PROMPT = "› "


class Words(TextLine):
    """The words; `laid_out` is called when the line is longer or shorter, and so its letters may stand elsewhere."""

    def __init__(
        self,
        submitted: Callable[[str], object],
        changed: Callable[[str], object],
        laid_out: Callable[[], object],
    ) -> None:
        super().__init__(submitted, changed, hint="what to search for", id="words")
        self._laid_out = laid_out

    def on_resize(self) -> None:
        self._laid_out()


class Asked(Horizontal):
    """Holds the words, and says beside them what else there is of a search."""

    def __init__(self, words: TextLine) -> None:
        super().__init__(id="ask")
        self._words = words
        self._prompt = Plain(PROMPT, id="prompt")
        self._count = Plain(id="count")
        self._like: str | None = None

    def compose(self) -> ComposeResult:
        yield self._prompt
        yield self._words
        yield self._count

    def show(self, title: str, like: str | None) -> None:
        """Show what the ranking is, and which document is sought by if one is."""
        self._count.update(title, layout=False)
        if like != self._like:  # which lays out the whole screen again
            self._like = like
            self._prompt.update(
                f"like {shortened(like, LONGEST_ID)} {PROMPT}" if like is not None else PROMPT
            )


HINT = '"a phrase"   +must   -without   begin*   field:value   +(groups)'

PADDING = 1
"""Blank cells on both sides, as its looks say."""


class Note(Plain):
    """Explains a broken query at its place, else shows the filters, else how more than words are typed."""

    def __init__(self) -> None:
        super().__init__(id="note")

    @property
    def left(self) -> int:
        """The column where its text begins, also while it is hidden."""
        return self.content_region.x or PADDING

    def show_broken(self, error: BrokenQuery, text: str, offset: int) -> None:
        """A caret below the character that is wrong, and why; the line of words begins at the cell `offset`."""
        self.remove_class("-hint")
        column = max(0, offset + cell_len(visible_line(text[: error.at])))
        words = visible_line(error.what)
        width = self.size.width or self.screen.size.width - 2 * PADDING
        if column + 2 + cell_len(words) <= width:
            line = Content.assemble(" " * column, ("▲ ", "bold $error"), (words, "$error"))
        elif cell_len(words) + 1 <= column < width:
            gap = " " * (column - cell_len(words) - 1)
            line = Content.assemble(gap, (f"{words} ", "$error"), ("▲", "bold $error"))
        else:
            line = Content.styled(shortened(f"▲ character {error.at + 1}: {words}", width), "$error")
        self.update(line, layout=False)

    def show_error(self, words: str) -> None:
        """Why there is no ranking of these words."""
        self.remove_class("-hint")
        self.update(Content.styled(f"▲ {visible_line(words)}", "$error"), layout=False)

    def show_filters(self, filters: tuple[FieldFilter, ...], keys: str, topic: str) -> None:
        """The topic that is judged, if one is, and the filters that hold; else the signs that say more than words."""
        self.set_class(not filters and not topic, "-hint")
        if not filters and not topic:
            self.update(Content.styled(f"  {HINT}", "$faint"), layout=False)
            return
        parts: list[str | tuple[str, str]] = ["  "]
        if topic:
            parts += [(f" judging topic {shortened(topic, 40)} ", "bold reverse $primary"), " "]
        for one in filters:
            parts += [(f" {one.field}: {shortened(one.value, 40)} ", "$foreground on $picked"), " "]
        if filters:
            parts.append((f" {keys} changes them", "$faint"))
        self.update(Content.assemble(*parts), layout=False)


class SearchView(KeyScreen):
    """The screen that documents are searched on, as far as its parts ask it."""

    searcher: TaskSearcher
    searched: Task
    searching: Searching
    quick: SearchQueue
    hits: HitRows
    reading: Reading
    solved: Solved

    @property
    def program(self) -> Sequence[str]:
        """How the program was called, up to the task and the words."""
        raise NotImplementedError

    @property
    def recipe(self) -> str:
        """The name of the recipe that ranks."""
        return self.searching.sought.recipe or self.searched.info.search_recipe

    def seek(self, sought: Sought, cursor: int = 0) -> None:
        """Seek something else, and show it beside the words."""
        raise NotImplementedError

    def leave_for(self, sought: Sought) -> None:
        """Seek something else, from which one can walk back to here."""
        raise NotImplementedError

    def result(self) -> SearchResult | None:
        """The hit that the cursor is on, of which something is wanted; says so if there is none."""
        result = self.hits.result
        if result is None:
            self.head.tell("there is no document here", "$warning")
        return result

    def show_document(self) -> None:
        """Show the document that the cursor is on, as it is now."""
        raise NotImplementedError
