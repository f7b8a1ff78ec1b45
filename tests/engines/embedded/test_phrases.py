"""Where phrases stand, against a search of the texts themselves."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import numpy as np

from searchapp.engines.embedded import EmbeddedEngine
from searchapp.engines.embedded.index import EmbeddedIndex
from searchapp.engines.embedded.queries.leaves.phrase import Phrase
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of
from tests.profile import FULL

PHRASES = 3_000 if FULL else 300


def begins(text: str, phrase: Phrase) -> int:
    """How often a phrase begins in a text."""
    words = text.split()
    wanted = list(zip(phrase.terms, phrase.positions, strict=True))
    return sum(
        all(place + at < len(words) and words[place + at] == term for term, at in wanted)
        for place in range(len(words))
    )


def test_a_phrase_is_found_where_its_terms_stand(tmp_path: Path) -> None:
    random_ = random.Random(7)
    # Each word is rarer than the one before: what is looked for first stands at any place of a phrase.
    texts = [
        " ".join(random_.choices("abcdef", [32, 16, 8, 4, 2, 1], k=random_.randint(0, 12)))
        for _ in range(300)
    ]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    with closing(EmbeddedEngine(tmp_path, "test")) as engine:
        engine.build("phrases", spec_of(documents), documents)
        index = engine.open("phrases")
        found = 0
        for _ in range(PHRASES):
            positions = sorted(random_.sample(range(5), random_.randint(2, 4)))
            terms = tuple(random_.choices("abcdefg", k=len(positions)))  # there is no g
            phrase = Phrase("text", terms, tuple(position - positions[0] for position in positions))
            expected = {
                str(number): count for number, text in enumerate(texts) if (count := begins(text, phrase))
            }
            assert frequencies(phrase, index) == expected, phrase
            found += bool(expected)
        assert found > PHRASES / 4


def frequencies(phrase: Phrase, index: EmbeddedIndex) -> dict[str, float]:
    """How often a phrase stands in each document, by id."""
    reader = index._reader
    postings = phrase.postings(reader.fields["text"])
    assert (np.diff(postings.documents) > 0).all()
    return dict(zip(reader.ids_of(postings.documents), postings.frequencies.tolist(), strict=True))


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
