"""Compile `SOURCES` with the C compiler of this machine, when searchapp is built; `native` loads the result.

Uses nothing but the standard library: the build has no other module of searchapp.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCES = tuple(Path(__file__).with_name(name) for name in ("kernels.c", "maxscore.c", "phrases.c"))
"""What one library is compiled from; its digest is in the first one."""

HEADERS = tuple(Path(__file__).with_name(name) for name in ("keys.h", "maxscore.h", "seek.h"))
"""What these include."""

LIBRARY = Path(__file__).with_name("kernels.native.so")
"""Its name has a dot more than that of a module of Python, for which others would take it."""

CHECKSUM_SUFFIX = ".sha256"
"""What the name of a library's checksum has more: it is read before a library that was altered can do harm."""

FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fPIC", "-shared")
"""No product is fused with a sum, nothing is added in another order: scores are the same on every machine."""

TIMEOUT = 120


def digest(sources: Sequence[Path] = SOURCES) -> str:
    """What a library of these sources, compiled in this way, is known by."""
    contents = [source.read_bytes() for source in (*sources, *HEADERS)]
    return hashlib.sha256(b"".join([*contents, " ".join(FLAGS).encode()])).hexdigest()


def checksum_of(library: Path) -> Path:
    """The file with the SHA-256 of a library."""
    return library.with_name(library.name + CHECKSUM_SUFFIX)


def is_sound(library: Path) -> bool:
    """Whether a library is as it was compiled; what is not may end the process that loads it.

    Raises:
        OSError: it can't be read, or there is none.
    """
    found = hashlib.sha256(library.read_bytes()).hexdigest()
    try:
        return checksum_of(library).read_bytes().strip() == found.encode()
    except FileNotFoundError:
        return False


def remove(library: Path) -> None:
    """Remove a library, if it is there."""
    library.unlink(missing_ok=True)
    checksum_of(library).unlink(missing_ok=True)


def compiled(library: Path, sources: Sequence[Path] = SOURCES) -> str:
    """Compile to the file `library`, beside which its checksum is put; returns why that failed, or nothing."""
    import subprocess  # which only a build needs

    try:
        command, *options = shlex.split(os.environ.get("CC") or "cc")
    except ValueError:
        return f"CC is no command: {os.environ['CC']}"
    compiler = shutil.which(command)
    if compiler is None or sys.platform == "win32":
        return "there is no C compiler"
    named = f'-DKERNELS_SOURCE="{digest(sources)}"'
    try:
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=".compiling-") as folder:
            made = Path(folder) / library.name
            done = subprocess.run(
                [
                    compiler,
                    *options,
                    *FLAGS,
                    f"-I{Path(__file__).parent}",
                    named,
                    "-o",
                    str(made),
                    *map(str, sources),
                ],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            if done.returncode:
                return f"{compiler} failed: {done.stderr.strip()}"
            found = hashlib.sha256(made.read_bytes()).hexdigest()
            checksum = checksum_of(made)
            checksum.write_text(f"{found}\n", encoding="ascii")
            # Who looks between the two finds a library that is not of the checksum, and does without.
            made.replace(library)
            checksum.replace(checksum_of(library))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler} failed: {error}"
    return ""
