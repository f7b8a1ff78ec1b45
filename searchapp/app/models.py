"""The models of trained signals, kept in the home folder: trained where there is none of the same solved topics yet.

A model's key is the digest of all that it depends on: solved topics with their gold, what the training reads of the
signal, and which documents there are. Whoever ranks with the same key ranks with the same model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from searchapp.app.solved_index import read_examples
from searchapp.digests import DocumentsDigest, data_digests, digest_json
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example
from searchapp.progress import Progress
from searchapp.ranking.learning import files, fitting
from searchapp.ranking.learning.files import Stored
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.trained import Trained
from searchapp.tasks.base import Collection, Task

FOLDER = "models"
"""Where models are kept in the home folder."""

KEPT = 16
"""How many models of a task are kept: those that were trained last."""


HELD = 2
"""How many are kept in memory by who does not keep them on disk: those that were asked for first last."""


@dataclass(frozen=True, slots=True)
class MadeModel:
    """The model of a signal; `path` is where it is kept, None without a home; `is_new` says that it was trained now."""

    signal: str
    stored: Stored
    path: Path | None
    is_new: bool


class Models:
    """The models that a task's signals rank the topics of a split by.

    `home` is where they are kept; without, the last `HELD` are kept in memory. `judged` topics are solved ones too, see
    `read_examples`.
    """

    def __init__(
        self,
        task: Task,
        collection: Collection,
        split: str,
        progress: Progress,
        home: Path | None = None,
        judged: Sequence[Example] = (),
        problems: Problems | None = None,
    ) -> None:
        self._task = task
        self._collection = collection
        self._split = split
        self._progress = progress
        self._folder = None if home is None else home / FOLDER
        self._judged = judged
        self._problems = problems
        self._held: dict[str, MadeModel] = {}
        self._read: tuple[Sequence[Example], Sequence[Document]] | None = None

    def of(self, signal: Trained, *, rebuild: bool = False, workers: int = 1) -> MadeModel:
        """The model of a signal, trained where it is not kept already, or with `rebuild`.

        Raises:
            InvalidFiles: the files of the solved topics have problems.
            DataError: there are no solved topics, or too few, or the model that is kept is damaged.
            UsageError: there is no model yet, and scikit-learn is not installed.
            SearchappError: it can't be kept.
        """
        if self._folder is not None:
            return self._of(signal, rebuild, workers)
        training = digest_json(signal.training())
        if rebuild or training not in self._held:
            self._held[training] = self._of(signal, rebuild, workers)
            for old in list(self._held)[:-HELD]:
                del self._held[old]
        return replace(self._held[training], signal=signal.name)

    def _of(self, signal: Trained, rebuild: bool, workers: int) -> MadeModel:
        examples, documents = self._inputs()
        key = self._key(signal, examples, documents)
        path = self._path(signal, key)
        if path is not None and path.exists() and not rebuild:
            stored = files.read(path)
            if stored.header.get("key") != key:
                raise DataError(f"{path} is the model of other solved topics: remove it")
            return MadeModel(signal.name, stored, path, False)
        fitting.require_learn()
        with self._progress.stage(f"training {signal.name} on {len(examples):,} solved topics"):
            header, arrays = signal.train(examples, documents, workers)
        stored = Stored.of({**self._about(key, examples), **header}, arrays)
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SearchappError(f"{path.parent} can't be made: {error.strerror}") from error
            files.write(path, stored)
            self._forget_old(path)
        return MadeModel(signal.name, stored, path, True)

    def _inputs(self) -> tuple[Sequence[Example], Sequence[Document]]:
        if self._read is None:
            examples = read_examples(
                self._task, self._collection, self._split, self._progress, self._judged, self._problems
            )
            self._read = examples, list(self._collection.documents.read(Problems(lenient=True)))
        return self._read

    def _key(self, signal: Trained, examples: Iterable[Example], documents: Iterable[Document]) -> str:
        solved = [[one.topic.id, one.topic.text, dict(one.gold)] for one in examples]
        seen = DocumentsDigest()
        for _document in seen.watch(documents):
            pass
        return digest_json(
            {
                "format": files.FORMAT,
                "training": signal.training(),
                "solved": digest_json(solved),
                "judged": sorted(one.topic.id for one in self._judged),
                "documents": seen.hexdigest(),
            }
        )

    def _about(self, key: str, examples: Sequence[Example]) -> dict[str, Any]:
        """What a model's header says of where it comes from."""
        judged = {one.topic.id for one in self._judged}
        collection = self._collection
        return {
            "key": key,
            "task": self._task.name,
            "learner": fitting.learner(),
            "solved": len(examples),
            # A judged topic is ranked all the same: the run says what it learned from, and who scores is told.
            "topics": sorted(one.topic.id for one in examples if one.topic.id not in judged),
            "data_digests": data_digests(collection.folder, collection.example_files(self._split)),
        }

    def _path(self, signal: Trained, key: str) -> Path | None:
        return (
            None if self._folder is None else self._folder / f"{self._task.name}-{signal.kind}-{key[:16]}.npz"
        )

    def _forget_old(self, path: Path) -> None:
        with suppress(OSError):
            kept = sorted(
                path.parent.glob(f"{self._task.name}-multi*-????????????????.npz"),
                key=lambda one: (one == path, one.stat().st_mtime_ns),
            )
            for old in kept[:-KEPT]:
                old.unlink(missing_ok=True)


def train(models: Models, recipe: Recipe, *, rebuild: bool = False, workers: int = 1) -> list[MadeModel]:
    """The models of all trained signals of a recipe.

    Raises:
        UsageError: it has none.
        as `Models.of` does.
    """
    if not recipe.trained:
        raise UsageError(
            f"the recipe {recipe.name} has nothing to train: choose one with the signal multiclass or multilabel"
        )
    return [models.of(signal, rebuild=rebuild, workers=workers) for signal in recipe.trained]


def described(made: MadeModel) -> Mapping[str, Any]:
    """What `train --json` prints of a model."""
    header = made.stored.header
    return {
        "signal": made.signal,
        "trained": made.is_new,
        "path": None if made.path is None else str(made.path),
        "digest": made.stored.digest,
        "key": header["key"],
        "solved": header["solved"],
        "labels": len(header["labels"]),
        "features": len(header["features"]),
        "learner": header["learner"],
        "data_digests": dict(header["data_digests"]),
    }
