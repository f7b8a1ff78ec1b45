"""Make a run: read a split's topics, rank them, write the run directory; verify a run, and make it again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from searchapp import tasks
from searchapp.app.index import (
    index_task,
    lenient_advice,
    mapping_digests,
    open_index,
    require_documents,
    serving_info,
)
from searchapp.app.manifests import (
    JUDGED,
    MAPPING,
    RECIPE,
    TEMPLATES,
    TIES,
    TOPICS,
    TRAINING_MAPPING,
    NewRun,
    complete_manifest,
    input_copies,
    manifest_of,
)
from searchapp.app.models import last_trainable_split, signal_inputs, withheld_warnings
from searchapp.embeddings.reranking import Reranking
from searchapp.engines.base import Engine, EngineInfo, Index
from searchapp.errors import DataError, EngineError, SearchappError, UsageError
from searchapp.files import data_name, digest_json, digest_text
from searchapp.formats.problems import Problems, some
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Example, IndexInfo, Run, Topic
from searchapp.progress import Progress
from searchapp.ranking import recipes
from searchapp.ranking.paging import WINDOW, sources
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.recipes import Recipe
from searchapp.resources import RecipeBook
from searchapp.runs import directory
from searchapp.runs.directory import INPUTS, MANIFEST, RANKINGS, Manifest, Verification
from searchapp.tasks.base import Collection, DataSplit, NoOfficialFile, Task, Writer
from searchapp.tasks.own import variant
from searchapp.text import counted


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Topics of a collection, and the recipe that ranks them."""

    collection: Collection
    split: str  # empty for `topics`
    recipe: Recipe
    depth: int  # documents for each topic
    tag: str
    lenient: bool = False
    judged: tuple[Example, ...] = ()  # judged topics, which are additional training topics
    home: Path | None = None  # the directory that stores models
    # The splits of the training topics; by default all from which the split may learn.
    training_splits: tuple[str, ...] = ()
    topics: tuple[Topic, ...] = ()  # topics of no split
    transformers: Mapping[str, Any] = field(default_factory=dict)  # PyTerrier transformers by signal
    reranking: Reranking | None = None  # asks the rerankers of the task

    @property
    def training_collection(self) -> Collection:
        """The collection with the training topics of the recipe.

        Raises:
            UsageError: the recipe learns nothing, or one of the splits has no training topics.
        """
        if not self.training_splits:
            return self.collection
        if not self.recipe.learns:
            raise UsageError(
                f"the recipe {self.recipe.name} does not learn from training topics: leave out --training-split"
            )
        return self.collection.with_training_splits(self.training_splits)

    @property
    def training_split(self) -> str:
        """The split whose training topics the recipe learns from: the ranked one, or the last that has some.

        Raises:
            DataError: the files of all training topics are missing.
        """
        return self.split or last_trainable_split(self.collection)


def planned_manifest(task: Task, engine: EngineInfo, index: IndexInfo, request: RunRequest) -> Manifest:
    """Return the manifest of a run before it is ranked: all inputs of its rankings.

    Raises:
        DataError: an input file can't be read.
    """
    collection, split = request.training_collection, request.split
    if split:
        used = used_files(collection, split, learns=request.recipe.learns)
    else:
        training_files = collection.example_files(request.training_split) if request.recipe.learns else []
        used = [file for file in (*collection.documents.files, *training_files) if file.is_file()]
    used += request.recipe.files()
    training_topics = {}
    if request.recipe.learns:
        training_topics = directory.training_record(
            collection.training_splits(request.training_split),
            task.examples_index_mapping(),
            chosen=bool(request.training_splits),
        )
    digests = index.mapping_digest, index.digest
    return replace(
        manifest_of(task, collection, split, used, digests, engine, learns=request.recipe.learns),
        recipe=request.recipe.reaching(request.depth).manifest()
        | training_topics
        | directory.described_judgments(request.judged),
        depth=request.depth,
        tag=request.tag,
    )


