"""The type hierarchy of answer type prediction: tab-separated `type`, `depth`, `parent`, after a header row.

    Type        Depth  Parent
    dbo:Agent   1      owl:Thing
    dbo:Person  2      dbo:Agent

The root is not listed: a parent that is not itself a row ends the path upwards. The depth is what the column
says; the organisers' scorer uses it as it stands, also where the tree says something else.

`read_as_scored` reads a file as the organisers' scorer does, `read` finds everything that is wrong with it.
The official file of DBpedia (761 types, greatest depth 7, root `owl:Thing`) has nothing wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from searchapp.errors import DataError, NotScorable
from searchapp.files import unreadable
from searchapp.formats.encoding import add_undecodable, undecodable
from searchapp.formats.problems import Problems, shown
from searchapp.inputs import read_text

HEADER = ["type", "depth", "parent"]
COLUMNS = len(HEADER)
_MOST_DIGITS = 4


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Types with their stated depths and their parents.

    `greatest_depth` is that of all rows, those included that a later row of the same type replaces.
    """

    depths: Mapping[str, int]
    parents: Mapping[str, str]
    greatest_depth: int

    def __contains__(self, type_: object) -> bool:
        return type_ in self.depths

    def has_circles(self) -> bool:
        """Whether types are each other's ancestors."""
        try:
            return len(self.paths) < len(self.depths)  # never: finding the paths fails
        except DataError:
            return True

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """Each type's path: itself, its parent, and so on up to the last that is listed.

        Raises:
            DataError: types are each other's ancestors, so that a path never ends.
        """
        return {type_: self._path(type_) for type_ in self.depths}

    def _path(self, type_: str) -> tuple[str, ...]:
        path = [type_]
        while (parent := self.parents[path[-1]]) in self.depths:
            if parent in path:
                raise DataError(
                    f"the type hierarchy has a cycle: {shown(parent)} is its own ancestor; "
                    "correct the parents"
                )
            path.append(parent)
        return tuple(path)


def read_as_scored(path: Path) -> Hierarchy:
    """The hierarchy as the organisers' scorer reads it: a repeated type keeps its last row.

    Raises:
        NotScorable: their scorer stops on the file.
        DataError: the file cannot be read.
    """
    depths: dict[str, int] = {}
    parents: dict[str, str] = {}
    greatest = 0
    try:
        lines = list(_lines(path))
    except UnicodeDecodeError as error:
        raise DataError(undecodable(path, error)) from error
    except OSError as error:
        raise unreadable(path, error) from error
    for line, text in lines[1:]:
        cells = text.rstrip().split("\t")
        if len(cells) < COLUMNS:
            message = f"{path}: line {line} has {len(cells)} of the {COLUMNS} cells type, depth, parent"
            raise NotScorable(message, "IndexError: list index out of range")
        try:
            depth = int(cells[1])
        except ValueError as error:
            raise NotScorable(
                f"{path}: line {line}: the depth is not an integer: {shown(cells[1])}", f"ValueError: {error}"
            ) from error
        depths[cells[0]], parents[cells[0]] = depth, cells[2]
        greatest = max(greatest, depth)
    return Hierarchy(depths, parents, greatest)


def read(path: Path, problems: Problems) -> Hierarchy:
    """The hierarchy, with everything that is wrong with its file in `problems`; a bad row is left out."""
    depths: dict[str, int] = {}
    parents: dict[str, str] = {}
    rows: dict[str, str] = {}
    try:
        lines = list(_lines(path))
    except UnicodeDecodeError as error:
        add_undecodable(path, error, problems)
        return Hierarchy({}, {}, 0)
    except OSError as error:
        problems.add_unopened(path, error)
        return Hierarchy({}, {}, 0)
    if len(lines) < 2:
        problems.add(
            path, "empty file", detail="a header row and rows of types are expected", skippable=False
        )
    elif (header := lines[0][1].lower().removeprefix("\ufeff").split("\t")) != HEADER:
        detail = f"{shown(' '.join(header))}, where {', '.join(HEADER)} are expected, with tabs between them"
        problems.add(path, "wrong header row", "line 1", detail, skippable=False)
    for number, text in lines[1:]:
        cells, where = text.split("\t"), f"line {number}"
        if len(cells) != COLUMNS:
            detail = f"{len(cells)}, not the {COLUMNS} type, depth and parent"
            problems.add(path, "wrong number of columns", where, detail)
        elif any(cell.split() != [cell] for cell in cells):
            problems.add(path, "blank or spaced cell", where, "a name is one word without white space")
        elif not (cells[1].isascii() and cells[1].isdigit() and len(cells[1]) <= _MOST_DIGITS):
            problems.add(path, "wrong depth", where, f"{shown(cells[1])} is not a whole number")
        elif cells[0] in depths:
            problems.add(path, "duplicate type", where, f"{shown(cells[0])} has a row already")
        else:
            depths[cells[0]], parents[cells[0]], rows[cells[0]] = int(cells[1]), cells[2], where
    hierarchy = Hierarchy(depths, parents, max(depths.values(), default=0))
    for type_, detail in _contradictions(hierarchy):
        problems.add(path, "wrong parent", rows.get(type_, ""), detail, skippable=False)
    return hierarchy


def _contradictions(hierarchy: Hierarchy) -> Iterator[tuple[str, str]]:
    """Types whose rows cannot all be true of one tree, and why; an empty one stands for the tree as a whole.

    A parent that is not listed is a root, whatever its name.
    """
    roots = {parent for parent in hierarchy.parents.values() if parent not in hierarchy}
    if len(roots) > 1:
        yield (
            "",
            f"the parents that have no row of their own are more than one root: {', '.join(sorted(roots))}",
        )
    for type_, parent in hierarchy.parents.items():
        expected = hierarchy.depths.get(parent, 0) + 1
        if hierarchy.depths[type_] != expected:
            yield (
                type_,
                f"{shown(type_)} has depth {hierarchy.depths[type_]}, but its parent {shown(parent)} makes it "
                f"{expected}",
            )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line, without its end; raises what opening and decoding raise."""
    text = read_text(path)  # whose universal newlines are those of the scorer
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    yield from enumerate(lines, 1)
