"""The document that the cursor is on, as it is read on the search screen: its text, and what is known of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.style import Style

from searchapp.app.pages import Page, page_of, stands_in_text, with_neighbours
from searchapp.app.solved import SolvedTopic
from searchapp.judging.fold import Opinion
from searchapp.model import Topic
from searchapp.ranking.search import SearchResult
from searchapp.tasks.base import TaskInfo
from searchapp.tui import pages
from searchapp.tui.content import Content, entitle
from searchapp.tui.notation import Form, Notation
from searchapp.tui.picking import Choice, Picking
from searchapp.tui.rows import one_line, shortened
from searchapp.tui.search.asking import Asker, Kind
from searchapp.tui.search.solved import Solved, grade_said
from searchapp.tui.text import TextPane

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

    def show(self, result: SearchResult, asker: Asker, said: Said | None = None) -> None:
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
        self, page: Page, result: SearchResult, asker: Asker, context: tuple[str, str]
    ) -> None:
        if page.document_id in self._near:
            return

        def came(whole: Page) -> None:
            while len(self._near) >= KEPT:
                del self._near[next(iter(self._near))]
            self._near[page.document_id] = whole
            self._draw()

        asker.ask(
            Kind.document,
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
        match = "bold $match underline" if os.environ.get("NO_COLOR") else "bold $match"
        rest = len(page.text) - LONGEST
        if rest > 0:
            spans = tuple((start, min(end, LONGEST)) for start, end in page.matches if start < LONGEST)
            page = replace(page, text=page.text[:LONGEST], matches=spans)
        if Section.neighbours in self.folded:
            page = replace(page, before=(), behind=())
        lines = pages.text_lines(page, self.notation, match)
        if rest > 0:
            note = f"… {rest:,} more characters: {self._whole} opens all of it"
            lines += [Content(""), Content.styled(note, "$warning")]
        of_section: dict[Section, Callable[[], list[Content]]] = {
            Section.fields: lambda: pages.field_lines(page, stored=self.notation.form is Form.stored),
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
            lines.append(Content.assemble(("you  ", "$faint"), pages.said(said.own, labels)))
        for one in said.others:
            lines.append(Content.assemble((f"{one.annotator}  ", "$faint"), pages.said(one, labels)))
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
