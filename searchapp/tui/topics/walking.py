"""The list of topics: their order, a filter, their figures once they are there, and from one to the next."""

from __future__ import annotations

from searchapp.app.topic_figures import Figures, Order
from searchapp.tui.content import entitle
from searchapp.tui.status import said_by
from searchapp.tui.topics.lists import shown_figure
from searchapp.tui.topics.parts import TopicsView

ORDERS = {Order.file: "as in the run", Order.worst: "worst first", Order.missed: "most missed first"}


class Walking:
    """Lists the topics, and goes from one to the next."""

    def __init__(self, screen: TopicsView, order: Order) -> None:
        self._screen = screen
        self.order = order

    def list_topics(self) -> None:
        """List the topics that the filter leaves, in the order that was asked for."""
        screen = self._screen
        sought = screen.filter_line.value.lower().split()
        rows, pages = screen.topic_rows, screen.topics.pages
        every = screen.topics.in_order(self.order, rows.figures)
        left = [
            one for one in every if all(word in f"{one} {pages.topic(one).text}".lower() for word in sought)
        ]
        rows.topics, rows.current = left, screen.sought
        rows.show(len(left), left.index(screen.sought) if screen.sought in left else 0)
        self._entitle(f" · {len(left):,} of {len(every):,}" if sought else "")

    def _entitle(self, words: str = "") -> None:
        figures = self._screen.topic_rows.figures
        what = "Topics" if figures is None else f"{figures.name}, missed gold"
        order = "" if self.order is Order.file else f" · {ORDERS[self.order]}"
        entitle(self._screen.topic_rows, f"{what}{order}{words}")

    # Figures

    def so_far(self, share: float) -> None:
        """Say how far the figures are."""
        words = f" · figures {share:.0%}"
        self._entitle(words)
        ranked = self._screen.ranked
        if ranked is not None:  # where the list is out of sight
            self._screen.reading.entitle_topic(ranked.topic_id, words)

    def figures_came(self, figures: Figures) -> None:
        """Show the figures, and let them order the topics."""
        screen = self._screen
        screen.topic_rows.figures = figures
        is_untouched = screen.opened.start is None and screen.sought == screen.topics.topics[0]
        if self.order is not Order.file and is_untouched:
            self.to_worst()
        else:
            self.list_topics()
        if screen.ranked is not None:
            screen.reading.entitle_topic(screen.ranked.topic_id, self.of_topic(screen.ranked.topic_id))
        if figures.instead_of is not None:
            measure = screen.topics.task.info.official_measure
            screen.head.tell(f"{figures.name} in place of {measure}: {figures.instead_of}", "$warning")

    def no_figures(self, error: Exception) -> None:
        """Say why there are none."""
        self._entitle()
        if self._screen.ranked is not None:
            self._screen.reading.entitle_topic(self._screen.ranked.topic_id, "")
        self._screen.head.tell(said_by(error), "$warning")

    def of_topic(self, topic: str) -> str:
        """The figures of a topic, for its border; nothing until they are known."""
        figures = self._screen.topic_rows.figures
        found = None if figures is None else figures.topics.get(topic)
        if figures is None or found is None:
            return ""
        value = "no figure" if found.value is None else shown_figure(found.value)
        return f" · {figures.name} {value} · {found.missed} of {found.relevant} missed"

    # From one to the next

    def next_order(self) -> None:
        """Order the topics otherwise; the one in sight stays."""
        if self._are_there():
            orders = list(Order)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            self.list_topics()
            self._screen.head.tell(f"topics {ORDERS[self.order]}")

    def to_worst(self) -> None:
        """Open the worst topic, or where the topics with most missed gold come first the first of these."""
        if not self._are_there():
            return
        if self.order is Order.file:
            self.order = Order.worst
        screen = self._screen
        screen.filter_line.value = ""
        worst = screen.topics.in_order(self.order, screen.topic_rows.figures)[0]
        screen.sought = worst
        self.list_topics()
        screen.open_topic(worst)

    def walk(self, step: int) -> None:
        """Open the next topic of the list, or the one before."""
        screen, topics = self._screen, self._screen.topic_rows.topics
        here = topics.index(screen.sought) if screen.sought in topics else -1 if step > 0 else len(topics)
        if 0 <= here + step < len(topics):
            screen.open_topic(topics[here + step])
        else:
            screen.head.tell(f"this is the {'last' if step > 0 else 'first'} topic of the list")

    def _are_there(self) -> bool:
        if self._screen.topic_rows.figures is None:
            self._screen.head.tell("there are no figures to order the topics by yet", "$warning")
            return False
        return True
