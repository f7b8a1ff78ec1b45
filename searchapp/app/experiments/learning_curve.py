"""Learning curve: the score of unjudged topics by the number of judged ones.

Topics are divided once, by a seed: some are never judged, and these alone are scored, at every point of the
curve. Of the others a growing sample, in several seeded orders, counts as solved like the topics of train.
Judgments are those of people or, in their place, the gold. Figures are those of `evaluate`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from searchapp.app.comparison import Scoring, measure_names, scored_rankings
from searchapp.app.evaluate import GoldSource
from searchapp.app.experiments.cross_validation import CrossValidation, CrossValidationRequest, run_of_all
from searchapp.config.settings import Settings
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.measures import require_measures
from searchapp.evaluation.significance import PairTests, mean, pair_tests, paired
from searchapp.formats.problems import Problems
from searchapp.model import Example, Run, Topic
from searchapp.progress import Advance, Progress
from searchapp.ranking.ranker import Ranker, SignalAnswers, dependent_signals, learned_signals
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Signal
from searchapp.tasks.base import Grades
from searchapp.text import counted


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """So many judged topics, with so many `judgments` on average.

    `values` has the score of each sample of so many topics, `score` is their mean. `gain` tests the scores of topics,
    each the mean over the samples, against those of the first point: None for the first point itself.
    """

    judged: int
    judgments: float
    score: float
    values: tuple[float, ...]
    gain: PairTests | None = None


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The score of `unjudged` topics by the number of judged ones, of which there can be `can_be_judged`.

    `official` says whether the measure ranks submissions. `solved` topics are so from the beginning. `judgments` are
    those of "people", or "gold" stands in for them.
    """

    task: str
    split: str
    recipe: Mapping[str, Any]
    depth: int
    measure: str
    official: bool
    unjudged: int
    can_be_judged: int
    solved: int
    judgments: str
    repetitions: int
    seed: int
    points: tuple[LearningPoint, ...]

    def to_json(self) -> dict[str, Any]:
        """What `learning-curve --json` prints."""
        return asdict(self)


TAG = "learning-curve"
REPETITIONS = 5
SEED = 2021
HALVINGS = 4
"""How often the number of topics that can be judged is halved for the points, where nobody names them."""

Values = Mapping[str, float]
"""A value a topic."""


@dataclass(frozen=True, slots=True)
class LearningRequest:
    """What is learned from, and what is scored: the topics of one split, under the measure of `validation`.

    `points` are numbers of judged topics, by default 0 and halvings of as many as can be. `unjudged` is how many topics
    are scored, by default half of those with gold or, with the judgments of people, all that nobody has judged.
    `judged` has these judgments; without, the gold stands in for them. Each point at which samples differ is an average
    over `repetitions` of them. With `alone` judged topics are the only solved ones.
    """

    validation: CrossValidationRequest
    recipe: Recipe
    points: tuple[int, ...] = ()
    unjudged: int | None = None
    judged: Grades | None = None
    repetitions: int = REPETITIONS
    seed: int = SEED
    alone: bool = False

    @property
    def measures(self) -> tuple[str, ...]:
        """The measure that is asked for, none for the official one."""
        return () if self.validation.measure is None else (self.validation.measure,)


def learning_curve(request: LearningRequest, settings: Settings, progress: Progress) -> LearningCurve:
    """The curve of a recipe on a split.

    Raises:
        UsageError: the recipe learns nothing, the topics are solved already, or there are too few for the points.
        DataError: files are not what they should be, or no figure has a value for each topic.
        EngineError: the engine failed.
    """
    if not request.recipe.learns:
        raise UsageError(
            f"the recipe {request.recipe.name} does not learn from solved topics: choose one that does"
        )
    if request.measures:
        require_measures(Scoring(GoldSource(measures=request.measures)).measures(request.validation.task))
    with CrossValidation(request.validation, settings, progress) as validation:
        return _Learning(request, validation).curve(progress)


