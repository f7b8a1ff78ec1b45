"""The rankings of a run directory, read a topic at a time.

A run may have a million lines, of which an annotator sees a few hundred. The lines of a topic stand together in the
file that searchapp writes, so that where each topic begins is found without reading what is between; in a compressed
file the lines of each topic are a piece of their own.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Protocol, TypeVar

from searchapp.errors import DataError
from searchapp.files import first_there, open_file, unreadable
from searchapp.formats import encoding, trec
from searchapp.model import Hits, Ranking, Run, float32
from searchapp.runs.directory import PACKED_RANKINGS, RANKINGS

T = TypeVar("T")

_CELLS = 6

LONGEST_ID = 1 << 12
"""The bytes at the beginning of a compressed piece among which its topic's id is looked for."""


class Rankings(Protocol):
    """The rankings of some topics, each read, or made, when it is asked for; `topics` are their ids in order."""

    @property
    def path(self) -> Path:
        """Where they come from, for messages."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The ids of the topics."""

    def ranking(self, topic_id: str) -> Ranking:
        """A topic's ranking."""

    def length(self, topic_id: str) -> int:
        """How many documents a topic's ranking has."""

    def scored(self, topic_id: str, at_most: int | None = None) -> int:
        """How many documents of a topic's ranking have a score other than 0, or `at_most`: the first ones."""


class RunRankings:
    """The rankings in the run directory `path`; `topics` are their ids in the order of the file.

    With `run` they are those, which were read from another file. Topics that are `empty` have no line there; they are
    the last ones.

    Raises:
        DataError: the file is missing, or is not as searchapp writes it; or, for a topic, when it is asked for.
    """

    def __init__(self, path: Path, run: Run | None = None, empty: Sequence[str] = ()) -> None:
        self.path = first_there(path, (RANKINGS, PACKED_RANKINGS)) if run is None else path
        held = self._mapped() if run is None else _as_written(run)
        members = encoding.pieces(held) if self.path.name == PACKED_RANKINGS and run is None else None
        try:
            self._lines: _Lines = _PlainLines(held) if members is None else _PackedLines(held, members)
        except _Altered as error:
            raise self._altered(str(error)) from error
        written = self._lines.topics
        self._empty = frozenset(empty).difference(written)
        self.topics = (*written, *(topic for topic in empty if topic in self._empty))

    def _mapped(self) -> bytes | mmap.mmap:
        try:
            with open_file(self.path) as file:
                empty = file.seek(0, 2) == 0
                return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def ranking(self, topic_id: str) -> Ranking:
        """A topic's ranking."""
        documents, scores = [], []
        try:
            lines = self._of(topic_id).decode().splitlines()
            for rank, line in enumerate(lines, 1):
                cells = line.split()
                if len(cells) != _CELLS or cells[0] != topic_id or int(cells[3]) != rank:
                    raise self._altered(f"the line of topic {topic_id} at rank {rank}")
                documents.append(cells[2])
                scores.append(float32(float(cells[4])))
        except ValueError as error:
            raise self._altered(f"a line of topic {topic_id}") from error
        return Ranking(topic_id, Hits(documents, scores))

    def length(self, topic_id: str) -> int:
        """How many documents a topic's ranking has; the ranking itself is not read."""
        return 0 if topic_id in self._empty else self._lines.length(topic_id)

    def scored(self, topic_id: str, at_most: int | None = None) -> int:
        """How many documents of a topic's ranking have a score other than 0, or `at_most`; few of the lines are read.

        Those without one are all at the end, in the order of their ids: nothing of the topic was found in them.

        Raises:
            DataError: a line that is read is not as searchapp writes it.
        """
        text = self._of(topic_id)
        last = text.rfind(b"\n", 0, len(text) - 1) + 1
        lines = text[: _end_of_lines(text, at_most)].splitlines()
        if not lines or self._score(topic_id, text[last:]) != 0:
            return len(lines)  # a run whose scores are below 0 has no such end
        return bisect_left(lines, True, key=lambda line: self._score(topic_id, line) <= 0)

    def _of(self, topic_id: str) -> bytes:
        """The lines of a topic."""
        if topic_id in self._empty:
            return b""
        try:
            return self._lines.of(topic_id)
        except ValueError as error:
            raise self._altered(f"what it has of topic {topic_id}") from error

    def _score(self, topic_id: str, line: bytes) -> float:
        try:
            return float(line.split()[4])
        except (ValueError, IndexError) as error:
            raise self._altered(f"a line of topic {topic_id}") from error

    def _altered(self, what: str) -> DataError:
        return DataError(f"{self.path}: {what} is not as searchapp writes it: rank again")


