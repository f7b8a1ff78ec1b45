"""Natural language premise selection (TextGraphs-16, 2022).

A topic is a mathematical statement, the documents are all statements of the knowledge base (including the topic
itself), and the gold of a topic is the statements that its proof uses.

    knowledge_base.json   {"5748": "Let $G$ be a group ...", ...}
    train_set.json        {"10267": {"text": "Let $r$ ...", "premises": [5748, ...]}, ...}
    dev_set.json          likewise
    test_set.json         likewise, with the premises masked: no such key, null, or an empty list

Ids are text here. Files are streamed. Every problem is reported, and the entry is skipped.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import partial
from pathlib import Path

from searchapp.errors import DataError, UsageError
from searchapp.formats import json_files, two_column
from searchapp.formats.problems import EntryProblems, Problems, shown, unusable_id
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, Markup, Run, Topic
from searchapp.tasks.base import (
    DataSplit,
    DocumentSource,
    Grades,
    NoOfficialFile,
    OfficialFormat,
    TaskInfo,
    Writer,
    json_writer,
    shipped,
)
from searchapp.tasks.nlps.scorer import CUTOFF, NlpsScorer
from searchapp.tasks.splits import TEST, TRAIN, GoldReading, SplitFiles
from searchapp.text import counted


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement to prove."""

    id: str
    text: str
    # Distinct premises in the file's order; None if masked or not read.
    premises: tuple[str, ...] | None

    @property
    def has_gold(self) -> bool:
        return self.premises is not None


def read_knowledge_base(path: Path, problems: Problems) -> Iterator[Document]:
    """Read the statements of a knowledge base, in the order of the file."""
    for id_, entry in _entries(path, problems, "premise"):
        text = entry.text(entry.value, "the value")
        if entry.good:
            yield Document(id_, text)


def read_statements(
    path: Path,
    problems: Problems,
    known: Container[str] | None = None,
    *,
    gold: bool = True,
    masked: bool = False,
) -> Iterator[Statement]:
    """Read the statements of a split, in the order of the file.

    Premises must be in `known`; None accepts any. Without `gold` they are not read. With `masked` they may be
    missing, null or empty; otherwise only an empty list is valid.
    """
    for id_, entry in _entries(path, problems, "statement"):
        if not entry.is_object("the value"):
            continue
        text = entry.text_of("text")
        premises = None
        if gold and not (masked and not entry.value.get("premises")):
            premises = _premises(entry, known)
        if entry.good:
            yield Statement(id_, text, premises)


def _premises(entry: json_files.EntryReader, known: Container[str] | None) -> tuple[str, ...]:
    ids = []
    for premise in entry.list_of("premises") or ():
        # To Python a boolean is an integer; to JSON it is not.
        if not isinstance(premise, int) or isinstance(premise, bool):
            entry.wrong("wrong type", f"a premise is {json_files.type_name(premise)}, not an integer")
            continue
        ids.append(str(premise))
        if known is not None and ids[-1] not in known:
            entry.wrong("unknown premise", f"{shown(ids[-1])} is not in the knowledge base")
    return tuple(dict.fromkeys(ids))


def _entries(path: Path, problems: Problems, noun: str) -> Iterator[tuple[str, json_files.EntryReader]]:
    seen: set[str] = set()
    for id_, value in json_files.read_members(path, problems):
        entry = json_files.EntryReader(path, f"{noun} {shown(id_)}", value, problems)
        if id_ in seen:
            entry.wrong("duplicate id", "the first one counts")
            continue
        seen.add(id_)
        if problem := unusable_id(id_):
            entry.wrong(*problem)
        else:
            yield id_, entry


KNOWLEDGE_BASE = "knowledge_base.json"

INFO = TaskInfo(
    guidelines=Path(__file__).with_name("guidelines.md"),
    name="nlps",
    title="Natural language premise selection (TextGraphs-16)",
    about="For a mathematical statement, rank the statements that its proof uses.",
    mapping="premises",
    training_mapping="premises",
    splits=(TRAIN, "dev", TEST),
    topics_are_documents=True,
    default_depth=CUTOFF,
    official_measure=f"MAP@{CUTOFF}",
    official_file="predict.txt",
    markup=Markup.wiki,
    measures=("AP", "RR", "nDCG@10", "P@1", "P@5", "P@10", "R@10", "R@100", f"R@{CUTOFF}"),
)


