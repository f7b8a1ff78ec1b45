"""Write, read and verify run directories.

    run.json        manifest
    run.trec        rankings: `topic Q0 document rank score tag`
    documents.json  digest of the text of each ranked document
    predict.txt     official file of the task, if the run is deep enough; `predict.txt.gz` for a long run
    inputs/         recipe, query templates and mappings for `searchapp rerun`
    tags.json       {"format": 1, "tags": ["baseline", "paper"]}; not covered by digests

The same inputs give the same bytes, except for `created` and `seconds` of the manifest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
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
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Example, Run
from searchapp.text import counted

MANIFEST = "run.json"
DOCUMENTS = "documents.json"
RANKINGS = "run.trec"
# A run is long if it has more than LONG hits, and more than DEEP for each topic.
LONG, DEEP = 250_000, 1_000
TAGS = "tags.json"
# Key of a manifest's recipe: the models of trained signals.
MODELS = "models"
# Key of a manifest's recipe: the splits of training topics.
TRAINING = "training"
INPUTS = "inputs"
FORMAT = 3


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
    # The folder of topics and documents.
    data: str
    # SHA-256 by input file.
    data_digests: Mapping[str, str]
    mapping_digest: str
    # Of the index's mapping and documents.
    index_digest: str
    topics: int
    hits: int
    # The end of the ranking, in UTC.
    created: str
    seconds: float
    # SHA-256 by file of the run directory.
    files: Mapping[str, str] = field(default_factory=dict)
    # The TOML file of an own task.
    task_file: str = ""
    # The TOML file of a variant.
    variant: str = ""
    # See `Collection.layout`.
    layout: Mapping[str, Any] = field(default_factory=dict)
    # Tool and file of an imported run, which has no recipe and no engine.
    imported: Mapping[str, Any] = field(default_factory=dict)
    # Topics without documents, which have no line in the rankings.
    empty_topics: Sequence[str] = ()
    # Versions of packages outside the tested range.
    untested_packages: Mapping[str, str] = field(default_factory=dict)
    format: int = FORMAT
    digest: str = ""

    @property
    def system(self) -> str:
        """The name of the recipe, or of the tool of an imported run."""
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
    """A run directory in memory."""

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
    """Write a run directory atomically, and return the manifest with the digests of its files.

    Args:
        path: the run directory
        manifest: without digests of files
        run: the rankings
        official: writers of official files by name; a long run compresses them and adds `.gz` to the names
        documents: digests of the ranked documents' texts by id
        inputs: JSON values of the files in `INPUTS` by name
        overwrite: replace an existing run directory, but nothing else
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
    return sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if not file.is_dir())


def _write_json(path: Path, value: object) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    # The surrogates of a file name that is not UTF-8 become escapes of JSON.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def require_writable(path: Path, *, overwrite: bool) -> None:
    """Check that a run directory can be written.

    Raises:
        UsageError: the path exists and may not be replaced, or its parent is not writable.
    """
    files.require_folder(path)
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    if path.exists() and not (path / MANIFEST).is_file():
        raise UsageError(f"{path} is not a run directory and is not replaced: choose another name")
    files.require_writable(path.resolve().parent)


def read(path: Path) -> StoredRun:
    """Read a run directory.

    Raises:
        UsageError: the path is not a run directory.
        DataError: a file is invalid.
    """
    manifest = read_manifest(path)
    rankings = path / RANKINGS
    if not manifest.hits and rankings.is_file() and not rankings.stat().st_size:
        return StoredRun(path, manifest, Run(manifest.tag, ()))  # an empty file is not a valid TREC run
    return StoredRun(path, manifest, trec.read_run(rankings))


def read_digests(path: Path) -> dict[str, str]:
    """Return the digests of the ranked documents' texts by document id.

    Raises:
        DataError: the file is missing or invalid.
    """
    file = path / DOCUMENTS
    try:
        digests = parse_json(read_bytes(file).decode(), file_names=True)
    except FileNotFoundError:
        raise DataError(f"{path} has no {file.name}, the digests of its documents: rank again") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file} can't be read ({error}): rank again") from error
    if not isinstance(digests, dict):
        raise DataError(f"{file} is not a JSON object: rank again")
    return digests


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a run directory.

    Raises:
        UsageError: the path is not a run directory.
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
            f"{path} has compressed rankings of an earlier version of searchapp: rank again, or import "
            f"{RANKINGS}{encoding.GZIP_SUFFIX} with `searchapp runs import`"
        )
    for name, kind in _FIELD_TYPES.items():
        if not isinstance(getattr(manifest, name), kind):
            raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: {name} is not {kind.__name__}")
    empty = manifest.empty_topics
    if not isinstance(empty, list | tuple) or not all(isinstance(topic, str) for topic in empty):
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: empty is not a list of topics")
    return manifest


