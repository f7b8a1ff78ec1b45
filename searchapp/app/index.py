"""Index a task's documents and its solved topics, and list the indexes of an engine.

Documents are read and checked first; then an index is built unless one of the same digest is live already.
Solved topics, which some recipes learn from, have an index of their own that is rebuilt when they change.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from searchapp.config.settings import SERVER, Settings
from searchapp.engines import open_engine
from searchapp.engines.base import Carried, Comparison, Engine, Index, IndexSpec, StoredVersion, VersionState
from searchapp.errors import (
    BeingBuilt,
    Damaged,
    DataError,
    EngineBusy,
    EngineRefused,
    OtherDocuments,
    Replaced,
    SearchappError,
    UsageError,
)
from searchapp.files import DocumentsDigest, data_name, digest_json
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example, IndexInfo
from searchapp.progress import Advance, Progress
from searchapp.ranking.search_results import sources
from searchapp.tasks import catalogue
from searchapp.tasks.base import Collection, Task
from searchapp.tasks.own import task_file
from searchapp.text import counted, suggestion

T = TypeVar("T")

FORMAT = 1
"""Part of every index digest: raised when the same inputs shall give another index."""

PATIENCE_SECONDS = 60.0
"""How long a process waits for another one that builds the same index."""

PAUSE_SECONDS = 0.2

AT_ONCE = 500
"""Documents that are compared together with what is indexed."""


@dataclass(frozen=True, slots=True)
class ServingIndex:
    """An index that serves now, and whether it is new.

    Of a new one's documents so many were `carried` over from the version before; `note` says why none were that
    should have been, as a sentence.
    """

    info: IndexInfo
    built: bool
    carried: int = 0
    note: str = ""

    @property
    def analyzed(self) -> int:
        """How many documents were analyzed for it."""
        return self.info.documents - self.carried if self.built else 0


@dataclass(frozen=True, slots=True)
class IndexOutcome:
    """What indexing came to: the indexes that serve now, the largest first, and what was left out of them.

    `missing` are the files of topics and gold that the folder lacks, `removed` indexes of files that it has no more.
    """

    indexes: tuple[ServingIndex, ...]
    problems: Problems
    missing: tuple[Path, ...]
    removed: tuple[str, ...] = ()

    @property
    def info(self) -> IndexInfo:
        """The index with all documents."""
        return self.indexes[0].info

    @property
    def built(self) -> bool:
        """Whether any index is new."""
        return any(index.built for index in self.indexes)


def index_task(
    task: Task,
    engine: Engine,
    collection: Collection,
    progress: Progress,
    *,
    shards: int | None = None,
    replicas: int | None = None,
    rebuild: bool = False,
    replace: bool = True,
    lenient: bool = False,
) -> IndexOutcome:
    """Make the indexes of a task serve the documents of a collection.

    Everything in its folder is read and checked before a server is asked for anything: with invalid files
    nothing is indexed. An index of the same mapping, documents and shards is left alone unless `rebuild`, or unless
    it does not hold what it was built from; one of splits that the folder does not have is removed. Where the engine
    can, and without `rebuild`, a new version takes over the documents that have not changed. Without `shards`
    an index that is there keeps those it has, and a new one gets as many as fit it; without `replicas` it keeps those
    it has, and a new one gets one where there is a second node. Judgments name documents by their ids: an index is
    replaced only with `replace` if fewer than half of its documents would stay as they are.

    Raises:
        OtherDocuments: fewer than half of the indexed documents would stay as they are, and `replace` is not set.
        UsageError: the index of that name was made for another task file, and `rebuild` is not set; or the engine has
            no shards.
        InvalidFiles: the data has problems, and `lenient` is not set.
        DataError: there is not one document.
        EngineError: the engine failed; the index before it still serves.
    """
    if not engine.has_shards and ((shards or 1) > 1 or replicas):
        given = "shards" if (shards or 1) > 1 else "replicas"
        where = engine.info()
        raise UsageError(
            f"{where.location} chooses {given} by itself: leave out --{given}"
            if where.name == SERVER
            else f"the {where.name} engine has no {given}: leave out --{given}, or choose --engine elasticsearch"
        )
    problems = Problems(lenient=lenient)
    names = _names(task, collection)
    mapping = task.index_mapping()
    comparisons = {} if rebuild else {name: engine.compare(name, mapping) for name in names}
    seen = _read_all(task, collection, comparisons, names, problems, progress)
    problems.raise_if_any(lenient_advice(problems))
    if not all(documents.count for documents in seen.values()):
        raise DataError(
            f"{collection.folder} has no document that could be indexed: what is indexed already stays"
        )
    serving = {name: engine.index_info(name) for name in task.info.index_names}
    for info in serving.values():
        if info is not None and info.owner != owner_of(task) and not rebuild:
            raise UsageError(
                f"{info.version} {_of_another(task, info)}: rename one of the two, or replace the "
                "index with --rebuild"
            )
    for name, documents in () if replace else seen.items():
        info = serving[name]
        if (
            info is not None
            and info.owner == owner_of(task)
            and info.documents_digest != documents.hexdigest()
        ):
            _require_similar(task, engine, info, collection, comparisons.get(name))
    indexes = []
    for name, documents in seen.items():
        digest = index_digest(mapping, documents)
        info = serving[name]
        unchanged = info is not None and info.digest == digest and shards in (None, info.shards)
        if info is not None and unchanged and not rebuild and not engine.flaw(name):
            if replicas is not None:
                engine.replicate(name, replicas)
            indexes.append(ServingIndex(info, built=False))
            continue
        spec = IndexSpec(
            mapping,
            documents.count,
            digest,
            documents.hexdigest(),
            shards or engine.shards_for(documents.count),
            owner_of(task),
            replicas,
        )
        # Asked for again instead of kept: the documents of a large collection need not fit into memory.
        again = _Again(collection, name, documents)
        comparison = comparisons.pop(name, None)  # it holds a digest of each document
        carried = comparison.carried() if comparison else None
        indexes.append(build(engine, name, spec, info, again, "indexing", progress, carried))
    removed = tuple(name for name, info in serving.items() if info is not None and name not in seen)
    for name in removed:
        engine.remove(name)
    return IndexOutcome(tuple(indexes), problems, missing_files(task, collection), removed)


def _require_similar(
    task: Task, engine: Engine, info: IndexInfo, collection: Collection, comparison: Comparison | None
) -> None:
    """Make sure that at least half of an index's documents stay as they are.

    Raises:
        OtherDocuments: they do not.
    """
    unchanged = 0 if comparison is None else comparison.unchanged
    if comparison is None:
        try:
            documents = collection.indexes[info.name].read(Problems(lenient=True))
            with closing(engine.open(info.name)) as index:
                while 2 * unchanged < info.documents and (some := list(islice(documents, AT_ONCE))):
                    indexed = sources(index, [one.id for one in some])
                    unchanged += sum(indexed.get(one.id, {}).get("text") == one.text for one in some)
        except (EngineRefused, DataError):
            return  # nobody can read what is indexed, so it is no loss
    if 2 * unchanged < info.documents:
        raise OtherDocuments(
            f"{info.version} holds {counted(info.documents, 'document')}, of which {collection.folder} has "
            f"{unchanged:,} "
            "unchanged",
            f"`searchapp index {task.reference} --replace` replaces the index by these other documents",
        )


def index_digest(mapping: Mapping[str, Any], documents: DocumentsDigest) -> str:
    """The digest of the index that a mapping and documents make."""
    return digest_json({"format": FORMAT, "mapping": mapping, "documents": documents.hexdigest()})


def build(
    engine: Engine,
    name: str,
    spec: IndexSpec,
    before: IndexInfo | None,
    documents: Iterable[Document],
    label: str,
    progress: Progress,
    carried: Carried | None = None,
) -> ServingIndex:
    """Build an index, which waits for another process that is at it.

    What another one has built since `before` served is taken if it is the same. If nothing can be `carried` over after
    all, because that version is damaged or has been replaced, the index is built from all documents.

    Raises:
        BeingBuilt: the other process takes longer than `PATIENCE_SECONDS`.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    note = ""
    while True:
        serving = engine.index_info(name)
        wanted = spec.digest, spec.shards, spec.owner
        made = serving and serving != before and (serving.digest, serving.shards, serving.owner) == wanted
        if serving and made and not engine.flaw(name):
            return ServingIndex(serving, built=False)
        try:
            with progress.stage(label, spec.documents) as advance:
                info = engine.build(name, spec, documents, advance, carried)
            return ServingIndex(info, built=True, carried=carried.documents if carried else 0, note=note)
        except (Damaged, Replaced) as error:
            if carried is None:
                raise
            note = f"no document could be taken over, all were analyzed: {_why_none(error)}"
            carried = None
        except BeingBuilt as busy:
            if time.monotonic() > until:
                raise
            with progress.stage(f"waiting for process {busy.builder}"):
                time.sleep(PAUSE_SECONDS)


