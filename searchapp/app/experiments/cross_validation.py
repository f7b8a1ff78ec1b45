"""Cross-validation: the value of each training topic if a recipe learns from the other folds alone.

A seeded hash of its id determines the fold of a topic (`tasks.splits`). With the default seed the folds of the SMART
tasks are the folds of their reported figures. Other topics, such as dev, are ranked with all training topics.

    M. Stone, Cross-Validatory Choice and Assessment of Statistical Predictions, JRSS B 36, 1974
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from copy import copy
from dataclasses import field, replace
from functools import cache
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from searchapp.app.comparison import ScoredRun, Scoring, score_rankings
from searchapp.app.evaluate import GoldSource, field_figures, official_figures
from searchapp.app.index import lenient_advice, open_index, require_documents
from searchapp.app.models import Models, signal_inputs
from searchapp.app.topic_figures import topic_ids
from searchapp.config.settings import Settings
from searchapp.embeddings.access import Access
from searchapp.embeddings.reranking import Reranking
from searchapp.engines import open_on_disk
from searchapp.engines.base import Index
from searchapp.errors import DataError, EngineRefused, SearchappError, UsageError
from searchapp.evaluation.base import GoldFiles, ScorerOptions
from searchapp.evaluation.measures import Measures
from searchapp.files import digest_json, reason
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.index_settings import Similarities, with_similarities
from searchapp.model import Example, Ranking, Run, Topic
from searchapp.progress import Progress, SilentProgress
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Inputs, Need, TrainingTopics
from searchapp.tasks.base import Collection, DataSplit, Grades, Task
from searchapp.tasks.splits import FOLD_COUNT, FOLD_SEED, fold_number

if TYPE_CHECKING:
    from searchapp.engines import EmbeddedEngine

TAG = "cross-validation"

FEW = 50  # with fewer topics each one is a fold by default

# Bytes of hits that each index caches, so that a query of many recipes is searched once.
CACHED_HITS = 1 << 27

OPEN = 4  # how many indexes with other similarities are open at a time

TopicValues = Mapping[str, float]  # the value of each topic by its id, in the order of the topics


@dataclass(frozen=True, slots=True)
class SimilarityNumbers:
    """Numbers of similarities that differ from the mappings of documents and of training topics."""

    documents: Similarities = field(default_factory=dict)
    examples: Similarities = field(default_factory=dict)

    @property
    def key(self) -> str:
        return digest_json({"documents": self.documents, "examples": self.examples})


AS_INDEXED = SimilarityNumbers()


@dataclass(frozen=True, slots=True)
class CrossValidationRequest:
    """The topics of some splits, in folds, under a measure."""

    task: Task
    collection: Collection
    splits: tuple[str, ...]
    # A measure of the official scorer or of ir-measures; the official one by default.
    measure: str | None = None
    folds: int | None = None  # by default 5, or one for each topic if there are fewer than `FEW`
    seed: int = FOLD_SEED
    depth: int | None = None
    lenient: bool = False  # whether invalid topics and training topics are left out
    options: ScorerOptions = field(default_factory=ScorerOptions)
    models: Path | None = None  # the home directory that stores trained models; None stores none
    access: Access = field(default_factory=Access)  # what the user allows rerankers


def training_splits(task: Task, collection: Collection) -> tuple[str, ...]:
    """Return the splits of training topics, on which parameters may be chosen."""
    return tuple(split for split in task.info.splits if is_training(collection, split))


def is_training(collection: Collection, split: str) -> bool:
    """Return whether the topics of a split are training topics."""
    own = collection.split_files(split)
    return bool(own) and set(own) <= set(collection.example_files(split))


@dataclass(frozen=True, slots=True)
class Fold:
    """The topics of a fold, and the inputs that rank them."""

    topics: Sequence[Topic]
    inputs: Inputs
    engine: EmbeddedEngine
    view: Collection
    # Training topics with other similarities, by `SimilarityNumbers.key`.
    others: dict[str, OtherSimilarities] = field(default_factory=dict)


class OtherSimilarities:
    """The training topics of a fold in an index with other similarities, opened on first use."""

    def __init__(self, fold: Fold, models: Models, task: Task, numbers: Similarities) -> None:
        self.models = models
        self._fold = fold
        self._task = task
        self._numbers = numbers
        self._training_topics: TrainingTopics | None = None

    def training_topics(self) -> TrainingTopics:
        if self._training_topics is None:
            as_indexed = self._fold.inputs.examples()
            mapping = self._task.examples_index_mapping()
            assert mapping is not None  # otherwise there would be no index
            mapping = with_similarities(mapping, self._numbers)
            self._training_topics = TrainingTopics(
                self._fold.engine.open_like(as_indexed.index.info.name, mapping), as_indexed.gold
            )
        return self._training_topics

    def close(self) -> None:
        if self._training_topics is not None:
            self._training_topics.index.close()


def _close_oldest(opened: dict[str, Index] | dict[str, OtherSimilarities]) -> None:
    if len(opened) == OPEN:
        opened.pop(next(iter(opened))).close()


class CrossValidation(AbstractContextManager["CrossValidation"]):
    """Topics in folds, with all inputs of ranking, which are read and indexed once for many recipes.

    Ranks with the embedded engine; the indexes of the folds are in a temporary folder, which `close` removes.

    Raises:
        UsageError: a split or the measure is unknown, or the measure has no value for each topic.
        InvalidFiles: topics or training topics have problems, and the request is not lenient.
        DataError: the gold is masked, or no topic has gold.
        EngineRefused: the documents are not indexed on this machine.
    """

    def __init__(self, request: CrossValidationRequest, settings: Settings, progress: Progress) -> None:
        self.request = request
        self._progress = progress
        self._settings = settings
        self._reranking = Reranking(settings.home, request.access)
        self._problems = Problems(lenient=request.lenient)
        self._resources = ExitStack()
        self._topics: dict[str, list[Topic]] = {}
        self.grades: dict[str, Grades] = {}  # the gold of each split by topic and document
        self._other_indexes: dict[str, Index] = {}
        for split in request.splits:
            self._read(split)
        self._problems.raise_if_any(lenient_advice(self._problems))
        if not any(self._topics.values()):
            raise DataError(f"{request.collection.folder}: no topic of {', '.join(request.splits)} has gold")
        try:
            self._engine, self._index = self._open_index()
            self.folds: Sequence[Fold] = self._divide()
        except BaseException:
            self.close()
            raise
        self._fold_of = {topic.id: number for number, fold in enumerate(self.folds) for topic in fold.topics}

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._resources.close()

    @property
    def measure(self) -> str:
        if self.request.measure is not None:
            return self.request.measure
        name, at, cutoff = self.request.task.info.official_measure.partition("@")
        return f"{name}{at}{self.request.options.cutoff or cutoff}" if at else name

    @property
    def depth(self) -> int:
        return self.request.depth or self.request.task.info.default_depth

    @property
    def topics(self) -> tuple[str, ...]:
        """The ids of the topics that have gold, in the order of their splits and files."""
        return tuple(topic.id for topics in self._topics.values() for topic in topics)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(fold.topics) for fold in self.folds)

    @property
    def files(self) -> tuple[Path, ...]:
        collection = self.request.collection
        files = [*collection.indexes[self._index.info.name].files]
        for split in self.request.splits:
            files += [*collection.split_files(split), *collection.gold_files(split)]
            files += collection.example_files(split)
        return tuple(dict.fromkeys(files))

    def fold_of(self, topic: str) -> int:
        return self._fold_of[topic]

    def ranked_by(self, topics: Sequence[Topic], training_topics: Sequence[Example]) -> Fold:
        """Return topics as an additional fold, ranked by these training topics alone."""
        return self._fold(Path(self._temporary()), topics, training_topics)

    def prepare(self, recipes: Sequence[Recipe]) -> None:
        """Index the training topics of each fold, if needed, before processes fork."""
        if any(recipe.needs(Need.examples) for recipe in recipes):
            with self._progress.stage("indexing training topics", len(self.folds)) as advance:
                for fold in self.folds:
                    fold.inputs.examples()
                    advance(1)

    def scores(
        self,
        recipe: Recipe,
        only: AnyCollection[str] | None = None,
        scoring: SimilarityNumbers = AS_INDEXED,
    ) -> TopicValues:
        """Return the value of each topic, or of `only` some, with the similarities `scoring`.

        Raises:
            UsageError: `only` some topics are given, and the official scorer needs all.
            NotScorable: the official scorer rejects the rankings.
            DataError: a fold has no training topics, or too few for the recipe.
        """
        rankings: dict[str, Ranking] = {}
        for fold in self.folds:
            selected = [topic for topic in fold.topics if only is None or topic.id in only]
            if selected:
                ranker = Ranker(recipe, self._inputs(fold, scoring))
                rankings |= {ranking.topic_id: ranking for ranking in ranker.rank(selected, self.depth, TAG)}
        values: dict[str, float] = {}
        for split in self.request.splits:
            values |= self._values(split, rankings)
        return {topic: values[topic] for topic in self.topics if topic in values and topic in rankings}

    def scored(self, name: str, rankings: Mapping[str, Ranking], measures: tuple[str, ...]) -> ScoredRun:
        """Score rankings as `evaluate` does; several splits as one run, with means over all topics.

        Topics without a ranking have meaningless values.

        Raises:
            NotScorable: the official scorer rejects the rankings.
        """
        request = self.request
        runs = []
        for split in request.splits:
            source = GoldSource(
                task=request.task.reference,
                data=request.collection.folder,
                split=split,
                options=request.options,
                measures=measures,
            )
            grades = self.grades[split]
            ranked = {topic: ranking for topic, ranking in rankings.items() if topic in grades}
            run = _run_of_all(ranked, (*ranked, *(topic.id for topic in self._topics[split])))
            runs.append(score_rankings(name, run, Scoring(source), request.task, grades))
        first = runs[0]
        if len(runs) == 1:
            return first
        warnings = dict.fromkeys(chain.from_iterable(run.evaluation.warnings for run in runs))
        evaluation = replace(
            first.evaluation,
            official=replace(first.evaluation.official, values={}, honest={}, per_topic={}),
            measures=Measures.none(),
            warnings=tuple(warnings),
        )
        names = [name for name in first.values if all(name in run.values for run in runs)]
        return ScoredRun(
            evaluation,
            {name: dict(chain.from_iterable(run.values[name].items() for run in runs)) for name in names},
        )

    def _inputs(self, fold: Fold, scoring: SimilarityNumbers) -> Inputs:
        if scoring == AS_INDEXED:
            return fold.inputs
        key, request = scoring.key, self.request
        if key not in self._other_indexes:
            _close_oldest(self._other_indexes)
            mapping = with_similarities(request.task.index_mapping(), scoring.documents)
            self._other_indexes[key] = self._engine.open_like(self._index.info.name, mapping)
        if key not in fold.others:
            _close_oldest(fold.others)
            problems = Problems(lenient=request.lenient)
            models = Models(request.task, fold.view, request.splits[0], SilentProgress(), problems=problems)
            fold.others[key] = OtherSimilarities(fold, models, request.task, scoring.examples)
        other = fold.others[key]
        inputs = replace(fold.inputs, index=self._other_indexes[key], examples=other.training_topics)
        # A learned fusion is trained on the answers of its signals under these similarities.
        return replace(inputs, fusion=lambda recipe: other.models.of_fusion(recipe, inputs).stored)

    def _values(self, split: str, rankings: Mapping[str, Ranking]) -> TopicValues:
        """Return the values of a split's topics under the measure; unranked topics have meaningless values.

        Raises:
            UsageError: the measure has no value for each topic, or the official scorer needs all topics.
            NotScorable: the official scorer rejects the rankings.
        """
        request, grades = self.request, self.grades[split]
        task, collection, measure = request.task, request.collection, request.measure
        ranked = {topic.id: rankings[topic.id] for topic in self._topics[split] if topic.id in rankings}
        if not ranked:
            return {}
        if task.official.scorer.files_make_one and not grades.keys() <= rankings.keys():
            raise UsageError(
                f"the official scorer of {task.reference} requires rankings of all topics of {split}: rank all of them"
            )
        run = _run_of_all(ranked, (*ranked, *grades))
        options = replace(request.options, split=split)
        predictions = task.official.predictions(run, DataSplit(collection, split))
        files = GoldFiles(collection.gold_files(split), options)
        scored = official_figures(task.official.scorer, predictions, files)
        values: Mapping[str, float | None] = scored.official.of_topics(measure)
        if not values:
            if measure is None or measure in scored.official.values:
                raise UsageError(
                    f"{self.measure} has no per-topic values: choose another measure with --measure"
                )
            measures = field_figures(scored.rankings, scored.qrels, [measure])
            values = next(iter(measures.per_topic.values()), {})
        ids = topic_ids(list(scored.qrels), grades)
        return {
            ids.get(name, name): value
            for name, value in values.items()
            if value is not None and isfinite(value)
        }

    def _read(self, split: str) -> None:
        task, collection = self.request.task, self.request.collection
        if collection.is_masked(split):
            raise DataError(f"the gold of {split} is masked: choose another split")
        problems = Problems(lenient=self.request.lenient)
        with self._progress.stage(f"reading {split}") as advance:
            topics = collection.topics(split, problems)
            advance(len(topics))
        self._problems.add_all(problems)
        if not problems.stopped:
            part = DataSplit(collection, split, self.request.options)
            grades = task.official.grades(collection.gold_files(split), part)
            self.grades[split] = grades
            self._topics[split] = [topic for topic in topics if topic.id in grades]

    def _open_index(self) -> tuple[EmbeddedEngine, Index]:
        task, collection = self.request.task, self.request.collection
        names = {collection.index_of(split) for split in self.request.splits}
        if len(names) > 1:
            raise UsageError(
                f"{' and '.join(self.request.splits)} rank different documents: choose one of them with --split"
            )
        engine = self._resources.enter_context(closing(open_on_disk(self._settings, CACHED_HITS)))
        try:
            index = open_index(task, engine, *names)
        except EngineRefused as error:
            if not self._settings.uses_server:
                raise
            raise EngineRefused(
                f"{error}; add --engine embedded, because cross-validation uses the embedded engine"
            ) from error
        require_documents(task, index, collection)
        return engine, index

    def _divide(self) -> list[Fold]:
        topics = list(chain.from_iterable(self._topics.values()))
        training_topics = self._read_training_topics({topic.id for topic in topics})
        count = self.request.folds or (FOLD_COUNT if len(topics) >= FEW else len(topics))
        if not any(topic.id in training_topics for topic in topics):
            number_of = dict.fromkeys((topic.id for topic in topics), 0)
        elif count < 2:
            raise UsageError(f"cross-validation needs at least 2 folds, not {count}")
        elif count >= len(topics):
            number_of = {topic.id: number for number, topic in enumerate(topics)}
        else:
            number_of = {topic.id: fold_number(topic.id, self.request.seed, count) for topic in topics}
        folder = self._temporary()
        return [
            self._fold(
                Path(folder) / str(number),
                [topic for topic in topics if number_of[topic.id] == number],
                [example for id_, example in training_topics.items() if number_of.get(id_) != number],
            )
            for number in sorted(set(number_of.values()))
        ]

    def _read_training_topics(self, topics: AnyCollection[str]) -> dict[str, Example]:
        training_topics: dict[str, Example] = {}
        with self._progress.stage("reading training topics") as advance:
            for split in self.request.splits:
                problems = Problems(lenient=self.request.lenient)
                for example in self.request.collection.examples(split, problems):
                    training_topics.setdefault(example.topic.id, example)
                    advance(1)
                self._problems.add_all(problems)
                if training_topics.keys() >= set(topics):
                    break
        self._problems.raise_if_any(lenient_advice(self._problems))
        return training_topics

    def _temporary(self) -> str:
        try:
            return self._resources.enter_context(tempfile.TemporaryDirectory(prefix="searchapp-folds-"))
        except OSError as error:
            raise SearchappError(f"temporary files can't be created: {reason(error)}") from error

    def _fold(self, home: Path, topics: Sequence[Topic], training_topics: Sequence[Example]) -> Fold:
        request = self.request
        settings = replace(self._settings, home=home)
        engine = self._resources.enter_context(closing(open_on_disk(settings, CACHED_HITS)))
        view = copy(request.collection)
        view.topics = lambda split, problems: list(topics)  # type: ignore[method-assign]  # noqa: ARG005
        view.examples = lambda split, problems: iter(training_topics)  # type: ignore[method-assign]  # noqa: ARG005
        inputs = signal_inputs(
            request.task,
            engine,
            self._index,
            lambda: (view, request.splits[0]),
            SilentProgress(),
            Problems(lenient=request.lenient),
            home=request.models,
            reranking=self._reranking,
        )
        # The signals of many recipes need the same.
        cached = replace(inputs, examples=cache(inputs.examples), labels=cache(inputs.labels))
        return Fold(topics, cached, engine, view)


def _run_of_all(rankings: Mapping[str, Ranking], topics: Iterable[str]) -> Run:
    """Return a run of these topics for official scorers that stop at a topic without a ranking.

    Such a topic gets an arbitrary ranking: its value is meaningless.
    """
    any_ranking = next(iter(rankings.values()))
    return Run(
        TAG,
        tuple(
            rankings[topic] if topic in rankings else replace(any_ranking, topic_id=topic)
            for topic in dict.fromkeys(topics)
        ),
    )
