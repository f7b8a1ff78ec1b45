"""BM25 scores equal values computed by Elasticsearch 9.4."""

from __future__ import annotations

import numpy as np
import pytest

from searchapp.lucene import similarity
from searchapp.lucene.similarity import BM25, LENGTHS, FieldStatistics, encode_lengths


def test_short_lengths_are_exact_and_long_ones_keep_four_significant_bits() -> None:
    assert [int(length) for length in LENGTHS[:42]] == [*range(41), 42]
    assert int(LENGTHS[255]) == 2013265944
    assert (np.diff(LENGTHS) > 0).all()


def test_a_length_is_encoded_as_the_greatest_code_not_above_it() -> None:
    lengths = np.array([0, 1, 39, 40, 41, 42, 100, 1000, 10**6, 2**31 - 1])
    codes = encode_lengths(lengths)
    assert (LENGTHS[codes] <= lengths).all()
    assert (LENGTHS[codes[:-1].astype(int) + 1] > lengths[:-1]).all()
    assert [int(length) for length in LENGTHS[codes]] == [0, 1, 39, 40, 40, 42, 96, 984, 983064, 2013265944]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("k1", [0.0, 1e-45, 1e38, 3e38])
def test_an_extreme_k1_is_computed_without_warnings(k1: float) -> None:
    assert len(BM25(k1, 1.0).norm_inverses(FieldStatistics(3, 4))) == 256


@pytest.mark.parametrize(
    ("bm25", "boost", "counts", "statistics", "frequency", "length", "expected"),
    [
        (BM25(0.9, 0.4), 1, (3, 3), FieldStatistics(3, 15), 2, 4, 0.17942691),
        (BM25(0.9, 0.4), 2, (3, 3), FieldStatistics(3, 15), 3, 9, 0.36348087),
        (BM25(), 0.3, (2, 3), FieldStatistics(3, 15), 1, 2, 0.18686894),
        (BM25(), 2, (2, 3), FieldStatistics(3, 4), 1, 1, 1.0470967),
    ],
)
def test_a_term_scores_as_elasticsearch_explains_it(
    bm25: BM25,
    boost: float,
    counts: tuple[int, int],
    statistics: FieldStatistics,
    frequency: int,
    length: int,
    expected: float,
) -> None:
    weight = bm25.weight(np.float32(boost), similarity.idf(*counts))
    inverses = bm25.norm_inverses(statistics)[encode_lengths(np.array([length]))]
    assert similarity.scores(weight, np.array([frequency], np.float32), inverses)[0] == np.float32(expected)


def test_a_k1_of_zero_ignores_frequencies() -> None:
    bm25 = BM25(0.0, 0.75)
    inverses = bm25.norm_inverses(FieldStatistics(3, 15))[[2, 9]]
    weight = bm25.weight(np.float32(1), similarity.idf(1, 3))
    assert (similarity.scores(weight, np.array([1, 7], np.float32), inverses) == weight).all()
