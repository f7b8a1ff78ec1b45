"""Cross-validation: the value of each solved topic when a recipe learns from the other folds alone.

The topics of one split, or of several, are divided into folds by a seeded hash of their ids (`tasks.folds`),
so that a topic's fold depends on nothing else. What votes, what is graded and what models are trained on
comes from the other folds alone: no topic is ranked by its own answers, or by those of another topic of its
fold. Each topic has one value, that of its ranking under a measure; recipes that are compared under the same
folds are paired by topic.

With the usual folds and seed the folds of the SMART tasks are those that their figures are reported for.
Topics that are no solved topics themselves, such as those of dev, are ranked with all solved topics: no fold
is left out for them.

    M. Stone, Cross-Validatory Choice and Assessment of Statistical Predictions, JRSS B 36, 1974

    with CrossValidation(CrossValidationRequest(task, collection, ("train",)), settings, progress) as validation:
        values = validation.scores(recipe)                     # topic -> value, in the order of the topics
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Some
from contextlib import ExitStack, closing
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from math import isfinite
from pathlib import Path

from searchapp.app.evaluate import GoldSource, field_figures, official_figures
from searchapp.app.index import lenient_advice, open_index, require_documents
from searchapp.app.models import Models, signal_inputs
from searchapp.app.topic_figures import topic_ids
from searchapp.config.settings import Settings
from searchapp.engines import open_on_disk
from searchapp.engines.base import Index, OnDisk
from searchapp.errors import DataError, EngineRefused, SearchappError, UsageError
from searchapp.evaluation.base import GoldFiles, ScorerOptions
from searchapp.files import digest_json, reason
from searchapp.formats.problems import Problems
from searchapp.lucene.index.index_settings import Similarities, with_similarities
from searchapp.model import Example, Ranking, Run, Topic
from searchapp.progress import Progress, SilentProgress
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Inputs, Need, SolvedTopics
from searchapp.tasks.base import Collection, Grades, Part, Submission, Task
from searchapp.tasks.splits import FOLD_COUNT, FOLD_SEED, fold_number

TAG = "cross-validation"


def run_of_all(rankings: Mapping[str, Ranking], topics: Iterable[str]) -> Run:
    """Rankings as a run of these topics, for official scorers that stop at a topic without a ranking.

    Such a topic has any of the rankings: its value means nothing.
    """
    any_ranking = next(iter(rankings.values()))
    return Run(
        TAG,
        tuple(rankings[one] if one in rankings else replace(any_ranking, topic_id=one) for one in topics),
    )


@dataclass(frozen=True, slots=True)
class Fold:
    """The topics of a fold, and what they are ranked by: `others` have other similarities."""

    topics: Sequence[Topic]
    inputs: Inputs
    engine: OnDisk
    view: Collection
    others: dict[str, OtherSimilarities] = field(default_factory=dict)


class OtherSimilarities:
    """The solved topics of a fold in an index with other similarities, which is opened when somebody asks for it.

    `models` are those that depend on similarities.
    """

    def __init__(self, fold: Fold, models: Models, like: Callable[[Index], Index]) -> None:
        self.models = models
        self._fold = fold
        self._like = like
        self._solved: SolvedTopics | None = None

    def solved(self) -> SolvedTopics:
        if self._solved is None:
            known = self._fold.inputs.examples()
            self._solved = SolvedTopics(self._like(known.index), known.gold)
        return self._solved

    def close(self) -> None:
        if self._solved is not None:
            self._solved.index.close()


def without_fold(whole: Collection, topics: Sequence[Topic], solved: Sequence[Example]) -> Collection:
    """The collection with the topics of one fold, and with the solved topics of the other folds."""
    view = copy(whole)
    view.topics = lambda split, problems: list(topics)  # type: ignore[method-assign]  # noqa: ARG005
    view.examples = lambda split, problems: iter(solved)  # type: ignore[method-assign]  # noqa: ARG005
    return view


FEW = 50
"""Topics under which, if nobody says how many folds there shall be, each topic is a fold of its own."""

REMEMBERED = 1 << 27
"""Bytes of hits that each index keeps, so that what many recipes ask alike is searched once."""

OPEN = 4
"""How many indexes with other similarities are open at a time."""

Values = Mapping[str, float]
"""The value of each topic by its id, in the order of the topics."""


@dataclass(frozen=True, slots=True)
class SimilarityNumbers:
    """Numbers of similarities that differ from those of the mappings, of the documents and of the solved topics."""

    documents: Similarities = field(default_factory=dict)
    examples: Similarities = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What it is known by."""
        return digest_json({"documents": self.documents, "examples": self.examples})


