"""Marking of query terms in documents, on both engines."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from searchapp.app.index import open_index
from searchapp.app.inspection.pages import Page, Pages
from searchapp.config.settings import Settings
from searchapp.engines.base import BEST_FIRST, Engine, Index, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused
from searchapp.formats.problems import Problems
from searchapp.model import Document
from searchapp.ranking import highlighting, recipes
from searchapp.ranking.highlighting import Marker, TextAnalyzer
from searchapp.ranking.search_results import documents_with_matches, page
from searchapp.tasks import load
from tests.real import RealRuns
from tests.server.rest import Server

MAPPING: dict[str, Any] = {
    "settings": {
        "analysis": {
            "filter": {
                "pairs": {"type": "shingle", "output_unigrams": False},
                "town": {"type": "synonym", "synonyms": ["nyc, new york"]},
            },
            "analyzer": {
                "words": {"tokenizer": "standard", "filter": ["lowercase"]},
                "pairs": {"tokenizer": "standard", "filter": ["lowercase", "pairs"]},
                "towns": {"tokenizer": "standard", "filter": ["lowercase", "town"]},
            },
        }
    },
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "text": {
                "type": "text",
                "analyzer": "words",
                "fields": {
                    "pairs": {"type": "text", "analyzer": "pairs"},
                    "written": {"type": "text", "analyzer": "whitespace"},
                    "towns": {"type": "text", "analyzer": "words", "search_analyzer": "towns"},
                },
            },
            "title": {"type": "text", "analyzer": "words"},
        },
    },
}

STATEMENTS = [
    "The kernel of a homomorphism is a normal subgroup of the domain.",
    "The centre of a group is a normal subgroup of it.",
    "The image of a compact set is compact.",
    "The sum of two odd numbers is even.",
    *(f"The number {number} is a successor of the number {number - 1}." for number in range(1, 37)),
]
DOCUMENTS = [
    Document(str(number), text, {"title": "kernel"}) for number, text in enumerate(STATEMENTS, start=1)
]

Open = Callable[..., Index]


@pytest.fixture(scope="module")
def on_server(elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine on the server, with the documents in the index `marks`."""
    prefix = f"test-{secrets.token_hex(6)}"
    settings = Settings(home=tmp_path_factory.mktemp("marks"), url=elasticsearch_url, index_prefix=prefix)
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        engine.build("marks", IndexSpec(MAPPING, len(DOCUMENTS), "1"), DOCUMENTS)
        yield engine
    Server(elasticsearch_url).delete_indices(prefix)