def used_files(collection: Collection, split: str, *, learns: bool) -> list[Path]:
    """Return the input files of a run: documents, topics, gold and, if it learns, training topics."""
    documents = collection.indexes[collection.index_of(split)].files
    training_files = collection.example_files(split) if learns else []
    return list(dict.fromkeys((*documents, *collection.split_files(split), *training_files)))


def make_run(
    task: Task, engine: Engine, request: RunRequest, out: Path, progress: Progress, *, overwrite: bool = False
) -> NewRun:
    """Rank the topics of a request and write the run directory `out` atomically.

    Raises:
        as `rank_topics` does; nothing was written.
    """
    directory.require_writable(out, overwrite=overwrite)
    return rank_topics(task, engine, request, progress).save(out, overwrite=overwrite)


def rank_topics(
    task: Task, engine: Engine, request: RunRequest, progress: Progress, opened: Index | None = None
) -> NewRun:
    """Rank the topics of a request; in the `opened` index of the task, if it is the one of the topics.

    Raises:
        UsageError: the tag has white space, or judged topics are given for a recipe that does not learn.
        InvalidFiles: topics or training topics have problems, and `request.lenient` is not set.
        EngineError: the engine failed.
    """
    if request.tag.split() != [request.tag]:
        raise UsageError(
            f"the tag {request.tag!r} is empty or contains white space: choose another with --tag"
        )
    if request.judged and not request.recipe.learns:
        raise UsageError(
            f"the recipe {request.recipe.name} does not learn from judged topics: choose one that uses training topics"
        )
    collection, split = request.training_collection, request.split
    problems = Problems(lenient=request.lenient)
    topics: Sequence[Topic] = request.topics
    if split:
        with progress.stage("reading topics") as advance:
            topics = collection.topics(split, problems)
            advance(len(topics))
        problems.raise_if_any(lenient_advice(problems))
        if not topics:
            raise DataError(f"{collection.folder}: the split {split} has no topics to rank")
        index = _index_of(task, engine, collection.index_of(split), opened)
        require_documents(task, index, collection)
    else:
        index = _index_of(task, engine, None, opened)
    training_problems = Problems(lenient=request.lenient)
    inputs = signal_inputs(
        task,
        engine,
        index,
        lambda: (collection, request.training_split),
        progress,
        training_problems,
        request.judged,
        request.home,
        request.transformers,
        request.reranking,
    )
    ranker = Ranker(request.recipe, inputs)
    started = time.perf_counter()
    with progress.stage("ranking", len(topics)) as advance:
        run = ranker.rank(topics, request.depth, request.tag, advance)
    seconds = time.perf_counter() - started
    manifest = replace(planned_manifest(task, engine.info(), index.info, request), seconds=round(seconds, 3))
    if models := ranker.models():
        manifest = replace(manifest, recipe={**manifest.recipe, directory.MODELS: models})
    official: Mapping[str, Writer] = {}
    shortfall = None
    if left := len(problems):
        shortfall = "1 topic was left out" if left == 1 else f"{left:,} topics were left out"
    elif not split:
        shortfall = "its topics are not those of a split"
    else:
        try:
            official = task.official.files(run, DataSplit(collection, split))
        except NoOfficialFile as error:
            shortfall = str(error)
    counts = [model["withheld"] for model in models.values() if "withheld" in model]
    return NewRun(
        manifest=complete_manifest(manifest, run),
        run=run,
        topics=topics,
        official=official,
        digests=lambda: _document_digests(task, run, index, collection),
        inputs=input_copies(task, request.recipe, request.judged, request.topics),
        problems=problems,
        training_problems=training_problems,
        shortfall=shortfall,
        warnings=(
            *request.recipe.raised(request.depth),
            *recipes.shard_warnings(
                request.recipe, task.index_mapping(), index.info.shards, is_foreign=index.info.is_foreign
            ),
            *_foreign_warnings(task, engine, index.info, manifest),
            *(withheld_warnings(counts, split) if split else ()),
        ),
    )


