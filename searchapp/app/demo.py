"""Run the steps of `searchapp demo` on the shipped samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from searchapp import tasks
from searchapp.app.evaluate import Evaluation, GoldSource, evaluate
from searchapp.app.index import index_task, open_index, read_examples
from searchapp.app.rank import RunRequest, make_run
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.engines.base import Engine
from searchapp.evaluation.base import ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Example, Topic
from searchapp.progress import SilentProgress
from searchapp.ranking import recipes
from searchapp.ranking.search_results import SearchResult
from searchapp.resources import SAMPLES
from searchapp.tasks.base import Collection, Task
from searchapp.tasks.nlps import scorer

PLAIN = "bm25"  # the recipe of every task that uses only the engine

LEARNING = "neighbours"  # the recipe that learns from training topics and judged ones

DIRECT = 5  # weight of direct hits for the learning recipe with few training topics: chosen on the samples

OPTIONS = ScorerOptions(cutoff=50)  # the official cut-off of nlps is 500 premises; its sample has 70

TRAINING_SPLIT = "train"


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample collection, and the split that is ranked."""

    task: Task
    collection: Collection
    split: str

    @property
    def data(self) -> Path:
        return self.collection.folder


@dataclass(frozen=True, slots=True)
class JudgingEffect:
    """The official figure on topics that were not judged, before and after judging others."""

    judged: tuple[Topic, ...]
    others: int
    measure: str
    before: float
    after: float


def samples() -> list[Sample]:
    """Return the sample collections, in the order of the tasks."""
    return [_sample(tasks.load(name)) for name in tasks.names() if (SAMPLES / name).is_dir()]


def _sample(task: Task) -> Sample:
    collection = task.collection(SAMPLES / task.name)
    split = next(
        split
        for split in task.info.splits
        if split != TRAINING_SPLIT and all(file.exists() for file in collection.split_files(split))
    )
    return Sample(task, collection, split)


def index_sample(sample: Sample, engine: Engine) -> int:
    """Index a sample and return the number of its documents."""
    return index_task(sample.task, engine, sample.collection, SilentProgress()).info.documents


def search_sample(sample: Sample, engine: Engine, words: str, size: int) -> list[SearchResult]:
    """Search a sample for words."""
    searcher = TaskSearcher(sample.task, engine, open_index(sample.task, engine), SilentProgress())
    return searcher.search(SearchRequest(words, size=size))


@dataclass(frozen=True, slots=True)
class RecipeFigures:
    """The figures of the plain recipe, and of the one that learns from `training_topics`."""

    plain: Evaluation
    learning: Evaluation
    # The learning recipe with the weight DIRECT, if its own weight is worse than the plain one.
    weighed: Evaluation | None
    training_topics: int


def compare_recipes(sample: Sample, engine: Engine, folder: Path) -> RecipeFigures:
    """Rank a sample with both recipes, and score them."""

    def scored(recipe: str, overrides: Mapping[str, object]) -> Evaluation:
        run = folder / "-".join((sample.task.name, recipe, *overrides))
        return _evaluation(sample, engine, run, recipe, overrides=overrides)

    plain, learning = scored(PLAIN, {}), scored(LEARNING, {})
    is_behind = learning.official.value < plain.official.value
    return RecipeFigures(
        plain,
        learning,
        scored(LEARNING, {"direct": DIRECT}) if is_behind else None,
        len(read_examples(sample.task, sample.collection, sample.split, SilentProgress())),
    )


def measure_judging(sample: Sample, engine: Engine, folder: Path) -> JudgingEffect:
    """Judge every second topic of the nlps sample as its gold does, and rank the others again."""
    (gold_file,) = sample.collection.gold_files(sample.split)
    gold = scorer.honest_qrels(scorer.read_gold(gold_file))
    topics = sample.collection.topics(sample.split, Problems())
    judged = tuple(topics[::2])
    examples = tuple(sample.collection.judged_example(topic, gold[topic.id]) for topic in judged)
    before = _evaluation(sample, engine, folder / "before", LEARNING)
    after = _evaluation(sample, engine, folder / "after", LEARNING, examples)
    others = [topic.id for topic in topics if topic not in judged]
    return JudgingEffect(
        judged, len(others), before.official.measure, _mean(before, others), _mean(after, others)
    )


def _mean(evaluation: Evaluation, topics: list[str]) -> float:
    figures = [evaluation.official.per_topic[topic] for topic in topics]
    return sum(figure for figure in figures if isinstance(figure, float)) / len(figures)


def _evaluation(
    sample: Sample,
    engine: Engine,
    run: Path,
    recipe: str,
    judged: tuple[Example, ...] = (),
    overrides: Mapping[str, object] | None = None,
) -> Evaluation:
    task = sample.task
    request = RunRequest(
        sample.collection,
        sample.split,
        recipes.load(task.recipe_book(), recipe, overrides),
        task.info.default_depth,
        "searchapp-demo",
        judged=judged,
    )
    make_run(task, engine, request, run, SilentProgress())
    (evaluation,) = evaluate([run], GoldSource(data=sample.data, split=sample.split, options=OPTIONS))
    return evaluation
