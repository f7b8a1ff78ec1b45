"""Topics of a run or a live ranking beside their gold: figures, ranks of the gold, missed gold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from searchapp.app.evaluate import field_figures, judged_figures, official_figures
from searchapp.app.inspection.explanation import (
    Explainer,
    RankExplanation,
    RankStatus,
    Reason,
    TopicRequest,
)
from searchapp.app.inspection.live_ranking import TopicRanker, open_live_pages, usual_split
from searchapp.app.inspection.pages import LocalFirst, RunPages, readable_topics, recipe_of, require_topic
from searchapp.app.topic_figures import FiguresByTopic, Order, TopicFigures, topic_ids
from searchapp.config.settings import Settings
from searchapp.embeddings.reranking import Reranking
from searchapp.engines import open_engine
from searchapp.errors import SearchappError, UsageError
from searchapp.evaluation.base import GoldFiles, ScorerOptions, topic_measure_name
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Ranking, Run
from searchapp.progress import Progress
from searchapp.ranking import recipes
from searchapp.tasks.base import Collection, DataSplit, Grades, Task
from searchapp.tasks.folders import data_folder


@dataclass(frozen=True, slots=True)
class Missed:
    """A relevant document that is missed."""

    document_id: str
    grade: int
    reason: Reason | None = None  # its status, if known

    @property
    def order(self) -> tuple[bool, int, int]:
        """The sort key: documents with a rank first, then the best grades."""
        rank = None if self.reason is None else self.reason.rank
        return rank is None, rank or 0, -self.grade


@dataclass(frozen=True, slots=True)
class MissedGold:
    """The missed documents of a topic, ranked ones first."""

    documents: tuple[Missed, ...]
    differs: bool = False  # whether the recipe ranks differently than in the run: ranks are the present ones


@dataclass(frozen=True, slots=True)
class TopicRanking:
    """A topic's ranking beside its gold."""

    topic_id: str
    documents: tuple[str, ...]  # best first
    scores: tuple[float, ...]
    scored: int  # how many documents have a score other than 0
    relevant: Mapping[str, int]  # the grades of all relevant documents
    missed: tuple[Missed, ...]
    no_gold: str | None = None  # why there is no gold

    @property
    def not_relevant(self) -> list[int]:
        """The ranks of documents that are not relevant."""
        return [rank for rank, document in enumerate(self.documents, 1) if document not in self.relevant]


class AnnotatorGold:
    """The present judgments of an annotator as gold; thread-safe."""

    def __init__(self, read: Callable[[], Grades]) -> None:
        self._read = read
        self._grades: Grades | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Grades:
        """Return the grades by topic and document, read once.

        Raises:
            SearchappError: the log can't be read.
        """
        with self._lock:
            if self._grades is None:
                self._grades = self._read()
            return self._grades

    def forget(self) -> None:
        with self._lock:
            self._grades = None


