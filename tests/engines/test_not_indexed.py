"""Both engines store properties that are not indexed, and do not search them."""

from __future__ import annotations

import copy
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import DataError, EngineRefused, QueryRefused
from searchapp.files import DocumentsDigest
from searchapp.model import Document
from tests.engines.conftest import MAPPING, spec_of

VALUES: list[Any] = ["x", "y" * 40_000, 7, 0.5, True, ["a", 1], {"deep": {"er": 1}}, ""]
DOCUMENTS = [Document(str(number), "a b c", {"kept": value}) for number, value in enumerate(VALUES)]


def mapping_with_kept(definition: dict[str, Any]) -> dict[str, Any]:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["kept"] = definition
    return mapping


def test_every_value_is_stored_and_not_searched(engine_settings: Settings) -> None:
    mapping = mapping_with_kept({"type": "object", "enabled": False})
    with closing(open_engine(engine_settings)) as engine:
        engine.build("kept", spec_of(DOCUMENTS, mapping), DOCUMENTS)
        index = engine.open("kept")
        body = {"size": 20, "_source": True, "sort": [{"_score": "desc"}, {"id": "asc"}]}
        hits = index.find({**body, "query": {"match": {"text": "b"}}})
        assert [hit.source["kept"] for hit in hits] == VALUES
        for query in ({"match": {"kept": "x"}}, {"exists": {"field": "kept"}}, {"term": {"kept": 7}}):
            assert list(next(index.search([{**body, "query": query}]))) == []


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_too_deeply_nested_value_is_rejected_with_its_document(tmp_path: Path) -> None:
    mapping = mapping_with_kept({"type": "object", "enabled": False})
    documents = [Document("flat", "a", {"kept": nested(500)}), Document("deep", "a", {"kept": nested(1_100)})]
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        engine.build("kept", spec_of(documents[:1], mapping), documents[:1])
        with pytest.raises(EngineRefused, match="the document deep: its objects or lists are nested"):
            engine.build("kept", IndexSpec(mapping, 2, "deep"), documents)
    with pytest.raises(DataError, match="the document deep has objects or lists nested more than"):
        list(DocumentsDigest().watch(documents))


PARTS: dict[str, Any] = {
    "flag": {"type": "boolean"},
    "code": {"type": "keyword", "ignore_above": 3, "null_value": "no"},
    "same": {"type": "alias", "path": "code"},
    "all": {"type": "text", "index_options": "offsets"},
    "o": {
        "dynamic": "false",
        "properties": {"word": {"type": "text", "copy_to": "all", "store": True}, "n": {"type": "byte"}},
    },
    "hidden": {"type": "text", "index": False, "fields": {"quick": {"type": "completion"}}},
    "place": {"type": "geo_point"},
    "span": {"type": "ip_range"},
    "blob": {"type": "binary"},
}


def test_objects_booleans_aliases_and_parameters_give_the_same_hits(engine_settings: Settings) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"] |= PARTS
    mapping["settings"]["index.codec"] = "best_compression"
    documents = [
        Document("1", "a", {"flag": True, "code": "abcd", "o": {"word": "x y", "n": 1, "new": {"p": 1}}}),
        Document("2", "a", {"flag": "false", "code": None, "o": [{"word": "x"}, {"word": ["z", "x"]}]}),
        Document(
            "3", "a", {"code": ["ab", "😀b"], "o.word": "y", "place": {"lat": 1, "lon": 2}, "hidden": "x"}
        ),
    ]
    expected = {
        ("term", "flag", True): ["1"],
        ("match", "flag", "false"): ["2"],
        ("term", "same", "no"): ["2"],
        ("terms", "same", ("ab", "abcd")): ["3"],
        ("match", "all", "x"): ["2", "1"],
        ("match", "o.word", "y"): ["3", "1"],
        ("term", "o.n", 1): ["1"],
        ("exists", "field", "o"): ["1", "2", "3"],
        ("exists", "field", "code"): ["2", "3"],
        ("prefix", "same", "😀"): ["3"],
    }
    with closing(open_engine(engine_settings)) as engine:
        engine.build("parts", spec_of(documents, mapping), documents)
        index = engine.open("parts")
        order = [{"_score": "desc"}, {"id": "asc"}]
        for (kind, field, value), ids in expected.items():
            (hits,) = index.search([{"query": {kind: {field: value}}, "sort": order, "size": 9}])
            assert list(hits.document_ids) == ids, (kind, field, value)


