"""An index that was changed several times, in as many segments as wanted, beside one that was built anew."""

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
"""Two documents have gone, one of which under its id another one has come, and one is new."""


def everything_kept(patch: pytest.MonkeyPatch, most: int = 10**6) -> None:
    """Have so many segments kept at most, however small they are and however much of them was deleted."""
    patch.setattr(segments, "count_kept", lambda found, _new: min(most, len(found)))


def edited(
    draw: Draw, documents: Sequence[Document], others: Sequence[Document], share: float
) -> list[Document]:
    """Documents of which a share is gone or has the content of one of the `others`, and some of these as new ones."""
    known = {document.id for document in documents}
    new = [other for other in others if other.id not in known and draw.chance(share)]
    left = []
    for document in documents:
        if draw.chance(share / 2):
            continue
        if others and draw.chance(share / 2):
            other = draw.one(others)
            document = Document(document.id, other.text, other.fields)
        left.append(document)
    return [*left, *new]


def compared(
    embedded: EmbeddedEngine,
    documents: Sequence[Document],
    mapping: Mapping[str, Any] = MAPPING,
    *,
    merged: bool = False,
) -> SegmentPlan | None:
    """What the version of `rings` that serves gives for one of these documents."""
    found = embedded.compare("rings", mapping)
    if found is None:
        return None
    assert list(found.watch(documents)) == list(documents)
    return found.carried(merged=merged)


def indexed(
    embedded: EmbeddedEngine,
    documents: Sequence[Document],
    mapping: Mapping[str, Any] = MAPPING,
    *,
    merged: bool = False,
) -> SegmentPlan | None:
    """Index the documents as `rings`, with what is carried over of the version that serves."""
    found = compared(embedded, documents, mapping, merged=merged)
    embedded.build("rings", spec_of(documents, mapping), documents, carried=found)
    return found


def segments_of(
    engine: EmbeddedEngine,
    mapping: Mapping[str, Any],
    before: Sequence[Document],
    after: Sequence[Document],
) -> EmbeddedIndex:
    """The documents `after` as an index of three segments at most, in two steps from those `before`."""
    half = after[: len(after) // 2]
    known = {document.id for document in half}
    between = [*half, *(one for one in before[len(before) // 2 :] if one.id not in known)]
    with pytest.MonkeyPatch.context() as patch:
        everything_kept(patch)
        for documents in (before, between, after):
            indexed(engine, documents, mapping)
    return engine.open("rings")


def whole_of(
    engine: EmbeddedEngine, mapping: Mapping[str, Any], documents: Sequence[Document]
) -> EmbeddedIndex:
    """The documents as an index that was built anew."""
    engine.build("whole", IndexSpec(mapping, len(documents), "1"), documents)
    return engine.open("whole")


def content(reader: DirectoryReader) -> list[Any]:
    """All live documents of an index in the order of ids, and all that is counted of them by fields."""
    documents: list[tuple[str, Any]] = []
    counted: list[Any] = []
    for one in reader.parts:
        numbers = np.flatnonzero(one.live_mask())
        documents += zip(one.ids_of(numbers), one.sources_of(numbers), strict=True)
        assert [one.document(id_) for id_ in one.ids_of(numbers)] == numbers.tolist()
    for name in reader.fields:
        fields = [one.fields[name] for one in reader.parts]
        (statistics,) = {field.statistics for field in fields}
        present = sum(len(field.present) for field in fields)
        if fields[0].field.is_number:
            of_field: Any = sorted(repr(value) for field in fields for value in field._live_values.tolist())
        else:
            terms = {term.decode() for field in fields for term in field.terms}
            frequencies = {term: {field.document_frequency(term) for field in fields} for term in terms}
            of_field = {term: found for term, found in frequencies.items() if found != {0}}
        lengths: Counter[int] = Counter()
        if fields[0].field.is_text:
            for field, one in zip(fields, reader.parts, strict=True):
                lengths.update(field.norms[one.live_mask()].tolist())
        counted.append((name, statistics, present, of_field, lengths))
    return [sorted(documents, key=lambda document: document[0]), counted]


def require_as_whole(embedded: EmbeddedEngine, documents: Sequence[Document]) -> None:
    """Compare `rings` with an index that is built anew of the documents, in content and in all that is counted."""
    with closing(embedded.open("rings")) as ours, closing(whole_of(embedded, MAPPING, documents)) as whole:
        assert ours.info.documents == len(documents)
        assert content(ours.index.reader) == content(whole.index.reader)


def shown(found: SearchHit) -> dict[str, Any]:
    return {
        "hit": found.hit,
        "source": found.source,
        "highlights": found.highlights,
        "explanation": found.explanation and unnumbered(found.explanation),
    }


def unnumbered(explanation: Explanation) -> Any:
    """An explanation without the document's number, which is nowhere that of another index."""
    return (
        explanation.value,
        re.sub(r" in \d+\) \[", ") [", explanation.description),
        [unnumbered(one) for one in explanation.details],
    )


def folder_of(home: Path, name: str = "rings") -> Path:
    """The folder of the version that serves."""
    folder = home / "indexes" / f"test-{name}"
    return folder / (folder / "current").read_text().split()[0]


def versions(home: Path) -> list[str]:
    """The names of all versions of `rings`, in order."""
    return sorted(entry.name for entry in (home / "indexes" / "test-rings").glob("0*"))


def noting_analyzed(patch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the documents that are analyzed from now on."""
    analyzed: list[str] = []
    packed = writer.IndexWriter._packed

    def noted(self: writer.IndexWriter, batch: list[writer.Indexed]) -> list[Packed]:
        analyzed.extend(document_id for document_id, _source in batch)
        return packed(self, batch)

    patch.setattr(writer.IndexWriter, "_packed", noted)
    return analyzed


APPEND = ArrayFile.append


def fill_disk(patch: pytest.MonkeyPatch, pieces: int) -> None:
    """Let the disk be full once so many further pieces of arrays are written."""
    left = [pieces]

    def until_full(self: ArrayFile, piece: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        APPEND(self, piece)

    patch.setattr(ArrayFile, "append", until_full)


# Every edit

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
    """Change documents by steps that `edits` draws."""
    for number, (kind, here, there, text, others) in enumerate(steps):
        place, other = (where % max(1, len(documents)) for where in (here, there))
        if kind == "insert" or len(documents) < 2:
            documents.insert(place, Document(f"{round_}-{number}", text, others))
        elif kind == "change":
            documents[place] = Document(documents[place].id, text, others)
        elif kind == "delete":
            del documents[place]
        elif kind == "move":
            documents.insert(other, documents.pop(place))
        else:
            one, two = documents[place], documents[other]
            documents[place] = Document(one.id, two.text, two.fields)
            documents[other] = Document(two.id, one.text, one.fields)
