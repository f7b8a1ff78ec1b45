"""An index in several segments answers as one that was built anew: the same ids, order, scores, and all else."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.engines import embedded as embedded_index
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import DataError, QueryRefused, Replaced, SearchappError
from searchapp.lucene import native
from searchapp.lucene.index import impacts
from searchapp.lucene.queries import scores
from searchapp.lucene.queries.fulltext import Phrase
from searchapp.lucene.queries.match_all import Exists, Ids
from searchapp.lucene.queries.number_range import NumberInSet, NumberRange
from searchapp.lucene.queries.query import Leaf
from searchapp.lucene.queries.term import Prefix, Synonym, Term, TermInSet
from searchapp.lucene.search import compiled, searcher
from searchapp.model import BEYOND_FLOAT32, Document
from tests.engines.embedded.conftest import MAPPING, body, compiled_with
from tests.engines.embedded.segmented import edited, segments_of, shown, whole_of
from tests.engines.embedded.test_kernels import TOPICS
from tests.engines.embedded.test_pruning import INDEXES, PRUNED, drawn
from tests.profile import FULL, SEED
from tests.search import mappings, queries
from tests.search.drawing import Draw

Json = dict[str, Any]

Both = tuple[EmbeddedIndex, EmbeddedIndex]
"""The same documents in segments and as a whole."""

EVERYTHING: Json = {"match_all": {}}


def with_others(name: str, share: float) -> tuple[list[Document], list[Document]]:
    """The documents of an index before and after a share of them was changed."""
    before = INDEXES[name]
    others = [replace(one, id=f"{one.id}x") for one in drawn(len(before), 12, f"{name} {share}")]
    return before, edited(Draw(f"{name} {share}"), before, [*others, *reversed(before)], share)


def without_term(term: str) -> tuple[list[Document], list[Document]]:
    before = INDEXES["random"]
    return before, [one for one in before if term not in str(one.text).split()]


def with_numbers() -> tuple[list[Document], list[Document]]:
    """Documents with numbers, the least and the greatest of which are gone."""
    numbered = [
        replace(
            one,
            fields={
                **one.fields,
                "year": place % 50,
                "weight": [-0.0, 0.0, place / 7][: place % 4],
                "ratio": [0.5] * (place > 5),
            },
        )
        for place, one in enumerate(INDEXES["random"][:200])
    ]
    return numbered, [one for one in numbered if one.fields["year"] not in (0, 49)][5:]


CASES = {
    "numbers": with_numbers(),
    "few are changed": with_others("random", 0.03),
    "many are changed": with_others("random", 0.6),
    "long": with_others("long", 0.1),
    "alike": with_others("alike", 0.2),
    "frequent": with_others("frequent", 0.2),
    "nothing is changed": (INDEXES["random"], INDEXES["random"]),
    "a term is gone": without_term("g"),
    "a common term is gone": without_term("b"),
    "nothing is left": (INDEXES["tiny"], []),
    "all is new": (INDEXES["tiny"], drawn(300, 9, "all is new")),
    "there was nothing": ([], INDEXES["tiny"]),
    "the new ones are long": (
        INDEXES["random"],
        [*INDEXES["random"][40:], *(replace(one, id=f"{one.id} long") for one in drawn(60, 400, "new"))],
    ),
    "the long ones are gone": (
        [*INDEXES["random"], *(replace(one, id=f"{one.id} long") for one in drawn(60, 400, "gone"))],
        INDEXES["random"],
    ),
}
"""Documents before and after."""


@pytest.fixture(scope="module", params=["numpy", "as it is built", "small"])
def functions(request: pytest.FixtureRequest, _common: Path) -> Iterator[None]:
    """No functions, the functions, and those that look at so few documents at a time that small indexes go all ways."""
    if request.param == "numpy":
        with native.without():
            yield
        return
    with compiled_with(_common, *(["-DSMALL"] if request.param == "small" else [])):
        yield


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    """Let few postings be many, as they are elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (scores, compiled):
            patch.setattr(module, "FEW", 20)
        yield


@pytest.fixture(scope="module")
def cases(few: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Both]]:
    with ExitStack() as stack:
        found = {}
        for name, (before, after) in CASES.items():
            engine = stack.enter_context(closing(EmbeddedEngine(tmp_path_factory.mktemp("parts"), "test")))
            found[name] = both_of(stack, engine, MAPPING, before, after)
        yield found


def both_of(
    stack: ExitStack,
    engine: EmbeddedEngine,
    mapping: Json,
    before: Sequence[Document],
    after: Sequence[Document],
) -> Both:
    whole = whole_of(engine, mapping, after)
    return stack.enter_context(closing(segments_of(engine, mapping, before, after))), whole


