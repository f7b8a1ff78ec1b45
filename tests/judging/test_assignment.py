from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.errors import InvalidFiles, UsageError
from searchapp.judging.assignment import Assigned, assign, read, shuffled, write

TOPICS = [f"t{number}" for number in range(40)]


def test_quotas_are_filled_and_two_annotators_judge_the_overlap() -> None:
    assignment = assign(TOPICS, {"ann": 20, "ben": 10, "eve": 10}, overlap=0.2, seed=3)
    assert {name: len(topics) for name, topics in assignment.topics.items()} == {
        "ann": 20,
        "ben": 10,
        "eve": 10,
    }
    counts = {topic: sum(topic in own for own in assignment.topics.values()) for topic in TOPICS}
    assert {topic for topic, count in counts.items() if count == 2} == set(assignment.shared)
    assert len(assignment.shared) == 4  # (4 + 2 + 2) / 2
    assert max(counts.values()) == 2


def test_the_seed_alone_decides() -> None:
    quotas = {"ann": 5, "ben": 5}
    assert assign(TOPICS, quotas, 0.4, seed=1) == assign(list(reversed(TOPICS)), quotas, 0.4, seed=1)
    assert assign(TOPICS, quotas, 0.4, seed=1) != assign(TOPICS, quotas, 0.4, seed=2)


def test_without_overlap_annotators_have_different_topics() -> None:
    assignment = assign(TOPICS, {"ann": 20, "ben": 20})
    assert assignment.shared == () and not set(assignment.topics["ann"]) & set(assignment.topics["ben"])


@pytest.mark.parametrize(
    ("quotas", "overlap", "per_topic", "part"),
    [
        ({"ann": 50}, 0.0, 2, "these quotas need about 50 topics, but there are 40"),
        ({"ann": 20, "ben": 30}, 0.0, 2, "these quotas need about 50 topics, but there are 40"),
        ({"ann": 20, "ben": 20, "eve": 20}, 0.5, 2, "these quotas need about 45 topics, but there are 40"),
        ({"ann": 0}, 0.0, 2, "at least one topic"),
        ({"ann": 1, "ben": 1}, 1.5, 2, "from 0 to 1"),
        ({"ann": 1, "ben": 1}, 0.5, 3, "from 2 to 2 annotators"),
        ({}, 0.0, 2, "at least one topic"),
    ],
)
def test_impossible_quotas_are_rejected(
    quotas: dict[str, int], overlap: float, per_topic: int, part: str
) -> None:
    with pytest.raises(UsageError, match=part):
        assign(TOPICS, quotas, overlap, per_topic)


def test_a_shuffled_order_depends_on_the_seed_alone() -> None:
    items = list("abcdefgh")
    order = shuffled(items, 5, "t")
    assert order == shuffled(items[::-1], 5, "t") != shuffled(items, 6, "t")
    assert sorted(order) == items


def test_an_assignment_is_read_as_it_was_written(tmp_path: Path) -> None:
    assigned = Assigned("nlps", "dev", assign(TOPICS, {"ann": 4, "Ödön": 4}, 0.5, seed=2))
    path = tmp_path / "assignment.json"
    with path.open("wb") as file:
        write(file, assigned)
    assert read(path) == assigned
    own = assigned.assignment.topics["Ödön"]
    assert assigned.topics_in("nlps", "dev", TOPICS, "Ödön") == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty file"),
        ('{"task": "nlps",\n "split" "dev"}', "line 2"),
        ("[]", "not an object"),
        ('{"task": "nlps", "split": "dev", "seed": 0, "shared": []}', "the key 'topics' is missing"),
        ('{"task": "", "split": "dev", "seed": 0, "shared": [], "topics": {"a": ["t"]}}', "'task'"),
        ('{"task": "n", "split": "dev", "seed": true, "shared": [], "topics": {"a": ["t"]}}', "'seed'"),
        (
            '{"task": "n", "split": "dev", "seed": 0, "shared": [], "topics": {"a": ["t", "t"]}}',
            "different topic ids",
        ),
        ('{"task": "n", "split": "dev", "seed": 0, "shared": [], "topics": {"a": []}}', "'topics'"),
        ('{"task": "n", "task": "m"}', "'?task'? occurs twice"),
    ],
)
def test_errors_name_the_file_and_the_line_or_key(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "assignment.json"
    path.write_text(text)
    with pytest.raises(InvalidFiles, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
