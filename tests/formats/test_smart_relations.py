"""Reading and writing of the JSON files of relation prediction."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from searchapp.formats.json_files import official_ids
from searchapp.formats.problems import Problems
from searchapp.tasks.smart_relations.task import (
    RelationQuestion,
    read_dbpedia_vocabulary,
    read_predictions,
    read_questions,
    read_wikidata_vocabulary,
)
from searchapp.tasks.splits import words_of, write_entries
from tests.files import notes, write

put = partial(write, name="file.json")


def messages(problems: Problems) -> list[str]:
    return [
        f"{problem.where}: {problem.kind}: {problem.detail}".removesuffix(": ").removeprefix(": ")
        for problem in problems
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("birthPlace", "birth place"),
        ("highschool", "highschool"),
        ("isPartOfWineRegion", "is part of wine region"),
        ("bSide", "b side"),
        ("NCAASeason", "ncaa season"),
        ("teamURL", "team url"),
        ("area51Total_km", "area 51 total km"),
        ("größteÜberschrift", "größte überschrift"),
    ],
)
def test_names_of_relations_are_split_into_words(name: str, words: str) -> None:
    assert words_of(name) == words


def test_the_vocabulary_of_dbpedia_becomes_documents(tmp_path: Path) -> None:
    names = ["dbo:birthPlace", "dbp:birthplace", "dbo:birthPlace", 7, "author", ""]
    path, problems = put(tmp_path, names), Problems()
    documents = list(read_dbpedia_vocabulary(path, problems))
    assert [document.source() for document in documents] == [
        {"id": "dbo:birthPlace", "text": "birth place", "namespace": "dbo", "name": "birthPlace"},
        {"id": "dbp:birthplace", "text": "birthplace", "namespace": "dbp", "name": "birthplace"},
    ]
    assert messages(problems) == [
        "line 1: duplicate relation: dbo:birthPlace",
        "line 1: wrong type: a relation is an integer, not a string",
        "line 1: unusable relation: author is not like dbo:birthPlace",
        "line 1: unusable relation: '' is not like dbo:birthPlace",
    ]


def test_the_vocabulary_of_wikidata_becomes_documents(tmp_path: Path) -> None:
    vocabulary = {
        "P19": {
            "id": "P19",
            "label": "place of birth",
            "aliases": "born in, birthplace",
            "description": "where",
        },
        "P20": {"id": "P20", "label": "place of death"},
        "P21": {"id": "P22", "label": "x"},
        "Q5": {"id": "Q5", "label": "x"},
        "P6": {"id": "P6", "label": " ", "alias": "x", "description": None},
        "P7": "x",
        "P8": {},
    }
    path, problems = put(tmp_path, vocabulary), Problems()
    documents = [document.source() for document in read_wikidata_vocabulary(path, problems)]
    assert documents == [
        {"id": "P19", "text": "place of birth", "aliases": "born in, birthplace", "description": "where"},
        {"id": "P20", "text": "place of death"},
    ]
    assert messages(problems) == [
        "property P21: contradiction: its `id` is P22",
        "property Q5: unusable id: it is not like P19",
        "property P6: unknown key: alias is not one of id, label, aliases, description",
        "property P6: blank text: label must not be blank",
        "property P6: wrong type: description is null, not a string",
        "property P7: wrong type: the value is a string, not an object",
        "property P8: missing key: id: the object has no keys",
        "property P8: missing key: label: the object has no keys",
    ]


def test_a_repeated_property_is_reported(tmp_path: Path) -> None:
    entry = '{"id": "P1", "label": "x"}'
    path, problems = put(tmp_path, f'{{"P1": {entry}, "P1": {entry}}}'), Problems()
    assert len(list(read_wikidata_vocabulary(path, problems))) == 1
    assert messages(problems) == ["property P1: duplicate id: the first one counts"]


def question(id_: Any = "q", text: Any = "Who?", relations: Any = (("r:a",),), **more: Any) -> dict[str, Any]:
    return {"id": id_, "question": text, "relations": relations, **more}


def test_questions_with_slots_and_with_flat_gold_are_read(tmp_path: Path) -> None:
    slots = put(tmp_path, [question(relations=[["r:a", "r:b"], ["r:a"]], sparql="ASK")])
    problems = Problems()
    assert list(read_questions(slots, problems, slots=True, known={"r:a", "r:b"})) == [
        RelationQuestion("q", "Who?", (("r:a", "r:b"), ("r:a",)))
    ]
    flat = put(tmp_path, [question(relations=["P1", "P1"]), question("q2", relations=["P2"])])
    gold = [(("P1",), ("P1",)), (("P2",),)]
    assert [read.slots for read in read_questions(flat, problems, slots=False)] == gold
    assert not list(problems)


NO_WHITESPACE = "an id must not be empty or contain white space, which run files do not allow"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (7, "line 1: wrong type: the entry is an integer, not an object"),
        (
            {"question": "Who?", "relations": [["r:a"]]},
            "line 1: missing key: id: the object has question, relations",
        ),
        (question(True), "line 1: wrong type: id is a boolean, not a string or an integer"),
        (question("a b"), f"line 1: unusable id: 'a b': {NO_WHITESPACE}"),
        (question(""), f"line 1: unusable id: '': {NO_WHITESPACE}"),
        (
            question("\ud800"),
            "line 1: lone surrogate: '\\ud800': the id has an escape that is half of a surrogate pair",
        ),
        (question(text=" "), "line 1: question q: blank text: question must not be blank"),
        (
            question(text="\udfff"),
            "line 1: question q: lone surrogate: question has an escape that is half of a surrogate pair",
        ),
        (
            {"id": "q", "relations": [["r:a"]]},
            "line 1: question q: missing key: question: the object has id, relations",
        ),
        (
            {"id": "q", "question": "Who?"},
            "line 1: question q: missing key: relations: the object has id, question",
        ),
        (question(relations=None), "line 1: question q: wrong type: relations is null, not a list"),
        (
            question(relations=["r:a"]),
            "line 1: question q: wrong type: a slot is a string, not a list of relations",
        ),
        (question(relations=[["r:z"]]), "line 1: question q: unknown relation: r:z is not in the vocabulary"),
        (question(relations=[[1]]), "line 1: question q: wrong type: a relation is an integer, not a string"),
    ],
)
def test_an_invalid_question_is_reported_and_skipped(tmp_path: Path, entry: Any, problem: str) -> None:
    path, problems = put(tmp_path, [entry]), Problems()
    assert list(read_questions(path, problems, slots=True, known={"r:a"})) == []
    assert messages(problems) == [problem]


@pytest.mark.parametrize(
    ("relations", "slots", "note"),
    [
        ([], None, "no gold"),
        ([["r:a"], []], (("r:a",),), "empty slot"),
        ([["r:a", "r:a"]], (("r:a",),), "repeated relation"),
    ],
)
def test_unusual_gold_is_noted_and_its_question_is_read(
    tmp_path: Path, relations: Any, slots: object, note: str
) -> None:
    path, problems = put(tmp_path, [question(relations=relations)]), Problems()
    (read,) = read_questions(path, problems, slots=True, known={"r:a"})
    assert read.slots == slots and not messages(problems)
    assert [kind for kind, _ in notes(problems)] == [note]


@pytest.mark.parametrize("text", [None, ""])
def test_a_question_without_words_is_noted_and_skipped(tmp_path: Path, text: Any) -> None:
    path, problems = put(tmp_path, [question(text=text), question("r")]), Problems()
    assert [read.id for read in read_questions(path, problems, slots=True)] == ["r"]
    assert [kind for kind, _ in notes(problems)] == ["no question"]


def test_ids_may_be_integers(tmp_path: Path) -> None:
    path, problems = put(tmp_path, [question(4), question(5), question("6")]), Problems()
    assert [read.id for read in read_questions(path, problems, slots=True)] == ["4", "5"]
    assert messages(problems) == ["line 1: wrong type: id is a string, and an integer in the first entry"]
    assert official_ids(path) == {"4": 4, "5": 5, "6": "6"}


def test_repeated_ids_and_keys_are_reported(tmp_path: Path) -> None:
    entry = '{"id": "q", "question": "Who?", "relations": ["P1"]'
    repeated_key = f'{entry.replace("q", "p", 1)}, "question": "x"}}'
    path, problems = put(tmp_path, f"[{entry}}},\n{entry}}},\n{repeated_key}]"), Problems()
    assert [read.id for read in read_questions(path, problems, slots=False)] == ["q"]
    assert messages(problems) == ["line 2: duplicate id: q", "line 3: question p: duplicate key: question"]


def test_masked_gold_may_be_missing_null_or_empty(tmp_path: Path) -> None:
    entries = [
        {"id": "a", "question": "Who?"},
        question("b", relations=None),
        question("c", relations=[]),
        question("d"),
    ]
    path, problems = put(tmp_path, entries), Problems()
    read = list(read_questions(path, problems, slots=True, masked=True))
    assert [question.slots for question in read] == [None, None, None, (("r:a",),)]
    assert not list(problems)


def test_topics_do_not_depend_on_their_gold(tmp_path: Path) -> None:
    path, problems = put(tmp_path, [question(relations=[["unknown", 7], None])]), Problems()
    (read,) = read_questions(path, problems, slots=True, gold=False, known=set())
    assert read.text == "Who?"
    assert not list(problems)


def test_written_predictions_are_read_back(tmp_path: Path) -> None:
    file = io.BytesIO()
    write_entries(file, [{"id": 1, "relations": ["dbo:a", "dbo:a"]}, {"id": 2, "relations": ["dbo:größe"]}])
    path, problems = put(tmp_path, file.getvalue().decode()), Problems()
    assert list(read_predictions(path, problems, {"dbo:a", "dbo:größe"})) == [
        (2, "1", 1, ("dbo:a", "dbo:a")),
        (3, "2", 2, ("dbo:größe",)),
    ]
    assert not list(problems)
    assert json.loads(file.getvalue()) == [
        {"id": 1, "relations": ["dbo:a", "dbo:a"]},
        {"id": 2, "relations": ["dbo:größe"]},
    ]


def test_all_problems_of_predictions_are_reported(tmp_path: Path) -> None:
    lines = [
        {"id": "a"},
        {"id": "b", "relations": []},
        {"id": "c", "relations": [["r:a"]]},
        {"id": "d", "relations": ["x"]},
    ]
    path, problems = put(tmp_path, "[" + ",\n".join(map(json.dumps, lines)) + "]"), Problems()
    assert list(read_predictions(path, problems, {"r:a"})) == []
    assert messages(problems) == [
        "line 1: question a: missing key: relations: the object has id",
        "line 2: question b: no relation: the official scorer needs at least one",
        "line 3: question c: wrong type: a relation is a list, not a string",
        "line 4: question d: unknown relation: x is not in the vocabulary",
    ]