def _index_of(task: Task, engine: Engine, name: str | None, opened: Index | None) -> Index:
    """Open the index `name`, by default the searched one, unless it is open; a foreign index may have changed since."""
    if opened is None or opened.info.is_foreign or name not in (None, opened.info.name):
        return open_index(task, engine, name)
    return opened


def _unstable(ties: str) -> str:
    return (
        f"equal scores are sorted {ties}, an order that can't be reproduced: name a keyword field that has ids with "
        "`id` in [documents] of the task file"
    )


def _foreign_warnings(task: Task, engine: Engine, ranked: IndexInfo, manifest: Manifest) -> Iterator[str]:
    if not ranked.is_foreign:
        return
    if ties := manifest.engine.get(TIES):
        yield _unstable(ties)
    try:
        now = serving_info(task, engine, ranked.name)
    except EngineError as error:  # the ranking is complete
        yield f"it is unknown whether {ranked.version} was changed during the ranking: {error}"
        return
    if now is not None and now.digest != ranked.digest:
        yield (
            f"{ranked.version} was changed during the ranking, which has its earlier {ranked.documents:,} documents; "
            f"it has {now.documents:,} now"
        )


def _document_digests(task: Task, run: Run, index: Index, collection: Collection) -> dict[str, str]:
    ranked = {document for ranking in run for document in ranking.hits.document_ids}
    if task.info.foreign is not None:
        ids = sorted(ranked)
        return {
            id_: digest_text(str(source["text"]))
            for start in range(0, len(ids), WINDOW)  # all texts together may not fit in memory
            for id_, source in sources(index, ids[start : start + WINDOW]).items()
        }
    documents = collection.indexes[index.info.name]
    return {
        document.id: digest_text(document.text)
        for document in documents.read(Problems(lenient=True))
        if document.id in ranked
    }


@dataclass(frozen=True, slots=True)
class Rerun:
    """A run that was made again."""

    made: NewRun
    differences: tuple[str, ...]  # a sentence for each file that differs from the first run's
    notes: tuple[str, ...]  # a sentence for each changed input


def verify_run(path: Path) -> Verification:
    """Compare a run directory with its manifest, and the inputs of the run with the present ones.

    Raises:
        DataError: the manifest can't be read.
    """
    verification, manifest = directory.verify(path), directory.read_manifest(path)
    if ties := manifest.engine.get(TIES):
        note = f"{path}: {_unstable(ties)}"
        verification = replace(verification, notes=(*verification.notes, note))
    if "signals" not in manifest.recipe or manifest.digest != manifest.own_digest():
        return verification  # an imported run, a pool, or a changed manifest
    problems, notes = list(verification.problems), list(verification.notes)
    file = manifest.variant or manifest.task_file
    if file and not Path(file).is_file():
        return Verification(
            verification.problems, (*notes, f"{file}: no longer exists, so it was not compared")
        )
    try:
        task = tasks.load(manifest.task_reference)
    except SearchappError as error:
        return Verification((*problems, f"the task can't be compared: {error}"), verification.notes)
    for what, changes in (
        ("recipe", _recipe_changes),
        ("mapping", _mapping_changes),
        ("layout", _layout_changes),
    ):
        try:
            problems += changes(task, manifest)
        except SearchappError as error:
            problems.append(f"the {what} can't be compared: {error}")
    try:
        collection = _collection(task, manifest, Path(manifest.data))
        learns = directory.TRAINING in manifest.recipe
        for input_file in used_files(collection, manifest.split, learns=learns) if manifest.split else ():
            if input_file.is_file() and data_name(collection.folder, input_file) not in manifest.data_digests:
                problems.append(f"{input_file}: not part of the data that the run was made from")
    except SearchappError as error:
        notes.append(f"the files in {manifest.data} can't be listed: {error}")
    return Verification(tuple(problems), tuple(notes))


