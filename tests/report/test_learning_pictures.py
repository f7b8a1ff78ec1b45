"""The pictures of learning curves in the documentation, which `make curves` draws from official data."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.learning_curves import CURVES, IMAGES, Curve
from searchapp.ranking import recipes

DOCUMENT = Path(__file__).parents[2] / "docs" / "use" / "learning-curve.md"


def test_every_picture_belongs_to_a_curve() -> None:
    assert {curve.path for curve in CURVES} == set(IMAGES.iterdir())


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.task)
def test_the_documentation_has_each_picture_with_its_command(curve: Curve) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert curve.command in text and f"](../images/curves/{curve.path.name})" in text
    options = curve.options.split()
    assert recipes.load(curve.task, options[options.index("--recipe") + 1]).learns
    root = ElementTree.fromstring(curve.path.read_text(encoding="utf-8"))
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    for point in options[options.index("--points") + 1].split(","):
        assert any(title.startswith(f"{int(point):,} judged topics: ") for title in titles)
