"""Reading and writing of TREC runs and qrels."""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import DataError, InvalidFiles
from searchapp.formats.problems import Problems
from searchapp.formats.trec import (
    read_by_score,
    read_qrels,
    read_run,
    reordered,
    with_distinct_scores,
    write_qrels,
    write_run,
)
from searchapp.model import Hit, Hits, Ranking, Run, float32
from tests.files import kinds, write

put = partial(write, name="run.trec")


def test_a_run_is_read_in_the_order_of_its_lines(tmp_path: Path) -> None:
    path = put(tmp_path, b"b Q0 x 1 1.5 r\na\tQ0\ty  1 -2e1 r\r\n\nb Q0 y 2 1.5 r")
    assert read_run(path) == Run(
        "r", (Ranking("b", Hits.of(Hit("x", 1.5), Hit("y", 1.5))), Ranking("a", Hits.of(Hit("y", -20.0))))
    )


def test_all_problems_are_counted_with_their_lines(tmp_path: Path) -> None:
    content = b"""\
\xef\xbb\xbfa Q0 x 1 3 r
a Q0 x 2 2 r
a Q0 y three 2 r
a Q0 z 4 nan r
a Q0 v 5 1e999 r
a Q0 \xff 6 1 r
a Q0 w 7
a Q0 u 6 1_0 r
"""
    problems = Problems(lenient=True)
    run = read_run(put(tmp_path, content), problems)
    assert kinds(problems) == [
        ("duplicate document", "line 2"),
        ("rank not an integer", "line 3"),
        ("score not a finite number", "line 4"),
        ("score not a finite number", "line 5"),
        ("not UTF-8", "line 6"),
        ("wrong number of columns", "line 7"),
        ("score not a finite number", "line 8"),
    ]
    problems.raise_if_any()
    assert run == Run("r", (Ranking("a", Hits.of(Hit("x", 3.0))),))
    with pytest.raises(InvalidFiles, match="7 problems"):
        read_run(put(tmp_path, content))


def test_the_offset_of_an_invalid_byte_is_counted_from_the_start_of_the_file(tmp_path: Path) -> None:
    for content in (b"\xef\xbb\xbfa \xff\n", b"a\n\xc3\xa4 \xff\n"):
        problems = Problems()
        read_qrels(put(tmp_path, content), problems)
        detail = next(problem.detail for problem in problems if problem.kind == "not UTF-8")
        assert detail.startswith(f"byte 0xff at offset {content.index(bytes([0xFF]))} of the file")


@pytest.mark.parametrize(
    ("ranks", "readable"), [("2", True), ("0 1", True), ("1 3 4 6", True), ("2 1", False)]
)
def test_ranks_out_of_order_are_reported(tmp_path: Path, ranks: str, readable: bool) -> None:
    lines = [f"a Q0 d{number} {rank} 1 r\n" for number, rank in enumerate(ranks.split())]
    path = put(tmp_path, "".join(lines).encode())
    with pytest.raises(InvalidFiles, match="ranks out of order"):
        read_run(path)
    problems = Problems(lenient=True)
    assert len(read_run(path, problems).rankings[0].hits) == len(lines)
    if readable:
        problems.raise_if_any()
        assert len(problems) == 1
    else:
        with pytest.raises(InvalidFiles, match="topic a has the rank 1 where 3 is expected"):
            problems.raise_if_any()


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_a_problem(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InvalidFiles, match="empty file"):
        read_run(put(tmp_path, content))


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(InvalidFiles, match="missing file: qrels is expected in"):
        read_qrels(tmp_path / "qrels")


@pytest.mark.parametrize(
    "run",
    [
        Run("a tag", ()),
        Run("", ()),
        Run("r", (Ranking("a b", Hits()),)),
        Run("r", (Ranking("a", Hits()), Ranking("a", Hits()))),
        Run("r", (Ranking("a", Hits.of(Hit("", 1.0))),)),
        Run("r", (Ranking("a", Hits.of(Hit("\ud800", 1.0))),)),
        Run("r", (Ranking("a", Hits.of(Hit("x\u2028y", 1.0))),)),
        Run("r", (Ranking("a", Hits.of(Hit("x", 1.0), Hit("x", 1.0))),)),
        Run("r", (Ranking("a", Hits.of(Hit("x", float("nan")))),)),
        Run("r", (Ranking("a", Hits.of(Hit("x", 1e39))),)),
    ],
)
def test_runs_that_could_not_be_read_back_are_rejected(run: Run) -> None:
    stream = io.BytesIO()
    with pytest.raises(DataError):
        write_run(stream, run)
    assert not stream.getvalue()


