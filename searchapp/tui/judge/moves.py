"""Moving about on the judging screen: among lines, topics, panes and matches."""

from __future__ import annotations

from textual import on, work

from searchapp.errors import SearchappError
from searchapp.tui import pages
from searchapp.tui.content import Plain, entitle
from searchapp.tui.dialogs import Words
from searchapp.tui.judge.view import JudgeView
from searchapp.tui.line import Line
from searchapp.tui.rows import Rows


class JudgeMoves(JudgeView):
    """What moves the cursors."""

    def open_topic(self, place: int, document: str | None = None) -> None:
        """Show a topic, at a document or else at the first that is not judged."""
        old, self.place_of_topic = self.place_of_topic, place
        topic = self.topic_id
        try:
            order = self.desk.order(topic)
        except SearchappError as error:
            self.place_of_topic = old
            self._tell(str(error), "$error")
            return
        ranking, topics = self.ranking, self.topics
        self._forget_search()
        cursor = order.places.get(document) if document else self.desk.next_unjudged(topic)
        topics.current = place
        if place in topics.places:
            topics.move(topics.places.index(place))
        topics.refresh()
        self._fetch_block(order.documents, cursor or 0)
        ranking.open(topic, order.documents, cursor or 0)
        self.query_one("#topic-text", Plain).update(pages.topic_page(self.material.topic(topic), self._maths))
        self.query_one("#topic").scroll_home(animate=False)
        entitle(self.query_one("#topic"), f"Topic {topic}")
        self._show_document()
        self._show_figures()

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        if event.rows is self.ranking:
            self._show_document()

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        event.stop()
        if event.rows is self.topics:
            self._open_line()

    def _open_line(self) -> None:
        if self.topics.count:
            self.open_topic(self.topics.places[self.topics.cursor])
        self.remove_class("-topics")
        self.set_focus(self.ranking)

    def _go(self, place: int) -> None:
        """Put the cursor on a document and draw what belongs to it."""
        ranking = self.ranking
        ranking.redraw(ranking.cursor)
        ranking.put(place)
        self._show_document()

    def _next_unjudged(self) -> None:
        place = self.desk.next_unjudged(self.topic_id, self.ranking.cursor)
        if place is None:
            self._tell(f"topic done: {self.keys.shown('next_unjudged_topic')} goes on")
        else:
            self._go(place)

    def _next_unjudged_topic(self) -> None:
        place = self.desk.next_unjudged_topic(self.place_of_topic)
        if place is None:
            self._tell("✓ every document of every topic is judged", "$success")
        else:
            self.open_topic(place)

    # Panes

    def _to_topics(self) -> None:
        if self.focused is self.topics or self.has_class("-topics"):
            self._leave_topics()
        else:
            self.add_class("-topics")
            self.set_focus(self.topics)

    def _leave_topics(self) -> None:
        self.remove_class("-topics")
        self.set_focus(self.ranking)

    # Filter, search, jump

    def _filter(self) -> None:
        self.add_class("-topics")
        self.set_focus(self.query_one("#filter"))

    def filtered(self, words: str) -> None:
        sought = words.lower().split()
        topics = self.topics
        names = self.desk.topics
        topics.places = [
            place
            for place, topic in enumerate(names)
            if all(word in f"{topic} {self.material.topic(topic).text}".lower() for word in sought)
        ]
        here = topics.places.index(self.place_of_topic) if self.place_of_topic in topics.places else 0
        entitle(topics, "Topics" if not sought else f"Topics · {len(topics.places)} of {len(names)}")
        topics.show(len(topics.places), here)

    def filter_chosen(self, words: str) -> None:  # noqa: ARG002  # they are in force already
        self.set_focus(self.topics)

    def _search(self) -> None:
        self.add_class("-searching")
        self.set_focus(self.query_one("#search"))

    def search(self, words: str) -> None:
        self.leave_line(self.query_one("#search", Line))
        self._sought = tuple(words.lower().split())
        if self._sought:
            self._tell("searching …")
            self._find(self.topic_id, self._sought)
        else:
            self._forget_search()

    @work(thread=True, exclusive=True, group="search", exit_on_error=False)
    def _find(self, topic: str, sought: tuple[str, ...]) -> None:
        documents = self.ranking.documents
        try:
            texts = self.material.texts(documents)
        except SearchappError as error:
            self.app.call_from_thread(self._tell, str(error), "$error")
            return
        found = [
            place
            for place, (document, text) in enumerate(zip(documents, texts, strict=True))
            if all(word in f"{document} {text}".lower() for word in sought)
        ]
        self.app.call_from_thread(self._show_matches, topic, sought, found)

    def _show_matches(self, topic: str, sought: tuple[str, ...], found: list[int]) -> None:
        if topic != self.topic_id or sought != self._sought:
            return
        ranking = self.ranking
        ranking.matching = frozenset(found)
        ranking.refresh()
        if ranking.cursor in ranking.matching:
            self._show_document()
            self._tell_matches()
        else:
            self._next_match(1)

    def _next_match(self, step: int) -> None:
        ranking = self.ranking
        if not ranking.matching:
            self._tell(
                f"no document has {' and '.join(self._sought)}" if self._sought else "search with / first"
            )
            return
        places = sorted(ranking.matching, reverse=step < 0)
        self._go(next((place for place in places if (place - ranking.cursor) * step > 0), places[0]))
        self._tell_matches()

    def _tell_matches(self) -> None:
        places = sorted(self.ranking.matching)
        which = places.index(self.ranking.cursor) + 1 if self.ranking.cursor in self.ranking.matching else 0
        again = f"{self.keys.shown('previous_match')} {self.keys.shown('next_match')}"
        self._tell(f"“{' '.join(self._sought)}”: {which} of {len(places)} documents ({again})")

    def _forget_search(self) -> None:
        self._sought = ()
        self.ranking.matching = frozenset()

    def leave_line(self, line: Line) -> None:
        self.remove_class("-searching")
        if line.id == "filter":
            line.value = ""
            self.filtered("")
            self._leave_topics()
        else:
            self.set_focus(self.ranking)

    def _ask_document(self) -> None:
        def jump(id_: str | None) -> None:
            if not id_:
                return
            place = self.desk.order(self.topic_id).places.get(id_)
            if place is None:
                self._tell(f"the document {id_} is not among those of this topic", "$error")
            else:
                self._go(place)

        self.app.push_screen(Words("Jump to the document with the id"), jump)

    # Selection

    def _select(self) -> None:
        ranking = self.ranking
        if ranking.documents:
            ranking.selected ^= {ranking.cursor}
            ranking.redraw(ranking.cursor)
            self._move_selecting(1)

    def _select_on(self, step: int) -> None:
        ranking = self.ranking
        if ranking.documents:
            ranking.selected.add(ranking.cursor)
            self._move_selecting(step)
            ranking.selected.add(ranking.cursor)
            ranking.redraw(ranking.cursor)
            self._tell_selected()

    def _move_selecting(self, step: int) -> None:
        self.ranking.move(self.ranking.cursor + step)
        self._tell_selected()

    def _tell_selected(self) -> None:
        count = len(self.ranking.selected)
        self._tell(f"{count} selected: a grade is given to all of them" if count else "")

    def _clear(self) -> None:
        if self.has_class("-topics"):
            self._leave_topics()
        self.query_one("#filter", Line).value = ""
        self.filtered("")
        self.ranking.selected.clear()
        self._forget_search()
        self.ranking.refresh()
        self._show_document()
        self._tell("")

    # Looks

    def _toggle_maths(self) -> None:
        self._maths = not self._maths
        self.topics.maths = self._maths
        self._snippets.clear()
        self.query_one("#topic-text", Plain).update(
            pages.topic_page(self.material.topic(self.topic_id), self._maths)
        )
        self._show_document()
        self.topics.refresh()
        self.ranking.refresh()
