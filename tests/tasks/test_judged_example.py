"""A topic that people have judged as its gold does teaches exactly what the same topic of the training data teaches."""

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


def solved(sample: Sample) -> list[Example]:
    problems = Problems()
    found = list(sample.collection.examples(sample.split, problems))
    problems.raise_if_any()
    return found


def as_people_grade(task: Task, example: Example) -> Mapping[str, int]:
    """The grades that a person gives whose opinion is the gold of a solved topic."""
    if task.name == "explanation-2021":
        return {document: round(6 * grade) for document, grade in example.gold.items()}
    if task.name.startswith("smart-types"):
        best = max(example.gold.values(), default=0)
        only_the_best = task.name.endswith("dbpedia")  # others gain too that are near them in the hierarchy
        return {document: 1 for document, grade in example.gold.items() if grade == best or not only_the_best}
    return dict.fromkeys(example.gold, 1)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_judged_topic_is_a_solved_topic(name: str) -> None:
    sample = SAMPLES[name]
    examples = solved(sample)
    if name.startswith("smart-relations"):
        # Which relations are interchangeable is what no grade says: each is taken to be needed.
        examples = [one for one in examples if set(one.gold.values()) == {1.0}]
    assert examples
    for example in examples:
        grades = {"nobody asked for it": 0, **as_people_grade(sample.task, example)}
        assert sample.collection.judged_example(example.topic, grades) == example, example.topic.id


def test_what_people_say_of_a_solved_topic_goes_before_its_gold_and_nothing_found_teaches_nothing() -> None:
    sample = SAMPLES["nlps"]
    first, second, *others = solved(sample)
    judged = [
        sample.collection.judged_example(first.topic, dict.fromkeys(first.gold, 0)),
        sample.collection.judged_example(second.topic, {"7": 1}),
    ]
    found = read_examples(sample.task, sample.collection, sample.split, SilentProgress(), judged)
    assert found == [Example(second.topic, {"7": 1.0}), *others]
