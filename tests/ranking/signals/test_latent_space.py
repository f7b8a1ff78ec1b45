"""The latent space, beside the one of scikit-learn."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD

from searchapp.ranking.signals import latent_space
from searchapp.ranking.signals.latent_space import TextFeatures

WORDS = [f"word{chr(ord('a') + number)}" for number in range(26)]


def random_texts(count: int) -> tuple[str, ...]:
    """Return texts of 2 to 20 words, frequent ones first; the last text is blank."""
    chosen = random.Random(1)  # no secret
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    texts = {" ".join(chosen.choices(WORDS, weights, k=chosen.randint(2, 20))) for _ in range(count)}
    return (*sorted(texts), " ")


@pytest.mark.parametrize(("count", "dimensions"), [(150, 12), (150, 2000), (1500, 12)])
def test_the_space_is_that_of_scikit_learn(
    count: int, dimensions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latent_space, "TEXTS_AT_ONCE", 100)
    monkeypatch.setattr(latent_space, "COLUMNS_AT_ONCE", 5)
    texts = random_texts(count)
    weights = TextFeatures.of(texts, 2).vectors(texts)
    size = min(dimensions, min(weights.shape) - 1)
    expected = TruncatedSVD(size, n_iter=1, random_state=7).fit(weights).components_
    space = latent_space.latent_space(texts, 2, dimensions, 7)
    assert space.components.dtype == space.rows.dtype == np.float32
    np.testing.assert_allclose(space.components @ space.components.T, np.eye(size), atol=1e-4)
    if weights.shape[0] < weights.shape[1]:
        np.testing.assert_allclose(space.components[:12], expected[:12], atol=1e-3)
    else:  # scikit-learn projects the texts instead of the features
        captured, by_scikit_learn = (np.square(weights @ of.T).sum() for of in (space.components, expected))
        assert captured > by_scikit_learn
    rows = weights @ space.components.T.astype(np.float64)
    rows[:-1] /= np.linalg.norm(rows[:-1], axis=1, keepdims=True)
    np.testing.assert_allclose(space.rows, rows, atol=1e-4)
    assert not space.rows[-1].any()  # a blank text
    again = latent_space.latent_space(texts, 2, dimensions, 7)
    assert again.rows.tobytes() == space.rows.tobytes()


# In a process of its own, which has loaded no library of linear algebra yet.
DIGEST_OF_LARGE_SPACE = """
import hashlib, random
from searchapp.ranking.signals.latent_space import latent_space
words = [first + second for first in "bcdfghjklmnpqrst" for second in "aeiouvwxyzbcdfgh"]
chosen = random.Random(1)
texts = sorted({" ".join(chosen.choices(words, k=20)) for _ in range(1000)})
print(hashlib.sha256(latent_space(texts, 2, 300, 7).rows.tobytes()).hexdigest())
"""


def test_the_space_does_not_depend_on_the_number_of_threads() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST_OF_LARGE_SPACE],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(digests) == 1
