"""Unpacking archives: only the wanted members, and nothing of an archive that is damaged or malicious."""

from __future__ import annotations

import errno
import random
import re
import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from searchapp.errors import DataError
from searchapp.fetching import fetch as module
from searchapp.fetching.fetch import unpack, unpacked_bytes
from searchapp.fetching.sources import Member

MEMBERS = (
    Member("top/tables/*.tsv", "tables/"),
    Member("top/ratings.json", ""),
    Member("*EULA*", "terms/", optional=True),
)
GOOD = {
    "top/tables/A.tsv": b"a\tb\n",
    "top/tables/B.tsv": b"c\td\n" * 1000,
    "top/ratings.json": b"{}",
    "top/tables/deeper/C.tsv": b"not wanted",
    "top/README.txt": b"not wanted",
}


def write_archive(path: Path, entries: dict[str, bytes] | list[tuple[zipfile.ZipInfo, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about duplicate names
        for entry, content in entries.items() if isinstance(entries, dict) else entries:
            archive.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED)
    return path


def unpack_archive(archive: Path, into: Path, at_most: int = 10**6) -> list[str]:
    return unpack(archive, MEMBERS, into, at_most=at_most, shown="http://x/a.zip")


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_only_wanted_members_are_unpacked(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", {**GOOD, "EULA 2018.docx": b"terms"})
    byte_counts: list[int] = []
    names = unpack(path, MEMBERS, tmp_path / "out", at_most=10**6, advance=byte_counts.append)
    assert names == ["ratings.json", "tables/A.tsv", "tables/B.tsv", "terms/EULA 2018.docx"]
    assert files_below(tmp_path / "out") == set(names)
    assert (tmp_path / "out/tables/B.tsv").read_bytes() == GOOD["top/tables/B.tsv"]
    assert sum(byte_counts) == unpacked_bytes(path, MEMBERS) == 4 + 4000 + 2 + 5


def test_a_missing_member_is_named(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", {"top/ratings.json": b"{}"})
    with pytest.raises(DataError, match=r"does not contain top/tables/\*\.tsv"):
        unpack_archive(path, tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    [
        "../evil.tsv",
        "top/tables/../../../evil.tsv",
        "/etc/evil.tsv",
        "..\\evil.tsv",
        "C:\\evil.tsv",
        "C:evil",
        "a\nb",
    ],
)
def test_a_path_that_leads_outside_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    path = write_archive(tmp_path / "a.zip", {**GOOD, name: b"evil"})
    with pytest.raises(DataError, match="outside its folder"):
        unpack_archive(path, tmp_path / "out")
    assert files_below(tmp_path) == {"a.zip"}


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    link = zipfile.ZipInfo("top/tables/L.tsv")
    link.external_attr = (kind | 0o777) << 16
    path = write_archive(
        tmp_path / "a.zip", [*((zipfile.ZipInfo(k), v) for k, v in GOOD.items()), (link, b"/etc/passwd")]
    )
    with pytest.raises(DataError, match=r"L\.tsv is a link or a device"):
        unpack_archive(path, tmp_path / "out")
    assert files_below(tmp_path) == {"a.zip"}


@pytest.mark.parametrize("twin", ["top/tables/A.tsv", "top/tables/a.tsv"])
def test_two_entries_for_one_path_are_refused(tmp_path: Path, twin: str) -> None:
    entries = [*((zipfile.ZipInfo(k), v) for k, v in GOOD.items()), (zipfile.ZipInfo(twin), b"other")]
    path = write_archive(tmp_path / "a.zip", entries)
    with pytest.raises(DataError, match="twice"):
        unpack_archive(path, tmp_path / "out")


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", {**GOOD, "top/tables/Z.tsv": bytes(5_000_000)})
    with pytest.raises(
        DataError, match=r"Z\.tsv would grow from 4,\d\d\d to 5,000,000 bytes, like a decompression bomb"
    ):
        unpack_archive(path, tmp_path / "out", at_most=10**8)
    assert files_below(tmp_path) == {"a.zip"}


def test_more_than_the_stated_bytes_are_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", GOOD)
    assert unpack_archive(path, tmp_path / "out", at_most=4006)
    with pytest.raises(DataError, match="would unpack to 4,006 bytes, more than 4,005"):
        unpack_archive(path, tmp_path / "other", at_most=4005)


def test_an_entry_that_understates_its_size_is_refused(tmp_path: Path) -> None:
    raw = write_archive(tmp_path / "a.zip", {**GOOD, "top/tables/Z.tsv": b"x" * 1234}).read_bytes()
    forged = raw.replace((1234).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert forged != raw
    (tmp_path / "a.zip").write_bytes(forged)
    with pytest.raises(DataError, match="damaged|larger"):
        unpack_archive(tmp_path / "a.zip", tmp_path / "out")


def test_too_many_entries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    with pytest.raises(DataError, match="has 5 entries, more than 3"):
        unpack_archive(write_archive(tmp_path / "a.zip", GOOD), tmp_path / "out")


def test_an_encrypted_entry_is_refused(tmp_path: Path) -> None:
    raw = bytearray(write_archive(tmp_path / "a.zip", GOOD).read_bytes())
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        for match in re.finditer(re.escape(signature), bytes(raw)):
            raw[match.start() + offset] |= 1
    (tmp_path / "a.zip").write_bytes(raw)
    with pytest.raises(DataError, match="is encrypted"):
        unpack_archive(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize(
    "content", [b"", b"<html>not found</html>", b"PK\x05\x06" + bytes(18), b"PK\x03\x04"]
)
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(DataError, match=r"http://x/a\.zip (is damaged|does not contain)"):
        unpack_archive(tmp_path / "a.zip", tmp_path / "out")
    assert unpacked_bytes(tmp_path / "a.zip", MEMBERS) in (None, 0)


def test_every_damage_of_an_archive_raises_a_data_error(tmp_path: Path) -> None:
    """Flip bits, cut the file, and change the end record, for which the library may raise an OSError."""
    path = write_archive(tmp_path / "a.zip", GOOD)
    original, chance = path.read_bytes(), random.Random(20260101)
    end_record = len(original) - 22
    refused = 0
    for number in range(600):
        damaged = bytearray(original)
        if number % 3 == 0:
            damaged[chance.randrange(len(original))] ^= 1 << chance.randrange(8)
        elif number % 3 == 1:
            del damaged[chance.randrange(len(original)) :]
        else:
            damaged[end_record + chance.randrange(22)] = chance.randrange(256)
        path.write_bytes(damaged)
        unpacked_bytes(path, MEMBERS)
        try:
            names = unpack_archive(path, tmp_path / f"out{number}")
            assert files_below(tmp_path / f"out{number}") >= set(names)
        except DataError:
            refused += 1
    assert refused > 300


def test_a_full_disk_is_not_reported_as_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_archive(tmp_path / "a.zip", GOOD)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        unpack_archive(path, tmp_path / "out")
