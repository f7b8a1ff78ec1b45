"""Read the rankings of a run directory one topic at a time.

A run may have a million lines, and an annotator sees a few hundred.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Protocol

from searchapp.errors import DataError
from searchapp.files import open_file, unreadable
from searchapp.formats import trec
from searchapp.model import Hits, Ranking, Run, float32
from searchapp.runs.directory import RANKINGS

_CELLS = 6


class Rankings(Protocol):
    """The rankings of topics, read or computed on demand."""

    @property
    def path(self) -> Path:
        """The source, for messages."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The ids of the topics."""

    def ranking(self, topic_id: str) -> Ranking:
        """Return a topic's ranking."""

    def length(self, topic_id: str) -> int:
        """Return the number of documents in a topic's ranking."""

    def scored(self, topic_id: str, at_most: int | None = None) -> int:
        """Return the number of a topic's documents, up to `at_most`, with a score other than 0."""


class RunRankings:
    """The rankings in a run directory, or of a `run` read from another file.

    `empty` topics, which have no line, come last.

    Raises:
        DataError: the file is missing or altered; for an altered topic, when it is read.
    """

    def __init__(self, path: Path, run: Run | None = None, empty: Sequence[str] = ()) -> None:
        self.path = path / RANKINGS if run is None else path
        self._bytes = self._mapped() if run is None else _as_written(run)
        self._blocks = self._find_blocks()
        self._empty = frozenset(empty).difference(self._blocks)
        self.topics = (*self._blocks, *(topic for topic in empty if topic in self._empty))

    def _mapped(self) -> bytes | mmap.mmap:
        try:
            with open_file(self.path) as file:
                empty = file.seek(0, 2) == 0
                return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def ranking(self, topic_id: str) -> Ranking:
        documents, scores = [], []
        try:
            lines = self._lines(topic_id).decode().splitlines()
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
        block = self._lines(topic_id)
        return block.count(b"\n") + (bool(block) and not block.endswith(b"\n"))

    def scored(self, topic_id: str, at_most: int | None = None) -> int:
        # Documents that do not match have the score 0 and are at the end, so few lines are parsed.
        text = self._lines(topic_id)
        last = text.rfind(b"\n", 0, len(text) - 1) + 1
        lines = text[: _end_of_lines(text, at_most)].splitlines()
        if not lines or self._score(topic_id, text[last:]) != 0:
            return len(lines)  # a run with negative scores has no zeros at the end
        return bisect_left(lines, True, key=lambda line: self._score(topic_id, line) <= 0)

    def _lines(self, topic_id: str) -> bytes:
        if topic_id in self._empty:
            return b""
        begin, end = self._blocks[topic_id]
        return self._bytes[begin:end]

    def _score(self, topic_id: str, line: bytes) -> float:
        try:
            return float(line.split()[4])
        except (ValueError, IndexError) as error:
            raise self._altered(f"a line of topic {topic_id}") from error

    def _altered(self, part: str) -> DataError:
        return DataError(f"{self.path}: {part} is not in the format of searchapp: rank again")

    def _find_blocks(self) -> dict[str, tuple[int, int]]:
        """Return the offsets of each topic's lines; the end is not included."""
        blocks: dict[str, tuple[int, int]] = {}
        begin, size = 0, len(self._bytes)
        guess = 1 << 14
        while begin < size:
            topic = self._topic_at(begin)
            end = self._end_of(topic, begin, guess)
            try:
                name = topic.decode()
            except UnicodeDecodeError as error:
                raise self._altered("a topic's id") from error
            if name in blocks:
                raise self._altered(f"the position of topic {name}, in two places,")
            blocks[name] = begin, end
            begin, guess = end, end - begin
        return blocks

    def _end_of(self, topic: bytes, begin: int, guess: int) -> int:
        """Return the offset of the next topic, by galloping search."""
        size, low, step = len(self._bytes), begin, max(guess - 1, 1)
        high = self._line_after(low + step)
        while high < size and self._topic_at(high) == topic:
            low, step = high, step * 2
            high = self._line_after(low + step)
        while True:
            middle = self._line_after((low + high) // 2)
            if middle >= high:
                middle = self._line_after(low)
            if middle >= high:
                return high
            if self._topic_at(middle) == topic:
                low = middle
            else:
                high = middle

    def _line_after(self, offset: int) -> int:
        end = self._bytes.find(b"\n", offset)
        return len(self._bytes) if end < 0 else end + 1

    def _topic_at(self, offset: int) -> bytes:
        end = self._bytes.find(b" ", offset)
        topic = self._bytes[offset:end]
        if end <= offset or b"\n" in topic:
            raise self._altered("a line")
        return topic


def _end_of_lines(text: bytes, at_most: int | None) -> int:
    if at_most is None:
        return len(text)
    offset = 0
    for _ in range(at_most):
        end = text.find(b"\n", offset)
        if end < 0:
            return len(text)
        offset = end + 1
    return offset


def _as_written(run: Run) -> bytes:
    buffer = BytesIO()
    trec.write_run(buffer, run)
    return buffer.getvalue()
