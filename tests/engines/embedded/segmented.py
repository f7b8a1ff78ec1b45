"""Helpers that edit an index in several segments and compare it with a fresh index."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from searchapp.engines.base import IndexSpec, SearchHit
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene.index import segments, writer
from searchapp.lucene.index.arrays import ArrayFile
from searchapp.lucene.index.reader import DirectoryReader
from searchapp.lucene.index.segments import SegmentPlan
from searchapp.lucene.index.writer import Packed
from searchapp.model import Document, Explanation
from tests.engines.embedded.conftest import MAPPING, spec_of
from tests.search.drawing import Draw

WORDS = ["ring", "group", "field", "of", "the", "é", "😀", "a" * 40]

DOCUMENTS = [
    Document(
        str(number),
        f"ring {'group ' * (number % 5)} field{number % 7}",
        {"tag": ["é", f"t{number % 4}"], "year": number % 9, "weight": [0.0, -0.0, number / 3]},
    )
    for number in range(100)
]
EDITED = [
    *DOCUMENTS[1:30],
    Document("new", "a new ring", {"year": 3}),
    Document("30", "ring of another text"),
    *DOCUMENTS[31:],
]
"""One document is deleted, one is replaced under its id and one is new."""


def keep_segments(patch: pytest.MonkeyPatch, limit: int = 10**6) -> None:
    """Keep up to `limit` segments, regardless of their sizes and deletions."""
    patch.setattr(segments, "count_kept", lambda live, _new: min(limit, len(live)))


def edit_randomly(
    draw: Draw, documents: Sequence[Document], replacements: Sequence[Document], share: float
) -> list[Document]:
    """Delete or replace a share of the documents, and add a share of the `replacements` with new ids."""
    ids = {document.id for document in documents}
    new = [document for document in replacements if document.id not in ids and draw.chance(share)]
    remaining = []
    for document in documents:
        if draw.chance(share / 2):
            continue
        if replacements and draw.chance(share / 2):
            source = draw.choice(replacements)
            document = Document(document.id, source.text, source.fields)
        remaining.append(document)
    return [*remaining, *new]


def plan_update(
    embedded: EmbeddedEngine,
    documents: Sequence[Document],
    mapping: Mapping[str, Any] = MAPPING,
    *,
    merged: bool = False,
) -> SegmentPlan | None:
    """Return the plan that updates the live version of `rings` to the documents, None if it reuses no document."""
    update = embedded.compare("rings", mapping)
    if update is None:
        return None
    assert list(update.watch(documents)) == list(documents)
    return update.carried(merged=merged)


def index_documents(
    embedded: EmbeddedEngine,
    documents: Sequence[Document],
    mapping: Mapping[str, Any] = MAPPING,
    *,
    merged: bool = False,
) -> SegmentPlan | None:
    """Index the documents as `rings`, reusing documents of the live version."""
    plan = plan_update(embedded, documents, mapping, merged=merged)
    embedded.build("rings", spec_of(documents, mapping), documents, carried=plan)
    return plan


def build_in_segments(
    engine: EmbeddedEngine,
    mapping: Mapping[str, Any],
    before: Sequence[Document],
    after: Sequence[Document],
) -> EmbeddedIndex:
    """Index the documents `after` in up to three segments, in two updates of the documents `before`."""
    half = after[: len(after) // 2]
    ids = {document.id for document in half}
    between = [*half, *(document for document in before[len(before) // 2 :] if document.id not in ids)]
    with pytest.MonkeyPatch.context() as patch:
        keep_segments(patch)
        for documents in (before, between, after):
            index_documents(engine, documents, mapping)
    return engine.open("rings")


def build_fresh(
    engine: EmbeddedEngine, mapping: Mapping[str, Any], documents: Sequence[Document]
) -> EmbeddedIndex:
    """Index the documents as `fresh`, in one segment."""
    engine.build("fresh", IndexSpec(mapping, len(documents), "1"), documents)
    return engine.open("fresh")


def content(reader: DirectoryReader) -> list[Any]:
    """Return the live documents of an index in the order of ids, and the statistics of each field."""
    documents: list[tuple[str, Any]] = []
    statistics: list[Any] = []
    for part in reader.parts:
        numbers = np.flatnonzero(part.live_mask())
        documents += zip(part.ids_of(numbers), part.sources_of(numbers), strict=True)
        assert [part.document(id_) for id_ in part.ids_of(numbers)] == numbers.tolist()
    for name in reader.fields:
        fields = [part.fields[name] for part in reader.parts]
        (totals,) = {field.statistics for field in fields}
        present = sum(len(field.present) for field in fields)
        if fields[0].field.is_number:
            values: Any = sorted(repr(value) for field in fields for value in field._live_values.tolist())
        else:
            terms = {term.decode() for field in fields for term in field.terms}
            frequencies = {term: {field.document_frequency(term) for field in fields} for term in terms}
            values = {term: counts for term, counts in frequencies.items() if counts != {0}}
        lengths: Counter[int] = Counter()
        if fields[0].field.is_text:
            for field, part in zip(fields, reader.parts, strict=True):
                lengths.update(field.norms[part.live_mask()].tolist())
        statistics.append((name, totals, present, values, lengths))
    return [sorted(documents, key=lambda document: document[0]), statistics]


def require_same_as_fresh(embedded: EmbeddedEngine, documents: Sequence[Document]) -> None:
    """Check that `rings` has the content and statistics of a fresh index of the documents."""
    with closing(embedded.open("rings")) as ours, closing(build_fresh(embedded, MAPPING, documents)) as fresh:
        assert ours.info.documents == len(documents)
        assert content(ours.index.reader) == content(fresh.index.reader)


def hit_details(hit: SearchHit) -> dict[str, Any]:
    """Return everything that a hit consists of, without document numbers."""
    return {
        "hit": hit.hit,
        "source": hit.source,
        "highlights": hit.highlights,
        "explanation": hit.explanation and without_document_numbers(hit.explanation),
    }


def without_document_numbers(explanation: Explanation) -> Any:
    """Return an explanation without the document's number, which differs between indexes."""
    return (
        explanation.value,
        re.sub(r" in \d+\) \[", ") [", explanation.description),
        [without_document_numbers(detail) for detail in explanation.details],
    )


