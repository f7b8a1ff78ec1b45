"""Judging by prompts, line by line: for screen readers, simple terminals and scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TextIO

from searchapp.app.inspection.pages import RunPages
from searchapp.errors import UsageError
from searchapp.judging.events import grade_label
from searchapp.judging.judgments import SCORE_CUT_OFF, TopicScores
from searchapp.judging.session import JudgingSession, NearDuplicates, Outcome
from searchapp.judging.view import Opinion, has_verdict
from searchapp.text import counted, have
from searchapp.tui.kit.content import AS_WRITTEN, readable
from searchapp.tui.kit.descriptions import (
    RANKS_HIDDEN,
    arrivals_label,
    change_label,
    feedback_lines,
    field_text,
    has_words,
    judged_label,
    near_duplicate_label,
    opinion_label,
    opinion_text,
    topic_lines,
)
from searchapp.tui.kit.prompts import NOTE, Ask, Conversation, leave_by_prompts

HELP = """\
0, 1, ...        give the document this grade; words after it are the reason: 1 defines the term
s                skip: leave it for later, without a grade
x [words]        can't tell
a words          annotate: a note on this document, or on the one just graded
u, U             undo the last action, redo it
bulk 3-7 0       grade documents 3 to 7 of this topic 0, after a question
n, N             next and previous unjudged document; an empty line is n
+, -             next and previous document
# 12             go to document 12 of this topic; i ID goes to the document with this id
/words           search the documents of this topic; / finds the next match
t [words]        list all topics, or those with the words; t 5 opens the fifth
] and [          next and previous topic; } the next one with unjudged documents
d, topic         read the document, the topic again
m                Switch between rendered text, raw text and LaTeX source
g                the guidelines: what the grades mean, with examples
score            the scores of this topic and the mean over all
?                this help
q                leave; everything is saved"""

LISTED_TOPICS = 20
ON = "} goes to the next topic"
NO_DOCUMENT = "this topic has no document with a score: --depth all also offers documents without a score"


class JudgePrompts(Conversation):
    """Prompts with which an annotator judges a run."""

    def __init__(
        self,
        judging: JudgingSession,
        run_pages: RunPages,
        title: str,
        start: str | None = None,
        ask: Ask = input,
        out: TextIO | None = None,
        *,
        goal: int | None = None,
        next_topic: bool = False,
    ) -> None:
        super().__init__(judging.session, run_pages, title, ask, out)
        self.judging = judging
        self.run_pages = run_pages
        self._words: list[str] = []
        self._number = judging.topics.index(start) if start else judging.next_unjudged_topic() or 0
        self._index = 0
        # The document just judged, if the topic has no other to go to.
        self._resting_on: str | None = None
        # The topic and document judged last, while the document after it is shown: a note belongs to it.
        self._judged: tuple[str, str] | None = None
        # Number of documents to judge in the session.
        self._goal = goal
        # The number that was reported last.
        self._reported = 0
        self._goes_to_next_topic = next_topic
        self._near_duplicates = NearDuplicates(judging, run_pages.known_text)

    @property
    def topic(self) -> str:
        return self.judging.topics[self._number]

    @property
    def document(self) -> str:
        """The present document.

        Raises:
            UsageError: the topic has no documents.
        """
        documents = self.judging.order(self.topic).documents
        if not documents:
            raise UsageError(NO_DOCUMENT)
        return documents[self._index]

    def _begin(self) -> None:
        if self.judging.is_blind:
            self._say("Blind: ranks, scores and other people's grades are hidden.")
        elif not self.judging.shows_ranks:
            self._say(f"{RANKS_HIDDEN.capitalize()}.")
        if self._goal is not None:
            self._say(f"The goal of this session: {counted(self._goal, 'document')}.")
        self._open(self._number)

    # Commands

    def _obey(self, line: str) -> bool:
        if line in ("q", "quit", "exit"):
            return not leave_by_prompts(self.judging.session, self._say, self._ask)
        self._say_news(self.judging.session.news)
        if news := arrivals_label(self.judging.refresh(), self.judging.session.author.annotator):
            self._say(news)
        if match := re.fullmatch(r"(\d+)(?:\s+(.*))?", line):
            self._grade(int(match[1]), match[2] or "")
        elif match := re.fullmatch(r"bulk\s+(\d+)\s*-\s*(\d+)\s+(\d+)", line):
            self._grade_all(int(match[1]), int(match[2]), int(match[3]))
        elif match := re.fullmatch(r"#\s*(\d+)", line):
            self._go(int(match[1]) - 1)
        elif line.startswith("/"):
            self._search(line[1:].lower().split())
        else:
            word, _space, rest = line.partition(" ")
            self._command(word, rest.strip())
        return True

    def _command(self, word: str, rest: str) -> None:
        simple: dict[str, Callable[[], object]] = {
            "": self._next_unjudged,
            "N": lambda: self._next_unjudged(-1),
            "s": self._skip,
            "x": lambda: self._cant_tell(rest),
            "u": lambda: self._again(self.judging.undo(), "undone"),
            "U": lambda: self._again(self.judging.redo(), "done again"),
            "+": lambda: self._go(self._index + 1),
            "-": lambda: self._go(self._index - 1),
            "]": lambda: self._open(self._number + 1),
            "[": lambda: self._open(self._number - 1),
            "}": self._next_topic,
            "d": self._read_document,
            "topic": self._read_topic,
            "m": self._toggle_maths,
            "score": self._read_scores,
            "g": self._read_guidelines,
            "?": lambda: self._say(HELP),
            "t": lambda: self._topics(rest),
            "i": lambda: self._jump(rest),
            "n": lambda: self._say(NOTE) if rest else self._next_unjudged(),
            "a": lambda: self._note(rest),
        }
        if word not in simple:
            self._say(f"unknown command {word!r}: ? lists all commands")
        else:
            simple[word]()

    def _grade(self, grade: int, reason: str) -> None:
        if grade >= len(self.labels):
            self._say(f"unknown grade {grade}. {self._grades()}")
            return
        document, label = self.document, grade_label(grade, self.labels)
        if self._may_change(document, label):
            before = self._opinion(document)
            outcome = self.judging.grade(self.topic, [document], grade, reason)
            self._go_on(outcome, change_label(label, before, self.labels), document, before)

    def _cant_tell(self, reason: str) -> None:
        document = self.document
        if self._may_change(document, "can't tell"):
            before = self._opinion(document)
            outcome = self.judging.cant_tell(self.topic, document, reason)
            self._go_on(outcome, change_label("can't tell", before, self.labels), document, before)

    def _skip(self) -> None:
        document = self.document
        before = self._opinion(document)
        if has_verdict(before):
            verdict = opinion_label(before, self.labels)
            if not self._agrees(
                f"{self._name(document)} is judged {verdict}. Skip it and remove that judgment?"
            ):
                return
        elif before is not None and self._resting_on == document:
            self._say(f"already skipped: {ON}")
            return
        outcome = self.judging.skip(self.topic, document)
        self._go_on(outcome, change_label("skipped", before, self.labels), document, before)

    def _may_change(self, document: str, label: str) -> bool:
        before = self._opinion(document)
        if self._resting_on != document or not has_verdict(before):
            return True
        was = opinion_label(before, self.labels)
        if was == label:
            self._say(f"already judged {was}: {ON}")
            return False
        return self._agrees(f"{self._name(document)} is judged {was}. Change it to {label}?")

    def _grade_all(self, first: int, last: int, grade: int) -> None:
        documents = self.judging.order(self.topic).documents[first - 1 : last] if first else ()
        if grade >= len(self.labels) or not documents:
            self._say(
                "the documents have numbers from 1 to "
                f"{len(self.judging.order(self.topic).documents)}. {self._grades()}"
            )
            return
        label = f"{len(documents)} documents {grade_label(grade, self.labels)}"
        already = judged_label([self._opinion(document) for document in documents], self.labels)
        if self._agrees(f"Grade {label}?{f' {already}.' if already else ''}"):
            was_done = self.judging.is_done(self.topic)
            self._report(self.judging.grade(self.topic, documents, grade), label)
            self._judged = None
            if not was_done:
                self._leave_finished_topic()

    def _opinion(self, document: str) -> Opinion | None:
        return self.judging.opinion(self.topic, document)

    def _note(self, words: str) -> None:
        if not words:
            self._say(NOTE)
        else:
            topic, document = self._judged or (self.topic, self.document)
            self._report(self.judging.note(topic, document, words), f"a note: {self._name(document)}")

    def _go_on(self, outcome: Outcome, label: str, document: str, before: Opinion | None) -> None:
        self._report(outcome, f"{label}: {self._name(document)}")
        judged = self.topic, document
        feedback = None if has_verdict(before) else self.judging.feedback(self.topic, document)
        if feedback is not None:
            for line in feedback_lines(feedback, self.labels):
                if line:
                    self._say(line)
        if has_verdict(before) or not self._leave_finished_topic():
            self._next_unjudged()
            if self.document == document:
                self._resting_on = document
        self._judged = judged

    def _leave_finished_topic(self) -> bool:
        """Go from a finished topic to the next one with unjudged documents, if the annotator wants this."""
        if not self._goes_to_next_topic or not self.judging.is_done(self.topic):
            return False
        number = self.judging.next_unjudged_topic(self._number)
        if number is None:
            return False
        self._say("All documents of this topic are judged.")
        self._open(number)
        return True

    def _report(self, outcome: Outcome, label: str) -> None:
        super()._report(outcome, label)
        judged = self.judging.session.judged_here
        if self._goal is not None and judged != self._reported:
            self._reported = judged
            reached = ": goal reached" if judged >= self._goal else ""
            self._say(f"{judged:,} of {self._goal:,} judged in this session{reached}")

    def _again(self, outcome: Outcome | None, label: str) -> None:
        if outcome is None:
            self._say("nothing to undo or redo")
            return
        event = outcome.events[0]
        count = len(outcome.events)
        of = f"{count} documents" if count > 1 else self._name(event.document_id)
        self._report(outcome, f"{label}: {of}")
        if (
            event.topic_id in self.judging.topics
            and event.document_id in self.judging.order(event.topic_id).places
        ):
            self._number = self.judging.topics.index(event.topic_id)
            self._go(self.judging.order(event.topic_id).places[event.document_id])

    # Moving

    def _open(self, number: int) -> None:
        if not 0 <= number < len(self.judging.topics):
            self._say("no topic has this number")
            return
        self._number = number
        self._index = self.judging.next_unjudged(self.topic) or 0
        self._words = []
        self._resting_on = self._judged = None
        self._read_topic()
        if self.judging.order(self.topic).documents:
            self._read_document()
        else:
            self._say(NO_DOCUMENT)

    def _go(self, index: int) -> None:
        if not 0 <= index < len(self.judging.order(self.topic).documents):
            self._say("no document has this number")
            return
        self._index = index
        self._resting_on = self._judged = None
        self._read_document()

    def _next_unjudged(self, step: int = 1) -> None:
        index = self.judging.next_unjudged(self.topic, self._index, step)
        if index is None:
            self._say(f"all documents of this topic are judged: {ON}")
        else:
            self._go(index)

    def _next_topic(self) -> None:
        number = self.judging.next_unjudged_topic(self._number)
        if number is None:
            self._say("every document of every topic is judged: q leaves")
        else:
            self._open(number)

    def _jump(self, id_: str) -> None:
        index = self.judging.order(self.topic).places.get(id_)
        if index is None:
            self._say(f"this topic has no document {id_}")
        else:
            self._go(index)

    def _search(self, words: list[str]) -> None:
        self._words = words or self._words
        documents = self.judging.order(self.topic).documents
        texts = self.run_pages.texts(documents)
        matches = [
            index
            for index, (document, text) in enumerate(zip(documents, texts, strict=True))
            if has_words(f"{document} {text}", self._words)
        ]
        if not self._words or not matches:
            self._say("no document has these words")
            return
        self._say(f"{counted(len(matches), 'document')} {have(len(matches))} these words")
        self._go(next((index for index in matches if index > self._index), matches[0]))

    def _topics(self, words: str) -> None:
        if words.isdecimal():
            self._open(int(words) - 1)
            return
        wanted = words.lower().split()
        matches = 0
        for number, topic in enumerate(self.judging.topics, 1):
            text = self.run_pages.topic(topic).text
            if has_words(f"{topic} {text}", wanted):
                matches += 1
                if matches <= LISTED_TOPICS:
                    judged = f"{self.judging.judged(topic)} of {self.judging.length(topic)} judged"
                    self._say(f"{number}. {topic}, {judged}: {' '.join(text.split())[:60]}")
        if matches > LISTED_TOPICS:
            self._say(f"and {matches - LISTED_TOPICS} more: add words of the topic")
        elif not matches:
            self._say("no topic has these words")

    # Reading

    def _read_topic(self) -> None:
        topic = self.run_pages.topic(self.topic)
        order = self.judging.order(self.topic)
        progress = f"{self.judging.judged(self.topic)} of {counted(len(order.documents), 'document')} judged"
        self._say(f"\nTopic {self._number + 1} of {len(self.judging.topics)}, {self.topic}, {progress}:")
        for line in topic_lines(topic, self._notation):
            self._say(line)

    def _read_document(self) -> None:
        document = self.document
        page = self.run_pages.page(self.topic, document)
        self._say_news(self.run_pages.news)
        order = self.judging.order(self.topic)
        where = f"{self._index + 1} of {len(order.documents)}"
        unscored = self.judging.shows_ranks and order.ranks[document] > self.run_pages.scored(self.topic)
        self._say(f"\nDocument {where}, {document}{', which has no score' if unscored else ''}:")
        if page.is_missing:
            self._say("It is no longer in the index: index and rank again.")
        for neighbour in page.before:
            self._say(f"before: {neighbour.get('text', '')}")
        self._say(readable(page.text, (), self._notation).text)
        for neighbour in page.behind:
            self._say(f"after: {neighbour.get('text', '')}")
        for name, value in page.fields:
            if shown := field_text(value):
                self._say(f"{name}: {readable(shown, (), AS_WRITTEN).text}")
        run_pages = self.run_pages
        run_pages.texts(self._near_duplicates.unknown(self.topic))
        for duplicate in self._near_duplicates.of(self.topic, document):
            text = run_pages.known_text(duplicate.document_id)
            self._say(near_duplicate_label(duplicate, text, self.labels, self._notation))
        mine = self._opinion(document)
        if mine is not None:
            self._say(f"you: {opinion_text(mine, self.labels)}")
        for other in self.judging.others(self.topic, document):
            self._say(f"{other.annotator}: {opinion_text(other, self.labels)}")

    def _read_scores(self) -> None:
        if not self.judging.shows_ranks:
            self._say("blind: scores are hidden" if self.judging.is_blind else RANKS_HIDDEN)
            return
        for topic in self.judging.unscored():
            self.judging.scores(topic)
        overall, count = self.judging.mean_scores()
        self._say(f"this topic: {_figures(self.judging.scores(self.topic))}")
        self._say(f"{counted(count, 'topic')} with grades: {_figures(overall)}")


def _figures(scores: TopicScores | None) -> str:
    if scores is None:
        return "no grades yet"
    return (
        f"AP {scores.ap:.3f}, nDCG at {SCORE_CUT_OFF} {scores.ndcg:.3f}, "
        f"judged among the first {SCORE_CUT_OFF} {scores.judged:.0%}"
    )
