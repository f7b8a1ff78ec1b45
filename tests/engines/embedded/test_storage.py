"""An index is a folder that is whole or not there, whatever happens to whoever builds it."""

from __future__ import annotations

import fcntl
import io
import json
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import hypothesis
import numpy as np
import pytest

from searchapp.config.settings import Settings
from searchapp.engines import embedded as embedded_index
from searchapp.engines import open_engine
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import DataError, EngineRefused
from searchapp.files import digest_json
from searchapp.lucene import native
from searchapp.lucene.index import arrays, impacts, postings, reader, writer
from searchapp.lucene.index.arrays import StoredArray, Terms, TermsWriter
from searchapp.lucene.index.layout import MANIFEST, STAMP
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of
from tests.profile import FULL
from tests.programs import Program

DOCUMENTS = [
    Document(str(number), f"ring {'group ' * (number % 5)} field{number % 7}") for number in range(100)
]
NEWER = [Document(str(number), f"ring newer {number}") for number in range(50)]
RING = body({"match": {"text": "ring group"}})

KILLS = 200 if hypothesis.settings().max_examples > 100 else 5


def hits(index: EmbeddedIndex) -> list[tuple[str, float]]:
    (found,) = index.search([RING])
    return [(hit.document_id, hit.score) for hit in found]


def built(engine: EmbeddedEngine, documents: list[Document] = DOCUMENTS) -> Path:
    """Build an index and return the folder of the version that serves."""
    info = engine.build("rings", spec_of(documents, digest=str(len(documents))), documents)
    return Path(engine.info().location) / "test-rings" / info.version.rpartition("-")[2]


def files_of(folder: Path) -> list[Path]:
    """What a version consists of; that it was verified is only noted there."""
    return [file for file in sorted(folder.iterdir()) if file.name != STAMP]


def test_an_index_that_is_not_there_is_named(embedded: EmbeddedEngine) -> None:
    assert embedded.index_info("rings") is None
    with pytest.raises(EngineRefused, match=r"there is no index in .*test-rings: .*searchapp index rings"):
        embedded.open("rings")


def test_a_new_version_takes_the_place_of_the_old_one(embedded: EmbeddedEngine) -> None:
    old = built(embedded)
    first = embedded.index_info("rings")
    new = built(embedded, NEWER)
    second = embedded.index_info("rings")
    assert first is not None and second is not None
    assert (first.documents, second.documents) == (100, 50)
    assert first.version != second.version
    assert new.exists() and not old.exists()


def test_an_open_index_answers_from_its_version_after_a_newer_one_serves(embedded: EmbeddedEngine) -> None:
    built(embedded)
    index = embedded.open("rings")
    with closing(EmbeddedEngine(Path(embedded.info().location).parent, "test")) as other:
        expected = hits(other.open("rings"))
    built(embedded, NEWER)
    assert hits(index) == expected
    assert index.find(RING)[0].source["text"].startswith("ring")
    assert index.info.documents == 100
    assert hits(embedded.open("rings")) != expected


def test_a_build_that_fails_leaves_the_old_version_serving_and_nothing_else(embedded: EmbeddedEngine) -> None:
    folder = built(embedded)

    def failing() -> object:
        yield from NEWER[:20]
        raise RuntimeError("the reader of documents failed")

    with pytest.raises(RuntimeError):
        embedded.build("rings", spec_of(NEWER), failing())  # type: ignore[arg-type]
    assert [entry.name for entry in folder.parent.iterdir() if entry.is_dir()] == [folder.name]
    assert len(hits(embedded.open("rings"))) == 50


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([Document("1", "a"), Document("1", "b")], "two documents have the id 1"),
        ([Document("1", "a", {"colour": "red"})], "document 1: the mapping has no field colour"),
        (
            [Document("1", "a", {"year": "soon"})],
            "document 1: year is a integer field, but its value is 'soon'",
        ),
        ([Document("1", "a", {"year": 2**40})], "document 1: .* does not fit into year"),
        ([Document("1", "a \ud800")], "document 1: it has half of a surrogate pair"),
        ([Document("1", "a", {"tag": "é" * 20000})], "document 1: tag has a term longer than 32766 bytes"),
        ([Document("1", "a", {"tag": {"deep": 1}})], "document 1: tag is a keyword field"),
    ],
)
def test_documents_that_do_not_fit_are_named(
    embedded: EmbeddedEngine, documents: list[Document], message: str
) -> None:
    with pytest.raises(EngineRefused, match=message):
        embedded.build("rings", spec_of(documents), documents)
    assert embedded.index_info("rings") is None


