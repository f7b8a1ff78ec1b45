"""Scores a run directory or an official file: the official figure, and the honest ones beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp import tasks
from searchapp.digests import digest_file
from searchapp.errors import DataError, NotScorable, UsageError
from searchapp.evaluation import nlps
from searchapp.evaluation.base import OfficialScore
from searchapp.evaluation.measures import Measures, measure
from searchapp.formats import two_column
from searchapp.runs import directory
from searchapp.tasks.base import Task

Predictions = Mapping[str, Sequence[str | None]]


@dataclass(frozen=True, slots=True)
class GoldSource:
    """Where the gold comes from, as far as the person has said.

    `gold` is a file; without it the gold is that of `split` in the folder `data`. A run directory knows its
    task, split and folder; what is said here comes before that.
    """

    task: str | None = None
    data: Path | None = None
    split: str | None = None
    gold: Path | None = None
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of one run, as fractions.

    `topics` is the number of topics with gold. `official` is what the organisers' scorer yields, `measures`
    has the field's own, in ir-measures' notation. `warnings` say where a figure misleads.
    """

    source: str
    task: str
    split: str | None
    topics: int
    official: OfficialScore
    measures: Measures
    warnings: tuple[str, ...]

    def to_json(self, *, per_topic: bool = False) -> dict[str, Any]:
        """The JSON that `evaluate --json` prints; with `per_topic` the figures of each topic too."""
        official: dict[str, Any] = {"measure": self.official.measure, "value": self.official.value}
        described: dict[str, Any] = {
            "source": self.source,
            "task": self.task,
            "split": self.split,
            "topics": self.topics,
            "official": official,
            "measures": dict(self.measures.values),
            "breakdowns": {},
            "judged": None,
            "warnings": list(self.warnings),
        }
        if per_topic:
            official["per_topic"] = dict(self.official.per_topic)
            described["per_topic"] = {name: dict(values) for name, values in self.measures.per_topic.items()}
        return described


def evaluate(source: Path, gold: GoldSource, nearest: int | None = None) -> Evaluation:
    """Score a run directory, or an official file.

    `nearest` is the cut-off of the nlps scorer, its own by default.

    Raises:
        NotScorable: the organisers' scorer stops on this file or refuses it.
        UsageError: it isn't said what the gold is.
        DataError: the run or the gold is not what it should be, or the gold is masked.
    """
    if source.is_dir():
        return _evaluate_run(source, gold, nearest)
    if not source.exists():
        raise UsageError(
            f"there is no run directory or file {source}: `searchapp rank` makes a run directory"
        )
    if gold.task is None:
        raise UsageError(
            f"{source} is a file: name its task with --task, and its gold with --split or --gold"
        )
    task = tasks.load(gold.task)
    return _scored(
        source, task, gold.split, _gold_file(task, gold), two_column.read_two_column(source), nearest
    )


def _evaluate_run(path: Path, gold: GoldSource, nearest: int | None) -> Evaluation:
    stored = directory.read(path)
    manifest = stored.manifest
    if gold.task not in (None, manifest.task):
        raise UsageError(f"{path} is a run of {manifest.task}, not of {gold.task}: leave out --task")
    task = tasks.load(manifest.task)
    split = gold.split or manifest.split
    own = GoldSource(task.name, gold.data or Path(manifest.data), split, gold.gold)
    gold_file = _gold_file(task, own)
    # The same way as through a file: what is scored is what the organisers would see.
    rows = ((ranking.topic_id, document) for ranking in stored.run for document in ranking.document_ids())
    predictions = two_column.gather(rows)
    warnings = []
    digest = manifest.data_digests.get(gold_file.name)
    if digest and gold_file.is_file() and digest_file(gold_file) != digest:
        warnings.append(f"{gold_file} has changed since the run {path} was made from it")
    if digest_file(path / directory.RANKINGS) != manifest.files.get(directory.RANKINGS):
        warnings.append(f"{path / directory.RANKINGS} has changed since the run was written")
    return _scored(path, task, split, gold_file, predictions, nearest, warnings)


def _gold_file(task: Task, gold: GoldSource) -> Path:
    if gold.gold is not None:
        return gold.gold
    if gold.split is None:
        raise UsageError(f"say which gold to score {task.name} against: --split with --data, or --gold")
    data = gold.data
    if data is None and gold.home is not None:
        data = gold.home / "data" / task.name
    return task.split_file(data or Path(), gold.split)


def _scored(
    source: Path,
    task: Task,
    split: str | None,
    gold_file: Path,
    predictions: Predictions,
    nearest: int | None,
    warnings: Sequence[str] = (),
) -> Evaluation:
    if split == "test" and task.is_masked(gold_file):
        raise DataError(f"{gold_file}: the gold is masked, so nothing can be scored: choose another split")
    gold = nlps.read_gold(gold_file)
    try:
        official = nlps.score(predictions, gold, nearest or nlps.NEAREST)
    except NotScorable as error:
        raise NotScorable(f"{source}: {error.problem}", error.official) from error
    return Evaluation(
        source=str(source),
        task=task.name,
        split=split,
        topics=len(gold),
        official=official,
        measures=measure(nlps.honest_rankings(predictions), nlps.honest_qrels(gold), task.measures),
        warnings=(*warnings, *official.warnings),
    )
