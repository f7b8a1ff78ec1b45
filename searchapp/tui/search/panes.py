"""The panes of the search screen: the line of words with its note, the hits, the document."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Offset, Region
from textual.strip import Strip
from textual.style import Style

from searchapp.app.inspection.pages import Page, page_of, stands_in_text, with_neighbours
from searchapp.app.saved_searches import SearchQuery
from searchapp.app.search import (
    GoldTopic,
    GoldTopicIndex,
    QueryNotes,
    TaskSearcher,
    read_gold_topics,
)
from searchapp.judging.events import grade_label
from searchapp.judging.view import Opinion
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Topic
from searchapp.ranking.query_language import BrokenQuery, FieldFilter
from searchapp.ranking.search_results import SearchResult
from searchapp.tasks.base import Task, TaskInfo
from searchapp.text import visible_line, without_invisible
from searchapp.tui.kit import descriptions
from searchapp.tui.kit.background import Post, SearchQueue, SearchRequestKind, in_background
from searchapp.tui.kit.content import Content, Form, Notation, Plain, entitle
from searchapp.tui.kit.descriptions import error_text
from searchapp.tui.kit.dialogs import Choice, Picking, TextDialog
from searchapp.tui.kit.widgets import TextLine, TextPane, chip, one_line, shortened, shortened_id
from searchapp.tui.search.hits import HitRows
from searchapp.tui.search.requests import RankingLoader, RankingScreen

# Maximum documents of a training topic with their texts.
ANSWERS = 50


class TrainingTopicReader:
    """Reads the training topics of a task once, in a thread, on demand."""

    def __init__(self, searcher: TaskSearcher, post: Post) -> None:
        # None before they are read.
        self.topics: GoldTopicIndex | None = None
        # Why they cannot be read.
        self.trouble = ""
        self._searcher = searcher
        self._post = post
        self._is_wanted = self._is_closed = False
        self._draw: Callable[[], object] = lambda: None
        self._callbacks: list[Callable[[], object]] = []

    def want(self, draw: Callable[[], object]) -> None:
        """Start reading; the last `draw` is called afterwards."""
        if self.topics is not None:
            return
        self._draw = draw
        if not self._is_wanted:
            self._is_wanted = True
            in_background("training topics", self._read, self._receive, self._failed, self._post)

    def when_read(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)

    @property
    def is_idle(self) -> bool:
        return not self._is_wanted or self.topics is not None

    def close(self) -> None:
        self._is_closed = True

    def _read(self) -> GoldTopicIndex | None:
        collection = self._searcher.collection
        return None if collection is None else read_gold_topics(self._searcher.task, collection)

    def _receive(self, topics: GoldTopicIndex | None) -> None:
        if topics is None:
            self._take(GoldTopicIndex(), "the task's files were not found: name their folder with --data")
        else:
            self._take(topics, "" if len(topics) else "the task's files have no training topics")

    def _failed(self, error: Exception) -> None:
        self._take(GoldTopicIndex(), f"the training topics can't be read: {error_text(error)}")

    def _take(self, topics: GoldTopicIndex, trouble: str) -> None:
        if self._is_closed:
            return
        self.topics, self.trouble = topics, trouble
        for callback in (self._draw, *self._callbacks):
            callback()
        self._callbacks.clear()


class TrainingTopicPage(TextDialog):
    """A training topic with its gold; the document `origin` is marked."""

    IS_FULL = True

    def __init__(self, training: GoldTopic, labels: Sequence[str], notation: Notation, origin: str) -> None:
        super().__init__(f"Training topic {shortened_id(training.topic.id, 60)} of {training.split}")
        self._training = training
        self._labels = labels
        self._notation = notation
        self._origin = origin
        self._texts: Mapping[str, str] = {}

    @property
    def answers(self) -> list[str]:
        return [document for document, _grade in self._training.answers[:ANSWERS]]

    def show_texts(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        if self.is_attached:
            self.draw(changed=False)

    def text(self) -> Content:
        answers = self._training.answers
        count = f"{len(answers):,} gold document{'s' * (len(answers) != 1)}"
        lines = [descriptions.topic_page(self._training.topic, self._notation), Content("")]
        lines.append(Content.styled(count, "bold $accent"))
        for document, grade in answers[:ANSWERS]:
            look = "bold $match" if document == self._origin else ""
            grade_shown = gold_chip(grade, self._labels) if len(self._labels) > 2 else Content("")
            name = shortened_id(document, 32)
            text = one_line(self._texts.get(document, ""), self._notation)
            left = max(10, self.room - len(name) - grade_shown.cell_length - 4)
            lines.append(
                Content.assemble((name, look or "$primary"), "  ", grade_shown, "  ", shortened(text, left))
            )
        if len(answers) > ANSWERS:
            lines.append(Content.styled(f"… and {len(answers) - ANSWERS:,} more", "$faint"))
        return Content("\n").join(lines)


def gold_label(grade: float, labels: Sequence[str]) -> str:
    """Return a grade of gold with its label, if the task has one.

    >>> gold_label(1.0, ("not relevant", "relevant")), gold_label(6.0, ("no", "yes")), gold_label(0.5, ())
    ('1 relevant', '6', '0.5')
    """
    integer = int(grade)
    return grade_label(integer, labels) if integer == grade and integer < len(labels) else f"{grade:g}"


def gold_chip(grade: float, labels: Sequence[str]) -> Content:
    """Return a grade of gold with its label, with the grade as a chip."""
    return descriptions.with_chip(gold_label(grade, labels), int(grade), labels)


# Width of an id in the title, beside rank and score.
LONGEST_ID = 32

# Maximum topics that are listed below a document that they cite.
CITING = 10

# Maximum documents whose neighbours are cached.
KEPT = 200

_SECTION = "section"


class Section(Enum):
    """The foldable sections below a document's text."""

    neighbours = "Documents before and after it"
    fields = "Fields"
    grades = "Gold and grades"
    citing = "Training topics with it in their gold"


