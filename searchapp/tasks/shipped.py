"""What tasks that ship with searchapp are put together from, besides the parts of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from searchapp import resources
from searchapp.model import Example, Topic
from searchapp.resources import RecipeBook
from searchapp.tasks import templates
from searchapp.tasks.base import Collection, OfficialFormat, P, Task, TaskInfo, Writer

C = TypeVar("C", bound=Collection)


def shipped(info: TaskInfo, collection: Callable[[Path], C], official: OfficialFormat[P, C]) -> Task:
    """A task with mappings by their names in `index_mappings/` and recipes by its own in `query_templates/`."""

    examples = info.examples_mapping
    return Task(
        info,
        collection,
        official,
        index_mapping=lambda: resources.index_mapping(info.mapping),
        examples_index_mapping=lambda: None if examples is None else resources.index_mapping(examples),
        recipe_book=lambda: _recipe_book(info),
    )


def _recipe_book(info: TaskInfo) -> RecipeBook:
    """The task's own recipes; they may use the general templates, as long as it has none of the same name."""
    own = resources.recipe_book(info.name)

    def template(name: str) -> dict[str, Any]:
        has_it = (own.file.parent / f"{name}.json").exists() or name not in templates.general_names()
        return own.template(name) if has_it else templates.general(info, name)

    return replace(own, template=template)


def relevant_alike(topic: Topic, grades: Mapping[str, float]) -> Example:
    """The solved topic whose relevant documents count the same."""
    return Example(topic, {document: 1.0 for document, grade in grades.items() if grade > 0})


def json_writer(value: object) -> Writer:
    """What writes a value as a JSON file of gold."""
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    return lambda file: file.write(text.encode())
