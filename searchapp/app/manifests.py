"""Make runs with their manifests, and describe runs in the schema `ir_metadata`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import searchapp
from searchapp.config.settings import SERVER
from searchapp.engines.base import EngineInfo
from searchapp.files import data_digests, data_name
from searchapp.formats.problems import Problems, some
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Example, Run, Topic
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.transformer import TransformerSignal
from searchapp.ranking.templates import WINDOW
from searchapp.resources import untested_versions
from searchapp.runs import directory
from searchapp.runs.directory import Manifest
from searchapp.tasks.base import Collection, Task, Writer
from searchapp.text import counted


def manifest_of(
    task: Task,
    collection: Collection,
    split: str,
    files: Iterable[Path],
    digests: tuple[str, str],
    engine: EngineInfo | None = None,
    *,
    learns: bool = False,
) -> Manifest:
    """Return the manifest of a run from input `files`, without recipe and rankings.

    Args:
        task: the task of the run
        collection: the documents and topics
        split: the name of the split, empty for topics of none
        files: the input files, whose digests are recorded
        digests: of the mapping and of the index
        engine: the engine, None for an imported run
        learns: whether the recipe learns from training topics

    Raises:
        DataError: a file can't be read.
    """
    file, variant = task.info.file, task.info.variant
    mapping_digest, index_digest = digests
    return Manifest(
        searchapp=searchapp.__version__,
        task=task.name,
        task_file="" if file is None else str(file.resolve()),
        variant="" if variant is None else str(variant.resolve()),
        layout=collection.layout(split, training=learns) if split else {},
        split=split,
        recipe={},
        depth=0,
        tag="",
        engine={}
        if engine is None
        else {"name": engine.name, "version": engine.version, **_ties(task, engine)},
        data=str(collection.folder.resolve()),
        data_digests=data_digests(collection.folder, files),
        mapping_digest=mapping_digest,
        index_digest=index_digest,
        topics=0,
        hits=0,
        created="",
        seconds=0.0,
    )


# Key of a manifest's engine: the order of equal scores, if a repetition may have another one.
TIES = "ties"


def _ties(task: Task, engine: EngineInfo) -> dict[str, str]:
    if task.info.foreign is None or task.info.foreign.id is not None or engine.name != SERVER:
        return {}
    return {TIES: "by shard and position"}


# The files in the folder `inputs` of a run directory.
RECIPE, TEMPLATES, MAPPING = "recipe.json", "templates.json", "mapping.json"
TRAINING_MAPPING, JUDGED, TOPICS = "training_mapping.json", "judged.json", "topics.json"


def input_copies(
    task: Task, recipe: Recipe, judged: Iterable[Example], topics: Iterable[Topic] = ()
) -> dict[str, Any]:
    """Return the copies of recipe, templates, mappings, judged gold and topics of no split, by file name."""
    book = task.recipe_book()
    names = sorted({query.template.name.removeprefix(f"{book.task}/") for query in recipe.queries})
    # The default window is the task's depth, which may change.
    signals = [
        {**table, **({WINDOW: signal.window} if signal.window else {})}
        for table, signal in zip(recipe.written["signals"], recipe.signals, strict=True)
    ]
    copies: dict[str, Any] = {
        RECIPE: {recipe.name: {**recipe.written, "signals": signals}},
        TEMPLATES: {name: book.template(name) for name in names},
        MAPPING: task.index_mapping(),
    }
    examples = task.examples_index_mapping() if recipe.learns else None
    copies |= {} if examples is None else {TRAINING_MAPPING: examples}
    grades = {example.topic.id: dict(example.gold) for example in judged}
    copies |= {JUDGED: grades} if grades else {}
    variables = {topic.id: topic.variables() for topic in topics}
    return copies | ({TOPICS: variables} if variables else {})


def complete_manifest(manifest: Manifest, run: Run) -> Manifest:
    """Return a manifest with the counts of its rankings and the time."""
    return replace(
        manifest,
        topics=len(run),
        hits=sum(len(ranking.hits) for ranking in run),
        empty_topics=[ranking.topic_id for ranking in run if not len(ranking.hits)],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        untested_packages={entry.package: entry.version for entry in untested_versions()},
    )


@dataclass(frozen=True, slots=True)
class NewRun:
    """The rankings of a request or of imported rows, before and after they are saved."""

    manifest: Manifest  # without digests of files before `save`
    run: Run
    problems: Problems  # of its topics or rows
    official: Mapping[str, Writer]
    shortfall: str | None  # why there is no official file
    digests: Callable[[], Mapping[str, str]]  # returns the digests of the ranked documents' texts by id
    topics: Sequence[Topic] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)  # see `directory.write`
    training_problems: Problems = field(default_factory=Problems)
    # On limits of reproduction, and on training topics that models did not see.
    warnings: tuple[str, ...] = ()

    def save(self, out: Path, *, overwrite: bool = False) -> NewRun:
        """Write the run directory `out` atomically, and return the run with the manifest that is stored there.

        Raises:
            UsageError: it exists and may not be replaced, or can't be written.
        """
        written = directory.write(
            out, self.manifest, self.run, self.official, self.digests(), self.inputs, overwrite=overwrite
        )
        return replace(self, manifest=written)

    def summary(self, out: Path) -> str:
        made = self.manifest
        return (
            f"{made.task} {made.split}: ranked {counted(made.topics, 'topic')} to depth {made.depth} in "
            f"{made.seconds:.1f} s, wrote {out}"
        )

    def all_warnings(self) -> Iterator[str]:
        yield from self.warnings
        if self.shortfall:
            yield f"the run has no official file: {self.shortfall}"
        if empty := self.manifest.empty_topics:
            topics = counted(self.manifest.topics, "topic")
            yield f"no document found for {len(empty):,} of {topics}: {some(empty)}"


TIE_ORDER = "by descending score, equal scores {}"


def run_metadata(task: Task, manifest: Manifest, team: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the parts of the schema that the manifest and the project's [team] contain."""
    imported = manifest.imported
    toolkit = [str(imported.get("tool") or "")] if imported else [f"searchapp=={manifest.searchapp}"]
    engine = manifest.engine
    if engine and engine.get("name") != "embedded":
        toolkit.append(f"{engine.get('name')}=={engine.get('version')}")
    info = task.info
    return {
        "platform": {"software": {"retrieval toolkit": toolkit}},
        "research goal": {"evaluation": {"reported measures": [info.official_measure, *info.measures]}},
        "implementation": {
            "executable": {"cmd": "" if imported else command(manifest)},
            "source": {
                "lang": [] if imported else ["python"],
                "repository": team.get("repository", ""),
            },
        },
        "method": {
            # Unknown for a run of another tool.
            "automatic": None if imported else directory.judgments_digest(manifest) is None,
            "score ties": TIE_ORDER.format(
                engine.get(TIES) or f"by {'descending' if imported else 'ascending'} document id"
            ),
            "retrieval": _retrieval(manifest.recipe),
        },
        "actor": {name: value for name, value in team.items() if name != "repository"},
        "data": _data(task, manifest),
    }