class RunTopics:
    """The topics of a run beside their gold; thread-safe.

    Args:
        pages: the rankings and documents
        open_ranker: prepares the run's recipe to rank deeper, on demand; None if it is unknown
        depth: how many documents of a ranking count; all by default
        gold: returns the grades by topic and document, by default the task's own gold
    """

    def __init__(
        self,
        task: Task,
        pages: RunPages,
        open_ranker: Callable[[], TopicRanker] | None,
        depth: int | None = None,
        gold: Callable[[], Grades] | None = None,
    ) -> None:
        self.task = task
        self.pages = pages
        self.depth = depth
        self._open_ranker = open_ranker
        self._given_gold = gold

    @property
    def topics(self) -> tuple[str, ...]:
        return self.pages.topics

    @property
    def judged(self) -> AnnotatorGold | None:
        return self._given_gold if isinstance(self._given_gold, AnnotatorGold) else None

    @property
    def scored_topics(self) -> Sequence[str]:
        """The topics with figures: all, or those with judgments that replace the gold.

        Raises:
            SearchappError: the judgments can't be read.
        """
        if self.judged is None:
            return self.topics
        grades = self.gold
        return [topic for topic in self.topics if grades.get(topic)]

    def require(self, topic_id: str | None) -> None:
        """Check that there are topics, and the given one, if any.

        Raises:
            UsageError: the topic is unknown.
            DataError: there are no topics.
        """
        require_topic(self.pages, self.topics, topic_id)

    @cached_property
    def part(self) -> DataSplit[Collection]:
        """The split that the run ranks; for a TREC run the one with most of its topics.

        Raises:
            DataError: the topics can't be read.
        """
        collection, split = self.pages.collection, self.pages.split
        if split is None:
            wanted = set(self.topics)
            split = max(
                self.task.info.splits, key=lambda name: len(wanted & readable_topics(collection, name).keys())
            )
        return DataSplit(collection, split)

    @property
    def gold(self) -> Grades:
        """The grades of the gold by topic and document.

        Raises:
            SearchappError: there is none, or it can't be read.
        """
        return self._own_gold if self._given_gold is None else self._given_gold()

    def why_no_gold(self) -> str | None:
        """Return why the topics have no gold; None if they have some, even if it can't be read.

        Raises:
            DataError: the topics can't be read.
        """
        return None if self._given_gold is not None else self.part.collection.why_no_gold(self.part.name)

    @cached_property
    def _own_gold(self) -> Grades:
        part = self.part
        if why := self.why_no_gold():
            raise SearchappError(why)
        grades: Grades = self.task.official.grades(part.collection.gold_files(part.name), part)
        return grades

    def relevant(self, topic_id: str) -> dict[str, int]:
        grades = self.gold.get(topic_id, {})
        relevant = {document: grade for document, grade in grades.items() if grade > 0}
        return dict(sorted(relevant.items(), key=lambda item: -item[1]))

    def ranking(self, topic_id: str) -> TopicRanking:
        """Return a topic's ranking beside its gold; the first `depth` documents count.

        Raises:
            DataError: the run was altered.
            EngineError: the engine failed at a live ranking.
        """
        hits = self.pages.rankings.ranking(topic_id).hits
        scored = self.pages.rankings.scored(topic_id)
        relevant: dict[str, int] = {}
        missed: list[Missed] = []
        no_gold = None
        try:
            relevant, missed = self.relevant(topic_id), self.missed(topic_id)
        except SearchappError as error:
            no_gold = str(error)
        return TopicRanking(
            topic_id, hits.document_ids, hits.scores, scored, relevant, tuple(missed), no_gold
        )

    def rankings(self) -> Iterator[Ranking]:
        return map(self.pages.rankings.ranking, self.scored_topics)

    def all_figures(self, progress: Progress) -> FiguresByTopic:
        """Read the rankings, and return the figures of each topic.

        Raises:
            as `ranking` and `figures` do.
        """
        rankings = []
        with progress.stage("reading rankings", len(self.scored_topics)) as advance:
            for ranking in self.rankings():
                rankings.append(ranking)
                advance(1)
        return self.figures(Run(self.pages.name, tuple(rankings)))

    def figures(self, run: Run) -> FiguresByTopic:
        """Return the figures of each topic of the run.

        Raises:
            SearchappError: there is no gold.
        """
        if not len(run):
            return FiguresByTopic(topic_measure_name(self.task.info.official_measure), {})
        name, values, instead_of = self._values(run)
        figures = {}
        for ranking in run:
            relevant = self.relevant(ranking.topic_id)
            missed = relevant.keys() - set(ranking.document_ids()[: self.depth])
            value = values.get(ranking.topic_id)
            figures[ranking.topic_id] = TopicFigures(value, len(relevant), len(missed))
        return FiguresByTopic(name, figures, instead_of)

    def _values(self, run: Run) -> tuple[str, Mapping[str, float | None], str | None]:
        part, official = self.part, self.task.official
        options = ScorerOptions(split=part.name)
        try:
            if self.judged is None:
                files = part.collection.gold_files(part.name)
                against = GoldFiles(files, options, part.collection.folder)
                scored = official_figures(official.scorer, official.predictions(run, part), against)
            else:
                grades = {ranking.topic_id: self.gold[ranking.topic_id] for ranking in run}
                scored = judged_figures(self.task, part, run, grades, ScorerOptions())
        except (SearchappError, ValueError) as error:  # ValueError: ids are not the task's
            other = self.task.info.measures[0]
            rankings = {ranking.topic_id: ranking.document_ids() for ranking in run}
            known = {topic: grades for topic, grades in self.gold.items() if topic in rankings}
            return other, field_figures(rankings, known, [other]).per_topic.get(other, {}), str(error)
        ids = topic_ids(
            list(scored.qrels), {ranking.topic_id: None for ranking in run} if self.judged else self.gold
        )
        of_topics = scored.official.of_topics()
        values = {ids.get(name, name): of_topics.get(name) for name in scored.official.per_topic}
        return topic_measure_name(scored.official.measure), values, None

    def in_order(self, order: Order, figures: FiguresByTopic | None) -> list[str]:
        if figures is None or order is Order.file:
            return list(self.topics)

        def key(topic: str) -> tuple[bool, float, float]:
            figure = figures.topics.get(topic)
            if figure is None:
                return True, 0.0, 0.0
            value = figure.value or 0.0
            if order is Order.worst:
                return figure.value is None, value, -figure.missed
            return False, -figure.missed, value

        return sorted(self.topics, key=key)

    def missed(self, topic_id: str) -> list[Missed]:
        """Return the missed documents of a topic, with their ranks if the run has them."""
        hits = self.pages.rankings.ranking(topic_id).hits
        ranks = {document: rank for rank, document in enumerate(hits.document_ids, start=1)}
        missed = []
        for document, grade in self.relevant(topic_id).items():
            rank = ranks.get(document)
            if rank is None:
                missed.append(Missed(document, grade))
            elif self.depth is not None and rank > self.depth:
                reason = Reason(document, RankStatus.ranked, rank, hits.scores[rank - 1])
                missed.append(Missed(document, grade, reason))
        return sorted(missed, key=lambda entry: entry.order)

    def look_for_missed(self, topic_id: str) -> MissedGold:
        """Return the missed documents of a topic with their standings, for which the recipe ranks deeper.

        Raises:
            DataError: the recipe can't be prepared.
            EngineError: the engine failed.
        """
        missed = self.missed(topic_id)
        unknown = [entry.document_id for entry in missed if entry.reason is None]
        if not unknown:
            return MissedGold(tuple(missed))
        reasons, _ranked, differs = self._explainer().reasons(self._request(topic_id), unknown)
        missed = [replace(entry, reason=entry.reason or reasons[entry.document_id]) for entry in missed]
        return MissedGold(tuple(sorted(missed, key=lambda entry: entry.order)), differs)

    def why(self, topic_id: str, document_id: str) -> RankExplanation:
        """Explain the rank of a document of a topic, or why it has none.

        Raises:
            as `look_for_missed` does.
        """
        return self._explainer().explain(self._request(topic_id), document_id)

    @cached_property
    def ranker(self) -> TopicRanker | None:
        return None if self._open_ranker is None else self._open_ranker()

    def _explainer(self) -> Explainer:
        return Explainer(self.ranker, self._indexed)

    def _request(self, topic_id: str) -> TopicRequest:
        hits = self.pages.rankings.ranking(topic_id).hits
        is_document = self.task.info.topics_are_documents
        return TopicRequest(self.pages.topic(topic_id), self.pages.depth or len(hits), hits, is_document)

    def _indexed(self, documents: Sequence[str]) -> set[str]:
        self.pages.texts(documents)
        return {document for document in documents if self.pages.is_indexed(document)}


