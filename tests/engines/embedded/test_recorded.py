"""The embedded engine returns the recorded hits, details and errors of Elasticsearch 9.4.3.

The test needs no server. `python -m tests.search.recording` records again.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from searchapp.engines.embedded import EmbeddedEngine
from searchapp.lucene.queries import dsl
from searchapp.ranking.search_results import text_fields
from tests.profile import FULL
from tests.search import chosen_bodies, comparing, random_bodies, recording
from tests.search.comparing import Json, Outcome
from tests.search.queries import ComparedEngines
from tests.search.recording import Recording
from tests.server.distribution import VERSION

NAMES = recording.names()

OUTDATED = "the search bodies have changed: record again with python -m tests.search.recording"

MAX_SHOWN = 5
"""Number of differences shown for an index."""

MIN_BODIES = 10
"""Each kind of query must occur in this many recorded bodies with hits."""


@cache
def load(name: str) -> Recording:
    return recording.load(name)


@pytest.mark.parametrize("name", NAMES)
def test_single_and_batched_bodies_return_the_recorded_answers(embedded: EmbeddedEngine, name: str) -> None:
    recorded = load(name)
    index = recorded.index(embedded)
    outcomes = [comparing.embedded_outcome(index, body) for body in recorded.bodies]
    batch_differences = comparing.batch_differences(index, recorded.bodies, outcomes)
    differences = [
        *recorded.differences(outcomes),
        *(f"{json.dumps(bodies)}\n{text}" for bodies, text in batch_differences),
    ]
    assert not differences, f"{len(differences)} of {len(outcomes)}:\n" + "\n\n".join(differences[:MAX_SHOWN])


COMPARED_WITH_SERVER = NAMES if FULL else NAMES[::4]
"""The recordings that are compared with a live server; `test_parity` compares random bodies."""


@pytest.mark.parametrize("name", COMPARED_WITH_SERVER)
def test_a_server_returns_the_recorded_answers(compared_engines: ComparedEngines, name: str) -> None:
    recorded = load(name)
    case = {"mapping": recorded.mapping, "documents": recorded.documents, "bodies": recorded.bodies}
    _, outcomes = compared_engines.record(case)
    assert None not in outcomes
    assert list(recorded.differences([outcome or [] for outcome in outcomes])) == []


def test_all_bodies_written_by_hand_are_recorded_on_the_same_server_version() -> None:
    for name, case in chosen_bodies.by_hand().items():
        left_out = load(name).left_out
        expected = recording.short_enough(case["bodies"])
        bodies = {key: body for key, body in expected.items() if key not in left_out}
        recorded = {answer.name: answer.body for answer in load(name).answered}
        changed = [key for key in {**recorded, **bodies} if recorded.get(key) != bodies.get(key)]
        assert not changed, f"{name}: {', '.join(changed[:MAX_SHOWN])}: {OUTDATED}"
    assert {load(name).server for name in NAMES} == {VERSION}


def test_samples_are_recorded_with_every_text_field_highlighted() -> None:
    for name, case in chosen_bodies.by_searchapp().items():
        fields = set(text_fields(case["mapping"]["mappings"]["properties"]))
        answers = load(name).answered
        different = {
            field for answer in answers for field in fields ^ answer.body["highlight"]["fields"].keys()
        }
        assert answers and not different, f"{name}: {sorted(different)}: {OUTDATED}"


def test_every_kind_of_query_is_recorded() -> None:
    counts = Counter(
        kind
        for name in NAMES
        for answer in load(name).answered
        if comparing.has_hits(answer.outcome)
        for kind in {next(iter(query)) for query in random_bodies.queries_in(answer.body)}
    )
    assert set(dsl.KINDS) == random_bodies.KINDS, (
        "add every query to KINDS of tests/search/random_bodies.py, and generate it there"
    )
    rare = [f"{kind} ({counts[kind]})" for kind in dsl.KINDS if counts[kind] < MIN_BODIES]
    assert not rare, (
        f"recorded in fewer than {MIN_BODIES} bodies with hits: {', '.join(rare)}: generate it more often in "
        "tests/search/random_bodies.py, or add it to QUERIES of tests/engines/embedded/test_queries.py, and record "
        "again with python -m tests.search.recording"
    )


def test_errors_are_recorded() -> None:
    outcomes = [answer.outcome for name in NAMES for answer in load(name).answered]
    errors = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert len(errors) > 100
    assert all(map(recording.KIND.fullmatch, errors))


def innermost_explanation(outcome: list[Json]) -> Json:
    deepest: Json = outcome[0]["explanation"]
    while deepest["details"]:
        deepest = deepest["details"][0]
    return deepest


def raise_the_score(outcome: list[Json]) -> None:
    outcome[1]["score"] *= 1 + 2**-23


def swap_the_hits(outcome: list[Json]) -> None:
    outcome[0]["id"], outcome[1]["id"] = outcome[1]["id"], outcome[0]["id"]


def mark_another_word(outcome: list[Json]) -> None:
    (text,) = outcome[0]["highlights"]["text"]
    outcome[0]["highlights"]["text"] = [text.replace("<a>", "a", 1)]


def change_the_source(outcome: list[Json]) -> None:
    outcome[0]["source"] = outcome[0]["source"].replace("2", "2.0")


def change_the_explanation(outcome: list[Json]) -> None:
    innermost_explanation(outcome)["value"] = "0.5"


def change_the_words(outcome: list[Json]) -> None:
    innermost_explanation(outcome)["description"] += " more"


def lose_a_hit(outcome: list[Json]) -> None:
    del outcome[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (raise_the_score, "hit 2, score: "),
        (swap_the_hits, "hit 1, id: "),
        (lose_a_hit, "hits: "),
        (mark_another_word, "hit 1, highlights, text 1: "),
        (change_the_source, "hit 1, source: "),
        (change_the_explanation, "hit 1, explanation, details 1, "),
        (change_the_words, "hit 1, explanation, details 1, "),
    ],
)
def test_differences_are_detected_and_located(change: Callable[[list[Json]], None], message: str) -> None:
    recorded = load("queries")
    outcomes: list[Outcome] = [answer.outcome for answer in recorded.answered]
    position = next(number for number, answer in enumerate(recorded.answered) if answer.name == "match")
    changed = outcomes[position] = copy.deepcopy(outcomes[position])
    assert not list(recorded.differences(outcomes))
    assert isinstance(changed, list)
    change(changed)
    (difference,) = recorded.differences(outcomes)
    assert difference.startswith('match: {"size": 50')
    assert f"\n{message}" in difference


def test_hits_instead_of_an_error_and_errors_instead_of_hits_are_detected() -> None:
    recorded = load("queries")
    outcomes: list[Outcome] = [answer.outcome for answer in recorded.answered]
    error = next(number for number, outcome in enumerate(outcomes) if isinstance(outcome, str))
    hits = next(number for number, outcome in enumerate(outcomes) if isinstance(outcome, list))
    exchanged = outcomes.copy()
    exchanged[error], exchanged[hits] = (
        [],
        f"{comparing.REFUSED}the embedded engine does not support it",
    )
    assert len(list(recorded.differences(exchanged))) == 2
    exchanged = outcomes.copy()
    exchanged[error] = "crashed: KeyError"
    assert len(list(recorded.differences(exchanged))) == 1


def test_recordings_round_trip() -> None:
    for name in ("frames", "nlps", "random-01"):
        packed = (recording.FOLDER / f"{name}.json.gz").read_bytes()
        assert gzip.decompress(packed) == recording.to_json(load(name)), name
