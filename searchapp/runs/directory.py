"""A run is a directory.

    run.json      the manifest: what was ranked, how, on which engine, from which data
    run.trec      the rankings, `topic Q0 document rank score tag`
    predict.txt   the task's official file, when the run is deep enough for it

Files of a run that is long, see `LONG`, are compressed with gzip: `run.trec.gz`, `predict.txt.gz`.

The same inputs give the same bytes of every file but the manifest's `created` and `seconds`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from searchapp import files, resources
from searchapp.digests import digest_file, digest_json
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import whole_folder
from searchapp.formats import packed, trec
from searchapp.model import Run

MANIFEST = "run.json"
RANKINGS = "run.trec"
PACKED_RANKINGS = RANKINGS + packed.SUFFIX
LONG = 250_000
"""The hits beyond which the files of a run are compressed, if it also has more than `DEEP` for each topic: so deep is a
run that ranks every document, which are hundreds of megabytes that nobody reads to the end."""
DEEP = 1_000
TAGS = "tags.json"
"""What people call the run, see `runs.tags`: beside the run, and no part of it."""
MODELS = "models"
"""The key of a manifest's recipe with the models of trained signals."""
EXAMPLES = "examples"
"""The key of a manifest's recipe with the splits whose solved topics the run has learned from."""
FORMAT = 1
_LATER = ("imported", "variant", "empty")
"""What a manifest has only where there is something to say: searchapp 0.2 does not know it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run was made from.

    `data` is the folder the topics came from and `data_digests` the SHA-256 of each file read there;
    `index_digest` identifies mapping and documents of the index; `files` maps each other file of the run to its
    SHA-256. `task_file` has path and digest of the TOML file of a user's own task, and is empty for other tasks.
    `variant` has the same of the TOML file of a variant, and the digests of the JSON `files` that it names.
    `imported` says of a run that another tool made which file it was read from; it has no recipe and no engine then.
    `empty` are the topics of which no document was found, which have no line in the file with the rankings.
    `seconds` is the time the ranking took, `created` its end in UTC, `digest` that of the manifest.
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
    task_file: Mapping[str, str] = field(default_factory=dict)
    imported: Mapping[str, Any] = field(default_factory=dict)
    variant: Mapping[str, Any] = field(default_factory=dict)
    empty: Sequence[str] = ()
    format: int = FORMAT
    digest: str = ""

    @property
    def rankings(self) -> str:
        """The name of the file with the rankings."""
        return PACKED_RANKINGS if PACKED_RANKINGS in self.files else RANKINGS

    @property
    def system(self) -> str:
        """What made the rankings: the recipe, or of an imported run the tool."""
        if self.imported:
            return str(self.imported.get("tool") or "imported")
        return str(self.recipe.get("name", ""))

    @property
    def task_reference(self) -> str:
        """What names its task: the file of a variant or of a user's own task, or a name."""
        return str(self.variant.get("path") or self.task_file.get("path") or self.task)

    def own_digest(self) -> str:
        """The SHA-256 of everything in the manifest but its own digest."""
        described = {**asdict(self), "digest": ""}
        for name in ("task_file", *_LATER):
            if not described[name]:
                del described[name]  # runs from before there was such a thing keep their digest
        return digest_json(described)


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
    official: Mapping[str, Callable[[BinaryIO], object]],
    *,
    overwrite: bool = False,
) -> Manifest:
    """Write a run directory whole or not at all; returns the manifest with the digests of its files.

    `official` maps the name of each official file to what writes it; in a long run `.gz` is added to the names. With
    `overwrite` an existing run directory is replaced; anything else that stands there never is.
    """
    require_writable(path, overwrite=overwrite)
    with whole_folder(path, replace=overwrite) as folder:
        for name, writer in {RANKINGS: lambda file: trec.write_run(file, run), **official}.items():
            if not _is_long(manifest):
                with (folder / name).open("wb") as plain:
                    writer(plain)
            elif name == RANKINGS:  # which is read a topic at a time
                with (folder / PACKED_RANKINGS).open("wb") as pieces:
                    trec.write_run(packed.PieceWriter(pieces), run)
            else:
                with packed.packing(folder / f"{name}{packed.SUFFIX}") as whole:
                    writer(whole)
        digests = {file.name: digest_file(file) for file in sorted(folder.iterdir())}
        complete = replace(manifest, files=digests)
        complete = replace(complete, digest=complete.own_digest())
        described = asdict(complete)
        for name in _LATER:
            if not described[name]:
                del described[name]  # which searchapp 0.2 does not know
        text = json.dumps(described, indent=2, ensure_ascii=False) + "\n"
        # A name of a file that is not UTF-8 has halves of characters, which become JSON's escapes.
        (folder / MANIFEST).write_text(text, encoding="utf-8", errors="backslashreplace")
    return complete


def _is_long(manifest: Manifest) -> bool:
    return manifest.hits > LONG and manifest.hits > DEEP * manifest.topics


def require_writable(path: Path, *, overwrite: bool) -> None:
    """Make sure, before any work is done for it, that a run directory can be written.

    Raises:
        UsageError: something stands there that may not be replaced, or the folder above can't be written to.
    """
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    if path.exists() and not (path / MANIFEST).is_file():
        raise UsageError(f"{path} is not a run directory, so it is not replaced: choose another name")
    files.require_writable(path.resolve().parent)


