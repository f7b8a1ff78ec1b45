"""Writer of a version: documents in, a segment and its manifest out, with a writer per field."""

from __future__ import annotations

import math
import shutil
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from itertools import compress, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from searchapp.lucene import analysis
from searchapp.lucene.analysis import AnalysisRegistry
from searchapp.lucene.errors import IndexReplaced, PatternTimeout, Refused, invalid
from searchapp.lucene.index import arrays, impacts
from searchapp.lucene.index.arrays import Numbers, describe_file
from searchapp.lucene.index.documents import DocumentWriter, stored_text
from searchapp.lucene.index.dynamic import Added, added_fields, completed
from searchapp.lucene.index.layout import (
    CHECKSUMS,
    Advance,
    FieldSummary,
    IndexManifest,
    KeptSegment,
    NestedSummary,
    no_progress,
)
from searchapp.lucene.index.mapping import (
    DOCS,
    FLOATS,
    FREQUENCIES,
    ID,
    KEYWORD,
    ROOT,
    TEXT,
    BlockMember,
    Field,
    Schema,
    indexed_text,
    number,
    points,
    range_of,
    vector_of,
)
from searchapp.lucene.index.postings import Inverter, PackedTokens, merge, open_postings
from searchapp.lucene.index.segments import (
    DIGESTS,
    LiveDocuments,
    LiveNested,
    SegmentPlan,
    digest_of,
    duplicate_id,
)
from searchapp.lucene.index.term_dictionary import Terms
from searchapp.lucene.index.versions import IndexFolder
from searchapp.lucene.records import Document
from searchapp.lucene.similarity import BM25, FieldStatistics, encode_lengths
from searchapp.lucene.vectors import VECTORS

# Like `map`, in order, possibly in several processes.
ParallelMap = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

Entry = Any  # the values of a field in a document, see `FieldWriter.entry`

Packed = Any  # the values of a field in a batch of documents, see `FieldWriter.pack`

Indexed = tuple[str, dict[str, Any]]  # id and source of a document


class PackedMembers(NamedTuple):
    """The documents of a batch, or their nested objects of one path, numbered from 0."""

    fields: list[Packed]
    size: int
    parents: list[int]  # the number of each nested object's parent in the batch
    places: list[int]  # the place of each in its document's block


LONGEST_TERM = 32766  # maximum bytes of a term in Lucene

LAST_POSITION = 2**31 - 1 - 128  # maximum position of a term in Lucene

LONGEST_ID = 512  # maximum bytes of an id in Elasticsearch

SCRATCH = "scratch"
# CPU seconds of analysis in this process before others start, which inherit the terms that it knows by then.
SECONDS_ALONE = 1.0

# Until then batches grow from `FIRST_DOCUMENTS`, because each repeats the terms of others. Those of slow analyzers
# remain small, so that few documents occupy all processes too. A batch ends at `MOST_DOCUMENTS` or `MOST_CHARACTERS`.
FIRST_DOCUMENTS = 256
MOST_DOCUMENTS = 4096
MOST_CHARACTERS = 1 << 20
GROWTH = 4

COPIED_DOCUMENTS = 10_000  # documents of a merged segment copied between progress reports


def read_mapping(mapping: Mapping[str, Any]) -> tuple[Schema, AnalysisRegistry]:
    """Return the schema and the analyzers of a mapping.

    Raises:
        LuceneError: the mapping is invalid or unsupported; a line for each reason.
    """
    schema, problems = Schema.read(mapping)
    analyzers: AnalysisRegistry | None = None
    with problems.at():
        analyzers = AnalysisRegistry(schema.analysis, schema.limits)
    if analyzers is None:  # the names of analyzers are still checked
        defined = {kind: schema.analysis.get(kind, {}) for kind in ("analyzer", "normalizer")}
        analyzers = AnalysisRegistry(
            {
                kind: {name: {} if kind == "normalizer" else {"type": "standard"} for name in section}
                for kind, section in defined.items()
                if isinstance(section, Mapping)
            }
        )
    for field in (*schema.fields.values(), *schema.unindexed.values()):
        for name in {field.analyzer, field.search_analyzer, field.quote_analyzer} - {None}:
            with problems.at(field.path):
                (analyzers.named if field.is_text else analyzers.analyzer)(str(name))
    problems.raise_if_any()
    return schema, analyzers


