"""An index in several segments returns the same ids, order, scores and details as a fresh index."""

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
from searchapp.lucene.queries.match_all import Exists, Ids
from searchapp.lucene.queries.number_range import NumberInSet, NumberRange
from searchapp.lucene.queries.phrase import MultiPhrase, Phrase
from searchapp.lucene.queries.query import Leaf
from searchapp.lucene.queries.term import Prefix, Synonym, Term, TermInSet
from searchapp.lucene.search import compiled, searcher
from searchapp.model import BEYOND_FLOAT32, Document
from tests.engines.embedded.conftest import MAPPING, body, compiled_with
from tests.engines.embedded.segmented import build_fresh, build_in_segments, edit_randomly, hit_details
from tests.engines.embedded.test_kernels import TOPICS
from tests.engines.embedded.test_pruning import INDEXES, PRUNED, random_documents
from tests.profile import FULL, SEED
from tests.search import mappings, queries
from tests.search.drawing import Draw

Json = dict[str, Any]

IndexPair = tuple[EmbeddedIndex, EmbeddedIndex]
"""The same documents in several segments and in a fresh index."""

EVERYTHING: Json = {"match_all": {}}


def with_edits(name: str, share: float) -> tuple[list[Document], list[Document]]:
    """Return the documents of an index before and after an edit of a share of them."""
    before = INDEXES[name]
    replacements = [
        replace(document, id=f"{document.id}x")
        for document in random_documents(len(before), 12, f"{name} {share}")
    ]
    return before, edit_randomly(Draw(f"{name} {share}"), before, [*replacements, *reversed(before)], share)


def long_documents(seed: str) -> list[Document]:
    return [replace(document, id=f"{document.id} long") for document in random_documents(60, 400, seed)]


def without_term(term: str) -> tuple[list[Document], list[Document]]:
    before = INDEXES["random"]
    return before, [document for document in before if term not in str(document.text).split()]


def with_numbers() -> tuple[list[Document], list[Document]]:
    """Return documents with numbers, and the same without the documents of the least and greatest year."""
    numbered = [
        replace(
            document,
            fields={
                **document.fields,
                "year": number % 50,
                "weight": [-0.0, 0.0, number / 7][: number % 4],
                "ratio": [0.5] * (number > 5),
            },
        )
        for number, document in enumerate(INDEXES["random"][:200])
    ]
    return numbered, [document for document in numbered if document.fields["year"] not in (0, 49)][5:]


CASES = {
    "numbers": with_numbers(),
    "few are changed": with_edits("random", 0.03),
    "many are changed": with_edits("random", 0.6),
    "long": with_edits("long", 0.1),
    "alike": with_edits("alike", 0.2),
    "frequent": with_edits("frequent", 0.2),
    "nothing is changed": (INDEXES["random"], INDEXES["random"]),
    "a rare term is removed": without_term("g"),
    "a common term is removed": without_term("b"),
    "all are deleted": (INDEXES["tiny"], []),
    "all are new": (INDEXES["tiny"], random_documents(300, 9, "all is new")),
    "empty before": ([], INDEXES["tiny"]),
    "the new ones are long": (
        INDEXES["random"],
        [*INDEXES["random"][40:], *long_documents("new")],
    ),
    "the long ones are gone": (
        [*INDEXES["random"], *long_documents("gone")],
        INDEXES["random"],
    ),
}
"""Documents before and after updates."""


@pytest.fixture(scope="module", params=["numpy", "default", "small"])
def functions(request: pytest.FixtureRequest, _common: Path) -> Iterator[None]:
    """Search with NumPy, with the compiled functions, and with small blocks, which reach all code paths."""
    if request.param == "numpy":
        with native.without():
            yield
        return
    with compiled_with(_common, *(["-DSMALL"] if request.param == "small" else [])):
        yield


