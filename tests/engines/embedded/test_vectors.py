"""Vectors: exact scores, storage in several segments, rejections, and nearest documents with equal scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchapp.engines.base import BEST_FIRST, IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import QueryRefused, SearchappError
from searchapp.lucene import native, vectors
from searchapp.model import Document
from searchapp.ranking import paging
from tests.engines.embedded.segmented import build_fresh, build_in_segments
from tests.search.drawing import Draw

Json = dict[str, Any]

FLAT = {"type": "dense_vector", "index_options": {"type": "flat"}}
BYTE = {**FLAT, "element_type": "byte", "dims": 3}
BIT = {**FLAT, "element_type": "bit", "dims": 24}


def mapping(**fields: Json) -> Json:
    return {"mappings": {"properties": {"id": {"type": "keyword"}, "text": {"type": "text"}, **fields}}}


def knn(vector: Any, k: int, field: str = "vec", **more: Any) -> Json:
    return {"knn": {"field": field, "query_vector": vector, "k": k, **more}}


def documents(count: int, seed: str) -> list[Document]:
    """Return documents with vectors of few different numbers, some without one."""
    draw = Draw(seed)
    return [
        Document(
            f"{seed}{number:03}",
            draw.choice(["a", "b", "a b"]),
            {
                "vec": [draw.number(-3, 3), draw.number(-3, 3), 1],
                "bits": [draw.number(-9, 9) for _ in range(3)],
            }
            if draw.chance(0.8)
            else {},
        )
        for number in range(count)
    ]


def expected(similarity: str, vector: Sequence[int], query: Sequence[int]) -> np.float32:
    """Return a score from exact integers, by the formulas of Lucene."""
    one, dims = np.float32(1), len(vector)
    dot = sum(left * right for left, right in zip(vector, query, strict=True))
    if similarity == "cosine":
        lengths = sum(number**2 for number in vector) * sum(number**2 for number in query)
        return np.float32((one + np.float32(dot / math.sqrt(lengths))) / 2)
    if similarity == "dot_product":
        return np.float32(np.float32(0.5) + np.float32(dot) / np.float32(dims * 32768))
    if similarity == "l2_norm":
        distance = sum((left - right) ** 2 for left, right in zip(vector, query, strict=True))
        return np.float32(one / (one + np.float32(distance)))
    if similarity == "max_inner_product":
        return np.float32(one / (one - np.float32(dot)) if dot < 0 else np.float32(dot) + one)
    differing = sum(((left ^ right) & 255).bit_count() for left, right in zip(vector, query, strict=True))
    return np.float32((8 * dims - differing) / np.float32(8 * dims))


@pytest.mark.parametrize("functions", [nullcontext, native.without])
@pytest.mark.parametrize("dims", [1, 1024, 1025, 4096, 5000])
@pytest.mark.parametrize("similarity", [*vectors.SIMILARITIES, vectors.HAMMING])
def test_scores_are_those_of_exact_integers(
    similarity: str, dims: int, functions: Callable[[], AbstractContextManager[None]]
) -> None:
    random = np.random.default_rng(dims)
    stored = random.integers(-128, 128, (42, dims), np.int8)
    stored[:3] = np.array([[-128], [127], [1]], np.int8)
    queries = np.array([stored[0], stored[1], *random.integers(-128, 128, (2, dims), np.int8)], np.int8)
    as_bytes = stored.view(np.uint8)
    lengths = vectors.squares(as_bytes) if vectors.needs_lengths(similarity) else None
    elements = dims * 8 if similarity == vectors.HAMMING else dims
    for selected in (None, np.array([0, 1, 2, 39, 41])):
        with functions():
            result = vectors.scores(similarity, as_bytes, lengths, queries.view(np.uint8), elements, selected)
        chosen = stored if selected is None else stored[selected]
        theirs = [[expected(similarity, row.tolist(), query.tolist()) for row in chosen] for query in queries]
        np.testing.assert_array_equal(result, np.array(theirs, np.float32))


def test_segments_answer_as_a_fresh_index(tmp_path: Path) -> None:
    before = documents(300, "a")
    after = [*before[10:200], *documents(40, "b"), *before[220:]]
    described = mapping(vec={**BYTE, "similarity": "dot_product"}, bits=BIT)
    bodies = [
        {**knn([1, 2, 3], 200), "size": 200},
        {
            **knn([1, 2, 3], 300, filter={"match": {"text": "a"}}),
            "size": 200,
            "query": {"match": {"text": "b"}},
        },
        {**knn("01ff7f", 300, "bits", similarity=9, boost=0.3), "size": 300, "explain": True},
        {"query": {"exists": {"field": "vec"}}, "size": 300, "_source": ["vec"]},
    ]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        segmented = build_in_segments(engine, described, before, after)
        assert len(segmented.index.reader.parts) > 1
        fresh = build_fresh(engine, described, after)
        for body in bodies:
            ours, theirs = segmented.answer(body)["hits"], fresh.answer(body)["hits"]
            scores = [[hit["_score"] for hit in answer["hits"]] for answer in (ours, theirs)]
            assert scores[0] == scores[1]
            # Documents with the last score may differ.
            sure = [
                [hit for hit in answer["hits"] if hit["_score"] > scores[0][-1]] for answer in (ours, theirs)
            ]
            assert sure[0] == sure[1]


def test_nearest_hits_with_equal_scores_are_the_first_by_id(tmp_path: Path) -> None:
    described = mapping(vec=BYTE)
    ordered = [Document(f"{number:03}", "a", {"vec": [1, number % 2, 0]}) for number in reversed(range(100))]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        index = build_fresh(engine, described, ordered)
        near = {"field": "vec", "query_vector": [1, 0, 0], "k": 3}
        assert [hit["_id"] for hit in index.answer({"knn": near})["hits"]["hits"]] == ["094", "096", "098"]

        def body(size: int, **section: Any) -> dict[str, Any]:
            return {"knn": {**near, **section}, "size": size, "sort": BEST_FIRST}

        def found(*bodies: dict[str, Any]) -> list[tuple[str, ...]]:
            return [tuple(hits.document_ids) for hits in paging.hits_of(index, bodies)]

        first, second, third, all_documents = found(
            body(3), body(60, k=51), body(2, num_candidates=20), body(300, k=300)
        )
        assert first == ("000", "002", "004")
        assert second[-2:] == ("098", "001")
        assert third == ("000", "002")
        assert len(all_documents) == 100
        for wrong in ({"query_vector": [1]}, {"k": 5, "num_candidates": 4}):
            with pytest.raises(QueryRefused) as refused:
                found(body(3), body(3, **wrong))
            assert refused.value.place == 1


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        (BYTE, [1, 2], "the document d: vec is a dense_vector field: a vector has 2 numbers instead of 3"),
        (BYTE, [1, 2, 128], "contains 128, which is no integer from -128 to 127"),
        (BYTE, [1, 2, 0.5], "contains 0.5, which is no integer"),
        (BYTE, [1, 2, True], "contains True, which is no number"),
        (BYTE, [0, 0, 0], "the document d: vec has a vector of zeros, which has no cosine"),
        (BYTE, "AQID", "a text other than 6 hexadecimal digits for a vector in vec"),
        ({**BYTE, "element_type": "float"}, None, "scores depend on the processor (write `element_type: byte`"),
        ({**BYTE, "index_options": {"type": "hnsw"}}, None, 'approximate (write `"index_options": {"type": "flat"}`)'),
        ({**BIT, "dims": 12}, None, "from 8 to 32,768 and a multiple of 8, not 12"),
        ({**BYTE, "dims": None}, None, "`dims` of the field vec is null"),
    ],
)  # fmt: skip
def test_rejections_name_the_field_and_the_document(
    tmp_path: Path, field: Json, value: Any, problem: str
) -> None:
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        spec = IndexSpec(mapping(vec=field), 1, "1")
        with pytest.raises(SearchappError) as refused:
            engine.build("rings", spec, [Document("d", "a", {"vec": value})])
        assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("source", "as_stored", "apart"),
    [
        ({}, {"a": "b", "vec": [1, 2, 3], "o": {"vec": [4, 5, 6]}}, {"a": "b", "o": {}}),
        ({"exclude_vectors": True}, {"a": "b"}, {"a": "b", "o": {}}),
        ({"exclude_vectors": True, "excludes": ["a"]}, {}, {"o": {}}),
        (
            {"exclude_vectors": True, "includes": ["o.*"]},
            {"o": {"vec": [4, 5, 6]}},
            {"o": {"vec": [4, 5, 6]}},
        ),
        ({"exclude_vectors": False, "excludes": ["a", "o"]}, {"vec": [1, 2, 3]}, {"vec": [1, 2, 3]}),
    ],
)
def test_sources_show_vectors_as_on_a_server(
    tmp_path: Path, source: Json, as_stored: Json, apart: Json
) -> None:
    """What Elasticsearch 9.4.3 returned for an index with vectors in its sources, and for one without."""
    document = Document("d", "text", {"a": "b", "vec": [1, 2, 3], "o": {"vec": [4, 5, 6]}})
    written = mapping(vec=BYTE, o={"properties": {"vec": BYTE}})
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        for hides, shown in ((False, as_stored), (True, apart)):
            settings = {"index.mapping.exclude_source_vectors": hides}
            engine.build("sources", IndexSpec({**written, "settings": settings}, 1, "sources"), [document])
            (hit,) = engine.open("sources").find({"query": {"match_all": {}}, "_source": source})
            assert {key: value for key, value in hit.source.items() if key not in ("id", "text")} == shown
