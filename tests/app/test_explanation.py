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
    every = nlps.search(replace(request_, size=100))
    for result in (every[0], every[3], every[-1]):
        found = find_reason(nlps, replace(request_, size=1), result.hit.document_id)
        assert found.explanation is not None
        assert found == Reason(
            result.hit.document_id,
            RankStatus.ranked,
            result.rank,
            result.hit.score,
            found.explanation,
            found.shares,
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
    first, *_ = checkthat.search(SearchRequest("the people"))
    filtered = SearchRequest("the people", filters=(FieldFilter("speaker", "NOBODY"),))
    document = first.hit.document_id
    assert find_reason(checkthat, filtered, document).status is RankStatus.filtered
    assert (
        find_reason(checkthat, replace(filtered, text="people -people"), document).status
        is RankStatus.excluded
    )
    assert (
        find_reason(checkthat, replace(filtered, text="zygomorphic"), document).status is RankStatus.no_match
    )


def test_what_is_behind_the_depth_of_a_recipe_is_told_from_what_does_not_match(
    nlps: TaskSearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = nlps.search(replace(LEARNED, size=100))[-1]
    monkeypatch.setattr(search, "FUSED_DEPTH", 3)
    fresh = TaskSearcher(nlps.task, nlps._engine, nlps.index, nlps._progress, nlps._collection)
    assert find_reason(fresh, LEARNED, last.hit.document_id) == Reason(
        last.hit.document_id, RankStatus.below_depth
    )


@pytest.mark.parametrize("text", ["every ring is a group", "normal subgroup", "a field"])
def test_shares_of_signals_add_up_to_the_score(nlps: TaskSearcher, text: str) -> None:
    request = SearchRequest(text, recipe="neighbours", size=100)
    for result in nlps.search(request)[::7]:
        shares = nlps.shares(request, result.hit.document_id)
        assert sum(one.value or 0.0 for one in shares) == pytest.approx(result.hit.score, rel=1e-6)
        assert [one.signal for one in shares] == ["direct", "neighbours"]
        votes = shares[1].votes
        assert bool(votes) == (shares[1].value is not None)
        assert [one.value for one in votes] == sorted((one.value for one in votes), reverse=True)
        assert all(one.document_id == result.hit.document_id and one.grade == 1.0 for one in votes)
    assert nlps.shares(SearchRequest(text), result.hit.document_id) == []
    assert nlps.shares(request, "nowhere") == []


@pytest.mark.parametrize("recipe", ["words", "neighbours"])
def test_the_parts_of_two_scores_stand_side_by_side(nlps: TaskSearcher, recipe: str) -> None:
    request = SearchRequest("normal subgroup of a group", recipe, size=20)
    hits = nlps.search(request)
    first, second = ((one.rank, one.hit) for one in (hits[5], hits[1]))
    found = compare_hits(nlps, request, first, second)
    assert found == compare_hits(nlps, request, second, first)
    assert (found.upper.rank, found.lower.rank) == (2, 6)
    gains = [abs(one.gain) for one in found.terms]
    assert gains == sorted(gains, reverse=True)
    parts = found.signals or found.terms
    between = hits[1].hit.score - hits[5].hit.score
    assert sum(one.gain for one in parts) == pytest.approx(between, abs=1e-4)
    assert found.decides is not None and found.decides.gain == max(one.gain for one in parts)
    figured = [one for one in found.terms if one.upper_figures and one.lower_figures]
    for one in figured:
        upper, lower = dict(one.upper_figures), dict(one.lower_figures)
        assert {"tf", "df", "idf", "length"} <= upper.keys() and upper["df"] == lower["df"]
