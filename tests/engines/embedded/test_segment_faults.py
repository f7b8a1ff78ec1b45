"""Faults of an index in segments: kills, full disks, damaged segments and concurrent builds."""

from __future__ import annotations

import json
import logging
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp.app.index import build
from searchapp.engines.base import VersionState
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import BeingBuilt, Damaged, DataError, EngineRefused, SearchappError
from searchapp.lucene.index.layout import MANIFEST, STAMP, IndexManifest
from searchapp.lucene.index.versions import IndexFolder
from searchapp.model import Document
from searchapp.progress import SilentProgress
from tests.engines.embedded.conftest import MAPPING, spec_of
from tests.engines.embedded.segmented import (
    DOCUMENTS,
    EDITED,
    fill_disk,
    index_documents,
    keep_segments,
    live_folder,
    plan_update,
    require_same_as_fresh,
    versions,
)
from tests.profile import FULL
from tests.programs import Program

UPDATED = [*EDITED[3:30], DOCUMENTS[30], Document("newer", "ring"), *EDITED[31:]]


@pytest.fixture
def folder(embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a live version of two segments; later updates keep both."""
    keep_segments(monkeypatch)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert index_documents(embedded, EDITED)
    return live_folder(tmp_path)


def files(folder: Path) -> list[Path]:
    """Return all files of a version and of the version whose segment it keeps."""
    paths = sorted([*folder.with_name("000001").rglob("*"), *folder.rglob("*")])
    return [file for file in paths if file.is_file() and file.name != STAMP]


BUILD_UNTIL_KILLED = """
import json, os, shutil, signal, sys
from pathlib import Path
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.lucene.index import segments, versions
from searchapp.lucene.index.arrays import ArrayFile
from searchapp.model import Document

segments.count_kept = lambda live, new: len(live)
home, remaining, how, arguments = sys.argv[1:]
remaining = int(remaining)
mapping, documents = json.loads(arguments)
documents = [Document(*fields) for fields in documents]

def counted(function):
    def count(*args, **kwargs):
        global remaining
        remaining -= 1
        if remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)
    return count

embedded = EmbeddedEngine(Path(home), "test")
update = embedded.compare("rings", mapping)
for _document in update.watch(documents):
    pass
plan = update.carried(merged=how == "merged")
ArrayFile.append = counted(ArrayFile.append)
versions.synchronize = counted(versions.synchronize)
Path.replace = counted(Path.replace)
shutil.rmtree = counted(shutil.rmtree)
embedded.build("rings", IndexSpec(mapping, len(documents), "1"), documents, carried=plan)
print("built", remaining)
"""

TOO_MANY_STEPS = 10_000
"""More steps than a build has."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", ["beside", "merged"])
def test_the_live_version_survives_a_kill_at_any_step(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, how: str
) -> None:
    """The short profile tests a few steps, including those before and after the new version goes live."""
    shutil.copytree(tmp_path, saved := tmp_path.with_name(f"{tmp_path.name}-saved"))

    arguments = json.dumps([MAPPING, [(document.id, document.text, document.fields) for document in UPDATED]])

    def run(remaining: int) -> tuple[int, str]:
        with Program(BUILD_UNTIL_KILLED, tmp_path, remaining, how, arguments) as program:
            output, errors = program.communicate()
            return program.wait(), output or errors

    code, output = run(TOO_MANY_STEPS)
    assert code == 0, output
    steps = TOO_MANY_STEPS - int(output.split()[1])
    live = set()
    for step in range(1, steps + 1) if FULL else (steps // 2, steps - 1, steps):
        shutil.rmtree(tmp_path)
        shutil.copytree(saved, tmp_path)
        code, output = run(step)
        assert code == -signal.SIGKILL, output
        version = live_folder(tmp_path)
        live.add(version.name)
        assert embedded.verify("rings", SilentProgress()) is not None
        require_same_as_fresh(embedded, EDITED if version.name == folder.name else UPDATED)
        # the next build removes the leftovers
        assert index_documents(embedded, EDITED)
        assert versions(tmp_path) == sorted(
            [*IndexManifest.read(live_folder(tmp_path)).kept, live_folder(tmp_path).name]
        )
    assert live == {folder.name, "000003"}


def test_missing_and_altered_files_of_segments_are_named(embedded: EmbeddedEngine, folder: Path) -> None:
    """The short profile tests every ninth file."""
    for file in files(folder) if FULL else files(folder)[::9]:
        content = file.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]
        for damage in (None, content[:middle], flipped):
            file.unlink() if damage is None else file.write_bytes(damage)
            with pytest.raises(DataError, match=rf"the index in .* is damaged \(.*{file.name}.*\)"):
                embedded.verify("rings", SilentProgress())
            assert embedded.index_info("rings") is None  # so that the next `index` builds it again
            if damage != flipped:  # `stored` checks only sizes
                (stored,) = (index for index in embedded.stored() if index.version == "test-rings-000002")
                assert stored.state is VersionState.unreadable
        file.write_bytes(content)
    assert embedded.index_info("rings") is not None


@pytest.mark.parametrize("part", ["000001/digests.npy", "000001/documents.npy", "000002/dead-000001.npy"])
def test_indexing_again_replaces_a_damaged_segment(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, part: str
) -> None:
    file = folder.parent / part
    file.write_bytes(file.read_bytes()[:-9] + b"x" * 9)
    plan = plan_update(embedded, UPDATED)
    serving = build(embedded, "rings", spec_of(UPDATED), None, UPDATED, "", SilentProgress(), plan)
    assert serving.built
    require_same_as_fresh(embedded, UPDATED)
    assert embedded.verify("rings", SilentProgress()) is not None


