"""Data frames of pandas and polars, neither of which searchapp requires.

PyTerrier     qid, query, docno, score, rank (from 0); qrels: qid, docno, label
ir_measures   query_id, doc_id, score; qrels: query_id, doc_id, relevance
TREC          topic, Q0, document, rank (from 1), score, tag; qrels: topic, iteration, document, grade
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from searchapp.errors import UsageError
from searchapp.formats import trec
from searchapp.model import Run
from searchapp.text import choices_hint

LIBRARIES = ("pandas", "polars")

STYLES = ("pyterrier", "ir_measures", "trec")

# The names of the columns with topics, documents and grades, in the order of the styles.
_RUN_COLUMNS = {"topic": ("qid", "query_id", "topic"), "document": ("docno", "doc_id", "document")}
_GRADE_COLUMNS = {**_RUN_COLUMNS, "grade": ("label", "relevance", "grade")}


def make_frame(columns: Mapping[str, Sequence[Any]], library: str) -> Any:
    """Return a data frame of the library.

    Raises:
        UsageError: the library is unknown or not installed.
    """
    if library not in LIBRARIES:
        raise UsageError(f"unknown library of data frames {choices_hint(library, LIBRARIES)}")
    try:
        return import_module(library).DataFrame(dict(columns))
    except ImportError as error:
        raise UsageError(
            f"{library} is not installed: install it, or choose the other of pandas and polars"
        ) from error


def require_style(style: str) -> int:
    """Return the position of a style in `STYLES`.

    Raises:
        UsageError: the style is unknown.
    """
    if style not in STYLES:
        raise UsageError(f"unknown style of data frames {choices_hint(style, STYLES)}")
    return STYLES.index(style)


def grade_columns(grades: Mapping[str, Mapping[str, int]], style: str) -> dict[str, list[Any]]:
    """Return the columns of grades by topic and document.

    Raises:
        UsageError: the style is unknown.
    """
    topic, document, grade = (names[require_style(style)] for names in _GRADE_COLUMNS.values())
    columns: dict[str, list[Any]] = {topic: [id_ for id_, documents in grades.items() for _ in documents]}
    if style == "trec":
        columns["iteration"] = ["0"] * len(columns[topic])
    columns[document] = [id_ for documents in grades.values() for id_ in documents]
    columns[grade] = [value for documents in grades.values() for value in documents.values()]
    return columns


def run_columns(
    run: Run, style: str, queries: Mapping[str, str], *, engine_scores: bool = False
) -> dict[str, list[Any]]:
    """Return the columns of a run, without those of queries if a topic's is unknown.

    A score that is not below the previous one becomes the next lower float32, so that sorting by scores keeps the
    order; not with `engine_scores`.

    Raises:
        UsageError: the style is unknown.
        DataError: no number is below a score.
    """
    require_style(style)
    run = run if engine_scores else trec.with_distinct_scores(run)
    topics = [ranking.topic_id for ranking in run for _hit in ranking.hits]
    documents = [document for ranking in run for document in ranking.hits.document_ids]
    scores = [score for ranking in run for score in ranking.hits.scores]
    if style == "ir_measures":
        return {"query_id": topics, "doc_id": documents, "score": scores}
    ranks = [rank for ranking in run for rank in range(len(ranking.hits))]
    if style == "pyterrier":
        known = {} if set(topics) - queries.keys() else {"query": [queries[topic] for topic in topics]}
        return {"qid": topics, **known, "docno": documents, "score": scores, "rank": ranks}
    return {
        "topic": topics,
        "Q0": ["Q0"] * len(topics),
        "document": documents,
        "rank": [rank + 1 for rank in ranks],
        "score": scores,
        "tag": [run.tag] * len(topics),
    }


def column(frame: Any, *names: str) -> list[Any] | None:
    """Return the values of the first of these columns that a frame has, None without any."""
    for name in names:
        if name in frame.columns:
            return list(frame[name])
    return None


def _required(frame: Any, wanted: Mapping[str, tuple[str, ...]]) -> list[list[Any]]:
    found = {kind: column(frame, *names) for kind, names in wanted.items()}
    if missing := [wanted[kind] for kind, values in found.items() if values is None]:
        lacking = " and ".join(f"{', '.join(names[:-1])} or {names[-1]}" for names in missing)
        raise UsageError(f"the data frame has no column {lacking}: rename its columns")
    return [values for values in found.values() if values is not None]


def _ids(frame: Any, wanted: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Return the required columns as text; numbers become text, but not those that a missing id made floats."""
    columns = _required(frame, wanted)
    for kind, values in zip(wanted, columns, strict=True):
        for row, value in enumerate(values, start=1):
            if not isinstance(value, str | numbers.Integral):
                raise UsageError(
                    f"row {row} of the data frame has the {kind} {value!r}, which is not text: correct it"
                )
    return [list(map(str, values)) for values in columns]


def run_rows(frame: Any) -> Iterator[tuple[str, str, int | None, float | None]]:
    """Yield topic, document, rank (from 1) and score of each row; the frame has ranks or scores or both.

    Raises:
        UsageError: a column is missing, or a rank or score is not a finite number.
    """
    topics, documents = _ids(frame, _RUN_COLUMNS)
    scores, ranks = column(frame, "score"), column(frame, "rank")
    if scores is None and ranks is None:
        raise UsageError("the data frame has neither a column score nor a column rank: add one of them")
    # PyTerrier counts ranks from 0.
    first = 1 if column(frame, "qid") is not None else 0
    for number, (topic, document) in enumerate(zip(topics, documents, strict=True)):
        rank = None if ranks is None else _whole(ranks[number], number, "rank") + first
        yield (
            topic,
            document,
            rank,
            None if scores is None else _number(scores[number], number, "score"),
        )


def _number(value: Any, row: int, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(
            f"row {row + 1} of the data frame has the {name} {value!r}, which is not a number: correct it"
        )
    return number


def _whole(value: Any, row: int, name: str) -> int:
    number = _number(value, row, name)
    if not number.is_integer():
        raise UsageError(
            f"row {row + 1} of the data frame has the {name} {value!r}: round it to a whole number"
        )
    return int(number)


def grades(frame: Any) -> dict[str, dict[str, int]]:
    """Return the grades of a frame by topic and document.

    Raises:
        UsageError: a column is missing, or a grade is not a whole number.
    """
    qrels: dict[str, dict[str, int]] = {}
    topics, documents = _ids(frame, _RUN_COLUMNS)
    (graded,) = _required(frame, {"grade": _GRADE_COLUMNS["grade"]})
    for row, (topic, document, grade) in enumerate(zip(topics, documents, graded, strict=True)):
        qrels.setdefault(topic, {})[document] = _whole(grade, row, "grade")
    return qrels


def topics(frame: Any) -> list[tuple[str, str]]:
    """Return the ids and texts of topics.

    Raises:
        UsageError: a column is missing, or an id or a text.
    """
    ids, texts = _ids(frame, {"topic": _RUN_COLUMNS["topic"], "query": ("query", "text")})
    return list(zip(ids, texts, strict=True))
