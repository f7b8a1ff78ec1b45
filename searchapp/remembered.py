"""The folder that each task was last indexed from: nobody names it twice.

    <home>/folders.json         {"format": 1, "folders": {"nlps": "/data/nlps", "/home/ann/cooking.toml": "/data/c"}}
    <home>/folders.json.lock    held by the process that writes

A task that ships with searchapp is known by its name, one of a user's own by its file. The file is replaced in one
step, so that a reader finds the old state or the new one; a writer holds the lock from reading to
writing, so that of two processes neither loses what the other has written.
"""

from __future__ import annotations

import json
from pathlib import Path

from searchapp.errors import DataError
from searchapp.files import locked, whole_file
from searchapp.inputs import parse_json, read_text

FILE = "folders.json"
FORMAT = 1


class _Newer(DataError):
    """The file has a format that this searchapp does not know, and must not write over."""


def folders(home: Path) -> dict[str, Path]:
    """The remembered folders, whether they are still there or not.

    Raises:
        DataError: the file is damaged, or a newer searchapp's.
    """
    path = home / FILE
    try:
        held = parse_json(read_text(path), file_names=True)
        version, found = held["format"], held["folders"]
        if version == FORMAT and all(isinstance(folder, str) for folder in found.values()):
            return {task: Path(folder) for task, folder in found.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        version = None
    if isinstance(version, int) and version > FORMAT:
        raise _Newer(
            f"{path} was written by a newer searchapp: update searchapp, or name folders with --data"
        )
    raise DataError(
        f"{path}, which says where the files of the tasks are, is damaged: remove it, and name the folder once more "
        "with `searchapp index TASK --data DIR`"
    )


def remember(home: Path, task: str, folder: Path | None) -> bool:
    """Remember the folder of a task, or forget it; returns whether that changes anything.

    A damaged file is replaced: what it held can't be read any more.

    Raises:
        DataError: the file is a newer searchapp's.
        SearchappError: it can't be written.
    """
    with locked(home / FILE):
        known = _known(home)
        after = {name: place for name, place in known.items() if name != task}
        if folder is not None:
            after[task] = folder
        if after == known:
            return False
        described = {"format": FORMAT, "folders": {name: str(place) for name, place in sorted(after.items())}}
        with whole_file(home / FILE) as file:
            file.write(f"{json.dumps(described, indent=2)}\n".encode())
    return True


def _known(home: Path) -> dict[str, Path]:
    try:
        return folders(home)
    except _Newer:
        raise
    except DataError:
        return {}