def write_version(
    folder: IndexFolder,
    mapping: Mapping[str, Any],
    documents: Iterable[Document],
    total: int,
    user_data: Callable[[str], Mapping[str, Any]] = lambda _version: {},
    plan: SegmentPlan | None = None,
    advance: Advance = no_progress,
    parallel_map: ParallelMap = map,
) -> None:
    """Write a new version of an index, and make it live.

    `user_data` maps the name of the version to the data stored with it. `documents` are iterated twice if the mapping
    is dynamic. See `IndexWriter.write`.

    Raises:
        LuceneError: the mapping or a document is rejected, or another process writes the index.
        IndexReplaced: the plan is for another version than the live one.
        OSError: writing failed, for example on a full disk.
    """
    live_name = folder.live_name()
    schema, analyzers = read_mapping(mapping)
    if plan and plan.version != live_name:
        raise IndexReplaced(f"{folder.folder.name}-{plan.version}")
    added = plan.manifest.added if plan else added_fields(mapping, documents)
    if added:
        schema, analyzers = read_mapping(completed(mapping, added))
    with folder.building(live_name) as version:
        writer = IndexWriter(version, mapping, schema, analyzers, plan, added)
        writer.write(
            documents, total, user_data(f"{folder.folder.name}-{version.name}"), advance, parallel_map
        )


class NotIndexable(Exception):
    """The document with the index `place` in a batch can't be indexed."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(index, problem)
        self.index = index
        self.problem = problem


class FieldWriter:
    """Collects the values of a field, and writes its files at the end."""

    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        self.field = field
        self._prefix = prefix
        self._folder = folder
        self._scratch = scratch
        self._present = array("i")

    @property
    def is_quick(self) -> bool:
        """Whether reading the values takes less time than to send them to another process and back."""
        return True

    @property
    def keeps_texts(self) -> bool:
        """Whether entries of strings are these strings, as for each such field of a property."""
        return False

    def entry(self, values: list[Any]) -> Entry:
        """Return the tokens, terms or numbers of a document's values; None without any."""
        raise NotImplementedError

    def pack(self, entries: list[tuple[int, Any]]) -> Packed:
        """Return the entries of documents, with their indices in a batch, in a compact form to send."""
        return entries

    def add(self, first: int, packed: Packed) -> None:
        raise NotImplementedError

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:
        """Write the files; `documents` is the size of the segment, which begins with the `merged` segments."""
        raise NotImplementedError

    def _finish_present(self, documents: int, merged: Sequence[LiveDocuments]) -> int:
        has_field = np.zeros(documents, bool)
        for present in (*(segment.present(self.field.name) for segment in merged), self._present):
            has_field[np.asarray(present, np.int32)] = True
        self._save("present", np.packbits(has_field, bitorder="little"))
        return int(np.count_nonzero(has_field))

    def _merge(self, inverter: Inverter, merged: Sequence[LiveDocuments]) -> tuple[int, int]:
        runs = [*(segment.postings(self.field, self._scratch) for segment in merged), *inverter.runs()]
        return merge(runs, self._folder, self._prefix, positional=self.field.is_counted)

    def _save(self, part: str, values: np.ndarray[Any, Any]) -> None:
        arrays.save(self._folder, f"{self._prefix}.{part}", values)


