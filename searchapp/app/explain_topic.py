"""Why a document is at its rank for a topic of a split, as a recipe ranks it now: what `searchapp explain` asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from searchapp.app.explain import Explained, Explainer, TopicRequest
from searchapp.app.index import require_documents
from searchapp.app.ranked_now import Ranks
from searchapp.engines.base import Engine
from searchapp.errors import UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Topic
from searchapp.progress import Progress
from searchapp.ranking import search
from searchapp.ranking.recipe import Recipe
from searchapp.tasks.base import Collection, Task


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A document and a topic, and how the topic is ranked: by a recipe, `depth` documents deep, or deeper to find it.

    Without a `split` it is the first one of the task's that has the topic; `depth` is the task's own by default.
    """

    task: Task
    collection: Collection
    recipe: Recipe
    topic_id: str
    document_id: str
    split: str | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class ExplainedTopic:
    """What became of a document for a topic of a split, in a ranking `depth` documents deep."""

    topic: Topic
    split: str
    depth: int
    explained: Explained


def explain(
    request: ExplainRequest, engine: Engine, progress: Progress, home: Path | None = None
) -> ExplainedTopic:
    """Rank a topic, and say what became of a document; models of the recipe are kept in `home`.

    Raises:
        UsageError: no split, or not the one that is named, has the topic.
        DataError: the files of the task are missing or damaged, the index holds other documents, or the recipe has not
            what it needs.
        EngineError: there is no index, or the engine failed.
    """
    split, topic = _topic(request)
    info = request.task.info
    depth = request.depth or info.default_depth
    ranks = Ranks.open(request.task, engine, request.collection, split, request.recipe, progress, home)
    require_documents(request.task, ranks.index, request.collection)

    def indexed(documents: Sequence[str]) -> set[str]:
        with ranks.lock:
            return set(search.sources(ranks.index, documents))

    asked = TopicRequest(topic, depth, is_document=info.topics_are_documents)
    explained = Explainer(ranks, indexed).explain(asked, request.document_id)
    return ExplainedTopic(topic, split, depth, explained)


def _topic(request: ExplainRequest) -> tuple[str, Topic]:
    """The topic of the request and its split."""
    collection = request.collection
    splits = (request.split,) if request.split else request.task.info.splits
    for split in splits:
        if request.split is None and not all(file.exists() for file in collection.split_files(split)):
            continue
        for topic in collection.topics(split, Problems(lenient=True)):
            if topic.id == request.topic_id:
                return split, topic
    where = f"{request.task.name} {request.split}" if request.split else f"no split of {request.task.name}"
    has = "has no" if request.split else "has the"
    raise UsageError(
        f"{where} {has} topic {request.topic_id!r}: name another one with --topic, or another --split"
    )