PATHS: dict[str, dict[tuple[Any, str], Any]] = {
    "as it is": {},
    "each by itself": {(searcher, "SMALLEST_BATCH"): 10**6},
    "together": {(searcher, "SMALLEST_BATCH"): 0},
    "pruned": {(compiled, "SIZE_SHARE"): 0, (compiled, "EXCLUDED_SHARE"): 0},
    "pruned by marks": {
        (compiled, "SIZE_SHARE"): 0,
        (compiled, "EXCLUDED_SHARE"): 0,
        (compiled, "BITMAP_SHARE"): 10**6,
        (compiled, "SEEK_COST"): 10**6,
    },
}
"""What lets a small index be searched in the ways of larger ones."""


@given(
    name=st.sampled_from(list(CASES)),
    topics=st.lists(TOPICS, min_size=1, max_size=4),
    size=st.sampled_from([0, 1, 3, 10, 100, 1_000]),
    first=st.sampled_from([0, 0, 1, 4]),
    path=st.sampled_from(list(PATHS)),
)
def test_the_same_is_found_as_in_an_index_that_was_built_anew(
    functions: None,
    cases: dict[str, Both],
    name: str,
    topics: list[Json],
    size: int,
    first: int,
    path: str,
) -> None:
    parts, whole = cases[name]
    bodies = [body(topic, size, **{"from": first}) for topic in topics]
    with pytest.MonkeyPatch.context() as patch:
        for (module, constant), value in PATHS[path].items():
            patch.setattr(module, constant, value)
        expected = hits(whole, bodies)
        assert hits(parts, bodies) == expected
        assert [hits(parts, [one]) for one in bodies] == [hits(whole, [one]) for one in bodies]
        assert told(parts, bodies[0], explain=size < 100) == told(whole, bodies[0], explain=size < 100)


@pytest.mark.parametrize(
    "name", ["many are changed", "the new ones are long", "the long ones are gone", "alike"]
)
@pytest.mark.parametrize("path", ["together", "pruned", "pruned by marks"])
def test_sums_and_maxima_of_terms_are_found_in_parts_on_all_ways(
    functions: None,
    cases: dict[str, Both],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    path: str,
) -> None:
    for (module, constant), value in PATHS[path].items():
        monkeypatch.setattr(module, constant, value)
    parts, whole = cases[name]
    for size in (3, 1_000):
        bodies = [body(query, size) for query in PRUNED]
        expected = hits(whole, bodies)
        assert hits(parts, bodies) == expected
        for asked, one in zip(bodies, expected, strict=True):
            assert hits(parts, [asked]) == [one]


def hits(index: EmbeddedIndex, bodies: Sequence[Json]) -> Any:
    """The hits of bodies, or how they are refused."""
    try:
        return list(index.search(bodies))
    except QueryRefused as error:
        return str(error), error.place
    except SearchappError as error:  # the analysis of a query that is refused
        return str(error), None


def told(index: EmbeddedIndex, asked: Json, *, explain: bool) -> Any:
    """A page with all that comes with its hits, how many documents match, and their commonest values."""
    try:
        found, total = index.page(asked | {"explain": explain})
        counts = index.counts(asked["query"], {"tag": 5, "id": 3})
    except SearchappError as error:
        return str(error)
    return [shown(one) for one in found], total, counts


def test_random_bodies_on_random_documents_are_answered_as_by_an_index_that_was_built_anew(
    tmp_path: Path,
) -> None:
    for number, case in enumerate(queries.cases(SEED, 20_000 if FULL else 200)):
        draw = Draw(f"parts {SEED} {number}")
        others = mappings.documents(draw)
        with ExitStack() as stack:
            engine = stack.enter_context(closing(EmbeddedEngine(tmp_path / str(number), "test")))
            both = either(stack, engine, case["mapping"], case["documents"], others, draw)
            if both is None:
                continue
            parts, whole = both
            for asked in case["bodies"]:
                assert answer(parts, asked) == answer(whole, asked), asked
            sound = [asked for asked in case["bodies"] if not isinstance(hits(whole, [asked]), tuple)]
            assert hits(parts, sound) == hits(whole, sound)


def either(
    stack: ExitStack,
    engine: EmbeddedEngine,
    mapping: Json,
    sources: list[Json],
    others: list[Json],
    draw: Draw,
) -> Both | None:
    """Random documents that were edited at random, those that can be indexed; None if the mapping can't."""

    def sound(sources: list[Json]) -> list[Document]:
        found = []
        for source in sources:
            one = queries.document(source)
            try:
                whole_of(engine, mapping, [one])
            except SearchappError:
                continue
            found.append(one)
        return found

    before, more = sound(sources), sound(others)
    try:
        return both_of(stack, engine, mapping, before, edited(draw, before, more, 0.4))
    except SearchappError:
        return None


