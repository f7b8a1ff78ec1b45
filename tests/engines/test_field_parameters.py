"""Both engines index and search fields with normalizers, without norms, and with gaps, similarities and analyzers."""

from __future__ import annotations

import copy
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import SearchappError
from searchapp.model import Document
from tests.engines.conftest import MAPPING, spec_of

ORDER = [{"_score": "desc"}, {"id": "asc"}]
WORDS = {"type": "text", "analyzer": "words"}
NORMALIZER = {
    "char_filter": ["dashes"],
    "filter": ["lowercase", "asciifolding"],
}


def mapping_with(**properties: Any) -> dict[str, Any]:
    mapping = copy.deepcopy(MAPPING)
    mapping["settings"]["analysis"] |= {
        "char_filter": {"dashes": {"type": "mapping", "mappings": ["- => _"]}},
        "normalizer": {"plain": NORMALIZER, "small": {"type": "lowercase"}},
    }
    mapping["mappings"]["properties"] |= properties
    return mapping


def ids(index: Any, query: dict[str, Any]) -> list[str]:
    (hits,) = index.search([{"query": query, "sort": ORDER, "size": 9}])
    return list(hits.document_ids)


def test_normalizers_change_values_and_terms_of_queries(engine_settings: Settings) -> None:
    code = {"type": "keyword", "normalizer": "plain", "ignore_above": 4, "null_value": "NIL", "store": True}
    mapping = mapping_with(
        built_in={"type": "keyword", "normalizer": "lowercase"},
        code=code,
        low={"type": "keyword", "normalizer": "small"},
    )
    documents = [
        Document("1", "a", {"code": "É-x", "low": "A*B", "built_in": "é"}),
        Document("2", "a", {"code": [None, "Too long"], "low": "É"}),
        Document("3", "a", {"code": "E-Y", "low": "aXb"}),
    ]
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({"term": {"code": "e_X"}}, ["1"]),
        ({"terms": {"code": ["nil", "È-Y"]}}, ["2", "3"]),
        ({"match": {"code": "é-X"}}, ["1"]),
        ({"match_phrase": {"code": "é-X"}}, ["1"]),
        ({"match": {"code": {"query": "E-X E-Y", "analyzer": "words"}}}, []),
        ({"prefix": {"code": "É-"}}, ["1", "3"]),
        ({"wildcard": {"code": "É?Y"}}, ["3"]),
        ({"wildcard": {"low": "A\\*B"}}, ["1"]),
        ({"wildcard": {"low": "A*B"}}, ["1", "3"]),
        ({"regexp": {"code": "É-[XY]"}}, ["1", "3"]),
        ({"fuzzy": {"code": {"value": "É-Z", "fuzziness": 1}}}, ["1", "3"]),
        ({"range": {"code": {"gte": "É-X", "lt": "N"}}}, ["1", "3"]),
        ({"term": {"low": "É"}}, ["2"]),
        ({"term": {"built_in": "É"}}, ["1"]),
        ({"term": {"low": "e"}}, []),
    ]
    with closing(open_engine(engine_settings)) as engine:
        engine.build("normal", spec_of(documents, mapping), documents)
        index = engine.open("normal")
        for query, found in expected:
            assert ids(index, query) == found, query
        highlight = {"type": "plain", "number_of_fragments": 0, "fields": {"code": {}, "low": {}}}
        query = {"bool": {"should": [{"match": {"code": "e-x"}}, {"term": {"low": "a*b"}}]}}
        (hit,) = index.find({"query": query, "sort": ORDER, "highlight": highlight})
        # Highlights show normalized values.
        assert hit.highlights == {"code": ["<em>e_x</em>"], "low": ["<em>a*b</em>"]}


@pytest.mark.parametrize("similarity", ["BM25", "boolean"])
def test_fields_without_norms_have_equal_lengths(engine_settings: Settings, similarity: str) -> None:
    mapping = mapping_with(
        short={**WORDS, "norms": False, "similarity": similarity},
        tag={"type": "keyword", "similarity": "boolean"},
    )
    documents = [
        Document("1", "a", {"short": "ring ring and many other words", "tag": "x"}),
        Document("2", "a", {"short": "ring"}),
        Document("3", "a", {"short": "", "tag": ["x", "y"]}),
    ]
    with closing(open_engine(engine_settings)) as engine:
        engine.build("short", spec_of(documents, mapping), documents)
        index = engine.open("short")
        (hits,) = index.search([{"query": {"match": {"short": "ring"}}, "sort": ORDER, "size": 9}])
        assert list(hits.document_ids) == ["1", "2"]
        scores = [float(score) for score in hits.scores]
        assert scores == [1.0, 1.0] if similarity == "boolean" else scores[0] > scores[1]
        query = {"query": {"bool": {"must": [{"match": {"short": "ring"}}, {"exists": {"field": "short"}}]}}}
        (_first, hit) = index.find({**query, "sort": ORDER, "explain": True})
        text = str(hit.explanation)
        assert "_field_names:short" in text
        assert (
            "score(BooleanWeight), computed from:" if similarity == "boolean" else "dl, length of field"
        ) in text
        assert ids(index, {"exists": {"field": "short"}}) == ["1", "2", "3"]
        (hits,) = index.search([{"query": {"match": {"tag": {"query": "x", "boost": 3}}}, "sort": ORDER}])
        assert [float(score) for score in hits.scores] == [3.0, 3.0]


