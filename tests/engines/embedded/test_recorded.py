"""The embedded engine answers as Elasticsearch 9.4.3 did when `tests/fixtures/search` was recorded.

That needs no server. Hits, float32 scores, sources, highlights and explanations are the same, and what was refused is.
`python -m tests.search.recording` records anew.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from searchapp.engines.embedded import EmbeddedEngine
from searchapp.lucene.queries import dsl
from searchapp.ranking.search_results import text_fields
from tests.profile import FULL
from tests.search import asking, chosen, comparing, queries, recording
from tests.search.comparing import Json, Outcome
from tests.search.queries import Engines
from tests.search.recording import Recording
from tests.server.distribution import VERSION
from tests.server.rest import Server

NAMES = recording.names()

CHANGED = "what is asked has changed since it was recorded: record anew with python -m tests.search.recording"

SHOWN = 5
"""How many differences of an index are shown."""

FEWEST = 10
"""In how many recorded bodies with hits each kind of query is to stand."""


@cache
def load(name: str) -> Recording:
    return recording.load(name)


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_recorded_alone_and_in_a_batch(embedded: EmbeddedEngine, name: str) -> None:
    recorded = load(name)
    index = recorded.index(embedded)
    outcomes = [comparing.here(index, body) for body in recorded.bodies]
    in_a_batch = comparing.in_a_batch(index, recorded.bodies, outcomes)
    different = [
        *recorded.differing(outcomes),
        *(f"{json.dumps(bodies)}\n{said}" for bodies, said in in_a_batch),
    ]
    assert not different, f"{len(different)} of {len(outcomes)}:\n" + "\n\n".join(different[:SHOWN])


@pytest.fixture(scope="module")
def engines(elasticsearch_url: str) -> Iterator[Engines]:
    with queries.engines(Server(elasticsearch_url)) as engines:
        yield engines


ASKED_AGAIN = NAMES if FULL else NAMES[::4]
"""The recordings that a live server is asked for again; `test_parity` asks it for random ones."""


@pytest.mark.parametrize("name", ASKED_AGAIN)
def test_the_recorded_answers_are_the_servers(engines: Engines, name: str) -> None:
    recorded = load(name)
    case = {"mapping": recorded.mapping, "documents": recorded.documents, "bodies": recorded.bodies}
    _, outcomes = engines.recorded(case)
    assert None not in outcomes
    assert list(recorded.differing([outcome or [] for outcome in outcomes])) == []


def test_all_that_is_chosen_by_hand_is_recorded_on_one_version_of_the_server() -> None:
    for name, case in chosen.by_hand().items():
        left_out = load(name).left_out
        expected = recording.short_enough(case["bodies"])
        asked = {one: body for one, body in expected.items() if one not in left_out}
        kept = {one.name: one.body for one in load(name).answered}
        changed = [one for one in {**kept, **asked} if kept.get(one) != asked.get(one)]
        assert not changed, f"{name}: {', '.join(changed[:SHOWN])}: {CHANGED}"
    assert {load(name).server for name in NAMES} == {VERSION}


def test_samples_are_recorded_with_every_text_field_highlighted() -> None:
    for name, case in chosen.by_searchapp().items():
        fields = set(text_fields(case["mapping"]["mappings"]["properties"]))
        lacking = {
            field for one in load(name).answered for field in fields ^ one.body["highlight"]["fields"].keys()
        }
        assert load(name).answered and not lacking, f"{name}: {sorted(lacking)}: {CHANGED}"


def test_every_kind_of_query_is_recorded() -> None:
    answered = Counter(
        kind
        for name in NAMES
        for one in load(name).answered
        if isinstance(one.outcome, list) and one.outcome
        for kind in {next(iter(query)) for query in asking.queries_in(one.body)}
    )
    assert set(dsl.KINDS) == asking.KINDS, (
        "name every query in KINDS of tests/search/asking.py, and draw it there"
    )
    rare = [f"{kind} ({answered[kind]})" for kind in dsl.KINDS if answered[kind] < FEWEST]
    assert not rare, (
        f"recorded in fewer than {FEWEST} bodies with hits: {', '.join(rare)}: draw it more often in "
        "tests/search/asking.py, or ask it in QUERIES of tests/engines/embedded/test_queries.py, and record anew "
        "with python -m tests.search.recording"
    )


def test_refusals_are_recorded_too() -> None:
    refused = [one for name in NAMES for one in load(name).answered if isinstance(one.outcome, str)]
    assert len(refused) > 100
    assert all(recording.KIND.fullmatch(str(one.outcome)) for one in refused)


def first_explanation(outcome: list[Json]) -> Json:
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
    first_explanation(outcome)["value"] = "0.5"


def change_the_words(outcome: list[Json]) -> None:
    first_explanation(outcome)["description"] += " more"


def lose_a_hit(outcome: list[Json]) -> None:
    del outcome[-1]


@pytest.mark.parametrize(
    ("change", "said"),
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
def test_a_change_is_found_and_named(change: Callable[[list[Json]], None], said: str) -> None:
    recorded = load("queries")
    outcomes: list[Outcome] = [one.outcome for one in recorded.answered]
    place = next(place for place, one in enumerate(recorded.answered) if one.name == "match")
    changed = outcomes[place] = copy.deepcopy(outcomes[place])
    assert not list(recorded.differing(outcomes))
    assert isinstance(changed, list)
    change(changed)
    (told,) = recorded.differing(outcomes)
    assert told.startswith('match: {"size": 50')
    assert f"\n{said}" in told


def test_an_answer_to_what_is_refused_and_a_refusal_of_what_is_answered_are_found() -> None:
    recorded = load("queries")
    outcomes: list[Outcome] = [one.outcome for one in recorded.answered]
    refused = next(place for place, one in enumerate(outcomes) if isinstance(one, str))
    answered = next(place for place, one in enumerate(outcomes) if isinstance(one, list))
    exchanged = outcomes.copy()
    exchanged[refused], exchanged[answered] = (
        [],
        f"{comparing.REFUSED}the embedded engine does not support it",
    )
    assert len(list(recorded.differing(exchanged))) == 2
    exchanged = outcomes.copy()
    exchanged[refused] = "crashed: KeyError"
    assert len(list(recorded.differing(exchanged))) == 1


def test_a_recording_is_written_as_it_was_read() -> None:
    for name in ("frames", "nlps", "random-00"):
        packed = (recording.FOLDER / f"{name}.json.gz").read_bytes()
        assert gzip.decompress(packed) == recording.written(load(name)), name
