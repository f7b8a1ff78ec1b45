"""A flipped bit in a file of an index is detected or changes no answer."""

from __future__ import annotations

import gc
import mmap
import os
import random
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from searchapp import processes
from searchapp.engines import embedded as index
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import Damaged, DataError, SearchappError
from searchapp.lucene.errors import CorruptIndex
from searchapp.lucene.index import arrays, layout
from searchapp.lucene.index.layout import CHECKSUMS, STAMP, IndexManifest
from searchapp.lucene.index.packed import PackedDocuments, PackedNumbers
from searchapp.lucene.index.versions import CURRENT
from searchapp.model import Document
from searchapp.progress import SilentProgress
from tests.engines.embedded.conftest import Query, body, spec_of

FLIPS = 2000 if hypothesis.settings().max_examples > 100 else 90
SEED = 20260101

SMALL = 512
"""Bytes of a block in these tests, so that files of a small index have several blocks."""

_draw = random.Random(SEED)
_WORDS = [f"{_draw.choice(['ring', 'group', 'field', 'ideal'])}{number}" for number in range(120)]
DOCUMENTS = [
    Document(
        f"document-{number}",
        " ".join(_draw.choices(_WORDS, range(1, 121), k=_draw.randint(3, 12))),
        {"tag": f"t{number % 9}", "year": 1900 + number % 50, "weight": number / 7},
    )
    for number in range(300)
]
QUERIES: list[Query] = [
    {"match": {"text": "ring119 group118 field117"}},
    {"match": {"text.alike": "ideal115 ring110"}},
    {"match_phrase": {"text": DOCUMENTS[7].text.rpartition(" ")[0]}},
    {"bool": {"must": [{"match": {"text.gaps": _WORDS[100]}}], "filter": [{"term": {"tag": "t3"}}]}},
    {"bool": {"should": [{"range": {"year": {"gte": 1930}}}, {"prefix": {"tag": "t"}}]}},
    {"ids": {"values": ["document-3", "document-250", "nobody"]}},
    {"bool": {"must_not": [{"exists": {"field": "tag"}}]}},
    {
        "function_score": {
            "query": {"match": {"text": _WORDS[111]}},
            "functions": [{"field_value_factor": {"field": "weight", "missing": 1}}],
        }
    },
]
HIGHLIGHT = {"type": "plain", "number_of_fragments": 0, "fields": {"text": {}}}


@pytest.fixture(autouse=True)
def small_blocks_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use several blocks for each file, several batches of topics and two processes."""
    monkeypatch.setattr(layout, "BLOCK", SMALL)
    monkeypatch.setattr(arrays, "BLOCK", SMALL)
    monkeypatch.setattr(index, "BATCH_BODIES", 2)
    monkeypatch.setattr(processes, "cores", lambda: 2)


@pytest.fixture
def folder(embedded: EmbeddedEngine) -> Path:
    """Build an index and return the folder of the live version."""
    info = embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    return Path(embedded.info().location) / "test-rings" / info.version.rpartition("-")[2]


def answers(engine: EmbeddedEngine) -> list[Any]:
    """Return rankings, and hits with source, highlights and explanations."""
    with closing(engine.open("rings")) as opened:
        rankings = list(opened.search(body(query, 40) for query in QUERIES))
        hits = [opened.find(body(query, 5, highlight=HIGHLIGHT, explain=True)) for query in QUERIES[:4]]
        return [rankings, hits]


def flip(file: Path, position: int, bit: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(position)
        (byte,) = opened.read(1)
        opened.seek(position)
        opened.write(bytes([byte ^ 1 << bit]))


def mark_verified(manifest: IndexManifest) -> None:
    """Mark the files as verified, as they are when a bit flips without the system's knowledge."""
    manifest.mark_verified()


