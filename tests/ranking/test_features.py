"""Features of texts for linear models."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from searchapp.ranking import learning
from searchapp.ranking.learning import (
    MIN_DOCUMENT_FREQUENCY,
    PATTERN,
    WORDS,
    Vocabulary,
    count_features,
    kind_of,
)

TEXTS = [
    "Who wrote The Silent River?",
    "Who wrote the Red Book?",
    "Where is the river Ara?",
    "Where is Port Sele?",
    "When was Port Sele founded in 1820?",
    "",
]


def of_kind(kind: str, text: str) -> set[str]:
    return {feature.partition(": ")[2] for feature in count_features(text) if kind_of(feature) == kind}


def test_features_of_each_kind() -> None:
    text = "Who wrote The Silent River?"
    assert {"who", "wrote the", "the silent river"} <= of_kind("words", text)
    assert {" w", "who", "ilen", "ver "} <= of_kind("letters", text)
    assert of_kind("begins", text) == {"who", "who wrote", "who wrote the", "who wrote the silent"}
    assert of_kind("ends", text) == {"river", "silent river"}
    assert {"^ who wrote #", "# ? $"} <= of_kind("pattern", text)
    assert "silent" not in of_kind("pattern", text)
    assert "in # ?" in of_kind("pattern", "When was it founded in 1820?")


def test_rare_features_are_excluded() -> None:
    vocabulary, vectors = Vocabulary.of(TEXTS)
    assert {"words: who wrote", "begins: where is", "pattern: where is"} <= set(vocabulary.features)
    assert "words: silent" not in vocabulary.features
    for feature in vocabulary.features:
        frequency = sum(feature in count_features(text) for text in TEXTS)
        assert frequency >= MIN_DOCUMENT_FREQUENCY[kind_of(feature)]
    assert vectors.shape == (len(TEXTS), len(vocabulary.features))
    assert list(vocabulary.features) == sorted(vocabulary.features)


@pytest.mark.parametrize("kind", ["words", "letters", "pattern"])
def test_weights_of_features_equal_scikit_learn(kind: str) -> None:
    vocabulary, vectors = Vocabulary.of(TEXTS)
    features = [name for name in vocabulary.features if kind_of(name) == kind]

    def analyze(text: str) -> list[str]:
        return [
            name
            for name, count in count_features(text).items()
            for _ in range(count)
            if kind_of(name) == kind
        ]

    vectorizer = TfidfVectorizer(
        analyzer=analyze, min_df=MIN_DOCUMENT_FREQUENCY[kind], sublinear_tf=True
    ).fit(TEXTS)
    assert list(vectorizer.get_feature_names_out()) == features
    columns = [vocabulary.features.index(name) for name in features]
    expected = vectorizer.transform(TEXTS).toarray()
    np.testing.assert_allclose(vectors.toarray()[:, columns], expected, rtol=0, atol=1e-12)
    assert max(np.linalg.norm(expected, axis=1)) == pytest.approx(1)


@given(st.text(max_size=40))
@example("a\x0bb\x0cc\x1cd\x85e\u2028f\rg\n!\u2029?")  # what separates lines for Python
def test_all_texts_have_features_of_known_kinds_and_a_finite_vector(text: str) -> None:
    counts = count_features(text)
    assert {kind_of(feature) for feature in counts} <= MIN_DOCUMENT_FREQUENCY.keys()
    vocabulary, vectors = Vocabulary.of([text] * 3)
    assert len(vocabulary.features) == len(counts)
    assert math.isfinite(float(vectors.sum()))
    np.testing.assert_array_equal(vocabulary.vectors([text]).toarray()[0], vectors.toarray()[0])


def test_vectors_do_not_depend_on_the_number_of_texts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = TEXTS * 3
    vocabulary, vectors = Vocabulary.of(texts)
    monkeypatch.setattr(learning, "TEXTS_AT_ONCE", 4)
    other, in_parts = Vocabulary.of(texts)
    assert other.features == vocabulary.features
    assert other.idf.tobytes() == vocabulary.idf.tobytes()
    for made in (in_parts, vocabulary.vectors(texts)):
        for name in ("data", "indices", "indptr"):
            assert getattr(made, name).tobytes() == getattr(vectors, name).tobytes()
            assert getattr(made, name).dtype == getattr(vectors, name).dtype


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory of a process from Linux")
def test_memory_of_rare_features_is_released() -> None:
    program = """
import random, resource
from pathlib import Path
from searchapp.ranking.learning import Vocabulary

def resident_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

random.seed(0)
texts = [" ".join("".join(random.choices("abcdefghij", k=7)) for _ in range(8)) for _ in range(3_000)]
Vocabulary.of(texts[:3])  # imports
before = resident_mib()
vocabulary, vectors = Vocabulary.of(texts)
print(len(vocabulary.features), resident_mib() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    features, growth = map(float, done.stdout.split())
    assert features > 20_000
    assert growth < 50  # with all features, 75; what is returned takes 8


def test_kinds_of_features_can_be_excluded() -> None:
    complete, _vectors = Vocabulary.of(["Who wrote it?", "Who wrote that?"])
    fewer, vectors = Vocabulary.of(["Who wrote it?", "Who wrote that?"], [WORDS, PATTERN])
    rest = {feature for feature in complete.features if kind_of(feature) not in (WORDS, PATTERN)}
    assert set(fewer.features) == rest and {WORDS, PATTERN} < set(map(kind_of, complete.features))
    assert vectors.shape == (2, len(fewer.features))
