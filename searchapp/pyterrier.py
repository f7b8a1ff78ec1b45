"""Searchapp in PyTerrier: retrievers, data sets and artifacts (the extra `pyterrier`; no Java needed).

    import pyterrier as pt
    from searchapp.pyterrier import Retriever

    dev = pt.get_dataset("searchapp:nlps/dev")
    best = Retriever("nlps", "best", split="dev")
    pt.Experiment([best], dev.get_topics(), dev.get_qrels(), ["map"])

The project of PyTerrier: C. Macdonald, N. Tonellotto, S. MacAvaney, I. Ounis, PyTerrier: Declarative Experimentation in
Python from BM25 to Dense Retrieval, CIKM 2021.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyterrier as pt

from searchapp import api, tasks
from searchapp.config.resolution import resolve
from searchapp.config.settings import ON_DISK
from searchapp.engines import open_engine
from searchapp.errors import UsageError
from searchapp.formats import frames
from searchapp.formats.trec import with_distinct_scores
from searchapp.lucene.index.versions import CURRENT
from searchapp.model import Hits, Topic
from searchapp.ranking.ranker import Ranker
from searchapp.runs.directory import MANIFEST, RANKINGS
from searchapp.text import choices_hint

__all__ = ["IndexArtifact", "Retriever", "RunArtifact", "TaskDataset"]

RETRIEVE, RERANK = "retrieve", "rerank"


class Retriever(pt.Transformer):
    """Ranks the documents of a task for queries, or scores given documents.

    Queries (qid, query) become results with docno, score and rank from 0; a score that is not below the previous one
    becomes the next lower 32-bit number, so that sorting by scores keeps the order. Given documents (with docno) get
    the scores of the recipe; one that is not among the first `depth` gets 0, or the lowest score if that is negative.

    It has an index open, so that one thread at a time uses it. The index is opened for the first query.

    Args:
        source: the name of a task or its file, a `searchapp.Task`, or an open `searchapp.Index`, which you close
        recipe: by default the task's recipe for topics
        split: the split of the queries: those with the id and the text of one of its topics get all its template
            variables, and the recipe learns from the topics that it may use for this split, as `searchapp rank` does.
            Without it, a recipe that learns uses all training topics
        depth: the number of documents for each query; by default the task's
        parameters: values of the recipe's parameters
        transformers: the transformers of the recipe's signals, see `searchapp.Index.rank`

    Raises:
        UsageError: the task, the recipe, the split or a parameter is unknown.
        InvalidFiles: the task's file has problems.
    """

    def __init__(
        self,
        source: api.PathLike | api.Task | api.Index,
        recipe: str | None = None,
        *,
        split: str | None = None,
        depth: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        transformers: Mapping[str, Any] | None = None,
    ) -> None:
        task = source.task if isinstance(source, api.Index) else source
        self.task = task if isinstance(task, api.Task) else api.task(task)
        self.recipe = self.task._recipe(recipe, parameters, transformers)
        self.split = split
        self.depth = self.task._depth(depth)
        if split is not None:
            self.task._parts.info.require_split(split)

        @cache  # copies share it
        def prepared() -> tuple[Ranker, Mapping[str, Topic]]:
            index = source if isinstance(source, api.Index) else self.task.index()
            topics = [] if split is None else self.task.topics(split)
            ranker = index._ranker(self.recipe, split, transformers or {})
            if index is not source:
                weakref.finalize(ranker, index.close)
            return ranker, {topic.id: topic for topic in topics}

        self._prepared = prepared

    def __repr__(self) -> str:
        split = "" if self.split is None else f", split={self.split!r}"
        return f"Retriever({self.task._parts.reference!r}, {self.recipe.name!r}{split}, depth={self.depth})"

    def schematic(self, *, input_columns: Sequence[str] | None = None) -> dict[str, Any]:  # noqa: ARG002  # PyTerrier's
        """Describe the retriever for PyTerrier's pictures, which would look for a page of help on the network."""
        settings = {
            "task": self.task.name,
            "recipe": self.recipe.name,
            "split": self.split,
            "depth": self.depth,
        }
        return {"label": "Retriever", "settings": settings, "help_url": None}

    def fuse_rank_cutoff(self, k: int) -> Retriever | None:
        """Return a retriever of `k` documents; None if the depth changes the scores of the recipe."""
        if k >= self.depth:
            return self
        if self.recipe.raised(self.depth):
            return None
        cut = copy(self)
        cut.depth = k
        return cut

    def transform(self, inp: Any) -> Any:
        """Rank the documents for queries, or score given documents.

        Args:
            inp: a data frame with qid and query, and with docno if its documents are to be scored

        Raises:
            UsageError: a query is not text.
            InvalidFiles: the topics of the split, or training topics, have problems.
            EngineError: there is no index, or the engine fails or rejects a query.
        """
        with pt.validate.any(inp, context=self) as mode:
            mode.query_frame(extra_columns=["query"], mode=RETRIEVE)
            mode.result_frame(extra_columns=["query"], mode=RERANK)
        if mode.mode == RERANK:
            queries = frames.topics(inp.drop_duplicates("qid"))
            scores = {id_: dict(hits) for (id_, _), hits in zip(queries, self._hits(queries), strict=True)}
            missing = {id_: min([0.0, *of_query.values()]) for id_, of_query in scores.items()}
            pairs = zip(inp["qid"].astype(str), inp["docno"].astype(str), strict=True)
            values = [scores[id_].get(document, missing[id_]) for id_, document in pairs]
            scored = inp.assign(score=values).astype({"score": "float64"})
            ranks = scored.groupby("qid", sort=False)["score"].rank(method="first", ascending=False)
            return scored.assign(rank=ranks.astype("int64") - 1)
        found = self._hits(frames.topics(inp))
        columns = [name for name in inp.columns if name not in ("score", "rank")]
        repeated = inp[columns].iloc[[row for row, hits in enumerate(found) for _ in hits]]
        return (
            repeated.reset_index(drop=True)
            .assign(
                docno=[document for hits in found for document in hits.document_ids],
                score=[score for hits in found for score in hits.scores],
                rank=[rank for hits in found for rank in range(len(hits))],
            )
            .astype({"docno": "object", "score": "float64", "rank": "int64"})
        )

    def _hits(self, queries: Sequence[tuple[str, str]]) -> list[Hits]:
        """Return the documents of each query; the index is opened for the first one."""
        if not queries:
            return []
        ranker, known = self._prepared()
        topics = [
            known[id_]
            if id_ in known and known[id_].text == text
            else replace(self.recipe.typed(text), id=id_)
            for id_, text in queries
        ]
        run = with_distinct_scores(ranker.rank(topics, self.depth, self.recipe.name))
        return [ranking.hits for ranking in run]


