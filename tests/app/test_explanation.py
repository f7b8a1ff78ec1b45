"""Why a document has its rank for a query, or none, and how two hits compare."""

from __future__ import annotations

from dataclasses import replace

import pytest

from searchapp.app import search
from searchapp.app.inspection.explanation import RankStatus, Reason, compare_hits, find_reason
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.ranking.query_language import FieldFilter
from tests.app.conftest import MakeSearcher

LEARNED = SearchRequest("every ring is a group", recipe="neighbours")


@pytest.fixture(scope="module")
def nlps(make_searcher: MakeSearcher) -> TaskSearcher:
    return make_searcher("nlps")


@pytest.mark.parametrize("request_", [SearchRequest("group ring"), LEARNED, SearchRequest("-ring")])
def test_each_hit_has_its_rank_score_and_explanation(nlps: TaskSearcher, request_: SearchRequest) -> None:
    results = nlps.search(replace(request_, size=100))
    for result in (results[0], results[3], results[-1]):
        hit = result.hit
        reason = find_reason(nlps, replace(request_, size=1), hit.document_id)
        assert reason.explanation is not None
        assert reason == Reason(
            hit.document_id, RankStatus.ranked, result.rank, hit.score, reason.explanation, reason.shares
        )


@pytest.mark.parametrize(
    ("text", "document", "status"),
    [
        ("ring", "nowhere", RankStatus.unknown),
        ("ring", "603", RankStatus.no_match),
        ("zygomorphic", "603", RankStatus.no_match),
        ("kernel -normal", "603", RankStatus.excluded),
        ("kernel +ring", "603", RankStatus.excluded),
        ("+kernel +ring", "603", RankStatus.excluded),
        ("-kernel", "603", RankStatus.excluded),
        ("ring -kernel", "603", RankStatus.no_match),
        ("+ring -field", "603", RankStatus.no_match),
        ("kernel +(ring field)", "603", RankStatus.excluded),
    ],
)
@pytest.mark.parametrize("recipe", ["words", "tfidf"])
def test_a_document_that_is_no_hit_has_a_reason(
    nlps: TaskSearcher, recipe: str, text: str, document: str, status: RankStatus
) -> None:
    assert find_reason(nlps, SearchRequest(text, recipe), document) == Reason(document, status)


def test_a_filter_is_a_reason(make_searcher: MakeSearcher) -> None:
    checkthat = make_searcher("checkthat")
    document = checkthat.search(SearchRequest("the people"))[0].hit.document_id
    for text, status in (
        ("the people", RankStatus.filtered),
        ("people -people", RankStatus.excluded),
        ("zygomorphic", RankStatus.no_match),
    ):
        request = SearchRequest(text, filters=(FieldFilter("speaker", "NOBODY"),))
        assert find_reason(checkthat, request, document).status is status


def test_a_match_below_the_depth_of_a_recipe_has_its_own_status(
    nlps: TaskSearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = nlps.search(replace(LEARNED, size=100))[-1].hit.document_id
    monkeypatch.setattr(search, "FUSED_DEPTH", 3)
    fresh = TaskSearcher(nlps.task, nlps._engine, nlps.index, nlps._progress, nlps._collection)
    assert find_reason(fresh, LEARNED, document) == Reason(document, RankStatus.below_depth)


@pytest.mark.parametrize("text", ["every ring is a group", "normal subgroup", "a field"])
def test_shares_of_signals_add_up_to_the_score(nlps: TaskSearcher, text: str) -> None:
    request = SearchRequest(text, recipe="neighbours", size=100)
    for result in nlps.search(request)[::7]:
        shares = nlps.shares(request, result.hit.document_id)
        assert sum(share.value or 0.0 for share in shares) == pytest.approx(result.hit.score, rel=1e-6)
        assert [share.signal for share in shares] == ["direct", "neighbours"]
        votes = shares[1].votes
        assert bool(votes) == (shares[1].value is not None)
        assert [vote.value for vote in votes] == sorted((vote.value for vote in votes), reverse=True)
        assert all(vote.document_id == result.hit.document_id and vote.grade == 1.0 for vote in votes)
    assert nlps.shares(SearchRequest(text), result.hit.document_id) == []
    assert nlps.shares(request, "nowhere") == []


@pytest.mark.parametrize("recipe", ["words", "neighbours"])
def test_the_parts_of_two_scores_are_compared(nlps: TaskSearcher, recipe: str) -> None:
    request = SearchRequest("normal subgroup of a group", recipe, size=20)
    results = nlps.search(request)
    upper, lower = ((result.rank, result.hit) for result in (results[1], results[5]))
    comparison = compare_hits(nlps, request, upper, lower)
    assert comparison == compare_hits(nlps, request, lower, upper)
    assert (comparison.upper.rank, comparison.lower.rank) == (2, 6)
    gains = [abs(term.gain) for term in comparison.terms]
    assert gains == sorted(gains, reverse=True)
    parts = comparison.signals or comparison.terms
    difference = results[1].hit.score - results[5].hit.score
    assert sum(part.gain for part in parts) == pytest.approx(difference, abs=1e-4)
    assert comparison.decides is not None and comparison.decides.gain == max(part.gain for part in parts)
    for term in comparison.terms:
        if not (term.upper_figures and term.lower_figures):
            continue
        upper_figures, lower_figures = dict(term.upper_figures), dict(term.lower_figures)
        assert {"tf", "df", "idf", "length"} <= upper_figures.keys()
        assert upper_figures["df"] == lower_figures["df"]
