"""What may go wrong with an index in segments: kills, full disks, damage of a segment, and who builds at once."""

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
    compared,
    everything_kept,
    fill_disk,
    folder_of,
    indexed,
    require_as_whole,
    versions,
)
from tests.profile import FULL
from tests.programs import Program

AGAIN = [*EDITED[3:30], DOCUMENTS[30], Document("newer", "ring"), *EDITED[31:]]


@pytest.fixture
def folder(embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A version of two segments, which serves; what is indexed next keeps both."""
    everything_kept(monkeypatch)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert indexed(embedded, EDITED)
    return folder_of(tmp_path)


def files(folder: Path) -> list[Path]:
    """Every file of a version and of the one whose segment it keeps."""
    found = sorted([*folder.with_name("000001").rglob("*"), *folder.rglob("*")])
    return [file for file in found if file.is_file() and file.name != STAMP]


KILLED = """
import json, os, shutil, signal, sys
from pathlib import Path
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.lucene.index import segments, versions
from searchapp.lucene.index.arrays import ArrayFile
from searchapp.model import Document

segments.count_kept = lambda found, new: len(found)
home, left, how, given = sys.argv[1:]
left = int(left)
mapping, documents = json.loads(given)
documents = [Document(*one) for one in documents]

def counted(function):
    def count(*given, **more):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **more)
    return count

embedded = EmbeddedEngine(Path(home), "test")
found = embedded.compare("rings", mapping)
for _document in found.watch(documents):
    pass
found = found.carried(merged=how == "merged")
ArrayFile.append = counted(ArrayFile.append)
versions.synchronize = counted(versions.synchronize)
Path.replace = counted(Path.replace)
shutil.rmtree = counted(shutil.rmtree)
embedded.build("rings", IndexSpec(mapping, len(documents), "1"), documents, carried=found)
print("built", left)
"""

MANY = 10_000
"""More steps than a build has."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", ["beside", "merged"])
def test_what_serves_outlives_a_kill_at_any_moment(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, how: str
) -> None:
    """In the short form at some steps only; those before and after the new version serves are among them."""
    shutil.copytree(tmp_path, saved := tmp_path.with_name(f"{tmp_path.name}-saved"))

    given = json.dumps([MAPPING, [(one.id, one.text, one.fields) for one in AGAIN]])

    def run(left: int) -> tuple[int, str]:
        with Program(KILLED, tmp_path, left, how, given) as program:
            said, errors = program.ended()
            return program.wait(), said or errors

    code, said = run(MANY)
    assert code == 0, said
    steps = MANY - int(said.split()[1])
    served = set()
    for left in range(1, steps + 1) if FULL else (steps // 2, steps - 1, steps):
        shutil.rmtree(tmp_path)
        shutil.copytree(saved, tmp_path)
        code, said = run(left)
        assert code == -signal.SIGKILL, said
        version = folder_of(tmp_path)
        served.add(version.name)
        assert embedded.verify("rings", SilentProgress()) is not None
        require_as_whole(embedded, EDITED if version.name == folder.name else AGAIN)
        # Who builds next removes what was left.
        assert indexed(embedded, EDITED)
        assert versions(tmp_path) == sorted(
            [*IndexManifest.read(folder_of(tmp_path)).kept, folder_of(tmp_path).name]
        )
    assert served == {folder.name, "000003"}


def test_every_file_of_a_part_that_is_missing_or_altered_is_named(
    embedded: EmbeddedEngine, folder: Path
) -> None:
    """In the short form one file in nine."""
    for file in files(folder) if FULL else files(folder)[::9]:
        content = file.read_bytes()
        middle = len(content) // 2
        turned = content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]
        for damage in (None, content[:middle], turned):
            file.unlink() if damage is None else file.write_bytes(damage)
            with pytest.raises(DataError, match=rf"the index in .* is damaged \(.*{file.name}.*\)"):
                embedded.verify("rings", SilentProgress())
            assert embedded.index_info("rings") is None  # so that the next `index` builds it again
            if damage != turned:  # what is missing or cut short is noticed by a look at sizes
                (stored,) = (one for one in embedded.stored() if one.version == "test-rings-000002")
                assert stored.state is VersionState.unreadable
        file.write_bytes(content)
    assert embedded.index_info("rings") is not None


@pytest.mark.parametrize("part", ["000001/digests.npy", "000001/documents.sqlite", "000002/dead-000001.npy"])
def test_a_damaged_part_is_mended_by_indexing_again(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, part: str
) -> None:
    file = folder.parent / part
    file.write_bytes(file.read_bytes()[:-9] + b"x" * 9)
    found = compared(embedded, AGAIN)
    serving = build(embedded, "rings", spec_of(AGAIN), None, AGAIN, "", SilentProgress(), found)
    assert serving.built
    require_as_whole(embedded, AGAIN)
    assert embedded.verify("rings", SilentProgress()) is not None