class _Altered(ValueError):
    """What is not as searchapp writes it."""


class _Lines(Protocol):
    """The lines of a file, by topics, whose ids are `topics` in their order."""

    topics: tuple[str, ...]

    def of(self, topic_id: str) -> bytes:
        """The lines of a topic."""

    def length(self, topic_id: str) -> int:
        """How many lines a topic has."""


class _PackedLines:
    """Those of a file that is compressed with a piece a topic."""

    def __init__(self, held: bytes | mmap.mmap, pieces: Iterable[encoding.Piece]) -> None:
        self._bytes = held
        self._pieces: dict[str, encoding.Piece] = {}
        for piece in pieces:
            try:
                beginning = encoding.unpacked(held, piece, LONGEST_ID)
            except ValueError as error:
                raise _Altered("a compressed piece") from error
            _add(self._pieces, _topic_at(beginning, 0), piece)
        self.topics = tuple(self._pieces)

    def of(self, topic_id: str) -> bytes:
        return encoding.unpacked(self._bytes, self._pieces[topic_id])

    def length(self, topic_id: str) -> int:
        return self._pieces[topic_id].lines


class _PlainLines:
    """Those of a file that is not compressed."""

    def __init__(self, held: bytes | mmap.mmap) -> None:
        self._bytes = held
        self._blocks = self._found_blocks()
        self.topics = tuple(self._blocks)

    def of(self, topic_id: str) -> bytes:
        begin, end = self._blocks[topic_id]
        return self._bytes[begin:end]

    def length(self, topic_id: str) -> int:
        block = self.of(topic_id)
        return block.count(b"\n") + (not block.endswith(b"\n"))

    def _found_blocks(self) -> dict[str, tuple[int, int]]:
        """From where to where the lines of each topic reach."""
        blocks: dict[str, tuple[int, int]] = {}
        begin, size = 0, len(self._bytes)
        guess = 1 << 14
        while begin < size:
            topic = _topic_at(self._bytes, begin)
            end = self._end_of(topic, begin, guess)
            _add(blocks, topic, (begin, end))
            begin, guess = end, end - begin
        return blocks

    def _end_of(self, topic: bytes, begin: int, guess: int) -> int:
        """Where the first line of another topic begins, looked for in steps that grow, and between them by halves."""
        size, low, step = len(self._bytes), begin, max(guess - 1, 1)
        high = self._line_after(low + step)
        while high < size and _topic_at(self._bytes, high) == topic:
            low, step = high, step * 2
            high = self._line_after(low + step)
        while True:
            middle = self._line_after((low + high) // 2)
            if middle >= high:
                middle = self._line_after(low)
            if middle >= high:
                return high
            if _topic_at(self._bytes, middle) == topic:
                low = middle
            else:
                high = middle

    def _line_after(self, place: int) -> int:
        """Where the first line behind a place begins."""
        end = self._bytes.find(b"\n", place)
        return len(self._bytes) if end < 0 else end + 1


def _topic_at(held: bytes | mmap.mmap, place: int) -> bytes:
    """The topic of the line that begins at a place."""
    end = held.find(b" ", place)
    topic = held[place:end]
    if end <= place or b"\n" in topic:
        raise _Altered("a line")
    return topic


def _add(topics: dict[str, T], topic: bytes, where: T) -> None:
    """Put a topic among those before, where its lines stand."""
    try:
        name = topic.decode()
    except UnicodeDecodeError as error:
        raise _Altered("a topic's id") from error
    if name in topics:
        raise _Altered(f"where topic {name} stands, in two places,")
    topics[name] = where


def _end_of_lines(text: bytes, at_most: int | None) -> int:
    """Where the first lines of a text end, or all of them."""
    if at_most is None:
        return len(text)
    place = 0
    for _ in range(at_most):
        end = text.find(b"\n", place)
        if end < 0:
            return len(text)
        place = end + 1
    return place


def _as_written(run: Run) -> bytes:
    """A run as a run directory has it."""
    buffer = BytesIO()
    trec.write_run(buffer, run)
    return buffer.getvalue()
