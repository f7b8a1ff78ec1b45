"""A run is a directory: its manifest, rankings and tags, and what it learned from judgments.

    run.json        the manifest: what was ranked, how, on which engine, from which data
    run.trec        the rankings, `topic Q0 document rank score tag`
    documents.json  the digest of the text of each ranked document
    predict.txt     the task's official file, when the run is deep enough for it
    inputs/         copies of the recipe, its templates and the mappings, of which `searchapp rerun` ranks again
    tags.json       {"format": 1, "tags": ["baseline", "paper"]}, names by which people group and find runs

The official file of a long run is compressed with gzip: `predict.txt.gz`. The same inputs give the same bytes of every
file but the manifest's `created` and `seconds`. Tags are not part of the run: tagging changes no digest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from searchapp import files, resources
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import (
    atomic_file,
    atomic_folder,
    digest_file,
    digest_json,
    lock_on,
    parse_json,
    read_bytes,
)
from searchapp.formats import encoding, trec
from searchapp.model import Example, Run
from searchapp.text import counted

MANIFEST = "run.json"
DOCUMENTS = "documents.json"
RANKINGS = "run.trec"
LONG, DEEP = 250_000, 1_000
"""A run is long if it has more hits than the former, and more than the latter for each topic."""
TAGS = "tags.json"
MODELS = "models"
"""The key of a manifest's recipe with the models of trained signals."""
EXAMPLES = "examples"
"""The key of a manifest's recipe with the splits whose solved topics the run has learned from."""
INPUTS = "inputs"
"""The folder of a run directory with the copies of what the run was ranked by."""
FORMAT = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """The inputs and counts of a run."""

    searchapp: str
    task: str
    split: str
    recipe: Mapping[str, Any]
    depth: int
    tag: str
    engine: Mapping[str, str]
    data: str
    """The folder of topics and documents."""
    data_digests: Mapping[str, str]
    """The SHA-256 of each input file."""
    mapping_digest: str
    index_digest: str
    """That of mapping and documents of the index."""
    topics: int
    hits: int
    created: str
    """The end of the ranking, in UTC."""
    seconds: float
    """The duration of the ranking."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each other file of the run."""
    task_file: str = ""
    """The TOML file of an own task."""
    variant: str = ""
    """The TOML file of a variant."""
    layout: Mapping[str, Any] = field(default_factory=dict)
    """How a task file describes the input files, see `Collection.layout`."""
    imported: Mapping[str, Any] = field(default_factory=dict)
    """The tool and the file of an imported run, which has no recipe and no engine."""
    empty: Sequence[str] = ()
    """The topics without any document, which have no line in the rankings."""
    untested: Mapping[str, str] = field(default_factory=dict)
    """The versions of packages outside the tested range."""
    format: int = FORMAT
    digest: str = ""

    @property
    def system(self) -> str:
        """The name of the recipe, or the tool of an imported run."""
        if self.imported:
            return str(self.imported.get("tool") or "imported")
        return str(self.recipe.get("name", ""))

    @property
    def task_reference(self) -> str:
        """The file of the variant or of the own task, or else the task's name."""
        return self.variant or self.task_file or self.task

    def own_digest(self) -> str:
        """Return the SHA-256 of the manifest without its digest."""
        return digest_json({**asdict(self), "digest": ""})


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
    documents: Mapping[str, str] | None = None,
    inputs: Mapping[str, Any] = MappingProxyType({}),
    *,
    overwrite: bool = False,
) -> Manifest:
    """Write a run directory atomically; returns the manifest with the digests of its files.

    `official` has the writers of official files by their names; in a long run `.gz` is added to these. `documents` has
    the digests of the ranked documents' texts by their ids, `inputs` the JSON values of the files in `INPUTS`. With
    `overwrite` an existing run directory is replaced, but nothing else.
    """
    require_writable(path, overwrite=overwrite)
    with atomic_folder(path, replace=overwrite) as folder:
        # The official file of an own task has the name of the rankings, which replace it.
        writers: dict[str, Callable[[BinaryIO], object]] = {**official}
        writers[RANKINGS] = lambda file: trec.write_run(file, run)
        writers[DOCUMENTS] = lambda file: file.write(
            json.dumps(documents or {}, indent=0, sort_keys=True).encode()
        )
        is_long = manifest.hits > max(LONG, DEEP * manifest.topics)
        for name, writer in writers.items():
            if name in official and name != RANKINGS and is_long:
                with encoding.write_gzip(folder / f"{name}{encoding.GZIP_SUFFIX}") as packed:
                    writer(packed)
            else:
                with (folder / name).open("wb") as plain:
                    writer(plain)
        if inputs:
            (folder / INPUTS).mkdir()
        for name, value in inputs.items():
            _write_json(folder / INPUTS / name, value)
        digests = {name: digest_file(folder / name) for name in _files(folder)}
        complete = replace(manifest, files=digests)
        complete = replace(complete, digest=complete.own_digest())
        _write_json(folder / MANIFEST, asdict(complete))
    return complete


