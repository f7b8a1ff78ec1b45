"""The signal `metric`, on topics and documents in two languages, which no common word links."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from searchapp.errors import DataError
from searchapp.lucene import vectors
from searchapp.model import Document, Example, Hits, Topic
from searchapp.progress import no_progress
from searchapp.ranking.learning import StoredModel
from searchapp.ranking.signals.base import Inputs, Normalization, SignalRequest, SignalScorer
from searchapp.ranking.signals.metric import LearnedMetric

PAIRS = [
    ("sun", "sol"), ("moon", "luna"), ("sea", "mare"), ("fire", "ignis"), ("stone", "lapis"),
    ("bird", "avis"), ("tree", "arbor"), ("king", "rex"), ("book", "liber"), ("night", "nox"),
]  # fmt: skip
METRIC = LearnedMetric("m", dimensions=16, latent_dimensions=20, min_df=1, epochs=60, batch_size=16)


def texts() -> Iterator[tuple[str, str]]:
    """Yield texts of three words, in English and in Latin."""
    chosen = random.Random(1)  # no secret
    for _ in range(60):
        words = chosen.sample(PAIRS, 3)
        yield " ".join(word for word, _ in words), " ".join(word for _, word in reversed(words))


TEXTS = list(texts())
DOCUMENTS = [Document(f"d{number}", latin) for number, (_, latin) in enumerate(TEXTS)]
EXAMPLES = [
    Example(Topic(f"t{number}", english), {f"d{number}": 1.0, f"d{(number + 1) % 60}": 0.0})
    for number, (english, _) in enumerate(TEXTS)
]
TRAINED, OTHERS = EXAMPLES[:45], EXAMPLES[45:]


def trained(examples: Sequence[Example] = TRAINED, documents: Sequence[Document] = DOCUMENTS) -> StoredModel:
    header, arrays = METRIC.train(examples, documents, 1)
    return StoredModel.of({"topics": [example.topic.id for example in examples], **header}, arrays)


@pytest.fixture(scope="module")
def model() -> StoredModel:
    return trained()


def scorer(model: StoredModel, *, topics_are_documents: bool = False) -> SignalScorer:
    no_index: Any = None
    return METRIC.prepare(
        Inputs(no_index, topics_are_documents=topics_are_documents, model=lambda _signal: model)
    )


def request(*topics: Topic, depth: int = 60) -> SignalRequest:
    return SignalRequest(topics, depth, Normalization.max)


def answers(scorer: SignalScorer, *topics: Topic, depth: int = 60) -> list[Hits]:
    return [
        Hits(*zip(*answer, strict=True))
        for answer in scorer.answers(request(*topics, depth=depth), no_progress)
    ]


def test_documents_are_found_that_have_no_word_of_the_topic(model: StoredModel) -> None:
    """Topics that the model has not seen find the document of the same meaning."""
    rankings = answers(scorer(model), *(example.topic for example in OTHERS))
    ranks = [
        hits.document_ids.index(next(iter(example.gold)))
        for example, hits in zip(OTHERS, rankings, strict=True)
    ]
    assert np.median(ranks) == 0 and max(ranks) < 6


def test_a_model_depends_neither_on_the_order_nor_on_the_process(model: StoredModel) -> None:
    gold = [
        replace(example, gold=dict(reversed(list(example.gold.items())))) for example in reversed(TRAINED)
    ]
    other = trained(gold, DOCUMENTS[::-1])
    assert {name: array.tobytes() for name, array in other.arrays.items()} == {
        name: array.tobytes() for name, array in model.arrays.items()
    }


def test_training_does_not_import_scikit_learn_which_takes_100_mib() -> None:
    program = (
        "import sys\n"
        "from tests.ranking.signals.test_metric import trained\n"
        "trained()\n"
        "print('scipy.linalg' in sys.modules, 'sklearn' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "True False\n"


def test_scores_are_those_of_vectors_of_bytes_and_equal_ones_are_in_the_order_of_ids() -> None:
    same = [Document(id_, DOCUMENTS[0].text) for id_ in ("é", "z", "A")]
    model = trained(documents=[*DOCUMENTS, *same, Document("empty", "_")])
    (hits,) = answers(scorer(model), EXAMPLES[-1].topic, depth=100)
    assert set(model.header["labels"]) - set(hits.document_ids) == {"empty"}
    scores = dict(hits)
    assert len({scores[id_] for id_ in ("d0", "é", "z", "A")}) == 1
    place = hits.document_ids.index("A")
    assert hits.document_ids[place : place + 4] == ("A", "d0", "z", "é")
    assert list(hits.scores) == sorted(hits.scores, reverse=True)
    assert all(np.float32(score) == score for score in hits.scores)
    assert np.abs(model.arrays["documents"]).max(axis=1).tolist().count(127) == 63
    best = scores["A"], hits.document_ids.index("A")
    explanation = scorer(model).explain(request(EXAMPLES[-1].topic), "A")
    assert explanation is not None and explanation.value == best[0]
    assert explanation.description.endswith(f"rank {best[1] + 1}")
    assert vectors.COSINE in str(explanation)


def test_a_topic_of_the_training_and_one_without_known_words_are_not_ranked(model: StoredModel) -> None:
    with pytest.raises(DataError, match="trained on the topic t0"):
        answers(scorer(model), EXAMPLES[0].topic)
    unknown = list(scorer(model).answers(request(Topic("", "xyz"), OTHERS[0].topic), no_progress))
    assert [len(answer) for answer in unknown] == [0, 60]
    assert scorer(model).explain(request(Topic("", "xyz")), "d0") is None
    own = Topic("d3", OTHERS[0].topic.text)
    (hits,) = answers(scorer(model, topics_are_documents=True), own)
    assert len(hits) == 59 and "d3" not in hits.document_ids


def test_without_relevant_documents_nothing_is_trained() -> None:
    with pytest.raises(DataError, match="none of the 1 training topic has a relevant document"):
        trained([Example(Topic("t", "sun"), {"d0": 0.0, "gone": 1.0})])
    with pytest.raises(DataError, match="lower `min_df`"):
        replace(METRIC, min_df=1000).train(TRAINED, DOCUMENTS, 1)
