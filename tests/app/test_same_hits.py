"""Whatever a person types, both engines find the same, or refuse it at the same character."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from searchapp.app.search import SearchRequest
from tests.profile import FULL, SEED
from tests.search import typed
from tests.search.typed import Both
from tests.server.rest import Server

REQUESTS = 500 if FULL else 60
"""Of each task."""


@pytest.fixture(scope="module")
def both(elasticsearch_url: str) -> Iterator[Both]:
    with typed.both(Server(elasticsearch_url)) as both:
        yield both


@pytest.mark.parametrize("task", typed.TASKS)
def test_what_is_typed_at_random_finds_the_same(both: Both, task: str) -> None:
    outcomes: Counter[str] = Counter()
    different = []
    for request in both.requests(task, SEED, REQUESTS):
        said = both.difference(task, request)
        different += [said] if said else []
        outcomes[both.kind(task, request)] += 1
    assert not different, "\n".join(different)
    assert outcomes["hits"] >= REQUESTS / 4, outcomes
    assert outcomes["broken"] + outcomes["refused"] >= REQUESTS / 30, outcomes


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (" ".join(f"ring{number}" for number in range(3_000)), "hits"),
        (" ".join(f"ring{number}" for number in range(9_000)), "refused"),
        ('"' + " ".join(f"ring{number}" for number in range(1_000)) + '"', "none"),
        ('"' + " ".join(f"ring{number}" for number in range(1_001)) + '"', "broken"),
        ("+ring " * 250, "hits"),
        ("+ring " * 251, "broken"),
        ("(" * 20 + "ring" + ")" * 20, "hits"),
        ("(" * 21 + "ring" + ")" * 21, "broken"),
        ("ring " * 20_000, "hits"),
        ("x" * 500 + "*", "none"),
        ("é" * 10_000, "none"),
        ("é" * 10_001, "broken"),
        ("ring \x00", "hits"),
        ("ring \ud800", "broken"),
        ("", "hits"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_limits_are_the_same(both: Both, text: str, kind: str) -> None:
    request = SearchRequest(text)
    assert both.difference("nlps", request) is None
    assert both.kind("nlps", request) == kind
