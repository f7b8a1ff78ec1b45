"""The guidelines of a task: what its grades mean, as Markdown.

A section whose heading begins with a grade, such as `## 1 relevant`, describes the grade and gives an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from searchapp.errors import DataError
from searchapp.files import digest_text, read_text, unreadable
from searchapp.judging.events import Action, Detail, Event
from searchapp.lucene.dataclass import dataclass

# The name of the details that record the digest of the guidelines.
GUIDELINES = "guidelines"
# The events whose guidelines are recorded.
GUIDED = (Action.grade, Action.cant_tell, Action.adjudicate)
MOST_CHARACTERS = 200_000

_HEADING = re.compile(r"(#+)\s+(.*)")
_LIST_ITEM = re.compile(r"[-*+]\s|\d+[.)]\s")


@dataclass(frozen=True)
class Guidelines:
    """The text of the guidelines."""

    text: str

    @cached_property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the text's SHA-256."""
        return digest_text(self.text)

    def of_grade(self, grade: int) -> str:
        """Return the section on a grade without its heading, "" if there is none."""
        lines: list[str] = []
        level = 0  # of the heading of the section
        for line in self.text.splitlines():
            heading = _HEADING.fullmatch(line)
            if heading and level and len(heading[1]) <= level:
                break
            if level:
                lines.append(line)
            elif heading and re.match(rf"{grade}(?!\d)", heading[2]):
                level = len(heading[1])
        return "\n".join(lines).strip()

    def details(self, events: Iterable[Event]) -> list[Detail]:
        """Return the records that events were made under these guidelines."""
        return [
            Detail(event.id, GUIDELINES, {"digest": self.digest})
            for event in events
            if event.action in GUIDED
        ]


def read_guidelines(path: Path | None) -> Guidelines | None:
    """Return the guidelines in a file; None without a path.

    Raises:
        DataError: the file can't be read, is too long, or is not UTF-8.
    """
    if path is None:
        return None
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError:
        raise DataError(f"{path}: the guidelines are not UTF-8: save the file as UTF-8") from None
    if len(text) > MOST_CHARACTERS:
        raise DataError(f"{path}: the guidelines have more than {MOST_CHARACTERS:,} characters: shorten them")
    return Guidelines(text)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, a heading or an item of a list on one line; an empty line separates blocks."""

    text: str
    is_heading: bool = False


def paragraphs(markdown: str) -> Sequence[Paragraph]:
    r"""Return the paragraphs of a Markdown text, each on one line, for lines of any width.

    >>> [paragraph.text for paragraph in paragraphs("# A\nb\nc\n\n- d\n  e")]
    ['A', 'b c', '', '- d e']
    """
    result: list[Paragraph] = []
    continues = False
    for raw in markdown.splitlines():
        line = raw.strip()
        if heading := _HEADING.fullmatch(line):
            result.append(Paragraph(heading[2], is_heading=True))
        elif continues and line and not _LIST_ITEM.match(line):
            result[-1] = Paragraph(f"{result[-1].text} {line}")
        elif line or (result and result[-1].text):
            result.append(Paragraph(line))
        continues = bool(line) and not heading
    while result and not result[-1].text:
        result.pop()
    return result
