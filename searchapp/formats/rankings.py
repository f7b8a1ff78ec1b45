"""Rankings for other programs: a JSON object or a CSV row a retrieved document.

    {"topic": "7", "rank": 1, "document": "b12", "score": 8.2517}
    topic,rank,document,score

Scores are the shortest decimals that are read back as the same float32.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from searchapp.model import Run

COLUMNS = ("topic", "rank", "document", "score")


def write_jsonl(target: BinaryIO, run: Run) -> None:
    """Write a run as a JSON object a line, UTF-8."""
    for row in _rows(run):
        line = json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False)
        target.write(f"{line}\n".encode())


def write_csv(target: BinaryIO, run: Run) -> None:
    """Write a run as a table with a header: UTF-8, LF, cells quoted where they have to be."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _rows(run):
        writer.writerow(row)
        target.write(buffer.getvalue().encode())
        buffer.seek(0)
        buffer.truncate()


def _rows(run: Run) -> Iterator[tuple[Any, ...]]:
    from numpy import float32

    for ranking in run:
        for rank, hit in enumerate(ranking.hits, 1):
            # NumPy prints the shortest decimal of a float32; as a double it has the same shortest one.
            yield ranking.topic_id, rank, hit.document_id, float(str(float32(hit.score)))
