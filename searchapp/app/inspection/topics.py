"""Topics beside their gold, of a run or as a recipe ranks now: figures, ranks of the gold, missed gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from searchapp.app.evaluate import field_figures, official_figures
from searchapp.app.inspection.explanation import Explained, Explainer, Standing, TopicRequest, Why
from searchapp.app.inspection.live_ranking import Ranks, now_pages, usual_split
from searchapp.app.inspection.pages import LocalFirst, RunPages, require_topic
from searchapp.app.topic_figures import Figures, Order, TopicFigures, topic_ids
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import SearchappError, UsageError
from searchapp.evaluation.base import GoldFiles, ScorerOptions, of_one
from searchapp.formats.problems import Problems
from searchapp.model import Ranking, Run
from searchapp.progress import Progress
from searchapp.ranking import recipes
from searchapp.ranking.recipes import Recipe
from searchapp.runs.directory import Manifest
from searchapp.tasks.base import Collection, Grades, Part, Submission, Task
from searchapp.tasks.folders import data_folder


@dataclass(frozen=True, slots=True)
class Missed:
    """A relevant document that is missed, its grade, and what became of it: None while nobody has looked."""

    document_id: str
    grade: int
    why: Why | None = None


@dataclass(frozen=True, slots=True)
class MissedGold:
    """The missed documents of a topic, those with a rank first.

    With `differs` the recipe no longer makes the ranking of the run: ranks are those that it makes now.
    """

    documents: tuple[Missed, ...]
    differs: bool = False


@dataclass(frozen=True, slots=True)
class TopicRanking:
    """A topic's ranking beside its gold.

    Of the `documents`, best first, the first `scored` have a score, which `scores` has; `relevant` has the grades of
    all relevant documents, `missed` those that are missed. Where there is no gold `no_gold` says why.
    """

    topic_id: str
    documents: tuple[str, ...]
    scores: tuple[float, ...]
    scored: int
    relevant: Mapping[str, int]
    missed: tuple[Missed, ...]
    no_gold: str | None = None

    @property
    def not_relevant(self) -> list[int]:
        """The ranks of the documents that are not relevant."""
        return [rank for rank, one in enumerate(self.documents, 1) if one not in self.relevant]


class RunTopics:
    """The topics of a run beside their gold; its methods may be called from several threads.

    Args:
        task: the task
        pages: the rankings and documents
        ranks: makes the run's recipe ready to rank deeper, when that is needed first; None where it is not known
        depth: how many documents of a ranking count; all by default
        gold: gives the grades by topic and document, of the task's own gold by default
    """

    def __init__(
        self,
        task: Task,
        pages: RunPages,
        ranks: Callable[[], Ranks] | None,
        depth: int | None = None,
        gold: Callable[[], Grades] | None = None,
    ) -> None:
        self.task = task
        self.pages = pages
        self.depth = depth
        self._open_ranks = ranks
        self._given_gold = gold
        self._ranks: Ranks | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """The ids of the topics, in the order of the run."""
        return self.pages.topics

    def require(self, topic_id: str | None) -> None:
        """Make sure that there are topics, and the one that is named, if one is.

        Raises:
            UsageError: it is not among them.
            DataError: there are none.
        """
        require_topic(self.pages, self.topics, topic_id)

    @cached_property
    def part(self) -> Part[Collection]:
        """The split that the run ranks; that of a TREC run, which does not say it, is found by its topics.

        Raises:
            DataError: the topics can't be read.
        """
        collection, split = self.pages.collection, self.pages.split
        if split is None:
            wanted = set(self.topics)
            found = {one: _topic_ids(collection, one) & wanted for one in self.task.info.splits}
            split = max(found, key=lambda one: len(found[one]))
        return Part(collection, split)

    @property
    def gold(self) -> Grades:
        """The grades of the gold by topic and document.

        Raises:
            SearchappError: there is none, or it can't be read; the message says why.
        """
        return self._own_gold if self._given_gold is None else self._given_gold()

    @cached_property
    def _own_gold(self) -> Grades:
        part = self.part
        if part.collection.is_masked(part.split):
            raise SearchappError(f"the gold of {part.split} is masked: no topic has figures")
        found: Grades = self.task.official.grades(part.collection.gold_files(part.split), part)
        return found

    def relevant(self, topic_id: str) -> dict[str, int]:
        """The relevant documents of a topic and their grades, the best first."""
        grades = self.gold.get(topic_id, {})
        return dict(
            sorted(((one, grade) for one, grade in grades.items() if grade > 0), key=lambda one: -one[1])
        )

    def ranking(self, topic_id: str) -> TopicRanking:
        """A topic's ranking, of which the first `depth` documents count, beside its gold.

        Raises:
            DataError: the run is not as it was written.
            EngineError: the ranking is made now, and the engine failed.
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

    # Figures

    def rankings(self) -> Iterator[Ranking]:
        """The ranking of every topic, each as soon as it is read or made."""
        return map(self.pages.rankings.ranking, self.topics)

    def figures(self, run: Run) -> Figures:
        """How each topic of the run, which is given whole, does.

        Raises:
            SearchappError: there is no gold.
        """
        name, values, instead_of = self._values(run)
        figures = {}
        for ranking in run:
            relevant = self.relevant(ranking.topic_id)
            missed = relevant.keys() - set(ranking.document_ids()[: self.depth])
            value = values.get(ranking.topic_id)
            figures[ranking.topic_id] = TopicFigures(value, len(relevant), len(missed))
        return Figures(name, figures, instead_of)

    def _values(self, run: Run) -> tuple[str, Mapping[str, float | None], str | None]:
        """The name of a figure, and that of each topic: the organisers', or why it is another one."""
        part = self.part
        scorer = self.task.official.scorer
        gold = GoldFiles(
            part.collection.gold_files(part.split), ScorerOptions(split=part.split), part.collection.folder
        )
        try:
            predictions = self.task.official.predictions(Submission(run, part))
            scored = official_figures(scorer, predictions, gold)
        except (SearchappError, ValueError) as error:  # the latter of ids that are not the task's
            other = self.task.info.measures[0]
            rankings = {ranking.topic_id: ranking.document_ids() for ranking in run}
            known = {topic: grades for topic, grades in self.gold.items() if topic in rankings}
            return other, field_figures(rankings, known, [other]).per_topic.get(other, {}), str(error)
        ids = topic_ids(list(scored.qrels), self.gold)
        of_topics = scored.official.of_topics()
        values = {ids.get(name, name): of_topics.get(name) for name in scored.official.per_topic}
        return of_one(scored.official.measure), values, None

    def in_order(self, order: Order, figures: Figures | None) -> list[str]:
        """The topics in an order; as the run has them as long as there are no figures."""
        if figures is None or order is Order.file:
            return list(self.topics)

        def key(topic: str) -> tuple[bool, float, float]:
            found = figures.topics.get(topic)
            if found is None:
                return True, 0.0, 0.0
            value = found.value
            if order is Order.worst:
                return value is None, value or 0.0, -found.missed
            return False, -found.missed, value or 0.0

        return sorted(self.topics, key=key)

    # What was missed

    def missed(self, topic_id: str) -> list[Missed]:
        """The missed documents of a topic in the order of their grades; of those in the run it is known where."""
        hits = self.pages.rankings.ranking(topic_id).hits
        ranks = {document: rank for rank, document in enumerate(hits.document_ids, start=1)}
        found = []
        for document, grade in self.relevant(topic_id).items():
            rank = ranks.get(document)
            if rank is None:
                found.append(Missed(document, grade))
            elif self.depth is not None and rank > self.depth:
                score = hits.scores[rank - 1]
                found.append(Missed(document, grade, Why(document, Standing.ranked, rank, score)))
        return sorted(found, key=_place)

    def look_for_missed(self, topic_id: str) -> MissedGold:
        """The missed documents of a topic, and what became of each, for which the recipe ranks deeper.

        Raises:
            DataError: the recipe can't be made ready.
            EngineError: the engine failed.
        """
        missed = self.missed(topic_id)
        without = [one.document_id for one in missed if one.why is None]
        if not without:
            return MissedGold(tuple(missed))
        sought = self._explainer().standings(self._request(topic_id), without)
        found = [
            one if one.why is not None else Missed(one.document_id, one.grade, sought.whys[one.document_id])
            for one in missed
        ]
        return MissedGold(tuple(sorted(found, key=_place)), sought.differs)

    def why(self, topic_id: str, document_id: str) -> Explained:
        """Why a document of a topic is at its rank, or why it has none, with what made its score.

        Raises:
            as `look_for_missed` does.
        """
        return self._explainer().explain(self._request(topic_id), document_id)

    @property
    def ranks(self) -> Ranks | None:
        """The run's recipe, ready to rank; None where it is not known."""
        if self._ranks is None and self._open_ranks is not None:
            self._ranks = self._open_ranks()
        return self._ranks

    def _explainer(self) -> Explainer:
        return Explainer(self.ranks, self._indexed)

    def _request(self, topic_id: str) -> TopicRequest:
        hits = self.pages.rankings.ranking(topic_id).hits
        is_document = self.task.info.topics_are_documents
        return TopicRequest(self.pages.topic(topic_id), self.pages.depth or len(hits), hits, is_document)

    def _indexed(self, documents: Sequence[str]) -> set[str]:
        """Those of some documents that the index has, whatever they say."""
        self.pages.texts(documents)
        return {one for one in documents if self.pages.is_indexed(one)}