def test_a_base_that_is_damaged_during_an_update_leads_to_a_complete_build(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    plan = plan_update(embedded, UPDATED)
    shutil.rmtree(folder.with_name("000001"))
    with pytest.raises(Damaged, match="missing"):
        embedded.build("rings", spec_of(UPDATED), UPDATED, carried=plan)
    serving = build(embedded, "rings", spec_of(UPDATED), None, UPDATED, "", SilentProgress(), plan)
    assert "the previous version is damaged" in serving.note
    require_same_as_fresh(embedded, UPDATED)


def test_a_replaced_base_of_the_same_name_is_rejected(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    base = folder.with_name("000001")
    rotated = [*DOCUMENTS[1:], DOCUMENTS[0]]
    embedded.build("other", spec_of(rotated), rotated)
    shutil.rmtree(base)
    shutil.copytree(live_folder(tmp_path, "other"), base)
    with pytest.raises(Damaged, match="000001 is not the version that it refers to"):
        embedded.verify("rings", SilentProgress())
    assert embedded.index_info("rings") is None
    assert embedded.compare("rings", MAPPING) is None
    shutil.rmtree(base)
    with pytest.raises(Damaged, match="000001, which it refers to, is missing"):
        embedded.verify("rings", SilentProgress())
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    require_same_as_fresh(embedded, DOCUMENTS)


def test_older_versions_are_kept_until_a_new_one_is_live_if_the_base_is_unknown(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    manifest = folder / MANIFEST
    content = manifest.read_bytes()
    manifest.write_bytes(b"{" + content)
    (folder.parent / "000007").mkdir()
    with pytest.raises(EngineRefused, match="5 documents arrived instead of 100"):
        embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS[:5])
    assert versions(tmp_path) == ["000001", "000002"]
    manifest.write_bytes(content)
    require_same_as_fresh(embedded, EDITED)
    manifest.write_bytes(b"{" + content)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert versions(tmp_path) == ["000003"]


@pytest.mark.parametrize("merged", [False, True])
def test_a_full_disk_does_not_change_the_live_version(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    before = {file: file.read_bytes() for file in files(folder)}
    for pieces in (0, 20, 50):
        plan = plan_update(embedded, UPDATED, merged=merged)
        with (
            monkeypatch.context() as patch,
            pytest.raises(SearchappError, match="could not be written: no space left"),
        ):
            fill_disk(patch, pieces)
            embedded.build("rings", spec_of(UPDATED), UPDATED, carried=plan)
        assert {file: file.read_bytes() for file in files(folder)} == before
        assert versions(tmp_path) == ["000001", "000002"]
    assert index_documents(embedded, UPDATED, merged=merged)
    require_same_as_fresh(embedded, UPDATED)


@pytest.mark.parametrize("merged", [False, True])
def test_a_damaged_file_of_a_segment_is_detected_or_not_needed(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, merged: bool
) -> None:
    """The short profile tests every fifth file and the files that a merge copies completely."""
    shutil.copytree(folder.parent, saved := tmp_path / "saved")
    copied = {f"field1.{part}.npy" for part in ("documents", "frequencies", "positions", "terms", "norms")}
    copied |= {"digests.npy", "documents.npy", "ids.terms.npy", "ids.documents.npy"}
    detected = set()
    for number, file in enumerate(files(folder)):
        if file.name == MANIFEST or not (FULL or file.name in copied or number % 5 == 0):
            continue
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 4]))
        plan = plan_update(embedded, UPDATED, merged=merged)
        try:
            if plan is None:
                raise Damaged("not compared")
            embedded.build("rings", spec_of(UPDATED), UPDATED, carried=plan)
        except Damaged:
            detected.add(file.name)
            assert live_folder(tmp_path) == folder
        else:
            require_same_as_fresh(embedded, UPDATED)
        shutil.rmtree(folder.parent)
        shutil.copytree(saved, folder.parent)
    assert copied <= detected


@pytest.mark.parametrize("name", [MANIFEST, "digests.npy"])
def test_verbose_reports_that_a_damaged_version_can_not_be_reused(
    embedded: EmbeddedEngine, folder: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    file = folder / name
    file.write_bytes(file.read_bytes()[:-9] + b"x" * 9)
    caplog.set_level(logging.INFO, "searchapp.requests")
    assert plan_update(embedded, UPDATED) is None
    (message,) = caplog.messages
    assert message.startswith("rings: no document can be reused, because the live version can't be read: ")
    assert name in message


@pytest.mark.parametrize("damage", ["documents", "deletions"])
def test_segments_with_contradicting_document_counts_are_rejected(
    embedded: EmbeddedEngine, folder: Path, damage: str
) -> None:
    """The manifest is wrong but has a valid digest, as a bug in searchapp could write it."""
    manifest = IndexManifest.read(folder)
    if damage == "documents":
        manifest = replace(manifest, total=7)
    else:
        segment = manifest.kept["000001"]
        deletions = segment.deletions._replace(documents=segment.deletions.documents + 1)
        manifest = replace(manifest, kept={"000001": segment._replace(deletions=deletions)})
    manifest.write()
    with pytest.raises(Damaged, match="do not agree on the"):
        embedded.open("rings")


def test_nothing_is_written_while_another_process_builds(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    plan = plan_update(embedded, UPDATED)
    with IndexFolder(folder.parent)._locked(), pytest.raises(BeingBuilt):
        embedded.build("rings", spec_of(UPDATED), UPDATED, carried=plan)
    assert live_folder(tmp_path) == folder
    embedded.build("rings", spec_of(UPDATED), UPDATED, carried=plan)
    require_same_as_fresh(embedded, UPDATED)