def _recipe_changes(task: Task, manifest: Manifest) -> Iterator[str]:
    then = manifest.recipe
    recipe = recipes.load(task.recipe_book(), str(then.get("name")), then.get("set") or {})
    now = recipe.reaching(manifest.depth).manifest()
    templates, before = _templates(now), _templates(then)
    for name in sorted(templates.keys() & before.keys()):
        if templates[name] != before[name]:
            yield f"{task.reference}: the template {name} changed since the run was made"
    changed = [
        key
        for key in ("template", "parameters", "signals", "fusion")
        if digest_json(_without_digests(now.get(key))) != digest_json(_without_digests(then.get(key)))
    ]
    if changed:
        yield f"{task.reference}: the recipe {now['name']} changed since the run was made ({', '.join(changed)})"


def _mapping_changes(task: Task, manifest: Manifest) -> Iterator[str]:
    if manifest.mapping_digest not in mapping_digests(task):
        yield f"{task.reference}: the mapping {task.info.mapping} changed since the run was made"
    before = directory.mapping_digest(manifest)
    mapping = None if before is None else task.examples_index_mapping()
    if before is not None and (mapping is None or digest_json(mapping) != before):
        yield f"{task.reference}: the mapping of training topics changed since the run was made"


def _layout_changes(task: Task, manifest: Manifest) -> Iterator[str]:
    if not manifest.split:
        return
    learns = directory.TRAINING in manifest.recipe
    layout = task.collection(Path(manifest.data)).layout(manifest.split, training=learns)
    for key in _changed(layout, manifest.layout):
        yield f"{task.info.file}: {key} changed since the run was made"


