"""The kinds of signals of which recipes are made, one module each.

The scores of engines are the same float32 numbers, whatever the engine; everything else is computed from them in double
and rounded once, so that rankings are the same too.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchapp.ranking.signals.base import Signal

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
}
"""The class of each kind, in the module of the kind's name, which is imported when a recipe uses it."""


def signal_class(kind: str) -> type[Signal]:
    """Return the class of a kind of signals."""
    signal: type[Signal] = getattr(import_module(f"{__name__}.{kind}"), KINDS[kind])
    return signal