def _files(path: Path) -> list[str]:
    """Return the files of a run directory by their paths in it."""
    return sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if not file.is_dir())


def _write_json(path: Path, value: object) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    # The surrogates of a file name that is not UTF-8 become escapes of JSON.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def require_writable(path: Path, *, overwrite: bool) -> None:
    """Check that a run directory can be written.

    Raises:
        UsageError: something else exists there, or the folder above can't be written to.
    """
    files.require_folder(path)
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    if path.exists() and not (path / MANIFEST).is_file():
        raise UsageError(f"{path} is not a run directory, so it is not replaced: choose another name")
    files.require_writable(path.resolve().parent)


def read(path: Path) -> StoredRun:
    """Return a run directory with its rankings.

    Raises:
        UsageError: there is no run directory.
        DataError: its files are invalid.
    """
    manifest = read_manifest(path)
    rankings = path / RANKINGS
    if not manifest.hits and rankings.is_file() and not rankings.stat().st_size:
        return StoredRun(path, manifest, Run(manifest.tag, ()))  # no topic has a document
    return StoredRun(path, manifest, trec.read_run(rankings))


def read_digests(path: Path) -> dict[str, str]:
    """Return the digests of the ranked documents' texts by their ids.

    Raises:
        DataError: the file is missing or can't be read.
    """
    file = path / DOCUMENTS
    try:
        digests = parse_json(read_bytes(file).decode(), file_names=True)
    except FileNotFoundError:
        raise DataError(f"{path} has no {file.name} with the digests of its documents: rank again") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file} can't be read ({error}): rank again") from error
    if not isinstance(digests, dict):
        raise DataError(f"{file} is not a JSON object: rank again")
    return digests


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a run directory.

    Raises:
        UsageError: there is no run directory.
        DataError: the manifest is invalid.
    """
    if not (path / MANIFEST).is_file():
        raise UsageError(f"{path} is not a run directory (it has no {MANIFEST}): `searchapp rank` makes one")
    described = resources.read_json(path / MANIFEST, file_names=True)
    if described.get("format") != FORMAT:
        raise DataError(
            f"{path / MANIFEST}: format {described.get('format')!r} is not the format {FORMAT} "
            "that this version of searchapp reads: rank again, or import the run again"
        )
    try:
        manifest = Manifest(**described)
    except TypeError as error:
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: {error}") from error
    if f"{RANKINGS}{encoding.GZIP_SUFFIX}" in manifest.files:
        raise DataError(
            f"{path} has compressed rankings, as earlier versions of searchapp wrote them: rank again, or import "
            f"{RANKINGS}{encoding.GZIP_SUFFIX} with `searchapp runs import`"
        )
    for name, kind in _FIELD_TYPES.items():
        if not isinstance(getattr(manifest, name), kind):
            raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: {name} is not {kind.__name__}")
    empty = manifest.empty
    if not isinstance(empty, list | tuple) or not all(isinstance(topic, str) for topic in empty):
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: empty is no list of topics")
    return manifest


def read_input(path: Path, manifest: Manifest, name: str) -> Any:
    """Return the copy of an input in a run directory; None if the run has no such input.

    Raises:
        DataError: the copy is missing or was changed.
    """
    file = f"{INPUTS}/{name}"
    if file not in manifest.files:
        return None
    if digest_file(path / file) != manifest.files[file]:
        raise DataError(f"{path / file}: changed since the run was written: rank again with `searchapp rank`")
    return resources.read_json(path / file, file_names=True)


_OF_RANKINGS = ("topics", "hits", "empty", "untested", "created", "seconds", "files")
"""The fields of a manifest that describe the rankings, not their inputs."""


def reusable_manifest(path: Path, planned: Manifest) -> Manifest | None:
    """Return the manifest of an undamaged run directory that has the inputs of the `planned` manifest, or None."""
    try:
        manifest = read_manifest(path)
        files = manifest.files
        undamaged = RANKINGS in files and all(digest_file(path / name) == files[name] for name in files)
    except SearchappError:
        return None
    expected = replace(planned, **{name: getattr(manifest, name) for name in _OF_RANKINGS})
    if MODELS in manifest.recipe:  # they follow from the rest, and are known only after training
        expected = replace(expected, recipe={**expected.recipe, MODELS: manifest.recipe[MODELS]})
    return (
        manifest if undamaged and manifest.digest == manifest.own_digest() == expected.own_digest() else None
    )


def verify(path: Path) -> Verification:
    """Compare a run directory and its data with the manifest, and the manifest with its digest.

    Raises:
        DataError: a file can't be read.
    """
    manifest = read_manifest(path)
    problems = []
    if manifest.digest != manifest.own_digest():
        problems.append(f"{path / MANIFEST}: changed since it was written")
    for name, digest in manifest.files.items():
        if not (path / name).is_file():
            problems.append(f"{path / name}: missing, though the manifest names it")
        elif digest_file(path / name) != digest:
            problems.append(f"{path / name}: changed since the run was written")
    known = {MANIFEST, TAGS, *manifest.files}
    problems += [f"{path / name}: not part of the run" for name in _files(path) if name not in known]
    notes = []
    for name, digest in manifest.data_digests.items():
        file = Path(manifest.data) / name
        if not file.is_file():
            notes.append(f"{file}: gone, so not compared")
        elif digest_file(file) != digest:
            problems.append(f"{file}: changed since the run was made from it")
    return Verification(tuple(problems), tuple(notes))


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`, in sentences."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    """What could not be compared."""


_FIELD_TYPES: dict[str, type] = {
    **dict.fromkeys(("searchapp", "task", "split", "tag", "data", "mapping_digest", "index_digest"), str),
    **dict.fromkeys(("created", "digest", "task_file", "variant"), str),
    **dict.fromkeys(("depth", "topics", "hits"), int),
    **dict.fromkeys(("recipe", "engine", "data_digests", "files", "layout", "imported", "untested"), dict),
}


TAGS_FORMAT = 1
MAX_TAGS = 100
_TAG = re.compile(r"[\w][\w.:+-]{0,63}")


def tags_of(path: Path) -> tuple[str, ...]:
    """Return the tags of a run directory in alphabetical order.

    Raises:
        DataError: they can't be read.
    """
    file = path / TAGS
    if not file.is_file():
        return ()
    described = resources.read_json(file)
    tags = described.get("tags")
    if described.get("format") != TAGS_FORMAT or not isinstance(tags, list):
        raise DataError(f"{file}: no tags of this searchapp: remove it, and tag the run again")
    return tuple(sorted({tag for tag in tags if isinstance(tag, str) and _TAG.fullmatch(tag)}))


def change_tags(path: Path, add: Iterable[str] = (), remove: Iterable[str] = ()) -> tuple[str, ...]:
    """Add and remove tags of a run directory, and return its tags.

    Raises:
        UsageError: there is no run directory, a tag is invalid, or a tag to remove is unknown.
        DataError: the present tags can't be read.
        SearchappError: the tags can't be written.
    """
    read_manifest(path)
    add, remove = list(add), list(remove)
    for tag in add:
        if not _TAG.fullmatch(tag):
            raise UsageError(
                f"{tag!r} can't be a tag: it takes letters, digits and . : + - _, 64 of them at most, and begins with "
                "a letter or digit"
            )
    with lock_on(path / MANIFEST):  # another process may be tagging it too
        present = tags_of(path)
        for tag in remove:
            if tag not in present:
                raise UsageError(f"{path} has no tag {tag!r}: it has {', '.join(present) or 'none'}")
        tags = tuple(sorted({*present, *add} - set(remove)))
        if len(tags) > MAX_TAGS:
            raise UsageError(f"{path} would have {len(tags)} tags: {MAX_TAGS} are enough for a run")
        if tags != present:
            with atomic_file(path / TAGS) as file:
                file.write(
                    json.dumps({"format": TAGS_FORMAT, "tags": tags}, ensure_ascii=False).encode() + b"\n"
                )
    return tags


@dataclass(frozen=True, slots=True)
class GivenRun:
    """The rankings of a run directory, or those of a file in the order of trec_eval."""

    path: Path
    run: Run
    manifest: Manifest | None
    """None for a file."""
    digest: str
    tied: int = 0
    """How many topics of a file have documents of equal scores in another order."""

    @property
    def note(self) -> str | None:
        """A sentence on reordered equal scores, if there are any."""
        if not self.tied:
            return None
        return (
            f"{self.path} has documents of equal scores in {counted(self.tied, 'topic')}: they are ordered by "
            "descending id, as trec_eval does, and not as they stand in the file"
        )


def read_given(path: Path) -> GivenRun:
    """Return a run directory or a TREC run.

    Raises:
        UsageError: there is neither.
        DataError: the files of a directory are invalid.
        InvalidFiles: the file is no TREC run.
    """
    require_there(path)
    if path.is_dir():
        stored = read(path)
        return GivenRun(path, stored.run, stored.manifest, stored.manifest.digest)
    file = trec.read_by_score(path)
    return GivenRun(path, file.run, None, digest_file(path), file.tied)


def require_there(path: Path) -> None:
    """Check that a run directory or a file exists.

    Raises:
        UsageError: there is none.
    """
    if not path.exists():
        raise UsageError(
            f"there is no run directory or TREC run {path}: `searchapp rank` makes a run directory"
        )


_JUDGED = "judged"
_SPLITS, _CHOSEN, _MAPPING = "splits", "chosen", "mapping"


def solved_by(splits: Sequence[str], mapping: Any, *, chosen: bool = False) -> dict[str, Any]:
    """Return the entry of a manifest's recipe for the splits whose solved topics a run learns from.

    `mapping` is that of their index; `chosen` tells whether the user chose the splits.
    """
    described = {_SPLITS: list(splits), _MAPPING: None if mapping is None else digest_json(mapping)}
    return {EXAMPLES: described | ({_CHOSEN: True} if chosen else {})}


def mapping_digest(manifest: Manifest) -> Any:
    """Return the digest of the mapping of the solved topics that a run has learned from."""
    return _recorded(manifest, EXAMPLES).get(_MAPPING)


def solved_splits(manifest: Manifest) -> tuple[str, ...]:
    """Return the splits whose solved topics a run has learned from."""
    splits = _recorded(manifest, EXAMPLES).get(_SPLITS)
    return tuple(map(str, splits)) if isinstance(splits, list) else ()


def chosen_splits(manifest: Manifest) -> tuple[str, ...]:
    """Return the splits that the user chose for a run to learn from."""
    return solved_splits(manifest) if _recorded(manifest, EXAMPLES).get(_CHOSEN) else ()


def described_judgments(judged: Iterable[Example]) -> dict[str, Any]:
    """Return the entry of a manifest's recipe for the judged topics that a run learns from."""
    grades = {example.topic.id: dict(example.gold) for example in judged}
    if not grades:
        return {}
    return {_JUDGED: {"topics": len(grades), "digest": digest_json(grades), "ids": sorted(grades)}}


