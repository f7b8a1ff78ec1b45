"""The models of trained signals and learned fusions, kept in the home folder.

One is trained where there is none of the same solved topics yet.

A model's key is the digest of all that it depends on: solved topics with their gold, what the training reads of the
signal, and which documents there are. Whoever ranks with the same key ranks with the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.app import crossfitting
from searchapp.app.index import lenient_advice
from searchapp.app.solved_index import read_examples
from searchapp.digests import DocumentsDigest, data_digests, digest_json
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example
from searchapp.progress import Progress
from searchapp.ranking.fusion import FUSION
from searchapp.ranking.learned import Learned
from searchapp.ranking.learning import files, fitting
from searchapp.ranking.learning.files import Stored
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.base import Inputs
from searchapp.ranking.signals.trained import Trained
from searchapp.tasks.base import Collection, Task

FOLDER = "models"
"""Where models are kept in the home folder."""

KEPT = 16
"""How many models of the fusion of a task are kept: those that were trained last."""

HELD = 2
"""How many are kept in memory by who does not keep them on disk: those that were asked for first last."""


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


class _Learner(NamedTuple):
    """What a model is for: its name in the recipe, its kind, and what it depends on beside the solved topics.

    `left_out` is a solved topic that it must not see, `most_kept` how many of its kind are kept.
    """

    name: str
    kind: str
    training: Mapping[str, Any]
    left_out: str = ""
    most_kept: int = KEPT


Model = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The header and the arrays of a model."""

Making = Callable[[Sequence[Example], Sequence[Document]], Model]
"""What makes a model of solved topics and documents."""


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

        def made(examples: Sequence[Example], documents: Sequence[Document]) -> Model:
            return signal.train(examples, documents, workers)

        left_out = ranked if signal.leaves_out and self._is_solved(ranked) else ""
        learner = _Learner(signal.name, signal.kind, signal.training(), left_out, signal.most_kept)
        return self._of(learner, made, rebuild=rebuild)

    def ranked(self) -> list[str]:
        """The topics of the split that are solved themselves; an empty name goes before them if others are not.

        Raises:
            InvalidFiles: the topics have problems.
        """
        problems = Problems() if self._problems is None else self._problems
        topics = self._collection.topics(self._split, problems)
        problems.raise_if_any(lenient_advice(problems))
        return sorted({topic.id if self._is_solved(topic.id) else "" for topic in topics})

    def _is_solved(self, topic_id: str) -> bool:
        examples, _documents, _digest = self._inputs()
        return any(one.topic.id == topic_id for one in examples)

    def of_fusion(self, recipe: Recipe, inputs: Inputs, *, rebuild: bool = False) -> MadeModel:
        """The model that fuses the signals of a recipe, grown where it is not kept already, or with `rebuild`.

        `inputs` are those of the signals, of which solved topics are withheld in turn.

        Raises:
            as `of` does.
            EngineError: the engine failed on the way.
        """
        learned = recipe.fusion
        assert isinstance(learned, Learned)  # the caller has asked `recipe.is_learned`

        def made(examples: Sequence[Example], documents: Sequence[Document]) -> Model:
            asking = crossfitting.asking(recipe, inputs, examples, documents, self._progress)
            return learned.train([(one.name, one.weight) for one in recipe.signals], examples, asking)

        task = self._task
        mappings = [digest_json(one) for one in (task.index_mapping(), task.examples_index_mapping())]
        training = {
            "fusion": learned.manifest(),
            "signals": [signal.manifest() for signal in recipe.signals],
            "parameters": dict(recipe.parameters),
            "mappings": mappings,
        }
        return self._of(_Learner(FUSION, Learned.kind, training), made, rebuild=rebuild)

    def _of(self, learner: _Learner, made: Making, *, rebuild: bool) -> MadeModel:
        if self._folder is not None:
            return self._found(learner, made, rebuild=rebuild)
        training = digest_json([learner.training, learner.left_out])
        if rebuild or training not in self._held:
            self._held[training] = self._found(learner, made, rebuild=rebuild)
            for old in list(self._held)[:-HELD]:
                del self._held[old]
        return replace(self._held[training], signal=learner.name)

    def _found(self, learner: _Learner, made: Making, *, rebuild: bool) -> MadeModel:
        examples, documents, digest = self._inputs()
        examples = [one for one in examples if not learner.left_out or one.topic.id != learner.left_out]
        key = self._key(learner.training, examples, digest)
        path = self._path(learner.kind, key)
        if path is not None and path.exists() and not rebuild:
            stored = files.read(path)
            if stored.header.get("key") != key:
                raise DataError(f"{path} is the model of other solved topics: remove it")
            return MadeModel(learner.name, learner.left_out, stored, path, False)
        fitting.require_learn()
        with self._progress.stage(f"training {learner.name} on {len(examples):,} solved topics"):
            header, arrays = made(examples, documents)
        stored = Stored.of({**self._about(key, examples), **header}, arrays)
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SearchappError(f"{path.parent} can't be made: {error.strerror}") from error
            files.write(path, stored)
            self._forget_old(learner, path)
        return MadeModel(learner.name, learner.left_out, stored, path, True)

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

    def _key(self, training: Mapping[str, Any], examples: Iterable[Example], documents: str) -> str:
        solved = [[one.topic.id, one.topic.text, dict(one.gold)] for one in examples]
        return digest_json(
            {
                "format": files.FORMAT,
                "training": training,
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

    def _path(self, kind: str, key: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{self._task.name}-{kind}-{key[:16]}.npz"

    def _forget_old(self, learner: _Learner, path: Path) -> None:
        with suppress(OSError):
            found = path.parent.glob(f"{self._task.name}-{learner.kind}-????????????????.npz")
            kept = sorted(found, key=lambda one: (one == path, one.stat().st_mtime_ns))
            for old in kept[: -learner.most_kept]:
                old.unlink(missing_ok=True)


def train(
    models: Models,
    recipe: Recipe,
    inputs: Callable[[], Inputs],
    *,
    rebuild: bool = False,
    workers: int = 1,
) -> list[MadeModel]:
    """The models of all trained signals of a recipe, and of its fusion, for which `inputs` are those of its signals.

    Of a signal that leaves topics out there is one for each topic of the split that is solved.

    Raises:
        UsageError: it has none.
        as `Models.of` and `Models.of_fusion` do.
    """
    if not recipe.trained and not recipe.is_learned:
        raise UsageError(
            f"the recipe {recipe.name} has nothing to train: choose one with the signal multiclass, multilabel or "
            "lines, or the fusion learned"
        )
    made = [
        models.of(signal, ranked, rebuild=rebuild, workers=workers)
        for signal in recipe.trained
        for ranked in (models.ranked() if signal.leaves_out else [""])
    ]
    return made + ([models.of_fusion(recipe, inputs(), rebuild=rebuild)] if recipe.is_learned else [])


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
