"""Calibration sets, first grades, and agreement with known grades."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from searchapp.errors import UsageError
from searchapp.judging.agreement import cohen_kappa, kappa_interval
from searchapp.judging.calibration import CalibrationJudging, draw, evaluate_calibration
from searchapp.judging.events import Author
from searchapp.judging.guidelines import Guidelines
from searchapp.judging.judgments import aggregate
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
from searchapp.judging.view import open_view

KNOWN = {f"t{t}": {f"d{d}": int(d == 0) + int(d == t) for d in range(30)} for t in range(10)}


def test_a_set_has_equally_many_documents_of_each_grade_and_depends_on_the_seed() -> None:
    drawn = draw("nlps", KNOWN, 12, 5, seed=1)
    assert (
        len(drawn.known) == 12 and len(set(drawn.repeats)) == 5 and set(drawn.repeats) <= drawn.known.keys()
    )
    # One topic has the only document of grade 2.
    assert sorted(drawn.known.values()) == [0] * 6 + [1] * 5 + [2]
    assert all(KNOWN[topic][document] == grade for (topic, document), grade in drawn.known.items())
    again = draw("nlps", dict(reversed(KNOWN.items())), 12, 5, seed=1)
    assert (again.known, again.repeats, again.name) == (drawn.known, drawn.repeats, drawn.name)
    other = draw("nlps", KNOWN, 12, 5, seed=2)
    assert other.known != drawn.known and other.name != drawn.name


@pytest.mark.parametrize(
    ("known", "size", "repeats", "problem"),
    [
        (KNOWN, 301, 0, "300 documents with a known grade, but 301 are wanted"),
        (KNOWN, 3, 4, "repeat at most 3"),
        ({"t": {"a": 1, "b": 1}}, 2, 0, "all documents have the same known grade"),
        ({}, 2, 0, "0 documents with a known grade"),
    ],
)
def test_impossible_sets_are_rejected(
    known: dict[str, dict[str, int]], size: int, repeats: int, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        draw("nlps", known, size, repeats, 0)


def test_first_grades_count_and_never_mix_with_the_study(log: JudgmentLog) -> None:
    drawn = draw("nlps", KNOWN, 6, 2, seed=3)
    guidelines = Guidelines("## 0\nnothing\n## 1 yes\nExample: one\n")
    for name, wrong in (("ann", 0), ("ben", 3)):
        session = Session(log, drawn.name, Author(name), guidelines=guidelines)
        judging = CalibrationJudging(session, drawn, seed=3)
        for number, ((topic, document), grade) in enumerate(drawn.known.items()):
            assert judging.feedback(topic, document) is None
            judging.grade(topic, [document], (grade + 1) % 3 if number < wrong else grade)
            feedback = judging.feedback(topic, document)
            assert feedback is not None and feedback.known == grade
            assert feedback.guideline == guidelines.of_grade(grade)
            judging.grade(topic, [document], grade)  # too late: the known grade was shown
        assert judging.next_unjudged_topic() is None and judging.unscored() == list(judging.topics)
    session = Session(log, drawn.name_of_repeats, Author("ben"))
    again = CalibrationJudging(session, drawn, seed=3, again=True)
    assert sum(map(again.length, again.topics)) == 2
    for topic, document in drawn.repeats:
        again.grade(topic, [document], drawn.known[topic, document])
    result = evaluate_calibration(log, drawn)
    ann, ben = result.annotators
    assert (ann.gold.documents, ann.gold.share, ann.gold.kappa, ann.repeated.documents) == (6, 1.0, 1.0, 0)
    known = list(drawn.known.values())
    given = [(grade + 1) % 3 if number < 3 else grade for number, grade in enumerate(known)]
    assert ben.gold.share == 0.5
    assert ben.gold.kappa == pytest.approx(cohen_kappa_score(known, given), abs=1e-12)
    assert ben.bias == pytest.approx(float(np.mean(np.subtract(given, known))))
    assert sum(count for row in ben.confusion.values() for count in row.values()) == 6
    first = dict(zip(drawn.known, given, strict=True))
    equal = [first[key] == drawn.known[key] for key in drawn.repeats]
    assert (ben.repeated.documents, ben.repeated.share) == (2, sum(equal) / 2)
    assert result.pairs["ann", "ben"].share == 0.5
    assert ann.passes(drawn, 0.9) and not ben.passes(drawn, 0.9)
    assert aggregate(open_view(log, "nlps")).grades == {}


def test_a_missing_grade_misses_the_pass_mark(log: JudgmentLog) -> None:
    drawn = draw("nlps", KNOWN, 6, 0, seed=3)
    judging = CalibrationJudging(Session(log, drawn.name, Author("ann")), drawn, seed=3)
    *most, (topic, document) = drawn.known
    for key in most:
        judging.grade(key[0], [key[1]], drawn.known[key])
    judging.cant_tell(topic, document)
    (ann,) = evaluate_calibration(log, drawn).annotators
    assert ann.gold.kappa == 1.0 and not ann.passes(drawn, 0.5)


@pytest.mark.parametrize("size", [12, 60])
def test_the_interval_of_kappa_equals_scipy(size: int) -> None:
    rng = np.random.default_rng(size)
    first = rng.integers(3, size=size)
    second = np.where(rng.random(size) < 0.7, first, rng.integers(3, size=size))
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    low, high = kappa_interval(pairs, resamples=1000)
    assert kappa_interval(pairs[::-1], resamples=1000) == (low, high)
    ordered = sorted(pairs)
    tail = stats.norm.cdf(math.sqrt(size / (size - 1)) * stats.t.ppf(0.025, size - 1))
    reference = stats.bootstrap(
        (np.arange(size),),
        lambda places: cohen_kappa([ordered[place] for place in places]),
        vectorized=False,
        n_resamples=1000,
        confidence_level=1 - 2 * tail,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert (low, high) == pytest.approx((reference.low, reference.high), abs=1e-12)
    assert low <= cohen_kappa(pairs) <= high


def test_intervals_without_variation(tmp_path: Path) -> None:
    assert all(map(math.isnan, kappa_interval([(1, 1)])))
    assert all(map(math.isnan, kappa_interval([(1, 1)] * 9)))
    assert kappa_interval([(0, 0), (1, 1)] * 9) == (1.0, 1.0)
