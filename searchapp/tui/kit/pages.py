"""What the panes of the judging screen say: a topic, a document, the scores."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from searchapp.app.inspection.pages import Page
from searchapp.judging.events import Kind, verdict_label
from searchapp.judging.judgments import SCORE_CUT_OFF, TopicScores
from searchapp.judging.view import Opinion
from searchapp.model import Topic
from searchapp.ranking.highlighting import Span
from searchapp.tui.kit.content import Content, Form, Notation, readable

LONGEST_FIELD = 400
"""Longer texts in a topic's fields are made for queries, not for people."""

FAINT = "$faint"
RIGHT = "✓"
"""What marks the right option of a question."""


def topic_text(topic: Topic, notation: Notation) -> str:
    """A topic's text without blank lines, so that more of it is visible."""
    text = readable(topic.text, (), notation).text
    return text if notation.form is Form.stored else re.sub(r"\n{2,}", "\n", text)


def topic_page(topic: Topic, notation: Notation) -> Content:
    """A topic with its further fields, and with the options of a question, of which the right one is marked."""
    text = topic_text(topic, notation)
    parts = [Content(text or "The data no longer has this topic's words.")]
    for name, value in fields_of(topic, notation):
        parts.append(Content.assemble((f"{_title(name)}  ", FAINT), value))
    for option in topic.options:
        shown = readable(option.text, (), notation).text
        look, mark = ("bold $success", RIGHT) if option.is_right else ("", " ")
        parts.append(Content.assemble((f"({option.label}) ", FAINT), (f"{mark} {shown}", look)))
    return Content("\n").join(parts)


def fields_of(topic: Topic, notation: Notation) -> list[tuple[str, str]]:
    """The names of a topic's further fields and what they say, as far as people need them beside its text."""
    right = {option.text for option in topic.options if option.is_right}
    found = []
    for name, value in topic.fields.items():
        shown = field_text(value)
        needless = shown == topic.id or topic.text.startswith(shown) or shown in right
        if shown and len(shown) <= LONGEST_FIELD and not needless:
            found.append((name, readable(shown, (), notation).text))
    return found


def topic_lines(topic: Topic, notation: Notation) -> list[str]:
    """The same for prompts, a line each; the text first."""
    lines = [readable(topic.text, (), notation).text]
    lines += [f"{name}: {value}" for name, value in fields_of(topic, notation)]
    for option in topic.options:
        right = ", the right one" if option.is_right else ""
        lines.append(f"option {option.label}{right}: {readable(option.text, (), notation).text}")
    return lines


def document_page(
    page: Page,
    others: Sequence[Opinion],
    words: str,
    labels: Sequence[str],
    notation: Notation,
    sought: Sequence[str] = (),
) -> Content:
    """A document whole, with what matches the topic, its table, its neighbours and what was said of it."""
    if page.is_missing:
        return Content.styled(
            "The index does not have this document any more: index and rank again.", "$error"
        )
    parts = text_lines(page, notation, sought)
    if fields := field_lines(page):
        parts += [Content(""), *fields]
    if words:
        parts += [Content(""), Content.assemble(("✎ ", "$accent"), (words, "italic"))]
    if others:
        parts += [Content("")]
        parts += [Content.assemble((f"{one.annotator}  ", FAINT), said(one, labels)) for one in others]
    return Content("\n").join(parts)


def text_lines(page: Page, notation: Notation, sought: Sequence[str] = ()) -> list[Content]:
    """A document's text with what matches in it, between its neighbours."""
    shown = readable(page.text, page.matches, notation)
    body = shown.content("bold $match underline" if os.environ.get("NO_COLOR") else "bold $match")
    for start, end in _found(shown.text, sought):
        body = body.stylize("reverse", start, end)
    return [
        *(Content.styled(_line(one, notation), FAINT) for one in page.before),
        Content.assemble(("▎", "$accent"), body) if page.before or page.behind else body,
        *(Content.styled(_line(one, notation), FAINT) for one in page.behind),
    ]


def field_lines(page: Page, *, stored: bool = False) -> list[Content]:
    """A document's fields besides its text, those that say something, a line each; all, as they are `stored`."""
    if stored:
        fields = [(name, repr(value)) for name, value in page.fields]
    else:
        fields = [(_title(name), field_text(value)) for name, value in page.fields]
        fields = [(name, value) for name, value in fields if value and value != page.text]
    width = max((len(name) for name, _value in fields), default=0)
    return [Content.assemble((f"{name:<{width}}  ", FAINT), value) for name, value in fields]


def said(opinion: Opinion, labels: Sequence[str], *, with_kind: bool = True) -> str:
    """What an annotator says of a document, in words; by default also that a model says so."""
    what = verdict_label(opinion.action, opinion.grade, labels)
    model = " (a model)" if with_kind and opinion.kind is Kind.model else ""
    return f"{what}{model}{': ' + opinion.note if opinion.note else ''}"


def scores_line(title: str, scores: TopicScores | None) -> Content:
    """The scores of a topic or of all."""
    if scores is None:
        return Content.assemble((f"{title:<11}", FAINT), ("no grades yet", FAINT))
    figures = (
        ("AP", scores.ap),
        (f"nDCG@{SCORE_CUT_OFF}", scores.ndcg),
        (f"Judged@{SCORE_CUT_OFF}", scores.judged),
    )
    parts: list[Content | str | tuple[str, str]] = [(f"{title:<11}", FAINT)]
    for name, value in figures:
        parts += [(f"{name} ", FAINT), (f"{value:.3f}", "bold"), "  "]
    return Content.assemble(*parts[:-1])


def field_text(value: Any) -> str:
    """A field's value as people read it."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "   ".join(f"({key}) {field_text(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(field_text, value)))
    return str(value)


def _line(document: Mapping[str, Any], notation: Notation) -> str:
    text = readable(str(document.get("text", "")), (), notation).text
    speaker = document.get("speaker")
    return f"{speaker}: {text}" if speaker else text


def _title(name: str) -> str:
    return name.replace("_", " ")


def _found(text: str, words: Sequence[str]) -> list[Span]:
    folded = text.lower()
    if len(folded) != len(text):  # some letters have more in lower case: the places would not be right
        return []
    spans = []
    for word in words:
        start = folded.find(word)
        while start >= 0:
            spans.append((start, start + len(word)))
            start = folded.find(word, start + len(word))
    return spans
