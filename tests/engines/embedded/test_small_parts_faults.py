"""What may go wrong with a version in parts: kills, full disks, damage of a part, and who builds at once."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from searchapp.app.index import build
from searchapp.engines.base import State
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import BeingBuilt, Damaged, DataError, EngineRefused, SearchappError
from searchapp.lucene.index.layout import MANIFEST, STAMP
from searchapp.lucene.index.versions import Versions
from searchapp.progress import Silent
from tests.engines.embedded.conftest import MAPPING, spec_of
from tests.engines.embedded.test_carried import DOCUMENTS, fill_disk, folder_of
from tests.engines.embedded.test_small_parts import (
    CHANGED,
    compared,
    indexed,
    require_as_whole,
    require_merged,
    versions,
)
from tests.profile import FULL
from tests.programs import Program

pytestmark = pytest.mark.usefixtures("small_parts")

AGAIN = [*CHANGED[3:], DOCUMENTS[51]]


@pytest.fixture
def folder(embedded: EmbeddedEngine, tmp_path: Path) -> Path:
    """A version in parts, which serves."""
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert indexed(embedded, CHANGED)
    return folder_of(tmp_path, "rings")


def files(folder: Path) -> list[Path]:
    """Every file of a version in parts, and of its base."""
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

segments.FEWEST_DOCUMENTS, segments.SMALL = 1, 10
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
@pytest.mark.parametrize("how", ["beside", "merged"] if FULL else ["beside"])
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
    for left in range(1, steps + 1) if FULL else (steps // 2, steps - 2, steps - 1):
        shutil.rmtree(tmp_path)
        shutil.copytree(saved, tmp_path)
        code, said = run(left)
        assert code == -signal.SIGKILL, said
        version = folder_of(tmp_path, "rings")
        served.add(version.name)
        assert embedded.verify("rings", Silent()) is not None
        require_as_whole(embedded, tmp_path, CHANGED if version.name == folder.name else AGAIN)
        assert indexed(embedded, CHANGED)  # who builds next removes what was left
        assert len(versions(tmp_path)) == 2
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
                embedded.verify("rings", Silent())
            assert embedded.index_info("rings") is None  # so that the next `index` builds it again
            if damage != turned:  # what is missing or cut short is noticed by a look at sizes
                (stored,) = (one for one in embedded.stored() if one.version == "test-rings-000002")
                assert stored.state is State.unreadable or file.name == "dead.npy"
        file.write_bytes(content)
    assert embedded.index_info("rings") is not None


@pytest.mark.parametrize("part", ["000001/digests.npy", "000001/documents.sqlite", "000002/dead.npy"])
def test_a_damaged_part_is_mended_by_indexing_again(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, part: str
) -> None:
    file = folder.parent / part
    file.write_bytes(file.read_bytes()[:-9] + b"x" * 9)
    found = compared(embedded, AGAIN)
    serving = build(embedded, "rings", spec_of(AGAIN), None, AGAIN, "", Silent(), found)
    assert serving.built
    require_as_whole(embedded, tmp_path, AGAIN)
    assert embedded.verify("rings", Silent()) is not None


def test_a_base_that_breaks_while_it_is_built_upon_leads_to_a_whole_build(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    found = compared(embedded, AGAIN)
    shutil.rmtree(folder.with_name("000001"))
    with pytest.raises(Damaged, match="missing"):
        embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
    serving = build(embedded, "rings", spec_of(AGAIN), None, AGAIN, "", Silent(), found)
    assert "the version before is damaged" in serving.note
    require_as_whole(embedded, tmp_path, AGAIN)


def test_a_base_that_was_made_again_under_its_name_is_refused(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    base = folder.with_name("000001")
    other = [*DOCUMENTS[1:], DOCUMENTS[0]]
    embedded.build("other", spec_of(other), other)
    shutil.rmtree(base)
    shutil.copytree(folder_of(tmp_path, "other"), base)
    with pytest.raises(Damaged, match="000001 is not the one that it was made with"):
        embedded.verify("rings", Silent())
    assert embedded.index_info("rings") is None
    assert embedded.compare("rings", MAPPING) is None
    shutil.rmtree(base)
    with pytest.raises(Damaged, match="000001, on which it builds, is missing"):
        embedded.verify("rings", Silent())
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    require_as_whole(embedded, tmp_path, DOCUMENTS)


def test_where_the_base_is_not_known_nothing_older_is_removed_before_another_version_serves(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    manifest = folder / MANIFEST
    content = manifest.read_bytes()
    manifest.write_bytes(b"{" + content)
    (folder.parent / "000007").mkdir()
    with pytest.raises(EngineRefused, match="5 documents came instead of 100"):
        embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS[:5])
    assert versions(tmp_path) == ["000001", "000002"]
    manifest.write_bytes(content)
    require_as_whole(embedded, tmp_path, CHANGED)
    manifest.write_bytes(b"{" + content)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert versions(tmp_path) == ["000003"]


def test_a_full_disk_leaves_what_serves(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file: file.read_bytes() for file in files(folder)}
    for pieces in (0, 40, 100):
        found = compared(embedded, AGAIN)
        with monkeypatch.context() as patch, pytest.raises(SearchappError, match="no space left"):
            fill_disk(patch, pieces)
            embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
        assert {file: file.read_bytes() for file in files(folder)} == before
        assert versions(tmp_path) == ["000001", "000002"]
    assert indexed(embedded, AGAIN)
    require_as_whole(embedded, tmp_path, AGAIN)
    require_merged(embedded, tmp_path, AGAIN)


def test_while_another_one_builds_nothing_is_written(
    embedded: EmbeddedEngine, tmp_path: Path, folder: Path
) -> None:
    found = compared(embedded, AGAIN)
    with Versions(folder.parent)._locked(), pytest.raises(BeingBuilt):
        embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
    assert folder_of(tmp_path, "rings") == folder
    embedded.build("rings", spec_of(AGAIN), AGAIN, carried=found)
    require_as_whole(embedded, tmp_path, AGAIN)