class _Learning:
    def __init__(self, request: LearningRequest, validation: CrossValidation) -> None:
        self._request = request
        self._validation = validation
        self._task, collection = validation.request.task, validation.request.collection
        (self._split,) = validation.request.splits
        self._scoring = Scoring(validation.source(self._split, request.measures))
        self._gold = validation.grades[self._split]
        topics = {topic.id: topic for fold in validation.folds for topic in fold.topics}
        # In the order of their file, whatever the folds are.
        self._topics = [topics[topic] for topic in validation.topics]
        if self._split in collection.solved_splits(self._split):
            raise UsageError(
                f"the topics of {self._task.name} {self._split} are solved ones themselves, so that nothing is left to "
                "judge: choose a split that is ranked by others"
            )
        solved = collection.examples(self._split, Problems(lenient=True))
        others = [one for one in solved if one.topic.id not in topics]
        self._solved: Sequence[Example] = [] if request.alone else others
        self._pool, self._scored = self._divided()
        self._grades = self._gold if request.judged is None else request.judged
        self._before: SignalAnswers | None = None
        self._measure = ""
        self._is_official = False

    def curve(self, progress: Progress) -> LearningCurve:
        """Rank and score every sample."""
        request = self._request
        points = self._points()
        samples = {point: list(self._samples(point)) for point in points}
        total = sum(map(len, samples.values()))
        found: list[LearningPoint] = []
        first: Values = {}
        with progress.stage("ranking samples", total) as advance:
            for point in points:
                values = [self._values(sample, advance) for sample in samples[point]]
                of_topics = {
                    topic.id: mean(known)
                    for topic in self._scored
                    if (known := [one[topic.id] for one in values if topic.id in one])
                }
                first = first or of_topics
                of_samples = tuple(mean(list(one.values())) for one in values)
                found.append(
                    LearningPoint(
                        judged=point,
                        judgments=mean([self._judgments(sample) for sample in samples[point]]),
                        score=mean(of_samples),
                        values=of_samples,
                        gain=pair_tests(paired(first, of_topics)) if point != points[0] else None,
                    )
                )
        return LearningCurve(
            task=self._task.name,
            split=self._split,
            recipe=request.recipe.manifest(),
            depth=self._validation.depth,
            measure=self._measure,
            official=self._is_official,
            unjudged=len(self._scored),
            can_be_judged=len(self._pool),
            solved=len(self._solved),
            judgments="gold" if request.judged is None else "people",
            repetitions=request.repetitions,
            seed=request.seed,
            points=tuple(found),
        )

    def _divided(self) -> tuple[list[Topic], list[Topic]]:
        """The topics that can be judged, in a seeded order, and those that are scored, in the order of their file."""
        request = self._request
        shuffled = list(self._topics)
        random.Random(request.seed).shuffle(shuffled)
        wanted = request.unjudged
        if request.judged is not None:
            pool = [topic for topic in shuffled if topic.id in request.judged]
            scored = [topic for topic in shuffled if topic.id not in request.judged][:wanted]
        else:
            count = len(shuffled) // 2 if wanted is None else wanted
            scored, pool = shuffled[:count], shuffled[count:]
        if not pool or not scored:
            what = "judged" if not pool else "left unjudged"
            raise UsageError(
                f"no topic of {self._task.name} {self._split} with gold is {what}: "
                + ("judge some of its topics, not all" if request.judged is not None else "lower --unjudged")
            )
        chosen = {topic.id for topic in scored}
        return pool, [topic for topic in self._topics if topic.id in chosen]

    def _points(self) -> list[int]:
        most = len(self._pool)
        points = sorted(set(self._request.points)) or sorted(
            {0, *(most >> halvings for halvings in range(HALVINGS + 1))}
        )
        if points[-1] > most:
            raise UsageError(
                f"there {'is' if most == 1 else 'are'} {counted(most, 'topic')} that can be judged, not "
                f"{points[-1]:,}: lower --points or --unjudged"
            )
        recipe = self._request.recipe
        if not points[0] and not self._solved and not self._fixed():
            raise UsageError(
                f"without any solved topic the recipe {recipe.name} ranks nothing: name --points from 1 on"
            )
        return points

    def _samples(self, point: int) -> Iterator[Sequence[Topic]]:
        """Samples of so many topics, each of those of the point before and others; one where all are the same."""
        for repetition in range(self._request.repetitions):
            order = list(self._pool)
            random.Random(f"{self._request.seed}:{repetition}").shuffle(order)
            yield order[:point]
            if point in (0, len(self._pool)):
                return

    def _judgments(self, sample: Sequence[Topic]) -> int:
        return sum(len(self._grades[topic.id]) for topic in sample)

    def _values(self, sample: Sequence[Topic], advance: Advance) -> Values:
        """The value of each scored topic where a sample is judged."""
        rankings = {one.topic_id: one for one in self._ranked(sample)}
        run = run_of_all(rankings, [topic.id for topic in self._topics])
        name = counted(len(sample), "judged topic")
        scored = scored_rankings(name, run, self._scoring, self._task, self._gold)
        names = measure_names([scored], self._request.measures)
        self._measure = names[0]
        self._is_official = names[0] == scored.evaluation.official.measure
        values = scored.values[names[0]]
        advance(1)
        return {topic: value for topic in rankings if (value := values.get(topic)) is not None}

    def _fixed(self) -> list[Signal]:
        """The signals that rank without anything being solved."""
        signals = self._request.recipe.signals
        changing = dependent_signals(signals, learned_signals(signals))
        return [signal for place, signal in enumerate(signals) if place not in changing]

    def _ranked(self, sample: Sequence[Topic]) -> Run:
        recipe, depth = self._request.recipe, self._validation.depth
        collection = self._validation.request.collection
        examples = [collection.judged_example(topic, self._grades[topic.id]) for topic in sample]
        # What has no answer teaches nothing.
        known = {one.topic.id: one for one in (*self._solved, *(one for one in examples if one.gold))}
        fold = self._validation.ranked_by(self._scored, list(known.values()))
        if not known:
            fixed = self._fixed()
            if not fixed:
                raise DataError(
                    f"nothing can be learned from {counted(len(sample), 'judged topic')} without an answer"
                )
            plain = replace(recipe, signals=tuple(fixed), fusion=recipe.fusion.unlearned)
            return Ranker(plain, fold.inputs).rank(self._scored, depth, TAG)
        again = learned_signals(recipe.signals)
        try:
            apart = SignalAnswers(recipe, fold.inputs, self._scored, depth, before=self._before, again=again)
        except DataError as error:
            raise DataError(f"with {counted(len(sample), 'judged topic')}, {error}") from error
        self._before = apart
        return apart.run(TAG)[0]
