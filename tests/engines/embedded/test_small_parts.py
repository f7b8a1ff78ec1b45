"""A small part beside a large version holds, with that version, the documents and the statistics of a whole build."""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.app.index import build
from searchapp.engines.base import State
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused, Replaced
from searchapp.lucene.index import segments
from searchapp.lucene.index.layout import Manifest
from searchapp.lucene.index.merge import Carried
from searchapp.lucene.index.reader import FieldReader, IndexReader
from searchapp.lucene.index.segments import SmallPart
from searchapp.lucene.index.versions import PartsManifest, read_manifest
from searchapp.model import Document
from searchapp.progress import Silent
from tests.engines.embedded.conftest import MAPPING, spec_of
from tests.engines.embedded.test_carried import (
    DOCUMENTS,
    SCORED,
    edited,
    edits,
    fields,
    files_of,
    folder_of,
    noting_analyzed,
    texts,
)
from tests.profile import FULL

pytestmark = pytest.mark.usefixtures("small_parts")

CHANGED = [*DOCUMENTS[:50], Document("50", "ring of another text", {"year": 77}), *DOCUMENTS[52:]]
"""One document has changed, and one is gone."""


def compared(
    embedded: EmbeddedEngine,
    documents: Sequence[Document],
    mapping: Mapping[str, Any] = MAPPING,
    *,
    merged: bool = False,
) -> Carried | SmallPart | None:
    """What the version that serves gives for one of these documents."""
    found = embedded.compare("rings", mapping)
    if found is None:
        return None
    assert list(found.watch(documents)) == list(documents)
    return found.carried(merged=merged)


def indexed(embedded: EmbeddedEngine, documents: Sequence[Document], *, merged: bool = False) -> bool:
    """Index the documents; whether a small part was written."""
    found = compared(embedded, documents, merged=merged)
    embedded.build("rings", spec_of(documents), documents, carried=found)
    return isinstance(found, SmallPart)


def versions(home: Path) -> list[str]:
    return sorted(entry.name for entry in (home / "indexes" / "test-rings").glob("0*"))


