"""How a task's texts are written, and in which form they are shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from searchapp.formats import wiki
from searchapp.formats.rewriting import Rewriter, Rewritten, Span, Style
from searchapp.model import Markup
from searchapp.tui.content import Content
from searchapp.tui.maths import formula, with_formulas
from searchapp.visible import visible_spans

LONGEST = 20_000
"""Characters of a text that is shown as what its markup means; a longer one is shown as it is written."""

SHORT = 2_100
"""Characters of a text that is not long: what is looked at for a line of a list is none."""

LOOKS = {
    wiki.BOLD: "bold",
    wiki.ITALIC: "italic",
    wiki.HEADING: "bold $accent",
    wiki.LINK: "$secondary",
    wiki.ASIDE: "$faint",
}


class Form(Enum):
    """How a text is shown."""

    rendered = "rendered"
    """As what its markup means: wiki markup, and LaTeX as Unicode."""

    stored = "stored"
    """As it stands, with every blank and line end."""

    written = "written"
    """LaTeX as it is written, wiki markup as what it means."""


@dataclass(frozen=True, slots=True)
class Notation:
    """The markup of a task's texts, and the form that they are shown in."""

    markup: Markup
    form: Form = Form.rendered

    @property
    def next(self) -> Notation:
        """The next form; where there is no LaTeX, one is left out."""
        forms = [one for one in Form if one is not Form.written or self.markup is not Markup.plain]
        place = forms.index(self.form) if self.form in forms else 0
        return replace(self, form=forms[(place + 1) % len(forms)])

    @property
    def about(self) -> str:
        """What is shown, in words."""
        if self.form is Form.stored:
            return "the text as it stands"
        if self.form is Form.written:
            before = "wiki markup as what it means, " if self.markup is Markup.wiki else ""
            return f"{before}LaTeX as it is written"
        return {
            Markup.plain: "the text without needless blank lines",
            Markup.latex: "LaTeX as Unicode",
            Markup.wiki: "wiki markup as what it means, LaTeX as Unicode",
        }[self.markup]

    def rewritten(self, text: str) -> Rewritten:
        """A text as it is shown in this form."""
        if self.form is Form.stored or self.markup is Markup.plain or len(text) > LONGEST:
            return unchanged(text)
        if self.markup is Markup.wiki:
            shown = _short if len(text) <= SHORT else _long
            return shown(text, maths=self.form is Form.rendered)
        return with_formulas(text) if self.form is Form.rendered else unchanged(text)


AS_WRITTEN = Notation(Markup.plain)
"""Texts without markup, such as what people type."""


def unchanged(text: str) -> Rewritten:
    """A text as it is written."""
    writer = Rewriter(text)
    writer.keep(0, len(text))
    return writer.done()


def _wiki(text: str, *, maths: bool) -> Rewritten:
    return wiki.rendered(text, formula if maths else None)


# What is typed finds the same documents again and again: many of the texts that lists show are kept, a few long ones.
_short = lru_cache(maxsize=4096)(_wiki)
_long = lru_cache(maxsize=64)(_wiki)


@dataclass(frozen=True, slots=True)
class Readable:
    """A text as it is read: harmless, with the ranges that are marked and what is emphasized in it."""

    text: str
    spans: Sequence[Span]
    styles: Sequence[Style]

    def content(self, match: str) -> Content:
        """The text as it looks, `match` is what marked ranges look like."""
        shown = Content(self.text)
        for start, end, name in self.styles:
            shown = shown.stylize(LOOKS[name], start, end)
        for start, end in self.spans:
            shown = shown.stylize(match, start, end)
        return shown


def readable(text: str, spans: Sequence[Span], notation: Notation) -> Readable:
    """A text for reading; without needless blank lines, unless it is to be shown as it stands."""
    found = notation.rewritten(text)
    moved, styles = found.moved(spans), found.styles
    shown, places = visible_spans(found.text, [*moved, *((one.start, one.end) for one in styles)])
    names = [one.name for one in styles]
    if notation.form is Form.stored:
        return Readable(shown, places, ())
    tidy = _without_gaps(shown)
    marked = tidy.moved(places[: len(moved)])
    looks = [
        Style(start, end, name)
        for place, name in zip(places[len(moved) :], names, strict=True)
        for start, end in tidy.moved([place])
    ]
    return Readable(tidy.text, marked, looks)


_GAP = re.compile(r"\n[^\S\n]*+\n(?:[^\S\n]*+\n)++")
_BEGIN = re.compile(r"(?:[^\S\n]*+\n)++")


def _without_gaps(text: str) -> Rewritten:
    """At most one blank line between paragraphs, none at the beginning and the end."""
    writer = Rewriter(text)
    begin = _BEGIN.match(text)
    last, end = begin.end() if begin else 0, len(text.rstrip())
    for gap in _GAP.finditer(text, last, end):
        writer.keep(last, gap.start() + 1)
        last = gap.end() - 1
    writer.keep(last, max(last, end))
    return writer.done()