@dataclass(frozen=True, slots=True)
class Statements:
    """The chosen topic, with the verdicts on a document."""

    topic: Topic | None = None
    own: Opinion | None = None
    others: Sequence[Opinion] = ()
    words: str = ""


class DocumentPane(Vertical):
    """The pane with a document; `pager` is the key for the rest of a long one."""

    def __init__(self, info: TaskInfo, pager: str, training: TrainingTopicReader) -> None:
        super().__init__(id="text")
        self._info = info
        self._pager = pager
        self._training = training
        self._pane = TextPane(id="document")
        self._shown: tuple[object, ...] | None = None
        self._draw: Callable[[], object] = lambda: None
        # Pages with their neighbours, by document.
        self._near: dict[str, Page] = {}
        self.folded: set[Section] = set()
        self.notation = Notation(info.markup)

    def compose(self) -> ComposeResult:
        yield self._pane

    def forget(self) -> None:
        self._near.clear()
        self._shown = None

    def on_resize(self) -> None:
        self._draw()

    def on_unmount(self) -> None:
        self._training.close()

    def show_none(self, why: str, look: str = "$faint") -> None:
        self._shown = None
        entitle(self._pane, "Document")
        self._pane.show(Content.styled(why, look))

    def show(
        self,
        result: SearchResult,
        queue: SearchQueue,
        statements: Statements | None = None,
        *,
        is_ranked: bool = True,
    ) -> None:
        """Show a hit, from its beginning if it is another one; neighbours follow later."""
        document = result.hit.document_id
        key = document, result.matches
        changed, self._shown = key != self._shown, key
        name = shortened_id(document, LONGEST_ID)
        rank = f" · rank {result.rank:,} · {result.hit.score:.4f}" if is_ranked else ""
        entitle(self._pane, f"Document {name}{rank}")
        page = page_of(document, result.source, result.matches)

        def draw(*, changed: bool = False) -> None:
            if self._shown == key:
                near = self._near.get(document, page)
                full = replace(page, before=near.before, behind=near.behind)
                self._pane.show(self._content(full, statements or Statements()), changed=changed)

        self._draw = draw
        draw(changed=changed)
        self._training.want(lambda: self._draw())
        if self._info.context is not None and stands_in_text(result.source, self._info.context):
            self._fetch_neighbours(page, result, queue, self._info.context)

    def _fetch_neighbours(
        self, page: Page, result: SearchResult, queue: SearchQueue, context: tuple[str, str]
    ) -> None:
        if page.document_id in self._near:
            return

        def receive(full: Page) -> None:
            while len(self._near) >= KEPT:
                del self._near[next(iter(self._near))]
            self._near[page.document_id] = full
            self._draw()

        queue.ask(
            SearchRequestKind.document,
            lambda searcher: with_neighbours(page, searcher.index, result.source, context),
            receive,
            lambda _error: None,  # the document is shown without neighbours
        )

    # Sections

    def toggle(self, section: Section) -> None:
        self.folded ^= {section}
        self._draw()

    def choose_sections(self) -> None:
        self.app.push_screen(SectionDialog(self))

    @property
    def sections(self) -> list[Section]:
        has_context = self._info.context is not None
        return [section for section in Section if section is not Section.neighbours or has_context]

    def on_click(self, event: events.Click) -> None:
        name = event.style.meta.get(_SECTION)
        if name is not None:
            self.toggle(Section[name])

    def citing(self, document_id: str) -> Sequence[GoldTopic] | None:
        """Return the training topics with a document in their gold; None until they are read."""
        return None if self._training.topics is None else self._training.topics.citing(document_id)

    # Content

    def _content(self, page: Page, statements: Statements) -> Content:
        page, note = descriptions.cut_page(page, self._pager)
        if Section.neighbours in self.folded:
            page = replace(page, before=(), behind=())
        lines = descriptions.text_lines(page, self.notation)
        lines += [] if note is None else [Content(""), note]
        of_section: dict[Section, Callable[[], list[Content]]] = {
            Section.fields: lambda: descriptions.field_lines(page, stored=self.notation.form is Form.stored),
            Section.grades: lambda: self._grades(page.document_id, statements),
            Section.citing: lambda: self._citing(page.document_id),
        }
        for section, content in of_section.items():
            section_lines = content()
            if section_lines:
                is_folded = section in self.folded
                lines += [Content(""), self._heading(section, page.document_id, is_folded=is_folded)]
                lines += [] if is_folded else section_lines
        return Content("\n").join(lines)

    def _heading(self, section: Section, document: str, *, is_folded: bool) -> Content:
        count = ""
        if section is Section.citing:
            citing = self.citing(document)
            count = "" if citing is None else f" · {len(citing):,}"
        title = Content.styled(f"{'▸' if is_folded else '▾'} {section.value}{count}", "$accent")
        clicked: Style = Style.from_meta({_SECTION: section.name})
        return title.stylize(clicked)

    def _grades(self, document: str, statements: Statements) -> list[Content]:
        labels, lines = self._info.grades, []
        training = self._training.topics
        if statements.topic is not None and training is not None:
            topic = training.topic(statements.topic.id)
            gold = Content("unknown") if topic is None else gold_chip(topic.gold.get(document, 0.0), labels)
            lines.append(Content.assemble(("gold  ", "$faint"), gold))
        own = [] if statements.own is None else [("you", statements.own)]
        for name, opinion in [*own, *((opinion.annotator, opinion) for opinion in statements.others)]:
            verdict = descriptions.with_chip(
                descriptions.opinion_text(opinion, labels), opinion.grade, labels
            )
            lines.append(Content.assemble((f"{name}  ", "$faint"), verdict))
        if statements.words:
            lines.append(Content.assemble(("✎ ", "$accent"), (statements.words, "italic")))
        return lines

    def _citing(self, document: str) -> list[Content]:
        citing = self.citing(document)
        if citing is None:
            return [Content.styled("reading the training topics …", "$faint")]
        if self._training.trouble:
            return [Content.styled(self._training.trouble, "$faint")]
        if not citing:
            return [Content.styled("none", "$faint")]
        room = max(20, self._pane.size.width - 4)
        lines = []
        for training in citing[:CITING]:
            name = f"{shortened_id(training.topic.id, LONGEST_ID)} {training.split}  "
            words = shortened(one_line(training.topic.text, self.notation), max(8, room - len(name)))
            lines.append(Content.assemble((name, "$faint"), words))
        if len(citing) > CITING:
            lines.append(Content.styled(f"… and {len(citing) - CITING:,} more", "$faint"))
        return lines


