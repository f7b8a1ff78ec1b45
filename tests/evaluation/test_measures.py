"""Measures of rankings."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import UsageError
from searchapp.evaluation.measures import measure

NAMES = ("AP", "RR", "RR@2", "P@3", "R@3", "nDCG@3", "Rprec")


def by_definition(ranked: list[str], grades: dict[str, int]) -> dict[str, float]:
    """Compute the measures of a topic by their definitions."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    hits = [document in relevant for document in ranked]
    first = hits.index(True) + 1 if any(hits) else math.inf
    total = len(relevant) or math.inf

    def dcg(gains: list[int]) -> float:
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:3], 1))

    ideal = dcg(sorted((max(grade, 0) for grade in grades.values()), reverse=True))
    return {
        "AP": sum(sum(hits[:rank]) / rank for rank in range(1, len(hits) + 1) if hits[rank - 1]) / total,
        "RR": 1 / first,
        "RR@2": 1 / first if first <= 2 else 0,
        "P@3": sum(hits[:3]) / 3,
        "R@3": sum(hits[:3]) / total,
        "nDCG@3": dcg([max(grades.get(document, 0), 0) for document in ranked]) / ideal if ideal else 0,
        "Rprec": sum(hits[: len(relevant)]) / total,
    }


def test_measures_computed_by_hand() -> None:
    figures = measure({"t": ["a", "x", "b"]}, {"t": {"a": 1, "b": 1, "c": 1, "x": 0}}, NAMES)
    assert figures.values == pytest.approx(
        {
            "AP": (1 + 2 / 3) / 3,
            "RR": 1,
            "RR@2": 1,
            "P@3": 2 / 3,
            "R@3": 2 / 3,
            "nDCG@3": 1.5 / (1 + 1 / math.log2(3) + 0.5),
            "Rprec": 2 / 3,
        }
    )
    assert list(figures.values) == list(NAMES)


def test_the_order_of_the_ranking_is_measured() -> None:
    # trec_eval sorts ties by id, the highest first.
    for ranked in (["1", "2", "3"], ["3", "2", "1"], ["2", "3", "1"]):
        assert measure({"t": ranked}, {"t": {"2": 1}}, ["RR"]).values["RR"] == 1 / (ranked.index("2") + 1)


def test_the_order_is_kept_in_a_long_ranking() -> None:
    ranked = [str(number) for number in range(20_000)]
    assert measure({"t": ranked}, {"t": {"19999": 1}}, ["RR"]).values["RR"] == 1 / 20_000


def test_the_first_rank_of_a_repeated_document_counts() -> None:
    assert measure({"t": ["x", "a", "x", "a"]}, {"t": {"a": 1}}, ["RR"]).values["RR"] == 0.5


def test_topics_without_ranking_or_relevant_documents_count_as_0() -> None:
    qrels = {"a": {"x": 1}, "missing": {"x": 1}, "unanswered": {"x": 1}, "none": {}, "irrelevant": {"x": 0}}
    rankings = {"a": ["x"], "unanswered": [], "none": ["x"], "irrelevant": ["x"], "not in the qrels": ["x"]}
    figures = measure(rankings, qrels, ["AP", "RR", "RR@2", "nDCG@3", "R@3"])
    assert figures.values == pytest.approx(dict.fromkeys(figures.values, 0.2))
    for per_topic in figures.per_topic.values():
        assert list(per_topic) == list(qrels)


def test_the_mean_of_no_topics_is_nan() -> None:
    assert math.isnan(measure({"a": ["x"]}, {}, ["AP"]).values["AP"])


def test_no_measures_have_no_values() -> None:
    assert measure({"a": ["x"]}, {"a": {"x": 1}}, []).values == {}


def test_counts_are_summed() -> None:
    qrels = {"a": {"x": 1}, "b": {"x": 1, "y": 1}}
    assert measure({}, qrels, ["NumRet"]).values["NumRet"] == 0
    assert measure({"a": ["x"], "b": ["x", "z"]}, qrels, ["NumRet"]).values["NumRet"] == 3