class _TextWriter(FieldWriter):
    def __init__(
        self, field: Field, prefix: str, folder: Path, scratch: Path, analyzers: AnalysisRegistry
    ) -> None:
        super().__init__(field, prefix, folder, scratch)
        assert field.analyzer is not None
        self._analyzer = analyzers.analyzer(field.analyzer)
        self._inverter = Inverter(scratch, prefix)
        self._lengths = array("i")

    @property
    def is_quick(self) -> bool:
        return self._analyzer.bulk is not None and self._analyzer.bulk.is_compiled

    @property
    def keeps_texts(self) -> bool:
        return self._analyzer.bulk is not None

    def entry(self, values: list[Any]) -> list[str] | tuple[list[str], list[int]]:
        texts = [value if isinstance(value, str) else indexed_text(value, self.field) for value in values]
        return texts if self._analyzer.bulk else self._tokens(texts)

    def _tokens(self, texts: list[str]) -> tuple[list[str], list[int]]:
        terms, positions = self._analyzer.joined(texts, self.field.position_increment_gap)
        if positions and positions[-1] > LAST_POSITION:
            raise OverflowError(f"{self.field.name} has a term at a position beyond {LAST_POSITION:,}")
        return terms, positions

    def pack(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Numbers]:
        """Return the tokens, and the field's length in each document, where tokens on one position count once."""
        return self._counted(*(self._pack_bulk(entries) or self._pack_each(entries)))

    def _counted(self, tokens: PackedTokens, lengths: Numbers) -> tuple[PackedTokens, Numbers]:
        """Drop repeated terms of a field without frequencies, which its lengths do not count either."""
        _refuse_long_terms(tokens, self.field)
        if self.field.index_options == DOCS:
            tokens = tokens.distinct()
            lengths = tokens.counts
        return tokens, lengths

    def _pack_bulk(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Numbers] | None:
        bulk = self._analyzer.bulk
        if bulk is None or any(len(texts) != 1 for _index, texts in entries):
            return None
        analyzed = bulk.tokens([texts[0] for _index, texts in entries])
        if analyzed is None:
            return None
        documents = np.array([index for index, _texts in entries], np.int32)
        tokens = PackedTokens(
            analyzed.vocabulary, analyzed.terms, analyzed.positions, documents, analyzed.counts
        )
        return tokens, analyzed.lengths

    def _pack_each(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Numbers]:
        documents: list[tuple[int, list[str], list[int]]] = []
        for index, entry in entries:
            try:
                terms, positions = self._tokens(entry) if self._analyzer.bulk else entry
            except OverflowError as error:
                raise NotIndexable(index, str(error)) from error
            documents.append((index, terms, positions))
        lengths = [len(set(positions)) for _index, _terms, positions in documents]
        return PackedTokens.of(documents), np.array(lengths, np.int32)

    def add(self, first: int, packed: tuple[PackedTokens, Numbers]) -> None:
        tokens, lengths = packed
        self._present.frombytes((tokens.documents + np.int32(first)).tobytes())
        self._lengths.frombytes(lengths.tobytes())
        self._inverter.add(tokens, first)

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:
        self._finish_present(documents, merged)
        norms = np.zeros(documents, np.uint8)
        for segment in merged:
            norms[segment.first : segment.first + segment.count] = segment.norms(self.field.name)
        present = np.frombuffer(self._present, np.int32)
        lengths = np.frombuffer(self._lengths, np.int32).astype(np.int64)
        if not self.field.has_norms:
            lengths = lengths.clip(max=1)  # Lucene scores a field without norms as if it had one token
        elif not self.field.is_text and self.field.index_options == FREQUENCIES:
            lengths = 2 * lengths  # Lucene counts a keyword as a value and as a term with a frequency
        norms[present] = encode_lengths(lengths)
        self._save("norms", norms)
        _postings, tokens = self._merge(self._inverter, merged)
        with_tokens = int(np.count_nonzero(norms))  # only the length 0 has the code 0
        inverses = (self.field.similarity or BM25()).norm_inverses(FieldStatistics(with_tokens, tokens))
        impacts.write(self._folder, self._prefix, tokens, norms, inverses)
        return FieldSummary(self._prefix, with_tokens, tokens)


class _CountedKeywordWriter(_TextWriter):
    """Writes keywords with frequencies or lengths."""

    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        FieldWriter.__init__(self, field, prefix, folder, scratch)
        self._inverter = Inverter(scratch, prefix)
        self._lengths = array("i")

    is_quick = True
    keeps_texts = False

    def entry(self, values: list[Any]) -> list[str]:
        return [self.field.normalized(indexed_text(value, self.field)) for value in values]

    def pack(self, entries: list[tuple[int, Any]]) -> tuple[PackedTokens, Numbers]:
        tokens = PackedTokens.of((index, terms, range(len(terms))) for index, terms in entries)
        return self._counted(tokens, tokens.counts)


