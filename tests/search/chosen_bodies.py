"""Chosen search bodies and documents that are recorded in addition to random ones.

Bodies written by hand are mostly those that tests send to both engines. Bodies on the sample collections are those of
searchapp itself: the templates of every recipe, highlighted and explained.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from searchapp.app.demo import Sample, samples
from searchapp.formats.problems import Problems
from searchapp.model import Document, Topic
from searchapp.ranking import recipes
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.search_results import text_fields
from searchapp.ranking.templates import TopicQuery
from tests.engines.embedded import (
    test_explanations,
    test_queries,
    test_refusals,
    test_same_answers,
    test_synonyms,
)
from tests.engines.embedded.conftest import MAPPING, ORDER, body
from tests.search import object_bodies, options
from tests.search.comparing import Json
from tests.search.drawing import Draw
from tests.search.options import match

TOPICS, DEPTH = 4, 10
"""Topics of each sample collection, and the depth of their rankings."""

TIED = 700
"""Number of documents with few different texts, enough to sample their scores."""

ALL: Json = {"match_all": {}}
HIGHLIGHT = test_queries.HIGHLIGHT


def by_hand() -> dict[str, Json]:
    """Return mapping, documents and bodies by name of each index written by hand."""
    return {
        "queries": _case(MAPPING, test_queries.DOCUMENTS, _queries()),
        "marked": _case(MAPPING, test_queries.DOCUMENTS, _marked()),
        "explanations": _case(MAPPING, test_explanations.DOCUMENTS, _explanations()),
        "answers": {
            "mapping": test_same_answers.mapping(),
            "documents": test_same_answers.DOCUMENTS,
            "bodies": dict(_answers()),
        },
        "synonyms": _case(test_synonyms.MAPPING, test_synonyms.DOCUMENTS, _synonyms()),
        "frames": _case(MAPPING, test_queries.DOCUMENTS, _frames()),
        "options": _case(MAPPING, test_queries.DOCUMENTS, options.bodies()),
        "ties": _case(MAPPING, tied_documents(), _ties()),
        "objects": _case(object_bodies.MAPPING, object_bodies.documents(), object_bodies.bodies()),
    }


def by_searchapp() -> dict[str, Json]:
    """Return the same of the sample collections and their training topics, with the present queries of searchapp."""
    cases = {}
    for sample in samples():
        cases[sample.task.name] = _topics(sample)
        if sample.task.info.training_mapping:
            cases[f"{sample.task.name}-training"] = _training_topics(sample)
    return cases


def _case(mapping: Json, documents: Iterable[Document], bodies: Iterable[tuple[str, Json]]) -> Json:
    sources = [document.source() for document in documents]
    return {"mapping": copy.deepcopy(mapping), "documents": sources, "bodies": dict(bodies)}


def _queries() -> Iterator[tuple[str, Json]]:
    """Yield every query, explained and highlighted, and rejected queries."""
    for name, query in test_queries.QUERIES.items():
        yield name, body(query, explain=True, highlight=HIGHLIGHT)
    for query in test_refusals.INVALID_QUERIES:
        if "inf" not in repr(query):  # JSON has no infinity
            yield f"senseless {query}", body(query)


def _marked() -> Iterator[tuple[str, Json]]:
    """Yield every query as the `highlight_query` of all documents."""
    for name, query in test_queries.QUERIES.items():
        yield name, body(ALL, highlight={**HIGHLIGHT, "highlight_query": query}, _source=False)


def _explanations() -> Iterator[tuple[str, Json]]:
    for name, query in {**test_explanations.functions(), **test_explanations.INSIDE}.items():
        yield name, body(query, explain=True, _source=False)
    for name, query in test_explanations.around_nothing():
        yield name, body(query, explain=True, _source=False)


def _answers() -> Iterator[tuple[str, Json]]:
    for query in test_same_answers.VALID_QUERIES:
        yield f"{query}", body(query, explain=True, highlight=test_same_answers.HIGHLIGHT)
    for request in test_same_answers.VALID_BODIES:
        yield f"{request}", {"size": 50, "sort": ORDER, "highlight": test_same_answers.HIGHLIGHT, **request}
    for request in test_same_answers.INVALID_BODIES:
        yield f"{request}", {"size": 50, "sort": ORDER, **request}


def _synonyms() -> Iterator[tuple[str, Json]]:
    """Yield every text with every analyzer, in alternating queries, in every field and as a phrase."""
    highlight = {
        "type": "plain",
        "number_of_fragments": 0,
        "fields": {"text": {}, "text.both": {}, "tag": {}},
    }
    kinds: Iterator[Callable[[str, str], Json]] = itertools.cycle(
        [
            lambda text, analyzer: match(text, analyzer=analyzer),
            lambda text, analyzer: match(text, analyzer=analyzer, operator="and"),
            lambda text, analyzer: match(text, analyzer=analyzer, minimum_should_match=2),
            lambda text, analyzer: match(text, "tag", analyzer=analyzer),
            lambda text, analyzer: {
                "multi_match": {"query": text, "fields": ["text", "text.both^2"], "analyzer": analyzer}
            },
        ]
    )
    for text in test_synonyms.TEXTS:
        for analyzer in test_synonyms.ANALYZERS:
            request = body(next(kinds)(text, analyzer), highlight=highlight, explain=True, _source=False)
            yield f"{text}, {analyzer}", request
        for field in test_synonyms.FIELDS:
            yield f"{text} in {field}", body(match(text, field), highlight=highlight, _source=False)
        phrase = {"match_phrase": {"text.indexed": text}}
        yield f"phrase {text}", body(phrase, highlight=highlight, explain=True, _source=False)


def _frames() -> Iterator[tuple[str, Json]]:
    """Yield all keys of a search body with valid and invalid values."""
    request = {"size": 50, "sort": ORDER, "query": match("a b ring")}
    values: Mapping[str, Sequence[Any]] = {
        "from": [0, 1, 2, 5, 100, "2", 1.5, "1.5", -1, "x", None, True, 9_999, 9_951],
        "size": [0, 1, 3, 50, "3", 2.7, -1, "x", None, False, 10_000, 10_001],
        "sort": [
            *(
                [{"_score": {"order": "desc"}}, {"id": {"order": "asc"}}],
                ["_score", "id"],
                ["_score", {"id": "asc"}],
            ),
            *([{"_score": "DESC"}, {"id": "ASC"}], [{"_score": "up"}, "id"], ["_score", "nowhere"], "", {}),
        ],
        "_source": [
            *(True, False, "tag", "nowhere", ["id", "year"], [], "", {"includes": ["id", "tag"]}),
            *({"excludes": "text"}, {"includes": ["id", "text"], "excludes": ["text"]}, {"includes": []}),
            *({}, {"excludes": []}, {"includes": True}, 1, None),
        ],
        "track_total_hits": [True, False, "true", "false", 0, 5, -1, -2, "5", "x", None, 1.0],
        "track_scores": [True, False, "true", "false", 1, "x", None],
        "explain": [True, False, "true", "false", 1, "no", None],
        "query": [None, {}, [], "a", ALL, {"match_all": {}, "match_none": {}}, {"nothing": {}}],
        "highlight": list(_highlights()),
        "unknown": [1],
    }
    yield "nothing but an order", {"sort": ORDER}
    yield "as it is", request
    for name, candidates in values.items():
        for value in candidates:
            yield f"{name} {value}", {**request, name: value}
    for first, size in itertools.product((0, 1, 3, 4), (1, 2, 3)):
        yield f"from {first}, size {size}", {**request, "from": first, "size": size}


def _highlights() -> Iterator[Any]:
    """Yield forms of `highlight`."""
    text: Json = {"fields": {"text": {}}}
    forms: tuple[Json, ...] = (
        *({"pre_tags": ["<"]}, {"post_tags": [">"]}, {"pre_tags": "<", "post_tags": ">"}),
        *({"pre_tags": ["<", "["], "post_tags": [">", "]"]}, {"pre_tags": [""], "post_tags": [""]}),
        *(
            {"number_of_fragments": "0"},
            {"require_field_match": True},
            {"highlight_query": match("c", "tag")},
        ),
        *({"highlight_query": match("c")}, {"highlight_query": {}}, {"highlight_query": {"nothing": {}}}),
        *({"fields": [{"text": {}}, {"tag": {}}]}, {"fields": ["text"]}, {"fields": {"text": None}}),
        *({"fields": {"year": {}, "nowhere": {}, "text.alike": {}}}, {"fields": {}}, {"fields": "text"}),
        {"fields": {"text": {"pre_tags": ["("], "post_tags": [")"]}, "text.gaps": {}}},
        *({"number_of_fragments": "x"}, {"pre_tags": 5, "post_tags": 5}, {"unknown": 1}),
    )
    for more in forms:
        yield {"type": "plain", "number_of_fragments": 0, **text, **more}
    yield from ([], {}, True, "text")


def tied_documents() -> list[Document]:
    """Return documents with few different texts, and ids in no order."""
    draw = Draw("ties")
    texts = ["a", "a b", "a b b", "a a b c", "c", "ring a b c", "b"]
    numbers = sorted(range(TIED), key=lambda number: (number * 7919) % TIED)
    return [
        Document(
            f"{number}" if number % 3 else f"é{number}", draw.choice(texts), {"year": number % 4, "tag": "x"}
        )
        for number in numbers
    ]


def _ties() -> Iterator[tuple[str, Json]]:
    """Yield rankings cut within ties, or just before or after them."""
    ranked = {
        "common": match("a b"),
        "rare": match("ring c"),
        "all alike": ALL,
        "none above 0": match("a", boost=0),
        "none": match("zebra"),
        "both": match("a c", operator="and"),
        "filtered": {"bool": {"must": [match("a b c")], "filter": [{"range": {"year": {"gte": 2}}}]}},
        "filter alone": {"bool": {"filter": [{"term": {"year": 3}}]}},
        "excluding": {"bool": {"must": [ALL], "must_not": [match("a")]}},
        "constants": {"constant_score": {"filter": match("c ring"), "boost": 0.3}},
        "functions": {
            "function_score": {
                "query": match("a"),
                "field_value_factor": {"field": "year", "modifier": "ln2p"},
            }
        },
    }
    for name, query in ranked.items():
        for first, size in (
            (0, 1),
            (0, 7),
            (3, 10),
            (0, 50),
            (95, 10),
            (0, 400),
            (690, 20),
            (699, 1),
            (700, 1),
        ):
            yield f"{name}, {size} from {first}", body(query, size, **{"from": first, "_source": False})


def _topics(sample: Sample) -> Json:
    """Return the topics of a sample collection with the recipes' direct queries."""
    task = sample.task
    documents = sample.collection.documents.read(Problems())
    topics = sample.collection.topics(sample.split, Problems())[:TOPICS]
    return _case(
        task.index_mapping(),
        documents,
        _topic_bodies(task.index_mapping(), topics, (recipe.query for recipe in _recipes(sample))),
    )


