"""An index scores as if it had been made with other similarities; its answers may be remembered."""

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
NUMBERS = {"statement": {"k1": 3.0, "b": 0.1}, "prose": {"b": 0.9}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("like")
    collection = TASK.collection(SAMPLES / "nlps")
    with closing(EmbeddedEngine(home, "t")) as engine:
        index_task(TASK, engine, collection, SilentProgress())
        documents = list(collection.documents.read(Problems()))
        mapping = with_similarities(TASK.index_mapping(), NUMBERS)
        engine.build("made", IndexSpec(mapping, len(documents), "made", "made"), documents)
    return home


@pytest.fixture
def engine(home: Path) -> Iterator[EmbeddedEngine]:
    with closing(EmbeddedEngine(home, "t", remembered=1 << 20)) as opened:
        yield opened


def bodies() -> list[dict[str, Any]]:
    query = recipes.load("nlps", "bm25")
    topics = TASK.collection(SAMPLES / "nlps").topics("dev", Problems())
    return [query.body(topic, 20) for topic in topics]


def test_it_answers_as_an_index_that_was_made_so(engine: EmbeddedEngine) -> None:
    like = engine.open_like("nlps", with_similarities(TASK.index_mapping(), NUMBERS))
    made, shipped = engine.open("made"), engine.open("nlps")
    assert list(like.search(bodies())) == list(made.search(bodies())) != list(shipped.search(bodies()))
    assert list(like.twin().search(bodies())) == list(made.search(bodies()))


def test_another_mapping_is_refused(engine: EmbeddedEngine) -> None:
    with pytest.raises(EngineRefused, match="more than its similarities"):
        engine.open_like("nlps", tasks.load("explanation-2019").index_mapping())


def test_what_is_remembered_is_what_was_searched(home: Path, engine: EmbeddedEngine) -> None:
    with closing(EmbeddedEngine(home, "t")) as plain:
        expected: list[Hits] = list(plain.open("nlps").search(bodies()))
    index = engine.open("nlps")
    assert list(index.search(bodies()[:4])) == expected[:4]
    done: list[int] = []
    assert list(index.search(bodies(), done.append)) == expected and sum(done) == len(expected)
    assert list(index.search(reversed(bodies()))) == list(reversed(expected))
    twice = [*bodies(), *reversed(bodies()), bodies()[3], bodies()[3]]
    asked_twice = [*expected, *reversed(expected), expected[3], expected[3]]
    assert list(engine.open("nlps").search(twice)) == asked_twice
    refused = [*bodies()[:6], {"query": {"no such": {}}, "size": 1}]
    with pytest.raises(QueryRefused) as caught:
        list(index.search(refused))
    assert caught.value.place == 6
    with closing(EmbeddedEngine(home, "t", remembered=200)) as small:
        index = small.open("nlps")
        assert list(index.search(bodies())) == list(index.search(bodies())) == expected
        assert list(small.open("nlps").search(twice)) == asked_twice


@pytest.mark.parametrize("remembered", [200, 1 << 20])
def test_bodies_that_are_asked_twice_have_their_own_answers(home: Path, remembered: int) -> None:
    """As lines of a debate that say the same, whether there is room to remember them or not."""
    first, second, third = bodies()[:3]
    asked = [first, second, first, first, third, second]
    with closing(EmbeddedEngine(home, "t")) as plain:
        expected: list[Hits] = list(plain.open("nlps").search(asked))
    assert len({hits.document_ids for hits in expected}) == 3
    with closing(EmbeddedEngine(home, "t", remembered=remembered)) as engine:
        index = engine.open("nlps")
        assert list(index.search(asked)) == expected
        # Also where another asks for the same in between.
        drawn = engine.open("nlps").search(asked)
        found = [next(drawn)]
        assert list(index.search(asked)) == expected
        assert [*found, *drawn] == expected


def test_similarities_are_those_of_the_texts() -> None:
    assert similarities(TASK.index_mapping())["statement"] == {"k1": 0.9, "b": 0.4}
    changed = similarities(with_similarities(TASK.index_mapping(), NUMBERS))
    assert changed["statement"] == {"k1": 3.0, "b": 0.1} and changed["prose"] == {"k1": 0.9, "b": 0.9}
    assert with_similarities(TASK.index_mapping(), {}) == TASK.index_mapping()


@pytest.mark.parametrize("way", [nullcontext, native.without])
def test_the_impacts_of_other_similarities_bound_no_scores(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[], AbstractContextManager[None]],
) -> None:
    monkeypatch.setattr(compiled, "SIZE_SHARE", 0)
    documents = [
        Document(str(number), "a " * (1 + number * 7 % 40) + "b " * (number * 5 % 30))
        for number in range(400)
    ]
    mapping = copy.deepcopy(MAPPING)
    mapping["settings"]["similarity"]["flat"] = {"type": "BM25", "k1": 8.0, "b": 1.0}
    with closing(EmbeddedEngine(tmp_path, "t")) as engine, way():
        engine.build("shipped", spec_of(documents), documents)
        engine.build("made", spec_of(documents, mapping), documents)
        like, made = engine.open_like("shipped", mapping), engine.open("made")
        for size, words in itertools.product((1, 3, 10), ("a", "b", "a b")):
            asked = [body({"match": {"text": words}}, size)]
            expected = list(made.search(asked))
            assert list(like.search(asked)) == expected
            assert [found.hit for found in made.find(asked[0] | {"track_total_hits": True})] == list(
                *expected
            )