def live_folder(home: Path, name: str = "rings") -> Path:
    """Return the folder of the live version."""
    folder = home / "indexes" / f"test-{name}"
    return folder / (folder / "current").read_text().split()[0]


def versions(home: Path) -> list[str]:
    """Return the names of all versions of `rings`, in order."""
    return sorted(entry.name for entry in (home / "indexes" / "test-rings").glob("0*"))


def record_analyzed(patch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the ids of analyzed documents are appended."""
    analyzed: list[str] = []
    original = writer.IndexWriter._packed

    def record(self: writer.IndexWriter, batch: list[writer.Indexed]) -> list[Packed]:
        analyzed.extend(document_id for document_id, _source in batch)
        return original(self, batch)

    patch.setattr(writer.IndexWriter, "_packed", record)
    return analyzed


APPEND = ArrayFile.append


def fill_disk(patch: pytest.MonkeyPatch, pieces: int) -> None:
    """Raise the error of a full disk after `pieces` further pieces of arrays are written."""
    remaining = [pieces]

    def append_until_full(self: ArrayFile, piece: Any) -> None:
        remaining[0] -= 1
        if remaining[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        APPEND(self, piece)

    patch.setattr(ArrayFile, "append", append_until_full)


# Strategies of edits

texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
numbers = st.one_of(st.integers(-3, 3), st.lists(st.integers(-3, 3), min_size=1, max_size=3))
weights = st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0]), min_size=1, max_size=3)
fields = st.fixed_dictionaries(
    {},
    optional={
        "tag": st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        "year": numbers,
        "weight": weights,
    },
)
edits = st.lists(
    st.tuples(
        st.sampled_from(["change", "insert", "delete", "move", "swap ids"]),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        texts,
        fields,
    ),
    min_size=1,
    max_size=6,
)


def edit(documents: list[Document], steps: Sequence[tuple[str, int, int, str, Any]], round_: int) -> None:
    """Apply steps drawn by `edits` to a list of documents."""
    for number, (kind, first, second, text, properties) in enumerate(steps):
        source, target = (position % max(1, len(documents)) for position in (first, second))
        if kind == "insert" or len(documents) < 2:
            documents.insert(source, Document(f"{round_}-{number}", text, properties))
        elif kind == "change":
            documents[source] = Document(documents[source].id, text, properties)
        elif kind == "delete":
            del documents[source]
        elif kind == "move":
            documents.insert(target, documents.pop(source))
        else:
            document, other = documents[source], documents[target]
            documents[source] = Document(document.id, other.text, other.fields)
            documents[target] = Document(other.id, document.text, document.fields)