def _why_none(error: Damaged | Replaced) -> str:
    if isinstance(error, Damaged):
        return f"the version before is damaged ({error.problem})"
    return "another version was made meanwhile"


def missing_files(task: Task, collection: Collection) -> tuple[Path, ...]:
    """The files of a task's topics and gold that a collection does not have."""
    files = (file for split in task.info.splits for file in collection.split_files(split))
    return tuple(file for file in dict.fromkeys(files) if not file.exists())


def _names(task: Task, collection: Collection) -> tuple[str, ...]:
    """The names of the indexes that a collection has documents for, the largest first."""
    there = {
        collection.index_of(split)
        for split in task.info.splits
        if any(file.exists() for file in collection.split_files(split))
    }
    return tuple(name for name in task.info.index_names if name in there) or (task.info.index_name,)


def _read_all(
    task: Task,
    collection: Collection,
    comparisons: Mapping[str, Comparison | None],
    names: Sequence[str],
    problems: Problems,
    progress: Progress,
) -> dict[str, DocumentsDigest]:
    """Read every file of the task that is there, for its problems; returns the digest of each index's documents.

    On the way they are compared with those that the index has, where there is a comparison.
    """
    seen = {name: DocumentsDigest() for name in names}
    with progress.stage("reading documents") as advance:
        for place, (name, digest) in enumerate(seen.items()):
            # The first index has all documents, so that the problems of the others are known already.
            documents = collection.indexes[name].read(Problems(lenient=True) if place else problems)
            if comparison := comparisons.get(name):
                documents = comparison.watch(documents)
            for _document in with_progress(digest.watch(documents), advance):
                pass
    with progress.stage("checking topics") as advance:
        # Splits that lie in the same files, such as folds, are checked once, by the first of them.
        splits = {tuple(collection.split_files(split)): split for split in reversed(task.info.splits)}
        for files, split in reversed(splits.items()):
            if any(file.exists() for file in files):
                advance(collection.check_split(split, problems))
    return seen


