"""An index that was changed a little, run after run, answers as one that is built of all its documents."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.engines.base import BEST_FIRST, Body, State
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.engines.embedded.index import EmbeddedIndex
from searchapp.engines.embedded.parts import Parts
from searchapp.engines.embedded.storage import comparison
from searchapp.errors import DataError
from searchapp.model import Document
from tests.engines.embedded.conftest import spec_of
from tests.engines.embedded.test_carried import DOCUMENTS, SCORED, WORDS, edited, edits, fields, texts
from tests.engines.embedded.test_parts import hits, told
from tests.engines.embedded.test_small_parts import CHANGED, indexed, small_parts

__all__ = ["small_parts"]  # a fixture that all tests use

QUERIES: list[Any] = [
    {"match_all": {}},
    {"exists": {"field": "tag"}},
    {"range": {"year": {"gte": 0, "lte": 2}}},
    *({"match": {"text": word}} for word in WORDS),
    {"bool": {"should": [{"match": {"text": " ".join(WORDS)}}, {"match": {"tag": WORDS[0]}}]}},
    {"bool": {"must": [{"match": {"text": WORDS[0]}}], "must_not": [{"term": {"tag": WORDS[1]}}]}},
    {"match_phrase": {"text": " ".join(WORDS[:2])}},
]


def bodies(queries: Sequence[Any]) -> list[Body]:
    return [{"size": 30, "_source": False, "sort": BEST_FIRST, "query": query} for query in queries]


def require_same_answers(ours: EmbeddedIndex, whole: EmbeddedIndex, queries: Sequence[Any] = QUERIES) -> None:
    assert ours.info.documents == whole.info.documents
    asked = bodies(queries)
    assert hits(ours, asked) == hits(whole, asked)
    for body in asked:
        assert hits(ours, [body]) == hits(whole, [body])
        assert told(ours, {**body, "_source": True}, explain=True) == told(
            whole, {**body, "_source": True}, explain=True
        )


@hypothesis.settings(max_examples=max(8, hypothesis.settings().max_examples // 10), deadline=None)
@given(
    st.lists(st.tuples(texts, fields), min_size=1, max_size=20),
    st.lists(st.tuples(edits, st.booleans()), min_size=1, max_size=4),
)
def test_after_any_edits_answers_are_those_of_a_whole_build(
    first: list[tuple[str, Any]], rounds: list[tuple[Any, bool]]
) -> None:
    documents = [Document(str(number), text, others) for number, (text, others) in enumerate(first)]
    before = list(documents)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as home:
        patch.setattr(comparison, "SMALL", 1)
        with closing(EmbeddedEngine(Path(home), "test")) as embedded:
            embedded.build("rings", spec_of(documents), documents)
            for round_, (steps, is_back) in enumerate(rounds):
                if is_back:
                    documents = list(before)
                edited(documents, steps, round_)
                indexed(embedded, documents)
                embedded.build("whole", spec_of(documents), documents)
                ours, whole = embedded.open("rings"), embedded.open("whole")
                require_same_answers(ours, whole)
                ours.close()
                whole.close()


def test_what_is_open_answers_after_its_base_has_gone(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert indexed(embedded, CHANGED)
    embedded.build("whole", spec_of(CHANGED), CHANGED)
    asked = embedded.open("rings")
    assert isinstance(asked._reader, Parts)
    assert not indexed(embedded, DOCUMENTS, merged=True)
    folder = tmp_path / "indexes" / "test-rings"
    assert [entry.name for entry in folder.glob("0*")] == ["000003"]
    require_same_answers(asked, embedded.open("whole"), [{"match": {"text": "ring another field3"}}])


def test_other_similarities_score_what_is_in_parts(embedded: EmbeddedEngine) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert indexed(embedded, CHANGED)
    embedded.build("whole", spec_of(CHANGED, SCORED), CHANGED)
    require_same_answers(embedded.open_like("rings", SCORED), embedded.open("whole"))


def test_a_base_that_is_missing_is_named(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert indexed(embedded, CHANGED)
    (tmp_path / "indexes" / "test-rings" / "000001").rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="000001, on which it builds, is missing"):
        embedded.open("rings")
    (stored,) = embedded.stored()
    assert stored.state is State.unreadable
