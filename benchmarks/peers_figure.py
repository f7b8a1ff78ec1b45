"""Draw what `peers.py` measured against the number of documents: time, memory and disk of all systems, log-log.

    python benchmarks/peers_figure.py benchmarks/results/peers-*.json --out docs/images

Takes the JSON files of several sizes of synthetic documents (nlps has queries of another kind, and is left out) and
writes `peers-time.svg` (median ms of a query to depth 10), `peers-memory.svg` (MiB while searching) and
`peers-disk.svg` to the folder.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import pygal
from peer_systems import SAME_INDEX, SYSTEMS
from peers import figures
from pygal.style import Style

FIGURES = {
    "time": ("depth 10 median ms", "ms for a query to depth 10, the median"),
    "memory": ("search MiB", "MiB of memory while searching, at most"),
    "disk": ("disk MiB", "MiB on disk"),
}
COLOURS = (
    "#d62728", "#1f77b4", "#2ca02c", "#98df8a", "#9467bd", "#8c564b", "#c49c94", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip
EXPONENTS = range(-3, 7)


def main() -> None:
    """Draw the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    options = parser.parse_args()
    results = [json.loads(file.read_text()) for file in options.results]
    synthetic = sorted((one for one in results if one["size"] != "nlps"), key=lambda one: one["documents"])
    for name, (figure, title) in FIGURES.items():
        chart = drawn(synthetic, figure, title)
        # Without pygal's comments, which have the date.
        (options.out / f"peers-{name}.svg").write_bytes(re.sub(rb"<!--.*?-->", b"", chart.render()))
        print(options.out / f"peers-{name}.svg")


def drawn(results: list[dict[str, Any]], figure: str, title: str) -> Any:
    """A chart of one figure: a line a system; systems that share an index have one line on disk."""
    chart = pygal.XY(
        title=title,
        logarithmic=True,
        x_title="documents",
        width=900,
        height=560,
        js=[],
        no_prefix=True,
        legend_at_bottom=True,
        legend_at_bottom_columns=5,
        dots_size=4,
        margin_right=40,
        style=Style(background="white", plot_background="white", colors=COLOURS, legend_font_size=14),
    )
    values = {name: _points(results, figure, name) for name in _names(results)}
    if figure == "disk MiB":
        values = {name: points for name, points in values.items() if SAME_INDEX.get(name) not in values}
    known = [y for points in values.values() for _, y in points]
    chart.x_labels = sorted({result["documents"] for result in results})
    chart.x_value_formatter = lambda count: f"{count:,.0f}"
    chart.y_labels = [
        10.0**exponent
        for exponent in EXPONENTS
        if known and 10 ** (exponent + 1) > min(known) and 10 ** (exponent - 1) < max(known)
    ]
    chart.value_formatter = lambda value: f"{value:g}"
    for name, points in values.items():
        chart.add(name, points)
    return chart


def _names(results: list[dict[str, Any]]) -> list[str]:
    """The systems that were measured, in an order that does not depend on the sizes, so that each keeps its colour."""
    return [name for name in SYSTEMS if any(name in result["systems"] for result in results)]


def _points(results: list[dict[str, Any]], figure: str, name: str) -> list[tuple[int, float]]:
    return [
        (result["documents"], round(figures(result, name)[figure], 3))
        for result in results
        if name in result["systems"]
    ]


if __name__ == "__main__":
    main()
