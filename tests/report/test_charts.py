"""Charts draw values to scale and names only as text."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from searchapp.report.charts import (
    LONGEST_LABEL,
    LONGEST_NAME,
    Line,
    Mark,
    curve,
    grouped_bars,
    lines,
    sorted_bars,
)
from searchapp.text import visible_line
from tests.report.conftest import PAYLOADS


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.replace("\uffff", "").replace("\ufdd0", ""))


def bars(svg: str) -> dict[str, float]:
    """Return the height of each bar by its name."""
    return {
        group.findtext("title", ""): float(rect.get("height", "nan"))
        for group in parse(svg).iter("g")
        if (rect := group.find("rect[@class='rect']")) is not None
    }


def test_bars_are_as_high_as_their_values() -> None:
    heights = bars(
        sorted_bars([Mark(0.5, "a"), Mark(0.25, "b"), Mark(0.0, "none"), Mark(-0.25, "c")], "about")
    )
    assert heights.keys() == {"a", "b", "c"}
    assert heights["a"] == pytest.approx(2 * heights["b"], abs=0.02)
    assert heights["b"] == pytest.approx(heights["c"], abs=0.02)


def test_negative_values_alone_fill_the_axis() -> None:
    heights = bars(sorted_bars([Mark(-0.3, "a"), Mark(-0.1, "b")], "about"))
    assert heights["a"] == pytest.approx(3 * heights["b"], abs=0.1) and heights["a"] > 150


def test_confidence_intervals_are_drawn_if_given() -> None:
    svg = grouped_bars(["x", "y"], [[Mark(0.5, "a", 0.4, 0.7), Mark(0.5, "b")]], "about")
    assert len(parse(svg).findall(".//g[@class='ci']")) == 1


@pytest.mark.parametrize("payload", [*PAYLOADS, "\x00\x1b[2J\ud800", "0:0", "x" * 999])
def test_names_are_text_and_nothing_else(payload: str) -> None:
    svg = grouped_bars([payload, "0"], [[Mark(0.5, payload), Mark(0.1, "b")]] * 2, payload)
    root = parse(svg)
    tags = {element.tag for element in root.iter()}
    assert tags <= {"svg", "g", "rect", "path", "text", "title"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not attributes & {"id", "style", "href"}
    assert not [name for name in attributes if name.startswith("on")]
    visible = visible_line(payload).replace("\uffff", "").replace("\ufdd0", "")
    assert root.get("aria-label") == visible
    titles = [element.text or "" for element in root.iter("title")]
    assert titles.count(titles[0]) == 2 and len(titles) == 4
    assert titles[0] == visible or (len(titles[0]) == LONGEST_NAME and visible.startswith(titles[0][:-1]))
    (label,) = [text.text or "" for text in root.iter("text") if (text.text or "")[:10] == visible[:10]][:1]
    assert label == visible or len(label) <= LONGEST_LABEL
    svg.encode()


def test_the_same_marks_give_the_same_drawing() -> None:
    def draw() -> str:
        series = [[Mark(math.sqrt(number) / 4, f"{number}") for number in range(11)]]
        return lines([str(number) for number in range(11)], series, "about", ("x", "y"))

    assert draw() == draw()
    assert len(parse(draw()).findall(".//circle")) == 11


def test_the_points_of_a_curve_are_to_scale() -> None:
    marks = tuple((x, Mark(y, f"{x}")) for x, y in ((0, 0.2), (10, 0.3), (40, 0.25)))
    root = parse(curve([Line(marks), Line(marks[1:2], dots_only=True)], "heading", ("judged", "score")))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    dots = [
        (float(dot.get("cx", "nan")), float(dot.get("cy", "nan"))) for dot in root.findall(".//{*}circle")
    ]
    assert len(dots) == 4
    (left, low), (middle, high), (right, between), _sample = dots
    assert (middle - left) == pytest.approx((right - left) / 4, abs=0.1)
    assert high < between < low and (low - between) == pytest.approx((low - high) / 2, abs=0.1)
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"heading", "judged", "score", "0", "10", "40"} <= set(texts)


@pytest.mark.parametrize("payload", [*PAYLOADS, "\x00\x1b[2J\ud800", "x", "y"])
def test_names_in_a_curve_are_text_and_nothing_else(payload: str) -> None:
    svg = curve([Line(((1, Mark(0.5, payload)),))], payload, (payload, payload))
    root = ElementTree.fromstring(svg)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "g", "rect", "path", "text", "title", "circle", "style"}
    visible = visible_line(payload).replace("\uffff", "\ufffd")
    assert [element.text for element in root.iter() if element.get("class") == "heading"] == [visible]
    assert "\uffff" not in svg
    assert len([element for element in root.iter() if element.tag.endswith("style")]) == 1
    svg.encode()


def test_a_curve_without_spread_is_drawn() -> None:
    assert "0.000" in curve([Line(((5, Mark(0.0, "a")),))], "about", ("x", "y"))