AS_INDEXED = SimilarityNumbers()


@dataclass(frozen=True, slots=True)
class CrossValidationRequest:
    """What is cross-validated: the topics of these splits, in so many folds, under a measure.

    `measure` is a name that the official scorer or ir-measures knows; without one it is the task's official measure.
    `options` go to the official scorer.
    `folds` are five by default, or as many as there are topics where these are fewer than `FEW`; as many as there are
    topics, or more, leave one out at a time. `depth` is the task's own by default. With `lenient` invalid topics and
    solved topics are left out. `models` is the home folder where trained models are kept; without, they are not.
    """

    task: Task
    collection: Collection
    splits: tuple[str, ...]
    measure: str | None = None
    folds: int | None = None
    seed: int = FOLD_SEED
    depth: int | None = None
    lenient: bool = False
    options: ScorerOptions = field(default_factory=ScorerOptions)
    models: Path | None = None


def training_splits(task: Task, collection: Collection) -> tuple[str, ...]:
    """The splits whose topics are solved examples themselves, on which parameters may be chosen.

    The others are those that figures are reported for; a task without solved examples has none but those.
    """
    return tuple(split for split in task.info.splits if is_training(collection, split))


def is_training(collection: Collection, split: str) -> bool:
    """Whether the topics of a split are solved examples."""
    own = collection.split_files(split)
    return bool(own) and set(own) <= set(collection.example_files(split))


