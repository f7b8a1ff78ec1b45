"""Texts with ids among the records of a user's own: documents and topics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.formats import json_stream, records
from searchapp.formats.ids import encodable, unusable
from searchapp.formats.problems import Problems, shown
from searchapp.formats.records import Record


@dataclass(frozen=True, slots=True)
class TextLayout:
    """Which columns or keys of a file have what.

    `text` are one or several whose values make the text, a line each, blank ones left out. `fields` maps the
    names of further fields to their columns. `columns` are the names in a table without a header line.
    """

    format: str
    id: str = "id"
    text: tuple[str, ...] = ("text",)
    fields: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None

    def required(self) -> list[str]:
        return [self.id, *self.text, *self.fields.values()]


class Text(NamedTuple):
    """A document or topic as its file has it, with the line."""

    line: int
    id: str
    text: str
    fields: dict[str, Any]


def read_texts(
    path: Path, layout: TextLayout, problems: Problems, seen: set[str], *, complete: bool
) -> Iterator[Text]:
    """The texts of a file, in its order; its problems go to `problems`.

    `seen` has the ids met so far and grows. An id is text or an integer. A further field is text, a number, a
    boolean or a list of such. A record without a value for it (no such key, null, an empty cell) has no such
    field; with `complete` an empty cell is empty text instead, and a missing key or null a problem. A field that
    no object of a file has is a problem.
    """
    unseen = dict(layout.fields) if records.has_keys(layout.format) else {}
    any_record = False
    for record in records.read_records(
        path, layout.format, problems, required=layout.required(), columns=layout.columns
    ):
        any_record = True
        for name in [name for name, column in unseen.items() if column in record.values]:
            del unseen[name]
        reader = _Reader(path, record, problems)
        id_ = reader.id(layout.id, seen)
        text = reader.text(layout.text)
        fields = reader.fields(layout.fields, complete=complete)
        if reader.good:
            seen.add(id_)
            yield Text(record.line, id_, text, fields)
    for column in unseen.values() if any_record else ():
        if not complete:  # otherwise every line has been reported
            problems.add(path, "missing key", "", f"no object has {column!r}", skippable=False)


class _Reader:
    """One record; it is `good` until something is found wrong with it."""

    def __init__(self, path: Path, record: Record, problems: Problems) -> None:
        self.good = True
        self._path = path
        self._record = record
        self._problems = problems

    def _wrong(self, kind: str, detail: str) -> None:
        self.good = False
        self._problems.add(self._path, kind, f"line {self._record.line}", detail)

    def id(self, column: str, seen: set[str]) -> str:
        if column not in self._record.values:
            self._wrong("missing key", column)
            return ""
        value = self._record.values[column]
        # To Python a boolean is an integer; to JSON it is not.
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            kind = json_stream.type_name(value)
            self._wrong("wrong type", f"{column} is {kind}, not a string or an integer")
            return ""
        if problem := unusable(value):
            self._wrong(*problem)
        elif value in seen:
            self._wrong("duplicate id", f"{shown(value)}; the first one counts")
        return value

    def text(self, columns: tuple[str, ...]) -> str:
        parts = []
        for column in columns:
            value = self._record.values.get(column)
            if isinstance(value, str):
                parts.append(value)
            elif column not in self._record.values:
                self._wrong("missing key", column)
            elif value is not None or len(columns) == 1:
                self._wrong("wrong type", f"{column} is {json_stream.type_name(value)}, not a string")
        text = "\n".join(part for part in parts if part.strip())
        if self.good and not text:
            self._wrong("blank text", f"{' and '.join(columns)} must not be blank")
        elif not encodable(text):
            self._wrong("lone surrogate", f"{' or '.join(columns)} has an escape that is half of a character")
        return text

    def fields(self, columns: Mapping[str, str], *, complete: bool) -> dict[str, Any]:
        found = {}
        for name, column in columns.items():
            value = self._record.values.get(column)
            if complete and column not in self._record.values:
                self._wrong("missing key", column)
            elif complete and value is None:
                self._wrong("wrong type", f"{column} is null, and templates need a value")
            elif value is not None and (value != "" or complete):
                self._check_field(column, value)
                found[name] = value
        return found

    def _check_field(self, column: str, value: Any) -> None:
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str | int | float):
                kind = json_stream.type_name(one)
                self._wrong("wrong type", f"{column} has {kind}, not a string, number or boolean")
            elif isinstance(one, float) and not math.isfinite(one):
                self._wrong("number out of range", column)
            elif isinstance(one, str) and not encodable(one):
                self._wrong("lone surrogate", f"{column} has an escape that is half of a character")