class Opened:
    """The parts of a version, open: one that is not in parts is a base of its own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        manifest = read_manifest(folder)
        self.dead: list[int] = []
        if isinstance(manifest, PartsManifest):
            *parts, dead = manifest.opened(folder)
            self.dead = dead.tolist()
            readers = [stack.enter_context(closing(IndexReader(part.folder))) for part in parts]
            self.base, self.new, self.gone = readers
            self.signed = [(self.base, 1), (self.new, 1), (self.gone, -1)]
        else:
            self.base = stack.enter_context(closing(IndexReader(folder)))
            self.signed = [(self.base, 1)]

    def documents(self) -> list[tuple[str, dict[str, Any]]]:
        """The id and the source of each document, in order of ids."""
        found: list[tuple[str, dict[str, Any]]] = []
        for reader, _sign in self.signed[:2]:
            numbers = [
                number for number in range(reader.count) if reader is not self.base or number not in self.dead
            ]
            found += zip(
                [reader.ids[int(reader.ranks[number])].decode() for number in numbers],
                reader.sources.sources(numbers),
                strict=True,
            )
        return sorted(found, key=lambda one: one[0])

    def counted(self) -> dict[str, Any]:
        """All that is counted of documents, by fields; what is counted as 0 is left out."""
        counts: Counter[Any] = Counter()
        for reader, sign in self.signed:
            counts["documents"] += sign * reader.count
            for name, field in reader.fields.items():
                for what, number in _counted(field):
                    counts[name, what] += sign * number
        assert min(counts.values()) >= 0
        return {what: number for what, number in counts.items() if number}


def _counted(field: FieldReader) -> Iterator[tuple[Any, int]]:
    yield "documents", field.statistics.documents
    yield "tokens", field.statistics.tokens
    yield "present", len(field.present)
    if field.field.is_number:
        yield from Counter(repr(value) for value in field._values.all().tolist()).items()
        return
    for rank, term in enumerate(field.terms):
        yield term, int(field.document_frequencies()[rank])
    if field.field.is_text:
        yield from Counter(f"length {code}" for code in field.norms.tolist() if code).items()


def require_as_whole(embedded: EmbeddedEngine, home: Path, documents: Sequence[Document]) -> None:
    """Compare with a version that is built of all documents, in content and in all that is counted."""
    embedded.build("whole", spec_of(documents), documents)
    with ExitStack() as stack:
        ours, whole = (Opened(folder_of(home, name), stack) for name in ("rings", "whole"))
        assert ours.documents() == whole.documents()
        assert ours.counted() == whole.counted()
        if ours.dead:
            assert ours.dead == sorted(set(ours.dead))
            gone = ours.base.sources.sources(ours.dead)
            assert ours.gone.sources.sources(range(len(ours.dead))) == gone
    info = embedded.index_info("rings")
    assert info is not None and info.documents == len(documents)


def require_merged(embedded: EmbeddedEngine, home: Path, documents: Sequence[Document]) -> None:
    """Merge all, and compare with a version that is built of all documents, file by file."""
    assert not indexed(embedded, documents, merged=True)
    embedded.build("whole", spec_of(documents), documents)
    ours, whole = files_of(home, "rings"), files_of(home, "whole")
    assert ours.keys() == whole.keys()
    assert [name for name in ours if ours[name] != whole[name]] == []
    assert len(versions(home)) == 1


rounds = st.lists(st.tuples(edits, st.sampled_from(["", "", "change back", "none", "first"])), max_size=4)


@hypothesis.settings(max_examples=200 if FULL else 5, deadline=None)
@given(
    st.lists(st.tuples(texts, fields), min_size=1, max_size=20), rounds, st.booleans(), st.integers(0, 100)
)
def test_after_any_edits_documents_and_statistics_are_those_of_a_whole_build(
    first: list[tuple[str, Any]], rounds: list[tuple[Any, str]], in_pieces: bool, size: int
) -> None:
    documents = [Document(str(number), text, others) for number, (text, others) in enumerate(first)]
    before = list(documents)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as home:
        patch.setattr(segments, "SMALL", 1)
        if in_pieces:
            patch.setattr(segments, "CHUNK", 2)
            patch.setattr(segments, "KEPT_BYTES", size)
        with closing(EmbeddedEngine(Path(home), "test")) as embedded:
            embedded.build("rings", spec_of(documents), documents)
            for round_, (steps, all_) in enumerate(rounds):
                if all_ == "change back":
                    documents = list(before)
                elif all_ == "none":
                    documents = []
                elif all_ == "first":
                    documents = documents[:1]
                else:
                    edited(documents, steps, round_)
                indexed(embedded, documents)
                require_as_whole(embedded, Path(home), documents)
            if documents:
                require_merged(embedded, Path(home), documents)


def test_an_id_that_goes_comes_again_as_it_was_or_as_another(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    without, other = DOCUMENTS[1:], Document("0", "a field")
    for documents, dead, new in (
        (without, [0], 0),
        (DOCUMENTS, [], 0),
        (without, [0], 0),
        ([*without, other], [0], 1),
        ([other, *without], [0], 1),
        (without, [0], 0),
        ([*without, DOCUMENTS[0]], [], 0),
    ):
        assert indexed(embedded, documents)
        require_as_whole(embedded, tmp_path, documents)
        with ExitStack() as stack:
            opened = Opened(folder_of(tmp_path, "rings"), stack)
            assert (opened.dead, opened.new.count) == (dead, new)
    require_merged(embedded, tmp_path, documents)


def test_documents_that_only_moved_are_those_of_the_base(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    moved = DOCUMENTS[::-1]
    found = compared(embedded, moved)
    assert isinstance(found, SmallPart)
    assert (found.documents, found.left_out, found.analyzed) == (100, 0, 0)
    embedded.build("rings", spec_of(moved), moved, carried=found)
    require_as_whole(embedded, tmp_path, moved)
    require_merged(embedded, tmp_path, moved)


def test_the_base_is_never_written_to_and_goes_when_all_is_merged(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    base = folder_of(tmp_path, "rings")
    before = {file.name: (file.stat(), file.read_bytes()) for file in base.iterdir()}
    for number in range(1, 11):
        documents = [*DOCUMENTS[number:], Document("new", f"ring {number}")]
        assert indexed(embedded, documents)
        assert versions(tmp_path) == [base.name, f"{number + 1:06d}"]
    after = {file.name: (file.stat(), file.read_bytes()) for file in base.iterdir()}
    assert [(one.st_ctime_ns, content) for one, content in after.values()] == [
        (one.st_ctime_ns, content) for one, content in before.values()
    ]
    documents = DOCUMENTS[11:]
    assert not indexed(embedded, documents)  # the eleventh of a hundred
    assert versions(tmp_path) == ["000012"]
    assert indexed(embedded, [*documents, Document("0", "ring")])
    embedded.build("rings", spec_of(documents), documents)
    assert versions(tmp_path) == ["000014"]


def test_only_what_changed_since_the_part_of_before_is_analyzed(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read for the statistics of the dead included; documents that changed places count as changed."""
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    analyzed = noting_analyzed(monkeypatch)
    one, two, three = (Document(name, f"ring {name}") for name in ("one", "two", "three"))
    for documents, expected in (
        ([*DOCUMENTS[1:], one, two], ["one", "two", "0"]),
        ([*DOCUMENTS[1:], one, three, two], ["three"]),
        ([*DOCUMENTS[1:90], *DOCUMENTS[91:], three, one], ["three", "90"]),
        ([*DOCUMENTS[:90], *DOCUMENTS[91:], three, one], []),
    ):
        analyzed.clear()
        found = compared(embedded, documents)
        assert isinstance(found, SmallPart)
        embedded.build("rings", spec_of(documents), documents, carried=found)
        assert analyzed == expected
        assert found.analyzed == len([name for name in expected if not name.isdecimal()])
        require_as_whole(embedded, tmp_path, documents)