class CrossValidation:
    """Topics in folds, with all that ranking them takes, which is read and indexed once for many recipes.

    Ranks with the embedded engine, whose rankings are those of Elasticsearch; what is indexed for the folds is in a
    temporary folder, which `close` removes.

    Raises:
        UsageError: there is no such split or measure, or it has no value a topic.
        InvalidFiles: topics or solved topics have problems, and the request is not lenient.
        DataError: the gold is masked, or no topic has any.
        EngineRefused: the documents are not indexed on this machine.
    """

    def __init__(self, request: CrossValidationRequest, settings: Settings, progress: Progress) -> None:
        self.request = request
        self._progress = progress
        self._settings = settings
        self._problems = Problems(lenient=request.lenient)
        self._open = ExitStack()
        self._topics: dict[str, list[Topic]] = {}
        self.grades: dict[str, Grades] = {}
        """The gold of each split by topic and document."""
        self._other_indexes: dict[str, Index] = {}
        for split in request.splits:
            self._read(split)
        self._problems.raise_if_any(lenient_advice(self._problems))
        if not any(self._topics.values()):
            raise DataError(
                f"{request.collection.folder}: no topic of {', '.join(request.splits)} has gold to validate by"
            )
        try:
            self._index = self._opened()
            self._folds = self._divided()
            self._fold_of = {
                topic.id: place for place, fold in enumerate(self._folds) for topic in fold.topics
            }
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> CrossValidation:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the indexes, and remove those of the folds."""
        self._open.close()

    @property
    def measure(self) -> str:
        """The name of the measure, with the cut-off that the official scorer is given."""
        if self.request.measure is not None:
            return self.request.measure
        kind, at, cutoff = self.request.task.info.official_measure.partition("@")
        return f"{kind}{at}{self.request.options.nearest or cutoff}" if at else kind

    @property
    def depth(self) -> int:
        """How many documents each topic is ranked to."""
        return self.request.depth or self.request.task.info.default_depth

    def source(self, split: str, measures: tuple[str, ...]) -> GoldSource:
        """What rankings of a split are scored against, by these measures beside the official figures."""
        request = self.request
        return GoldSource(
            task=request.task.reference,
            data=request.collection.folder,
            split=split,
            options=request.options,
            measures=measures,
        )

    @property
    def topics(self) -> tuple[str, ...]:
        """The ids of the topics that have gold, in the order of their splits and files."""
        return tuple(topic.id for topics in self._topics.values() for topic in topics)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many topics each fold has."""
        return tuple(len(fold.topics) for fold in self._folds)

    @property
    def folds(self) -> Sequence[Fold]:
        """The folds, in the order of their numbers."""
        return self._folds

    def ranked_by(self, topics: Sequence[Topic], solved: Sequence[Example]) -> Fold:
        """Some of the topics as one more fold, which these solved topics alone rank."""
        return self._fold(Path(self._temporary()), topics, solved)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of documents, topics, gold and solved topics that the values depend on."""
        collection = self.request.collection
        used = [*collection.indexes[self._index.info.name].files]
        for split in self.request.splits:
            used += [*collection.split_files(split), *collection.gold_files(split)]
            used += collection.example_files(split)
        return tuple(dict.fromkeys(used))

    def scores(
        self, recipe: Recipe, only: Some[str] | None = None, scoring: SimilarityNumbers = AS_INDEXED
    ) -> Values:
        """The value of each topic, or of `only` some, under the measure; topics that it leaves out have none.

        What a topic's value is does not depend on which others are asked for. With another `scoring` it is what an
        index with these similarities would give.

        Raises:
            UsageError: only some are asked for, and the task's scorer takes all or nothing.
            NotScorable: the official scorer refuses the rankings.
            DataError: a fold has no solved topics, or too few for the recipe.
        """
        rankings: dict[str, Ranking] = {}
        for fold in self._folds:
            wanted = [topic for topic in fold.topics if only is None or topic.id in only]
            if wanted:
                ranker = Ranker(recipe, self._inputs(fold, scoring))
                rankings |= {one.topic_id: one for one in ranker.rank(wanted, self.depth, TAG)}
        values: dict[str, float] = {}
        for split in self.request.splits:
            values |= self._values(split, rankings)
        return {topic: values[topic] for topic in self.topics if topic in values and topic in rankings}

    def prepare(self, recipes: Sequence[Recipe]) -> None:
        """Index the solved topics of each fold if a recipe needs them, so that processes forked later share them."""
        if any(recipe.needs(Need.examples) for recipe in recipes):
            with self._progress.stage("indexing solved topics", len(self._folds)) as advance:
                for fold in self._folds:
                    fold.inputs.examples()
                    advance(1)

    def fold_of(self, topic: str) -> int:
        """The place of the fold that a topic is in."""
        return self._fold_of[topic]

    def _inputs(self, fold: Fold, scoring: SimilarityNumbers) -> Inputs:
        """What the topics of a fold are ranked by."""
        if scoring == AS_INDEXED:
            return fold.inputs
        key = scoring.key
        if key not in self._other_indexes:
            if len(self._other_indexes) == OPEN:
                self._other_indexes.pop(next(iter(self._other_indexes))).close()
            self._other_indexes[key] = self._like(
                self._engine, self._index, scoring.documents, examples=False
            )
        if key not in fold.others:
            if len(fold.others) == OPEN:
                fold.others.pop(next(iter(fold.others))).close()
            models = Models(
                self.request.task,
                fold.view,
                self.request.splits[0],
                SilentProgress(),
                problems=Problems(lenient=self.request.lenient),
            )
            fold.others[key] = OtherSimilarities(
                fold, models, lambda solved: self._like(fold.engine, solved, scoring.examples)
            )
        other = fold.others[key]
        inputs = replace(fold.inputs, index=self._other_indexes[key], examples=other.solved)
        # A fusion that is learned learns from what its signals say under these similarities.
        return replace(inputs, fusion=lambda recipe: other.models.of_fusion(recipe, inputs).stored)

    def _like(self, engine: OnDisk, index: Index, numbers: Similarities, *, examples: bool = True) -> Index:
        task = self.request.task
        mapping = task.examples_index_mapping() if examples else task.index_mapping()
        assert mapping is not None  # or nobody would have an index
        return engine.open_like(index.info.name, with_similarities(mapping, numbers))

    def _values(self, split: str, rankings: Mapping[str, Ranking]) -> dict[str, float]:
        """The values of a split's topics; those of topics without a ranking mean nothing.

        Raises:
            UsageError: the measure has no value a topic, or the scorer takes all topics or none.
            NotScorable: the official scorer refuses the rankings.
        """
        request, grades = self.request, self.grades[split]
        task, collection, measure = request.task, request.collection, request.measure
        ranked = {topic.id: rankings[topic.id] for topic in self._topics[split] if topic.id in rankings}
        if not ranked:
            return {}
        if task.official.scorer.files_make_one and not grades.keys() <= rankings.keys():
            raise UsageError(
                f"the scorer of {task.reference} takes all topics of {split} or none: rank all of them"
            )
        run = run_of_all(ranked, dict.fromkeys((*ranked, *grades)))
        options = replace(request.options, split=split)
        predictions = task.official.predictions(Submission(run, Part(collection, split), options))
        files = GoldFiles(collection.gold_files(split), options)
        scored = official_figures(task.official.scorer, predictions, files)
        values: Mapping[str, float | None] = scored.official.of_topics(measure)
        if not values:
            if measure is None or measure in scored.official.values:
                raise UsageError(
                    f"{self.measure} has no value for each topic: choose another one with --measure"
                )
            measured = field_figures(scored.rankings, scored.qrels, [measure])
            values = next(iter(measured.per_topic.values()), {})
        ids = topic_ids(list(scored.qrels), grades)  # some topics may have no value
        return {
            ids.get(name, name): value
            for name, value in values.items()
            if value is not None and isfinite(value)
        }

    # What there is

    def _read(self, split: str) -> None:
        """Read the topics of a split that have gold, and the gold."""
        task, collection = self.request.task, self.request.collection
        if collection.is_masked(split):
            raise DataError(f"the gold of {split} is masked, so nothing can be validated by it")
        found = Problems(lenient=self.request.lenient)
        with self._progress.stage(f"reading {split}") as advance:
            topics = collection.topics(split, found)
            advance(len(topics))
        self._problems.add_all(found)
        if not found.stopped:
            part = Part(collection, split)
            grades = task.official.grades(collection.gold_files(split), part, self.request.options)
            self.grades[split] = grades
            self._topics[split] = [topic for topic in topics if topic.id in grades]

    def _opened(self) -> Index:
        task, collection = self.request.task, self.request.collection
        names = {collection.index_of(split) for split in self.request.splits}
        if len(names) > 1:
            raise UsageError(
                f"{' and '.join(self.request.splits)} are ranked among different documents: name one of them"
            )
        self._engine = self._open.enter_context(closing(open_on_disk(self._settings, REMEMBERED)))
        try:
            index = open_index(task, self._engine, *names)
        except EngineRefused as error:
            if not self._settings.uses_server:
                raise
            raise EngineRefused(
                f"{error}, with --engine embedded: cross-validation ranks on this machine"
            ) from error
        require_documents(task, index, collection)
        return index

    def _divided(self) -> list[Fold]:
        topics = [topic for of_split in self._topics.values() for topic in of_split]
        solved = self._solved({topic.id for topic in topics})
        count = self.request.folds or (FOLD_COUNT if len(topics) >= FEW else len(topics))
        if not any(topic.id in solved for topic in topics):
            number_of = dict.fromkeys((topic.id for topic in topics), 0)
        elif count < 2:
            raise UsageError(f"{count} fold leaves nothing to learn from: there must be two at least")
        elif count >= len(topics):
            number_of = {topic.id: place for place, topic in enumerate(topics)}
        else:
            number_of = {topic.id: fold_number(topic.id, self.request.seed, count) for topic in topics}
        folder = self._temporary()
        return [
            self._fold(
                Path(folder) / str(number),
                [topic for topic in topics if number_of[topic.id] == number],
                [one for id_, one in solved.items() if number_of.get(id_) != number],
            )
            for number in sorted(set(number_of.values()))
        ]

    def _solved(self, topics: Some[str]) -> dict[str, Example]:
        """The solved topics that any of the splits may be ranked by, read until all of the topics are among them."""
        solved: dict[str, Example] = {}
        with self._progress.stage("reading solved topics") as advance:
            for split in self.request.splits:
                found = Problems(lenient=self.request.lenient)
                for example in self.request.collection.examples(split, found):
                    solved.setdefault(example.topic.id, example)
                    advance(1)
                self._problems.add_all(found)
                if solved.keys() >= set(topics):
                    break
        self._problems.raise_if_any(lenient_advice(self._problems))
        return solved

    def _temporary(self) -> str:
        try:
            return self._open.enter_context(tempfile.TemporaryDirectory(prefix="searchapp-folds-"))
        except OSError as error:
            raise SearchappError(f"there is no room for temporary files: {reason(error)}") from error

    def _fold(self, home: Path, topics: Sequence[Topic], solved: Sequence[Example]) -> Fold:
        request = self.request
        settings = replace(self._settings, home=home)
        engine = self._open.enter_context(closing(open_on_disk(settings, REMEMBERED)))
        view = without_fold(request.collection, topics, solved)
        inputs = signal_inputs(
            request.task,
            engine,
            self._index,
            lambda: (view, request.splits[0]),
            SilentProgress(),
            Problems(lenient=request.lenient),
            home=request.models,
        )
        # Signals of many recipes ask for the same.
        kept = replace(inputs, examples=cache(inputs.examples), labels=cache(inputs.labels))
        return Fold(topics, kept, engine, view)
