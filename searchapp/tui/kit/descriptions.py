"""Text about topics, documents, judgments and errors, for panes, first lines and prompts."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from searchapp.app.inspection.pages import Page
from searchapp.errors import SearchappError
from searchapp.files import reason
from searchapp.judging.events import Action, Event, Kind, grade_label, verdict_label
from searchapp.judging.guidelines import paragraphs
from searchapp.judging.judgments import SCORE_CUT_OFF, TopicScores, duration
from searchapp.judging.session import Feedback, NearDuplicate, Summary
from searchapp.judging.view import Opinion
from searchapp.model import Topic
from searchapp.text import Span, be, counted
from searchapp.tui.kit.content import AS_WRITTEN, Content, Form, Notation, readable
from searchapp.tui.kit.widgets import LONGEST_ID, RowPart, fitted, one_line, shortened_id

# Longer fields of a topic are left out: they serve queries, not readers.
LONGEST_FIELD = 400

FAINT = "$faint"

# Longer texts of documents are cut.
LONGEST_TEXT = 100_000

# The signs of opinions without a grade.
UNJUDGED, SKIPPED, CANT_TELL, NOTED = "·", "»", "?", "✎"

# The sign of a document without a score.
UNSCORED = "– "

BEGINNING_CELLS = 44


def has_words(text: str, words: Iterable[str]) -> bool:
    """Return whether a text has all words, which are in lower case."""
    text = text.lower()
    return all(word in text for word in words)


def with_tilde(text: str) -> str:
    """Replace the user's home folder in the paths of a text by ~.

    >>> with_tilde(f"user file: {Path.home() / 'settings.toml'} (there is none)")
    'user file: ~/settings.toml (there is none)'
    """
    try:
        own = str(Path.home())
    except RuntimeError:  # the system has no home folder for the user
        return text
    if own == str(Path(own).parent):
        return text
    return re.sub(rf"(?<![\w/.~-]){re.escape(own)}(?![\w.~-])", "~", text)


def error_text(error: BaseException | None) -> str:
    """Return an error's message, with its type if it is unexpected.

    >>> error_text(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    >>> error_text(FileNotFoundError(2, "No such file or directory", "gold.json"))
    'gold.json: no such file or directory'
    """
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {reason(error)}"
    return str(error) if isinstance(error, SearchappError) else f"{type(error).__name__}: {error}"


# Judgments

NO_GUIDELINES = (
    "the task has no guidelines: a file guidelines.md beside the task file tells what the grades mean"
)


def feedback_lines(feedback: Feedback, labels: Sequence[str]) -> tuple[str, str]:
    """Return a sentence on a grade in a calibration, and the section of the guidelines on the known grade."""
    given, known = (grade_label(grade, labels) for grade in (feedback.given, feedback.known))
    if feedback.is_right:
        return f"Right: the known grade is {known}, too.", feedback.guideline
    return f"You gave {given}; the known grade is {known}.", feedback.guideline


def formatted_guidelines(markdown: str) -> Content:
    """Return guidelines with bold headings, and with paragraphs that fill lines of any width."""
    return Content("\n").join(
        Content.styled(paragraph.text, "bold $accent") if paragraph.is_heading else Content(paragraph.text)
        for paragraph in paragraphs(markdown)
    )


def unsaved_label(count: int, why: str | None) -> str:
    """Return a warning about unsaved judgments."""
    things = "1 judgment" if count == 1 else f"{count} judgments"
    return f"▲ {things} NOT SAVED, retrying: {why or ''}"


def document_label(document: str, text: str | None, notation: Notation = AS_WRITTEN) -> str:
    """Return the beginning of a document, or its id if it has no text."""
    line = one_line(text or "", notation)
    return f"“{fitted(line, BEGINNING_CELLS).rstrip()}”" if line else document


def named_document(document: str, rank: int | None, beginning: str) -> str:
    """Return the id of a document, its rank if it has one, and its beginning, as a dialog names it.

    >>> named_document("d7", 3, "“every ring”"), named_document("d7", None, "“every ring”")
    ('d7, rank 3: “every ring”', 'd7: “every ring”')
    """
    at = "" if rank is None else f", rank {rank:,}"
    return f"{shortened_id(document, LONGEST_ID)}{at}: {beginning}"


def opinion_label(opinion: Opinion, labels: Sequence[str]) -> str:
    """Return the verdict of an opinion."""
    return verdict_label(opinion.action, opinion.grade, labels)


def opinion_text(opinion: Opinion, labels: Sequence[str], *, with_kind: bool = True) -> str:
    """Return the verdict and reason of an opinion; `with_kind` marks a model's."""
    model = " (a model)" if with_kind and opinion.kind is Kind.model else ""
    return f"{opinion_label(opinion, labels)}{model}{': ' + opinion.note if opinion.note else ''}"


def opinion_sign(opinion: Opinion | None, top_grade: int) -> RowPart:
    """Return the sign of an opinion."""
    if opinion is None:
        return UNJUDGED, "rows--faint"
    if opinion.action is Action.skip:
        return SKIPPED, "rows--aside"
    if opinion.grade is None:
        return CANT_TELL, "rows--aside"
    return grade_sign(opinion.grade, top_grade)


def grade_sign(grade: int, top_grade: int) -> RowPart:
    """Return the chip of a grade in a list."""
    look = "zero" if grade == 0 else "most" if grade == top_grade else "some"
    return str(grade), f"rows--grade-{look}"


# The styles of these chips in texts, as in screen.tcss.
_CHIP_STYLES = {
    "rows--grade-zero": "reverse $error",
    "rows--grade-some": "bold reverse $secondary",
    "rows--grade-most": "bold reverse $success",
}


def with_chip(words: str, grade: int | None, labels: Sequence[str]) -> Content:
    """Return words that begin with a grade, with the grade as a chip; without a grade, a remark."""
    if grade is None:
        return Content.styled(words, "$warning")
    sign, look = grade_sign(grade, len(labels) - 1)
    return Content.assemble((sign, _CHIP_STYLES[look]), words.removeprefix(sign))


def opinion_action(opinion: Opinion | None) -> str:
    """Return the name of the action that gives the same verdict, or an empty text."""
    if opinion is None:
        return ""
    return opinion.action.value if opinion.grade is None else f"grade_{opinion.grade}"


def change_label(verdict: str, before: Opinion | None, labels: Sequence[str]) -> str:
    """Return a new verdict, with the previous one if it differs.

    >>> change_label("0 not relevant", None, ())
    '0 not relevant'
    """
    was = "" if before is None else opinion_label(before, labels)
    return verdict if was in ("", verdict) else f"{verdict}, was {was}"


def judged_label(opinions: Sequence[Opinion | None], labels: Sequence[str]) -> str:
    """Return the number of judged documents and their verdicts, or an empty text."""
    judged = Counter(
        opinion_label(opinion, labels)
        for opinion in opinions
        if opinion is not None and opinion.action is not Action.skip
    )
    if not judged:
        return ""
    each = ", ".join(f"{count} × {verdict}" for verdict, count in sorted(judged.items()))
    return f"{judged.total()} of them {be(judged.total())} already judged ({each})"


def near_duplicate_label(
    duplicate: NearDuplicate, text: str | None, labels: Sequence[str], notation: Notation
) -> str:
    """Return the annotator's verdict on a document that is nearly equal to the shown one."""
    judgment = duplicate.judgment
    verdict = verdict_label(judgment.action, judgment.grade, labels)
    if duplicate.is_same:
        return (
            f"you judged the same text {verdict}: document {shortened_id(duplicate.document_id, LONGEST_ID)}"
        )
    return f"you judged a similar text {verdict}: {document_label(duplicate.document_id, text, notation)}"


_ACTION_NOUNS = {
    Action.grade: "grade",
    Action.skip: "skip",
    Action.note: "note",
    Action.retract: "undo",
    Action.adjudicate: "decision",
}


def arrivals_label(events: Sequence[Event], annotator: str) -> str:
    """Return the annotator's actions in another window, and the number of others' judgments, whose verdicts
    stay hidden."""
    own = Counter(event.action for event in events if event.annotator == annotator)
    parts = []
    if own:
        counts = [
            f"{count:,} “can't tell”" if action is Action.cant_tell else counted(count, _ACTION_NOUNS[action])
            for action, count in own.items()
        ]
        parts.append(f"{_joined(counts)} arrived from your other window")
    others = list(dict.fromkeys(event.annotator for event in events if event.annotator != annotator))
    if others:
        parts.append(f"{counted(len(events) - own.total(), 'judgment')} by {_joined(others)} arrived")
    return "; ".join(parts)


def unknown_grade_label(grade: str, labels: Sequence[str]) -> str:
    """Return a sentence about a grade that the task does not have."""
    ends = [grade_label(grade, labels) for grade in (0, len(labels) - 1)]
    return f"unknown grade {grade}: the grades are {ends[0]} to {ends[1]}"


RANKS_HIDDEN = "ranks, scores and measures are hidden in pools and assignments"


def session_summary(summary: Summary, labels: Sequence[str]) -> list[str]:
    """Return the judgments, the pace and the rest of a session in sentences."""
    if not (summary.judged or summary.skipped or summary.noted):
        return []
    counts = [f"{count} × {grade_label(grade, labels)}" for grade, count in summary.grades.items()]
    aside = (("can't tell", summary.cant_tell), ("skipped", summary.skipped), ("noted", summary.noted))
    counts += [f"{count} × {verdict}" for verdict, count in aside if count]
    judged, topics = counted(summary.judged, "document"), counted(summary.topics, "topic")
    pace = "" if summary.seconds is None else f", {duration(summary.seconds)} each"
    lines = [f"judged {judged} of {topics}{pace}: {', '.join(counts)}"]
    if summary.left:
        left, topics = counted(summary.left, "document"), counted(summary.topics_left or 0, "topic")
        time = ""
        if summary.seconds is not None:
            time = f", about {duration(summary.left * summary.seconds)} at this pace"
        lines.append(f"{left} of {topics} left{time}")
    elif summary.left == 0:
        lines.append("nothing is left to judge")
    return lines


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


# Topics

_RIGHT_OPTION = "bold $success"


def right_option(page: Content) -> Span | None:
    """Return the range of the right option on a topic's page, if it has one."""
    return next(((span.start, span.end) for span in page.spans if span.style == _RIGHT_OPTION), None)


def topic_page(topic: Topic, notation: Notation) -> Content:
    """Return a topic without blank lines, its fields, and its options with the right one marked."""
    text = readable(topic.text, (), notation).text
    if notation.form is not Form.stored:
        text = re.sub(r"\n{2,}", "\n", text)
    parts = [Content(text or "The data no longer contains this topic.")]
    for name, value in _topic_fields(topic, notation):
        parts.append(Content.assemble((f"{name.replace('_', ' ')}  ", FAINT), value))
    for option in topic.options:
        shown = readable(option.text, (), notation).text
        look, mark = (_RIGHT_OPTION, "✓") if option.is_right else ("", " ")
        parts.append(Content.assemble((f"({option.label}) ", FAINT), (f"{mark} {shown}", look)))
    return Content("\n").join(parts)


def topic_lines(topic: Topic, notation: Notation) -> list[str]:
    """Return a topic for prompts: the text, then a line for each field and option."""
    lines = [readable(topic.text, (), notation).text]
    lines += [f"{name}: {value}" for name, value in _topic_fields(topic, notation)]
    for option in topic.options:
        right = " (correct)" if option.is_right else ""
        lines.append(f"option {option.label}{right}: {readable(option.text, (), notation).text}")
    return lines


def _topic_fields(topic: Topic, notation: Notation) -> Iterator[tuple[str, str]]:
    right = {option.text for option in topic.options if option.is_right}
    for name, value in topic.fields.items():
        shown = field_text(value)
        needless = shown == topic.id or topic.text.startswith(shown) or shown in right
        if shown and len(shown) <= LONGEST_FIELD and not needless:
            yield name, readable(shown, (), notation).text


def scores_line(title: str, scores: TopicScores | None) -> Content:
    """Return the scores of one or all topics."""
    if scores is None:
        return Content.assemble((f"{title:<11}", FAINT), ("no grades yet", FAINT))
    ndcg, judged = f"nDCG@{SCORE_CUT_OFF}", f"Judged@{SCORE_CUT_OFF}"
    parts: list[Content | str | tuple[str, str]] = [(f"{title:<11}", FAINT)]
    for name, value in (("AP", scores.ap), (ndcg, scores.ndcg), (judged, scores.judged)):
        parts += [(f"{name} ", FAINT), (f"{value:.3f}", "bold"), "  "]
    return Content.assemble(*parts[:-1])


# Documents


def document_page(
    page: Page,
    others: Sequence[Opinion],
    words: str,
    labels: Sequence[str],
    notation: Notation,
    sought: Sequence[str] = (),
) -> Content:
    """Return a document with its fields, neighbours, the annotator's words and others' opinions; mark
    `sought` words."""
    if page.is_missing:
        return Content.styled("This document is no longer in the index: index and rank again.", "$error")
    parts = text_lines(page, notation, sought)
    if fields := field_lines(page):
        parts += [Content(""), *fields]
    if words:
        parts += [Content(""), Content.assemble(("✎ ", "$accent"), (words, "italic"))]
    if others:
        parts += [Content("")]
        parts += [
            Content.assemble(
                (f"{opinion.annotator}  ", FAINT),
                with_chip(opinion_text(opinion, labels), opinion.grade, labels),
            )
            for opinion in others
        ]
    return Content("\n").join(parts)


def cut_page(page: Page, pager: str) -> tuple[Page, Content | None]:
    """Cut a very long text; also return a note that `pager` opens the full text."""
    rest = len(page.text) - LONGEST_TEXT
    if rest <= 0:
        return page, None
    spans = tuple((start, min(end, LONGEST_TEXT)) for start, end in page.matches if start < LONGEST_TEXT)
    note = Content.styled(f"… {counted(rest, 'more character')}: {pager} opens the full text", "$warning")
    return replace(page, text=page.text[:LONGEST_TEXT], matches=spans), note


def text_lines(page: Page, notation: Notation, sought: Sequence[str] = ()) -> list[Content]:
    """Return a document's text with its matches, between its neighbours."""
    shown = readable(page.text, page.matches, notation)
    body = shown.content("bold $match underline" if os.environ.get("NO_COLOR") else "bold $match")
    for start, end in _occurrences(shown.text, sought):
        body = body.stylize("reverse", start, end)
    return [
        *(Content.styled(_neighbour_line(neighbour, notation), FAINT) for neighbour in page.before),
        Content.assemble(("▎", "$accent"), body) if page.before or page.behind else body,
        *(Content.styled(_neighbour_line(neighbour, notation), FAINT) for neighbour in page.behind),
    ]


def field_lines(page: Page, *, stored: bool = False) -> list[Content]:
    """Return a line for each field that adds to a document's text, or for all fields if `stored`."""
    if stored:
        fields = [(name, repr(value)) for name, value in page.fields]
    else:
        fields = [(name.replace("_", " "), field_text(value)) for name, value in page.fields]
        fields = [(name, value) for name, value in fields if value and value != page.text]
    width = max((len(name) for name, _value in fields), default=0)
    return [Content.assemble((f"{name:<{width}}  ", FAINT), value) for name, value in fields]


def field_text(value: Any) -> str:
    """Format the value of a field."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "   ".join(f"({key}) {field_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        if any(isinstance(item, Mapping) for item in value):  # of an index of another program
            return json.dumps(value, ensure_ascii=False)
        return ", ".join(filter(None, map(field_text, value)))
    return str(value)


def _neighbour_line(document: Mapping[str, Any], notation: Notation) -> str:
    text = readable(str(document.get("text", "")), (), notation).text
    speaker = document.get("speaker")
    return f"{speaker}: {text}" if speaker else text


def _occurrences(text: str, words: Sequence[str]) -> list[Span]:
    folded = text.lower()
    if len(folded) != len(text):  # some letters have more characters in lower case, which shifts positions
        return []
    return [match.span() for word in words for match in re.finditer(re.escape(word), folded)]
