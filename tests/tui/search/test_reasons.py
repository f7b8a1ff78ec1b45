"""Explanations of hits, comparisons of two hits, and the analysis of document and query."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from searchapp.app.analyze import fields_of
from searchapp.app.inspection.explanation import (
    HitComparison,
    PartDifference,
    RankStatus,
    Reason,
    status_sentence,
)
from searchapp.tui.kit import background
from searchapp.tui.kit.explanation import sentence
from searchapp.tui.search.reasons import ComparisonDialog, comparison_page
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import TIMEOUT_SECONDS, drive, question, screen_text, wait_until
from tests.tui.search.conftest import SearchHarness, ids, press_and_wait, wait_until_answered

P = Pilot[None]
SIZES = [(160, 45), (80, 24)]


@pytest.mark.parametrize("size", SIZES)
def test_a_fused_score_is_explained_by_signals_and_votes(
    search_harness: SearchHarness, size: tuple[int, int]
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until(pilot, lambda: screen.training_topics.topics is not None)
        await press_and_wait(pilot, screen, *"every ring is a group", "enter")
        await press_and_wait(pilot, screen, "w")
        await wait_until(pilot, lambda: "Score of each signal" in screen_text(pilot))
        text = screen_text(pilot)
        assert "direct  weight 0.8" in text and "neighbours  weight 1 · 1 vote" in text
        assert "↵ votes" in text, "the keys are visible in any size"
        await press_and_wait(pilot, screen, "enter")
        assert question(pilot) == "Votes for the document" and "608" in screen_text(pilot)
        await press_and_wait(pilot, screen, "enter")
        assert "Training topic 608 of dev" in screen_text(pilot)
        await wait_until(pilot, lambda: "gold document" in screen_text(pilot))
        await press_and_wait(pilot, screen, "escape", "escape")
        assert screen_text(pilot).count("▶") == 1

    drive(search_harness.app(recipe="neighbours"), steps, size)


@pytest.mark.parametrize("recipe", [None, "neighbours"])
def test_two_hits_are_compared_part_by_part(search_harness: SearchHarness, recipe: str | None) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"normal subgroup of a group", "enter")
        await press_and_wait(pilot, screen, "down", "down", "v")
        second = ids(screen)[2]
        assert f"{second} is marked" in screen_text(pilot) and "◆" not in screen_text(pilot).splitlines()[4]
        await press_and_wait(pilot, screen, "home")
        assert "◆" in screen_text(pilot) and f"{second} is marked" in screen_text(pilot)
        await press_and_wait(pilot, screen, "v")
        await wait_until(pilot, lambda: isinstance(app.screen, ComparisonDialog))
        text = screen_text(pilot)
        assert question(pilot) == f"Why {ids(screen)[0]} is above {second}"
        assert "contributes most: +" in text and "text" in text
        assert ("direct" in text) == (recipe is not None)
        await press_and_wait(pilot, screen, "escape")
        assert "◆" not in screen_text(pilot) and "is marked" not in screen_text(pilot)

    app = search_harness.app(recipe=recipe)
    drive(app, steps)


def test_a_mark_is_removed_by_the_same_key_and_by_another_query(search_harness: SearchHarness) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"group", "enter", "v", "v")
        assert "the mark was removed" in screen_text(pilot)
        await press_and_wait(pilot, screen, "v", "slash", "space", *"ring", "enter")
        await press_and_wait(pilot, screen, "down", "v")
        assert f"{ids(screen)[1]} is marked" in screen_text(pilot), "the mark of the earlier ranking is gone"

    drive(search_harness.app(), steps)


def test_equal_scores_and_small_differences_are_explained() -> None:
    def hit(document: str, score: float) -> Reason:
        return Reason(document, RankStatus.ranked, 1, score)

    equal = HitComparison(hit("a", 1.0), hit("b", 1.0), (), (PartDifference("x", 1.0, 1.0),))
    assert "documents with equal scores are sorted by id" in comparison_page(equal, 70).plain
    different = HitComparison(
        hit("a", 1.5), hit("b", 1.0), (), (PartDifference("x", 1.0, 0.2), PartDifference("y", None, 0.3))
    )
    assert different.decides == different.terms[0]
    assert "x contributes most: +0.8000" in comparison_page(different, 70).plain
    assert "–" in comparison_page(different, 70).plain
    without_parts = HitComparison(hit("a\x1b", 1.5), hit("b", 1.0), (), ())
    assert "the sum of all parts does" in comparison_page(without_parts, 70).plain
    assert "\x1b" not in comparison_page(without_parts, 70).plain


@pytest.mark.parametrize("size", SIZES)
def test_document_and_query_are_analyzed_side_by_side(
    search_harness: SearchHarness, size: tuple[int, int]
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await press_and_wait(pilot, screen, *"every normal subgroups", "enter", "A")
        await wait_until(pilot, lambda: "── tokenizer" in "\n".join(pane_text()))
        text = "\n".join(pane_text())
        assert "document" in text and "query" in text and "changes nothing" in text
        stages = text.split("── ")
        changed = [stage for stage in stages if "│" in stage]
        words = " ".join(line.partition("│")[2].strip() for line in changed[-1].splitlines()).split()
        assert words == ["normal", "subgroup"]
        fields = fields_of(screen.searched)
        for name in fields[1:]:
            await press_and_wait(pilot, screen, "right")
            await wait_until(pilot, lambda: "──" in "\n".join(pane_text()))
            assert app.screen.field == name  # type: ignore[attr-defined]
        await press_and_wait(pilot, screen, "tab")
        assert app.screen.field == fields[0]  # type: ignore[attr-defined]
        await press_and_wait(pilot, screen, "escape")
        assert screen.hits.has_focus

    def pane_text() -> list[str]:
        return str(app.screen._pane.text.plain).splitlines()  # type: ignore[attr-defined]

    app = search_harness.app()
    drive(app, steps, size)


def test_marking_waits_for_the_requested_ranking(
    search_harness: SearchHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", TIMEOUT_SECONDS)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await wait_until_answered(pilot, screen)
        search_harness.index.may_answer.clear()
        await pilot.press(*"ring", "enter", "v")
        assert not screen.hits.marked
        search_harness.index.may_answer.set()
        await wait_until_answered(pilot, screen)
        assert screen.hits.marked is not None
        assert screen.hits.marked.ranked_hit[1].document_id == ids(screen)[0]

    drive(search_harness.app(), steps)


@pytest.mark.parametrize("status", list(RankStatus))
def test_every_rank_status_has_a_sentence(status: RankStatus) -> None:
    assert sentence("7", status_sentence(Reason("7", status), "nlps")).startswith("7 ")
