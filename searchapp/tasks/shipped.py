"""What tasks that ship with searchapp are put together from, besides the parts of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from searchapp import resources
from searchapp.model import Example, Topic
from searchapp.tasks.base import Collection, OfficialFormat, Task, TaskInfo, Writer


def shipped(
    info: TaskInfo, collection: Callable[[Path], Collection], official: OfficialFormat[Any, Any]
) -> Task:
    """A task with mappings by their names in `index_mappings/` and recipes by its own in `query_templates/`."""

    def examples_mapping() -> dict[str, Any] | None:
        return None if info.examples_mapping is None else resources.index_mapping(info.examples_mapping)

    return Task(
        info,
        collection,
        official,
        partial(resources.index_mapping, info.mapping),
        examples_mapping,
        partial(resources.recipe_book, info.name),
    )


def relevant_alike(topic: Topic, grades: Mapping[str, float]) -> Example:
    """The solved topic whose relevant documents count the same."""
    return Example(topic, {document: 1.0 for document, grade in grades.items() if grade > 0})


def json_writer(value: object) -> Writer:
    """What writes a value as a JSON file of gold."""
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    return lambda file: file.write(text.encode())
