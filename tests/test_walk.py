"""A `rank` request goes straight down through the layers: what `python scripts/walk.py` reports."""

from __future__ import annotations

import pytest

from scripts.walk import MOST_MODULES, Step, Walk, goes_up, report, walk


@pytest.mark.parametrize(("task", "recipe"), [("nlps", "neighbours"), ("checkthat", "neighbours")])
def test_a_rank_request_enters_few_modules_and_never_goes_up(task: str, recipe: str) -> None:
    seen = walk(task, recipe)
    assert seen.ways
    for way in seen.ways:
        assert (way[0].module, way[-1].module) == ("searchapp.cli", "searchapp.engines.embedded")
        assert len({step.module for step in way}) <= MOST_MODULES
    assert not seen.rises()
    assert seen.ups, "bodies are drawn by the engine, and made by the signals"
    assert not seen.not_handed_down()


def test_a_call_that_goes_up_is_seen() -> None:
    engine, app = Step("searchapp.engines.base", "f"), Step("searchapp.app.rank", "make_run")
    assert goes_up(engine, app) and not goes_up(app, engine)
    seen = Walk([(app, engine, app)], {(engine, app)})
    assert seen.rises() == [(engine, app)]
    assert "calls on these ways that go up: 1" in report(seen)
    imported = (Step("searchapp.app.rank", "make_run"), Step("searchapp.ranking.ranker", "Ranker.rank"))
    assert Walk([], {imported}).not_handed_down() == [imported]
