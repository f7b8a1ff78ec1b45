"""Train and store the models of trained signals and learned fusions, and provide the inputs of signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from searchapp.app.index import index_examples, lenient_advice, read_examples
from searchapp.embeddings.access import ATTEMPTS, WORD_ATTEMPTS, Access
from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import DocumentsDigest, digest_json
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example
from searchapp.progress import Progress
from searchapp.ranking.fusion import FUSION, REACH, AnswerFunction, LearnedFusion, TrainingFolds
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Answer, GradedDocuments, Inputs, Trained, TrainingTopics, gold_of
from searchapp.ranking.signals.terms import TermSpace, terms_of
from searchapp.tasks.base import Collection, Task
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.app.embed import WordEmbedder
    from searchapp.embeddings.reranking import Reranking
    from searchapp.ranking.learning import StoredModel

FOLDER = "models"  # of models in the home directory

STORED_FUSIONS = 16  # how many models of the fusion of a task are stored, the latest ones

CACHED = 2  # how many models are cached in memory if they are not stored


@dataclass(frozen=True, slots=True)
class MadeModel:
    """The model of a signal, or of a fusion."""

    signal: str
    left_out: str  # the training topic without which it was trained, if any
    stored: StoredModel
    path: Path | None  # its file; None without a home directory
    is_new: bool  # whether it was trained now


# Returns the header and the arrays of a model of training topics and documents.
Trainer = Callable[[Sequence[Example], Sequence[Document]], tuple[Mapping[str, Any], Mapping[str, Any]]]


class _Learner(NamedTuple):
    name: str
    kind: str
    training: Mapping[str, Any]  # the parameters of the training
    withheld: frozenset[str]  # the training topics that the model must not see
    train: Trainer
    left_out: str = ""  # the topic, if each one has its own model
    most_stored: int = STORED_FUSIONS


class Models:
    """The models by which a task's signals rank the topics of a split, stored in `home` or cached in memory.

    Args:
        judged: additional training topics, see `read_examples`
    """

    def __init__(
        self,
        task: Task,
        collection: Collection,
        split: str,
        progress: Progress,
        home: Path | None = None,
        judged: Sequence[Example] = (),
        problems: Problems | None = None,
    ) -> None:
        self._task = task
        self._collection = collection
        self._split = split
        self._progress = progress
        self._folder = None if home is None else home / FOLDER
        self._judged = judged
        self._problems = problems
        self._cached: dict[str, MadeModel] = {}
        self._loaded: tuple[Sequence[Example], Sequence[Document], str] | None = None

    def of(self, signal: Trained, ranked: str = "", *, rebuild: bool = False, workers: int = 1) -> MadeModel:
        """Return the model of a signal; train it if it is missing or with `rebuild`.

        A signal that leaves topics out has a model for each `ranked` topic.

        Raises:
            InvalidFiles: the files of the training topics have problems.
            DataError: there are no or too few training topics, or the stored model is damaged.
            UsageError: there is no model yet, and scikit-learn is not installed.
            SearchappError: it can't be stored.
        """
        left_out = ranked if signal.leaves_out and self._is_training_topic(ranked) else ""
        withheld = frozenset([left_out] if left_out else []) if signal.leaves_out else self._withheld

        def trained(
            examples: Sequence[Example], documents: Sequence[Document]
        ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
            with _memory_released([signal]):
                return signal.train(examples, documents, workers)

        return self._model(
            _Learner(
                signal.name,
                signal.kind,
                signal.training(),
                withheld,
                trained,
                left_out,
                signal.most_kept,
            ),
            rebuild=rebuild,
        )

    def ranked(self) -> list[str]:
        """Return the topics of the split that are training topics, after an empty name if others are not.

        Raises:
            InvalidFiles: the topics have problems.
        """
        problems = Problems() if self._problems is None else self._problems
        topics = self._collection.topics(self._split, problems)
        problems.raise_if_any(lenient_advice(problems))
        return sorted({topic.id if self._is_training_topic(topic.id) else "" for topic in topics})

    @cached_property
    def _withheld(self) -> frozenset[str]:
        """The training topics that a split of other topics ranks too."""
        if self._split in self._collection.training_splits(self._split):
            return frozenset()
        examples, _documents, _digest = self._inputs()
        judged = {example.topic.id for example in self._judged}
        ranked = {topic.id for topic in self._collection.topics(self._split, Problems(lenient=True))}
        return frozenset(example.topic.id for example in examples if example.topic.id in ranked - judged)

    def _is_training_topic(self, topic_id: str) -> bool:
        examples, _documents, _digest = self._inputs()
        return any(example.topic.id == topic_id for example in examples)

    def of_fusion(self, recipe: Recipe, inputs: Inputs, *, rebuild: bool = False) -> MadeModel:
        """Return the model that fuses the signals of a recipe; train it if it is missing or with `rebuild`.

        Raises:
            as `of` does.
            EngineError: the engine failed during training.
        """
        learned = recipe.fusion
        assert isinstance(learned, LearnedFusion)  # the caller has checked `recipe.is_learned`

        def trained(
            examples: Sequence[Example], documents: Sequence[Document]
        ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
            answer_folds = _crossfitted_answers(recipe, inputs, examples, documents, self._progress)
            return learned.train(
                [(signal.name, signal.weight) for signal in recipe.signals], examples, answer_folds
            )

        training = {
            "fusion": learned.manifest(),
            "signals": [signal.manifest() for signal in recipe.signals],
            "parameters": dict(recipe.parameters),
            "index": inputs.index.info.digest,
            "training_mapping": self._task.examples_index_mapping(),
            "topics_are_documents": inputs.topics_are_documents,
        }
        learner = _Learner(FUSION, LearnedFusion.kind, training, self._withheld, trained)
        return self._model(learner, rebuild=rebuild)

    def _model(self, learner: _Learner, *, rebuild: bool) -> MadeModel:
        if self._folder is not None:
            return self._make(learner, rebuild=rebuild)
        key = digest_json([learner.training, learner.left_out])
        if rebuild or key not in self._cached:
            self._cached[key] = self._make(learner, rebuild=rebuild)
            for old in list(self._cached)[:-CACHED]:
                del self._cached[old]
        return replace(self._cached[key], signal=learner.name)

    def _make(self, learner: _Learner, *, rebuild: bool) -> MadeModel:
        from searchapp.ranking import learning  # slow to import

        examples, documents, digest = self._inputs()
        training_topics = [example for example in examples if example.topic.id not in learner.withheld]
        if not training_topics:
            raise DataError(
                f"every training topic of {self._task.reference} is also a topic of {self._split}, so "
                f"{learner.name} has no training data: choose another recipe"
            )
        # A fusion is not trained on withheld topics either, but they vote for others while it is trained.
        withheld = [
            example for example in examples if example.topic.id in learner.withheld and not learner.left_out
        ]
        judged = {example.topic.id for example in self._judged}
        versions = learning.versions()
        key = digest_json(
            {
                "format": learning.MODEL_FORMAT,
                "versions": versions,
                "training": learner.training,
                "training_topics": _digest(training_topics),
                "judged": sorted(judged),
                "documents": digest,
                "withheld": _digest(withheld),
            }
        )
        path = None
        if self._folder is not None:
            path = self._folder / f"{self._task.name}-{learner.kind}-{key[:16]}.npz"
        if path is not None and path.exists() and not rebuild:
            stored = learning.read_model(path)
            if stored.header.get("key") != key:
                raise DataError(f"{path} was trained on other training topics: remove it")
            return MadeModel(learner.name, learner.left_out, stored, path, False)
        learning.require_learn()
        with self._progress.stage(f"training {learner.name} on {counted(len(training_topics), 'topic')}"):
            header, arrays = learner.train(training_topics, documents)
        about: dict[str, Any] = {
            "key": key,
            "task": self._task.name,
            "versions": versions,
            "training_topics": len(training_topics),
            # The run records the judged topics that it has learned from, and `evaluate` warns of them.
            "topics": sorted(
                example.topic.id for example in training_topics if example.topic.id not in judged
            ),
        }
        if withheld:
            about["withheld"] = sorted(example.topic.id for example in withheld)
        stored = learning.StoredModel.of({**about, **header}, arrays)
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SearchappError(f"{path.parent} can't be created: {error.strerror}") from error
            learning.write_model(path, stored)
            self._remove_oldest(learner, path)
        return MadeModel(learner.name, learner.left_out, stored, path, True)

    def _inputs(self) -> tuple[Sequence[Example], Sequence[Document], str]:
        if self._loaded is None:
            examples = read_examples(
                self._task, self._collection, self._split, self._progress, self._judged, self._problems
            )
            seen = DocumentsDigest()
            documents = list(seen.watch(self._collection.documents.read(Problems(lenient=True))))
            self._loaded = examples, documents, seen.hexdigest()
        return self._loaded

    def _remove_oldest(self, learner: _Learner, path: Path) -> None:
        with suppress(OSError):
            models = path.parent.glob(f"{self._task.name}-{learner.kind}-????????????????.npz")
            by_age = sorted(models, key=lambda model: (model == path, model.stat().st_mtime_ns))
            for old in by_age[: -learner.most_stored]:
                old.unlink(missing_ok=True)


@contextmanager
def _memory_released(signals: Iterable[Trained]) -> Iterator[None]:
    """Return the memory of the training of signals to the system afterwards."""
    from searchapp.ranking.learning import release_memory  # slow to import

    try:
        yield
    finally:
        for signal in signals:
            signal.release()
        release_memory()


def _crossfitted_answers(
    recipe: Recipe,
    inputs: Inputs,
    examples: Sequence[Example],
    documents: Sequence[Document],
    progress: Progress,
) -> AnswerFunction:
    """Return a function that ranks the examples of folds by a recipe, without the votes of withheld ones."""
    assert isinstance(recipe.fusion, LearnedFusion)
    plain = replace(recipe, fusion=recipe.fusion.unlearned)

    def answer_fold(
        batch: Sequence[Example], withheld: frozenset[str]
    ) -> Iterator[tuple[Example, Sequence[Answer]]]:
        ranker = Ranker(plain, _without(withheld, inputs, examples, documents))
        with progress.stage("ranking training topics", len(batch)) as advance:
            yield from zip(
                batch, ranker.answers([example.topic for example in batch], REACH, advance), strict=True
            )

    def answer_folds(folds: TrainingFolds) -> Iterator[tuple[Example, Sequence[Answer]]]:
        # After all folds, whose models share what a signal keeps of its training.
        with _memory_released(recipe.trained):
            for batch, withheld in folds:
                yield from answer_fold(batch, withheld)

    return answer_folds


def _without(
    withheld: frozenset[str], inputs: Inputs, examples: Sequence[Example], documents: Sequence[Document]
) -> Inputs:
    others = [example for example in examples if example.topic.id not in withheld]

    @cache  # several signals need the same
    def training_topics() -> TrainingTopics:
        return inputs.examples().without(withheld)

    def labels() -> GradedDocuments:
        known = inputs.labels()
        gold = {topic: answers for topic, answers in known.gold.items() if topic not in withheld}
        return replace(known, gold=gold)

    def model(signal: Trained, ranked: str = "") -> StoredModel:  # noqa: ARG001  # it is among those withheld
        from searchapp.ranking.learning import StoredModel, release_memory  # slow to import

        release_memory()  # of the preceding signals and folds
        return StoredModel.of(*signal.train(others, documents, 1))

    return replace(
        inputs,
        examples=training_topics,
        labels=labels,
        terms=cache(lambda: inputs.terms().without(withheld)),
        model=model,
    )


def _digest(examples: Iterable[Example]) -> str:
    # The gold is a list, because its order decides between equal answers.
    return digest_json([[example.topic.variables(), list(example.gold.items())] for example in examples])


def train(
    models: Models,
    recipe: Recipe,
    inputs: Callable[[], Inputs],
    *,
    rebuild: bool = False,
    workers: int = 1,
) -> list[MadeModel]:
    """Return the models of all trained signals of a recipe, and of its fusion, which `inputs` rank for.

    A signal that leaves topics out has one for each training topic of the split.

    Raises:
        UsageError: the recipe has no trained part.
        as `Models.of` and `Models.of_fusion` do.
    """
    if not recipe.trained and not recipe.is_learned:
        raise UsageError(
            f"the recipe {recipe.name} has no model to train: choose one with the signal multiclass, "
            "multilabel, lines or metric, or with the fusion learned"
        )
    made = [
        models.of(signal, ranked, rebuild=rebuild, workers=workers)
        for signal in recipe.trained
        for ranked in (models.ranked() if signal.leaves_out else [""])
    ]
    return made + ([models.of_fusion(recipe, inputs(), rebuild=rebuild)] if recipe.is_learned else [])


def withheld_warnings(counts: Iterable[int], split: str) -> list[str]:
    """Return sentences on training topics that models did not see because the split ranks them."""
    return [
        f"1 training topic is also a topic of {split}: the models were trained without it"
        if count == 1
        else f"{count:,} training topics are also topics of {split}: the models were trained without them"
        for count in sorted(set(counts))
    ]


def described(made: MadeModel) -> Mapping[str, Any]:
    """Return the JSON of a model for `train --json`."""
    header = made.stored.header
    return {
        "signal": made.signal,
        **({"held_out_topic": made.left_out} if made.left_out else {}),
        "trained": made.is_new,
        "path": None if made.path is None else str(made.path),
        "digest": made.stored.digest,
        "key": header["key"],
        "training_topics": header["training_topics"],
        **({"withheld": len(header["withheld"])} if "withheld" in header else {}),
        "labels": len(header["labels"]),
        "features": len(header["features"]),
        "versions": dict(header["versions"]),
    }


def signal_inputs(
    task: Task,
    engine: Engine,
    index: Index,
    split_of: Callable[[], tuple[Collection, str]],
    progress: Progress,
    problems: Problems,
    judged: Sequence[Example] = (),
    home: Path | None = None,
    transformers: Mapping[str, Any] = MappingProxyType({}),
    reranking: Reranking | None = None,
) -> Inputs:
    """Return the inputs of signals over an index, read or indexed on demand.

    Args:
        task: the task that is ranked
        engine: the engine of the training topics
        index: the index of the documents
        split_of: returns the collection and the split whose topics are ranked
        progress: receives the stages of the work
        problems: collects problems of the training topics
        judged: judged topics, whose gold takes precedence
        home: the directory that stores models
        transformers: PyTerrier transformers by signal
        reranking: asks rerankers; by default those on this machine, with the scores in `home`
    """

    def documents() -> Iterable[Document]:
        if task.info.foreign is not None:
            return index.stored_documents()
        collection, _ = split_of()
        return collection.documents.read(Problems(lenient=True))

    @cache  # several signals need the same
    def examples() -> TrainingTopics:
        training_index, training_topics = index_examples(
            task, engine, *split_of(), progress, judged, problems
        )
        return TrainingTopics(training_index, gold_of(training_topics))

    def labels() -> GradedDocuments:
        training_topics = read_examples(task, *split_of(), progress, judged, problems)
        return GradedDocuments(
            {document.id: document for document in documents()},
            gold_of(training_topics),
            {example.topic.id: example.topic for example in training_topics},
        )

    @cache
    def terms() -> TermSpace:
        collection, split = split_of()
        has_training = judged or collection.example_files(split)
        training_topics = (
            read_examples(task, collection, split, progress, judged, problems) if has_training else []
        )
        return TermSpace(list(documents()), training_topics, terms_of(task.index_mapping()))

    @cache
    def models() -> Models:
        return Models(task, *split_of(), progress, home, judged, problems)

    def model(signal: Trained, ranked: str = "") -> StoredModel:
        return models().of(signal, ranked).stored

    def fusion(recipe: Recipe) -> StoredModel:
        return models().of_fusion(recipe, inputs).stored

    inputs = Inputs(
        index,
        task.info.topics_are_documents,
        examples,
        labels,
        documents,
        terms,
        model,
        fusion,
        transformers=transformers,
    )
    if reranking is not None:
        inputs = replace(inputs, rerank=reranking.scores)
    elif home is not None:
        inputs = replace(inputs, rerank=_reranker_scores(home, Access()))
    return inputs


def _reranker_scores(
    home: Path, access: Access, attempts: int = ATTEMPTS
) -> Callable[..., list[list[float]]]:
    """Return the `scores` of a `Reranking` that the first call makes."""

    @cache
    def reranking() -> Reranking:
        from searchapp.embeddings.reranking import Reranking  # slow to import

        return Reranking(home, access, attempts=attempts)

    return lambda *arguments: reranking().scores(*arguments)


def typed_inputs(
    task: Task,
    engine: Engine,
    index: Index,
    opened: Callable[[], Collection],
    progress: Progress,
    home: Path | None = None,
    access: Access | None = None,
) -> Inputs:
    """Return the inputs for typed words, which learn from the training topics of the task's last split.

    Args:
        task: the task that is searched
        engine: the engine of the training topics
        index: the index of the documents
        opened: returns the task's files when a signal needs them
        progress: receives the stages of the work
        home: the directory that stores models, vectors of words and scores of rerankers; without one, no model is
            asked about words
        access: which models may be asked about words; by default those on this machine
    """

    @cache
    def split_of() -> tuple[Collection, str]:
        collection = opened()
        return collection, last_trainable_split(collection)

    inputs = signal_inputs(task, engine, index, split_of, progress, Problems(lenient=True), home=home)
    if home is None:
        return inputs
    scores = _reranker_scores(home, access or Access(), WORD_ATTEMPTS)

    @cache
    def embedder() -> WordEmbedder:
        from searchapp.app.embed import WordEmbedder  # slow to import

        return WordEmbedder(task, home, access)

    def rerank(*arguments: Any) -> list[list[float]]:
        from searchapp.app.embed import until_cancelled  # slow to import

        return until_cancelled(lambda: scores(*arguments))

    return replace(inputs, embed_words=lambda words, made_by: embedder()(words, made_by), rerank=rerank)


def last_trainable_split(collection: Collection) -> str:
    """Return the last split whose training topics all exist; for a task without any, the last split.

    Raises:
        DataError: the files of all training topics are missing.
    """
    files_of = {split: collection.example_files(split) for split in reversed(collection.info.splits)}
    for split, files in files_of.items():
        if all(file.exists() for file in files) and (files or not any(files_of.values())):
            return split
    raise DataError(
        f"{collection.folder} has no training topics for {collection.info.reference}: choose another recipe"
    )
