"""What the judgment log keeps besides events: whom it exchanges them with, what came with files, who has it open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mirror:
    """An index in a cluster that holds the same events, as far as they have been exchanged.

    `identity` is the same by whatever address the index is reached, and another one when it was deleted and made again,
    or set back to an older state. All events of the log up to the place `sent` are in the index, and all of the index
    up to its own place `received` in the log.
    """

    number: int
    identity: str
    sent: int
    received: int


@dataclass(frozen=True, slots=True)
class Import:
    """A file whose judgments were imported: when, from which file of which format, and how many events came with it.

    `number` is what the import is known by in this log.
    """

    number: int
    time: str
    task: str
    file: str
    format: str
    events: int


@dataclass(frozen=True, slots=True)
class Window:
    """Somebody who has the log open to judge, see `presence`; `opened` and `beat` are seconds since 1970."""

    id: str
    annotator: str
    task: str
    host: str
    process: int
    opened: float
    beat: float
