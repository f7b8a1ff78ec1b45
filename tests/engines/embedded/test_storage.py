"""An index is stored completely or not at all, also if its build fails or is killed."""

from __future__ import annotations

import fcntl
import io
import json
import random
import signal
import time
import tracemalloc
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
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import DataError, EngineRefused
from searchapp.files import digest_json
from searchapp.lucene import native
from searchapp.lucene.index import arrays, documents, impacts, postings, reader, writer
from searchapp.lucene.index.layout import FORMAT, MANIFEST, STAMP, IndexManifest
from searchapp.lucene.index.term_dictionary import Terms, TermsWriter
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
    (ranking,) = index.search([RING])
    return [(hit.document_id, hit.score) for hit in ranking]


def build_rings(engine: EmbeddedEngine, documents: list[Document] = DOCUMENTS) -> Path:
    """Build an index and return the folder of the live version."""
    info = engine.build("rings", spec_of(documents, digest=str(len(documents))), documents)
    return Path(engine.info().location) / "test-rings" / info.version.rpartition("-")[2]


def files_of(folder: Path) -> list[Path]:
    """Return the files of a version without the stamp of its verification."""
    return [file for file in sorted(folder.iterdir()) if file.name != STAMP]


def test_the_error_for_a_missing_index_names_it(embedded: EmbeddedEngine) -> None:
    assert embedded.index_info("rings") is None
    with pytest.raises(EngineRefused, match=r"there is no index in .*test-rings: .*searchapp index rings"):
        embedded.open("rings")


def test_a_new_version_replaces_the_old_one(embedded: EmbeddedEngine) -> None:
    old = build_rings(embedded)
    first = embedded.index_info("rings")
    new = build_rings(embedded, NEWER)
    second = embedded.index_info("rings")
    assert first is not None and second is not None
    assert (first.documents, second.documents) == (100, 50)
    assert first.version != second.version
    assert new.exists() and not old.exists()


def test_an_open_index_searches_its_version_after_a_newer_one_is_live(embedded: EmbeddedEngine) -> None:
    build_rings(embedded)
    index = embedded.open("rings")
    with closing(EmbeddedEngine(Path(embedded.info().location).parent, "test")) as second:
        expected = hits(second.open("rings"))
    build_rings(embedded, NEWER)
    assert hits(index) == expected
    assert index.find(RING)[0].source["text"].startswith("ring")
    assert index.info.documents == 100
    assert hits(embedded.open("rings")) != expected


def test_a_failed_build_leaves_only_the_old_version(embedded: EmbeddedEngine) -> None:
    folder = build_rings(embedded)

    def fail_after_20() -> object:
        yield from NEWER[:20]
        raise RuntimeError("the reader of documents failed")

    with pytest.raises(RuntimeError):
        embedded.build("rings", spec_of(NEWER), fail_after_20())  # type: ignore[arg-type]
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
def test_invalid_documents_are_named(
    embedded: EmbeddedEngine, documents: list[Document], message: str
) -> None:
    with pytest.raises(EngineRefused, match=message):
        embedded.build("rings", spec_of(documents), documents)
    assert embedded.index_info("rings") is None


def test_missing_documents_are_detected(embedded: EmbeddedEngine) -> None:
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
def test_merged_runs_on_disk_equal_a_single_run(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], merged: dict[str, int]
) -> None:
    def contents(folder: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in folder.glob("*.npy")}

    expected = contents(build_rings(embedded))
    monkeypatch.setattr(writer, "FIRST_DOCUMENTS", 9)
    for name, size in sizes.items():
        monkeypatch.setattr(postings, name, size)
    for name, size in merged.items():
        monkeypatch.setattr(postings, name, size)
    assert contents(build_rings(embedded)) == expected


STRINGS: dict[str, Any] = {
    "mappings": {
        "properties": {
            "id": {"type": "keyword"},
            "text": {
                "type": "text",
                "fields": {
                    "english": {"type": "text", "analyzer": "english"},
                    "spaces": {"type": "text", "analyzer": "whitespace", "index_options": "docs"},
                    "letters": {"type": "text", "analyzer": "simple"},
                },
            },
            "tag": {"type": "keyword"},
        }
    }
}


