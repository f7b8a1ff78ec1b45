"""Chosen search bodies on chosen documents, by the names of their indexes: what is recorded beside random ones.

Those written by hand are mostly those that tests ask of both engines; some stand here only, for all that a body and a
query can say. Those on the sample collections are what searchapp itself asks: every recipe's templates, marked and
explained.
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
from tests.search import options
from tests.search.comparing import Json
from tests.search.drawing import Draw
from tests.search.options import match

TOPICS, DEPTH = 4, 10
"""Of each sample collection: how many topics are ranked, and how deep."""

TIED = 700
"""Documents with few different texts: enough for a sample of their scores to be drawn."""

ALL: Json = {"match_all": {}}
HIGHLIGHT = test_queries.HIGHLIGHT


def by_hand() -> dict[str, Json]:
    """Mapping, documents and bodies, these by name, of each index that was thought up."""
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
    }


def by_searchapp() -> dict[str, Json]:
    """The same of the sample collections and of their solved topics, asked what searchapp asks today."""
    found = {}
    for sample in samples():
        found[sample.task.name] = _ranked(sample)
        if sample.task.info.training_mapping:
            found[f"{sample.task.name}-training"] = _training_topics(sample)
    return found


def _case(mapping: Json, documents: Iterable[Document], bodies: Iterable[tuple[str, Json]]) -> Json:
    sources = [document.source() for document in documents]
    return {"mapping": copy.deepcopy(mapping), "documents": sources, "bodies": dict(bodies)}


def _queries() -> Iterator[tuple[str, Json]]:
    """Every query, explained and highlighted; and those that are refused."""
    for name, query in test_queries.QUERIES.items():
        yield name, body(query, explain=True, highlight=HIGHLIGHT)
    for query in test_refusals.SENSELESS:
        if "inf" not in repr(query):  # which is no JSON
            yield f"senseless {query}", body(query)


def _marked() -> Iterator[tuple[str, Json]]:
    """Every query, marked in all documents."""
    for name, query in test_queries.QUERIES.items():
        yield name, body(ALL, highlight={**HIGHLIGHT, "highlight_query": query}, _source=False)


def _explanations() -> Iterator[tuple[str, Json]]:
    for name, query in {**test_explanations.functions(), **test_explanations.INSIDE}.items():
        yield name, body(query, explain=True, _source=False)
    for name, query in test_explanations.around_nothing():
        yield name, body(query, explain=True, _source=False)


def _answers() -> Iterator[tuple[str, Json]]:
    for query in test_same_answers.ALIKE:
        yield f"{query}", body(query, explain=True, highlight=test_same_answers.HIGHLIGHT)
    for more in test_same_answers.COMING_ALONG:
        yield f"{more}", {"size": 50, "sort": ORDER, "highlight": test_same_answers.HIGHLIGHT, **more}
    for more in test_same_answers.REFUSED_BY_BOTH:
        yield f"{more}", {"size": 50, "sort": ORDER, **more}


def _synonyms() -> Iterator[tuple[str, Json]]:
    """Every text by every analyzer, in one of several queries in turn; by every field; and as a phrase."""
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
            asked = body(next(kinds)(text, analyzer), highlight=highlight, explain=True, _source=False)
            yield f"{text}, {analyzer}", asked
        for field in test_synonyms.FIELDS:
            yield f"{text} in {field}", body(match(text, field), highlight=highlight, _source=False)
        phrase = {"match_phrase": {"text.indexed": text}}
        yield f"phrase {text}", body(phrase, highlight=highlight, explain=True, _source=False)


def _frames() -> Iterator[tuple[str, Json]]:
    """All that a body can say beside its query, sound or not."""
    asked = {"size": 50, "sort": ORDER, "query": match("a b ring")}
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
    yield "as it is", asked
    for name, several in values.items():
        for value in several:
            yield f"{name} {value}", {**asked, name: value}
    for first, size in itertools.product((0, 1, 3, 4), (1, 2, 3)):
        yield f"from {first}, size {size}", {**asked, "from": first, "size": size}


def _highlights() -> Iterator[Any]:
    """The forms that `highlight` comes in."""
    text: Json = {"fields": {"text": {}}}
    several: tuple[Json, ...] = (
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
    for more in several:
        yield {"type": "plain", "number_of_fragments": 0, **text, **more}
    yield from ([], {}, True, "text")


def tied_documents() -> list[Document]:
    """Documents of few different texts, with ids in no order."""
    draw = Draw("ties")
    texts = ["a", "a b", "a b b", "a a b c", "c", "ring a b c", "b"]
    numbers = sorted(range(TIED), key=lambda number: (number * 7919) % TIED)
    return [
        Document(
            f"{number}" if number % 3 else f"é{number}", draw.one(texts), {"year": number % 4, "tag": "x"}
        )
        for number in numbers
    ]


def _ties() -> Iterator[tuple[str, Json]]:
    """Rankings that are cut within documents of one score, or just before or behind them."""
    asked = {
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
    for name, query in asked.items():
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


def _ranked(sample: Sample) -> Json:
    """The topics of a sample collection by the recipes' own queries."""
    task = sample.task
    documents = sample.collection.documents.read(Problems())
    topics = sample.collection.topics(sample.split, Problems())[:TOPICS]
    return _case(
        task.index_mapping(),
        documents,
        _asked(task.index_mapping(), topics, (recipe.query for recipe in _recipes(sample))),
    )


def _training_topics(sample: Sample) -> Json:
    """The solved topics of a sample collection, and topics that look for those that are alike."""
    task = sample.task
    examples = [one.topic for one in sample.collection.examples(sample.split, Problems())]
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
        _asked(mapping, topics, queries),
    )


def _recipes(sample: Sample) -> Iterator[Recipe]:
    book = sample.task.recipe_book()
    return (recipes.load(book, name) for name in recipes.names(book))


def _asked(
    mapping: Json, topics: Sequence[Topic], queries: Iterable[TopicQuery]
) -> Iterator[tuple[str, Json]]:
    """A body for each topic and query: as it ranks, and as a person sees it."""
    fields: Json = {name: {} for name in text_fields(mapping["mappings"]["properties"])}
    seen = {
        "_source": True,
        "explain": True,
        "highlight": {"type": "plain", "number_of_fragments": 0, "fields": fields},
    }
    for digest, query in {query.digest: query for query in queries}.items():
        for topic in topics:
            asked = query.body(topic, DEPTH)
            yield f"{topic.id} by {query.template.name} {digest[:6]}", {**asked, **seen}
