"""The pictures of learning curves in the documents, which `make curves` draws from the official data."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.learning_curves import CURVES, IMAGES, Curve
from searchapp.ranking import recipes

DOCUMENT = Path(__file__).parents[2] / "docs" / "use" / "learning-curve.md"


def test_every_picture_is_one_of_a_curve() -> None:
    assert {one.path for one in CURVES} == set(IMAGES.iterdir())


@pytest.mark.parametrize("one", CURVES, ids=lambda one: one.task)
def test_the_document_has_each_picture_with_its_command(one: Curve) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert one.command in text and f"](../images/curves/{one.path.name})" in text
    words = one.options.split()
    assert recipes.load(one.task, words[words.index("--recipe") + 1]).learns
    root = ElementTree.fromstring(one.path.read_text(encoding="utf-8"))
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    for point in words[words.index("--points") + 1].split(","):
        assert any(title.startswith(f"{int(point):,} judged topics: ") for title in titles)
