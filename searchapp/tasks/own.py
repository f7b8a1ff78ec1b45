"""Tasks of a user's own: a TOML file names documents, topics, gold, mapping, recipes, grades and measure.

See `own_file` for what it looks like, and docs/own-task.md for how to write one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp import resources, tasks
from searchapp.engines.index_settings import canonical
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import Scorer, ScorerOptions
from searchapp.evaluation.graded import GradedScorer
from searchapp.formats import graded, trec
from searchapp.formats.graded import GradeLayout, Qrels
from searchapp.formats.problems import Problems, shown
from searchapp.formats.texts import read_texts
from searchapp.model import Document, Example, Run, Topic
from searchapp.names import refused
from searchapp.resources import RecipeBook
from searchapp.tasks import own_file
from searchapp.tasks.base import Grades, OneIndex, Task, Writer
from searchapp.tasks.own_file import OwnFile, Topics

RECIPES = "text"
"""The folder of query templates whose recipes every such task has, as long as it has none of the same name."""

NOT_INDEXED = {"type": "object", "enabled": False}
"""A field that is kept with the document and not searched."""


def load(path: Path) -> Task:
    """The task that a TOML file describes.

    Raises:
        InvalidFiles: the file is missing or has problems.
    """
    return OwnTask(own_file.read(path))


class OwnTask(OneIndex):
    """A task that a TOML file describes."""

    official_file = "run.trec"
    context: tuple[str, str] | None = None

    def __init__(self, described: OwnFile) -> None:
        self._described = described
        self.name = described.name
        self.title = described.title
        self.about = described.about
        self.mapping = described.mapping
        self.examples_mapping = described.mapping if described.examples else None
        self.splits = tuple(described.topics)
        self.topics_are_documents = described.topics_are_documents
        self.default_recipe = described.recipe
        self.search_recipe = described.search_recipe
        self.default_depth = described.depth
        self.judging_depth = described.judging_depth
        self.official_measure = described.measure
        self.measures = described.measures
        self.grades = described.grades
        self.context = described.context
        self.scorer: Scorer = GradedScorer(described.measure, self._read_gold)
        self.file: Path | None = described.path

    @property
    def index_name(self) -> str:
        return f"{tasks.OWN}{self.name}"

    @property
    def reference(self) -> str:
        return str(self._described.path)

    def index_mapping(self) -> dict[str, Any]:
        return self._mapping_with(self._described.layout.fields)

    def examples_index_mapping(self) -> dict[str, Any] | None:
        examples = self._described.examples
        return (
            None if examples is None else self._mapping_with(self._described.topics[examples].layout.fields)
        )

    def _mapping_with(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """The mapping, and the fields that it does not name kept and not indexed."""
        if self.mapping.endswith(".json"):
            path = self._described.path.parent / self.mapping
            mapping = resources.read_json(path)
        else:
            path = self._described.path
            known = sorted(file.stem for file in resources.folder("index_mappings").glob("*.json"))
            if self.mapping not in known:
                raise DataError(
                    f"{path}: there is no mapping {refused(self.mapping, known)}, or name a .json file"
                )
            mapping = resources.index_mapping(self.mapping)
        try:
            mapping = canonical(mapping)
        except DataError as error:
            raise DataError(f"{path}: the mapping {self.mapping}: {error}") from error
        described = mapping.get("mappings")
        properties = described.get("properties") if isinstance(described, dict) else None
        for name, kind in (("id", "keyword"), ("text", "text")):
            field = properties.get(name) if isinstance(properties, dict) else None
            if not isinstance(field, dict) or field.get("type") != kind:
                raise DataError(
                    f"{path}: the mapping {self.mapping} must have a property {name} of type {kind}"
                )
        assert isinstance(described, dict) and isinstance(properties, dict)
        kept = {name: NOT_INDEXED for name in fields if name not in properties}
        described = {"dynamic": "strict", **described, "properties": {**properties, **kept}}
        return {**mapping, "mappings": described}

    def recipe_book(self) -> RecipeBook:
        shipped = {
            name: recipe
            for name, recipe in resources.recipes(RECIPES).items()
            if self._described.examples is not None or not resources.learns(recipe)
        }
        path = self._described.path
        return RecipeBook(self.name, path, {**shipped, **self._described.recipes}, self._template)

    def _template(self, name: str) -> dict[str, Any]:
        if name.endswith(".json"):
            return resources.read_json(self._described.path.parent / name)
        shipped = sorted(file.stem for file in (resources.folder("query_templates") / RECIPES).glob("*.json"))
        if name not in shipped:
            raise DataError(
                f"{self._described.path}: there is no template {refused(name, shipped)}, or name a "
                ".json file of your own"
            )
        body = resources.query_template(RECIPES, name)
        if self.topics_are_documents:
            itself = {"term": {"id": "{{topic.id}}"}}
            body["query"] = {"bool": {"must": [body["query"]], "must_not": [itself]}}
        return body

    def _topics(self, split: str) -> Topics:
        if split not in self._described.topics:
            choice = refused(split, self.splits) if self.splits else f"{split!r}: its file names no topics"
            raise UsageError(f"{self.name} has no split {choice}")
        return self._described.topics[split]

    def document_files(self, data: Path) -> list[Path]:
        return [data / file for file in self._described.documents]

    def split_files(self, data: Path, split: str) -> list[Path]:
        topics = self._topics(split)
        return [data / topics.file, *([data / topics.gold.file] if topics.gold else [])]

    def gold_files(self, data: Path, split: str) -> list[Path]:
        gold = self._topics(split).gold
        if gold is None:
            raise UsageError(
                f"the split {split} of {self.name} has no gold: name its file as gold in [topics.{split}] of "
                f"{self._described.path}, or with --gold"
            )
        return [data / gold.file]

    def judged_gold(
        self, grades: Mapping[str, Mapping[str, int]], data: Path, split: str
    ) -> Mapping[str, Writer]:
        return {f"{split}.qrels": lambda file: trec.write_qrels(file, grades)}

    def is_masked(self, data: Path, split: str) -> bool:
        return False

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        seen: set[str] = set()
        for file in self.document_files(data):
            for one in read_texts(file, self._described.layout, problems, seen, complete=False):
                yield Document(one.id, one.text, one.fields)

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        topics = self._topics(split)
        read = read_texts(data / topics.file, topics.layout, problems, set(), complete=True)
        return [Topic(one.id, one.text, one.fields) for one in read]

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        self._check_measures(problems)
        found = self.topics(data, split, problems)
        gold = self._topics(split).gold
        if gold is not None:
            topics = {topic.id for topic in found}
            documents = {document.id for document in self.documents(data, Problems(lenient=True))}
            path = data / gold.file
            for grade in graded.read_grades(path, gold.layout, problems, len(self.grades) - 1):
                where = f"line {grade.line}"
                if grade.topic not in topics:
                    detail = f"{shown(grade.topic)} is not in the split {split}"
                    problems.add(path, "unknown topic", where, detail)
                elif documents and grade.document not in documents:
                    problems.add(path, "unknown document", where, shown(grade.document))
        return len(found)

    def _check_measures(self, problems: Problems) -> None:
        from searchapp.evaluation.measures import measure

        told = {problem.detail for problem in problems}
        for name in (self.official_measure, *self.measures):
            try:
                measure({}, {}, [name])
            except UsageError as error:
                if str(error) not in told:  # once, however many splits there are
                    path = self._described.path
                    problems.add(path, "unknown measure", detail=str(error), skippable=False)

    def examples(self, data: Path, split: str, problems: Problems) -> Iterator[Example]:
        self._topics(split)
        solved = self._described.examples
        if solved is None:
            return
        (path,) = self.gold_files(data, solved)
        qrels = self._read_gold(path, solved, problems)
        for topic in self.topics(data, solved, problems):
            grades = qrels.get(topic.id, {})
            example = self.judged_example(topic, grades, data)
            if example.gold:
                yield example

    def gold_grades(self, files: Sequence[Path], data: Path, split: str) -> Grades:
        return self.scorer.qrels(files, ScorerOptions(split=split))

    def judged_example(self, topic: Topic, grades: Mapping[str, float], data: Path) -> Example:
        return Example(topic, {document: float(grade) for document, grade in grades.items() if grade > 0})

    def example_files(self, data: Path, split: str) -> list[Path]:
        solved = self._described.examples
        return [] if solved is None else self.split_files(data, solved)

    def _read_gold(self, path: Path, split: str | None, problems: Problems) -> Qrels:
        return graded.read_qrels(path, self._gold_layout(path, split), problems, len(self.grades) - 1)

    def _gold_layout(self, path: Path, split: str | None) -> GradeLayout:
        """What a gold file looks like: of a split's own the task file says it, of another the suffix."""
        if split is not None and (gold := self._topics(split).gold) is not None:
            return gold.layout
        told = graded.format_of(path)
        if told is None:
            raise UsageError(f"{path} does not tell its format: name it .txt (TREC), .tsv, .csv or .jsonl")
        known = (topics.gold.layout for topics in self._described.topics.values() if topics.gold)
        return next((layout for layout in known if layout.format == told), GradeLayout(told))

    def official_shortfall(self, run: Run, options: ScorerOptions) -> str | None:
        return None

    def official_files(self, run: Run, data: Path, split: str) -> Mapping[str, Writer]:
        return {self.official_file: lambda file: trec.write_run(file, run)}

    def validate_official(
        self, path: Path, data: Path | None, split: str | None, options: ScorerOptions, problems: Problems
    ) -> None:
        run = trec.read_run(path, problems)
        if data is None or split is None:
            return
        quiet = Problems(lenient=True)
        topics = {topic.id for topic in self.topics(data, split, quiet)}
        documents = {document.id for document in self.documents(data, quiet)}
        quiet.raise_if_any()
        for line, (topic, _, document, *_rest) in trec.read_lines(path, Problems(lenient=True), trec.RUN):
            where = f"line {line}"
            if topic not in topics:
                problems.add(path, "unknown topic", where, f"{shown(topic)} is not in the split {split}")
            if document not in documents:
                problems.add(path, "unknown document", where, shown(document))
        ranked = {ranking.topic_id for ranking in run}
        for topic in sorted(topics - ranked):
            problems.add(path, "missing topic", f"topic {shown(topic)}", "it has no line")
