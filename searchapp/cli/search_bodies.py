"""Printing of the answer to a search body: hits, aggregations and suggestions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchapp.cli.output import stdout_console
from searchapp.errors import DataError, UsageError
from searchapp.files import parse_json, read_text
from searchapp.text import counted, visible_line

FROM_STDIN = Path("-")

SOURCE_CHARACTERS = 240


def read_body(path: Path) -> dict[str, Any]:
    """Read a search body from a JSON file, or from stdin for the path `-`.

    Raises:
        UsageError: the file can't be read.
        DataError: it is no JSON object.
    """
    name = "stdin" if path == FROM_STDIN else str(path)
    try:
        text = sys.stdin.read() if path == FROM_STDIN else read_text(path)
        body = parse_json(text)
    except OSError as error:
        raise UsageError(f"{name} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{name} is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise DataError(f"{name} is not a search body, which is a JSON object")
    return body


def print_answer(answer: Mapping[str, Any]) -> None:
    """Print the hits with sort values and highlights, then aggregations and suggestions."""
    console = stdout_console()
    for line in _lines(answer):
        console.print(visible_line(line), soft_wrap=True, markup=False, highlight=False)


def _lines(answer: Mapping[str, Any]) -> Iterator[str]:
    hits = answer["hits"]
    if "total" in hits:
        total = hits["total"]
        yield f"{'at least ' if total['relation'] == 'gte' else ''}{counted(total['value'], 'document')}"
    for rank, hit in enumerate(hits["hits"], 1):
        yield from _hit_lines(rank, hit)
    for name, aggregation in answer.get("aggregations", {}).items():
        yield from _aggregation_lines(name, aggregation, "")
    for name, entries in answer.get("suggest", {}).items():
        yield f"suggest {name}"
        for entry in entries:
            options = ", ".join(_option(option) for option in entry["options"])
            yield f"  {entry['text']}: {options or '–'}"


def _hit_lines(rank: int, hit: Mapping[str, Any]) -> Iterator[str]:
    score = "" if hit["_score"] is None else f"  {hit['_score']:.4f}"
    sort = hit.get("sort", [])
    is_plain = len(sort) == 2 and sort[0] == hit["_score"]
    values = "" if not sort or is_plain else f"  sorted by {json.dumps(sort, ensure_ascii=False)}"
    yield f"{rank:>3}  {hit['_id']}{score}{values}"
    for field, fragments in hit.get("highlight", {}).items():
        yield f"     {field}: {' … '.join(fragments)}"
    if "_source" in hit and "highlight" not in hit:
        source = json.dumps(hit["_source"], ensure_ascii=False)
        yield f"     {source if len(source) <= SOURCE_CHARACTERS else source[:SOURCE_CHARACTERS] + '…'}"


def _aggregation_lines(name: str, aggregation: Mapping[str, Any], indentation: str) -> Iterator[str]:
    buckets = aggregation.get("buckets")
    values = {key: value for key, value in aggregation.items() if not isinstance(value, Mapping | list)}
    rest = ", ".join(f"{key} {json.dumps(value)}" for key, value in values.items())
    yield f"{indentation}{name}{': ' if rest else ''}{rest}"
    inner = f"{indentation}  "
    if buckets is not None:
        keyed = (
            buckets.items()
            if isinstance(buckets, Mapping)
            else ((_key(bucket), bucket) for bucket in buckets)
        )
        rows = list(keyed)
        width = max((len(key) for key, _bucket in rows), default=0)
        for key, bucket in rows:
            yield f"{inner}{key:<{width}}  {bucket['doc_count']:>8,}"
            yield from _sub_lines(bucket, f"{inner}  ")
    else:
        yield from _sub_lines(aggregation, inner)


def _sub_lines(bucket: Mapping[str, Any], indentation: str) -> Iterator[str]:
    for name, inner in bucket.items():
        if isinstance(inner, Mapping):
            yield from _aggregation_lines(name, inner, indentation)


def _key(bucket: Mapping[str, Any]) -> str:
    return str(bucket.get("key_as_string", bucket.get("key", "")))


def _option(option: Mapping[str, Any]) -> str:
    frequency = f" ({option['freq']:,})" if "freq" in option else ""
    return f"{option['text']}{frequency}"
