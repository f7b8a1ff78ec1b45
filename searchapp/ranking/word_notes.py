"""Explain which words of a query find nothing: those that the analyzer removes, and those that no document contains.

Only the first `MOST_WORDS` words of a query are checked, and only the first `MOST_SUGGESTIONS` unknown ones get a
suggestion. Suggestions are words of documents: the index knows only terms, most of them stemmed. Therefore the form of
a similar term is looked up in a few documents that contain it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple

from searchapp.engines.base import BEST_FIRST, Index
from searchapp.formats.problems import shown
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.search.spelling import edit_distance
from searchapp.ranking.highlighting import TextAnalyzer
from searchapp.ranking.query_language import (
    Atom,
    FieldKind,
    FieldQuery,
    QueryGroup,
    QueryPhrase,
    QueryPrefix,
    QueryWord,
    SearchFields,
)

MOST_WORDS = 50
MOST_SUGGESTIONS = 3

# How many stop words a sentence lists.
LISTED_WORDS = 4

# In characters: a longer word is not checked.
LONGEST_WORD = 200

# How many similar terms an engine returns for an unknown one.
CANDIDATES = 3

# How many documents are read to find the form of a term, and how many characters of each.
READ_DOCUMENTS = 5
READ_CHARACTERS = 4_000


class WordState(StrEnum):
    """Why a word finds nothing."""

    stop_word = "stop word"
    ignored = "ignored"  # the analyzer removes it for another reason
    unknown = "unknown"  # no document contains it


@dataclass(frozen=True, slots=True)
class WordNote:
    """A word of a query that finds nothing."""

    word: str
    state: WordState
    start: int  # the range of its characters in the query
    end: int
    suggestion: str = ""  # a similar word of a document, for an unknown word

    def holds_in(self, text: str) -> bool:
        """Return whether another query has the word at the same place."""
        return text[self.start : self.end] == self.word and not text[self.end : self.end + 1].isalnum()


def corrected(text: str, note: WordNote, notes: Sequence[WordNote]) -> tuple[str, int, tuple[WordNote, ...]]:
    """Replace the word of a note by its suggestion.

    Returns the new query, the index after the word, and the other notes with new places.
    """
    shift = len(note.suggestion) - (note.end - note.start)
    others = tuple(
        replace(other, start=other.start + shift, end=other.end + shift) if other.start >= note.end else other
        for other in notes
        if other is not note
    )
    return text[: note.start] + note.suggestion + text[note.end :], note.end + shift, others


def word_sentences(notes: Sequence[WordNote], accept: str = "") -> list[str]:
    """Return sentences about words, those with a suggestion first.

    `accept` names the key that accepts the first suggestion.

    >>> word_sentences([WordNote("let", WordState.stop_word, 0, 3), WordNote("rng", WordState.unknown, 4, 7, "ring")])
    ['rng: in no document. Did you mean ring?', "'let' is a stop word"]
    """
    sentences: list[str] = []
    for note in sorted(notes, key=lambda note: not note.suggestion):
        if note.state is WordState.unknown:
            meant = f". Did you mean {note.suggestion}?" if note.suggestion else ""
            key = f" {accept} accepts" if accept and note.suggestion and not sentences else ""
            sentences.append(f"{shown(note.word)}: in no document{meant}{key}")
    for state, one, several in (
        (WordState.stop_word, "is a stop word", "are stop words"),
        (WordState.ignored, "is ignored by the analyzer", "are ignored by the analyzer"),
    ):
        words = [f"'{shown(note.word)}'" for note in notes if note.state is state]
        if words:
            more = f" and {len(words) - LISTED_WORDS} more" if len(words) > LISTED_WORDS else ""
            listed = ", ".join(words[:LISTED_WORDS])
            sentences.append(f"{listed}{more} {one if len(words) == 1 else several}")
    return sentences


class _Word(NamedTuple):
    text: str
    start: int
    fields: Sequence[str]  # the text fields in which it is searched for


# The terms of a part of a word, by field.
_Terms = set[tuple[str, str]]


class WordChecker:
    """Checks the words of queries in the documents of one version of an index."""

    def __init__(self, index: Index, analyzed: TextAnalyzer, fields: SearchFields) -> None:
        self._index = index
        self._analyzed = analyzed
        self._fields = fields

    def notes(self, query: QueryGroup, text: str) -> tuple[WordNote, ...]:
        """Return the notes on a query, whose `text` was parsed, in the order of its words.

        Raises:
            EngineError: the engine failed, or rejected a word.
        """
        notes: list[WordNote] = []
        parts: list[tuple[_Word, dict[tuple[int, int], _Terms]]] = []
        for word in self._distinct_words(query, text):
            terms = self._terms(word)
            if terms:
                parts.append((word, terms))
            elif any(map(str.isalnum, word.text)) or word.text == text.strip():
                state = WordState.stop_word if self._is_stop_word(word) else WordState.ignored
                notes.append(WordNote(word.text, state, word.start, word.start + len(word.text)))
        notes += self._unknown(parts)
        return tuple(sorted(notes, key=lambda note: note.start))

    def _distinct_words(self, query: QueryGroup, text: str) -> Iterator[_Word]:
        seen: set[tuple[str, Sequence[str]]] = set()
        for word in _words(query, self._fields):
            # A backslash in a group is not part of the parsed word, so that later characters are at other places.
            start = text.find(word.text, word.start)
            if (word.text, word.fields) in seen or start < 0 or len(word.text) > LONGEST_WORD:
                continue
            seen.add((word.text, word.fields))
            yield word._replace(start=start)
            if len(seen) == MOST_WORDS:
                return

    def _terms(self, word: _Word) -> dict[tuple[int, int], _Terms]:
        """Return the terms of each part of a word, by the range of characters in the word."""
        terms: defaultdict[tuple[int, int], _Terms] = defaultdict(set)
        has_pairs = max(word.text) > "\uffff"  # offsets of tokens count these characters twice
        for field in word.fields:
            for token in self._analyzed.tokens(self._fields.analyzers[field], word.text):
                span = (0, len(word.text)) if has_pairs else (token.start, token.end)
                terms[span].add((field, token.term))
        return terms

    def _is_stop_word(self, word: _Word) -> bool:
        return all(
            self._analyzed.removes_stop_word(self._fields.analyzers[field], word.text)
            for field in word.fields
        )

    def _unknown(self, parts: Sequence[tuple[_Word, Mapping[tuple[int, int], _Terms]]]) -> Iterator[WordNote]:
        by_field: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for _word, terms in parts:
            for field, term in (pair for pairs in terms.values() for pair in sorted(pairs)):
                by_field[field][term] = None
        counts = self._index.frequencies({field: list(terms) for field, terms in by_field.items()})
        unknown: list[tuple[WordNote, _Terms]] = []
        for word, terms in parts:
            known_spans = [
                span for span, pairs in terms.items() if any(counts[field][term] for field, term in pairs)
            ]
            for (start, end), pairs in terms.items():
                # Some analyzers keep a word with hyphens and its parts.
                if not any(start < other_end and other < end for other, other_end in known_spans):
                    note = WordNote(
                        word.text[start:end], WordState.unknown, word.start + start, word.start + end
                    )
                    unknown.append((note, pairs))
        suggestions = self._suggestions(unknown[:MOST_SUGGESTIONS])
        for (note, _pairs), suggestion in zip(unknown, suggestions, strict=False):
            yield replace(note, suggestion=suggestion)
        yield from (note for note, _pairs in unknown[MOST_SUGGESTIONS:])

    def _suggestions(self, unknown: Sequence[tuple[WordNote, _Terms]]) -> Iterator[str]:
        """Yield a similar word of a document for each unknown word, or an empty string."""
        by_field: defaultdict[str, list[str]] = defaultdict(list)
        for _note, pairs in unknown:
            for field, term in sorted(pairs):
                by_field[field].append(term)
        similar = self._index.similar_terms(by_field, CANDIDATES) if unknown else {}
        for note, pairs in unknown:
            candidates = [
                (other.edits, -other.documents, other.term, field)
                for field, term in pairs
                for other in similar[field][term]
            ]
            forms = (self._form(field, term, note.word) for *_order, term, field in sorted(candidates))
            yield next((form for form in forms if form), "")

    def _form(self, field: str, term: str, typed: str) -> str:
        """Return the word of a document whose term is `term`, preferably one that resembles the typed word."""
        body: dict[str, Any] = {
            "query": {"term": {field: {"value": term}}},
            "size": READ_DOCUMENTS,
            "sort": BEST_FIRST,
            "_source": True,
        }
        forms: Counter[str] = Counter()
        for hit in self._index.find(body):
            text = str(hit.source.get(field, ""))[:READ_CHARACTERS]
            encoded = text.encode("utf-16-le")  # offsets of tokens count its code units
            for token in self._analyzed.tokens(self._fields.indexed_by[field], text):
                if token.term == term:
                    form = encoded[2 * token.start : 2 * token.end].decode("utf-16-le", "replace")
                    forms[form.lower() if typed.islower() else form] += 1
        forms[term] += 0
        analyzer = self._fields.analyzers[field]
        usable = [
            form
            for form in forms
            if form.isprintable()
            and " " not in form
            and [token.term for token in self._analyzed.tokens(analyzer, form)] == [term]
        ]
        return min(usable, key=lambda form: (edit_distance(typed, form), -forms[form], form), default="")


def _words(atom: Atom, fields: SearchFields, named: Sequence[str] | None = None) -> Iterator[_Word]:
    match atom:
        case QueryGroup(clauses):
            for clause in clauses:
                yield from _words(clause.atom, fields, named)
        case FieldQuery(name, inner):
            if fields.kinds[name] is FieldKind.text:
                yield from _words(inner, fields, (name,))
        case QueryWord(text) | QueryPhrase(text):
            searched = fields.searched if named is None else named
            for word in re.finditer(r"\S+", text):
                yield _Word(word[0], atom.at + word.start(), searched)
        case QueryPrefix():
            return
