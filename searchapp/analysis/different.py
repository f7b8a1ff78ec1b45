"""The different terms of a text and nothing else, which is what a query of many terms asks for.

Where an analyzer ends with a filter that leaves each term once, nobody needs the positions in between: tokens that are
the same before a chain of token filters are the same behind it, so the chain is asked once for all of them. That goes
for filters that look at one term at a time, and behind them at most a shingle filter that gives just pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import cast

from searchapp.analysis.char_filters import CharFilter
from searchapp.analysis.offsets import has_halves
from searchapp.analysis.shared import AnyFilter, Shared
from searchapp.analysis.stream_filters import ShingleFilter, UniqueFilter
from searchapp.analysis.tokenizers import Tokenizer
from searchapp.analysis.tokens import StreamFilter, TermFilter

Different = Callable[[str], tuple[str, ...] | None]
"""The terms of a text in the order in which they come first, each alone on its position; None for a text of which it
takes all steps to know them."""


def different_terms(
    shared: Shared, char_filters: Sequence[CharFilter], tokenizer: Tokenizer, filters: Sequence[AnyFilter]
) -> Different | None:
    """What gives the different terms of a text by these pieces, None where only all steps of an analysis do.

    No piece may leave half of a character.
    """
    *others, last = filters or (None,)
    if not isinstance(last, UniqueFilter) or last.only_on_same_position:
        return None
    pairs = others.pop() if others and isinstance(others[-1], ShingleFilter) else None
    if isinstance(pairs, ShingleFilter) and not pairs.gives_pairs:
        return None
    singles: list[TermFilter] = []
    for filter_ in others:
        if filter_ is None or isinstance(filter_, StreamFilter):
            return None
        singles.append(filter_)
    becomes = shared.chain(tuple(singles), keeps_marks=False).unmarked
    made: list[Callable[[str], list[str]]] = []

    def cut(text: str) -> list[str]:
        if not made:
            made.append(shared.terms(tuple(char_filters), tokenizer))
        return made[0](text)

    def terms(text: str) -> tuple[str, ...]:
        found = dict.fromkeys(map(becomes, dict.fromkeys(cut(text))))
        found.pop(None, None)
        return cast("tuple[str, ...]", tuple(found))

    if not isinstance(pairs, ShingleFilter):
        return terms
    join = pairs.separator.join

    def pairs_of_terms(text: str) -> tuple[str, ...] | None:
        found = list(map(becomes, cut(text)))
        if None in found:  # the filter puts its filler where a term was removed
            return None
        kept = cast("list[str]", found)
        if has_halves(kept):  # which may meet
            return None
        return tuple(dict.fromkeys(map(join, pairwise(kept))))

    return pairs_of_terms
