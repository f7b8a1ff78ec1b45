"""The folder of a task's files: the given one, the one last indexed, or the default.

    <home>/folders.json         {"format": 1, "folders": {"nlps": "/data/nlps", "/home/ann/cooking.toml": "/data/c"}}
    <home>/folders.json.lock    a writer's lock from reading to writing

The key of a shipped task is its name, the key of an own task its file. The file is replaced atomically.
"""

from __future__ import annotations

import json
from pathlib import Path

from searchapp.errors import DataError, UsageError
from searchapp.files import atomic_file, file_lock, parse_json, read_text
from searchapp.lucene.dataclass import dataclass
from searchapp.tasks.base import Task

FOLDERS_FILE = "folders.json"
FOLDERS_FORMAT = 1


class _NewerFormat(DataError):
    """The file has an unknown format and must not be overwritten."""


def remembered_folders(home: Path) -> dict[str, Path]:
    """Return the remembered folders, existing or not.

    Raises:
        DataError: the file is damaged, or from a newer searchapp.
    """
    path = home / FOLDERS_FILE
    try:
        content = parse_json(read_text(path), file_names=True)
        version, folders = content["format"], content["folders"]
        if version == FOLDERS_FORMAT and all(isinstance(folder, str) for folder in folders.values()):
            return {task: Path(folder) for task, folder in folders.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        version = None
    if isinstance(version, int) and version > FOLDERS_FORMAT:
        raise _NewerFormat(
            f"{path} was written by a newer version of searchapp: update searchapp, or name folders with --data"
        )
    raise DataError(
        f"{path}, which lists the folders of the tasks, is damaged: remove it, and name the folder "
        "again with `searchapp index TASK --data DIR`"
    )


def remember_folder(home: Path, task: str, folder: Path | None) -> bool:
    """Remember the folder of a task, or forget it, and return whether that changed anything.

    A damaged file is replaced.

    Raises:
        DataError: the file is from a newer searchapp.
        SearchappError: the file can't be written.
    """
    with file_lock(home / FOLDERS_FILE):
        try:
            old_folders = remembered_folders(home)
        except _NewerFormat:
            raise
        except DataError:
            old_folders = {}
        new_folders = {name: path for name, path in old_folders.items() if name != task}
        if folder is not None:
            new_folders[task] = folder
        if new_folders == old_folders:
            return False
        content = {
            "format": FOLDERS_FORMAT,
            "folders": {name: str(path) for name, path in sorted(new_folders.items())},
        }
        with atomic_file(home / FOLDERS_FILE) as file:
            file.write(f"{json.dumps(content, indent=2)}\n".encode())
    return True


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A folder of a task's files, and whether it is remembered from `index --data`."""

    path: Path
    is_remembered: bool = False


def find(task: Task, home: Path | None, given: Path | None = None) -> DataFolder:
    """Return the given folder, else the remembered one, else `own_folder`, existing or not.

    Without `home`, no folder is remembered.

    Raises:
        UsageError: another folder is given for a sample.
        DataError: the file of remembered folders is unreadable.
    """
    sample = task.info.folder
    if sample is not None:
        if given is not None and given.resolve() != sample:
            raise UsageError(f"{task.name} has its files in {sample}: omit --data, or name another task")
        return DataFolder(sample)
    if given is not None:
        return DataFolder(given)
    folder = None if home is None else remembered_folders(home).get(_key(task))
    return DataFolder(own_folder(task, home or Path())) if folder is None else DataFolder(folder, True)


def data_folder(task: Task, home: Path | None, given: Path | None = None) -> Path:
    """Return the folder of `find`.

    Raises:
        DataError: the remembered folder no longer exists, or the file of remembered folders is unreadable.
    """
    folder = find(task, home, given)
    if folder.is_remembered and not folder.path.is_dir():
        raise DataError(
            f"the folder {folder.path}, from which {task.name} was last indexed, no longer exists: "
            f"name the folder of its files with --data; `searchapp index {task.reference} --data DIR` remembers it"
        )
    return folder.path


def require_data(task: Task, home: Path, given: Path | None = None) -> Path:
    """Return the folder of `data_folder`; the default folder for fetched files must have files.

    Raises:
        DataError: no folder is given, and the default one is missing or empty.
    """
    from searchapp.fetching.sources import has_data  # slow to import

    folder = data_folder(task, home, given)
    if given is None and task.info.file is None and not has_data(folder):
        raise DataError(
            f"{folder} has no data of {task.name}: fetch it with `searchapp data get {task.name}`, or give "
            "its folder with --data"
        )
    return folder


def own_folder(task: Task, home: Path) -> Path:
    """Return the default folder of a task's files: the folder of its TOML file, or the target of `data get`."""
    if task.info.folder is not None:
        return task.info.folder
    return download_folder(task.name, home) if task.info.file is None else task.info.file.parent


def download_folder(name: str, home: Path) -> Path:
    """Return the folder into which `data get` puts the files of a shared task."""
    return home / "data" / name


def remember(task: Task, home: Path, folder: Path) -> bool:
    """Remember a folder for a task, and return whether that changed anything.

    Raises:
        SearchappError: the folder can't be remembered.
    """
    folder = folder.resolve()
    is_own = folder == own_folder(task, home).resolve()
    return remember_folder(home, _key(task), None if is_own else folder)


def _key(task: Task) -> str:
    # Users may give two tasks the same name; their files differ.
    return task.name if task.info.file is None else str(task.info.file.resolve())
