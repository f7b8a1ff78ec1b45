"""Shipped tasks: templates and breakdowns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp import resources
from searchapp.errors import DataError
from searchapp.tasks.base import Task, shipped
from searchapp.tasks.checkthat import task as checkthat
from searchapp.tasks.nlps import task as nlps


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task with one template, next to the general templates."""
    query: dict[str, object] = {"match_all": {}}
    for name in ("text/bm25", "text/words", "mine/words"):
        (tmp_path / f"{name}.json").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.json").write_text(json.dumps({"query": query, "of": name}))
    (tmp_path / "mine" / "recipes.toml").write_text('[bm25]\ntemplate = "bm25"\n')
    monkeypatch.setattr(resources, "folder", lambda _name: tmp_path)
    return shipped(replace(nlps.INFO, name="mine"), nlps.NlpsCollection, nlps.NlpsFormat())


def test_a_task_falls_back_to_the_general_templates(task: Task) -> None:
    book = task.recipe_book()
    assert list(book.recipes) == ["bm25"]
    assert book.template("words")["of"] == "mine/words"
    assert book.template("bm25")["of"] == "text/bm25"
    with pytest.raises(DataError, match="mine/none.json"):
        book.template("none")


def test_the_official_format_defines_the_breakdowns(task: Task) -> None:
    assert task.breakdowns == ()
    debates = replace(task, official=checkthat.CheckThatFormat())
    assert debates.breakdowns == ("debate", "event", "speaker")


def test_a_general_template_excludes_the_topic_if_topics_are_documents(task: Task) -> None:
    body = task.recipe_book().template("bm25")
    assert body["query"]["bool"]["must_not"] == [{"term": {"id": "{{topic.id}}"}}]
    others = shipped(replace(task.info, topics_are_documents=False), nlps.NlpsCollection, nlps.NlpsFormat())
    assert others.recipe_book().template("bm25")["query"] == {"match_all": {}}