class _KeywordWriter(FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder, scratch)
        self._inverter = Inverter(scratch, prefix)

    def entry(self, values: list[Any]) -> list[str]:
        return [self.field.normalized(indexed_text(value, self.field)) for value in values]

    def pack(self, entries: list[tuple[int, list[str]]]) -> PackedTokens:
        tokens = PackedTokens.of((index, terms, range(len(terms))) for index, terms in entries)
        _refuse_long_terms(tokens, self.field)
        return tokens

    def add(self, first: int, packed: PackedTokens) -> None:
        self._present.frombytes((packed.documents + np.int32(first)).tobytes())
        self._inverter.add(packed, first)

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:
        present = self._finish_present(documents, merged)
        postings, _tokens = self._merge(self._inverter, merged)
        return FieldSummary(self._prefix, present, postings)


class _NumberWriter(FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder, scratch)
        self._values = array("d" if field.type in FLOATS else "q")
        self._documents = array("i")

    def entry(self, values: list[Any]) -> list[Any] | None:
        numbers = [number(value, self.field) for value in values]
        return [value for value in numbers if value is not None] or None

    def add(self, first: int, packed: list[tuple[int, list[Any]]]) -> None:
        for index, numbers in packed:
            self._present.append(first + index)
            self._values.extend(numbers)
            self._documents.extend([first + index] * len(numbers))

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:
        pairs = [segment.values(self.field.name, "values") for segment in merged]
        new_values = np.frombuffer(self._values, self._values.typecode)
        pairs.append([np.frombuffer(self._documents, np.int32), new_values])
        value_documents, values = map(np.concatenate, zip(*pairs, strict=True))
        order = np.lexsort((value_documents, ~np.signbit(values), values))  # -0.0 before 0.0, as in Lucene
        self._save("values", values[order])
        self._save("documents", value_documents[order])
        present = self._finish_present(documents, merged)
        return FieldSummary(self._prefix, present, present)


class _PointWriter(_NumberWriter):
    def entry(self, values: list[Any]) -> list[int] | None:
        return [point for value in values for point in points(value, self.field)] or None


class _RangeWriter(FieldWriter):
    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder, scratch)
        kind = "d" if field.of_bounds.type in FLOATS else "q"
        self._parts = {"documents": array("i"), "values": array(kind), "highs": array(kind)}

    def entry(self, values: list[Any]) -> list[tuple[Any, Any]]:
        return [range_of(value, self.field) for value in values]

    def add(self, first: int, packed: list[tuple[int, list[Any]]]) -> None:
        for index, ranges in packed:
            self._present.append(first + index)
            for low, high in ranges:
                self._parts["documents"].append(first + index)
                self._parts["values"].append(low)
                self._parts["highs"].append(high)

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:
        old = [segment.values(self.field.name, "values", "highs") for segment in merged]
        new = [np.frombuffer(part, part.typecode) for part in self._parts.values()]
        for name, pieces in zip(self._parts, zip(*old, new, strict=True), strict=True):
            self._save(name, np.concatenate(pieces))
        present = self._finish_present(documents, merged)
        return FieldSummary(self._prefix, present, present)


class _VectorWriter(FieldWriter):
    """Collects vectors in a temporary file."""

    def __init__(self, field: Field, prefix: str, folder: Path, scratch: Path) -> None:
        super().__init__(field, prefix, folder, scratch)
        self._path = scratch / f"{prefix}.{VECTORS}"
        self._path.touch()

    def entry(self, values: list[Any]) -> bytes:
        return vector_of(values, self.field)

    def add(self, first: int, packed: list[tuple[int, bytes]]) -> None:
        self._present.extend(first + index for index, _vector in packed)
        with self._path.open("ab") as file:
            file.writelines(vector for _index, vector in packed)

    def finish(self, documents: int, merged: Sequence[LiveDocuments]) -> FieldSummary:
        present = self._finish_present(documents, merged)
        size = present * self.field.vector_bytes
        with arrays.ArrayFile(self._folder, f"{self._prefix}.{VECTORS}", np.uint8, size) as file:
            for segment in merged:
                for piece in segment.vectors(self.field):
                    file.append(piece)
            file.append_content(self._path)
        return FieldSummary(self._prefix, present, present)