@pytest.mark.parametrize(("name", "value"), [("FEWEST_DOCUMENTS", 101), ("SMALL", 101)])
def test_all_is_merged_where_little_is_there_or_much_has_changed(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert isinstance(compared(embedded, CHANGED), SmallPart)
    monkeypatch.setattr(segments, name, value)
    assert isinstance(compared(embedded, CHANGED), Carried)


def test_another_similarity_merges_all(embedded: EmbeddedEngine) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert isinstance(compared(embedded, DOCUMENTS, SCORED), Carried)
    assert indexed(embedded, CHANGED)
    assert isinstance(compared(embedded, CHANGED, SCORED), Carried)


@pytest.mark.parametrize("kept", [0, segments.KEPT_BYTES])
def test_ids_that_come_twice_are_refused(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(segments, "KEPT_BYTES", kept)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    new = Document("new", "ring")
    assert indexed(embedded, [*DOCUMENTS, new])
    before = versions(tmp_path)
    for twice, name in (
        ([*DOCUMENTS, DOCUMENTS[3]], "3"),
        ([*DOCUMENTS, Document("3", "another text")], "3"),
        ([*DOCUMENTS, new, new], "new"),
        ([*DOCUMENTS, new, Document("new", "field")], "new"),
    ):
        found = compared(embedded, twice)
        with pytest.raises(EngineRefused, match=f"two documents have the id {name}"):
            embedded.build("rings", spec_of(twice), twice, carried=found)
        assert versions(tmp_path) == before
    refused = [*DOCUMENTS, Document("\ud800", "ring")]
    with pytest.raises(EngineRefused, match="surrogate"):
        embedded.build("rings", spec_of(refused), refused, carried=compared(embedded, refused))
    require_as_whole(embedded, tmp_path, [*DOCUMENTS, new])


def test_documents_that_change_while_they_are_read_again_are_noticed(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "KEPT_BYTES", 0)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    found = compared(embedded, CHANGED)
    for other in ([*CHANGED, Document("one more", "ring")], CHANGED[:50]):
        with pytest.raises(EngineRefused, match="documents came instead of 1: index again"):
            embedded.build("rings", spec_of(CHANGED), other, carried=found)


def test_what_is_written_is_told(
    embedded: EmbeddedEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "searchapp.requests")
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    found = compared(embedded, CHANGED)
    before = embedded.index_info("rings")
    progress: list[int] = []
    assert found is not None
    embedded.build("rings", spec_of(CHANGED), CHANGED, progress.append, carried=found)
    assert sum(progress) == len(CHANGED)
    indexed(embedded, CHANGED, merged=True)
    assert caplog.messages == [
        "test-rings-000002: 98 documents are taken over, 2 are left out, 1 are analyzed; a small part is written "
        "beside what test-rings-000001 has",
        "test-rings-000003: 98 documents are taken over, 2 are left out, 1 are analyzed; all is merged with what "
        "test-rings-000002 has",
    ]
    serving = build(embedded, "rings", spec_of(DOCUMENTS, digest="2"), before, DOCUMENTS, "", Silent(), None)
    assert serving.carried == 0


def test_a_version_in_parts_is_listed_as_one_of_the_size_of_all(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    indexed(embedded, CHANGED)
    (stored,) = embedded.stored()
    assert (stored.version, stored.state) == ("test-rings-000002", State.serves)
    folder = tmp_path / "indexes" / "test-rings"
    files = [file for file in folder.rglob("*") if file.is_file() and file.parent != folder]
    assert stored.bytes == sum(file.stat().st_size for file in files)
    assert stored.info == embedded.index_info("rings") == embedded.verify("rings", Silent())
    (folder / "000009").mkdir()
    assert [one.state for one in embedded.stored()] == [State.serves, State.leftover]
    (folder / "000001" / "digests.npy").unlink()
    assert embedded.stored()[0].state is State.unreadable


def test_of_two_who_have_compared_the_first_one_builds(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    first, second = compared(embedded, CHANGED), compared(embedded, DOCUMENTS[:95])
    embedded.build("rings", spec_of(CHANGED), CHANGED, carried=first)
    with pytest.raises(Replaced):
        embedded.build("rings", spec_of(DOCUMENTS[:95]), DOCUMENTS[:95], carried=second)
    require_as_whole(embedded, tmp_path, CHANGED)
    # An index of the same names that was made again.
    found = compared(embedded, DOCUMENTS[:95])
    embedded.remove("rings")
    other = DOCUMENTS[::-1]
    embedded.build("rings", spec_of(other), other)
    assert indexed(embedded, other[1:])
    with pytest.raises(Replaced):
        embedded.build("rings", spec_of(DOCUMENTS[:95]), DOCUMENTS[:95], carried=found)
    require_as_whole(embedded, tmp_path, other[1:])


def test_only_the_manifest_of_a_version_in_parts_has_the_new_format(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    """So an older searchapp refuses it, and takes no part of it for a whole index."""
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert Manifest.read(folder_of(tmp_path, "rings")).format == 4
    indexed(embedded, CHANGED)
    assert '"format": 5' in (folder_of(tmp_path, "rings") / "manifest.json").read_text()
    indexed(embedded, CHANGED, merged=True)
    assert Manifest.read(folder_of(tmp_path, "rings")).format == 4


def test_a_change_of_the_analysis_takes_over_nothing_from_parts(embedded: EmbeddedEngine) -> None:
    other = copy.deepcopy(MAPPING)
    other["settings"]["analysis"]["filter"]["little"]["stopwords"] = ["ring"]
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    indexed(embedded, CHANGED)
    assert embedded.compare("rings", other) is None