def command(manifest: Manifest, *, portable: bool = False) -> str:
    """Return the command that makes the same run.

    Empty for runs of other tools, pools, topics of no split, and recipes with a PyTerrier transformer.

    A `portable` command has no folder of this machine: the data is in DATA, a task file in the working directory.
    """
    name, signals = manifest.recipe.get("name"), manifest.recipe.get("signals")
    if manifest.imported or signals is None or not manifest.split:
        return ""
    if any(signal.get("signal") == TransformerSignal.kind for signal in signals):
        return ""
    task = manifest.task_reference
    data = "DATA" if portable else manifest.data
    words = ["searchapp", "rank", Path(task).name if portable else task]
    words += ["--data", data, "--split", manifest.split, "--recipe", str(name)]
    words += ["--depth", str(manifest.depth), "--tag", manifest.tag]
    for parameter, value in (manifest.recipe.get("set") or {}).items():
        words += ["--set", f"{parameter}={value}"]
    words += [word for split in directory.chosen_splits(manifest) for word in ("--training-split", split)]
    words += ["--with-judgments"] if directory.judgments_digest(manifest) else []
    return shlex.join([*words, "--out", "DIR"])


def _retrieval(recipe: Mapping[str, Any]) -> list[dict[str, Any]]:
    signals: Sequence[Mapping[str, Any]] = recipe.get("signals") or []
    stages = [
        {
            "name": signal.get("name"),
            "method": signal.get("signal"),
            **{key: value for key, value in signal.items() if key not in ("name", "signal")},
        }
        for signal in signals
    ]
    fusion = recipe.get("fusion")
    if isinstance(fusion, Mapping):
        stages.append(
            {"name": "fusion", **fusion, "interpolates": [signal.get("name") for signal in signals]}
        )
    return stages


def _data(task: Task, manifest: Manifest) -> dict[str, Any]:
    collection = task.collection(Path(manifest.data))
    split, digests = manifest.split, manifest.data_digests
    gold, topics, documents = (
        [data_name(collection.folder, file) for file in files]
        for files in (
            collection.gold_files(split),
            collection.split_files(split),
            collection.indexes[collection.index_of(split)].files,
        )
    )
    others = [name for name in digests if name not in {*gold, *topics, *documents}]

    def described(names: Sequence[str]) -> list[dict[str, str]]:
        return [{"name": name, "sha256": digests[name]} for name in names if name in digests]

    return {
        "test collection": {
            "name": f"{task.info.title}: {split}",
            "topics": ", ".join(topics),
            "qrels": ", ".join(gold),
        },
        "training data": described(others),
        "other": described([*dict.fromkeys((*documents, *topics))]),
    }
