"""What is made of documents that nobody has judged."""

from __future__ import annotations

from enum import StrEnum


class Unjudged(StrEnum):
    """What a retrieved document that nobody has judged counts as.

    `nonrelevant`: as one without relevance. `condensed`: as if it had not been retrieved. `bounds`: as both extremes,
    without relevance and with the best grade, which gives two figures.
    """

    nonrelevant = "nonrelevant"
    condensed = "condensed"
    bounds = "bounds"
