"""Parse a program's output as a terminal does: text and control sequences."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field

from tests.hostile.payload import SEQUENCES
from tests.test_visible import EMOJI_SEQUENCE, PROPERTIES, VISIBLE_FORMAT

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
"""Sequences of progress bars: hide the cursor, go up, clear the line."""

SCREEN = re.compile(
    r"\x1b\[(?:[0-9]+;[0-9]+H|[0-9]*[ABCDG]|[0-2]?[JK]"
    r"|\?(?:25|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048|7)[hl]"
    r"|\?(?:2026|2048)\$p|>[0-9]+u|<u)"
)
"""Further sequences of Textual: cursor positions, modes that it sets and resets, queries of modes."""

_REST_OF_EMOJI = re.compile("^[\u200d\ufe0e\ufe0f]|\u200d$")
_BACK = re.compile(r"(?:\x1b\[[0-9]*A)?\x1b\[2K")
_POINTER = re.compile(r"\x1b\]22;[a-z-]*\x07")
"""The shape of the mouse pointer over a widget, which Textual sets."""

_MODE = re.compile(r"\x1b\[\?(\d+)([hl])")
_INITIAL_MODES = {"7", "25"}
"""Initial modes of a terminal: lines wrap, the cursor is visible."""


@dataclass
class TerminalOutput:
    """Parsed output: its text, its forbidden parts and the state in which it leaves the terminal."""

    text: str = ""
    wrong: list[str] = field(default_factory=list)
    """Forbidden sequences and characters, with the text before them."""
    copied: list[str] = field(default_factory=list)
    """Texts sent to the clipboard."""
    modes: set[str] = field(default_factory=lambda: set(_INITIAL_MODES))
    """The modes that are set."""
    keyboards: int = 0
    """Number of keyboard protocols pushed and not popped."""
    style: str = ""
    """The last sequence that set colours and styles."""

    @property
    def is_restored(self) -> bool:
        """Whether the output leaves the terminal in its initial state."""
        return self.modes == _INITIAL_MODES and not self.keyboards and self.style in ("", "\x1b[0m", "\x1b[m")


def read(raw: bytes, *, screen: bool = False, pipe: bool = False, bell: bool = False) -> TerminalOutput:
    """Parse the output of a command or screen.

    Args:
        raw: The bytes that the program wrote.
        screen: Allow the sequences of Textual.
        pipe: Allow no control sequences.
        bell: Allow the bell, which a screen rings when it ends with an internal error.
    """
    output, parts = TerminalOutput(), [""]
    text = raw.decode("utf-8", "surrogateescape")
    for token in _TOKEN.finditer(text):
        kind, part = str(token.lastgroup), token[0]
        if kind in ("text", "end"):
            parts.append(part)
            # Textual may wrap a line within an emoji sequence: its rest then begins the next line.
            checked = _REST_OF_EMOJI.sub("", part) if screen else part
            output.wrong += [
                f"{character!r} in {part!r}"
                for character in PROPERTIES.findall(EMOJI_SEQUENCE.sub("", checked))
                if not VISIBLE_FORMAT.match(character) and character not in "\r\n\t"
            ]
        elif pipe or not _is_allowed(output, kind, part, screen):
            # a carriage return is allowed where a progress bar then clears its line
            if (bell and part == "\x07") or (not pipe and part == "\r" and _BACK.match(text, token.end())):
                continue
            output.wrong.append(f"{part!r} behind {''.join(parts[-9:])[-60:]!r}")
    output.text = "".join(parts)
    return output


def _is_allowed(output: TerminalOutput, kind: str, sequence: str, screen: bool) -> bool:
    """Whether a control sequence is allowed; note its effect in `output`."""
    if kind == "osc":
        return screen and _is_allowed_command(output, sequence)
    if kind != "csi" or sequence in SEQUENCES:
        return False
    if _COLOURS.fullmatch(sequence):
        output.style = sequence
        return not _CONCEAL.search(_LONG_COLOUR.sub("", sequence[2:-1]))
    if not (PROGRESS.fullmatch(sequence) or (screen and SCREEN.fullmatch(sequence))):
        return False
    if mode := _MODE.fullmatch(sequence):
        (output.modes.add if mode[2] == "h" else output.modes.discard)(mode[1])
    if sequence.endswith("u"):
        output.keyboards += 1 if ">" in sequence else -1
    return True


def _is_allowed_command(output: TerminalOutput, sequence: str) -> bool:
    """Whether an operating system command sets the pointer's shape or copies valid base64."""
    if _POINTER.fullmatch(sequence):
        return True
    match = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)(?:\x07|\x1b\\)", sequence)
    if match is None:
        return False
    output.copied.append(base64.b64decode(match[1], validate=True).decode())
    return True