@pytest.mark.timeout(3600)
def test_every_flipped_bit_is_detected_or_has_no_effect(
    embedded: EmbeddedEngine, folder: Path, record_property: Callable[[str, object], None]
) -> None:
    expected, manifest = answers(embedded), IndexManifest.read(folder)
    chance = random.Random(SEED)
    files = [*sorted(folder.iterdir()), folder.parent / CURRENT, folder.parent / "lock"]
    outcomes: Counter[str] = Counter()
    begin = time.monotonic()
    for number in range(FLIPS):
        file = files[number % len(files)]
        position, bit = chance.randrange(file.stat().st_size), chance.randrange(8)
        flip(file, position, bit)
        silently = chance.random() < 0.7 and file.name != STAMP
        if silently:
            mark_verified(manifest)
        where = f"bit {bit} of byte {position} of {file.name}"
        try:
            assert answers(embedded) == expected, f"{where} changes the hits"
            outcomes["without effect"] += 1
        except SearchappError as error:
            assert isinstance(error, Damaged), f"{where} is reported as another error: {error}"
            assert str(folder.parent) in str(error)
            assert embedded.index_info("rings") is None  # so that the next `index` builds it again
            outcomes["detected by reading" if silently else "detected before"] += 1
        if file.name != STAMP:
            flip(file, position, bit)
        mark_verified(manifest)
    assert answers(embedded) == expected
    assert outcomes.total() == FLIPS
    assert outcomes["detected by reading"] > outcomes["without effect"] / 2
    record_property("flips", f"{dict(outcomes)} in {time.monotonic() - begin:.0f} s")
    print(f"{FLIPS} flips: {dict(outcomes)} in {time.monotonic() - begin:.0f} s")


def test_a_flipped_bit_never_makes_the_pointer_name_another_version(
    embedded: EmbeddedEngine, folder: Path
) -> None:
    """A killed builder can leave complete versions whose numbers differ in one bit."""
    expected = answers(embedded)
    for number in (0, 2, 3, 5, 9):
        leftover = folder.with_name(f"{number:06d}")
        leftover.mkdir()
        for file in folder.iterdir():
            leftover.joinpath(file.name).write_bytes(file.read_bytes())
    pointer = folder.parent / CURRENT
    content = pointer.read_bytes()
    for position in range(len(content)):
        for bit in range(8):
            flip(pointer, position, bit)
            try:
                assert embedded._versions("rings").live() == folder
            except CorruptIndex as error:
                assert CURRENT in str(error)
            flip(pointer, position, bit)
    assert answers(embedded) == expected
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert len(list(folder.parent.iterdir())) == len(["a version", CURRENT, "lock"])


def test_indexing_again_replaces_a_damaged_index(embedded: EmbeddedEngine, folder: Path) -> None:
    expected, manifest = answers(embedded), IndexManifest.read(folder)
    file = folder / "ids.ranks.npy"
    flip(file, file.stat().st_size - 3, 2)
    mark_verified(manifest)
    assert embedded.index_info("rings") is not None  # not detected yet
    with pytest.raises(DataError, match=r"damaged \(ids.ranks.npy was altered\): build it again"):
        answers(embedded)
    assert embedded.index_info("rings") is None
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert answers(embedded) == expected


def test_an_altered_source_is_not_returned(embedded: EmbeddedEngine, folder: Path) -> None:
    manifest = IndexManifest.read(folder)
    flip(folder / "documents.npy", 200, 0)
    mark_verified(manifest)
    with closing(embedded.open("rings")) as opened:
        request = body({"ids": {"values": ["document-7"]}})
        assert len(next(opened.search([request]))) == 1  # a ranking does not read sources
        with pytest.raises(DataError, match=r"damaged \(documents.npy was altered\)"):
            opened.find(request)
    assert embedded.index_info("rings") is None


# Verification


