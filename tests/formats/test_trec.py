from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import DataError, InvalidFiles
from searchapp.formats.problems import Problems
from searchapp.formats.trec import read_qrels, read_run, write_qrels, write_run
from searchapp.model import Hit, Hits, Ranking, Run


def put(folder: Path, content: bytes) -> Path:
    path = folder / "run.trec"
    path.write_bytes(content)
    return path


def kinds(problems: Problems) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in problems]


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


def test_the_offset_of_a_bad_byte_is_that_of_the_file(tmp_path: Path) -> None:
    for content in (b"\xef\xbb\xbfa \xff\n", b"a\n\xc3\xa4 \xff\n"):
        problems = Problems()
        read_qrels(put(tmp_path, content), problems)
        detail = next(problem.detail for problem in problems if problem.kind == "not UTF-8")
        assert detail.startswith(f"byte 0xff at offset {content.index(bytes([0xFF]))} of the file")


@pytest.mark.parametrize(("ranks", "passes"), [("2", True), ("0 1", True), ("1 3 4 6", True), ("2 1", False)])
def test_ranks_out_of_order(tmp_path: Path, ranks: str, passes: bool) -> None:
    lines = [f"a Q0 d{place} {rank} 1 r\n" for place, rank in enumerate(ranks.split())]
    path = put(tmp_path, "".join(lines).encode())
    with pytest.raises(InvalidFiles, match="ranks out of order"):
        read_run(path)
    problems = Problems(lenient=True)
    assert len(read_run(path, problems).rankings[0].hits) == len(lines)
    if passes:
        problems.raise_if_any()
        assert len(problems) == 1
    else:
        with pytest.raises(InvalidFiles, match="rank 1 of topic a stands where 3 is expected"):
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
def test_what_would_not_survive_is_refused(run: Run) -> None:
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
def test_a_run_survives_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, tag: str, rankings: list[Ranking]
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.trec"
    run = Run(tag, tuple(rankings))
    write_run(path, run)
    again = read_run(path)
    assert again == run
    bits = [[struct.pack("<f", hit.score) for hit in ranking.hits] for ranking in run]
    assert [[struct.pack("<f", hit.score) for hit in ranking.hits] for ranking in again] == bits


@given(st.dictionaries(IDS, st.dictionaries(IDS, st.integers(-9, 9), min_size=1), min_size=1))
def test_qrels_survive(tmp_path_factory: pytest.TempPathFactory, qrels: dict[str, dict[str, int]]) -> None:
    path = tmp_path_factory.mktemp("qrels") / "qrels"
    write_qrels(path, qrels)
    assert read_qrels(path) == qrels


def test_problems_of_qrels(tmp_path: Path) -> None:
    problems = Problems(lenient=True)
    path = put(tmp_path, b"a 0 x 1\na 0 x 2\na 0 y 0.5\na 0 z\nb 0 x -1\n")
    assert read_qrels(path, problems) == {"a": {"x": 1}, "b": {"x": -1}}
    assert kinds(problems) == [
        ("duplicate document", "line 2"),
        ("grade not an integer", "line 3"),
        ("wrong number of columns", "line 4"),
    ]
