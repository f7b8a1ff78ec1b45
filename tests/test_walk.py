"""A `rank` request passes through the layers from top to bottom, as `python scripts/walk.py` reports."""

from __future__ import annotations

import pytest

from scripts.walk import MAX_MODULES, Step, Trace, goes_up, report, trace_rank


@pytest.mark.parametrize(("task", "recipe"), [("nlps", "neighbours"), ("checkthat", "neighbours")])
def test_a_rank_request_enters_few_modules_and_calls_no_higher_layer(task: str, recipe: str) -> None:
    trace = trace_rank(task, recipe)
    assert trace.paths
    for path in trace.paths:
        assert (path[0].module, path[-1].module) == ("searchapp.cli", "searchapp.engines.embedded")
        assert len({step.module for step in path}) <= MAX_MODULES
    assert not trace.upward_steps()
    assert trace.upward_calls, "the engine reads request bodies from an iterator of the signals"
    assert not trace.imported_calls()


def test_a_call_to_a_higher_layer_is_reported() -> None:
    engine, app = Step("searchapp.engines.base", "f"), Step("searchapp.app.rank", "make_run")
    assert goes_up(engine, app) and not goes_up(app, engine)
    trace = Trace([(app, engine, app)], {(engine, app)})
    assert trace.upward_steps() == [(engine, app)]
    assert "calls to higher layers on these paths: 1" in report(trace)
    imported = (Step("searchapp.app.rank", "make_run"), Step("searchapp.ranking.ranker", "Ranker.rank"))
    assert Trace([], {imported}).imported_calls() == [imported]