@pytest.fixture(params=["embedded", pytest.param("elasticsearch", marks=pytest.mark.elasticsearch)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens an index of documents on each of the engines."""
    with ExitStack() as stack:

        def make(documents: Sequence[Document] = DOCUMENTS) -> Index:
            name = "marks" if documents is DOCUMENTS else "others"
            engine: Engine
            if request.param == "embedded":
                engine = stack.enter_context(closing(EmbeddedEngine(tmp_path, "test")))
            else:
                engine = request.getfixturevalue("on_server")
            if request.param == "embedded" or name == "others":
                engine.build(name, IndexSpec(MAPPING, len(documents), "1"), documents)
            return engine.open(name)

        yield make


def marker(index: Index) -> Marker:
    return Marker(index, TextAnalyzer(index, MAPPING), MAPPING)


def marked(index: Index, document: str, query: Mapping[str, Any]) -> list[str]:
    """Return the marked words of a document."""
    result = documents_with_matches(index, marker(index), [document], query)[document]
    return [result.text[start:end] for start, end in result.matches]


def match(text: str, field: str = "text", **more: Any) -> dict[str, Any]:
    return {"match": {field: {"query": text, **more}}}


def test_words_of_most_documents_are_not_marked(opened: Open) -> None:
    topic = match("Show that the kernel of the natural homomorphism is a normal subgroup.")
    assert marked(opened(), "1", topic) == ["kernel", "homomorphism", "normal", "subgroup"]
    assert marked(opened(), "3", topic) == []


def test_the_rarest_words_of_a_query_of_common_words_are_marked(opened: Open) -> None:
    assert marked(opened(), "3", match("the is of")) == ["The", "of", "is"]


def test_rare_function_words_are_not_marked(opened: Open) -> None:
    # "by" and "odd" both occur in one document, so frequencies do not distinguish them.
    index = opened([*DOCUMENTS, Document("by", "Every even number is divided by two.")])
    assert marked(index, "by", match("odd by even")) == ["even"]
    assert marked(index, "by", {"term": {"text": "by"}}) == ["by"]
    assert marked(index, "by", match("by the")) == ["by"]


def test_a_word_without_documents_does_not_affect_marks(opened: Open) -> None:
    index = opened()
    assert marked(index, "7", match("the number zebra")) == marked(index, "7", match("the number"))


def test_a_phrase_is_marked_only_where_it_occurs(opened: Open) -> None:
    words, phrase = match("sum of two"), {"match_phrase": {"text": "is a successor of"}}
    assert marked(opened(), "7", phrase) == ["is", "a", "successor", "of"]
    assert marked(opened(), "4", {"bool": {"should": [words, phrase]}}) == ["sum", "two"]
    assert marked(opened(), "7", {"bool": {"should": [words, phrase]}}) == ["is", "a", "successor", "of"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"term": {"text": "of"}}, ["of"]),
        ({"terms": {"text": ["of", "is"]}}, ["of", "is"]),
        ({"prefix": {"text": "ev"}}, ["even"]),
        ({"constant_score": {"filter": match("the odd")}}, ["odd"]),
        ({"dis_max": {"queries": [match("the odd"), match("sum")]}}, ["sum", "odd"]),
        ({"function_score": {"query": match("the odd"), "weight": 2}}, ["odd"]),
        ({"boosting": {"positive": match("odd"), "negative": match("even"), "negative_boost": 0.5}}, ["odd"]),
        ({"multi_match": {"query": "the odd", "fields": ["text^2", "title"]}}, ["odd"]),
        ({"bool": {"must": match("odd"), "must_not": [match("kernel")]}}, ["odd"]),
        ({"bool": {"should": [match("odd"), match("even", boost=0)]}}, ["odd"]),
        (match("odd the", operator="and"), ["odd"]),
        ({"match": {"text": "odd the"}}, ["odd"]),
        (match("kernel", "title"), []),
        (match("odd zebra", analyzer="whitespace"), ["odd"]),
    ],
    ids=str,
)
def test_terms_of_all_kinds_of_queries_are_marked(
    opened: Open, query: dict[str, Any], expected: list[str]
) -> None:
    assert marked(opened(), "4", query) == expected


def test_pairs_of_words_do_not_mark_the_words_between_them(opened: Open) -> None:
    long = Document(
        "long", "normal subgroup and some more words that the query does not have, then odd numbers"
    )
    index = opened([*DOCUMENTS, long])
    both = [match("normal subgroup odd numbers"), match("normal subgroup odd numbers", "text.pairs")]
    words = ["normal", "subgroup", "odd", "numbers"]
    assert marked(index, "long", {"bool": {"should": both}}) == words
    # A query of pairs alone is marked.
    assert marked(index, "long", match("normal subgroup", "text.pairs")) == ["normal subgroup"]


def test_a_case_sensitive_field_does_not_make_words_rarer(opened: Open) -> None:
    # "Number" with a capital is rare: it occurs only at the beginning of one sentence.
    index = opened([*DOCUMENTS, Document("x", "Number theory is about the odd and the even.")])
    both = [match("Number even successor"), match("Number even successor", "text.written")]
    for document, expected in (("7", []), ("x", ["even"])):
        assert marked(index, document, {"bool": {"should": both}}) == expected
        assert marked(index, document, both[0]) == expected


def test_a_synonym_of_several_words_is_marked_like_the_query_matches(opened: Open) -> None:
    new_york = [Document("ny", "A new bridge in York, and one in New York."), Document("nyc", "In NYC")]
    index = opened([*DOCUMENTS, *new_york])
    for words in ("nyc", "the new york bridge"):
        query = match(words, "text.towns")
        marks = highlighting.highlight(index, MAPPING, query)
        by_query = {key: value for key, value in marks.items() if key != "highlight_query"}
        body = {"query": query, "size": 10, "sort": BEST_FIRST}
        assert index.find({**body, "highlight": marks}) == index.find({**body, "highlight": by_query})


def test_the_engine_rejects_invalid_queries(opened: Open) -> None:
    index = opened()
    queries: list[dict[str, Any]] = [{"bool": []}, {"match": {}}, {"match": {"text": {}}}, {"nonsense": 1}]
    for query in queries:
        with pytest.raises(EngineRefused):
            marked(index, "1", query)


def test_marks_do_not_depend_on_the_other_documents_of_a_request(opened: Open) -> None:
    index = opened()
    topic = match("the number 7 is odd")
    both = documents_with_matches(index, marker(index), ["4", "11"], topic)
    for id_ in ("4", "11"):
        (single,) = documents_with_matches(index, marker(index), [id_], topic).values()
        assert single.matches == both[id_].matches


def test_marks_do_not_depend_on_cached_frequencies(opened: Open) -> None:
    """The first request marks all words whose frequencies the server has not reported yet."""
    index = opened()
    topic = match("Show that the kernel of the natural number is a successor.")
    wanted = marker(index).request_for(topic)
    assert bool(marker(index).unknown(wanted)) is not index.is_local
    body = {"query": topic, "size": 50, "sort": BEST_FIRST}
    first = page(index, marker(index), body)
    assert not marker(index).unknown(wanted)
    assert first == page(index, marker(index), body) and first.total == len(first.results) > 30


def test_the_server_analyzes_texts_with_unsupported_analyzers(opened: Open) -> None:
    index = opened()
    unsupported = {**MAPPING, "settings": {"analysis": {"analyzer": {"words": {"tokenizer": "thai"}}}}}
    local, remote = TextAnalyzer(index, MAPPING), TextAnalyzer(index, unsupported)
    assert list(local.tokens("words", "Odd numbers")) == list(remote.tokens("words", "Odd numbers"))


def test_a_small_part_of_a_premise_is_marked(nlps_data: Path, real_runs: RealRuns) -> None:
    """Check statements of the dev split with their best premises; without weights 53 % of the words were marked."""
    task = load("nlps")
    recipe = recipes.load(task.recipe_book(), task.info.default_recipe)
    topics = task.collection(nlps_data).topics("dev", Problems())[:20]
    with closing(EmbeddedEngine.at(Settings(home=real_runs.home("nlps")))) as engine:
        index = open_index(task, engine)
        pages = Pages(task, index, {topic.id: topic for topic in topics}, recipe)
        shares = []
        for topic in topics:
            (best,) = index.search([recipe.body(topic, 10)])
            shares += [marked_share(pages.page(topic.id, id_)) for id_ in best.document_ids]
    assert 0.08 < mean(shares) < 0.25


def marked_share(page: Page) -> float:
    """Return the share of a page's words with a mark."""
    words = [word.span() for word in re.finditer(r"\S+", page.text)]
    marked = [any(begin < end and start < stop for start, end in page.matches) for begin, stop in words]
    return mean(marked) if marked else 0.0
