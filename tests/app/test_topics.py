"""The topics of a run beside their gold, compared with the files of the run and the task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchapp import tasks
from searchapp.app.evaluate import GoldSource, evaluate
from searchapp.app.index import index_task
from searchapp.app.inspection.explanation import ExplainRequest, RankStatus, Reason, explain, loosen
from searchapp.app.inspection.live_ranking import BATCH_SIZE, usual_split
from searchapp.app.inspection.topics import RunTopics, TopicsRequest, open_topics, short_status
from searchapp.app.rank import RunRequest, make_run
from searchapp.app.topic_figures import FiguresByTopic, Order, TopicFigures
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.evaluation.measures import measure
from searchapp.model import Hits, Ranking, Run, Topic, float32
from searchapp.progress import SilentProgress
from searchapp.ranking import paging, recipes
from searchapp.ranking.ranker import RankedTopic, Ranker
from searchapp.runs import directory
from tests.app.conftest import SAMPLES

SPLITS = {"nlps": "dev", "explanation-2019": "dev", "checkthat": "training", "smart-types-wikidata": "fold0"}
"""Tasks whose scorers name topics by id, by lower-case id and by file, and tasks whose scorer names figures."""

SHALLOW = 5

MakeTopics = Callable[..., RunTopics]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory with the indexed samples and a deep and a shallow run of each."""
    home = tmp_path_factory.mktemp("topics")
    with closing(open_engine(Settings(home=home))) as engine:
        for name, split in SPLITS.items():
            task = tasks.load(name)
            collection = task.collection(SAMPLES / name)
            index_task(task, engine, collection, SilentProgress())
            recipe = recipes.load(task.recipe_book(), "bm25")
            for depth, folder in ((task.info.default_depth, name), (SHALLOW, f"{name}-shallow")):
                request = RunRequest(collection, split, recipe, depth, "test")
                make_run(task, engine, request, home / folder, SilentProgress())
    return home


@pytest.fixture
def topics(home: Path) -> Iterator[MakeTopics]:
    """Opens the topics of a run of a sample, or of a recipe that ranks it now."""
    with ExitStack() as stack:

        def open_sample(name: str, run: str | None = None, **options: Any) -> RunTopics:
            request = TopicsRequest(run=None if run is None else home / run, data=SAMPLES / name, **options)
            return open_topics(
                stack, tasks.load(name), request, Settings(home=home), SilentProgress(), lambda _words: None
            )

        yield open_sample


def figures_of(topics: RunTopics) -> FiguresByTopic:
    return topics.figures(Run("test", tuple(topics.rankings())))


def nlps_gold() -> dict[str, list[str]]:
    entries = json.loads((SAMPLES / "nlps" / "dev_set.json").read_text(encoding="utf-8"))
    return {topic: [str(premise) for premise in entry["premises"]] for topic, entry in entries.items()}


def ranked(path: Path) -> dict[str, list[str]]:
    """Read the rankings of a run, without searchapp."""
    return {
        topic: [document for document, _score in hits] for topic, hits in ranked_with_scores(path).items()
    }


@pytest.mark.parametrize("name", ["explanation-2019", "checkthat", "smart-types-wikidata"])
def test_the_mean_of_the_topics_figures_is_the_official_figure(
    topics: MakeTopics, home: Path, name: str
) -> None:
    figures = figures_of(topics(name, name))
    (scored,) = evaluate([home / name], GoldSource(data=SAMPLES / name))
    values = [figure.value for figure in figures.topics.values()]
    assert figures.instead_of is None and len(values) == scored.topics > 2
    assert None not in values
    assert sum(value or 0.0 for value in values) / len(values) == pytest.approx(
        scored.official.value, abs=1e-12
    )
    assert len(set(values)) > 1 or name == "smart-types-wikidata"