def short_status(reason: Reason | None) -> str:
    """Return the status of a missed document in a word or two."""
    if reason is None:
        return "…"
    if reason.status is RankStatus.ranked:
        return f"rank {reason.rank or 0:,}"
    return {
        RankStatus.unknown: "not indexed",
        RankStatus.filtered: "filtered",
        RankStatus.excluded: "filtered",
        RankStatus.below_minimum: "filtered",
        RankStatus.below_depth: "not ranked",
        RankStatus.origin: "not ranked",
        RankStatus.no_match: "no common term",
        RankStatus.not_in_run: "not in the run",
    }[reason.status]


@dataclass(frozen=True, slots=True)
class TopicsRequest:
    """The topics of a `run` or, without one, of a split that a recipe ranks now."""

    run: Path | None = None
    recipe: str | None = None
    split: str | None = None
    data: Path | None = None  # the folder of the topics, if it is not the run's or the task's
    depth: int | None = None  # how many documents of a ranking count; all by default
    annotator: str | None = None  # whose judgments replace the gold, see `AnnotatorGold`
    log: Path | None = None  # of these judgments, if it is not the usual one


def open_topics(
    opened: ExitStack,
    task: Task,
    request: TopicsRequest,
    settings: Settings,
    progress: Progress,
    warn: Callable[[str], None],
    gold: Callable[[], Grades] | None = None,
) -> RunTopics:
    """Open the topics of a request; `opened` closes their resources.

    Raises:
        UsageError: the request is invalid.
        DataError: files can't be read.
        EngineError: the documents can't be fetched.
    """
    documents = opened.enter_context(closing(LocalFirst(settings, progress, warn, copy=False)))
    if request.run is None:
        pages, ranker = open_now(opened, task, request, settings, progress, documents)
        return RunTopics(task, pages, lambda: ranker, request.depth, gold)
    if request.recipe is not None:
        raise UsageError("--recipe and --run exclude each other: give one of them")
    pages = RunPages.open(task, documents, request.run, request.data, home=settings.home, split=request.split)
    recipe, split = recipe_of(task, pages.manifest), pages.split
    if recipe is None or split is None:
        return RunTopics(task, pages, None, request.depth, gold)

    def open_ranker() -> TopicRanker:
        engine = opened.enter_context(closing(open_engine(settings)))
        return TopicRanker.open(
            task, engine, pages.collection, split, recipe, progress, settings.home, Reranking.of(settings)
        )

    return RunTopics(task, pages, open_ranker, request.depth, gold)


def open_now(
    opened: ExitStack,
    task: Task,
    request: TopicsRequest,
    settings: Settings,
    progress: Progress,
    documents: LocalFirst,
) -> tuple[RunPages, TopicRanker]:
    """Open the live rankings of a split's topics, and the recipe, ready to rank.

    Raises:
        as `open_topics` does.
    """
    recipe = recipes.load(task.recipe_book(), request.recipe or task.info.default_recipe)
    folder = data_folder(task, settings.home, request.data)
    collection = task.collection(folder)
    split = request.split or usual_split(task, collection)
    task.info.require_split(split)
    engine = opened.enter_context(closing(open_engine(settings)))
    ranker = TopicRanker.open(
        task, engine, collection, split, recipe, progress, settings.home, Reranking.of(settings)
    )
    depth = max(task.info.default_depth, request.depth or 0)
    return open_live_pages(task, documents, collection, split, ranker, depth), ranker
