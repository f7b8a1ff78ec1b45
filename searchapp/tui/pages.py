"""What the panes of the judging screen say: a topic, a document, the scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from searchapp.app.pages import Page
from searchapp.judging.events import Kind
from searchapp.judging.fold import Opinion
from searchapp.judging.scores import CUT_OFF, TopicScores
from searchapp.judging.words import said_of
from searchapp.model import Topic
from searchapp.ranking.search import Span
from searchapp.tui.content import Content
from searchapp.tui.maths import unicode_maths
from searchapp.visible import visible_spans

LONGEST_FIELD = 400
"""Longer texts in a topic's fields are made for queries, not for people."""

FAINT = "$faint"
RIGHT = "✓"
"""What marks the right option of a question."""


def readable(text: str, spans: Sequence[Span], maths: bool) -> tuple[str, list[Span]]:
    """A text for reading: without needless blank lines, with Unicode mathematics if wanted."""
    shown, moved = unicode_maths(text, spans) if maths else (text, list(spans))
    return _without_gaps(*visible_spans(shown, moved))


def topic_page(topic: Topic, maths: bool) -> Content:
    """A topic with its further fields, and with the options of a question, of which the right one is marked."""
    text, _spans = readable(topic.text, (), maths)
    text = re.sub(r"\n{2,}", "\n", text)  # so that more of it is visible
    parts = [Content(text or "The data no longer has this topic's words.")]
    for name, value in fields_of(topic, maths):
        parts.append(Content.assemble((f"{_title(name)}  ", FAINT), value))
    for option in topic.options:
        shown, _spans = readable(option.text, (), maths)
        look, mark = ("bold $success", RIGHT) if option.is_right else ("", " ")
        parts.append(Content.assemble((f"({option.label}) ", FAINT), (f"{mark} {shown}", look)))
    return Content("\n").join(parts)


def fields_of(topic: Topic, maths: bool) -> list[tuple[str, str]]:
    """The names of a topic's further fields and what they say, as far as people need them beside its text."""
    right = {option.text for option in topic.options if option.is_right}
    found = []
    for name, value in topic.fields.items():
        shown = field_text(value)
        needless = shown == topic.id or topic.text.startswith(shown) or shown in right
        if shown and len(shown) <= LONGEST_FIELD and not needless:
            found.append((name, readable(shown, (), maths)[0]))
    return found


def topic_lines(topic: Topic, maths: bool) -> list[str]:
    """The same for prompts, a line each; the text first."""
    lines = [readable(topic.text, (), maths)[0]]
    lines += [f"{name}: {value}" for name, value in fields_of(topic, maths)]
    for option in topic.options:
        right = ", the right one" if option.is_right else ""
        lines.append(f"option {option.label}{right}: {readable(option.text, (), maths)[0]}")
    return lines


def document_page(
    page: Page,
    others: Sequence[Opinion],
    words: str,
    labels: Sequence[str],
    maths: bool,
    match: str,
    sought: Sequence[str],
) -> Content:
    """A document whole, with what matches the topic, its table, its neighbours and what was said of it."""
    if page.is_missing:
        return Content.styled(
            "The index does not have this document any more: index and rank again.", "$error"
        )
    parts: list[Content] = [Content.styled(_line(one, maths), FAINT) for one in page.before]
    text, spans = readable(page.text, page.matches, maths)
    body = Content(text)
    for start, end in spans:
        body = body.stylize(match, start, end)
    for start, end in _found(text, sought):
        body = body.stylize("reverse", start, end)
    parts.append(Content.assemble(("▎", "$accent"), body) if page.before or page.behind else body)
    parts += [Content.styled(_line(one, maths), FAINT) for one in page.behind]
    fields = [(_title(name), field_text(value)) for name, value in page.fields]
    fields = [(name, value) for name, value in fields if value and value != page.text]
    if fields:
        width = max(len(name) for name, _value in fields)
        parts.append(Content(""))
        parts += [Content.assemble((f"{name:<{width}}  ", FAINT), value) for name, value in fields]
    if words:
        parts += [Content(""), Content.assemble(("✎ ", "$accent"), (words, "italic"))]
    if others:
        parts += [Content("")]
        parts += [Content.assemble((f"{one.annotator}  ", FAINT), said(one, labels)) for one in others]
    return Content("\n").join(parts)


def said(opinion: Opinion, labels: Sequence[str], *, with_kind: bool = True) -> str:
    """What an annotator says of a document, in words; by default also that a model says so."""
    what = said_of(opinion.action, opinion.grade, labels)
    model = " (a model)" if with_kind and opinion.kind is Kind.model else ""
    return f"{what}{model}{': ' + opinion.note if opinion.note else ''}"


def scores_line(title: str, scores: TopicScores | None) -> Content:
    """The scores of a topic or of all."""
    if scores is None:
        return Content.assemble((f"{title:<11}", FAINT), ("no grades yet", FAINT))
    figures = (("AP", scores.ap), (f"nDCG@{CUT_OFF}", scores.ndcg), (f"Judged@{CUT_OFF}", scores.judged))
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


def _line(document: Mapping[str, Any], maths: bool) -> str:
    text, _spans = readable(str(document.get("text", "")), (), maths)
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


def _without_gaps(text: str, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    """At most one blank line between paragraphs, none at the beginning and the end."""
    kept: list[str] = []
    places = []
    breaks = 2  # as if there were some before the text
    for character in text:
        places.append(len(kept))
        if character == "\n":
            breaks += 1
            if breaks > 2:
                continue
        elif not character.isspace():
            breaks = 0
        kept.append(character)
    places.append(len(kept))
    shown = "".join(kept).rstrip()
    moved = [(places[start], min(places[end], len(shown))) for start, end in spans]
    return shown, [(start, end) for start, end in moved if start < end]
