"""Explanation regeneration: the facts of WorldTree ranked for a question and its right answer.

`TASK_2019` is TextGraphs-13, with the questions of WorldTree 1 or 2. Questions without an explanation are ranked too;
the official scorer ignores them. `TASK_2021` is TextGraphs-15, with questions and ratings in one file for each split;
unrated facts are not relevant.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path

from searchapp.errors import UsageError
from searchapp.files import first_existing
from searchapp.formats import two_column
from searchapp.formats.problems import EntryProblems, Problems, shown
from searchapp.model import Example, Option, Run, Topic
from searchapp.tasks.base import (
    Collection,
    DataSplit,
    DocumentSource,
    Grades,
    OfficialFormat,
    TaskInfo,
    Writer,
    json_writer,
    shipped,
)
from searchapp.tasks.explanation import scorer_2019, scorer_2021, worldtree
from searchapp.tasks.explanation.worldtree import MAX_RATING, ExplainedQuestion, RatedQuestion
from searchapp.tasks.splits import TEST, TRAIN, GoldReading, SplitFiles
from searchapp.text import counted

SPLITS = (TRAIN, "dev", TEST)

# The depth at which every fact is ranked, Elasticsearch's limit without other settings.
ALL_FACTS_DEPTH = 10_000

OFFICIAL_FILE = "predict.txt"


def _facts_in(folder: Path) -> DocumentSource:
    tables = folder / "tables"
    return DocumentSource(
        lambda: worldtree.table_files(tables), lambda problems: worldtree.read_facts(tables, problems)
    )


def _topic(question: ExplainedQuestion | RatedQuestion, options: Mapping[str, str], right: str) -> Topic:
    # The options are only displayed: on train, the wrong ones do not improve a ranking significantly.
    return Topic(
        question.id,
        f"{question.text} {question.answer}".strip(),
        {"question": question.text, "answer": question.answer},
        tuple(Option(label, text, label == right) for label, text in options.items()),
    )


class RankingFile(OfficialFormat[dict[str, list[str | None]], Collection]):
    """The official file: a row for each fact of a question's ranking."""

    # Whether the official scorer ignores the letter case of question ids.
    folds_questions: bool
    # Whether a ranking must have every fact.
    needs_every_fact: bool

    @abstractmethod
    def required_questions(self, split: DataSplit[Collection], problems: Problems) -> Mapping[str, bool]:
        """Return whether each question of a split must be answered, by id."""

    def files(self, run: Run, split: DataSplit[Collection]) -> Mapping[str, Writer]:
        return {OFFICIAL_FILE: lambda file: two_column.write_two_column(file, run)}

    def validate(
        self,
        path: Path,
        split: DataSplit[Collection] | None,
        problems: Problems,
    ) -> None:
        if split is None:
            raise UsageError(f"name the split that {path} is for with --split: {' or '.join(SPLITS)}")
        data_problems = Problems(lenient=True)
        required = self.required_questions(split, data_problems)
        facts = {document.id.lower() for document in split.collection.documents.read(data_problems)}
        data_problems.raise_if_any()
        ranked = self._valid_rows(path, split.name, set(map(self._folded, required)), facts, problems)
        for id_, must_answer in required.items():
            question = self._folded(id_)
            count = len(ranked.get(question, ()))
            entry = EntryProblems(path.name, f"question {shown(id_)}", problems)
            if question in ranked and self.needs_every_fact and count < len(facts):
                entry.wrong(
                    "too few facts", f"{count:,} of {counted(len(facts), 'fact')} ranked: rank all facts"
                )
            elif question not in ranked and must_answer:
                entry.wrong("missing question", "it has no row")

    def _valid_rows(
        self, path: Path, split: str, questions: Set[str], facts: AbstractCollection[str], problems: Problems
    ) -> dict[str, set[str]]:
        ranked: dict[str, set[str]] = {}
        report = partial(problems.add, path.name)
        for line, question, fact in two_column.read_rows(path):
            if question is None or fact is None:
                noun = "question" if question is None else "fact"
                report("missing value", f"line {line}", f"the {noun} is empty or a missing value")
            elif self._folded(question) not in questions:
                report("unknown question", f"line {line}", f"{shown(question)} is not in the split {split}")
            else:
                of_question = ranked.setdefault(self._folded(question), set())
                if fact.lower() not in facts:
                    report("unknown fact", f"line {line}", f"no table has {shown(fact)}")
                elif fact.lower() in of_question:
                    report("repeated fact", f"line {line}", f"{shown(fact)} for {shown(question)}")
                else:
                    of_question.add(fact.lower())
        return ranked

    def _folded(self, question: str) -> str:
        return question.lower() if self.folds_questions else question


