"""Tasks of a user's own: a TOML file names documents, topics, gold, mapping, recipes, grades and measure.

docs/use/own-task.md describes the file. ir-measures computes the official figure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import Breakdown, BreakdownRow, GoldFiles, OfficialScore, Qrels, Scored
from searchapp.evaluation.measures import measure
from searchapp.files import parse_json
from searchapp.formats import records, trec
from searchapp.formats.problems import Problems, shown
from searchapp.model import Document, Example, Run, Topic
from searchapp.resources import RecipeBook
from searchapp.tasks import base
from searchapp.tasks.base import Collection, DataSplit, DocumentSource, Grades, OfficialFormat, Task, Writer
from searchapp.tasks.own import task_file
from searchapp.tasks.own.task_file import (
    OFFICIAL_FILE,
    GradeLayout,
    OwnFile,
    SplitTopics,
    own_mapping,
    read_texts,
)
from searchapp.text import be, choices_hint, have

RankedIds = Mapping[str, Sequence[str]]

# Reads a gold file, as a split's file if one is given.
ReadGold = Callable[[Path, str | None, Problems], Qrels]

# Reads the split's topics by their ids; None if the split or its files are unknown.
ReadTopics = Callable[[GoldFiles], Mapping[str, Topic] | None]

# A breakdown has the most frequent values of a field, and the others as one group.
MOST_GROUPS = 30


class GradedScorer:
    """Scores TREC runs against grades by one measure, named as in ir-measures.

    `fields` of the topics are its breakdowns.
    """

    files_make_one = False

    def __init__(
        self, measure_name: str, read_gold: ReadGold, read_topics: ReadTopics, fields: Sequence[str] = ()
    ) -> None:
        self.breakdowns = tuple(fields)
        self._measure = measure_name
        self._read_gold = read_gold
        self._read_topics = read_topics

    def read(self, files: Sequence[Path]) -> RankedIds:
        (path,) = files
        return self.predictions(trec.read_by_score(path).run)

    def predictions(self, run: Run) -> RankedIds:
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

    def score(self, predictions: RankedIds, gold: GoldFiles) -> Scored:
        all_qrels = self._all_qrels(gold)
        qrels = self._of_split(all_qrels, gold)
        figures = measure(predictions, qrels, [self._measure])
        warnings = list(_warnings(predictions, qrels))
        if outside := len(all_qrels) - len(qrels):
            warnings.insert(
                0,
                f"{outside} of the {len(all_qrels)} topics with gold {be(outside)} not in "
                f"the split {gold.options.split}: left out",
            )
        official = OfficialScore(
            self._measure,
            dict(figures.values),
            dict(figures.per_topic[self._measure]),
            tuple(warnings),
        )
        return Scored(official, len(qrels), predictions, qrels)

    def breakdown(
        self, predictions: RankedIds, gold: GoldFiles, wanted: Sequence[str]
    ) -> Iterable[Breakdown]:
        """Compute the mean of the measure for each value of topic fields.

        A topic with a list of values is in several groups.
        """
        gold.require_folder()
        scored, topics = self.score(predictions, gold), self._read_topics(gold) or {}
        values = scored.official.of_topics()
        for name in wanted:
            members: dict[str, list[str]] = {}
            for topic in scored.qrels:
                for group in _groups(topics[topic].fields.get(name)) if topic in topics else [NO_VALUE]:
                    members.setdefault(group, []).append(topic)
            rows = [
                BreakdownRow(
                    group,
                    len(of_group),
                    {self._measure: fmean(values[topic] or 0.0 for topic in of_group)},
                    tuple(of_group),
                )
                for group, of_group in _most_frequent(members).items()
            ]
            yield Breakdown(name, f"by {name} of the topic", tuple(rows))


# The groups of topics without a value, and of rare values.
NO_VALUE, OTHER_VALUES = "(none)", "(other)"


def _groups(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    groups = [
        str(value).lower() if isinstance(value, bool) else str(value)
        for value in values
        if value is not None and str(value).strip()
    ]
    return list(dict.fromkeys(groups)) or [NO_VALUE]


def _most_frequent(members: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    frequent = sorted(members, key=lambda group: -len(members[group]))
    shown = frequent if len(frequent) <= MOST_GROUPS else frequent[: MOST_GROUPS - 1]
    result = {group: members[group] for group in sorted(shown, key=_value_order)}
    if rare := frequent[len(shown) :]:
        result[OTHER_VALUES] = list(dict.fromkeys(topic for group in rare for topic in members[group]))
    return result


def _value_order(group: str) -> tuple[bool, float, str]:
    try:
        return False, float(group), ""
    except ValueError:
        return True, group == NO_VALUE, group


def _warnings(predictions: RankedIds, qrels: Qrels) -> Iterable[str]:
    if missing := sum(topic not in predictions for topic in qrels):
        yield f"{missing} of the {len(qrels)} topics with gold {have(missing)} no ranking and the value 0"
    if empty := sum(not any(grade > 0 for grade in grades.values()) for grades in qrels.values()):
        yield f"{empty} of the {len(qrels)} topics with gold {have(empty)} no relevant document and the value 0"
    if unknown := sum(topic not in qrels for topic in predictions):
        yield f"rankings of topics without gold, which are not scored: {unknown} of {len(predictions)}"


def load(path: Path) -> Task:
    """Return the task of a TOML file.

    Raises:
        InvalidFiles: the file is missing or has problems.
    """
    own = task_file.read(path)
    training_fields = None if own.training_split is None else own.topics[own.training_split].layout.fields
    return Task(
        own.info,
        partial(OwnCollection, own),
        OwnFormat(own),
        index_mapping=lambda: _mapping(own, own.layout.fields),
        examples_index_mapping=lambda: None if training_fields is None else _mapping(own, training_fields),
        recipe_book=lambda: _recipe_book(own, path),
    )


def _mapping(own: OwnFile, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the mapping; it stores fields that it does not name, without indexing them."""
    path, name = own.info.file or Path(), own.info.mapping
    if name.endswith(".json"):
        path = path.parent / name
        mapping = resources.read_json(path)
    else:
        known = sorted(file.stem for file in resources.folder("index_mappings").glob("*.json"))
        if name not in known:
            raise DataError(f"{path}: unknown mapping {choices_hint(name, known)}, or name a .json file")
        mapping = resources.index_mapping(name)
    if own.info.foreign is not None:
        return task_file.foreign_mapping(mapping, own.info.foreign, path, name)
    return own_mapping(mapping, fields, path, name)


