"""Random documents and random queries give the same on both engines, and so does the real data."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from searchapp import resources
from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.client import Server as Answering
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.formats.problems import Problems
from searchapp.model import Document, Topic
from searchapp.ranking import recipes
from searchapp.tasks.nlps.task import TASK
from tests.engines.embedded.conftest import body, spec_of
from tests.profile import FULL, SEED
from tests.scheduling import OLDER
from tests.search import older, queries
from tests.server.rest import Server


def test_random_queries_on_random_documents_find_the_same(
    compared_url: str, request: pytest.FixtureRequest
) -> None:
    number = 20_000 if FULL else 200 if OLDER in request.node.name else 1_000
    with queries.engines(Server(compared_url)) as engines:
        for case in queries.cases(SEED, number):
            different = [f"{one.case['bodies']}\n{one.said}" for one in engines.differences(case)]
            assert not different, "\n".join(different)


def test_a_conjunction_inside_another_one_is_rounded_by_itself_on_the_older_version_only(
    compared_url: str, compared_prefix: str, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, url=compared_url, index_prefix=compared_prefix)
    documents = [
        Document(str(n), f"{'ring ' * n}usa true foxes {'of ' * (n % 5)}states") for n in range(1, 30)
    ]
    inner = {"match": {"text": {"query": "states usa ring foxes", "operator": "and"}}}
    query = {"bool": {"must": [inner, {"match": {"text": {"query": "true", "boost": 0.3}}}]}}
    asked = body(query)
    with (
        closing(EmbeddedEngine.at(settings)) as embedded,
        closing(ElasticsearchEngine.connect(settings)) as server,
    ):
        for engine in (embedded, server):
            engine.build("both", spec_of(documents), documents)
        (newer,) = embedded.open("both").search([asked])
        with older.rewriting():
            (rounded,) = embedded.open("both").search([asked])
        (found,) = server.open("both").search([asked])
        is_older = Answering(server.info().version).is_older
    assert [hit.score for hit in newer] != [hit.score for hit in rounded]
    assert found == (rounded if is_older else newer)


# Those of the recipe bm25 are ranked in tests/cli/test_real_data.py.
@pytest.mark.parametrize("recipe_name", ["words"])
def test_dev_topics_of_nlps_rank_the_same_at_depth_500(
    nlps_data: Path,
    compared_url: str,
    compared_prefix: str,
    tmp_path: Path,
    recipe_name: str,
    request: pytest.FixtureRequest,
) -> None:
    every = 1 if FULL else 20 if OLDER in request.node.name else 10
    part = 1 if FULL else 4
    settings = Settings(home=tmp_path, url=compared_url, index_prefix=compared_prefix)
    documents = list(TASK.collection(nlps_data).documents.read(Problems()))[::part]
    all_of_them: list[Topic] = TASK.collection(nlps_data).topics("dev", Problems())
    topics = all_of_them[::every]
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
    assert len(all_of_them) == 1913 and len(rankings[0]) == len(topics)
    differing = [
        topic.id for topic, found, expected in zip(topics, *rankings, strict=True) if found != expected
    ]
    assert not differing
