"""Whether the predictions of an official file of SMART are for the questions of a split, each of them once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from searchapp.formats.json_array import OfficialId
from searchapp.formats.json_stream import type_name
from searchapp.formats.problems import Problems, shown


class Given(Protocol):
    """A prediction: the line that it begins in, and its question's id as text and as it stands there."""

    @property
    def line(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def official_id(self) -> OfficialId: ...


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
            detail = f"the id {shown(one.id)} is {is_} here and {should} in the questions, which the scorer tells apart"
            problems.add(path, "wrong type of id", where, detail)
    if not problems.stopped:  # what was not read is not missing
        for id_ in sorted(set(topics) - answered):
            problems.add(path, "missing question", f"question {shown(id_)}", lack)
