"""What signals have in common that rank by a model, which was trained on solved topics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from searchapp.engines.base import Explanation
from searchapp.errors import DataError
from searchapp.model import Document, Example, Topic
from searchapp.ranking.learning.features import kind_of
from searchapp.ranking.signals.base import Asked, Inputs, Need, Scorer, Signal

if TYPE_CHECKING:
    from searchapp.ranking.learning.files import Stored
    from searchapp.ranking.learning.linear import Linear
    from searchapp.ranking.templates import TopicQuery

SEED = 2021
"""The seed where a recipe names none: that of the folds."""

STEEPNESS: Mapping[str, str] = {"steepness": "how steeply probabilities follow margins"}
"""What the key means of signals whose models give probabilities."""

SHOWN = 8
"""How many features an explanation names: those that weigh most."""

RECORDED = ("key", "solved", "labels", "features", "candidates", "trees", "learner", "data_digests")
"""What a run records of the header of a model; of lists how long they are."""


@dataclass(frozen=True, slots=True)
class Trained(Signal):
    """A signal with a linear model of topics: at least `fewest` solved topics a label, C = `cost`, and a `seed`.

    The model has no features of the kinds `without`, which an ablation leaves out.
    """

    features: ClassVar[tuple[str, ...]] = ()
    """The kinds of features of its model, as far as each can be left out."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.model})
    meanings: ClassVar[Mapping[str, str]] = {
        "cost": "C of the linear model: what a mistake costs, the greater the less it is regularised",
        "fewest": "how many solved topics a label must have",
        "seed": "the seed of the training",
    }

    leaves_out: ClassVar[bool] = False
    """Whether a solved topic may be ranked too, by a model of the others."""

    most_kept: ClassVar[int] = 16
    """How many models of a task are kept: those that were trained last."""

    cost: float
    fewest: int
    seed: int
    without: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def queries(self) -> tuple[TopicQuery, ...]:
        """None: no engine is asked."""
        return ()

    def training(self) -> dict[str, Any]:
        """What its model depends on beside the solved topics; parameters that only ranking depends on are left out."""
        described = {"signal": self.kind, "cost": self.cost, "fewest": self.fewest, "seed": self.seed}
        return described | ({"without": list(self.without)} if self.without else {})

    @abstractmethod
    def train(
        self, examples: Sequence[Example], documents: Iterable[Document], workers: int
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Header and arrays of the model that solved topics make; `workers` processes change nothing but the time.

        Raises:
            UsageError: scikit-learn is not installed.
            DataError: the solved topics do not suffice.
        """

    @abstractmethod
    def scorer(self, stored: Stored) -> TrainedScorer:
        """What ranks by a model.

        Raises:
            DataError: it is not what it should be.
        """

    def prepare(self, inputs: Inputs) -> Scorer:
        """Read the model or, where there is none yet, train it."""
        return self.scorer(inputs.model(self))


class TrainedScorer(Scorer):
    """Ranks by a model, and no topic that the model was trained on: it would know the answers by heart."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def model(self) -> dict[str, Any]:
        return recorded(self._stored)

    def require_unseen(self, asked: Asked) -> None:
        """Make sure that no topic is ranked by its own answers.

        Raises:
            DataError: one of those that are asked is among the solved topics of the model.
        """
        require_unseen(self._stored, asked.topics)


def recorded(stored: Stored) -> dict[str, Any]:
    """What a run records of a model."""
    found = {key: stored.header[key] for key in RECORDED if key in stored.header}
    counted = {key: len(value) if isinstance(value, list) else value for key, value in found.items()}
    return {"digest": stored.digest, **counted}


def require_unseen(stored: Stored, topics: Sequence[Topic]) -> None:
    """Make sure that none of the topics is among the solved ones of a model, which knows their answers.

    Raises:
        DataError: one of them is.
    """
    seen = frozenset(stored.header.get("topics", ()))
    for topic in topics:
        if topic.id in seen:
            raise DataError(
                f"the recipe's model was trained on the topic {topic.id} and knows its answers: rank another "
                "split, or choose another recipe"
            )


def enough(examples: Sequence[Example], labels: Sequence[str], what: str) -> None:
    """Make sure that there is something to train for.

    Raises:
        DataError: no label is left.
    """
    if not labels:
        raise DataError(
            f"none of the {len(examples):,} solved topics has {what} that enough others have: lower `fewest` with "
            "--set, or choose another recipe"
        )


def by_features(linear: Linear, text: str, label: int, scale: float = 1.0) -> tuple[Explanation, ...]:
    """What a margin came of, the `SHOWN` features that weigh most, the others together, and the intercept."""
    parts = linear.parts(text, label)
    details = [Explanation(scale * part.value, _named(part.feature)) for part in parts[:SHOWN]]
    if rest := parts[SHOWN:]:
        others = "feature" if len(rest) == 1 else "features"
        details.append(
            Explanation(scale * sum(part.value for part in rest), f"{len(rest):,} further {others}")
        )
    details.append(Explanation(scale * float(linear.intercepts[label]), "intercept, whatever the words"))
    return tuple(details)


def _named(feature: str) -> str:
    kind = kind_of(feature)
    return f"{kind} “{feature[len(kind) + 2 :]}”"