@pytest.mark.parametrize(
    "name",
    [
        "",
        "foo",
        "P",
        "P@",
        "P@x",
        "P@0",
        "P@-1",
        "nDCG@0",
        "AP@2.5",
        "P@True",
        "AP(x=1)",
        "AP(rel=0)",
        "P(rel='x')@1",
        "ERR@5",
        "alpha_nDCG@3",
        "AP AP",
    ],
)
def test_an_unknown_measure_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="measure"):
        measure({"a": ["x"]}, {"a": {"x": 1}}, ["AP", name])


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("RBP(p=0.8)", "it needs rel: write RBP(rel=1,p=0.8)"),
        ("BPM", "it needs max_rel and cutoff: write BPM(max_rel=1)@10"),
        ("alpha_nDCG@3", "it needs grades of subtopics, which searchapp does not read"),
        ("ERR@10", "it needs gdeval, which searchapp does not run"),
    ],
)
def test_an_error_names_the_missing_parameters_of_a_known_measure(name: str, needed: str) -> None:
    with pytest.raises(UsageError) as caught:
        measure({"a": ["x"]}, {"a": {"x": 1}}, [name])
    assert str(caught.value) == f"searchapp can't compute the measure {name!r}: {needed}"


def test_an_error_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from ir_measures import providers

    monkeypatch.setattr(providers.registry["cwl_eval"], "is_available", lambda: False)
    with pytest.raises(
        UsageError, match=r"needs the package cwl-eval: `.*-m pip install 'cwl-eval>="
    ) as caught:
        measure({"a": ["x"]}, {"a": {"x": 1}}, ["RBP(p=0.8)"])
    assert str(caught.value).endswith("write RBP(rel=1,p=0.8)")
    with pytest.raises(UsageError, match=r"needs the package cwl-eval: [^;]*`$"):
        measure({"a": ["x"]}, {"a": {"x": 1}}, ["RBP(rel=1,p=0.8)"])


def test_the_extra_cwl_eval_computes_rank_biased_precision() -> None:
    figures = measure(
        {"a": ["x", "y", "z"], "b": ["w"]},
        {"a": {"x": 1, "z": 2}, "b": {"v": 1}},
        ["RBP(rel=1,p=0.8)", "RBP(rel=2,p=0.5)", "SDCG(max_rel=2)@2"],
    )
    of_a = {name: values["a"] for name, values in figures.per_topic.items()}
    assert of_a["RBP(rel=1,p=0.8)"] == pytest.approx((1 - 0.8) * (1 + 0.8**2))
    assert of_a["RBP(rel=2,p=0.5)"] == pytest.approx((1 - 0.5) * 0.5**2)
    assert of_a["SDCG(max_rel=2)@2"] == pytest.approx(0.5 / (1 + 1 / math.log2(3)))
    assert figures.values["RBP(rel=1,p=0.8)"] == pytest.approx(of_a["RBP(rel=1,p=0.8)"] / 2)


def test_the_library_is_imported_on_first_use() -> None:
    code = "import sys, searchapp.evaluation.measures; sys.exit('ir_measures' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


IDS = st.sampled_from([str(number) for number in range(12)])
RANKINGS = st.lists(IDS, unique=True)


@given(
    st.dictionaries(st.sampled_from("abcd"), RANKINGS),
    st.dictionaries(st.sampled_from("abcd"), st.dictionaries(IDS, st.integers(0, 3)), min_size=1),
)
def test_measures_equal_their_definitions(
    rankings: dict[str, list[str]], qrels: dict[str, dict[str, int]]
) -> None:
    figures = measure(rankings, qrels, NAMES)
    for name in NAMES:
        expected = {topic: by_definition(rankings.get(topic, []), qrels[topic])[name] for topic in qrels}
        assert dict(figures.per_topic[name]) == pytest.approx(expected, abs=1e-9)
        assert figures.values[name] == pytest.approx(sum(expected.values()) / len(expected), abs=1e-9)


@pytest.mark.parametrize("id_", ["d\0", "\ud800", "\1d", "\0"])
def test_ids_with_characters_that_trec_eval_rejects_are_measured(id_: str) -> None:
    assert measure({id_: [id_, "d"]}, {id_: {id_: 1}}, ["RR"]).per_topic == {"RR": {id_: 1.0}}
    assert measure({"q": [id_]}, {"q": {"d": 1}}, ["RR"]).values == {"RR": 0.0}
