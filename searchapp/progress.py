"""How the progress of work is reported, to be shown by a terminal, the interface, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Called with the number of further items done, for a progress bar; a negative one when work is begun again."""

Notify = Callable[[str], None]
"""Called with a sentence for the person who waits: what for, and how long at most."""


def no_progress(_done: int) -> None:
    """The `Advance` of a caller that shows no progress."""


def no_notice(_sentence: str) -> None:
    """The `Notify` of a caller that nobody watches."""


class Progress(Protocol):
    """Shows the stages of a piece of work."""

    def stage(
        self, label: str, total: int | None = None, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        """A stage ("indexing") of `total` items, or bytes; what it gives is called with each number of them done."""


class Silent:
    """A `Progress` that shows nothing."""

    @contextmanager
    def stage(
        self,
        label: str,  # noqa: ARG002
        total: int | None = None,  # noqa: ARG002
        *,
        in_bytes: bool = False,  # noqa: ARG002
    ) -> Iterator[Advance]:
        yield no_progress
