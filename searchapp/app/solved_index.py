"""The index of solved topics that recipes learn from: what is in it, and how it is made again when that changes."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.app.index import FORMAT, build, counted, lenient_advice, owner_of
from searchapp.digests import DocumentsDigest, digest_json
from searchapp.engines.base import Engine, Index, IndexSpec
from searchapp.errors import DataError, EngineRefused
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example
from searchapp.progress import Progress
from searchapp.tasks.base import Collection, Task

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
        examples = list(counted(collection.examples(split, problems), advance))
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
