"""Parts of the tasks that ship with searchapp: mappings and recipes by name, checks of answers, samples.

A sample is a task on the few documents that ship with searchapp, with an index of its own; its judgments are logged
under its own name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Collection as AbstractCollection
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from searchapp import resources
from searchapp.formats.json_files import OfficialId, type_name
from searchapp.formats.problems import Problems, shown
from searchapp.model import Run
from searchapp.resources import SAMPLES, RecipeBook
from searchapp.tasks import base
from searchapp.tasks.base import Collection, NoOfficialFile, OfficialFormat, P, Task, TaskInfo, Writer
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


class Given(Protocol):
    """A prediction: the line that it begins in, and its question's id as text and as it stands there."""

    @property
    def line(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def official_id(self) -> OfficialId: ...


def require_answers(run: Run, noun: str) -> None:
    """Refuse a run with a topic that has no answer, which `noun` names.

    Raises:
        NoOfficialFile: it has one.
    """
    for ranking in run:
        if not ranking.hits:
            raise NoOfficialFile(
                f"question {ranking.topic_id} has no {noun}, and the official file needs one for each: "
                "choose another recipe"
            )


def check_not_empty(path: Path, given: Iterable[Given], problems: Problems) -> None:
    """Read all predictions of a file, and find that there are none."""
    if not list(given) and not len(problems):
        problems.add(path, "no prediction", detail="the list is empty", skippable=False)


def check_answered(
    path: Path,
    given: Iterable[Given],
    questions: Mapping[str, OfficialId],
    topics: AbstractCollection[str],
    split: str,
    problems: Problems,
    lack: str,
) -> None:
    """Find the predictions of `given` for no question, and the questions without a prediction.

    `questions` are the ids that the split's file has. Those of them in `topics`, which leaves out questions without
    words and the like, need a prediction; `lack` says what it means that there is none. An id of the
    right text and the wrong type is a problem of its own: to the official scorers it is another question's.
    """
    answered = set()
    for one in given:
        where = f"line {one.line}"
        answered.add(one.id)
        if one.id not in questions:
            detail = f"{shown(one.id)} is not in the split {split}"
            problems.add(path, "unknown question", where, detail)
        elif one.official_id != questions[one.id]:
            is_, should = type_name(one.official_id), type_name(questions[one.id])
            detail = f"the id {shown(one.id)} is {is_} here and {should} in the questions; the scorer compares both"
            problems.add(path, "wrong type of id", where, detail)
    if not problems.stopped:  # what was not read is not missing
        for id_ in sorted(set(topics) - answered):
            problems.add(path, "missing question", f"question {shown(id_)}", lack)


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
