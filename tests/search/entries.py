"""The entries of the engine's registries that search bodies use.

`python -m tests.search` counts how many random bodies with hits use each entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from searchapp.lucene.analysis import registry
from searchapp.lucene.index import mapping as types
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.queries.dsl import KINDS
from searchapp.lucene.queries.function_score import FUNCTIONS

Json = dict[str, Any]

_PIECES = {
    "char_filter": ("char filter", registry.CHAR_FILTERS),
    "tokenizer": ("tokenizer", registry.TOKENIZERS),
    "filter": ("filter", registry.TOKEN_FILTERS),
}


def known() -> set[str]:
    """Return the entries of queries, functions and types of fields."""
    return {
        *(f"query {name}" for name in KINDS),
        *(f"function {name}" for name in FUNCTIONS),
        *(f"type {name}" for name in types.PARAMETERS),
    }


def analysis() -> set[str]:
    """Return the entries of analysis."""
    return {
        *(f"{kind} {name}" for kind, pieces in _PIECES.values() for name in pieces),
        *(f"analyzer {name}" for name in registry.BUILT_IN),
    }


def used(body: Json, mapping: Json, schema: Schema) -> set[str]:
    """Return the entries that a body uses, by its keys and texts, and those of the fields that it names."""
    words = set(_words(body))
    entries = {f"query {name}" for name in words & KINDS.keys()}
    entries |= {f"function {name}" for name in words.intersection(FUNCTIONS)}
    analysis = mapping["settings"].get("analysis", {})
    for name in words & schema.fields.keys():
        field = schema.fields[name]
        entries.add(f"type {field.type}")
        for analyzer in (field.analyzer, field.search_analyzer):
            entries |= _analyzer_entries(
                analysis.get("analyzer", {}).get(analyzer, {"type": analyzer}), analysis
            )
    return entries


def analyzer_entries(analyzer: str | Json) -> set[str]:
    """Return the entries that an analyzer uses, given its name or its definition with those of its pieces."""
    return _analyzer_entries({"type": analyzer} if isinstance(analyzer, str) else analyzer, {})


def _analyzer_entries(analyzer: Json, analysis: Json) -> set[str]:
    type_ = analyzer.get("type", "custom")
    if type_ != "custom":
        return {f"analyzer {type_}"} if type_ in registry.BUILT_IN else set()
    entries = set()
    for section, (kind, makers) in _PIECES.items():
        pieces = analyzer.get(section, [])
        for piece in pieces if isinstance(pieces, list) else [pieces]:
            defined = analysis.get(section, {}).get(piece, {}) if isinstance(piece, str) else piece
            name = defined.get("type", piece)
            if name in makers:
                entries.add(f"{kind} {name}")
    return entries


def _words(node: Any) -> Iterator[str]:
    """Yield the keys and the texts of a body, without weights such as `^2` behind the names of fields."""
    if isinstance(node, Mapping):
        yield from node
        for value in node.values():
            yield from _words(value)
    elif isinstance(node, list):
        for value in node:
            yield from _words(value)
    elif isinstance(node, str):
        yield node.partition("^")[0]