SOME_DOCUMENT = "some document can't be scored"
OF_A_DOCUMENT = re.compile(f"a document has no value|for some document|{re.escape(BEYOND_FLOAT32)}")
"""Of several documents that can't be scored, each for another reason, one is named."""


def answer(index: EmbeddedIndex, asked: Json) -> Any:
    """What an index says to a body, its hits with all that comes with them."""
    try:
        return [shown(one) for one in index.find(asked)]
    except SearchappError as error:
        return SOME_DOCUMENT if OF_A_DOCUMENT.search(str(error)) else str(error)


def test_hits_follow_each_other_as_in_an_index_that_was_built_anew(cases: dict[str, Both]) -> None:
    for name in ("many are changed", "alike"):
        parts, whole = cases[name]
        for query in (EVERYTHING, {"match": {"text": "a b c"}}):
            after: list[Any] | None = None
            while True:
                asked = body(query, 37) | ({} if after is None else {"search_after": after})
                (found,), (expected,) = parts.search([asked]), whole.search([asked])
                assert found == expected
                if not len(found):
                    break
                last = list(found)[-1]
                after = [last.score, last.document_id]
            assert after is not None


@pytest.fixture(scope="module")
def otherwise(few: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """An index that is scored by other similarities than those that it was made with."""
    like = copy.deepcopy(MAPPING)
    like["settings"]["similarity"]["flat"] |= {"k1": 2.5, "b": 0.9}
    with closing(EmbeddedEngine(tmp_path_factory.mktemp("otherwise"), "test")) as engine:
        segments_of(engine, MAPPING, *CASES["many are changed"])
        whole_of(engine, MAPPING, CASES["many are changed"][1])
        yield engine.open_like("rings", like), engine.open_like("whole", like)


@pytest.mark.parametrize("path", ["as it is", "pruned", "pruned by marks"])
def test_other_similarities_score_parts_as_they_score_the_whole(
    otherwise: Both, either_way: None, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for (module, constant), value in PATHS[path].items():
        monkeypatch.setattr(module, constant, value)
    index, whole = otherwise
    for query in PRUNED:
        assert hits(index, [body(query)]) == hits(whole, [body(query)])
    assert hits(index, [body(query) for query in PRUNED]) == hits(whole, [body(query) for query in PRUNED])


def test_impacts_bound_scores_whatever_the_parts_were_written_with(cases: dict[str, Both]) -> None:
    changed = 0
    for parts, _whole in cases.values():
        for reader in parts.index.reader.parts:
            for field in (one for one in reader.fields.values() if one.field.is_text):
                changed += field.edges_above is not impacts.EDGES
                for rank in range(len(field.terms)):
                    found = field.bounded(rank)
                    x = found.frequencies.astype(np.float32) * field.inverses(found.documents)
                    assert (x <= field.edges_above[found.impacts]).all()
    assert changed > len(cases)


LEAVES: list[Leaf] = [
    *(Term("text", term) for term in [*"abcdefg", "absent", "aa", "\U0010ffff"]),
    *(Phrase("text", tuple(terms), (0, 1)) for terms in ("ab", "ag", "gg", "ef")),
    *(Synonym("text", tuple(terms)) for terms in ("ab", "eg", "fg")),
    *(Prefix("id", prefix) for prefix in ("6", "é", "5x", "none")),
    TermInSet("tag", ("x", "z")),
    TermInSet("id", ("0", "1x")),
    Ids(("0", "1x")),
    Ids(("40", "none")),
    *(Exists(field) for field in ("text", "year", "weight", "ratio", "long")),
    *(NumberRange("year", low, high) for low in (0, 1, 48, 49) for high in (0, 1, 48, 49)),
    *(NumberRange("weight", low, high) for low in (-0.0, 0.0, 1.0, 30.0) for high in (-0.0, 0.0, 9.0, 1e9)),
    NumberInSet("year", (0, 49)),
    NumberInSet("year", (0, 3)),
]


def test_each_part_knows_what_the_whole_is_like(cases: dict[str, Both]) -> None:
    for parts, whole in cases.values():
        (expected,) = whole.index.reader.parts
        for reader in parts.index.reader.parts:
            assert reader.whole_count == expected.count
            for name, field in reader.fields.items():
                theirs = expected.fields[name]
                assert field.statistics == theirs.statistics
                assert reader.in_all(name) == expected.in_all(name)
                if field.field.is_number:
                    continue
                assert field.norm_inverses.tolist() == theirs.norm_inverses.tolist()
                terms = [term.decode() for term in field.terms]
                assert field.document_frequencies.tolist() == list(map(theirs.document_frequency, terms))
                for term in [*terms, *(term.decode() for term in theirs.terms), "absent", "aa", ""]:
                    assert field.document_frequency(term) == theirs.document_frequency(term)
            for leaf in LEAVES:
                assert leaf.resolved(reader) == leaf.resolved(expected)


def test_nobody_is_told_of_dead_documents(cases: dict[str, Both]) -> None:
    for parts, whole in cases.values():
        (expected,) = whole.index.reader.parts
        for leaf in LEAVES:
            found = [
                id_
                for reader in parts.index.reader.parts
                for id_ in reader.ids_of(np.unique(leaf.documents(reader)))
            ]
            assert sorted(found) == sorted(expected.ids_of(np.unique(leaf.documents(expected))))


def test_frequencies_are_those_of_the_whole(cases: dict[str, Both]) -> None:
    terms = {"text": frozenset([*"abcdefg", "absent"]), "tag": frozenset("xyz"), "nowhere": frozenset("a")}
    for parts, whole in cases.values():
        assert parts.frequencies(terms) == whole.frequencies(terms)


def test_several_processes_search_the_parts(cases: dict[str, Both], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_index, "LARGE_INDEX", 0)
    monkeypatch.setattr(compiled, "SIZE_SHARE", 0)
    parts, whole = cases["many are changed"]
    bodies = [body({"match": {"text": text}}, 20) for text in ("a b", "b c", "d e f", "a g", "absent") * 20]
    assert hits(parts, bodies) == hits(whole, bodies)


def test_a_twin_answers_the_same_until_a_part_is_gone(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    before, after = CASES["many are changed"]
    with ExitStack() as stack:
        parts, _whole = both_of(stack, embedded, MAPPING, before, after)
        asked = [body({"match": {"text": "a b c"}})]
        with closing(parts.twin()) as twin:
            assert hits(twin, asked) == hits(parts, asked)
            assert twin.info == parts.info
        parts.verify()
        part = parts.index.reader.parts[0].folder
        part.rename(tmp_path / "elsewhere")
        with pytest.raises(Replaced):
            parts.twin()
        (tmp_path / "elsewhere").rename(part)


def test_damage_is_named_by_the_part_that_has_it(embedded: EmbeddedEngine) -> None:
    before, after = CASES["many are changed"]
    with ExitStack() as stack:
        parts, _whole = both_of(stack, embedded, MAPPING, before, after)
        folder = parts.index.reader.parts[1].folder
        path = next(folder.glob("*.documents.npy"))
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(DataError, match=re.escape(str(folder))):
            parts.verify()


BEYOND: Json = {
    "bool": {
        "should": [
            {"constant_score": {"filter": {"term": {"tag": "x"}}, "boost": 3e38}},
            {"constant_score": {"filter": {"term": {"text": "a"}}, "boost": 3e38}},
        ]
    }
}
HUGE: Json = {"match": {"text": {"query": "a b", "boost": 1e38}}}
WITHOUT_VALUE: Json = {
    "function_score": {"query": {"match": {"text": "a"}}, "field_value_factor": {"field": "year"}}
}


@pytest.fixture(scope="module", params=["dead", "in the base", "new", "nowhere"])
def with_a_bad_one(
    request: pytest.FixtureRequest, few: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Both, bool]]:
    """An index with documents for which a query may be refused, and whether these count."""
    bad_one = request.param
    sound = [
        Document(str(number), "a" if number % 2 else "b", {"year": 3, "tag": "y"}) for number in range(40)
    ]
    bad = [Document(f"bad {number}", "a b b b", {"tag": "x"}) for number in range(3)]
    before = [*sound, *bad] if bad_one in ("dead", "in the base") else sound
    after = [
        *sound[2:],
        Document("more", "a", {"year": 1}),
        *(bad if bad_one in ("new", "in the base") else ()),
    ]
    with ExitStack() as stack:
        engine = stack.enter_context(closing(EmbeddedEngine(tmp_path_factory.mktemp("bad"), "test")))
        yield both_of(stack, engine, MAPPING, before, after), bad_one in ("new", "in the base")


@pytest.mark.parametrize("query", [BEYOND, HUGE, WITHOUT_VALUE])
def test_only_documents_that_count_can_have_a_query_refused(
    with_a_bad_one: tuple[Both, bool], either_way: None, query: Json
) -> None:
    (parts, whole), counts = with_a_bad_one
    for bodies in ([body(query)], [body(EVERYTHING)] * 9 + [body(query)]):
        expected = hits(whole, bodies)
        assert hits(parts, bodies) == expected
        assert isinstance(expected, tuple) == counts or query is HUGE
