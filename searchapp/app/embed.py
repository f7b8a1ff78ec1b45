"""Embed the documents and topics of a task into the file of the signal `vectors`, and the words of a search."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, TypeVar

from searchapp.embeddings.access import WORD_ATTEMPTS, Access, Budget, estimated_tokens
from searchapp.embeddings.cache import Floats32, open_cache
from searchapp.embeddings.embedding import embed
from searchapp.embeddings.source import LSA_DIMENSIONS, EmbeddingSource
from searchapp.embeddings.vector_files import read_vectors
from searchapp.engines.base import RequestCancelled, current_patience
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import DocumentsDigest
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Topic
from searchapp.progress import Notify, Progress, no_notice
from searchapp.ranking import learning
from searchapp.ranking.learning import StoredModel
from searchapp.ranking.signals.latent_space import TextProjection, lsa
from searchapp.ranking.signals.vectors import DIGEST, SOURCE, stored_vectors
from searchapp.tasks.base import Collection, Task

FOLDER = "embeddings"  # of files for shared tasks in the home directory


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """What to embed, and the limits of the work."""

    splits: Sequence[str] = ()  # whose topics; all with files by default
    limit: int | None = None  # the greatest number of new texts
    max_cost: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Embedded:
    """The outcome of embedding a task."""

    documents: int
    topics: int
    missing: int  # distinct texts without a vector before
    embedded: int  # of them now
    estimated_tokens: int  # of the missing texts
    budget: Budget
    estimated_cost: float
    path: Path  # of the file with the vectors
    stored: StoredModel | None = None  # its content; None while texts are missing

    @property
    def remaining(self) -> int:
        return self.missing - self.embedded


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts of a task; the lists of ids and texts are parallel."""

    document_ids: list[str]
    documents: list[str]
    topics: list[Topic]
    digest: str

    def prefixed(self, source: EmbeddingSource) -> tuple[list[str], list[str]]:
        """Return the texts of documents and topics as the model receives them."""
        return (
            [source.document_prefix + text for text in self.documents],
            [source.topic_prefix + topic.text for topic in self.topics],
        )


def embed_task(
    task: Task,
    collection: Collection,
    home: Path,
    access: Access,
    options: EmbedOptions,
    progress: Progress,
    notify: Notify = no_notice,
) -> Embedded:
    """Embed the texts of a task that have no vector yet; write the file of vectors if none is missing.

    Args:
        task: the task; without a table `[embeddings]` its documents have vectors by latent semantic analysis
        collection: its files
        home: the home directory, with the cache
        access: what the user allows
        options: what to embed, and limits
        progress: receives the stages of the work
        notify: receives a sentence before each further attempt of a request

    Raises:
        UsageError: the user has not allowed the source of embeddings, or a package for it is not installed.
        DataError: texts or vectors are invalid.
        OverBudget: the cost would exceed the greatest one.
        SearchappError: the source fails, or the file can't be written.
    """
    if task.info.foreign is not None:
        raise UsageError(
            f"{task.reference} is on an index of another program, whose documents are not embedded"
        )
    source = task.info.embeddings or _default_source(task, home)
    splits = options.splits or [
        split for split in task.info.splits if collection.split_files(split)[0].is_file()
    ]
    texts = _read_texts(collection, splits, progress)
    budget = Budget(options.max_cost)
    path = source.folder / source.file

    def outcome(
        missing: Sequence[str],
        embedded: int,
        vectors: tuple[Floats32, Floats32] | None,
        projection: TextProjection | None = None,
    ) -> Embedded:
        stored = None
        if vectors is not None and texts.documents:
            with progress.stage(f"rounding {len(texts.documents):,} vectors"):
                stored = _store(task, source, texts, vectors, path, projection)
        tokens = estimated_tokens(missing)
        counts = len(texts.documents), len(texts.topics), len(missing), embedded
        return Embedded(*counts, tokens, budget, float(source.cost.cost(tokens, 0)), path, stored)

    if source.documents:
        if options.dry_run:
            return outcome([], 0, None)
        vectors = (
            read_vectors([source.folder / name for name in source.documents], texts.document_ids),
            read_vectors(
                [source.folder / name for name in source.topics], [topic.id for topic in texts.topics]
            ),
        )
        return outcome([], 0, vectors)
    if source.is_lsa:
        if options.dry_run or not texts.documents:
            return outcome([], 0, None)
        learning.require_learn()
        with progress.stage(f"decomposing {len(texts.documents):,} documents"):
            projection, of_documents, of_topics = lsa(
                texts.documents,
                [topic.text for topic in texts.topics],
                source.min_df,
                source.dimensions or LSA_DIMENSIONS,
                source.seed,
            )
        return outcome([], 0, (of_documents, of_topics), projection)
    with open_cache(home, source.digest) as cache:
        documents, topics = texts.prefixed(source)
        missing = cache.missing([*topics, *documents])
        wanted = missing[: options.limit]
        if options.dry_run:
            return outcome(missing, 0, None)
        with progress.stage("embedding", len(wanted)) as advance:
            embed(wanted, source, cache, access, budget, advance, notify)
        is_complete = len(wanted) == len(missing)
        complete = (cache.vectors(documents), cache.vectors(topics)) if is_complete and documents else None
        return outcome(missing, len(wanted), complete)


