"""The scorer of graded gold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from searchapp.errors import InvalidFiles
from searchapp.evaluation.base import GoldFiles, Scored, ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.model import Hit, Hits, Ranking, Run, Topic
from searchapp.tasks.own.task import GradedScorer

GOLD = {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}, "q3": {"d1": 0}}
GOLD_FILES = GoldFiles([Path("gold")])

TOPICS = {name: Topic(name, "words", {}) for name in ("q1", "q2", "q4")}


def scorer(measure: str = "nDCG@10") -> GradedScorer:
    def read_gold(_path: Path, _split: str | None, _problems: Problems) -> Mapping[str, Mapping[str, int]]:
        return GOLD

    return GradedScorer(measure, read_gold, lambda gold: None if gold.folder is None else TOPICS)


def score(run: Run, gold: GoldFiles = GOLD_FILES) -> Scored:
    graded = scorer()
    return graded.score(graded.predictions(run), gold)


def run(**rankings: list[str]) -> Run:
    def hits(documents: list[str]) -> Hits:
        return Hits.of(*(Hit(document, 1.0) for document in documents))

    return Run("tag", tuple(Ranking(topic, hits(documents)) for topic, documents in rankings.items()))


def test_the_official_figure_is_the_mean_over_all_topics_with_gold() -> None:
    scored = score(run(q1=["d2", "d1"], q9=["d1"]))
    of_q1 = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    assert scored.official.measure == "nDCG@10"
    assert scored.official.per_topic == {"q1": pytest.approx(of_q1), "q2": 0, "q3": 0}
    assert scored.official.value == pytest.approx(of_q1 / 3)
    assert scored.topics == 3


def test_topics_that_distort_the_mean_have_warnings() -> None:
    scored = score(run(q1=["d1"], q9=["d1"]))
    assert scored.official.warnings == (
        "2 of the 3 topics with gold have no ranking and the value 0",
        "1 of the 3 topics with gold has no relevant document and the value 0",
        "rankings of topics without gold, which are not scored: 1 of 2",
    )


def test_only_the_topics_of_the_split_count() -> None:
    gold = GoldFiles([Path("gold")], ScorerOptions(split="dev"), Path("folder"))
    scored = score(run(q1=["d1", "d2"], q2=["d3"]), gold)
    assert (scored.official.value, scored.topics, list(scored.qrels)) == (1, 2, ["q1", "q2"])
    assert scored.official.warnings == ("1 of the 3 topics with gold is not in the split dev: left out",)


def test_a_run_file_is_read_and_errors_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q1 Q0 d1 1 5 t\nq1 Q0 d2 2 5 t\n")
    graded = scorer("AP")
    assert graded.read([path]) == {"q1": ("d2", "d1")}
    path.write_text("q1 Q0 d2\n")
    with pytest.raises(InvalidFiles, match=r"line 1: wrong number of columns"):
        graded.read([path])


def test_a_file_is_ordered_by_its_scores(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q1 Q0 d1 0 4 t\nq2 Q0 d3 0 1 t\nq1 Q0 d2 - 5 t\nq1 Q0 d3 7 4 t\n")
    graded = scorer("AP")
    assert graded.read([path]) == {"q1": ("d2", "d3", "d1"), "q2": ("d3",)}
    path.write_text("q1 Q0 d1 0 4 t\nq1 Q0 d1 1 3 t\n")
    with pytest.raises(InvalidFiles, match="duplicate document"):
        graded.read([path])


def breakdown(fields: Mapping[str, object]) -> list[tuple[str, int, tuple[str, ...]]]:
    """Group, number and names of the topics q0, q1, ... with these values of the field kind."""
    gold = {name: {"d1": 1} for name in fields}
    topics = {
        name: Topic(name, "words", {} if value is None else {"kind": value}) for name, value in fields.items()
    }
    graded = GradedScorer("RR", lambda *_: gold, lambda _: topics, ["kind"])
    (made,) = graded.breakdown({}, GoldFiles([Path("gold")], folder=Path()), ["kind"])
    assert all(row.values == {"RR": 0} for row in made.rows)
    return [(row.group, row.count, row.topics) for row in made.rows]


def test_values_of_a_field_are_the_groups_of_topics() -> None:
    values = {"a": "hard", "b": 10, "c": 9, "d": ["hard", "new", "hard"], "e": None, "f": "", "g": True}
    assert breakdown(values) == [
        ("9", 1, ("c",)),
        ("10", 1, ("b",)),
        ("hard", 2, ("a", "d")),
        ("new", 1, ("d",)),
        ("true", 1, ("g",)),
        ("(none)", 2, ("e", "f")),
    ]


def test_rare_values_are_one_group() -> None:
    rows = breakdown({f"q{number}": f"v{number // 2:02}" for number in range(100)})
    assert len(rows) == 30 and rows[-1][:2] == ("(other)", 100 - 29 * 2)
    assert [row[1] for row in rows[:-1]] == [2] * 29


def test_the_means_are_over_the_topics_of_the_group() -> None:
    topics = {name: Topic(name, "words", {"kind": name[0]}) for name in ("a1", "a2", "b1")}
    gold = {name: {"d1": 1} for name in topics}
    graded = GradedScorer("RR", lambda *_: gold, lambda _: topics, ["kind"])
    rankings = {"a1": ("d1",), "a2": ("d2", "d1"), "b1": ("d2",)}
    (made,) = graded.breakdown(rankings, GoldFiles([Path("gold")], folder=Path()), ["kind"])
    assert [(row.group, row.values["RR"]) for row in made.rows] == [("a", 0.75), ("b", 0.0)]
