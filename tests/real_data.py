"""The folders of the tasks' official data, which is not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def real_data(name: str) -> Path:
    """A folder of the real data; without any, the test is skipped."""
    root = os.environ.get("SEARCHAPP_TEST_DATA")
    if not root:
        pytest.skip("set SEARCHAPP_TEST_DATA to the folder that holds the tasks' data")
    return Path(root) / name
