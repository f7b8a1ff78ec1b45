"""Why a document is at its rank, or is not among the hits, on the search screen."""

from __future__ import annotations

from collections.abc import Callable

from searchapp.app import analyze
from searchapp.app.analyze import SideBySide
from searchapp.app.search import Searcher
from searchapp.app.solved import SolvedTopic
from searchapp.app.why import Comparison, Why, compare, ranked, said, why
from searchapp.ranking import search
from searchapp.ranking.signals.base import Vote
from searchapp.tui.dialogs import Words
from searchapp.tui.picking import Choice, Picking
from searchapp.tui.rows import one_line, shortened
from searchapp.tui.search.analysis import LONGEST, Analyzed
from searchapp.tui.search.asking import Kind
from searchapp.tui.search.comparing import Compared
from searchapp.tui.search.parts import SearchView
from searchapp.tui.search.reading import LONGEST_ID
from searchapp.tui.search.solved import SolvedPage, grade_said
from searchapp.tui.search.why import Explained


class Reasons:
    """Asks why, and shows the answer."""

    def __init__(self, screen: SearchView) -> None:
        self._screen = screen

    def why(self) -> None:
        result, listing = self._screen.result(), self._screen.searching.listing
        if result is None or listing is None:
            return
        request, rank, hit = listing.request, result.rank, result.hit
        self._screen.head.wait()
        self._screen.searching.asker.ask(
            Kind.why,
            lambda searcher: ranked(searcher, request, rank, hit),
            self._show_why,
            self._screen.tell_error,
        )

    def ask_document(self) -> None:
        self._screen.app.push_screen(Words("Go to the document with the id"), self._go_to)

    def _go_to(self, document: str | None) -> None:
        listing = self._screen.searching.listing
        if not document or listing is None:
            return
        self._screen.head.wait(f"looking for {shortened(document, LONGEST_ID)} …")
        self._screen.searching.asker.ask(
            Kind.why,
            lambda searcher: why(searcher, listing.request, document),
            self._went,
            self._screen.tell_error,
        )

    def _went(self, found: Why) -> None:
        """Go to a document that is ranked; say why another one is not."""
        if found.rank is not None and found.rank <= self._screen.hits.count:
            self._screen.head.came()
            self._screen.hits.move(found.rank - 1)
        else:
            self._show_why(found)

    def _show_why(self, found: Why) -> None:
        self._screen.head.came()
        of_it = said(found, self._screen.searched.name)
        dialog = Explained(found, of_it, lambda: self._choose_vote(found))
        self._screen.when_in_front(lambda: self._screen.app.push_screen(dialog))

    # Two hits

    def compare(self) -> None:
        """Mark the hit that the cursor is on; with another one marked, say why one of them is above the other."""
        result, listing, hits = self._screen.result(), self._screen.searching.listing, self._screen.hits
        if result is None or listing is None:
            return
        one, marked = (result.rank, result.hit), hits.marked
        key = self._screen.keys.shown("compare")
        if marked is None or marked.request is not listing.request:
            hits.mark_place(result)
            name = shortened(result.hit.document_id, LONGEST_ID)
            self._screen.head.tell(f"{name} is marked: {key} at another hit says why one is above the other")
            return
        hits.mark_place(None)
        if marked.place == one:
            self._screen.head.tell("no hit is marked any more")
            return
        other = marked.place
        self._screen.head.wait()
        self._screen.searching.asker.ask(
            Kind.why,
            lambda searcher: compare(searcher, listing.request, one, other),
            self._show_comparison,
            self._screen.tell_error,
        )

    def _show_comparison(self, found: Comparison) -> None:
        self._screen.head.came()
        self._screen.when_in_front(lambda: self._screen.app.push_screen(Compared(found)))

    # Solved topics

    def _choose_vote(self, found: Why) -> None:
        """Offer who voted for a document; the solved topic that is chosen is shown."""
        votes = found.votes

        def choice(vote: Vote) -> Choice:
            solved = self._screen.solved.topics
            name = vote.topic_id or vote.document_id
            topic = None if solved is None else solved.topic(vote.topic_id)
            text = "" if topic is None else one_line(topic.topic.text, self._screen.hits.notation)
            grade = grade_said(vote.grade, self._screen.searched.info.grades)
            return Choice(name, f"{vote.value:.4f} · {grade} · like the query {vote.score:.2f}  {text}")

        def chosen(place: int | None) -> None:
            if place is not None:
                self._open_vote(votes[place], found.document_id)

        def draw() -> None:
            if dialog.is_attached:
                dialog.replace([choice(one) for one in votes])

        dialog = Picking("Who voted for it", [choice(one) for one in votes])
        self._screen.app.push_screen(dialog, chosen)
        if self._screen.solved.topics is None:
            self._screen.solved.once(draw)

    def _open_vote(self, vote: Vote, document: str) -> None:
        solved = self._screen.solved.topics
        topic = None if solved is None else solved.topic(vote.topic_id)
        if topic is not None:
            self._show_solved(topic, document)
        elif vote.topic_id:
            self._screen.head.tell(
                self._screen.solved.trouble or "the solved topics are still being read", "$warning"
            )
        else:  # a graded document has voted
            self._screen.app.pop_screen()
            self._go_to(vote.document_id)

    def citing(self) -> None:
        """Offer the solved topics that the document is an answer to."""
        result = self._screen.result()
        if result is None:
            return
        document = result.hit.document_id
        found = self._screen.reading.citing(document)
        if found is None:
            self._screen.head.wait("the solved topics are read …")
            self._screen.solved.once(lambda: self._screen.when_in_front(lambda: self._citing_now(document)))
            return
        if not found:
            nothing = self._screen.solved.trouble or "no solved topic cites this document"
            self._screen.head.tell(nothing, "$warning")
            return
        choices = [
            Choice(one.topic.id, f"{one.split}  {one_line(one.topic.text, self._screen.hits.notation)}")
            for one in found
        ]

        def chosen(place: int | None) -> None:
            if place is not None:
                self._show_solved(found[place], document)

        self._screen.app.push_screen(Picking("Topics that cite the document", choices), chosen)

    def _citing_now(self, document: str) -> None:
        """Offer the solved topics that have come, unless somebody has gone on to another document."""
        self._screen.head.came()
        result = self._screen.hits.result
        if result is not None and result.hit.document_id == document:
            self.citing()

    def _show_solved(self, solved: SolvedTopic, document: str) -> None:
        info = self._screen.searched.info
        page = SolvedPage(solved, info.grades, self._screen.hits.notation, document)
        self._screen.app.push_screen(page)
        answers = page.answers

        def texts(searcher: Searcher) -> dict[str, str]:
            found = search.sources(searcher.index, answers) if answers else {}
            return {name: str(source.get("text", "")) for name, source in found.items()}

        self._screen.quick.ask(Kind.why, texts, page.show_texts, self._screen.tell_error)

    # Analysis

    def analysis(self) -> None:
        """Show the document and the words that are searched for on their way to terms."""
        result = self._screen.result()
        if result is None:
            return
        task, quick = self._screen.searched, self._screen.quick
        text, query = result.text[:LONGEST], self._screen.searching.sought.text[:LONGEST]

        def ask(
            field: str, came: Callable[[SideBySide], object], failed: Callable[[Exception], object]
        ) -> None:
            quick.ask(
                Kind.why,
                lambda searcher: analyze.side_by_side(task, searcher.index, field, text, query),
                came,
                failed,
            )

        self._screen.app.push_screen(Analyzed(result.hit.document_id, analyze.fields_of(task), ask))
