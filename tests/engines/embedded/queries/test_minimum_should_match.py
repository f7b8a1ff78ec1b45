"""How many optional clauses must match, as Elasticsearch documents `minimum_should_match`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of

WORDS = [*"abcdefghij"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedIndex]:
    """Documents that have none of the words, the first, the first two, and so on."""
    documents = [Document(str(count), " ".join(["x", *WORDS[:count]])) for count in range(len(WORDS) + 1)]
    with closing(EmbeddedEngine(tmp_path_factory.mktemp("words"), "test")) as engine:
        engine.build("words", spec_of(documents), documents)
        yield engine.open("words")


def least(index: EmbeddedIndex, clauses: int, minimum: Any) -> int | None:
    """The fewest of that many words that a hit has, None where nothing is found."""
    query = {"match": {"text": {"query": " ".join(WORDS[:clauses]), "minimum_should_match": minimum}}}
    (hits,) = index.search([body(query)])
    return min((int(hit.document_id) for hit in hits), default=None)


@pytest.mark.parametrize(
    ("clauses", "minimum", "expected"),
    [
        # a number; less than 0: how many may be missing
        *(
            (4, 3, 3),
            (4, "3", 3),
            (4, 0, 1),
            (4, -1, 3),
            (4, -3, 1),
            (4, -4, 1),
            (4, -9, 1),
            (4, 4, 4),
            (4, 5, None),
        ),
        # a share, rounded down; less than 0: the share that may be missing, rounded down
        *((4, "75%", 3), (5, "75%", 3), (4, "-25%", 3), (5, "-25%", 4), (10, "33%", 3), (10, "-33%", 7)),
        *((4, "100%", 4), (4, "0%", 1), (4, "-100%", 1), (3, "-20%", 3)),
        # up to that many all of them, for more what follows
        *((3, "3<90%", 3), (4, "3<90%", 3), (10, "3<90%", 9), (3, "3<-1", 3), (4, "3<-1", 3)),
        # several: that of the greatest number below how many there are
        *((2, "2<-25% 9<-3", 2), (4, "2<-25% 9<-3", 3), (8, "2<-25% 9<-3", 6), (10, "2<-25% 9<-3", 7)),
    ],
)
def test_this_many_words_must_match(
    index: EmbeddedIndex, clauses: int, minimum: Any, expected: int | None
) -> None:
    assert least(index, clauses, minimum) == expected
