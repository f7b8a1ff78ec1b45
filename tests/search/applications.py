"""Indexes and searches of kinds of applications, and what the embedded engine rejects of them.

    python -m tests.search.applications

writes the engine's present messages into the files in `tests/fixtures/applications`, and a summary into the table of
`docs/reference/engines.md`. A file is an object with

    about           the kind of application
    body            the settings and mappings of its index
    documents       documents with an `id`
    searches        search bodies by name
    not_compared    paths in `body` or `searches` that the server of the tests lacks a module for, and the module
    rejected        the messages of the embedded engine, by `body` or the path of a search
    ranked          such messages about searches that rank as query templates, where parts such as aggregations and
                    highlights have no effect
"""

from __future__ import annotations

import copy
import json
import operator
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from searchapp.engines.base import Engine, IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import SearchappError
from searchapp.files import digest_json
from searchapp.lucene.index.index_settings import NOT_INDEXED
from searchapp.ranking.templates import _ranking_body
from tests.search.queries import document

FOLDER = Path(__file__).parents[1] / "fixtures" / "applications"

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "reference" / "engines.md"

TABLE = re.compile(r"^\| of \d+ applications \|(?:.*\n\|)*.*", re.MULTILINE)

WIDTH = 118
"""The number of characters of a line in the files."""

Json = dict[str, Any]
Messages = dict[str, list[str]]


@dataclass
class Application:
    """The content of a file."""

    name: str
    about: str
    body: Json
    documents: list[Json]
    searches: dict[str, Json]
    not_compared: dict[str, str] = field(default_factory=dict)
    rejected: Messages = field(default_factory=dict)
    ranked: Messages = field(default_factory=dict)

    @classmethod
    def load(cls, name: str) -> Application:
        return cls(name, **json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))

    def save(self) -> None:
        content = {key: value for key, value in vars(self).items() if value and key in _KEYS}
        (FOLDER / f"{self.name}.json").write_text(f"{_written(content)}\n", encoding="utf-8")

    def spec(self, *, compared: bool = False) -> IndexSpec:
        """Return the index, as a copy of another program's index has it; `compared`: without `not_compared`."""
        mapping = copy.deepcopy(self.body)
        for path in self.not_compared if compared else ():
            kind, *parents, name = path.split(".")
            if kind != "body":
                continue
            node = reduce(operator.getitem, parents, mapping)
            if parents[-1] == "fields":
                del node[name]
            else:
                node[name] = NOT_INDEXED
        properties = mapping["mappings"]["properties"]
        mapping["mappings"]["properties"] = {"id": {"type": "keyword"}, "text": NOT_INDEXED, **properties}
        return IndexSpec(mapping, len(self.documents), digest_json([mapping, self.documents]))

    def build(self, engine: Engine, *, compared: bool = False) -> None:
        documents = [document({"text": "", **source}) for source in self.documents]
        engine.build(self.name, self.spec(compared=compared), documents)

    def compared(self) -> Iterator[tuple[str, Json]]:
        """Yield the path and the body of every search that the server of the tests supports."""
        for name, body in self.searches.items():
            path = f"searches.{name}"
            if self.not_compared.keys().isdisjoint({"body", path}):
                yield path, body

    def outcomes(self, engine: Engine) -> tuple[Messages, Messages]:
        """Return the present `rejected` and `ranked` of the embedded engine, and leave the index there."""
        if messages := _messages(lambda: self.build(engine)):
            return {"body": messages}, {}
        rejected: Messages = {}
        ranked: Messages = {}
        index = engine.open(self.name)
        for name, body in self.searches.items():
            if messages := _messages(partial(index.answer, body)):
                ranks = not _messages(partial(index.answer, ranking(body)))
                (ranked if ranks else rejected)[f"searches.{name}"] = messages
        return rejected, ranked

    @property
    def is_indexed(self) -> bool:
        """Whether the embedded engine accepts settings, mapping and documents."""
        return "body" not in self.rejected

    @property
    def accepted_searches(self) -> int:
        """The number of searches that the embedded engine answers as they are."""
        return len(self.searches) - len(self.rejected) - len(self.ranked) if self.is_indexed else 0


