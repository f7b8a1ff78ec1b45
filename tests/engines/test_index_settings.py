"""Both engines accept every form of index settings that Elasticsearch accepts, with the same result."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp import resources
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import Engine, IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import DataError, EngineRefused
from searchapp.files import digest_json
from searchapp.lucene.errors import BadSettings
from searchapp.lucene.index.index_settings import canonical
from searchapp.model import Document

MAPPINGS = {
    "properties": {
        "id": {"type": "keyword"},
        "text": {"type": "text", "analyzer": "mine", "similarity": "flat"},
    }
}
ANALYSIS = {
    "analyzer": {"mine": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "little"]}},
    "filter": {"little": {"type": "stop", "stopwords": ["the"]}},
}
SIMILARITY = {"flat": {"type": "BM25", "k1": 0.9, "b": 0.4}}
PLAIN: dict[str, Any] = {"analysis": ANALYSIS, "similarity": SIMILARITY}
FLAT = {
    "analysis.analyzer.mine.type": "custom",
    "analysis.analyzer.mine.tokenizer": "standard",
    "analysis.analyzer.mine.filter": ["lowercase", "little"],
    "analysis.filter.little.type": "stop",
    "analysis.filter.little.stopwords": ["the"],
    "similarity.flat.type": "BM25",
    "similarity.flat.k1": 0.9,
    "similarity.flat.b": 0.4,
}
EQUIVALENT: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "nested": {"index": PLAIN},
    "one flat name": {"index.analysis": ANALYSIS, "index.similarity": SIMILARITY},
    "flat": FLAT,
    "flat with index": {f"index.{name}": value for name, value in FLAT.items()},
    "flat in index": {"index": FLAT},
    "mixed": {
        "analysis": {"analyzer": ANALYSIS["analyzer"], "filter.little.type": "stop"},
        "index": {"analysis.filter": {"little.stopwords": ["the"]}, "similarity": SIMILARITY},
    },
    "list in parts": {
        **{name: value for name, value in FLAT.items() if name != "analysis.analyzer.mine.filter"},
        "analysis.analyzer.mine.filter.0": "lowercase",
        "analysis.analyzer.mine.filter.1": "little",
    },
    "repeated": {**PLAIN, "index": PLAIN, "index.similarity.flat.b": 0.4},
}


@pytest.mark.parametrize("settings", EQUIVALENT.values(), ids=EQUIVALENT)
def test_every_form_has_the_same_canonical_form(settings: dict[str, Any]) -> None:
    before = copy.deepcopy(settings)
    mapping = canonical({"settings": settings, "mappings": MAPPINGS})
    assert mapping == {"settings": PLAIN, "mappings": MAPPINGS}
    assert digest_json(mapping) == digest_json({"settings": PLAIN, "mappings": MAPPINGS})
    assert settings == before


@pytest.mark.parametrize(
    "path", sorted(resources.folder("index_mappings").glob("*.json")), ids=lambda path: path.stem
)
def test_shipped_mappings_are_canonical(path: Path) -> None:
    mapping = resources.index_mapping(path.stem)
    assert canonical(mapping) == mapping
    assert digest_json(canonical(mapping)) == digest_json(mapping)


@pytest.mark.parametrize(
    "mapping",
    [{}, {"mappings": MAPPINGS}, {"settings": {}}, {"settings": {"analysis": {}, "similarity": {}}}],
)
def test_mappings_without_settings_stay_unchanged(mapping: dict[str, Any]) -> None:
    assert canonical(mapping) == mapping


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"analysis": ANALYSIS, "index.analysis.analyzer.mine.tokenizer": "keyword"},
            "mine.tokenizer twice, to different values",
        ),
        (
            {"analysis": {"filter": "x"}, "index.analysis.filter.a.type": "stop"},
            "analysis.filter.a.type twice, to different values",
        ),
        (
            {"index.analysis.filter.a.type": "stop", "analysis": {"filter": "x"}},
            "analysis.filter twice, to different values",
        ),
        ({"index": None}, "`index` in the settings of a mapping must be an object"),
        ({"index": ["analysis"]}, "`index` in the settings of a mapping must be an object"),
        ({"index.": 1}, "the setting 'index.' of a mapping has an empty part in its name"),
        ({"analysis": {"..": 1}}, "the setting '..' of a mapping has an empty part"),
    ],
)
def test_contradicting_and_invalid_settings_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSettings, match=message.replace("(", r"\(")):
        canonical({"settings": settings})
    with pytest.raises(EngineRefused, match="invalid request"):
        EmbeddedEngine(Path("/nowhere"), "x").build("x", IndexSpec({"settings": settings}, 0, "1"), [])


DOCUMENTS = [
    Document("1", "The soups of the NORTH"),
    Document("2", "north winds"),
    Document("3", "soups soups"),
]


@pytest.fixture
def engine(engine_settings: Settings) -> Iterator[Engine]:
    with closing(open_engine(engine_settings)) as opened:
        yield opened
        opened.remove("soups")


def test_every_form_of_settings_gives_the_same_hits(engine: Engine) -> None:
    answers = []
    for settings in (
        *EQUIVALENT.values(),
        {"index": {**PLAIN, "number_of_replicas": "0", "number_of_shards": "1", "refresh_interval": "1s"}},
    ):
        spec = IndexSpec({"settings": settings, "mappings": {"dynamic": "strict", **MAPPINGS}}, 3, "1")
        engine.build("soups", spec, DOCUMENTS)
        index = engine.open("soups")
        body = {"query": {"match": {"text": "the soups north"}}, "sort": [{"_score": "desc"}, {"id": "asc"}]}
        (hits,) = index.search([{**body, "size": 9}])
        terms = [token.term for token in index.analyze("The NORTH", field="text")[-1].tokens]
        answers.append((list(hits.document_ids), list(hits.scores), terms))
    assert answers[0][0][0] == "1" and sorted(answers[0][0]) == ["1", "2", "3"]
    assert answers[0][2] == ["north"]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize(
    "settings",
    [
        {"index": {"nonsense": 1}},
        {"index": {"index": PLAIN}},
        {"index": None},
        {
            "analysis": {
                "filter": {"a.b": {"type": "lowercase"}},
                "analyzer": {"mine": {"tokenizer": "standard", "filter": ["a.b"]}},
            }
        },
        {"index.": {"number_of_replicas": 0}},
    ],
)
def test_both_engines_reject_invalid_settings(engine: Engine, settings: dict[str, Any]) -> None:
    if "analysis" not in settings:
        settings = {**PLAIN, **settings}
    mappings = {"dynamic": "strict", "properties": {"text": {"type": "text", "analyzer": "mine"}}}
    with pytest.raises((EngineRefused, DataError)):
        engine.build("soups", IndexSpec({"settings": settings, "mappings": mappings}, 3, "1"), DOCUMENTS)


@pytest.mark.elasticsearch
@pytest.mark.parametrize("settings", EQUIVALENT.values(), ids=EQUIVALENT)
def test_the_server_reports_the_same_settings_for_every_form(
    elasticsearch_url: str, index_prefix: str, settings: dict[str, Any]
) -> None:
    import httpx

    address = f"{elasticsearch_url}/{index_prefix}-forms"
    stored = []
    for form in (PLAIN, settings):
        response = httpx.put(address, json={"settings": form, "mappings": MAPPINGS})
        assert response.status_code == 200, response.text
        (index,) = httpx.get(f"{address}/_settings").json().values()
        stored.append({name: index["settings"]["index"][name] for name in ("analysis", "similarity")})
        httpx.delete(address)
    assert stored[0] == stored[1]


@pytest.mark.parametrize(
    "path", sorted(resources.folder("index_mappings").glob("*.json")), ids=lambda path: path.stem
)
def test_shipped_mappings_with_nested_settings_have_the_shipped_form(path: Path) -> None:
    mapping = resources.read_json(path)
    assert canonical(mapping) == mapping
    assert canonical({**mapping, "settings": {"index": mapping["settings"]}}) == mapping
