from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from searchapp.evaluation.measures import measure
from searchapp.judging.judgments import TopicScores, mean_topic_scores, topic_scores

documents = st.integers(0, 40).map(lambda number: f"d{number}")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(documents, min_size=1, max_size=30, unique=True),
    st.dictionaries(documents, st.integers(0, 6), min_size=1, max_size=25),
)
def test_scores_are_those_of_the_measures(ranking: list[str], grades: dict[str, int]) -> None:
    ranks = {document: rank for rank, document in enumerate(ranking, 1)}
    found = topic_scores(ranks, grades)
    wanted = measure({"t": ranking}, {"t": grades}, ["AP", "nDCG@10", "Judged@10"]).per_topic
    for value, name in ((found.ap, "AP"), (found.ndcg, "nDCG@10"), (found.judged, "Judged@10")):
        assert abs(value - wanted[name]["t"]) < 1e-12, name


def test_a_ranking_without_documents_scores_nothing() -> None:
    assert topic_scores({}, {"d1": 1}) == TopicScores(0.0, 0.0, 0.0)


def test_the_mean_of_no_topics_is_none() -> None:
    assert mean_topic_scores([]) is None
    assert mean_topic_scores([TopicScores(1.0, 0.5, 0.1), TopicScores(0.0, 0.5, 0.3)]) == TopicScores(
        0.5, 0.5, 0.2
    )
