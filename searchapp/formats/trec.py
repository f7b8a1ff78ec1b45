"""TREC's run and qrels files.

    run     topic Q0 document rank score tag
    qrels   topic 0 document grade

Cells are separated by whitespace, so that no id can hold any. A file that is compressed with gzip is unpacked on the
way. In a file of searchapp's own the order of a topic's
lines is its ranking, and the rank column must say the same: 1, 2, 3, ... Scores are not looked at for the order,
because readers that sort by score break ties in ways of their own. A file of somebody else's is read as trec_eval
reads it, by score alone: see `read_by_score`.
"""

from __future__ import annotations

import math
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from searchapp.errors import DataError
from searchapp.files import whole_file
from searchapp.formats.encoding import SAVE_AS_UTF8, foreign, opened
from searchapp.formats.problems import Problems, shown
from searchapp.formats.trec_quick import read_as_written
from searchapp.model import Hits, Ranking, Run

RUN = "topic Q0 document rank score tag"
QRELS = "topic 0 document grade"

_ACTING = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are no white space, at which cells end."""
"""The cells of a line."""

OF_RANKS = ("rank not an integer", "ranks out of order")
"""The problems of `read_run` that a file has which is ordered by its scores."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FLOAT32 = struct.Struct("<f")
_BEYOND_FLOAT32 = (2 - 2**-24) * 2.0**127
"""The least number that is infinite as a float32."""


class Writes(Protocol):
    """What bytes can be written to."""

    def write(self, piece: bytes, /) -> object:
        """Write some bytes."""


def read_run(path: Path, problems: Problems | None = None) -> Run:
    """The rankings of a run file, topics in the order of their first lines; the first line has the tag.

    Scores are rounded to float32. The lines of a topic may stand apart. Without `problems` a file that has
    any is refused; with it they are added there, and a line that has one is left out. Ranks that do not
    ascend by one from 1 are the problem "ranks out of order", reported once per topic. Lenient `problems` let a
    gap pass, but not ranks that fall or repeat: nobody can tell which order was meant.

    Raises:
        InvalidFiles: the file has problems and `problems` was not given.
    """
    if (run := _as_written(path)) is not None:
        return run
    found = Problems() if problems is None else problems
    topics: dict[str, dict[str, float]] = {}
    ranks: dict[str, int] = {}
    told: set[tuple[str, bool]] = set()
    tag = ""
    for line, cells in read_lines(path, found, RUN):
        topic, _, document, rank_text, score_text, tag_here = cells
        where, tag = f"line {line}", tag or tag_here
        previous = ranks.get(topic, 0)
        # Nearly all ranks are the ones expected, which is quicker seen than read.
        rank = previous + 1 if rank_text == str(previous + 1) else _rank(rank_text)
        score = score_of(score_text)
        if rank is None:
            found.add(path, OF_RANKS[0], where, shown(rank_text))
        elif rank != previous + 1:
            gap = topic not in ranks or rank > previous
            if (topic, gap) not in told:
                detail = f"topic {shown(topic)} has the rank {rank} where {previous + 1} is expected"
                found.add(path, OF_RANKS[1], where, detail, skippable=gap)
            told.add((topic, gap))
        ranks[topic] = previous + 1 if rank is None else rank
        if score is None:
            found.add(path, "score not a finite number", where, shown(score_text))
        repeated = topic in topics and document in topics[topic]
        if repeated:
            found.add(path, "duplicate document", where, f"{shown(document)} of topic {shown(topic)}")
        if rank is not None and score is not None and not repeated:
            topics.setdefault(topic, {})[document] = score
    if problems is None:
        found.raise_if_any()
    return Run(
        tag, tuple(Ranking(topic, Hits(list(hits), list(hits.values()))) for topic, hits in topics.items())
    )


def _as_written(path: Path) -> Run | None:
    """The run in a file that is as searchapp writes it, which is quicker to read; None for any other."""
    try:
        seen = path.stat()
        if not stat.S_ISREG(seen.st_mode):  # what comes from a pipe comes once
            return None
        with opened(path) as file:
            return read_as_written(file)
    except (OSError, ValueError):
        return None  # which is told by whoever reads it line by line


@dataclass(frozen=True, slots=True)
class ByScore:
    """A run ordered by its scores; in `tied` topics, documents of equal scores stand in another order in the file."""

    run: Run
    tied: int


