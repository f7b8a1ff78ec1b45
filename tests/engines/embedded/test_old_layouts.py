"""Indexes of earlier searchapps are read as what they are, or refused; they are never misread.

`tests/fixtures/indexes` has one index of each layout that there was, made of DOCUMENTS by the searchapp of its time:

    format-1            searchapp 0.1: no checksums
    format-1-owner      the manifest also says whose index it is
    format-2            searchapp 0.2: checksums of blocks, rows, the manifest and the pointer
    format-2-impacts    impacts of postings, with which searches of large indexes are pruned
    format-2-digests    of documents, and of the code: what has not changed is taken over; what is written today
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.engines.embedded.index import EmbeddedIndex
from searchapp.errors import DataError
from searchapp.model import Document
from tests.engines.embedded.conftest import body

RECORDED = sorted((Path(__file__).parents[2] / "fixtures" / "indexes").glob("*.tar.gz"))
VERSION = Path("indexes", "searchapp-rings", "000001")

MAPPING: dict[str, Any] = {
    "settings": {"similarity": {"flat": {"type": "BM25", "k1": 0.9, "b": 0.4}}},
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "text": {
                "type": "text",
                "analyzer": "english",
                "fields": {"plain": {"type": "text", "analyzer": "standard", "similarity": "flat"}},
            },
            "tag": {"type": "keyword"},
            "year": {"type": "integer"},
        },
    },
}
WORDS = ["ring", "group", "field", "module", "ideal", "prime", "foxes", "running", "quickly", "theorem"]
DOCUMENTS = [
    Document(
        f"d{number}",
        " ".join(WORDS[number * place % 10] for place in range(1, 3 + number % 7)),
        {"tag": ["even", "odd"][number % 2], "year": 1900 + number},
    )
    for number in range(40)
]
QUERIES: list[dict[str, Any]] = [
    {"match": {"text": "running prime groups"}},
    {"bool": {"should": [{"match": {"text": "foxes"}}, {"match": {"text.plain": "ring theorem"}}]}},
    {"match_phrase": {"text.plain": "prime ring"}},
    {"bool": {"must": {"match": {"text": "ring"}}, "filter": {"range": {"year": {"gte": 1910, "lt": 1930}}}}},
    {"bool": {"must": {"match": {"text": "ideal"}}, "must_not": {"term": {"tag": "odd"}}}},
    {"prefix": {"text.plain": "r"}},
    {"terms": {"id": ["d3", "d39", "d40"]}},
    {"exists": {"field": "year"}},
]
"""They read every file of an index."""


@pytest.fixture(params=RECORDED, ids=[path.name.removesuffix(".tar.gz") for path in RECORDED])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A home folder with an index of an earlier searchapp."""
    with tarfile.open(request.param) as recorded:
        recorded.extractall(tmp_path / "indexes", filter="data")
    return tmp_path


@pytest.fixture
def engine(home: Path) -> Iterator[EmbeddedEngine]:
    with closing(EmbeddedEngine(home, "searchapp")) as opened:
        yield opened


def spec() -> IndexSpec:
    return IndexSpec(MAPPING, len(DOCUMENTS), "rings")


def answers(index: EmbeddedIndex) -> list[Any]:
    found = index.search([body(query) for query in QUERIES])
    ranked = [[(hit.document_id, hit.score) for hit in hits] for hits in found]
    explained = [index.find({**body(query), "_source": True, "explain": True}) for query in QUERIES]
    return [ranked, explained]


def test_every_layout_is_recorded() -> None:
    assert len(RECORDED) == 5


def test_an_old_index_answers_as_one_that_is_made_today(engine: EmbeddedEngine, tmp_path: Path) -> None:
    with closing(EmbeddedEngine(tmp_path / "new", "searchapp")) as today:
        today.build("rings", spec(), DOCUMENTS)
        expected = answers(today.open("rings"))
    assert all(hits for hits in expected[0])
    assert answers(engine.open("rings")) == expected
    info = engine.index_info("rings")
    assert info is not None
    assert (info.documents, info.digest, info.owner) == (len(DOCUMENTS), "rings", "")
    assert engine.names() == ["rings"]
    (stored,) = engine.stored()
    assert (stored.name, stored.state.name) == ("rings", "serves")


def test_an_old_index_that_was_altered_is_refused(engine: EmbeddedEngine, home: Path) -> None:
    sound = engine.open("rings")
    sound.close()
    for file in sorted((home / VERSION).iterdir()):
        if file.name == "verified":
            continue
        content = file.read_bytes()
        turned = bytearray(content)
        turned[-1] ^= 1
        file.write_bytes(turned)
        with pytest.raises(DataError, match=r"is damaged .*: build it again with `searchapp index"):
            answers(engine.open("rings"))
        assert engine.index_info("rings") is None, file.name
        file.write_bytes(content)
    assert answers(engine.open("rings"))


def test_an_old_index_is_replaced_by_a_new_one(engine: EmbeddedEngine, home: Path) -> None:
    expected = answers(engine.open("rings"))
    info = engine.build("rings", spec(), DOCUMENTS)
    assert info.version == "searchapp-rings-000002"
    assert not (home / VERSION).exists()
    assert answers(engine.open("rings")) == expected


def test_nothing_is_taken_over_from_what_other_code_has_made(engine: EmbeddedEngine) -> None:
    assert engine.compare("rings", MAPPING) is None
    engine.build("rings", spec(), DOCUMENTS)
    assert engine.compare("rings", MAPPING) is not None
