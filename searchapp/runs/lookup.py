"""Look up which topics and documents a task knows, as far as its files and its index are available.

Where ids come from elsewhere, in judgments or in a run, this finds which of them the task does not have.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from searchapp.engines.base import BEST_FIRST, Index
from searchapp.errors import DataError, EngineError
from searchapp.formats.problems import Problems, shown
from searchapp.tasks.base import Collection, Task
from searchapp.text import counted

_IDS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class LookUp:
    """What looking up ids came to: those that are `unknown`, in their order.

    `asked` counts them all, `kind` is what each names, `place` where they were looked up. `why_not` says why they
    could not be, in a clause; then none is unknown.
    """

    kind: str
    asked: int
    unknown: tuple[str, ...] = ()
    place: str = ""
    why_not: str = ""

    def __str__(self) -> str:
        """The unknown ids in a clause."""
        first = shown(self.unknown[0])
        such, are = (f"such as {first}", "are") if len(self.unknown) > 1 else (first, "is")
        return f"{len(self.unknown):,} of {counted(self.asked, self.kind)} ({such}) {are} not in {self.place}"


def look_up_topics(
    task: Task, collection: Collection, split: str | None, wanted: abc.Collection[str]
) -> LookUp:
    """Look topics up in the files of a split, or of all that can be read."""
    asked = dict.fromkeys(wanted)
    read: list[str] = []
    missing: list[str] = []
    for one in task.info.splits if split is None else (split,):
        if read and not asked:
            break
        found = _topics_of(collection, one)
        (missing if found is None else read).append(one)
        asked = {topic: None for topic in asked if found is None or topic not in found}
    if not read:
        return LookUp(
            "topic",
            len(wanted),
            why_not=f"{collection.folder} has no topics of {task.name} that can be read",
        )
    place = f"{task.name} {', '.join(read)}" + (f" (missing: {', '.join(missing)})" if missing else "")
    return LookUp("topic", len(wanted), tuple(asked), place)


def look_up_documents(
    open_index: Callable[[], Index], collection: Collection, wanted: abc.Collection[str]
) -> LookUp:
    """Look documents up in the task's index or, without one, in its files."""
    asked = tuple(dict.fromkeys(wanted))
    try:
        index = open_index()
        known, place = _in_index(index, asked), f"the index {index.info.version}"
    except EngineError as error:
        found = _documents_of(collection)
        if found is None:
            return LookUp("document", len(asked), why_not=str(error))
        known, place = found, f"the files in {collection.folder}"
    unknown = tuple(document for document in asked if document not in known)
    return LookUp("document", len(asked), unknown, place)


def _topics_of(collection: Collection, split: str) -> set[str] | None:
    """The topics of a split; None when its files can't be read."""
    problems = Problems(lenient=True)
    try:
        topics = collection.topics(split, problems)
        problems.raise_if_any()
    except DataError:
        return None
    return {topic.id for topic in topics}


def _documents_of(collection: Collection) -> set[str] | None:
    """The ids of a task's documents; None when their files can't be read."""
    problems = Problems(lenient=True)
    try:
        documents = {document.id for document in collection.documents.read(problems)}
        problems.raise_if_any()
    except DataError:
        return None
    return documents or None


def _in_index(index: Index, documents: Sequence[str]) -> set[str]:
    """Those of the documents that an index has."""
    bodies = (
        {"query": {"ids": {"values": some}}, "size": len(some), "_source": False, "sort": BEST_FIRST}
        for some in _batches(documents)
    )
    return {document for hits in index.search(bodies) for document in hits.document_ids}


def _batches(ids: Sequence[str]) -> Iterator[list[str]]:
    waiting = iter(ids)
    while some := list(islice(waiting, _IDS_AT_ONCE)):
        yield some
