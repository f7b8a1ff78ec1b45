"""Tasks as data sets of ir_datasets. Importing this module registers them:

    import ir_datasets
    import searchapp.irds

    dataset = ir_datasets.load("searchapp/nlps/dev")          # task and split
    dataset = ir_datasets.load("searchapp/mine.toml/test")    # an own task, by the path of its file

ir_datasets has no entry points: nothing registers the tasks without this import. In PyTerrier the same data set is
then `pt.get_dataset("irds:searchapp/nlps/dev")`. A name without a split (`searchapp/nlps`) has the documents alone.
Documents, queries and qrels are read, when they are asked for, from the folder that the commands use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

import ir_datasets
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericQuery, TrecQrel
from ir_datasets.indices import Docstore

from searchapp.api import Task, task
from searchapp.errors import DataError, UsageError

PREFIX = "searchapp"


class TitledDocument(NamedTuple):
    """A document of ir_datasets; the text includes the title if the task indexes it."""

    doc_id: str
    text: str
    title: str

    def default_text(self) -> str:
        return self.text


class TaskDocs(BaseDocs):  # type: ignore[misc]
    """The documents of a task, in the order of its files."""

    def __init__(self, of: Task) -> None:
        self.task = of

    def docs_iter(self) -> Iterator[TitledDocument]:
        for document in self.task.documents():
            title = document.fields.get("title")
            yield TitledDocument(document.id, document.text, title if isinstance(title, str) else "")

    def docs_cls(self) -> type[TitledDocument]:
        return TitledDocument

    def docs_count(self) -> int:
        return self._count

    def docs_store(self, *_options: object, **_more: object) -> TaskDocstore:
        return self._store

    def docs_namespace(self) -> str:
        return f"{PREFIX}/{self.task.name}"

    def docs_lang(self) -> None:
        return None

    @cached_property
    def _count(self) -> int:
        return sum(1 for _document in self.docs_iter())

    @cached_property
    def _store(self) -> TaskDocstore:
        return TaskDocstore(self)


class TaskDocstore(Docstore):  # type: ignore[misc]
    """Documents by id, in memory from the first question."""

    def __init__(self, docs: TaskDocs) -> None:
        super().__init__(TitledDocument)
        self._docs = docs

    @cached_property
    def documents(self) -> dict[str, TitledDocument]:
        return {document.doc_id: document for document in self._docs.docs_iter()}

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[TitledDocument]:
        return (self.documents[id_] for id_ in doc_ids if id_ in self.documents)


class TaskQueries(BaseQueries):  # type: ignore[misc]
    """The topics of a split."""

    def __init__(self, of: Task, split: str) -> None:
        self._task, self._split = of, split

    def queries_iter(self) -> Iterator[Any]:
        return (GenericQuery(topic.id, topic.text) for topic in self._task.topics(self._split))

    def queries_cls(self) -> type[Any]:
        return GenericQuery  # type: ignore[no-any-return]

    def queries_namespace(self) -> str:
        return f"{PREFIX}/{self._task.name}"

    def queries_lang(self) -> None:
        return None


class TaskQrels(BaseQrels):  # type: ignore[misc]
    """The official gold of a split."""

    def __init__(self, of: Task, split: str) -> None:
        self._task, self._split = of, split

    def qrels_iter(self) -> Iterator[Any]:
        for topic, grades in self._task.qrels(self._split).items():
            for document, grade in grades.items():
                yield TrecQrel(topic, document, grade, "0")

    def qrels_cls(self) -> type[Any]:
        return TrecQrel  # type: ignore[no-any-return]

    def qrels_defs(self) -> dict[int, str]:
        return dict(enumerate(self._task._parts.info.grades))


def _has_gold(of: Task, split: str) -> bool:
    try:
        return of._collection().why_no_gold(split) is None
    except DataError:  # the files are missing or wrong, which reading the gold explains
        return True


def _dataset(name: str, groups: tuple[str, ...]) -> Any:
    """Return the data set of a name; ir_datasets expects KeyError for an unknown one."""
    (reference,) = groups
    try:
        return Dataset(_documents(reference))
    except (UsageError, DataError):
        reference, _, split = reference.rpartition("/")
    try:
        docs = _documents(reference)
    except (UsageError, DataError) as error:
        raise KeyError(f"{name}: {error}") from error
    if split not in docs.task.splits:
        raise KeyError(f"{name}: {docs.task.name} has the splits {', '.join(docs.task.splits)}")
    qrels = TaskQrels(docs.task, split) if _has_gold(docs.task, split) else None
    return Dataset(docs, TaskQueries(docs.task, split), qrels)


@cache
def _documents(reference: str) -> TaskDocs:
    """Return the documents of a task, which its splits share: `ir_datasets.docs_parent_id` finds that."""
    return TaskDocs(task(reference))


ir_datasets.registry.register_pattern(rf"^{PREFIX}/(.+)$", _dataset)
