"""Systematic damage of files: in their bytes, in lines and cells, and in the structure of JSON."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Damage = Callable[[bytes], bytes]


def mutations(path: Path, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of every applicable mutation of a file that changes its meaning."""
    for name, damage in (OF_BYTES | (OF_JSON if path.suffix == ".json" else OF_LINES)).items():
        damaged = damage(content)
        if damaged != content and not (name in OF_JSON and _has_same_meaning(damaged, content)):
            yield name, damaged


def _has_same_meaning(damaged: bytes, content: bytes) -> bool:
    """Whether two texts are the same JSON; a repeated key is a difference."""
    try:
        return bool(
            json.loads(damaged, object_pairs_hook=list) == json.loads(content, object_pairs_hook=list)
        )
    except (ValueError, RecursionError):
        return False


def _insert(content: bytes, inserted: bytes) -> bytes:
    """Insert bytes between two letters in the middle of the content."""
    match = re.compile(rb"[a-z](?=[a-z])").search(content, len(content) // 2)
    at = match.end() if match else len(content) // 2
    return content[:at] + inserted + content[at:]


OF_BYTES: dict[str, Damage] = {
    "emptied": lambda content: b"",
    "blanks only": lambda content: b" \n\n",
    "cut after one byte": lambda content: content[:1],
    "cut at a quarter": lambda content: content[: len(content) // 4],
    "cut in the middle": lambda content: content[: len(content) // 2],
    "last byte cut": lambda content: content.rstrip()[:-1],
    "latin-1 letter": lambda content: _insert(content, b"\xe9"),
    "half a character": lambda content: _insert(content, b"\xf0\x9f"),
    "utf-16": lambda content: content.decode().encode("utf-16"),
    "byte-order mark": lambda content: b"\xef\xbb\xbf" + content,
    "two byte-order marks": lambda content: b"\xef\xbb\xbf" * 2 + content,
    "NUL byte": lambda content: _insert(content, b"\0"),
    "NUL bytes at the end": lambda content: content + b"\0\0",
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "CR": lambda content: content.replace(b"\n", b"\r"),
    "no final newline": lambda content: content.removesuffix(b"\n"),
    "blank line at the end": lambda content: content + b"\n",
    "garbage at the end": lambda content: content + b"}] garbage",
    "twice": lambda content: content + content,
    "quotes removed": lambda content: content.replace(b'"', b""),
    "quotes curled": lambda content: content.replace(b'"', "“".encode()),
    "zipped": lambda content: b"PK\x03\x04\x14\0\0\0" + content,
    "a web page": lambda content: b"<!DOCTYPE html>\n<html><body>404</body></html>\n",
}


def _lines(change: Callable[[list[str]], None]) -> Damage:
    def damage(content: bytes) -> bytes:
        lines = content.decode().split("\n")
        change(lines)
        return "\n".join(lines).encode()

    return damage


def _cells(change: Callable[[list[str]], None], number: int = 2) -> Damage:
    """Change the cells of one line, by default the third, which is data with and without a header."""

    def damage(content: bytes) -> bytes:
        lines = content.decode().split("\n")
        if number < len(lines) - 1:
            cells = lines[number].split("\t")
            change(cells)
            lines[number] = "\t".join(cells)
        return "\n".join(lines).encode()

    return damage


def _cell(change: Callable[[str], str], which: int) -> Damage:
    def change_cells(cells: list[str]) -> None:
        cells[which] = change(cells[which])

    return _cells(change_cells)


def _swap_columns(content: bytes) -> bytes:
    return "\n".join("\t".join(reversed(line.split("\t"))) for line in content.decode().split("\n")).encode()


OF_LINES: dict[str, Damage] = {
    "first line twice": _lines(lambda lines: lines.insert(0, lines[0])),
    "a line twice": _lines(lambda lines: lines.insert(2, lines[2])),
    "first line removed": _lines(lambda lines: lines.__delitem__(0)),
    "a line removed": _lines(lambda lines: lines.__delitem__(2)),
    "blank line inside": _lines(lambda lines: lines.insert(2, "")),
    "line of blanks": _lines(lambda lines: lines.insert(2, "   ")),
    "line of tabs": _lines(lambda lines: lines.insert(2, "\t\t")),
    "lines reversed": _lines(lambda lines: lines.__setitem__(slice(1, -1), lines[-2:0:-1])),
    "columns swapped": _swap_columns,
    "columns swapped in a line": _cells(lambda cells: cells.reverse()),
    "tabs become blanks": lambda content: content.replace(b"\t", b"    "),
    "tabs become commas": lambda content: content.replace(b"\t", b","),
    "tabs doubled": lambda content: content.replace(b"\t", b"\t\t"),
    "extra column": _cells(lambda cells: cells.append("more")),
    "extra column everywhere": lambda content: content.replace(b"\n", b"\tmore\n"),
    "last column missing": _cells(lambda cells: cells.__delitem__(-1)),
    "first column missing": _cells(lambda cells: cells.__delitem__(0)),
    "quote opened": _cell(lambda cell: f'"{cell}', 0),
    "quote opened in the last cell": _cell(lambda cell: f'"{cell}', -1),
    "first cell empty": _cell(lambda cell: "", 0),
    "last cell empty": _cell(lambda cell: "", -1),
    "first cell padded": _cell(lambda cell: f" {cell} ", 0),
    "last cell padded": _cell(lambda cell: f" {cell} ", -1),
    "unknown id in the first cell": _cell(lambda cell: "no-such-id", 0),
    "unknown id in the last cell": _cell(lambda cell: "no-such-id", -1),
    "huge number in the first cell": _cell(lambda cell: "9" * 5000, 0),
    "huge number in the last cell": _cell(lambda cell: "9" * 5000, -1),
    "negative last cell": _cell(lambda cell: "-1", -1),
    "fraction in the last cell": _cell(lambda cell: "0.5", -1),
    "nan in the last cell": _cell(lambda cell: "nan", -1),
    "NA in the last cell": _cell(lambda cell: "NA", -1),
    "other digits in the last cell": _cell(lambda cell: "٣", -1),
    "form feed in the first cell": _cell(lambda cell: f"{cell}\f", 0),
    "line separator in the last cell": _cell(lambda cell: f"{cell}\u2028x", -1),
}


def _to_json(value: Any) -> bytes:
    # Many lines, so that problems have places; writing with an indentation, even an empty one, is ten times slower.
    return (json.dumps(value, separators=(",\n", ": ")) + "\n").encode()


def _of_value(change: Callable[[Any], Any]) -> Damage:
    return lambda content: _to_json(change(json.loads(content)))


def _entry(change: Callable[[Any], Any]) -> Damage:
    """Change the second entry, or the first if there is only one."""

    def damage(content: bytes) -> bytes:
        document = json.loads(content)
        value = _entries(document)
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = keys[min(1, len(keys) - 1)]
        value[key] = change(copy.deepcopy(value[key]))
        return _to_json(document)

    return damage


def _entries(document: Any) -> Any:
    """Return the entries of a document: the list in its only member, or the document itself."""
    if (
        isinstance(document, dict)
        and len(document) == 1
        and isinstance(inner := next(iter(document.values())), list)
    ):
        return inner
    return document


def _member(which: int, change: Callable[[Any], Any]) -> Damage:
    """Change the value of a key in the second entry, named by its position, if the entry has keys."""

    def change_entry(entry: Any) -> Any:
        if isinstance(entry, dict) and which < len(entry):
            key = list(entry)[which]
            entry[key] = change(entry[key])
        return entry

    return _entry(change_entry)


def _without_key(which: int, name: str | None = None) -> Damage:
    """Remove a key of the second entry, or rename it."""

    def change_entry(entry: Any) -> Any:
        if isinstance(entry, dict) and which < len(entry):
            key = list(entry)[which]
            value = entry.pop(key)
            if name is not None:
                entry[f"{key}{name}"] = value
        return entry

    return _entry(change_entry)


def _change_shape(value: Any) -> Any:
    return (
        list(value.values()) if isinstance(value, dict) else {str(n): entry for n, entry in enumerate(value)}
    )


def _json_lines(content: bytes) -> bytes:
    value = json.loads(content)
    return b"".join(_to_json(entry) for entry in (value.values() if isinstance(value, dict) else value))


def _remove_first(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(list(value.items())[1:])
    return value[1:]


def _repeat_entry(content: bytes) -> bytes:
    """Repeat the second entry at the end; in an object, with its key."""
    value = json.loads(content)
    if isinstance(value, list):
        return _to_json([*value, value[min(1, len(value) - 1)]])
    key, entry = list(value.items())[min(1, len(value) - 1)]
    text = _to_json(value).decode().rstrip()
    return (f"{text[:-1]},{json.dumps(key)}: {json.dumps(entry)}}}\n").encode()


def _rename_entry(name: str) -> Damage:
    """Change the id of the second entry: its key in an object, its `id` in a list."""

    def damage(content: bytes) -> bytes:
        value = json.loads(content)
        if isinstance(value, dict):
            pairs = list(value.items())
            index = min(1, len(pairs) - 1)
            pairs[index] = (name, pairs[index][1])
            return _to_json(dict(pairs))
        entry = value[min(1, len(value) - 1)]
        if isinstance(entry, dict) and "id" in entry:
            entry["id"] = name
        return _to_json(value)

    return damage


def _nest(value: Any) -> Any:
    for _level in range(200):
        value = [value]
    return value


def _too_deep(content: bytes) -> bytes:
    return b"[" * 100_000 + b"]" * 100_000


_VALUES: dict[str, Callable[[Any], Any]] = {
    "null": lambda value: None,
    "a number": lambda value: 7,
    "a huge number": lambda value: 10**400,
    "true": lambda value: True,
    "a fraction": lambda value: 0.5,
    "another text": lambda value: "no-such-thing",
    "an empty text": lambda value: "",
    "blanks": lambda value: "  ",
    "an empty list": lambda value: [],
    "an empty object": lambda value: {},
    "in a list": lambda value: [value],
    "deep": _nest,
    "half a character": lambda value: json.loads('"x\\ud800"'),
    "twice in a list": lambda value: [*value, value[-1]] if isinstance(value, list) and value else value,
    "nulls in a list": lambda value: [*value, None] if isinstance(value, list) else value,
    "as text": lambda value: json.dumps(value) if not isinstance(value, str) else value,
}


OF_JSON: dict[str, Damage] = {
    "other shape": _of_value(_change_shape),
    "wrapped in an object": _of_value(lambda value: {"data": value}),
    "wrapped in a list": _of_value(lambda value: [value]),
    "null": lambda content: b"null\n",
    "a text": lambda content: b'"text"\n',
    "a number": lambda content: b"1e400\n",
    "an empty list": lambda content: b"[]\n",
    "an empty object": lambda content: b"{}\n",
    "nested too deeply": _too_deep,
    "trailing comma": lambda content: re.sub(rb"\s*([\]}])\s*$", rb",\n\1\n", content),
    "single quotes": lambda content: content.replace(b'"', b"'"),
    "JSON lines": _json_lines,
    "first entry removed": _of_value(_remove_first),
    "entry repeated": _repeat_entry,
    "unknown id": _rename_entry("no-such-id"),
    "empty id": _rename_entry(""),
    "id with a blank": _rename_entry("a b"),
    "id of 600 letters": _rename_entry("x" * 600),
    "NaN": lambda content: re.sub(rb"(?<=[\[:,] )?\"[^\"]*\"(?=\s*[\]}])", b"NaN", content, count=1),
    "number of 5000 digits": lambda content: re.sub(
        rb"\"[^\"]*\"(?=\s*[\]}])", b"9" * 5000, content, count=1
    ),
}
for _name, _change in _VALUES.items():
    OF_JSON[f"entry: {_name}"] = _entry(_change)
    for _which in range(4):
        OF_JSON[f"key {_which}: {_name}"] = _member(_which, _change)
for _which in range(4):
    OF_JSON[f"key {_which} removed"] = _without_key(_which)
    OF_JSON[f"key {_which} renamed"] = _without_key(_which, "s")
OF_JSON["extra key"] = _entry(lambda entry: {**entry, "note": "x"} if isinstance(entry, dict) else entry)
