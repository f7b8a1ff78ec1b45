"""`searchapp search`: what it prints for people and for programs, and how it ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from searchapp.app.saved_searches import SavedSearchFile, SearchQuery
from searchapp.config.resolution import resolve
from searchapp.ranking.query_language import FieldFilter
from tests.cli.conftest import SAMPLE, Cli, Result, run_command

pytestmark = pytest.mark.shared_indexes

CHECKTHAT = SAMPLE.parent / "checkthat"


@pytest.fixture
def nlps(offline: Cli) -> Cli:
    """Searches the sample of nlps."""
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    return lambda *arguments: offline("search", "nlps", *arguments)


@pytest.fixture
def checkthat(offline: Cli) -> Cli:
    """Searches the sample of checkthat."""
    assert offline("index", "checkthat", "--data", CHECKTHAT).code == 0
    return lambda *arguments: offline("search", "checkthat", *arguments)


def piped(typed: str | bytes, *arguments: str) -> Result:
    return run_command("search", "nlps", *arguments, typed=typed)


def ids(result: Result) -> list[str]:
    assert result.code == 0, result.stderr
    return [hit["id"] for hit in result.json["hits"]]


def test_signs_choose_among_the_documents(nlps: Cli) -> None:
    assert ids(nlps("+normal +kernel", "--json")) == ["603"]
    assert "603" not in ids(nlps("normal -kernel", "--json"))
    assert ids(nlps("--json", "--size", 100, "--", "-kernel"))
    assert ids(nlps('"of a group homomorphism"', "--json")) == ["603"]


def test_a_broken_query_is_a_mistake_that_says_where(nlps: Cli) -> None:
    result = nlps("normal (subgroup")
    assert (result.code, result.stdout) == (2, "")
    assert (
        result.stderr
        == 'searchapp: character 8 of the query: this "(" is not closed: add ")" or put \\ before it\n'
    )


def test_more_clauses_than_engines_take_are_one_sentence(nlps: Cli) -> None:
    for typed, code in (("+ring " * 300, 2), (" ".join(f"ring{number}" for number in range(9_000)), 3)):
        result = nlps(typed)
        assert (result.code, result.stdout) == (code, "")
        assert result.stderr.startswith("searchapp: ") and result.stderr.count("\n") == 1
        assert "internal error" not in result.stderr


def test_ranks_go_on_where_the_last_page_ended(nlps: Cli) -> None:
    every = nlps("ring", "--json", "--size", 100).json["hits"]
    assert nlps("ring", "--json", "--from", 3, "--size", 2).json["hits"] == every[2:4]
    assert every[2]["rank"] == 3
    assert nlps("ring", "--from", 3, "--size", 1).stdout.startswith(f"  3  {every[2]['id']}  ")
    beyond = nlps("ring", "--from", 1_000)
    assert (beyond.code, beyond.stdout) == (0, "")
    assert f"nlps has no rank 1,000: only {len(every)} documents match" in beyond.stderr
    assert nlps("ring", "--from", 20_000, "--json").json["hits"] == []
    assert nlps("ring", "--from", 0).code == 2


def test_filters_leave_documents_with_a_value(checkthat: Cli) -> None:
    shown = checkthat("the people", "--json", "--size", 1).json["hits"][0]["id"]
    opened = checkthat("--document", shown, "--json").json["document"]
    for filtered in ("speaker", "debate", "line"):
        found = ids(checkthat("the people", "--filter", f"{filtered}={opened[filtered]}", "--json"))
        assert shown in found
    result = checkthat("people", "--filter", "speaker=NOBODY")
    assert (result.code, result.stdout) == (0, "")
    assert "no document of checkthat matches the query with these filters" in result.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("speker=X", "unknown filter field 'speker' (did you mean speaker?): choose debate or part"),
        ("=X", "the filter '=X' is not FIELD=VALUE"),
        ("line=x", "the filter line=x: line is a field of whole numbers, not 'x'"),
    ],
)
def test_a_filter_that_makes_no_sense_is_a_mistake(checkthat: Cli, given: str, message: str) -> None:
    result = checkthat("people", "--filter", given)
    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_learned_recipe_ranks_words(nlps: Cli, offline: Cli, tmp_path: Path) -> None:
    assert ids(nlps("every ring is a group", "--recipe", "neighbours", "--json"))
    shown = nlps("every ring is a group", "--recipe", "neighbours", "--explain", "--size", 1)
    assert "fused by sum" in shown.stdout and "neighbours, weight" in shown.stdout
    missing = nlps("ring", "--recipe", "neighbours", "--data", tmp_path / "nowhere")
    assert missing.code == 4
    assert "does not exist: give their folder" in missing.stderr and "--data" in missing.stderr


def test_an_index_is_searched_when_its_files_are_gone(offline: Cli, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in SAMPLE.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    assert offline("index", "nlps", "--data", moved).code == 0
    moved.rename(tmp_path / "gone")
    assert ids(offline("search", "nlps", "ring", "--json"))
    assert offline("search", "nlps", "ring", "--recipe", "neighbours").code == 4


# Why


@pytest.mark.parametrize(
    ("typed", "document", "status", "sentence"),
    [
        ("ring", "nowhere", "unknown", "nowhere is not indexed: no document of nlps has this id"),
        (
            "kernel -normal",
            "603",
            "excluded",
            "603 matches part of the query, but a + or - excludes it",
        ),
        ("ring", "603", "no match", "603 matches no part of the query"),
    ],
)
def test_search_explains_missing_documents(
    nlps: Cli, typed: str, document: str, status: str, sentence: str
) -> None:
    assert nlps(typed, "--explain-document", document).stdout == f"{sentence}\n"
    assert nlps(typed, "--explain-document", document, "--json").json == {
        "task": "nlps",
        "document_id": document,
        "status": status,
        "rank": None,
        "score": None,
        "explanation": None,
        "signals": [],
    }


def test_it_is_told_why_a_document_is_where_it_is(nlps: Cli) -> None:
    hit = nlps("normal subgroup", "--json").json["hits"][2]
    told = nlps("normal subgroup", "--explain-document", hit["id"], "--json").json
    assert (told["status"], told["rank"], told["score"]) == ("ranked", 3, hit["score"])
    assert told["explanation"]["value"] == pytest.approx(hit["score"], rel=1e-6)
    first, *rest = nlps("normal subgroup", "--explain-document", hit["id"]).stdout.splitlines()
    assert first == f"{hit['id']} is at rank 3, with the score {hit['score']:.4f}"
    assert any("text: " in line for line in rest)


def test_a_filter_can_be_why(checkthat: Cli) -> None:
    shown = ids(checkthat("the people", "--json"))[0]
    told = checkthat("the people", "--filter", "speaker=NOBODY", "--explain-document", shown)
    assert told.stdout == f"{shown} matches, but a filter excludes it\n"


# One document


def test_a_document_is_shown_whole(checkthat: Cli) -> None:
    hit = checkthat("the people", "--json").json["hits"][0]
    opened = checkthat("people", "--document", hit["id"], "--json").json
    assert set(opened) == {"task", "id", "matches", "document"}
    assert (opened["task"], opened["id"], opened["document"]["text"]) == ("checkthat", hit["id"], hit["text"])
    matched = [hit["text"][start:end].lower() for start, end in opened["matches"]]
    assert set(matched) == {"people"}
    shown = checkthat("--document", hit["id"]).stdout
    assert shown.startswith(f"{hit['id']}\n")
    assert f"speaker: {opened['document']['speaker']}\n" in shown
    assert hit["text"] in shown
    assert "has the id 'nowhere'" in checkthat("--document", "nowhere").stderr
    assert checkthat("--document", "nowhere").code == 2


# A pipe


def test_each_line_of_a_pipe_is_a_search(nlps: Cli) -> None:
    typed = "kernel\n\n  +ring -field \nzygomorphic\n"
    result = piped(typed, "--json", "--size", "3")
    assert result.code == 0
    assert set(result.json) == {"task", "searches"}
    assert [search["query"] for search in result.json["searches"]] == [
        "kernel",
        "+ring -field",
        "zygomorphic",
    ]
    for one in result.json["searches"]:
        assert one["hits"] == nlps(one["query"], "--json", "--size", 3).json["hits"]
    shown = piped(typed, "--size", "1").stdout
    assert shown.splitlines()[0] == "kernel"
    assert "\n+ring -field\n" in shown and "\nzygomorphic\n" in shown


def test_an_empty_pipe_is_no_search(nlps: Cli) -> None:
    assert piped("", "--json").json == {"task": "nlps", "searches": []}
    assert piped("\n \n") == Result(0, "", "")


def test_a_broken_line_is_told_by_its_number(nlps: Cli) -> None:
    result = piped('kernel\n\n"ring\n', "--json")
    assert (result.code, result.stdout) == (2, "")
    assert "line 3 of the input: character 1 of the query: this quotation mark" in result.stderr


def test_a_pipe_that_is_no_text_is_told(nlps: Cli) -> None:
    result = piped(b"kernel\n\xff\n", "--json")
    assert (result.code, result.stdout) == (4, "")
    assert "the input is not UTF-8 text" in result.stderr


def test_a_hit_is_described_for_programs(nlps: Cli) -> None:
    result = nlps('+kernel "normal subgroup"', "--json", "--explain", "--size", 1).json
    assert set(result) == {"task", "query", "hits"}
    (hit,) = result["hits"]
    assert set(hit) == {"rank", "id", "score", "text", "matches", "explanation"}
    assert hit["explanation"]["value"] == pytest.approx(hit["score"], rel=1e-6)
    assert [hit["text"][start:end] for start, end in hit["matches"]] == ["kernel", "normal", "subgroup"]


def test_a_saved_search_is_printed_and_listed(checkthat: Cli, tmp_path: Path) -> None:
    assert checkthat("--list-saved").stderr.startswith("checkthat has no saved searches")
    assert checkthat("--list-saved", "--json").json == {"task": "checkthat", "saved": []}
    settings = resolve({}, os.environ)
    saved = SavedSearchFile(settings.home, "checkthat")
    filters = (FieldFilter("speaker", "CASTELL"),)
    saved.save("jobs", SearchQuery("jobs", None, filters))
    saved.save("alike\x1b[2J", SearchQuery("-signs (are words", None, (), "a:1", literal=True))
    result = ids(checkthat("--saved", "jobs", "--json"))
    assert result == ids(checkthat("jobs", "--filter", "speaker=CASTELL", "--json")) != []
    other = ids(checkthat("--saved", "jobs", "--filter", "speaker=BRANDT", "--json"))
    assert other == ids(checkthat("jobs", "--filter", "speaker=BRANDT", "--json")) != result
    assert ids(checkthat("--saved", "alike\x1b[2J", "--json"))
    listed = checkthat("--list-saved").stdout
    assert listed.splitlines()[0] == "alike␛[2J  like a:1"
    assert listed.splitlines()[1] == "jobs  jobs  speaker=CASTELL"
    assert [one["name"] for one in checkthat("--list-saved", "--json").json["saved"]] == [
        "alike\x1b[2J",
        "jobs",
    ]
    refused = checkthat("--saved", "job")
    assert refused.code == 2 and "checkthat has no saved search 'job' (did you mean jobs?)" in refused.stderr
    both = checkthat("words", "--saved", "jobs")
    assert both.code == 2 and "WORDS and --saved exclude each other" in both.stderr
