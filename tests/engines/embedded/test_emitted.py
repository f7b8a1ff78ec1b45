"""What analyzers make of texts is kept for those that were asked for last."""

from __future__ import annotations

import pytest

from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.search import highlight
from searchapp.lucene.search.highlight import TokenCache


def test_the_same_tokens_come_again_by_analyzer_and_text() -> None:
    registry = AnalysisRegistry({})
    emitted = TokenCache(registry)
    for _time in range(2):
        for name in ("standard", "english", "keyword"):
            for text in ("The prime numbers", "the primes"):
                assert emitted.tokens(name, text) == registry.analyzer(name).emitted(text)


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highlight, "CACHED_TOKENS", 100)
    registry = AnalysisRegistry({})
    emitted = TokenCache(registry)
    for number in range(200):
        text = f"word{number} and another"
        assert emitted.tokens("standard", text) == registry.analyzer("standard").emitted(text)
    long = "a long one " * 50
    assert len(emitted.tokens("standard", long)) == 150
    kept = emitted._texts.values()
    assert sum(len(tokens) + 1 for tokens in kept) == emitted._size <= 100 and len(kept) > 10