@pytest.fixture(scope="module", autouse=True)
def low_thresholds() -> Iterator[None]:
    """Lower the numbers of postings from which other code paths are taken."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (scores, compiled):
            patch.setattr(module, "FEW", 20)
        yield


@pytest.fixture(scope="module")
def cases(low_thresholds: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, IndexPair]]:
    with ExitStack() as stack:
        pairs = {}
        for name, (before, after) in CASES.items():
            engine = stack.enter_context(closing(EmbeddedEngine(tmp_path_factory.mktemp("parts"), "test")))
            pairs[name] = build_pair(stack, engine, MAPPING, before, after)
        yield pairs


def build_pair(
    stack: ExitStack,
    engine: EmbeddedEngine,
    mapping: Json,
    before: Sequence[Document],
    after: Sequence[Document],
) -> IndexPair:
    fresh = build_fresh(engine, mapping, after)
    return stack.enter_context(closing(build_in_segments(engine, mapping, before, after))), fresh


CODE_PATHS: dict[str, dict[tuple[Any, str], Any]] = {
    "default": {},
    "one by one": {(searcher, "SMALLEST_BATCH"): 10**6},
    "batch": {(searcher, "SMALLEST_BATCH"): 0},
    "pruned": {(compiled, "SIZE_SHARE"): 0, (compiled, "EXCLUDED_SHARE"): 0},
    "pruned by bitmaps": {
        (compiled, "SIZE_SHARE"): 0,
        (compiled, "EXCLUDED_SHARE"): 0,
        (compiled, "BITMAP_SHARE"): 10**6,
        (compiled, "SEEK_COST"): 10**6,
    },
}
"""Constants with which a small index is searched by the code paths of larger ones."""


@given(
    name=st.sampled_from(list(CASES)),
    topics=st.lists(TOPICS, min_size=1, max_size=4),
    size=st.sampled_from([0, 1, 3, 10, 100, 1_000]),
    first=st.sampled_from([0, 0, 1, 4]),
    path=st.sampled_from(list(CODE_PATHS)),
)
def test_segments_return_the_hits_of_a_fresh_index(
    functions: None,
    cases: dict[str, IndexPair],
    name: str,
    topics: list[Json],
    size: int,
    first: int,
    path: str,
) -> None:
    segmented, fresh = cases[name]
    bodies = [body(topic, size, **{"from": first}) for topic in topics]
    with pytest.MonkeyPatch.context() as patch:
        for (module, constant), value in CODE_PATHS[path].items():
            patch.setattr(module, constant, value)
        assert hits(segmented, bodies) == hits(fresh, bodies)
        assert [hits(segmented, [request]) for request in bodies] == [
            hits(fresh, [request]) for request in bodies
        ]
        details = page_and_counts(segmented, bodies[0], explain=size < 100)
        assert details == page_and_counts(fresh, bodies[0], explain=size < 100)


@pytest.mark.parametrize(
    "name", ["many are changed", "the new ones are long", "the long ones are gone", "alike"]
)
@pytest.mark.parametrize("path", ["batch", "pruned", "pruned by bitmaps"])
def test_all_code_paths_find_sums_and_maxima_of_terms_in_segments(
    functions: None,
    cases: dict[str, IndexPair],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    path: str,
) -> None:
    for (module, constant), value in CODE_PATHS[path].items():
        monkeypatch.setattr(module, constant, value)
    segmented, fresh = cases[name]
    for size in (3, 1_000):
        bodies = [body(query, size) for query in PRUNED]
        expected = hits(fresh, bodies)
        assert hits(segmented, bodies) == expected
        for request, ranking in zip(bodies, expected, strict=True):
            assert hits(segmented, [request]) == [ranking]


def hits(index: EmbeddedIndex, bodies: Sequence[Json]) -> Any:
    """Return the hits of search bodies, or the error and the position of the rejected body."""
    try:
        return list(index.search(bodies))
    except QueryRefused as error:
        return str(error), error.place
    except SearchappError as error:  # analysis rejected a query
        return str(error), None


def page_and_counts(index: EmbeddedIndex, request: Json, *, explain: bool) -> Any:
    """Return a page of hits with details, the number of matches and their most frequent values."""
    try:
        page, total = index.page(request | {"explain": explain})
        counts = index.counts(request["query"], {"tag": 5, "id": 3})
    except SearchappError as error:
        return str(error)
    return [hit_details(hit) for hit in page], total, counts


def test_random_bodies_return_the_hits_of_a_fresh_index(
    tmp_path: Path,
) -> None:
    for number, case in enumerate(queries.cases(SEED, 20_000 if FULL else 200)):
        draw = Draw(f"parts {SEED} {number}")
        replacements = mappings.documents(draw)
        with ExitStack() as stack:
            engine = stack.enter_context(closing(EmbeddedEngine(tmp_path / str(number), "test")))
            pair = build_random_pair(stack, engine, case["mapping"], case["documents"], replacements, draw)
            if pair is None:
                continue
            segmented, fresh = pair
            for request in case["bodies"]:
                assert answer(segmented, request) == answer(fresh, request), request
            valid = [request for request in case["bodies"] if not isinstance(hits(fresh, [request]), tuple)]
            assert hits(segmented, valid) == hits(fresh, valid)


def build_random_pair(
    stack: ExitStack,
    engine: EmbeddedEngine,
    mapping: Json,
    sources: list[Json],
    replacements: list[Json],
    draw: Draw,
) -> IndexPair | None:
    """Index the valid ones of random documents and edit them; None if the mapping is invalid."""

    def valid(sources: list[Json]) -> list[Document]:
        documents = []
        for source in sources:
            document = queries.document(source)
            try:
                build_fresh(engine, mapping, [document])
            except SearchappError:
                continue
            documents.append(document)
        return documents

    before, valid_replacements = valid(sources), valid(replacements)
    try:
        return build_pair(
            stack, engine, mapping, before, edit_randomly(draw, before, valid_replacements, 0.4)
        )
    except SearchappError:
        return None


UNSCORABLE_ERRORS = re.compile(f"a document has no value|for some document|{re.escape(BEYOND_FLOAT32)}")
"""Errors that name one of several documents that can't be scored; which one differs between indexes."""


