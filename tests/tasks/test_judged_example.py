"""A topic whose grades equal its gold is the same training example as in the training data."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from searchapp.app.demo import Sample, samples
from searchapp.app.index import read_examples
from searchapp.formats.problems import Problems
from searchapp.model import Example
from searchapp.progress import SilentProgress
from searchapp.tasks.base import Task

SAMPLES = {sample.task.name: sample for sample in samples()}


def training_examples(sample: Sample) -> list[Example]:
    problems = Problems()
    examples = list(sample.collection.examples(sample.split, problems))
    problems.raise_if_any()
    return examples


def grades_like_gold(task: Task, example: Example) -> Mapping[str, int]:
    """Return the grades of a person who agrees with the gold of a training topic."""
    if task.name == "explanation-2021":
        return {document: round(6 * grade) for document, grade in example.gold.items()}
    if task.name.startswith("smart-types"):
        best = max(example.gold.values(), default=0)
        only_the_best = task.name.endswith("dbpedia")  # its gold has types near them in the hierarchy, too
        return {document: 1 for document, grade in example.gold.items() if grade == best or not only_the_best}
    return dict.fromkeys(example.gold, 1)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_judged_topic_is_a_training_topic(name: str) -> None:
    sample = SAMPLES[name]
    examples = training_examples(sample)
    if name.startswith("smart-relations"):
        # Grades do not express which relations are interchangeable, so that all count as needed.
        examples = [example for example in examples if set(example.gold.values()) == {1.0}]
    assert examples
    for example in examples:
        grades = {"not relevant": 0, **grades_like_gold(sample.task, example)}
        assert sample.collection.judged_example(example.topic, grades) == example, example.topic.id


def test_judgments_replace_the_gold_of_a_topic_and_topics_without_relevant_documents_are_excluded() -> None:
    sample = SAMPLES["nlps"]
    first, second, *others = training_examples(sample)
    judged = [
        sample.collection.judged_example(first.topic, dict.fromkeys(first.gold, 0)),
        sample.collection.judged_example(second.topic, {"7": 1}),
    ]
    examples = read_examples(sample.task, sample.collection, sample.split, SilentProgress(), judged)
    assert examples == [Example(second.topic, {"7": 1.0}), *others]