def read(path: Path) -> StoredRun:
    """A run directory with its rankings.

    Raises:
        UsageError: there is no run directory.
        DataError: its files are not what they should be.
    """
    manifest = read_manifest(path)
    rankings = path / manifest.rankings
    if not manifest.hits and rankings.is_file() and not rankings.stat().st_size:
        return StoredRun(path, manifest, Run(manifest.tag, ()))  # for no topic any document was found
    return StoredRun(path, manifest, trec.read_run(rankings))


def read_manifest(path: Path) -> Manifest:
    """The manifest of a run directory."""
    if not (path / MANIFEST).is_file():
        raise UsageError(f"{path} is not a run directory (it has no {MANIFEST}): `searchapp rank` makes one")
    described = resources.read_json(path / MANIFEST, file_names=True)
    if described.get("format") != FORMAT:
        raise DataError(
            f"{path / MANIFEST}: format {described.get('format')!r} is not the format {FORMAT} "
            "that this version of searchapp reads: rank again"
        )
    try:
        manifest = Manifest(**described)
    except TypeError as error:
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: {error}") from error
    for name, kind in _FIELD_TYPES.items():
        if not isinstance(getattr(manifest, name), kind):
            raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: {name} is not {kind.__name__}")
    if manifest.task_file and not _is_file(manifest.task_file, "path", "digest"):
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: task_file lacks path or digest")
    empty = manifest.empty
    if not isinstance(empty, list | tuple) or not all(isinstance(topic, str) for topic in empty):
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: empty is no list of topics")
    variant = manifest.variant
    if variant and not (_is_file(variant, "path", "digest", "files") and isinstance(variant["files"], dict)):
        raise DataError(
            f"{path / MANIFEST}: not a manifest of searchapp: variant lacks path, digest or files"
        )
    return manifest


def _is_file(described: Mapping[str, Any], *keys: str) -> bool:
    """Whether this says, with these keys, where a file is and what its content was."""
    return described.keys() == set(keys) and all(
        isinstance(described[key], str) for key in ("path", "digest")
    )


_OF_RANKINGS = ("topics", "hits", "empty", "created", "seconds", "files")
"""What a manifest says of the rankings, and not of what they were made from."""


def kept(path: Path, planned: Manifest) -> Manifest | None:
    """The manifest of a run directory, if it is whole and was made from what is `planned`; None otherwise.

    `planned` is the manifest of a run that would be made now, as far as it is known before.
    """
    try:
        manifest = read_manifest(path)
        files = manifest.files
        whole = manifest.rankings in files and all(digest_file(path / name) == files[name] for name in files)
    except SearchappError:
        return None
    alike = replace(planned, **{name: getattr(manifest, name) for name in _OF_RANKINGS})
    if MODELS in manifest.recipe:  # they follow from the rest, and are known once they are trained
        alike = replace(alike, recipe={**alike.recipe, MODELS: manifest.recipe[MODELS]})
    if (
        EXAMPLES not in manifest.recipe
    ):  # runs from before it was recorded; their files are compared all the same
        alike = replace(alike, recipe={key: value for key, value in alike.recipe.items() if key != EXAMPLES})
    return manifest if whole and manifest.digest == manifest.own_digest() == alike.own_digest() else None


def verify(path: Path) -> Verification:
    """Compare a run directory with what its manifest says, and the manifest with its own digest.

    Raises:
        DataError: a file can't be read.
    """
    manifest = read_manifest(path)
    problems = (
        []
        if manifest.digest == manifest.own_digest()
        else [f"{path / MANIFEST}: changed since it was written"]
    )
    for name, digest in manifest.files.items():
        if not (path / name).is_file():
            problems.append(f"{path / name}: missing, though the manifest names it")
        elif digest_file(path / name) != digest:
            problems.append(f"{path / name}: changed since the run was written")
    known = {MANIFEST, TAGS, *manifest.files}
    problems += [f"{file}: not part of the run" for file in sorted(path.iterdir()) if file.name not in known]
    notes = []
    used = {Path(manifest.data) / name: digest for name, digest in manifest.data_digests.items()}
    if manifest.variant:
        variant = Path(manifest.variant["path"])
        used[variant] = manifest.variant["digest"]
        used |= {variant.parent / name: digest for name, digest in manifest.variant["files"].items()}
    if manifest.task_file:
        used[Path(manifest.task_file["path"])] = manifest.task_file["digest"]
    for file, digest in used.items():
        if not file.is_file():
            notes.append(f"{file}: gone, so not compared")
        elif digest_file(file) != digest:
            problems.append(f"{file}: changed since the run was made from it")
    return Verification(tuple(problems), tuple(notes))


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` has found, one sentence each: what is wrong, and what could not be compared."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]


_FIELD_TYPES: dict[str, type] = {
    **dict.fromkeys(("searchapp", "task", "split", "tag", "data", "mapping_digest", "index_digest"), str),
    **dict.fromkeys(("created", "digest"), str),
    **dict.fromkeys(("depth", "topics", "hits"), int),
    **dict.fromkeys(("recipe", "engine", "data_digests", "files", "task_file", "imported", "variant"), dict),
}