def field_writer(
    field: Field, prefix: str, folder: Path, scratch: Path, analyzers: AnalysisRegistry
) -> FieldWriter:
    """Return the writer of a field, with temporary files in the folder `scratch`."""
    if field.is_text:
        return _TextWriter(field, prefix, folder, scratch, analyzers)
    of_keywords = _CountedKeywordWriter if field.is_counted else _KeywordWriter
    if field.is_range:
        return _RangeWriter(field, prefix, folder, scratch)
    if field.is_vector:
        return _VectorWriter(field, prefix, folder, scratch)
    writer = _PointWriter if field.is_geometry else _NumberWriter if field.is_number else of_keywords
    return writer(field.bound(analyzers), prefix, folder, scratch)


class MemberWriter:
    """Collects the documents of a segment, or their nested objects of one path, and writes their files."""

    def __init__(
        self, fields: Sequence[FieldWriter], folder: Path, prefix: str, merged: Sequence[LiveDocuments]
    ) -> None:
        self.fields = fields
        self._folder = folder
        self._prefix = prefix
        self._merged = merged
        self.count = sum(documents.count for documents in merged)
        self._parents = array("i")
        self._places = array("i")

    def add(self, packed: PackedMembers, first_parent: int) -> None:
        for field, packed_field in zip(self.fields, packed.fields, strict=True):
            field.add(self.count, packed_field)
        self._parents.extend(first_parent + parent for parent in packed.parents)
        self._places.extend(packed.places)
        self.count += packed.size

    def finish(self) -> dict[str, FieldSummary]:
        return {field.field.name: field.finish(self.count, self._merged) for field in self.fields}

    def finish_nested(self) -> NestedSummary:
        merged = [documents for documents in self._merged if isinstance(documents, LiveNested)]
        for part, new, old in (
            ("parents", self._parents, [documents.parents() for documents in merged]),
            ("places", self._places, [documents.places() for documents in merged]),
        ):
            numbers = np.concatenate([*old, np.frombuffer(new, np.int32)])
            arrays.save(self._folder, f"{self._prefix}.{part}", numbers)
        return NestedSummary(self._prefix, self.count, self.finish())


def _refuse_long_terms(tokens: PackedTokens, field: Field) -> None:
    if max(map(len, tokens.vocabulary), default=0) * 4 <= LONGEST_TERM:
        return
    for rank, term in enumerate(tokens.vocabulary):
        if len(term.encode(errors="surrogatepass")) > LONGEST_TERM:
            token = int(np.flatnonzero(tokens.terms == rank)[0])
            index = int(np.searchsorted(np.cumsum(tokens.counts), token, "right"))
            problem = f"{field.name} has a term longer than {LONGEST_TERM} bytes"
            raise NotIndexable(int(tokens.documents[index]), problem)


def _check_unindexed(value: Any, field: Field) -> None:
    """Reject a value that Elasticsearch rejects in a field with `index: false`."""
    if field.is_geometry or field.is_range:
        (points if field.is_geometry else range_of)(value, field)
        return
    if field.is_vector:
        vector_of([value], field)
        return
    if field.is_number:
        number(value, field)
        return
    size = len(field.normalized(indexed_text(value, field)).encode(errors="surrogatepass"))
    if field.type == KEYWORD and (field.has_doc_values or field.is_stored) and size > LONGEST_TERM:
        raise TypeError(f"{field.name} has a term longer than {LONGEST_TERM} bytes")


def _refused(document_id: str, problem: str) -> Refused:
    return invalid(f"the document {document_id}: {problem}; nothing was changed")