def read_input(path: Path, manifest: Manifest, name: str) -> Any:
    """Return the copy of an input in a run directory, or None if the run has none of that name.

    Raises:
        DataError: the copy is missing or has changed.
    """
    file = f"{INPUTS}/{name}"
    if file not in manifest.files:
        return None
    if digest_file(path / file) != manifest.files[file]:
        raise DataError(f"{path / file}: changed since the run was written: rank again with `searchapp rank`")
    return resources.read_json(path / file, file_names=True)


# The fields of a manifest that describe the rankings, not their inputs.
_OF_RANKINGS = ("topics", "hits", "empty_topics", "untested_packages", "created", "seconds", "files")


def reusable_manifest(path: Path, planned: Manifest) -> Manifest | None:
    """Return the manifest of an intact run directory with the inputs of `planned`, or None."""
    try:
        manifest = read_manifest(path)
        files = manifest.files
        undamaged = RANKINGS in files and all(digest_file(path / name) == files[name] for name in files)
    except SearchappError:
        return None
    expected = replace(planned, **{name: getattr(manifest, name) for name in _OF_RANKINGS})
    if MODELS in manifest.recipe:  # known only after training, and determined by the other inputs
        expected = replace(expected, recipe={**expected.recipe, MODELS: manifest.recipe[MODELS]})
    return (
        manifest if undamaged and manifest.digest == manifest.own_digest() == expected.own_digest() else None
    )