def _training_topics(sample: Sample) -> Json:
    """Return the training topics of a sample collection, and queries of topics for similar training topics."""
    task = sample.task
    examples = [
        training_topic.topic for training_topic in sample.collection.examples(sample.split, Problems())
    ]
    topics = sample.collection.topics(sample.split, Problems())[:TOPICS]
    own = {recipe.query.digest for recipe in _recipes(sample)}
    queries = (
        query
        for recipe in _recipes(sample)
        for signal in recipe.signals
        for query in signal.queries
        if query.digest not in own
    )
    mapping = task.examples_index_mapping()
    assert mapping is not None
    return _case(
        mapping,
        [Document(topic.id, topic.text, topic.fields) for topic in examples],
        _topic_bodies(mapping, topics, queries),
    )


def _recipes(sample: Sample) -> Iterator[Recipe]:
    book = sample.task.recipe_book()
    return (recipes.load(book, name) for name in recipes.names(book))


def _topic_bodies(
    mapping: Json, topics: Sequence[Topic], queries: Iterable[TopicQuery]
) -> Iterator[tuple[str, Json]]:
    """Yield a body for each topic and query, with the details that screens show."""
    fields: Json = {name: {} for name in text_fields(mapping["mappings"]["properties"])}
    details = {
        "_source": True,
        "explain": True,
        "highlight": {"type": "plain", "number_of_fragments": 0, "fields": fields},
    }
    for digest, query in {query.digest: query for query in queries}.items():
        for topic in topics:
            request = query.body(topic, DEPTH)
            yield f"{topic.id} by {query.template.name} {digest[:6]}", {**request, **details}
