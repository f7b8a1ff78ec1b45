"""The kinds of signals that a recipe may be made of, by the names that recipes call them.

    direct       a query template over the documents
    neighbours   a query template over solved topics, whose gold votes
    labelled     a query template by which candidates find graded documents like them
    cocitation   documents that solved topics have beside those that lead, in their gold
    cosine       documents by the weight of the terms that they share with a topic, without an engine
    power        solved topics that are alike in their terms, whose gold votes: explanatory power
    expansion    the topic grown by terms of the documents that the signals before it rank highest
    profiles     documents grown by the terms of the solved topics that they answered
    latent       as power, alike in a latent space
    popular      in how many solved topics a document is an answer
    prior        a query over the documents that is the same for all topics
    tfidf        the organisers' baseline: cosine of tf-idf vectors of the texts, without an engine
    multiclass   a linear model of the one answer that a topic has, trained on solved topics
    multilabel   a linear model of each document, whether it is among a topic's answers
    lines        a linear model of the lines of transcripts, whether they are like those that answered other topics

Whatever the engine, the scores that go in are the same float32 numbers; everything else is computed from them in
double and rounded once, so that rankings are the same too.
"""

from __future__ import annotations

from collections.abc import Mapping

from searchapp.ranking.signals.base import Signal
from searchapp.ranking.signals.cocitation import Cocitation
from searchapp.ranking.signals.cosine import Cosine
from searchapp.ranking.signals.direct import Direct
from searchapp.ranking.signals.expansion import Expansion
from searchapp.ranking.signals.labelled import Labelled
from searchapp.ranking.signals.latent import Latent
from searchapp.ranking.signals.lines import Lines
from searchapp.ranking.signals.multiclass import MultiClass
from searchapp.ranking.signals.multilabel import MultiLabel
from searchapp.ranking.signals.neighbours import Neighbours
from searchapp.ranking.signals.popular import Popular
from searchapp.ranking.signals.power import ExplanatoryPower
from searchapp.ranking.signals.prior import Prior
from searchapp.ranking.signals.profiles import Profiles
from searchapp.ranking.signals.tfidf import TfIdf

KINDS: Mapping[str, type[Signal]] = {
    kind.kind: kind
    for kind in (
        Direct,
        Neighbours,
        Labelled,
        Cocitation,
        Popular,
        Prior,
        Cosine,
        ExplanatoryPower,
        Expansion,
        Profiles,
        Latent,
        TfIdf,
        MultiClass,
        MultiLabel,
        Lines,
    )
}
