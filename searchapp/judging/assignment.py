"""Who judges what: topics by quota, some of them by several people, in an order that a seed decides.

Everything follows from the topics, the annotators and the seed: the same three give the same assignment on every
machine and in every version of Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from searchapp.errors import UsageError


@dataclass(frozen=True, slots=True)
class Assignment:
    """The topics of each annotator in the order in which they are to be judged; `shared` are those of several."""

    topics: Mapping[str, tuple[str, ...]]
    shared: tuple[str, ...]
    seed: int


def shuffled(items: Sequence[str], seed: int, purpose: str) -> list[str]:
    """The items in an order that depends on them, the seed and the purpose alone."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{seed}\0{purpose}\0{item}".encode()).digest())


def assign(
    topics: Sequence[str], quotas: Mapping[str, int], overlap: float = 0.0, per_topic: int = 2, seed: int = 0
) -> Assignment:
    """Share topics out.

    Args:
        topics: the ids of all topics
        quotas: how many topics each annotator takes, by name
        overlap: the share of each quota that goes to topics that several people judge, from 0 to 1
        per_topic: by how many people such a topic is judged
        seed: decides which topics are drawn, and their order

    Raises:
        UsageError: the quotas can't be filled with these topics, or a number is out of range.
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
        # Those who have most left first, so that shares are used up evenly; then by the seed.
        order = shuffled(list(left), seed, topic)
        for name in sorted(order, key=lambda name: -left[name])[:per_topic]:
            left[name] -= 1
            given[name].append(topic)
    for name, quota in quotas.items():
        missing = quota - len(given[name])
        if missing > len(waiting):
            needed = sum(quotas.values()) - sum(map(len, given.values())) + len(shared)
            raise UsageError(
                f"these quotas need about {needed} topics, but there are {len(set(topics))}: lower a quota or "
                "share more topics"
            )
        given[name] += waiting[:missing]
        waiting = waiting[missing:]
    ordered = {name: tuple(shuffled(own, seed, f"order of {name}")) for name, own in given.items()}
    return Assignment(ordered, tuple(shared), seed)
