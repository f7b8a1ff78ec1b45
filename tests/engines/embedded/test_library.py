"""The search library creates, extends, opens and searches an index without the rest of searchapp."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from searchapp import lucene
from searchapp.lucene import Document, Index
from searchapp.lucene.errors import IndexReplaced, NotSupported, Refused
from tests.engines.embedded.conftest import MAPPING, body
from tests.engines.embedded.segmented import DOCUMENTS, content, keep_segments

RING = body({"match": {"text": "ring group"}})


def test_the_example_of_the_package_is_correct() -> None:
    assert doctest.testmod(lucene).failed == 0


@pytest.mark.parametrize("in_segments", [False, True])
def test_added_documents_are_found_as_in_a_fresh_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_segments: bool
) -> None:
    if in_segments:
        keep_segments(monkeypatch)
    index = Index.create(tmp_path / "grown", MAPPING, DOCUMENTS[:40])
    index.add(DOCUMENTS[40:70])
    index.add(DOCUMENTS[70:])
    fresh = Index.create(tmp_path / "fresh", MAPPING, DOCUMENTS)
    assert len(index.reader.parts) == (3 if in_segments else 1)
    assert content(index.reader) == content(fresh.reader)
    assert index.search(RING) == fresh.search(RING) == Index.open(tmp_path / "grown").search(RING)


def test_only_new_ids_are_added_and_only_to_the_newest_version(tmp_path: Path) -> None:
    index, older = Index.create(tmp_path, MAPPING, DOCUMENTS), Index.open(tmp_path)
    with pytest.raises(Refused, match="two documents have the id 7"):
        index.add([Document("7", "ring")])
    index.add([Document("new", "ring")])
    assert index.count == older.count + 1
    with pytest.raises(IndexReplaced):
        older.add([Document("newer", "ring")])


def test_only_matching_documents_are_explained(tmp_path: Path) -> None:
    index = Index.create(tmp_path, MAPPING, [*DOCUMENTS, Document("other", "nothing")])
    best = index.search(RING)[0]
    explanation = index.explain(RING, best.id)
    assert explanation is not None and explanation.value == pytest.approx(best.score)
    assert index.explain(RING, "other") is None and index.explain(RING, "absent") is None


def test_errors_are_classes_of_the_library(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no index in"):
        Index.open(tmp_path)
    index = Index.create(tmp_path, MAPPING)
    with pytest.raises(Refused, match="the query `intervals`"):
        index.search(body({"intervals": {"text": "a"}}))
    with pytest.raises(NotSupported, match="unknown analyzer `none`"):
        index.analyze("a", analyzer="none")
    with pytest.raises(AttributeError):
        lucene.nothing  # noqa: B018


def test_no_other_module_of_searchapp_is_imported() -> None:
    program = (
        "import sys; from searchapp.lucene import Index; Index.create; "
        "print([name for name in sys.modules if name.startswith('searchapp.') and "
        "not name.startswith('searchapp.lucene')])"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
