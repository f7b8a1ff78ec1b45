"""What a program has written to a terminal, read as the terminal reads it: text, and what acts."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field

from tests.hostile.payload import SEQUENCES
from tests.test_visible import PROPERTIES, SEEN

_TOKEN = re.compile(
    r"(?P<osc>\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\)?)"
    r"|(?P<string>\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\)?)"
    r"|(?P<csi>\x1b\[[0-?]*[ -/]*[@-~]?)"
    r"|(?P<escape>\x1b[ -/]*[0-~]?)"
    r"|(?P<end>\r*\n|\t)"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CONCEAL = re.compile(r"(?:^|;)(?:[58]|28)(?:;|$)")
_LONG_COLOUR = re.compile(r"[34]8;(?:5;\d+|2;\d+;\d+;\d+)")

PROGRESS = re.compile(r"\x1b\[(?:\?25[hl]|[0-9]*A|2K)")
"""What a progress bar needs: to hide the cursor, to go up, to clear its own line."""

SCREEN = re.compile(
    r"\x1b\[(?:[0-9]+;[0-9]+H|[0-9]*[ABCDG]|[0-2]?[JK]"
    r"|\?(?:25|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048|7)[hl]"
    r"|\?(?:2026|2048)\$p|>[0-9]+u|<u)"
)
"""What Textual needs besides: places, modes it sets and resets, what it asks about modes."""

_BACK = re.compile(r"(?:\x1b\[[0-9]*A)?\x1b\[2K")
_POINTER = re.compile(r"\x1b\]22;[a-z-]*\x07")
"""The shape of the mouse pointer over a widget, which Textual sets."""

_MODE = re.compile(r"\x1b\[\?(\d+)([hl])")
_ON_AT_FIRST = {"7", "25"}
"""Modes of a terminal that nobody has touched: lines wrap, the cursor is shown."""


@dataclass
class Written:
    """What was written: the text without what acts, everything that must not be there, and the state it left."""

    text: str = ""
    wrong: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    """What went to the clipboard."""
    left_on: set[str] = field(default_factory=lambda: set(_ON_AT_FIRST))
    """The modes that are set."""
    keyboards: int = 0
    """How many keyboard protocols are pushed and not popped."""
    looks: str = ""
    """The last colours and styles that were chosen."""

    @property
    def is_restored(self) -> bool:
        """Whether the terminal is as it was."""
        return self.left_on == _ON_AT_FIRST and not self.keyboards and self.looks in ("", "\x1b[0m", "\x1b[m")


def read(raw: bytes, *, screen: bool = False, pipe: bool = False, bell: bool = False) -> Written:
    """What a command, or a screen, has written to a terminal, or to a pipe where nothing may act at all.

    A screen may ring the `bell` when it ends with an internal error.
    """
    result, parts = Written(), [""]
    text = raw.decode("utf-8", "surrogateescape")
    for token in _TOKEN.finditer(text):
        what = str(token.lastgroup)
        said = token[0]
        if what in ("text", "end"):
            parts.append(said)
            result.wrong += [
                f"{one!r} in {said!r}"
                for one in PROPERTIES.findall(said)
                if not SEEN.match(one) and one not in "\r\n\t"
            ]
        elif pipe or not _may_act(result, what, said, screen):
            # what follows a carriage return says whether a progress bar goes back in its line
            if (bell and said == "\x07") or (not pipe and said == "\r" and _BACK.match(text, token.end())):
                continue
            result.wrong.append(f"{said!r} behind {''.join(parts[-9:])[-60:]!r}")
    result.text = "".join(parts)
    return result


def _may_act(written: Written, what: str, said: str, screen: bool) -> bool:
    """Whether a sequence is one that may be there; what it does is noted."""
    if what == "osc":
        return screen and _is_known(written, said)
    if what != "csi" or said in SEQUENCES:
        return False
    if _COLOURS.fullmatch(said):
        written.looks = said
        return not _CONCEAL.search(_LONG_COLOUR.sub("", said[2:-1]))
    if not (PROGRESS.fullmatch(said) or (screen and SCREEN.fullmatch(said))):
        return False
    if mode := _MODE.fullmatch(said):
        (written.left_on.add if mode[2] == "h" else written.left_on.discard)(mode[1])
    if said.endswith("u"):
        written.keyboards += 1 if ">" in said else -1
    return True


def _is_known(written: Written, said: str) -> bool:
    """Whether an operating system command shapes the pointer, or copies and holds nothing but base64."""
    if _POINTER.fullmatch(said):
        return True
    match = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)(?:\x07|\x1b\\)", said)
    if match is None:
        return False
    written.copied.append(base64.b64decode(match[1], validate=True).decode())
    return True
