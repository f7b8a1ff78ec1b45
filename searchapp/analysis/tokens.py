"""Tokens on their way through an analyzer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Span = tuple[int, int]
"""Start and end of a token in the text, in UTF-16 code units."""


@dataclass(slots=True)
class Tokens:
    """A stream of tokens as parallel lists, which is much faster in Python than an object a token.

    `spans` is None when nobody asked for offsets. `keywords` says which tokens stemmers must leave alone (None:
    no token), `lengths` over how many positions a token reaches (None: one each). `trailing` is the number of
    positions after the last token whose tokens were removed.
    """

    terms: list[str]
    positions: list[int]
    spans: list[Span] | None = None
    keywords: list[bool] | None = None
    lengths: list[int] | None = None
    trailing: int = 0
    end_offset: int = 0

    @property
    def past_end(self) -> int:
        """The position after all tokens, those included that were removed at the end."""
        return (self.positions[-1] if self.positions else -1) + 1 + self.trailing

    def copy(self) -> Tokens:
        """The same stream, to which a filter may be applied; the lists are shared."""
        return Tokens(
            self.terms,
            self.positions,
            self.spans,
            self.keywords,
            self.lengths,
            self.trailing,
            self.end_offset,
        )

    def keep(self, chosen: Sequence[int]) -> Tokens:
        """The tokens at these indices; the positions of the others become holes."""
        last = self.positions[-1] if self.positions else -1
        kept = self.pick(chosen)
        kept.trailing += last - (kept.positions[-1] if kept.positions else -1)
        return kept

    def pick(self, chosen: Sequence[int]) -> Tokens:
        """The tokens at these indices, each as often as it is named, with the position it had."""
        return Tokens(
            [self.terms[i] for i in chosen],
            [self.positions[i] for i in chosen],
            None if self.spans is None else [self.spans[i] for i in chosen],
            None if self.keywords is None else [self.keywords[i] for i in chosen],
            None if self.lengths is None else [self.lengths[i] for i in chosen],
            self.trailing,
            self.end_offset,
        )


TermFilter = Callable[[str, bool], tuple[str, bool] | None]
"""Maps a term and whether it is a keyword to the same, changed; None removes the token."""


class StreamFilter(ABC):
    """A token filter that looks at more than one token at a time, or makes several of one."""

    @abstractmethod
    def apply(self, tokens: Tokens) -> Tokens:
        """The filtered tokens; the argument must not be used afterwards."""
