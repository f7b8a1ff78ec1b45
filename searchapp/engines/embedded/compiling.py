"""Compiles `kernels.c` with the C compiler of this machine, for those who build searchapp; `kernels` loads the result.

It uses nothing but the standard library: the build knows no other module of searchapp.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("kernels.c")
LIBRARY = SOURCE.with_name("kernels.native.so")
"""Its name has a dot more than that of a module of Python, for which others would take it."""

FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fPIC", "-shared")
"""No product is fused with a sum, nothing is added in another order: scores are the same on every machine."""

TIMEOUT = 120


def digest(source: Path = SOURCE) -> str:
    """What a library of this source, compiled in this way, is known by."""
    return hashlib.sha256(source.read_bytes() + " ".join(FLAGS).encode()).hexdigest()


def compiled(library: Path, source: Path = SOURCE) -> str:
    """Compile `source` to the file `library`, which is whole or not there; returns why that failed, or nothing."""
    import subprocess  # which only a build needs

    name, *options = os.environ.get("CC", "").split() or ["cc"]
    compiler = shutil.which(name)
    if compiler is None or sys.platform == "win32":
        return "there is no C compiler"
    named = f'-DKERNELS_SOURCE="{digest(source)}"'
    try:
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=".compiling-") as folder:
            made = Path(folder) / library.name
            done = subprocess.run(
                [compiler, *options, *FLAGS, named, "-o", str(made), str(source)],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            if done.returncode:
                return f"{compiler} failed: {done.stderr.strip()}"
            made.replace(library)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler} failed: {error}"
    return ""