class NlpsCollection(SplitFiles):
    """A knowledge base, and a file of statements for each split."""

    def __init__(self, folder: Path) -> None:
        path = folder / KNOWLEDGE_BASE
        documents = DocumentSource(lambda: [path], lambda problems: read_knowledge_base(path, problems))
        super().__init__(INFO, folder, documents, lambda split: folder / f"{split}_set.json")

    def questions(self, path: Path, problems: Problems, gold: GoldReading) -> Iterator[Statement]:
        return read_statements(path, problems, gold.known, gold=not gold.skipped, masked=gold.masked)

    def topic(self, question: Statement) -> Topic:
        return Topic(question.id, question.text)

    def example(self, question: Statement) -> Example:
        return Example(self.topic(question), dict.fromkeys(question.premises or (), 1.0))


class NlpsFormat(OfficialFormat[dict[str, list[str | None]], NlpsCollection]):
    """The file of two columns, and the scorer with its cut-off."""

    scorer = NlpsScorer()

    def files(self, run: Run, split: DataSplit[NlpsCollection]) -> Mapping[str, Writer]:
        required = split.options.cutoff or CUTOFF
        for ranking in run:
            distinct = len(set(ranking.document_ids()))
            if distinct < required:
                raise NoOfficialFile(
                    f"statement {ranking.topic_id} has {counted(distinct, 'premise')}, but the "
                    f"official file needs at least {required} for each statement: rank deeper with "
                    "`rank --depth`, or "
                    "choose a smaller cut-off with `export --cutoff`"
                )
        return {INFO.official_file: lambda file: two_column.write_two_column(file, run)}

    def validate(
        self,
        path: Path,
        split: DataSplit[NlpsCollection] | None,
        problems: Problems,
    ) -> None:
        if split is None:
            raise UsageError(f"name the split that {path} is for with --split: {' or '.join(INFO.splits)}")
        (split_file,) = split.files
        statements = _ids(split_file)
        premises = _ids(split.collection.folder / KNOWLEDGE_BASE)
        ranked: dict[str, set[str]] = {}
        report = partial(problems.add, path.name)
        for line, statement, premise in two_column.read_rows(path):
            if statement not in statements:
                report("unknown statement", f"line {line}", f"{statement} is not in the split {split.name}")
                continue
            premises_of_statement = ranked.setdefault(statement, set())
            if premise not in premises:
                report("unknown premise", f"line {line}", f"{premise} is not in {KNOWLEDGE_BASE}")
            elif premise == statement:
                report("statement among its own premises", f"line {line}", premise)
            elif premise in premises_of_statement:
                report("repeated premise", f"line {line}", f"{premise} for {statement}")
            else:
                premises_of_statement.add(premise)
        required = split.options.cutoff or CUTOFF
        for statement in sorted(statements):
            entry = EntryProblems(path.name, f"statement {statement}", problems)
            count = len(ranked.get(statement, ()))
            if statement not in ranked:
                entry.wrong("missing statement", "it has no row")
            elif count < required:
                entry.wrong(
                    "too few premises", f"{counted(count, 'valid premise')}; at least {required} are needed"
                )

    def gold(self, grades: Grades, split: DataSplit[NlpsCollection]) -> Mapping[str, Writer]:
        texts = {topic.id: topic.text for topic in split.topics(Problems(lenient=True))}
        statements = {
            topic: {
                "text": texts.get(topic, ""),
                "premises": [_number(premise) for premise, grade in of_topic.items() if grade > 0],
            }
            for topic, of_topic in grades.items()
        }
        (path,) = split.files
        return {path.name: json_writer(statements)}


def _ids(path: Path) -> frozenset[str]:
    problems = Problems(lenient=True)
    ids = frozenset(id_ for id_, _value in json_files.read_members(path, problems))
    problems.raise_if_any()
    return ids


def _number(premise: str) -> int:
    try:
        return int(premise)
    except ValueError as error:
        raise DataError(
            f"{shown(premise)} is not a premise, because premises have whole numbers as ids: retract "
            "its judgment, or omit its annotator"
        ) from error


TASK = shipped(INFO, NlpsCollection, NlpsFormat())
