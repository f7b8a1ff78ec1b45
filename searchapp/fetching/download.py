"""Download one file over HTTP: resumed where it broke off, tried again with patience, and checked before it counts."""

from __future__ import annotations

import email.utils
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import httpx
import tenacity

from searchapp import __version__
from searchapp.config.settings import without_credentials
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.fetching.sources import Download
from searchapp.progress import Advance, no_progress


class Part:
    """The unfinished form of the file `path`, beside it: `NAME.part`, and `NAME.version` with the validator.

    The validator is what HTTP's If-Range takes, a strong entity tag or a date: with it a server sends the rest only
    of the very file that the bytes so far are of (RFC 9110, 13.1.5).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.with_name(f"{path.name}.part")
        self._version = path.with_name(f"{path.name}.version")

    @property
    def size(self) -> int:
        """The number of bytes that have arrived."""
        return self.file.stat().st_size if self.file.exists() else 0

    @property
    def validator(self) -> str | None:
        try:
            return self._version.read_text(encoding="ascii").strip() or None
        except (OSError, ValueError):
            return None

    def begin(self, validator: str | None) -> None:
        """Forget what there is, to start again with the version that the validator names."""
        self.discard()
        self.file.touch()
        if validator and validator.isascii():
            self._version.write_text(validator, encoding="ascii")

    def open(self) -> BinaryIO:
        """To append to. Every piece is with the system at once, so that none is lost whatever ends the process."""
        return self.file.open("ab", buffering=0)

    def discard(self) -> None:
        """Remove every trace of it."""
        self.file.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the file its name, once it is on disk."""
        with self.file.open("rb") as file:
            os.fsync(file.fileno())
        self.file.replace(self.path)
        self._version.unlink(missing_ok=True)


ATTEMPTS = 6
"""Attempts without progress after which a download is given up; one that moves on is never given up."""

PROGRESS_BYTES = 1 << 16
"""What an attempt must bring to count as progress; a smaller file that arrives whole needs no further attempt."""

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 16.0
LONGEST_REQUESTED_WAIT_SECONDS = 120.0
"""A server that asks for more patience than this is not waited for."""

CONNECT_SECONDS = 15.0
SILENCE_SECONDS = 30.0
"""How long a connection may bring nothing before it counts as broken."""

MOST_REDIRECTS = 5
PASSING_STATUS = (408, 425, 429, 500, 502, 503, 504)

Notify = Callable[[str], None]