def _templates(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {
        part["template"]: part["template_digest"]
        for part in (recipe, *recipe["signals"])
        if "template" in part
    }


def _without_digests(value: Any) -> Any:
    if isinstance(value, list):
        return [{key: item for key, item in signal.items() if key != "template_digest"} for signal in value]
    return value


def _collection(task: Task, manifest: Manifest, data: Path) -> Collection:
    collection, splits = task.collection(data), directory.training_splits(manifest)
    return collection.with_training_splits(splits) if splits else collection


def rerun(
    path: Path,
    engine: Engine,
    out: Path,
    progress: Progress,
    *,
    data: Path | None = None,
    home: Path | None = None,
    reranking: Reranking | None = None,
    overwrite: bool = False,
) -> Rerun:
    """Make a run again with its copies of recipe, templates and mappings, and compare both.

    If the task has other mappings now, the run gets an index of its own, as a variant does.

    Args:
        path: the run directory to repeat
        engine: the engine that ranks
        out: the new run directory
        progress: receives the stages of the work
        data: the folder of documents and topics, by default the run's
        home: the home directory
        reranking: asks the rerankers of the task for scores that are not stored
        overwrite: replace the run directory at `out`

    Raises:
        UsageError: no recipe has ranked the run, or its task file is gone.
        DataError: a copy was changed.
        as `make_run` does.
    """
    manifest = directory.read_manifest(path)
    if manifest.digest != manifest.own_digest():
        raise DataError(f"{path / MANIFEST}: changed since it was written: rank again with `searchapp rank`")
    written = directory.read_input(path, manifest, RECIPE)
    templates = directory.read_input(path, manifest, TEMPLATES)
    mapping = directory.read_input(path, manifest, MAPPING)
    if written is None or templates is None or mapping is None:
        raise UsageError(f"{path} has no copy of a recipe: choose a run that `searchapp rank` made")
    task_file = manifest.task_file
    if task_file and not Path(task_file).is_file():
        raise UsageError(
            f"{path} was made with the task file {task_file}, which no longer exists: restore it"
        )
    task = tasks.load(task_file or manifest.task)
    try:
        own = task.recipe_book()
        book = replace(own, file=path / INPUTS / RECIPE, recipes=written, template=templates.__getitem__)
        recipe = recipes.load(book, str(manifest.recipe.get("name")))
    except KeyError as error:
        raise DataError(f"{path / INPUTS / TEMPLATES}: template {error} is missing") from error
    recipe = replace(recipe, overrides=manifest.recipe.get("set") or {})
    again = _with_copies(task, book, mapping, directory.read_input(path, manifest, TRAINING_MAPPING))
    collection = _collection(again, manifest, Path(manifest.data) if data is None else data)
    name = collection.index_of(manifest.split) if manifest.split else again.info.index_name
    if again.info.indexes != task.info.indexes or serving_info(again, engine, name) is None:
        index_task(again, engine, collection, progress, lenient=True)
    request = RunRequest(
        collection=collection,
        split=manifest.split,
        recipe=recipe,
        depth=manifest.depth,
        tag=manifest.tag,
        lenient=True,
        judged=_judged(path, manifest, collection),
        home=home,
        reranking=reranking,
        training_splits=directory.chosen_splits(manifest),
        topics=tuple(map(_topic, (directory.read_input(path, manifest, TOPICS) or {}).values())),
    )
    made = make_run(again, engine, request, out, progress, overwrite=overwrite)
    differences = _differences(path, manifest, out, made.manifest)
    return Rerun(made, tuple(differences), tuple(_notes(manifest, made.manifest)))


def _with_copies(
    task: Task, book: RecipeBook, mapping: dict[str, Any], examples: dict[str, Any] | None
) -> Task:
    of_task = task.examples_index_mapping()
    examples = of_task if examples is None else examples
    again = replace(task, recipe_book=lambda: book)
    if mapping == task.index_mapping() and examples == of_task:
        return again
    return variant.with_mappings(task, again, lambda: mapping, lambda: examples)


def _judged(path: Path, manifest: Manifest, collection: Collection) -> tuple[Example, ...]:
    grades = directory.read_input(path, manifest, JUDGED) or {}
    if not grades:
        return ()
    topics = {topic.id: topic for topic in collection.topics(manifest.split, Problems(lenient=True))}
    if missing := sorted(grades.keys() - topics.keys()):
        raise DataError(
            f"{collection.folder} lacks judged topics that {path} was trained on ({some(missing)}): give the "
            "folder that has them with --data"
        )
    return tuple(Example(topics[topic], gold) for topic, gold in grades.items())


def _topic(variables: Mapping[str, Any]) -> Topic:
    fields = {name: value for name, value in variables.items() if name not in ("id", "text")}
    return Topic(variables["id"], variables["text"], fields)


def _differences(path: Path, first: Manifest, out: Path, second: Manifest) -> Iterator[str]:
    for name in sorted(first.files.keys() | second.files.keys()):
        if name not in second.files:
            yield f"{out / name}: missing"
        elif name not in first.files:
            yield f"{out / name}: not part of {path}"
        elif first.files[name] != second.files[name]:
            topics = f" ({_topics_that_differ(path, out)})" if name == RANKINGS else ""
            yield f"{out / name}: differs from that of {path}{topics}"
    if list(first.empty_topics) != list(second.empty_topics):
        yield f"{out / MANIFEST}: lists other topics without documents"


def _changed(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    return [key for key in sorted(first.keys() | second.keys()) if first.get(key) != second.get(key)]


def _topics_that_differ(path: Path, out: Path) -> str:
    first, second = (
        {ranking.topic_id: ranking.hits for ranking in directory.read(run).run} for run in (path, out)
    )
    differing = [topic for topic in dict.fromkeys((*first, *second)) if first.get(topic) != second.get(topic)]
    topics = counted(len(first.keys() | second.keys()), "topic")
    return f"the rankings of {len(differing):,} of {topics}: {some(differing)}"


def _notes(first: Manifest, second: Manifest) -> Iterator[str]:
    for name in _changed(first.data_digests, second.data_digests):
        yield f"{name}: changed since the run was made"
    for key in _changed(first.layout, second.layout):
        yield f"{second.task_file}: {key} changed since the run was made"
    before, now = (
        f"searchapp {manifest.searchapp} on {' '.join(manifest.engine.values())}"
        for manifest in (first, second)
    )
    if before != now:
        yield f"the first run was made by {before}, the second by {now}"
    models = first.recipe.get(directory.MODELS, {}), second.recipe.get(directory.MODELS, {})
    if models[0] != models[1]:
        yield "the trained models differ"
