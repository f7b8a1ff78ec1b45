"""Draw the results of `peers.py` over the number of documents: time, memory and disk of all systems, log-log.

    python benchmarks/peers_figure.py benchmarks/results/peers-*.json --out docs/images/peers

Reads the JSON files of several sizes of synthetic documents (nlps, which has other queries, is ignored), and writes
`time.svg` (median ms of a query to depth 10), `memory.svg` (MiB while searching) and `disk.svg`. Each line has its name
at its end. The colours follow the light or dark scheme of the page.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from peer_results import figures  # noqa: E402
from peer_systems import SYSTEMS  # noqa: E402
from usage import make_parser  # noqa: E402

FIGURES = {
    "time": ("depth 10 median ms", "ms for a query to depth 10, the median"),
    "memory": ("search MiB", "MiB of memory while searching, at most"),
    "disk": ("disk MiB", "MiB on disk"),
}
SHARED = {"elasticsearch-dfs": "elasticsearch", "bm25s-numba": "bm25s", "pisa-ranked-or": "pisa"}
"""Names of shared indexes by the system that builds them."""

LINE_STYLES = {
    "embedded": ("a", ""),
    "lucene": ("b", ""),
    "elasticsearch-dfs": ("c", "7 4"),
    "elasticsearch": ("c", ""),
    "tantivy": ("d", ""),
    "bm25s-numba": ("e", ""),
    "bm25s-numpy": ("e", "7 4"),
    "pisa-ranked-or": ("f", "7 4"),
    "pisa-maxscore": ("f", ""),
    "pisa-bmw": ("f", "2 4"),
}
"""Colour and dashes of the line of each system; a family of systems has one colour."""

STYLE = """
svg { --paper: #ffffff; --ink: #1a1d21; --soft: #4d555e; --line: #dde2e7; font: 13px system-ui, sans-serif;
  --a: #c4162a; --b: #0b62b0; --c: #23722f; --d: #7a3fb0; --e: #96590a; --f: #4d555e; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #14171a; --ink: #e8eaed; --soft: #abb4be; --line: #333a42;
    --a: #ff7b85; --b: #6cb6ff; --c: #6fd083; --d: #cf9bff; --e: #f0b152; --f: #abb4be; }
}
.paper { fill: var(--paper); } text { fill: var(--soft); } .heading { fill: var(--ink); font-weight: 600; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.series { fill: none; stroke-width: 2; stroke-linejoin: round; } .lead { fill: none; opacity: 0.5; }
.name { font-weight: 600; } .first { stroke-width: 3.5; }
""" + "".join(
    f".{colour} {{ stroke: var(--{colour}); }} "
    f".dot.{colour}, .name.{colour} {{ fill: var(--{colour}); stroke: none; }}\n"
    for colour in "abcdef"
)

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 78, 200, 44, 52
"""Margins for numbers, names, the heading and the number of documents."""

ROW = 17
"""Minimum distance between names."""

Points = Sequence[tuple[int, float]]


def main() -> None:
    """Draw the figures."""
    parser = make_parser(__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/images/peers"))
    options = parser.parse_args()
    results = [json.loads(file.read_text()) for file in options.results]
    synthetic = sorted(
        (result for result in results if result["size"] != "nlps"), key=lambda result: result["documents"]
    )
    if not synthetic:
        parser.error("no file has synthetic documents: measure --size 100000, for example")
    for name, (figure, title) in FIGURES.items():
        lines = {system: _points(synthetic, figure, system) for system in SYSTEMS}
        svg = draw({system: points for system, points in lines.items() if points}, title)
        (options.out / f"{name}.svg").write_text(svg)
        print(options.out / f"{name}.svg")


def _points(results: Sequence[Mapping[str, Any]], figure: str, name: str) -> Points:
    """Return a figure of a system by the number of documents; only the builder of a shared index has disk."""
    measured = [result for result in results if result["systems"].get(name, {}).get("rounds")]
    if figure == "disk MiB":
        measured = [result for result in measured if "as" not in result["systems"][name]["built"]]
    points = [(result["documents"], figures(dict(result), name)[figure]) for result in measured]
    return [(documents, value) for documents, value in points if value]


def draw(lines: Mapping[str, Points], title: str, styles: Mapping[str, tuple[str, str]] = LINE_STYLES) -> str:
    """Return an SVG file with a line for each name over the number of documents, with logarithmic axes.

    `styles` has the colour and dashes of each name.
    """
    sizes = sorted({x for points in lines.values() for x, _ in points})
    values = [y for points in lines.values() for _, y in points]
    horizontal = _Axis(sizes[0], sizes[-1], LEFT + 12, WIDTH - RIGHT)
    vertical = _Axis(min(values), max(values), HEIGHT - BOTTOM - 6, TOP + 12)
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "role": "img",
            "aria-label": title,
        },
    )
    ElementTree.SubElement(root, "style").text = STYLE
    _add(root, "rect", "paper", width=WIDTH, height=HEIGHT)
    _add(root, "text", "heading", x=LEFT - 58, y=26).text = title
    bottom = HEIGHT - BOTTOM
    for value, is_named in vertical.ticks():
        y = vertical.at(value)
        _add(root, "line", "grid", x1=LEFT, x2=WIDTH - RIGHT + 12, y1=y, y2=y)
        if is_named:
            _add(root, "text", "end", x=LEFT - 8, y=y + 4.5).text = f"{value:,g}"
    for value in sizes:
        x = horizontal.at(value)
        _add(root, "line", "grid", x1=x, x2=x, y1=TOP, y2=bottom)
        _add(root, "text", "middle", x=x, y=bottom + 19).text = f"{value:,}"
    _add(root, "line", "axis", x1=LEFT, x2=WIDTH - RIGHT + 12, y1=bottom, y2=bottom)
    _add(root, "text", "middle", x=(LEFT + WIDTH - RIGHT) / 2, y=bottom + 40).text = "documents"
    rows = _rows({name: vertical.at(points[-1][1]) for name, points in lines.items()})
    is_disk = "disk" in title
    for name in sorted(lines, key="embedded".__eq__):  # draws the embedded engine above the others
        colour, dashes = styles[name]
        dashes = "" if is_disk else dashes
        spots = [(horizontal.at(x), vertical.at(y)) for x, y in lines[name]]
        _line(root, f"series {colour}{' first' if name == 'embedded' else ''}", spots, dashes)
        for x, y in spots:
            _add(root, "circle", f"dot {colour}", cx=x, cy=y, r=3.5)
        x, y = spots[-1]
        end = WIDTH - RIGHT + 40
        _line(root, f"lead {colour}", [(x + 5, y), (WIDTH - RIGHT + 14, y), (end - 4, rows[name])], "")
        shown = SHARED.get(name, name) if is_disk else name
        _add(root, "text", f"name {colour}", x=end, y=rows[name] + 4.5).text = shown
    return ElementTree.tostring(root, encoding="unicode") + "\n"


class _Axis:
    """A logarithmic axis with the coordinates of its least and greatest value."""

    def __init__(self, least: float, greatest: float, start: float, end: float) -> None:
        self.least, self.greatest = least, max(greatest, least * 1.01)
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        share = math.log(value / self.least) / math.log(self.greatest / self.least)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[tuple[float, bool]]:
        """Return values of grid lines, and whether they have a label: powers of ten, with 2 and 5 if there are few."""
        decades = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.greatest)) + 1)
        factors = (1.0,) if len(decades) > 5 else (1.0, 2.0, 5.0)
        values = [factor * 10.0**exponent for exponent in decades for factor in factors]
        return [(value, True) for value in values if self.least <= value <= self.greatest]


def _rows(wanted: Mapping[str, float]) -> dict[str, float]:
    """Return coordinates of names: as near to the ends of their lines as possible without overlap."""
    order = sorted(wanted, key=wanted.__getitem__)
    groups: list[list[str]] = []

    def top(group: Sequence[str]) -> float:
        middle = sum(wanted[name] for name in group) / len(group)
        least, most = TOP + 8, HEIGHT - BOTTOM + 8 - ROW * (len(group) - 1)
        return min(max(middle - ROW * (len(group) - 1) / 2, least), most)

    for name in order:
        groups.append([name])
        while len(groups) > 1 and top(groups[-2]) + ROW * len(groups[-2]) > top(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return {name: top(group) + ROW * row for group in groups for row, name in enumerate(group)}


def _add(root: ElementTree.Element, tag: str, kind: str, **numbers: float) -> ElementTree.Element:
    shown = {name: f"{value:.2f}".rstrip("0").rstrip(".") for name, value in numbers.items()}
    return ElementTree.SubElement(root, tag, {"class": kind, **shown})


def _line(root: ElementTree.Element, kind: str, spots: Sequence[tuple[float, float]], dashes: str) -> None:
    path = ElementTree.SubElement(
        root, "polyline", {"class": kind, "points": " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)}
    )
    if dashes:
        path.set("stroke-dasharray", dashes)


if __name__ == "__main__":
    main()
