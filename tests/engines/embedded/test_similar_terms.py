"""Similar terms on both engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.searching import ElasticsearchIndex
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.lucene.search.spelling import SimilarTerm
from searchapp.model import Document
from tests.engines.conftest import spec_of

MISSPELLED = {"text": ["abelain", "homomorphsm", "grop", "set", "zzzzzz"]}


def test_a_server_gets_one_request_for_all_terms_that_can_have_similar_ones() -> None:
    bodies: list[Mapping[str, Any]] = []
    options = [
        {"text": "abelians", "score": 0.7, "freq": 9},
        {"text": "abelin", "score": 0.8, "freq": 1},
        {"text": "abelian", "score": 0.8, "freq": 2},
    ]

    class Asked(ElasticsearchIndex):
        def __init__(self) -> None:
            pass

        def _search(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
            bodies.append(body)
            entry = {"text": "abelain", "offset": 0, "length": 7}
            return {"suggest": {"0": [{**entry, "options": options}], "1": [{**entry, "options": []}]}}

    similar = Asked().similar_terms({"text": ["abelain", "set", "grop"]}, 2)
    # Elasticsearch's score prefers longer terms; the number of edits and the document frequency count here.
    assert similar == {
        "text": {
            "abelain": [SimilarTerm("abelian", 1, 2), SimilarTerm("abelin", 1, 1)],
            "set": [],
            "grop": [],
        }
    }
    (body,) = bodies
    assert body["size"] == 0
    suggestions = body["suggest"]
    assert [suggestion["text"] for suggestion in suggestions.values()] == ["abelain", "grop"]
    assert [suggestion["term"]["max_edits"] for suggestion in suggestions.values()] == [2, 1]
    assert {suggestion["term"]["analyzer"] for suggestion in suggestions.values()} == {"keyword"}
    assert Asked().similar_terms({"text": ["set"]}, 2) == {"text": {"set": []}}
    assert len(bodies) == 1


@pytest.mark.elasticsearch
def test_both_engines_find_the_same_similar_terms(
    engine: ElasticsearchEngine, embedded: EmbeddedEngine
) -> None:
    texts = ("abelian group homomorphism", "abelian groups", "abeliane homomorphic grope", "naïve")
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    found = []
    for one in (engine, embedded):
        one.build("similar", spec_of(documents), documents)
        found.append(one.open("similar").similar_terms(MISSPELLED, 3))
    assert found[0] == found[1]
    assert [similar.term for similar in found[0]["text"]["abelain"]] == ["abelian"]
