r"""Words that a pattern has as alternatives, arranged by their first characters.

Python's `re` tries the alternatives of `the|there|which|...` one after the other at every place of a text. Arranged as
`the(?:|re)|which|...` most of them are left aside by one look at the next character. Two words can only both stand at
one place if one is the beginning of the other, so what is found stays the same, and what is tried next when the rest of
the pattern fails, as long as such words keep their order: `(?:the|there)` tries `the` first, `(?:there|the)` last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

FEWEST = 3
"""Words from which on a tree pays."""

# In the source that the translator writes, what is neither a letter nor a digit is an escape by its code.
_CHARACTER = r"(?:[A-Za-z0-9]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})"
_RUN = re.compile(rf"{_CHARACTER}+(?:\|{_CHARACTER}+){{{FEWEST - 1},}}(?=[|)]|\Z)")
_PIECE = re.compile(
    r"""(?P<open>\((?:\?(?:[:=!>]|<[=!]|-?i:|P<\w+>))?)
    | (?P<close>\))
    | (?P<or>\|)
    | \[(?:\\.|[^\]\\])*\]
    | \\.
    | .""",
    re.VERBOSE | re.DOTALL,
)


def with_word_trees(source: str, ignores_case: bool) -> str:
    """The source of a translated pattern, in which each run of words among alternatives is a tree.

    `ignores_case` says whether the pattern does so as a whole; parts may do so by themselves. ASCII letters alone have
    two cases, see `re.ASCII`.
    """
    out: list[str] = []
    scopes = [ignores_case]
    at = 0
    begins = True  # whether an alternative begins here
    while at < len(source):
        if begins and (run := _RUN.match(source, at)):
            words = [tuple(re.findall(_CHARACTER, word)) for word in run[0].split("|")]
            out.append(_Trees(scopes[-1]).source(words))
            at = run.end()
            begins = False
            continue
        piece = _PIECE.match(source, at)
        assert piece is not None  # a piece is any one character
        if piece["open"]:
            scopes.append({"(?i:": True, "(?-i:": False}.get(piece["open"], scopes[-1]))
        elif piece["close"]:
            scopes.pop()
        begins = bool(piece["open"] or piece["or"])
        out.append(piece[0])
        at = piece.end()
    return "".join(out)


Word = tuple[str, ...]
"""The sources of a word's characters."""


class _Trees:
    """Writes words as trees; letters of either case are written as sets, which are looked at before they are tried."""

    def __init__(self, ignores_case: bool) -> None:
        self._ignores_case = ignores_case

    def source(self, words: Iterable[Word]) -> str:
        tree = "|".join(self._alternatives(list(dict.fromkeys(words))))
        return f"(?-i:{tree})" if self._ignores_case else f"(?:{tree})"

    def _alternatives(self, words: Sequence[Word]) -> Iterator[str]:
        """The words by their first characters; what stands before and behind an empty word stays there."""
        groups: dict[str, list[Word]] = {}
        for word in words:
            if word:
                first = word[0].lower() if self._ignores_case and len(word[0]) == 1 else word[0]
                groups.setdefault(first, []).append(word[1:])
            else:
                yield from self._branches(groups)
                yield ""
                groups = {}
        yield from self._branches(groups)

    def _branches(self, groups: dict[str, list[Word]]) -> Iterator[str]:
        for first, rests in groups.items():
            alternatives = list(self._alternatives(rests))
            rest = alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"
            yield self._character(first) + rest

    def _character(self, character: str) -> str:
        both = self._ignores_case and character.isalpha()
        return f"[{character.upper()}{character}]" if both else character