def _recipe_book(own: OwnFile, path: Path) -> RecipeBook:
    def template(name: str) -> dict[str, Any]:
        if name.endswith(".json"):
            return resources.read_json(path.parent / name)
        templates = base.general_names()
        if name not in templates:
            raise DataError(
                f"{path}: unknown template {choices_hint(name, templates)}, or name your own .json file"
            )
        return base.general(own.info, name)

    general = {
        name: recipe
        for name, recipe in resources.recipes(resources.GENERAL).items()
        if own.training_split is not None or name not in resources.GENERAL_LEARNING
    }
    return RecipeBook(
        own.info.name,
        path,
        {**general, **own.recipes},
        template,
        own.info.default_depth,
        path.parent,
        own.info.rerankers,
    )


class OwnCollection(Collection):
    """The files that the task file names, in its folder or in another."""

    def __init__(self, own: OwnFile, folder: Path) -> None:
        files = [folder / file for file in own.documents]
        super().__init__(own.info, folder, DocumentSource(lambda: files, self._read, cached=False))
        self._own = own

    def layout(self, split: str, *, training: bool) -> Mapping[str, Any]:
        splits = {split: self._topics_of(split)}
        if training:
            splits |= {name: self._topics_of(name) for name in self.training_splits(split)}
        layout = {
            "documents": {"files": self._own.documents, **asdict(self._own.layout), **self._index()},
            "topics_are_documents": self.info.topics_are_documents,
            **{f"topics.{name}": asdict(topics) for name, topics in splits.items()},
        }
        as_json: dict[str, Any] = parse_json(json.dumps(layout))  # with lists for tuples, as in a manifest
        return as_json

    def _index(self) -> dict[str, str]:
        return {} if self.info.foreign is None else {task_file.INDEX: self.info.foreign.index}

    def split_files(self, split: str) -> list[Path]:
        topics = self._topics_of(split)
        return [self.folder / topics.file, *([self.folder / topics.gold.file] if topics.gold else [])]

    def gold_files(self, split: str) -> list[Path]:
        gold = self._topics_of(split).gold
        if gold is None:
            raise UsageError(
                f"the split {split} of {self.info.name} has no gold: name its file under gold in "
                f"[topics.{split}] of {self.info.file}, or with --gold"
            )
        return [self.folder / gold.file]

    def all_training_splits(self, split: str) -> tuple[str, ...]:
        self.info.require_split(split)
        return () if self._own.training_split is None else (self._own.training_split,)

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        topics = self._topics_of(split)
        texts = read_texts(self.folder / topics.file, topics.layout, problems, set(), complete=True)
        judged = self._judged(topics, problems)
        return [
            Topic(text.id, text.text, text.fields) for text in texts if judged is None or text.id in judged
        ]

    def _judged(self, topics: SplitTopics, problems: Problems) -> set[str] | None:
        """Return the topics in a split's gold if its topics file serves several splits, as in BEIR."""
        splits_with_file = [other for other in self._own.topics.values() if other.file == topics.file]
        if topics.gold is None or len(splits_with_file) < 2:
            return None
        gold_problems = Problems()
        path, highest = self.folder / topics.gold.file, len(self.info.grades) - 1
        judged = {
            grade.topic for grade in task_file.read_grades(path, topics.gold.layout, gold_problems, highest)
        }
        if gold_problems.stopped:  # `check_split` reports the problems of single grades
            problems.add_all(gold_problems)
        return judged

    def check_split(self, split: str, problems: Problems) -> int:
        self._check_measures(problems)
        topics = self.topics(split, problems)
        gold = self._topics_of(split).gold
        if gold is not None:
            topic_ids = {topic.id for topic in topics}
            documents = self.documents.ids() if self.info.foreign is None else ()
            path = self.folder / gold.file
            gold_problems, unknown, is_of_task = Problems(), [], False
            for grade in task_file.read_grades(path, gold.layout, gold_problems, len(self.info.grades) - 1):
                if grade.topic not in topic_ids:
                    detail = f"{shown(grade.topic)} is not in the split {split}"
                    unknown.append(("unknown topic", grade.where, detail))
                elif documents and grade.document not in documents:
                    unknown.append(("unknown document", grade.where, shown(grade.document)))
                else:
                    is_of_task = True
            # The gold of many collections has more documents than their users; that of another task has no known one.
            report = gold_problems.note if is_of_task else gold_problems.add
            for kind, where, detail in unknown:
                report(path, kind, where, detail)
            problems.add_all(gold_problems)
        return len(topics)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        for training_split in self.training_splits(split):
            (path,) = self.gold_files(training_split)
            qrels = _read_gold(self._own, path, training_split, problems)
            for topic in self.topics(training_split, problems):
                example = self.judged_example(topic, qrels.get(topic.id, {}))
                if example.gold:
                    yield example

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        return Example(topic, {document: float(grade) for document, grade in grades.items() if grade > 0})

    def _read(self, problems: Problems) -> Iterator[Document]:
        if self.info.foreign is not None:
            raise DataError(
                f"the documents of {self.info.file} are in the index {self.info.foreign.index} of another program, and "
                "this command reads only files: search, rank, judge, pool and evaluate read the index"
            )
        seen: set[str] = set()
        for file in self.documents.files:
            for text in read_texts(file, self._own.layout, problems, seen, complete=False):
                yield Document(text.id, text.text, text.fields)

    def _check_measures(self, problems: Problems) -> None:
        reported = {problem.detail for problem in problems}
        for name in (self.info.official_measure, *self.info.measures):
            try:
                measure({}, {}, [name])
            except UsageError as error:
                if str(error) not in reported:  # once for all splits
                    path = self.info.file or ""
                    problems.add(path, "unknown measure", detail=str(error), skippable=False)

    def _topics_of(self, split: str) -> SplitTopics:
        return self._own.topics[self.info.require_split(split)]


