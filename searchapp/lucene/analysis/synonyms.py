"""The `synonym` token filter: words and phrases, replaced by or joined by others (Lucene's `SynonymFilter`).

The rules are in Solr's format: `couch, sofa` for words that mean the same, `i-pod, i pod => ipod` for one
direction. They are analysed by the pieces that stand before the filter, as the text will be.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from searchapp.lucene.analysis.analyzer import Analyzer
from searchapp.lucene.analysis.options import TRIMMED, Options
from searchapp.lucene.analysis.token_filters import Span, StreamFilter, Tokens

Phrase = tuple[str, ...]

_LINE_END = re.compile("\r\n|\r|\n")
"""What ends a rule: the other line ends of Unicode are characters of one."""


@dataclass(slots=True)
class _Entry:
    """What a phrase is replaced by; `keep` says whether it stays itself."""

    keep: bool = False
    phrases: dict[Phrase, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Slot:
    """What stands at the place of one token: the token itself or not, and words of synonyms.

    A word comes with the index of the token whose end it shares (None: of the token at its own place) and its
    length in positions.
    """

    matched: bool = False
    keep: bool = False
    words: list[tuple[str, int | None, int]] = field(default_factory=list)


class SynonymFilter(StreamFilter):
    """At each place the longest phrase that has synonyms counts, and the search goes on after it.

    Synonyms of several words are laid over the tokens that follow, word by word, which is how this filter
    (other than `synonym_graph`) has always done it.
    """

    branches: ClassVar[bool] = True

    def __init__(self, entries: dict[Phrase, _Entry]) -> None:
        self._entries = entries
        self._lengths: dict[str, list[int]] = defaultdict(list)
        for phrase in sorted(entries, key=len, reverse=True):
            if len(phrase) not in self._lengths[phrase[0]]:
                self._lengths[phrase[0]].append(len(phrase))

    def apply(self, tokens: Tokens) -> Tokens:
        if not any(term in self._lengths for term in tokens.terms):
            return tokens
        return _Writer(tokens).write(self._slots(tokens.terms))

    def _slots(self, terms: Sequence[str]) -> list[_Slot]:
        slots: list[_Slot] = [_Slot() for _ in terms]
        at = 0
        while at < len(terms):
            length = self._longest(terms, at)
            if length:
                self._lay(slots, at, length, self._entries[tuple(terms[at : at + length])])
            at += length or 1
        return slots

    def _longest(self, terms: Sequence[str], at: int) -> int:
        for length in self._lengths.get(terms[at], ()):
            if at + length <= len(terms) and tuple(terms[at : at + length]) in self._entries:
                return length
        return 0

    @staticmethod
    def _lay(slots: list[_Slot], at: int, length: int, entry: _Entry) -> None:
        for slot in slots[at : at + length]:
            slot.matched = True
            slot.keep = slot.keep or entry.keep
        for phrase in entry.phrases:
            slots += [_Slot() for _ in range(at + len(phrase) - len(slots))]
            if len(phrase) == 1:
                slots[at].words.append((phrase[0], at + length - 1, length if entry.keep else 1))
            else:
                for place, word in enumerate(phrase, at):
                    slots[place].words.append((word, None, 1))


class _Writer:
    """Turns slots into tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._in = tokens
        spans: list[Span] | None = None if tokens.spans is None else []
        self._out = Tokens([], [], spans, [], [], tokens.trailing, tokens.end_offset)
        self._position = -1

    def write(self, slots: Iterable[_Slot]) -> Tokens:
        before = -1
        for i, slot in enumerate(slots):
            step = 1
            if i < len(self._in.terms):
                step, before = self._in.positions[i] - before, self._in.positions[i]
                if slot.keep or not slot.matched:
                    self._original(i, step)
                    step = 0
                else:
                    step = 1  # the holes before a token go with it
            for word, last, length in slot.words:
                self._synonym(i, word, last, length, step)
                step = 0
        return self._out

    def _original(self, i: int, step: int) -> None:
        tokens = self._in
        self._add(tokens.terms[i], step, tokens.lengths[i] if tokens.lengths else 1)
        if self._out.spans is not None and tokens.spans is not None:
            self._out.spans.append(tokens.spans[i])
        if self._out.keywords is not None:
            self._out.keywords.append(tokens.keywords is not None and tokens.keywords[i])

    def _synonym(self, i: int, word: str, last: int | None, length: int, step: int) -> None:
        self._add(word, step, length)
        if self._out.spans is not None and self._in.spans is not None:
            here = self._in.spans[min(i, len(self._in.spans) - 1)]
            self._out.spans.append((here[0], here[1] if last is None else self._in.spans[last][1]))
        if self._out.keywords is not None:
            self._out.keywords.append(False)

    def _add(self, term: str, step: int, length: int) -> None:
        self._position += step
        self._out.terms.append(term)
        self._out.positions.append(self._position)
        if self._out.lengths is not None:
            self._out.lengths.append(length)


def synonym_filter(options: Options, before: Analyzer) -> StreamFilter:
    """A filter of type `synonym`, in an analyzer whose other pieces so far are `before`."""
    options.refuse("synonyms_path", "synonyms_set", "updateable")
    if options.text("format", "solr") != "solr":
        raise options.not_supported(f"`format` {options.text('format')}")
    if options.boolean("lenient", False):
        raise options.not_supported("`lenient`")
    if not before.keeps_tokens_apart:
        raise options.not_supported(
            "a filter of several tokens (shingle, unique, synonym, n-grams) before it"
        )
    expand = options.boolean("expand", True)
    entries: dict[Phrase, _Entry] = defaultdict(_Entry)
    for rule in options.strings("synonyms"):
        for line in _LINE_END.split(rule):
            if line and not line.startswith("#"):
                _add_rule(entries, line, expand, before, options)
    return SynonymFilter(dict(entries))


def _add_rule(
    entries: dict[Phrase, _Entry], line: str, expand: bool, before: Analyzer, options: Options
) -> None:
    sides = _split(line, "=>")
    if len(sides) > 2:
        raise options.bad(f"the rule {line!r} has more than one =>")
    phrases = [[_phrase(text, before, options) for text in _split(side, ",")] for side in sides]
    if len(sides) == 2:
        pairs = [(source, target, False) for source in phrases[0] for target in phrases[1]]
    elif expand:
        places = range(len(phrases[0]))
        pairs = [(phrases[0][i], phrases[0][j], True) for i in places for j in places if i != j]
    else:
        pairs = [(source, phrases[0][0], False) for source in phrases[0]]
    for source, target, keep in pairs:
        entries[source].keep |= keep
        entries[source].phrases[target] = None


def _split(text: str, separator: str) -> list[str]:
    """The parts between separators that no backslash precedes; empty ones don't count."""
    parts = [""]
    for piece in re.findall(rf"\\[\s\S]|{re.escape(separator)}|[\s\S]", text):
        if piece == separator:
            parts.append("")
        else:
            parts[-1] += piece
    return [part for part in parts if part]


def _phrase(text: str, before: Analyzer, options: Options) -> Phrase:
    text = re.sub(r"\\([\s\S])", r"\1", text).strip(TRIMMED)
    terms = before.terms(text)
    if not terms or not all(term for term, _ in terms) or [at for _, at in terms] != list(range(len(terms))):
        raise options.bad(f"the synonym {text!r} loses words in the analyzer before the filter")
    return tuple(term for term, _ in terms)