def lenient_advice(problems: Problems) -> str:
    """What helps with entries that have problems; nothing where a whole file can't be read."""
    return "" if problems.stopped else "--lenient leaves these entries out"


def open_index(task: Task, engine: Engine, name: str | None = None) -> Index:
    """An index of a task, if it was made with the mapping that the task's queries are written for.

    Without a `name` it is the one that people search.

    Raises:
        EngineRefused: there is no index, or it was made with another mapping or for another task file.
    """
    index = _opened(task, engine, task.info.index_names if name is None else (name,))
    if index.info.owner != owner_of(task):
        raise EngineRefused(
            f"{index.info.version} {_of_another(task, index.info)}: rename one of the two, and make "
            f"the index with `searchapp index {task.reference}`"
        )
    if index.info.mapping_digest != digest_json(task.index_mapping()):
        raise EngineRefused(
            f"{index.info.version} was made with another version of the mapping {task.info.mapping}: "
            f"build it again with `searchapp index {task.reference}`"
        )
    return index


def _opened(task: Task, engine: Engine, names: Sequence[str]) -> Index:
    """The first index of these names that there is.

    Raises:
        EngineRefused: there is none, or it must not rank.
    """
    name, *others = names
    try:
        return engine.open(
            name
        )  # what is wrong is looked for only where something is: a server may be far away
    except EngineBusy:
        raise
    except EngineRefused as error:
        is_there = engine.index_info(name) is not None
        if others and not is_there:
            return _opened(task, engine, others)
        raise _refused(task, engine, name, is_there, error) from error


