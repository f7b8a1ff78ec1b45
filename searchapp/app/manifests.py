"""What every manifest says of a run, however the run came about: its task, its split, and the data it is of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import searchapp
from searchapp.digests import data_digests, digest_file
from searchapp.model import Run
from searchapp.runs.directory import Manifest
from searchapp.tasks.base import Collection, Task


def manifest_of(
    task: Task,
    collection: Collection,
    split: str,
    files: Iterable[Path],
    digests: tuple[str, str],
    engine: Mapping[str, str] | None = None,
) -> Manifest:
    """The manifest of a run of a split that is made from `files`; `digests` are those of the mapping and of the index.

    It has no recipe and no rankings yet.

    Raises:
        DataError: a file can't be read.
    """
    file = task.info.file
    mapping_digest, index_digest = digests
    return Manifest(
        searchapp=searchapp.__version__,
        task=task.name,
        task_file={} if file is None else {"path": str(file.resolve()), "digest": digest_file(file)},
        variant=_variant(task),
        split=split,
        recipe={},
        depth=0,
        tag="",
        engine=dict(engine or {}),
        data=str(collection.folder.resolve()),
        data_digests=data_digests(collection.folder, files),
        mapping_digest=mapping_digest,
        index_digest=index_digest,
        topics=0,
        hits=0,
        created="",
        seconds=0.0,
    )


def _variant(task: Task) -> dict[str, Any]:
    """The TOML file of a variant and the JSON files that it names, with their digests; nothing for other tasks."""
    path = task.info.variant
    if path is None:
        return {}
    files = {name: path.parent / name for name in task.info.variant_files}
    digests = {name: digest_file(file) for name, file in files.items() if file.is_file()}
    return {"path": str(path.resolve()), "digest": digest_file(path), "files": digests}


def finished(manifest: Manifest, run: Run) -> Manifest:
    """A manifest with what its rankings amount to, at this moment."""
    return replace(
        manifest,
        topics=len(run),
        hits=sum(len(ranking.hits) for ranking in run),
        empty=[ranking.topic_id for ranking in run if not len(ranking.hits)],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
