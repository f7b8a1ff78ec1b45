"""Compiles `SOURCES` with the C compiler when searchapp is built; `native` loads the result.

Only uses the standard library, because the build has no other module of searchapp.
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

# The first source contains their digest.
SOURCES = tuple(
    Path(__file__).with_name(name)
    for name in ("inversion.c", "kernels.c", "maxscore.c", "packing.c", "phrases.c", "tokens.c", "vectors.c")
)

HEADERS = tuple(Path(__file__).with_name(name) for name in ("keys.h", "maxscore.h", "packed.h", "postings.h"))

# The second dot distinguishes the name from an extension module of Python.
LIBRARY = Path(__file__).with_name("kernels.native.so")

CHECKSUM_SUFFIX = ".sha256"  # suffix of the file with a library's SHA-256

# Without fused or reordered operations, scores are the same on every machine.
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fPIC", "-shared")

TIMEOUT = 120


def digest(sources: Sequence[Path] = SOURCES) -> str:
    """Return the digest of sources, headers and flags, which identifies a library."""
    contents = [source.read_bytes() for source in (*sources, *HEADERS)]
    return hashlib.sha256(b"".join([*contents, " ".join(FLAGS).encode()])).hexdigest()


def checksum_of(library: Path) -> Path:
    """Return the path of the file with the SHA-256 of a library."""
    return library.with_name(library.name + CHECKSUM_SUFFIX)


def is_sound(library: Path) -> bool:
    """Return whether a library is unaltered; loading an altered one could crash the process.

    Raises:
        OSError: the library can't be read.
    """
    checksum = hashlib.sha256(library.read_bytes()).hexdigest()
    try:
        return checksum_of(library).read_bytes().strip() == checksum.encode()
    except FileNotFoundError:
        return False


def remove(library: Path) -> None:
    """Remove a library, if it exists."""
    library.unlink(missing_ok=True)
    checksum_of(library).unlink(missing_ok=True)


def compile_library(library: Path, sources: Sequence[Path] = SOURCES) -> str:
    """Compile to the file `library`, and write its checksum; return the reason of a failure, or ""."""
    import subprocess  # only a build needs it

    try:
        command, *options = shlex.split(os.environ.get("CC") or "cc")
    except ValueError:
        return f"CC is not a command: {os.environ['CC']}"
    compiler = shutil.which(command)
    if compiler is None or sys.platform == "win32":
        return "there is no C compiler"
    # cibuildwheel and pip name the architectures of a wheel for macOS here.
    options += shlex.split(os.environ.get("ARCHFLAGS") or "")
    arguments = [*options, *FLAGS, f"-I{Path(__file__).parent}", f'-DKERNELS_SOURCE="{digest(sources)}"']
    try:
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=".compiling-") as folder:
            output = Path(folder) / library.name
            process = subprocess.run(
                [compiler, *arguments, "-o", str(output), *map(str, sources)],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            if process.returncode:
                return f"{compiler} failed: {process.stderr.strip()}"
            checksum = checksum_of(output)
            checksum.write_text(f"{hashlib.sha256(output.read_bytes()).hexdigest()}\n", encoding="ascii")
            # Between the two renames the checksum does not match, and the library is not loaded.
            output.replace(library)
            checksum.replace(checksum_of(library))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler} failed: {error}"
    return ""