# The role of facts in gold from judgments, which have no roles; no figure depends on it.
JUDGED_ROLE = "CENTRAL"

EMPTY_EXPLANATION = '" "'

# The file names of TextGraphs-13 and of WorldTree 2; the first existing file is read.
_FILES = {
    TRAIN: ("ARC-Elementary+EXPL-Train.tsv", "questions.train.tsv"),
    "dev": ("ARC-Elementary+EXPL-Dev.tsv", "questions.dev.tsv"),
    TEST: ("ARC-Elementary+EXPL-Test-Masked.tsv", "questions.test.tsv"),
}

INFO_2019 = TaskInfo(
    guidelines=Path(__file__).with_name("guidelines_2019.md"),
    name="explanation-2019",
    title="Explanation regeneration (TextGraphs-13)",
    about="For a science question and its right answer, rank all facts: facts that explain the answer first.",
    mapping=worldtree.MAPPING,
    training_mapping="science_questions",
    splits=SPLITS,
    default_depth=ALL_FACTS_DEPTH,
    official_measure=scorer_2019.MEASURE,
    official_file=OFFICIAL_FILE,
    measures=("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100", "R@1000"),
)


class Explanation2019Collection(SplitFiles):
    """The tables, and a table of questions for each split."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            INFO_2019,
            folder,
            _facts_in(folder),
            lambda split: first_existing(folder / "questions", _FILES[split]),
        )

    def questions(self, path: Path, problems: Problems, gold: GoldReading) -> Iterator[ExplainedQuestion]:
        return worldtree.read_questions(
            path, problems, gold.known, training=gold.training, masked=gold.masked
        )

    def topic(self, question: ExplainedQuestion) -> Topic:
        return _topic(question, question.options, question.answer_label)

    def example(self, question: ExplainedQuestion) -> Example | None:
        # On train, equal votes of all facts rank better than any weights by role.
        return Example(self.topic(question), dict.fromkeys(question.gold, 1.0)) if question.gold else None

    def gold_flags(self, path: Path) -> Iterable[bool]:
        return worldtree.questions_with_explanation(path, Problems(lenient=True), masked=True).values()


class Explanation2019Format(RankingFile):
    """A ranking of every fact for each question with an explanation."""

    scorer = scorer_2019.Explanation2019Scorer()
    breakdowns = scorer
    folds_questions = True
    needs_every_fact = True

    def required_questions(self, split: DataSplit[Collection], problems: Problems) -> Mapping[str, bool]:
        (path,) = split.files
        has_explanation_by_id = worldtree.questions_with_explanation(
            path, problems, masked=split.name == TEST
        )
        is_masked = split.name == TEST and not any(has_explanation_by_id.values())
        return {
            question: is_masked or has_explanation
            for question, has_explanation in has_explanation_by_id.items()
        }

    def gold(self, grades: Grades, split: DataSplit[Collection]) -> Mapping[str, Writer]:
        rows = ["questionID\texplanation"]
        for question, of_topic in grades.items():
            facts = " ".join(f"{fact}|{JUDGED_ROLE}" for fact, grade in of_topic.items() if grade > 0)
            # To the official script an empty cell is a missing value, a quoted space an explanation without facts.
            rows.append(f"{question}\t{facts or EMPTY_EXPLANATION}")
        text = "".join(f"{row}\n" for row in rows)
        (path,) = split.files
        return {path.name: lambda file: file.write(text.encode())}

    def grades(self, files: Sequence[Path], split: DataSplit[Collection]) -> Grades:
        # `score` rejects a header that stops the official script, but grades can be read.
        gold = replace(split, options=replace(split.options, lenient=True)).gold(files)
        qrels = self.scorer.qrels(gold)
        # The scorer ignores the letter case of question ids.
        topics = {topic.id.lower(): topic.id for topic in split.topics(Problems(lenient=True))}
        return {topics.get(question, question): grades for question, grades in qrels.items()}


TASK_2019 = shipped(INFO_2019, Explanation2019Collection, Explanation2019Format())


INFO_2021 = TaskInfo(
    guidelines=Path(__file__).with_name("guidelines_2021.md"),
    name="explanation-2021",
    title="Explanation regeneration with ratings (TextGraphs-15)",
    about="For a science question and its right answer, rank facts by their relevance to its explanation.",
    mapping=worldtree.MAPPING,
    training_mapping="science_questions",
    splits=SPLITS,
    default_depth=ALL_FACTS_DEPTH,
    official_measure=scorer_2021.MEASURE,
    official_file=OFFICIAL_FILE,
    measures=("nDCG", "nDCG@10", "AP", "RR", "P@1", "P@5", "P@10", "R@10", "R@100", "R@1000"),
    # The task names only the ends of the scale.
    grades=("unrelated", "least relevant", "low", "middle", "high", "very high", "most critical"),
)


class Explanation2021Collection(SplitFiles):
    """The tables, a file of rated questions for each split, and tables of the questions' options."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            INFO_2021, folder, _facts_in(folder), lambda split: folder / f"wt-expert-ratings.{split}.json"
        )

    def questions(self, path: Path, problems: Problems, gold: GoldReading) -> Iterator[RatedQuestion]:
        return worldtree.read_ratings(path, problems, gold.known, training=gold.training, masked=gold.masked)

    def topic(self, question: RatedQuestion) -> Topic:
        return _topic(question, {}, "")

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        questions = worldtree.read_ratings(self.file(split), problems)
        options = worldtree.read_options(self._options_file(split), problems)
        return [_topic(question, *options.get(question.id, ({}, ""))) for question in questions]

    def check_split(self, split: str, problems: Problems) -> int:
        worldtree.read_options(self._options_file(split), problems)
        return super().check_split(split, problems)

    def example(self, question: RatedQuestion) -> Example | None:
        example = self.judged_example(self.topic(question), question.ratings)
        return example if example.gold else None

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        return Example(topic, {fact: grade / MAX_RATING for fact, grade in grades.items() if grade > 0})

    def gold_flags(self, path: Path) -> Iterable[bool]:
        known = self.documents.ids()
        questions = worldtree.read_ratings(path, Problems(lenient=True), known, masked=True)
        return (bool(question.ratings) for question in questions)

    def _options_file(self, split: str) -> Path:
        return self.folder / "questions" / f"questions.{split}.tsv"


class Explanation2021Format(RankingFile):
    """A ranking of facts for each question, of any length."""

    scorer = scorer_2021.Explanation2021Scorer()
    breakdowns = scorer
    folds_questions = False
    needs_every_fact = False

    def required_questions(self, split: DataSplit[Collection], problems: Problems) -> Mapping[str, bool]:
        (path,) = split.files
        return {question.id: True for question in worldtree.read_ratings(path, problems)}

    def gold(self, grades: Grades, split: DataSplit[Collection]) -> Mapping[str, Writer]:
        problems = [
            {
                "qid": question,
                "documents": [{"uuid": fact, "relevance": grade} for fact, grade in of_topic.items()],
            }
            for question, of_topic in grades.items()
        ]
        (path,) = split.files
        return {path.name: json_writer({"rankingProblems": problems})}


TASK_2021 = shipped(INFO_2021, Explanation2021Collection, Explanation2021Format())
