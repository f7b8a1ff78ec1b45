"""Whatever a person types, both engines find the same, or refuse it at the same character."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from searchapp.app.analyze import fields_of, side_by_side
from searchapp.app.inspection.explanation import Reason, compare_hits, find_reason
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.ranking.highlighting import TextAnalyzer
from tests.profile import FULL, SEED
from tests.search import typed
from tests.search.comparing import unordered
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
    ("task", "recipe", "text"),
    [
        ("nlps", "neighbours", "every ring is a normal subgroup of a group"),
        ("nlps", "neighbours", 'prime "number" -ideal'),
        ("nlps", "tfidf", "the kernel of a homomorphism"),
        ("nlps", "words", '+ring "of a" set'),
        ("smart-types-dbpedia", "neighbours", "Who is the mayor of the city?"),
        ("explanation-2021", "neighbours", "Water boils when it is heated"),
        ("checkthat", "words", "jobs and taxes"),
    ],
)
def test_reasons_signals_and_votes_are_the_same(both: Both, task: str, recipe: str, text: str) -> None:
    request = SearchRequest(text, recipe, size=100)
    here, there = both.searchers(task)
    hits = [one.hit for one in here.search(request)]
    assert hits and hits == [one.hit for one in there.search(request)]
    places = [*enumerate(hits, start=1)][:: max(1, len(hits) // 6)]
    for _rank, hit in places:
        assert here.shares(request, hit.document_id) == there.shares(request, hit.document_id)
        assert said(find_reason(here, request, hit.document_id)) == said(
            find_reason(there, request, hit.document_id)
        )
    for upper, lower in pairwise(places):
        one, other = compare_hits(here, request, upper, lower), compare_hits(there, request, upper, lower)
        assert (one.signals, set(one.terms), one.decides) == (other.signals, set(other.terms), other.decides)
    voted = [share.votes for _rank, hit in places for share in here.shares(request, hit.document_id)]
    assert any(voted) is (recipe == "neighbours")
    missing = next(one for one in document_ids(here) if one not in {hit.document_id for hit in hits})
    for document in (missing, "nowhere"):
        assert find_reason(here, request, document) == find_reason(there, request, document)


def said(found: Reason) -> tuple[Any, ...]:
    """A reason, whatever the order in which an engine names the parts of a sum."""
    explanation = None if found.explanation is None else unordered(found.explanation)
    return found.status, found.rank, found.score, explanation, found.shares


def document_ids(searcher: TaskSearcher) -> list[str]:
    return [hit.document_id for hit in searcher.ranking(SearchRequest(""))]


@pytest.mark.parametrize("task", [*typed.TASKS, "explanation-2021"])
def test_analysis_is_the_same(both: Both, task: str) -> None:
    """Each step of a document and of a query side by side; and what is computed of a query is what a server says."""
    here, there = both.searchers(task)
    texts = ["", "The 2 'quotient' groups $G/H$, don’t they? 50,000 km", *typed.HARD[:20]]
    mapping = here.task.index_mapping()
    for field in fields_of(here.task):
        for text in texts:
            found = [
                side_by_side(one.task, one.index, field, text, "Groups of a ring") for one in (here, there)
            ]
            assert found[0] == found[1]
    analyzed = TextAnalyzer(there.index, mapping)
    for analyzer in mapping["settings"]["analysis"]["analyzer"]:
        for text in texts:
            assert list(analyzed.tokens(analyzer, text)) == list(
                there.index.analyze(text, analyzer=analyzer)[-1].tokens
            )


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
