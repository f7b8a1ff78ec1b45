"""A bit that has turned in a file of an index is noticed before anything is made of it, or changes no answer."""

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
from searchapp.lucene.index import arrays, documents, layout
from searchapp.lucene.index.layout import CHECKSUMS, STAMP, IndexManifest
from searchapp.lucene.index.versions import CURRENT
from searchapp.model import Document
from searchapp.progress import SilentProgress
from tests.engines.embedded.conftest import Query, body, spec_of

FLIPS = 2000 if hypothesis.settings().max_examples > 100 else 90
SEED = 20260101

SMALL = 512
"""Bytes of a block in these tests, so that the files of a small index have several."""

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
def several_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks a file, several batches of topics, and several processes whatever the machine."""
    monkeypatch.setattr(layout, "BLOCK", SMALL)
    monkeypatch.setattr(arrays, "BLOCK", SMALL)
    monkeypatch.setattr(index, "BATCH_BODIES", 2)
    monkeypatch.setattr(processes, "cores", lambda: 2)


@pytest.fixture
def folder(embedded: EmbeddedEngine) -> Path:
    """The version that serves."""
    info = embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    return Path(embedded.info().location) / "test-rings" / info.version.rpartition("-")[2]


def answers(engine: EmbeddedEngine) -> list[Any]:
    """All that an index is asked for: rankings, and hits with source, highlights and explanation."""
    with closing(engine.open("rings")) as opened:
        ranked = list(opened.search(body(query, 40) for query in QUERIES))
        found = [opened.find(body(query, 5, highlight=HIGHLIGHT, explain=True)) for query in QUERIES[:4]]
        return [ranked, found]


def flip(file: Path, place: int, bit: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        (byte,) = opened.read(1)
        opened.seek(place)
        opened.write(bytes([byte ^ 1 << bit]))


def stamped(manifest: IndexManifest) -> None:
    """Let the files count as verified: as they do when a bit turns and the system knows nothing of it."""
    manifest.mark_verified()


@pytest.mark.timeout(3600)
def test_every_bit_that_turns_is_noticed_or_without_effect(
    embedded: EmbeddedEngine, folder: Path, record_property: Callable[[str, object], None]
) -> None:
    expected, manifest = answers(embedded), IndexManifest.read(folder)
    chance = random.Random(SEED)
    files = [*sorted(folder.iterdir()), folder.parent / CURRENT, folder.parent / "lock"]
    seen: Counter[str] = Counter()
    begin = time.monotonic()
    for number in range(FLIPS):
        file = files[number % len(files)]
        place, bit = chance.randrange(file.stat().st_size), chance.randrange(8)
        flip(file, place, bit)
        silently = chance.random() < 0.7 and file.name != STAMP
        if silently:
            stamped(manifest)
        where = f"bit {bit} of byte {place} of {file.name}"
        try:
            assert answers(embedded) == expected, f"{where} changes what is found"
            seen["without effect"] += 1
        except SearchappError as error:
            assert isinstance(error, Damaged), f"{where} is taken for something else: {error}"
            assert str(folder.parent) in str(error)
            assert embedded.index_info("rings") is None  # so that the next `index` builds it again
            seen["noticed when it was read" if silently else "noticed before"] += 1
        if file.name != STAMP:
            flip(file, place, bit)
        stamped(manifest)
    assert answers(embedded) == expected
    assert seen.total() == FLIPS and seen["noticed when it was read"] > seen["without effect"] / 2
    record_property("flips", f"{dict(seen)} in {time.monotonic() - begin:.0f} s")
    print(f"{FLIPS} flips: {dict(seen)} in {time.monotonic() - begin:.0f} s")


def test_the_pointer_never_leads_to_a_version_that_was_left_over(
    embedded: EmbeddedEngine, folder: Path
) -> None:
    """Numbers that differ in one bit, both of them whole versions: the builder was killed while it cleaned up."""
    expected = answers(embedded)
    for number in (0, 2, 3, 5, 9):
        other = folder.with_name(f"{number:06d}")
        other.mkdir()
        for file in folder.iterdir():
            other.joinpath(file.name).write_bytes(file.read_bytes())
    pointer = folder.parent / CURRENT
    content = pointer.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            flip(pointer, place, bit)
            try:
                assert embedded._versions("rings").live() == folder
            except CorruptIndex as error:
                assert CURRENT in str(error)
            flip(pointer, place, bit)
    assert answers(embedded) == expected
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert len(list(folder.parent.iterdir())) == len(["a version", CURRENT, "lock"])


def test_damage_that_is_noticed_is_mended_by_indexing_again(embedded: EmbeddedEngine, folder: Path) -> None:
    expected, manifest = answers(embedded), IndexManifest.read(folder)
    file = folder / "ids.ranks.npy"
    flip(file, file.stat().st_size - 3, 2)
    stamped(manifest)
    assert embedded.index_info("rings") is not None  # nobody knows yet
    with pytest.raises(DataError, match=r"damaged \(ids.ranks.npy was altered\): build it again"):
        answers(embedded)
    assert embedded.index_info("rings") is None
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert answers(embedded) == expected


def test_a_source_that_was_altered_is_not_shown(embedded: EmbeddedEngine, folder: Path) -> None:
    manifest = IndexManifest.read(folder)
    file = folder / documents.FILE
    text = DOCUMENTS[7].text.encode()
    flip(file, file.read_bytes().index(text) + 2, 0)
    stamped(manifest)
    with closing(embedded.open("rings")) as opened:
        found = body({"ids": {"values": ["document-7"]}})
        assert len(next(opened.search([found]))) == 1  # a ranking does not read it
        with pytest.raises(DataError, match=r"damaged \(document 7 in documents.sqlite was altered\)"):
            opened.find(found)
    assert embedded.index_info("rings") is None


# Verified once


@pytest.fixture
def verifications(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that are verified whole from now on."""
    seen: list[Path] = []
    verify = IndexManifest.verify

    def counted(manifest: IndexManifest, *rest: Any) -> None:
        seen.append(manifest.folder)
        verify(manifest, *rest)

    monkeypatch.setattr(IndexManifest, "verify", counted)
    return seen


