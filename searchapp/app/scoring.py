"""The one door to figures: what `evaluate`, `compare`, `bench`, reports and the screens show is computed here.

So no two of them can differ: a test makes sure that nothing else above the scorers asks an official scorer for figures,
or ir-measures for those of the field. What is left to others is which run, which gold and which topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchapp.evaluation import measures
from searchapp.evaluation.base import GoldFiles, Qrels, Scored, Scorer
from searchapp.evaluation.measures import Measures
from searchapp.tasks.base import P


def official_figures(scorer: Scorer[P], predictions: P, gold: GoldFiles) -> Scored:
    """The figures of the organisers' scorer, and what those of the field are computed from.

    Raises:
        NotScorable: their script stops or refuses.
        DataError: a gold file is missing or can't be read.
    """
    return scorer.score(predictions, gold)


def field_figures(rankings: Mapping[str, Sequence[str]], qrels: Qrels, names: Sequence[str]) -> Measures:
    """The field's measures of these names, computed by ir-measures.

    Raises:
        UsageError: a name is not one of a measure that can be computed here.
    """
    return measures.measure(rankings, qrels, names)
