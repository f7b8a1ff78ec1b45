"""Measure what each part of the analyzer for facts contributes to BM25 on the embedded engine.

    python benchmarks/explanation_analysis.py --data DIR

DIR is the folder with the data of explanation-2019. The figure is the official MAP of the train questions with
explanation, without facts that no table has. Gold is used for scoring only.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from searchapp import resources
from searchapp.engines.base import IndexSpec
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.formats.problems import Problems
from searchapp.tasks.explanation import scorer_2019
from searchapp.tasks.explanation.task import TASK_2019
from searchapp.tasks.explanation.worldtree import ExplainedQuestion, read_questions

Mapping = dict[str, Any]
Change = Callable[[Mapping], None]


def without(*filters: str) -> Change:
    """Remove token filters from all analyzers."""

    def change(mapping: Mapping) -> None:
        for analyzer in mapping["settings"]["analysis"]["analyzer"].values():
            analyzer["filter"] = [name for name in analyzer["filter"] if name not in filters]

    return change


def with_filter(name: str, **settings: Any) -> Change:
    """Change settings of a token filter."""
    return lambda mapping: mapping["settings"]["analysis"]["filter"][name].update(settings)


def with_bm25(k1: float, b: float) -> Change:
    """Change the parameters of BM25."""
    return lambda mapping: mapping["settings"]["similarity"]["fact"].update(k1=k1, b=b)


VARIANTS: dict[str, tuple[Change, float, float]] = {
    "as shipped": (without(), 0.25, 0),
    "Elasticsearch's English stop words": (with_filter("function_words", stopwords="_english_"), 0.25, 0),
    "no stop words": (without("function_words"), 0.25, 0),
    "minimal_english in place of porter2": (with_filter("inflection", language="minimal_english"), 0.25, 0),
    "Porter's first algorithm in place of porter2": (with_filter("inflection", language="english"), 0.25, 0),
    "without stems for irregular forms": (without("irregular"), 0.25, 0),
    "without unit spellings": (without("units"), 0.25, 0),
    "with repeated query terms counted": (without("unique_terms"), 0.25, 0),
    "the answer with the boost of the question": (without(), 0, 0),
    "the answer with one more boost": (without(), 1, 0),
    "with the wrong options, boost 0.1": (without(), 0.25, 0.1),
    "with the wrong options, boost 0.3": (without(), 0.25, 0.3),
    "k1 0.9, b 0.4": (with_bm25(0.9, 0.4), 0.25, 0),
    "k1 1.2, b 0.75": (with_bm25(1.2, 0.75), 0.25, 0),
}
"""Change of the mapping, weight of the answer and weight of the wrong options, by name."""


def main() -> None:
    """Measure all variants and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    documents = list(TASK_2019.collection(data).documents.read(Problems()))
    path = TASK_2019.collection(data).split_files("train")[0]
    known = {document.id for document in documents}
    questions = [
        question for question in read_questions(path, Problems(), known, training=True) if question.gold
    ]
    gold = {
        question.id.lower(): {fact.lower(): roles for fact, roles in question.gold.items()}
        for question in questions
    }
    with tempfile.TemporaryDirectory() as home:
        engine = EmbeddedEngine(Path(home), "benchmark")
        for number, (name, (change, answer, options)) in enumerate(VARIANTS.items()):
            mapping = copy.deepcopy(resources.index_mapping("facts"))
            change(mapping)
            engine.build(f"v{number}", IndexSpec(mapping, len(documents), str(number), "", 1), documents)
            bodies = [_body(question, answer, options) for question in questions]
            hits = engine.open(f"v{number}").search(bodies, lambda _count: None)
            rankings = {
                question.id: [fact.lower() for fact in ranked.document_ids]
                for question, ranked in zip(questions, hits, strict=True)
            }
            print(f"| {name} | {scorer_2019.score(rankings, gold).value:.4f} |", flush=True)


def _body(question: ExplainedQuestion, answer: float, options: float) -> dict[str, Any]:
    wrong = " ".join(text for label, text in question.options.items() if label != question.answer_label)
    weighted = [(f"{question.text} {question.answer}", 1.0), (question.answer, answer), (wrong, options)]
    return {
        "size": 10_000,
        "_source": False,
        "track_total_hits": False,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {
            "bool": {
                "must": [{"match_all": {"boost": 0}}],
                "should": [
                    {"match": {"text": {"query": text, "boost": boost}}} for text, boost in weighted if boost
                ],
            }
        },
    }


if __name__ == "__main__":
    main()
