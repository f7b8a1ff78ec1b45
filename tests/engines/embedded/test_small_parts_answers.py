"""An index that was written in parts gives the answers of one that was built anew."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.engines.base import State
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import Damaged, DataError, Replaced
from searchapp.lucene.index import segments
from searchapp.lucene.index.mapping import Schema
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of
from tests.engines.embedded.test_carried import SCORED, WORDS, edited, edits, fields, folder_of, texts
from tests.engines.embedded.test_damage import DOCUMENTS, HIGHLIGHT, QUERIES
from tests.engines.embedded.test_parts import hits, told
from tests.engines.embedded.test_small_parts import indexed
from tests.profile import FULL
from tests.search.comparing import comparable

pytestmark = pytest.mark.usefixtures("small_parts")

SMALL = 2
"""See `small_parts`: half of the documents may change, so that few are enough."""

NUMBER = re.compile(r"\d+ \[PerFieldSimilarity\]")


OF_WORDS: list[Any] = [
    {"match_all": {}},
    {"exists": {"field": "tag"}},
    {"range": {"year": {"gte": 0, "lte": 2}}},
    *({"match": {"text": word}} for word in WORDS),
    {"bool": {"should": [{"match": {"text": " ".join(WORDS)}}, {"match": {"tag": WORDS[0]}}]}},
    {"bool": {"must": [{"match": {"text": WORDS[0]}}], "must_not": [{"term": {"tag": WORDS[1]}}]}},
    {"match_phrase": {"text": " ".join(WORDS[:2])}},
]


def answers(index: EmbeddedIndex) -> list[Any]:
    """All that an index is asked for: rankings, hits with all that comes with them, and counts."""
    with closing(index):
        ranked = list(index.search(body(query, 40) for query in QUERIES))
        # Lucene's words name the number that a document has within the index, which is another one in parts.
        found = [
            NUMBER.sub("", json.dumps(comparable(one)))
            for query in QUERIES
            for one in index.find(body(query, 20, highlight=HIGHLIGHT, explain=True))
        ]
        return [ranked, found, [index.counts(query, {"tag": 9}) for query in QUERIES]]


def all_told(index: EmbeddedIndex) -> list[Any]:
    """What an index answers to queries of words, together and one by one, with all that comes with the hits."""
    asked = [body(query, 30) for query in OF_WORDS]
    return [hits(index, asked), [(hits(index, [one]), told(index, one, explain=True)) for one in asked]]


def changed(documents: Sequence[Document], chance: random.Random) -> list[Document]:
    """The documents, of which some have changed, some are gone and some are new."""
    found = []
    for document in documents:
        what = chance.random()
        other = chance.choice(DOCUMENTS)
        if what < 0.03:
            found.append(Document(f"{document.id}-{chance.randrange(999)}", other.text, document.fields))
        elif what < 0.06:
            found.append(Document(document.id, other.text, other.fields))
            continue
        elif what < 0.09:
            continue
        found.append(document)
    return found


def test_answers_are_those_of_an_index_that_was_built_anew(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    chance = random.Random(7)
    documents = list(DOCUMENTS)
    embedded.build("rings", spec_of(documents), documents)
    for _round in range(20 if FULL else 2):
        documents = changed(documents, chance)
        indexed(embedded, documents)
        embedded.build("whole", spec_of(documents), documents)
        assert answers(embedded.open("rings")) == answers(embedded.open("whole"))
        embedded.build("scored", spec_of(documents, SCORED), documents)
        assert answers(embedded.open_like("rings", SCORED)) == answers(embedded.open("scored"))


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
        patch.setattr(segments, "SMALL", 1)
        with closing(EmbeddedEngine(Path(home), "test")) as embedded:
            embedded.build("rings", spec_of(documents), documents)
            for round_, (steps, is_back) in enumerate(rounds):
                if is_back:
                    documents = list(before)
                edited(documents, steps, round_)
                indexed(embedded, documents)
                embedded.build("whole", spec_of(documents), documents)
                with closing(embedded.open("rings")) as ours, closing(embedded.open("whole")) as whole:
                    assert all_told(ours) == all_told(whole)


def test_an_open_index_answers_from_its_parts_after_all_was_merged(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    documents = DOCUMENTS[3:]
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert indexed(embedded, documents)
    index = embedded.open("rings")
    twin = index.twin()
    twin.verify()
    assert twin.info == index.info
    assert not indexed(embedded, documents, merged=True)
    assert answers(index) == answers(twin) == answers(embedded.open("rings"))
    with pytest.raises(Replaced):
        twin.twin()


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_twin_reads_no_mapping_again(
    embedded: EmbeddedEngine, in_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opened(embedded, DOCUMENTS, in_parts=in_parts)
    read, of = [], Schema.of

    def noted(mapping: Mapping[str, Any]) -> Schema:
        read.append(mapping)
        return of(mapping)

    monkeypatch.setattr(Schema, "of", noted)
    index.twin()
    assert not read
    embedded.open("rings")
    assert read


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_twin_is_not_of_another_index_that_was_made_in_its_place(
    embedded: EmbeddedEngine, in_parts: bool
) -> None:
    index = opened(embedded, DOCUMENTS, in_parts=in_parts)
    embedded.remove("rings")
    opened(embedded, DOCUMENTS[1:], in_parts=in_parts)
    with pytest.raises(Replaced):
        index.twin()


def opened(embedded: EmbeddedEngine, documents: Sequence[Document], *, in_parts: bool) -> EmbeddedIndex:
    """An index of documents that is new, open; in parts, without three of them."""
    embedded.build("rings", spec_of(documents), documents)
    assert not in_parts or indexed(embedded, documents[3:])
    return embedded.open("rings")


@pytest.mark.parametrize("part", ["000001/ids.terms.npy", "000002/new/checksums.npy", "000002/dead.npy"])
def test_a_damaged_part_is_not_ranked_on(embedded: EmbeddedEngine, tmp_path: Path, part: str) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert indexed(embedded, [*DOCUMENTS[3:], Document("new", "ring119")])
    assert folder_of(tmp_path, "rings").name == "000002"
    file = tmp_path / "indexes" / "test-rings" / part
    content = file.read_bytes()
    file.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
    with pytest.raises(Damaged, match=file.name):
        embedded.open("rings")


def test_a_base_that_is_missing_is_named(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert indexed(embedded, DOCUMENTS[3:])
    (tmp_path / "indexes" / "test-rings" / "000001").rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="000001, on which it builds, is missing"):
        embedded.open("rings")
    (stored,) = embedded.stored()
    assert stored.state is State.unreadable