def _default_source(task: Task, home: Path) -> EmbeddingSource:
    """Return latent semantic analysis, whose file is beside the task's; in the home directory without one."""
    file = task.info.variant or task.info.file
    if file is not None:
        return EmbeddingSource(folder=file.parent)
    folder = home / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SearchappError(f"{folder} can't be created: {error.strerror}") from error
    return EmbeddingSource(folder=folder, file=f"{task.name}.npz")


def _read_texts(collection: Collection, splits: Sequence[str], progress: Progress) -> _Texts:
    digest = DocumentsDigest()
    with progress.stage("reading documents") as advance:
        ids, texts = [], []
        for document in digest.watch(collection.documents.read(Problems(lenient=True))):
            ids.append(document.id)
            texts.append(document.text)
            advance(1)
    topics: dict[str, Topic] = {}
    for split in splits:
        problems = Problems()
        for topic in collection.topics(split, problems):
            topics.setdefault(topic.text, topic)
        problems.raise_if_any()
    return _Texts(ids, texts, list(topics.values()), digest.hexdigest())


def _store(
    task: Task,
    source: EmbeddingSource,
    texts: _Texts,
    vectors: tuple[Floats32, Floats32],
    path: Path,
    projection: TextProjection | None,
) -> StoredModel:
    about: dict[str, Any] = {
        "task": task.name,
        SOURCE: source.record(),
        DIGEST: texts.digest,
    }
    if projection is not None:
        about |= {"versions": learning.versions(), "processor": learning.processor()}
    topics = [topic.text for topic in texts.topics]
    stored = stored_vectors(about, texts.document_ids, topics, vectors, projection)
    learning.write_model(path, stored)
    return stored


# The pause between two looks whether a search was cancelled.
_LOOK_SECONDS = 0.05


class WordEmbedder:
    """Embeds the words of searches by the source of a task, with one request at a time.

    Args:
        task: the task
        home: the home directory, with the cache
        access: which models may embed; by default those on this machine
    """

    def __init__(self, task: Task, home: Path, access: Access | None = None) -> None:
        self._task = task
        self._home = home
        self._access = access = access or Access()
        self._lock = threading.Lock()
        self._budget = Budget(access.max_cost)

    def __call__(self, words: str, made_by: Mapping[str, Any]) -> Floats32:
        """Return the vector of words, shape (1, dimensions).

        Args:
            words: the words, without prefix
            made_by: the record of the source of the vectors that it is compared with

        Raises:
            DataError: the task has no source that embeds words, or another one than `made_by`.
            UsageError: the user has not allowed the source, or its key or command can't be read.
            ModelUnavailable: the source fails, or the cost could become too great.
            RequestCancelled: the search was cancelled; its request goes on, and the vector is stored.
        """
        source, name = self._task.info.embeddings, self._task.reference
        if source is None or source.documents:
            lack = "no table [embeddings]" if source is None else "only files of embeddings"
            raise DataError(
                f"{name} has {lack}, so typed words have no vector: name a model in [embeddings], or choose "
                "another recipe"
            )
        if source.record() != made_by:
            raise DataError(
                f"{source.folder / source.file} has the vectors of another model than [embeddings] of {name} "
                f"names: run `searchapp embed {name}`"
            )

        def work() -> Floats32:
            with self._lock, open_cache(self._home, source.digest) as cache:
                if patience is not None and patience.is_cancelled:
                    raise RequestCancelled
                return embed(
                    [source.topic_prefix + words],
                    source,
                    cache,
                    self._access,
                    self._budget,
                    attempts=WORD_ATTEMPTS,
                )

        patience = current_patience()
        return until_cancelled(work)


T = TypeVar("T")


def until_cancelled(work: Callable[[], T]) -> T:
    """Return the result of work for a search: in a thread, if the search can be cancelled.

    Raises:
        RequestCancelled: it was cancelled; the work goes on.
        Exception: what the work raises.
    """
    patience = current_patience()
    if patience is None:
        return work()
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # raised in the thread of the caller
            outcome.set_exception(error)

    threading.Thread(target=run, name="typed words", daemon=True).start()
    while not outcome.done():
        if patience.is_cancelled:
            raise RequestCancelled
        wait([outcome], _LOOK_SECONDS)
    return outcome.result()
