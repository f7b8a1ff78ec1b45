from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp.judging.log import JudgmentLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "judgments.sqlite"


@pytest.fixture
def log(path: Path) -> Iterator[JudgmentLog]:
    with JudgmentLog(path) as opened:
        yield opened
