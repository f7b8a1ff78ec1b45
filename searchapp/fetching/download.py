"""Download one file over HTTP: resume it, retry with back-off, and check its digest."""

from __future__ import annotations

import email.utils
import os
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import tenacity

from searchapp import __version__
from searchapp.config.settings import without_credentials
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.fetching.sources import Download
from searchapp.progress import Advance, Notify, no_notice, no_progress


class PartialFile:
    """An incomplete download of `path`: `NAME.part`, and `NAME.version` with the validator.

    The validator is an entity tag or a date for If-Range: a server then sends the rest only of the same file
    (RFC 9110, 13.1.5). `advance` receives numbers of received (positive) or discarded (negative) bytes.
    """

    def __init__(self, path: Path, advance: Advance) -> None:
        self.path = path
        self.file = path.with_name(f"{path.name}.part")
        self._version = path.with_name(f"{path.name}.version")
        self._advance = advance
        advance(self.size)

    @property
    def size(self) -> int:
        """The number of bytes received."""
        return self.file.stat().st_size if self.file.exists() else 0

    @property
    def validator(self) -> str | None:
        try:
            return self._version.read_text(encoding="ascii").strip() or None
        except (OSError, ValueError):
            return None

    def begin(self, validator: str | None) -> None:
        """Start again with the version of a validator."""
        self.discard()
        self.file.touch()
        if validator and validator.isascii():
            self._version.write_text(validator, encoding="ascii")

    def append(self, pieces: Iterable[bytes], most: int) -> bool:
        """Append pieces up to a size of `most` bytes; return whether everything fits."""
        size = self.size
        # Unbuffered, so that no received piece is lost if the process is killed.
        with self.file.open("ab", buffering=0) as file:
            for piece in pieces:
                size += len(piece)
                if size > most:
                    return False
                rest = memoryview(piece)
                while rest:  # a nearly full disk may write only a part
                    rest = rest[file.write(rest) :]
                self._advance(len(piece))
        return True

    def discard(self) -> None:
        if size := self.size:
            self._advance(-size)
        self.file.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)

    def finish(self) -> None:
        with self.file.open("rb") as file:
            os.fsync(file.fileno())
        self.file.replace(self.path)
        self._version.unlink(missing_ok=True)


# A download fails after this number of attempts without progress.
ATTEMPTS = 6

# The least number of bytes of an attempt with progress.
PROGRESS_BYTES = 1 << 16

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 16.0
# A server's longer Retry-After is an error.
LONGEST_REQUESTED_WAIT_SECONDS = 120.0

CONNECT_SECONDS = 15.0
# A connection that is silent for longer counts as broken.
SILENCE_SECONDS = 30.0

MOST_REDIRECTS = 5
PASSING_STATUS = (408, 425, 429, 500, 502, 503, 504)


def http_client(seconds: float, **options: Any) -> httpx.Client:
    """Return a client with further options of httpx, which waits so many seconds for each part of an answer.

    Raises:
        UsageError: the environment names a proxy or certificates that can't be used.
    """
    try:
        return httpx.Client(
            timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
            headers={"User-Agent": f"searchapp/{__version__}"},
            **options,
        )
    except (ValueError, ImportError, OSError) as error:
        raise UsageError(f"the proxy or certificates of the environment can't be used: {error}") from error


