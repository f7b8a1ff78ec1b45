"""Where phrases stand, against a search of the texts themselves."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene import native
from searchapp.lucene.index import reader as term_positions
from searchapp.lucene.index.reader import Postings, TermPositions
from searchapp.lucene.queries import fulltext as phrase_leaf
from searchapp.lucene.queries.fulltext import Phrase
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of
from tests.profile import FULL

Whole = tuple[Any, Any, Any]
"""Documents, frequencies and positions of a term."""

PHRASES = 3_000 if FULL else 300

CHUNKS: list[tuple[ModuleType, str, list[int]]] = [
    (phrase_leaf, "DOCUMENTS_AT_ONCE", [3, 64, phrase_leaf.DOCUMENTS_AT_ONCE]),
    (phrase_leaf, "COMPILED", [0, phrase_leaf.COMPILED]),
    (phrase_leaf, "MARKED", [0, phrase_leaf.MARKED]),
    (phrase_leaf, "RARE_SHARE", [0, 3, 1000]),
    (term_positions, "RARE_SHARE", [0, 3, 1000]),
    (term_positions, "SELECTED_SHARE", [0, 2, 1000]),
]
"""In how many ways documents and places are gone through."""


def begins(text: str, phrase: Phrase) -> int:
    """How often a phrase begins in a text."""
    words = text.split()
    wanted = list(zip(phrase.terms, phrase.positions, strict=True))
    return sum(
        all(place + at < len(words) and words[place + at] == term for term, at in wanted)
        for place in range(len(words))
    )


@pytest.mark.parametrize("way", [nullcontext, native.without])
def test_a_phrase_is_found_where_its_terms_stand(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[], AbstractContextManager[None]],
) -> None:
    random_ = random.Random(7)
    # Each word is rarer than the one before: what is looked for first stands at any place of a phrase.
    texts = [
        " ".join(random_.choices("abcdef", [32, 16, 8, 4, 2, 1], k=random_.randint(0, 12)))
        for _ in range(300)
    ]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine, way():
        engine.build("phrases", spec_of(documents), documents)
        index = engine.open("phrases")
        found = 0
        for _ in range(PHRASES):
            positions = sorted(random_.sample(range(5), random_.randint(2, 4)))
            terms = tuple(random_.choices("abcdefg", k=len(positions)))  # there is no g
            phrase = Phrase("text", terms, tuple(position - positions[0] for position in positions))
            for module, name, values in CHUNKS:
                monkeypatch.setattr(module, name, random_.choice(values))
            expected = {
                str(number): count for number, text in enumerate(texts) if (count := begins(text, phrase))
            }
            assert frequencies(phrase, index) == expected, phrase
            some = np.array(sorted(random_.sample(range(300), random_.choice([1, 7, 150]))), np.int32)
            found_there = phrase.postings_among(index.index.searchers[0].reader.fields["text"], some)
            of_some = {id_: count for id_, count in expected.items() if int(id_) in some}
            assert by_id(found_there, index) == of_some, phrase
            found += bool(expected)
        assert found > PHRASES / 4


def test_frequent_terms_stand_together_as_often_as_they_do(library: Path, tmp_path: Path) -> None:
    """Frequencies of one byte, of two and of four, and terms that are far from each other."""
    texts = ["a " * 300 + "b", "b " * 70_000 + "a b", *["b"] * 50, "a b " * 20, "b a"]
    documents = [Document(f"{number:03}", text) for number, text in enumerate(texts)]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        engine.build("frequent", spec_of(documents), documents)
        index = engine.open("frequent")
        for terms in (("a", "b"), ("b", "a"), ("b", "b")):
            phrase = Phrase("text", terms, (0, 1))
            found = frequencies(phrase, index)
            assert found == {
                document.id: count for document in documents if (count := begins(document.text, phrase))
            }
            with native.without():
                assert frequencies(phrase, index) == found


def without_the_last(whole: Whole) -> Whole:
    documents, often, positions = whole
    return documents, often, positions[:-1]


def more_often(whole: Whole) -> Whole:
    documents, often, positions = whole
    return documents, often + np.uint8(200), positions


def fewer_frequencies(whole: Whole) -> Whole:
    documents, often, positions = whole
    return documents, often[:-1], positions


def other_numbers(whole: Whole) -> Whole:
    documents, often, positions = whole
    return documents, often, positions.astype(np.int64)


@pytest.mark.parametrize("alter", [without_the_last, more_often, fewer_frequencies, other_numbers])
def test_positions_that_are_nowhere_are_no_crash(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alter: Callable[[Whole], Whole]
) -> None:
    documents = [Document(str(number), "a b a b") for number in range(9)]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        engine.build("altered", spec_of(documents), documents)
        index = engine.open("altered")
        read_all = TermPositions.all
        monkeypatch.setattr(TermPositions, "all", lambda term: alter(read_all(term)))
        with pytest.raises(IndexError, match="positions"):
            frequencies(Phrase("text", ("a", "b"), (0, 1)), index)


def frequencies(phrase: Phrase, index: EmbeddedIndex) -> dict[str, float]:
    """How often a phrase stands in each document, by id."""
    return by_id(phrase.postings(index.index.searchers[0].reader.fields["text"]), index)


def by_id(postings: Postings, index: EmbeddedIndex) -> dict[str, float]:
    assert (np.diff(postings.documents) > 0).all()
    ids = index.index.reader.ids_of(postings.documents)
    return dict(zip(ids, postings.frequencies.tolist(), strict=True))


def test_further_hits_of_a_query_are_those_of_its_scores(tmp_path: Path) -> None:
    documents = [Document(str(number), "ring " * (number % 7) + "group") for number in range(60)]
    queries = [{"match": {"text": "ring"}}, {"match": {"text": "group"}}, {"match": {"text": "ring group"}}]
    random_ = random.Random(3)
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        engine.build("pages", spec_of(documents), documents)
        kept = engine.open("pages")
        for _ in range(60):
            asked = body(random_.choice(queries), 10) | {"from": random_.choice([0, 10, 20])}
            if random_.random() < 0.3:
                asked |= {"track_total_hits": True}
            fresh = kept.twin()
            assert kept.find(asked) == fresh.find(asked)
            fresh.close()