def answer(index: EmbeddedIndex, request: Json) -> Any:
    """Return the hits of a search body with details, or the error."""
    try:
        return [hit_details(hit) for hit in index.find(request)]
    except SearchappError as error:
        return "a document can't be scored" if UNSCORABLE_ERRORS.search(str(error)) else str(error)


def test_search_after_pages_through_segments_as_through_a_fresh_index(cases: dict[str, IndexPair]) -> None:
    for name in ("many are changed", "alike"):
        segmented, fresh = cases[name]
        for query in (EVERYTHING, {"match": {"text": "a b c"}}):
            after: list[Any] | None = None
            while True:
                request = body(query, 37) | ({} if after is None else {"search_after": after})
                (page,), (expected,) = segmented.search([request]), fresh.search([request])
                assert page == expected
                if not len(page):
                    break
                last = list(page)[-1]
                after = [last.score, last.document_id]
            assert after is not None


@pytest.fixture(scope="module")
def other_similarities(low_thresholds: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexPair]:
    """Open a pair of indexes with similarities other than those they were built with."""
    like = copy.deepcopy(MAPPING)
    like["settings"]["similarity"]["flat"] |= {"k1": 2.5, "b": 0.9}
    with closing(EmbeddedEngine(tmp_path_factory.mktemp("similarities"), "test")) as engine:
        build_in_segments(engine, MAPPING, *CASES["many are changed"])
        build_fresh(engine, MAPPING, CASES["many are changed"][1])
        yield engine.open_like("rings", like), engine.open_like("fresh", like)