def test_another_measure_is_named_where_the_official_scorer_refuses_a_run(
    topics: MakeTopics, home: Path
) -> None:
    figures = figures_of(topics("nlps", "nlps"))  # the sample has fewer than 500 premises
    assert figures.instead_of is not None and "premises without repeats" in figures.instead_of
    gold = {topic: dict.fromkeys(premises, 1) for topic, premises in nlps_gold().items()}
    expected = measure(ranked(home / "nlps"), gold, [figures.name]).per_topic[figures.name]
    assert {topic: figure.value for topic, figure in figures.topics.items()} == expected


def test_missed_gold_is_counted_and_has_its_rank_in_a_deeper_ranking(topics: MakeTopics, home: Path) -> None:
    run_topics = topics("nlps", "nlps-shallow")
    shallow, deep, gold = ranked(home / "nlps-shallow"), ranked(home / "nlps"), nlps_gold()
    figures = figures_of(run_topics)
    statuses = set()
    for topic in run_topics.topics:
        missed = set(gold[topic]) - set(shallow[topic])
        assert figures.topics[topic] == TopicFigures(
            figures.topics[topic].value, len(gold[topic]), len(missed)
        )
        ranking = run_topics.ranking(topic)
        assert list(ranking.documents) == shallow[topic] and set(ranking.relevant) == set(gold[topic])
        assert {document.document_id for document in ranking.missed} == missed
        search = run_topics.look_for_missed(topic)
        assert not search.differs
        ranks = []
        for document in search.documents:
            assert document.reason is not None
            statuses.add(document.reason.status)
            if document.reason.status is RankStatus.ranked:
                assert document.reason.rank == deep[topic].index(document.document_id) + 1
            if document.reason.rank:
                ranks.append(document.reason.rank)
        assert ranks == sorted(ranks)
    assert RankStatus.ranked in statuses