def test_a_base_that_breaks_while_it_is_built_upon_leads_to_a_whole_build(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    found = compared(embedded, AGAIN)
    shutil.rmtree(folder.with_name("000001"))
    with pytest.raises(Damaged, match="missing"):
        embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
    serving = build(embedded, "rings", spec_of(AGAIN), None, AGAIN, "", SilentProgress(), found)
    assert "the previous version is damaged" in serving.note
    require_as_whole(embedded, AGAIN)


def test_a_base_that_was_made_again_under_its_name_is_refused(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    base = folder.with_name("000001")
    other = [*DOCUMENTS[1:], DOCUMENTS[0]]
    embedded.build("other", spec_of(other), other)
    shutil.rmtree(base)
    shutil.copytree(folder_of(tmp_path, "other"), base)
    with pytest.raises(Damaged, match="000001 is not the version that it refers to"):
        embedded.verify("rings", SilentProgress())
    assert embedded.index_info("rings") is None
    assert embedded.compare("rings", MAPPING) is None
    shutil.rmtree(base)
    with pytest.raises(Damaged, match="000001, which it refers to, is missing"):
        embedded.verify("rings", SilentProgress())
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    require_as_whole(embedded, DOCUMENTS)


def test_where_the_base_is_not_known_nothing_older_is_removed_before_another_version_serves(
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
    require_as_whole(embedded, EDITED)
    manifest.write_bytes(b"{" + content)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert versions(tmp_path) == ["000003"]


@pytest.mark.parametrize("merged", [False, True])
def test_a_full_disk_leaves_what_serves(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    before = {file: file.read_bytes() for file in files(folder)}
    for pieces in (0, 20, 50):
        found = compared(embedded, AGAIN, merged=merged)
        with (
            monkeypatch.context() as patch,
            pytest.raises(SearchappError, match="could not be written: no space left"),
        ):
            fill_disk(patch, pieces)
            embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
        assert {file: file.read_bytes() for file in files(folder)} == before
        assert versions(tmp_path) == ["000001", "000002"]
    assert indexed(embedded, AGAIN, merged=merged)
    require_as_whole(embedded, AGAIN)


@pytest.mark.parametrize("merged", [False, True])
def test_a_damaged_file_of_a_segment_is_noticed_or_not_needed(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, merged: bool
) -> None:
    """In the short form one file in five, and those of which a merge copies everything."""
    shutil.copytree(folder.parent, saved := tmp_path / "saved")
    copied = {f"field1.{part}.npy" for part in ("documents", "frequencies", "positions", "terms", "norms")}
    copied |= {"digests.npy", "documents.sqlite", "ids.terms.npy", "ids.documents.npy"}
    noticed = set()
    for number, file in enumerate(files(folder)):
        if file.name == MANIFEST or not (FULL or file.name in copied or number % 5 == 0):
            continue
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 4]))
        found = compared(embedded, AGAIN, merged=merged)
        try:
            if found is None:
                raise Damaged("not compared")
            embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
        except Damaged:
            noticed.add(file.name)
            assert folder_of(tmp_path) == folder
        else:
            require_as_whole(embedded, AGAIN)
        shutil.rmtree(folder.parent)
        shutil.copytree(saved, folder.parent)
    assert copied <= noticed


@pytest.mark.parametrize("name", [MANIFEST, "digests.npy"])
def test_verbose_says_that_a_damaged_version_can_not_be_compared(
    embedded: EmbeddedEngine, folder: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    file = folder / name
    file.write_bytes(file.read_bytes()[:-9] + b"x" * 9)
    caplog.set_level(logging.INFO, "searchapp.requests")
    assert compared(embedded, AGAIN) is None
    (said,) = caplog.messages
    assert said.startswith("rings: no document can be reused, because the live version can't be read: ")
    assert name in said


@pytest.mark.parametrize("damage", ["documents", "deletions"])
def test_segments_that_do_not_agree_on_their_documents_are_refused(
    embedded: EmbeddedEngine, folder: Path, damage: str
) -> None:
    """A manifest with a right digest that says something wrong, as a fault of searchapp's would write it."""
    manifest = IndexManifest.read(folder)
    if damage == "documents":
        manifest = replace(manifest, total=7)
    else:
        kept = manifest.kept["000001"]
        deletions = kept.deletions._replace(documents=kept.deletions.documents + 1)
        manifest = replace(manifest, kept={"000001": kept._replace(deletions=deletions)})
    manifest.write()
    with pytest.raises(Damaged, match="do not agree on the"):
        embedded.open("rings")


def test_while_another_one_builds_nothing_is_written(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    found = compared(embedded, AGAIN)
    with IndexFolder(folder.parent)._locked(), pytest.raises(BeingBuilt):
        embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
    assert folder_of(tmp_path) == folder
    embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
    require_as_whole(embedded, AGAIN)
