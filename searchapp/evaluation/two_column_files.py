"""How the official scorers of two-column files come to their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from searchapp.formats import two_column
from searchapp.model import Run


class TwoColumnFiles:
    """A scorer whose submission is one file of two columns."""

    files_make_one = False

    def read(self, files: Sequence[Path]) -> dict[str, list[str | None]]:
        (path,) = files
        return two_column.read_two_column(path)

    def predictions(self, run: Run) -> dict[str, list[str | None]]:
        return two_column.of_run(run)