IDS = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc", "Cf"]), min_size=1)
HITS = st.lists(
    st.builds(Hit, IDS, st.floats(width=32, allow_nan=False, allow_infinity=False)),
    min_size=1,
    unique_by=lambda hit: hit.document_id,
)
RUNS = st.lists(
    st.builds(Ranking, IDS, HITS.map(lambda hits: Hits.of(*hits))),
    min_size=1,
    unique_by=lambda ranking: ranking.topic_id,
)


@given(IDS, RUNS)
def test_a_written_run_is_read_back_with_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory, tag: str, rankings: list[Ranking]
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.trec"
    run = Run(tag, tuple(rankings))
    with path.open("wb") as file:
        write_run(file, run)
    again = read_run(path)
    assert again == run
    bits = [[struct.pack("<f", hit.score) for hit in ranking.hits] for ranking in run]
    assert [[struct.pack("<f", hit.score) for hit in ranking.hits] for ranking in again] == bits


@given(st.dictionaries(IDS, st.dictionaries(IDS, st.integers(-9, 9), min_size=1), min_size=1))
def test_written_qrels_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, qrels: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("qrels") / "qrels"
    with path.open("wb") as file:
        write_qrels(file, qrels)
    assert read_qrels(path) == qrels


def test_qrels_of_beir_are_read(tmp_path: Path) -> None:
    path = put(tmp_path, b"query-id\tcorpus-id\tscore\nq1\td1\t1\n\nq1\td2\t0\nq2\td1\t2\n")
    assert read_qrels(path) == {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}}
    problems = Problems()
    read_qrels(put(tmp_path, b"query-id\tcorpus-id\tscore\nq1\td1\nq1\td1\tx\n"), problems)
    assert kinds(problems) == [("wrong number of columns", "line 2"), ("grade not an integer", "line 3")]


def test_all_problems_of_qrels_are_reported(tmp_path: Path) -> None:
    problems = Problems(lenient=True)
    path = put(tmp_path, b"a 0 x 1\na 0 x 2\na 0 y 0.5\na 0 z\nb 0 x -1\n")
    assert read_qrels(path, problems) == {"a": {"x": 1}, "b": {"x": -1}}
    assert kinds(problems) == [
        ("duplicate document", "line 2"),
        ("grade not an integer", "line 3"),
        ("wrong number of columns", "line 4"),
    ]


ANY_RUN = b"""\
b Q0 d1 0 1.5 other
a Q0 d2 0 2 other
a 0 d1 x 3.0e0 other
b Q0 d3 0 2.5 other
a Q0 d10 7 2.00000000001 other
a Q0 d9 7 2 other
"""


def test_a_run_of_another_system_is_ordered_by_its_scores_like_in_trec_eval(tmp_path: Path) -> None:
    ordered = read_by_score(put(tmp_path, ANY_RUN))
    assert [(ranking.topic_id, ranking.document_ids()) for ranking in ordered.run] == [
        ("b", ("d3", "d1")),
        ("a", ("d1", "d9", "d2", "d10")),  # the last three are equal as float32
    ]
    assert (ordered.run.tag, ordered.tied) == ("other", 1)


def test_all_problems_of_a_run_of_another_system_are_reported(tmp_path: Path) -> None:
    content = b"a Q0 d1 0 1 t\na Q0 d1 1 2 t\na Q0 d2 0 high t\na d3 1\n"
    with pytest.raises(InvalidFiles) as error:
        read_by_score(put(tmp_path, content))
    assert kinds(error.value.problems) == [
        ("duplicate document", "line 2"),
        ("score not a finite number", "line 3"),
        ("wrong number of columns", "line 4"),
    ]
    assert "a TREC run has lines `topic Q0 document rank score tag`" in str(error.value)
    with pytest.raises(InvalidFiles, match="empty file"):
        read_by_score(put(tmp_path, b""))


