"""Random documents and random queries give the same on both engines, and so does the real data."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from searchapp import resources
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused
from searchapp.formats.problems import Problems
from searchapp.model import Document, Topic
from searchapp.ranking import recipes
from searchapp.settings import Settings
from searchapp.tasks.nlps import TASK
from tests.engines.embedded.conftest import Both, spec_of

QUERIES_AN_INDEX = 60
"""Making an index on the server takes longer than searching it."""

WORDS = ["a", "b", "c", "ring", "Ring", "the", "of", "é", "e\u0301", "😀", r"\alpha", "$x^2$", "ﬁ", "x" * 300]
TAGS = ["x", "y", "", "é", "😀"]

texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.lists(st.sampled_from(WORDS), min_size=30, max_size=400).map(" ".join),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30),
)
numbers = st.integers(-5, 5)
ratios = st.one_of(st.sampled_from([0.0, -0.0, 0.1, 0.5, 1e10]), st.floats(-10, 10, width=32))
fields = st.fixed_dictionaries(
    {},
    optional={
        "tag": st.one_of(st.none(), st.sampled_from(TAGS), st.lists(st.sampled_from(TAGS), max_size=4)),
        "year": st.one_of(numbers, st.lists(numbers, max_size=3)),
        "weight": st.floats(0, 100),
        "ratio": st.one_of(ratios, st.lists(ratios, max_size=3)),
    },
)
corpora = st.lists(st.tuples(texts, fields), min_size=1, max_size=25).map(
    lambda rows: [Document(str(number * 7 % 31), text, more) for number, (text, more) in enumerate(rows)]
)

boosts = st.one_of(st.none(), st.sampled_from([0, 0.1, 0.3, 1, 1.7, 33, 1e-7, 1e9]))
minimums = st.one_of(
    st.none(),
    st.integers(-3, 4),
    st.integers(-110, 110).map("{}%".format),
    st.sampled_from(["2<50%", "1<-1 3<60%"]),
)
names = st.sampled_from(["text", "text.gaps", "text.alike"])


def boosted(values: dict[str, Any], boost: float | None) -> dict[str, Any]:
    return values if boost is None else {**values, "boost": boost}


@st.composite
def matches(draw: st.DrawFn) -> dict[str, Any]:
    given: dict[str, Any] = {"query": draw(texts)}
    given |= {"operator": "and"} if draw(st.integers(0, 4)) == 0 else {}
    minimum = draw(minimums)
    given |= {} if minimum is None else {"minimum_should_match": minimum}
    given |= {"zero_terms_query": "all"} if draw(st.integers(0, 4)) == 0 else {}
    given = boosted(given, draw(boosts))
    if draw(st.integers(0, 3)):
        return {"match": {draw(names): given}}
    kind, tie_breaker = (
        draw(st.sampled_from(["best_fields", "most_fields"])),
        draw(st.sampled_from([None, 0, 0.3, 1])),
    )
    given["type"] = kind
    if tie_breaker is not None:
        given["tie_breaker"] = tie_breaker
    chosen = draw(
        st.lists(st.sampled_from(["text", "text.gaps^2", "text.alike^0.3", "tag"]), min_size=1, unique=True)
    )
    return {"multi_match": given | {"fields": chosen}}


def phrase(words: list[str], field: str, boost: float | None) -> dict[str, Any]:
    return {"match_phrase": {field: boosted({"query": " ".join(words)}, boost)}}


leaves = st.one_of(
    matches(),
    st.builds(
        phrase,
        st.lists(st.sampled_from(WORDS[:8]), max_size=4),
        st.sampled_from(["text", "text.gaps"]),
        boosts,
    ),
    st.builds(
        lambda value, boost: {"term": {"tag": boosted({"value": value}, boost)}},
        st.sampled_from(TAGS),
        boosts,
    ),
    st.builds(
        lambda value, boost: {"term": {"text": boosted({"value": value}, boost)}},
        st.sampled_from(WORDS),
        boosts,
    ),
    st.builds(lambda value: {"terms": {"tag": value}}, st.lists(st.sampled_from(TAGS), max_size=3)),
    st.builds(lambda value: {"term": {"year": value}}, numbers),
    st.builds(
        lambda low, high, boost: {"range": {"year": boosted({"gt": low, "lte": high}, boost)}},
        numbers,
        numbers,
        boosts,
    ),
    st.builds(lambda low: {"range": {"weight": {"gte": low}}}, st.floats(0, 100)),
    st.builds(
        lambda low, high: {"range": {"ratio": {"gt": low, "lt": high}}},
        st.one_of(st.none(), ratios),
        st.one_of(st.none(), ratios),
    ),
    st.builds(lambda value: {"term": {"ratio": value}}, ratios),
    st.builds(
        lambda name, values: {"terms": {name: values}},
        st.sampled_from(["ratio", "weight"]),
        st.lists(ratios, max_size=3),
    ),
    st.builds(
        lambda field: {"exists": {"field": field}}, st.sampled_from(["text", "text.gaps", "tag", "year"])
    ),
    st.builds(lambda value: {"prefix": {"text": value}}, st.sampled_from(["r", "a", "é", "x", ""])),
    st.builds(lambda value: {"ids": {"values": value}}, st.lists(st.integers(0, 31).map(str), max_size=4)),
    st.builds(lambda boost: {"match_all": boosted({}, boost)}, boosts),
    st.just({"match_none": {}}),
)


def compounds(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, max_size=3)

    @st.composite
    def bools(draw: st.DrawFn) -> dict[str, Any]:
        clauses: dict[str, Any] = {
            kind: draw(some) for kind in ("must", "should", "filter", "must_not") if draw(st.booleans())
        }
        minimum = draw(minimums)
        clauses |= {} if minimum is None else {"minimum_should_match": minimum}
        return {"bool": boosted(clauses, draw(boosts))}

    return st.one_of(
        bools(),
        st.builds(
            lambda queries, tie, boost: {"dis_max": boosted({"queries": queries, "tie_breaker": tie}, boost)},
            st.lists(inner, min_size=1, max_size=3),
            st.sampled_from([0, 0.3, 1]),
            boosts,
        ),
        st.builds(lambda query, boost: {"constant_score": boosted({"filter": query}, boost)}, inner, boosts),
        st.builds(
            lambda positive, negative, factor, boost: {
                "boosting": boosted(
                    {"positive": positive, "negative": negative, "negative_boost": factor}, boost
                )
            },
            inner,
            inner,
            st.sampled_from([0, 0.3, 1.5]),
            boosts,
        ),
        function_scores(inner),
    )


@st.composite
def function_scores(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    given: dict[str, Any] = {"query": draw(inner)} if draw(st.integers(0, 4)) else {}
    given["functions"] = draw(st.lists(functions(inner), max_size=3))
    more = {
        "score_mode": st.sampled_from(["multiply", "sum", "avg", "first", "max", "min"]),
        "boost_mode": st.sampled_from(["multiply", "replace", "sum", "avg", "max", "min"]),
        "max_boost": st.sampled_from([0, 0.7, 3]),
        "min_score": st.sampled_from([0, 0.5, 2]),
    }
    given |= {name: draw(values) for name, values in more.items() if draw(st.booleans())}
    return {"function_score": boosted(given, draw(boosts))}


@st.composite
def functions(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    is_value, is_weight = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    if is_value:
        given["field_value_factor"] = {
            "field": "weight",
            "missing": draw(st.sampled_from([0, 0.3, 1, 7])),
            "factor": draw(st.sampled_from([0, 0.3, 1, 1000])),
            "modifier": draw(st.sampled_from(["none", "log1p", "log2p", "ln1p", "ln2p", "square", "sqrt"])),
        }
    if is_weight:
        given["weight"] = draw(st.sampled_from([0, 0.3, 1, 2]))
    if draw(st.booleans()):
        given["filter"] = draw(inner)
    return given


NOT_EXPLAINED = re.compile(
    "explanation of (`function_score` inside|a query inside another one that matches nothing|a score that reaches)"
)
"""What the embedded engine refuses to explain, for the server's words are different each time."""

