"""Explanation regeneration (TextGraphs-13, 2019): every fact ranked for a question and its right answer.

The questions are those of WorldTree 1, or of WorldTree 2 in its own layout. Some have no explanation: they are ranked
like the others, and the official scorer does not look at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from searchapp.evaluation.base import GoldFiles, ScorerOptions
from searchapp.evaluation.explanation_2019 import MEASURE, Explanation2019Scorer
from searchapp.files import first_there
from searchapp.formats import worldtree
from searchapp.formats.problems import Problems
from searchapp.formats.worldtree import Question
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
from searchapp.tasks.shipped import shipped
from searchapp.tasks.split_files import TEST, TRAIN, SplitFiles

JUDGED_ROLE = "CENTRAL"
"""The role that a fact has in gold that is made of judgments, which know no roles; no figure depends on it."""

NOTHING = '" "'

_FILES = {
    TRAIN: ("ARC-Elementary+EXPL-Train.tsv", "questions.train.tsv"),
    "dev": ("ARC-Elementary+EXPL-Dev.tsv", "questions.dev.tsv"),
    TEST: ("ARC-Elementary+EXPL-Test-Masked.tsv", "questions.test.tsv"),
}
"""The names that the files have in TextGraphs-13, and in WorldTree 2: the first that is there is read."""

INFO = TaskInfo(
    name="explanation-2019",
    title="Explanation regeneration (TextGraphs-13)",
    about="For a science question and its right answer, rank every fact: those that explain the answer first.",
    mapping=MAPPING,
    examples_mapping=EXAMPLES_MAPPING,
    splits=SPLITS,
    default_depth=EVERY_FACT,
    official_measure=MEASURE,
    official_file=OFFICIAL_FILE,
    measures=("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100", "R@1000"),
)


class Explanation2019Collection(SplitFiles):
    """The tables, and a table of questions a split."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            INFO, folder, facts_in(folder), lambda split: first_there(folder / "questions", _FILES[split])
        )

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        questions = worldtree.read_questions(self.file(split), problems, masked=split == TEST)
        return list(map(_topic, questions))

    def check_split(self, split: str, problems: Problems) -> int:
        questions = worldtree.read_questions(
            self.file(split),
            problems,
            self.known_ids(),
            solved=split == TRAIN,
            masked=split == TEST,
        )
        return sum(1 for _ in questions)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        for path in self.example_files(split):
            for question in worldtree.read_questions(path, problems, self.documents.ids(), solved=True):
                if question.gold:
                    # On train, facts that count the same whatever their role rank better than any weights by role.
                    yield Example(_topic(question), dict.fromkeys(question.gold, 1.0))

    def solved(self, path: Path) -> Iterable[bool]:
        return worldtree.explained(path, Problems(lenient=True), masked=True).values()


class Explanation2019Format(RankingFile):
    """A ranking of every fact for each question that has an explanation."""

    scorer = Explanation2019Scorer(content_words)
    breakdowns = scorer
    folds_questions = True
    needs_every_fact = True

    def asked(self, part: Part[Collection], problems: Problems) -> Mapping[str, bool]:
        (path,) = part.files
        explained = worldtree.explained(path, problems, masked=part.split == TEST)
        masked = part.split == TEST and not any(explained.values())
        return {question: masked or has_explanation for question, has_explanation in explained.items()}

    def predictions(self, submission: Submission[Collection]) -> dict[str, list[str | None]]:
        return self.scorer.predictions(submission.run)

    def gold(self, grades: Grades, part: Part[Collection]) -> Mapping[str, Writer]:
        rows = [
            (question, " ".join(f"{fact}|{JUDGED_ROLE}" for fact, grade in of_topic.items() if grade > 0))
            for question, of_topic in grades.items()
        ]
        # An empty cell is a missing value to the organisers' script, a quoted space an explanation without facts.
        cells = ["questionID\texplanation", *(f"{question}\t{facts or NOTHING}" for question, facts in rows)]
        text = "".join(f"{row}\n" for row in cells)
        (path,) = part.files
        return {path.name: lambda file: file.write(text.encode())}

    def grades(self, files: Sequence[Path], part: Part[Collection]) -> Grades:
        folded = self.scorer.qrels(GoldFiles(files, ScorerOptions(split=part.split)))
        # The scorer knows questions without the letter case that their ids have.
        topics = {topic.id.lower(): topic.id for topic in part.topics(Problems(lenient=True))}
        return {topics.get(question, question): grades for question, grades in folded.items()}


def _topic(question: Question) -> Topic:
    """Question and right answer as one text, and both apart.

    The wrong options are for readers only: on train they help a ranking at best as much as chance does, and soon
    harm it.
    """
    fields = {"question": question.text, "answer": question.answer}
    options = options_of(question.options, question.answer_label)
    return Topic(question.id, f"{question.text} {question.answer}".strip(), fields, options)


TASK = shipped(INFO, Explanation2019Collection, Explanation2019Format())
