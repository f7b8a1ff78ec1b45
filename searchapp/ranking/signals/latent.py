"""The signal `latent`: the votes of solved topics that are similar in a latent space, with or without common words.

The space is the truncated singular value decomposition of the vectors of documents and solved topics, rows of length 1
(latent semantic analysis: Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990), with `dimensions` of
them, by the randomised algorithm of Halko, Martinsson and Tropp (SIAM Review 2011) in scikit-learn, seeded. A topic's
vector is projected into it; the `k` solved topics with the greatest cosine there vote as in `power`.

The sums of a decomposition may differ in the last bits from processor to processor, and its signs by chance. A cosine
does not depend on the signs, and is rounded to `DECIMALS`: more are not equal on all machines, and mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from searchapp.model import Hits, Topic
from searchapp.ranking.learning import require_learn
from searchapp.ranking.signals.base import SEED, Inputs, SignalScorer, ranked
from searchapp.ranking.signals.power import ExplanatoryPower, SimilarTopics
from searchapp.ranking.signals.terms import Floats, TermSpace
from searchapp.ranking.templates import whole

DECIMALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent(ExplanatoryPower):
    """The votes of the `k` solved topics that are nearest in a space of some `dimensions`."""

    kind: ClassVar[str] = "latent"
    dimensions: int = whole("how many dimensions the latent space has")
    seed: int = whole("where the search for the space begins", default=SEED)

    def prepare(self, inputs: Inputs) -> SignalScorer:
        require_learn()
        return _LatentTopics(self, inputs.terms().require_solved(self.name))


class _LatentTopics(SimilarTopics):
    def __init__(self, signal: Latent, space: TermSpace) -> None:
        from scipy.sparse import vstack
        from sklearn.decomposition import TruncatedSVD

        super().__init__(signal, space)
        rows = vstack([space.unit, space.asked_by_solved({})]).tocsr()
        most = min(rows.shape) - 1
        self._svd = TruncatedSVD(min(signal.dimensions, max(most, 1)), random_state=signal.seed).fit(rows)
        self._projected = _unit(self._svd.transform(self._solved))

    def nearest(self, topic: Topic) -> Hits:
        """Return the nearest solved topics in the space but the topic itself, with their cosines."""
        vector = self._space.asked(topic, self._signal.boosts).reshape(1, -1)
        cosines = (self._projected @ _unit(self._svd.transform(vector))[0]).round(DECIMALS)
        return ranked(self._space.positive(self._space.solved, cosines), self._signal.k, topic.id)


def _unit(rows: Floats) -> Floats:
    """Return rows of length 1; 0 for rows of nothing but noise."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 10.0**-DECIMALS, rows / np.where(lengths > 0, lengths, 1.0), 0.0)
