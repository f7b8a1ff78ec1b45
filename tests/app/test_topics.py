"""The topics of a run beside their gold: what is expected is read from the run's and the task's own files."""

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
"""Tasks whose scorers call topics by their ids, in small letters, by files, and of which figures have names."""

SHALLOW = 5

MakeTopics = Callable[..., RunTopics]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the samples indexed, and runs of them: deep ones, and a shallow one of nlps."""
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
    with ExitStack() as opened:

        def made(name: str, run: str | None = None, **further: Any) -> RunTopics:
            request = TopicsRequest(run=None if run is None else home / run, data=SAMPLES / name, **further)
            return open_topics(
                opened, tasks.load(name), request, Settings(home=home), SilentProgress(), lambda _words: None
            )

        yield made


def figures_of(found: RunTopics) -> FiguresByTopic:
    return found.figures(Run("test", tuple(found.rankings())))


def nlps_gold() -> dict[str, list[str]]:
    described = json.loads((SAMPLES / "nlps" / "dev_set.json").read_text(encoding="utf-8"))
    return {topic: [str(one) for one in entry["premises"]] for topic, entry in described.items()}


def ranked(path: Path) -> dict[str, list[str]]:
    """The rankings of a run, read without searchapp."""
    rankings: dict[str, list[str]] = {}
    for line in (path / "run.trec").read_text().splitlines():
        topic, _q0, document, *_rest = line.split()
        rankings.setdefault(topic, []).append(document)
    return rankings


@pytest.mark.parametrize("name", ["explanation-2019", "checkthat", "smart-types-wikidata"])
def test_the_mean_of_the_topics_figures_is_the_official_figure(
    topics: MakeTopics, home: Path, name: str
) -> None:
    found = figures_of(topics(name, name))
    (scored,) = evaluate([home / name], GoldSource(data=SAMPLES / name))
    values = [one.value for one in found.topics.values()]
    assert found.instead_of is None and len(values) == scored.topics > 2
    assert None not in values
    assert sum(one or 0.0 for one in values) / len(values) == pytest.approx(scored.official.value, abs=1e-12)
    assert len(set(values)) > 1 or name == "smart-types-wikidata"


def test_where_the_official_scorer_refuses_another_measure_stands_in_and_it_is_said(
    topics: MakeTopics, home: Path
) -> None:
    found = figures_of(topics("nlps", "nlps"))  # the sample has fewer than 500 premises
    assert found.instead_of is not None and "premises without repeats" in found.instead_of
    gold = {topic: dict.fromkeys(premises, 1) for topic, premises in nlps_gold().items()}
    expected = measure(ranked(home / "nlps"), gold, [found.name]).per_topic[found.name]
    assert {topic: one.value for topic, one in found.topics.items()} == expected


def test_missed_gold_is_counted_and_has_its_rank_in_a_deeper_ranking(topics: MakeTopics, home: Path) -> None:
    found = topics("nlps", "nlps-shallow")
    shallow, deep, gold = ranked(home / "nlps-shallow"), ranked(home / "nlps"), nlps_gold()
    figures = figures_of(found)
    seen = set()
    for topic in found.topics:
        missed = set(gold[topic]) - set(shallow[topic])
        assert figures.topics[topic] == TopicFigures(
            figures.topics[topic].value, len(gold[topic]), len(missed)
        )
        ranking = found.ranking(topic)
        assert list(ranking.documents) == shallow[topic] and set(ranking.relevant) == set(gold[topic])
        assert {one.document_id for one in ranking.missed} == missed
        sought = found.look_for_missed(topic)
        assert not sought.differs
        for one in sought.documents:
            assert one.reason is not None
            seen.add(one.reason.status)
            if one.reason.status is RankStatus.ranked:
                assert one.reason.rank == deep[topic].index(one.document_id) + 1
        ranks = [one.reason.rank for one in sought.documents if one.reason is not None and one.reason.rank]
        assert ranks == sorted(ranks)
    assert RankStatus.ranked in seen


def test_missed_gold_is_looked_for_in_a_ranking_that_is_deep_enough(
    topics: MakeTopics, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine gives a window at a time; here it is of 3 documents, of some 70."""
    found = topics("nlps", "nlps-shallow")
    topic = found.topics[0]
    scored = [document for document, score in ranked_with_scores(home / "nlps")[topic] if score > 0]
    assert len(scored) > 10
    monkeypatch.setattr(paging, "WINDOW", 3)
    monkeypatch.setattr(found, "_given_gold", lambda: {topic: {scored[-1]: 1}})
    (missed,) = found.look_for_missed(topic).documents
    assert missed.reason is not None and missed.reason.rank == len(scored)
    explained = found.why(topic, scored[-1])
    why = explained.reason
    assert why.rank == len(scored) and why.explanation is not None
    assert float32(why.explanation.value) == why.score
    assert explained.deeper is not None and SHALLOW < why.rank <= explained.deeper
    assert explained.sentence("nlps").endswith(f", in a ranking of {explained.deeper:,} documents")


