"""What the signals of a recipe say of solved topics without their votes: what a learned fusion is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from searchapp.model import Document, Example
from searchapp.progress import Progress
from searchapp.ranking.learned import REACH, Asking, Learned
from searchapp.ranking.learning.files import Stored
from searchapp.ranking.rank import Ranker
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.base import Answer, Inputs, Labels, Solved
from searchapp.ranking.signals.trained import Trained


def asking(
    recipe: Recipe,
    inputs: Inputs,
    examples: Sequence[Example],
    documents: Sequence[Document],
    progress: Progress,
) -> Asking:
    """Asks the signals of a recipe about some of the examples, without the votes of those that are withheld.

    Trained signals are trained on the others each time.
    """
    assert isinstance(recipe.fusion, Learned)
    plain = replace(recipe, fusion=recipe.fusion.unlearned)

    def asked(
        some: Sequence[Example], withheld: frozenset[str]
    ) -> Iterator[tuple[Example, Sequence[Answer]]]:
        ranker = Ranker(plain, _without(withheld, inputs, examples, documents))
        with progress.stage("asking about solved topics", len(some)) as advance:
            yield from zip(some, ranker.answers([one.topic for one in some], REACH, advance), strict=True)

    return asked


def _without(
    withheld: frozenset[str], inputs: Inputs, examples: Sequence[Example], documents: Sequence[Document]
) -> Inputs:
    """The inputs of signals, as they would be had some topics not been solved."""
    others = [one for one in examples if one.topic.id not in withheld]

    @cache  # several signals ask the same
    def solved() -> Solved:
        return inputs.examples().without(withheld)

    def labels() -> Labels:
        known = inputs.labels()
        gold = {topic: answers for topic, answers in known.gold.items() if topic not in withheld}
        return Labels(known.documents, gold)

    def model(signal: Trained, ranked: str = "") -> Stored:  # noqa: ARG001  # it is among those withheld
        return Stored.of(*signal.train(others, documents, 1))

    return replace(
        inputs,
        examples=solved,
        labels=labels,
        terms=cache(lambda: inputs.terms().without(withheld)),
        model=model,
    )
