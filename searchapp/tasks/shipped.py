"""Parts of the tasks that ship with searchapp: mappings and recipes by name, checks of answers, samples.

A sample is a task on the few documents that ship with searchapp, with an index of its own; its judgments are logged
under its own name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from searchapp import resources
from searchapp.resources import SAMPLES, RecipeBook
from searchapp.tasks import base
from searchapp.tasks.base import Collection, OfficialFormat, P, Task, TaskInfo, Writer
from searchapp.tasks.catalogue import SAMPLE

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
        has_it = (own.file.parent / f"{name}.json").exists() or name not in base.general_names()
        return own.template(name) if has_it else base.general(info, name)

    return replace(own, template=template, depth=info.default_depth)


def json_writer(value: object) -> Writer:
    """What writes a value as a JSON file of gold."""
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    return lambda file: file.write(text.encode())


def sample_of(task: Task) -> Task:
    """The sample of a shipped task, named after it."""
    names = {name: f"{name}{SAMPLE}" for name in task.info.index_names}
    info = replace(
        task.info,
        name=f"{task.name}{SAMPLE}",
        title=f"Sample of {task.info.title}",
        indexes=tuple(names.values()),
        folder=SAMPLES / task.name,
    )
    return replace(task, info=info, collection=lambda folder: task.collection(folder).with_indexes(names))


def words_of(name: str) -> str:
    """The words of a name in CamelCase, in lower case.

    >>> words_of("numberOfEpisodes"), words_of("NCAASeason"), words_of("bSide"), words_of("area51Total_km")
    ('number of episodes', 'ncaa season', 'b side', 'area 51 total km')
    """
    words = []
    for place_, letter in enumerate(name):
        before, after = name[place_ - 1 : place_], name[place_ + 1 : place_ + 2]
        begins = letter.isupper() and (not before.isupper() or after.islower())
        if place_ and (begins or letter.isdigit() != before.isdigit()):
            words.append(" ")
        words.append(" " if letter in "_-/" else letter)
    return " ".join("".join(words).lower().split())
