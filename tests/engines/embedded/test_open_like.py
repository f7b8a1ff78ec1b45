"""An index opened with other similarities scores like an index built with them, and rankings can be cached."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from searchapp import tasks
from searchapp.app.index import index_task
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused, QueryRefused
from searchapp.formats.problems import Problems
from searchapp.lucene import native
from searchapp.lucene.index.index_settings import similarities, with_similarities
from searchapp.lucene.search import compiled
from searchapp.model import Document, Hits
from searchapp.progress import SilentProgress
from searchapp.ranking import recipes
from tests.app.conftest import SAMPLES
from tests.engines.embedded.conftest import MAPPING, body, spec_of

TASK = tasks.load("nlps")
PARAMETERS = {"statement": {"k1": 3.0, "b": 0.1}, "prose": {"b": 0.9}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("like")
    collection = TASK.collection(SAMPLES / "nlps")
    with closing(EmbeddedEngine(home, "t")) as engine:
        index_task(TASK, engine, collection, SilentProgress())
        documents = list(collection.documents.read(Problems()))
        mapping = with_similarities(TASK.index_mapping(), PARAMETERS)
        engine.build("built", IndexSpec(mapping, len(documents), "built", "built"), documents)
    return home


@pytest.fixture
def engine(home: Path) -> Iterator[EmbeddedEngine]:
    with closing(EmbeddedEngine(home, "t", remembered=1 << 20)) as opened:
        yield opened


def bodies() -> list[dict[str, Any]]:
    query = recipes.load("nlps", "bm25")
    topics = TASK.collection(SAMPLES / "nlps").topics("dev", Problems())
    return [query.body(topic, 20) for topic in topics]


def test_it_scores_like_an_index_built_with_the_similarities(engine: EmbeddedEngine) -> None:
    like = engine.open_like("nlps", with_similarities(TASK.index_mapping(), PARAMETERS))
    built, shipped = engine.open("built"), engine.open("nlps")
    assert list(like.search(bodies())) == list(built.search(bodies())) != list(shipped.search(bodies()))
    assert list(like.twin().search(bodies())) == list(built.search(bodies()))


def test_another_mapping_is_rejected(engine: EmbeddedEngine) -> None:
    with pytest.raises(EngineRefused, match="more than its similarities"):
        engine.open_like("nlps", tasks.load("explanation-2019").index_mapping())


def test_cached_rankings_equal_searched_ones(home: Path, engine: EmbeddedEngine) -> None:
    with closing(EmbeddedEngine(home, "t")) as plain:
        expected: list[Hits] = list(plain.open("nlps").search(bodies()))
    index = engine.open("nlps")
    assert list(index.search(bodies()[:4])) == expected[:4]
    progress: list[int] = []
    assert list(index.search(bodies(), progress.append)) == expected and sum(progress) == len(expected)
    assert list(index.search(reversed(bodies()))) == list(reversed(expected))
    twice = [*bodies(), *reversed(bodies()), bodies()[3], bodies()[3]]
    expected_twice = [*expected, *reversed(expected), expected[3], expected[3]]
    assert list(engine.open("nlps").search(twice)) == expected_twice
    invalid = [*bodies()[:6], {"query": {"no such": {}}, "size": 1}]
    with pytest.raises(QueryRefused) as error:
        list(index.search(invalid))
    assert error.value.place == 6
    with closing(EmbeddedEngine(home, "t", remembered=200)) as small:
        index = small.open("nlps")
        assert list(index.search(bodies())) == list(index.search(bodies())) == expected
        assert list(small.open("nlps").search(twice)) == expected_twice


@pytest.mark.parametrize("remembered", [200, 1 << 20])
def test_repeated_bodies_have_their_own_rankings(home: Path, remembered: int) -> None:
    """Equal lines of a debate give equal bodies, with a large and a small cache."""
    first, second, third = bodies()[:3]
    repeated = [first, second, first, first, third, second]
    with closing(EmbeddedEngine(home, "t")) as plain:
        expected: list[Hits] = list(plain.open("nlps").search(repeated))
    assert len({hits.document_ids for hits in expected}) == 3
    with closing(EmbeddedEngine(home, "t", remembered=remembered)) as engine:
        index = engine.open("nlps")
        assert list(index.search(repeated)) == expected
        # also with a search of the same bodies in between
        rankings = engine.open("nlps").search(repeated)
        first_ranking = next(rankings)
        assert list(index.search(repeated)) == expected
        assert [first_ranking, *rankings] == expected


def test_similarities_of_text_fields_are_read_and_replaced() -> None:
    assert similarities(TASK.index_mapping())["statement"] == {"k1": 0.9, "b": 0.4}
    changed = similarities(with_similarities(TASK.index_mapping(), PARAMETERS))
    assert changed["statement"] == {"k1": 3.0, "b": 0.1} and changed["prose"] == {"k1": 0.9, "b": 0.9}
    assert with_similarities(TASK.index_mapping(), {}) == TASK.index_mapping()


@pytest.mark.parametrize("functions", [nullcontext, native.without])
def test_impacts_of_other_similarities_are_not_used(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    functions: Callable[[], AbstractContextManager[None]],
) -> None:
    monkeypatch.setattr(compiled, "SIZE_SHARE", 0)
    documents = [
        Document(str(number), "a " * (1 + number * 7 % 40) + "b " * (number * 5 % 30))
        for number in range(400)
    ]
    mapping = copy.deepcopy(MAPPING)
    mapping["settings"]["similarity"]["flat"] = {"type": "BM25", "k1": 8.0, "b": 1.0}
    with closing(EmbeddedEngine(tmp_path, "t")) as engine, functions():
        engine.build("shipped", spec_of(documents), documents)
        engine.build("built", spec_of(documents, mapping), documents)
        like, built = engine.open_like("shipped", mapping), engine.open("built")
        for size, words in itertools.product((1, 3, 10), ("a", "b", "a b")):
            bodies_ = [body({"match": {"text": words}}, size)]
            expected = list(built.search(bodies_))
            assert list(like.search(bodies_)) == expected
            details = built.find(bodies_[0] | {"track_total_hits": True})
            assert [result.hit for result in details] == list(*expected)
