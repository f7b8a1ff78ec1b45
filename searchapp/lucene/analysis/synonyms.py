"""Synonyms: rules in Solr's format, and the filters that apply them to a token stream."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import ClassVar

from searchapp.lucene.analysis.options import TRIMMED, Options
from searchapp.lucene.analysis.token_filters import AnyFilter, Span, StreamFilter, TokenRow, TokenStream
from searchapp.lucene.dataclass import dataclass

TermTuple = tuple[str, ...]


@dataclass(slots=True)
class _SynonymEntry:
    keep: bool = False
    phrases: dict[TermTuple, None] = field(default_factory=dict)


@dataclass(slots=True)
class _SynonymSlot:
    """The token at a position, if it is part of a match, and the words of synonyms at the position."""

    matched: bool = False
    keep: bool = False
    # Word; index of the token whose end offset it takes, None for the token of the slot; length in positions.
    words: list[tuple[str, int | None, int]] = field(default_factory=list)


class _SynonymRules:
    """The phrases of the rules and what replaces them."""

    def __init__(self, entries: Mapping[TermTuple, _SynonymEntry]) -> None:
        self.entries = entries
        self._lengths: dict[str, set[int]] = defaultdict(set)
        for phrase in entries:
            self._lengths[phrase[0]].add(len(phrase))

    def may_match(self, terms: Sequence[str]) -> bool:
        return not self._lengths.keys().isdisjoint(terms)

    def longest(self, terms: Sequence[str], start: int) -> TermTuple | None:
        """Return the longest phrase that begins at an index of the terms."""
        lengths = sorted(self._lengths.get(terms[start], ()), reverse=True)
        phrases = (tuple(terms[start : start + length]) for length in lengths)
        return next((phrase for phrase in phrases if phrase in self.entries), None)


class _RuleFilter(StreamFilter):
    """Replaces the tokens of a text in which a rule may match."""

    branches: ClassVar[bool] = True

    def __init__(self, rules: _SynonymRules) -> None:
        self._rules = rules

    def apply(self, tokens: TokenStream) -> TokenStream:
        return tokens.with_rows(self.rows(tokens)) if self._rules.may_match(tokens.terms) else tokens

    @abstractmethod
    def rows(self, tokens: TokenStream) -> list[TokenRow]:
        """Return the tokens with synonyms."""


class SynonymFilter(_RuleFilter):
    """Replace phrases by synonyms or add them, the longest phrase first (Lucene's `SynonymFilter`).

    The words of a synonym overlay the following tokens one by one, unlike `synonym_graph`.
    """

    def rows(self, tokens: TokenStream) -> list[TokenRow]:
        terms, spans = tokens.terms, tokens.spans or [(0, 0)] * len(tokens.terms)
        rows: list[TokenRow] = []
        position = previous = -1
        for i, slot in enumerate(self._slots(terms)):
            position += 1
            is_token = i < len(terms)
            if is_token and (slot.keep or not slot.matched):
                position += tokens.positions[i] - previous - 1  # a replaced token loses the gaps before it
                length = tokens.lengths[i] if tokens.lengths else 1
                marked = tokens.keywords is not None and tokens.keywords[i]
                rows.append((terms[i], position, length, spans[i], marked))
            elif not slot.words:
                position -= 1
            previous = tokens.positions[i] if is_token else previous
            start, end = spans[min(i, len(spans) - 1)]
            for word, last, length in slot.words:
                rows.append((word, position, length, (start, end if last is None else spans[last][1]), False))
        return rows

    def _slots(self, terms: Sequence[str]) -> list[_SynonymSlot]:
        slots = [_SynonymSlot() for _ in terms]
        start = 0
        while start < len(terms):
            phrase = self._rules.longest(terms, start)
            if phrase is not None:
                self._lay(slots, start, len(phrase), self._rules.entries[phrase])
            start += len(phrase) if phrase else 1
        return slots

    @staticmethod
    def _lay(slots: list[_SynonymSlot], start: int, length: int, entry: _SynonymEntry) -> None:
        for slot in slots[start : start + length]:
            slot.matched = True
            slot.keep = slot.keep or entry.keep
        for phrase in entry.phrases:
            slots += [_SynonymSlot() for _ in range(start + len(phrase) - len(slots))]
            if len(phrase) == 1:
                slots[start].words.append((phrase[0], start + length - 1, length if entry.keep else 1))
            else:
                for index, word in enumerate(phrase, start):
                    slots[index].words.append((word, None, 1))


class SynonymGraphFilter(_RuleFilter):
    """Add synonyms as side paths of a token graph, or replace phrases by them, the longest phrase first.

    The positions of a match and its synonyms are the nodes of all paths one after the other, so that a path of n
    words spans n - 1 nodes of its own. Gaps before and inside of a match are lost.

    Source: org.apache.lucene.analysis.synonym.SynonymGraphFilter
    """

    def rows(self, tokens: TokenStream) -> list[TokenRow]:
        originals = list(tokens.rows())
        rows: list[TokenRow] = []
        node, next_node = -1, 0
        index = 0
        while index < len(originals):
            phrase = self._rules.longest(tokens.terms, index)
            if phrase is None:
                term, position, length, span, marked = originals[index]
                node += position - (originals[index - 1][1] if index else -1)
                rows.append((term, node, length, span, marked))
                next_node = node + length
                index += 1
                continue
            entry = self._rules.entries[phrase]
            matched = originals[index : index + len(phrase)]
            span = matched[0][3][0], matched[-1][3][1]
            paths = [[(word, span, False) for word in words] for words in entry.phrases]
            if entry.keep:
                paths.append([(term, own_span, marked) for term, _, _, own_span, marked in matched])
            side_path_rows = list(_side_paths(paths, next_node))
            rows += side_path_rows
            node = side_path_rows[-1][1]
            next_node = node + 1
            index += len(phrase)
        return rows


def _side_paths(paths: Sequence[Sequence[tuple[str, Span, bool]]], start: int) -> Iterator[TokenRow]:
    """Yield the first words of all paths, and then the others path by path; all paths end at one node."""
    end = start + 1 + sum(len(path) - 1 for path in paths)
    firsts: list[TokenRow] = []
    others: list[TokenRow] = []
    inner = start  # the last node inside of a path
    for path in paths:
        nodes = [start, *range(inner + 1, inner + len(path)), end]
        inner += len(path) - 1
        rows = [
            (term, first, last - first, span, marked)
            for (term, span, marked), (first, last) in zip(path, pairwise(nodes), strict=True)
        ]
        firsts.append(rows[0])
        others += rows[1:]
    yield from (*firsts, *others)


_LINE_END = re.compile("\r\n|\r|\n")  # other line ends of Unicode are part of a rule

AnalyzesTerms = Callable[[str], list[tuple[str, int]]]


def synonym_filter(
    options: Options,
    filters: Sequence[AnyFilter],
    terms: AnalyzesTerms,
    make: Callable[[_SynonymRules], StreamFilter],
) -> StreamFilter:
    """Make a filter from rules in Solr's format: `couch, sofa` and `i-pod, i pod => ipod`.

    Args:
        options: settings.
        filters: preceding filters except those of synonyms.
        terms: returns terms and positions of a rule's text after these filters.
        make: `SynonymFilter` or `SynonymGraphFilter`.
    """
    options.refuse("synonyms_path", "synonyms_set", "updateable")
    if options.text("format", "solr") != "solr":
        raise options.not_supported(f"`format` {options.text('format')}")
    if any(isinstance(filter_, StreamFilter) for filter_ in filters):
        raise options.not_supported("a filter of several tokens (shingle, unique, n-grams) before it")
    expand, is_lenient = options.boolean("expand", True), options.boolean("lenient", False)
    entries: dict[TermTuple, _SynonymEntry] = defaultdict(_SynonymEntry)

    def phrase(text: str) -> TermTuple:
        """Return the terms of a phrase, none for an invalid one with `lenient`."""
        words = terms(re.sub(r"\\([\s\S])", r"\1", text).strip(TRIMMED))
        if words and all(word for word, _ in words) and [at for _, at in words] == list(range(len(words))):
            return tuple(word for word, _ in words)
        if is_lenient:
            return ()
        raise options.bad(f"the synonym {text.strip()!r} loses words in the analysis steps before the filter")

    for rule in options.strings("synonyms"):
        for line in _LINE_END.split(rule):
            if line and not line.startswith("#"):
                for source, target, keep in _synonym_pairs(line, expand, phrase, options):
                    if source and target:
                        entries[source].keep |= keep
                        entries[source].phrases[target] = None
    return make(_SynonymRules(dict(entries)))


def _synonym_pairs(
    line: str, expand: bool, phrase: Callable[[str], TermTuple], options: Options
) -> list[tuple[TermTuple, TermTuple, bool]]:
    """Return each phrase of a rule, a synonym of it, and whether the phrase stays."""
    sides = _split_unescaped(line, "=>")
    if len(sides) > 2:
        raise options.bad(f"the rule {line!r} has more than one =>")
    # An arrow without a phrase on both sides is text.
    phrases, *targets = (
        [phrase(text) for text in _split_unescaped(side, ",")]
        for side in (sides if len(sides) > 1 else [line])
    )
    if targets:
        return [(source, target, False) for source in phrases for target in targets[0]]
    if expand:
        numbered = list(enumerate(phrases))
        return [(source, target, True) for i, source in numbered for j, target in numbered if i != j]
    return [(source, phrases[0], False) for source in phrases]


def _split_unescaped(text: str, separator: str) -> list[str]:
    parts = [""]
    for piece in re.findall(rf"\\[\s\S]|{re.escape(separator)}|[\s\S]", text):
        if piece == separator:
            parts.append("")
        else:
            parts[-1] += piece
    return [part for part in parts if part]
