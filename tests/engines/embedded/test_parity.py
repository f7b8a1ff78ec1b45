"""Both engines return the same hits for random queries and for real data."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from searchapp import resources
from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.client import Server as ServerVersion
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.formats.problems import Problems
from searchapp.model import Document, Topic
from searchapp.ranking import recipes
from searchapp.tasks.nlps.task import TASK
from tests.engines.embedded.conftest import body, spec_of
from tests.profile import FULL, SEED
from tests.scheduling import OLDER
from tests.search import older_version, queries
from tests.server.rest import Server


def test_random_queries_on_random_documents_return_the_same_hits(
    compared_url: str, request: pytest.FixtureRequest
) -> None:
    number = 20_000 if FULL else 200 if OLDER in request.node.name else 1_000
    with queries.engines(Server(compared_url)) as engines:
        for case in queries.cases(SEED, number):
            differences = [f"{entry.case['bodies']}\n{entry.text}" for entry in engines.differences(case)]
            assert not differences, "\n".join(differences)


def test_only_the_older_version_rounds_an_inner_conjunction(
    compared_url: str, compared_prefix: str, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, url=compared_url, index_prefix=compared_prefix)
    documents = [
        Document(str(n), f"{'ring ' * n}usa true foxes {'of ' * (n % 5)}states") for n in range(1, 30)
    ]
    inner = {"match": {"text": {"query": "states usa ring foxes", "operator": "and"}}}
    query = {"bool": {"must": [inner, {"match": {"text": {"query": "true", "boost": 0.3}}}]}}
    request_body = body(query)
    with (
        closing(EmbeddedEngine.at(settings)) as embedded,
        closing(ElasticsearchEngine.connect(settings)) as server,
    ):
        for engine in (embedded, server):
            engine.build("both", spec_of(documents), documents)
        (newer,) = embedded.open("both").search([request_body])
        with older_version.rewriting():
            (rounded,) = embedded.open("both").search([request_body])
        (hits,) = server.open("both").search([request_body])
        is_older = ServerVersion(server.info().version).is_older
    assert [hit.score for hit in newer] != [hit.score for hit in rounded]
    assert hits == (rounded if is_older else newer)


# tests/cli/test_real_data.py ranks them with the recipe bm25
@pytest.mark.parametrize("recipe_name", ["words"])
def test_dev_topics_of_nlps_rank_the_same_at_depth_500(
    nlps_data: Path,
    compared_url: str,
    compared_prefix: str,
    tmp_path: Path,
    recipe_name: str,
    request: pytest.FixtureRequest,
) -> None:
    step = 1 if FULL else 20 if OLDER in request.node.name else 10
    document_step = 1 if FULL else 4
    settings = Settings(home=tmp_path, url=compared_url, index_prefix=compared_prefix)
    documents = list(TASK.collection(nlps_data).documents.read(Problems()))[::document_step]
    all_topics: list[Topic] = TASK.collection(nlps_data).topics("dev", Problems())
    topics = all_topics[::step]
    recipe = recipes.load("nlps", recipe_name)
    spec = spec_of(documents, resources.index_mapping(TASK.info.mapping))
    with (
        closing(EmbeddedEngine.at(settings)) as embedded,
        closing(ElasticsearchEngine.connect(settings)) as server,
    ):
        rankings = []
        for engine in (embedded, server):
            engine.build("nlps", spec, documents)
            rankings.append(list(engine.open("nlps").search(recipe.body(topic, 500) for topic in topics)))
    assert len(all_topics) == 1913 and len(rankings[0]) == len(topics)
    differing = [
        topic.id for topic, hits, expected in zip(topics, *rankings, strict=True) if hits != expected
    ]
    assert not differing