def _refused(task: Task, engine: Engine, name: str, is_there: bool, error: EngineRefused) -> EngineRefused:
    """Why an index can't be opened, in the words of its task: the engine knows the index's name only."""
    if name == task.name:
        return error
    command = f"`searchapp index {task.reference}`"
    if not is_there:
        if name != task.info.index_name:
            return EngineRefused(
                f"there is no index {name}, which this split needs: make it with {command}, from a folder that has "
                "the split's files"
            )
        return EngineRefused(f"nothing of {task.name} is indexed yet: build it with {command}")
    if flaw := engine.flaw(name):
        return EngineRefused(f"{flaw}: build it again with `searchapp index {task.reference} --rebuild`")
    return error


def require_documents(task: Task, index: Index, collection: Collection) -> None:
    """Make sure that an index holds the documents of a collection that it should.

    Raises:
        DataError: it holds others.
    """
    seen = DocumentsDigest()
    for _document in seen.watch(collection.indexes[index.info.name].read(Problems(lenient=True))):
        pass
    if seen.hexdigest() != index.info.documents_digest:
        data = collection.folder
        are = "is" if index.info.documents == 1 else "are"
        raise DataError(
            f"{index.info.version} holds {counted(index.info.documents, 'document')} that {are} not the "
            f"{seen.count:,} in {data}: build it again with `searchapp index {task.reference} --data {data}`"
        )


def owner_of(task: Task) -> str:
    """Whose the index of a task is: the name of a shipped task says it, but names that people give may meet."""
    return "" if task.info.file is None else str(task.info.file.resolve())


def _of_another(task: Task, info: IndexInfo) -> str:
    return f"was made for the task {info.owner or task.name}, not for {task.reference}"


def with_progress(items: Iterator[T], advance: Advance) -> Iterator[T]:
    """The items as they come, each of which is one step of progress."""
    for item in items:
        advance(1)
        yield item


class _Again:
    """The documents of an index on their next reading; it ends with an error if they are not those of the first."""

    def __init__(self, collection: Collection, name: str, seen: DocumentsDigest) -> None:
        self._collection = collection
        self._name = name
        self._seen = seen

    def __iter__(self) -> Iterator[Document]:
        again = DocumentsDigest()
        documents = self._collection.indexes[self._name].read(Problems(lenient=True))
        yield from again.watch(documents)
        if again.hexdigest() != self._seen.hexdigest():
            raise DataError(
                f"the files in {self._collection.folder} changed while they were indexed: index again"
            )


def outcome_sentences(task: Task, collection: Collection, outcome: IndexOutcome) -> Iterator[str]:
    """What indexing came to: what serves now, what was removed, and what can't be ranked."""
    data = collection.folder
    for index in outcome.indexes:
        info = index.info
        if index.note:
            yield f"note: {index.note}"
        if index.built:
            parts = f" ({index.carried:,} taken over, {index.analyzed:,} analyzed)" if index.carried else ""
            verbs = ("is", "serves") if info.documents == 1 else ("are", "serve")
            yield (
                f"{task.name}: {counted(info.documents, 'document')} {verbs[0]} indexed{parts} and {verbs[1]} as "
                f"{info.version}"
            )
        else:
            yield (
                f"{task.name}: nothing has changed, {info.version} with {counted(info.documents, 'document')} "
                "still serves"
            )
    for name in outcome.removed:
        yield f"{task.name}: the index {name} is removed, because {data} has no files of its splits"
    if outcome.missing:
        names = ", ".join(data_name(data, file) for file in outcome.missing)
        lost = [
            split
            for split in task.info.splits
            if any(file in outcome.missing for file in collection.split_files(split))
        ]
        can_not = f"the {'split' if len(lost) == 1 else 'splits'} {', '.join(lost)} can't be ranked"
        if any(
            file in outcome.missing for split in task.info.splits for file in collection.example_files(split)
        ):
            can_not += ", nor any other by a recipe that learns from solved topics"
        yield f"note: {data} has no {names}: {can_not}"


