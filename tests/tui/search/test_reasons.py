"""Why a document is where it is, and above another one; a document and the words on their way to terms."""

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
from tests.tui.conftest import PATIENCE_SECONDS, drive, question, text_of, until
from tests.tui.search.conftest import SearchingOn, answered, enter, ids

P = Pilot[None]
SIZES = [(160, 45), (80, 24)]


@pytest.mark.parametrize("size", SIZES)
def test_a_fused_score_says_what_each_signal_gave_and_who_voted(
    searching: SearchingOn, size: tuple[int, int]
) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await until(pilot, lambda: screen.training_topics.topics is not None)
        await enter(pilot, screen, *"every ring is a group", "enter")
        await enter(pilot, screen, "w")
        await until(pilot, lambda: "Score of each signal" in text_of(app))
        shown = text_of(app)
        assert "direct  weight 0.8" in shown and "neighbours  weight 1 · 1 vote" in shown
        assert "↵ votes" in shown, "the keys are in sight at any size"
        await enter(pilot, screen, "enter")
        assert question(app) == "Votes for the document" and "608" in text_of(app)
        await enter(pilot, screen, "enter")
        assert "Training topic 608 of dev" in text_of(app)
        await until(pilot, lambda: "gold document" in text_of(app))
        await enter(pilot, screen, "escape", "escape")
        assert text_of(app).count("▶") == 1

    app = searching.app(recipe="neighbours")
    drive(app, steps, size)


@pytest.mark.parametrize("recipe", [None, "neighbours"])
def test_two_hits_are_compared_part_by_part(searching: SearchingOn, recipe: str | None) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"normal subgroup of a group", "enter")
        await enter(pilot, screen, "down", "down", "v")
        second = ids(screen)[2]
        assert f"{second} is marked" in text_of(app) and "◆" not in text_of(app).splitlines()[4]
        await enter(pilot, screen, "home")
        assert "◆" in text_of(app)
        await enter(pilot, screen, "v")
        await until(pilot, lambda: isinstance(app.screen, ComparisonDialog))
        shown = text_of(app)
        assert question(app) == f"Why {ids(screen)[0]} is above {second}"
        assert "contributes most: +" in shown and "text" in shown
        assert ("direct" in shown) == (recipe is not None)
        await enter(pilot, screen, "escape")
        assert "◆" not in text_of(app)

    app = searching.app(recipe=recipe)
    drive(app, steps)


def test_a_mark_is_dropped_by_the_same_key_and_with_its_ranking(searching: SearchingOn) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"group", "enter", "v", "v")
        assert "the mark was removed" in text_of(app)
        await enter(pilot, screen, "v", "slash", "space", *"ring", "enter")
        await enter(pilot, screen, "down", "v")
        assert f"{ids(screen)[1]} is marked" in text_of(app), "that of another ranking does not count"

    app = searching.app()
    drive(app, steps)


def test_equal_scores_are_told_from_small_differences() -> None:
    def hit(document: str, score: float) -> Reason:
        return Reason(document, RankStatus.ranked, 1, score)

    alike = HitComparison(hit("a", 1.0), hit("b", 1.0), (), (PartDifference("x", 1.0, 1.0),))
    assert "documents with equal scores are sorted by id" in comparison_page(alike, 70).plain
    many = HitComparison(
        hit("a", 1.5), hit("b", 1.0), (), (PartDifference("x", 1.0, 0.2), PartDifference("y", None, 0.3))
    )
    assert many.decides == many.terms[0] and "x contributes most: +0.8000" in comparison_page(many, 70).plain
    assert "–" in comparison_page(many, 70).plain
    nothing = HitComparison(hit("a\x1b", 1.5), hit("b", 1.0), (), ())
    assert (
        "the sum of all parts does" in comparison_page(nothing, 70).plain
        and "\x1b" not in comparison_page(nothing, 70).plain
    )


@pytest.mark.parametrize("size", SIZES)
def test_document_and_query_are_analyzed_side_by_side(searching: SearchingOn, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: SearchScreen) -> None:
        await enter(pilot, screen, *"every normal subgroups", "enter", "a")
        await until(pilot, lambda: "── tokenizer" in "\n".join(pane_text()))
        text = "\n".join(pane_text())
        assert "document" in text and "query" in text and "changes nothing" in text
        stages = text.split("── ")
        changed = [one for one in stages if "│" in one]
        words = " ".join(line.partition("│")[2].strip() for line in changed[-1].splitlines()).split()
        assert words == ["normal", "subgroup"]
        fields = fields_of(screen.searched)
        for name in fields[1:]:
            await enter(pilot, screen, "right")
            await until(pilot, lambda: "──" in "\n".join(pane_text()))
            assert app.screen.field == name  # type: ignore[attr-defined]
        await enter(pilot, screen, "tab")
        assert app.screen.field == fields[0]  # type: ignore[attr-defined]
        await enter(pilot, screen, "escape")
        assert screen.hits.has_focus

    def pane_text() -> list[str]:
        return str(app.screen._pane.text.plain).splitlines()  # type: ignore[attr-defined]

    app = searching.app()
    drive(app, steps, size)


def test_reasons_wait_for_the_ranking_that_was_asked_for(
    searching: SearchingOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "OVERTAKE_SECONDS", PATIENCE_SECONDS)

    async def steps(pilot: P, screen: SearchScreen) -> None:
        await answered(pilot, screen)
        searching.index.may_answer.clear()
        await pilot.press(*"ring", "enter", "v")
        assert not screen.hits.marked
        searching.index.may_answer.set()
        await answered(pilot, screen)
        assert (
            screen.hits.marked is not None and screen.hits.marked.ranked_hit[1].document_id == ids(screen)[0]
        )

    drive(searching.app(), steps)


@pytest.mark.parametrize("status", list(RankStatus))
def test_every_standing_has_a_sentence(status: RankStatus) -> None:
    assert sentence("7", status_sentence(Reason("7", status), "nlps")).startswith("7 ")