def test_files_are_verified_whole_once_after_they_changed(
    embedded: EmbeddedEngine, folder: Path, verifications: list[Path]
) -> None:
    answers(embedded)
    assert not verifications  # who wrote the files has just read them
    file = folder / "ids.terms.npy"
    content = file.read_bytes()

    def put_in_its_place() -> None:
        (folder / "aside").write_bytes(content)
        (folder / "aside").replace(file)

    changes: list[Callable[[], object]] = [
        lambda: file.write_bytes(content),  # the same bytes, but who knows
        lambda: os.utime(file, ns=(0, 0)),
        put_in_its_place,
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


def test_where_nothing_can_be_written_files_are_verified_each_time(
    embedded: EmbeddedEngine, folder: Path, verifications: list[Path]
) -> None:
    (folder / STAMP).unlink()
    (folder / STAMP).mkdir()  # nothing can be written there, not even by root
    answers(embedded)
    answers(embedded)
    assert len(verifications) == 2


def test_verifying_by_hand_remembers_what_it_found(
    embedded: EmbeddedEngine, folder: Path, verifications: list[Path]
) -> None:
    (folder / STAMP).unlink()
    embedded.verify("rings", SilentProgress())
    answers(embedded)
    assert len(verifications) == 1
    flip(folder / CHECKSUMS, 130, 0)
    stamped(IndexManifest.read(folder))
    with pytest.raises(DataError, match="checksums.npy was altered"):
        embedded.verify("rings", SilentProgress())
    assert embedded.index_info("rings") is None


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes of blocks this process compares with their checksums, one number a block."""
    seen: list[int] = []

    class Counted:
        @staticmethod
        def crc32(content: bytes, value: int = 0) -> int:
            seen.append(len(content))
            return zlib.crc32(content, value)

    monkeypatch.setattr(arrays, "zlib", Counted)
    return seen


def test_opening_reads_next_to_nothing_and_searching_what_it_needs(
    embedded: EmbeddedEngine, folder: Path, checked: list[int]
) -> None:
    with closing(embedded.open("rings")) as opened:
        small = [file for file in folder.glob("*.npy") if file.stat().st_size <= SMALL]
        assert len(checked) == len(small)
        reader = opened.index.searchers[0].reader
        field = reader.fields["text"]
        mapped = [field._documents, field._positions, field._frequencies, reader._ranks]
        for column in mapped:
            assert isinstance(column.unverified().base.obj, mmap.mmap)  # type: ignore[union-attr]
        checked.clear()
        query = body({"match": {"text": _WORDS[0]}})
        list(opened.search([query]))
        assert 0 < sum(checked) < sum(column.unverified().nbytes for column in mapped)
        checked.clear()
        list(opened.search([query]))
        assert not checked


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system has no /proc")
def test_an_index_that_was_closed_keeps_no_descriptors(embedded: EmbeddedEngine, folder: Path) -> None:
    """A process that opens indexes again and again, as the screens do, would run out of them."""

    def counted() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    answers(embedded)
    gc.collect()
    gc.disable()  # how often it searches for garbage depends on all else that the process does
    try:
        before = counted()
        for _ in range(3):
            answers(embedded)
        assert counted() == before
    finally:
        gc.enable()


def test_what_one_process_has_verified_no_other_verifies_again(
    embedded: EmbeddedEngine, folder: Path, checked: list[int]
) -> None:
    with closing(embedded.open("rings")) as opened:
        list(opened.search(body(query) for query in QUERIES * 10))  # in other processes
        checked.clear()
        list(opened.search([body(QUERIES[0])]))
        assert not checked