class _TransientError(Exception):
    """A failure that a later attempt may not have; the message completes "URL ..."."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Downloader:
    """Fetches one file at a time over reused connections.

    Args:
        mirror: an address with a folder for each host
        notify: receives a sentence before each retry
        pause: waits for a number of seconds before it

    Raises:
        UsageError: the mirror, the proxy or the certificates are invalid.
    """

    def __init__(
        self,
        mirror: str | None = None,
        notify: Notify = no_notice,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        if mirror is not None and (
            urlsplit(mirror).scheme not in ("http", "https") or not urlsplit(mirror).netloc
        ):
            raise UsageError(
                f"{without_credentials(mirror)!r} is not the address of a mirror: set SEARCHAPP_DATA_MIRROR "
                "to an address with http or https"
            )
        self._mirror = mirror.rstrip("/") if mirror else None
        self._notify = notify
        self._pause = pause
        self._client = http_client(SILENCE_SECONDS, follow_redirects=True, max_redirects=MOST_REDIRECTS)
        # A compressed response cannot be resumed, and its length differs from the file's.
        self._client.headers["Accept-Encoding"] = "identity"

    def close(self) -> None:
        self._client.close()

    def address(self, download: Download) -> str:
        """Return the address of a download, or of its copy in the mirror."""
        return download.url if self._mirror is None else f"{self._mirror}/{download.url.partition('://')[2]}"

    def sizes(self, downloads: Sequence[Download]) -> dict[Download, int]:
        """Return the known sizes of downloads in bytes; ask servers for missing ones."""
        sizes = {download: download.size for download in downloads if download.size is not None}
        for download in downloads:
            if download not in sizes:
                try:
                    answer = self._client.head(self.address(download))
                except (httpx.HTTPError, httpx.InvalidURL):
                    return sizes  # the download will report the cause
                length = _whole_number(answer.headers.get("Content-Length"))
                if answer.status_code == 200 and length is not None:
                    sizes[download] = length
        return sizes

    def fetch(self, download: Download, path: Path, advance: Advance = no_progress) -> None:
        """Download a file to `path`, which appears once its digest is right.

        A failed download leaves its bytes beside `path`, and the next call resumes. `advance` also counts
        bytes of earlier calls; a negative number takes back discarded bytes.

        Raises:
            SearchappError: the server is unreachable or lacks the file.
            DataError: the server has another file.
        """
        part = PartialFile(path, advance)
        for is_last in (False, True):
            self._transfer(download, part)
            if download.digest.matches(part.file):
                part.finish()
                return
            size = part.size
            part.discard()
            if not is_last:
                self._notify(f"{self.address(download)} arrived damaged: fetching it again")
        raise DataError(
            f"{self.address(download)} is not the expected file, {download.digest} ({size:,} bytes arrived): "
            "the source has changed, or a proxy alters it; nothing was kept"
        )

    def _transfer(self, download: Download, part: PartialFile) -> None:
        url = self.address(download)
        backoff = _BackOff(part)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(backoff.accepts),
            stop=lambda _state: backoff.is_over,
            wait=lambda _state: backoff.seconds,
            sleep=self._pause,
            before_sleep=lambda _state: self._notify(
                f"{url} {backoff.reason}: trying again in {backoff.seconds:.3g} s"
            ),
            reraise=True,
        )
        try:
            retrying(self._attempt, url, download, part)
        except _TransientError as error:
            received = (
                f"; {part.size:,} bytes are kept: run the same command again to resume" if part.size else ""
            )
            raise SearchappError(f"{url} {error}: try again later{received}") from error

    def _attempt(self, url: str, download: Download, part: PartialFile) -> None:
        if part.size == download.size:
            return
        if part.size > download.at_most:
            part.discard()
        headers = {}
        if part.size:
            headers["Range"] = f"bytes={part.size}-"
            if validator := part.validator:
                headers["If-Range"] = validator
        with _translated_errors(url), self._client.stream("GET", url, headers=headers) as answer:
            total = self._accept(answer, url, download, part)
            if total != part.size and not part.append(answer.iter_raw(), download.at_most):
                part.discard()
                raise DataError(f"{url} sends more than the allowed {download.at_most:,} bytes: not fetched")
        expected = download.size if download.size is not None else total
        if expected is not None and part.size < expected:
            raise _TransientError(f"ended after {part.size:,} of {expected:,} bytes")

    def _accept(self, answer: httpx.Response, url: str, download: Download, part: PartialFile) -> int | None:
        """Prepare the partial file for the response, and return the size of the whole file, if reported."""
        status = answer.status_code
        content_range = answer.headers.get("Content-Range", "").strip()
        if status == 416:
            match = re.fullmatch(r"bytes \*/(\d+)", content_range)
            if match and int(match[1]) == part.size:
                return part.size  # nothing was missing
            part.discard()
            raise _TransientError("has no such part of the file")
        if status not in (200, 206):
            reason = f"answers {status} {answer.reason_phrase}".rstrip()
            if status in PASSING_STATUS:
                raise _TransientError(reason, retry_after(answer.headers.get("Retry-After")))
            raise SearchappError(f"{url} {reason}: nothing was fetched from it{_ADVICE.get(status, '')}")
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise SearchappError(
                f"{url} is sent compressed, although this was not requested: use another mirror"
            )
        version = _validator(answer.headers)
        if status == 206:
            match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", content_range)
            is_other = version and part.validator and version != part.validator
            if not match or int(match[1]) != part.size or is_other:
                part.discard()
                raise _TransientError("sent another part than requested")
            total = _whole_number(match[2])
        else:
            total = _whole_number(answer.headers.get("Content-Length"))
            part.begin(version)
        if total is not None and download.size is not None and total != download.size:
            raise DataError(
                f"{url} has {total:,} bytes, and the expected file has {download.size:,}: "
                "the source has changed, or a proxy answers instead"
            )
        if total is not None and total > download.at_most:
            raise DataError(
                f"{url} has {total:,} bytes, more than the allowed {download.at_most:,}: not fetched"
            )
        return total


class _BackOff:
    def __init__(self, part: PartialFile) -> None:
        self._part = part
        self._greatest_size = part.size
        self._failures = 0
        self.reason = ""
        self.seconds = 0.0

    @property
    def is_over(self) -> bool:
        return self._failures >= ATTEMPTS or self.seconds > LONGEST_REQUESTED_WAIT_SECONDS

    def accepts(self, error: BaseException) -> bool:
        """Record a failure, and return whether it is transient."""
        if not isinstance(error, _TransientError):
            return False
        size = self._part.size
        # Compared with the greatest size so far: a file that restarts repeatedly makes no progress.
        if size >= self._greatest_size + PROGRESS_BYTES:
            self._failures = 0
        self._greatest_size = max(self._greatest_size, size)
        self._failures += 1
        self.reason = str(error)
        doubled = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (self._failures - 1))
        self.seconds = doubled if error.wait is None else error.wait
        return True


@contextmanager
def _translated_errors(url: str) -> Iterator[None]:
    """Turn errors of requests into transient errors or errors for the user."""
    try:
        yield
    except httpx.TooManyRedirects as error:
        raise SearchappError(f"{url} redirects more than {MOST_REDIRECTS} times") from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise SearchappError(
            f"{url} redirects to an address that is neither http nor https: not followed"
        ) from error
    except httpx.TransportError as error:
        if certificate := _certificate_problem(error):
            raise SearchappError(
                f"{url} has a certificate that is not trusted ({certificate}): set SSL_CERT_FILE to the "
                "certificates of your authority"
            ) from error
        raise _TransientError(_description(error)) from error
    except httpx.HTTPError as error:
        raise SearchappError(f"{url} could not be fetched: {error}") from error


def _validator(headers: httpx.Headers) -> str | None:
    """Return a strong entity tag, or else the date of the last change."""
    tag: str | None = headers.get("ETag")
    date: str | None = headers.get("Last-Modified")
    return tag if tag and not tag.startswith("W/") else date


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header (a number or a date)."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _whole_number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


_MOVED = "; the file may have moved: set a mirror with SEARCHAPP_DATA_MIRROR"
_ADVICE = {404: _MOVED, 410: _MOVED, 407: "; the proxy requires a name and a password"}


def _certificate_problem(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def _description(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return f"does not answer within {CONNECT_SECONDS:.0f} s"
    if isinstance(error, httpx.TimeoutException):
        return f"has sent nothing for {SILENCE_SECONDS:.0f} s"
    if isinstance(error, httpx.ProxyError):
        return f"can't be reached through the proxy ({error})"
    if isinstance(error, httpx.ConnectError):
        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).lower()
        return f"can't be reached ({reason}; check the network and the proxy)"
    if isinstance(error, httpx.RemoteProtocolError) and "peer closed connection" in str(error):
        return "ended before the end of the file"
    return f"was interrupted ({str(error) or type(error).__name__})"
