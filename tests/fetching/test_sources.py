"""The lists of official files: complete, with the names that the tasks read, and digests of the real files."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from searchapp.errors import DataError, UsageError
from searchapp.fetching import sources
from searchapp.fetching.sources import Digest, Member
from searchapp.tasks import load, names


@pytest.mark.parametrize("task", sources.names())
def test_a_source_is_complete(task: str) -> None:
    source = sources.load(task)
    assert source.terms and "\n" not in source.terms
    assert urlsplit(source.page).netloc
    assert source.files or source.archives
    for download in source.downloads():
        address = urlsplit(download.url)
        assert address.scheme in ("http", "https") and address.netloc and "//" not in address.path
        assert re.fullmatch(
            r"[0-9a-f]{64}" if download.digest.kind == "sha256" else r"[0-9a-f]{40}", download.name
        )
        assert 0 < (download.size or download.at_most) <= download.at_most
    paths = [file.path for file in source.files]
    assert len(set(paths)) == len(paths)
    assert len({download.name for download in source.downloads()}) == len(source.downloads())
    for path in paths:
        assert not path.startswith("/") and ".." not in path.split("/")
    for archive in source.archives:
        assert all(member.folder == "" or member.folder.endswith("/") for member in archive.members)


def test_files_of_a_repository_are_fetched_by_commit() -> None:
    for task in sources.names():
        for file in sources.load(task).files:
            assert re.match(
                r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/", file.download.url
            )


def test_every_task_can_be_fetched() -> None:
    assert set(names()) <= set(sources.names())


@pytest.mark.parametrize("name", names())
def test_every_file_that_a_task_reads_is_fetched(name: str, tmp_path: Path) -> None:
    task, source = load(name), sources.load(name)
    for file in source.files:
        (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.path).touch()
    files = list(task.collection(tmp_path).documents.files)
    for split in task.info.splits:
        files += task.collection(tmp_path).split_files(split)
    assert files
    for path in (file.relative_to(tmp_path).as_posix() for file in files):
        fetched = path in {file.path for file in source.files} or any(
            Member(member.folder + member.pattern.rpartition("/")[2], "").destination(path)
            for archive in source.archives
            for member in archive.members
        )
        assert fetched, f"{name} reads {path}, which is not fetched"


def test_an_unknown_task_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="there is no official data for 'chess': choose nlps or"):
        sources.load("chess")


def test_digests_are_those_of_git_and_sha256(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"what is up, doc?")
    # The example of the book Pro Git, chapter 10.2.
    assert Digest("git-blob", "bd9dbf5aae1a3862dd1526723246b20206e5fc37").matches(path)
    assert Digest("sha256", hashlib.sha256(b"what is up, doc?").hexdigest()).matches(path)
    path.write_bytes(b"what is up, Doc?")
    assert not Digest("git-blob", "bd9dbf5aae1a3862dd1526723246b20206e5fc37").matches(path)
    with pytest.raises(DataError, match="none: there is no such file"):
        Digest("sha256", "0" * 64).matches(tmp_path / "none")


def test_a_large_file_has_the_digest_of_git(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 9000)  # more than one chunk
    result = subprocess.run(["git", "hash-object", str(path)], capture_output=True, text=True, check=True)
    assert Digest("git-blob", result.stdout.strip()).matches(path)


@pytest.mark.parametrize(
    ("entry", "destination"),
    [
        ("top/tables/A.tsv", "tables/A.tsv"),
        ("top/tables/x/A.tsv", None),
        ("top/tables/A.txt", None),
        ("tables/A.tsv", None),
        ("x/top/tables/A.tsv", None),
    ],
)
def test_a_pattern_does_not_reach_across_a_slash(entry: str, destination: str | None) -> None:
    assert Member("top/tables/*.tsv", "tables/").destination(entry) == destination


def test_the_real_files_have_the_listed_digests(nlps_data: Path) -> None:
    """The digests are those of files that were downloaded from the same addresses by other programs."""
    training = [file for file in sources.load("checkthat").files if file.path.startswith("training/")]
    smart = [
        file
        for task in ("smart-types-dbpedia", "smart-relations-dbpedia", "smart-relations-wikidata")
        for file in sources.load(task).files
        if file.path == "dbpedia_types.tsv" or file.path.endswith("-relation-vocabulary.json")
    ]
    assert (len(training), len(smart)) == (19, 3)
    for folder, files in (("checkthat", training), ("smart", smart)):
        for file in files:
            path = nlps_data.parent / folder / file.path
            assert path.stat().st_size == file.download.size
            assert file.download.digest.matches(path)
