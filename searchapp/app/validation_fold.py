"""A fold of topics that are cross-validated, and the collection without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from searchapp.app.models import Models
from searchapp.engines.base import Index, OnDisk
from searchapp.formats.problems import Problems
from searchapp.model import Example, Topic
from searchapp.ranking.signals.base import Inputs, Solved
from searchapp.tasks.base import Collection
from searchapp.tasks.documents import DocumentSource


@dataclass(frozen=True, slots=True)
class Fold:
    """The topics of a fold, and what they are ranked by: `others` have other similarities."""

    topics: Sequence[Topic]
    inputs: Inputs
    engine: OnDisk
    view: Collection
    others: dict[str, OtherSimilarities] = field(default_factory=dict)


class OtherSimilarities:
    """The solved topics of a fold in an index with other similarities, which is opened when somebody asks for it.

    `models` are those that depend on similarities.
    """

    def __init__(self, fold: Fold, models: Models, like: Callable[[Index], Index]) -> None:
        self.models = models
        self._fold = fold
        self._like = like
        self._solved: Solved | None = None

    def solved(self) -> Solved:
        if self._solved is None:
            known = self._fold.inputs.examples()
            self._solved = Solved(self._like(known.index), known.gold)
        return self._solved

    def close(self) -> None:
        if self._solved is not None:
            self._solved.index.close()


class WithoutFold:
    """A collection whose solved topics are those of the other folds, and whose topics are those of one."""

    def __init__(self, whole: Collection, topics: Sequence[Topic], solved: Sequence[Example]) -> None:
        self._whole = whole
        self._topics = topics
        self._solved = solved

    @property
    def folder(self) -> Path:
        return self._whole.folder

    @property
    def documents(self) -> DocumentSource:
        return self._whole.documents

    @property
    def indexes(self) -> Mapping[str, DocumentSource]:
        return self._whole.indexes

    def index_of(self, split: str) -> str:
        return self._whole.index_of(split)

    def with_indexes(self, names: Mapping[str, str]) -> Collection:
        return WithoutFold(self._whole.with_indexes(names), self._topics, self._solved)

    def split_files(self, split: str) -> list[Path]:
        return self._whole.split_files(split)

    def gold_files(self, split: str) -> list[Path]:
        return self._whole.gold_files(split)

    def solved_splits(self, split: str) -> tuple[str, ...]:
        return self._whole.solved_splits(split)

    def solved_by(self, splits: Sequence[str]) -> Collection:
        return WithoutFold(self._whole.solved_by(splits), self._topics, self._solved)

    def example_files(self, split: str) -> list[Path]:
        return self._whole.example_files(split)

    def topics(self, split: str, problems: Problems) -> list[Topic]:  # noqa: ARG002  # they have been checked
        return list(self._topics)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:  # noqa: ARG002  # as the topics
        return iter(self._solved)

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        return self._whole.judged_example(topic, grades)

    def check_split(self, split: str, problems: Problems) -> int:
        return self._whole.check_split(split, problems)

    def is_masked(self, split: str) -> bool:
        return self._whole.is_masked(split)
