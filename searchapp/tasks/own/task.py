"""Tasks of a user's own: a TOML file names documents, topics, gold, mapping, recipes, grades and measure.

docs/own-task.md says how to write one. Its scorer is one of the field's measures, computed by ir-measures on the topics
of the split that have gold; warnings name the topics and documents that this leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import GoldFiles, OfficialScore, Qrels, Scored, ScorerOptions
from searchapp.evaluation.measures import measure
from searchapp.files import parse_json
from searchapp.formats import records, trec
from searchapp.formats.problems import Problems, shown
from searchapp.model import Document, Example, Run, Topic
from searchapp.resources import RecipeBook
from searchapp.tasks import base
from searchapp.tasks.base import (
    Collection,
    DocumentSource,
    Grades,
    OfficialFile,
    OfficialFormat,
    Part,
    Submission,
    Task,
    TaskInfo,
    Writer,
)
from searchapp.tasks.catalogue import OWN
from searchapp.tasks.own import task_file
from searchapp.tasks.own.task_file import GradeLayout, GradesByTopic, OwnFile, Topics, own_mapping, read_texts
from searchapp.text import choices_hint

Rankings = Mapping[str, Sequence[str]]

ReadGold = Callable[[Path, str | None, Problems], Mapping[str, Mapping[str, int]]]
"""Reads a gold file, that of a split if one is named: grades by topic and document."""

ReadTopics = Callable[[GoldFiles], AbstractSet[str] | None]
"""Reads the ids of the topics of the split; None if the split or its files are unknown."""


class GradedScorer:
    """Scores TREC runs against grades by one measure, named as ir-measures does."""

    files_make_one = False

    def __init__(self, measure_name: str, read_gold: ReadGold, read_topics: ReadTopics) -> None:
        self._measure = measure_name
        self._read_gold = read_gold
        self._read_topics = read_topics

    def read(self, files: Sequence[Path]) -> Rankings:
        (path,) = files
        return self.predictions(trec.read_by_score(path).run)

    def predictions(self, run: Run) -> Rankings:
        return {ranking.topic_id: ranking.document_ids() for ranking in run}

    def qrels(self, gold: GoldFiles) -> Qrels:
        return self._of_split(self._all_qrels(gold), gold)

    def _of_split(self, qrels: Qrels, gold: GoldFiles) -> Qrels:
        topics = self._read_topics(gold)
        return qrels if topics is None else {topic: qrels[topic] for topic in qrels if topic in topics}

    def _all_qrels(self, gold: GoldFiles) -> Qrels:
        qrels: dict[str, dict[str, int]] = {}
        problems = Problems()
        for path in gold.files:
            for topic, grades in self._read_gold(path, gold.options.split, problems).items():
                qrels.setdefault(topic, {}).update(grades)
        problems.raise_if_any()
        return qrels

    def score(self, predictions: Rankings, gold: GoldFiles) -> Scored:
        every = self._all_qrels(gold)
        qrels = self._of_split(every, gold)
        outside = len(every) - len(qrels)
        figures = measure(predictions, qrels, [self._measure])
        official = OfficialScore(
            self._measure,
            dict(figures.values),
            dict(figures.per_topic[self._measure]),
            (*_outside(outside, len(every), gold), *_warnings(predictions, qrels)),
        )
        return Scored(official, len(qrels), predictions, qrels)


def _outside(topics: int, of: int, gold: GoldFiles) -> Iterable[str]:
    if topics:
        yield f"{topics} of the {of} topics of the gold are not in the split {gold.options.split} and are left out"


def _warnings(predictions: Rankings, qrels: Mapping[str, Mapping[str, int]]) -> Iterable[str]:
    missing = sum(1 for topic in qrels if topic not in predictions)
    if missing:
        yield f"{missing} of the {len(qrels)} topics of the gold have no ranking and count as 0"
    barren = sum(1 for grades in qrels.values() if not any(grade > 0 for grade in grades.values()))
    if barren:
        yield f"{barren} of the {len(qrels)} topics of the gold have no relevant document and count as 0"
    others = sum(1 for topic in predictions if topic not in qrels)
    if others:
        yield f"{others} of the {len(predictions)} rankings are of topics without gold, and count nowhere"


OFFICIAL_FILE = "run.trec"


def load(path: Path) -> Task:
    """The task that a TOML file describes.

    Raises:
        InvalidFiles: the file is missing or has problems.
    """
    described = task_file.read(path)
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
                f"{path}: there is no mapping {choices_hint(described.mapping, known)}, or name a .json file"
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
    return RecipeBook(
        described.name, described.path, recipes, partial(_template, info, described), described.depth
    )


def _template(info: TaskInfo, described: OwnFile, name: str) -> dict[str, Any]:
    if name.endswith(".json"):
        return resources.read_json(described.path.parent / name)
    shipped = base.general_names()
    if name not in shipped:
        raise DataError(
            f"{described.path}: there is no template {choices_hint(name, shipped)}, or name a .json file of your own"
        )
    return base.general(info, name)


class OwnCollection(Collection):
    """The files that the task file names, in its folder or in another."""

    def __init__(self, info: TaskInfo, described: OwnFile, folder: Path) -> None:
        files = [folder / file for file in described.documents]
        super().__init__(info, folder, DocumentSource(lambda: files, self._read, kept=False))
        self._described = described

    def layout(self, split: str, *, solved: bool) -> Mapping[str, Any]:
        described = self._described
        splits = {split: self._split(split)}
        if solved:
            splits |= {one: self._split(one) for one in self.solved_splits(split)}
        found = {
            "documents": {"files": described.documents, **asdict(described.layout)},
            "topics_are_documents": described.topics_are_documents,
            **{f"topics.{name}": asdict(topics) for name, topics in splits.items()},
        }
        as_json: dict[str, Any] = parse_json(json.dumps(found))  # with lists for tuples, as in a manifest
        return as_json

    def split_files(self, split: str) -> list[Path]:
        topics = self._split(split)
        return [self.folder / topics.file, *([self.folder / topics.gold.file] if topics.gold else [])]

    def gold_files(self, split: str) -> list[Path]:
        gold = self._split(split).gold
        if gold is None:
            raise UsageError(
                f"the split {split} of {self.info.name} has no gold: name its file as gold in [topics.{split}] of "
                f"{self._described.path}, or with --gold"
            )
        return [self.folder / gold.file]

    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        self.info.require_split(split)
        solved = self._described.examples
        return () if solved is None else (solved,)

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        topics = self._split(split)
        read = read_texts(self.folder / topics.file, topics.layout, problems, set(), complete=True)
        judged = self._judged(topics, problems)
        return [Topic(one.id, one.text, one.fields) for one in read if judged is None or one.id in judged]

    def _judged(self, topics: Topics, problems: Problems) -> set[str] | None:
        """The topics that the gold of a split names, if its topics file serves other splits too, as that of BEIR."""
        sharing = [one for one in self._described.topics.values() if one.file == topics.file]
        if topics.gold is None or len(sharing) < 2:
            return None
        of_gold = Problems()
        path, highest = self.folder / topics.gold.file, len(self.info.grades) - 1
        judged = {grade.topic for grade in task_file.read_grades(path, topics.gold.layout, of_gold, highest)}
        if of_gold.stopped:  # what is wrong with single grades matters to `check_split` alone
            problems.add_all(of_gold)
        return judged

    def check_split(self, split: str, problems: Problems) -> int:
        self._check_measures(problems)
        found = self.topics(split, problems)
        gold = self._split(split).gold
        if gold is not None:
            topics = {topic.id for topic in found}
            documents = self.documents.ids()
            path = self.folder / gold.file
            of_gold = Problems()
            for grade in task_file.read_grades(path, gold.layout, of_gold, len(self.info.grades) - 1):
                where = f"line {grade.line}"
                if grade.topic not in topics:
                    detail = f"{shown(grade.topic)} is not in the split {split}"
                    of_gold.add(path, "unknown topic", where, detail)
                elif documents and grade.document not in documents:
                    of_gold.add(path, "unknown document", where, shown(grade.document))
            problems.add_all(of_gold)
        return len(found)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        for solved in self.solved_splits(split):
            (path,) = self.gold_files(solved)
            qrels = _read_gold(self.info, self._described, path, solved, problems)
            for topic in self.topics(solved, problems):
                example = self.judged_example(topic, qrels.get(topic.id, {}))
                if example.gold:
                    yield example

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        return Example(topic, {document: float(grade) for document, grade in grades.items() if grade > 0})

    def _read(self, problems: Problems) -> Iterator[Document]:
        seen: set[str] = set()
        for file in self.documents.files:
            for one in read_texts(file, self._described.layout, problems, seen, complete=False):
                yield Document(one.id, one.text, one.fields)

    def _check_measures(self, problems: Problems) -> None:
        from searchapp.evaluation.measures import measure

        told = {problem.detail for problem in problems}
        for name in (self.info.official_measure, *self.info.measures):
            try:
                measure({}, {}, [name])
            except UsageError as error:
                if str(error) not in told:  # once, however many splits there are
                    path = self._described.path
                    problems.add(path, "unknown measure", detail=str(error), skippable=False)

    def _split(self, split: str) -> Topics:
        return self._described.topics[self.info.require_split(split)]


class OwnFormat(OfficialFormat[Rankings, OwnCollection]):
    """A TREC run, scored by a measure of the field."""

    def __init__(self, info: TaskInfo, described: OwnFile) -> None:
        self._info = info
        self._described = described
        self._scorer = GradedScorer(
            described.measure, partial(_read_gold, info, described), partial(_topics_of, info, described)
        )

    @property
    def scorer(self) -> GradedScorer:
        return self._scorer

    def files(self, submission: Submission[OwnCollection]) -> Mapping[str, Writer]:
        return {OFFICIAL_FILE: lambda file: trec.write_run(file, trec.with_distinct_scores(submission.run))}

    def validate(self, file: OfficialFile[OwnCollection], problems: Problems) -> None:
        path, part = file.path, file.part
        trec.read_run(path, problems)
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

    def gold(self, grades: Grades, part: Part[OwnCollection]) -> Mapping[str, Writer]:
        return {f"{part.split}.qrels": lambda file: trec.write_qrels(file, grades)}

    def grades(
        self, files: Sequence[Path], part: Part[OwnCollection], options: ScorerOptions = ScorerOptions()
    ) -> Grades:
        gold = part.gold(files, options)
        own = self._described.topics[self._info.require_split(part.split)].gold
        # Other gold files that somebody names are scored whole, as `evaluate` does.
        if own is not None and list(files) == [part.collection.folder / own.file]:
            gold = replace(gold, folder=part.collection.folder)
        return self.scorer.qrels(gold)


def _topics_of(info: TaskInfo, described: OwnFile, gold: GoldFiles) -> set[str] | None:
    """The ids of the topics of the split that is scored; None if the gold or the folder does not tell the split."""
    if gold.options.split is None or gold.folder is None:
        return None
    problems = Problems(lenient=True)
    topics = OwnCollection(info, described, gold.folder).topics(gold.options.split, problems)
    problems.raise_if_any()
    return {topic.id for topic in topics}


def _read_gold(
    info: TaskInfo, described: OwnFile, path: Path, split: str | None, problems: Problems
) -> GradesByTopic:
    layout = _gold_layout(info, described, path, split)
    return task_file.read_qrels(path, layout, problems, len(described.grades) - 1)


def _gold_layout(info: TaskInfo, described: OwnFile, path: Path, split: str | None) -> GradeLayout:
    """What a gold file looks like: of a split's own the task file says it, of another the suffix."""
    if split is not None and (gold := described.topics[info.require_split(split)].gold) is not None:
        return gold.layout
    told = task_file.format_of(path)
    if told is None:
        suffixes = " or ".join(records.FORMATS.values())
        raise UsageError(f"{path} does not show its format by its name: name it .txt (TREC) or {suffixes}")
    known = (topics.gold.layout for topics in described.topics.values() if topics.gold)
    return next((layout for layout in known if layout.format == told), GradeLayout(told))