class _Passing(Exception):
    """An attempt failed in a way that another one may not; the message completes "URL ..."."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Downloader:
    """Fetches files, one at a time, over connections that it keeps.

    `mirror` is an address that holds the files of all hosts, each host in a folder of its name; `notify` is given
    of what goes wrong on the way and is tried again.
    """

    def __init__(self, mirror: str | None = None, notify: Notify = lambda _message: None) -> None:
        if mirror is not None and (
            urlsplit(mirror).scheme not in ("http", "https") or not urlsplit(mirror).netloc
        ):
            raise UsageError(
                f"{without_credentials(mirror)!r} can't be a mirror: "
                "SEARCHAPP_DATA_MIRROR takes an address with http or https"
            )
        self._mirror = mirror.rstrip("/") if mirror else None
        self._notify = notify
        try:
            self._client = httpx.Client(
                follow_redirects=True,
                max_redirects=MOST_REDIRECTS,
                timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
                # Compressed on the way, a file could neither be resumed nor its length be compared.
                headers={"User-Agent": f"searchapp/{__version__}", "Accept-Encoding": "identity"},
            )
        except (ValueError, ImportError, OSError) as error:  # the environment names a proxy or certificates
            raise UsageError(
                f"the proxy or certificates that the environment names can't be used: {error}"
            ) from error

    def close(self) -> None:
        self._client.close()

    def address(self, wanted: Download) -> str:
        """Where a download is fetched from: its address, or its place in the mirror."""
        if self._mirror is None:
            return wanted.url
        return f"{self._mirror}/{wanted.url.partition('://')[2]}"

    def sizes(self, downloads: Sequence[Download]) -> dict[Download, int]:
        """The size of each download, in bytes, as far as it is known or its server reports at once."""
        sizes = {one: one.size for one in downloads if one.size is not None}
        for wanted in downloads:
            if wanted not in sizes:
                try:
                    answer = self._client.head(self.address(wanted))
                except (httpx.HTTPError, httpx.InvalidURL):
                    return sizes  # the download will report the cause
                length = _whole_number(answer.headers.get("Content-Length"))
                if answer.status_code == 200 and length is not None:
                    sizes[wanted] = length
        return sizes

    def fetch(self, wanted: Download, path: Path, advance: Advance = no_progress) -> None:
        """Download a file to `path`, which appears when it has arrived whole and is what its digest promises.

        What arrives is kept beside it, and a later call resumes from there. `advance` is given each number of
        bytes, also of those that were there already; a negative one takes back what turned out useless.

        Raises:
            SearchappError: the server can't be reached, or does not have the file.
            DataError: what it has is not the file that is meant.
        """
        part = Part(path)
        advance(part.size)
        for again in (True, False):
            self._transfer(wanted, part, advance)
            if wanted.digest.matches(part.file):
                part.finish()
                return
            size = part.size
            part.discard()
            advance(-size)
            if again:
                self._notify(f"{self.address(wanted)} did not arrive as it should: fetching it again")
        raise DataError(
            f"{self.address(wanted)} is not the expected file, {wanted.digest} ({size:,} bytes arrived): "
            "the source or the connection to it has changed, nothing was kept"
        )

    def _transfer(self, wanted: Download, part: Part, advance: Advance) -> None:
        """Fill a part with all its bytes, in as many attempts as it takes."""
        url = self.address(wanted)
        patience = _Patience(part)

        def attempt() -> None:
            try:
                self._attempt(url, wanted, part, advance)
            except _Passing as error:
                patience.note(error)
                raise

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Passing),
            stop=lambda _state: patience.is_over,
            wait=lambda _state: patience.seconds,
            before_sleep=lambda _state: self._notify(
                f"{url} {patience.reason}: trying again in {patience.seconds:.3g} s"
            ),
            reraise=True,
        )
        try:
            retrying(attempt)
        except _Passing as error:
            kept = f"; {part.size:,} bytes are kept, and the same command resumes" if part.size else ""
            raise SearchappError(f"{url} {error}: try again later{kept}") from error

    def _attempt(self, url: str, wanted: Download, part: Part, advance: Advance) -> None:
        start = part.size
        if start == wanted.size:
            return
        if start > wanted.at_most:
            _begin_anew(part, advance)
            start = 0
        headers = {}
        if start:
            headers["Range"] = f"bytes={start}-"
            if validator := part.validator:
                headers["If-Range"] = validator
        with _translated(url), self._client.stream("GET", url, headers=headers) as answer:
            total = self._accept(answer, url, wanted, part, advance)
            if total != part.size:
                _write(answer, url, wanted, part, advance)
        expected = wanted.size if wanted.size is not None else total
        if expected is not None and part.size < expected:
            raise _Passing(f"ended after {part.size:,} of {expected:,} bytes")

    def _accept(
        self, answer: httpx.Response, url: str, wanted: Download, part: Part, advance: Advance
    ) -> int | None:
        """Make the part ready for what the answer brings; returns the size of the whole file, if it is reported."""
        status = answer.status_code
        if status == 416:
            total = _total(answer.headers.get("Content-Range", ""))
            if total is not None and total == part.size:
                return total  # nothing was missing
            _begin_anew(part, advance)
            raise _Passing("has no such part of the file")
        if status not in (200, 206):
            reason = f"answers {status} {answer.reason_phrase}".rstrip()
            if status in PASSING_STATUS:
                raise _Passing(reason, _requested_wait(answer.headers.get("Retry-After")))
            raise SearchappError(f"{url} {reason}: nothing was fetched from it{_advice(status)}")
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise SearchappError(
                f"{url} is sent compressed, although that was not asked for: use another mirror"
            )
        if status == 206:
            total = self._continued(answer, part, advance)
        else:
            advance(-part.size)
            total = _whole_number(answer.headers.get("Content-Length"))
            part.begin(_validator(answer.headers))
        _check_size(url, wanted, total)
        return total

    def _continued(self, answer: httpx.Response, part: Part, advance: Advance) -> int | None:
        """The size of the whole file of which an answer is the rest."""
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", "").strip())
        version = _validator(answer.headers)
        if (
            not match
            or int(match[1]) != part.size
            or (version and part.validator and version != part.validator)
        ):
            _begin_anew(part, advance)
            raise _Passing("sent another part than the one that was asked for")
        return _whole_number(match[2])


class _Patience:
    """When to give up, and how long to wait: attempts are counted from the last one that brought something."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._most = part.size
        self._fruitless = 0
        self.reason = ""
        self.seconds = 0.0

    @property
    def is_over(self) -> bool:
        return self._fruitless >= ATTEMPTS or self.seconds > LONGEST_REQUESTED_WAIT_SECONDS

    def note(self, error: _Passing) -> None:
        """Take account of an attempt that failed, and of what it brought before it did."""
        size = self._part.size
        # Compared with the most there ever was: what is begun again and again does not move on.
        if size >= self._most + PROGRESS_BYTES:
            self._fruitless = 0
        self._most = max(self._most, size)
        self._fruitless += 1
        self.reason = str(error)
        backoff = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (self._fruitless - 1))
        self.seconds = backoff if error.wait is None else error.wait


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Every way in which a request can fail, as a failure that passes or as an error for people."""
    try:
        yield
    except httpx.TooManyRedirects as error:
        raise SearchappError(
            f"{url} leads from one address to the next more than {MOST_REDIRECTS} times"
        ) from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise SearchappError(
            f"{url} leads to an address that is neither http nor https: not followed"
        ) from error
    except httpx.TransportError as error:
        if certificate := _certificate_problem(error):
            raise SearchappError(
                f"{url} has a certificate that is not trusted ({certificate}): set SSL_CERT_FILE to your authority's"
            ) from error
        raise _Passing(_sentence(error)) from error
    except httpx.HTTPError as error:
        raise SearchappError(f"{url} could not be fetched: {error}") from error


def _write(answer: httpx.Response, url: str, wanted: Download, part: Part, advance: Advance) -> None:
    size = part.size
    with part.open() as file:
        for piece in answer.iter_raw():
            size += len(piece)
            if size > wanted.at_most:
                file.close()
                _begin_anew(part, advance)
                raise DataError(
                    f"{url} sends more than the {wanted.at_most:,} bytes it may have: not fetched"
                )
            rest = memoryview(piece)
            while rest:  # unbuffered, a nearly full disk may take less than it is given
                rest = rest[file.write(rest) :]
            advance(len(piece))


def _begin_anew(part: Part, advance: Advance) -> None:
    size = part.size
    part.discard()
    if size:
        advance(-size)


def _check_size(url: str, wanted: Download, total: int | None) -> None:
    if total is None:
        return
    if wanted.size is not None and total != wanted.size:
        raise DataError(
            f"{url} has {total:,} bytes, and the expected file has {wanted.size:,}: "
            "the source has changed, or something on the way answers in its place"
        )
    if total > wanted.at_most:
        raise DataError(
            f"{url} has {total:,} bytes, more than the {wanted.at_most:,} it may have: not fetched"
        )


def _validator(headers: httpx.Headers) -> str | None:
    """What If-Range takes: a strong entity tag, else the date of the last change."""
    tag: str | None = headers.get("ETag")
    date: str | None = headers.get("Last-Modified")
    return tag if tag and not tag.startswith("W/") else date


def _requested_wait(value: str | None) -> float | None:
    """The seconds of a Retry-After header, which holds a number or a date."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _total(content_range: str) -> int | None:
    match = re.fullmatch(r"bytes \*/(\d+)", content_range.strip())
    return int(match[1]) if match else None


def _whole_number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _advice(status: int) -> str:
    if status in (404, 410):
        return "; the file may have moved: a mirror can be named in SEARCHAPP_DATA_MIRROR"
    if status == 407:
        return "; the proxy requires a name and a password"
    return ""


def _certificate_problem(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def _sentence(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return f"does not answer within {CONNECT_SECONDS:.0f} s"
    if isinstance(error, httpx.TimeoutException):
        return f"has sent nothing for {SILENCE_SECONDS:.0f} s"
    if isinstance(error, httpx.ProxyError):
        return f"can't be reached through the proxy ({error})"
    if isinstance(error, httpx.ConnectError):
        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).lower()
        return f"can't be reached ({reason}; is there a network, and does it need a proxy?)"
    if isinstance(error, httpx.RemoteProtocolError) and "peer closed connection" in str(error):
        return "broke off before the end"
    return f"broke off ({str(error) or type(error).__name__})"
