"""A run is a directory.

    run.json      the manifest: what was ranked, how, on which engine, from which data
    run.trec      the rankings, `topic Q0 document rank score tag`
    predict.txt   the task's official file, when the run is deep enough for it

The same inputs give the same bytes of every file but the manifest's `created` and `seconds`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from searchapp import resources
from searchapp.digests import digest_file
from searchapp.errors import DataError, UsageError
from searchapp.files import whole_folder
from searchapp.formats import trec
from searchapp.model import Run

MANIFEST = "run.json"
RANKINGS = "run.trec"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run was made from.

    `data` is the folder the topics came from and `data_digests` the SHA-256 of each file read there;
    `index_digest` identifies mapping and documents of the index; `files` maps each other file of the run to its
    SHA-256. `seconds` is the time the ranking took, `created` its end in UTC.
    """

    searchapp: str
    task: str
    split: str
    recipe: Mapping[str, Any]
    depth: int
    tag: str
    engine: Mapping[str, str]
    data: str
    data_digests: Mapping[str, str]
    mapping_digest: str
    index_digest: str
    topics: int
    hits: int
    created: str
    seconds: float
    files: Mapping[str, str] = field(default_factory=dict)
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run directory that has been read back."""

    path: Path
    manifest: Manifest
    run: Run


def write(
    path: Path,
    manifest: Manifest,
    run: Run,
    official: Mapping[str, Callable[[BinaryIO], None]],
    *,
    overwrite: bool = False,
) -> Manifest:
    """Write a run directory whole or not at all; returns the manifest with the digests of its files.

    `official` maps the name of each official file to what writes it. With `overwrite` an existing run
    directory is replaced; anything else that stands there never is.
    """
    if overwrite and path.exists() and not (path / MANIFEST).is_file():
        raise UsageError(f"{path} is no run directory, so it is not replaced: choose another name")
    with whole_folder(path, replace=overwrite) as folder:
        trec.write_run(folder / RANKINGS, run)
        for name, writer in official.items():
            with (folder / name).open("wb") as file:
                writer(file)
        digests = {file.name: digest_file(file) for file in sorted(folder.iterdir())}
        complete = Manifest(**{**_as_dict(manifest), "files": digests})
        text = json.dumps(asdict(complete), indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")
    return complete


def read(path: Path) -> StoredRun:
    """A run directory with its rankings.

    Raises:
        UsageError: there is no run directory.
        DataError: its files are not what they should be.
    """
    manifest = read_manifest(path)
    return StoredRun(path, manifest, trec.read_run(path / RANKINGS))


def read_manifest(path: Path) -> Manifest:
    """The manifest of a run directory."""
    if not (path / MANIFEST).is_file():
        raise UsageError(f"{path} is no run directory (it has no {MANIFEST}): `searchapp rank` makes one")
    described = resources.read_json(path / MANIFEST)
    if described.get("format") != FORMAT:
        raise DataError(
            f"{path / MANIFEST}: format {described.get('format')!r} is not the format {FORMAT} "
            "that this version of searchapp reads: rank again"
        )
    try:
        return Manifest(**described)
    except TypeError as error:
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: {error}") from error


def verify(path: Path) -> list[str]:
    """What is wrong with a run directory, one sentence each: files changed, missing, or not in the manifest."""
    manifest = read_manifest(path)
    problems = []
    for name, digest in manifest.files.items():
        file = path / name
        if not file.is_file():
            problems.append(f"{file}: missing, though the manifest names it")
        elif digest_file(file) != digest:
            problems.append(f"{file}: changed since the run was written")
    known = {MANIFEST, *manifest.files}
    problems += [f"{file}: not part of the run" for file in sorted(path.iterdir()) if file.name not in known]
    data = Path(manifest.data)
    for name, digest in manifest.data_digests.items():
        if (data / name).is_file() and digest_file(data / name) != digest:
            problems.append(f"{data / name}: changed since the run was made from it")
    return problems


def _as_dict(manifest: Manifest) -> dict[str, Any]:
    return {name: getattr(manifest, name) for name in Manifest.__dataclass_fields__}