def read_by_score(path: Path) -> ByScore:
    """The rankings of any run file, ordered as trec_eval orders them.

    The documents of a topic are sorted by descending score and, among equal scores, by the bytes of the id, the last
    one first. Scores are rounded to float32 before, as trec_eval keeps them. The order of the lines and the rank column
    say nothing: ranks may begin with 0, repeat, or be no numbers. Topics stand in the order of their first lines, the
    tag is that of the first line.

    Raises:
        InvalidFiles: a line has too few or too many cells, a score is no finite number, a document stands twice in a
            topic, which trec_eval refuses too, or there is no line.
    """
    problems = Problems()
    topics: dict[str, dict[str, float]] = {}
    tag = ""
    for line, (topic, _, document, _rank, score_text, tag_here) in read_lines(path, problems, RUN):
        where, tag = f"line {line}", tag or tag_here
        score = score_of(score_text)
        if score is None:
            problems.add(path, "score not a finite number", where, shown(score_text))
        elif document in topics.setdefault(topic, {}):
            problems.add(path, "duplicate document", where, f"{shown(document)} of topic {shown(topic)}")
        else:
            topics[topic][document] = score
    problems.raise_if_any(f"a TREC run has lines `{RUN}`")
    tied = 0
    rankings = []
    for topic, scores in topics.items():
        as_written = sorted(scores, key=lambda document: -scores[document])
        documents = by_score(scores)
        tied += documents != as_written
        rankings.append(Ranking(topic, Hits(documents, [scores[document] for document in documents])))
    return ByScore(Run(tag, tuple(rankings)), tied)


def by_score(scores: Mapping[str, float]) -> list[str]:
    """Documents as trec_eval orders them: by descending score, equal ones by descending id.

    >>> by_score({"a": 1.0, "c": 2.0, "b": 1.0})
    ['c', 'b', 'a']
    """
    by_id = sorted(scores, key=lambda document: document.encode("utf-8", "surrogatepass"), reverse=True)
    return sorted(by_id, key=lambda document: -scores[document])


def reordered(run: Run) -> int:
    """How many topics' rankings a reader that sorts by score, as trec_eval does, takes for other ones."""
    return sum(by_score(dict(ranking.hits)) != list(ranking.hits.document_ids) for ranking in run)


def with_distinct_scores(run: Run) -> Run:
    """The same rankings with scores that fall from each rank to the next, so that sorting by them changes nothing.

    A score that is below the one before stays as it is. Any other becomes the next float32 below the one before: the
    smallest change that readers notice which keep scores in 32 bits. Numbers too small for all of their digits are
    passed over, since some readers take them for 0.

    Raises:
        DataError: there is no number left below a score.
    """
    return Run(run.tag, tuple(Ranking(one.topic_id, _falling(one)) for one in run))


def _falling(ranking: Ranking) -> Hits:
    scores: list[float] = []
    for score in ranking.hits.scores:
        scores.append(score if not scores or score < scores[-1] else _below(scores[-1]))
    if scores and scores[-1] == -math.inf:
        raise DataError(
            f"topic {shown(ranking.topic_id)}: there are no numbers below its scores: rank with higher ones"
        )
    return Hits(ranking.hits.document_ids, scores)


def _below(score: float) -> float:
    """The next float32 below a score, but for those between 0 and the smallest one with all digits."""
    import numpy as np

    smallest = float(np.finfo(np.float32).smallest_normal)
    if 0 < score <= smallest:
        return 0.0
    if -smallest < score <= 0:
        return -smallest
    with np.errstate(over="ignore"):  # below the last one is minus infinity
        return float(np.nextafter(np.float32(score), np.float32(-np.inf)))


def write_run(target: Path | Writes, run: Run) -> None:
    """Write a run file: UTF-8, LF, scores with the nine digits that a float32 needs to be read back the same.

    Each ranking is written by itself: a file that is open may have those before the one that was refused, a file that
    is named appears whole or not at all.

    Raises:
        DataError: an id or the tag is empty or holds whitespace, a document stands twice in a ranking, a
            topic twice in the run, or a score is no finite float32.
    """
    _write(target, _written_rankings(run))


def read_qrels(path: Path, problems: Problems | None = None) -> dict[str, dict[str, int]]:
    """Grades by topic and document, in the order of the file; `problems` as in `read_run`.

    Raises:
        InvalidFiles: the file has problems and `problems` was not given.
    """
    found = Problems() if problems is None else problems
    qrels: dict[str, dict[str, int]] = {}
    for line, (topic, _, document, grade) in read_lines(path, found, QRELS):
        where = f"line {line}"
        if not _INTEGER.fullmatch(grade):
            found.add(path, "grade not an integer", where, shown(grade))
        elif document in qrels.get(topic, {}):
            found.add(path, "duplicate document", where, f"{shown(document)} of topic {shown(topic)}")
        else:
            qrels.setdefault(topic, {})[document] = int(grade)
    if problems is None:
        found.raise_if_any()
    return qrels