def test_documents_of_strings_are_indexed_alike_by_compiled_code_and_by_python(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(5)

    def text() -> str:
        return "".join(
            draw.choices("aAbß09_.,'\"\n 😀é日", [9, 3, 9, 1, 3, 1, 2, 2, 2, 2, 1, 1, 12, 1, 1, 1], k=40)
        )

    documents = [
        Document(f"d{number}", text(), {"tag": text()[:3]} if number % 3 else {}) for number in range(300)
    ]

    def contents() -> dict[str, bytes]:
        info = embedded.build("rings", IndexSpec(STRINGS, len(documents), "one"), documents)
        folder = Path(embedded.info().location) / "test-rings" / info.version.rpartition("-")[2]
        return {file.name: file.read_bytes() for file in folder.glob("*.npy")}

    expected = contents()
    monkeypatch.setattr(writer, "MOST_DOCUMENTS", 7)
    assert contents() == expected
    monkeypatch.setattr(writer.IndexWriter, "_strings", None)
    assert contents() == expected
    with native.without():
        assert contents() == expected


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (Document("2", "a", {"colour": "red"}), "document 2: .*colour"),
        (Document("2", "a \ud800"), "document 2: it has half of a surrogate pair"),
        (Document("2", "a", {"tag": "é" * 20000}), "document 2: tag has a term longer than 32766 bytes"),
    ],
)
def test_an_invalid_document_of_strings_is_named(
    embedded: EmbeddedEngine, document: Document, message: str
) -> None:
    mapping = {"mappings": {"dynamic": "strict", **STRINGS["mappings"]}}
    documents = [Document("1", "a"), document, Document("3", "b")]
    with pytest.raises(EngineRefused, match=message):
        embedded.build("rings", IndexSpec(mapping, len(documents), "one"), documents)
    assert embedded.index_info("rings") is None


def test_tokens_wait_on_disk(tmp_path: Path) -> None:
    count, length = 400, 40
    numbers = np.arange(count * length, dtype=np.int32)
    tokens = postings.PackedTokens(
        [f"w{number}" for number in range(1000)],
        numbers % 1000,
        numbers % length,
        np.arange(count, dtype=np.int32),
        np.full(count, length, np.int32),
    )
    inverter = postings.Inverter(tmp_path, "text")
    tracemalloc.start()
    try:
        for batch in range(200):  # 3.2 million tokens
            inverter.add(tokens, batch * count)
        runs = inverter.runs()
        _present, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(run.positions) for run in runs) == 200 * count * length
    assert peak < 80 * 2**20


