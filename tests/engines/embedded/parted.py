"""An index in parts, beside one that was built anew from the same documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.search.searcher import Parts
from searchapp.model import Document
from tests.search.drawing import Draw


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


def parts_of(
    engine: EmbeddedEngine,
    mapping: Mapping[str, Any],
    before: Sequence[Document],
    after: Sequence[Document],
    like: Mapping[str, Any] | None = None,
) -> Parts:
    """The documents `after` as an index in parts whose base are those `before`, scored `like` another mapping."""
    texts = {document.id: repr(document) for document in after}
    gone = [document for document in before if texts.get(document.id) != repr(document)]
    known = {document.id: repr(document) for document in before}
    new = [document for document in after if known.get(document.id) != repr(document)]
    base, added, removed = (
        reader_of(engine, name, mapping, some, like)
        for name, some in (("base", before), ("new", new), ("gone", gone))
    )
    numbers = sorted(number for one in gone if (number := base.document(one.id)) is not None)
    info = whole_of(engine, mapping, after).info
    return Parts(info, base, added, removed, np.array(numbers, np.int32))


def whole_of(
    engine: EmbeddedEngine, mapping: Mapping[str, Any], documents: Sequence[Document]
) -> EmbeddedIndex:
    """The documents as an index of one part."""
    engine.build("whole", IndexSpec(mapping, len(documents), "1"), documents)
    return engine.open("whole")


def reader_of(
    engine: EmbeddedEngine,
    name: str,
    mapping: Mapping[str, Any],
    documents: Sequence[Document],
    like: Mapping[str, Any] | None = None,
) -> IndexReader:
    engine.build(name, IndexSpec(mapping, len(documents), "1"), documents)
    folder = engine._versions(name).serving()
    assert folder is not None
    return IndexReader(folder, None if like is None else Schema.of(like))