def test_fields_that_are_kept_are_rejected_only_in_queries(tmp_path: Path) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"] |= PARTS
    notices: list[str] = []
    documents = [Document("1", "a", {"blob": "aGk=", "hidden": "a"})]
    with closing(EmbeddedEngine(tmp_path, "test", notify=notices.append)) as engine:
        engine.build("kept", spec_of(documents, mapping), documents)
        (notice,) = notices
        assert "blob (the type binary)" in notice and "hidden (" not in notice
        index = engine.open("kept")
        for name, reason in (
            ("blob", "the type binary"),
            ("hidden", "`index: false`"),
            ("hidden.quick", "the type completion"),
            ("span.key", "the type ip_range"),
        ):
            query = {"query": {"exists": {"field": name}}, "sort": [{"_score": "desc"}, {"id": "asc"}]}
            with pytest.raises(QueryRefused, match=rf"queries on {name} \({reason}\)"):
                list(index.search([query]))
        for fields in (
            {"flag": 1},
            {"o": 5},
            {"unknown": 1},
            {"same": "x"},
            {"hidden": {"x": 1}},
            {"o": {"word.x": 1}},
            {"o": {"n.": 1}},
        ):
            bad = [Document("2", "a", fields)]
            with pytest.raises(EngineRefused, match="the document 2: "):
                engine.build("bad", spec_of(bad, mapping), bad)


def test_runtime_fields_that_elasticsearch_would_add_are_rejected(tmp_path: Path) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["dynamic"] = "runtime"
    documents = [Document("1", "a", {"new": 1})]
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        with pytest.raises(
            EngineRefused, match="the document 1: .* support adding the runtime field new to the mapping"
        ):
            engine.build("new", spec_of(documents, mapping), documents)


def test_an_id_that_the_field_id_ignores_is_rejected(tmp_path: Path) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["id"]["ignore_above"] = 3
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        engine.build("ids", spec_of(documents := [Document("abc", "a")], mapping), documents)
        with pytest.raises(EngineRefused, match="the document abcd: its id is longer than `ignore_above`"):
            engine.build("ids", spec_of(documents := [Document("abcd", "a")], mapping), documents)


def test_explanations_name_the_index_of_fields_without_doc_values(engine_settings: Settings) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"] |= {
        "code": {"type": "keyword", "doc_values": False},
        "year": {"type": "integer", "doc_values": False},
    }
    documents = [Document("1", "a", {"code": "x", "year": 5}), Document("2", "a", {"year": 9})]
    with closing(open_engine(engine_settings)) as engine:
        engine.build("without", spec_of(documents, mapping), documents)
        index = engine.open("without")
        for query, expected in (
            ({"exists": {"field": "code"}}, "ConstantScore(_field_names:code)"),
            ({"range": {"year": {"lte": 5}}}, "year:[-2147483648 TO 5]"),
        ):
            body = {"query": query, "explain": True, "sort": [{"_score": "desc"}, {"id": "asc"}]}
            (hit,) = index.find(body)
            assert hit.hit.document_id == "1"
            assert hit.explanation is not None and hit.explanation.description == expected


def test_too_long_keywords_are_rejected_also_if_they_are_not_indexed(tmp_path: Path) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["code"] = {"type": "keyword", "index": False}
    documents = [Document("1", "a", {"code": "é" * 16_384})]
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        with pytest.raises(EngineRefused, match="the document 1: code has a term longer than 32766 bytes"):
            engine.build("long", spec_of(documents, mapping), documents)


def test_fields_with_a_leading_underscore_are_searched(engine_settings: Settings) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["_label"] = {"type": "keyword"}
    documents = [Document("1", "a", {"_label": "x"}), Document("2", "a", {"_label": "y"})]
    with closing(open_engine(engine_settings)) as engine:
        engine.build("labels", spec_of(documents, mapping), documents)
        body = {"sort": [{"_score": "desc"}, {"id": "asc"}], "query": {"term": {"_label": "x"}}}
        (hits,) = engine.open("labels").search([body])
    assert hits.document_ids == ("1",)
