"""Run directories: manifests, verification, copies of inputs and digests."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import BinaryIO

import pytest

from searchapp.errors import DataError, UsageError
from searchapp.files import digest_text
from searchapp.model import Hit, Hits, Ranking, Run, float32
from searchapp.runs import directory
from searchapp.runs.directory import Manifest, Verification

RUN = Run(
    "mine",
    (
        Ranking("t1", Hits.of(Hit("a", float32(2.7)), Hit("b", float32(0.1)))),
        Ranking("t2", Hits.of(Hit("b", float32(1e-7)), Hit("a", 0.0))),
    ),
)


def manifest(**changes: object) -> Manifest:
    default = Manifest(
        searchapp="0.1.0",
        task="nlps",
        split="dev",
        recipe={"name": "bm25"},
        depth=2,
        tag="mine",
        engine={"name": "elasticsearch", "version": "9.4.3"},
        data="/data",
        data_digests={},
        mapping_digest="m",
        index_digest="i",
        topics=2,
        hits=4,
        created="2026-01-01T00:00:00+00:00",
        seconds=0.5,
        empty_topics=[],
    )
    return dataclasses.replace(default, **changes)  # type: ignore[arg-type]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    directory.write(path, manifest(), RUN, {"predict.txt": official})
    return path


def failing(_file: object) -> None:
    raise DataError("an id can't be written")


def official(file: BinaryIO) -> None:
    file.write(b"t1\ta\n")


def change_manifest(run: Path, field: str, value: object) -> None:
    content = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**content, field: value}))


def test_a_written_run_is_read_back(stored: Path) -> None:
    read = directory.read(stored)
    assert read.run == RUN
    assert dataclasses.replace(read.manifest, files={}, digest="") == manifest()
    assert set(read.manifest.files) == {"run.trec", "documents.json", "predict.txt"}


def test_a_run_without_documents_is_read_back(tmp_path: Path) -> None:
    empty = Run("mine", (Ranking("t1", Hits()), Ranking("t2", Hits())))
    path = tmp_path / "run"
    written = directory.write(path, manifest(hits=0, empty_topics=["t1", "t2"]), empty, {})
    read = directory.read(path)
    assert read.manifest == written and read.run == Run("mine", ())
    assert directory.verify(path) == Verification((), ())


def test_an_empty_file_of_rankings_is_rejected_if_the_manifest_has_hits(stored: Path) -> None:
    (stored / "run.trec").write_bytes(b"")
    with pytest.raises(DataError, match="empty file"):
        directory.read(stored)


def test_an_unchanged_run_is_intact(stored: Path) -> None:
    assert directory.verify(stored) == Verification((), ())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda run: (run / "predict.txt").write_text("t1\tb\n"),
            "predict.txt: changed since the run was written",
        ),
        (lambda run: (run / "run.trec").unlink(), "run.trec: missing, although the manifest lists it"),
        (lambda run: (run / "notes").write_text(""), "notes: not part of the run"),
    ],
)
def test_damage_is_reported(stored: Path, damage: object, message: str) -> None:
    damage(stored)  # type: ignore[operator]
    (problem,) = directory.verify(stored).problems
    assert problem.endswith(message)


def test_changed_data_is_reported(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "dev_set.json").write_text("{}")
    path = tmp_path / "run"
    directory.write(path, manifest(data=str(data), data_digests={"dev_set.json": "0" * 64}), RUN, {})
    (problem,) = directory.verify(path).problems
    assert problem.endswith("dev_set.json: changed since the run was made")


def test_a_changed_manifest_is_reported(stored: Path) -> None:
    text = (stored / "run.json").read_text()
    (stored / "run.json").write_text(text.replace('"topics": 2', '"topics": 99'))
    assert directory.verify(stored).problems == (f"{stored / 'run.json'}: changed since it was written",)


def test_missing_data_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "run"
    directory.write(path, manifest(data="/missing", data_digests={"dev_set.json": "0" * 64}), RUN, {})
    assert directory.verify(path) == Verification(
        (), ("/missing/dev_set.json: no longer exists, so it was not compared",)
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("data", 5),
        ("files", [1]),
        ("data_digests", None),
        ("topics", "2"),
        ("digest", 7),
        ("task_file", {"path": "mine.toml"}),
        ("variant", None),
    ],
)
def test_a_field_of_another_type_is_rejected(stored: Path, field: str, value: object) -> None:
    change_manifest(stored, field, value)
    with pytest.raises(DataError, match=f"not a manifest of searchapp: {field} is no"):
        directory.read(stored)


def test_replacing_a_run_follows_a_symbolic_link(stored: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(stored)
    directory.write(link, manifest(tag="new"), RUN, {}, overwrite=True)
    assert link.is_symlink()
    assert directory.read(stored).manifest.tag == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "run"]


@pytest.mark.parametrize("path", ["run", "a/b/run"])
def test_a_failure_leaves_neither_a_run_nor_created_parent_folders(tmp_path: Path, path: str) -> None:
    with pytest.raises(DataError):
        directory.write(tmp_path / path, manifest(), RUN, {"predict.txt": failing})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("empty", ["t1", [1], 5])
def test_an_invalid_list_of_topics_is_rejected(stored: Path, empty: object) -> None:
    change_manifest(stored, "empty_topics", empty)
    with pytest.raises(DataError, match="empty is not a list of topics"):
        directory.read_manifest(stored)


def test_a_folder_without_manifest_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a run directory"):
        directory.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object was expected"),
        ('{"format": 99}', "format 99 is not the format 3"),
        ('{"format": 3, "task": "nlps"}', "not a manifest of searchapp"),
    ],
)
def test_an_invalid_manifest_is_rejected(stored: Path, text: str, message: str) -> None:
    (stored / "run.json").write_text(text)
    with pytest.raises(DataError, match=message):
        directory.read(stored)


def test_the_manifest_is_readable_json(stored: Path) -> None:
    assert json.loads((stored / "run.json").read_text())["task"] == "nlps"


def test_copies_of_inputs_are_verified(tmp_path: Path) -> None:
    path = tmp_path / "run"
    written = directory.write(path, manifest(), RUN, {}, None, {"mapping.json": {"settings": {}}})
    assert "inputs/mapping.json" in written.files
    assert directory.verify(path) == Verification((), ())
    assert directory.read_input(path, written, "mapping.json") == {"settings": {}}
    assert directory.read_input(path, written, "judged.json") is None
    (path / "inputs" / "notes.json").write_text("{}")
    (problem,) = directory.verify(path).problems
    assert problem == f"{path / 'inputs' / 'notes.json'}: not part of the run"
    (path / "inputs" / "notes.json").unlink()
    (path / "inputs" / "mapping.json").write_text("{}")
    (problem,) = directory.verify(path).problems
    assert problem == f"{path / 'inputs' / 'mapping.json'}: changed since the run was written"
    with pytest.raises(DataError, match="changed since the run was written"):
        directory.read_input(path, written, "mapping.json")


def test_a_run_is_reused_with_other_versions_of_packages(stored: Path) -> None:
    read = directory.read_manifest(stored)
    other = dataclasses.replace(read, untested_packages={"numpy": "99.0"})
    assert directory.reusable_manifest(stored, other) == read


def test_a_manifest_with_invalid_untested_packages_is_rejected(stored: Path) -> None:
    change_manifest(stored, "untested_packages", ["numpy"])
    with pytest.raises(DataError, match="untested_packages is not dict"):
        directory.read_manifest(stored)


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A run that exceeds the limits for compression."""
    monkeypatch.setattr(directory, "LONG", 3)
    monkeypatch.setattr(directory, "DEEP", 1)
    directory.write(tmp_path / "long", manifest(), RUN, {"predict.txt": official})
    return tmp_path / "long"


