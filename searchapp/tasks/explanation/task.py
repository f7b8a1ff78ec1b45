"""Explanation regeneration: the facts of WorldTree ranked for a question and its right answer.

A topic is a question with its right answer, the documents are the facts of the WorldTree tables, and the gold of a
topic are the facts that explain the answer.

`TASK_2019` (TextGraphs-13): The questions are those of WorldTree 1, or of WorldTree 2 in its own layout. Some have no
explanation: they are ranked like the others, and the official scorer does not look at them.

`TASK_2021` (TextGraphs-15): Questions and ratings are in one file a split; facts that are not rated are not relevant.
The options of the questions are in tables that come with WorldTree 2.1, `questions/questions.{train,dev,test}.tsv`,
and are shown to people where these lie beside the ratings.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from searchapp import resources
from searchapp.errors import UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.files import first_there
from searchapp.formats import two_column
from searchapp.formats.problems import Problems, shown
from searchapp.model import Example, Option, Topic
from searchapp.tasks import base
from searchapp.tasks.base import (
    Collection,
    DocumentSource,
    Grades,
    OfficialFile,
    OfficialFormat,
    Part,
    Submission,
    TaskInfo,
    Writer,
)
from searchapp.tasks.explanation import worldtree
from searchapp.tasks.explanation.scorer_2019 import MEASURE as MEASURE_2019
from searchapp.tasks.explanation.scorer_2019 import Explanation2019Scorer
from searchapp.tasks.explanation.scorer_2021 import MEASURE as MEASURE_2021
from searchapp.tasks.explanation.scorer_2021 import Explanation2021Scorer
from searchapp.tasks.explanation.worldtree import HIGHEST, Question, RatedQuestion
from searchapp.tasks.shipped import json_writer, shipped
from searchapp.tasks.splits import TEST, TRAIN, SplitFiles
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.lucene.analysis import Analyzer


MAPPING = "facts"
EXAMPLES_MAPPING = "science_questions"
SPLITS = (TRAIN, "dev", TEST)

EVERY_FACT = 10_000
"""The depth at which every fact is ranked; Elasticsearch returns no more without further settings."""

OFFICIAL_FILE = "predict.txt"


def facts_in(folder: Path) -> DocumentSource:
    """The facts of the tables in a folder."""
    tables = folder / "tables"
    return DocumentSource(
        lambda: worldtree.table_files(tables), lambda problems: worldtree.read_facts(tables, problems)
    )


class RankingFile(OfficialFormat[dict[str, list[str | None]], base.Collection]):
    """The official file: a row for each fact of a question's ranking.

    `folds_questions` says whether the official scorer folds the letter case of question ids, `needs_every_fact`
    whether a ranking that lacks facts is a mistake.
    """

    folds_questions: bool
    needs_every_fact: bool

    @abstractmethod
    def asked(self, part: Part[base.Collection], problems: Problems) -> Mapping[str, bool]:
        """The ids of a split's questions, and whether each must be answered."""

    def files(self, submission: Submission[base.Collection]) -> Mapping[str, Writer]:
        """What writes it, for any run: a ranking may be short."""
        return {OFFICIAL_FILE: lambda file: two_column.write_two_column(file, submission.run)}

    def validate(self, file: OfficialFile[base.Collection], problems: Problems) -> None:
        """Find everything that is wrong with one."""
        path, part = file.path, file.part
        if part is None:
            raise UsageError(f"name the split that {path} is for with --split: {' or '.join(SPLITS)}")
        own = Problems(lenient=True)
        asked = self.asked(part, own)
        facts = {document.id.lower() for document in part.collection.documents.read(own)}
        own.raise_if_any()
        seen = self._valid_rows(path, part.split, set(map(self._folded, asked)), facts, problems)
        for id_, must_answer in asked.items():
            question = self._folded(id_)
            count = len(seen.get(question, ()))
            where = f"question {shown(id_)}"
            if question in seen and self.needs_every_fact and count < len(facts):
                detail = f"{count:,} of {counted(len(facts), 'fact')} ranked: rank every one"
                problems.add(path.name, "too few facts", where, detail)
            elif question not in seen and must_answer:
                problems.add(path.name, "missing question", where, "it has no row")

    def _valid_rows(
        self, path: Path, split: str, questions: Set[str], facts: AbstractCollection[str], problems: Problems
    ) -> dict[str, set[str]]:
        """The facts of each question that has a row of its own, as far as the rows are right."""
        seen: dict[str, set[str]] = {}
        for row in two_column.read_rows(path):
            where = f"line {row.line}"
            if row.topic_id is None or row.document_id is None:
                noun = "question" if row.topic_id is None else "fact"
                detail = f"the {noun} is empty or reads as a missing value"
                problems.add(path.name, "missing value", where, detail)
                continue
            question = self._folded(row.topic_id)
            fact = row.document_id.lower()
            if question not in questions:
                detail = f"{shown(row.topic_id)} is not in the split {split}"
                problems.add(path.name, "unknown question", where, detail)
                continue
            ranked = seen.setdefault(question, set())
            if fact not in facts:
                detail = f"{shown(row.document_id)} is in no table"
                problems.add(path.name, "unknown fact", where, detail)
            elif fact in ranked:
                detail = f"{shown(row.document_id)} for {shown(row.topic_id)}"
                problems.add(path.name, "repeated fact", where, detail)
            else:
                ranked.add(fact)
        return seen

    def _folded(self, question: str) -> str:
        """The id of a question as the official scorer compares it."""
        return question.lower() if self.folds_questions else question


def options_of(options: Mapping[str, str], right: str) -> tuple[Option, ...]:
    """The options of a question by their labels, for people; `right` is the label of the right one."""
    return tuple(Option(label, text, label == right) for label, text in options.items())


