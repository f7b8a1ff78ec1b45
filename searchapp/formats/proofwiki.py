"""The JSON layout of the ProofWiki corpus of natural language premise selection.

    knowledge_base.json   {"5748": "Let $G$ be a group ...", ...}
    train_set.json        {"10267": {"text": "Let $r$ ...", "premises": [5748, ...]}, ...}
    dev_set.json          likewise
    test_set.json         likewise, with the premises masked: no such key, null, or an empty list

Ids are text here; the premises, which the files hold as integers of any size, become text digit for digit.
The files are streamed: one entry is in memory at a time, besides the ids seen so far.

Every problem is recorded and the next entry read. An entry with a problem is left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from searchapp.formats import json_stream
from searchapp.formats.ids import encodable, unusable
from searchapp.formats.problems import Problems, shown
from searchapp.model import Document, Topic


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement to prove. `premises` has each premise once, in the file's order; None when it is masked."""

    id: str
    text: str
    premises: tuple[str, ...] | None


def read_knowledge_base(path: Path, problems: Problems) -> Iterator[Document]:
    """The statements of a knowledge base, in the order of the file; its problems go to `problems`."""
    for entry in _entries(path, problems, "premise"):
        text = entry.text(entry.value, "the value")
        if entry.good:
            yield Document(entry.id, text)


def read_statements(
    path: Path, problems: Problems, known: Container[str] | None = None, masked: bool = False
) -> Iterator[Statement]:
    """The statements of a split, in the order of the file; its problems go to `problems`.

    `known` has the ids of the knowledge base, among which the premises must be; without it anything goes.
    With `masked`, statements may lack their premises: no key, null and an empty list all mean masked. Without
    it an empty list is a statement that has no premises, and the other two are problems.
    """
    for entry in _entries(path, problems, "statement"):
        if not isinstance(entry.value, dict):
            entry.wrong("wrong type", f"the value is {json_stream.type_name(entry.value)}, not an object")
            continue
        if "text" in entry.value:
            text = entry.text(entry.value["text"], "text")
        else:
            entry.wrong("missing key", "text")
        if masked and not entry.value.get("premises"):
            premises = None
        elif "premises" in entry.value:
            premises = entry.premises(entry.value["premises"], known)
        else:
            entry.wrong("missing key", "premises")
        if entry.good:
            yield Statement(entry.id, text, premises)


def read_topics(path: Path, problems: Problems) -> Iterator[Topic]:
    """The statements of a split as topics, in the order of the file; their premises are not looked at."""
    for entry in _entries(path, problems, "statement"):
        if not isinstance(entry.value, dict):
            entry.wrong("wrong type", f"the value is {json_stream.type_name(entry.value)}, not an object")
        elif "text" not in entry.value:
            entry.wrong("missing key", "text")
        else:
            text = entry.text(entry.value["text"], "text")
            if entry.good:
                yield Topic(entry.id, text)


class _Entry:
    """One member of a file's object; it is `good` until something is found wrong with it."""

    def __init__(self, id_: str, value: object, path: Path, noun: str, problems: Problems) -> None:
        self.id = id_
        self.value = value
        self.good = True
        self._path = path
        self._where = f"{noun} {shown(id_)}"
        self._problems = problems

    def wrong(self, kind: str, detail: str = "") -> None:
        self.good = False
        self._problems.add(self._path, kind, self._where, detail)

    def check_id(self) -> None:
        if problem := unusable(self.id):
            self.wrong(*problem)

    def text(self, value: object, name: str) -> str:
        """The value as text that is not blank."""
        if not isinstance(value, str):
            self.wrong("wrong type", f"{name} is {json_stream.type_name(value)}, not a string")
            return ""
        if not value.strip():
            self.wrong("blank text", f"{name} must not be blank")
        elif not encodable(value):
            self.wrong("lone surrogate", f"{name} has an escape that is half of a character")
        return value

    def premises(self, value: object, known: Container[str] | None) -> tuple[str, ...]:
        """The value as ids, each of them once."""
        if not isinstance(value, list):
            self.wrong("wrong type", f"premises is {json_stream.type_name(value)}, not a list")
            return ()
        ids = []
        for premise in value:
            # To Python a boolean is an integer; to JSON it is not.
            if not isinstance(premise, int) or isinstance(premise, bool):
                self.wrong("wrong type", f"a premise is {json_stream.type_name(premise)}, not an integer")
                continue
            ids.append(str(premise))
            if known is not None and ids[-1] not in known:
                self.wrong("unknown premise", f"{shown(ids[-1])} is not in the knowledge base")
        return tuple(dict.fromkeys(ids))


def _entries(path: Path, problems: Problems, noun: str) -> Iterator[_Entry]:
    """The members of a file's object that have a usable id of their own."""
    seen: set[str] = set()
    for id_, value in json_stream.read_members(path, problems):
        entry = _Entry(id_, value, path, noun, problems)
        if id_ in seen:
            entry.wrong("duplicate id", "the first one counts")
            continue
        seen.add(id_)
        entry.check_id()
        if entry.good:
            yield entry
