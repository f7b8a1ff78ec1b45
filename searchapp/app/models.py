"""Train and store the models of trained signals and learned fusions, and provide what signals may ask for.

Models are in the home folder. A learned fusion is trained on cross-fitted answers: the signals rank each
solved topic without its own votes. `signal_inputs` provides solved topics, their labels and the texts of all
documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from searchapp.app.index import index_examples, lenient_advice, read_examples
from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import DocumentsDigest, digest_json
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example
from searchapp.progress import Progress
from searchapp.ranking import learning
from searchapp.ranking.fusion import FUSION, REACH, Asking, LearnedFusion
from searchapp.ranking.learning import StoredModel
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Answer, GradedDocuments, Inputs, SolvedTopics, Trained, gold_of
from searchapp.ranking.signals.terms import TermSpace, terms_of
from searchapp.tasks.base import Collection, Task
from searchapp.text import counted


def crossfitted_answers(
    recipe: Recipe,
    inputs: Inputs,
    examples: Sequence[Example],
    documents: Sequence[Document],
    progress: Progress,
) -> Asking:
    """Asks the signals of a recipe about some of the examples, without the votes of those that are withheld.

    Trained signals are trained on the others each time.
    """
    assert isinstance(recipe.fusion, LearnedFusion)
    plain = replace(recipe, fusion=recipe.fusion.unlearned)

    def asked(
        some: Sequence[Example], withheld: frozenset[str]
    ) -> Iterator[tuple[Example, Sequence[Answer]]]:
        ranker = Ranker(plain, _without(withheld, inputs, examples, documents))
        with progress.stage("asking about solved topics", len(some)) as advance:
            yield from zip(some, ranker.answers([one.topic for one in some], REACH, advance), strict=True)

    return asked


def _without(
    withheld: frozenset[str], inputs: Inputs, examples: Sequence[Example], documents: Sequence[Document]
) -> Inputs:
    """The inputs of signals, as they would be had some topics not been solved."""
    others = [one for one in examples if one.topic.id not in withheld]

    @cache  # several signals ask the same
    def solved() -> SolvedTopics:
        return inputs.examples().without(withheld)

    def labels() -> GradedDocuments:
        known = inputs.labels()
        gold = {topic: answers for topic, answers in known.gold.items() if topic not in withheld}
        return GradedDocuments(known.documents, gold)

    def model(signal: Trained, ranked: str = "") -> StoredModel:  # noqa: ARG001  # it is among those withheld
        return StoredModel.of(*signal.train(others, documents, 1))

    return replace(
        inputs,
        examples=solved,
        labels=labels,
        terms=cache(lambda: inputs.terms().without(withheld)),
        model=model,
    )


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
    stored: StoredModel
    path: Path | None
    is_new: bool


class _Learner(NamedTuple):
    """What a model is for: its name in the recipe, its kind, and what it depends on beside the solved topics.

    `withheld` are the solved topics that it must not see, `left_out` names the one where there is a model for each
    topic. `most_kept` is how many of its kind are kept.
    """

    name: str
    kind: str
    training: Mapping[str, Any]
    withheld: frozenset[str]
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
        withheld = frozenset([left_out] if left_out else []) if signal.leaves_out else self._withheld
        learner = _Learner(signal.name, signal.kind, signal.training(), withheld, left_out, signal.most_kept)
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

    @cached_property
    def _withheld(self) -> frozenset[str]:
        """The solved topics that the split ranks too, although it is not a split of solved topics itself."""
        if self._split in self._collection.solved_splits(self._split):
            return frozenset()
        examples, _documents, _digest = self._inputs()
        judged = {one.topic.id for one in self._judged}
        ranked = {topic.id for topic in self._collection.topics(self._split, Problems(lenient=True))}
        return frozenset(one.topic.id for one in examples if one.topic.id in ranked - judged)

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
        assert isinstance(learned, LearnedFusion)  # the caller has asked `recipe.is_learned`

        def made(examples: Sequence[Example], documents: Sequence[Document]) -> Model:
            asking = crossfitted_answers(recipe, inputs, examples, documents, self._progress)
            return learned.train([(one.name, one.weight) for one in recipe.signals], examples, asking)

        training = {
            "fusion": learned.manifest(),
            "signals": [signal.manifest() for signal in recipe.signals],
            "parameters": dict(recipe.parameters),
            "index": inputs.index.info.digest,
            "examples_mapping": self._task.examples_index_mapping(),
            "topics_are_documents": inputs.topics_are_documents,
        }
        return self._of(_Learner(FUSION, LearnedFusion.kind, training, self._withheld), made, rebuild=rebuild)

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
        solved = [one for one in examples if one.topic.id not in learner.withheld]
        if not solved:
            raise DataError(
                f"every solved topic of {self._task.reference} is also a topic of {self._split}, so that "
                f"{learner.name} has nothing to learn from: choose another recipe"
            )
        # A fusion is not trained on these either, but they vote for others while it is trained.
        also_ranked = (
            [] if learner.left_out else [one for one in examples if one.topic.id in learner.withheld]
        )
        versions = learning.versions()
        key = self._key(learner.training, solved, digest, also_ranked, versions)
        path = self._path(learner.kind, key)
        if path is not None and path.exists() and not rebuild:
            stored = learning.read_model(path)
            if stored.header.get("key") != key:
                raise DataError(f"{path} is the model of other solved topics: remove it")
            return MadeModel(learner.name, learner.left_out, stored, path, False)
        learning.require_learn()
        with self._progress.stage(f"training {learner.name} on {counted(len(solved), 'solved topic')}"):
            header, arrays = made(solved, documents)
        about = self._about(key, versions, solved)
        about |= {"withheld": sorted(one.topic.id for one in also_ranked)} if also_ranked else {}
        stored = StoredModel.of({**about, **header}, arrays)
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SearchappError(f"{path.parent} can't be made: {error.strerror}") from error
            learning.write_model(path, stored)
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

    def _key(
        self,
        training: Mapping[str, Any],
        solved: Iterable[Example],
        documents: str,
        withheld: Iterable[Example],
        versions: Mapping[str, str],
    ) -> str:
        return digest_json(
            {
                "format": learning.MODEL_FORMAT,
                "versions": versions,
                "training": training,
                "solved": _digest(solved),
                "judged": sorted(one.topic.id for one in self._judged),
                "documents": documents,
                "withheld": _digest(withheld),
            }
        )

    def _about(self, key: str, versions: Mapping[str, str], examples: Sequence[Example]) -> dict[str, Any]:
        """What a model's header says of where it comes from."""
        judged = {one.topic.id for one in self._judged}
        return {
            "key": key,
            "task": self._task.name,
            "versions": versions,
            "solved": len(examples),
            # A judged topic is ranked all the same: the run says what it learned from, and who scores is told.
            "topics": sorted(one.topic.id for one in examples if one.topic.id not in judged),
        }

    def _path(self, kind: str, key: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{self._task.name}-{kind}-{key[:16]}.npz"

    def _forget_old(self, learner: _Learner, path: Path) -> None:
        with suppress(OSError):
            found = path.parent.glob(f"{self._task.name}-{learner.kind}-????????????????.npz")
            kept = sorted(found, key=lambda one: (one == path, one.stat().st_mtime_ns))
            for old in kept[: -learner.most_kept]:
                old.unlink(missing_ok=True)


def _digest(examples: Iterable[Example]) -> str:
    # The gold as a list: its order decides which of several answers a signal takes for the best.
    return digest_json([[one.topic.variables(), list(one.gold.items())] for one in examples])


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


def withheld_warnings(counts: Iterable[int], split: str) -> list[str]:
    """A sentence about the solved topics that models were trained without because the split ranks them."""
    return [
        f"1 solved topic is also a topic of {split}: the models were trained without it"
        if count == 1
        else f"{count:,} solved topics are also topics of {split}: the models were trained without them"
        for count in sorted(set(counts))
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
        **({"withheld": len(header["withheld"])} if "withheld" in header else {}),
        "labels": len(header["labels"]),
        "features": len(header["features"]),
        "versions": dict(header["versions"]),
    }


def signal_inputs(
    task: Task,
    engine: Engine,
    index: Index,
    split_of: Callable[[], tuple[Collection, str]],
    progress: Progress,
    problems: Problems,
    judged: Sequence[Example] = (),
    home: Path | None = None,
) -> Inputs:
    """The inputs of signals over an index; each is read, or indexed, when a signal asks for it.

    `split_of` gives the collection and the split whose topics are ranked. `problems` takes those of the solved topics,
    before whose gold the `judged` topics go. Models are kept in `home`, see `app.models`.
    """

    def documents() -> Iterable[Document]:
        collection, _ = split_of()
        return collection.documents.read(Problems(lenient=True))

    @cache  # several signals ask the same index
    def examples() -> SolvedTopics:
        solved, found = index_examples(task, engine, *split_of(), progress, judged, problems)
        return SolvedTopics(solved, gold_of(found))

    def labels() -> GradedDocuments:
        found = read_examples(task, *split_of(), progress, judged, problems)
        return GradedDocuments({document.id: document for document in documents()}, gold_of(found))

    @cache  # several signals ask in the same space
    def terms() -> TermSpace:
        collection, split = split_of()
        has_solved = judged or collection.example_files(split)
        found = read_examples(task, collection, split, progress, judged, problems) if has_solved else []
        return TermSpace(list(documents()), found, terms_of(task.index_mapping()))

    @cache
    def models() -> Models:
        return Models(task, *split_of(), progress, home, judged, problems)

    def model(signal: Trained, ranked: str = "") -> StoredModel:
        return models().of(signal, ranked).stored

    def fusion(recipe: Recipe) -> StoredModel:
        return models().of_fusion(recipe, inputs).stored

    inputs = Inputs(index, task.info.topics_are_documents, examples, labels, documents, terms, model, fusion)
    return inputs


def typed_inputs(
    task: Task,
    engine: Engine,
    index: Index,
    opened: Callable[[], Collection],
    progress: Progress,
    home: Path | None = None,
) -> Inputs:
    """The inputs for what a person types: the solved topics are those that the task's last split is ranked by.

    `opened` gives the task's files when a signal needs them; what can't be read in them is left out. Models are kept in
    `home`.
    """

    @cache
    def split_of() -> tuple[Collection, str]:
        collection = opened()
        return collection, last_solved(task, collection)

    return signal_inputs(task, engine, index, split_of, progress, Problems(lenient=True), home=home)


def last_solved(task: Task, collection: Collection) -> str:
    """Return the last split whose solved topics are all there; of a task without solved topics the last split.

    Raises:
        DataError: the files of all solved topics are missing.
    """
    found = {split: collection.example_files(split) for split in reversed(task.info.splits)}
    for split, files in found.items():
        if all(file.exists() for file in files) and (files or not any(found.values())):
            return split
    raise DataError(f"{collection.folder} has no solved topics for {task.reference}: choose another recipe")
