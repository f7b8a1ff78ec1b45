"""Solved topics, by the documents that are their answers."""

from __future__ import annotations

from searchapp.app.search import SolvedTopic, SolvedTopicIndex, solved_topics
from searchapp.model import Topic
from searchapp.tasks import load
from tests.app.conftest import SAMPLES


def test_topics_of_all_splits_cite_the_documents_of_their_gold() -> None:
    task = load("nlps")
    solved = solved_topics(task, task.collection(SAMPLES / "nlps"))
    topic = solved.topic("602")
    assert topic is not None and topic.split == "dev" and topic.topic.text
    for document, grade in topic.answers:
        assert grade == 1.0 and topic in solved.citing(document)
    assert len(solved) == 22 and not solved.citing("nowhere") and solved.topic("nowhere") is None


def test_a_topic_counts_once_and_the_best_grade_is_first() -> None:
    def solved(topic: str, split: str, **gold: float) -> SolvedTopic:
        return SolvedTopic(Topic(topic, ""), split, gold)

    found = SolvedTopicIndex([solved("1", "a", x=1, y=0), solved("1", "b", y=1), solved("2", "b", x=2, z=1)])
    assert [one.topic.id for one in found.citing("x")] == ["2", "1"]
    assert not found.citing("y"), "what is not relevant cites nothing, nor does a second reading"
    assert found.topic("2") == solved("2", "b", x=2, z=1)
    assert solved("2", "b", z=1, x=2).answers == [("x", 2), ("z", 1)]


def test_files_that_are_missing_are_left_out(tmp_path: object) -> None:
    task = load("nlps")
    assert not len(solved_topics(task, task.collection(SAMPLES / "checkthat")))
