"""Scores of a reranker: shares above 0, ties by id, and the other documents below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.embeddings.reranker_source import RerankerSource
from searchapp.model import Hits, Topic
from searchapp.progress import no_progress
from searchapp.ranking.signals import reranker
from searchapp.ranking.signals.base import Inputs, Normalization, SignalRequest, ranked
from searchapp.ranking.signals.reranker import Reranker

NAMES = ("z", "b", "é", "a", "c", "d")


def order(
    monkeypatch: pytest.MonkeyPatch, scores: Sequence[float], normalization: Normalization
) -> list[str]:
    """Return the order of the documents `NAMES`, of which the first have these scores; "a" is not indexed."""
    known = {name: {"text": name} for name in NAMES if name != "a"}
    monkeypatch.setattr(
        reranker, "sources", lambda _index, ids: {id_: known[id_] for id_ in ids if id_ in known}
    )
    source = RerankerSource(name="m", folder=Path(), url="http://127.0.0.1:1", model="m")
    signal = Reranker("r", reranker="m", candidates=len(scores), source=source)

    def rerank(_source: object, batches: Sequence[Any], _advance: object) -> list[list[float]]:
        by_name = dict(zip(NAMES, scores, strict=False))
        return [[by_name[text] for text in texts] for _query, texts in batches]

    inputs: Any = Inputs(SimpleNamespace(), rerank=rerank)
    leaders = Hits(list(NAMES), [float(-rank) for rank in range(len(NAMES))])
    request = SignalRequest([Topic("t", "q")], 10, normalization, leaders=[leaders])
    (answer,) = signal.prepare(inputs).answers(request, no_progress)
    assert not isinstance(answer, Hits)
    assert normalization is Normalization.none or (min(answer.values()) > 0 and max(answer.values()) == 1)
    return list(ranked(answer, len(answer)).document_ids)


@pytest.mark.parametrize("normalization", [*Normalization])
@pytest.mark.parametrize("scores", [(1, 3, 3, 9), (-7.5, -2, -2, 0), (0, 0.5, 0.5, 0), (-3.0, 0, 0, -1)])
def test_ties_are_ordered_by_id_and_others_follow_in_their_order(
    monkeypatch: pytest.MonkeyPatch, scores: Sequence[float], normalization: Normalization
) -> None:
    # Not scored: "a", which is not indexed, "c" and "d".
    assert order(monkeypatch, scores, normalization) == ["b", "é", "z", "a", "c", "d"]


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=4, unique=True))
def test_every_range_of_scores_keeps_its_order(scores: list[int]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        ids = order(monkeypatch, scores, Normalization.max)
    scored = [name for name in NAMES[: len(scores)] if name != "a"]
    by_score = sorted(scored, key=lambda name: -scores[NAMES.index(name)])
    assert ids == by_score + [name for name in NAMES if name not in scored]