SCORES = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 1.0, 1.0 + 1e-9, 1e-45, 1.1754944e-38, -1.1754944e-38, 3e38, 1e-40, 16777217.0]
    ),
    st.floats(-1e30, 1e30, allow_nan=False),
)
DOCUMENTS = st.text(st.sampled_from("ab1é😀-"), min_size=1, max_size=4)


@given(st.dictionaries(DOCUMENTS, SCORES, min_size=1, max_size=12), st.randoms())
def test_the_order_equals_trec_eval(
    tmp_path_factory: pytest.TempPathFactory, scores: dict[str, float], random: Random
) -> None:
    lines = [f"t Q0 {document} 0 {score!r} x\n" for document, score in scores.items()]
    random.shuffle(lines)
    path = put(tmp_path_factory.mktemp("run"), "".join(lines).encode())
    (ranking,) = read_by_score(path).run
    for rank, document in enumerate(ranking.document_ids(), 1):
        evaluator = pytrec_eval.RelevanceEvaluator({"t": {document: 1}}, {"recip_rank"})
        assert evaluator.evaluate({"t": scores})["t"]["recip_rank"] == pytest.approx(1 / rank)


@given(st.lists(SCORES, min_size=1, max_size=30))
def test_distinct_scores_keep_the_order_in_float32_and_in_float64(
    tmp_path_factory: pytest.TempPathFactory, scores: list[float]
) -> None:
    scores = [float32(score) for score in scores]
    documents = [f"d{number:02}" for number in range(len(scores))]
    run = Run("r", (Ranking("t", Hits(documents, scores)),))
    path = tmp_path_factory.mktemp("run") / "run.trec"
    with path.open("wb") as file:
        write_run(file, with_distinct_scores(run))
    rows = [line.split() for line in path.read_text().splitlines()]
    assert [cells[2] for cells in rows] == documents
    doubles = [float(cells[4]) for cells in rows]
    floats = [float32(number) for number in doubles]
    for numbers in (doubles, floats):
        assert all(later < earlier for earlier, later in itertools.pairwise(numbers))
    # Readers without subnormal numbers would read smaller numbers as 0. Only scores of the run may be so small.
    assert all(number == 0 or abs(number) >= 1.17e-38 or number in scores for number in floats)
    assert read_by_score(path).tied == 0 and reordered(read_run(path)) == 0
    assert read_by_score(path).run.rankings[0].document_ids() == tuple(documents)


def test_scores_that_decrease_are_not_changed() -> None:
    run = Run("r", (Ranking("t", Hits(["a", "b", "c"], [3.5, 1.0, -2.0])), Ranking("u", Hits([], []))))
    assert with_distinct_scores(run) == run
    tied = Run("r", (Ranking("t", Hits(["a", "b", "c", "d"], [2.0, 1.0, 1.0, 0.5])),))
    (ranking,) = with_distinct_scores(tied)
    assert ranking.hits.scores == (2.0, 1.0, float32(1 - 2**-24), 0.5)
    assert (reordered(tied), reordered(run)) == (1, 0)


def test_ties_at_the_lowest_float32_are_rejected() -> None:
    last = -3.4028234663852886e38
    with pytest.raises(DataError, match="equal scores without a lower float32"):
        with_distinct_scores(Run("r", (Ranking("t", Hits(["a", "b"], [last, last])),)))


@pytest.mark.parametrize(
    "line", ["t\x1b[2J Q0 d 1 0.5 tag", "t Q0 d\x9b2J 1 0.5 tag", "t Q0 d\x00 1 0.5 tag"]
)
@pytest.mark.parametrize("read", [read_run, read_by_score])
def test_ids_with_control_characters_are_rejected(
    tmp_path: Path, read: Callable[[Path], object], line: str
) -> None:
    path = tmp_path / "run.trec"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(InvalidFiles, match="line 1: unusable id: .*must not contain control characters"):
        read(path)
