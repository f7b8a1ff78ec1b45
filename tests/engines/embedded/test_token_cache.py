"""The cache keeps the tokens of the most recently analyzed texts."""

from __future__ import annotations

import pytest

from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.search import highlight
from searchapp.lucene.search.highlight import TokenCache


def test_cached_tokens_equal_those_of_the_analyzer() -> None:
    registry = AnalysisRegistry({})
    cache = TokenCache(registry)
    for _time in range(2):
        for name in ("standard", "english", "keyword"):
            for text in ("The prime numbers", "the primes"):
                assert cache.tokens(name, text) == registry.analyzer(name).emitted(text)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highlight, "CACHED_TOKENS", 100)
    registry = AnalysisRegistry({})
    cache = TokenCache(registry)
    for number in range(200):
        text = f"word{number} and another"
        assert cache.tokens("standard", text) == registry.analyzer("standard").emitted(text)
    long = "a long one " * 50
    assert len(cache.tokens("standard", long)[0]) == 150
    texts = cache._texts.values()
    assert sum(len(tokens) + 1 for tokens, _end in texts) == cache._size <= 100 and len(texts) > 10