queries = st.recursive(leaves, compounds, max_leaves=8)


@hypothesis.settings(
    max_examples=max(5, hypothesis.settings().max_examples // 20),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, *hypothesis.HealthCheck],
    print_blob=True,
)
@hypothesis.given(
    documents=corpora, asked=st.lists(queries, min_size=QUERIES_AN_INDEX, max_size=QUERIES_AN_INDEX)
)
def test_random_queries_on_random_documents_rank_the_same(
    both: Callable[..., Both], documents: list[Document], asked: list[dict[str, Any]]
) -> None:
    engines = both(documents)
    for query in asked:
        engines.require_same_hits(query)


@hypothesis.settings(
    max_examples=max(5, hypothesis.settings().max_examples // 20),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, *hypothesis.HealthCheck],
    print_blob=True,
)
@hypothesis.given(
    documents=corpora, asked=st.lists(queries, min_size=QUERIES_AN_INDEX, max_size=QUERIES_AN_INDEX)
)
def test_random_queries_on_random_documents_are_explained_the_same(
    both: Callable[..., Both], documents: list[Document], asked: list[dict[str, Any]]
) -> None:
    engines = both(documents)
    for query in asked:
        try:
            engines.require_same_found(query, explain=True)
        except EngineRefused as refusal:
            if not NOT_EXPLAINED.search(str(refusal)):
                raise


@pytest.mark.parametrize("recipe_name", ["bm25", "words"])
def test_all_dev_topics_of_nlps_rank_the_same_at_depth_500(
    nlps_data: Path, elasticsearch_url: str, index_prefix: str, tmp_path: Path, recipe_name: str
) -> None:
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix)
    documents = list(TASK.collection(nlps_data).documents.read(Problems()))
    topics: list[Topic] = TASK.collection(nlps_data).topics("dev", Problems())
    recipe = recipes.load("nlps", recipe_name)
    spec = spec_of(documents, resources.index_mapping(TASK.info.mapping))
    with (
        closing(EmbeddedEngine.at(settings)) as embedded,
        closing(ElasticsearchEngine.connect(settings)) as server,
    ):
        rankings = []
        for engine in (embedded, server):
            engine.build("nlps", spec, documents)
            rankings.append(list(engine.open("nlps").search(recipe.body(topic, 500) for topic in topics)))
    assert len(rankings[0]) == len(topics) == 1913
    differing = [
        topic.id for topic, found, expected in zip(topics, *rankings, strict=True) if found != expected
    ]
    assert not differing
