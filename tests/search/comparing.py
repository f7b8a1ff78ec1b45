"""Outcomes of search bodies in both engines, and their differences.

Random queries, chosen queries and recordings are all compared by these functions.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from searchapp.engines.base import hit_score
from searchapp.engines.embedded import EmbeddedIndex
from searchapp.errors import EngineRefused, SearchappError
from searchapp.model import BEYOND_FLOAT32, Explanation

Json = dict[str, Any]

Outcome = str | list[Json]
"""The hits with their details, see `comparable`, or the error."""

REFUSED = "refused: "

UNSUPPORTED = re.compile(
    "|".join(
        [
            "does not support",  # a piece of a query, a body, a mapping or an analyzer
            "use Elasticsearch if it defines it",  # the name of a piece
            re.escape(BEYOND_FLOAT32),
        ]
    )
)
"""Errors of the embedded engine for features that only a server supports."""

SERVER_FAULT = "unsupported_operation_exception"
"""The server's error for some valid queries, such as a disjunction with a `function_score` without functions."""

ANSWER = "answer"
"""The id of the rest of an answer after its hits."""

_OF_RANKINGS = {
    *("query", "size", "from", "sort", "_source", "highlight", "explain", "search_after"),
    *("track_scores", "track_total_hits"),
}

LONGEST_SHOWN = 1200

_WORD = re.compile(r"[^ (),]+")


def embedded_outcome(index: EmbeddedIndex, body: Json) -> Outcome:
    """Return the embedded engine's outcome of a body, without explanations if it rejects only these."""
    try:
        return _details(index, body)
    except SearchappError as error:
        if "explanation of" not in str(error) or not body.get("explain"):
            return f"{REFUSED}{error}"
    except Exception:  # a crash must not end the search for counterexamples
        return f"crashed: {traceback.format_exc()[-1000:]}"
    unexplained = embedded_outcome(index, {**body, "explain": False})
    return unexplained if isinstance(unexplained, str) else list(map(without_explanation, unexplained))


def _details(index: EmbeddedIndex, body: Json) -> list[Json]:
    return _answer_outcome(index.answer(body), body)


def _answer_outcome(answer: Json, body: Json) -> list[Json]:
    """Return the hits of an answer, and the rest of it as the last one unless the body is for a ranking."""
    hits = answer["hits"]["hits"]
    if body.keys() <= _OF_RANKINGS and body.get("sort") == [{"_score": "desc"}, {"id": "asc"}]:
        return list(map(comparable, hits))
    totals = {key: value for key, value in answer["hits"].items() if key != "hits"}
    parts = {key: answer[key] for key in ("aggregations", "suggest") if key in answer}
    if "aggregations" in parts:
        parts["aggregations"] = json.dumps(parts["aggregations"], sort_keys=True)  # distinguishes 1 and 1.0
    details = [
        {**comparable(hit), **{key: hit[key] for key in ("sort", "fields") if key in hit}} for hit in hits
    ]
    return [*details, {"id": ANSWER, "score": None, **totals, **parts}]


def server_outcome(response: Json, body: Json) -> Outcome:
    """Return the outcome of one response of a multi-search."""
    if "error" in response:
        error = response["error"]
        cause = (error.get("root_cause") or [error])[0]
        return f"{REFUSED}{response['status']} {cause['type']}: {json.dumps(error)[:600]}"
    if response["_shards"]["failed"]:
        failures = response["_shards"]["failures"]
        return f"{REFUSED}{response['status']} {failures[0]['reason']['type']}: {json.dumps(failures)[:600]}"
    try:
        return _answer_outcome(response, body)
    except EngineRefused as error:
        return f"{REFUSED}{response['status']} no_number: {error}"


def comparable(hit: Json) -> Json:
    """Return a hit of an answer with its details, and without what differs between servers."""
    explanation = hit.get("_explanation")
    return {
        "id": hit["_id"],
        "score": None if hit["_score"] is None else hit_score(hit),
        "source": json.dumps(hit.get("_source", {}), sort_keys=True),  # distinguishes 1, 1.0 and true
        "highlights": {name: list(texts) for name, texts in hit.get("highlight", {}).items()},
        "explanation": sorted_explanation(Explanation.from_json(explanation)) if explanation else None,
    }


def comparable_answer(answer: Json) -> Json:
    """Return an answer with the hits of `comparable`."""
    hits = [comparable_hit(hit) for hit in answer["hits"]["hits"]]
    return {**answer, "hits": {**answer["hits"], "hits": hits}}


def comparable_hit(hit: Json) -> Json:
    """Return a hit of an answer with a sorted explanation, and numbers of the source as written."""
    if "_explanation" in hit:
        explanation = sorted_explanation(Explanation.from_json(hit["_explanation"]))
        hit = {**hit, "_explanation": explanation}
    return {**hit, "_source": json.dumps(hit["_source"], sort_keys=True)} if "_source" in hit else hit


def comparable_between_versions(outcome: Outcome) -> Outcome:
    """Return an outcome whose explanations have only the value, which Elasticsearch 8 and 9 agree on.

    Lucene 10 describes fractions by their bits, and omits queries around a clause that never matches and around a
    single clause.
    """
    if isinstance(outcome, str):
        return outcome
    return [
        {**hit, "explanation": {"value": hit["explanation"]["value"]}} if hit.get("explanation") else hit
        for hit in outcome
    ]


def without_explanation(hit: Json) -> Json:
    """Return a hit of `comparable` without its explanation."""
    return {name: value for name, value in hit.items() if name != "explanation"}