def verify(path: Path) -> Verification:
    """Compare a run directory and its data with the digests of its manifest.

    Raises:
        DataError: a file cannot be read.
    """
    manifest = read_manifest(path)
    problems = []
    if manifest.digest != manifest.own_digest():
        problems.append(f"{path / MANIFEST}: changed since it was written")
    for name, digest in manifest.files.items():
        if not (path / name).is_file():
            problems.append(f"{path / name}: missing, although the manifest lists it")
        elif digest_file(path / name) != digest:
            problems.append(f"{path / name}: changed since the run was written")
    known = {MANIFEST, TAGS, *manifest.files}
    problems += [f"{path / name}: not part of the run" for name in _files(path) if name not in known]
    notes = []
    for name, digest in manifest.data_digests.items():
        file = Path(manifest.data) / name
        if not file.is_file():
            notes.append(f"{file}: no longer exists, so it was not compared")
        elif digest_file(file) != digest:
            problems.append(f"{file}: changed since the run was made")
    return Verification(tuple(problems), tuple(notes))


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`, in sentences."""

    problems: tuple[str, ...]
    # Files that could not be compared.
    notes: tuple[str, ...]


_FIELD_TYPES: dict[str, type] = {
    **dict.fromkeys(("searchapp", "task", "split", "tag", "data", "mapping_digest", "index_digest"), str),
    **dict.fromkeys(("created", "digest", "task_file", "variant"), str),
    **dict.fromkeys(("depth", "topics", "hits"), int),
    **dict.fromkeys(
        ("recipe", "engine", "data_digests", "files", "layout", "imported", "untested_packages"), dict
    ),
}


TAGS_FORMAT = 1
MAX_TAGS = 100
_TAG = re.compile(r"[\w][\w.:+-]{0,63}")


def tags_of(path: Path) -> tuple[str, ...]:
    """Return the tags of a run directory in alphabetical order.

    Raises:
        DataError: the tags cannot be read.
    """
    file = path / TAGS
    if not file.is_file():
        return ()
    described = resources.read_json(file)
    tags = described.get("tags")
    if described.get("format") != TAGS_FORMAT or not isinstance(tags, list):
        raise DataError(
            f"{file}: not a tags file of this version of searchapp: remove it, and tag the run again"
        )
    return tuple(sorted({tag for tag in tags if isinstance(tag, str) and _TAG.fullmatch(tag)}))


def change_tags(path: Path, add: Iterable[str] = (), remove: Iterable[str] = ()) -> tuple[str, ...]:
    """Add and remove tags of a run directory, and return its tags.

    Raises:
        UsageError: the path is not a run directory, a tag is invalid, or a tag to remove is unknown.
        DataError: the tags cannot be read.
        SearchappError: the tags cannot be written.
    """
    read_manifest(path)
    add, remove = list(add), list(remove)
    for tag in add:
        if not _TAG.fullmatch(tag):
            raise UsageError(
                f"{tag!r} is not a valid tag: use up to 64 letters, digits and . : + - _, with a letter or digit first"
            )
    with lock_on(path / MANIFEST):  # against other processes that tag the run
        present = tags_of(path)
        for tag in remove:
            if tag not in present:
                raise UsageError(f"{path} has no tag {tag!r}: it has {', '.join(present) or 'none'}")
        tags = tuple(sorted({*present, *add} - set(remove)))
        if len(tags) > MAX_TAGS:
            raise UsageError(f"{path} would have {len(tags)} tags: a run can have {MAX_TAGS}")
        if tags != present:
            with atomic_file(path / TAGS) as file:
                file.write(
                    json.dumps({"format": TAGS_FORMAT, "tags": tags}, ensure_ascii=False).encode() + b"\n"
                )
    return tags


@dataclass(frozen=True, slots=True)
class GivenRun:
    """The rankings of a run directory, or of a file in trec_eval's order."""

    path: Path
    run: Run
    # None for a file.
    manifest: Manifest | None
    digest: str
    # Topics whose equal scores a file lists in another order.
    tied: int = 0

    @property
    def note(self) -> str | None:
        """A sentence on reordered equal scores, if any."""
        if not self.tied:
            return None
        return (
            f"{self.path} has documents with equal scores in {counted(self.tied, 'topic')}: they are ordered "
            "by descending id, as in trec_eval, and not as in the file"
        )


def read_given(path: Path) -> GivenRun:
    """Read a run directory or a TREC run.

    Raises:
        UsageError: the path does not exist.
        DataError: the run directory is invalid.
        InvalidFiles: the file is not a TREC run.
    """
    require_exists(path)
    if path.is_dir():
        stored = read(path)
        return GivenRun(path, stored.run, stored.manifest, stored.manifest.digest)
    file = trec.read_by_score(path)
    return GivenRun(path, file.run, None, digest_file(path), file.tied)


def require_exists(path: Path) -> None:
    """Check that a run directory or a file exists.

    Raises:
        UsageError: the path does not exist.
    """
    if not path.exists():
        raise UsageError(
            f"there is no run directory or TREC run {path}: `searchapp rank` makes a run directory"
        )


_JUDGED = "judged"
_SPLITS, _CHOSEN, _MAPPING = "splits", "chosen", "mapping_digest"


def training_record(splits: Sequence[str], mapping: Any, *, chosen: bool = False) -> dict[str, Any]:
    """Return a manifest's entry for the splits of training topics; `chosen` by the user or not."""
    described = {_SPLITS: list(splits), _MAPPING: None if mapping is None else digest_json(mapping)}
    return {TRAINING: described | ({_CHOSEN: True} if chosen else {})}


def mapping_digest(manifest: Manifest) -> Any:
    """Return the digest of the mapping of a run's training topics."""
    return _recorded(manifest, TRAINING).get(_MAPPING)


def training_splits(manifest: Manifest) -> tuple[str, ...]:
    """Return the splits of a run's training topics."""
    splits = _recorded(manifest, TRAINING).get(_SPLITS)
    return tuple(map(str, splits)) if isinstance(splits, list) else ()


def chosen_splits(manifest: Manifest) -> tuple[str, ...]:
    """Return the splits of training topics that the user chose."""
    return training_splits(manifest) if _recorded(manifest, TRAINING).get(_CHOSEN) else ()


def described_judgments(judged: Iterable[Example]) -> dict[str, Any]:
    """Return a manifest's entry for judged training topics."""
    grades = {example.topic.id: dict(example.gold) for example in judged}
    if not grades:
        return {}
    return {_JUDGED: {"topics": len(grades), "digest": digest_json(grades), "ids": sorted(grades)}}


def judgments_digest(manifest: Manifest) -> str | None:
    """Return the digest of the judgments that a run learned from."""
    digest = _recorded(manifest, _JUDGED).get("digest")
    return None if digest is None else str(digest)


def judged_topics(path: Path, manifest: Manifest) -> frozenset[str]:
    """Return the judged topics that a run learned from.

    Raises:
        DataError: the manifest's list is invalid.
    """
    recorded = _recorded(manifest, _JUDGED)
    ids = recorded.get("ids") if recorded else []
    if not isinstance(ids, list):
        raise DataError(f"{path / MANIFEST}: not a manifest of searchapp: judged has no list of ids")
    return frozenset(map(str, ids))


def learning_warnings(path: Path, manifest: Manifest, scored: Collection[str], remedy: str) -> list[str]:
    """Return warnings about scoring a run on topics that it learned from; `remedy` is advice for a partial
    overlap."""
    warnings = []
    if seen := judged_topics(path, manifest).intersection(scored):
        if len(seen) == len(scored):
            topics = "the only scored topic" if len(scored) == 1 else f"all {len(scored):,} scored topics"
            advice = "judge and score other topics"
        else:
            topics, advice = f"{len(seen):,} of the {counted(len(scored), 'scored topic')}", remedy
        warnings.append(
            f"{path} was trained on judgments (rank --with-judgments) of {topics}, so its figures are too "
            f"optimistic: {advice}"
        )
    tuned = _recorded(manifest, "tuned")
    if isinstance(splits := tuned.get("splits"), list):
        on = f"the recipe of {path} was tuned on {', '.join(map(str, splits))}"
        if manifest.split in splits:
            warnings.append(f"{on}, the split that is scored, so its figures are too optimistic")
        elif tuned.get("reported"):
            warnings.append(f"{on}, for which results are reported: mention this with its figures")
    return warnings


def _recorded(manifest: Manifest, key: str) -> Mapping[str, Any]:
    value = manifest.recipe.get(key)
    return value if isinstance(value, Mapping) else {}