def test_documents_that_are_missing_are_noticed(embedded: EmbeddedEngine) -> None:
    with pytest.raises(EngineRefused, match="99 documents arrived instead of 100"):
        embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS[1:])


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ({"RUN_TOKENS": 17}, {}),
        ({"RUN_TOKENS": 17}, {"MERGED_TERMS": 8, "FEWEST_TERMS": 2, "MERGED_TOKENS": 5}),
        ({"RUN_TOKENS": 17}, {"MERGED_TERMS": 1, "FEWEST_TERMS": 1, "MERGED_TOKENS": 1}),
        ({"RUN_TERMS": 1}, {"MERGED_TOKENS": 40}),
        ({}, {"MERGED_TERMS": 3, "FEWEST_TERMS": 1, "MERGED_TOKENS": 5}),
    ],
)
def test_runs_on_disk_merge_to_what_one_run_gives(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], merged: dict[str, int]
) -> None:
    def contents(folder: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in folder.glob("*.npy")}

    at_once = contents(built(embedded))
    monkeypatch.setattr(writer, "BATCH_DOCUMENTS", 9)
    for name, size in sizes.items():
        monkeypatch.setattr(postings, name, size)
    for name, size in merged.items():
        monkeypatch.setattr(postings, name, size)
    assert contents(built(embedded)) == at_once