def test_missed_gold_is_searched_for_in_a_deeper_ranking(
    topics: MakeTopics, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine returns one window of documents at a time, here 3 of about 70."""
    run_topics = topics("nlps", "nlps-shallow")
    topic = run_topics.topics[0]
    scored = [document for document, score in ranked_with_scores(home / "nlps")[topic] if score > 0]
    assert len(scored) > 10
    monkeypatch.setattr(paging, "WINDOW", 3)
    monkeypatch.setattr(run_topics, "_given_gold", lambda: {topic: {scored[-1]: 1}})
    (missed,) = run_topics.look_for_missed(topic).documents
    assert missed.reason is not None and missed.reason.rank == len(scored)
    explained = run_topics.why(topic, scored[-1])
    reason = explained.reason
    assert reason.rank == len(scored) and reason.explanation is not None
    assert float32(reason.explanation.value) == reason.score
    assert explained.deeper is not None and SHALLOW < reason.rank <= explained.deeper
    assert explained.sentence("nlps").endswith(f", in a ranking of {explained.deeper:,} documents")


def test_the_depth_grows_until_a_document_is_in_the_ranking(
    topics: MakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = topics("nlps", recipe="neighbours", split="dev")
    ranker, topic = live.ranker, live.pages.topic(live.topics[0])
    assert ranker is not None
    (hits,) = ranker.rank([topic], 300)
    last = max(index for index, score in enumerate(hits.scores) if score > 0)
    assert 3 < last < 30 <= len(hits)
    monkeypatch.setattr(paging, "WINDOW", 3)
    document = hits.document_ids[last]
    for depth, deeper in ((3, 30), (2, 30), (last, 10 * last)):
        deeper_ranking = ranker.deep(topic, {document}, depth)
        assert deeper_ranking.depth == deeper and document in deeper_ranking.hits.document_ids
        assert deeper_ranking.hits == ranker.rank([topic], deeper)[0]
    assert ranker.deep(topic, set(), 3).depth == 3
    assert ranker.deep(topic, {"nowhere"}, 2).depth == 3


def test_gold_below_the_depth_has_its_rank_in_the_run(topics: MakeTopics, home: Path) -> None:
    run_topics, deep, gold = topics("nlps", "nlps", depth=SHALLOW), ranked(home / "nlps"), nlps_gold()
    run_topics._open_ranker = None  # so that the test fails if the recipe ranks again
    for topic in run_topics.topics:
        ranks = {document: deep[topic].index(document) + 1 for document in gold[topic]}
        missed = run_topics.missed(topic)
        assert {document.document_id: document.reason and document.reason.rank for document in missed} == {
            document: rank for document, rank in ranks.items() if rank > SHALLOW
        }


def test_a_document_without_a_rank_has_a_reason(topics: MakeTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    nlps = topics("nlps", "nlps-shallow")
    topic = nlps.topics[0]
    gold = {topic: {"nowhere": 1, topic: 1}}
    monkeypatch.setattr(nlps, "_given_gold", lambda: gold)
    reasons = {document.document_id: document.reason for document in nlps.look_for_missed(topic).documents}
    assert reasons == {
        "nowhere": Reason("nowhere", RankStatus.unknown),
        topic: Reason(topic, RankStatus.filtered),
    }

    # Lines of another debate are filtered out, and a line without characteristic words has no score.
    debates = topics("checkthat", "checkthat-shallow")
    first, second = debates.topics[:2]
    monkeypatch.setattr(debates, "_given_gold", lambda: {first: {f"{second}:1": 1}})
    (missed,) = debates.look_for_missed(first).documents
    assert missed.reason == Reason(f"{second}:1", RankStatus.filtered)
    ranking = ranked_with_scores(debates.pages.rankings.path.parent.parent / "checkthat")[first]
    unscored = next((document for document, score in ranking if score == 0), None)
    if unscored is not None:
        monkeypatch.setattr(debates, "_given_gold", lambda: {first: {unscored: 1}})
        (missed,) = debates.look_for_missed(first).documents
        assert missed.reason == Reason(unscored, RankStatus.no_match)


def test_a_line_is_explained_by_the_model_and_by_its_neighbours(topics: MakeTopics, home: Path) -> None:
    task = tasks.load("checkthat")
    with closing(open_engine(Settings(home=home))) as engine:
        recipe = recipes.load(task.recipe_book(), "best")
        request = RunRequest(
            task.collection(SAMPLES / "checkthat"), "training", recipe, 9999, "test", home=home
        )
        make_run(task, engine, request, home / "checkthat-best", SilentProgress())
    debates = topics("checkthat", "checkthat-best")
    document, score = ranked_with_scores(home / "checkthat-best")[debates.topics[0]][0]
    explanation = debates.why(debates.topics[0], document).reason.explanation
    assert explanation is not None and explanation.value == pytest.approx(score)
    parts = {part.description.partition(",")[0]: part for part in explanation.details}
    # The share of bm25 is normalised by its highest score, but the explanation has the score itself.
    assert -1e-6 <= score - parts["lines"].value - 2 * parts["labelled"].value <= 0.2 + 1e-6
    features = [detail.description for part in parts["lines"].details for detail in part.details]
    assert any(feature.startswith("measure “") for feature in features)


def ranked_with_scores(path: Path) -> dict[str, list[tuple[str, float]]]:
    """Read the rankings of a run and their scores, without searchapp."""
    rankings: dict[str, list[tuple[str, float]]] = {}
    for line in (path / "run.trec").read_text().splitlines():
        topic, _q0, document, _rank, score, _tag = line.split()
        rankings.setdefault(topic, []).append((document, float(score)))
    return rankings


def test_missed_gold_of_a_run_of_another_system_is_only_not_in_the_run(
    topics: MakeTopics, home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "theirs.trec"
    path.write_text((home / "nlps-shallow" / "run.trec").read_text())
    run_topics = topics("nlps", str(path))
    assert run_topics.part.name == "dev"
    statuses = {
        document.reason.status
        for topic in run_topics.topics
        for document in run_topics.look_for_missed(topic).documents
        if document.reason is not None
    }
    assert statuses == {RankStatus.not_in_run}


def test_a_recipe_that_ranks_differently_than_the_run_is_reported(
    topics: MakeTopics, home: Path, tmp_path: Path
) -> None:
    stored = directory.read(home / "nlps-shallow")
    shortened = Run(
        "test",
        tuple(
            replace(ranking, hits=ranking.hits[:3])  # as if the index had changed since
            for ranking in stored.run
        ),
    )
    directory.write(tmp_path / "run", replace(stored.manifest, files={}), shortened, {})
    run_topics = topics("nlps", str(tmp_path / "run"))
    topic = next(topic for topic in run_topics.topics if run_topics.missed(topic))
    assert run_topics.look_for_missed(topic).differs
    explained = run_topics.why(topic, run_topics.ranking(topic).documents[0])
    assert explained.differs and explained.reason.rank == 1
    assert explained.sentence("nlps").endswith("; the recipe now ranks differently than in the run")


def test_why_explains_a_hit_and_missed_gold_with_the_score_of_its_rank(topics: MakeTopics) -> None:
    run_topics = topics("nlps", "nlps-shallow")
    for topic in run_topics.topics:
        reason = run_topics.why(topic, run_topics.ranking(topic).documents[0]).reason
        assert (reason.status, reason.rank) == (RankStatus.ranked, 1)
        assert reason.explanation is not None and reason.explanation.value == pytest.approx(reason.score)
        for missed in run_topics.missed(topic):
            reason = run_topics.why(topic, missed.document_id).reason
            if reason.status is RankStatus.ranked:
                assert reason.rank is not None and reason.rank > SHALLOW
                assert reason.explanation is not None and reason.explanation.value == pytest.approx(
                    reason.score
                )


def test_the_screen_and_the_command_explain_the_same_and_rank_once_a_depth(
    topics: MakeTopics, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = topics("nlps", recipe="neighbours", split="dev")
    topic = live.topics[0]
    depths: list[int] = []
    rank_topic = Ranker.rank_topic

    def record_depth(ranker: Ranker, topic: Topic, depth: int) -> RankedTopic:
        depths.append(depth)
        return rank_topic(ranker, topic, depth)

    monkeypatch.setattr(Ranker, "rank_topic", record_depth)
    ranking = live.ranking(topic)
    scored = [
        document for document, score in zip(ranking.documents, ranking.scores, strict=True) if score > 0
    ]
    with closing(open_engine(Settings(home=home))) as engine:
        for document, depth, expected in ((scored[0], 3, [3]), (scored[-1], 3, [3, paging.WINDOW])):
            task = live.task
            request = ExplainRequest(
                task, task.collection(SAMPLES / "nlps"), recipes.load(task.recipe_book(), "neighbours"),
                topic, document, "dev", depth,
            )  # fmt: skip
            depths.clear()
            explained = explain(request, engine, SilentProgress()).explained
            assert depths == expected
            assert explained.deeper == (None if len(expected) == 1 else expected[-1])
            monkeypatch.setattr(live.pages, "depth", depth)
            monkeypatch.setattr(live.pages.rankings, "ranking", lambda _topic: Ranking(topic, Hits()))
            on_screen = live.why(topic, document)
            assert (on_screen.reason, on_screen.deeper) == (explained.reason, explained.deeper)
            assert [share.signal for share in on_screen.reason.shares] == ["direct", "neighbours"]
            total = sum(share.value or 0.0 for share in on_screen.reason.shares)
            assert total == pytest.approx(on_screen.reason.score, rel=1e-6)


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
def test_a_live_ranking_is_that_of_a_run_of_the_recipe(topics: MakeTopics, home: Path, recipe: str) -> None:
    live = topics("nlps", recipe=recipe)
    assert live.pages.name == f"search {recipe}" and live.part.name == "dev"
    task = tasks.load("nlps")
    with closing(open_engine(Settings(home=home))) as engine:
        collection = task.collection(SAMPLES / "nlps")
        request = RunRequest(collection, "dev", recipes.load(task.recipe_book(), recipe), 500, "test")
        out = home / f"live-{recipe}"
        make_run(task, engine, request, out, SilentProgress())
    expected = ranked(out)
    backwards = list(reversed(live.topics))
    assert {topic: list(live.ranking(topic).documents) for topic in backwards} == expected
    assert {ranking.topic_id: list(ranking.document_ids()) for ranking in live.rankings()} == expected
    assert BATCH_SIZE > len(live.topics) > 3
    scores = ranked_with_scores(out)
    for topic in live.topics:
        assert live.pages.rankings.length(topic) == len(scores[topic])
        assert live.pages.rankings.scored(topic) == sum(score > 0 for _document, score in scores[topic])


def test_topics_are_sorted_by_file_figure_or_missed_gold(topics: MakeTopics) -> None:
    run_topics = topics("nlps", "nlps")
    a, b, c, d, *others = run_topics.topics
    figures = FiguresByTopic(
        "AP",
        {
            a: TopicFigures(0.5, 4, 1),
            b: TopicFigures(None, 0, 0),
            c: TopicFigures(0.1, 9, 2),
            d: TopicFigures(0.1, 9, 5),
        },
    )
    assert run_topics.in_order(Order.worst, figures) == [d, c, a, b, *others]
    assert run_topics.in_order(Order.missed, figures) == [d, c, a, b, *others]
    assert (
        run_topics.in_order(Order.file, figures)
        == [a, b, c, d, *others]
        == run_topics.in_order(Order.worst, None)
    )


def test_masked_gold_and_invalid_requests_are_refused(
    topics: MakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="--recipe and --run exclude each other"):
        topics("nlps", "nlps", recipe="bm25")
    with pytest.raises(UsageError, match="no split 'devv'"):
        topics("nlps", split="devv")
    run_topics = topics("nlps", "nlps")
    with pytest.raises(UsageError, match="the run has no topic 'x'"):
        run_topics.require("x")
    monkeypatch.setattr(type(run_topics.part.collection), "is_masked", lambda _self, _split: True)
    with pytest.raises(SearchappError, match="the gold of dev is masked"):
        figures_of(run_topics)
    ranking = run_topics.ranking(run_topics.topics[0])
    assert ranking.no_gold is not None and not ranking.missed and ranking.documents


def test_each_task_has_a_usual_split(tmp_path: Path) -> None:
    def split_of(name: str) -> str:
        task = tasks.load(name)
        return usual_split(task, task.collection(SAMPLES / name))

    assert {name: split_of(name) for name in SPLITS} == SPLITS
    task = tasks.load("nlps")
    with pytest.raises(DataError, match="has no topics of nlps"):
        usual_split(task, task.collection(tmp_path))


def test_every_rank_status_has_a_text() -> None:
    assert all(short_status(Reason("1", status, 7)) for status in RankStatus)
    assert short_status(Reason("1", RankStatus.ranked, 1234)) == "rank 1,234"


@pytest.mark.parametrize(
    ("query", "loose"),
    [
        ({"match": {"text": "a b"}}, {"match": {"text": {"query": "a b"}}}),
        (
            {"dis_max": {"queries": [{"match_phrase": {"text": {"query": "a b", "slop": 2}}}], "boost": 2}},
            {"dis_max": {"queries": [{"match": {"text": {"query": "a b"}}}], "boost": 2}},
        ),
        (
            {
                "constant_score": {
                    "filter": {"multi_match": {"query": "a", "fields": ["t"], "type": "phrase"}}
                }
            },
            {"constant_score": {"filter": {"multi_match": {"query": "a", "fields": ["t"]}}}},
        ),
        ({"bool": {"must": {"term": {"kind": "c"}}}}, {"bool": {"should": [{"term": {"kind": "c"}}]}}),
        ({"bool": {"filter": [{"term": {"kind": "c"}}]}}, {"bool": {"filter": [{"term": {"kind": "c"}}]}}),
        ({"match_all": {}}, {"match_all": {}}),
    ],
)
def test_a_loosened_query_requires_one_word_only(query: dict[str, Any], loose: dict[str, Any]) -> None:
    assert loosen(query) == loose
