"""What the official files of SMART have in common: a prediction for each question of a split, once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from searchapp.formats.json_array import OfficialId
from searchapp.formats.json_stream import type_name
from searchapp.formats.problems import Problems, shown
from searchapp.model import Run
from searchapp.tasks.base import NoOfficialFile


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
    topics: Collection[str],
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