class OwnFormat(OfficialFormat[RankedIds, OwnCollection]):
    """A TREC run, scored by a general measure."""

    def __init__(self, own: OwnFile) -> None:
        self._own = own
        self._scorer = GradedScorer(
            own.info.official_measure,
            partial(_read_gold, own),
            partial(_topics_by_id, own),
            tuple(dict.fromkeys(field for topics in own.topics.values() for field in topics.layout.fields)),
        )

    @property
    def scorer(self) -> GradedScorer:
        return self._scorer

    @property
    def breakdowns(self) -> GradedScorer:
        return self._scorer

    def files(self, run: Run, split: DataSplit[OwnCollection]) -> Mapping[str, Writer]:
        return {OFFICIAL_FILE: lambda file: trec.write_run(file, trec.with_distinct_scores(run))}

    def validate(
        self,
        path: Path,
        split: DataSplit[OwnCollection] | None,
        problems: Problems,
    ) -> None:
        trec.read_run(path, problems)
        if split is None:
            return
        data_problems = Problems(lenient=True)
        topics = {topic.id for topic in split.topics(data_problems)}
        documents = None  # unknown for an index of another program
        if split.collection.info.foreign is None:
            documents = {document.id for document in split.collection.documents.read(data_problems)}
        data_problems.raise_if_any()
        for line, (topic, _, document, *_rest) in trec.read_lines(path, Problems(lenient=True), trec.RUN):
            where = f"line {line}"
            if topic not in topics:
                problems.add(path, "unknown topic", where, f"{shown(topic)} is not in the split {split.name}")
            if documents is not None and document not in documents:
                problems.add(path, "unknown document", where, shown(document))

    def gold(self, grades: Grades, split: DataSplit[OwnCollection]) -> Mapping[str, Writer]:
        return {f"{split.name}.qrels": lambda file: trec.write_qrels(file, grades)}

    def grades(self, files: Sequence[Path], split: DataSplit[OwnCollection]) -> Grades:
        gold = split.gold(files)
        split_gold = self._own.topics[self._own.info.require_split(split.name)].gold
        # As in `evaluate`, other gold files may have topics outside the split.
        if split_gold is not None and list(files) == [split.collection.folder / split_gold.file]:
            gold = replace(gold, folder=split.collection.folder)
        return self.scorer.qrels(gold)


def _topics_by_id(own: OwnFile, gold: GoldFiles) -> Mapping[str, Topic] | None:
    if gold.options.split is None or gold.folder is None:
        return None
    problems = Problems(lenient=True)
    topics = OwnCollection(own, gold.folder).topics(gold.options.split, problems)
    problems.raise_if_any()
    return {topic.id: topic for topic in topics}


def _read_gold(own: OwnFile, path: Path, split: str | None, problems: Problems) -> Qrels:
    layout = _gold_layout(own, path, split)
    return task_file.read_qrels(path, layout, problems, len(own.info.grades) - 1)


def _gold_layout(own: OwnFile, path: Path, split: str | None) -> GradeLayout:
    """Return the layout of a split's gold, else one of the format according to the file's name."""
    if split is not None and (gold := own.topics[own.info.require_split(split)].gold) is not None:
        return gold.layout
    format_ = task_file.format_of(path)
    if format_ is None:
        suffixes = " or ".join(records.FORMATS.values())
        raise UsageError(f"{path} has an unknown suffix: name it .txt (TREC) or {suffixes}")
    layouts = (topics.gold.layout for topics in own.topics.values() if topics.gold)
    return next((layout for layout in layouts if layout.format == format_), GradeLayout(format_))
