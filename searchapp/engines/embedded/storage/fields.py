"""The values of one field in, its files out."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np

from searchapp.engines.embedded.schema import FLOATS, Analyzers, Field
from searchapp.engines.embedded.similarity import BM25, FieldStatistics, encode_lengths
from searchapp.engines.embedded.storage import arrays, impacts
from searchapp.engines.embedded.storage.carried import OlderField
from searchapp.engines.embedded.storage.inverter import Inverter
from searchapp.engines.embedded.storage.joined import Side, join_runs
from searchapp.engines.embedded.storage.layout import FieldSummary
from searchapp.engines.embedded.storage.merger import merge
from searchapp.engines.embedded.storage.packed import Int32s, PackedTokens
from searchapp.engines.embedded.values import indexed_text, number

Entry = Any
"""What a field keeps of a document, see `entry` of its writer; None when the document has no value."""

Packed = Any
"""What a field keeps of a batch of documents, see `packed` of its writer."""

Joined = tuple[list[str], list[int]]
"""Terms and positions of a document's texts."""

LONGEST_TERM = 32766
"""Bytes of the longest term that Lucene takes; it refuses the document otherwise."""

LAST_POSITION = 2**31 - 1 - 128
"""The last position at which Lucene takes a term."""


class FieldWriter:
    """Takes the values of one field and writes its files at the end."""

    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        self.field = field
        self._prefix = prefix
        self._folder = folder
        self._scratch = scratch
        self._present = array("i")

    def entry(self, values: list[Any]) -> Entry:
        """What is kept of the values of a document: their tokens, terms or numbers; None for nothing.

        Raises:
            TypeError, OverflowError: a value is not of the field's type.
        """
        raise NotImplementedError

    def packed(self, entries: list[tuple[int, Any]]) -> Packed:
        """The entries of documents, which come with their places in a batch, as they are sent and added."""
        return entries

    def add(self, first: int, packed: Packed) -> None:
        """Keep what was packed of a batch whose first document has this number."""
        raise NotImplementedError

    def finish(self, documents: int, older: OlderField | None) -> FieldSummary:
        """Write the files of the field for so many documents, with those of `older` that are carried over."""
        raise NotImplementedError

    def _finish_present(self, older: OlderField | None) -> int:
        """Write which documents have a value; returns how many."""
        present = np.frombuffer(self._present, np.int32)
        if older:
            present = older.documents(older.column("present").all(), present)
        self._save("present", present)
        return len(present)

    def _merge(self, inverter: Inverter, older: OlderField | None, *, positional: bool) -> tuple[int, int]:
        """Write the postings; returns the number of postings and that of tokens."""
        if older is None:
            return merge(inverter.runs(), self._folder, self._prefix, positional=positional)
        side, added = Side.of_older(older, positional=positional), older.carried.added
        return join_runs(side, inverter.runs(), added, self._scratch, self._folder, self._prefix)

    def _save(self, part: str, values: np.ndarray[Any, Any]) -> None:
        arrays.save(self._folder, f"{self._prefix}.{part}", values)


class NotIndexable(Exception):
    """The document at a place of a batch can't be indexed."""

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem


