"""What the tools do: the use cases of the commands, with small pages and without paths.

Tasks and runs are given by their names: those of `searchapp tasks` and of the list of runs. A method's docstring and
the descriptions of its arguments are what a model reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, overload

from pydantic import Field, StrictInt

from searchapp import tasks
from searchapp.app.compare import CompareRequest, compare
from searchapp.app.evaluate import GoldSource, evaluate
from searchapp.app.inspection import explanation
from searchapp.app.inspection.topics import RunTopics, TopicsRequest, open_topics
from searchapp.app.overview import look
from searchapp.app.runs import KnownRun, ListedRun, list_runs
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.app.sessions import PATIENCE_SECONDS
from searchapp.app.topic_figures import FiguresByTopic, Order, TopicFigures
from searchapp.config.settings import Settings, without_passwords
from searchapp.embeddings.access import Access
from searchapp.embeddings.reranking import Reranking
from searchapp.engines import open_engine
from searchapp.errors import EngineError, Replaced, SearchappError, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.judging.events import Action, Author, Kind, verdict_label
from searchapp.judging.guidelines import read_guidelines
from searchapp.judging.log import JudgmentLog
from searchapp.judging.view import JudgmentView, open_view
from searchapp.lucene.dataclass import dataclass
from searchapp.mcp import tool_outputs as out
from searchapp.progress import Advance, Callback, CallbackProgress
from searchapp.ranking import recipes
from searchapp.ranking.highlighting import snippet
from searchapp.ranking.paging import sources
from searchapp.ranking.search_results import shorten_explanation
from searchapp.tasks.folders import require_data
from searchapp.text import choices_hint, counted, suggestion, visible

if TYPE_CHECKING:
    from searchapp.engines.base import Engine
    from searchapp.tasks.base import Task

T = TypeVar("T")

PAGE = 20  # entries of a page
MOST_HITS = 20  # of a search, which the model chooses
RANKED = 10  # documents of a page of a run's ranking
SNIPPET = 400  # characters of a document in a list
TOPIC = 4_000  # characters of the topic of a ranking
CHUNK = 6_000  # characters of a page of a document's text
FIELDS, FIELD = 30, 500  # other fields of a document, and their characters
PARTS = 60  # lines of an explanation
NOTES, NOTE = 20, 500  # warnings of an answer, and their characters
LONGEST = 2_000  # characters of an error

# Short, because the model waits; the next request tries again.
ATTEMPTS, TIMEOUT_SECONDS = 2, 10.0

TaskName: TypeAlias = Annotated[str, Field(description="Name of a task; the tool tasks lists them.")]
RunName: TypeAlias = Annotated[str, Field(description="Name of a run; the tool runs lists them.")]
Cursor: TypeAlias = Annotated[str | None, Field(description="next_cursor of the previous page.")]
RecipeName: TypeAlias = Annotated[
    str | None, Field(description="How to rank; default: the task's recipe. The tool tasks lists them.")
]
Measures: TypeAlias = Annotated[
    list[str] | None, Field(description="Measures such as AP or nDCG@10; default: the task's.")
]
Cutoff: TypeAlias = Annotated[
    int | None,
    Field(
        ge=1,
        description="nlps: documents that the official scorer requires; default 500, too many for the sample.",
    ),
]


class RequestProgress:
    """Reports the progress of the running request, also from an index that an earlier one opened."""

    def __init__(self) -> None:
        self.report: Callback = lambda _stage, _done, _total: None

    def stage(
        self, label: str, total: int | None = None, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        return CallbackProgress(self.report).stage(label, total, in_bytes=in_bytes)


@dataclass
class ModelJudge:
    """The model that judges in this session, and how many judgments are left."""

    name: str
    left: int


@dataclass
class OpenedRun:
    """A run whose files are open."""

    name: str
    digest: str
    topics: RunTopics
    resources: ExitStack
    warnings: list[str]
    figures: FiguresByTopic | None = None


@dataclass
class _OpenedLog:
    log: JudgmentLog
    views: dict[str, JudgmentView] = field(default_factory=dict)  # by task

    def view(self, task: str) -> JudgmentView:
        if task not in self.views:
            self.views[task] = open_view(self.log, task)
        return self.views[task]


class Toolbox:
    """The tools, for one thread.

    Args:
        settings: the engine and the home directory
        folder: its runs are known, too
        judge: who may judge
    """

    def __init__(self, settings: Settings, folder: Path, judge: ModelJudge | None = None) -> None:
        self.progress = RequestProgress()
        self._settings = settings
        self._folder = folder
        self._judge = judge
        self._engine: Engine | None = None
        self._searchers: dict[str, TaskSearcher] = {}
        self._own_tasks: dict[str, Task] = {}
        self._names: dict[str, str] = {}  # of runs, by path
        self._run: OpenedRun | None = None
        self._log: _OpenedLog | None = None

    def close(self) -> None:
        for searcher in self._searchers.values():
            searcher.close()
        self._close_run()
        if self._engine is not None:
            self._engine.close()
        if self._log is not None:
            self._log.log.close()

    def error_message(self, error: SearchappError) -> str:
        """Return the message of an error without passwords and without the user's folders."""
        return visible(self._without_folders(without_passwords("\n".join(error.lines))))[:LONGEST]

    # Tools

    def tasks(self, cursor: Cursor = None) -> out.TaskPage:
        """List the tasks: their splits, recipes and grades, and whether their documents are indexed."""
        overview = look(self._settings, self._folder)
        page, total, following = _page(overview.tasks, cursor, PAGE)
        return out.TaskPage(
            total=total,
            next_cursor=following,
            engine=None if overview.engine is None else f"{overview.engine.name} {overview.engine.version}",
            problem=self._without_folders(without_passwords(overview.trouble)),
            tasks=[
                out.ListedTask(
                    name=state.task.name,
                    title=state.task.info.title,
                    about=state.task.info.about,
                    splits=state.task.info.splits,
                    recipes=recipes.names(state.task.recipe_book()),
                    grades=state.task.info.grades,
                    official_measure=state.task.info.official_measure,
                    documents=None if state.index is None else state.index.documents,
                    indexed_sample=state.is_sample,
                    judged=state.judged,
                )
                for state in page
            ],
        )

    def guidelines(self, task: TaskName, cursor: Cursor = None) -> out.GuidelinesText:
        """Return what the grades of a task mean, with examples; a long text has several pages."""
        loaded = self._task(task)
        guidelines = read_guidelines(loaded.info.guidelines)
        text, total, following = _page(visible("" if guidelines is None else guidelines.text), cursor, CHUNK)
        return out.GuidelinesText(total=total, next_cursor=following, task=loaded.name, text=text)

    def topics(
        self,
        task: Annotated[str | None, Field(description="Name of a task, with split; instead of run.")] = None,
        split: Annotated[str | None, Field(description="A split of the task, such as dev.")] = None,
        run: Annotated[str | None, Field(description="Name of a run, whose topics get figures.")] = None,
        order: Annotated[
            Order, Field(description="With run: as in the file, worst first, or most missed documents first.")
        ] = Order.file,
        cursor: Cursor = None,
    ) -> out.TopicPage:
        """List the topics of a split of a task, or those of a run with the measure of each topic."""
        if run is not None:
            if task is not None or split is not None:
                raise UsageError("give either the run, or the task and the split")
            return self._topics_of_run(run, order, cursor)
        if task is None or split is None:
            raise UsageError("give the task and the split, or a run")
        if order is not Order.file:
            raise UsageError(f"the order {order} needs a run: give its name, or leave out the order")
        loaded, problems = self._task(task), Problems()
        collection = loaded.collection(require_data(loaded, self._settings.home))
        page, total, following = _page(
            collection.topics(loaded.info.require_split(split), problems), cursor, PAGE
        )
        problems.raise_if_any()
        return out.TopicPage(
            total=total,
            next_cursor=following,
            task=loaded.name,
            split=split,
            run=None,
            measure=None,
            topics=[
                out.ListedTopic(id=topic.id, value=None, relevant=None, missed=None, **_cut(topic.text))
                for topic in page
            ],
            notes=[],
        )

    def search(
        self,
        task: TaskName,
        words: Annotated[
            str,
            Field(description='Words, also "phrases", +required and -excluded words, and field:value.'),
        ],
        recipe: RecipeName = None,
        size: Annotated[int, Field(ge=1, le=MOST_HITS, description="Documents of a page.")] = 5,
        literal: Annotated[bool, Field(description="Whether +, -, quotes and : are ordinary text.")] = False,
        cursor: Cursor = None,
    ) -> out.FoundDocuments:
        """Search the documents of a task; the best matches come first, each with the best part of its text."""
        searcher = self._searcher(self._task(task))
        request = SearchRequest(words, recipe, size=size, first=_offset(cursor), literal=literal)
        results, total = searcher.search(request), searcher.counts(request).total
        end = request.first + len(results)
        return out.FoundDocuments(
            total=total,
            next_cursor=str(end) if results and end < total else None,
            task=searcher.task.name,
            recipe=searcher.recipe(recipe).name,
            documents=[
                out.FoundDocument(
                    rank=result.rank,
                    id=result.hit.document_id,
                    score=result.hit.score,
                    text=snippet(result.text, result.matches, SNIPPET)[0],
                    is_cut=len(result.text) > SNIPPET,
                )
                for result in results
            ],
            notes=[] if cursor else self._notes(searcher.notes(request, total).sentences()),
        )

    def document(
        self,
        task: TaskName,
        document: Annotated[str, Field(description="Id of a document.")],
        cursor: Cursor = None,
    ) -> out.DocumentText:
        """Return the text and the fields of a document; a long text has several pages."""
        searcher = self._searcher(self._task(task))
        source = self._source(searcher, document)
        text, total, following = _page(visible(str(source.get("text", ""))), cursor, CHUNK)
        others = [(name, visible(str(source[name]))) for name in source if name not in ("id", "text")]
        return out.DocumentText(
            total=total,
            next_cursor=following,
            task=searcher.task.name,
            id=document,
            text=text,
            fields=[
                out.DocumentField(name=name, value=value[:FIELD], is_cut=len(value) > FIELD)
                for name, value in ([] if cursor else others[:FIELDS])
            ],
        )

    def explain(
        self,
        task: TaskName,
        document: Annotated[str, Field(description="Id of a document.")],
        words: Annotated[str | None, Field(description="The words of a search; instead of topic.")] = None,
        topic: Annotated[str | None, Field(description="Id of a topic, for which the recipe ranks.")] = None,
        split: Annotated[str | None, Field(description="The split of the topic; default: any.")] = None,
        recipe: RecipeName = None,
    ) -> out.ScoreExplanation:
        """Explain the rank and score of a document for words or for a topic, or why it has none."""
        loaded = self._task(task)
        if (words is None) == (topic is None):
            raise UsageError("give either words or a topic")
        if topic is None:
            if split is not None:
                raise UsageError("a split is for a topic: leave it out, or give a topic")
            searcher = self._searcher(loaded)
            request = SearchRequest(words or "", recipe)
            reason = explanation.find_reason(searcher, request, document)
            sentence = explanation.status_sentence(reason, loaded.name)
        else:
            chosen = recipes.load(loaded.recipe_book(), recipe or loaded.info.default_recipe)
            if split is not None:
                loaded.info.require_split(split)
            collection = loaded.collection(require_data(loaded, self._settings.home))
            result = explanation.explain(
                explanation.ExplainRequest(loaded, collection, chosen, topic, document, split),
                self._open_engine(),
                self.progress,
                self._settings.home,
                Reranking.of(self._settings),
            )
            reason = result.explained.reason
            sentence = result.explained.sentence(
                loaded.name, f" for the topic {topic} ({loaded.name} {result.split})"
            )
        lines = [] if reason.explanation is None else shorten_explanation(reason.explanation)
        return out.ScoreExplanation(
            task=loaded.name,
            document=document,
            sentence=sentence,
            status=reason.status.value,
            rank=reason.rank,
            score=reason.score,
            signals={share.signal: share.value for share in reason.shares},
            parts=[
                out.ScorePart(depth=line.depth, value=line.value, what=line.text[:SNIPPET])
                for line in lines[:PARTS]
            ],
            is_cut=len(lines) > PARTS,
        )

    def runs(
        self,
        task: Annotated[str | None, Field(description="Only runs of this task.")] = None,
        cursor: Cursor = None,
    ) -> out.RunPage:
        """List the saved runs, the latest first: rankings of all topics of a split by one recipe."""
        wanted = None if task is None else self._task(task).name
        listed = {name: run for name, run in self._runs().items() if wanted in (None, run.manifest.task)}
        page, total, following = _page(list(listed.items()), cursor, PAGE)
        return out.RunPage(
            total=total,
            next_cursor=following,
            runs=[
                out.RunEntry(
                    name=name,
                    task=run.manifest.task,
                    split=run.manifest.split,
                    system=run.manifest.system,
                    tags=run.tags,
                    topics=run.manifest.topics,
                    depth=run.manifest.depth,
                    created=run.manifest.created,
                    measure=None if run.figure is None else run.figure.measure,
                    value=None if run.figure is None else run.figure.value,
                )
                for name, run in page
            ],
        )

    def ranking(
        self,
        run: RunName,
        topic: Annotated[str, Field(description="Id of a topic of the run; the tool topics lists them.")],
        cursor: Cursor = None,
    ) -> out.RunRanking:
        """Return the documents that a run ranks for a topic, best first, with the topic's text."""
        opened = self._opened_run(run)
        topics, pages = opened.topics, opened.topics.pages
        topics.require(topic)
        hits = pages.rankings.ranking(topic).hits
        page, total, following = _page(list(enumerate(hits, start=1)), cursor, RANKED)
        texts = pages.texts([hit.document_id for _, hit in page])
        about = _cut(pages.topic(topic).text, TOPIC)
        return out.RunRanking(
            total=total,
            next_cursor=following,
            run=run,
            task=topics.task.name,
            split=pages.split,
            topic=topic,
            topic_text=about["text"],
            is_topic_cut=about["is_cut"],
            documents=[
                out.RankedDocument(
                    rank=rank,
                    id=hit.document_id,
                    score=hit.score,
                    is_indexed=pages.is_indexed(hit.document_id),
                    grade=self._own_grade(topics.task.name, topic, hit.document_id),
                    **_cut(text),
                )
                for (rank, hit), text in zip(page, texts, strict=True)
            ],
            notes=self._notes([*pages.notes, *opened.warnings, *pages.news]),
        )

    def evaluate(
        self,
        run: RunName,
        measures: Measures = None,
        by: Annotated[
            list[str] | None, Field(description="Breakdowns by groups of topics; all for every one.")
        ] = None,
        cutoff: Cutoff = None,
    ) -> out.RunFigures:
        """Score a run with the official scorer of its task, and with further measures."""
        path = self._known_run(run).path
        source = self._gold(measures, cutoff, by)
        with self.progress.stage("scoring"):
            (scored,) = evaluate([path], source)
        return out.RunFigures(
            run=run,
            task=scored.task,
            split=scored.split,
            topics=scored.topics,
            official_measure=scored.official.measure,
            official=scored.official.values,
            corrected=scored.official.honest,
            measures=scored.measures.values,
            breakdowns={
                breakdown.name: [
                    out.FigureGroup(group=row.group, count=row.count, values=row.values)
                    for row in breakdown.rows[:PARTS]
                ]
                for breakdown in scored.breakdowns
            },
            warnings=self._notes(scored.warnings),
        )

    def compare(
        self,
        runs: Annotated[
            list[str], Field(min_length=2, max_length=10, description="Names of runs of one split.")
        ],
        measures: Measures = None,
        baseline: Annotated[
            str | None,
            Field(description="One of the runs, with which the others are compared; default: all pairs."),
        ] = None,
        cutoff: Cutoff = None,
    ) -> out.RunComparison:
        """Compare runs of one split: their means, and tests of the differences between them."""
        if baseline is not None and baseline not in runs:
            raise UsageError(f"the baseline {choices_hint(baseline, runs)}")
        paths = {name: self._known_run(name).path for name in runs}
        request = CompareRequest(
            tuple(paths.values()),
            self._gold(measures, cutoff),
            baseline=None if baseline is None else paths[baseline],
        )
        compared = compare(request, self.progress)
        shown = [self._names[run.path] for run in compared.runs]
        return out.RunComparison(
            task=compared.task,
            split=compared.split,
            topics=compared.measures[0].topics,
            means={
                measure.name: dict(zip(shown, measure.means, strict=True)) for measure in compared.measures
            },
            pairs=[
                out.ComparedPair(
                    measure=measure.name,
                    first=shown[pair.first],
                    second=shown[pair.second],
                    difference=pair.difference.mean,
                    low=pair.difference.low,
                    high=pair.difference.high,
                    p=pair.difference.p,
                    wins=pair.difference.wins,
                    ties=pair.difference.ties,
                    losses=pair.difference.losses,
                )
                for measure in compared.measures
                for pair in measure.pairs
            ],
            notes=self._notes([*compared.warnings, *compared.notes]),
        )

    def judge(
        self,
        run: RunName,
        topic: Annotated[str, Field(description="Id of a topic of the run.")],
        document: Annotated[str, Field(description="Id of a document that the run ranks for the topic.")],
        grade: Annotated[
            StrictInt | None,
            Field(
                description="A grade of the task, see the tool tasks; null if you can't tell. 0 is not relevant."
            ),
        ],
        reason: Annotated[str, Field(max_length=1_000, description="Why, in a sentence.")] = "",
    ) -> out.SavedJudgment:
        """Save your grade of a document for a topic. A further grade of the same document replaces it."""
        judge = self._judge
        if judge is None:
            raise UsageError("this session may not judge: start it with --judge-as NAME")
        if judge.left <= 0:
            raise UsageError("the limit of judgments of this session is reached (--limit)")
        opened = self._opened_run(run)
        topics, pages = opened.topics, opened.topics.pages
        labels = topics.task.info.grades
        if grade is not None and not 0 <= grade < len(labels):
            scale = ", ".join(verdict_label(Action.grade, number, labels) for number in range(len(labels)))
            raise UsageError(f"{topics.task.name} has no grade {grade}: give one of {scale}, or null")
        topics.require(topic)
        ranks = {id_: rank for rank, id_ in enumerate(pages.rankings.ranking(topic).hits.document_ids, 1)}
        if document not in ranks:
            raise UsageError(
                f"the run does not rank {document!r} for the topic {topic}{suggestion(document, ranks)}: "
                "the tool ranking lists its documents"
            )
        pages.require_as_ranked(document)
        guidelines = read_guidelines(topics.task.info.guidelines)
        action = Action.cant_tell if grade is None else Action.grade
        log, view = self._open_log(topics.task.name)
        event = Author(judge.name, Kind.model).event(
            topics.task.name,
            topic,
            document,
            action,
            grade=grade,
            text=reason,
            run=pages.name,
            rank=ranks[document],
            saw_others=False,  # no tool shows the grades of others, or the gold of a document
            after=view.latest(topic, document),
        )
        log.append([event], [] if guidelines is None else guidelines.details([event]))
        view.add(event)
        judge.left -= 1
        return out.SavedJudgment(
            annotator=judge.name,
            task=topics.task.name,
            topic=topic,
            document=document,
            grade=grade,
            label=verdict_label(action, grade, labels),
            left=judge.left,
        )

    # Parts

    def _open_engine(self) -> Engine:
        if self._engine is None:
            self._engine = open_engine(self._settings, attempts=ATTEMPTS, timeout=TIMEOUT_SECONDS)
        return self._engine

    def _task(self, name: str) -> Task:
        """Return a task by its name; unlike `tasks.load`, never by the path of a file.

        Raises:
            UsageError: the name is unknown.
            EngineError: the engine, which knows the files of own tasks, does not answer.
        """
        shipped = tasks.shipped_names()
        if name in shipped:
            return tasks.load(name)
        if name not in self._own_tasks:
            overview = look(self._settings, self._folder)
            for state in overview.tasks:
                if state.task.info.file is not None:
                    self._own_tasks.setdefault(state.task.name, state.task)
            if name not in self._own_tasks and overview.trouble:
                raise EngineError(f"your own tasks are unknown: {overview.trouble}")
        if name not in self._own_tasks:
            raise UsageError(f"unknown task {choices_hint(name, [*self._own_tasks, *shipped])}")
        return self._own_tasks[name]

    def _searcher(self, task: Task) -> TaskSearcher:
        """Return the searcher of the version of the index that serves now."""
        searcher = self._searchers.get(task.info.reference)
        if searcher is not None:
            try:
                searcher.require_serving()
            except Replaced:
                self._searchers.pop(task.info.reference).close()
            else:
                return searcher
        searcher = TaskSearcher.open(
            task, self._open_engine(), self.progress, self._settings.home, access=Access.of(self._settings)
        )
        self._searchers[task.info.reference] = searcher
        return searcher

    def _source(self, searcher: TaskSearcher, document: str) -> Mapping[str, Any]:
        source = sources(searcher.index, [document]).get(document)
        if source is None:
            raise UsageError(f"no document of {searcher.task.name} has the id {document!r}")
        return source

    def _gold(
        self, measures: Sequence[str] | None, cutoff: int | None, by: Sequence[str] | None = None
    ) -> GoldSource:
        return GoldSource(
            home=self._settings.home,
            options=ScorerOptions(cutoff),
            by=tuple(by or ()),
            measures=tuple(measures or ()),
        )

    def _runs(self) -> dict[str, ListedRun]:
        """Return the known runs by name: that of the directory, with a digest where several have it."""
        listed: dict[tuple[str, str], ListedRun] = {}
        for run in list_runs(self._settings.home, self._folder):
            listed.setdefault((run.path.name, run.manifest.digest[:12]), run)  # copies are one run
        names = Counter(name for name, _ in listed)
        runs = {
            name if names[name] == 1 else f"{name}@{digest}": run for (name, digest), run in listed.items()
        }
        self._names = {str(run.path): name for name, run in runs.items()}
        return runs

    def _known_run(self, name: str) -> ListedRun:
        runs = self._runs()
        if name not in runs:
            with_digest = [known for known in runs if known.startswith(f"{name}@")]
            hint = f" (did you mean {with_digest[0]}?)" if with_digest else suggestion(name, runs)
            raise UsageError(f"unknown run {name!r}{hint}: the tool runs lists the names")
        return runs[name]

    def _opened_run(self, name: str) -> OpenedRun:
        known = self._known_run(name)
        digest = known.manifest.digest
        if self._run is None or (self._run.name, self._run.digest) != (name, digest):
            self._close_run()
            task = tasks.load(KnownRun(known.path, known.manifest).task)
            warnings: list[str] = []
            with ExitStack() as resources:
                request = TopicsRequest(run=known.path)
                topics = open_topics(resources, task, request, self._settings, self.progress, warnings.append)
                self._run = OpenedRun(name, digest, topics, resources.pop_all(), warnings)
        return self._run

    def _close_run(self) -> None:
        if self._run is not None:
            self._run.resources.close()
            self._run = None

    def _topics_of_run(self, name: str, order: Order, cursor: str | None) -> out.TopicPage:
        opened = self._opened_run(name)
        topics, notes = opened.topics, []
        no_gold = topics.why_no_gold()
        if no_gold is not None:
            notes.append(no_gold)
            opened.figures = FiguresByTopic("", {})
        if opened.figures is None:
            opened.figures = topics.all_figures(self.progress)
        figures = opened.figures
        if figures.instead_of is not None:
            notes.append(
                f"{figures.name} instead of {topics.task.info.official_measure}: {figures.instead_of}"
            )
        page, total, following = _page(topics.in_order(order, figures), cursor, PAGE)
        none = TopicFigures(None, 0, 0)
        return out.TopicPage(
            total=total,
            next_cursor=following,
            task=topics.task.name,
            split=topics.part.name,
            run=name,
            measure=figures.name or None,
            topics=[
                out.ListedTopic(
                    id=topic,
                    value=of_topic.value,
                    relevant=of_topic.relevant if topic in figures.topics else None,
                    missed=of_topic.missed if topic in figures.topics else None,
                    **_cut(topics.pages.topic(topic).text),
                )
                for topic in page
                for of_topic in [figures.topics.get(topic, none)]
            ],
            notes=self._notes(notes),
        )

    def _open_log(self, task: str) -> tuple[JudgmentLog, JudgmentView]:
        """Return the log, and the view of a task, in which the judge must not be a person.

        Raises:
            UsageError: a person has the judge's name.
        """
        assert self._judge is not None
        if self._log is None:
            self._log = _OpenedLog(JudgmentLog(self._settings.judgments, PATIENCE_SECONDS))
        view = self._log.view(task)
        work = view.work.get(self._judge.name)
        if work is not None and work.kind != Kind.model:
            raise UsageError(
                f"{self._judge.name} is a {work.kind} who has judged {task}: start with another --judge-as NAME"
            )
        return self._log.log, view

    def _own_grade(self, task: str, topic: str, document: str) -> int | None:
        if self._judge is None:
            return None
        opinion = self._open_log(task)[1].opinion(self._judge.name, topic, document)
        return None if opinion is None else opinion.grade

    def _notes(self, notes: Sequence[str]) -> list[str]:
        shown = [self._without_folders(note)[:NOTE] for note in notes[:NOTES]]
        left = len(notes) - len(shown)
        return [*shown, f"and {counted(left, 'further note')}"] if left > 0 else shown

    def _without_folders(self, text: str) -> str:
        """Replace the paths of runs by their names, and those of the user's folders by signs."""
        folders = {str(Path.home()): "~", str(self._folder): ".", str(self._settings.home): "HOME"}
        for path, name in sorted({**folders, **self._names}.items(), key=lambda item: -len(item[0])):
            if path not in ("/", "."):
                text = text.replace(path, name)
        return text


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 12):
        raise UsageError(f"unknown cursor {cursor[:40]!r}: give next_cursor of the previous page, or none")
    return int(cursor)


@overload
def _page(entries: str, cursor: str | None, size: int) -> tuple[str, int, str | None]: ...
@overload
def _page(entries: Sequence[T], cursor: str | None, size: int) -> tuple[Sequence[T], int, str | None]: ...
def _page(entries: Any, cursor: str | None, size: int) -> tuple[Any, int, str | None]:
    """Return the entries or characters of a page, the number of all, and the cursor of the next page."""
    start = _offset(cursor)
    end = start + size
    return entries[start:end], len(entries), str(end) if end < len(entries) else None


def _cut(text: str, length: int = SNIPPET) -> dict[str, Any]:
    return {"text": text[:length], "is_cut": len(text) > length}
