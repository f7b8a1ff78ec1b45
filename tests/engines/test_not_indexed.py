"""A property that is not indexed is kept with the document and cannot be searched, on both engines alike."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.engines import open_engine
from searchapp.errors import EngineRefused
from searchapp.model import Document
from searchapp.settings import Settings
from tests.engines.conftest import MAPPING, spec_of

VALUES: list[Any] = ["x", "y" * 40_000, 7, 0.5, True, ["a", 1], {"deep": {"er": 1}}, ""]
DOCUMENTS = [Document(str(number), "a b c", {"kept": value}) for number, value in enumerate(VALUES)]


def with_kept(described: dict[str, Any]) -> dict[str, Any]:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["kept"] = described
    return mapping


@pytest.fixture(params=["embedded", pytest.param("elasticsearch", marks=pytest.mark.elasticsearch)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    if request.param == "embedded":
        return Settings(home=tmp_path)
    url: str = request.getfixturevalue("elasticsearch_url")
    make: Callable[..., Settings] = request.getfixturevalue("settings_for")
    return make(url, engine="elasticsearch")


def test_whatever_value_it_has_is_kept_and_not_searched(settings: Settings) -> None:
    mapping = with_kept({"type": "object", "enabled": False})
    with closing(open_engine(settings)) as engine:
        engine.build("kept", spec_of(DOCUMENTS, mapping), DOCUMENTS)
        index = engine.open("kept")
        body = {"size": 20, "_source": True, "sort": [{"_score": "desc"}, {"id": "asc"}]}
        found = index.find({**body, "query": {"match": {"text": "b"}}})
        assert [one.source["kept"] for one in found] == VALUES
        for query in ({"match": {"kept": "x"}}, {"exists": {"field": "kept"}}, {"term": {"kept": 7}}):
            assert list(next(index.search([{**body, "query": query}]))) == []


def test_an_object_that_is_indexed_is_refused_by_the_embedded_engine(tmp_path: Path) -> None:
    mapping = with_kept({"type": "object"})
    with closing(open_engine(Settings(home=tmp_path))) as engine:
        with pytest.raises(EngineRefused, match="the type `object` of the field kept"):
            engine.build("kept", spec_of(DOCUMENTS, mapping), DOCUMENTS)