class _CollectedMembers:
    """The documents of a batch, or their nested objects of one path, before their values are packed."""

    def __init__(self, fields: Sequence[FieldWriter]) -> None:
        self._fields = fields
        self._entries: list[list[tuple[int, Entry]]] = [[] for _field in fields]
        self.documents: list[int] = []  # the document of each in the batch
        self._parents: list[int] = []
        self._places: list[int] = []

    def add(self, document: int, entries: Sequence[Entry], parent: int | None, place: int) -> None:
        number = len(self.documents)
        for present, entry in zip(self._entries, entries, strict=True):
            if entry is not None:
                present.append((number, entry))
        self.documents.append(document)
        if parent is not None:
            self._parents.append(parent)
            self._places.append(place)

    def add_strings(self, batch: Sequence[Indexed]) -> None:
        """Add documents all at once, given that `IndexWriter._has_strings` is true of them."""
        self.documents.extend(range(len(batch)))
        # The entries of each property whose fields keep its texts, and read them when they are packed.
        texts: dict[str, list[tuple[int, Entry]]] = {}
        for field, present in zip(self._fields, self._entries, strict=True):
            name = field.field.source
            entries = texts.get(name) if field.keeps_texts else None
            if entries is None:
                entries = [
                    (number, field.entry([source[name]]))
                    for number, (_id, source) in enumerate(batch)
                    if name in source
                ]
            if field.keeps_texts:
                texts[name] = entries
            present += entries

    def packed(self, batch: list[Indexed]) -> PackedMembers:
        try:
            fields = [field.pack(entries) for field, entries in zip(self._fields, self._entries, strict=True)]
        except NotIndexable as error:
            raise _refused(batch[self.documents[error.index]][0], error.problem) from error
        return PackedMembers(fields, len(self.documents), self._parents, self._places)


def _chunks(documents: Iterable[Document], sizes: Iterator[int]) -> Iterator[list[Document]]:
    most = next(sizes)
    chunk: list[Document] = []
    characters = 0
    for document in documents:
        chunk.append(document)
        characters += len(str(document.text))  # an own task may have other values
        if len(chunk) == most or characters >= MOST_CHARACTERS:
            yield chunk
            chunk, characters, most = [], 0, next(sizes)
    if chunk:
        yield chunk


