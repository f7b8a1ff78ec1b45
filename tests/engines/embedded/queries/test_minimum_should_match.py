"""`minimum_should_match` follows the documentation of Elasticsearch."""

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
    """Index a document without words, one with the first word, one with the first two words and so on."""
    documents = [Document(str(count), " ".join(["x", *WORDS[:count]])) for count in range(len(WORDS) + 1)]
    with closing(EmbeddedEngine(tmp_path_factory.mktemp("words"), "test")) as engine:
        engine.build("words", spec_of(documents), documents)
        yield engine.open("words")


def fewest_words(index: EmbeddedIndex, clauses: int, minimum: Any) -> int | None:
    """Return the smallest number of query words in a hit, None if there is no hit."""
    query = {"match": {"text": {"query": " ".join(WORDS[:clauses]), "minimum_should_match": minimum}}}
    (hits,) = index.search([body(query)])
    return min((int(hit.document_id) for hit in hits), default=None)


@pytest.mark.parametrize(
    ("clauses", "minimum", "expected"),
    [
        # a number; a negative one is the number of clauses that may be missing
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
        # a share, rounded down; a negative one is the share that may be missing, rounded down
        *((4, "75%", 3), (5, "75%", 3), (4, "-25%", 3), (5, "-25%", 4), (10, "33%", 3), (10, "-33%", 7)),
        *((4, "100%", 4), (4, "0%", 1), (4, "-100%", 1), (3, "-20%", 3)),
        # up to this number of clauses all must match; for more, the part after `<` applies
        *((3, "3<90%", 3), (4, "3<90%", 3), (10, "3<90%", 9), (3, "3<-1", 3), (4, "3<-1", 3)),
        # several conditions: the one with the greatest number below the number of clauses
        *((2, "2<-25% 9<-3", 2), (4, "2<-25% 9<-3", 3), (8, "2<-25% 9<-3", 6), (10, "2<-25% 9<-3", 7)),
    ],
)
def test_the_minimum_of_words_must_match(
    index: EmbeddedIndex, clauses: int, minimum: Any, expected: int | None
) -> None:
    assert fewest_words(index, clauses, minimum) == expected
