"""Sources of each task's official files (`data_sources.toml`), and the state of these files in a folder."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from searchapp.errors import DataError, UsageError
from searchapp.files import open_file, parse_json, parse_toml, read_text, unreadable
from searchapp.lucene.dataclass import dataclass
from searchapp.progress import byte_count
from searchapp.text import choices_hint, counted

_FILE = Path(__file__).parents[1] / "data_sources.toml"


@dataclass(frozen=True, slots=True)
class Digest:
    """A file's SHA-256 or git object id."""

    kind: Literal["sha256", "git-blob"]
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"

    def matches(self, path: Path) -> bool:
        """Return whether a file has this digest.

        Raises:
            DataError: the file cannot be read.
        """
        try:
            with open_file(path) as file:
                if self.kind == "sha256":
                    return hashlib.file_digest(file, "sha256").hexdigest() == self.value
                # git hashes a header before the bytes: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
                seen = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
                while piece := file.read(1 << 20):
                    seen.update(piece)
                return seen.hexdigest() == self.value
        except OSError as error:
            raise unreadable(path, error) from error


@dataclass(frozen=True, slots=True)
class Download:
    """A file at an address."""

    url: str
    digest: Digest
    # In bytes; None when it is unknown.
    size: int | None
    # The greatest accepted size.
    at_most: int

    @property
    def name(self) -> str:
        """A unique file name."""
        return self.digest.value


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that needs no unpacking."""

    # In the task's folder, with slashes.
    path: str
    download: Download


@dataclass(frozen=True, slots=True)
class Member:
    """The entries of an archive that match a path or pattern, and the subfolder for them."""

    pattern: str
    # Empty, or with a slash at its end.
    folder: str
    optional: bool = False

    def destination(self, entry: str) -> str | None:
        """Return the path of an entry in the task's folder, or None if the entry does not match."""
        patterns, parts = self.pattern.split("/"), entry.split("/")
        if len(patterns) != len(parts) or not all(map(fnmatch.fnmatchcase, parts, patterns)):
            return None
        return self.folder + parts[-1]


@dataclass(frozen=True, slots=True)
class Archive:
    """A ZIP file; `unpacked_at_most` is the maximum size of all unpacked members, in bytes."""

    download: Download
    members: tuple[Member, ...]
    unpacked_at_most: int


@dataclass(frozen=True, slots=True)
class Source:
    """The official files of one task."""

    task: str
    # The home page, and the terms of use.
    page: str
    terms: str
    files: tuple[SourceFile, ...]
    archives: tuple[Archive, ...]

    def downloads(self) -> list[Download]:
        return [file.download for file in self.files] + [archive.download for archive in self.archives]


def source_facts(source: Source, addresses: Iterable[str]) -> list[tuple[str, str]]:
    """Return the origin, home page and terms of files: the folder of several addresses, or a single one."""
    in_folder: dict[str, list[str]] = {}
    for address in addresses:
        in_folder.setdefault(address.rpartition("/")[0] + "/", []).append(address)
    origins = [folder if len(files) > 1 else files[0] for folder, files in in_folder.items()]
    return [*(("from", origin) for origin in origins), ("home", source.page), ("terms", source.terms)]


def size_words(sizes: Sequence[int | None]) -> str:
    """Return the number of files and their total size in bytes; None is an unknown size."""
    known = [size for size in sizes if size is not None]
    if not known:
        return f"{counted(len(sizes), 'file')}, size unknown"
    unknown = len(sizes) - len(known)
    more = f" and {unknown} of unknown size" if unknown else ""
    return f"{counted(len(sizes), 'file')}, {byte_count(sum(known))}{more}"


def names() -> list[str]:
    """Return the tasks with downloadable data."""
    return list(_read())


def load(task: str) -> Source:
    """Return the source of a task.

    Raises:
        UsageError: the task has no source.
    """
    known = _read()
    if task not in known:
        raise UsageError(f"there is no official data for {choices_hint(task, known)}")
    return parse(task, known[task])


def parse(task: str, table: Mapping[str, Any]) -> Source:
    """Make a source from its TOML table."""
    return Source(
        task,
        table["page"],
        table["terms"].strip(),
        tuple(
            SourceFile(file["path"], _download(group["base"] + file.get("from", file["path"]), file))
            for group in table.get("groups", ())
            for file in group["files"]
        ),
        tuple(
            Archive(
                _download(archive["url"], archive),
                tuple(
                    Member(archive["top"] + member["from"], member["to"], member.get("optional", False))
                    for member in archive["members"]
                ),
                archive["unpacked_at_most"],
            )
            for archive in table.get("archives", ())
        ),
    )