def test_signals_are_fused_anew_until_a_document_is_in_the_ranking(
    topics: MakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = topics("nlps", recipe="neighbours", split="dev")
    ranks, topic = now.ranker, now.pages.topic(now.topics[0])
    assert ranks is not None
    (whole,) = ranks.rank([topic], 300)
    last = max(place for place, score in enumerate(whole.scores) if score > 0)
    assert 3 < last < 30 <= len(whole)
    monkeypatch.setattr(paging, "WINDOW", 3)
    wanted = whole.document_ids[last]
    for depth, deeper in ((3, 30), (2, 30), (last, 10 * last)):
        found = ranks.deep(topic, {wanted}, depth)
        assert found.depth == deeper and wanted in found.hits.document_ids
        assert found.hits == ranks.rank([topic], deeper)[0]
    assert ranks.deep(topic, set(), 3).depth == 3
    assert ranks.deep(topic, {"nowhere"}, 2).depth == 3


def test_gold_behind_the_depth_has_its_rank_in_the_run(topics: MakeTopics, home: Path) -> None:
    found, deep, gold = topics("nlps", "nlps", depth=SHALLOW), ranked(home / "nlps"), nlps_gold()
    found._open_ranker = None  # the recipe is not asked
    for topic in found.topics:
        expected = {
            one: deep[topic].index(one) + 1 for one in gold[topic] if deep[topic].index(one) >= SHALLOW
        }
        missed = found.missed(topic)
        assert {one.document_id: one.reason and one.reason.rank for one in missed} == expected


def test_a_document_without_a_rank_has_a_reason(topics: MakeTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    nlps = topics("nlps", "nlps-shallow")
    topic = nlps.topics[0]
    gold = {topic: {"nowhere": 1, topic: 1}}
    monkeypatch.setattr(nlps, "_given_gold", lambda: gold)
    whys = {one.document_id: one.reason for one in nlps.look_for_missed(topic).documents}
    assert whys == {
        "nowhere": Reason("nowhere", RankStatus.unknown),
        topic: Reason(topic, RankStatus.filtered),
    }

    # A debate is not ranked with the lines of another, and a line without characteristic words has no score.
    debates = topics("checkthat", "checkthat-shallow")
    first, second = debates.topics[:2]
    monkeypatch.setattr(debates, "_given_gold", lambda: {first: {f"{second}:1": 1}})
    (one,) = debates.look_for_missed(first).documents
    assert one.reason == Reason(f"{second}:1", RankStatus.filtered)
    ranking = ranked_with_scores(debates.pages.rankings.path.parent.parent / "checkthat")[first]
    without = next((document for document, score in ranking if score == 0), None)
    if without is not None:
        monkeypatch.setattr(debates, "_given_gold", lambda: {first: {without: 1}})
        (one,) = debates.look_for_missed(first).documents
        assert one.reason == Reason(without, RankStatus.no_match)


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
    # What bm25 gives is a share of its greatest score, which the explanation has as it is.
    assert -1e-6 <= score - parts["lines"].value - 2 * parts["labelled"].value <= 0.2 + 1e-6
    features = [one.description for part in parts["lines"].details for one in part.details]
    assert any(feature.startswith("measure “") for feature in features)


def ranked_with_scores(path: Path) -> dict[str, list[tuple[str, float]]]:
    rankings: dict[str, list[tuple[str, float]]] = {}
    for line in (path / "run.trec").read_text().splitlines():
        topic, _q0, document, _rank, score, _tag = line.split()
        rankings.setdefault(topic, []).append((document, float(score)))
    return rankings


def test_of_a_run_of_another_system_only_what_it_has_is_known(
    topics: MakeTopics, home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "theirs.trec"
    path.write_text((home / "nlps-shallow" / "run.trec").read_text())
    found = topics("nlps", str(path))
    assert found.part.name == "dev"
    standings = {
        one.reason.status
        for topic in found.topics
        for one in found.look_for_missed(topic).documents
        if one.reason is not None
    }
    assert standings == {RankStatus.not_in_run}


def test_a_recipe_that_ranks_otherwise_than_the_run_is_told(
    topics: MakeTopics, home: Path, tmp_path: Path
) -> None:
    stored = directory.read(home / "nlps-shallow")
    turned = Run(
        "test",
        tuple(
            replace(one, hits=one.hits[:3])  # as if the index had been another one
            for one in stored.run
        ),
    )
    directory.write(tmp_path / "run", replace(stored.manifest, files={}), turned, {})
    found = topics("nlps", str(tmp_path / "run"))
    topic = next(one for one in found.topics if found.missed(one))
    assert found.look_for_missed(topic).differs
    explained = found.why(topic, found.ranking(topic).documents[0])
    assert explained.differs and explained.reason.rank == 1
    assert explained.sentence("nlps").endswith("; the recipe now ranks differently than in the run")


def test_why_explains_a_hit_and_missed_gold_with_the_score_of_its_rank(topics: MakeTopics) -> None:
    found = topics("nlps", "nlps-shallow")
    for topic in found.topics:
        first = found.ranking(topic).documents[0]
        why = found.why(topic, first).reason
        assert (why.status, why.rank) == (RankStatus.ranked, 1)
        assert why.explanation is not None and why.explanation.value == pytest.approx(why.score)
        for one in found.missed(topic):
            why = found.why(topic, one.document_id).reason
            if why.status is RankStatus.ranked:
                assert why.rank is not None and why.rank > SHALLOW
                assert why.explanation is not None and why.explanation.value == pytest.approx(why.score)


def test_the_screen_and_the_command_say_the_same_and_ask_the_signals_once_a_depth(
    topics: MakeTopics, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = topics("nlps", recipe="neighbours", split="dev")
    topic = now.topics[0]
    depths: list[int] = []
    plain = Ranker.rank_topic

    def counted(ranker: Ranker, topic: Topic, depth: int) -> RankedTopic:
        depths.append(depth)
        return plain(ranker, topic, depth)

    monkeypatch.setattr(Ranker, "rank_topic", counted)
    scored = [one for one, score in zip(*ranking_of(now, topic), strict=True) if score > 0]
    with closing(open_engine(Settings(home=home))) as engine:
        for document, depth, expected in ((scored[0], 3, [3]), (scored[-1], 3, [3, paging.WINDOW])):
            task = now.task
            asked = ExplainRequest(
                task, task.collection(SAMPLES / "nlps"), recipes.load(task.recipe_book(), "neighbours"),
                topic, document, "dev", depth,
            )  # fmt: skip
            depths.clear()
            told = explain(asked, engine, SilentProgress()).explained
            assert depths == expected
            assert told.deeper == (None if len(expected) == 1 else expected[-1])
            monkeypatch.setattr(now.pages, "depth", depth)
            monkeypatch.setattr(now.pages.rankings, "ranking", lambda _topic: Ranking(topic, Hits()))
            shown = now.why(topic, document)
            assert (shown.reason, shown.deeper) == (told.reason, told.deeper)
            assert [share.signal for share in shown.reason.shares] == ["direct", "neighbours"]
            given = sum(share.value or 0.0 for share in shown.reason.shares)
            assert given == pytest.approx(shown.reason.score, rel=1e-6)


def ranking_of(found: RunTopics, topic: str) -> tuple[tuple[str, ...], tuple[float, ...]]:
    ranking = found.ranking(topic)
    return ranking.documents, ranking.scores


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
def test_what_a_recipe_ranks_now_is_what_its_run_has(topics: MakeTopics, home: Path, recipe: str) -> None:
    now = topics("nlps", recipe=recipe)
    assert now.pages.name == f"search {recipe}" and now.part.name == "dev"
    task = tasks.load("nlps")
    with closing(open_engine(Settings(home=home))) as engine:
        collection = task.collection(SAMPLES / "nlps")
        request = RunRequest(collection, "dev", recipes.load(task.recipe_book(), recipe), 500, "test")
        out = home / f"now-{recipe}"
        make_run(task, engine, request, out, SilentProgress())
    expected = ranked(out)
    backwards = list(reversed(now.topics))
    assert {topic: list(now.ranking(topic).documents) for topic in backwards} == expected
    assert {one.topic_id: list(one.document_ids()) for one in now.rankings()} == expected
    assert BATCH_SIZE > len(now.topics) > 3
    scores = ranked_with_scores(out)
    for topic in now.topics:
        assert now.pages.rankings.length(topic) == len(scores[topic])
        assert now.pages.rankings.scored(topic) == sum(score > 0 for _one, score in scores[topic])


def test_topics_are_ordered_as_asked(topics: MakeTopics) -> None:
    found = topics("nlps", "nlps")
    a, b, c, d, *rest = found.topics
    figures = FiguresByTopic(
        "AP",
        {
            a: TopicFigures(0.5, 4, 1),
            b: TopicFigures(None, 0, 0),
            c: TopicFigures(0.1, 9, 2),
            d: TopicFigures(0.1, 9, 5),
        },
    )
    assert found.in_order(Order.worst, figures) == [d, c, a, b, *rest]
    assert found.in_order(Order.missed, figures) == [d, c, a, b, *rest]
    assert found.in_order(Order.file, figures) == [a, b, c, d, *rest] == found.in_order(Order.worst, None)


def test_masked_gold_and_requests_that_make_no_sense_are_told(
    topics: MakeTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="--recipe and --run exclude each other"):
        topics("nlps", "nlps", recipe="bm25")
    with pytest.raises(UsageError, match="no split 'devv'"):
        topics("nlps", split="devv")
    found = topics("nlps", "nlps")
    with pytest.raises(UsageError, match="the run has no topic 'x'"):
        found.require("x")
    monkeypatch.setattr(type(found.part.collection), "is_masked", lambda _self, _split: True)
    with pytest.raises(SearchappError, match="the gold of dev is masked"):
        figures_of(found)
    ranking = found.ranking(found.topics[0])
    assert ranking.no_gold is not None and not ranking.missed and ranking.documents


def test_the_split_that_is_ranked_where_none_is_named(tmp_path: Path) -> None:
    def split_of(name: str) -> str:
        task = tasks.load(name)
        return usual_split(task, task.collection(SAMPLES / name))

    assert {name: split_of(name) for name in SPLITS} == SPLITS
    task = tasks.load("nlps")
    with pytest.raises(DataError, match="has no topics of nlps"):
        usual_split(task, task.collection(tmp_path))


def test_every_standing_has_words() -> None:
    assert all(short_status(Reason("1", one, 7)) for one in RankStatus)
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
def test_of_a_loosened_query_one_word_suffices(query: dict[str, Any], loose: dict[str, Any]) -> None:
    assert loosen(query) == loose