class SectionDialog(Picking):
    """Chooses the visible sections."""

    def __init__(self, pane: DocumentPane) -> None:
        self._pane = pane
        super().__init__("Sections shown below a document", self._choices())

    @property
    def hint(self) -> str:
        return "↵ fold or unfold    esc done"

    def _choices(self) -> list[Choice]:
        folded = self._pane.folded
        return [
            Choice(section.value, sign="○" if section in folded else "●") for section in self._pane.sections
        ]

    def chosen(self, index: int) -> None:
        self._pane.toggle(self._pane.sections[index])
        self.replace(self._choices())


PROMPT = "› "


# Maximum lines of the query on the screen.
QUERY_LINES = 3


def wrapped_ranges(text: str, cells: int) -> list[tuple[int, int]]:
    """Return the ranges of characters in each line of a text, with room for a cursor behind its end.

    >>> wrapped_ranges("normal subgroup", 10), wrapped_ranges("groups", 4), wrapped_ranges("", 4)
    ([(0, 7), (7, 15)], [(0, 4), (4, 6)], [(0, 0)])
    """
    ranges, start = [], 0
    is_ascii = text.isascii()
    while True:
        end, used = start, 0
        if is_ascii:
            end = min(len(text), start + cells)
            used = end - start
        while end < len(text) and (used := used + cell_len(text[end])) <= cells:
            end += 1
        if end == len(text):
            ranges.append((start, end))
            return ranges if used < cells else [*ranges, (end, end)]
        end = max(end, start + 1)  # even if a wide character has no room
        blank = text.rfind(" ", start, end)
        end = blank + 1 if blank > start else end
        ranges.append((start, end))
        start = end


