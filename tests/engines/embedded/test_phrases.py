"""Phrase frequencies, compared with a search in the texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene import native
from searchapp.lucene.index import reader as term_positions
from searchapp.lucene.index.arrays import StoredArray
from searchapp.lucene.index.postings import StoredPostings
from searchapp.lucene.index.reader import Postings
from searchapp.lucene.queries import phrase as phrase_leaf
from searchapp.lucene.queries.phrase import MultiPhrase, Phrase
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of
from tests.profile import FULL

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
"""Constants that choose how documents and positions are processed, with values to test."""


def count_occurrences(text: str, phrase: MultiPhrase) -> int:
    """Return how often a phrase occurs in a text."""
    words = text.split()
    positions = list(zip(phrase.terms, phrase.positions, strict=True))
    return sum(
        all(start + offset < len(words) and words[start + offset] in terms for terms, offset in positions)
        for start in range(len(words))
    )


@pytest.mark.parametrize("functions", [nullcontext, native.without])
def test_phrases_have_the_frequencies_of_a_text_search(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    functions: Callable[[], AbstractContextManager[None]],
) -> None:
    random_ = random.Random(7)
    # words of different frequencies, because the search starts with the rarest term of a phrase
    texts = [
        " ".join(random_.choices("abcdef", [32, 16, 8, 4, 2, 1], k=random_.randint(0, 12)))
        for _ in range(300)
    ]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine, functions():
        engine.build("phrases", spec_of(documents), documents)
        index = engine.open("phrases")
        matching_phrases = 0
        for _ in range(PHRASES):
            positions = sorted(random_.sample(range(5), random_.randint(2, 4)))
            # no text has g
            terms = tuple(
                tuple(set(random_.choices("abcdefg", [9, 9, 9, 9, 9, 1, 1], k=random_.choice([1, 1, 1, 3]))))
                for _ in positions
            )
            phrase = MultiPhrase("text", terms, tuple(position - positions[0] for position in positions))
            for module, name, values in CHUNKS:
                monkeypatch.setattr(module, name, random_.choice(values))
            expected = {
                str(number): count
                for number, text in enumerate(texts)
                if (count := count_occurrences(text, phrase))
            }
            assert frequencies(phrase, index) == expected, phrase
            subset = np.array(sorted(random_.sample(range(300), random_.choice([1, 7, 150]))), np.int32)
            in_subset = phrase.postings_among(index.index.searchers[0].reader.fields["text"], subset)
            expected_in_subset = {id_: count for id_, count in expected.items() if int(id_) in subset}
            assert by_id(in_subset, index) == expected_in_subset, phrase
            matching_phrases += bool(expected)
        assert matching_phrases > PHRASES / 4


def test_phrases_of_frequent_terms_are_counted(library: Path, tmp_path: Path) -> None:
    """The terms have frequencies of one, two and four bytes, and distant positions."""
    texts = ["a " * 300 + "b", "b " * 70_000 + "a b", *["b"] * 50, "a b " * 20, "b a"]
    documents = [Document(f"{number:03}", text) for number, text in enumerate(texts)]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        engine.build("frequent", spec_of(documents), documents)
        index = engine.open("frequent")
        for terms in (("a", "b"), ("b", "a"), ("b", "b")):
            phrase = Phrase.of("text", terms, (0, 1))
            counts = frequencies(phrase, index)
            assert counts == {
                document.id: count
                for document in documents
                if (count := count_occurrences(document.text, phrase))
            }
            with native.without():
                assert frequencies(phrase, index) == counts


def without_last_position(postings: StoredPostings) -> StoredPostings:
    return postings._replace(positions=StoredArray(postings.positions.all()[:-1]))


def with_higher_frequencies(postings: StoredPostings) -> StoredPostings:
    return postings._replace(frequencies=StoredArray(postings.frequencies.all() + 200))


def without_last_frequency(postings: StoredPostings) -> StoredPostings:
    return postings._replace(frequencies=StoredArray(postings.frequencies.all()[:-1]))


def unpacked(postings: StoredPostings) -> StoredPostings:
    """Return the postings in arrays, as in an index of format 7."""
    return StoredPostings(
        starts=postings.starts,
        documents=StoredArray(postings.documents.all()),
        frequencies=StoredArray(postings.frequencies.all().astype(np.uint8)),
        positions=StoredArray(postings.positions.all()),
        unpacked_position_starts=StoredArray(postings.position_starts()),
    )


@pytest.mark.parametrize("alter", [without_last_position, with_higher_frequencies, without_last_frequency])
def test_invalid_positions_raise_an_error_instead_of_crashing(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    alter: Callable[[StoredPostings], StoredPostings],
) -> None:
    documents = [Document(str(number), "a b a b") for number in range(9)]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        engine.build("altered", spec_of(documents), documents)
        index = engine.open("altered")
        phrase = Phrase.of("text", ("a", "b"), (0, 1))
        field = index.index.searchers[0].reader.fields["text"]
        expected, postings = frequencies(phrase, index), unpacked(field._postings)
        monkeypatch.setattr(field, "_postings", postings)
        assert frequencies(phrase, index) == expected
        monkeypatch.setattr(field, "_postings", alter(postings))
        with pytest.raises(IndexError, match="postings|positions"):
            frequencies(phrase, index)


def frequencies(phrase: Phrase | MultiPhrase, index: EmbeddedIndex) -> dict[str, float]:
    """Return the frequency of a phrase in each document, by id."""
    return by_id(phrase.postings(index.index.searchers[0].reader.fields["text"]), index)


def by_id(postings: Postings, index: EmbeddedIndex) -> dict[str, float]:
    assert (np.diff(postings.documents) > 0).all()
    ids = index.index.reader.ids_of(postings.documents)
    return dict(zip(ids, postings.frequencies.tolist(), strict=True))


def test_pages_from_cached_scores_equal_pages_of_a_new_reader(tmp_path: Path) -> None:
    documents = [Document(str(number), "ring " * (number % 7) + "group") for number in range(60)]
    queries = [{"match": {"text": "ring"}}, {"match": {"text": "group"}}, {"match": {"text": "ring group"}}]
    random_ = random.Random(3)
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        engine.build("pages", spec_of(documents), documents)
        cached = engine.open("pages")
        for _ in range(60):
            request = body(random_.choice(queries), 10) | {"from": random_.choice([0, 10, 20])}
            if random_.random() < 0.3:
                request |= {"track_total_hits": True}
            fresh = cached.twin()
            assert cached.find(request) == fresh.find(request)
            fresh.close()
