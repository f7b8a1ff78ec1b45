"""Pages that are one HTML file each, which needs nothing else: no network, no fonts, no other file.

Whatever stands in a page goes through one door: the environment makes characters harmless that act or deceive, and
escapes what HTML would read. The page's policy forbids every request, and every style and script but its own two,
which it names by their digests. Without its script a page is complete; with it tables can be sorted.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import searchapp
from searchapp.app.comparison import number, signed
from searchapp.visible import visible_line

KINDS = 6
"""Kinds of lines and colours, after which they repeat."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page: its name, which is that of its template too, and its heading."""

    name: str
    heading: str


def rendered(template: str, sections: Sequence[Section], warnings: Sequence[str], /, **context: Any) -> bytes:
    """A page in UTF-8 with these sections; the warnings come before them."""
    style, script = _own("style.css"), _own("script.js")
    text = (
        _environment()
        .get_template(template)
        .render(
            sections=sections,
            warnings=warnings,
            version=searchapp.__version__,
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
            **context,
        )
    )
    return text.encode("utf-8", errors="replace")  # halves of characters are named already


def policy(style: str, script: str) -> str:
    """The Content Security Policy of a page with one style and one script of its own."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _own(name: str) -> str:
    return files("searchapp.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("searchapp.report"),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "number": number,
        "signed": signed,
        "share": share,
        "counted": counted,
        "zip": zip,
        "KINDS": KINDS,
    }
    return environment


def _harmless(value: object) -> object:
    """What an expression of a template gives, before it is escaped: text of others without what acts or deceives."""
    return visible_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def counted(number: int, name: str) -> str:
    """How many there are of something.

    >>> counted(1, "topic"), counted(1200, "topic")
    ('1 topic', '1,200 topics')
    """
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def share(value: float, greatest: float) -> float:
    """The length of a bar of which the longest has 100."""
    return round(100 * abs(value) / greatest, 1) if greatest else 0.0
