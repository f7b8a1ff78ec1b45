"""The normal form of queries in both engines: required optional clauses become a separate clause."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.lucene.queries.dsl import normal_form
from searchapp.model import Document
from tests.engines.embedded.conftest import MAPPING, body

Json = dict[str, Any]

A, B, C, D = ({"term": {"tag": name}} for name in "abcd")
NEVER = {"term": {"id": {"value": "\u0000 no document"}}}


def optional(*clauses: Json, minimum: int | str = 1, **others: Any) -> Json:
    return {"bool": {**others, "should": list(clauses), "minimum_should_match": minimum}}


def required(*clauses: Json, **others: Any) -> Json:
    return {"bool": {**others, "must": list(clauses)}}


@pytest.mark.parametrize(
    ("query", "normal"),
    [
        (optional(B, C, must=[A]), required(A, optional(B, C))),
        (optional(B, C, must=A, boost=2), required(A, optional(B, C), boost=2)),
        (optional(B, C, must=[A], minimum="50%"), required(A, optional(B, C, minimum="50%"))),
        (optional(B, must=[A], filter=[D]), required(A, B, filter=[D])),
        (optional(B, C, must=[A], minimum=2), required(A, B, C)),
        (
            optional(A, B, C, filter=[D], minimum=2),
            required(required(optional(A, B, C, minimum=2), should=[NEVER]), filter=[D]),
        ),
        (
            {"dis_max": {"queries": [A, optional(B, C, must=[A])]}},
            {"dis_max": {"queries": [A, required(A, optional(B, C))]}},
        ),
        (
            {"function_score": {"query": optional(B, C, must=[A]), "weight": 2}},
            {"function_score": {"query": required(A, optional(B, C)), "weight": 2}},
        ),
        (
            {"bool": {"filter": [{"function_score": {"query": optional(B, C, must=[A]), "min_score": 1}}]}},
            {
                "bool": {
                    "filter": [{"function_score": {"query": required(A, optional(B, C)), "min_score": 1}}]
                }
            },
        ),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_required_optional_clauses_become_one_clause_of_must(query: Json, normal: Json) -> None:
    assert normal_form(query) == normal
    assert normal_form(normal) is normal


@pytest.mark.parametrize(
    "query",
    [
        None,
        [],
        "text",
        A,
        {"bool": []},
        {"bool": {"must": [A], "should": [B, C]}},
        optional(B, C),
        optional(B, C, filter=[A]),
        optional(B, C, must=[A], minimum=0),
        optional(B, C, must=[A], minimum=3),
        optional(B, C, must=[A], minimum="-5"),
        optional(B, C, must=[A], minimum="x"),
        {"bool": {"must": [A], "should": [B, C], "minimum_should_match": True}},
        {"constant_score": {"filter": optional(B, C, must=[A])}},
        {"bool": {"must_not": [optional(B, C, must=[A])], "must": [A]}},
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_other_queries_stay_unchanged(query: Any) -> None:
    assert normal_form(query) is query


def test_the_score_of_a_document_does_not_depend_on_terms_of_other_documents(tmp_path: Path) -> None:
    random = Random(1)
    texts = [" ".join(random.choice("abcde") for _ in range(random.randrange(3, 14))) for _ in range(60)]
    documents = [Document(str(number), text, {"tag": "x"}) for number, text in enumerate(texts)]
    documents.append(Document("rare", "zebra", {"tag": "rare"}))
    engine = EmbeddedEngine.at(Settings(home=tmp_path))
    engine.build("one", IndexSpec(MAPPING, len(documents), "1"), documents)
    must = [{"match": {"text": "a"}}, {"match": {"text": {"query": "b", "boost": 0.3}}}]
    bodies = [
        body(optional({"match": {"text": "c"}}, {"term": {"tag": tag}}, must=must))
        for tag in ("rare", "absent")
    ]
    present, absent = engine.open("one").search(bodies)
    assert len(present) > 10
    assert list(present) == list(absent)