def write_qrels(target: Path | Writes, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write grades; a topic without documents has no line. A file that is named appears whole or not at all.

    Raises:
        DataError: an id is empty or holds whitespace.
    """
    _write(
        target,
        (
            f"{_cell('topic', topic)} 0 {_cell('document', document)} {grade:d}\n"
            for topic, grades in qrels.items()
            for document, grade in grades.items()
        ),
    )


def read_lines(path: Path, problems: Problems, layout: str) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that has as many as `layout`, RUN or QRELS; blank lines are skipped."""
    columns = len(layout.split())
    offset, blank = 0, True
    try:
        with opened(path) as file:
            if found := foreign(file.head):
                problems.add(path, "unsupported file", detail=str(found), skippable=False)
                return
            for number, raw in enumerate(file, 1):
                try:
                    text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    # The codec that drops a byte-order mark counts from behind it.
                    start = error.start + len(raw) - len(error.object)
                    byte = f"byte 0x{raw[start]:02x} at offset {offset + start} of the file"
                    problems.add(path, "not UTF-8", f"line {number}", f"{byte}; {SAVE_AS_UTF8}")
                    blank = False
                    continue
                finally:
                    offset += len(raw)
                cells = text.split()
                blank = blank and not cells
                if len(cells) == columns and _ACTING.search(text):
                    # searched for in the whole line, which is quicker; the tag is no id
                    bad = next((cell for cell in (cells[0], cells[2]) if _ACTING.search(cell)), None)
                    if bad is not None:
                        detail = f"{shown(bad)}: an id must not hold control characters, which can act on a terminal"
                        problems.add(path, "unusable id", f"line {number}", detail)
                        continue
                if len(cells) == columns:
                    yield number, cells
                elif cells:
                    detail = f"{len(cells)} cells instead of {columns} ({layout})"
                    problems.add(path, "wrong number of columns", f"line {number}", detail)
    except OSError as error:
        problems.add_unopened(path, error)
        return
    if blank:
        problems.add(path, "empty file", detail=f"lines `{layout}` are expected", skippable=False)


def _rank(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def score_of(text: str) -> float | None:
    """The float32 nearest to a number that is written in decimal; None of anything else, or of what is beyond them."""
    return _float32(float(text)) if _NUMBER.fullmatch(text) else None


def _float32(number: float) -> float | None:
    """The nearest float32; None when it would be infinite, or the number is not finite."""
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(number))[0]
    except OverflowError:
        return None
    return rounded if math.isfinite(rounded) else None


def _written_rankings(run: Run) -> Iterator[str]:
    """The lines of each ranking, as one text."""
    tag = _cell("run", run.tag)
    topics: set[str] = set()
    good: set[str] = set()  # most documents stand in many rankings, and are looked at once
    ranks: list[str] = []
    for ranking in run:
        topic = _cell("topic", ranking.topic_id)
        if topic in topics:
            raise DataError(f"topic {shown(topic)} has two rankings in the run {shown(run.tag)}")
        topics.add(topic)
        documents, scores = ranking.hits.document_ids, ranking.hits.scores
        if not documents:
            continue
        once = set(documents)
        new = once - good
        if not (len(once) == len(documents) and all(map(_is_cell, new)) and _are_float32(scores)):
            _require_sound(topic, ranking.hits)
        good |= new
        while len(ranks) < len(documents):
            ranks.append(f" {len(ranks) + 1} ")
        columns = zip(documents, ranks, scores, strict=False)
        yield "".join(
            [f"{topic} Q0 {document}{rank}{score:.9g} {tag}\n" for document, rank, score in columns]
        )


def _are_float32(scores: Sequence[float]) -> bool:
    """Whether all of some scores are finite float32 numbers; the sum shows one that is none."""
    return min(scores) > -_BEYOND_FLOAT32 and max(scores) < _BEYOND_FLOAT32 and not math.isnan(sum(scores))


def _require_sound(topic: str, hits: Hits) -> None:
    """Look at each document of a ranking, in its order.

    Raises:
        DataError: an id can't be written, a document comes twice, or a score is no finite float32.
    """
    documents: set[str] = set()
    for document, score in hits:
        _cell("document", document)
        if document in documents:
            raise DataError(f"topic {shown(topic)}: document {shown(document)} is ranked twice")
        documents.add(document)
        if not abs(score) < _BEYOND_FLOAT32:
            raise DataError(f"topic {shown(topic)}: the score of {shown(document)} is {score}")


def is_id(text: str) -> bool:
    """Whether a text survives as an id in a line of cells, and does nothing to a terminal."""
    return _is_cell(text) and not _ACTING.search(text)


def _is_cell(text: str) -> bool:
    return text.split() == [text] and not text.startswith("\ufeff") and not _SURROGATE.search(text)


def _cell(noun: str, id_: str) -> str:
    """The id, if it survives in a line of cells."""
    if not _is_cell(id_):
        raise DataError(
            f"the {noun} id {id_!a} cannot stand in a TREC file: ids must not be empty, hold whitespace "
            "or half a surrogate pair, or begin with a byte-order mark"
        )
    return id_


def _write(target: Path | Writes, texts: Iterable[str]) -> None:
    if isinstance(target, Path):
        with whole_file(target) as file:
            _write(file, texts)
    else:
        for text in texts:
            target.write(text.encode())
