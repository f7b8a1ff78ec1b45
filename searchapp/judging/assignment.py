"""The assignment of topics to annotators.

An assignment file is JSON:

    {"task": "nlps", "split": "dev", "seed": 0, "shared": ["608"], "topics": {"ann": ["608", "12"], "ben": ["608"]}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from searchapp.errors import UsageError
from searchapp.formats.json_files import read_members
from searchapp.formats.problems import Problems, shown
from searchapp.lucene.dataclass import dataclass
from searchapp.text import counted, suggestion


@dataclass(frozen=True, slots=True)
class Assignment:
    """The topics of each annotator in the order of judging; `shared` topics have several annotators."""

    topics: Mapping[str, tuple[str, ...]]
    shared: tuple[str, ...]
    seed: int


def shuffled(items: Sequence[str], seed: int, purpose: str) -> list[str]:
    """Return the items in an order that depends only on the items, the seed and the purpose."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{seed}\0{purpose}\0{item}".encode()).digest())


def assign(
    topics: Sequence[str], quotas: Mapping[str, int], overlap: float = 0.0, per_topic: int = 2, seed: int = 0
) -> Assignment:
    """Assign topics to annotators.

    Args:
        quotas: the number of topics of each annotator, by name
        overlap: the share of each quota that is shared topics, from 0 to 1
        per_topic: the number of annotators of a shared topic
        seed: determines the selection and order of topics

    Raises:
        UsageError: the topics can't fill the quotas, or a number is out of range.
    """
    if not quotas or any(quota < 1 for quota in quotas.values()):
        raise UsageError("each annotator must get at least one topic")
    if not 0 <= overlap <= 1:
        raise UsageError(f"the overlap must be from 0 to 1, not {overlap:g}")
    if overlap and not 2 <= per_topic <= len(quotas):
        raise UsageError(f"a shared topic can have from 2 to {len(quotas)} annotators here, not {per_topic}")
    left = {name: round(quota * overlap) for name, quota in quotas.items()} if overlap else {}
    given: dict[str, list[str]] = {name: [] for name in quotas}
    waiting = shuffled(list(dict.fromkeys(topics)), seed, "draw")
    shared: list[str] = []
    while sum(count > 0 for count in left.values()) >= per_topic and waiting:
        topic = waiting.pop(0)
        shared.append(topic)
        # The largest remaining shares first, so that they are used up evenly.
        order = shuffled(list(left), seed, topic)
        for name in sorted(order, key=lambda name: -left[name])[:per_topic]:
            left[name] -= 1
            given[name].append(topic)
    # Counted before the topics of single annotators are drawn.
    needed = sum(quotas.values()) - sum(map(len, given.values())) + len(shared)
    for name, quota in quotas.items():
        missing = quota - len(given[name])
        if missing > len(waiting):
            raise UsageError(
                f"these quotas need about {counted(needed, 'topic')}, but there are {len(set(topics))}: lower a "
                "quota or "
                "share more topics"
            )
        given[name] += waiting[:missing]
        waiting = waiting[missing:]
    ordered = {name: tuple(shuffled(own, seed, f"order of {name}")) for name, own in given.items()}
    return Assignment(ordered, tuple(shared), seed)


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment with the task and split of its topics."""

    task: str
    split: str
    assignment: Assignment

    def to_json(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "split": self.split,
            "seed": self.assignment.seed,
            "shared": self.assignment.shared,
            "topics": self.assignment.topics,
        }

    def topics_in(self, task: str, split: str, ranked: Collection[str], annotator: str) -> tuple[str, ...]:
        """Return an annotator's topics in the order of judging, for a run with the topics `ranked`.

        Raises:
            UsageError: the run is of another task or split or lacks a topic, or the annotator has no topics.
        """
        if (self.task, self.split) != (task, split):
            raise UsageError(
                f"the assignment is for {shown(self.task)} {shown(self.split)}, the run for {task} "
                f"{split}: name a run of the same split"
            )
        own = self.assignment.topics.get(annotator)
        if own is None:
            names = ", ".join(map(shown, self.assignment.topics))
            whom = shown(annotator) + suggestion(annotator, self.assignment.topics)
            raise UsageError(f"no topics are assigned to {whom}: name one of {names} with --annotator")
        known = frozenset(ranked)
        missing = [topic for topic in own if topic not in known]
        if missing:
            raise UsageError(
                f"the run lacks {len(missing)} of the {counted(len(own), 'topic')} assigned to "
                f"{shown(annotator)}, such as {shown(missing[0])}: rank the whole split, or assign topics of the run"
            )
        return own


def write(file: BinaryIO, assigned: Assigned) -> None:
    """Write an assignment for `read`."""
    file.write((json.dumps(assigned.to_json(), indent=2, ensure_ascii=False) + "\n").encode())


def read(path: Path) -> Assigned:
    """Return the assignment in a file.

    Raises:
        InvalidFiles: the file is missing or is not an assignment.
    """
    problems = Problems()
    members: dict[str, Any] = {}
    for name, value in read_members(path, problems):
        if name in members:
            problems.add(path, "duplicate key", detail=f"{shown(name)} occurs twice")
        members[name] = value
    problems.raise_if_any()
    for name, is_valid, description in _MEMBERS:
        if name not in members:
            problems.add(
                path,
                "no assignment",
                detail=f"the key {name!r} is missing: write a file with `judgments assign`",
            )
        elif not is_valid(members[name]):
            problems.add(path, "no assignment", repr(name), f"it must be {description}")
    problems.raise_if_any()
    topics = {name: tuple(own) for name, own in members["topics"].items()}
    assignment = Assignment(topics, tuple(members["shared"]), members["seed"])
    return Assigned(members["task"], members["split"], assignment)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _are_topics(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(own and _are_ids(own) for own in value.values())


_MEMBERS = (
    ("task", _is_text, "a task's name"),
    ("split", _is_text, "a split's name"),
    ("seed", _is_seed, "a whole number"),
    ("shared", _are_ids, "a list of different topic ids"),
    ("topics", _are_topics, "an object with a list of different topic ids for each annotator"),
)