@cache
def _read() -> Mapping[str, Mapping[str, Any]]:
    return parse_toml(read_text(_FILE))


def _download(url: str, table: Mapping[str, Any]) -> Download:
    digest = Digest("sha256", table["sha256"]) if "sha256" in table else Digest("git-blob", table["git_blob"])
    size = table.get("size")
    return Download(url, digest, size, size if size is not None else table["at_most"])


# In a task's folder: source, time, terms and the digests of the fetched files.
RECEIPT = "fetched.json"

FileState = Literal["missing", "present", "intact", "changed", "unknown"]


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One official file and its state in a folder.

    The states are "missing"; "present" (the size is right or unknown); "intact" (the digest is right);
    "changed"; "unknown" (not fetched by searchapp, so there is no digest).
    """

    # With slashes; a pattern (`tables/*.tsv`) for members of an archive that has not been fetched.
    path: str
    url: str
    # In bytes; None for an unknown size or a missing file.
    expected: int | None
    size: int | None
    state: FileState


# By path: `from` (address), `size` in bytes and `sha256`.
ReceiptFiles = Mapping[str, Mapping[str, Any]]


def read_receipt(folder: Path) -> ReceiptFiles:
    """Return the files in the receipt of a folder; none without a receipt.

    Raises:
        DataError: the receipt is damaged.
    """
    path = folder / RECEIPT
    try:
        files: ReceiptFiles = parse_json(read_text(path))["files"]
        if all(
            isinstance(entry["sha256"], str) and isinstance(entry["size"], int) for entry in files.values()
        ):
            return files
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise DataError(f"{path} is not a record of fetched files: remove it and fetch again")


def look(source: Source, folder: Path) -> list[FileStatus]:
    """Return the state of all files by name and size."""
    return list(_survey(source, folder, thorough=False))


def check(source: Source, folder: Path) -> list[FileStatus]:
    """Return the state of all files by digest."""
    return list(_survey(source, folder, thorough=True))


def has_data(folder: Path) -> bool:
    """Return whether a folder has a file that is not hidden; an incomplete download is hidden."""
    return folder.is_dir() and any(not entry.name.startswith(".") for entry in folder.iterdir())


def unofficial_files(folder: Path, files: Sequence[FileStatus]) -> list[str]:
    """Return unofficial files that a task reads too, because it reads the whole folder."""
    known = [file.path for file in files]
    subfolders = {path.rpartition("/")[0] for path in known if "/" in path}
    existing = [subfolder for subfolder in subfolders if (folder / subfolder).is_dir()]
    paths = [
        f"{subfolder}/{file.name}"
        for subfolder in existing
        for file in (folder / subfolder).iterdir()
        if not file.name.startswith(".")
    ]
    return sorted(path for path in paths if not any(fnmatch.fnmatchcase(path, pattern) for pattern in known))


def _survey(source: Source, folder: Path, *, thorough: bool) -> Iterator[FileStatus]:
    def status(
        path: str, download: Download, expected: int | None, matches: Callable[[Path], bool]
    ) -> FileStatus:
        size = _size(folder / path)
        state: FileState = "missing"
        if size is not None:
            state = "present" if expected in (None, size) else "changed"
            if state == "present" and thorough:
                state = "intact" if matches(folder / path) else "changed"
        return FileStatus(path, download.url, expected, size, state)

    receipt = read_receipt(folder)
    for file in source.files:
        yield status(file.path, file.download, file.download.size, file.download.digest.matches)
    for archive in source.archives:
        digest = str(archive.download.digest)
        unpacked = {path: entry for path, entry in receipt.items() if entry.get("archive") == digest}
        for path, entry in sorted(unpacked.items()):
            yield status(path, archive.download, entry["size"], Digest("sha256", entry["sha256"]).matches)
        for member in () if unpacked else archive.members:
            if not member.optional:
                pattern = member.folder + member.pattern.rpartition("/")[2]
                sizes = [size for path in folder.glob(pattern) if (size := _size(path)) is not None]
                state: FileState = ("unknown" if thorough else "present") if sizes else "missing"
                yield FileStatus(pattern, archive.download.url, None, sum(sizes) if sizes else None, state)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
