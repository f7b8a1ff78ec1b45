"""A terminal's screen by pyte with fast paths for the output of screens.

pyte reads all that is no plain text character by character, and makes each cell with the names of all of its nine
attributes: half of what a test on a terminal takes itself. Here colours and looks, nearly all that is no text, are read
at once, and cells of text made with all that the one before had; whatever else there is, pyte does.
"""

from __future__ import annotations

import re
from functools import cache

import pyte
from pyte import modes
from pyte.screens import Char, wcwidth

LOOK = re.compile(r"\x1b\[([0-9;]*)m")
UNREAD = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]")
"""Sequences that pyte mistakes for text in part: dropped."""

LARGEST = 9999
"""The value that pyte gives larger parameters."""

REMEMBERED = 50_000


class Screen(pyte.Screen):
    """As pyte's, with `text`."""

    def __init__(self, columns: int, lines: int) -> None:
        self._looks: dict[tuple[Char, Char, tuple[int, ...]], Char] = {}
        self._texts: dict[int, str] = {}
        super().__init__(columns, lines)

    def draw(self, data: str) -> None:
        """Write text at the cursor."""
        cursor = self.cursor
        end = cursor.x + len(data)
        is_plain = (
            self.charset == 0 and self.g0_charset is pyte.charsets.LAT1_MAP and modes.IRM not in self.mode
        )
        if not is_plain or end > self.columns or not all(map(is_narrow, data)):
            super().draw(data)
            return
        line, rest = self.buffer[cursor.y], cursor.attrs[1:]
        for x, character in enumerate(data, cursor.x):
            line[x] = tuple.__new__(Char, (character, *rest))
        cursor.x = end
        self.dirty.add(cursor.y)

    def select_graphic_rendition(self, *attrs: int) -> None:
        """Set colours and attributes."""
        key = (self.cursor.attrs, self.default_char, attrs)
        if (known := self._looks.get(key)) is None:
            super().select_graphic_rendition(*attrs)
            if len(self._looks) >= REMEMBERED:
                self._looks.clear()
            known = self._looks[key] = self.cursor.attrs
        self.cursor.attrs = known

    @property
    def text(self) -> str:
        """The lines of the screen; pyte's `display` fails where half of a wide character was overwritten."""
        for number in self.dirty:
            self._texts.pop(number, None)
        self.dirty.clear()
        return "\n".join(map(self._text_of, range(self.lines)))

    def _text_of(self, number: int) -> str:
        if number not in self._texts:
            line = self.buffer[number]
            self._texts[number] = "".join(line[x].data for x in range(self.columns))
        return self._texts[number]


class Stream(pyte.ByteStream):
    """As pyte's."""

    def feed(self, data: bytes) -> None:  # type: ignore[override]  # as in `pyte.ByteStream`
        """Read output of a program, which may begin and end within a sequence."""
        text = self.utf8_decoder.decode(data) if self.use_utf8 else "".join(map(chr, data))
        assert self.listener is not None
        done = 0
        for look in LOOK.finditer(text):
            self._feed(text[done : look.start()])
            if self._taking_plain_text:
                numbers = [min(int(one or 0), LARGEST) for one in look[1].split(";")]
                self.listener.select_graphic_rendition(*numbers)
            else:  # in the middle of something else
                self._feed(look[0])
            done = look.end()
        self._feed(text[done:])

    def _feed(self, text: str) -> None:
        if text:
            super(pyte.ByteStream, self).feed(text)


@cache
def is_narrow(character: str) -> bool:
    """Whether a character is exactly one cell wide."""
    return wcwidth(character) == 1
