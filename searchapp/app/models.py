"""The models of trained signals, kept in the home folder: trained where there is none of the same solved topics yet.

A model's key is the digest of all that it depends on: solved topics with their gold, what the training reads of the
signal, and which documents there are. Whoever ranks with the same key ranks with the same model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.app.index import lenient_advice
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


@dataclass(frozen=True, slots=True)
class MadeModel:
    """The model of a signal; `path` is where it is kept, None without a home; `is_new` says that it was trained now.

    `left_out` is the solved topic that it has not seen, empty where it has seen all of them.
    """

    signal: str
    left_out: str
    stored: Stored
    path: Path | None
    is_new: bool


class Models:
    """The models that a task's signals rank the topics of a split by.

    `home` is where they are kept; without, they are trained each time. `judged` topics are solved ones too, see
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
        self._read: tuple[Sequence[Example], Sequence[Document], str] | None = None

    def of(self, signal: Trained, ranked: str = "", *, rebuild: bool = False, workers: int = 1) -> MadeModel:
        """The model of a signal, trained where it is not kept already, or with `rebuild`.

        Of a signal that leaves topics out it is the one for the topic that is `ranked`.

        Raises:
            InvalidFiles: the files of the solved topics have problems.
            DataError: there are no solved topics, or too few, or the model that is kept is damaged.
            UsageError: there is no model yet, and scikit-learn is not installed.
            SearchappError: it can't be kept.
        """
        examples, documents, digest = self._inputs()
        left_out = ranked if signal.leaves_out and any(one.topic.id == ranked for one in examples) else ""
        if left_out:
            examples = [one for one in examples if one.topic.id != left_out]
        key = self._key(signal, examples, digest)
        path = self._path(signal, key)
        if path is not None and path.exists() and not rebuild:
            stored = files.read(path)
            if stored.header.get("key") != key:
                raise DataError(f"{path} is the model of other solved topics: remove it")
            return MadeModel(signal.name, left_out, stored, path, False)
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
            self._forget_old(signal, path)
        return MadeModel(signal.name, left_out, stored, path, True)

    def ranked(self) -> list[str]:
        """The topics of the split that are solved themselves; with an empty name first if others are not.

        Raises:
            InvalidFiles: the topics have problems.
        """
        examples, _documents, _digest = self._inputs()
        problems = self._problems or Problems()
        topics = self._collection.topics(self._split, problems)
        problems.raise_if_any(lenient_advice(problems))
        solved = {one.topic.id for one in examples}
        found = {topic.id if topic.id in solved else "" for topic in topics}
        return sorted(found)

    def _inputs(self) -> tuple[Sequence[Example], Sequence[Document], str]:
        """The solved topics, the documents, and the digest of these."""
        if self._read is None:
            examples = read_examples(
                self._task, self._collection, self._split, self._progress, self._judged, self._problems
            )
            seen = DocumentsDigest()
            documents = list(seen.watch(self._collection.documents.read(Problems(lenient=True))))
            self._read = examples, documents, seen.hexdigest()
        return self._read

    def _key(self, signal: Trained, examples: Iterable[Example], documents: str) -> str:
        solved = [[one.topic.id, one.topic.text, dict(one.gold)] for one in examples]
        return digest_json(
            {
                "format": files.FORMAT,
                "training": signal.training(),
                "solved": digest_json(solved),
                "judged": sorted(one.topic.id for one in self._judged),
                "documents": documents,
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

    def _forget_old(self, signal: Trained, path: Path) -> None:
        with suppress(OSError):
            kept = sorted(
                path.parent.glob(f"{self._task.name}-{signal.kind}-????????????????.npz"),
                key=lambda one: (one == path, one.stat().st_mtime_ns),
            )
            for old in kept[: -signal.most_kept]:
                old.unlink(missing_ok=True)


def train(models: Models, recipe: Recipe, *, rebuild: bool = False, workers: int = 1) -> list[MadeModel]:
    """The models of all trained signals of a recipe, each of those that the topics of the split are ranked by.

    Raises:
        UsageError: it has none.
        as `Models.of` does.
    """
    if not recipe.trained:
        raise UsageError(
            f"the recipe {recipe.name} has nothing to train: choose one with the signal multiclass, multilabel or lines"
        )
    return [
        models.of(signal, ranked, rebuild=rebuild, workers=workers)
        for signal in recipe.trained
        for ranked in (models.ranked() if signal.leaves_out else [""])
    ]


def described(made: MadeModel) -> Mapping[str, Any]:
    """What `train --json` prints of a model."""
    header = made.stored.header
    return {
        "signal": made.signal,
        **({"left_out": made.left_out} if made.left_out else {}),
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
