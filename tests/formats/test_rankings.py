"""Runs as JSON lines and CSV."""

from __future__ import annotations

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from searchapp.formats.run_files import write_csv, write_jsonl
from searchapp.model import Hit, Hits, Ranking, Run, float32

RUN = Run(
    "tag",
    (
        Ranking("q1", Hits.of(Hit('d,"1"', float32(0.1)), Hit("d2", float32(1 / 3)))),
        Ranking("q2", Hits.of(Hit("é", 16777216.0))),
        Ranking("q3", Hits.of()),
    ),
)


def test_json_lines_have_topic_rank_document_and_score() -> None:
    target = io.BytesIO()
    write_jsonl(target, RUN)
    assert target.getvalue().decode() == (
        '{"topic": "q1", "rank": 1, "document": "d,\\"1\\"", "score": 0.1}\n'
        '{"topic": "q1", "rank": 2, "document": "d2", "score": 0.33333334}\n'
        '{"topic": "q2", "rank": 1, "document": "é", "score": 16777216.0}\n'
    )


def test_csv_has_a_header_and_the_same_columns() -> None:
    target = io.BytesIO()
    write_csv(target, RUN)
    assert target.getvalue().decode() == (
        'topic,rank,document,score\nq1,1,"d,""1""",0.1\nq1,2,d2,0.33333334\nq2,1,é,16777216.0\n'
    )


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_score_is_read_back_as_the_same_float32(score: float) -> None:
    run = Run("tag", (Ranking("q", Hits.of(Hit("d", score))),))
    lines, table = io.BytesIO(), io.BytesIO()
    write_jsonl(lines, run)
    write_csv(table, run)
    assert float32(json.loads(lines.getvalue())["score"]) == score
    (row,) = csv.DictReader(io.StringIO(table.getvalue().decode()))
    assert float32(float(row["score"])) == score
    assert len(row["score"].replace("-", "").replace(".", "").split("e")[0].strip("0")) <= 9
