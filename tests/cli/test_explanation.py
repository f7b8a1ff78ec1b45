"""The tasks of explanation regeneration from end to end on their sample collections."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli, index_and_rank

pytestmark = pytest.mark.shared_indexes

FACTS, TOPICS = 59, 7
TASKS = {"explanation-2019": ("MAP", 0.8), "explanation-2021": ("mean NDCG", 0.75)}
"""The official measure, and its lowest expected value on the sample for the recipes."""

RECIPES = ["bm25", "neighbours", "best"]
IN_2019 = "questions/ARC-Elementary+EXPL-Dev.tsv"
IN_2021 = "wt-expert-ratings.dev.json"
GOLD = {"explanation-2019": IN_2019, "explanation-2021": IN_2021}


@pytest.fixture(params=list(TASKS))
def task(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def rank(cli: Cli, task: str, data: Path, out: Path, *options: object, split: str = "dev") -> Path:
    return index_and_rank(cli, task, data, out, "--split", split, *options)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_fact_is_ranked_well_for_every_question(
    cli: Cli, task: str, recipe: str, tmp_path: Path
) -> None:
    run = rank(cli, task, SAMPLES / task, tmp_path / "run", "--recipe", recipe)
    rows = (run / "predict.txt").read_text().splitlines()
    assert len(rows) == len(set(rows)) == FACTS * TOPICS
    scored = cli("evaluate", run, "--json").json
    measure, minimum = TASKS[task]
    assert scored["official"]["measure"] == measure
    assert scored["official"]["value"] >= minimum
    assert scored["warnings"] == [] and scored["official"]["honest"] == {}
    assert scored["topics"] == TOPICS


@pytest.mark.parametrize("recipe", RECIPES)
def test_wrong_options_of_questions_do_not_affect_rankings(
    offline: Cli, recipe: str, data: Path, task: str, tmp_path: Path
) -> None:
    original = rank(offline, task, SAMPLES / task, tmp_path / "original", "--recipe", recipe)
    if task == "explanation-2021":
        shutil.rmtree(data / "questions")
    else:  # the options are part of the text of the question, so that wrong ones are replaced
        for path in (data / "questions").glob("*.tsv"):
            path.write_text(re.sub(r"\(D\) [^\t]*", "(D) vibrates magnetic metal soup", path.read_text()))
        assert "it becomes salt" not in (data / IN_2019).read_text()
    changed = rank(offline, task, data, tmp_path / "changed", "--recipe", recipe)
    assert (original / "run.trec").read_bytes() == (changed / "run.trec").read_bytes()


def test_a_training_question_does_not_vote_for_its_own_facts(offline: Cli, task: str, tmp_path: Path) -> None:
    run = rank(offline, task, SAMPLES / task, tmp_path / "run", "--recipe", "neighbours", split="train")
    assert offline("evaluate", run, "--json").json["official"]["value"] < 0.999


def test_the_exported_file_is_valid_and_has_the_figures_of_the_run(
    cli: Cli, task: str, tmp_path: Path
) -> None:
    folder = SAMPLES / task
    run = rank(cli, task, folder, tmp_path / "run")
    out = tmp_path / "predict.txt"
    assert cli("export", run, "--out", out).code == 0
    data_options = ["--task", task, "--data", folder, "--split", "dev"]
    assert cli("validate", out, *data_options, "--json").json["valid"]
    options = ["--json", "--per-topic"]
    of_run = cli("evaluate", run, *options, "--by", "all").json
    of_file = cli("evaluate", out, *data_options, *options, "--by", "all").json
    of_gold = cli("evaluate", out, "--task", task, "--gold", folder / GOLD[task], *options).json
    assert of_run["official"] == of_file["official"] == of_gold["official"]
    assert of_run["measures"] == of_file["measures"] == of_gold["measures"]
    assert of_run["breakdowns"] == of_file["breakdowns"] != {}


def test_the_breakdowns_of_2019(offline: Cli, tmp_path: Path) -> None:
    run = rank(offline, "explanation-2019", SAMPLES / "explanation-2019", tmp_path / "run")
    output = offline("evaluate", run, "--by", "all", "--json").json
    breakdowns = output["breakdowns"]
    assert list(breakdowns) == ["role", "overlap", "precision", "length"]
    roles = {row["group"]: row["topics"] for row in breakdowns["role"]["rows"]}
    assert roles == {"CENTRAL": 7, "GROUNDING": 5, "LEXGLUE": 4, "BACKGROUND": 2}
    lengths = breakdowns["length"]["rows"]
    assert {row["group"]: row["topics"] for row in lengths} == {"3": 2, "4": 4, "5": 1}
    by_length = sum(row["topics"] * row["MAP"] for row in lengths) / TOPICS
    assert by_length == pytest.approx(output["official"]["value"])
    assert breakdowns["precision"]["rows"][0]["precision"] == output["measures"]["P@1"]


def test_the_histogram_is_drawn(offline: Cli, tmp_path: Path) -> None:
    run = rank(offline, "explanation-2019", SAMPLES / "explanation-2019", tmp_path / "run")
    rows = offline("evaluate", run, "--by", "length").stdout.splitlines()[-3:]
    for row in rows:
        length, count, figure, bar = row.split()
        assert (length, count) in {("3", "2"), ("4", "4"), ("5", "1")}
        assert bar == "█" * round(40 * float(figure))


def test_the_breakdowns_of_2021(offline: Cli, tmp_path: Path) -> None:
    run = rank(offline, "explanation-2021", SAMPLES / "explanation-2021", tmp_path / "run")
    output = offline("evaluate", run, "--by", "all", "--json").json
    breakdowns = output["breakdowns"]
    assert list(breakdowns) == ["type", "rating", "precision", "overlap"]
    groups = {name: [row["group"] for row in breakdown["rows"]] for name, breakdown in breakdowns.items()}
    assert groups["type"] == ["retrieval", "inference-supporting", "complex inference"]
    assert groups["rating"] == ["> 0", "> 2", "> 4"]
    assert groups["precision"] == ["P@1", "P@3", "P@5", "P@10", "P@20", "P@50"]
    assert groups["overlap"][0] == "<= 100%" and groups["overlap"][-1] == "<= 0%"
    for name in ("rating", "overlap"):  # the first rows are for all facts
        assert breakdowns[name]["rows"][0]["NDCG"] == pytest.approx(output["official"]["value"])


def test_a_breakdown_needs_the_file_of_types(offline: Cli, tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLES / "explanation-2021", tmp_path / "data"))
    run = rank(offline, "explanation-2021", data, tmp_path / "run")
    (data / "WorldTree-V2.1-TableKnowledgeTypes.tsv").unlink()
    assert offline("evaluate", run, "--by", "rating").code == 0
    result = offline("evaluate", run, "--by", "type")
    assert result.code == 4 and "missing file: WorldTree-V2.1-TableKnowledgeTypes.tsv" in result.stderr


def test_all_problems_of_an_official_file_are_found(offline: Cli, task: str, tmp_path: Path) -> None:
    out = tmp_path / "predict.txt"
    run = rank(offline, task, SAMPLES / task, tmp_path / "run")
    rows = (run / "predict.txt").read_text().splitlines()
    question, first = rows[0].split("\t")
    rows[1] = f"{question}\t{first.upper()}"
    rows[2] = f"{question}\tnothing"
    rows[3] = f"nobody\t{first}"
    rows[4] = f"{question}\tNA"
    last = rows[-1].split("\t")[0]
    out.write_text("\n".join(row for row in rows if not row.startswith(f"{last}\t")) + "\n")
    result = offline("validate", out, "--task", task, "--data", SAMPLES / task, "--split", "dev", "--json")
    assert result.code == 4
    problems = {problem["kind"]: problem["where"] for problem in result.json["problems"]}
    assert problems["repeated fact"] == "line 2"
    assert problems["unknown fact"] == "line 3"
    assert problems["unknown question"] == "line 4"
    assert problems["missing value"] == "line 5"
    assert problems["missing question"] == f"question {last}"
    assert ("too few facts" in problems) is (task == "explanation-2019")


def test_letter_case_of_questions_matters_only_if_it_does_for_the_scorer(
    offline: Cli, task: str, tmp_path: Path
) -> None:
    out = tmp_path / "predict.txt"
    run = rank(offline, task, SAMPLES / task, tmp_path / "run")
    out.write_text((run / "predict.txt").read_text().replace("D_", "d_"))
    code = offline("validate", out, "--task", task, "--data", SAMPLES / task, "--split", "dev").code
    assert code == (0 if task == "explanation-2019" else 4)


def test_unusual_tables_cause_a_warning(offline: Cli, task: str, data: Path) -> None:
    table = data / "tables" / "KINDOF.tsv"
    table.write_text(table.read_text() + table.read_text().splitlines()[-1] + "\n")
    result = offline("index", task, "--data", data, "--json")
    assert result.code == 0 and result.json["documents"] == FACTS
    assert "warning: unusual, but not an error: " in result.stderr
    assert "KINDOF.tsv: line 21: repeated id" in result.stderr


def test_a_damaged_table_is_refused_without_lenient(offline: Cli, task: str, data: Path) -> None:
    table = data / "tables" / "KINDOF.tsv"
    table.write_text(table.read_text() + "a\tkettle\n")
    result = offline("index", task, "--data", data)
    assert result.code == 4 and "KINDOF.tsv: line 21: wrong number of cells" in result.stderr
    assert offline("index", task, "--data", data, "--lenient").code == 0


def test_unknown_facts_are_an_error_in_dev_and_a_warning_in_train(
    offline: Cli, data: Path, task: str
) -> None:
    def add_unknown_fact(split: str) -> None:
        path = data / GOLD[task].replace("Dev", split).replace("dev", split.lower())
        text = path.read_text()
        if task == "explanation-2019":
            lines = text.splitlines()
            cells = lines[1].split("\t")
            cells[3] = "0000-0000|CENTRAL " + cells[3]
            lines[1] = "\t".join(cells)
            path.write_text("\n".join(lines) + "\n")
        else:
            content = json.loads(text)
            content["rankingProblems"][0]["documents"].append({"uuid": "0000-0000", "relevance": 1})
            path.write_text(json.dumps(content))

    add_unknown_fact("Train")
    accepted = offline("index", task, "--data", data)
    assert accepted.code == 0 and "unknown fact: no table has the fact 0000-0000" in accepted.stderr
    add_unknown_fact("Dev")
    refused = offline("index", task, "--data", data)
    assert refused.code == 4 and "unknown fact: no table has the fact 0000-0000" in refused.stderr


def test_masked_gold_cannot_be_scored(offline: Cli, task: str, data: Path, tmp_path: Path) -> None:
    if task == "explanation-2019":
        rows = [line.split("\t") for line in (data / IN_2019).read_text().splitlines()]
        masked = [rows[0], *([*row[:3], "", row[4]] for row in rows[1:])]
        text = "".join("\t".join(row) + "\n" for row in masked)
        (data / "questions" / "ARC-Elementary+EXPL-Test-Masked.tsv").write_text(text)
    else:
        content = json.loads((data / IN_2021).read_text())
        for question in content["rankingProblems"]:
            question["documents"] = []
        (data / "wt-expert-ratings.test.json").write_text(json.dumps(content))
    run = rank(offline, task, data, tmp_path / "run", split="test")
    result = offline("evaluate", run)
    assert result.code == 4 and "the gold is masked" in result.stderr
    options = ["--task", task, "--data", data, "--split", "test"]
    assert offline("validate", run / "predict.txt", *options).code == 0
    (run / "predict.txt").write_text((run / "predict.txt").read_text().replace("D_1\t", "D_2\t"))
    refused = offline("validate", run / "predict.txt", *options)
    assert refused.code == 4 and "question" in refused.stderr and "missing question" in refused.stderr


def test_facts_are_found_by_words(cli: Cli, task: str) -> None:
    assert cli("index", task, "--data", SAMPLES / task).code == 0
    (hit,) = cli("search", task, "vibrating object", "--size", 1, "--json").json["hits"]
    assert hit["text"] == "a vibrating object causes sound"
    analysed = cli("analyze", task, "Water froze at 32F, 0 °C", "--field", "text", "--json").json
    terms = [token["term"] for token in analysed["analyses"][0]["steps"][-1]["tokens"]]
    assert terms == ["water", "freez", "32", "fahrenheit", "0", "celsius"]
