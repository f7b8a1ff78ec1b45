from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchapp.formats.problems import Problems
from searchapp.resources import SAMPLES
from searchapp.tasks import load, splits
from searchapp.tasks.base import Task
from searchapp.tasks.smart_types.answers import category_and_type
from searchapp.tasks.smart_types.task import MEANINGS, OPENINGS
from searchapp.tasks.smart_types.task import TASK_DBPEDIA as DBPEDIA
from searchapp.tasks.smart_types.task import TASK_WIKIDATA as WIKIDATA

TASKS = [DBPEDIA, WIKIDATA]


def of(task: Task) -> Path:
    return SAMPLES / task.name


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_topic_of_a_fold_is_among_its_examples(task: Task) -> None:
    problems = Problems()
    everything: set[str] = set()
    for split in splits.FOLD_NAMES:
        topics = {topic.id for topic in task.collection(of(task)).topics(split, problems)}
        solved = {example.topic.id for example in task.collection(of(task)).examples(split, problems)}
        assert topics and not topics & solved
        everything |= topics
        assert len(topics) + len(solved) == 76
    assert len(everything) == 76
    tested = {topic.id for topic in task.collection(of(task)).topics("test", problems)}
    solved = {example.topic.id for example in task.collection(of(task)).examples("test", problems)}
    assert solved == everything and not tested & everything
    problems.raise_if_any()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_vote_is_for_a_document_of_its_category(task: Task) -> None:
    documents = {document.id: document for document in task.collection(of(task)).documents.read(Problems())}
    assert list(documents)[:4] == list(MEANINGS) == list(OPENINGS)
    for document in documents.values():
        assert category_and_type(document.id) == (document.fields["category"], document.fields["type"])
    for example in task.collection(of(task)).examples("test", Problems()):
        assert example.gold
        for document_id, grade in example.gold.items():
            assert documents[document_id] and 0 < grade <= 1
        assert len({category_and_type(document_id)[0] for document_id in example.gold}) == 1


def test_a_solved_question_of_dbpedia_votes_with_what_types_would_gain() -> None:
    examples = list(DBPEDIA.collection(of(DBPEDIA)).examples("test", Problems()))
    (mayor,) = [one.gold for one in examples if one.topic.text == "Who is the mayor of Port Sele?"]
    assert mayor == pytest.approx(
        {"dbo:Mayor": 1, "dbo:Politician": 0.75, "dbo:Person": 0.5, "dbo:Agent": 0.25}
    )
    (when,) = [one.gold for one in examples if one.topic.text == "When did Anders Quill die?"]
    assert when == {"literal:date": 1.0}


def test_a_type_document_has_the_words_of_its_name_and_of_those_above() -> None:
    documents = {
        document.id: document for document in DBPEDIA.collection(of(DBPEDIA)).documents.read(Problems())
    }
    artist = documents["dbo:MusicalArtist"]
    assert artist.text == "musical artist"
    assert artist.fields["ancestors"] == ["artist", "person", "agent"]
    assert "who" in documents["dbo:Person"].fields["asked"]
    assert "dbo:Agent" in documents and "owl:Thing" not in documents


def test_the_vocabulary_of_wikidata_is_that_of_the_train_file() -> None:
    train = json.loads((of(WIKIDATA) / "task1_wikidata_train.json").read_text())
    labels = {label for one in train if one["category"] == "resource" for label in one["type"]}
    documents = list(WIKIDATA.collection(of(WIKIDATA)).documents.read(Problems()))
    assert {document.fields["type"] for document in documents[4:]} == labels
    assert {"mind_sports_player", "human_settlement"} <= {document.id for document in documents}


def test_the_tasks_are_found_by_their_names() -> None:
    assert load("smart-types-dbpedia").info.title == DBPEDIA.info.title
    assert load("smart-types-wikidata").info.title == WIKIDATA.info.title
