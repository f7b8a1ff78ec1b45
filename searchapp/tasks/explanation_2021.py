"""Explanation regeneration with ratings (TextGraphs-15, 2021): facts ranked by how relevant they are.

Questions and ratings are in one file a split; facts that are not rated are not relevant. The options of the questions
are in tables that come with WorldTree 2.1, `questions/questions.{train,dev,test}.tsv`, and are shown to people where
these lie beside the ratings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from searchapp.evaluation.base import GoldFiles, ScorerOptions
from searchapp.evaluation.explanation_2021 import MEASURE, Explanation2021Scorer
from searchapp.formats import worldtree, worldtree_ratings
from searchapp.formats.problems import Problems
from searchapp.formats.worldtree_ratings import HIGHEST, RatedQuestion
from searchapp.model import Example, Topic
from searchapp.tasks.base import Collection, Grades, Part, Submission, TaskInfo, Writer
from searchapp.tasks.explanation import (
    EVERY_FACT,
    EXAMPLES_MAPPING,
    MAPPING,
    OFFICIAL_FILE,
    SPLITS,
    RankingFile,
    content_words,
    facts_in,
    options_of,
)
from searchapp.tasks.shipped import json_writer, shipped
from searchapp.tasks.split_files import TEST, TRAIN, SplitFiles

NONE: Mapping[str, str] = MappingProxyType({})

INFO = TaskInfo(
    name="explanation-2021",
    title="Explanation regeneration with ratings (TextGraphs-15)",
    about="For a science question and its right answer, rank facts by how much they matter to explaining it.",
    mapping=MAPPING,
    examples_mapping=EXAMPLES_MAPPING,
    splits=SPLITS,
    default_depth=EVERY_FACT,
    official_measure=MEASURE,
    official_file=OFFICIAL_FILE,
    measures=("nDCG", "nDCG@10", "AP", "RR", "P@1", "P@5", "P@10", "R@10", "R@100", "R@1000"),
    # The organisers name the ends of their scale only; between them its grades go by their place.
    grades=("unrelated", "least relevant", "low", "middle", "high", "very high", "most critical"),
)


class Explanation2021Collection(SplitFiles):
    """The tables, a file of rated questions a split, and tables of the questions' options."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            INFO, folder, facts_in(folder), lambda split: folder / f"wt-expert-ratings.{split}.json"
        )

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        questions = worldtree_ratings.read_ratings(self.file(split), problems)
        options = worldtree.read_options(self._options_file(split), problems)
        return [_topic(question, *options.get(question.id, ({}, ""))) for question in questions]

    def check_split(self, split: str, problems: Problems) -> int:
        worldtree.read_options(self._options_file(split), problems)
        questions = worldtree_ratings.read_ratings(
            self.file(split),
            problems,
            self.known_ids(),
            masked=split == TEST,
            solved=split == TRAIN,
        )
        return sum(1 for _ in questions)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        for path in self.example_files(split):
            for question in worldtree_ratings.read_ratings(path, problems, self.documents.ids(), solved=True):
                example = self.judged_example(_topic(question), question.ratings)
                if example.gold:
                    yield example

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        return Example(topic, {fact: grade / HIGHEST for fact, grade in grades.items() if grade > 0})

    def solved(self, path: Path) -> Iterable[bool]:
        known = self.documents.ids()
        questions = worldtree_ratings.read_ratings(path, Problems(lenient=True), known, masked=True)
        return (bool(question.ratings) for question in questions)

    def _options_file(self, split: str) -> Path:
        return self.folder / "questions" / f"questions.{split}.tsv"


class Explanation2021Format(RankingFile):
    """A ranking of facts for each question; it may be short."""

    scorer = Explanation2021Scorer(content_words)
    breakdowns = scorer
    folds_questions = False
    needs_every_fact = False

    def asked(self, part: Part[Collection], problems: Problems) -> Mapping[str, bool]:
        (path,) = part.files
        return {question.id: True for question in worldtree_ratings.read_ratings(path, problems)}

    def predictions(self, submission: Submission[Collection]) -> dict[str, list[str | None]]:
        return self.scorer.predictions(submission.run)

    def gold(self, grades: Grades, part: Part[Collection]) -> Mapping[str, Writer]:
        problems = [
            {
                "qid": question,
                "documents": [{"uuid": fact, "relevance": grade} for fact, grade in of_topic.items()],
            }
            for question, of_topic in grades.items()
        ]
        (path,) = part.files
        return {path.name: json_writer({"rankingProblems": problems})}

    def grades(self, files: Sequence[Path], part: Part[Collection]) -> Grades:
        return self.scorer.qrels(GoldFiles(files, ScorerOptions(split=part.split)))


def _topic(question: RatedQuestion, options: Mapping[str, str] = NONE, right: str = "") -> Topic:
    """Question and right answer as one text, and both apart; the options are for readers only."""
    fields = {"question": question.text, "answer": question.answer}
    text = f"{question.text} {question.answer}".strip()
    return Topic(question.id, text, fields, options_of(options, right))


TASK = shipped(INFO, Explanation2021Collection, Explanation2021Format())
