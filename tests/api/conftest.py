"""The nlps sample, indexed once for each file of tests of the Python API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import searchapp as sa


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def task(home: Path) -> sa.Task:
    return sa.task("nlps-sample", home=home, engine="embedded")


@pytest.fixture(scope="module")
def index(task: sa.Task) -> Iterator[sa.Index]:
    with task.index(build=True) as opened:
        yield opened
