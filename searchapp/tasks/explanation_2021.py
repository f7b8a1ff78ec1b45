"""Explanation regeneration with ratings (TextGraphs-15, 2021): facts ranked by how relevant they are.

Questions and ratings are in one file a split; facts that are not rated are not relevant. The options of the questions
are in tables that come with WorldTree 2.1, `questions/questions.{train,dev,test}.tsv`, and are shown to people where
these lie beside the ratings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from searchapp.evaluation.explanation_2021 import MEASURE, Explanation2021Scorer
from searchapp.formats import worldtree, worldtree_ratings
from searchapp.formats.problems import Problems
from searchapp.formats.worldtree_ratings import HIGHEST, RatedQuestion
from searchapp.model import Example, Topic
from searchapp.tasks.base import Grades, Writer
from searchapp.tasks.explanation import EXAMPLES, ExplanationTask, content_words, options_of

NONE: Mapping[str, str] = MappingProxyType({})


class Explanation2021(ExplanationTask):
    """The task `explanation-2021`."""

    name = "explanation-2021"
    title = "Explanation regeneration with ratings (TextGraphs-15)"
    about = (
        "For a science question and its right answer, rank facts by how much they matter to explaining it."
    )
    official_measure = MEASURE
    measures = ("nDCG", "nDCG@10", "AP", "RR", "P@1", "P@5", "P@10", "R@10", "R@100", "R@1000")
    grades = ("unrelated", "least relevant", "low", "middle", "high", "very high", "most critical")
    """The organisers name the ends of their scale only; between them its grades go by their place."""
    scorer = Explanation2021Scorer(content_words)
    folds_questions = False
    needs_every_fact = False

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        questions = worldtree_ratings.read_ratings(self._split_file(data, split), problems)
        options = worldtree.read_options(_options_file(data, split), problems)
        return [_topic(question, *options.get(question.id, ({}, ""))) for question in questions]

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        worldtree.read_options(_options_file(data, split), problems)
        known = self._fact_ids(data)
        questions = worldtree_ratings.read_ratings(
            self._split_file(data, split),
            problems,
            known or None,
            masked=split == "test",
            solved=split == EXAMPLES,
        )
        return sum(1 for _ in questions)

    def examples(self, data: Path, split: str, problems: Problems) -> Iterator[Example]:
        path = self._split_file(data, EXAMPLES)
        for question in worldtree_ratings.read_ratings(path, problems, self._fact_ids(data), solved=True):
            example = self.judged_example(_topic(question), question.ratings, data)
            if example.gold:
                yield example

    def judged_example(self, topic: Topic, grades: Mapping[str, float], data: Path) -> Example:
        return Example(topic, {fact: grade / HIGHEST for fact, grade in grades.items() if grade > 0})

    def judged_gold(self, grades: Grades, data: Path, split: str) -> Mapping[str, Writer]:
        problems = [
            {
                "qid": question,
                "documents": [{"uuid": fact, "relevance": grade} for fact, grade in of_topic.items()],
            }
            for question, of_topic in grades.items()
        ]
        text = json.dumps({"rankingProblems": problems}, ensure_ascii=False, indent=1) + "\n"
        return {self._split_file(data, split).name: lambda file: file.write(text.encode())}

    def is_masked(self, data: Path, split: str) -> bool:
        if split != "test":
            return False
        path = self._split_file(data, split)
        known = self._fact_ids(data)
        questions = list(worldtree_ratings.read_ratings(path, Problems(lenient=True), known, masked=True))
        return bool(questions) and not any(question.ratings for question in questions)

    def _asked(self, data: Path, split: str, problems: Problems) -> dict[str, bool]:
        path = self._split_file(data, split)
        return {question.id: True for question in worldtree_ratings.read_ratings(path, problems)}

    def _split_file(self, data: Path, split: str) -> Path:
        return data / f"wt-expert-ratings.{self._require_split(split)}.json"


def _options_file(data: Path, split: str) -> Path:
    return data / "questions" / f"questions.{split}.tsv"


def _topic(question: RatedQuestion, options: Mapping[str, str] = NONE, right: str = "") -> Topic:
    """Question and right answer as one text, and both apart; the options are for readers only."""
    fields = {"question": question.text, "answer": question.answer}
    text = f"{question.text} {question.answer}".strip()
    return Topic(question.id, text, fields, options_of(options, right))


TASK = Explanation2021()