def test_impacts_are_the_same_whatever_is_computed_at_a_time(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(folder: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in folder.glob("*impacts.npy")}

    at_once = found(built(embedded))
    assert at_once
    monkeypatch.setattr(impacts, "CHUNK", 7)
    assert found(built(embedded)) == at_once


def test_an_id_that_comes_twice_is_named_across_runs(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "RUN_TOKENS", 10)
    documents = [*DOCUMENTS, Document("77", "again")]
    with pytest.raises(EngineRefused, match="two documents have the id 77"):
        embedded.build("rings", spec_of(documents), documents)


def test_ids_are_right_when_few_are_remembered(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(embedded)
    expected = hits(embedded.open("rings"))
    monkeypatch.setattr(reader._IdCache, "SMALL_INDEX", 1)
    monkeypatch.setattr(reader._IdCache, "CACHED_IDS", 3)
    index = embedded.open("rings")
    assert hits(index) == expected
    assert hits(index) == expected


@pytest.mark.parametrize("dtype", sorted(arrays.TYPES))
def test_an_array_is_written_as_numpy_writes_it(tmp_path: Path, dtype: str) -> None:
    for length in (0, 1, 9_999, 100_000):
        values = np.arange(length).astype(dtype)
        arrays.save(tmp_path, str(length), values)
        with io.BytesIO() as expected:
            np.save(expected, values)
            assert (tmp_path / f"{length}.npy").read_bytes() == expected.getvalue()
        assert arrays.load(tmp_path, str(length)).tolist() == values.tolist()


def test_a_term_is_found_by_its_bytes(tmp_path: Path) -> None:
    words = sorted(
        {"", "a", "ab", "b", "é", "😀", "\uffff", "z" * 1000} | {f"w{number}" for number in range(500)}
    )
    terms_writer = TermsWriter()
    terms_writer.add(word.encode() for word in words)
    terms_writer.write(tmp_path, "words")
    terms = Terms.open(lambda name: StoredArray(arrays.load(tmp_path, name)), "words")
    assert [term.decode() for term in terms] == words
    assert [terms.rank(word) for word in words] == list(range(len(words)))
    assert [terms.rank(word) for word in ("0", "aa", "zz", "\U0010ffff")] == [None] * 4
    assert [words[rank] for rank in terms.with_prefix("w49")] == [
        word for word in words if word.startswith("w49")
    ]
    assert list(terms.with_prefix("")) == list(range(len(words)))


# Damage


def test_every_file_that_is_missing_or_cut_short_is_named(embedded: EmbeddedEngine) -> None:
    folder = built(embedded)
    for file in files_of(folder):
        content = file.read_bytes()
        for damage in (None, content[: len(content) // 2], b""):
            file.unlink() if damage is None else file.write_bytes(damage)
            if damage != content:
                with pytest.raises(
                    DataError, match=rf"the index in .*{folder.name} is damaged \(.*{file.name}.*\)"
                ):
                    embedded.open("rings")
                assert embedded.index_info("rings") is None  # so that the next `index` builds it again
        file.write_bytes(content)
    assert len(hits(embedded.open("rings"))) == 50


def test_a_newer_format_is_named(embedded: EmbeddedEngine) -> None:
    folder = built(embedded)
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    del manifest["digest"]
    newer = manifest | {"format": 99}
    for described in (newer, newer | {"digest": digest_json(newer)}):
        (folder / MANIFEST).write_text(json.dumps(described), "utf-8")
        with pytest.raises(
            EngineRefused, match=rf"{folder} has the format 99, but this version reads 7: use"
        ):
            embedded.open("rings")


def test_a_damaged_pointer_is_named_and_building_again_mends_it(embedded: EmbeddedEngine) -> None:
    folder = built(embedded)
    (folder.parent / "current").write_bytes(b"\xff\x00nonsense")
    assert embedded.index_info("rings") is None
    with pytest.raises(DataError, match="damaged"):
        embedded.open("rings")
    built(embedded)
    assert len(hits(embedded.open("rings"))) == 50


def test_a_folder_of_somebody_else_is_left_alone(embedded: EmbeddedEngine) -> None:
    folder = Path(embedded.info().location) / "test-rings"
    folder.mkdir(parents=True)
    (folder / "holiday.jpg").write_bytes(b"sun")
    with pytest.raises(
        EngineRefused, match=r"test-rings contains holiday.jpg, which is not part of an index"
    ):
        built(embedded)
    assert [entry.name for entry in folder.iterdir()] == ["holiday.jpg"]


def of_an_earlier_format(folder: Path) -> None:
    manifest = folder / "000001" / "manifest.json"
    described = {**json.loads(manifest.read_text()), "format": 2}
    manifest.write_text(json.dumps(described))


def with_a_pointer_without_checksum(folder: Path) -> None:
    (folder / "current").write_text("000001\n")


@pytest.mark.parametrize(
    ("make_old", "message"),
    [
        (of_an_earlier_format, "was written by an earlier version: build it again with `searchapp index`"),
        (
            with_a_pointer_without_checksum,
            r"is damaged \(current names no version\): build it again with `searchapp index`",
        ),
    ],
)
def test_an_index_of_an_earlier_searchapp_is_rejected_and_built_again(
    embedded: EmbeddedEngine, make_old: Callable[[Path], None], message: str
) -> None:
    make_old(built(embedded).parent)
    with pytest.raises(DataError, match=message):
        embedded.open("rings")
    assert embedded.index_info("rings") is None
    assert embedded.compare("rings", {}) is None
    built(embedded)
    assert len(hits(embedded.open("rings"))) == 50


# Several processes

BUILD = """
import sys, time
from pathlib import Path
from searchapp.engines.embedded import EmbeddedEngine
from tests.engines.embedded.conftest import spec_of
from tests.engines.embedded.test_storage import DOCUMENTS
from searchapp.lucene.index import postings
postings.RUN_TOKENS = 50
home, pause, name = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]

def slowly():
    for document in DOCUMENTS:
        time.sleep(pause)
        yield document

while True:
    print("building", flush=True)
    EmbeddedEngine(home, "test").build("rings", spec_of(DOCUMENTS), slowly())
    if name == "once":
        break
"""


SECONDS = 3 if FULL else 1
"""How long an index is read while it is built again and again."""


def building(home: Path, pause: float = 0, name: str = "forever") -> Program:
    """Another process that builds the index, as soon as it has begun."""
    process = Program(BUILD, home, pause, name)
    assert process.read_line() == "building"
    return process


def test_somebody_who_looks_for_a_builder_is_not_taken_for_one(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)  # by this process, which is alive
    lock, flock = tmp_path / "indexes" / "test-rings" / "lock", fcntl.flock
    looked: list[bool] = []

    def at_a_bad_moment(file: IO[str], how: int) -> None:
        if how & fcntl.LOCK_EX and not looked:
            with lock.open("rb") as other:
                flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
                looked.append(True)
                flock(file, how)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", at_a_bad_moment)
    assert embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS).documents == len(DOCUMENTS)
    assert looked


def test_a_second_build_is_refused_with_the_process_that_is_at_it(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    process = building(tmp_path, 0.05)
    try:
        lock = Path(embedded.info().location) / "test-rings" / "lock"
        while not (lock.exists() and lock.read_text() == str(process.pid)):
            time.sleep(0.01)
        with pytest.raises(
            EngineRefused, match=rf"process {process.pid} is building the index in .*test-rings"
        ):
            built(embedded)
    finally:
        process.close()
    built(embedded)  # the lock of a killed process holds nobody up


def test_readers_go_on_while_the_index_is_built_again_and_again(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    built(embedded)
    index = embedded.open("rings")
    expected = hits(index)
    process = building(tmp_path)
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            assert hits(index) == expected
            with closing(embedded.open("rings")) as fresh:
                assert hits(fresh) == expected
                assert len(fresh.find(RING)) == 50
    finally:
        process.close()


@pytest.mark.timeout(600)
def test_the_index_serves_after_each_kill_and_the_next_build_completes(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    built(embedded)
    expected = hits(embedded.open("rings"))
    chance = random.Random(11)
    for _ in range(KILLS):
        process = building(tmp_path)
        time.sleep(chance.random() * 0.25)
        process.close()
        assert process.returncode == -signal.SIGKILL
        with closing(embedded.open("rings")) as index:
            index.verify()
            assert hits(index) == expected
    folder = built(embedded)
    assert sorted(entry.name for entry in folder.parent.iterdir()) == sorted([folder.name, "current", "lock"])


def test_a_version_that_is_removed_while_it_is_opened_is_left_for_the_next(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(embedded)
    connect: Any = sqlite3.connect
    removed: list[str] = []

    def too_late(address: str, **options: Any) -> Any:
        if not removed and "mode=ro" in address:
            removed.append(address)
            built(embedded)  # as another process would: what served is removed
        return connect(address, **options)

    monkeypatch.setattr(sqlite3, "connect", too_late)
    with closing(embedded.open("rings")) as index:
        assert hits(index) and removed


def test_a_large_index_without_compiled_functions_is_said_to_be_slow_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [Document(str(number), "a") for number in range(3)]
    monkeypatch.setattr(embedded_index, "LARGE_INDEX", 3)
    told: list[str] = []
    settings = Settings(home=tmp_path)
    with closing(open_engine(settings, told.append)) as engine:
        engine.build("large", spec_of(documents), documents)
        engine.build("small", spec_of(documents[:2]), documents[:2])
        monkeypatch.setattr(native, "missing_reason", lambda: "")
        engine.open("large")
        monkeypatch.setattr(native, "missing_reason", lambda: "they were not compiled")
        engine.open("small")
        assert told == []
        engine.open("large")
        engine.open("large")
    assert told == [
        "searching 3 documents without compiled functions takes several times as long: they were not compiled"
    ]
