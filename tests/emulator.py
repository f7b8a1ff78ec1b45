"""A terminal emulator based on pyte, with fast paths for the output of screens.

pyte parses control sequences character by character and sets all nine attributes of each cell, which takes half of the
time of a test on a terminal. This module parses colours and styles, the most frequent sequences, at once, and copies
the attributes of the cursor to cells of text. pyte handles all other output.
"""

from __future__ import annotations

import re
from functools import cache

import pyte
from pyte import modes
from pyte.screens import Char, wcwidth

STYLE = re.compile(r"\x1b\[([0-9;]*)m")
UNREAD = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]")
"""Sequences that pyte takes for text in part; they are dropped."""

LARGEST = 9999
"""The limit of parameters in pyte."""

CACHED_STYLES = 50_000

EMOJI_CLUSTER = re.compile(
    "[\u203c-\u3299\U0001f000-\U0001faff](?:[\ufe0f\U0001f3fb-\U0001f3ff]+|"
    "[\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d[\u203c-\u3299\U0001f000-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]*)+)"
)
"""An emoji of several characters, which terminals draw in two cells; pyte draws its characters one after another."""


class Screen(pyte.Screen):
    """pyte's screen with fast drawing and `text`."""

    def __init__(self, columns: int, lines: int) -> None:
        self._styles: dict[tuple[Char, Char, tuple[int, ...]], Char] = {}
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
            position = 0
            for cluster in EMOJI_CLUSTER.finditer(data):
                super().draw(data[position : cluster.start()])
                super().draw("\u3000")  # is as wide
                line, x = self.buffer[cursor.y], cursor.x - 2
                line[x] = line[x]._replace(data=cluster[0])
                position = cluster.end()
            super().draw(data[position:])
            return
        line, rest = self.buffer[cursor.y], cursor.attrs[1:]
        for x, character in enumerate(data, cursor.x):
            line[x] = tuple.__new__(Char, (character, *rest))
        cursor.x = end
        self.dirty.add(cursor.y)

    def select_graphic_rendition(self, *attrs: int) -> None:
        """Set colours and attributes."""
        key = (self.cursor.attrs, self.default_char, attrs)
        if (style := self._styles.get(key)) is None:
            super().select_graphic_rendition(*attrs)
            if len(self._styles) >= CACHED_STYLES:
                self._styles.clear()
            style = self._styles[key] = self.cursor.attrs
        self.cursor.attrs = style

    @property
    def text(self) -> str:
        """The lines of the screen. pyte's `display` fails if half of a wide character is overwritten."""
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
    """pyte's stream with fast parsing of styles."""

    def feed(self, data: bytes) -> None:  # type: ignore[override]  # as in `pyte.ByteStream`
        """Parse output of a program, which may begin and end within a sequence."""
        text = self.utf8_decoder.decode(data) if self.use_utf8 else "".join(map(chr, data))
        assert self.listener is not None
        position = 0
        for style in STYLE.finditer(text):
            self._feed(text[position : style.start()])
            if self._taking_plain_text:
                numbers = [min(int(number or 0), LARGEST) for number in style[1].split(";")]
                self.listener.select_graphic_rendition(*numbers)
            else:  # within another sequence
                self._feed(style[0])
            position = style.end()
        self._feed(text[position:])

    def _feed(self, text: str) -> None:
        if text:
            super(pyte.ByteStream, self).feed(text)


@cache
def is_narrow(character: str) -> bool:
    """Whether a character is exactly one cell wide."""
    return wcwidth(character) == 1
