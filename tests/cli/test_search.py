"""`searchapp search`: its text and JSON output, errors, pipes and saved searches."""

from __future__ import annotations

import json
import os
import shutil
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


def search_lines(typed: str | bytes, *arguments: str) -> Result:
    return run_command("search", "nlps", *arguments, typed=typed)


def hit_ids(result: Result) -> list[str]:
    assert result.code == 0, result.stderr
    return [hit["id"] for hit in result.json["hits"]]


def test_operators_select_documents(nlps: Cli) -> None:
    assert hit_ids(nlps("+normal +kernel", "--json")) == ["603"]
    assert "603" not in hit_ids(nlps("normal -kernel", "--json"))
    assert hit_ids(nlps("--json", "--size", 100, "--", "-kernel"))
    assert hit_ids(nlps('"of a group homomorphism"', "--json")) == ["603"]


def test_a_syntax_error_is_reported_with_its_position(nlps: Cli) -> None:
    result = nlps("normal (subgroup")
    assert (result.code, result.stdout) == (2, "")
    assert (
        result.stderr
        == 'searchapp: character 8 of the query: this "(" is not closed: add ")" or put \\ before it\n'
    )


def test_too_many_clauses_are_reported_in_one_line(nlps: Cli) -> None:
    for typed, code in (("+ring " * 300, 2), (" ".join(f"ring{number}" for number in range(9_000)), 3)):
        result = nlps(typed)
        assert (result.code, result.stdout) == (code, "")
        assert result.stderr.startswith("searchapp: ") and result.stderr.count("\n") == 1
        assert "internal error" not in result.stderr


def test_ranks_continue_on_the_next_page(nlps: Cli) -> None:
    hits = nlps("ring", "--json", "--size", 100).json["hits"]
    assert nlps("ring", "--json", "--from", 3, "--size", 2).json["hits"] == hits[2:4]
    assert hits[2]["rank"] == 3
    assert nlps("ring", "--from", 3, "--size", 1).stdout.startswith(f"  3  {hits[2]['id']}  ")
    beyond = nlps("ring", "--from", 1_000)
    assert (beyond.code, beyond.stdout) == (0, "")
    assert f"nlps has no rank 1,000: only {len(hits)} documents match" in beyond.stderr
    assert nlps("ring", "--from", 20_000, "--json").json["hits"] == []
    assert nlps("ring", "--from", 0).code == 2


def test_filters_select_documents_with_a_value(checkthat: Cli) -> None:
    shown = checkthat("the people", "--json", "--size", 1).json["hits"][0]["id"]
    opened = checkthat("--document", shown, "--json").json["document"]
    for field in ("speaker", "debate", "line"):
        filtered = checkthat("the people", "--filter", f"{field}={opened[field]}", "--json")
        assert shown in hit_ids(filtered)
    result = checkthat("people", "--filter", "speaker=NOBODY")
    assert (result.code, result.stdout) == (0, "")
    assert "no document of checkthat matches the query with these filters" in result.stderr


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        ("speker=X", "unknown filter field 'speker' (did you mean speaker?): choose debate or part"),
        ("=X", "the filter '=X' is not FIELD=VALUE"),
        ("line=x", "the filter line=x: line is a field of whole numbers, not 'x'"),
    ],
)
def test_invalid_filters_are_refused(checkthat: Cli, filter_: str, message: str) -> None:
    result = checkthat("people", "--filter", filter_)
    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_learned_recipe_ranks_words(nlps: Cli, offline: Cli, tmp_path: Path) -> None:
    assert hit_ids(nlps("every ring is a group", "--recipe", "neighbours", "--json"))
    result = nlps("every ring is a group", "--recipe", "neighbours", "--explain", "--size", 1)
    assert "fused by sum" in result.stdout and "neighbours, weight" in result.stdout
    missing = nlps("ring", "--recipe", "neighbours", "--data", tmp_path / "nowhere")
    assert missing.code == 4
    assert "does not exist: give their folder" in missing.stderr and "--data" in missing.stderr


