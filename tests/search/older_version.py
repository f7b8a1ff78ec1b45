"""Reproduce the differences of Elasticsearch 8.19 from 9.x, so that everything else is compared bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.queries import boolean
from tests.search.comparing import Json, Outcome, comparable_between_versions

NEW_IN_LUCENE_10 = (boolean._inline_required,)
"""Rewriting rules of `bool` that Lucene 9.12 doesn't have.

Lucene 10.1 inlines the clauses of an inner conjunction without a boost and sums all clauses in double
(https://github.com/apache/lucene/pull/13994). Earlier versions round the sum of the inner conjunction to float32.
"""


@contextmanager
def rewriting() -> Iterator[None]:
    """Make the embedded engine rewrite queries as Lucene 9.12 does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            boolean, "_RULES", tuple(rule for rule in boolean._RULES if rule not in NEW_IN_LUCENE_10)
        )
        patch.setattr(Schema, "vectors", {})  # new in 9.2
        yield


def mapping(written: Json) -> Json:
    """Return a mapping without a setting that is new in 9.2."""
    settings = written["settings"]
    known = {
        name: value for name, value in settings.items() if name != "index.mapping.exclude_source_vectors"
    }
    return {**written, "settings": known}


def comparable(body: Json, outcome: Outcome) -> Outcome:
    """Return the outcome of a body without what depends on the server's version: descriptions, highlights, vectors."""
    outcome = comparable_between_versions(outcome)
    different = {"highlights"} if _has_other_highlights(body.get("highlight")) else set()
    if isinstance(source := body.get("_source"), dict) and "exclude_vectors" in source:
        different.add("source")
    if isinstance(outcome, str) or not different:
        return outcome
    return [{name: value for name, value in hit.items() if name not in different} for hit in outcome]


def _has_other_highlights(highlight: Any) -> bool:
    """Whether 8.19 has other fragments of the type `plain`, or ignores `matched_fields`."""
    try:
        fields = highlight["fields"]
        several = [
            {**highlight, **(options or {})}
            for named in (fields if isinstance(fields, list) else [fields])
            for options in named.values()
        ]
    except (KeyError, TypeError, AttributeError):
        return False  # no highlights, or invalid ones
    return any(
        "matched_fields" in options
        or (
            options.get("type") == "plain"
            and options.get("fragmenter") != "simple"
            and str(options.get("number_of_fragments")) != "0"
        )
        for options in several
    )
