"""Reading single rankings from the file of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchapp.errors import DataError
from searchapp.formats import trec
from searchapp.model import Hits, Ranking, Run, float32
from searchapp.runs.rankings import RunRankings

ids = st.text("abcdefghij-:é", min_size=1, max_size=12)
hits = st.lists(ids, min_size=1, max_size=40, unique=True).map(
    lambda documents: Hits(documents, [float32(1 / (rank + 3)) for rank in range(len(documents))])
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(ids, hits, max_size=12))
def test_single_rankings_equal_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, Hits]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    with (folder / "run.trec").open("wb") as file:
        trec.write_run(file, Run("tag", tuple(Ranking(topic, hits) for topic, hits in rankings.items())))
    read = RunRankings(folder)
    assert read.topics == tuple(rankings)
    for topic, expected in rankings.items():
        assert read.ranking(topic).hits == expected
        assert read.length(topic) == len(expected)
        assert read.scored(topic, 3) == min(len(expected), 3)


@pytest.mark.parametrize(
    ("scores", "scored"),
    [
        ([3.5, 2, 1], 3),
        ([3.5, 2, 0, 0], 2),
        ([0.0001, 0], 1),
        ([0, 0, 0], 0),
        ([2, 0, -1], 3),  # 0 is an ordinary score in a run with negative scores
        ([-1, -2], 2),
        ([0, -2], 2),
        ([1, -0.0], 1),
    ],
)
def test_documents_without_a_score_are_not_counted(tmp_path: Path, scores: list[float], scored: int) -> None:
    lines = [
        f"t{topic} Q0 d{rank} {rank} {score} x\n" for topic in (1, 2) for rank, score in enumerate(scores, 1)
    ]
    (tmp_path / "run.trec").write_text("".join(lines))
    rankings = RunRankings(tmp_path)
    assert (rankings.scored("t1"), rankings.scored("t2")) == (scored, scored)
    for at_most in range(1, 6):
        assert rankings.scored("t1", at_most) == rankings.scored("t2", at_most) == min(scored, at_most)


def test_an_invalid_score_is_reported(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("t1 Q0 d1 1 high x\n")
    with pytest.raises(DataError, match="a line of topic t1"):
        RunRankings(tmp_path).scored("t1")


LINES = [f"t{topic} Q0 d{rank} {rank} {10 - rank} x\n" for topic in (1, 2) for rank in (1, 2, 3)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*LINES, LINES[0]], "in two places"),
        ([LINES[0], LINES[2], *LINES[3:]], "topic t1 at rank 2"),
        ([LINES[0], "t1 Q0 d2 2 x\n", *LINES[2:]], "topic t1 at rank 2"),
        ([LINES[0], "t1 Q0 d2 two 8 x\n", *LINES[2:]], "a line of topic t1"),
        (["\n", *LINES], "a line is not in the format"),
    ],
)
def test_an_invalid_file_is_reported(tmp_path: Path, lines: list[str], message: str) -> None:
    (tmp_path / "run.trec").write_text("".join(lines))
    with pytest.raises(DataError, match=message):
        RunRankings(tmp_path).ranking("t1")


def test_topics_without_documents_come_last(tmp_path: Path) -> None:
    with (tmp_path / "run.trec").open("wb") as file:
        trec.write_run(file, Run("tag", (Ranking("t2", Hits(["a"], [1.0])),)))
    read = RunRankings(tmp_path, empty=["t1", "t3"])
    assert read.topics == ("t2", "t1", "t3")
    assert read.ranking("t1") == Ranking("t1", Hits())
    assert (read.length("t1"), read.scored("t1"), read.scored("t1", 5)) == (0, 0, 0)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        RunRankings(tmp_path)
