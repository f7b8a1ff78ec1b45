"""A recipe: how a task ranks, as a list of signals and one fusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from searchapp.model import Topic
from searchapp.ranking.fusion import Fusion
from searchapp.ranking.learned import Learned
from searchapp.ranking.signals.base import Need, Signal
from searchapp.ranking.signals.direct import Direct
from searchapp.ranking.signals.trained import Trained
from searchapp.ranking.templates import TopicQuery


@dataclass(frozen=True, slots=True)
class Recipe:
    """The signals of a recipe, the first of which retrieves candidates, and how they are fused.

    `query` is what a search asks and what is marked in documents. `parameters` are those of all its templates.
    `written` is the recipe as a file may have it, with the values that were set, `tuned` what it says of how these were
    found.
    """

    name: str
    about: str
    query: TopicQuery
    signals: tuple[Signal, ...]
    fusion: Fusion
    parameters: Mapping[str, Any]
    written: Mapping[str, Any] = field(default_factory=dict)
    tuned: Mapping[str, Any] = field(default_factory=dict)

    def needs(self, need: Need) -> bool:
        """Whether one of the signals needs it, or the fusion."""
        needed = [signal.needs for signal in self.signals]
        if len(self.signals) > 1:
            needed.append(self.fusion.needs)
        return any(need in one for one in needed)

    @property
    def learns(self) -> bool:
        """Whether it ranks by solved topics."""
        return any(self.needs(need) for need in (Need.examples, Need.labels, Need.terms, Need.model))

    @property
    def trained(self) -> tuple[Trained, ...]:
        """Those of its signals that rank by a model."""
        return tuple(signal for signal in self.signals if isinstance(signal, Trained))

    @property
    def is_learned(self) -> bool:
        """Whether a model fuses its signals."""
        return len(self.signals) > 1 and isinstance(self.fusion, Learned)

    @property
    def takes_words(self) -> bool:
        """Whether it ranks words that a person types: it asks for no more of a topic than texts to match."""
        return all(query.template.topic_fields <= query.template.matched for query in self._of_topics)

    def typed(self, words: str) -> Topic:
        """The words that a person types as a topic: each text that the recipe asks for is these words."""
        fields = set().union(*(query.template.matched for query in self._of_topics))
        return Topic("", words, dict.fromkeys(sorted(fields), words))

    @property
    def _of_topics(self) -> tuple[TopicQuery, ...]:
        return tuple(query for signal in self.signals for query in signal.queries) or (self.query,)

    @property
    def is_one_query(self) -> bool:
        """Whether its ranking is that of its query, and no other signal counts."""
        return len(self.signals) == 1 and isinstance(self.signals[0], Direct)

    def body(self, topic: Topic, depth: int) -> dict[str, Any]:
        """The search body that retrieves the first `depth` documents for a topic."""
        return self.query.body(topic, depth)

    def manifest(self) -> dict[str, Any]:
        """What a run records of the recipe."""
        described: dict[str, Any] = {
            "name": self.name,
            "template": self.query.template.name,
            "template_digest": self.query.digest,
            "parameters": dict(self.parameters),
            "signals": [signal.manifest() for signal in self.signals],
        }
        described |= {"tuned": dict(self.tuned)} if self.tuned else {}
        return described | ({"fusion": self.fusion.manifest()} if len(self.signals) > 1 else {})
