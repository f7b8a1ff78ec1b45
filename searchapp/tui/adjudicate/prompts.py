"""Adjudication by prompts, line by line: for screen readers, simple terminals and scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TextIO

from searchapp.app.inspection.pages import Pages
from searchapp.errors import UsageError
from searchapp.judging.events import Kind, grade_label
from searchapp.judging.session import Adjudication, Dispute, Outcome
from searchapp.judging.view import Key
from searchapp.tui.kit.content import readable
from searchapp.tui.kit.descriptions import arrivals_label, opinion_text, topic_lines
from searchapp.tui.kit.prompts import NOTE, Ask, Conversation, leave_by_prompts

DONE = "every disagreement is decided: q leaves"

HELP = """\
0, 1, ...        decide for this grade; words after it are the reason: 1 defines the term
n                next undecided disagreement; an empty line is n
+, -             next and previous disagreement
# 12             go to the twelfth disagreement
a words          annotate: a note on this document, or on the one just decided
u, U             undo the last decision or note, redo it
m                Switch between rendered text, raw text and LaTeX source
g                the guidelines: what the grades mean, with examples
?                this help
q                leave; everything is saved"""


class AdjudicatePrompts(Conversation):
    """Prompts with which an adjudicator decides."""

    def __init__(
        self,
        adjudication: Adjudication,
        run_pages: Pages,
        title: str,
        ask: Ask = input,
        out: TextIO | None = None,
    ) -> None:
        super().__init__(adjudication.session, run_pages, title, ask, out)
        self.adjudication = adjudication
        self.run_pages = run_pages
        self._index = -1
        # The document just decided on, if there is no other to go to.
        self._resting_on: Key | None = None
        # The disagreement decided last, while the one after it is shown: a note belongs to it.
        self._decided: Dispute | None = None

    @property
    def dispute(self) -> Dispute:
        """The present disagreement.

        Raises:
            UsageError: all disagreements are resolved.
        """
        if not self.adjudication.disputes:
            raise UsageError("no disagreements are left: q leaves")
        return self.adjudication.disputes[self._index]

    def _begin(self) -> None:
        self._next_open()

    def _obey(self, line: str) -> bool:
        word, _space, rest = line.partition(" ")
        simple: dict[str, Callable[[], object]] = {
            "": self._next_open,
            "+": lambda: self._go(self._index + 1),
            "-": lambda: self._go(self._index - 1),
            "u": lambda: self._again(self.adjudication.session.undo(), "undone"),
            "U": lambda: self._again(self.adjudication.session.redo(), "done again"),
            "n": lambda: self._say(NOTE) if rest else self._next_open(),
            "a": lambda: self._note(rest.strip()),
            "m": self._toggle_maths,
            "g": self._read_guidelines,
            "?": lambda: self._say(HELP),
        }
        if word in ("q", "quit", "exit"):
            return not leave_by_prompts(self.adjudication.session, self._say, self._ask)
        if not self._refresh():
            return True  # the line was typed for a disagreement that is gone
        if word.isdecimal():
            self._decide(int(word), rest.strip())
        elif match := re.fullmatch(r"#\s*(\d+)", line):
            self._go(int(match[1]) - 1)
        elif word in simple:
            simple[word]()
        else:
            self._say(f"unknown command {word!r}: ? lists all commands")
        return True

    def _refresh(self) -> bool:
        """Read others' events; return whether the disagreement still exists."""
        key = self.dispute.key
        if events := self.adjudication.refresh():
            self._say(arrivals_label(events, self.adjudication.session.author.annotator))
        index = self.adjudication.index_of(key)
        if index is None:
            self._say("the disagreement that was shown is resolved")
            self._index = min(self._index, len(self.adjudication.disputes)) - 1
            self._next_open()
            return False
        self._index = index
        return True

    def _decide(self, grade: int, reason: str) -> None:
        if grade >= len(self.labels):
            self._say(f"unknown grade {grade}: nothing was saved")
            return
        dispute, label = self.dispute, grade_label(grade, self.labels)
        self.run_pages.require_as_ranked(dispute.document_id)
        before = self.adjudication.decision(dispute)
        if before is not None and before.grade != grade:
            was = grade_label(before.grade or 0, self.labels)
            if self._resting_on == dispute.key and not self._agrees(
                f"{self._name(dispute.document_id)} is decided: {was}. Change it to {label}?"
            ):
                return
            label += f", was {was}"
        elif before is not None and self._resting_on == dispute.key:
            self._say(f"already decided {label}: {DONE}")
            return
        outcome = self.adjudication.decide(dispute, grade, reason)
        self._report(outcome, f"decided {label}: {self._name(dispute.document_id)}")
        self._next_open()
        if self.dispute.key == dispute.key:
            self._resting_on = dispute.key
        self._decided = dispute

    def _note(self, words: str) -> None:
        if not words:
            self._say(NOTE)
        else:
            dispute = self._decided or self.dispute
            outcome = self.adjudication.note(dispute, words)
            self._report(outcome, f"a note: {self._name(dispute.document_id)}")

    def _again(self, outcome: Outcome | None, label: str) -> None:
        if outcome is None:
            self._say("nothing to undo or redo")
            return
        event = outcome.events[0]
        self._report(outcome, f"{label}: {self._name(event.document_id)}")
        index = self.adjudication.index_of((event.topic_id, event.document_id))
        if index is not None:
            self._go(index)

    def _next_open(self) -> None:
        index = self.adjudication.next_open(self._index)
        if index is None:
            self._say(DONE)
            self._index = max(self._index, 0)
        else:
            self._go(index)

    def _go(self, index: int) -> None:
        if not 0 <= index < len(self.adjudication.disputes):
            self._say("no disagreement has this number")
            return
        self._index = index
        self._resting_on = self._decided = None
        self._read()

    def _toggle_maths(self) -> None:
        super()._toggle_maths()
        self._read()

    def _read(self) -> None:
        dispute = self.dispute
        topic, page = self.run_pages.topic(dispute.topic_id), self.run_pages.page(*dispute.key)
        self._say_news(self.run_pages.news)
        self._say_news(self._session.news)
        where = f"{self._index + 1} of {len(self.adjudication.disputes)}"
        text, *others = topic_lines(topic, self._notation)
        self._say(f"\n{where}. Topic {dispute.topic_id}: {text}")
        for line in others:
            self._say(line)
        text = "" if page.is_missing else readable(page.text, (), self._notation).text
        self._say(f"Document {dispute.document_id}: {text or 'not in the index'}")
        for opinion in self.adjudication.opinions(dispute):
            kind = "a model" if opinion.kind is Kind.model else "a person"
            self._say(f"{opinion.annotator}, {kind}: {opinion_text(opinion, self.labels, with_kind=False)}")
        decision = self.adjudication.decision(dispute)
        if decision is not None:
            reason = f": {decision.text}" if decision.text else ""
            self._say(
                f"decided by {decision.annotator}: {grade_label(decision.grade or 0, self.labels)}{reason}"
            )
        if note := self.adjudication.words(dispute):
            self._say(f"your note: {note}")
