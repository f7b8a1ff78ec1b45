"""Downloading a file: resuming, retrying, redirects, and responses that must be refused."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import closing
from email.utils import formatdate
from pathlib import Path

import pytest

from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.fetching import download as module
from searchapp.fetching.download import ATTEMPTS, MOST_REDIRECTS, Downloader
from searchapp.fetching.sources import Digest, Download
from tests.fetching.server import Fault, FileServer

CONTENT = bytes(range(256)) * 2000
HALF = len(CONTENT) // 2
PATH = "/x/data.json"


DIGEST = Digest("sha256", hashlib.sha256(CONTENT).hexdigest())


def wanted(server: FileServer, *, size: int | None = len(CONTENT), at_most: int = 10**6) -> Download:
    """Describe the file that the server has at `PATH`."""
    return Download(server.url + PATH, DIGEST, size, at_most if size is None else size)


class Fetch:
    """Fetches files into a folder and records messages and progress."""

    def __init__(self, downloader: Downloader, folder: Path, messages: list[str]) -> None:
        self.downloader = downloader
        self.path = folder / "data"
        self.part = folder / "data.part"
        self.messages = messages
        self.advanced = 0

    def __call__(self, download: Download) -> bytes:
        self.downloader.fetch(download, self.path, self._advance)
        return self.path.read_bytes()

    def _advance(self, count: int) -> None:
        self.advanced += count


@pytest.fixture
def fetch(files: FileServer, tmp_path: Path) -> Iterator[Fetch]:
    files.files[PATH] = CONTENT
    messages: list[str] = []
    with closing(Downloader(notify=messages.append)) as downloader:
        yield Fetch(downloader, tmp_path, messages)


def test_a_download_leaves_only_the_file(files: FileServer, fetch: Fetch) -> None:
    assert fetch(wanted(files)) == CONTENT
    assert [path.name for path in fetch.path.parent.iterdir()] == ["data"]
    assert fetch.advanced == len(CONTENT)
    assert files.requests_of[PATH][0]["accept-encoding"] == "identity"
    assert files.requests_of[PATH][0]["user-agent"].startswith("searchapp/")


def test_a_broken_download_is_resumed(files: FileServer, fetch: Fetch) -> None:
    files.faults[PATH] = [Fault(cut_after=100_000), Fault(cut_after=200_000)]
    assert fetch(wanted(files)) == CONTENT
    assert files.ranges(PATH) == [None, "bytes=100000-", "bytes=300000-"]
    assert all("if-range" in headers for headers in files.requests_of[PATH][1:])
    assert files.bytes_sent == len(CONTENT)
    assert fetch.advanced == len(CONTENT)
    assert len(fetch.messages) == 2 and "trying again" in fetch.messages[0]


def test_a_short_response_without_a_length_is_noticed_by_the_known_size(
    files: FileServer, fetch: Fetch
) -> None:
    files.faults[PATH] = [Fault(cut_after=100_000, unmeasured=True)]
    assert fetch(wanted(files)) == CONTENT
    assert "ended after 100,000 of 512,000 bytes" in fetch.messages[0]


def test_a_download_with_progress_is_always_continued(files: FileServer, fetch: Fetch) -> None:
    files.faults[PATH] = Fault(cut_after=70_000)
    assert len(CONTENT) / 70_000 > ATTEMPTS
    assert fetch(wanted(files)) == CONTENT


def test_a_download_without_progress_is_aborted_and_can_be_resumed(files: FileServer, fetch: Fetch) -> None:
    files.faults[PATH] = [Fault(cut_after=100_000)] + [Fault(cut_after=0)] * 50
    with pytest.raises(
        SearchappError, match="100,000 bytes are kept: run the same command again to resume"
    ) as caught:
        fetch(wanted(files))
    assert caught.value.exit_code == 1
    assert len(files.requests_of[PATH]) == ATTEMPTS
    files.faults.clear()
    assert fetch(wanted(files)) == CONTENT
    assert files.ranges(PATH)[-1] == "bytes=100000-"


def test_restarting_a_download_is_no_progress(files: FileServer, fetch: Fetch) -> None:
    files.faults[PATH] = [Fault(cut_after=100_000), Fault(shift=1)] * 50
    with pytest.raises(SearchappError, match="try again later"):
        fetch(wanted(files))
    assert len(files.requests_of[PATH]) < 2 * ATTEMPTS


def test_a_file_that_has_changed_is_downloaded_again(files: FileServer, fetch: Fetch) -> None:
    fetch.part.write_bytes(b"of another version")
    fetch.part.with_suffix(".version").write_text('"another"')
    assert fetch(wanted(files)) == CONTENT
    assert files.requests_of[PATH][0]["if-range"] == '"another"'
    assert len(files.requests_of[PATH]) == 1
    assert fetch.advanced == len(CONTENT)


def test_without_a_validator_the_digest_shows_that_parts_are_of_different_files(
    files: FileServer, fetch: Fetch
) -> None:
    fetch.part.write_bytes(b"of another version")
    assert fetch(wanted(files)) == CONTENT
    assert files.ranges(PATH) == ["bytes=18-", None]
    assert "arrived damaged" in fetch.messages[0]


def test_a_weak_entity_tag_is_no_validator(files: FileServer, fetch: Fetch) -> None:
    files.faults[PATH] = [Fault(cut_after=100_000, etag='W/"weak"'), Fault(etag='W/"weak"')]
    assert fetch(wanted(files)) == CONTENT
    assert "if-range" not in files.requests_of[PATH][1]
    assert files.ranges(PATH)[1] == "bytes=100000-"


def test_a_date_is_a_validator_if_there_is_no_entity_tag(files: FileServer, fetch: Fetch) -> None:
    date = "Sat, 21 Nov 2020 10:00:00 GMT"
    files.faults[PATH] = [Fault(cut_after=100_000, drop_etag=True, headers={"Last-Modified": date})]
    assert fetch(wanted(files)) == CONTENT
    assert files.requests_of[PATH][1]["if-range"] == date


def test_a_complete_part_is_not_downloaded_again(files: FileServer, fetch: Fetch) -> None:
    fetch.part.write_bytes(CONTENT)
    assert fetch(wanted(files)) == CONTENT
    assert files.requests_of[PATH] == []
    fetch.path.rename(fetch.part)
    assert fetch(wanted(files, size=None)) == CONTENT  # the server answers 416: no more bytes
    assert files.ranges(PATH) == [f"bytes={len(CONTENT)}-"]


def test_a_part_that_is_too_long_is_downloaded_again(files: FileServer, fetch: Fetch) -> None:
    fetch.part.write_bytes(CONTENT + b"more")
    assert fetch(wanted(files)) == CONTENT
    fetch.path.unlink()
    fetch.part.write_bytes(CONTENT + b"more")
    assert fetch(wanted(files, size=None)) == CONTENT


def test_a_file_that_is_corrupt_twice_is_deleted(files: FileServer, fetch: Fetch) -> None:
    files.faults[PATH] = Fault(corrupt=True)
    with pytest.raises(DataError, match="is not the expected file, sha256:"):
        fetch(wanted(files))
    assert len(files.requests_of[PATH]) == 2
    assert list(fetch.path.parent.iterdir()) == []


@pytest.mark.parametrize("unmeasured", [True, False])
@pytest.mark.parametrize("size", [len(CONTENT) - 1, None])
def test_more_bytes_than_stated_are_never_written(
    files: FileServer, fetch: Fetch, unmeasured: bool, size: int | None
) -> None:
    files.faults[PATH] = Fault(unmeasured=unmeasured)
    with pytest.raises(DataError, match=r"more than|expected file has"):
        fetch(wanted(files, size=size, at_most=len(CONTENT) - 1))
    assert not fetch.part.exists() or fetch.part.stat().st_size == 0


MOVED = [
    (address, "neither http nor https")
    for address in ("file:///etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,x", "gopher://x/")
]
REFUSED = [
    *((Fault(status=status), f"{PATH} answers {status}") for status in (404, 403, 410, 401)),
    (Fault(status=429, headers={"Retry-After": "3600"}), "answers 429"),
    *((Fault(status=302, headers={"Location": address}), message) for address, message in MOVED),
    (Fault(headers={"Content-Encoding": "gzip"}), "sent compressed"),
    (Fault(body=b"<html>Please log in</html>"), "has 26 bytes, and the expected file has 512,000"),
]


@pytest.mark.parametrize(("fault", "message"), REFUSED)
def test_permanent_errors_are_not_retried(
    files: FileServer, fetch: Fetch, fault: Fault, message: str
) -> None:
    files.faults[PATH] = fault
    with pytest.raises(SearchappError, match=message) as caught:
        fetch(wanted(files))
    assert caught.value.exit_code == (4 if isinstance(caught.value, DataError) else 1)
    assert isinstance(caught.value, DataError) == (fault.body is not None)
    assert len(files.requests_of[PATH]) == 1


PASSING = [
    *([Fault(status=status)] * 2 for status in (429, 500, 502, 503, 504)),
    [Fault(status=503, headers={"Retry-After": "soon"})],
    [Fault(corrupt=True)],
    # A server that can't resume costs time only.
    *(
        [Fault(cut_after=100_000), fault]
        for fault in (Fault(no_ranges=True), Fault(shift=7), Fault(shift=-7))
    ),
]


@pytest.mark.parametrize("faults", PASSING)
def test_temporary_errors_are_retried(files: FileServer, fetch: Fetch, faults: list[Fault]) -> None:
    files.faults[PATH] = list(faults)
    assert fetch(wanted(files)) == CONTENT
    assert fetch.advanced == len(CONTENT)
    assert faults[0].status is None or f"answers {faults[0].status}" in fetch.messages[0]


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_respected(files: FileServer, fetch: Fetch, as_date: bool) -> None:
    retry_after = formatdate(time.time() + 2, usegmt=True) if as_date else "1"
    files.faults[PATH] = [Fault(status=503, headers={"Retry-After": retry_after})]
    start = time.monotonic()
    assert fetch(wanted(files)) == CONTENT
    assert time.monotonic() - start >= (0.9 if not as_date else 0.5)  # a date has whole seconds


def test_redirects_are_followed(files: FileServer, fetch: Fetch) -> None:
    files.files["/elsewhere"] = CONTENT
    files.faults[PATH] = Fault(status=302, headers={"Location": "/elsewhere"})
    assert fetch(wanted(files)) == CONTENT


def test_redirects_in_a_circle_end(files: FileServer, fetch: Fetch) -> None:
    files.faults[PATH] = Fault(status=302, headers={"Location": PATH})
    with pytest.raises(SearchappError, match=f"more than {MOST_REDIRECTS} times"):
        fetch(wanted(files))


def test_a_silent_connection_is_closed(
    files: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.2)
    files.files[PATH] = CONTENT
    files.faults[PATH] = [Fault(pause=1.0)]
    messages: list[str] = []
    with closing(Downloader(notify=messages.append)) as downloader:
        assert Fetch(downloader, tmp_path, messages)(wanted(files)) == CONTENT
    assert "has sent nothing for" in messages[0]


def test_an_unreachable_server_is_reported(fetch: Fetch) -> None:
    unreachable = Download("http://127.0.0.1:9/x", Digest("sha256", "0" * 64), 1, 1)
    with pytest.raises(SearchappError, match=r"http://127.0.0.1:9/x can't be reached .*: try again later"):
        fetch(unreachable)


def test_a_mirror_has_a_folder_for_each_host(files: FileServer, tmp_path: Path) -> None:
    files.files["/deep/data.example/a/b.json"] = CONTENT
    download = Download("https://data.example/a/b.json", DIGEST, len(CONTENT), len(CONTENT))
    with closing(Downloader(f"{files.url}/deep/")) as downloader:
        downloader.fetch(download, tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == CONTENT


@pytest.mark.parametrize("mirror", ["mirror.example", "ftp://mirror.example", "http://", "/srv/mirror"])
def test_a_mirror_needs_an_address(mirror: str) -> None:
    with pytest.raises(UsageError, match="set SEARCHAPP_DATA_MIRROR to an address"):
        Downloader(mirror)


def test_a_proxy_of_the_environment_is_used(
    files: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", files.url)
    monkeypatch.setenv("NO_PROXY", "")
    files.files["http://data.example/x"] = CONTENT  # requests to a proxy name the whole address
    with closing(Downloader()) as downloader:
        downloader.fetch(Download("http://data.example/x", DIGEST, None, 10**6), tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == CONTENT


def test_an_invalid_proxy_is_refused(files: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "magic://proxy.example")
    with pytest.raises(UsageError, match="the proxy or certificates of the environment"):
        Downloader()


def test_unknown_sizes_are_requested(files: FileServer, fetch: Fetch) -> None:
    known, unknown = wanted(files), wanted(files, size=None)
    missing = Download(files.url + "/none", Digest("sha256", "0" * 64), None, 1)
    sizes = fetch.downloader.sizes([known, unknown, missing])
    assert sizes == {known: len(CONTENT), unknown: len(CONTENT)}
    assert files.requests_of[PATH] == []  # without a download
