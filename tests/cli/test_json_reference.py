"""docs/reference/json.md documents exactly the keys of the JSON that commands print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.cli_reference import reference
from tests.cli.conftest import Cli
from tests.cli.json_outputs import outputs

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "json.md").read_text(encoding="utf-8")

NEEDS_SERVER = {"searchapp data get", "searchapp indexes repair", "searchapp judgments sync"}
"""Commands that need a server or a download; tests of `data get` call `missing_keys`."""

TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}

Steps = tuple[str, ...]
"""The steps to a value: keys, and [] for the elements of an array."""


class Section:
    """The keys of a section of the page, with their types."""

    def __init__(self, text: str) -> None:
        self.types: dict[Steps, str] = {}
        self.conditional: set[Steps] = set()
        self.seen: set[Steps] = set()
        prose = " ".join(line for line in text.splitlines() if not line.startswith("|"))
        self.included = re.findall(r"\bkeys of \[[^]]*\]\(#([\w-]+)\)", prose)
        for keys, type_, meaning in re.findall(r"^\| (`.+?`) \| (.+?) \| (.+) \|$", text, re.MULTILINE):
            for key in re.findall(r"`(.+?)`", keys):
                path = tuple(re.sub(r"(?<!^)\[\]", ".[]", key).split("."))
                self.types[path] = type_
                if re.match(r"(If|With) ", meaning):
                    self.conditional.add(path)

    def match(self, path: Steps) -> Steps | None:
        """Return the documented path of a value, preferably one without *."""
        candidates = [
            known
            for known in self.types
            if len(known) == len(path) and all(a in ("*", b) for a, b in zip(known, path, strict=True))
        ]
        return min(candidates, key=lambda known: known.count("*"), default=None)


def sections() -> dict[str, Section]:
    """Read the sections of the page, by their anchors."""
    parts = re.split(r"^#{2,4} (.+)$", PAGE, flags=re.MULTILINE)[1:]
    titles = [re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in parts[::2]]
    return {title: Section(text) for title, text in zip(titles, parts[1::2], strict=True)}


def undocumented(value: Any, names: list[str], known: dict[str, Section], path: Steps = ()) -> Iterator[str]:
    """Yield the paths of a document that these sections lack or describe with another type."""
    names = [*names, *(more for name in names for more in known[name].included)]
    for name in names:
        documented = known[name].match(path)
        if documented is None:
            continue
        type_ = known[name].types[documented]
        if link := re.fullmatch(r"\[.+\]\(#(.+)\)", type_):
            known[name].seen.add(documented)
            if value is not None:
                yield from undocumented(value, [link[1]], known)
            return
        if type_ == "any" or (not isinstance(value, dict | list) and fits(value, type_)):
            known[name].seen.add(documented)
            return
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from undocumented(part, names, known, (*path, key))
    elif isinstance(value, list) and value:
        for part in value:
            yield from undocumented(part, names, known, (*path, "[]"))
    elif isinstance(value, dict | list):
        paths = [documented for name in names for documented in known[name].types]
        if path and not any(starts(documented, path) for documented in paths):
            yield f"{'.'.join(path)} (empty)"
    else:
        yield f"{'.'.join(path)} ({type(value).__name__})"


def starts(known: Steps, path: Steps) -> bool:
    """Whether a documented path begins with a path."""
    return len(known) > len(path) and all(a in ("*", b) for a, b in zip(known, path, strict=False))


def fits(value: Any, type_: str) -> bool:
    names = type_.split(" or ")
    if isinstance(value, bool):
        return "boolean" in names
    return (value == "nan" and "number" in names) or any(isinstance(value, TYPES[name]) for name in names)


def missing_keys(command: str, document: Any) -> list[str]:
    """List the keys in the output of a command that the page lacks."""
    return list(undocumented(document, [f"searchapp-{command.replace(' ', '-')}"], sections()))


def test_every_command_with_json_has_a_section() -> None:
    with_json = {
        part.partition("`")[0]
        for part in re.split(r"^## `", reference(), flags=re.MULTILINE)[1:]
        if "`--json`" in part
    }
    assert set(re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)) == with_json


@pytest.mark.shared_indexes
@pytest.mark.own_indexes
def test_the_page_describes_every_key_of_every_command(offline: Cli, tmp_path: Path) -> None:
    known = sections()
    missing = [
        f"searchapp {command}: {problem}"
        for command, document in outputs(offline, tmp_path)
        for problem in undocumented(document, [f"searchapp-{command.replace(' ', '-')}"], known)
    ]
    assert not missing, "docs/reference/json.md lacks: " + "\n".join(sorted(set(missing)))
    skipped = {name.replace(" ", "-") for name in NEEDS_SERVER}
    stale = [
        f"{title}: {'.'.join(path)}"
        for title, section in known.items()
        if title not in skipped
        for path in section.types.keys() - section.seen - section.conditional
    ]
    assert not stale, "no command prints: " + "\n".join(sorted(stale))
