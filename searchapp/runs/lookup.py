"""Look up ids of topics and documents in a task's files or its index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Collection as AnyCollection

from searchapp.engines.base import Index
from searchapp.errors import DataError, EngineError
from searchapp.formats.problems import Problems, shown
from searchapp.lucene.dataclass import dataclass
from searchapp.ranking.paging import indexed_ids
from searchapp.tasks.base import Collection, Task
from searchapp.text import counted


@dataclass(frozen=True, slots=True)
class LookUp:
    """The result of looking up ids."""

    # "topic" or "document".
    kind: str
    # Number of looked-up ids.
    count: int
    unknown: tuple[str, ...] = ()
    # The files or the index.
    source: str = ""
    # Why the ids could not be looked up, as a clause.
    why_not: str = ""

    def __str__(self) -> str:
        """Return a clause on the unknown ids."""
        first = shown(self.unknown[0])
        such, are = (f"such as {first}", "are") if len(self.unknown) > 1 else (first, "is")
        return (
            f"{len(self.unknown):,} of {counted(self.count, self.kind)} ({such}) {are} not in {self.source}"
        )


def look_up_topics(task: Task, collection: Collection, split: str | None, ids: AnyCollection[str]) -> LookUp:
    """Look up topics in the files of a split, or of all readable splits."""
    unknown = list(dict.fromkeys(ids))
    read: list[str] = []
    missing: list[str] = []
    for name in task.info.splits if split is None else (split,):
        if read and not unknown:
            break
        problems = Problems(lenient=True)
        try:
            known = {topic.id for topic in collection.topics(name, problems)}
            problems.raise_if_any()
        except DataError:
            missing.append(name)
        else:
            read.append(name)
            unknown = [topic for topic in unknown if topic not in known]
    if not read:
        return LookUp(
            "topic",
            len(ids),
            why_not=f"{collection.folder} has no readable topics of {task.name}",
        )
    source = f"{task.name} {', '.join(read)}" + (f" (missing: {', '.join(missing)})" if missing else "")
    return LookUp("topic", len(ids), tuple(unknown), source)


def look_up_documents(open_index: Callable[[], Index], collection: Collection, ids: Iterable[str]) -> LookUp:
    """Look up documents in the task's index, or else in its files."""
    ids = tuple(dict.fromkeys(ids))
    try:
        index = open_index()
        known, source = indexed_ids(index, ids), f"the index {index.info.version}"
    except EngineError as error:
        problems = Problems(lenient=True)
        try:
            known = {document.id for document in collection.documents.read(problems)}
            problems.raise_if_any()
        except DataError:
            known = set()
        if not known:
            return LookUp("document", len(ids), why_not=str(error))
        source = f"the files in {collection.folder}"
    return LookUp("document", len(ids), tuple(document for document in ids if document not in known), source)
