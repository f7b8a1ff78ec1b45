"""The kinds of signals that a recipe may be made of, by the names that recipes call them.

    direct       a query template over the documents
    neighbours   a query template over solved topics, whose gold votes
    labelled     a query template by which candidates find graded documents like them
    cocitation   documents that solved topics have beside those that lead, in their gold
    tfidf        cosine of tf-idf vectors of the texts, without an engine
    multiclass   a linear model of the one answer that a topic has, trained on solved topics
    multilabel   a linear model of each document, whether it is among a topic's answers

Whatever the engine, the scores that go in are the same float32 numbers; everything else is computed from them in
double and rounded once, so that rankings are the same too.
"""

from __future__ import annotations

from collections.abc import Mapping

from searchapp.ranking.signals.base import Signal
from searchapp.ranking.signals.cocitation import Cocitation
from searchapp.ranking.signals.direct import Direct
from searchapp.ranking.signals.labelled import Labelled
from searchapp.ranking.signals.multiclass import MultiClass
from searchapp.ranking.signals.multilabel import MultiLabel
from searchapp.ranking.signals.neighbours import Neighbours
from searchapp.ranking.signals.tfidf import TfIdf

KINDS: Mapping[str, type[Signal]] = {
    kind.kind: kind for kind in (Direct, Neighbours, Labelled, Cocitation, TfIdf, MultiClass, MultiLabel)
}