def test_the_official_file_of_a_long_run_is_compressed(long: Path, tmp_path: Path) -> None:
    read = directory.read(long)
    assert read.run == RUN
    assert set(read.manifest.files) == {"run.trec", "documents.json", "predict.txt.gz"}
    assert gzip.decompress((long / "predict.txt.gz").read_bytes()) == b"t1\ta\n"
    assert directory.verify(long).problems == ()
    assert directory.reusable_manifest(long, read.manifest) == read.manifest
    directory.write(tmp_path / "again", manifest(), RUN, {"predict.txt": official})
    for name in read.manifest.files:
        assert (tmp_path / "again" / name).read_bytes() == (long / name).read_bytes()


def test_a_changed_compressed_file_is_reported(long: Path) -> None:
    file = long / "predict.txt.gz"
    file.write_bytes(gzip.compress(b"t1\tb\n"))
    assert directory.verify(long).problems == (f"{file}: changed since the run was written",)


def test_a_run_with_compressed_rankings_is_rejected(stored: Path) -> None:
    change_manifest(stored, "files", {"run.trec.gz": "0"})
    message = r"has compressed rankings of .*: rank again, or import run\.trec\.gz with"
    with pytest.raises(DataError, match=message):
        directory.read(stored)


def test_a_long_run_of_low_depth_is_not_compressed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(directory, "LONG", 3)
    directory.write(tmp_path / "run", manifest(), RUN, {"predict.txt": official})
    assert (tmp_path / "run" / "predict.txt").is_file()


def test_the_digests_of_documents_are_read_back(tmp_path: Path) -> None:
    digests = {"b": digest_text("first"), "a\udc80": digest_text("second \udc80")}
    directory.write(tmp_path / "run", manifest(), RUN, {}, digests)
    assert directory.read_digests(tmp_path / "run") == digests
    assert directory.verify(tmp_path / "run") == Verification((), ())
    (tmp_path / "run" / "documents.json").write_bytes(b"[")
    with pytest.raises(DataError, match="can't be read .*: rank again"):
        directory.read_digests(tmp_path / "run")
    (tmp_path / "run" / "documents.json").unlink()
    with pytest.raises(DataError, match="has no documents.json, the digests of its documents: rank again"):
        directory.read_digests(tmp_path / "run")
