"""A simulated serverless project receives only requests that it accepts, and ranks as the embedded engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.judgments import JudgmentIndex
from searchapp.errors import EngineRefused
from tests.cli.conftest import SAMPLE, Cli
from tests.engines.conftest import GROUPS, match, spec_of
from tests.server.faults import Serverless
from tests.server.rest import Server

MakeSettings = Callable[..., Settings]


@pytest.fixture
def settings_for(index_prefix: str, tmp_path: Path) -> MakeSettings:
    """Makes settings for a server, with the index prefix of the test."""
    return lambda url: Settings(home=tmp_path, url=url, index_prefix=index_prefix)


@pytest.fixture
def serverless(elasticsearch_url: str) -> Iterator[Serverless]:
    with Serverless(elasticsearch_url) as server:
        yield server


def test_the_simulation_refuses_as_a_project_does(serverless: Serverless, index_prefix: str) -> None:
    server = Server(serverless.url)
    assert server.request("GET", "/").json()["version"]["build_flavor"] == "serverless"
    for path in ("/_cluster/health", "/_nodes/stats", "/x/_stats/docs", "/_cat/shards"):
        answer = server.request("GET", path)
        assert answer.status == 410 and b"not available when running in serverless mode" in answer.body
    for settings in (
        {"number_of_shards": 2},
        {"index": {"number_of_replicas": 1}},
        {"index.auto_expand_replicas": "0-1"},
    ):
        answer = server.request("PUT", f"/{index_prefix}-x", {"settings": settings})
        assert answer.status == 400 and b"are not available when running in serverless mode" in answer.body
    allowed = {"analysis": {"analyzer": {"a": {"tokenizer": "standard"}}}, "index.refresh_interval": "-1"}
    assert server.request("PUT", f"/{index_prefix}-x", {"settings": allowed}, timeout=60).status == 200
    assert len(serverless.refused) == 7


def test_an_index_needs_no_refused_requests(serverless: Serverless, settings_for: MakeSettings) -> None:
    with closing(ElasticsearchEngine.connect(settings_for(serverless.url))) as engine:
        assert not engine.has_shards
        for digest in ("1", "2"):
            spec = spec_of(GROUPS)
            assert engine.build("groups", spec, GROUPS).documents == len(GROUPS), digest
        (hits,) = engine.open("groups").search([match("field")])
        assert [hit.document_id for hit in hits] == ["3"]
        assert engine.flaw("groups") == "" and engine.survey().is_serverless
        assert [index.bytes for index in engine.stored()] == [None]
        engine.repair("groups")
        engine.remove("groups")
        assert engine.stored() == []
    assert serverless.refused == []
    assert all("compatible-with" not in str(request.headers) for request in serverless.requests)


def test_missing_documents_are_detected(
    serverless: Serverless, settings_for: MakeSettings, elasticsearch_url: str
) -> None:
    with closing(ElasticsearchEngine.connect(settings_for(serverless.url))) as engine:
        version = engine.build("groups", spec_of(GROUPS), GROUPS).version
        server = Server(elasticsearch_url)
        server.request("PUT", f"/{version}/_settings", {"index.blocks.write": None})
        server.request("DELETE", f"/{version}/_doc/1?refresh=true")
        assert engine.flaw("groups") == f"{version} has 3 documents instead of 4"


def test_judgments_can_not_be_shared_on_a_project(serverless: Serverless, settings_for: MakeSettings) -> None:
    with pytest.raises(
        EngineRefused,
        match="is a serverless project, which does not report which judgments are stored safely",
    ):
        JudgmentIndex.connect(settings_for(serverless.url), 1, 10.0)


def test_the_version_of_a_project_is_not_checked(serverless: Serverless, settings_for: MakeSettings) -> None:
    with closing(Connection.open(settings_for(serverless.url))) as connection:
        assert (connection.server.version, connection.server.is_serverless) == ("8.11.0", True)


def test_commands_work_and_name_the_service(
    offline: Cli, serverless: Serverless, index_prefix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEARCHAPP_URL", serverless.url)
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", index_prefix)
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    refused = offline("index", "nlps", "--data", SAMPLE, "--shards", "2")
    assert refused.code == 2 and "manages shards itself: leave out --shards" in refused.stderr
    assert offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", tmp_path / "run").code == 0
    checks = {check["name"]: check for check in offline("doctor", "--json").json["checks"]}
    assert "a serverless project, which manages shards and replicas" in checks["nodes"]["finding"]
    assert checks["engines agree"]["verdict"] == "ok"
    finding = checks["engines agree"]["finding"]
    assert "both engines return the same documents and scores for 10 sample topics" in finding
    assert offline("indexes", "list").code == 0
    assert serverless.refused == []
