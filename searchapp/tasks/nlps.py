"""Natural language premise selection (TextGraphs-16, 2022).

A topic is a mathematical statement, the documents are all statements of the knowledge base, and the gold of a
topic are the statements that its proof uses. The statement itself is one of the documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import GoldFiles, ScorerOptions
from searchapp.evaluation.nlps import NEAREST, NlpsScorer
from searchapp.formats import json_stream, proofwiki, two_column
from searchapp.formats.problems import Problems, shown
from searchapp.model import Example, Markup, Topic
from searchapp.tasks.base import Grades, NoOfficialFile, OfficialFile, Part, Submission, TaskInfo, Writer
from searchapp.tasks.documents import DocumentSource
from searchapp.tasks.shipped import json_writer, shipped
from searchapp.tasks.split_files import TEST, TRAIN, SplitFiles

KNOWLEDGE_BASE = "knowledge_base.json"

INFO = TaskInfo(
    name="nlps",
    title="Natural language premise selection (TextGraphs-16)",
    about="For a mathematical statement, rank the statements that its proof uses.",
    mapping="premises",
    examples_mapping="premises",
    splits=(TRAIN, "dev", TEST),
    topics_are_documents=True,
    default_depth=NEAREST,
    official_measure=f"MAP@{NEAREST}",
    official_file="predict.txt",
    markup=Markup.wiki,
    measures=("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100", f"R@{NEAREST}"),
)


class NlpsCollection(SplitFiles):
    """A knowledge base, and a file of statements a split."""

    def __init__(self, folder: Path) -> None:
        knowledge_base = folder / KNOWLEDGE_BASE
        documents = DocumentSource(
            lambda: [knowledge_base],
            lambda problems: proofwiki.read_knowledge_base(knowledge_base, problems),
        )
        super().__init__(INFO, folder, documents, lambda split: folder / f"{split}_set.json")

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        return list(proofwiki.read_topics(self.file(split), problems))

    def check_split(self, split: str, problems: Problems) -> int:
        statements = proofwiki.read_statements(
            self.file(split), problems, known=self.known_ids(), masked=split == TEST
        )
        return sum(1 for _ in statements)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        for path in self.example_files(split):
            for statement in proofwiki.read_statements(path, problems, known=self.documents.ids()):
                topic = Topic(statement.id, statement.text)
                yield Example(topic, dict.fromkeys(map(str, statement.premises or ()), 1.0))

    def solved(self, path: Path) -> Iterable[bool]:
        statements = proofwiki.read_statements(path, Problems(lenient=True), masked=True)
        return (statement.premises is not None for statement in statements)


class NlpsFormat:
    """The file of two columns, and the scorer with its cut-off."""

    scorer = NlpsScorer()
    breakdowns = None

    def files(self, submission: Submission[NlpsCollection]) -> Mapping[str, Writer]:
        needed = submission.options.nearest or NEAREST
        for ranking in submission.run:
            distinct = len(set(ranking.document_ids()))
            if distinct < needed:
                raise NoOfficialFile(
                    f"statement {ranking.topic_id} has {distinct} premises, "
                    f"and the official file needs at least {needed} for each: rank deeper with `rank --depth`, or "
                    "choose a smaller cut-off with `export --nearest`"
                )
        return {INFO.official_file: lambda file: two_column.write_two_column(file, submission.run)}

    def predictions(self, submission: Submission[NlpsCollection]) -> dict[str, list[str | None]]:
        return self.scorer.predictions(submission.run)

    def validate(self, file: OfficialFile[NlpsCollection], problems: Problems) -> None:
        path, part = file.path, file.part
        if part is None:
            raise UsageError(f"name the split that {path} is for with --split: {' or '.join(INFO.splits)}")
        (split_file,) = part.files
        statements = _ids(split_file)
        premises = _ids(part.collection.folder / KNOWLEDGE_BASE)
        seen: dict[str, set[str]] = {}
        for row in two_column.read_rows(path):
            where = f"line {row.line}"
            if row.topic_id not in statements:
                problems.add(
                    path.name, "unknown statement", where, f"{row.topic_id} is not in the split {part.split}"
                )
                continue
            distinct = seen.setdefault(row.topic_id, set())
            if row.document_id not in premises:
                problems.add(
                    path.name, "unknown premise", where, f"{row.document_id} is not in {KNOWLEDGE_BASE}"
                )
            elif row.document_id == row.topic_id:
                problems.add(path.name, "statement among its own premises", where, str(row.document_id))
            elif row.document_id in distinct:
                problems.add(path.name, "repeated premise", where, f"{row.document_id} for {row.topic_id}")
            else:
                distinct.add(row.document_id)
        needed = file.options.nearest or NEAREST
        for statement in sorted(statements):
            count = len(seen.get(statement, ()))
            if statement not in seen:
                problems.add(path.name, "missing statement", f"statement {statement}", "it has no row")
            elif count < needed:
                detail = f"{count} valid premises, at least {needed} are needed"
                problems.add(path.name, "too few premises", f"statement {statement}", detail)

    def gold(self, grades: Grades, part: Part[NlpsCollection]) -> Mapping[str, Writer]:
        texts = {topic.id: topic.text for topic in part.topics(Problems(lenient=True))}
        statements = {
            topic: {
                "text": texts.get(topic, ""),
                "premises": [_number(premise) for premise, grade in of_topic.items() if grade > 0],
            }
            for topic, of_topic in grades.items()
        }
        (path,) = part.files
        return {path.name: json_writer(statements)}

    def grades(self, files: Sequence[Path], part: Part[NlpsCollection]) -> Grades:
        return self.scorer.qrels(GoldFiles(files, ScorerOptions(split=part.split)))


def _ids(path: Path) -> frozenset[str]:
    """Every id in one of the task's files, whatever else is wrong with its entry.

    Raises:
        InvalidFiles: the file is missing, or no JSON object.
    """
    problems = Problems(lenient=True)
    ids = frozenset(id_ for id_, _value in json_stream.read_members(path, problems))
    problems.raise_if_any()
    return ids


def _number(premise: str) -> int:
    """A premise's id as the organisers' gold has it.

    Raises:
        DataError: it is no premise's.
    """
    try:
        return int(premise)
    except ValueError as error:
        raise DataError(
            f"{shown(premise)} is not a premise, whose ids are whole numbers, so the gold can't contain it: retract "
            "the judgment on it, or leave out its annotator"
        ) from error


TASK = shipped(INFO, NlpsCollection, NlpsFormat())
