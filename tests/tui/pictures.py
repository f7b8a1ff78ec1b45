"""Compare pictures of screens with stored ones that people have approved.

SEARCHAPP_UPDATE_SNAPSHOTS=1 stores them anew, after a change of the design or of Textual.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests.profile import FULL, UPDATED

SIZES = (80, 24), (160, 45)

RESIZED = {(80, 24): ((40, 15),)}
"""Further sizes to which the screen of a size is resized, for a picture in the dark theme."""

FOLDER = Path(__file__).parent / "snapshots"
(LOCKED,) = re.findall(r"^textual==(\S+)", (Path(__file__).parents[2] / "requirements.txt").read_text(), re.M)

pinned = pytest.mark.skipif(
    version("textual") != LOCKED, reason=f"the pictures are those of Textual {LOCKED}"
)


def in_sizes(names: Iterable[str]) -> list[ParameterSet]:
    """Return each name with each size; the short profile alternates sizes unless pictures are being stored."""
    return [
        pytest.param(name, size, id=f"{name}-{size[0]}x{size[1]}")
        for position, name in enumerate(names)
        for size in (SIZES if FULL or UPDATED else [SIZES[position % len(SIZES)]])
    ]


def require_same(picture: str, name: str, size: tuple[int, int], look: str) -> None:
    """Compare a picture with the stored one of this name."""
    path = FOLDER / f"{name}-{size[0]}x{size[1]}-{look}.svg.gz"
    if UPDATED:
        path.write_bytes(gzip.compress(picture.encode(), mtime=0))
    expected = gzip.decompress(path.read_bytes()).decode() if path.exists() else None
    assert expected == picture, (
        f"if {path.name} should look so now: SEARCHAPP_UPDATE_SNAPSHOTS=1, and look at it"
    )
