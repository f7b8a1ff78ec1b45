"""A run that somebody names: a run directory, or any TREC run, which says less of itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from searchapp.digests import digest_file
from searchapp.errors import UsageError
from searchapp.formats import trec
from searchapp.model import Run
from searchapp.runs import directory
from searchapp.runs.directory import Manifest


@dataclass(frozen=True, slots=True)
class GivenRun:
    """The rankings of a run directory, or those of a file in the order in which trec_eval takes them.

    `manifest` is that of a directory, None for a file. `digest` identifies the run. `tied` counts the topics of a file
    whose documents of equal scores stand in another order there.
    """

    path: Path
    run: Run
    manifest: Manifest | None
    digest: str
    tied: int = 0

    @property
    def note(self) -> str | None:
        """A sentence on equal scores that were reordered; None when there are none."""
        if not self.tied:
            return None
        topics = "1 topic" if self.tied == 1 else f"{self.tied:,} topics"
        return (
            f"{self.path} has documents of equal scores in {topics}: they are ordered by descending id, as trec_eval "
            "does, and not as they stand in the file"
        )


def read(path: Path) -> GivenRun:
    """A run directory, or a TREC run.

    Raises:
        UsageError: there is neither.
        DataError: the files of a directory are not what they should be.
        InvalidFiles: the file is no TREC run.
    """
    require_there(path)
    if path.is_dir():
        stored = directory.read(path)
        return GivenRun(path, stored.run, stored.manifest, stored.manifest.digest)
    found = trec.read_by_score(path)
    return GivenRun(path, found.run, None, digest_file(path), found.tied)


def require_there(path: Path) -> None:
    """Make sure that there is a run directory or a file.

    Raises:
        UsageError: there is nothing of the name.
    """
    if not path.exists():
        raise UsageError(
            f"there is no run directory or TREC run {path}: `searchapp rank` makes a run directory"
        )
