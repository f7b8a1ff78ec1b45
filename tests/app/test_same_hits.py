"""Both engines find the same for any query, or refuse it at the same character."""

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
from tests.search import typed_queries
from tests.search.comparing import sorted_explanation
from tests.search.typed_queries import SampleEngines
from tests.server.rest import Server

REQUESTS = 500 if FULL else 60
"""The number of random queries for each task."""


@pytest.fixture(scope="module")
def both(elasticsearch_url: str) -> Iterator[SampleEngines]:
    with typed_queries.engines(Server(elasticsearch_url)) as both:
        yield both


@pytest.mark.parametrize("task", typed_queries.TASKS)
def test_random_queries_find_the_same(both: SampleEngines, task: str) -> None:
    outcomes: Counter[str] = Counter()
    differences = []
    for request in both.requests(task, SEED, REQUESTS):
        if difference := both.difference(task, request):
            differences.append(difference)
        outcomes[both.kind(task, request)] += 1
    assert not differences, "\n".join(differences)
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
def test_reasons_signals_and_votes_are_the_same(
    both: SampleEngines, task: str, recipe: str, text: str
) -> None:
    request = SearchRequest(text, recipe, size=100)
    embedded, server = searchers = both.searchers(task)
    hits = [result.hit for result in embedded.search(request)]
    assert hits and hits == [result.hit for result in server.search(request)]
    ranked_hits = [*enumerate(hits, start=1)][:: max(1, len(hits) // 6)]
    votes = []
    for _rank, hit in ranked_hits:
        shares = embedded.shares(request, hit.document_id)
        votes += [share.votes for share in shares]
        assert shares == server.shares(request, hit.document_id)
        reasons = [comparable(find_reason(searcher, request, hit.document_id)) for searcher in searchers]
        assert reasons[0] == reasons[1]
    assert any(votes) is (recipe == "neighbours")
    for upper, lower in pairwise(ranked_hits):
        first, second = (compare_hits(searcher, request, upper, lower) for searcher in searchers)
        assert (first.signals, set(first.terms), first.decides) == (
            second.signals,
            set(second.terms),
            second.decides,
        )
    hit_ids = {hit.document_id for hit in hits}
    missing = next(document for document in document_ids(embedded) if document not in hit_ids)
    for document in (missing, "nowhere"):
        assert find_reason(embedded, request, document) == find_reason(server, request, document)


def comparable(reason: Reason) -> tuple[Any, ...]:
    """Return the parts of a reason, without the order in which an engine names the parts of a sum."""
    explanation = None if reason.explanation is None else sorted_explanation(reason.explanation)
    return reason.status, reason.rank, reason.score, explanation, reason.shares


def document_ids(searcher: TaskSearcher) -> list[str]:
    return [hit.document_id for hit in searcher.ranking(SearchRequest(""))]


@pytest.mark.parametrize("task", [*typed_queries.TASKS, "explanation-2021"])
def test_analysis_is_the_same(both: SampleEngines, task: str) -> None:
    """Each step of analysis is the same, and the terms that highlighting computes are those of the server."""
    embedded, server = searchers = both.searchers(task)
    texts = ["", "The 2 'quotient' groups $G/H$, don’t they? 50,000 km", *typed_queries.HARD[:20]]
    mapping = embedded.task.index_mapping()
    for field in fields_of(embedded.task):
        for text in texts:
            first, second = (
                side_by_side(searcher.task, searcher.index, field, text, "Groups of a ring")
                for searcher in searchers
            )
            assert first == second
    analyzed = TextAnalyzer(server.index, mapping)
    for analyzer in mapping["settings"]["analysis"]["analyzer"]:
        for text in texts:
            assert list(analyzed.tokens(analyzer, text)) == list(
                server.index.analyze(text, analyzer=analyzer)[-1].tokens
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
def test_limits_are_the_same(both: SampleEngines, text: str, kind: str) -> None:
    request = SearchRequest(text)
    assert both.difference("nlps", request) is None
    assert both.kind("nlps", request) == kind
