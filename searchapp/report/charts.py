"""Charts as SVG, drawn by pygal, with names on hover.

pygal receives only numbers and placeholders; other text, such as a topic's id, becomes text of an element in the
finished drawing, so that it can't become markup.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pygal
from markupsafe import Markup
from pygal.graph.graph import Graph
from pygal.style import Style

from searchapp.lucene.dataclass import dataclass
from searchapp.report.wording import curve_heading
from searchapp.text import counted, visible_line

if TYPE_CHECKING:
    from searchapp.app.experiments.learning_curve import LearningCurve


# pygal's finder of map plugins makes Python 3.11 warn at every missing module.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != pygal.__name__]

WIDTH, HEIGHT = 1100, 320
HALF_WIDTH, LOW = 560, 220  # of a chart beside another one, and of one without labels

CURVE_WIDTH, CURVE_HEIGHT, HEADING = 860, 380, 30  # of a chart in a file, with a heading above it

TEXT = 13  # font size in pixels, as in the page's style

LONGEST_NAME = 160  # characters of a name on hover

LONGEST_LABEL = 24  # characters of a label of an axis

_DECIMALS = re.compile(r"-?\d+\.\d+")
_OF_SCRIPTS = {"reactive", "tooltip-trigger", "activate-serie"}
_DROPPED = {"defs", "desc", "style", "script", "title"}


@dataclass(frozen=True, slots=True)
class Mark:
    """A bar or a dot."""

    value: float | None
    name: str  # the text on hover
    low: float | None = None  # the lower end of its interval
    high: float | None = None
    kind: str = ""  # a class of the page's style, for a bar unlike its series


@dataclass(frozen=True, slots=True)
class Line:
    """Marks at numbers, joined by a line unless they are `dots_only`."""

    points: tuple[tuple[int, Mark], ...]
    dots_only: bool = False


def _labels(labels: Sequence[str]) -> dict[str, str]:
    """Return the labels of an axis by placeholder of the same length."""
    shown = [
        name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"
        for name in map(visible_line, labels)
    ]
    return {f"{number}".rjust(len(name), ".") + ".": name for number, name in enumerate(shown)}


def grouped_bars(labels: Sequence[str], series: Sequence[Sequence[Mark]], about: str) -> Markup:
    """Draw a group of bars for each label, a bar for each series, with their intervals."""
    texts = _labels(labels)
    # Labels that do not fit beside each other are turned.
    rotation = 30 if sum(len(label) + 2 for label in texts) * 7 > WIDTH else 0
    chart = _chart(pygal.Bar, x_labels=[*texts], range=_range(series), x_label_rotation=rotation)
    return _draw(chart, series, about, texts)


def sorted_bars(marks: Sequence[Mark], about: str) -> Markup:
    """Draw a bar for each mark except 0, in their order, without labels."""
    bars = [replace(mark, value=mark.value or None) for mark in marks]
    return _draw(_chart(pygal.Bar, height=LOW, range=_range([marks])), [bars], about, {})


def lines(
    labels: Sequence[str], series: Sequence[Sequence[Mark]], about: str, titles: tuple[str, str]
) -> Markup:
    """Draw a line for each series over evenly spread labels."""
    texts = _labels(labels)
    chart = _chart(
        pygal.Line,
        x_labels=[*texts],
        x_title=titles[0],
        y_title=titles[1],
        width=HALF_WIDTH,
        range=(0, 1),
        dots_size=3,
    )
    return _draw(chart, series, about, texts)


def curve(series: Sequence[Line], about: str, titles: tuple[str, str]) -> str:
    """Return lines and dots over numbers as an SVG file with the heading `about`."""
    xs = sorted({x for line in series for x, _ in line.points})
    values = [mark.value for line in series for _, mark in line.points if mark.value is not None]
    spread = max(values) - min(values) or 0.01
    keys = {"x": visible_line(titles[0]), "y": visible_line(titles[1])}
    chart = _chart(
        pygal.XY,
        width=CURVE_WIDTH,
        height=CURVE_HEIGHT,
        x_labels=[{"value": x, "label": f"{x:,}"} for x in xs],
        x_title="x",
        y_title="y",
        range=(max(0.0, min(values) - spread / 5), max(values) + spread / 5),
        value_formatter="{:.3f}".format,
    )
    marked: dict[str, Mark] = {}
    for number, line in enumerate(series):
        points = []
        for index, (x, mark) in enumerate(line.points):
            key = f"{number}:{index}"
            marked[key] = mark
            points.append({"value": (x, mark.value), "label": key})
        chart.add(str(number), points, stroke=not line.dots_only, dots_size=2 if line.dots_only else 4)
    return _to_file(_element(chart.render(is_unicode=True), marked, keys, about), about)


# The page's colours for a drawing in a file.
_STYLE = """
svg { --paper: #ffffff; --ink: #1a1d21; --soft: #4d555e; --line: #c9d0d8; --c: #0b62b0;
  font: 13px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #14171a; --ink: #e8eaed; --soft: #abb4be; --line: #414a54; --c: #6cb6ff; }
}
.paper { fill: var(--paper); } .heading { fill: var(--ink); font-weight: 600; } text { fill: var(--soft); }
.background { fill: none; } .title, .axis.x text { text-anchor: middle; } .axis.y text { text-anchor: end; }
.axis path { stroke: var(--line); fill: none; } .axis.x .guide { stroke: none; } .axis > .line { stroke: var(--soft); }
.line { fill: none; } .series .line { stroke: var(--c); stroke-width: 2; } .dot { fill: var(--c); }
.color-1 .dot { fill: var(--soft); }
"""


def _to_file(root: ElementTree.Element, heading: str) -> str:
    width, height = CURVE_WIDTH, CURVE_HEIGHT + HEADING
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 -{HEADING} {width} {height}"}
    style = ElementTree.Element("style")
    style.text = _STYLE
    ground = {"class": "paper", "x": "0", "y": f"-{HEADING}", "width": f"{width}", "height": f"{height}"}
    title = ElementTree.Element("text", {"class": "heading", "x": "20", "y": "-10"})
    title.text = visible_line(heading)
    for index, element in enumerate((style, ElementTree.Element("rect", ground), title)):
        root.insert(index, element)
    text = ElementTree.tostring(root, encoding="unicode") + "\n"
    return text.translate({0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD})  # XML excludes these


def _chart(kind: Callable[..., Graph], **options: Any) -> Graph:
    usual = {
        "width": WIDTH,
        "height": HEIGHT,
        "margin": 10,
        "style": Style(label_font_size=TEXT, major_label_font_size=TEXT, title_font_size=TEXT),
        "show_legend": False,
        "truncate_label": -1,
        "max_scale": 6,
        "js": (),
        "css": (),
        "disable_xml_declaration": True,
        "value_formatter": "{:g}".format,
    }
    return kind(**{**usual, **options})


def _range(series: Sequence[Sequence[Mark]]) -> tuple[float, float]:
    ends = [
        end
        for marks in series
        for mark in marks
        for end in (mark.value, mark.low, mark.high)
        if end is not None
    ]
    low, high = min(0.0, *ends, 0.0), max(0.0, *ends, 0.0)
    if low == high:
        return 0.0, 1.0
    return low, max(high, -low / 50)  # pygal takes a highest value of 0 for none


def _draw(chart: Graph, series: Sequence[Sequence[Mark]], about: str, labels: Mapping[str, str]) -> Markup:
    marked: dict[str, Mark] = {}
    for number, marks in enumerate(series):
        points: list[dict[str, Any]] = []
        for index, mark in enumerate(marks):
            key = f"{number}:{index}"
            marked[key] = mark
            point: dict[str, Any] = {"value": mark.value, "label": key}
            if mark.low is not None and mark.high is not None:
                point["ci"] = {"low": mark.low, "high": mark.high}
            points.append(point)
        chart.add(str(number), points)
    element = _element(chart.render(is_unicode=True), marked, labels, about)
    # ElementTree escapes every < & > and quote of texts and attributes.
    return Markup(ElementTree.tostring(element, encoding="unicode"))


def _element(
    svg: str, marked: Mapping[str, Mark], labels: Mapping[str, str], about: str
) -> ElementTree.Element:
    root = ElementTree.fromstring(svg)
    _clean(root, marked)
    for text in root.iter("text"):
        text.text = labels.get(text.text or "", text.text)
    box = root.get("viewBox", f"0 0 {WIDTH} {HEIGHT}")
    root.attrib.clear()
    root.attrib.update({"class": "chart", "viewBox": box, "role": "img", "aria-label": visible_line(about)})
    return root


def _clean(node: ElementTree.Element, marked: Mapping[str, Mark]) -> None:
    """Remove invisible parts of a drawing, and add the names of marks, for which pygal uses a script."""
    node.tag = node.tag.rpartition("}")[2]
    key = None
    for child in list(node):
        tag = child.tag.rpartition("}")[2]
        if tag == "desc" and child.text in marked:
            key = child.text
        if tag in _DROPPED or "tooltip" in child.get("class", "").split():
            node.remove(child)
        else:
            _clean(child, marked)
            if child.tag == "g" and not len(child):
                node.remove(child)
    for name, text in list(node.attrib.items()):
        value = _attribute(name, text)
        if value is None:
            del node.attrib[name]
        else:
            node.attrib[name] = value
    node.tail = None
    if key is not None:
        title = ElementTree.Element("title")
        name, kind = visible_line(marked[key].name), marked[key].kind
        if kind:
            node.set("class", kind)
        title.text = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        node.insert(0, title)


def _attribute(name: str, text: str) -> str | None:
    """Return an attribute without classes of scripts, its numbers with two decimals; None for a needless one."""
    if name in ("id", "style") or (name in ("rx", "ry") and text == "0"):
        return None
    if name == "class":
        return " ".join(name for name in text.split() if name not in _OF_SCRIPTS) or None
    return _DECIMALS.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), text)


def curve_picture(learning_curve: LearningCurve) -> bytes:
    """Return the mean score by judged topics as a line, and each sample as a dot, as SVG in UTF-8."""
    scores = Line(
        tuple(
            (point.judged, Mark(point.score, f"{counted(point.judged, 'judged topic')}: {point.score:.4f}"))
            for point in learning_curve.points
        )
    )
    samples = Line(
        tuple(
            (point.judged, Mark(value, f"a sample of {counted(point.judged, 'judged topic')}: {value:.4f}"))
            for point in learning_curve.points
            for value in point.values
            if len(point.values) > 1
        ),
        dots_only=True,
    )
    beside = (
        f"in addition to {learning_curve.training_topics:,} training topics"
        if learning_curve.training_topics
        else "no training topics"
    )
    titles = (f"judged topics, {beside}", f"{learning_curve.measure} of test topics")
    return curve([scores, samples], curve_heading(learning_curve), titles).encode()