class IndexWriter:
    """Writes a version into an empty folder: its segment, and references to kept segments."""

    def __init__(
        self,
        folder: Path,
        mapping: Mapping[str, Any],
        schema: Schema,
        analyzers: AnalysisRegistry,
        plan: SegmentPlan | None = None,
        added: Added = MappingProxyType({}),
    ) -> None:
        """Prepare to write; with a `plan` analyze only new documents. `added` are fields that `mapping` lacks."""
        self._folder = folder
        self._plan = plan
        self._kept, self._merged = plan.open() if plan else ([], [])
        self._mapping = mapping
        self._added = added
        self._schema = schema
        self._scratch = folder / SCRATCH
        self._scratch.mkdir()
        self._documents = DocumentWriter(folder, self._scratch)
        self._ids = Inverter(self._scratch, "ids")
        self._members: dict[str, MemberWriter] = {}
        for path_number, path in enumerate((ROOT, *schema.nested), -1):
            prefix = f"nested{path_number}" if path != ROOT else ""
            fields = [
                field_writer(field, f"{prefix}.field{number}".lstrip("."), folder, self._scratch, analyzers)
                for number, field in enumerate(schema.fields_of(path).values())
            ]
            merged = [segment.nested[path] if path != ROOT else segment for segment in self._merged]
            self._members[path] = MemberWriter(fields, folder, prefix, merged)
        # It imports `regex`, so that worker processes, which are forked later, need not do so.
        self._analysis = analysis.identity()
        self._unindexed = [field.bound(analyzers) for field in schema.unindexed.values()]
        self._id = schema.fields.get(ID) or schema.unindexed.get(ID)
        self._digests = (self._scratch / DIGESTS).open("wb")

    def write(
        self,
        documents: Iterable[Document],
        total: int,
        user_data: Mapping[str, Any],
        advance: Advance = no_progress,
        parallel_map: ParallelMap = map,
    ) -> None:
        """Index the documents of the collection, `total` in number, and write all files, the manifest last.

        After an error the caller must remove the folder.

        Raises:
            Refused: a document can't be indexed, or the number of documents differs from `total`.
        """
        try:
            advance(sum(segment.count for segment in self._kept))
            for segment in self._merged:
                self._copy(segment, advance)
            self.add_all(self._plan.new(documents) if self._plan else documents, advance, parallel_map)
            self._finish(total, user_data)
        except BaseException:
            with suppress(OSError):
                self._digests.close()
                self._documents.abandon()
            raise

    def _copy(self, merged: LiveDocuments, advance: Advance) -> None:
        self._digests.write(merged.digests().tobytes())
        with closing(merged.documents()) as documents:
            texts = compress(documents.texts(0, len(merged.mask)), merged.mask)
            while piece := list(islice(texts, COPIED_DOCUMENTS)):
                for text in piece:
                    self._documents.add(text)
                advance(len(piece))

    def add_all(self, documents: Iterable[Document], advance: Advance, parallel_map: ParallelMap) -> None:
        fields = (field for members in self._members.values() for field in members.fields)
        seconds_alone = math.inf if all(field.is_quick for field in fields) else SECONDS_ALONE
        sent: deque[tuple[list[Document], list[Indexed]]] = deque()
        seconds = 0.0

        def sizes() -> Iterator[int]:
            size = FIRST_DOCUMENTS
            while True:
                yield size
                if seconds < seconds_alone:
                    size = min(GROWTH * size, MOST_DOCUMENTS)

        def batches() -> Iterator[list[Indexed]]:
            for chunk in _chunks(documents, sizes()):
                batch = [(document.id, document.source()) for document in chunk]
                sent.append((chunk, batch))
                yield batch

        def packed_batches() -> Iterator[list[PackedMembers]]:
            nonlocal seconds
            waiting = batches()
            for batch in waiting:
                start = time.process_time()
                packed = self._packed(batch)
                seconds += time.process_time() - start
                yield packed
                if seconds >= seconds_alone:
                    break
            yield from parallel_map(self._packed, waiting)

        for packed in packed_batches():
            chunk, batch = sent.popleft()
            firsts = {path: members.count for path, members in self._members.items()}
            for document_id, source in batch:
                self._add(document_id, source)
            self._digests.write(b"".join(map(digest_of, chunk)))
            self._ids.add(PackedTokens.unique([document_id for document_id, _source in batch]), firsts[ROOT])
            for (path, members), packed_members in zip(self._members.items(), packed, strict=True):
                parent = self._schema.nested[path].parent if path != ROOT else ROOT
                members.add(packed_members, firsts[parent])
            advance(len(batch))

    def _packed(self, batch: list[Indexed]) -> list[PackedMembers]:
        """Return the packed values of each path's fields; worker processes can run this part."""
        collected = {path: _CollectedMembers(members.fields) for path, members in self._members.items()}
        if self._has_strings(batch):
            with suppress(OverflowError):  # the next lines name the document
                collected[ROOT].add_strings(batch)
                return self._packed_members(batch, collected)
            collected[ROOT] = _CollectedMembers(self._members[ROOT].fields)
        for index, (document_id, source) in enumerate(batch):
            try:
                for place, member in enumerate(self._schema.block(source)):
                    entries = self._entries(member)
                    outer = member.parent
                    parent = None if outer is None else len(collected[outer.path].documents)
                    collected[member.path].add(index, entries, parent, place)
            except (TypeError, OverflowError) as error:
                raise _refused(document_id, str(error)) from error
            except Refused as error:
                raise Refused(f"the document {document_id}: {error}; nothing was changed") from error
        return self._packed_members(batch, collected)

    def _has_strings(self, batch: list[Indexed]) -> bool:
        """Return whether all properties of documents are single strings of fields that index every string."""
        names = self._strings
        return names is not None and all(
            source.keys() <= names and all(type(value) is str for value in source.values())
            for _id, source in batch
        )

    @cached_property
    def _strings(self) -> frozenset[str] | None:
        """The properties of the mapping if all of its fields index every string; otherwise None."""
        schema, fields = self._schema, [writer.field for writer in self._members[ROOT].fields]
        is_plain = not (schema.nested or schema.objects or schema.copies or self._unindexed)
        if is_plain and all(field.type in (TEXT, KEYWORD) and field.ignore_above is None for field in fields):
            return schema.sources & {field.source for field in fields}
        return None

    def _packed_members(
        self, batch: list[Indexed], collected: Mapping[str, _CollectedMembers]
    ) -> list[PackedMembers]:
        try:
            return [members.packed(batch) for members in collected.values()]
        except PatternTimeout as error:
            if len(batch) == 1:
                raise PatternTimeout(f"the document {batch[0][0]}: {error}; nothing was changed") from error
            for document in batch:  # find the slow document, to name it
                self._packed([document])
            raise

    def _entries(self, member: BlockMember) -> list[Entry]:
        values = member.values
        for unindexed in self._unindexed:
            for value in unindexed.indexed(values.get(unindexed.source, ())):
                _check_unindexed(value, unindexed)
        return [
            field.entry(present)
            if (present := field.field.indexed(values.get(field.field.source, ())))
            else None
            for field in self._members[member.path].fields
        ]

    def _add(self, document_id: str, source: dict[str, Any]) -> None:
        try:
            text = stored_text(source)
        except RecursionError as error:
            problem = "its objects or lists are nested about 900 levels deep: flatten them"
            raise _refused(document_id, problem) from error
        try:
            self._documents.add(text.encode())
            encoded = document_id.encode()
        except UnicodeEncodeError as error:
            raise _refused(document_id, "it has half of a surrogate pair, which is not valid text") from error
        if not 0 < len(encoded) <= LONGEST_ID:
            raise _refused(document_id, f"its id has {len(encoded)} bytes, not 1 to {LONGEST_ID}")
        if self._id and self._id.ignores(document_id):
            problem = f"its id is longer than `ignore_above` of the field {ID}, by which hits are sorted"
            raise _refused(document_id, problem)

    def _finish(self, total: int, user_data: Mapping[str, Any]) -> None:
        self._write_ids(total)
        self._documents.close()
        self._digests.close()
        arrays.save(self._folder, DIGESTS, np.fromfile(self._scratch / DIGESTS, np.int64))
        summaries = self._members[ROOT].finish()
        nested = {path: self._members[path].finish_nested() for path in self._schema.nested}
        shutil.rmtree(self._scratch)
        kept = {
            documents.segment.folder.name: KeptSegment(
                documents.segment.manifest.digest, documents.write_deletions(self._folder, self._schema)
            )
            for documents in self._kept
        }
        names = sorted(file.name for file in self._folder.iterdir())
        described = {name: describe_file(self._folder, name) for name in names}
        files = {name: file for name, (file, _checksums) in described.items()}
        manifest = IndexManifest(
            folder=self._folder,
            mapping=self._mapping,
            total=total,
            user_data=user_data,
            documents=self._documents.count,
            fields=summaries,
            nested=nested,
            files=files,
            analysis=self._analysis,
            kept=kept,
            added=self._added,
        )
        checksums = [checksum for name, _file in manifest.with_checksums() for checksum in described[name][1]]
        arrays.save(self._folder, CHECKSUMS.removesuffix(arrays.SUFFIX), np.array(checksums, np.uint32))
        files[CHECKSUMS], _ = describe_file(self._folder, CHECKSUMS)
        manifest.write()
        manifest.mark_verified()

    def _write_ids(self, total: int) -> None:
        documents = self._documents.count
        count = documents + sum(segment.count for segment in self._kept)
        if count != total:
            noun = "document" if count == 1 else "documents"
            raise invalid(f"{count:,} {noun} arrived instead of {total:,}: index again")
        runs = [*(segment.ids(self._scratch) for segment in self._merged), *self._ids.runs()]
        merge(runs, self._scratch, "ids", positional=False)
        for part in ("terms", "term-starts", "term-starts.offsets", "term-starts.bases"):
            name = f"ids.{part}{arrays.SUFFIX}"
            (self._scratch / name).rename(self._folder / name)
        postings = open_postings(lambda name: arrays.mapped(self._scratch, name), "ids", None, is_packed=True)
        starts, numbers = postings.starts.all(), postings.documents.all()
        ids = Terms.open(lambda name: arrays.mapped(self._folder, name), "ids", is_packed=True)
        if len(starts) <= documents:
            raise duplicate_id(ids[int(np.argmax(np.diff(starts) > 1))].decode())
        for index, segment in enumerate(self._kept):
            segment.require_other_ids(ids, range(len(ids)))
            for smaller in self._kept[index + 1 :]:
                segment.require_other_ids(*smaller.live_ids())
        arrays.save(self._folder, "ids.documents", numbers)
        ranks = np.empty_like(numbers)
        ranks[numbers] = np.arange(len(numbers), dtype=np.int32)
        arrays.save(self._folder, "ids.ranks", ranks)