def test_impacts_are_the_same_for_every_chunk_size(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impacts_of(folder: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in folder.glob("*impacts.npy")}

    expected = impacts_of(build_rings(embedded))
    assert expected
    monkeypatch.setattr(impacts, "CHUNK", 7)
    assert impacts_of(build_rings(embedded)) == expected


def test_duplicate_ids_in_different_runs_are_rejected(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "RUN_TOKENS", 10)
    documents = [*DOCUMENTS, Document("77", "again")]
    with pytest.raises(EngineRefused, match="two documents have the id 77"):
        embedded.build("rings", spec_of(documents), documents)


def test_ids_are_correct_with_a_small_cache(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_rings(embedded)
    expected = hits(embedded.open("rings"))
    monkeypatch.setattr(reader._IdCache, "SMALL_INDEX", 1)
    monkeypatch.setattr(reader._IdCache, "CACHED_IDS", 3)
    index = embedded.open("rings")
    assert hits(index) == expected
    assert hits(index) == expected


@pytest.mark.parametrize("dtype", sorted(arrays.TYPES))
def test_arrays_are_written_in_the_format_of_numpy(tmp_path: Path, dtype: str) -> None:
    for length in (0, 1, 9_999, 100_000):
        values = np.arange(length).astype(dtype)
        arrays.save(tmp_path, str(length), values)
        with io.BytesIO() as expected:
            np.save(expected, values)
            assert (tmp_path / f"{length}.npy").read_bytes() == expected.getvalue()
        assert arrays.load(tmp_path, str(length)).tolist() == values.tolist()


def test_terms_are_ordered_and_found_by_their_bytes(tmp_path: Path) -> None:
    words = sorted(
        {"", "a", "ab", "b", "é", "😀", "\uffff", "z" * 1000} | {f"w{number}" for number in range(500)}
    )
    terms_writer = TermsWriter()
    terms_writer.add(word.encode() for word in words)
    terms_writer.write(tmp_path, "words")
    terms = Terms.open(lambda name: arrays.mapped(tmp_path, name), "words", is_packed=True)
    assert [term.decode() for term in terms] == words
    assert [terms.rank(word) for word in words] == list(range(len(words)))
    assert [terms.rank(word) for word in ("0", "aa", "zz", "\U0010ffff")] == [None] * 4
    assert [words[rank] for rank in terms.with_prefix("w49")] == [
        word for word in words if word.startswith("w49")
    ]
    assert list(terms.with_prefix("")) == list(range(len(words)))


# Damage


def test_missing_and_truncated_files_are_named(embedded: EmbeddedEngine) -> None:
    folder = build_rings(embedded)
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


def test_a_newer_format_is_rejected(embedded: EmbeddedEngine) -> None:
    folder = build_rings(embedded)
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    del manifest["digest"]
    newer = manifest | {"format": 99}
    for content in (newer, newer | {"digest": digest_json(newer)}):
        (folder / MANIFEST).write_text(json.dumps(content), "utf-8")
        with pytest.raises(
            EngineRefused, match=rf"{folder} has the format 99, but this version reads {FORMAT}: use"
        ):
            embedded.open("rings")


def test_a_damaged_pointer_is_reported_and_replaced_by_a_build(embedded: EmbeddedEngine) -> None:
    folder = build_rings(embedded)
    (folder.parent / "current").write_bytes(b"\xff\x00nonsense")
    assert embedded.index_info("rings") is None
    with pytest.raises(DataError, match="damaged"):
        embedded.open("rings")
    build_rings(embedded)
    assert len(hits(embedded.open("rings"))) == 50


def test_a_folder_with_other_files_is_not_changed(embedded: EmbeddedEngine) -> None:
    folder = Path(embedded.info().location) / "test-rings"
    folder.mkdir(parents=True)
    (folder / "holiday.jpg").write_bytes(b"sun")
    with pytest.raises(
        EngineRefused, match=r"test-rings contains holiday.jpg, which is not part of an index"
    ):
        build_rings(embedded)
    assert [entry.name for entry in folder.iterdir()] == ["holiday.jpg"]


def write_an_earlier_format(folder: Path) -> None:
    manifest = folder / "000001" / "manifest.json"
    content = {**json.loads(manifest.read_text()), "format": 2}
    manifest.write_text(json.dumps(content))


def write_a_pointer_without_checksum(folder: Path) -> None:
    (folder / "current").write_text("000001\n")


@pytest.mark.parametrize(
    ("make_old", "message"),
    [
        (write_an_earlier_format, "was written by an earlier version: build it again with `searchapp index`"),
        (
            write_a_pointer_without_checksum,
            r"is damaged \(current names no version\): build it again with `searchapp index`",
        ),
    ],
)
def test_an_index_of_an_earlier_searchapp_is_rejected_and_built_again(
    embedded: EmbeddedEngine, make_old: Callable[[Path], None], message: str
) -> None:
    make_old(build_rings(embedded).parent)
    with pytest.raises(DataError, match=message):
        embedded.open("rings")
    assert embedded.index_info("rings") is None
    assert embedded.compare("rings", {}) is None
    build_rings(embedded)
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
"""How long an index is read while another process rebuilds it."""


def building(home: Path, pause: float = 0, name: str = "forever") -> Program:
    """Start a process that builds the index and wait until it has begun."""
    process = Program(BUILD, home, pause, name)
    assert process.read_line() == "building"
    return process


def test_a_process_that_checks_the_lock_does_not_block_a_build(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)  # the lock names this process, which is alive
    lock, flock = tmp_path / "indexes" / "test-rings" / "lock", fcntl.flock
    checks: list[bool] = []

    def check_during_lock(file: IO[str], how: int) -> None:
        if how & fcntl.LOCK_EX and not checks:
            with lock.open("rb") as second:
                flock(second, fcntl.LOCK_SH | fcntl.LOCK_NB)
                checks.append(True)
                flock(file, how)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", check_during_lock)
    assert embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS).documents == len(DOCUMENTS)
    assert checks


def test_a_second_build_is_rejected_with_the_id_of_the_building_process(
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
            build_rings(embedded)
    finally:
        process.close()
    build_rings(embedded)  # a killed process leaves no lock


def test_readers_continue_during_repeated_builds(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    build_rings(embedded)
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
def test_the_index_stays_live_after_each_kill_and_the_next_build_completes(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    build_rings(embedded)
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
    folder = build_rings(embedded)
    assert sorted(entry.name for entry in folder.parent.iterdir()) == sorted([folder.name, "current", "lock"])


def test_an_index_that_is_replaced_while_it_is_opened_is_opened_again(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_rings(embedded)
    open_documents = documents.open_documents
    removed: list[Path] = []

    def open_after_removal(manifest: IndexManifest, columns: Any) -> Any:
        if not removed:
            removed.append(manifest.folder)
            build_rings(embedded)  # removes the live version, as another process could
        return open_documents(manifest, columns)

    monkeypatch.setattr("searchapp.lucene.index.reader.open_documents", open_after_removal)
    with closing(embedded.open("rings")) as index:
        assert hits(index) and removed


def test_a_large_index_without_compiled_functions_is_reported_as_slow_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [Document(str(number), "a") for number in range(3)]
    monkeypatch.setattr(embedded_index, "LARGE_INDEX", 3)
    messages: list[str] = []
    settings = Settings(home=tmp_path)
    with closing(open_engine(settings, messages.append)) as engine:
        engine.build("large", spec_of(documents), documents)
        engine.build("small", spec_of(documents[:2]), documents[:2])
        monkeypatch.setattr(native, "missing_reason", lambda: "")
        engine.open("large")
        monkeypatch.setattr(native, "missing_reason", lambda: "they were not compiled")
        engine.open("small")
        assert messages == []
        engine.open("large")
        engine.open("large")
    assert messages == [
        "searching 3 documents without compiled functions takes several times as long: they were not compiled"
    ]