class QueryLine(TextLine):
    """The query, wrapped to at most `QUERY_LINES` lines; `laid_out` is called when its size changes."""

    def __init__(
        self,
        submitted: Callable[[str], object],
        changed: Callable[[str], object],
        laid_out: Callable[[], object],
    ) -> None:
        super().__init__(submitted, changed, hint="type a query", id="words")
        self._laid_out = laid_out
        self._ranges = [(0, 0)]
        # The wrapped line at the top.
        self._top = 0
        self._mouse_line = 0

    def on_resize(self) -> None:
        self._wrap()
        self._laid_out()

    def watch_value(self) -> None:
        self._wrap()

    def watch_selection(self) -> None:
        self._keep_in_sight()

    def _wrap(self) -> None:
        width = self.content_region.width
        if width <= 0:
            return
        self._ranges = wrapped_ranges(self.value, width)
        self.styles.height = min(QUERY_LINES, len(self._ranges))  # the same height requires no new layout
        self._keep_in_sight()

    def _line_of(self, index: int) -> int:
        return max(0, bisect_right(self._ranges, (index, len(self.value) + 1)) - 1)

    def _keep_in_sight(self) -> None:
        line, most = self._line_of(self.cursor_position), min(QUERY_LINES, len(self._ranges))
        top = max(line - most + 1, min(self._top, line, len(self._ranges) - most))
        if top != self._top:
            self._top = top
            self.refresh()

    def column(self, index: int) -> int | None:
        """Return the cells before a character in the last visible line; None if it is in another line."""
        line = self._line_of(index)
        if line != min(self._top + QUERY_LINES, len(self._ranges)) - 1:
            return None
        return cell_len(self.value[self._ranges[line][0] : index])

    def render_line(self, y: int) -> Strip:
        if not self.value or self._top + y >= len(self._ranges):
            return super().render_line(y)
        start, end = self._ranges[self._top + y]
        text = Text(f"{self.value[start:end]} ", no_wrap=True, overflow="ignore", end="")
        if self.has_focus:
            first, last = (min(max(index, start), end) - start for index in sorted(self.selection))
            text.stylize_before(self.get_component_rich_style("input--selection"), first, last)
            if self._line_of(self.cursor_position) == self._top + y:
                cursor = self.cursor_position - start
                text.stylize(self.get_component_rich_style("input--cursor"), cursor, cursor + 1)
        width = self.content_region.width
        segments = self.app.console.render(text, self.app.console_options.update_width(width + 1))
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)

    def paste(self, text: str) -> None:
        super().paste(without_invisible(text))  # their visible signs would be searched for

    # Textual's own functions for one scrolling line

    def scroll_to_region(self, region: Region, **_options: Any) -> Offset:  # noqa: ARG002
        return Offset(0, 0)

    @property
    def cursor_screen_offset(self) -> Offset:
        x, y, _width, _height = self.content_region
        line = self._line_of(self.cursor_position)
        cells = cell_len(self.value[self._ranges[line][0] : self.cursor_position])
        return Offset(x + cells, y + line - self._top)

    def _on_mouse_down(self, event: events.MouseDown) -> None:  # type: ignore[override]  # Textual calls both
        self._mouse_line = event.get_content_offset_capture(self).y

    def _on_mouse_move(self, event: events.MouseMove) -> None:  # type: ignore[override]  # Textual calls both
        self._mouse_line = event.get_content_offset_capture(self).y

    def _cell_offset_to_index(self, offset: int) -> int:
        line = min(max(0, self._top + self._mouse_line), len(self._ranges) - 1)
        start, end = self._ranges[line]
        index, cells = start, 0
        while index < end and (cells := cells + cell_len(self.value[index])) <= offset:
            index += 1
        return index


