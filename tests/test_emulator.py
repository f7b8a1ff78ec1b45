"""The fast terminal emulator equals pyte."""

from __future__ import annotations

from itertools import pairwise

import pyte
from hypothesis import given
from hypothesis import strategies as st

from tests import emulator

COLUMNS, LINES = 12, 5

SEQUENCES = [
    "\r",
    "\n",
    "\x08",
    "\t",
    "\x0e",
    "\x1b",
    "\x1b[",
    "\x1b[3",
    "\x1b[4h",
    "\x1b[4l",
    "\x1b[?5h",
    "\x1b[?5l",
    "\x1b[?7l",
    "\x1b[?1;31m",
    "\x1b[\x0831m",
    "\x1b[3\x181m",
    "\x1b]0;\x1b[31mtitle\x07",
    "\x1b]0;\x1b[31m",
    "\x1bM",
    "\x1bD",
    "\x1b7",
    "\x1b8",
    "\x1bc",
    "\x1b#8",
    "\x1b[J",
    "\x1b[2J",
    "\x1b[1m",
    "\x1b[7m",
    "\x1b[0m",
]
"""Control sequences without variations, also incomplete ones and in titles."""

pieces = st.one_of(
    st.text("ab \u2500é\u6f22\u0301\x7f\x00", max_size=15),
    st.builds("\x1b[{}m".format, st.text("0123457;", max_size=12)),
    st.builds("\x1b[38;2;{0};{1};7;48;5;{0}m".format, st.integers(0, 300), st.integers(0, 99999)),
    st.builds(
        "\x1b[{};{}{}".format, st.integers(0, 9), st.integers(0, 14), st.sampled_from("HABCDJKLMPX@Gr")
    ),
    st.sampled_from(SEQUENCES),
)


@given(st.lists(pieces, max_size=25), st.lists(st.integers(0, 200), max_size=4))
def test_screens_equal_those_of_pyte(texts: list[str], cuts: list[int]) -> None:
    expected, screen = pyte.Screen(COLUMNS, LINES), emulator.Screen(COLUMNS, LINES)
    streams = [pyte.ByteStream(expected), emulator.Stream(screen)]
    data = "".join(texts).encode()
    ends = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    for first, last in pairwise(ends):
        failed = [type(error) for stream in streams if (error := feeding_error(stream, data[first:last]))]
        assert len(failed) in (0, 2) and len(set(failed)) < 2
        if failed:  # both reject the sequence, and have read it in part
            return
        assert cells(screen) == cells(expected)
        cursor, wanted = screen.cursor, expected.cursor
        assert (cursor.x, cursor.y, cursor.attrs) == (wanted.x, wanted.y, wanted.attrs)
        assert screen.text == "\n".join("".join(cell.data for cell in line) for line in cells(expected))


def feeding_error(stream: pyte.ByteStream, data: bytes) -> Exception | None:
    try:
        stream.feed(data)
    except Exception as error:
        return error
    return None


def cells(screen: pyte.Screen) -> list[list[pyte.screens.Char]]:
    return [[screen.buffer[y][x] for x in range(COLUMNS)] for y in range(LINES)]
