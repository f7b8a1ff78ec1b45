"""The list of topics: their order, a filter, their figures once they are there, and from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.app.topic_figures import Figures, Order
from searchapp.tui.content import entitle
from searchapp.tui.status import said_by
from searchapp.tui.topics.lists import shown_figure
from searchapp.tui.topics.parts import GoldView, TopicsView

ORDERS = {Order.file: "as in the run", Order.worst: "worst first", Order.missed: "most missed first"}


class TopicList:
    """Lists topics, and goes from one to the next; a subclass has their order and their figures."""

    def __init__(self, screen: GoldView) -> None:
        self._gold_view = screen

    # For subclasses

    def every(self) -> Sequence[str]:
        """The topics in the order that was asked for."""
        raise NotImplementedError

    def title(self) -> str:
        """What the list is called."""
        raise NotImplementedError

    def of_topic(self, topic: str) -> str:
        """The figures of a topic, for its border; nothing until they are known."""
        raise NotImplementedError

    def next_order(self) -> None:
        """Order the topics otherwise; the one in sight stays."""
        raise NotImplementedError

    # For the screen

    def list_topics(self) -> None:
        """List the topics that the filter leaves, in the order that was asked for."""
        screen = self._gold_view
        sought = screen.filter_line.value.lower().split()
        rows, pages = screen.topic_rows, screen.topics.pages
        every = self.every()
        left = [
            one for one in every if all(word in f"{one} {pages.topic(one).text}".lower() for word in sought)
        ]
        rows.topics, rows.current = left, screen.sought
        rows.show(len(left), left.index(screen.sought) if screen.sought in left else 0)
        self.entitle(f" · {len(left):,} of {len(every):,}" if sought else "")

    def entitle(self, words: str = "") -> None:
        """Say in the border what the list is."""
        entitle(self._gold_view.topic_rows, f"{self.title()}{words}")

    def so_far(self, words: str) -> None:
        """Say how far the figures are."""
        self.entitle(words)
        ranked = self._gold_view.ranked
        if ranked is not None:  # where the list is out of sight
            self._gold_view.reading.entitle_topic(ranked.topic_id, words)

    def entitle_topic(self) -> None:
        """Write the figures of the topic in sight into its border."""
        ranked = self._gold_view.ranked
        if ranked is not None:
            self._gold_view.reading.entitle_topic(ranked.topic_id, self.of_topic(ranked.topic_id))

    def go_to_first(self) -> None:
        """Open the first topic in the order that was asked for."""
        screen = self._gold_view
        screen.filter_line.value = ""
        every = self.every()
        if every:
            screen.sought = every[0]
            self.list_topics()
            screen.open_topic(every[0])

    def walk(self, step: int) -> None:
        """Open the next topic of the list, or the one before."""
        screen, topics = self._gold_view, self._gold_view.topic_rows.topics
        here = topics.index(screen.sought) if screen.sought in topics else -1 if step > 0 else len(topics)
        if 0 <= here + step < len(topics):
            screen.open_topic(topics[here + step])
        else:
            screen.head.tell(f"this is the {'last' if step > 0 else 'first'} topic of the list")


class Walking(TopicList):
    """The topics of a run; with `failing` only those that something is wrong with."""

    def __init__(self, screen: TopicsView, order: Order, *, failing: bool = False) -> None:
        super().__init__(screen)
        self._screen = screen
        self.order = order
        self.failing = failing

    def every(self) -> Sequence[str]:
        figures = self._screen.figures
        every = self._screen.topics.in_order(self.order, figures)
        if not self.failing or figures is None:
            return every
        return [one for one in every if one in figures.topics and figures.topics[one].fails]

    def title(self) -> str:
        figures = self._screen.figures
        what = "Topics" if figures is None else f"{figures.name}, missed gold"
        if self.failing:
            what = f"Failures · {what}"
        return what if self.order is Order.file else f"{what} · {ORDERS[self.order]}"

    # Figures

    def figures_came(self, figures: Figures) -> None:
        """Show the figures, and let them order the topics."""
        screen = self._screen
        screen.take_figures(figures)
        if screen.is_untouched and (self.order is not Order.file or self.failing):
            self.to_worst()
        else:
            self.list_topics()
        self.entitle_topic()
        if figures.instead_of is not None:
            measure = screen.topics.task.info.official_measure
            screen.head.tell(f"{figures.name} in place of {measure}: {figures.instead_of}", "$warning")

    def no_figures(self, error: Exception) -> None:
        """Say why there are none."""
        self.entitle()
        if self._screen.ranked is not None:
            self._screen.reading.entitle_topic(self._screen.ranked.topic_id, "")
        self._screen.head.tell(said_by(error), "$warning")

    def of_topic(self, topic: str) -> str:
        figures = self._screen.figures
        found = None if figures is None else figures.topics.get(topic)
        if figures is None or found is None:
            return ""
        value = "no figure" if found.value is None else shown_figure(found.value)
        return f" · {figures.name} {value} · {found.missed} of {found.relevant} missed"

    # Orders

    def next_order(self) -> None:
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
        self.go_to_first()

    def toggle_failing(self) -> None:
        """Leave the topics that fail, the worst first, and of their rankings what is not relevant; or all again."""
        if not self._are_there():
            return
        self.failing = not self.failing
        if not self.failing:
            self.list_topics()
            self._screen.show_ranking()
            self._screen.head.tell("all topics, and all documents")
            return
        if not self.every():
            self.failing = False
            self._screen.head.tell(
                "no topic fails: nothing is missed, and no other document is before the gold"
            )
            return
        self.to_worst()
        self._screen.head.tell("failures: what is not relevant in the ranking, what is missed below it")

    def _are_there(self) -> bool:
        if self._screen.figures is None:
            self._screen.head.tell("there are no figures to order the topics by yet", "$warning")
            return False
        return True