class TaskDataset(pt.datasets.Dataset):
    """A task, or one of its splits: `nlps`, `nlps/dev`, `cooking.toml/test`.

    `pt.get_dataset` passes `data` (the folder of the task's files) and `home` on. Errors are those of `searchapp.Task`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        is_task = name.endswith(".toml") or name in tasks.shipped_names()
        self._reference, _, self._split = (name, "", "") if is_task else name.rpartition("/")
        self._configure()
        if self._split:
            self.task._parts.info.require_split(self._split)

    def _configure(self, *, data: api.PathLike | None = None, home: api.PathLike | None = None) -> None:
        self.task = api.task(self._reference or self._split, data=data, home=home)

    def __repr__(self) -> str:
        return f"TaskDataset({self._name!r})"

    def get_corpus_iter(self, *, verbose: bool = True) -> Iterator[dict[str, Any]]:
        """Yield docno, text and the other fields of each document."""
        documents = (
            {"docno": document.id, "text": document.text, **document.fields}
            for document in self.task.documents()
        )
        return iter(pt.tqdm(documents, desc=f"{self.task.name} documents")) if verbose else documents

    def get_topics(self, variant: str | None = None) -> Any:
        """Return a data frame with qid and query: the texts of the topics, or the template variable `variant`."""
        if not self._split:
            return super().get_topics(variant)
        variables = [topic.variables() for topic in self.task.topics(self._split)]
        name = variant or "text"
        if unknown := [topic["id"] for topic in variables if name not in topic]:
            choice = choices_hint(name, {key: None for topic in variables for key in topic})
            raise UsageError(f"the topic {unknown[0]} of {self._name} has no {choice}")
        columns = {
            "qid": [topic["id"] for topic in variables],
            "query": [str(topic[name]) for topic in variables],
        }
        return frames.make_frame(columns, "pandas")

    def get_qrels(self, variant: str | None = None) -> Any:
        """Return a data frame with qid, docno and label: the official gold."""
        if not self._split:
            return super().get_qrels(variant)
        return self.task.qrels(self._split).to_frame()

    def _describe_component(self, component: str) -> bool | None:
        return True if component == "corpus" or (component in ("topics", "qrels") and self._split) else None


class TaskDatasets(pt.datasets.DatasetProvider):
    """The data sets `searchapp:TASK` and `searchapp:TASK/SPLIT` of PyTerrier."""

    def get_dataset(self, name: str) -> TaskDataset:
        try:
            return TaskDataset(name)
        except UsageError as error:
            raise KeyError(str(error)) from error

    def list_dataset_names(self) -> Iterable[str]:
        for task in tasks.shipped_names():
            yield from (task, *(f"{task}/{split}" for split in tasks.load(task).info.splits))


class RunArtifact(pt.Artifact):
    """A run directory: `run` has its rankings and its manifest.

    Raises:
        UsageError: the path is not a run directory.
        DataError: a file of it is invalid.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT = "run", "searchapp"

    def __init__(self, path: api.PathLike) -> None:
        super().__init__(os.fspath(path))
        self.run = api.read_run(path)

    def retriever(self) -> pt.Transformer:
        """Return a transformer that gives each query the ranking of its qid."""
        return pt.Transformer.from_df(self.run.to_frame())


