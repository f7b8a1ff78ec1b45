from __future__ import annotations

from typing import Any

import pytest


def exact(expected: Any, *, nan_ok: bool = False) -> Any:
    """Return an object that equals a value to 1e-12."""
    return pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=nan_ok)
