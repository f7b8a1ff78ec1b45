"""The kinds of signals, one module each.

Engines return float32 scores; signals compute with them in double precision and round once, so that rankings are
reproducible.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchapp.ranking.signals.base import Signal

# The class of each kind, in the module of the kind's name, which is imported when a recipe uses it.
KINDS: Mapping[str, str] = {
    "direct": "Direct",
    "neighbours": "Neighbours",
    "labelled": "Labelled",
    "cocitation": "Cocitation",
    "popular": "Popular",
    "prior": "Prior",
    "cosine": "Cosine",
    "power": "ExplanatoryPower",
    "expansion": "Expansion",
    "profiles": "Profiles",
    "latent": "Latent",
    "tfidf": "TfIdf",
    "multiclass": "MultiClass",
    "multilabel": "MultiLabel",
    "lines": "Lines",
    "metric": "LearnedMetric",
    "run": "RunSignal",
    "vectors": "VectorSignal",
    "transformer": "TransformerSignal",
    "reranker": "Reranker",
}


def signal_class(kind: str) -> type[Signal]:
    """Return the class of a kind of signals."""
    signal: type[Signal] = getattr(import_module(f"{__name__}.{kind}"), KINDS[kind])
    return signal