EXAMPLES = "examples-"
"""How the names of the indexes of solved topics begin."""

EXAMPLES_ATTEMPTS = 5
"""How often solved topics are indexed that others replace by theirs at once."""


def index_examples(
    task: Task,
    engine: Engine,
    collection: Collection,
    split: str,
    progress: Progress,
    judged: Sequence[Example] = (),
    problems: Problems | None = None,
) -> tuple[Index, list[Example]]:
    """The solved topics that a split's topics may be ranked by, and an index of them, made again if need be.

    `judged` topics count as solved ones; what people say of a topic goes before the gold.

    Raises:
        InvalidFiles: the files of the solved topics have problems, and `problems`, to which they go, is not lenient.
        DataError: there is not one solved topic, or the task has none at all.
        EngineError: the engine failed.
    """
    mapping = task.examples_index_mapping()
    if mapping is None:
        raise DataError(f"{task.reference} has no solved topics to rank by: choose another recipe")
    examples = read_examples(task, collection, split, progress, judged, problems)
    documents = [Document(one.topic.id, one.topic.text, one.topic.fields) for one in examples]
    seen = DocumentsDigest()
    for _document in seen.watch(documents):
        pass
    digest = digest_json({"format": FORMAT, "mapping": mapping, "documents": seen.hexdigest()})
    name = examples_name(task.info.index_name, split, judged=bool(judged))
    spec = IndexSpec(mapping, seen.count, digest, seen.hexdigest(), owner=owner_of(task))
    return _examples_index(engine, name, spec, documents, progress), examples


def _examples_index(
    engine: Engine, name: str, spec: IndexSpec, documents: Sequence[Document], progress: Progress
) -> Index:
    """An index of solved topics; others may replace it by one of their own solved topics at any moment.

    Raises:
        EngineRefused: they do so again and again.
    """
    for _ in range(EXAMPLES_ATTEMPTS):
        serving = engine.index_info(name)
        if serving is None or serving.digest != spec.digest or engine.flaw(name):
            build(engine, name, spec, serving, documents, "indexing solved topics", progress)
        index = engine.open(name)
        if index.info.digest == spec.digest:
            return index
    raise EngineRefused(
        f"another process ranks with other solved topics in the same index {name}: rank again when it is done"
    )


def read_examples(
    task: Task,
    collection: Collection,
    split: str,
    progress: Progress,
    judged: Sequence[Example] = (),
    problems: Problems | None = None,
) -> list[Example]:
    """The solved topics that a split's topics may be ranked by, with the `judged` ones in place of their gold.

    Raises:
        InvalidFiles: the files of the solved topics have problems, and `problems`, to which they go, is not lenient.
        DataError: there is not one solved topic.
    """
    problems = Problems() if problems is None else problems
    with progress.stage("reading solved topics") as advance:
        examples = list(with_progress(collection.examples(split, problems), advance))
    problems.raise_if_any(lenient_advice(problems))
    known = {one.topic.id: one for one in examples} | {one.topic.id: one for one in judged}
    # Where people found nothing relevant there is no answer, and the topic would only keep out others that have one.
    without = {one.topic.id for one in judged if not one.gold}
    examples = [one for topic, one in known.items() if topic not in without]
    if not examples:
        raise DataError(
            f"{collection.folder} has no solved topics for {task.reference} {split}: choose another recipe"
        )
    return examples


