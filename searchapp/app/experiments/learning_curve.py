"""Learning curve: the score of unjudged topics by the number of judged ones.

At every point the same topics are scored. Of the others a growing sample, in several seeded orders, are training
topics.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from searchapp.app.comparison import Scoring, measure_names
from searchapp.app.evaluate import GoldSource
from searchapp.app.experiments.cross_validation import CrossValidation, CrossValidationRequest, TopicValues
from searchapp.config.settings import Settings
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.measures import require_measures
from searchapp.evaluation.significance import PairTests, mean, pair_tests, paired
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Example, Run, Topic
from searchapp.progress import Advance, Progress
from searchapp.ranking.ranker import Ranker, SignalAnswers, dependent_signals, learned_signals
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Signal
from searchapp.tasks.base import Grades
from searchapp.text import counted


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """The score with a number of judged topics."""

    judged: int
    judgments: float  # the mean number of judgments over the samples
    score: float  # the mean of `values`
    values: tuple[float, ...]  # the score with each sample
    # Point − first point, paired by topic, of means over samples; None for the first point.
    gain: PairTests | None = None


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The score of the test topics by the number of judged ones."""

    task: str
    split: str
    recipe: Mapping[str, Any]
    depth: int
    measure: str
    official: bool  # whether the measure ranks submissions
    test_topics: int
    pool_topics: int
    training_topics: int  # number of training topics at every point
    judgments: str  # "people" or "gold"
    repetitions: int
    seed: int
    points: tuple[LearningPoint, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


TAG = "learning-curve"
REPETITIONS = 5
CURVE_SEED = 2021
HALVINGS = 4  # how often the number of topics that can be judged is halved for the default points


@dataclass(frozen=True, slots=True)
class LearningRequest:
    """A recipe, and the topics of one split that are judged or scored, under the measure of `validation`."""

    validation: CrossValidationRequest
    recipe: Recipe
    points: tuple[int, ...] = ()  # numbers of judged topics; by default 0 and halvings of the largest one
    # How many topics are scored; by default half of those with gold, or all without judgments of people.
    test_topics: int | None = None
    judged: Grades | None = None  # the judgments of people; None for the gold
    repetitions: int = REPETITIONS  # samples of each point at which samples differ
    seed: int = CURVE_SEED
    judgments_only: bool = False  # whether judged topics are the only training topics

    @property
    def measures(self) -> tuple[str, ...]:
        return () if self.validation.measure is None else (self.validation.measure,)


def learning_curve(request: LearningRequest, settings: Settings, progress: Progress) -> LearningCurve:
    """Return the curve of a recipe on a split.

    Raises:
        UsageError: the recipe learns nothing, the topics are training topics, or there are too few for the points.
        DataError: files are invalid, or no figure has a value for each topic.
        EngineError: the engine failed.
    """
    if not request.recipe.learns:
        raise UsageError(
            f"the recipe {request.recipe.name} does not learn from training topics: choose one that does"
        )
    if request.measures:
        require_measures(Scoring(GoldSource(measures=request.measures)).measures(request.validation.task))
    with CrossValidation(request.validation, settings, progress) as validation:
        return _Learning(request, validation).curve(progress)


class _Learning:
    def __init__(self, request: LearningRequest, validation: CrossValidation) -> None:
        self._request = request
        self._validation = validation
        self._collection = validation.request.collection
        (split,) = validation.request.splits
        self._split = f"{validation.request.task.name} {split}"
        topics = {topic.id: topic for fold in validation.folds for topic in fold.topics}
        # In the order of their file, which does not depend on the folds.
        self._topics = [topics[topic] for topic in validation.topics]
        if split in self._collection.training_splits(split):
            raise UsageError(
                f"the topics of {self._split} are training topics themselves: choose a split that is not "
                "used for training"
            )
        training_topics = self._collection.examples(split, Problems(lenient=True))
        others = [example for example in training_topics if example.topic.id not in topics]
        self._training_topics: Sequence[Example] = [] if request.judgments_only else others
        self._pool, self._scored = self._divide()
        self._grades = validation.grades[split] if request.judged is None else request.judged
        self._previous: SignalAnswers | None = None
        self._measure = ""
        self._is_official = False

    def curve(self, progress: Progress) -> LearningCurve:
        request, validation = self._request, self._validation
        samples = {point: list(self._samples(point)) for point in self._point_sizes()}
        points: list[LearningPoint] = []
        first: TopicValues = {}
        with progress.stage("ranking samples", sum(map(len, samples.values()))) as advance:
            for judged, of_point in samples.items():
                values = [self._values(sample, advance) for sample in of_point]
                of_topics = {
                    topic.id: mean(known)
                    for topic in self._scored
                    if (known := [of_sample[topic.id] for of_sample in values if topic.id in of_sample])
                }
                first = first or of_topics
                scores = tuple(mean(list(of_sample.values())) for of_sample in values)
                points.append(
                    LearningPoint(
                        judged=judged,
                        judgments=mean(
                            [sum(len(self._grades[topic.id]) for topic in sample) for sample in of_point]
                        ),
                        score=mean(scores),
                        values=scores,
                        gain=pair_tests(paired(first, of_topics)) if points else None,
                    )
                )
        return LearningCurve(
            task=validation.request.task.name,
            split=validation.request.splits[0],
            recipe=request.recipe.manifest(),
            depth=validation.depth,
            measure=self._measure,
            official=self._is_official,
            test_topics=len(self._scored),
            pool_topics=len(self._pool),
            training_topics=len(self._training_topics),
            judgments="gold" if request.judged is None else "people",
            repetitions=request.repetitions,
            seed=request.seed,
            points=tuple(points),
        )

    def _divide(self) -> tuple[list[Topic], list[Topic]]:
        """Return the topics that can be judged, shuffled, and the test topics, in file order."""
        request = self._request
        shuffled = list(self._topics)
        random.Random(request.seed).shuffle(shuffled)
        if request.judged is not None:
            pool = [topic for topic in shuffled if topic.id in request.judged]
            scored = [topic for topic in shuffled if topic.id not in request.judged][: request.test_topics]
        else:
            count = len(shuffled) // 2 if request.test_topics is None else request.test_topics
            scored, pool = shuffled[:count], shuffled[count:]
        if not pool or not scored:
            lack = "judged" if not pool else "unjudged"
            raise UsageError(
                f"no topic of {self._split} with gold is {lack}: "
                + (
                    "judge some of its topics, not all"
                    if request.judged is not None
                    else "lower --test-topics"
                )
            )
        chosen = {topic.id for topic in scored}
        return pool, [topic for topic in self._topics if topic.id in chosen]

    def _point_sizes(self) -> list[int]:
        most = len(self._pool)
        points = sorted(set(self._request.points)) or sorted(
            {0, *(most >> halvings for halvings in range(HALVINGS + 1))}
        )
        if points[-1] > most:
            raise UsageError(
                f"only {counted(most, 'topic')} can be judged, fewer than {points[-1]:,}: "
                "lower --points or --test-topics"
            )
        if not points[0] and not self._training_topics and not self._fixed_signals():
            raise UsageError(
                f"the recipe {self._request.recipe.name} ranks nothing without training topics: give "
                "--points of at least 1"
            )
        return points

    def _samples(self, point: int) -> Iterator[Sequence[Topic]]:
        """Yield samples of a size, each within the sample of a larger point; one if all are equal."""
        for repetition in range(self._request.repetitions):
            order = list(self._pool)
            random.Random(f"{self._request.seed}:{repetition}").shuffle(order)
            yield order[:point]
            if point in (0, len(self._pool)):
                return

    def _values(self, sample: Sequence[Topic], advance: Advance) -> TopicValues:
        rankings = {ranking.topic_id: ranking for ranking in self._rank(sample)}
        name = counted(len(sample), "judged topic")
        scored = self._validation.scored(name, rankings, self._request.measures)
        self._measure = measure_names([scored], self._request.measures)[0]
        self._is_official = self._measure == scored.evaluation.official.measure
        values = scored.values[self._measure]
        advance(1)
        return {topic: value for topic in rankings if (value := values.get(topic)) is not None}

    def _fixed_signals(self) -> list[Signal]:
        signals = self._request.recipe.signals
        changing = dependent_signals(signals, learned_signals(signals))
        return [signal for index, signal in enumerate(signals) if index not in changing]

    def _rank(self, sample: Sequence[Topic]) -> Run:
        recipe, depth = self._request.recipe, self._validation.depth
        examples = [self._collection.judged_example(topic, self._grades[topic.id]) for topic in sample]
        # An example without an answer teaches nothing.
        known = {
            example.topic.id: example
            for example in (*self._training_topics, *(example for example in examples if example.gold))
        }
        fold = self._validation.ranked_by(self._scored, list(known.values()))
        if not known:
            fixed = self._fixed_signals()
            if not fixed:
                raise DataError(
                    f"the sample of {counted(len(sample), 'judged topic')} contains no relevant document to learn from"
                )
            plain = replace(recipe, signals=tuple(fixed), fusion=recipe.fusion.unlearned)
            return Ranker(plain, fold.inputs).rank(self._scored, depth, TAG)
        try:
            self._previous = SignalAnswers(
                recipe,
                fold.inputs,
                self._scored,
                depth,
                before=self._previous,
                again=learned_signals(recipe.signals),
            )
        except DataError as error:
            raise DataError(f"with {counted(len(sample), 'judged topic')}, {error}") from error
        return self._previous.run(TAG)[0]
