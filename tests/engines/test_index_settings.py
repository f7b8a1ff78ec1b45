"""Settings in every form that Elasticsearch accepts: both engines make the same index of them, or refuse them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from searchapp import resources
from searchapp.config.settings import Settings
from searchapp.engines.base import Engine, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
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
ALIKE: dict[str, dict[str, Any]] = {
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
    "twice the same": {**PLAIN, "index": PLAIN, "index.similarity.flat.b": 0.4},
}


@pytest.mark.parametrize("settings", ALIKE.values(), ids=ALIKE)
def test_every_form_becomes_the_same(settings: dict[str, Any]) -> None:
    before = copy.deepcopy(settings)
    made = canonical({"settings": settings, "mappings": MAPPINGS})
    assert made == {"settings": PLAIN, "mappings": MAPPINGS}
    assert digest_json(made) == digest_json({"settings": PLAIN, "mappings": MAPPINGS})
    assert settings == before


@pytest.mark.parametrize(
    "path", sorted(resources.folder("index_mappings").glob("*.json")), ids=lambda path: path.stem
)
def test_what_ships_has_that_form_already(path: Path) -> None:
    mapping = resources.index_mapping(path.stem)
    assert canonical(mapping) == mapping
    assert digest_json(canonical(mapping)) == digest_json(mapping)


@pytest.mark.parametrize(
    "mapping",
    [{}, {"mappings": MAPPINGS}, {"settings": {}}, {"settings": {"analysis": {}, "similarity": {}}}],
)
def test_what_says_nothing_goes_on_saying_nothing(mapping: dict[str, Any]) -> None:
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
def test_what_contradicts_itself_or_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSettings, match=message.replace("(", r"\(")):
        canonical({"settings": settings})
    with pytest.raises(EngineRefused, match="invalid request"):
        EmbeddedEngine(Path("/nowhere"), "x").build("x", IndexSpec({"settings": settings}, 0, "1"), [])


DOCUMENTS = [
    Document("1", "The soups of the NORTH"),
    Document("2", "north winds"),
    Document("3", "soups soups"),
]


@pytest.fixture(params=["embedded", pytest.param("elasticsearch", marks=pytest.mark.elasticsearch)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Each of the two engines."""
    if request.param == "embedded":
        made: Engine = EmbeddedEngine(tmp_path, "settings")
    else:
        url, prefix = request.getfixturevalue("elasticsearch_url"), request.getfixturevalue("index_prefix")
        made = ElasticsearchEngine.connect(
            Settings(home=tmp_path, engine="elasticsearch", url=url, index_prefix=prefix)
        )
    yield made
    made.remove("soups")
    made.close()


def test_an_index_answers_alike_however_its_settings_are_written(engine: Engine) -> None:
    answers = []
    for settings in (
        *ALIKE.values(),
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
def test_what_the_server_refuses_the_embedded_engine_refuses(
    engine: Engine, settings: dict[str, Any]
) -> None:
    if "analysis" not in settings:
        settings = {**PLAIN, **settings}
    mappings = {"dynamic": "strict", "properties": {"text": {"type": "text", "analyzer": "mine"}}}
    with pytest.raises((EngineRefused, DataError)):
        engine.build("soups", IndexSpec({"settings": settings, "mappings": mappings}, 3, "1"), DOCUMENTS)


@pytest.mark.elasticsearch
@pytest.mark.parametrize("settings", ALIKE.values(), ids=ALIKE)
def test_the_server_takes_every_form_for_the_same(
    elasticsearch_url: str, index_prefix: str, settings: dict[str, Any]
) -> None:
    import httpx

    address = f"{elasticsearch_url}/{index_prefix}-forms"
    held = []
    for form in (PLAIN, settings):
        made = httpx.put(address, json={"settings": form, "mappings": MAPPINGS})
        assert made.status_code == 200, made.text
        (described,) = httpx.get(f"{address}/_settings").json().values()
        held.append({name: described["settings"]["index"][name] for name in ("analysis", "similarity")})
        httpx.delete(address)
    assert held[0] == held[1]


@pytest.mark.parametrize(
    "path", sorted(resources.folder("index_mappings").glob("*.json")), ids=lambda path: path.stem
)
def test_what_is_in_the_one_form_stays_as_if_it_was_put_together(path: Path) -> None:
    mapping = resources.read_json(path)
    assert canonical(mapping) == mapping
    assert canonical({**mapping, "settings": {"index": mapping["settings"]}}) == mapping