class IndexArtifact(pt.Artifact):
    """An index of the embedded engine, in its home directory: `HOME/indexes/searchapp-TASK`.

    Raises:
        UsageError: the folder is not an index of a task's documents.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT = "sparse_index", "searchapp"

    def __init__(self, path: api.PathLike) -> None:
        super().__init__(os.fspath(path))
        folder = Path(path).resolve()
        settings = resolve({"home": str(folder.parent.parent), "engine": ON_DISK}, os.environ)
        name = folder.name.removeprefix(f"{settings.index_prefix}-")
        with closing(open_engine(settings)) as engine:
            info = engine.index_info(name)
        owners = [task for task in tasks.shipped_names() if name in tasks.load(task).info.index_names]
        if info is None or not (info.owner or owners):
            raise UsageError(
                f"{folder} is not an index of a task's documents: give the folder searchapp-TASK in the folder indexes "
                "of a home directory, after `searchapp index TASK`"
            )
        self.task = api.task(info.owner or owners[0], home=settings.home, engine=ON_DISK)

    def retriever(self, recipe: str | None = None, **options: Any) -> Retriever:
        """Return a retriever on the index, with the options of `Retriever`."""
        return Retriever(self.task, recipe, **options)

    def build_package(self, *_arguments: Any, **_options: Any) -> str:
        """Raise `UsageError`: an index can't leave its home directory."""
        raise UsageError(
            f"the index {self.path} belongs to its home directory: share the files of {self.task.name}, from which "
            "`searchapp index` builds it, or a run"
        )


def artifact_metadata(path: str, files: Sequence[str]) -> dict[str, str] | None:  # noqa: ARG001  # PyTerrier's signature
    """Return PyTerrier's description of a run directory or of an index of the embedded engine."""
    is_run = MANIFEST in files and RANKINGS in files
    artifact = RunArtifact if is_run else IndexArtifact if CURRENT in files else None
    if artifact is None:
        return None
    return {"type": artifact.ARTIFACT_TYPE, "format": artifact.ARTIFACT_FORMAT, "package_hint": "searchapp"}
