"""Write the table of the features of the embedded engine in docs/reference/engines.md, from its registries.

    python -m scripts.engine_features

A test fails while the table is not what this writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from searchapp.lucene.analysis import registry
from searchapp.lucene.index import mapping
from searchapp.lucene.queries.dsl import KINDS
from searchapp.lucene.queries.function_score import FUNCTIONS
from searchapp.lucene.search import request
from searchapp.lucene.search.aggregations.parsers import READERS as AGGREGATIONS
from searchapp.ranking.recipes import AGGREGATIONS_ON_ONE_SHARD

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "engines.md"
BEGIN, END = "<!-- features: begin -->", "<!-- features: end -->"

# Types of the module mapper-extras, which the server of the tests lacks.
NOT_COMPARED = frozenset({mapping.SCALED, mapping.TYPED})


class Row(NamedTuple):
    """The features of a kind; scores of those `on_one_shard` may depend on the number of shards."""

    kind: str
    features: Iterable[str]
    on_one_shard: frozenset[str] = frozenset()


PARTS = (request.KNOWN | request.READ_WITH_QUERY) - request.WITHOUT_EFFECT.keys()

ROWS = (
    Row("queries", KINDS, frozenset(name for name, kind in KINDS.items() if not kind.on_shards)),
    Row("functions of `function_score`", FUNCTIONS),
    Row(
        "parts of search bodies",
        (request.KNOWN | request.READ_WITH_QUERY) - request.WITHOUT_EFFECT.keys(),
        frozenset({"knn", "rescore", "suggest"}),
    ),
    Row("aggregations", AGGREGATIONS, AGGREGATIONS_ON_ONE_SHARD),
    Row("types of fields", [*mapping.PARAMETERS, mapping.ALIAS, "nested", "object"]),
    Row("char filters", registry.CHAR_FILTERS),
    Row("tokenizers", registry.TOKENIZERS),
    Row("token filters", [*registry.TOKEN_FILTERS, *registry.SYNONYMS, registry.MULTIPLEXER]),
    Row("analyzers", [*registry.BUILT_IN, "custom"]),
)


def table() -> str:
    """Return a table with a row for each kind of features."""
    lines = ["| | exact on any number of shards | exact on one shard |", "|---|---|---|"]
    for row in ROWS:
        names = sorted(row.features)
        cells = (
            ", ".join(_written(name) for name in names if (name in row.on_one_shard) == on_one_shard)
            for on_one_shard in (False, True)
        )
        lines.append(f"| {row.kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _written(name: str) -> str:
    return f"`{name}` (not compared)" if name in NOT_COMPARED else f"`{name}`"


def updated(text: str) -> str:
    """Return the page with the current table between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    TARGET.write_text(updated(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