def test_gaps_and_analyzers_of_phrases(engine_settings: Settings) -> None:
    mapping = mapping_with(
        near={**WORDS, "position_increment_gap": 0},
        quoted={**WORDS, "search_quote_analyzer": "exact"},
        plain={"type": "text"},
    )
    analyzers = mapping["settings"]["analysis"]["analyzer"]
    analyzers |= {name: {"tokenizer": "whitespace"} for name in ("exact", "default_search_quoted")}
    documents = [Document("1", "a", {"near": ["a b", "c d"], "quoted": "A b", "plain": "A b"})]
    with closing(open_engine(engine_settings)) as engine:
        engine.build("gaps", spec_of(documents, mapping), documents)
        index = engine.open("gaps")
        assert ids(index, {"match_phrase": {"near": "b c"}}) == ["1"]
        for name in ("quoted", "plain"):
            assert ids(index, {"match_phrase": {name: "A b"}}) == []
            assert ids(index, {"match_phrase": {name: "a b"}}) == ["1"]
            assert ids(index, {"match": {name: {"query": "A B", "operator": "and"}}}) == ["1"]
            several = {"query": "A b", "fields": [name], "type": "phrase"}
            assert ids(index, {"multi_match": several}) == []


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ({"filter": ["stop"]}, "normalizer `plain`: a normalizer must not have the filter `stop`"),
        ({"char_filter": ["html_strip"]}, "must not have the char_filter `html_strip`"),
        ({"tokenizer": "standard"}, "a normalizer must not have a `tokenizer`"),
        ({"type": "uppercase"}, "the type uppercase of a normalizer is unknown"),
        ({"filter": ["both"]}, "`preserve_original` of the filter `both` of normalizer `plain`"),
        ({"filter": ["nowhere"]}, "unknown filter `nowhere`"),
    ],
)
def test_normalizers_with_other_pieces_are_rejected(tmp_path: Path, definition: Any, problem: str) -> None:
    mapping = mapping_with(code={"type": "keyword", "normalizer": "plain"})
    analysis = mapping["settings"]["analysis"]
    analysis["normalizer"] = {"plain": definition}
    analysis["filter"] = {"both": {"type": "asciifolding", "preserve_original": True}}
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        with pytest.raises(SearchappError, match=re.escape(problem)):
            engine.build("bad", spec_of([], mapping), [])


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"type": "keyword", "normalizer": "lowrcase"}, "unknown normalizer `lowrcase` (did you mean"),
        ({"type": "keyword", "normalizer": ["plain"]}, "`normalizer` of the field code"),
        ({"type": "keyword", "index_options": "positions"}, "`index_options` of code must be docs or freqs"),
        (
            {"type": "keyword", "normalizer": "lowercase", "split_queries_on_whitespace": True},
            "`split_queries_on_whitespace` of the field code",
        ),
        (
            {"type": "text", "index_options": "docs", "position_increment_gap": 2},
            "`position_increment_gap` of code, whose `index_options` are docs",
        ),
        ({"type": "scaled_float"}, "`scaling_factor` of the field code"),
        ({"type": "search_as_you_type", "analyzer": "english"}, "the analyzer `english` for the type"),
        ({"type": "search_as_you_type", "max_shingle_size": 5}, "`max_shingle_size` of code is 5"),
        (
            {"type": "text", "position_increment_gap": -2},
            "`position_increment_gap` of code must be an integer from 0",
        ),
        ({"type": "text", "search_quote_analyzer": "nowhere"}, "unknown analyzer `nowhere`"),
        ({"type": "text", "analyzer": "_normalizer plain"}, "unknown analyzer `_normalizer plain`"),
    ],
)
def test_other_parameters_of_fields_are_rejected(tmp_path: Path, field: Any, problem: str) -> None:
    mapping = mapping_with(code=field)
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        with pytest.raises(SearchappError, match=re.escape(problem)):
            engine.build("bad", spec_of([], mapping), [])


def test_ids_have_no_normalizer(tmp_path: Path) -> None:
    mapping = mapping_with(id={"type": "keyword", "normalizer": "lowercase"})
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        with pytest.raises(SearchappError, match="`normalizer` of the field id, by which hits are sorted"):
            engine.build("bad", spec_of([], mapping), [])
