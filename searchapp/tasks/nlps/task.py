"""Natural language premise selection (TextGraphs-16, 2022).

A topic is a mathematical statement, the documents are all statements of the knowledge base, and the gold of a
topic are the statements that its proof uses. The statement itself is one of the documents.

The corpus is made of ProofWiki, in JSON:

    knowledge_base.json   {"5748": "Let $G$ be a group ...", ...}
    train_set.json        {"10267": {"text": "Let $r$ ...", "premises": [5748, ...]}, ...}
    dev_set.json          likewise
    test_set.json         likewise, with the premises masked: no such key, null, or an empty list

Ids are text here; the premises, which the files hold as integers of any size, become text digit for digit.
The files are streamed: one entry is in memory at a time, besides the ids seen so far.

Every problem is recorded and the next entry read. An entry with a problem is left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from searchapp.errors import DataError, UsageError
from searchapp.formats import json_files, two_column
from searchapp.formats.problems import Problems, shown, unusable_id
from searchapp.model import Document, Example, Markup, Topic
from searchapp.tasks.base import (
    DocumentSource,
    Grades,
    NoOfficialFile,
    OfficialFile,
    OfficialFormat,
    Part,
    Submission,
    TaskInfo,
    Writer,
)
from searchapp.tasks.nlps.scorer import NEAREST, NlpsScorer
from searchapp.tasks.shipped import json_writer, shipped
from searchapp.tasks.splits import TEST, TRAIN, SplitFiles
from searchapp.text import counted


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement to prove. `premises` has each premise once, in the file's order; None when it is masked."""

    id: str
    text: str
    premises: tuple[str, ...] | None


def read_knowledge_base(path: Path, problems: Problems) -> Iterator[Document]:
    """The statements of a knowledge base, in the order of the file; its problems go to `problems`."""
    for entry in _entries(path, problems, "premise"):
        text = entry.text(entry.value, "the value")
        if entry.good:
            yield Document(entry.id, text)


def read_statements(
    path: Path, problems: Problems, known: Container[str] | None = None, masked: bool = False
) -> Iterator[Statement]:
    """The statements of a split, in the order of the file; its problems go to `problems`.

    `known` has the ids of the knowledge base, among which the premises must be; without it anything goes.
    With `masked`, statements may lack their premises: no key, null and an empty list all mean masked. Without
    it an empty list is a statement that has no premises, and the other two are problems.
    """
    for entry in _entries(path, problems, "statement"):
        if not isinstance(entry.value, dict):
            entry.wrong("wrong type", f"the value is {json_files.type_name(entry.value)}, not an object")
            continue
        text = entry.text_of("text")
        if masked and not entry.value.get("premises"):
            premises = None
        elif "premises" in entry.value:
            premises = entry.premises(entry.value["premises"], known)
        else:
            entry.lacks("premises")
        if entry.good:
            yield Statement(entry.id, text, premises)


def read_topics(path: Path, problems: Problems) -> Iterator[Topic]:
    """The statements of a split as topics, in the order of the file; their premises are not looked at."""
    for entry in _entries(path, problems, "statement"):
        if not isinstance(entry.value, dict):
            entry.wrong("wrong type", f"the value is {json_files.type_name(entry.value)}, not an object")
            continue
        text = entry.text_of("text")
        if entry.good:
            yield Topic(entry.id, text)


class _Entry(json_files.EntryReader):
    """One member of a file's object; `id` is its key."""

    def __init__(self, id_: str, value: object, path: Path, noun: str, problems: Problems) -> None:
        super().__init__(path, f"{noun} {shown(id_)}", value, problems)
        self.id = id_

    def premises(self, value: object, known: Container[str] | None) -> tuple[str, ...]:
        """The value as ids, each of them once."""
        if not isinstance(value, list):
            self.wrong("wrong type", f"premises is {json_files.type_name(value)}, not a list")
            return ()
        ids = []
        for premise in value:
            # To Python a boolean is an integer; to JSON it is not.
            if not isinstance(premise, int) or isinstance(premise, bool):
                self.wrong("wrong type", f"a premise is {json_files.type_name(premise)}, not an integer")
                continue
            ids.append(str(premise))
            if known is not None and ids[-1] not in known:
                self.wrong("unknown premise", f"{shown(ids[-1])} is not in the knowledge base")
        return tuple(dict.fromkeys(ids))


def _entries(path: Path, problems: Problems, noun: str) -> Iterator[_Entry]:
    """The members of a file's object that have a usable id of their own."""
    seen: set[str] = set()
    for id_, value in json_files.read_members(path, problems):
        entry = _Entry(id_, value, path, noun, problems)
        if id_ in seen:
            entry.wrong("duplicate id", "the first one counts")
            continue
        seen.add(id_)
        if problem := unusable_id(id_):
            entry.wrong(*problem)
        else:
            yield entry


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
            lambda problems: read_knowledge_base(knowledge_base, problems),
        )
        super().__init__(INFO, folder, documents, lambda split: folder / f"{split}_set.json")

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        return list(read_topics(self.file(split), problems))

    def check_split(self, split: str, problems: Problems) -> int:
        statements = read_statements(self.file(split), problems, known=self.known_ids(), masked=split == TEST)
        return sum(1 for _ in statements)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        for path in self.example_files(split):
            for statement in read_statements(path, problems, known=self.documents.ids()):
                topic = Topic(statement.id, statement.text)
                yield Example(topic, dict.fromkeys(map(str, statement.premises or ()), 1.0))

    def solved(self, path: Path) -> Iterable[bool]:
        statements = read_statements(path, Problems(lenient=True), masked=True)
        return (statement.premises is not None for statement in statements)


class NlpsFormat(OfficialFormat[dict[str, list[str | None]], NlpsCollection]):
    """The file of two columns, and the scorer with its cut-off."""

    scorer = NlpsScorer()

    def files(self, submission: Submission[NlpsCollection]) -> Mapping[str, Writer]:
        needed = submission.options.nearest or NEAREST
        for ranking in submission.run:
            distinct = len(set(ranking.document_ids()))
            if distinct < needed:
                raise NoOfficialFile(
                    f"statement {ranking.topic_id} has {counted(distinct, 'premise')}, "
                    f"and the official file needs at least {needed} for each: rank deeper with `rank --depth`, or "
                    "choose a smaller cut-off with `export --nearest`"
                )
        return {INFO.official_file: lambda file: two_column.write_two_column(file, submission.run)}

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
                detail = f"{counted(count, 'valid premise')}, at least {needed} are needed"
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


def _ids(path: Path) -> frozenset[str]:
    """Every id in one of the task's files, whatever else is wrong with its entry.

    Raises:
        InvalidFiles: the file is missing, or no JSON object.
    """
    problems = Problems(lenient=True)
    ids = frozenset(id_ for id_, _value in json_files.read_members(path, problems))
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