@pytest.fixture
def verifications(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list to which the folders of completely verified versions are appended."""
    folders: list[Path] = []
    verify = IndexManifest.verify

    def record(manifest: IndexManifest, *rest: Any) -> None:
        folders.append(manifest.folder)
        verify(manifest, *rest)

    monkeypatch.setattr(IndexManifest, "verify", record)
    return folders


def test_files_are_verified_completely_once_after_a_change(
    embedded: EmbeddedEngine, folder: Path, verifications: list[Path]
) -> None:
    answers(embedded)
    assert not verifications  # the build has verified them
    file = folder / "ids.terms.npy"
    content = file.read_bytes()

    def replace_by_a_copy() -> None:
        (folder / "aside").write_bytes(content)
        (folder / "aside").replace(file)

    changes: list[Callable[[], object]] = [
        lambda: file.write_bytes(content),  # the same bytes with another time
        lambda: os.utime(file, ns=(0, 0)),
        replace_by_a_copy,
        (folder / STAMP).unlink,
        lambda: (folder / STAMP).write_bytes(b"\xff nonsense"),
    ]
    for change in changes:
        change()
        answers(embedded)
        assert len(verifications) == 1
        answers(embedded)
        assert embedded.index_info("rings") is not None
        assert len(verifications) == 1
        verifications.clear()
    flip(file, 200, 1)
    for _ in range(2):
        with pytest.raises(DataError, match=r"ids.terms.npy was altered"):
            answers(embedded)
    assert len(verifications) == 2


def test_files_are_verified_each_time_if_the_stamp_can_not_be_written(
    embedded: EmbeddedEngine, folder: Path, verifications: list[Path]
) -> None:
    (folder / STAMP).unlink()
    (folder / STAMP).mkdir()  # not even root can write a file there
    answers(embedded)
    answers(embedded)
    assert len(verifications) == 2


def test_explicit_verification_is_remembered(
    embedded: EmbeddedEngine, folder: Path, verifications: list[Path]
) -> None:
    (folder / STAMP).unlink()
    embedded.verify("rings", SilentProgress())
    answers(embedded)
    assert len(verifications) == 1
    flip(folder / CHECKSUMS, 130, 0)
    mark_verified(IndexManifest.read(folder))
    with pytest.raises(DataError, match="checksums.npy was altered"):
        embedded.verify("rings", SilentProgress())
    assert embedded.index_info("rings") is None


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the size of each block that this process verifies is appended."""
    sizes: list[int] = []

    class RecordingZlib:
        @staticmethod
        def crc32(content: bytes, value: int = 0) -> int:
            sizes.append(len(content))
            return zlib.crc32(content, value)

    monkeypatch.setattr(arrays, "zlib", RecordingZlib)
    return sizes


def test_opening_verifies_small_files_and_searching_the_needed_blocks(
    embedded: EmbeddedEngine, folder: Path, checked: list[int]
) -> None:
    with closing(embedded.open("rings")) as opened:
        small = [file for file in folder.glob("*.npy") if file.stat().st_size <= SMALL]
        starts = [file for file in folder.glob("*.starts.npy") if file not in small]
        assert len(checked) == len(small) + len(starts)  # the number of postings is the last start
        reader = opened.index.searchers[0].reader
        field = reader.fields["text"]
        assert isinstance(field._documents, PackedDocuments)
        assert isinstance(field._postings.positions, PackedNumbers)
        mapped = [reader._ranks, field._documents._differences._content, field._postings.positions._content]
        for column in mapped:
            assert isinstance(column.unverified().base.obj, mmap.mmap)  # type: ignore[union-attr]
        checked.clear()
        query = body({"match": {"text": _WORDS[0]}})
        list(opened.search([query]))
        large = [file for file in folder.glob("*.npy") if file not in small]
        assert 0 < sum(checked) < sum(file.stat().st_size for file in large)
        checked.clear()
        list(opened.search([query]))
        assert not checked


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system has no /proc")
def test_a_closed_index_keeps_no_file_descriptors(embedded: EmbeddedEngine, folder: Path) -> None:
    """Screens open many indexes and would run out of file descriptors."""

    def descriptor_count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    answers(embedded)
    gc.collect()
    gc.disable()  # garbage collections at random times would change the count
    try:
        before = descriptor_count()
        for _ in range(3):
            answers(embedded)
        assert descriptor_count() == before
    finally:
        gc.enable()


def test_blocks_verified_by_another_process_are_not_verified_again(
    embedded: EmbeddedEngine, folder: Path, checked: list[int]
) -> None:
    with closing(embedded.open("rings")) as opened:
        list(opened.search(body(query) for query in QUERIES * 10))  # in other processes
        checked.clear()
        list(opened.search([body(QUERIES[0])]))
        assert not checked
