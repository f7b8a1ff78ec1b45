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
from searchapp.errors import DataError, EngineRefused
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


def test_the_embedded_engine_rejects_indexed_objects(tmp_path: Path) -> None:
    mapping = mapping_with_kept({"type": "object"})
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        with pytest.raises(EngineRefused, match="the type `object` of the field kept"):
            engine.build("kept", spec_of(DOCUMENTS, mapping), DOCUMENTS)


def test_fields_with_a_leading_underscore_are_searched(engine_settings: Settings) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["_label"] = {"type": "keyword"}
    documents = [Document("1", "a", {"_label": "x"}), Document("2", "a", {"_label": "y"})]
    with closing(open_engine(engine_settings)) as engine:
        engine.build("labels", spec_of(documents, mapping), documents)
        body = {"sort": [{"_score": "desc"}, {"id": "asc"}], "query": {"term": {"_label": "x"}}}
        (hits,) = engine.open("labels").search([body])
    assert hits.document_ids == ("1",)
