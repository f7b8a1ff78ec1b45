"""Judgments with the grades of the gold have the official figures of the gold, for every sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.app.demo import OPTIONS, Sample, samples
from searchapp.app.evaluate import GoldSource, evaluate
from searchapp.judging.events import Author
from searchapp.judging.judgments import aggregate
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.judging.view import JudgmentView
from searchapp.runs import directory
from searchapp.tasks.base import DataSplit
from tests.cli.conftest import Cli

pytestmark = pytest.mark.shared_indexes

SAMPLES = {sample.task.name: sample for sample in samples()}

NOT_GRADES = {"smart-relations-dbpedia": {"Recall", "F1"}, "smart-relations-wikidata": {"Recall", "F1"}}
"""Figures that depend on more than grades: on interchangeable and on repeated relations."""


def test_every_task_has_a_sample() -> None:
    assert list(SAMPLES) == tasks.names()


def judge(sample: Sample, run: Path, log: Path) -> int:
    """Grade every document of the run and of the gold with its grade in the gold; return the number of topics."""
    task = sample.task
    stored = directory.read(run)
    part = DataSplit(sample.collection, sample.split)
    gold = task.official.grades(sample.collection.gold_files(sample.split), part)
    count = 0
    with JudgmentLog(log) as events:
        session = Session(events, task.name, Author("ann"))
        for ranking in stored.run:
            grades = gold.get(ranking.topic_id)
            if grades is None:
                continue
            count += 1
            by_grade: dict[int, list[SeenDocument]] = {}
            for document in dict.fromkeys([*grades, *ranking.document_ids()]):
                seen = SeenDocument(ranking.topic_id, document)
                by_grade.setdefault(grades.get(document, 0), []).append(seen)
            for grade, documents in by_grade.items():
                session.grade(documents, grade)
    return count


@pytest.mark.parametrize("name", SAMPLES)
def test_the_figures_are_those_of_the_gold(offline: Cli, name: str, tmp_path: Path) -> None:
    sample, run, log = SAMPLES[name], tmp_path / "run", tmp_path / "log.sqlite"
    data_options = (name, "--data", sample.data)
    assert offline("index", *data_options).code == 0
    assert offline("rank", *data_options, "--split", sample.split, "--recipe", "bm25", "--out", run).code == 0
    topics = judge(sample, run, log)
    options = ("--cutoff", 50, "--json")
    result = offline("evaluate", run, "--judgments", "--log", log, *options)
    assert result.code == 0, result.stderr
    (by_gold,) = evaluate([run], GoldSource(options=OPTIONS))
    assert result.json["topics"] == topics
    official = result.json["official"]["values"]
    expected = {
        key: value for key, value in by_gold.official.values.items() if key not in NOT_GRADES.get(name, ())
    }
    assert {key: official[key] for key in expected} == pytest.approx(expected, abs=1e-12)
    assert expected


def relevant(log: Path, task: str) -> dict[str, dict[str, int]]:
    """Return the relevant documents by the judgments of a log, which gold files of most tasks contain only."""
    with JudgmentLog(log) as events:
        grades = aggregate(JudgmentView(event for _, event in events.events(task))).grades
    result = {
        topic: {document: grade for document, grade in of_topic.items() if grade}
        for topic, of_topic in grades.items()
    }
    return {topic: of_topic for topic, of_topic in result.items() if of_topic}


@pytest.mark.parametrize("name", SAMPLES)
def test_official_gold_of_judgments_is_read_back(offline: Cli, name: str, tmp_path: Path) -> None:
    sample, log, again, out = SAMPLES[name], tmp_path / "log", tmp_path / "again", tmp_path / "out"
    gold = sample.task.official.grades(
        sample.collection.gold_files(sample.split), DataSplit(sample.collection, sample.split)
    )
    with JudgmentLog(log) as events:
        session = Session(events, name, Author("ann"))
        for topic, grades in gold.items():
            for document, grade in grades.items():
                session.grade([SeenDocument(topic, document)], grade)
            session.grade([SeenDocument(topic, "another document")], 0)
    data_options = ("--format", "official", "--data", sample.data, "--split", sample.split)
    assert offline("judgments", "export", name, *data_options, "--log", log, "--out", out).code == 0
    options = (*data_options, "--annotator", "ben", "--log", again, "--lenient", "--json")
    result = offline("judgments", "import", name, out, *options)
    assert result.code == 0, result.stderr
    assert relevant(again, name) == relevant(log, name) != {}
    assert offline("judgments", "import", name, out, *options).json["new"] == 0


def test_gold_of_another_split_or_of_no_task_is_refused(offline: Cli, tmp_path: Path) -> None:
    sample, log, empty = SAMPLES["nlps"], tmp_path / "log", tmp_path / "empty"
    empty.mkdir()
    options = ("--format", "official", "--data", sample.data, "--annotator", "ann", "--log", log)
    for file, part in (
        (sample.data / "train_set.json", "has no topic"),
        (empty, "has no gold file"),
        (tmp_path / "none", "none"),
        (sample.data / "knowledge_base.json", "knowledge_base.json"),
    ):
        result = offline("judgments", "import", "nlps", file, *options, "--split", "dev")
        assert result.code == 4 and part in result.stderr, result.stderr
    assert offline("judgments", "import", "nlps", sample.data, *options).code == 2  # no split is given
    with JudgmentLog(log) as events:
        assert len(events) == 0