@pytest.mark.parametrize("path", ["default", "pruned", "pruned by bitmaps"])
def test_other_similarities_score_segments_like_a_fresh_index(
    other_similarities: IndexPair, either_way: None, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for (module, constant), value in CODE_PATHS[path].items():
        monkeypatch.setattr(module, constant, value)
    segmented, fresh = other_similarities
    bodies = [body(query) for query in PRUNED]
    for request in bodies:
        assert hits(segmented, [request]) == hits(fresh, [request])
    assert hits(segmented, bodies) == hits(fresh, bodies)


def test_impacts_bound_scores_in_segments_written_with_other_lengths(cases: dict[str, IndexPair]) -> None:
    changed = 0
    for segmented, _fresh in cases.values():
        for reader in segmented.index.reader.parts:
            for field in (field for field in reader.fields.values() if field.field.is_text):
                changed += field.edges_above is not impacts.EDGES
                for rank in range(len(field.terms)):
                    terms = field.bounded(rank)
                    frequencies = terms.frequencies.parts([terms.part]).astype(np.float32)
                    x = frequencies * field.inverses(terms.documents.parts([terms.part]))
                    assert (x <= field.edges_above[terms.impacts]).all()
    assert changed > len(cases)


LEAVES: list[Leaf] = [
    *(Term("text", term) for term in [*"abcdefg", "absent", "aa", "\U0010ffff"]),
    *(Phrase.of("text", terms, (0, 1)) for terms in ("ab", "ag", "gg", "ef")),
    *(Phrase.of("text", terms, (0, 1, 2), 4) for terms in ("aba", "abc", "agg")),
    MultiPhrase("text", (("a",), ("b", "c", "absent")), (0, 1)),
    MultiPhrase("text", (("a", "b"), ("b", "c")), (0, 1), 3),
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


def test_each_segment_has_the_statistics_of_the_index(cases: dict[str, IndexPair]) -> None:
    for segmented, fresh in cases.values():
        (expected,) = fresh.index.reader.parts
        for reader in segmented.index.reader.parts:
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


def test_queries_return_no_deleted_documents(cases: dict[str, IndexPair]) -> None:
    for segmented, fresh in cases.values():
        (expected,) = fresh.index.reader.parts
        for leaf in LEAVES:
            ids = [
                id_
                for reader in segmented.index.reader.parts
                for id_ in reader.ids_of(np.unique(leaf.documents(reader)))
            ]
            assert sorted(ids) == sorted(expected.ids_of(np.unique(leaf.documents(expected))))


def test_segments_report_the_term_frequencies_of_a_fresh_index(cases: dict[str, IndexPair]) -> None:
    terms = {"text": frozenset([*"abcdefg", "absent"]), "tag": frozenset("xyz"), "nowhere": frozenset("a")}
    for segmented, fresh in cases.values():
        assert segmented.frequencies(terms) == fresh.frequencies(terms)


def test_several_processes_search_the_segments(
    cases: dict[str, IndexPair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_index, "LARGE_INDEX", 0)
    monkeypatch.setattr(compiled, "SIZE_SHARE", 0)
    segmented, fresh = cases["many are changed"]
    bodies = [body({"match": {"text": text}}, 20) for text in ("a b", "b c", "d e f", "a g", "absent") * 20]
    assert hits(segmented, bodies) == hits(fresh, bodies)


def test_a_twin_returns_the_same_hits_until_a_segment_is_missing(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    before, after = CASES["many are changed"]
    with ExitStack() as stack:
        segmented, _fresh = build_pair(stack, embedded, MAPPING, before, after)
        bodies = [body({"match": {"text": "a b c"}})]
        with closing(segmented.twin()) as twin:
            assert hits(twin, bodies) == hits(segmented, bodies)
            assert twin.info == segmented.info
        segmented.verify()
        part = segmented.index.reader.parts[0].folder
        part.rename(tmp_path / "elsewhere")
        with pytest.raises(Replaced):
            segmented.twin()
        (tmp_path / "elsewhere").rename(part)


def test_damage_names_the_folder_of_the_segment(embedded: EmbeddedEngine) -> None:
    before, after = CASES["many are changed"]
    with ExitStack() as stack:
        segmented, _fresh = build_pair(stack, embedded, MAPPING, before, after)
        folder = segmented.index.reader.parts[1].folder
        path = next(folder.glob("*.documents.npy"))
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(DataError, match=re.escape(str(folder))):
            segmented.verify()


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


@pytest.fixture(scope="module", params=["dead", "in the base", "new", "absent"])
def pair_with_unscorable(
    request: pytest.FixtureRequest, low_thresholds: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[IndexPair, bool]]:
    """Yield a pair with documents that some queries can't score, and whether these are live."""
    position = request.param
    scorable = [
        Document(str(number), "a" if number % 2 else "b", {"year": 3, "tag": "y"}) for number in range(40)
    ]
    unscorable = [Document(f"bad {number}", "a b b b", {"tag": "x"}) for number in range(3)]
    before = [*scorable, *unscorable] if position in ("dead", "in the base") else scorable
    after = [
        *scorable[2:],
        Document("more", "a", {"year": 1}),
        *(unscorable if position in ("new", "in the base") else ()),
    ]
    with ExitStack() as stack:
        engine = stack.enter_context(closing(EmbeddedEngine(tmp_path_factory.mktemp("bad"), "test")))
        yield build_pair(stack, engine, MAPPING, before, after), position in ("new", "in the base")


@pytest.mark.parametrize("query", [BEYOND, HUGE, WITHOUT_VALUE])
def test_only_live_documents_can_make_a_query_fail(
    pair_with_unscorable: tuple[IndexPair, bool], either_way: None, query: Json
) -> None:
    (segmented, fresh), is_live = pair_with_unscorable
    for bodies in ([body(query)], [body(EVERYTHING)] * 9 + [body(query)]):
        expected = hits(fresh, bodies)
        assert hits(segmented, bodies) == expected
        assert isinstance(expected, tuple) == is_live or query is HUGE
