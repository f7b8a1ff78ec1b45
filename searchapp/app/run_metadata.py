"""What a run's manifest says, in the words of the community's schema `ir_metadata`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp import tasks
from searchapp.errors import SearchappError
from searchapp.ranking import recipes
from searchapp.runs import learned
from searchapp.runs.directory import Manifest
from searchapp.tasks.base import Collection, Task

TIES = "by descending score, equal scores by ascending document id"


def metadata(task: Task, manifest: Manifest, team: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The parts of the schema, as far as the manifest and the project's [team] know them.

    What nobody has recorded, such as the processor, is left out; nothing is looked up on the machine that exports.
    """
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
            # Of a run that another tool made nobody has said it.
            "automatic": None if imported else learned.digest(manifest) is None,
            "score ties": TIES,
            "retrieval": _retrieval(manifest.recipe),
        },
        "actor": {name: value for name, value in team.items() if name != "repository"},
        "data": _data(task, manifest),
    }


def command(manifest: Manifest, *, portable: bool = False) -> str:
    """The command that makes the same run of the same data; nothing for a run that no command makes.

    These are those of other tools, and pools. With `portable` it names no folder of the machine where it was made:
    the data is in a folder DATA, a task file in the working folder.
    """
    name, parameters = manifest.recipe.get("name"), manifest.recipe.get("parameters")
    if manifest.imported or name is None or not isinstance(parameters, Mapping):
        return ""
    task = manifest.task_reference
    data = "DATA" if portable else manifest.data
    words = ["searchapp", "rank", Path(task).name if portable else task]
    words += ["--data", data, "--split", manifest.split, "--recipe", str(name)]
    words += ["--depth", str(manifest.depth), "--tag", manifest.tag]
    for parameter, value in (dict(parameters) | _set(manifest)).items():
        words += ["--set", f"{parameter}={value}"]
    words += [word for split in learned.chosen_splits(manifest) for word in ("--examples", split)]
    words += ["--with-judgments"] if learned.digest(manifest) else []
    return shlex.join([*words, "--out", "DIR"])


def _set(manifest: Manifest) -> dict[str, Any]:
    """What was set of the recipe besides parameters of templates: what differs from the recipe as it is now."""
    try:
        book = tasks.load(manifest.task_reference).recipe_book()
        recipe = recipes.load(book, str(manifest.recipe["name"]))
    except SearchappError:
        return {}  # nobody has the recipe any more
    signals = manifest.recipe.get("signals")
    found = {one.get("name"): one for one in signals} if isinstance(signals, list) else {}
    found["fusion"] = manifest.recipe.get("fusion") or {}
    recorded = ((one, found.get(one.of, {}).get(one.key)) for one in recipes.settable(book, recipe))
    return {one.name: value for one, value in recorded if value is not None and value != one.value}


def _retrieval(recipe: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The stages: a signal each, and the fusion that adds them."""
    signals: Sequence[Mapping[str, Any]] = recipe.get("signals") or []
    stages = [
        {
            "name": one.get("name"),
            "method": one.get("signal"),
            **{key: value for key, value in one.items() if key not in ("name", "signal")},
        }
        for one in signals
    ]
    fusion = recipe.get("fusion")
    if isinstance(fusion, Mapping):
        stages.append({"name": "fusion", **fusion, "interpolates": [one.get("name") for one in signals]})
    return stages


def _data(task: Task, manifest: Manifest) -> dict[str, Any]:
    """The files that the run was made from, each with its digest, by what they are."""
    collection = task.collection(Path(manifest.data))
    gold = _names(collection, collection.gold_files(manifest.split))
    topics = _names(collection, collection.split_files(manifest.split))
    documents = _names(collection, collection.indexes[collection.index_of(manifest.split)].files)
    others = [name for name in manifest.data_digests if name not in {*gold, *topics, *documents}]

    def described(names: Sequence[str]) -> list[dict[str, str]]:
        return [
            {"name": name, "sha256": manifest.data_digests[name]}
            for name in names
            if name in manifest.data_digests
        ]

    return {
        "test collection": {
            "name": f"{task.info.title}: {manifest.split}",
            "topics": ", ".join(topics),
            "qrels": ", ".join(gold),
        },
        "training data": described(others),
        "other": described([*dict.fromkeys((*documents, *topics))]),
    }


def _names(collection: Collection, files: Sequence[Path]) -> list[str]:
    from searchapp.digests import data_name

    return [data_name(collection.folder, file) for file in files]
