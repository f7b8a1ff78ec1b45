"""Explanation regeneration (TextGraphs-13, 2019): every fact ranked for a question and its right answer.

The questions are those of WorldTree 1, or of WorldTree 2 in its own layout. Some have no explanation: they are ranked
like the others, and the official scorer does not look at them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from searchapp.evaluation.explanation_2019 import MEASURE, Explanation2019Scorer
from searchapp.files import first_there
from searchapp.formats import worldtree
from searchapp.formats.problems import Problems
from searchapp.formats.worldtree import Question
from searchapp.model import Example, Topic
from searchapp.tasks.base import Grades, Writer
from searchapp.tasks.explanation import EXAMPLES, ExplanationTask, content_words, options_of

JUDGED_ROLE = "CENTRAL"
"""The role that a fact has in gold that is made of judgments, which know no roles; no figure depends on it."""

NOTHING = '" "'

TEST = "test"

_FILES = {
    "train": ("ARC-Elementary+EXPL-Train.tsv", "questions.train.tsv"),
    "dev": ("ARC-Elementary+EXPL-Dev.tsv", "questions.dev.tsv"),
    TEST: ("ARC-Elementary+EXPL-Test-Masked.tsv", "questions.test.tsv"),
}
"""The names that the files have in TextGraphs-13, and in WorldTree 2: the first that is there is read."""


class Explanation2019(ExplanationTask):
    """The task `explanation-2019`."""

    name = "explanation-2019"
    title = "Explanation regeneration (TextGraphs-13)"
    about = (
        "For a science question and its right answer, rank every fact: those that explain the answer first."
    )
    official_measure = MEASURE
    measures = ("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100", "R@1000")
    scorer = Explanation2019Scorer(content_words)
    folds_questions = True
    needs_every_fact = True

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        questions = worldtree.read_questions(self._split_file(data, split), problems, masked=split == TEST)
        return list(map(_topic, questions))

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        known = self._fact_ids(data)
        # Without any fact to compare with, every one would be unknown: one problem is enough.
        questions = worldtree.read_questions(
            self._split_file(data, split),
            problems,
            known or None,
            solved=split == EXAMPLES,
            masked=split == TEST,
        )
        return sum(1 for _ in questions)

    def examples(self, data: Path, split: str, problems: Problems) -> Iterator[Example]:
        path = self._split_file(data, EXAMPLES)
        for question in worldtree.read_questions(path, problems, self._fact_ids(data), solved=True):
            if question.gold:
                # On train, facts that count the same whatever their role rank better than any weights by role.
                yield Example(_topic(question), dict.fromkeys(question.gold, 1.0))

    def judged_gold(self, grades: Grades, data: Path, split: str) -> Mapping[str, Writer]:
        rows = [
            (question, " ".join(f"{fact}|{JUDGED_ROLE}" for fact, grade in of_topic.items() if grade > 0))
            for question, of_topic in grades.items()
        ]
        # An empty cell is a missing value to the organisers' script, a quoted space an explanation without facts.
        cells = ["questionID\texplanation", *(f"{question}\t{facts or NOTHING}" for question, facts in rows)]
        text = "".join(f"{row}\n" for row in cells)
        return {self._split_file(data, split).name: lambda file: file.write(text.encode())}

    def gold_grades(self, files: Sequence[Path], data: Path, split: str) -> Grades:
        folded = super().gold_grades(files, data, split)
        # The scorer knows questions without the letter case that their ids have.
        topics = {topic.id.lower(): topic.id for topic in self.topics(data, split, Problems(lenient=True))}
        return {topics.get(question, question): grades for question, grades in folded.items()}

    def is_masked(self, data: Path, split: str) -> bool:
        if split != TEST:
            return False
        explained = worldtree.explained(self._split_file(data, split), Problems(lenient=True), masked=True)
        return bool(explained) and not any(explained.values())

    def _asked(self, data: Path, split: str, problems: Problems) -> dict[str, bool]:
        explained = worldtree.explained(self._split_file(data, split), problems, masked=split == TEST)
        masked = split == TEST and not any(explained.values())
        return {question: masked or has_explanation for question, has_explanation in explained.items()}

    def _split_file(self, data: Path, split: str) -> Path:
        return first_there(data / "questions", _FILES[self._require_split(split)])


def _topic(question: Question) -> Topic:
    """Question and right answer as one text, and both apart.

    The wrong options are for readers only: on train they help a ranking at best as much as chance does, and soon
    harm it.
    """
    fields = {"question": question.text, "answer": question.answer}
    options = options_of(question.options, question.answer_label)
    return Topic(question.id, f"{question.text} {question.answer}".strip(), fields, options)


TASK = Explanation2019()
