"""Explanations of scores."""

from __future__ import annotations

from searchapp.model import Explanation
from searchapp.ranking.search_results import shorten_explanation

LEAF: dict[str, list[object]] = {"details": []}
TERM = {
    "value": 0.47,
    "description": "weight(text.prose:subgroup in 1) [PerFieldSimilarity], result of:",
    "details": [
        {
            "value": 0.47,
            "description": "score(freq=2.0), computed as boost * idf * tf from:",
            "details": [
                {"value": 2.2, "description": "boost", **LEAF},
                {
                    "value": 0.47,
                    "description": "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
                    "details": [
                        {"value": 2, "description": "n, number of documents containing term", **LEAF},
                        {"value": 3, "description": "N, total number of documents with field", **LEAF},
                    ],
                },
                {
                    "value": 0.45,
                    "description": "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
                    "details": [
                        {"value": 2.0, "description": "freq, occurrences of term within document", **LEAF},
                        {"value": 1.2, "description": "k1, term saturation parameter", **LEAF},
                        {"value": 4.0, "description": "dl, length of field", **LEAF},
                        {"value": 2.5, "description": "avgdl, average length of field", **LEAF},
                    ],
                },
            ],
        }
    ],
}
SUM = {
    "value": 0.47,
    "description": "sum of:",
    "details": [{"value": 0.0, "description": "ConstantScore(*:*)^0.0", "details": []}, TERM],
}


def test_a_term_is_one_line_with_its_figures_and_zeros_are_omitted() -> None:
    lines = shorten_explanation(Explanation.from_json(SUM))
    assert [(line.depth, line.value, line.text) for line in lines] == [
        (0, 0.47, "sum of"),
        (1, 0.47, "text.prose: subgroup  (boost 2.2, df 2, N 3, tf 2, length 4, average length 2.5)"),
    ]


def test_an_explanation_is_read_back_from_json() -> None:
    assert Explanation.from_json(SUM).to_json() == SUM
