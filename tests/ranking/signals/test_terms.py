"""Signals that compute in a space of terms: what they give, that they explain it, and that nobody helps themselves."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from searchapp.errors import DataError
from searchapp.model import Document, Example, Hits, Topic
from searchapp.ranking.signals.base import Normalization, Signal
from searchapp.ranking.signals.cosine import Cosine
from searchapp.ranking.signals.expansion import Expansion
from searchapp.ranking.signals.latent import Latent
from searchapp.ranking.signals.power import ExplanatoryPower
from searchapp.ranking.signals.profiles import Profiles
from searchapp.ranking.signals.terms import TermSpace, terms_of
from tests.ranking.signals.terms import DOCUMENTS, SOLVED, answer, asked, prepared, space

COSINE = Cosine("cosine")
POWER = ExplanatoryPower("power", k=2, power=1.0)
GREEDY = Expansion("expansion", feedback_documents=2)
PROFILES = Profiles("profiles")
LATENT = Latent("latent", k=2, power=1.0, dimensions=3, seed=1)
TOPIC = Topic("t", "why is ice water")
LEADERS = Hits(["star", "ice"], [2.0, 1.0])


def test_the_idf_is_that_of_documents_and_solved_topics() -> None:
    found = space()
    count, having = 7, {"ice": 2, "star": 3, "melt": 1}
    for term, n in having.items():
        assert found.idf[found.names.index(term)] == pytest.approx(
            math.log(1 + (count - n + 0.5) / (n + 0.5))
        )
    assert found.documents == ("empty", "ice", "star", "sun")


def test_a_topic_has_length_1_with_terms_that_nobody_has() -> None:
    found = space()
    alone = found.topic_vector(Topic("t", "ice"), {})
    assert float(alone @ alone) == pytest.approx(1.0)
    beside = found.topic_vector(Topic("t", "ice glacier"), {})
    assert 0 < float(beside @ beside) < 0.5
    assert not found.topic_vector(Topic("t", "glacier"), {}).any()


def test_fields_of_a_topic_count_as_much_as_they_are_boosted() -> None:
    found = space()
    vector = found.topic_vector(Topic("t", "ice sun", {"answer": "sun"}), {"answer": 1.0, "missing": 3.0})
    ice, sun = (found.names.index(term) for term in ("ice", "sun"))
    assert vector[sun] / vector[ice] == pytest.approx(2 * found.idf[sun] / found.idf[ice])


def test_the_cosine_is_what_one_computes_by_hand() -> None:
    found = answer(prepared(COSINE), asked(Topic("t", "ice")))
    assert isinstance(found, Hits)
    idf = {
        term: math.log(1 + (7 - n + 0.5) / (n + 0.5)) for term, n in {"ice": 2, "is": 3, "water": 1}.items()
    }
    length = math.sqrt(sum(value**2 for value in idf.values()))
    assert found.document_ids == ("ice", "empty", "star", "sun")  # equal ones by their ids
    assert found.scores == pytest.approx((idf["ice"] / length, 0, 0, 0), rel=1e-6)


def test_less_length_favours_longer_documents() -> None:
    documents = [Document("short", "ice"), Document("long", "ice and much more")]
    held = TermSpace(documents, SOLVED, str.split)
    found = {
        length: dict(answer(prepared(replace(COSINE, length_norm=length), held), asked(Topic("t", "ice"))))
        for length in (0.0, 0.5, 1.0)
    }
    ratios = [scores["long"] / scores["short"] for scores in found.values()]
    assert ratios[0] == pytest.approx(1.0) and ratios[0] > ratios[1] > ratios[2]


def test_documents_of_a_kind_that_often_answers_are_preferred() -> None:
    documents = [Document(one.id, one.text, {"table": "A" if one.id == "sun" else "B"}) for one in DOCUMENTS]
    held = TermSpace(documents, SOLVED, str.split)
    signal = replace(COSINE, kind_field="table", kind_prior=0.5)
    plain = dict(answer(prepared(COSINE, held), asked(Topic("t", "sun star"))))
    leaning = dict(answer(prepared(signal, held), asked(Topic("t", "sun star"))))
    mean = (1 + 1 + 0.5**3 + 1) / 4
    of_a, of_b = (1.125 + 5 * mean) / 6, (2 + 5 * mean) / 8
    assert leaning["sun"] == pytest.approx(plain["sun"] * (of_a / mean) ** 0.5, rel=1e-6)
    assert leaning["star"] == pytest.approx(plain["star"] * (of_b / mean) ** 0.5, rel=1e-6)
    # without its own answer, q3 knows of one of kind A that half explains
    own = dict(answer(prepared(signal, held), asked(Topic("q3", "sun star"))))
    assert own["sun"] / own["star"] < leaning["sun"] / leaning["star"]
    explained = prepared(signal, held).explain(asked(Topic("t", "sun star")), "sun")
    assert explained is not None and "for table A" in explained.description
    assert sum(part.value for part in explained.details) == pytest.approx(leaning["sun"], abs=1e-6)


def test_solved_topics_that_are_alike_vote_as_far_as_they_are() -> None:
    found = space()
    topic = Topic("t", "what does a star give")
    scores = dict(answer(prepared(POWER, found), asked(topic)))
    assert {"star", "sun", "ice"} == scores.keys()
    assert (scores["star"], scores["sun"]) == pytest.approx((1.0, 0.5))  # q2 is the same
    assert 0 < scores["ice"] < 0.5
    shares = answer(prepared(POWER, found), asked(topic, normalization=Normalization.max))
    assert max(dict(shares).values()) == 1.0


@pytest.mark.parametrize("signal", [POWER, LATENT], ids=lambda one: one.kind)
def test_a_solved_topic_has_no_vote_on_itself(signal: Signal) -> None:
    pytest.importorskip("sklearn")
    scores = dict(answer(prepared(signal), asked(SOLVED[0].topic)))
    assert "ice" not in scores
    assert all(vote.topic_id != "q1" for vote in prepared(signal).votes(asked(SOLVED[0].topic), "sun"))


def test_a_profile_is_without_the_topic_that_is_ranked() -> None:
    gold = SOLVED[0]
    others = TermSpace(DOCUMENTS, [replace_gold(gold), *SOLVED[1:]], str.split)
    own = dict(answer(prepared(PROFILES), asked(gold.topic)))
    without = dict(answer(prepared(PROFILES, others), asked(gold.topic)))
    assert own == pytest.approx(without)
    stranger = Topic("t", gold.topic.text)
    assert dict(answer(prepared(PROFILES), asked(stranger)))["ice"] > own["ice"]


def replace_gold(example: Example) -> Example:
    """The same topic, solved by nothing."""
    return Example(example.topic, {})


def test_a_profile_finds_a_document_by_the_words_of_topics_that_it_answered() -> None:
    scores = dict(answer(prepared(PROFILES), asked(Topic("t", "bright"))))
    assert list(scores) == ["sun"] and scores["sun"] > 0


def test_the_topic_grows_by_terms_that_it_lacks_and_later_ones_count_less() -> None:
    found = space()
    topic = Topic("t", "why a star")
    told = replace(asked(topic), leaders=[LEADERS])
    scores = dict(answer(prepared(GREEDY, found), told))
    unit = found.unit.toarray()
    star, ice = unit[found.rows["star"]].copy(), unit[found.rows["ice"]]
    grown = np.maximum(star, ice / 2)
    for term in ("a", "star"):
        grown[found.names.index(term)] = 0
    assert scores == pytest.approx(
        {one: float(unit[place] @ grown) for one, place in found.rows.items() if unit[place] @ grown > 0}
    )
    fewer = replace(GREEDY, feedback_documents=1)
    assert "ice" not in dict(answer(prepared(fewer, found), replace(told, leaders=[LEADERS])))


def test_a_relevance_model_is_mixed_with_the_topic() -> None:
    found = space()
    own = found.topic_vector(TOPIC, {})
    none = replace(GREEDY, method="rm3", feedback_terms=20, feedback_weight=0.0)
    told = replace(asked(TOPIC), leaders=[LEADERS])
    assert dict(answer(prepared(none, found), told)) == pytest.approx(
        found.positive_scores(found.documents, found.unit @ own)
    )
    one_term = replace(GREEDY, method="rm3", feedback_terms=1, feedback_weight=1.0, feedback_documents=1)
    scores = dict(answer(prepared(one_term, found), replace(told, leaders=[Hits(["ice"], [1.0])])))
    assert "ice" in scores


@pytest.mark.parametrize(
    "signal",
    [
        COSINE,
        POWER,
        GREEDY,
        replace(GREEDY, method="rm3", feedback_terms=4, feedback_weight=0.5),
        PROFILES,
        LATENT,
    ],
    ids=["cosine", "power", "greedy", "rm3", "profiles", "latent"],
)
def test_what_is_explained_is_the_score_and_its_parts_come_to_it(signal: Signal) -> None:
    pytest.importorskip("sklearn")
    scorer = prepared(signal)
    told = replace(asked(Topic("t", "why is a star bright", {"answer": "light"})), leaders=[LEADERS])
    scores = dict(answer(scorer, told))
    assert scores
    for document, score in scores.items():
        explained = scorer.explain(told, document)
        assert explained is not None and explained.value == pytest.approx(score, abs=1e-6)
        if signal.kind not in (
            ExplanatoryPower.kind,
            Latent.kind,
        ):  # whose votes are summed before they are scaled
            assert sum(part.value for part in explained.details) == pytest.approx(score, abs=1e-6)
    assert scorer.explain(told, "unknown") is None


def test_a_topic_that_is_a_document_is_not_found_for_itself() -> None:
    topic = Topic("ice", "ice is water")
    for signal in (COSINE, PROFILES):
        found = dict(answer(prepared(signal, topics_are_documents=True), asked(topic)))
        assert "ice" not in found and "sun" in found


def test_an_analyzer_that_only_elasticsearch_has_is_refused() -> None:
    mapping = {
        "settings": {"analysis": {"analyzer": {"x": {"type": "custom", "tokenizer": "thai"}}}},
        "mappings": {"properties": {"text": {"type": "text", "analyzer": "x"}}},
    }
    with pytest.raises(DataError, match="without Elasticsearch"):
        terms_of(mapping)


def test_a_latent_space_is_the_same_in_every_process() -> None:
    pytest.importorskip("sklearn")
    topic = Topic("t", "why is a star bright")
    own = answer(prepared(LATENT), asked(topic))
    program = (
        "from tests.ranking.signals.test_terms import LATENT, Topic, answer, asked, prepared\n"
        f"print(answer(prepared(LATENT), asked({topic!r})))"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout == f"{own}\n" and "sun" in own
