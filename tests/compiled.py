"""The tests' modules, compiled once before several processes collect them.

Where they are not compiled yet, as in a fresh clone, each process would rewrite the asserts of all of them, which takes
it as long as all else of collecting.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

TESTS = Path(__file__).parent


def compile_tests(config: pytest.Config) -> None:
    """Write what pytest rewrites these modules to, by all processors at once, where it is not there yet."""
    missing = [path for path in rewritten_modules() if not written(path).exists()]
    if sys.platform != "linux" or sys.dont_write_bytecode or not missing:
        return
    number = os.cpu_count() or 1
    shares = [missing[first::number] for first in range(number)]
    context = multiprocessing.get_context("fork")  # a configuration can't be sent to another process
    processes = [context.Process(target=compile_these, args=(share, config)) for share in shares]
    for process in processes:
        process.start()
    for process in processes:
        process.join()  # what one has not written is written by those that collect


def rewritten_modules() -> Iterator[Path]:
    """The modules of this folder that pytest rewrites by itself."""
    for path in sorted(TESTS.rglob("*.py")):
        if path.name == "conftest.py" or path.name.startswith("test_"):
            yield path


def written(path: Path) -> Path:
    """Where pytest keeps what it has made of a module."""
    return rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"


def compile_these(paths: list[Path], config: pytest.Config) -> None:
    """Do to each module what pytest does before it executes one."""
    state = config.stash[rewrite.assertstate_key]
    for path in paths:
        source_hash, code = rewrite._rewrite_test(path, config)
        if rewrite.try_makedirs(written(path).parent):
            rewrite._write_pyc(state, code, source_hash, written(path))
