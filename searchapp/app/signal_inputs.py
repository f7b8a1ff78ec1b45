"""What the signals of a recipe may ask for: solved topics, their labels, the texts of all documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from searchapp.app.models import Models
from searchapp.app.solved_index import index_examples, read_examples
from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example
from searchapp.progress import Progress
from searchapp.ranking.learning.files import Stored
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.signals.base import Inputs, Labels, Solved, gold_of
from searchapp.ranking.signals.terms import TermSpace, terms_of
from searchapp.ranking.signals.trained import Trained
from searchapp.tasks.base import Collection, Task


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
    def examples() -> Solved:
        solved, found = index_examples(task, engine, *split_of(), progress, judged, problems)
        return Solved(solved, gold_of(found))

    def labels() -> Labels:
        found = read_examples(task, *split_of(), progress, judged, problems)
        return Labels({document.id: document for document in documents()}, gold_of(found))

    @cache  # several signals ask in the same space
    def terms() -> TermSpace:
        found = read_examples(task, *split_of(), progress, judged, problems)
        return TermSpace(list(documents()), found, terms_of(task.index_mapping()))

    @cache
    def models() -> Models:
        return Models(task, *split_of(), progress, home, judged, problems)

    def model(signal: Trained, ranked: str = "") -> Stored:
        return models().of(signal, ranked).stored

    def fusion(recipe: Recipe) -> Stored:
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
    """The last split whose solved topics are all there.

    Raises:
        DataError: there is none.
    """
    for split in reversed(task.info.splits):
        files = collection.example_files(split)
        if files and all(file.exists() for file in files):
            return split
    raise DataError(f"{collection.folder} has no solved topics for {task.reference}: choose another recipe")