def content_words(text: str) -> frozenset[str]:
    """The terms of a text by which lexical overlap is measured: those that the facts are indexed under."""
    return frozenset(term for term, _position in _analyzer().terms(text))


@cache
def _analyzer() -> Analyzer:
    from searchapp.lucene.analysis import AnalysisRegistry

    return AnalysisRegistry(resources.index_mapping(MAPPING)["settings"]["analysis"]).analyzer("fact")


JUDGED_ROLE = "CENTRAL"
"""The role that a fact has in gold that is made of judgments, which know no roles; no figure depends on it."""

NOTHING = '" "'

_FILES = {
    TRAIN: ("ARC-Elementary+EXPL-Train.tsv", "questions.train.tsv"),
    "dev": ("ARC-Elementary+EXPL-Dev.tsv", "questions.dev.tsv"),
    TEST: ("ARC-Elementary+EXPL-Test-Masked.tsv", "questions.test.tsv"),
}
"""The names that the files have in TextGraphs-13, and in WorldTree 2: the first that is there is read."""

INFO_2019 = TaskInfo(
    name="explanation-2019",
    title="Explanation regeneration (TextGraphs-13)",
    about="For a science question and its right answer, rank every fact: those that explain the answer first.",
    mapping=MAPPING,
    examples_mapping=EXAMPLES_MAPPING,
    splits=SPLITS,
    default_depth=EVERY_FACT,
    official_measure=MEASURE_2019,
    official_file=OFFICIAL_FILE,
    measures=("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100", "R@1000"),
)


class Explanation2019Collection(SplitFiles):
    """The tables, and a table of questions a split."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            INFO_2019,
            folder,
            facts_in(folder),
            lambda split: first_there(folder / "questions", _FILES[split]),
        )

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        questions = worldtree.read_questions(self.file(split), problems, masked=split == TEST)
        return list(map(_topic_2019, questions))

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
                    yield Example(_topic_2019(question), dict.fromkeys(question.gold, 1.0))

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

    def grades(
        self, files: Sequence[Path], part: Part[Collection], options: ScorerOptions = ScorerOptions()
    ) -> Grades:
        # A header at which the organisers' script stops says the same; `score` is what refuses it.
        folded = self.scorer.qrels(part.gold(files, replace(options, lenient=True)))
        # The scorer knows questions without the letter case that their ids have.
        topics = {topic.id.lower(): topic.id for topic in part.topics(Problems(lenient=True))}
        return {topics.get(question, question): grades for question, grades in folded.items()}


def _topic_2019(question: Question) -> Topic:
    """Question and right answer as one text, and both apart.

    The wrong options are for readers only: on train they help a ranking at best as much as chance does, and soon
    harm it.
    """
    fields = {"question": question.text, "answer": question.answer}
    options = options_of(question.options, question.answer_label)
    return Topic(question.id, f"{question.text} {question.answer}".strip(), fields, options)


TASK_2019 = shipped(INFO_2019, Explanation2019Collection, Explanation2019Format())


NONE: Mapping[str, str] = MappingProxyType({})

INFO_2021 = TaskInfo(
    name="explanation-2021",
    title="Explanation regeneration with ratings (TextGraphs-15)",
    about="For a science question and its right answer, rank facts by how much they matter to explaining it.",
    mapping=MAPPING,
    examples_mapping=EXAMPLES_MAPPING,
    splits=SPLITS,
    default_depth=EVERY_FACT,
    official_measure=MEASURE_2021,
    official_file=OFFICIAL_FILE,
    measures=("nDCG", "nDCG@10", "AP", "RR", "P@1", "P@5", "P@10", "R@10", "R@100", "R@1000"),
    # The organisers name the ends of their scale only; between them its grades go by their place.
    grades=("unrelated", "least relevant", "low", "middle", "high", "very high", "most critical"),
)


class Explanation2021Collection(SplitFiles):
    """The tables, a file of rated questions a split, and tables of the questions' options."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            INFO_2021, folder, facts_in(folder), lambda split: folder / f"wt-expert-ratings.{split}.json"
        )

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        questions = worldtree.read_ratings(self.file(split), problems)
        options = worldtree.read_options(self._options_file(split), problems)
        return [_topic_2021(question, *options.get(question.id, ({}, ""))) for question in questions]

    def check_split(self, split: str, problems: Problems) -> int:
        worldtree.read_options(self._options_file(split), problems)
        questions = worldtree.read_ratings(
            self.file(split),
            problems,
            self.known_ids(),
            masked=split == TEST,
            solved=split == TRAIN,
        )
        return sum(1 for _ in questions)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        for path in self.example_files(split):
            for question in worldtree.read_ratings(path, problems, self.documents.ids(), solved=True):
                example = self.judged_example(_topic_2021(question), question.ratings)
                if example.gold:
                    yield example

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        return Example(topic, {fact: grade / HIGHEST for fact, grade in grades.items() if grade > 0})

    def solved(self, path: Path) -> Iterable[bool]:
        known = self.documents.ids()
        questions = worldtree.read_ratings(path, Problems(lenient=True), known, masked=True)
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
        return {question.id: True for question in worldtree.read_ratings(path, problems)}

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


def _topic_2021(question: RatedQuestion, options: Mapping[str, str] = NONE, right: str = "") -> Topic:
    """Question and right answer as one text, and both apart; the options are for readers only."""
    fields = {"question": question.text, "answer": question.answer}
    text = f"{question.text} {question.answer}".strip()
    return Topic(question.id, text, fields, options_of(options, right))


TASK_2021 = shipped(INFO_2021, Explanation2021Collection, Explanation2021Format())