_KEYS = ("about", "body", "documents", "searches", "not_compared", "rejected", "ranked")


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def ranking(body: Mapping[str, Any]) -> Json:
    """Return a search body as a query template ranks it."""
    return {**_ranking_body(body, ()), "size": 10}


def _messages(action: Callable[[], object]) -> list[str]:
    try:
        action()
    except SearchappError as error:
        return list(error.lines)
    return []


def _written(value: Any, indentation: int = 0, used: int = 0) -> str:
    """Return a value as JSON whose objects and lists are on one line where that is short."""
    line = json.dumps(value, ensure_ascii=False)
    if indentation + used + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inner = indentation + 2
    if isinstance(value, list):
        items = [_written(item, inner) for item in value]
    else:
        items = [f"{json.dumps(key)}: {_written(item, inner, len(key) + 4)}" for key, item in value.items()]
    start, end = "[]" if isinstance(value, list) else "{}"
    return f"{start}\n{' ' * inner}" + f",\n{' ' * inner}".join(items) + f"\n{' ' * indentation}{end}"


_PART = re.compile(r"the embedded engine does not support (.*?); Elasticsearch does")
_UNKNOWN = re.compile(r"unknown (\w+ `\w+`)")
_GENERAL = (
    (re.compile(r"^`sort: .*"), "other sorts"),
    (re.compile(r"^queries on .* \((.*)\)$"), r"queries on \1"),
    (re.compile(r".*(fvh|unified|fragment).*"), "highlights in fragments"),
    (re.compile(r"(^the language \w+).*"), r"\1"),
    (
        re.compile(r"( of| in) the (field|alias|object|mapping|settings) .*| in (`mappings`|a search body)$"),
        "",
    ),
    (re.compile(r" of (\w+ )?`[^`]*`$"), ""),
)
"""Names of fields and components, and what replaces them."""


def _parts(application: Application) -> Iterator[str]:
    """Yield the unsupported parts of an application without the names of its fields, possibly repeatedly."""
    for messages in (*application.rejected.values(), *application.ranked.values()):
        for line in messages:
            match = _PART.search(line) or _UNKNOWN.search(line)
            part = match[1] if match else line
            for pattern, general in _GENERAL:
                part = pattern.sub(general, part)
            yield part


def table(applications: Sequence[Application]) -> str:
    """Return what the embedded engine accepts, and what the others need, as a table of the documentation."""
    searches = sum(len(application.searches) for application in applications)
    rows: list[tuple[str, object]] = [
        ("indexes accepted", sum(application.is_indexed for application in applications)),
        (
            f"of {searches} searches, accepted as they are",
            sum(application.accepted_searches for application in applications),
        ),
        (
            "further searches that rank as templates",
            sum(len(application.ranked) for application in applications),
        ),
        (
            "index and all searches accepted",
            sum(not application.rejected and not application.ranked for application in applications),
        ),
    ]
    counts = Counter(part for application in applications for part in set(_parts(application)))
    for count in sorted(set(counts.values()), reverse=True):
        parts = sorted(part for part in counts if counts[part] == count)
        rows.append((f"needed by {count}", "; ".join(parts)))
    lines = [f"| of {len(applications)} applications | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {label} | {value} |" for label, value in rows)])


def main() -> int:
    """Write the present messages into the files and the table into the documentation."""
    applications = list(map(Application.load, names()))
    with TemporaryDirectory(prefix="searchapp-applications-") as home:
        for application in applications:
            with closing(EmbeddedEngine(Path(home), "applications")) as engine:
                application.rejected, application.ranked = application.outcomes(engine)
            application.save()
    text = DOCUMENTATION.read_text(encoding="utf-8")
    new_table = table(applications)
    DOCUMENTATION.write_text(TABLE.sub(lambda _: new_table, text), encoding="utf-8")
    print(new_table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