def test_an_index_can_be_searched_without_its_files(offline: Cli, tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    assert offline("index", "nlps", "--data", data).code == 0
    data.rename(tmp_path / "moved")
    assert hit_ids(offline("search", "nlps", "ring", "--json"))
    assert offline("search", "nlps", "ring", "--recipe", "neighbours").code == 4


# Explanations


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


def test_the_rank_of_a_document_is_explained(nlps: Cli) -> None:
    hit = nlps("normal subgroup", "--json").json["hits"][2]
    reason = nlps("normal subgroup", "--explain-document", hit["id"], "--json").json
    assert (reason["status"], reason["rank"], reason["score"]) == ("ranked", 3, hit["score"])
    assert reason["explanation"]["value"] == pytest.approx(hit["score"], rel=1e-6)
    first, *rest = nlps("normal subgroup", "--explain-document", hit["id"]).stdout.splitlines()
    assert first == f"{hit['id']} is at rank 3, with the score {hit['score']:.4f}"
    assert any("text: " in line for line in rest)


def test_a_document_may_be_excluded_by_a_filter(checkthat: Cli) -> None:
    document = hit_ids(checkthat("the people", "--json"))[0]
    result = checkthat("the people", "--filter", "speaker=NOBODY", "--explain-document", document)
    assert result.stdout == f"{document} matches, but a filter excludes it\n"


# One document


def test_a_document_is_shown_with_all_fields(checkthat: Cli) -> None:
    hit = checkthat("the people", "--json").json["hits"][0]
    opened = checkthat("people", "--document", hit["id"], "--json").json
    assert set(opened) == {"task", "id", "matches", "document"}
    assert (opened["task"], opened["id"], opened["document"]["text"]) == ("checkthat", hit["id"], hit["text"])
    assert {hit["text"][start:end].lower() for start, end in opened["matches"]} == {"people"}
    text = checkthat("--document", hit["id"]).stdout
    assert text.startswith(f"{hit['id']}\n")
    assert f"speaker: {opened['document']['speaker']}\n" in text
    assert hit["text"] in text
    assert "has the id 'nowhere'" in checkthat("--document", "nowhere").stderr
    assert checkthat("--document", "nowhere").code == 2


# A pipe


def test_each_line_of_a_pipe_is_a_search(nlps: Cli) -> None:
    typed = "kernel\n\n  +ring -field \nzygomorphic\n"
    result = search_lines(typed, "--json", "--size", "3")
    assert result.code == 0
    assert set(result.json) == {"task", "searches"}
    assert [search["query"] for search in result.json["searches"]] == [
        "kernel",
        "+ring -field",
        "zygomorphic",
    ]
    for search in result.json["searches"]:
        assert search["hits"] == nlps(search["query"], "--json", "--size", 3).json["hits"]
    text = search_lines(typed, "--size", "1").stdout
    assert text.splitlines()[0] == "kernel"
    assert "\n+ring -field\n" in text and "\nzygomorphic\n" in text


def test_an_empty_pipe_has_no_searches(nlps: Cli) -> None:
    assert search_lines("", "--json").json == {"task": "nlps", "searches": []}
    assert search_lines("\n \n") == Result(0, "", "")


def test_a_syntax_error_in_a_pipe_is_reported_with_its_line(nlps: Cli) -> None:
    result = search_lines('kernel\n\n"ring\n', "--json")
    assert (result.code, result.stdout) == (2, "")
    assert "line 3 of the input: character 1 of the query: this quotation mark" in result.stderr


def test_a_pipe_that_is_not_utf_8_is_refused(nlps: Cli) -> None:
    result = search_lines(b"kernel\n\xff\n", "--json")
    assert (result.code, result.stdout) == (4, "")
    assert "the input is not UTF-8 text" in result.stderr


def test_a_hit_in_json_has_matches_and_an_explanation(nlps: Cli) -> None:
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
    result = hit_ids(checkthat("--saved", "jobs", "--json"))
    assert result == hit_ids(checkthat("jobs", "--filter", "speaker=CASTELL", "--json")) != []
    other = hit_ids(checkthat("--saved", "jobs", "--filter", "speaker=BRANDT", "--json"))
    assert other == hit_ids(checkthat("jobs", "--filter", "speaker=BRANDT", "--json")) != result
    assert hit_ids(checkthat("--saved", "alike\x1b[2J", "--json"))
    listed = checkthat("--list-saved").stdout
    assert listed.splitlines()[0] == "alike␛[2J  like a:1"
    assert listed.splitlines()[1] == "jobs  jobs  speaker=CASTELL"
    assert [saved_search["name"] for saved_search in checkthat("--list-saved", "--json").json["saved"]] == [
        "alike\x1b[2J",
        "jobs",
    ]
    refused = checkthat("--saved", "job")
    assert refused.code == 2 and "checkthat has no saved search 'job' (did you mean jobs?)" in refused.stderr
    both = checkthat("words", "--saved", "jobs")
    assert both.code == 2 and "WORDS and --saved exclude each other" in both.stderr


def test_words_that_find_nothing_are_explained_beside_the_hits(nlps: Cli) -> None:
    result = nlps("let abelain ring")
    assert result.code == 0 and "abelain: in no document. Did you mean abelian?" in result.stderr
    assert "'let' is a stop word" in result.stderr and "stop word" not in result.stdout
    assert "stop word" not in nlps("let ring", "--quiet").stderr
    result = nlps("+normal +kernel -group", "--json")
    assert result.json["hits"] == [] and "documents match without + and -" in result.stderr


def test_words_of_lines_that_find_nothing_are_explained_with_the_line(nlps: Cli) -> None:
    result = search_lines("ring\n\nabelain\n")
    assert "line 3: abelain: in no document. Did you mean abelian?" in result.stderr


def test_documents_that_no_word_ranks_have_no_rank_and_no_score(nlps: Cli) -> None:
    assert nlps("ring", "--size", "1").stdout.split()[0] == "1"
    lines = nlps("--size", "1", "--", "-ring").stdout.splitlines()
    assert lines[0].split() == ["101"]


def test_hits_are_written_as_a_run_of_one_topic(nlps: Cli, tmp_path: Path) -> None:
    path = tmp_path / "hits.trec"
    result = nlps("+id:603 ring", "--size", "3", "--out", path, "--topic", "605")
    assert result.code == 0 and f"wrote 1 hit to {path}" in result.stderr and result.stdout == ""
    assert path.read_text().split()[:4] == ["605", "Q0", "603", "1"]
    assert nlps("ring", "--out", path).code == 2
    assert nlps("ring", "--out", path, "--overwrite", "--size", "4", "--from", "2").code == 0
    printed = [hit["id"] for hit in nlps("ring", "--size", "4", "--from", "2", "--json").json["hits"]]
    assert [line.split()[2] for line in path.read_text().splitlines()] == printed
    lines = tmp_path / "hits.jsonl"
    assert nlps("ring", "--out", lines, "--size", "1").code == 0
    assert json.loads(lines.read_text())["topic"] == "query"
    nothing = nlps("zzzzqq", "--out", tmp_path / "none.csv")
    assert nothing.code == 1 and "no hits to write" in nothing.stderr and not (tmp_path / "none.csv").exists()
    assert nlps("ring", "--topic", "1").code == 2 and nlps("ring", "--out", path, "--json").code == 2


def test_a_search_body_is_answered(nlps: Cli, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text('{"query": {"match": {"text": "ring"}}, "size": 2, "sort": ["id"]}', encoding="utf-8")
    answer = nlps("--body", file, "--json").json
    ids = [hit["_id"] for hit in answer["hits"]["hits"]]
    assert len(ids) == 2 and ids == sorted(ids)
    assert ids[0] in nlps("--body", file).stdout