def what_became(why: Why | None) -> str:
    """What became of a missed document, in a word or two."""
    if why is None:
        return "…"
    if why.standing is Standing.ranked:
        return f"rank {why.rank or 0:,}"
    return {
        Standing.unknown: "not indexed",
        Standing.filtered: "filtered",
        Standing.left_out: "filtered",
        Standing.too_little: "filtered",
        Standing.behind: "not ranked",
        Standing.no_match: "no common term",
        Standing.not_in_run: "not in the run",
    }[why.standing]


def _topic_ids(collection: Collection, split: str) -> set[str]:
    try:
        return {topic.id for topic in collection.topics(split, Problems(lenient=True))}
    except SearchappError:
        return set()


def _place(missed: Missed) -> tuple[bool, int, int]:
    """Where a missed document stands among the others: those with a rank first, the best grades first."""
    rank = None if missed.why is None else missed.why.rank
    return rank is None, rank or 0, -missed.grade


@dataclass(frozen=True, slots=True)
class TopicsRequest:
    """Which topics are wanted: those of a `run` or, without one, of a split that a recipe ranks now.

    `data` is the folder of the topics, if they are not where the run or the task has them. Of each ranking the first
    `depth` documents count, all by default.
    """

    run: Path | None = None
    recipe: str | None = None
    split: str | None = None
    data: Path | None = None
    depth: int | None = None