def judgments_digest(manifest: Manifest) -> str | None:
    """Return the digest of the judgments that a run has learned from."""
    digest = _recorded(manifest, _JUDGED).get("digest")
    return None if digest is None else str(digest)


def judged_topics(path: Path, manifest: Manifest) -> frozenset[str]:
    """Return the judged topics that the run directory `path` has learned from.

    Raises:
        DataError: the manifest does not name them.
    """
    recorded = _recorded(manifest, _JUDGED)
    ids = recorded.get("ids") if recorded else []
    if not isinstance(ids, list):
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: judged has no list of ids")
    return frozenset(map(str, ids))


def learning_warnings(path: Path, manifest: Manifest, scored: Collection[str], remedy: str) -> list[str]:
    """Return sentences on figures that are too good, of a run that has learned from the topics that are scored.

    `remedy` is the advice if only some of the topics are.
    """
    warnings = []
    if seen := judged_topics(path, manifest).intersection(scored):
        if len(seen) == len(scored):
            topics = "the only scored topic" if len(scored) == 1 else f"all {len(scored):,} scored topics"
            advice = "judge others, and score these"
        else:
            topics, advice = f"{len(seen):,} of the {counted(len(scored), 'scored topic')}", remedy
        warnings.append(
            f"{path} has learned from judgments (rank --with-judgments) on {topics}, so its figures are too good to "
            f"be fair: {advice}"
        )
    tuned = _recorded(manifest, "tuned")
    if isinstance(splits := tuned.get("splits"), list):
        on = f"the recipe of {path} was tuned on {', '.join(map(str, splits))}"
        if manifest.split in splits:
            warnings.append(f"{on}, whose topics these are, so its figures are too good to be fair")
        elif tuned.get("reported"):
            warnings.append(f"{on}, which figures are reported for: say so where its figures are shown")
    return warnings


def _recorded(manifest: Manifest, key: str) -> Mapping[str, Any]:
    """Return the object under a key of a manifest's recipe."""
    value = manifest.recipe.get(key)
    return value if isinstance(value, Mapping) else {}
