"""What an id must be like wherever it comes from, so that engines and run files can carry it."""

from __future__ import annotations

import unicodedata

MAX_BYTES = 512
"""As Elasticsearch has it."""


def unusable(id_: str) -> tuple[str, str] | None:
    """Kind and detail of the problem of an id; None for a good one."""
    if 0 < len(id_) <= MAX_BYTES and id_.isascii() and id_.isprintable() and " " not in id_:
        return None  # nearly all are, and a collection has many
    if id_.split() != [id_]:
        return "unusable id", "an id must not be empty or hold whitespace, which run files cannot carry"
    if not encodable(id_):
        return "lone surrogate", "the id has an escape that is half of a character"
    if any(unicodedata.category(character) == "Cc" for character in id_):
        return "unusable id", "an id must not hold control characters, which can act on a terminal"
    if len(id_.encode()) > MAX_BYTES:
        return "unusable id", f"an id must not be longer than {MAX_BYTES} bytes, as Elasticsearch has it"
    return None


def encodable(text: str) -> bool:
    """Whether a text can be written in UTF-8: one with half a surrogate pair can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
