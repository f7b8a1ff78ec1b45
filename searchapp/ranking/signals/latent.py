"""The signal `latent`: votes of training topics that are similar in a latent space, even without common words.

Only recipes of earlier versions use it. New ones use `vectors` with `k`, by vectors that `searchapp embed` makes.

The space is the truncated singular value decomposition of the unit vectors of documents and training topics (latent
semantic analysis: Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990), by scikit-learn's seeded
randomised algorithm (Halko, Martinsson and Tropp, SIAM Review 2011). The `k` training topics with the greatest cosine
to the projected topic vote as in `power`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hits, Topic
from searchapp.ranking.learning import require_learn
from searchapp.ranking.signals.base import SEED, Inputs, SignalScorer, ranked
from searchapp.ranking.signals.power import ExplanatoryPower, SimilarTopics
from searchapp.ranking.signals.terms import Floats, TermSpace
from searchapp.ranking.templates import whole

# Sums of a decomposition differ in the last bits between processors, and its signs are arbitrary. Cosines do not depend
# on the signs, and are rounded to digits that are equal on all machines.
DECIMALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent(ExplanatoryPower):
    """The votes of the `k` nearest training topics in a space of `dimensions`."""

    kind: ClassVar[str] = "latent"
    dimensions: int = whole("number of dimensions of the latent space")
    seed: int = whole("seed of the decomposition", default=SEED)

    def prepare(self, inputs: Inputs) -> SignalScorer:
        require_learn()
        return _LatentTopics(self, inputs.terms().require_training_topics(self.name))


class _LatentTopics(SimilarTopics):
    def __init__(self, signal: Latent, space: TermSpace) -> None:
        from scipy.sparse import vstack
        from sklearn.decomposition import TruncatedSVD

        super().__init__(signal, space)
        rows = vstack([space.unit, space.training_vectors({})]).tocsr()
        most = min(rows.shape) - 1
        self._svd = TruncatedSVD(min(signal.dimensions, max(most, 1)), random_state=signal.seed).fit(rows)
        self._projected = _unit(self._svd.transform(self._training_vectors))

    def nearest(self, topic: Topic) -> Hits:
        vector = self._space.topic_vector(topic, self._signal.boosts).reshape(1, -1)
        cosines = (self._projected @ _unit(self._svd.transform(vector))[0]).round(DECIMALS)
        return ranked(
            self._space.positive_scores(self._space.training_ids, cosines), self._signal.k, topic.id
        )


def _unit(rows: Floats) -> Floats:
    """Normalize rows to length 1; rows of noise become 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 10.0**-DECIMALS, rows / np.where(lengths > 0, lengths, 1.0), 0.0)
