"""The screen that compares two runs: differences by topic, rankings of a topic side by side, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from searchapp.app.compare import compared_pairs
from searchapp.app.comparison import Comparison, Pair, TopicDifference
from searchapp.app.inspection.explanation import Explained
from searchapp.app.inspection.topic_comparison import Comparing, Sorting
from searchapp.app.inspection.topics import TopicRanking
from searchapp.config.settings import SPACINGS, Settings
from searchapp.files import distinct_names
from searchapp.judging.session import Session
from searchapp.tui.compare.differences import (
    ComparedRows,
    DifferenceRows,
    FigureLines,
    Figuring,
    figure_line,
    shown_difference,
)
from searchapp.tui.gold import actions
from searchapp.tui.gold.actions import GRADING
from searchapp.tui.gold.lists import LONGEST_ID, Kind, MissedRows, shown_figure
from searchapp.tui.gold.screen import GoldScreen, Side
from searchapp.tui.kit.content import Content
from searchapp.tui.kit.dialogs import Choice, Picking, TextDialog
from searchapp.tui.kit.explanation import DIALOG_ID_CELLS, explained, sentence, shares
from searchapp.tui.kit.keys import (
    DOCUMENT_PANE,
    TOPIC_PANE,
    TOPICS_FILTER,
    KeyAction,
    KeyMap,
    PaneHelp,
    load,
)
from searchapp.tui.kit.screen import KeyApp
from searchapp.tui.kit.status import error_text
from searchapp.tui.kit.widgets import KeyLine, shortened

_RANKING = (
    "The documents of the topic in the order of this run. An arrow says by how many ranks a document stands higher (↑) "
    "or lower (↓) in the second run than in the first; = says that its rank is the same, + that only this run has it."
)
_MISSED = "Relevant documents that are not in this ranking, each with its rank further down or the reason."
_ACTIONS = ("next_gold", "next_moved", "next_missed", "other", "why", "judge", "next_topic", "jump")

PANES = {
    "first": PaneHelp("The ranking of the first run", _RANKING, (), _ACTIONS),
    "first-missed": PaneHelp(
        "The missed gold of the first run", _MISSED, (), ("next_missed", "other", "why", "jump")
    ),
    "second": PaneHelp("The ranking of the second run", _RANKING, (), _ACTIONS),
    "second-missed": PaneHelp(
        "The missed gold of the second run", _MISSED, (), ("next_missed", "other", "why", "jump")
    ),
    "topics": PaneHelp(
        "The differences by topic",
        "Each topic with the second run's figure less the first's, as a bar to the right where the second is better.",
        (),
        ("open", "order", "measure", "runs", "filter", "jump"),
    ),
    "topic": TOPIC_PANE,
    "document": DOCUMENT_PANE,
    "filter": TOPICS_FILTER,
}


SECTION = "compare"

_RUNS, _GOLD = "Runs", "Gold"

_OWN = (
    KeyAction("runs", _RUNS, "Choose which two of the runs are compared", ("r",), "runs"),
    KeyAction("measure", _RUNS, "The next measure", ("M",), "measure"),
    KeyAction(
        "other",
        _RUNS,
        "To the same document in the other run, or to where it was",
        ("a", "equals_sign"),
        "other run",
    ),
    KeyAction(
        "next_moved",
        _GOLD,
        "Document whose move between the runs counts most, then the next one",
        ("v",),
        "next moved",
    ),
    KeyAction("previous_moved", _GOLD, "Moved document that counts more", ("V",)),
)

_OTHERWISE = {
    "order": KeyAction(
        "order",
        "Topics",
        "Greatest gains first, greatest losses, greatest differences, as in the run",
        ("o",),
        "order",
    ),
    "worst_topic": KeyAction(
        "first_topic", "Topics", "To the first topic in this order", ("W",), "first topic"
    ),
    "why": KeyAction(
        "why", "Gold", "Why the document is at its rank in each run, or is missed", ("w", "f6"), "why"
    ),
    "next_pane": KeyAction(
        "next_pane",
        "Move",
        "Next pane: topics, both rankings and their missed gold, topic, document",
        ("tab",),
    ),
}
"""What is done otherwise than on the screen of topics."""

KEY_ACTIONS = (
    *_OWN,
    *(_OTHERWISE.get(one.name, one) for one in actions.KEY_ACTIONS if one.name != "failures"),
)

IN_LAST_LINE = ("next_moved", "other", "next_gold", "why", "judge", "next_topic", "next_missed", "topics", "order",
                "measure", "runs", "filter", "first_topic", "maths", "zoom", "document", "copy_id", "copy_command",
                "pager", "theme", "quit", "help")  # fmt: skip
"""What the last line says."""


Found = tuple[str, Explained | Exception]
"""The name of a run, and what became of a document there, or why nobody can say."""


class ExplainedTwice(TextDialog):
    """Says why a document is where it is in two runs of a task, `of_what`."""

    def __init__(self, document: str, found: Sequence[Found], of_what: str) -> None:
        super().__init__(f"{shortened(document, DIALOG_ID_CELLS)} in both runs")
        self._found = found
        self._of_what = of_what

    def text(self) -> Content:
        lines: list[Content] = []
        for name, found in self._found:
            lines += [Content("")] if lines else []
            lines.append(Content.styled(name, "bold $accent"))
            lines += self._about(found)
        return Content("\n").join(lines)

    def _about(self, found: Explained | Exception) -> list[Content]:
        if isinstance(found, Exception):
            return [Content.styled(error_text(found), "$error")]
        why = found.why
        lines = [Content.styled(sentence(why.document_id, found.said(self._of_what)), "bold")]
        if why.explanation is not None:
            lines += [*shares(why, self.room), explained(why.explanation, self.room)]
        return lines


SORTED = {
    Sorting.gains: "greatest gains first",
    Sorting.losses: "greatest losses first",
    Sorting.changes: "greatest differences first",
    Sorting.file: "as in the first run",
}


COLUMNS = {
    "topics": "left",
    "first": "first-run",
    "first-missed": "first-run",
    "second": "second-run",
    "second-missed": "second-run",
    "topic": "right",
    "document": "right",
}

RUNS = ("first", "second")
"""The ids of the two rankings; those of their missed gold have more behind them."""

NAME_CELLS = 24
"""Of the name of a run: a longer one is cut, so that the other one and what was just done stay in sight."""

LISTS = ("second", "second-missed", "first", "first-missed", "topics")


class CompareScreen(GoldScreen):
    """Somebody compares two runs."""

    CSS_PATH = Path(__file__).with_name("compare.tcss")
    AUTO_FOCUS = "#second"
    ABOUT = PANES

    topic_rows: DifferenceRows

    def __init__(
        self, comparing: Comparing, keys: KeyMap, session: Callable[[], Session], start: str | None
    ) -> None:
        topics = comparing.topics[0]
        super().__init__(keys, "", COLUMNS, LISTS, topics, session, command(comparing), start)
        self.comparing = comparing
        self.order = Sorting.gains
        self.found: Comparison | None = None
        self._pairs = compared_pairs(comparing.request)
        self._run_names = distinct_names(comparing.request.runs)
        self._pair = self._pairs[0]
        self._measure_number = 0
        self._at = 1
        self._choosing: Picking | None = None
        text = self.documents.beginning
        self._rankings = [ComparedRows(text, is_second=bool(at), id=name) for at, name in enumerate(RUNS)]
        self._missed = [MissedRows(text, id=f"{rows.id}-missed") for rows in self._rankings]
        self.sides = self._made_sides()
        self.topic_rows = DifferenceRows(topics.pages)
        self.figure_lines = FigureLines()
        self.figuring = Figuring(comparing, self.later, self._so_far, self._came, self._failed)

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.figure_lines
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self.filter_line
                yield self.topic_rows
            with Vertical(id="main"):
                with Horizontal(id="runs"):
                    for ranking, missed in zip(self._rankings, self._missed, strict=True):
                        with Vertical(id=f"{ranking.id}-run"):
                            yield ranking
                            yield missed
                yield self.reading
        yield KeyLine(self._grade_entries(self.judging.labels, *GRADING), 2, id="grades")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        self.head.retitle(self._heading)
        super().begin()

    def begun(self) -> None:
        self.figuring.begin()

    def on_unmount(self) -> None:
        super().on_unmount()
        self.figuring.close()

    # The two runs

    @property
    def _heading(self) -> str:
        pages = self.comparing.topics[0].pages
        return f"{pages.task.name} {pages.split or ''} · {self.names[0]} → {self.names[1]}"

    @property
    def names(self) -> tuple[str, str]:
        """What distinguishes the two runs that are compared, each on one line."""
        first, second = self._pair
        return shortened(self._run_names[first], NAME_CELLS), shortened(self._run_names[second], NAME_CELLS)

    def _made_sides(self) -> list[Side]:
        return [
            Side(self.comparing.topics[number], ranking, missed, self.later)
            for number, ranking, missed in zip(self._pair, self._rankings, self._missed, strict=True)
        ]

    @property
    def side(self) -> Side:
        return self.sides[self._at]

    @property
    def beside(self) -> Side:
        """The run that the cursor is not in."""
        return self.sides[1 - self._at]

    def go_into(self, side: Side, in_missed: bool) -> None:
        super().go_into(side, in_missed)
        self._at = self.sides.index(side)

    def ranking_title(self, side: Side) -> str:
        return self.names[self.sides.index(side)]

    def _choose_runs(self) -> None:
        """Ask which two of the runs are compared."""
        if len(self._pairs) == 1:
            self.head.tell(f"two runs are compared: {self.names[0]} and {self.names[1]}")
            return

        def chosen(place: int | None) -> None:
            if place is not None:
                with self.app.batch_update():
                    self._compare(self._pairs[place])

        here = self._pairs.index(self._pair)
        self._choosing = Picking("Which runs?", self._choices(), here)
        self.app.push_screen(self._choosing, chosen)

    def _choices(self) -> list[Choice]:
        """The pairs of runs, each with its figures once they are known."""
        choices, found = [], self.found
        for place, (first, second) in enumerate(self._pairs):
            words = ""
            if found is not None:
                measured = found.measures[self._measure_number]
                words = figure_line(measured, measured.pairs[place], self.size.width).plain
            choices.append(Choice(f"{self._run_names[first]} → {self._run_names[second]}", words))
        return choices

    def _compare(self, pair: tuple[int, int]) -> None:
        """Compare two others of the runs."""
        if pair == self._pair:
            return
        self._pair = pair
        for side in self.sides:
            side.close()
        self.sides = self._made_sides()
        self.head.retitle(self._heading)
        self.open_topic(self.sought)
        self._show_figures()
        if self.judging.is_on:
            self._judge_again()

    # Documents in both runs

    def _next_moved(self, step: int) -> None:
        """To the document whose move between the runs counts most, from there to the next one, or to that before it."""
        ranking = self._rankings[self._at]
        place = ranking.next_moved(step)
        self.focus_rows(ranking)
        if place is None:
            self.head.tell("no further document of this ranking has moved")
        else:
            ranking.move(place)
            self.show_document()

    def _across(self) -> None:
        """To the document of the cursor in the other run: in its ranking or its missed gold."""
        document, beside = self.document_id, self.beside
        if document is None:
            self.focus_rows(beside.ranking)
        elif not self.go_to(document, [beside]):
            name, key = self.names[1 - self._at], self.keys.shown("why")
            self.focus_rows(beside.ranking)
            self.head.tell(
                f"{shortened(document, LONGEST_ID)} is not in {name}: {key} there says why of any id"
            )

    def explain(self, document: str) -> None:
        topic, names = self.topic_id, self.names
        found: dict[int, Explained | Exception] = {}

        def came(number: int, explained: Explained | Exception) -> None:
            found[number] = explained
            if len(found) == len(names):
                self.head.came()
                both = [(names[one], found[one]) for one in sorted(found)]
                dialog = ExplainedTwice(document, both, self.topics.task.name)
                self.when_in_front(lambda: self.app.push_screen(dialog))

        self.head.wait(f"looking for {shortened(document, LONGEST_ID)} …")
        for number, side in enumerate(self.sides):
            side.slow.ask(
                Kind.why,
                lambda topics: topics.why(topic, document),
                partial(came, number),
                partial(came, number),
            )

    # The list of topics

    def ordered_topics(self) -> Sequence[str]:
        return self.comparing.in_order(self.order, self.topic_rows.differences)

    def list_title(self) -> str:
        measured = self.measured
        return f"{measured} by topic · {SORTED[self.order]}" if measured else "Topics"

    def figures_of(self, topic: str) -> str:
        found = self.topic_rows.differences.get(topic)
        if found is None:
            return ""
        said = [
            f"{len(moves):,} {word}"
            for word, moves in (("gained", found.gained), ("lost", found.lost), ("moved", found.moved))
            if moves
        ]
        values = f"{shown_figure(found.first)} → {shown_figure(found.second)}"
        behind = f" · {', '.join(said)}" if said else ""
        return f" · {values} {shown_difference(found.difference).strip()}{behind}"

    def next_order(self) -> None:
        if self._has_differences():
            orders = list(Sorting)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            self.list_topics()
            self.head.tell(f"topics: {SORTED[self.order]}")

    def _has_differences(self) -> bool:
        if not self.topic_rows.differences:
            self.head.tell("there are no differences to order the topics by yet", "$warning")
            return False
        return True

    # Figures

    @property
    def measured(self) -> str:
        """The measure that topics are looked at by; nothing as long as it is not known."""
        return "" if self.found is None else self.found.measures[self._measure_number].name

    def _so_far(self, words: str) -> None:
        if self.found is None:
            self.figure_lines.tell(words)
            self.tell_progress(f" · {words}")

    def _came(self, found: Comparison) -> None:
        is_first, self.found = self.found is None, found
        for warning in found.warnings if is_first else ():
            self.head.tell(warning, "$warning", add=True)
        self._show_figures(is_first=is_first)
        if self._choosing is not None and self._choosing.is_attached:
            self._choosing.replace(self._choices())
        if not is_first:  # of a topic that is open more may be relevant now
            for side in self.sides:
                if side.ranked is not None:
                    side.ranking.relevant = side.missed.relevant = side.topics.relevant(side.ranked.topic_id)
                    side.ranking.refresh()

    def _failed(self, error: Exception) -> None:
        self.figure_lines.tell(error_text(error), "$error")
        self.entitle_topics()
        self.entitle_topic()

    def _show_figures(self, *, is_first: bool = False) -> None:
        """Show the figures of the pair in sight, and then its differences by topic."""
        found = self.found
        if found is None:
            return
        measured = found.measures[self._measure_number]
        self.figure_lines.show(measured, measured.pairs[self._pairs.index(self._pair)])
        pair = self._pair

        def came(topics: Sequence[TopicDifference]) -> None:
            if pair == self._pair and found is self.found:
                self._differences_came(topics, is_first=is_first)

        self.figuring.differences(found, pair, self._measure_number, came)

    def _differences_came(self, topics: Sequence[TopicDifference], *, is_first: bool) -> None:
        self.topic_rows.differences = {one.topic_id: one for one in topics}
        if is_first and self.is_untouched and not self.judging.is_on:
            self.go_to_first()
        elif self.judging.is_on:  # who judges finds the topics where they were
            self.topic_rows.refresh()
            self.entitle_topics()
        else:
            self.list_topics()
        self.entitle_topic()

    def _next_measure(self) -> None:
        """Look at the topics by the next measure."""
        found = self.found
        if found is None:
            self.head.tell("the runs are still being compared", "$warning")
            return
        self._measure_number = (self._measure_number + 1) % len(found.measures)
        self.head.tell(f"by {self.measured}, {self._measure_number + 1} of {len(found.measures)} measures")
        self._show_figures()
        if self.judging.is_on:
            self._judge_again()

    # Judging, which figures follow

    def toggle_judging(self) -> None:
        super().toggle_judging()
        if self.judging.is_on:
            self._judge_again()
        else:
            self.figure_lines.tell_judged(None)

    def redraw(self, documents: Iterable[str] | None) -> None:
        super().redraw(documents)
        if self.judging.is_on:
            self._judge_again()

    def _judge_again(self) -> None:
        """Let the figures follow what was judged."""
        if self.comparing.follows:
            self.figuring.begin()
        else:
            self.figuring.judged(self._judged_came, self._not_judged)

    def _not_judged(self, error: Exception) -> None:
        if self.judging.is_on:
            self.figure_lines.tell_judged(error_text(error), "$warning")

    def _judged_came(self, found: Comparison | None) -> None:
        if not self.judging.is_on:
            return
        if found is None:
            self.figure_lines.tell_judged("nothing of these topics yet")
            return
        here = self._pairs.index(self._pair)
        names = [one.name for one in found.measures]
        measured = found.measures[names.index(self.measured) if self.measured in names else 0]
        pair: Pair = measured.pairs[here]
        topics = f"{measured.topics:,} topic{'s' * (measured.topics != 1)}"
        shares = [
            f"{cut} {' → '.join(f'{found.runs[number].judged[cut]:.0%}' for number in self._pair)}"
            for cut in list(found.runs[0].judged)[:1]
        ]
        self.figure_lines.show_judged(measured, pair, " · ".join([topics, *shares]))

    # A topic

    def _topic_came(self, side: Side, found: TopicRanking) -> None:
        super()._topic_came(side, found)
        first, second = (one.ranked for one in self.sides)
        if first is None or second is None or first.topic_id != second.topic_id:
            return
        ranks = [
            {document: rank for rank, document in enumerate(one.documents, 1)} for one in (first, second)
        ]
        for rows, of_other in zip(self._rankings, reversed(ranks), strict=True):
            rows.others = of_other
        self.show_document()

    def show_side(self, side: Side) -> None:
        self._rankings[self.sides.index(side)].others = None
        super().show_side(side)

    def show_document(self) -> None:
        super().show_document()
        # The other list stands on the same document, if it has it.
        document, rows = self.document_id, self._rankings[self._at]
        place = None if document is None or rows.others is None else rows.others.get(document)
        if place is not None:
            self._rankings[1 - self._at].put(place - 1)

    def actions(self) -> dict[str, Callable[[], object]]:
        return {
            **super().actions(),
            "runs": self._choose_runs,
            "measure": self._next_measure,
            "other": self._across,
            "next_moved": lambda: self._next_moved(1),
            "previous_moved": lambda: self._next_moved(-1),
            "first_topic": lambda: self.go_to_first() if self._has_differences() else None,
        }


class CompareApp(KeyApp):
    """Shows the compare screen until it is left."""

    def __init__(self, compared: CompareScreen, theme: str, spacing: str = SPACINGS[0]) -> None:
        super().__init__(compared, theme, spacing)
        self.compared = compared


def compare_screen(
    comparing: Comparing, settings: Settings, session: Callable[[], Session], start: str | None = None
) -> CompareScreen:
    """The screen of runs beside each other.

    `session` opens that of whoever judges there, if somebody does. `start` is the topic to begin with.

    Raises:
        UsageError: there is no topic `start`, or none at all.
        DataError: the settings file gives the screen's keys what they can't be.
    """
    for topics in comparing.topics:
        topics.require(start)
    labels = comparing.topics[0].task.info.grades
    keys = load(settings.of_user, labels, SECTION, KEY_ACTIONS).keys
    return CompareScreen(comparing, keys, session, start)


def command(comparing: Comparing) -> Sequence[str]:
    """The command that opens the same screen, up to the topic."""
    request = comparing.request
    options = {"--baseline": request.baseline, "--data": request.source.data, "--depth": request.depth}
    given = [str(one) for name, value in options.items() if value is not None for one in (name, value)]
    given += [one for name in request.source.measures for one in ("--measure", name)]
    given += [str(one) for path in request.source.gold for one in ("--gold", path)]
    given += ["--anyway"] if request.anyway else []
    given += ["--judgments"] if comparing.follows else []
    return ("searchapp", "compare", *map(str, request.runs), "--screen", *given)