def open_topics(
    opened: ExitStack,
    task: Task,
    request: TopicsRequest,
    settings: Settings,
    progress: Progress,
    warn: Callable[[str], None],
    gold: Callable[[], Grades] | None = None,
) -> RunTopics:
    """The topics of a request; what is opened for them is closed with `opened`, `gold` is that of `RunTopics`.

    Raises:
        UsageError: the request makes no sense.
        DataError: files can't be read.
        EngineError: the documents can't be had.
    """
    documents = opened.enter_context(closing(LocalFirst(settings, progress, warn, copy=False)))
    if request.run is None:
        pages, ranks = open_now(opened, task, request, settings, progress, documents)
        return RunTopics(task, pages, lambda: ranks, request.depth, gold)
    if request.recipe is not None:
        raise UsageError("--recipe ranks now, and --run names what was ranked: leave one of them out")
    pages = RunPages.open(task, documents, request.run, request.data, home=settings.home, split=request.split)
    recipe, split = _recipe_of(task, pages.manifest), pages.split
    if recipe is None or split is None:
        return RunTopics(task, pages, None, request.depth, gold)

    def ranks_of_run() -> Ranks:
        engine = opened.enter_context(closing(open_engine(settings)))
        return Ranks.open(task, engine, pages.collection, split, recipe, progress, settings.home)

    return RunTopics(task, pages, ranks_of_run, request.depth, gold)


def open_now(
    opened: ExitStack,
    task: Task,
    request: TopicsRequest,
    settings: Settings,
    progress: Progress,
    documents: LocalFirst,
) -> tuple[RunPages, Ranks]:
    """What a recipe ranks now for the topics of a split, and the recipe, ready to rank.

    Raises:
        as `open_topics` does.
    """
    recipe = recipes.load(task.recipe_book(), request.recipe or task.info.default_recipe)
    folder = data_folder(task, settings.home, request.data)
    collection = task.collection(folder)
    split = request.split or usual_split(task, collection)
    task.info.require_split(split)
    engine = opened.enter_context(closing(open_engine(settings)))
    ranks = Ranks.open(task, engine, collection, split, recipe, progress, settings.home)
    depth = max(task.info.default_depth, request.depth or 0)
    return now_pages(task, documents, collection, split, ranks, depth), ranks


def _recipe_of(task: Task, manifest: Manifest | None) -> Recipe | None:
    """The recipe that a run was made by; None where it is not known any more, or the run is none of searchapp's."""
    if manifest is None:
        return None
    try:
        return recipes.load(
            task.recipe_book(), str(manifest.recipe["name"]), manifest.recipe.get("parameters") or {}
        )
    except (SearchappError, KeyError):
        return None