class _TextWriter(FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path, analyzers: Analyzers) -> None:
        super().__init__(field, prefix, folder, scratch)
        assert field.analyzer is not None
        self._analyzer = analyzers.analyzer(field.analyzer)
        self._inverter = Inverter(scratch, prefix)
        self._lengths = array("i")

    def entry(self, values: list[Any]) -> list[str] | Joined:
        """The texts; their tokens, if these are not found for many documents at once."""
        field = self.field
        texts = [value if isinstance(value, str) else indexed_text(value, field) for value in values]
        return texts if self._analyzer.bulk else self._joined(texts)

    def _joined(self, texts: list[str]) -> Joined:
        terms, positions = self._analyzer.joined(texts)
        if positions and positions[-1] > LAST_POSITION:
            raise OverflowError(f"{self.field.name} has a term at a position beyond {LAST_POSITION:,}")
        return terms, positions

    def packed(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Int32s]:
        """The tokens, and the length of the field in each document: stacked tokens do not make it longer."""
        tokens, lengths = self._in_bulk(entries) or self._one_by_one(entries)
        _refuse_immense(tokens, self.field)
        return tokens, lengths

    def _in_bulk(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Int32s] | None:
        bulk = self._analyzer.bulk
        if bulk is None or any(len(texts) != 1 for _, texts in entries):
            return None
        found = bulk.tokens([texts[0] for _, texts in entries])
        if found is None:
            return None
        documents = np.array([place for place, _ in entries], np.int32)
        tokens = PackedTokens(found.vocabulary, found.terms, found.positions, documents, found.counts)
        return tokens, found.counts

    def _one_by_one(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Int32s]:
        documents: list[tuple[int, list[str], list[int]]] = []
        for place, entry in entries:
            try:
                terms, positions = self._joined(entry) if self._analyzer.bulk else entry
            except OverflowError as error:
                raise NotIndexable(place, str(error)) from error
            documents.append((place, terms, positions))
        lengths = [len(set(positions)) for _place, _terms, positions in documents]
        return PackedTokens.of(documents), np.array(lengths, np.int32)

    def add(self, first: int, packed: tuple[PackedTokens, Int32s]) -> None:
        tokens, lengths = packed
        self._present.frombytes((tokens.documents + np.int32(first)).tobytes())
        self._lengths.frombytes(lengths.tobytes())
        self._inverter.add(tokens, first)

    def finish(self, documents: int, older: OlderField | None) -> FieldSummary:
        self._finish_present(older)
        norms = np.zeros(documents, np.uint8)
        present = np.frombuffer(self._present, np.int32)
        places = older.carried.added[present] if older else present
        norms[places] = encode_lengths(np.frombuffer(self._lengths, np.int32).astype(np.int64))
        if older:
            older.copy("norms", norms)
        self._save("norms", norms)
        _postings, tokens = self._merge(self._inverter, older, positional=True)
        # Only the length 0 has the code 0.
        summary = FieldSummary(self._prefix, int(np.count_nonzero(norms)), tokens)
        statistics = FieldStatistics(summary.documents, summary.tokens)
        inverses = (self.field.similarity or BM25()).norm_inverses(statistics)
        impacts.write(self._folder, self._prefix, norms, inverses)
        return summary


class _KeywordWriter(FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder, scratch)
        self._inverter = Inverter(scratch, prefix)

    def entry(self, values: list[Any]) -> list[str]:
        """The terms."""
        return [indexed_text(value, self.field) for value in values]

    def packed(self, entries: list[tuple[int, list[str]]]) -> PackedTokens:
        tokens = PackedTokens.of((place, terms, range(len(terms))) for place, terms in entries)
        _refuse_immense(tokens, self.field)
        return tokens

    def add(self, first: int, packed: PackedTokens) -> None:
        self._present.frombytes((packed.documents + np.int32(first)).tobytes())
        self._inverter.add(packed, first)

    def finish(self, documents: int, older: OlderField | None) -> FieldSummary:  # noqa: ARG002
        present = self._finish_present(older)
        postings, _tokens = self._merge(self._inverter, older, positional=False)
        return FieldSummary(self._prefix, present, postings)


class _NumberWriter(FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder, scratch)
        self._values = array("d" if field.type in FLOATS else "q")
        self._documents = array("i")

    def entry(self, values: list[Any]) -> list[Any] | None:
        """The numbers."""
        numbers = [number(value, self.field) for value in values]
        return [one for one in numbers if one is not None] or None

    def add(self, first: int, packed: list[tuple[int, list[Any]]]) -> None:
        for place, numbers in packed:
            self._present.append(first + place)
            self._values.extend(numbers)
            self._documents.extend([first + place] * len(numbers))

    def finish(self, documents: int, older: OlderField | None) -> FieldSummary:  # noqa: ARG002
        values = np.frombuffer(self._values, self._values.typecode)
        of_values = np.frombuffer(self._documents, np.int32)
        if older:
            values, of_values = older.numbers(values, of_values)
        order = np.lexsort((of_values, ~np.signbit(values), values))  # -0.0 before 0.0, as Lucene has them
        self._save("values", values[order])
        self._save("documents", of_values[order])
        present = self._finish_present(older)
        return FieldSummary(self._prefix, present, present)


def field_writer(field: Field, prefix: str, folder: Path, scratch: Path, analyzers: Analyzers) -> FieldWriter:
    """The writer of a field; what it puts aside on the way goes to `scratch`."""
    if field.is_text:
        return _TextWriter(field, prefix, folder, scratch, analyzers)
    if field.is_number:
        return _NumberWriter(field, prefix, folder, scratch)
    return _KeywordWriter(field, prefix, folder, scratch)


def _refuse_immense(tokens: PackedTokens, field: Field) -> None:
    if max(map(len, tokens.vocabulary), default=0) * 4 <= LONGEST_TERM:
        return
    for rank, term in enumerate(tokens.vocabulary):
        if len(term.encode(errors="surrogatepass")) > LONGEST_TERM:
            at = int(np.flatnonzero(tokens.terms == rank)[0])
            place = int(np.searchsorted(np.cumsum(tokens.counts), at, "right"))
            problem = f"{field.name} has a term of more than {LONGEST_TERM} bytes"
            raise NotIndexable(int(tokens.documents[place]), problem)