class QueryBar(Horizontal):
    """The line of words, and the title of the ranking."""

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
        self._count.update(title, layout=False)
        if like != self._like:  # a change requires a new layout of the screen
            self._like = like
            self._prompt.update(
                f"like {shortened_id(like, LONGEST_ID)} {PROMPT}" if like is not None else PROMPT
            )


HINT = '"a phrase"   +must   -without   begin*   field:value   +(groups)'

# Blank cells on both sides, as in the style sheet.
PADDING = 1


class Note(Plain):
    """Explains a syntax error, or shows filters or the query language."""

    def __init__(self) -> None:
        super().__init__(id="note")

    @property
    def left(self) -> int:
        return self.content_region.x or PADDING

    def show_broken(self, error: BrokenQuery, column: int | None) -> None:
        """Show a caret below the invalid character in a column, or its number if it is not in the line above."""
        self.remove_class("-hint")
        words = visible_line(error.what)
        width = self.size.width or self.screen.size.width - 2 * PADDING
        if column is None:
            line = Content.styled(shortened(f"▲ character {error.at + 1}: {words}", width), "$error")
        elif column + 2 + cell_len(words) <= width:
            line = Content.assemble(" " * column, ("▲ ", "bold $error"), (words, "$error"))
        elif cell_len(words) + 1 <= column < width:
            gap = " " * (column - cell_len(words) - 1)
            line = Content.assemble(gap, (f"{words} ", "$error"), ("▲", "bold $error"))
        else:
            line = Content.styled(shortened(f"▲ character {error.at + 1}: {words}", width), "$error")
        self.update(line, layout=False)

    def show_error(self, words: str) -> None:
        self.remove_class("-hint")
        self.update(Content.styled(f"▲ {visible_line(words)}", "$error"), layout=False)

    def show_query(
        self, filters: tuple[FieldFilter, ...], keys: str, topic: str, notes: QueryNotes, accept: str
    ) -> None:
        """Show the chosen filters and topic, and the words that find nothing.

        `keys` change the filters; `accept` is the key that accepts a suggestion, if one does.
        """
        sentences = notes.sentences(accept)
        is_empty = not filters and not topic and not sentences
        self.set_class(is_empty, "-hint")
        if is_empty:
            self.update(Content.styled(f"  {HINT}", "$faint"), layout=False)
            return
        parts: list[str | tuple[str, str]] = ["  "]
        # A sentence to act on comes first, because the end of the line may be cut off.
        first, suggestion = sentences[:1] if notes.asks else [], notes.suggestion
        width = self.size.width or self.screen.size.width - 2 * PADDING
        if first and suggestion is not None and not notes.relaxed and cell_len(first[0]) + 2 > width:
            first = [f"{suggestion.word} → {suggestion.suggestion}?{f' {accept} accepts' if accept else ''}"]
        parts += [(f"{visible_line(sentence)}  ", "$warning") for sentence in first]
        if topic:
            parts += [chip(f"judging topic {shortened_id(topic, 40)}", "bold $primary"), " "]
        for chosen in filters:
            parts += [chip(f"{chosen.field}: {shortened(chosen.value, 40)}", "$accent"), " "]
        if filters and not sentences:
            parts.append((f" {keys} changes them", "$faint"))
        further = " · ".join(sentences[len(first) :])
        parts.append((visible_line(further), "$faint"))
        self.update(Content.assemble(*parts), layout=False)


class SearchView(RankingScreen):
    """The search screen's interface for its dialogs and actions."""

    searcher: TaskSearcher
    searched: Task
    # Those of the query, and of the query with a second recipe.
    loaders: tuple[RankingLoader, RankingLoader]
    # The one of the list that actions are about.
    loader: RankingLoader
    quick: SearchQueue
    reading: DocumentPane
    training_topics: TrainingTopicReader

    @property
    def hits(self) -> HitRows:
        return self.loader.rows

    @property
    def recipe(self) -> str:
        return self.loader.recipe

    def seek(self, query: SearchQuery, cursor: int = 0) -> None:
        """Change the query; its recipe is for the list that actions are about."""
        raise NotImplementedError

    def split(self, recipe: str) -> None:
        """Rank the query with a second recipe, too."""
        raise NotImplementedError

    def leave_for(self, query: SearchQuery) -> None:
        """Change the query, and record the present position in the history."""
        raise NotImplementedError

    def result(self) -> SearchResult | None:
        """Return the hit under the cursor, or report that the list is empty."""
        result = self.hits.result
        if result is None:
            self.head.tell("no document is selected", "$warning")
        return result

    def show_document(self) -> None:
        raise NotImplementedError
