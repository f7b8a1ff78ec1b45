"""Explain a ranking: the score of a hit, a comparison of two hits, votes, and analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from itertools import zip_longest
from typing import TypeVar

from rich.cells import cell_len, chop_cells

from searchapp.app import analyze
from searchapp.app.analyze import SideBySide
from searchapp.app.inspection.explanation import (
    HitComparison,
    PartDifference,
    Reason,
    compare_hits,
    find_reason,
    hit_reason,
    status_sentence,
)
from searchapp.app.search import GoldTopic, TaskSearcher
from searchapp.model import AnalysisStep
from searchapp.ranking import paging
from searchapp.ranking.search_results import IDF
from searchapp.ranking.signals.base import Vote
from searchapp.text import visible_line
from searchapp.tui.kit.background import SearchRequestKind
from searchapp.tui.kit.content import AS_WRITTEN, Content, Notation, readable
from searchapp.tui.kit.dialogs import Choice, Picking, TextDialog, WordsDialog
from searchapp.tui.kit.explanation import ExplanationDialog, bar
from searchapp.tui.kit.widgets import (
    fitted,
    one_line,
    shortened_id,
)
from searchapp.tui.search.panes import LONGEST_ID, SearchView, TrainingTopicPage, gold_label

T = TypeVar("T")

# Width of an id.
COMPARED_ID_CELLS = 24

BAR_CELLS = 12
VALUE_CELLS = 9
# Least width of a table with the figures of each term.
FIGURES_FROM = 100

_SHARED = ("df", IDF)
_OWN = ("tf", "length")


class ComparisonDialog(TextDialog):
    """Explains why one of two hits is above the other, and shows both texts."""

    IS_FULL = True

    def __init__(self, comparison: HitComparison, notation: Notation) -> None:
        upper, lower = comparison.upper, comparison.lower
        super().__init__(f"Why {_name(upper)} is above {_name(lower)}")
        self._comparison = comparison
        self._notation = notation

    def text(self) -> Content:
        return comparison_page(self._comparison, self.room, self._notation)


def comparison_page(comparison: HitComparison, room: int, notation: Notation = AS_WRITTEN) -> Content:
    """Return two scores part by part, the largest differences first, in `room` cells, and both texts."""
    upper, lower = comparison.upper, comparison.lower
    lines = [
        Content(f"rank {why.rank or 0:>6,}  score {why.score or 0.0:>10.4f}  {_name(why)}")
        for why in (upper, lower)
    ]
    lines += [Content(""), Content.styled(_decides(comparison), "bold")]
    if comparison.signals:
        lines += [Content(""), *_table("Signal", comparison.signals, room)]
    if comparison.terms:
        title = "Part, before weighting" if comparison.signals else "Term"
        lines += [Content(""), *_table(title, comparison.terms, room)]
    for why, other, compared in zip((upper, lower), (lower, upper), comparison.texts, strict=False):
        beginning = f"The first {len(compared.text):,} characters" if compared.is_cut else "Text"
        title = f"{beginning} of {_name(why)}"
        marked = f": the words that {_name(other)} lacks are marked" if compared.own else ""
        text = readable(compared.text, compared.own, notation).content(OWN)
        lines += [Content(""), Content.assemble((title, "bold $accent"), (marked, "$faint")), text]
    return Content("\n").join(lines)


def _decides(comparison: HitComparison) -> str:
    most, upper, lower = comparison.decides, comparison.upper, comparison.lower
    if upper.score == lower.score:
        return "The scores are equal: documents with equal scores are sorted by id."
    if most is None:
        return "No single part favours the upper document: the sum of all parts does."
    between = (upper.score or 0.0) - (lower.score or 0.0)
    return f"{most.what} contributes most: {most.gain:+z.4f}; all parts {between:+z.4f}"


def _table(title: str, differences: Sequence[PartDifference], room: int) -> list[Content]:
    figures = max(len(_figures(difference)) for difference in differences) + 2 if room >= FIGURES_FROM else 0
    fixed_cells = 3 * (VALUE_CELLS + 1) + BAR_CELLS + 2 + figures
    longest = max(len(difference.what) for difference in differences)
    width = max(8, min(longest, room - fixed_cells))
    greatest = max(abs(difference.gain) for difference in differences) or 1.0
    head = (
        f"{fitted(title, width)} {'upper':>{VALUE_CELLS}} {'lower':>{VALUE_CELLS}} {'upper −':>{VALUE_CELLS}}"
    )
    lines = [Content.styled(head, "bold $accent")]
    for difference in differences:
        values = f"{_value(difference.upper)} {_value(difference.lower)} {difference.gain:>+{VALUE_CELLS}.4f}"
        look = "$primary" if difference.gain >= 0 else "$error"
        lines.append(
            Content.assemble(
                f"{fitted(difference.what, width)} {values}  ",
                (bar(abs(difference.gain) / greatest, BAR_CELLS), look),
                (f"  {_figures(difference) if figures else ''}", "$faint"),
            )
        )
    return lines


def _value(value: float | None) -> str:
    return f"{'–':>{VALUE_CELLS}}" if value is None else f"{value:>{VALUE_CELLS}.4f}"


def _figures(difference: PartDifference) -> str:
    upper, lower = dict(difference.upper_figures), dict(difference.lower_figures)
    parts = [f"{name} {upper.get(name) or lower[name]}" for name in _SHARED if name in upper or name in lower]
    parts += [
        f"{name} {upper.get(name, '–')} : {lower.get(name, '–')}"
        for name in _OWN
        if name in upper or name in lower
    ]
    return "  ".join(parts)


def _name(why: Reason) -> str:
    return shortened_id(why.document_id, COMPARED_ID_CELLS)


# Maximum analyzed characters of a document.
LONGEST = 4_000

# The style of terms that document and query share.
COMMON = "bold $match"

# The style of words whose terms only one of two documents has.
OWN = "bold underline $secondary"

# A term and its style.
Word = tuple[str, str]

# Requests the analysis in a field (the first argument).
Ask = Callable[[str, Callable[[SideBySide], object], Callable[[Exception], object]], object]


class AnalysisDialog(TextDialog):
    """Shows the steps of the analysis of a document and a query."""

    IS_FULL = True

    def __init__(self, document: str, fields: Sequence[str], ask: Ask) -> None:
        super().__init__(f"Document {shortened_id(document, 40)} and the query, from text to terms")
        self._fields = fields
        self._field_index = 0
        self._ask = ask
        self._analyses: dict[str, SideBySide] = {}
        self._trouble: dict[str, str] = {}

    @property
    def hint(self) -> str:
        return "←→ another field    ↑↓ scroll    esc back"

    @property
    def field(self) -> str:
        return self._fields[self._field_index]

    def on_mount(self) -> None:
        self._want()
        super().on_mount()

    def key_actions(self) -> dict[str, Callable[[], object]]:
        return {
            "right": lambda: self._go(1), "tab": lambda: self._go(1),
            "left": lambda: self._go(-1), "shift+tab": lambda: self._go(-1),
        }  # fmt: skip

    def _go(self, step: int) -> None:
        self._field_index = (self._field_index + step) % len(self._fields)
        self._want()
        self.draw()

    def _want(self) -> None:
        field = self.field
        if field in self._analyses:
            return

        def receive(analysis: SideBySide) -> None:
            self._analyses[field] = analysis
            if self.is_attached:
                self.draw()

        def failed(error: Exception) -> None:
            self._trouble[field] = str(error)
            if self.is_attached:
                self.draw()

        self._ask(field, receive, failed)

    def text(self) -> Content:
        parts: list[tuple[str, str]] = []
        for index, name in enumerate(self._fields):
            parts += [
                (f" {name} ", "bold reverse $primary" if index == self._field_index else "$faint"),
                (" ", ""),
            ]
        lines = [Content.assemble(*parts), Content("")]
        analysis, trouble = self._analyses.get(self.field), self._trouble.get(self.field)
        if analysis is not None:
            lines += side_by_side_lines(analysis, self.room)
        elif trouble is not None:
            lines.append(Content.styled(trouble, "$error"))
        else:
            lines.append(Content.styled("…", "$faint"))
        return Content("\n").join(lines)


def side_by_side_lines(analysis: SideBySide, room: int) -> list[Content]:
    """Return the steps in `room` cells, document left, query right."""
    cells = max(8, (room - 3) // 2)
    lines = [Content.assemble((f"{'document':<{cells}}", "bold"), (" │ ", "$line"), ("query", "bold"))]
    before: list[list[Word]] = []
    for pair in analysis.steps:
        common = pair.common
        words = [_words(pair.document, common), _words(pair.query, common)]
        is_same, before = words == before, words
        one_sided = "" if pair.is_of_query else "  documents only"
        note = ("" if pair.is_of_document else "  queries only") or one_sided
        note += "  changes nothing" if is_same else ""
        lines.append(Content.assemble((f"── {visible_line(pair.name)}", "$accent"), (note, "$faint")))
        if is_same:
            continue
        left, right = (list(_wrapped(side, cells)) for side in words)
        for left_line, right_line in zip_longest(left, right, fillvalue=()):
            free = cells - sum(cell_len(text) for text, _look in left_line)
            lines.append(Content.assemble(*left_line, (" " * free, ""), (" │ ", "$line"), *right_line))
    if not any(pair.common for pair in analysis.steps[-1:]):
        lines += [Content(""), Content.styled("Document and query share no term in this field.", "$warning")]
    return lines


def _words(step: AnalysisStep | None, common: Set[str]) -> list[Word]:
    if step is None:
        return []
    if step.text is not None:
        return [(visible_line(word), "") for word in step.text.split()]
    if not step.tokens:
        return [("(nothing)", "$faint")]
    return [(visible_line(token.term), COMMON if token.term in common else "") for token in step.tokens]


def _wrapped(words: Sequence[Word], cells: int) -> Iterator[list[Word]]:
    """Yield lines of `cells` cells with words; break longer words."""
    line: list[Word] = []
    used = 0
    for text, look in words:
        for piece in chop_cells(text, cells) or [""]:
            width = cell_len(piece)
            if line and used + 1 + width > cells:
                yield line
                line, used = [], 0
            if line:
                line.append((" ", ""))
                used += 1
            line.append((piece, look))
            used += width
    yield line


class Reasons:
    """Requests explanations, and shows them in dialogs."""

    def __init__(self, screen: SearchView) -> None:
        self._screen = screen

    def why(self) -> None:
        result, listing = self._screen.result(), self._screen.loader.listing
        if result is None or listing is None:
            return
        request, rank, hit = listing.request, result.rank, result.hit
        self._ask(lambda searcher: hit_reason(searcher, request, rank, hit), self._show_why)

    def _ask(self, work: Callable[[TaskSearcher], T], then: Callable[[T], object], message: str = "") -> None:
        self._screen.head.wait(message)
        self._screen.loader.queue.ask(SearchRequestKind.why, work, then, self._screen.tell_error)

    def ask_document(self) -> None:
        dialog = WordsDialog("Go to the document with this id", action="go there")
        self._screen.app.push_screen(dialog, self._go_to)

    def _go_to(self, document: str | None) -> None:
        listing = self._screen.loader.listing
        if not document or listing is None:
            return
        self._ask(
            lambda searcher: find_reason(searcher, listing.request, document),
            self._go_or_explain,
            f"looking for {shortened_id(document, LONGEST_ID)} …",
        )

    def _go_or_explain(self, reason: Reason) -> None:
        if reason.rank is not None and reason.rank <= self._screen.hits.count:
            self._screen.head.end_wait()
            self._screen.hits.move(reason.rank - 1)
        else:
            self._show_why(reason)

    def _show_why(self, reason: Reason) -> None:
        sentence = status_sentence(reason, self._screen.searched.name)
        self._show(ExplanationDialog(reason, sentence, lambda: self._choose_vote(reason)))

    # Two hits

    def compare(self) -> None:
        """Mark the hit under the cursor, or compare it with the marked one."""
        result, listing, hits = self._screen.result(), self._screen.loader.listing, self._screen.hits
        if result is None or listing is None:
            return
        ranked_hit, marked = (result.rank, result.hit), hits.marked
        key = self._screen.keys.shown("compare")
        if marked is None or marked.request is not listing.request:
            hits.mark_hit(result)
            name = shortened_id(result.hit.document_id, LONGEST_ID)
            self._screen.head.show_state(
                f"{name} is marked: {key} on another hit compares them",
                holds=lambda: hits.marked_rank is not None,
            )
            return
        hits.mark_hit(None)
        if marked.ranked_hit == ranked_hit:
            self._screen.head.tell("the mark was removed")
            return
        other = marked.ranked_hit
        self._ask(
            lambda searcher: compare_hits(searcher, listing.request, ranked_hit, other),
            lambda comparison: self._show(ComparisonDialog(comparison, self._screen.hits.notation)),
        )

    def _show(self, dialog: TextDialog) -> None:
        self._screen.head.end_wait()
        self._screen.when_in_front(lambda: self._screen.app.push_screen(dialog))

    # Training topics

    def _choose_vote(self, reason: Reason) -> None:
        votes = reason.votes

        def choice(vote: Vote) -> Choice:
            training = self._screen.training_topics.topics
            name = vote.topic_id or vote.document_id
            topic = None if training is None else training.topic(vote.topic_id)
            text = "" if topic is None else one_line(topic.topic.text, self._screen.hits.notation)
            grade = gold_label(vote.grade, self._screen.searched.info.grades)
            return Choice(name, f"{vote.value:.4f} · {grade} · similarity {vote.score:.2f}  {text}")

        def draw() -> None:
            if dialog.is_attached:
                dialog.replace([choice(vote) for vote in votes])

        dialog = Picking("Votes for the document", [choice(vote) for vote in votes])
        self._screen.pick(dialog, lambda index: self._open_vote(votes[index], reason.document_id))
        if self._screen.training_topics.topics is None:
            self._screen.training_topics.when_read(draw)

    def _open_vote(self, vote: Vote, document: str) -> None:
        training = self._screen.training_topics.topics
        topic = None if training is None else training.topic(vote.topic_id)
        if topic is not None:
            self._show_training_topic(topic, document)
        elif vote.topic_id:
            reader = self._screen.training_topics
            words = reader.trouble or "the training topics are still being read"
            self._screen.head.tell(words, "$warning", holds=lambda: reader.topics is None)
        else:  # the vote is a graded document's
            self._screen.app.pop_screen()
            self._go_to(vote.document_id)

    def citing(self) -> None:
        result = self._screen.result()
        if result is None:
            return
        document = result.hit.document_id
        topics = self._screen.reading.citing(document)
        if topics is None:
            self._screen.head.wait("waiting for the training topics …")
            self._screen.training_topics.when_read(
                lambda: self._screen.when_in_front(lambda: self._citing_now(document))
            )
            return
        if not topics:
            nothing = (
                self._screen.training_topics.trouble or "no training topic has this document in its gold"
            )
            self._screen.head.tell(nothing, "$warning")
            return
        choices = [
            Choice(
                training.topic.id,
                f"{training.split}  {one_line(training.topic.text, self._screen.hits.notation)}",
            )
            for training in topics
        ]

        dialog = Picking("Training topics with the document in their gold", choices)
        self._screen.pick(dialog, lambda index: self._show_training_topic(topics[index], document))

    def _citing_now(self, document: str) -> None:
        self._screen.head.end_wait()
        result = self._screen.hits.result
        if result is not None and result.hit.document_id == document:
            self.citing()

    def _show_training_topic(self, topic: GoldTopic, document: str) -> None:
        info = self._screen.searched.info
        page = TrainingTopicPage(topic, info.grades, self._screen.hits.notation, document)
        self._screen.app.push_screen(page)
        answers = page.answers

        def texts(searcher: TaskSearcher) -> dict[str, str]:
            sources = paging.sources(searcher.index, answers)
            return {name: str(source.get("text", "")) for name, source in sources.items()}

        self._screen.head.end_wait()  # the request replaces one of the same kind
        self._screen.quick.ask(SearchRequestKind.why, texts, page.show_texts, self._screen.tell_error)

    # Analysis

    def analysis(self) -> None:
        result = self._screen.result()
        if result is None:
            return
        task, quick = self._screen.searched, self._screen.quick
        text, query = result.text[:LONGEST], self._screen.loader.query.text[:LONGEST]

        def ask(
            field: str, receive: Callable[[SideBySide], object], failed: Callable[[Exception], object]
        ) -> None:
            self._screen.head.end_wait()  # the request replaces one of the same kind
            quick.ask(
                SearchRequestKind.why,
                lambda searcher: analyze.side_by_side(task, searcher.index, field, text, query),
                receive,
                failed,
            )

        self._screen.app.push_screen(AnalysisDialog(result.hit.document_id, analyze.fields_of(task), ask))