def lacks_explanations(outcome: Outcome) -> bool:
    """Whether an outcome is hits whose explanations the embedded engine rejected."""
    return not isinstance(outcome, str) and bool(outcome) and "explanation" not in outcome[0]


def sorted_explanation(explanation: Explanation) -> Json:
    """Return an explanation with sorted clauses, because Lucene keeps some clauses in hash tables."""
    return _sorted_explanation(explanation)[1]


def _sorted_explanation(explanation: Explanation) -> tuple[str, Json]:
    """Return an explanation's `repr`, the sort key of clauses, and its JSON; `repr` at each level would be slow."""
    details = [_sorted_explanation(child) for child in explanation.details]
    if len(details) > 1:
        details.sort(key=itemgetter(0))
    value, words = repr(explanation.value), _sorted_words(explanation.description)
    inner = ", ".join(text for text, _detail in details)
    return (
        f"{{'value': {value!r}, 'description': {words!r}, 'details': [{inner}]}}",
        {"value": value, "description": words, "details": [detail for _text, detail in details]},
    )


@lru_cache(maxsize=1 << 14)
def _sorted_words(description: str) -> str:
    """Return the words of a description, sorted."""
    return " ".join(sorted(_WORD.findall(description)))


def unexpected_difference(ours: Outcome, theirs: Outcome) -> str | None:
    """Return the difference of the outcomes of embedded engine and server, None if there is none or it is allowed.

    A difference is allowed if the embedded engine rejects a body or its explanation with an error that names the
    feature, or if the server fails on a valid query.
    """
    if isinstance(ours, str) and ours.startswith(REFUSED) and UNSUPPORTED.search(ours):
        return None
    if isinstance(theirs, str) and (SERVER_FAULT in theirs or lacks_explanations(ours)):
        return None
    if lacks_explanations(ours) and not isinstance(theirs, str):
        theirs = list(map(without_explanation, theirs))
    return outcome_difference(ours, theirs)


def outcome_difference(ours: Outcome, theirs: Outcome) -> str | None:
    """Return the difference of two outcomes, None for two rejections with any errors."""
    if isinstance(ours, str) and ours.startswith(REFUSED) and isinstance(theirs, str):
        return None
    return first_difference(ours, theirs)


def first_difference(ours: Outcome, theirs: Outcome) -> str | None:
    """Return the first difference of two outcomes, None if they are equal."""
    if ours == theirs:
        return None
    if not isinstance(ours, str) and not isinstance(theirs, str):
        our_ranking, their_ranking = _ids_and_scores(ours), _ids_and_scores(theirs)
        if our_ranking != their_ranking:
            difference = next(_differences(our_ranking, their_ranking))
            return f"{difference}\nours:   {_hit_list(our_ranking)}\ntheirs: {_hit_list(their_ranking)}"
        return next(_differences(ours, theirs))
    return f"ours:   {short(ours)}\ntheirs: {short(theirs)}"


def has_hits(outcome: Outcome) -> bool:
    """Whether an outcome has hits, besides the rest of the answer."""
    return not isinstance(outcome, str) and any(hit["id"] != ANSWER for hit in outcome)


def _ids_and_scores(hits: list[Json]) -> list[Json]:
    return [{name: hit[name] for name in ("id", "score")} for hit in hits if hit["id"] != ANSWER]


def segment_difference(ours: Outcome, theirs: Outcome) -> str | None:
    """Return the difference of ids or scores from an index of several segments, whose document numbers differ."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return None
    difference = first_difference(_ids_and_scores(ours), _ids_and_scores(theirs))
    return difference and f"in several segments: {difference}"


def _hit_list(hits: list[Json]) -> str:
    texts = (f"{hit['id']}:{hit['score']!r}" for hit in hits)
    return f"{len(hits)} hits, {short(' '.join(texts))}"


def _differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two JSON values differ, in order."""
    if isinstance(ours, list) and isinstance(theirs, list):
        for number, (our_value, their_value) in enumerate(zip(ours, theirs, strict=False), 1):
            yield from _differences(our_value, their_value, f"{path} {number}" if path else f"hit {number}")
        if len(ours) != len(theirs):
            yield f"{path or 'hits'}: {len(ours)} here, {len(theirs)} there"
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        for name in dict.fromkeys([*ours, *theirs]):
            absent = "nothing"
            yield from _differences(ours.get(name, absent), theirs.get(name, absent), f"{path}, {name}")
    elif ours != theirs:
        yield f"{path}: {short(ours)} here, {short(theirs)} there"


def batch_differences(
    index: EmbeddedIndex, bodies: Sequence[Json], outcomes: Sequence[Outcome]
) -> Iterator[tuple[list[Json], str]]:
    """Yield bodies that rank differently in a batch, and how; `outcomes` are those of the single bodies."""
    answered = [
        (body, outcome)
        for body, outcome in zip(bodies, outcomes, strict=True)
        if not isinstance(outcome, str)
    ]
    batch = [body for body, _ in answered]
    try:
        rankings = [list(map(tuple, hits)) for hits in index.search(batch)]
    except SearchappError as error:
        yield batch, f"rejected in a batch only: {error}"
        return
    for (body, outcome), ranking in zip(answered, rankings, strict=True):
        single = [(hit["id"], hit["score"]) for hit in outcome if hit["id"] != ANSWER]
        if None not in dict(single).values() and ranking != single:
            yield [body], f"in a batch: {short(ranking)}\nalone: {short(single)}"


def short(value: object) -> str:
    """Return a value as ASCII, cut after `LONGEST_SHOWN` characters."""
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
