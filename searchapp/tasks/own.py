"""Tasks of a user's own: a TOML file names documents, topics, gold, mapping, recipes, grades and measure.

See `own_file` for what it looks like, and docs/own-task.md for how to write one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import GoldFiles, ScorerOptions
from searchapp.evaluation.graded import GradedScorer, Rankings
from searchapp.formats import graded, records, trec
from searchapp.formats.graded import GradeLayout, Qrels
from searchapp.formats.problems import Problems, shown
from searchapp.formats.texts import read_texts
from searchapp.model import Document, Example, Topic
from searchapp.names import refused
from searchapp.resources import RecipeBook
from searchapp.tasks import own_file, templates
from searchapp.tasks.base import Grades, OfficialFile, Part, Submission, Task, TaskInfo, Writer
from searchapp.tasks.catalogue import OWN
from searchapp.tasks.collection import CollectionBase
from searchapp.tasks.documents import DocumentSource
from searchapp.tasks.mappings import own_mapping
from searchapp.tasks.own_file import OwnFile, Topics

OFFICIAL_FILE = "run.trec"


def load(path: Path) -> Task:
    """The task that a TOML file describes.

    Raises:
        InvalidFiles: the file is missing or has problems.
    """
    described = own_file.read(path)
    info = _info(described)
    solved = None if described.examples is None else described.topics[described.examples].layout.fields
    return Task(
        info,
        partial(OwnCollection, info, described),
        OwnFormat(info, described),
        index_mapping=lambda: _mapping(described, described.layout.fields),
        examples_index_mapping=lambda: None if solved is None else _mapping(described, solved),
        recipe_book=lambda: _recipe_book(info, described),
    )


def _info(described: OwnFile) -> TaskInfo:
    return TaskInfo(
        name=described.name,
        title=described.title,
        about=described.about,
        mapping=described.mapping,
        examples_mapping=described.mapping if described.examples else None,
        splits=tuple(described.topics),
        topics_are_documents=described.topics_are_documents,
        default_recipe=described.recipe,
        search_recipe=described.search_recipe,
        default_depth=described.depth,
        judging_depth=described.judging_depth,
        official_measure=described.measure,
        official_file=OFFICIAL_FILE,
        measures=described.measures,
        grades=described.grades,
        context=described.context,
        markup=described.markup,
        file=described.path,
        indexes=(f"{OWN}{described.name}",),
    )


def _mapping(described: OwnFile, fields: Mapping[str, str]) -> dict[str, Any]:
    """The mapping, and the fields that it does not name kept and not indexed."""
    if described.mapping.endswith(".json"):
        path = described.path.parent / described.mapping
        mapping = resources.read_json(path)
    else:
        path = described.path
        known = sorted(file.stem for file in resources.folder("index_mappings").glob("*.json"))
        if described.mapping not in known:
            raise DataError(
                f"{path}: there is no mapping {refused(described.mapping, known)}, or name a .json file"
            )
        mapping = resources.index_mapping(described.mapping)
    return own_mapping(mapping, fields, path, described.mapping)


def _recipe_book(info: TaskInfo, described: OwnFile) -> RecipeBook:
    shipped = {
        name: recipe
        for name, recipe in resources.recipes(resources.GENERAL).items()
        if described.examples is not None or name not in resources.GENERAL_LEARNING
    }
    recipes = {**shipped, **described.recipes}
    return RecipeBook(described.name, described.path, recipes, partial(_template, info, described))


def _template(info: TaskInfo, described: OwnFile, name: str) -> dict[str, Any]:
    if name.endswith(".json"):
        return resources.read_json(described.path.parent / name)
    shipped = templates.general_names()
    if name not in shipped:
        raise DataError(
            f"{described.path}: there is no template {refused(name, shipped)}, or name a .json file of your own"
        )
    return templates.general(info, name)


class OwnCollection(CollectionBase):
    """The files that the task file names, in its folder or in another."""

    def __init__(self, info: TaskInfo, described: OwnFile, folder: Path) -> None:
        self.folder = folder
        self._info = info
        self._described = described
        files = [folder / file for file in described.documents]
        self.documents = DocumentSource(lambda: files, self._read, kept=False)
        self.indexes = {info.index_name: self.documents}

    def index_of(self, split: str) -> str:
        self._info.require_split(split)
        return self.renamed.get(self._info.index_name, self._info.index_name)

    def split_files(self, split: str) -> list[Path]:
        topics = self._split(split)
        return [self.folder / topics.file, *([self.folder / topics.gold.file] if topics.gold else [])]

    def gold_files(self, split: str) -> list[Path]:
        gold = self._split(split).gold
        if gold is None:
            raise UsageError(
                f"the split {split} of {self._info.name} has no gold: name its file as gold in [topics.{split}] of "
                f"{self._described.path}, or with --gold"
            )
        return [self.folder / gold.file]

    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        self._info.require_split(split)
        solved = self._described.examples
        return () if solved is None else (solved,)

    def solved_by(self, splits: Sequence[str]) -> Self:
        return self._solved_by(self._info, splits)

    def example_files(self, split: str) -> list[Path]:
        return [file for solved in self.solved_splits(split) for file in self.split_files(solved)]

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        topics = self._split(split)
        read = read_texts(self.folder / topics.file, topics.layout, problems, set(), complete=True)
        return [Topic(one.id, one.text, one.fields) for one in read]

    def check_split(self, split: str, problems: Problems) -> int:
        self._check_measures(problems)
        found = self.topics(split, problems)
        gold = self._split(split).gold
        if gold is not None:
            topics = {topic.id for topic in found}
            documents = self.documents.ids()
            path = self.folder / gold.file
            for grade in graded.read_grades(path, gold.layout, problems, len(self._info.grades) - 1):
                where = f"line {grade.line}"
                if grade.topic not in topics:
                    detail = f"{shown(grade.topic)} is not in the split {split}"
                    problems.add(path, "unknown topic", where, detail)
                elif documents and grade.document not in documents:
                    problems.add(path, "unknown document", where, shown(grade.document))
        return len(found)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        for solved in self.solved_splits(split):
            (path,) = self.gold_files(solved)
            qrels = _read_gold(self._info, self._described, path, solved, problems)
            for topic in self.topics(solved, problems):
                example = self.judged_example(topic, qrels.get(topic.id, {}))
                if example.gold:
                    yield example

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        return Example(topic, {document: float(grade) for document, grade in grades.items() if grade > 0})

    def is_masked(self, split: str) -> bool:
        self._info.require_split(split)
        return False

    def _read(self, problems: Problems) -> Iterator[Document]:
        seen: set[str] = set()
        for file in self.documents.files:
            for one in read_texts(file, self._described.layout, problems, seen, complete=False):
                yield Document(one.id, one.text, one.fields)

    def _check_measures(self, problems: Problems) -> None:
        from searchapp.evaluation.measures import measure

        told = {problem.detail for problem in problems}
        for name in (self._info.official_measure, *self._info.measures):
            try:
                measure({}, {}, [name])
            except UsageError as error:
                if str(error) not in told:  # once, however many splits there are
                    path = self._described.path
                    problems.add(path, "unknown measure", detail=str(error), skippable=False)

    def _split(self, split: str) -> Topics:
        return self._described.topics[self._info.require_split(split)]


class OwnFormat:
    """A TREC run, scored by a measure of the field."""

    breakdowns = None

    def __init__(self, info: TaskInfo, described: OwnFile) -> None:
        self._info = info
        self.scorer = GradedScorer(described.measure, partial(_read_gold, info, described))

    def files(self, submission: Submission[OwnCollection]) -> Mapping[str, Writer]:
        return {OFFICIAL_FILE: lambda file: trec.write_run(file, submission.run)}

    def predictions(self, submission: Submission[OwnCollection]) -> Rankings:
        return self.scorer.predictions(submission.run)

    def validate(self, file: OfficialFile[OwnCollection], problems: Problems) -> None:
        path, part = file.path, file.part
        run = trec.read_run(path, problems)
        if part is None:
            return
        quiet = Problems(lenient=True)
        topics = {topic.id for topic in part.topics(quiet)}
        documents = {document.id for document in part.collection.documents.read(quiet)}
        quiet.raise_if_any()
        for line, (topic, _, document, *_rest) in trec.read_lines(path, Problems(lenient=True), trec.RUN):
            where = f"line {line}"
            if topic not in topics:
                problems.add(path, "unknown topic", where, f"{shown(topic)} is not in the split {part.split}")
            if document not in documents:
                problems.add(path, "unknown document", where, shown(document))
        ranked = {ranking.topic_id for ranking in run}
        for topic in sorted(topics - ranked):
            problems.add(path, "missing topic", f"topic {shown(topic)}", "it has no line")

    def gold(self, grades: Grades, part: Part[OwnCollection]) -> Mapping[str, Writer]:
        return {f"{part.split}.qrels": lambda file: trec.write_qrels(file, grades)}

    def grades(self, files: Sequence[Path], part: Part[OwnCollection]) -> Grades:
        return self.scorer.qrels(GoldFiles(files, ScorerOptions(split=part.split)))


def _read_gold(
    info: TaskInfo, described: OwnFile, path: Path, split: str | None, problems: Problems
) -> Qrels:
    layout = _gold_layout(info, described, path, split)
    return graded.read_qrels(path, layout, problems, len(described.grades) - 1)


def _gold_layout(info: TaskInfo, described: OwnFile, path: Path, split: str | None) -> GradeLayout:
    """What a gold file looks like: of a split's own the task file says it, of another the suffix."""
    if split is not None and (gold := described.topics[info.require_split(split)].gold) is not None:
        return gold.layout
    told = graded.format_of(path)
    if told is None:
        suffixes = " or ".join(records.FORMATS.values())
        raise UsageError(f"{path} does not show its format by its name: name it .txt (TREC) or {suffixes}")
    known = (topics.gold.layout for topics in described.topics.values() if topics.gold)
    return next((layout for layout in known if layout.format == told), GradeLayout(told))
