"""Both engines answer the searches of kinds of applications alike, or the embedded engine rejects them as recorded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import Engine, Index
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.client import Server as ServerVersion
from searchapp.engines.embedded import EmbeddedEngine
from tests.search import applications
from tests.search.applications import Application, ranking
from tests.search.comparing import comparable_answer
from tests.server.rest import Server

CHANGED = {("code_host", "searches.file")}
"""Searches of a field with the tokenizer `path_hierarchy`, whose lengths are other ones in 8.19."""

RECORD = "after a change of the embedded engine, run `python -m tests.search.applications`"


@pytest.fixture(params=applications.names())
def application(request: pytest.FixtureRequest) -> Application:
    return Application.load(request.param)


def test_rejections_are_recorded(application: Application, tmp_path: Path) -> None:
    with closing(EmbeddedEngine(tmp_path, "applications")) as engine:
        outcomes = application.outcomes(engine)
    assert outcomes == (application.rejected, application.ranked), RECORD


def test_documented_numbers_are_those_of_the_files() -> None:
    names = applications.names()
    assert len(names) == 40
    table = applications.table(list(map(Application.load, names)))
    assert table in applications.DOCUMENTATION.read_text(encoding="utf-8"), RECORD


def test_accepted_searches_have_the_same_hits_on_both_engines(
    application: Application, elasticsearch_url: str, index_prefix: str, tmp_path: Path
) -> None:
    if "body" in application.not_compared:
        pytest.skip(f"the server lacks {application.not_compared['body']}")
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix)
    server = Server(elasticsearch_url)
    with (
        closing(ElasticsearchEngine.connect(settings)) as theirs,
        closing(EmbeddedEngine.at(settings)) as ours,
    ):
        their_index = built(application, theirs)
        for path, body in application.compared():  # also those that the embedded engine rejects
            answer = server.request("POST", f"/{their_index.info.version}/_search", body, timeout=60)
            assert answer.status == 200 and not answer.json()["_shards"]["failed"], (path, answer.body)
        if not application.is_indexed:
            return
        our_index = built(application, ours)
        is_older = ServerVersion(theirs.info().version).is_older
        for path, body in application.compared():
            if is_older and (application.name, path) in CHANGED:
                continue
            if path not in application.rejected:
                request = ranking(body) if path in application.ranked else body
                answers = [comparable_answer(index.answer(request)) for index in (our_index, their_index)]
                assert answers[0] == answers[1], path


def built(application: Application, engine: Engine) -> Index:
    application.build(engine, compared=True)
    return engine.open(application.name)
