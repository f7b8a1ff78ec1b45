"""How long work is reported, whoever shows it: a terminal, the interface, or nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from searchapp.engines.base import Advance, no_progress


class Progress(Protocol):
    """Shows the stages of a piece of work."""

    def stage(self, label: str, total: int | None = None) -> AbstractContextManager[Advance]:
        """A stage ("indexing") of `total` items; what it gives is called with each number of items done."""


class Silent:
    """A `Progress` that shows nothing."""

    @contextmanager
    def stage(self, label: str, total: int | None = None) -> Iterator[Advance]:  # noqa: ARG002
        yield no_progress
