"""What an engine says to a search body, and whether two engines say the same.

Used wherever answers are compared: random queries, chosen ones, and those that were recorded.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from searchapp.engines.base import SearchHit
from searchapp.engines.elasticsearch.searching import search_hit
from searchapp.engines.embedded import EmbeddedIndex
from searchapp.errors import EngineRefused, SearchappError
from searchapp.model import BEYOND_FLOAT32, Explanation

Json = dict[str, Any]

Outcome = str | list[Json]
"""The hits with all that comes with them, see `comparable`, or why there are none."""

REFUSED = "refused: "

NAMED = re.compile(
    "|".join(
        [
            "does not support",  # a piece of a query, a body, a mapping or an analyzer
            "use Elasticsearch if it defines it",  # the name of a piece
            re.escape(BEYOND_FLOAT32),
        ]
    )
)
"""How the embedded engine refuses what a server answers."""

BROKEN = "unsupported_operation_exception"
"""How the server fails on sound queries, such as a disjunction with a `function_score` that has no functions."""

LONGEST_SHOWN = 1200

_WORD = re.compile(r"[^ (),]+")


def here(index: EmbeddedIndex, body: Json) -> Outcome:
    """What the embedded engine says to a body, without explanations if it refuses just them."""
    try:
        return _asked(index, body)
    except SearchappError as error:
        if "explanation of" not in str(error):
            return f"{REFUSED}{error}"
    except Exception:  # whatever it is, it must not end the search
        return f"crashed: {traceback.format_exc()[-1000:]}"
    return [unexplained(one) for one in _asked(index, {**body, "explain": False})]


def _asked(index: EmbeddedIndex, body: Json) -> list[Json]:
    return [comparable(one) for one in index.find(body)]


def there(response: Json) -> Outcome:
    """What the server says in one response of a multi-search."""
    if "error" in response:
        error = response["error"]
        cause = (error.get("root_cause") or [error])[0]
        return f"{REFUSED}{response['status']} {cause['type']}: {json.dumps(error)[:600]}"
    if response["_shards"]["failed"]:
        failures = response["_shards"]["failures"]
        return f"{REFUSED}{response['status']} {failures[0]['reason']['type']}: {json.dumps(failures)[:600]}"
    try:
        return [comparable(search_hit(hit)) for hit in response["hits"]["hits"]]
    except EngineRefused as error:
        return f"{REFUSED}{response['status']} no_number: {error}"


def comparable(found: SearchHit) -> Json:
    """A hit with all that comes with it, as JSON."""
    return {
        "id": found.hit.document_id,
        "score": found.hit.score,
        "source": json.dumps(found.source, sort_keys=True),  # in which 1, 1.0 and true differ
        "highlights": {name: list(texts) for name, texts in found.highlights.items()},
        "explanation": None if found.explanation is None else unordered(found.explanation),
    }


def in_words_of_both(outcome: Outcome) -> Outcome:
    """An outcome in which of explanations only the figure is left, which is all that is the same on 8 and 9.

    Lucene 10 shows the bits of a number that is no integer, and leaves out what surrounds a clause that never matches,
    or the only one that does.
    """
    if isinstance(outcome, str):
        return outcome
    return [
        {**one, "explanation": {"value": one["explanation"]["value"]}} if one.get("explanation") else one
        for one in outcome
    ]


def unexplained(found: Json) -> Json:
    """A hit of `comparable` without its explanation."""
    return {name: value for name, value in found.items() if name != "explanation"}


def is_unexplained(outcome: Outcome) -> bool:
    """Whether these are hits whose explanations the embedded engine refused."""
    return not isinstance(outcome, str) and bool(outcome) and "explanation" not in outcome[0]


def unordered(explanation: Explanation) -> Json:
    """An explanation apart from the order of its clauses: Lucene keeps some in hash tables, by addresses."""
    return _unordered(explanation)[1]


def _unordered(explanation: Explanation) -> tuple[str, Json]:
    """With its text as Python writes it, by which clauses are ordered: writing it anew at each level takes long."""
    details = [_unordered(child) for child in explanation.details]
    if len(details) > 1:
        details.sort(key=itemgetter(0))
    value, words = repr(explanation.value), _words(explanation.description)
    inner = ", ".join(text for text, _detail in details)
    return (
        f"{{'value': {value!r}, 'description': {words!r}, 'details': [{inner}]}}",
        {"value": value, "description": words, "details": [detail for _text, detail in details]},
    )


@lru_cache(maxsize=1 << 14)
def _words(description: str) -> str:
    """The words of a description in some order."""
    return " ".join(sorted(_WORD.findall(description)))


def told(ours: Outcome, theirs: Outcome) -> str | None:
    """What the outcomes of the embedded engine and of the server differ in, None if they may.

    They may where the embedded engine refuses a body, or just its explanation, by name, and where the server is broken.
    """
    if isinstance(ours, str) and ours.startswith(REFUSED) and NAMED.search(ours):
        return None
    if isinstance(theirs, str) and (BROKEN in theirs or is_unexplained(ours)):
        return None
    if is_unexplained(ours) and not isinstance(theirs, str):
        theirs = [unexplained(one) for one in theirs]
    return differing(ours, theirs)


def differing(ours: Outcome, theirs: Outcome) -> str | None:
    """What two outcomes differ in; two refusals are alike, whatever they say."""
    if isinstance(ours, str) and ours.startswith(REFUSED) and isinstance(theirs, str):
        return None
    return first_difference(ours, theirs)


def first_difference(ours: Outcome, theirs: Outcome) -> str | None:
    """Where two outcomes differ first, and what each has there; None where they are equal."""
    if ours == theirs:
        return None
    if not isinstance(ours, str) and not isinstance(theirs, str):
        here, there = (
            [{name: one[name] for name in ("id", "score")} for one in several] for several in (ours, theirs)
        )
        if here != there:
            place = next(_differing(here, there))
            return f"{place}\nhere:  {_listed(here)}\nthere: {_listed(there)}"
        return next(_differing(ours, theirs))
    return f"here:  {short(ours)}\nthere: {short(theirs)}"


def in_segments(ours: Outcome, several: Outcome) -> str | None:
    """Where ids or scores of an index of several segments are not ours; explanations have other document numbers."""
    if isinstance(ours, str) or isinstance(several, str):
        return None
    here, there = (
        [{name: hit[name] for name in ("id", "score")} for hit in hits] for hits in (ours, several)
    )
    difference = first_difference(here, there)
    return difference and f"in several segments: {difference}"


def _listed(hits: list[Json]) -> str:
    each = (f"{hit['id']}:{hit['score']!r}" for hit in hits)
    return f"{len(hits)} hits, {short(' '.join(each))}"


def _differing(ours: Any, theirs: Any, place: str = "") -> Iterator[str]:
    """The places in which two pieces of JSON differ, from the front."""
    if isinstance(ours, list) and isinstance(theirs, list):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=False), 1):
            yield from _differing(one, other, f"{place} {number}" if place else f"hit {number}")
        if len(ours) != len(theirs):
            yield f"{place or 'hits'}: {len(ours)} here, {len(theirs)} there"
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        for name in dict.fromkeys([*ours, *theirs]):
            absent = "nothing"
            yield from _differing(ours.get(name, absent), theirs.get(name, absent), f"{place}, {name}")
    elif ours != theirs:
        yield f"{place}: {short(ours)} here, {short(theirs)} there"


def in_a_batch(
    index: EmbeddedIndex, bodies: Sequence[Json], found: Sequence[Outcome]
) -> Iterator[tuple[list[Json], str]]:
    """The bodies that rank in another way among others than alone, and how; `found` is what each finds alone."""
    answered = [
        (body, outcome) for body, outcome in zip(bodies, found, strict=True) if not isinstance(outcome, str)
    ]
    together = [body for body, _ in answered]
    try:
        rankings = [list(map(tuple, hits)) for hits in index.search(together)]
    except SearchappError as error:
        yield together, f"refused in a batch only: {error}"
        return
    for (body, outcome), ranking in zip(answered, rankings, strict=True):
        alone = [(one["id"], one["score"]) for one in outcome]
        if ranking != alone:
            yield [body], f"in a batch: {short(ranking)}\nalone: {short(alone)}"


def short(value: object) -> str:
    """A value as ASCII, cut where nobody reads on."""
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
