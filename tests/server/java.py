"""Find a Java that is new enough for Elasticsearch.

The `java` on the PATH is often an old one while a newer one stands beside it, so every usual place is asked.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

OLDEST = 21

# Folders whose children are Java homes; on macOS the home lies deeper.
JVM_FOLDERS = (
    Path("/usr/lib/jvm"),
    Path("/usr/java"),
    Path("/opt/java"),
    Path("/Library/Java/JavaVirtualMachines"),
    Path("/opt/homebrew/opt"),
    Path.home() / ".sdkman/candidates/java",
)


def find_java(
    environment: Mapping[str, str] = os.environ, jvm_folders: Iterable[Path] = JVM_FOLDERS
) -> Path | None:
    """The home folder of the first Java of version 21 or newer, or None."""
    for home in candidates(environment, jvm_folders):
        version = java_version(home)
        if version is not None and version >= OLDEST:
            return home
    return None


def candidates(environment: Mapping[str, str], jvm_folders: Iterable[Path]) -> Iterator[Path]:
    """Folders that may be a Java home, the most deliberate choice first, each once."""
    seen: set[Path] = set()
    for home in _places(environment, jvm_folders):
        if home not in seen and (home / "bin" / "java").is_file():
            seen.add(home)
            yield home


def _places(environment: Mapping[str, str], jvm_folders: Iterable[Path]) -> Iterator[Path]:
    for variable in ("ES_JAVA_HOME", "JAVA_HOME"):
        if environment.get(variable):
            yield Path(environment[variable])
    if java := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(java).resolve().parent.parent
    for folder in jvm_folders:
        # Only names that speak of Java: a folder such as Homebrew's holds everything else too.
        for home in sorted(folder.glob("*"), reverse=True):
            if folder.name in {"jvm", "java", "JavaVirtualMachines"} or "jdk" in home.name:
                yield home.resolve()
                yield home / "Contents" / "Home"
                yield home / "libexec/openjdk.jdk/Contents/Home"


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
