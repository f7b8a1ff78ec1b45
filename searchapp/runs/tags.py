"""The tags of run directories: names by which people group and find them.

    tags.json       {"format": 1, "tags": ["baseline", "paper"]}

They stand beside the manifest and are no part of the run: tagging changes no digest, and a run that is written anew has
none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.files import locked_by, whole_file
from searchapp.runs.directory import MANIFEST, TAGS, read_manifest

FORMAT = 1
MOST = 100
_TAG = re.compile(r"[\w][\w.:+-]{0,63}")


def of(path: Path) -> tuple[str, ...]:
    """The tags of a run directory, in the order of the alphabet; none where there are none.

    Raises:
        DataError: they can't be read.
    """
    file = path / TAGS
    if not file.is_file():
        return ()
    described = resources.read_json(file)
    held = described.get("tags")
    if described.get("format") != FORMAT or not isinstance(held, list):
        raise DataError(f"{file}: no tags of this searchapp: remove it, and tag the run again")
    return tuple(sorted({one for one in held if isinstance(one, str) and _TAG.fullmatch(one)}))


def change(path: Path, add: Iterable[str] = (), remove: Iterable[str] = ()) -> tuple[str, ...]:
    """Tag a run directory, or take tags away; returns those that it has then.

    Raises:
        UsageError: there is no run directory, a name can't be a tag, or one that is to go is not there.
        DataError: the tags that are there can't be read.
        SearchappError: they can't be written.
    """
    read_manifest(path)
    add, remove = list(add), list(remove)
    for one in add:
        if not _TAG.fullmatch(one):
            raise UsageError(
                f"{one!r} can't be a tag: it takes letters, digits and . : + - _, 64 of them at most, and begins with "
                "a letter or digit"
            )
    with locked_by(path / MANIFEST):  # another process may be tagging it too
        held = of(path)
        for one in remove:
            if one not in held:
                raise UsageError(f"{path} has no tag {one!r}: it has {', '.join(held) or 'none'}")
        tags = tuple(sorted({*held, *add} - set(remove)))
        if len(tags) > MOST:
            raise UsageError(f"{path} would have {len(tags)} tags: {MOST} are enough for a run")
        if tags != held:
            with whole_file(path / TAGS) as file:
                file.write(json.dumps({"format": FORMAT, "tags": tags}, ensure_ascii=False).encode() + b"\n")
    return tags
