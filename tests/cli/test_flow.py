"""The main workflow from end to end on the sample of nlps: index, search, rank, export, validate, evaluate."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from searchapp import resources
from tests.cli.conftest import SAMPLE, Cli, read_rankings

pytestmark = pytest.mark.shared_indexes


@pytest.fixture
def run(indexed: Cli, tmp_path: Path) -> Path:
    """A run over the dev split of the sample."""
    path = tmp_path / "runs" / "dev"
    assert indexed("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", path).code == 0
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the sample that a test may damage."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "data"))


def edit(path: Path, **changes: Any) -> None:
    """Set members of the JSON object of a file, named with a leading underscore."""
    members = {key.removeprefix("_"): value for key, value in changes.items()}
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


@pytest.mark.own_indexes
def test_indexing_unchanged_data_builds_nothing(cli: Cli) -> None:
    result = cli("index", "nlps", "--data", SAMPLE, "--json")
    assert result.code == 0
    assert "indexed 70 documents into" in result.stderr
    assert (result.json["built"], result.json["documents"]) == (True, 70)
    second = cli("index", "nlps", "--data", SAMPLE, "--json")
    assert "nothing has changed" in second.stderr
    assert second.json == {**result.json, "built": False}


@pytest.mark.own_indexes
def test_missing_files_are_named_for_new_and_existing_indexes(cli: Cli, data: Path) -> None:
    result = cli("index", "nlps", "--data", data, "--json")
    assert result.json["missing"] == ["test_set.json"]
    assert f"note: {data} has no test_set.json: the split test can't be ranked" in result.stderr
    assert "training topics" not in result.stderr
    (data / "train_set.json").unlink()
    second = cli("index", "nlps", "--data", data, "--json")
    assert not second.json["built"] and second.json["missing"] == ["train_set.json", "test_set.json"]
    assert "nothing has changed" in second.stderr
    assert (
        f"note: {data} has no train_set.json, test_set.json: the splits train, test can't be ranked, "
        "and no split can be ranked with a recipe that learns from training topics"
    ) in second.stderr
    assert cli("index", "nlps", "--data", data, "--quiet").stderr == ""


@pytest.mark.own_indexes
@pytest.mark.parametrize("change", ["documents", "shards", "rebuild"])
def test_changed_documents_shards_and_rebuild_build_a_new_version(
    indexed_server: Cli, data: Path, change: str
) -> None:
    options: list[object] = ["--data", data, "--json"]
    if change == "documents":
        edit(data / "knowledge_base.json", _700="A new statement.")
    if change == "shards":
        options += ["--shards", 3]
    if change == "rebuild":
        options += ["--rebuild"]
    output = indexed_server("index", "nlps", *options).json
    assert output["built"]
    assert "-000002" in output["index"]
    assert output["documents"] == (71 if change == "documents" else 70)


@pytest.mark.own_indexes
def test_a_changed_mapping_builds_a_new_version(indexed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = resources.index_mapping("premises")
    mapping["settings"]["similarity"]["prose"]["b"] = 0.99
    monkeypatch.setattr(resources, "index_mapping", lambda _name: mapping)
    assert indexed("index", "nlps", "--data", SAMPLE, "--json").json["built"]


@pytest.mark.own_indexes
def test_invalid_data_is_counted_and_nothing_is_indexed(cli: Cli, data: Path) -> None:
    edit(data / "knowledge_base.json", _101="  ", _102=7)
    edit(data / "train_set.json", _601={"text": "x", "premises": [99999]})
    result = cli("index", "nlps", "--data", data)
    assert result.code == 4
    for part in ("blank text", "wrong type", "unknown premise", "premise 101", "statement 601"):
        assert part in result.stderr
    assert cli("search", "nlps", "group").code == 3


@pytest.mark.own_indexes
def test_lenient_skips_and_reports_invalid_entries(cli: Cli, data: Path) -> None:
    edit(data / "knowledge_base.json", _101="  ")
    result = cli("index", "nlps", "--data", data, "--lenient", "--json")
    assert result.code == 0
    assert result.json["documents"] == 69
    assert "left out" in result.stderr and "premise 101" in result.stderr


def test_a_collection_without_documents_replaces_nothing(indexed: Cli, data: Path) -> None:
    (data / "knowledge_base.json").write_text("{}")
    for split in ("train", "dev"):
        (data / f"{split}_set.json").unlink()
    result = indexed("index", "nlps", "--data", data)
    assert result.code == 4 and "has no document to index" in result.stderr
    assert indexed("search", "nlps", "group").code == 0


def test_an_index_of_another_mapping_is_refused(indexed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = resources.index_mapping("premises")
    mapping["settings"]["similarity"]["prose"]["b"] = 0.99
    monkeypatch.setattr(resources, "index_mapping", lambda _name: mapping)
    for command in (["search", "nlps", "x"], ["analyze", "nlps", "x"]):
        result = indexed(*command)
        assert result.code == 3 and "built with another version of the mapping premises" in result.stderr


def test_an_index_of_other_documents_is_not_ranked(indexed: Cli, data: Path, tmp_path: Path) -> None:
    edit(data / "knowledge_base.json", _700="A new statement.")
    out = tmp_path / "run"
    result = indexed("rank", "nlps", "--data", data, "--split", "dev", "--out", out)
    assert result.code == 4
    assert "was built from other documents (70) than those in" in result.stderr
    assert "(71): build it again" in result.stderr and "--replace" not in result.stderr
    knowledge = data / "knowledge_base.json"
    changed = {id_: f"Changed: {text}" for id_, text in json.loads(knowledge.read_text()).items()}
    knowledge.write_text(json.dumps(changed))
    result = indexed("rank", "nlps", "--data", data, "--split", "dev", "--out", out)
    assert result.code == 4 and f"--data {data} --replace`" in result.stderr
    assert not out.exists()


def test_a_missing_knowledge_base_is_the_only_reported_error(cli: Cli, data: Path) -> None:
    (data / "knowledge_base.json").unlink()
    for command in (
        ["index", "nlps"],
        ["validate", SAMPLE / "dev_set.json", "--task", "nlps", "--split", "dev"],
    ):
        result = cli(*command, "--data", data)
        assert result.code == 4
        assert "missing file: knowledge_base.json is expected in" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_a_run_without_some_topics_has_no_official_file(indexed: Cli, data: Path, tmp_path: Path) -> None:
    edit(data / "dev_set.json", _602={"text": " ", "premises": [101]})
    out = tmp_path / "run"
    result = indexed("rank", "nlps", "--data", data, "--split", "dev", "--out", out, "--lenient")
    assert result.code == 0 and "no official file: 1 topic was left out" in result.stderr


def test_a_missing_test_set_is_not_reported_as_masked(indexed: Cli, run: Path) -> None:
    result = indexed("evaluate", run, "--split", "test")
    assert result.code == 4 and "test_set.json: there is no such file" in result.stderr


@pytest.mark.own_indexes
@pytest.mark.parametrize("id_", ["[/]", "[bold]", ":a:"])
def test_markup_and_control_characters_of_documents_are_escaped(cli: Cli, data: Path, id_: str) -> None:
    text = "A group [bold]x[/] :smile: f:a:b \x1b[31mred\x1b]0;title\x07 \x9b1m"
    edit(data / "knowledge_base.json", **{f"_{id_}": text})
    assert cli("index", "nlps", "--data", data).code == 0
    output = cli("search", "nlps", "smile", "--explain").stdout
    assert f"  1  {id_}  " in output
    assert "A group [bold]x[/] :smile: f:a:b ␛[31mred␛]0;title␇ <U+009B>1m" in output


def test_a_search_prints_a_ranking(indexed: Cli) -> None:
    output = indexed("search", "nlps", "every subgroup of an abelian group is normal", "--size", 3).stdout
    first, text = output.splitlines()[:2]
    assert re.fullmatch(r"  1  602  \d+\.\d{4}", first)
    assert text.strip() == "Every subgroup of an abelian group is normal."
    assert len(re.findall(r"(?m)^ +\d+  \d{3}  \d+\.\d{4}$", output)) == 3


def test_a_search_as_json_has_texts_matches_and_explanations(indexed: Cli) -> None:
    result = indexed("search", "nlps", "normal subgroup", "--size", 2, "--json", "--explain").json["hits"]
    assert [hit["rank"] for hit in result] == [1, 2]
    for hit in result:
        matched = {hit["text"][start:end].lower() for start, end in hit["matches"]}
        assert matched & {"normal", "subgroup"}
        assert hit["explanation"]["value"] == pytest.approx(hit["score"], rel=1e-6)


def test_an_explained_search_names_terms_and_figures(indexed: Cli) -> None:
    text = indexed("search", "nlps", "normal subgroup", "--size", 1, "--explain").stdout
    assert re.search(r"text: subgroup +\(boost .*, df \d+, N \d+, tf \d+, length \d+, average length", text)


def test_a_search_without_matches_is_reported(indexed: Cli) -> None:
    result = indexed("search", "nlps", "zygomorphic")
    assert (result.code, result.stdout) == (0, "")
    assert "no document of nlps matches" in result.stderr


@pytest.mark.parametrize(
    "words", ['a"', "{{topic.id}}", "\\", "a AND b(", "*", "\u0000", "😀", "'''", "$x$" * 500]
)
def test_searches_with_special_characters_succeed(indexed: Cli, words: str) -> None:
    assert indexed("search", "nlps", words).code == 0


def test_notation_variants_find_the_same(indexed: Cli) -> None:
    def ids(words: str) -> list[str]:
        return [hit["id"] for hit in indexed("search", "nlps", words, "--size", 50, "--json").json["hits"]]

    assert ids(r"$x \leq y$") == ids(r"$x \le y$") == ids("$x ≤ y$") != []
    assert ids(r"the ring $\mathbb Z$") == ids(r"the ring $\Z$")
    assert ids("subgroups") == ids("subgroup")


def test_analyze_shows_every_step(indexed: Cli) -> None:
    output = indexed("analyze", "nlps", r"$\left( x \leq y \right)$", "--field", "text", "--json").json
    analysis, of_queries = output["analyses"]
    assert (analysis["field"], of_queries["search"]) == ("text", "text")
    assert analysis["steps"][0]["kind"] == "char_filter"
    terms = [token["term"] for token in analysis["steps"][-1]["tokens"]]
    assert r"\le" in terms and not {r"\left", r"\right", r"\leq"} & set(terms)
    text = indexed("analyze", "nlps", "normal subgroups").stdout
    assert "field text" in text and "search text" in text and "subgroup" in text


def test_a_run_is_complete_and_verifiable(indexed: Cli, run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    assert (manifest["task"], manifest["split"], manifest["topics"]) == ("nlps", "dev", 10)
    assert manifest["hits"] == 10 * 69
    assert manifest["recipe"]["name"] == "bm25"
    files = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert set(manifest["files"]) == files - {"run.json"}
    assert indexed("runs", "verify", run).code == 0
    with (run / "run.trec").open("a") as file:
        file.write("x Q0 y 1 1 z\n")
    result = indexed("runs", "verify", run)
    assert result.code == 4 and "run.trec: changed since the run was written" in result.stderr


def test_no_statement_is_among_its_own_premises(run: Path) -> None:
    rankings = read_rankings(run)
    assert rankings and all(topic not in documents for topic, documents in rankings.items())


def test_two_runs_give_the_same_bytes(indexed: Cli, run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    indexed("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", again)
    assert (again / "run.trec").read_bytes() == (run / "run.trec").read_bytes()


def test_an_existing_run_is_replaced_only_with_overwrite(indexed: Cli, run: Path) -> None:
    arguments = ["rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run, "--depth", 5]
    before = (run / "run.trec").read_bytes()
    refused = indexed(*arguments)
    assert refused.code == 2 and "exists already" in refused.stderr
    assert (run / "run.trec").read_bytes() == before
    assert indexed(*arguments, "--overwrite").code == 0
    assert len((run / "run.trec").read_text().splitlines()) == 50
    assert os.listdir(run.parent) == [run.name]


def test_a_folder_that_is_no_run_is_never_replaced(indexed: Cli, tmp_path: Path) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "thesis.tex").write_text("\\title{}")
    result = indexed("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", precious, "--overwrite")
    assert result.code == 2 and "is not a run directory and is not replaced" in result.stderr
    assert (precious / "thesis.tex").exists()


def test_the_exported_file_has_the_figures_of_the_run(indexed: Cli, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "predict.txt"
    assert indexed("export", run, "--cutoff", 50, "--out", out).code == 0
    options = ["--cutoff", 50, "--json", "--per-topic"]
    of_run = indexed("evaluate", run, *options).json
    of_file = indexed("evaluate", out, "--task", "nlps", "--data", SAMPLE, "--split", "dev", *options).json
    gold = SAMPLE / "dev_set.json"
    of_gold = indexed("evaluate", out, "--task", "nlps", "--gold", gold, *options).json
    assert of_run["official"] == of_file["official"] == of_gold["official"]
    assert of_run["measures"] == of_file["measures"] == of_gold["measures"]
    assert of_run["official"]["measure"] == "MAP@50"
    assert 0.3 < of_run["measures"]["AP"] <= of_run["official"]["value"] < 1


def test_the_sample_is_too_small_for_the_official_cut_off(indexed: Cli, run: Path, tmp_path: Path) -> None:
    result = indexed("export", run, "--out", tmp_path / "predict.txt")
    assert result.code == 4
    assert "has 69 premises, but the official file needs at least 500" in result.stderr
    assert not (tmp_path / "predict.txt").exists()
    scored = indexed("evaluate", run)
    assert scored.code == 4 and "the official scorer would not score this file" in scored.stderr


def test_a_trec_export_of_the_engines_scores_is_the_run_file(indexed: Cli, run: Path, tmp_path: Path) -> None:
    options = ("--format", "trec", "--engine-scores", "--out", tmp_path / "run.trec")
    assert indexed("export", run, *options).code == 0
    assert (tmp_path / "run.trec").read_bytes() == (run / "run.trec").read_bytes()


def test_a_valid_official_file_is_accepted(indexed: Cli, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "predict.txt"
    indexed("export", run, "--cutoff", 50, "--out", out)
    options = ["--task", "nlps", "--data", SAMPLE, "--split", "dev", "--cutoff", 50]
    assert indexed("validate", out, *options).code == 0
    assert indexed("validate", out, *options, "--json").json["valid"]


def test_all_problems_of_an_official_file_are_found(indexed: Cli, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "predict.txt"
    indexed("export", run, "--cutoff", 50, "--out", out)
    rows = out.read_text().splitlines()
    topic, first = rows[0].split("\t")
    rows[1] = f"{topic}\t{first}"
    rows[2] = f"{topic}\t{topic}"
    rows[3] = f"{topic}\t123456"
    rows[4] = "nobody\t101"
    last = rows[-1].split("\t")[0]
    rows = [row for row in rows if not row.startswith(f"{last}\t")]
    out.write_text("\n".join(rows) + "\n")
    options = ["--task", "nlps", "--data", SAMPLE, "--split", "dev", "--cutoff", 68]
    result = indexed("validate", out, *options, "--json")
    assert result.code == 4
    kinds = {problem["kind"]: problem["where"] for problem in result.json["problems"]}
    assert kinds["repeated premise"] == "line 2"
    assert kinds["statement among its own premises"] == "line 3"
    assert kinds["unknown premise"] == "line 4"
    assert kinds["unknown statement"] == "line 5"
    assert kinds["missing statement"] == f"statement {last}"
    assert "too few premises" in kinds


def test_a_figure_below_the_gate_has_its_own_exit_code(indexed: Cli, run: Path) -> None:
    assert indexed("evaluate", run, "--cutoff", 50, "--fail-under", 0.1).code == 0
    missed = indexed("evaluate", run, "--cutoff", 50, "--fail-under", 0.99)
    assert missed.code == 5 and "is below 0.99" in missed.stderr


def test_several_runs_are_compared_in_one_table(indexed: Cli, run: Path, tmp_path: Path) -> None:
    other = tmp_path / "train"
    indexed("rank", "nlps", "--data", SAMPLE, "--split", "train", "--out", other)
    text = indexed("evaluate", run, other, "--cutoff", 50).stdout
    assert "MAP@50 (official)" in text and text.splitlines()[0].split() == ["measure", "runs/dev", "train"]
    output = indexed("evaluate", run, other, "--cutoff", 50, "--json").json
    assert [evaluated["split"] for evaluated in output["runs"]] == ["dev", "train"]


def test_gold_that_changed_since_the_run_is_reported(indexed: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    indexed("rank", "nlps", "--data", data, "--split", "dev", "--out", out)
    edit(
        data / "dev_set.json",
        _602={"text": "Every subgroup of an abelian group is normal.", "premises": [101]},
    )
    result = indexed("evaluate", out, "--cutoff", 50)
    assert result.code == 0 and "changed since the run" in result.stderr


def test_masked_gold_cannot_be_scored(indexed: Cli, data: Path, tmp_path: Path) -> None:
    masked = {"602": {"text": "Every subgroup of an abelian group is normal."}}
    (data / "test_set.json").write_text(json.dumps(masked))
    out = tmp_path / "run"
    assert indexed("rank", "nlps", "--data", data, "--split", "test", "--out", out).code == 0
    result = indexed("evaluate", out, "--cutoff", 50)
    assert result.code == 4 and "masked" in result.stderr


def test_the_depth_cuts_fused_rankings(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    command = ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--recipe", "neighbours")
    first_hits = []
    for depth in (2, 20, 501):
        run = tmp_path / str(depth)
        result = offline(*command, "--depth", depth, "--out", run)
        assert result.code == 0, result.stderr
        assert ("the depth 501 raises the window 500 of the signal direct" in result.stderr) == (depth == 501)
        manifest = json.loads((run / "run.json").read_text())
        windows = [signal.get("window") for signal in manifest["recipe"]["signals"]]
        assert windows == [max(500, depth), None]
        lines = [line.split() for line in (run / "run.trec").read_text().splitlines()]
        first_hits.append(
            [(topic, document, score) for topic, _, document, rank, score, _ in lines if int(rank) <= 2]
        )
    assert first_hits[0] == first_hits[1] == first_hits[2]