def examples_name(task: str, split: str, *, judged: bool = False) -> str:
    """The name of the index of the solved topics for a split; with `judged` topics it is another one."""
    return f"{EXAMPLES}{task}-{split.lower()}" + ("-judged" if judged else "")


_VARIED = re.compile(r"-m[0-9a-f]{8}(-|$)")
"""In the name of an index that a variant with mappings of its own has, see `tasks.variant`."""


@dataclass(frozen=True, slots=True)
class OwnTask:
    """A task of the user's own that has an index: its name, the file that it was made for, which may be gone."""

    name: str
    file: Path
    documents: int


def stored_versions(engine: Engine) -> list[StoredVersion]:
    """Every version of every index of the engine's prefix, by name and version.

    An index that does not say its own name is left out if it can as well be one with a longer prefix.
    """
    return [one for one in engine.stored() if one.says_name or _is_ours(one.name)]


def task_of(version: StoredVersion) -> str:
    """The name of the task that an index belongs to, with that of the split for solved topics of an own task."""
    name = version.name.removeprefix(EXAMPLES)
    return _shipped(name) or name.removeprefix(catalogue.OWN)


def remedy(name: str, owner: str = "") -> str:
    """What to do about an index that holds something else than it should, as the end of a sentence.

    `owner` is the task file that it was made for, empty for a task that searchapp ships.
    """
    if name.startswith(EXAMPLES):
        return "the next `searchapp rank` that needs it builds it again"
    if _VARIED.search(name):
        return f"build it again with `searchapp index FILE --rebuild`, FILE being the variant's, or remove {name}"
    return f"build it again with `searchapp index {owner or _shipped(name) or name} --rebuild`"


def own_tasks(stored: Iterable[StoredVersion]) -> list[OwnTask]:
    """The user's own tasks whose documents are indexed, in the order of their names."""
    return [
        OwnTask(task_of(one), Path(one.info.owner), one.info.documents)
        for one in stored
        if one.state is VersionState.serves and one.info and one.info.owner
        if not one.name.startswith(EXAMPLES) and not _VARIED.search(one.name)
    ]


def reference(settings: Settings, task: str) -> str:
    """Return the file of an indexed own task for its name; return everything else unchanged.

    An index records the task file that it was made for. An engine that does not answer makes no difference: loading the
    unchanged name then fails with a message that asks for the file.
    """
    if task_file.name_problem(task) or Path(task).is_file():
        return task
    try:
        with closing(open_engine(settings)) as engine:
            info = engine.index_info(f"{catalogue.OWN}{task}")
    except SearchappError:
        return task
    return info.owner if info and info.owner else task


def named(stored: Iterable[StoredVersion], names: Sequence[str]) -> dict[str, list[StoredVersion]]:
    """The versions of the indexes of some names; an own task's name stands for the index of its documents.

    Raises:
        UsageError: there is no index of such a name, or it is not ours.
    """
    found: dict[str, list[StoredVersion]] = {}
    for one in stored:
        found.setdefault(one.name, []).append(one)
    full = [name if name in found else f"{catalogue.OWN}{name}" for name in names]
    for name, index in zip(names, full, strict=True):
        if index not in found:
            there = f"there are {', '.join(found)}" if found else "there is none"
            raise UsageError(f"there is no index {name!r}{suggestion(name, found)} of searchapp's: {there}")
    return {name: found[name] for name in dict.fromkeys(full)}


def _is_ours(name: str) -> bool:
    inner = name.removeprefix(EXAMPLES)
    own = inner.removeprefix(catalogue.OWN)
    return _shipped(inner) is not None or (own != inner and _shipped(own) is None)


def _shipped(name: str) -> str | None:
    """The shipped task that an index belongs to, by a name that is the task's or begins with it."""
    shipped = [*catalogue.names(), *catalogue.sample_names()]
    found = [one for one in shipped if name == one or name.startswith(f"{one}-")]
    return max(found, key=len, default=None)
