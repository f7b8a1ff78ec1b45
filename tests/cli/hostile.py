"""Random damage of text files: random bytes, and tokens that readers do not expect."""

from __future__ import annotations

import random
import re
from pathlib import Path

DEEP = b"[" * 10_000 + b"]" * 10_000
"""Nested more deeply than Python's stack allows."""

NEARLY_TOO_DEEP = b"[" * 800 + b"]" * 800
"""Nested so deeply that it can be parsed, but exceeds the stack when the value is processed."""

_OF_JSON = [
    DEEP,
    NEARLY_TOO_DEEP,
    b'{"a":' * 700 + b"1" + b"}" * 700,
    b'"\\ud800"',
    b'"\\udcff"',
    b'"a\\u0000b"',
    b'"\\u0000"',
    b'"\\u202e\\u001b[2J"',
    b"1e400",
    b"-1e400",
    b"9" * 400,
    b"9" * 5000,
    b"9223372036854775808",
    b"-1",
    b"0.5",
    b"NaN",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"[{}]",
    b'""',
    b'"' + b"x" * 70_000 + b'"',
    b'{"a": 1, "a": 2}',
]
_OF_TOML = [
    DEEP,
    NEARLY_TOO_DEEP,
    b"{a=" * 300 + b"1" + b"}" * 300,
    b'"a\\u0000b"',
    b'"\\u0000"',
    b'"\\u001b[2J"',
    b"1e400",
    b"inf",
    b"nan",
    b"9" * 400,
    b"9" * 5000,
    b"-1",
    b"0.5",
    b"true",
    b"[]",
    b"[[]]",
    b"{}",
    b'""',
    b'["", ""]',
    b"1979-05-27T07:32:00Z",
    b'"/dev/zero"',
    b'"."',
    b'"/"',
    b'"' + b"x" * 5000 + b'"',
    b"{ file = 1 }",
]
_OF_CELLS = [
    b"",
    b"\0",
    b"1e400",
    b"9" * 400,
    b"9" * 5000,
    b"-1",
    b"nan",
    b"\x1b[2J",
    b"\xff",
    b'"',
    b"x" * 70_000,
]

_JSON_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|\[[^\[\]{}]*\]')
_TOML_VALUE = re.compile(rb'(?<== )(?:"[^"\n]*"|\[[^\n]*\]|\{[^\n]*\}|[\w.+-]+)')
_TOML_KEY = re.compile(rb"(?m)^\w+(?= =)|(?<=^\[)[\w.]+(?=\])")
_CELL = re.compile(rb"[^\t ,\n]+")


def damage(path: Path, content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Damage content, and return a description and the result."""
    kinds = [
        _cut,
        _flip_bits,
        _insert,
        _repeat_line,
        _replace_token,
        _replace_token,
        _replace_token,
        _replace_token,
    ]
    return chance.choice(kinds)(path, content, chance)


def _cut(path: Path, content: bytes, chance: random.Random) -> tuple[str, bytes]:
    at = chance.randrange(len(content))
    return f"cut at {at}", content[:at]


def _flip_bits(path: Path, content: bytes, chance: random.Random) -> tuple[str, bytes]:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return "bits turned", bytes(changed)


def _insert(path: Path, content: bytes, chance: random.Random) -> tuple[str, bytes]:
    at = chance.randrange(len(content))
    inserted = chance.choice(
        [b"\0", b"\0" * 300, b"\xed\xa0\x80", b"\xf0\x9f", b"\r", b"\xe2\x80\xa8", b"\x1a", b"{[" * 2000]
    )
    return f"{inserted[:4]!r} inserted at {at}", content[:at] + inserted + content[at:]


def _repeat_line(path: Path, content: bytes, chance: random.Random) -> tuple[str, bytes]:
    lines = content.split(b"\n")
    at = chance.randrange(len(lines))
    return f"line {at + 1} repeated", b"\n".join([*lines[: at + 1], lines[at], *lines[at + 1 :]])


def _replace_token(path: Path, content: bytes, chance: random.Random) -> tuple[str, bytes]:
    pattern, tokens = _CELL, _OF_CELLS
    if path.suffix in (".json", ".jsonl"):
        pattern, tokens = _JSON_TOKEN, _OF_JSON
    elif path.suffix == ".toml":
        pattern, tokens = chance.choice(
            [(_TOML_VALUE, _OF_TOML), (_TOML_KEY, [b"a" + b".a" * 2000, b'""', b"name"])]
        )
    match = chance.choice(list(pattern.finditer(content)))
    token = chance.choice(tokens)
    return (
        f"{match[0][:20]!r} at {match.start()} becomes {token[:12]!r} ({len(token)} bytes)",
        content[: match.start()] + token + content[match.end() :],
    )
