"""The compiled functions neither read nor write outside their arrays, and have no undefined behaviour."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from searchapp.lucene.native import compilation
from tests.profile import FULL

ROOT = Path(__file__).parents[3]

SANITIZERS = ("asan", "ubsan")

TESTS = (
    "tests/analysis/test_bulk.py",
    "tests/analysis/test_syntax_tree.py",
    "tests/engines/embedded/test_kernels.py",
    "tests/engines/embedded/test_packed.py",
    "tests/engines/embedded/test_phrases.py",
    "tests/engines/embedded/test_pruning.py",
    "tests/engines/embedded/test_storage.py",
)

# Tests that end themselves, measure memory or replace the library.
OTHERS = "not wait_on_disk and not memory and not library"

RUN = """
import sys
from pathlib import Path
import pytest
from searchapp.lucene import native
from searchapp.lucene.native import compilation
compilation.LIBRARY = Path(sys.argv[1])
assert native.library() is not None, native.missing_reason()
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-n", "0", *sys.argv[2:]]))
"""


@pytest.mark.skipif(not FULL, reason="takes minutes; `make test-full` runs it")
def test_sanitizers_report_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = os.environ.get("CC") or "cc"
    monkeypatch.setenv("CC", f"{compiler} -fsanitize=address,undefined -fno-sanitize-recover=undefined -g")
    library = tmp_path / "sanitized.so"
    if problem := compilation.compile_library(library):
        pytest.skip(f"the compiler has no sanitizers: {problem}")
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in SANITIZERS
    ]
    environment = os.environ | {
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps memory until its end
        "SEARCHAPP_TEST_PROFILE": "short",
    }
    result = subprocess.run(
        [sys.executable, "-c", RUN, str(library), *TESTS, "-k", OTHERS],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    assert " passed" in result.stdout
