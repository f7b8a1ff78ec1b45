"""Which versions were verified whole, so that it need not be done again before every ranking.

A stamp beside the manifest holds one digest: of the manifest, and of size, times and inode that the system gives for
each file. Whoever changes a file, copies it or puts one in its place changes one of these, and the version is verified
anew. A stamp that is not what it should be, for whatever reason, only costs that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from searchapp.digests import digest_json
from searchapp.engines.embedded.storage.layout import Manifest, damaged
from searchapp.errors import Damaged
from searchapp.progress import Advance, no_progress

STAMP = "verified"


def require(folder: Path, manifest: Manifest) -> bool:
    """Make sure that every file of a version was found to be as it was written; returns whether this was done now.

    Raises:
        DataError: a file was altered.
        SearchappError: a file can't be read.
    """
    with suppress(OSError, ValueError):
        if (folder / STAMP).read_text(encoding="ascii") == _state(folder, manifest):
            return False
    verify(folder, manifest)
    return True


def verify(folder: Path, manifest: Manifest, advance: Advance = no_progress) -> None:
    """Compare every file of a version with its digest, and remember that they agree.

    Raises:
        DataError: a file was altered.
        SearchappError: a file can't be read.
    """
    with refuting(folder):
        before = _state(folder, manifest)  # what changes from here on is not vouched for
        manifest.verify(folder, advance)
    _remember(folder, before)


def remember(folder: Path, manifest: Manifest) -> None:
    """Count a version as verified that has just been written."""
    _remember(folder, _state(folder, manifest))


def refuted(folder: Path, problem: str) -> Damaged:
    """The error for a version that was found to be altered; from now on nobody takes it for sound."""
    with suppress(OSError):
        (folder / STAMP).unlink()
    return damaged(folder, problem)


@contextmanager
def refuting(folder: Path) -> Iterator[None]:
    """Have a version refuted that is found to be altered meanwhile.

    Raises:
        DataError: it was.
    """
    try:
        yield
    except Damaged as error:
        raise refuted(folder, error.problem) from error


def _remember(folder: Path, state: str) -> None:
    with suppress(OSError):  # where nothing can be written, it is verified again the next time
        (folder / STAMP).write_text(state, encoding="ascii")


def _state(folder: Path, manifest: Manifest) -> str:
    """The digest of all that the system knows of the files of a version."""
    files = {
        name: [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        for name, status in manifest.looked_at(folder)
    }
    return digest_json({"manifest": manifest.digest, "files": files})
