"""The tasks of answer type prediction: folds, training topics and documents."""

from __future__ import annotations

import json

import pytest

from searchapp.formats.problems import Problems
from searchapp.resources import SAMPLES
from searchapp.tasks import load, splits
from searchapp.tasks.base import Collection, Task
from searchapp.tasks.smart_types.answers import category_and_type
from searchapp.tasks.smart_types.task import MEANINGS, OPENINGS
from searchapp.tasks.smart_types.task import TASK_DBPEDIA as DBPEDIA
from searchapp.tasks.smart_types.task import TASK_WIKIDATA as WIKIDATA

TASKS = [DBPEDIA, WIKIDATA]


def sample(task: Task) -> Collection:
    return task.collection(SAMPLES / task.name)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_topics_of_a_fold_are_not_training_topics_of_it(task: Task) -> None:
    problems = Problems()
    all_topics: set[str] = set()
    for split in splits.FOLD_NAMES:
        topics = {topic.id for topic in sample(task).topics(split, problems)}
        training = {example.topic.id for example in sample(task).examples(split, problems)}
        assert topics and not topics & training
        all_topics |= topics
        assert len(topics) + len(training) == 76
    assert len(all_topics) == 76
    tested = {topic.id for topic in sample(task).topics("test", problems)}
    training = {example.topic.id for example in sample(task).examples("test", problems)}
    assert training == all_topics and not tested & all_topics
    problems.raise_if_any()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_gold_documents_of_a_question_have_one_category(task: Task) -> None:
    documents = {document.id: document for document in sample(task).documents.read(Problems())}
    assert list(documents)[:4] == list(MEANINGS) == list(OPENINGS)
    for document in documents.values():
        assert category_and_type(document.id) == (document.fields["category"], document.fields["type"])
    for example in sample(task).examples("test", Problems()):
        assert example.gold
        for document_id, grade in example.gold.items():
            assert documents[document_id] and 0 < grade <= 1
        assert len({category_and_type(document_id)[0] for document_id in example.gold}) == 1


def test_gold_of_dbpedia_has_the_gains_of_lenient_ndcg() -> None:
    examples = list(sample(DBPEDIA).examples("test", Problems()))
    (mayor,) = [
        example.gold for example in examples if example.topic.text == "Who is the mayor of Port Sele?"
    ]
    assert mayor == pytest.approx(
        {"dbo:Mayor": 1, "dbo:Politician": 0.75, "dbo:Person": 0.5, "dbo:Agent": 0.25}
    )
    (date,) = [example.gold for example in examples if example.topic.text == "When did Anders Quill die?"]
    assert date == {"literal:date": 1.0}


def test_a_type_document_has_the_words_of_its_name_and_its_ancestors() -> None:
    documents = {document.id: document for document in sample(DBPEDIA).documents.read(Problems())}
    artist = documents["dbo:MusicalArtist"]
    assert artist.text == "musical artist"
    assert artist.fields["ancestors"] == ["artist", "person", "agent"]
    assert "who" in documents["dbo:Person"].fields["asked"]
    assert "dbo:Agent" in documents and "owl:Thing" not in documents


def test_the_documents_of_wikidata_are_the_types_of_the_train_file() -> None:
    train = json.loads((SAMPLES / WIKIDATA.name / "task1_wikidata_train.json").read_text())
    labels = {label for question in train if question["category"] == "resource" for label in question["type"]}
    documents = list(sample(WIKIDATA).documents.read(Problems()))
    assert {document.fields["type"] for document in documents[4:]} == labels
    assert {"mind_sports_player", "human_settlement"} <= {document.id for document in documents}


def test_tasks_are_loaded_by_name() -> None:
    assert load("smart-types-dbpedia").info.title == DBPEDIA.info.title
    assert load("smart-types-wikidata").info.title == WIKIDATA.info.title
