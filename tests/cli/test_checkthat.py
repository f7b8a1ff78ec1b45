"""The task checkthat from end to end, with the sample and recorded cases of the official scripts."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.app.inspection.pages import LocalFirst, RunPages
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import IndexSpec
from searchapp.files import DocumentsDigest, digest_json
from searchapp.formats.problems import Problems
from searchapp.progress import SilentProgress
from searchapp.tasks.base import DataSplit
from searchapp.tasks.checkthat.task import TASK
from searchapp.text import visible
from tests.cli.conftest import SAMPLES, Cli, official_figures, read_rankings

pytestmark = pytest.mark.shared_indexes

SAMPLE = SAMPLES / "checkthat"
TRAINING = ["farm_speech", "harbour_mayor", "valley_governors"]
RECORDED = Path(__file__).parents[1] / "fixtures" / "conformance" / "checkthat"
CASES = {path.parent.name: json.loads(path.read_text()) for path in sorted(RECORDED.glob("*/case.json"))}


@pytest.fixture
def debates(cli: Cli) -> Cli:
    """As `cli`, with an index of the sample debates."""
    assert cli("index", "checkthat", "--data", SAMPLE).code == 0
    return cli


def rank(cli: Cli, out: Path, split: str = "training", *options: object) -> Path:
    result = cli("rank", "checkthat", "--data", SAMPLE, "--split", split, "--out", out, *options)
    assert result.code == 0, result.stderr
    return out


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the sample that a test may damage."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "data"))


# Recorded cases of the official scripts


@pytest.mark.parametrize("notation", ["words", "commas", "options"])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["options"]["mode"] == "score"])
def test_the_command_agrees_with_the_official_scorer(offline: Cli, name: str, notation: str) -> None:
    inputs, expected = CASES[name]["inputs"], CASES[name]["expected"]
    predictions = [RECORDED / name / file for file in inputs["predictions"]]
    files = [RECORDED / name / file for file in inputs["gold"]]
    gold: dict[str, list[object]] = {
        "words": ["--gold", *files],
        "commas": ["--gold", ",".join(map(str, files))],
        "options": [word for file in files for word in ("--gold", file)],
    }
    result = offline(
        "evaluate", *predictions, "--task", "checkthat", *gold[notation], "--json", "--per-topic"
    )
    official = official_figures(result, expected)
    if official is None:
        return
    assert official["values"] == pytest.approx(expected["values"], rel=0, abs=1e-12)
    for file, figures in expected["per_file"].items():
        assert official["per_topic"][file] == pytest.approx(figures, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (name, file)
        for name, case in CASES.items()
        if case["options"]["mode"] == "check"
        for file in case["expected"]["format_check"]
    ],
)
def test_the_command_agrees_with_the_official_format_checker(offline: Cli, name: str, file: str) -> None:
    verdict = CASES[name]["expected"]["format_check"][file]
    result = offline("validate", RECORDED / name / file, "--task", "checkthat")
    assert result.code == (0 if verdict["verdict"] == "pass" else 4)
    assert visible(verdict["message"]) in result.stderr


# From the sample to official files and back


def test_a_ranking_has_every_line_of_its_debate_once(debates: Cli, tmp_path: Path) -> None:
    for recipe in ("bm25", "neighbours", "best"):
        run = rank(debates, tmp_path / recipe, "training", "--recipe", recipe)
        rankings = read_rankings(run)
        for name in TRAINING:
            lines = len((SAMPLE / "training" / f"{name}.tsv").read_text().splitlines())
            assert sorted(rankings[name]) == sorted(f"{name}:{number}" for number in range(1, lines + 1))
        assert debates("runs", "verify", run).code == 0


def test_the_sample_is_ranked_with_a_high_figure(debates: Cli, tmp_path: Path) -> None:
    figures: dict[str, float] = {}
    for recipe in ("bm25", "neighbours", "best"):
        run = rank(debates, tmp_path / recipe, "training", "--recipe", recipe)
        figures[recipe] = debates("evaluate", run, "--json").json["official"]["value"]
    assert all(0.8 < value < 1 for value in figures.values()), figures


@pytest.mark.parametrize("recipe", ["bm25", "neighbours"])
def test_exported_files_have_the_figures_of_the_run(debates: Cli, tmp_path: Path, recipe: str) -> None:
    run = rank(debates, tmp_path / "run", "training", "--recipe", recipe)
    out = tmp_path / "official"
    assert debates("export", run, "--out", out).code == 0
    files = sorted(out.iterdir())
    assert [file.stem for file in files] == TRAINING
    assert [(run / file.name).read_bytes() for file in files] == [file.read_bytes() for file in files]
    for file in files:
        for split in ([], ["--split", "training"], ["--split", file.stem]):
            assert debates("validate", file, "--task", "checkthat", "--data", SAMPLE, *split).code == 0
    options = ["--task", "checkthat", "--json", "--per-topic"]
    of_run = debates("evaluate", run, "--json", "--per-topic").json
    of_files = debates("evaluate", *files, *options, "--data", SAMPLE, "--split", "training").json
    gold = [SAMPLE / "training" / file.name for file in files]
    of_gold = debates("evaluate", *files, *options, "--gold", *gold).json
    assert of_run["official"] == of_files["official"] == of_gold["official"]
    assert of_run["measures"] == of_files["measures"] == of_gold["measures"]
    assert set(of_run["official"]["per_topic"]) == {file.name for file in files}
    assert of_run["measures"]["AP"] == pytest.approx(of_run["official"]["value"], abs=1e-9)


@pytest.mark.parametrize("recipe", ["neighbours", "best"])
def test_one_debate_and_the_test_debates_are_splits(debates: Cli, tmp_path: Path, recipe: str) -> None:
    alone = rank(debates, tmp_path / "alone", "harbour_mayor", "--recipe", recipe)
    training = rank(debates, tmp_path / "together", "training", "--recipe", recipe)
    name = "harbour_mayor.tsv"
    assert (alone / name).read_bytes() == (training / name).read_bytes()
    assert debates("evaluate", alone, "--json").json["official"]["measure"] == "AP"
    test = rank(debates, tmp_path / "test", "test_annotated", "--recipe", recipe)
    assert debates("evaluate", test, "--json").json["official"]["value"] > 0.7
    assert debates("export", test, "--out", tmp_path / "island.tsv").code == 0


# Indexes of training debates and of all debates


@pytest.mark.own_indexes
def test_test_debates_do_not_affect_rankings_of_training_debates(
    cli: Cli, data: Path, tmp_path: Path
) -> None:
    runs: dict[str, list[Path]] = {}
    for name in ("with", "without"):
        if name == "without":
            shutil.rmtree(data / "test_annotated")
        assert cli("index", "checkthat", "--data", data).code == 0
        for recipe in ("bm25", "neighbours", "best"):
            for split in ("training", "harbour_mayor"):
                out = tmp_path / f"{name}-{recipe}-{split}"
                options = ["--data", data, "--split", split, "--recipe", recipe, "--out", out]
                assert cli("rank", "checkthat", *options).code == 0
                runs.setdefault(name, []).append(out)
    for first, second in zip(runs["with"], runs["without"], strict=True):
        assert (first / "run.trec").read_bytes() == (second / "run.trec").read_bytes() != b""
        manifests = [json.loads((run / "run.json").read_text()) for run in (first, second)]
        assert manifests[0]["data_digests"] == manifests[1]["data_digests"]
        assert manifests[0]["index_digest"] == manifests[1]["index_digest"]


@pytest.mark.own_indexes
def test_training_debates_and_all_debates_have_an_index_each(cli: Cli, data: Path) -> None:
    output = cli("index", "checkthat", "--data", data, "--json").json
    lines = {
        part: sum(len(path.read_text().splitlines()) for path in (data / part).iterdir())
        for part in ("training", "test_annotated")
    }
    assert output["documents"] == sum(lines.values())
    assert [index["documents"] for index in output["indexes"]] == [sum(lines.values()), lines["training"]]
    assert (output["missing"], output["removed"]) == ([], [])
    again = cli("index", "checkthat", "--data", data, "--json").json
    assert not again["built"] and again["indexes"] == output["indexes"]


@pytest.mark.own_indexes
def test_an_index_of_debates_that_were_removed_is_removed(cli: Cli, data: Path, tmp_path: Path) -> None:
    assert cli("index", "checkthat", "--data", data).code == 0
    shutil.move(data / "test_annotated", tmp_path / "elsewhere")
    result = cli("index", "checkthat", "--data", data, "--json")
    assert result.json["removed"] == ["checkthat-with-test"]
    assert result.json["missing"] == ["test_annotated/*.tsv"]
    assert "removed the index checkthat-with-test" in result.stderr
    assert "has no test_annotated/*.tsv: the split test_annotated can't be ranked" in result.stderr
    hits = cli("search", "checkthat", "ferry prices", "--json").json["hits"]
    assert hits and not any(hit["id"].startswith("island_debate") for hit in hits)
    ranked = cli(
        "rank", "checkthat", "--data", SAMPLE, "--split", "test_annotated", "--out", tmp_path / "run"
    )
    assert ranked.code == 3
    assert "this split needs the index checkthat-with-test, which does not exist" in ranked.stderr
    assert "`searchapp index checkthat`" in ranked.stderr


@pytest.mark.own_indexes
def test_an_index_of_an_older_version_with_other_lines_is_refused(offline: Cli, tmp_path: Path) -> None:
    """In versions with one index only, the index of the name of the task had the lines of all debates."""
    digests = DocumentsDigest()
    documents = list(digests.watch(TASK.collection(SAMPLE).documents.read(Problems())))
    mapping = TASK.index_mapping()
    digest = digest_json({"format": 1, "mapping": mapping, "documents": digests.hexdigest()})
    with closing(open_engine(Settings(home=tmp_path / "home"))) as engine:
        engine.build("checkthat", IndexSpec(mapping, digests.count, digest, digests.hexdigest()), documents)
    assert offline("search", "checkthat", "ferry prices", "--json").json["hits"]
    for split, code, message in (
        ("training", 4, "(159): build it again with"),
        ("test_annotated", 3, "index checkthat-with-test"),
    ):
        options = ["--data", SAMPLE, "--split", split, "--out", tmp_path / split]
        result = offline("rank", "checkthat", *options)
        assert result.code == code and message in result.stderr
        assert "`searchapp index checkthat" in result.stderr


def test_the_lines_of_every_debate_can_be_judged(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "checkthat", "--data", SAMPLE).code == 0
    for split, document in (("test_annotated", "island_debate:7"), ("training", "harbour_mayor:3")):
        run = rank(offline, tmp_path / split, split)
        settings = Settings(home=tmp_path / "home")
        with closing(LocalFirst(settings, SilentProgress(), pytest.fail, copy=False)) as indexes:
            run_pages = RunPages.open(TASK, indexes, run)
            assert not run_pages.notes
            assert document in run_pages.ranking(document.partition(":")[0])


@pytest.mark.parametrize("recipe", ["neighbours", "best"])
def test_the_gold_of_a_debate_does_not_change_its_ranking(
    cli: Cli, data: Path, tmp_path: Path, recipe: str
) -> None:
    def rank_debate(name: str) -> bytes:
        assert cli("index", "checkthat", "--data", data).code == 0
        options = ["--data", data, "--split", "training", "--recipe", recipe, "--out", tmp_path / name]
        assert cli("rank", "checkthat", *options).code == 0
        return (tmp_path / name / "harbour_mayor.tsv").read_bytes()

    before = rank_debate("before")
    path = data / "training" / "harbour_mayor.tsv"
    flipped = [line[:-1] + str(1 - int(line[-1])) for line in path.read_text().splitlines()]
    path.write_text("\n".join(flipped) + "\n")
    assert rank_debate("after") == before


def test_figures_are_broken_down(debates: Cli, tmp_path: Path) -> None:
    run = rank(debates, tmp_path / "run")
    breakdowns = debates("evaluate", run, "--by", "all", "--json").json["breakdowns"]
    assert [row["group"] for row in breakdowns["debate"]["rows"]] == TRAINING
    assert {row["group"]: row["debates"] for row in breakdowns["event"]["rows"]} == {
        "one voice": 1,
        "several voices": 2,
    }
    assert {"EDGERTON", "ALDER"} <= {row["group"] for row in breakdowns["speaker"]["rows"]}
    assert "SYSTEM" not in {row["group"] for row in breakdowns["speaker"]["rows"]}
    text = debates("evaluate", run, "--by", "debate").stdout
    assert "harbour_mayor" in text


def test_searches_find_lines_of_all_debates(debates: Cli) -> None:
    def ids(words: str) -> list[str]:
        return [hit["id"] for hit in debates("search", "checkthat", words, "--json").json["hits"]]

    assert ids("ferry prices")[0] == "island_debate:7"
    assert ids("castell")[0] in ids("Senator Castell")
    assert ids("don't") == ids("do not") != []
    assert ids("2.1 billion dollars") == ids("$2.1 billion") != []


def test_a_shallow_run_has_no_official_file(debates: Cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = debates(
        "rank", "checkthat", "--data", SAMPLE, "--split", "training", "--out", out, "--depth", 10
    )
    assert result.code == 0 and "no official file: debate farm_speech has no rank for line" in result.stderr
    exported = debates("export", out, "--out", tmp_path / "official")
    assert exported.code == 4 and "rank deeper with --depth" in exported.stderr


# Errors


@pytest.mark.own_indexes
def test_all_errors_of_debates_are_reported(cli: Cli, data: Path) -> None:
    path = data / "training" / "harbour_mayor.tsv"
    rows = path.read_text().splitlines()
    rows[1] = rows[1][:-1] + "2"
    rows[2] = rows[2].rpartition("\t")[0]
    path.write_text("\n".join(rows))
    shutil.copy(data / "training" / "farm_speech.tsv", data / "test_annotated")
    shutil.copy(data / "training" / "farm_speech.tsv", data / "training" / "a b.tsv")
    result = cli("index", "checkthat", "--data", data)
    assert result.code == 4
    for part in (
        "harbour_mayor.tsv: line 2: unknown label: 2, not 0 or 1",
        "harbour_mayor.tsv: line 3: wrong number of columns: 3, not 4",
        "duplicate debate: training also has a debate with this name",
        "unusable id (1)",
    ):
        assert part in result.stderr


@pytest.mark.own_indexes
def test_a_folder_without_debates_is_refused(cli: Cli, tmp_path: Path) -> None:
    result = cli("index", "checkthat", "--data", tmp_path)
    assert result.code == 4 and "missing file" in result.stderr and "training" in result.stderr


def test_an_unknown_debate_is_no_split(debates: Cli, tmp_path: Path) -> None:
    options = ["--data", SAMPLE, "--out", tmp_path / "run", "--split"]
    result = debates("rank", "checkthat", *options, "nowhere")
    assert result.code == 2
    assert "no split 'nowhere': choose training or test_annotated or the name of a debate" in result.stderr


@pytest.mark.own_indexes
def test_a_debate_without_others_can_not_be_ranked(cli: Cli, data: Path, tmp_path: Path) -> None:
    for name in TRAINING[1:]:
        (data / "training" / f"{name}.tsv").unlink()
    assert cli("index", "checkthat", "--data", data).code == 0
    result = cli("rank", "checkthat", "--data", data, "--split", "training", "--out", tmp_path / "run")
    assert result.code == 4
    assert "no debate with check-worthy lines to train on for farm_speech" in result.stderr


def test_a_result_file_is_compared_with_its_debate(offline: Cli, tmp_path: Path) -> None:
    def refused(text: str, *split: object, name: str = "farm_speech.tsv") -> str:
        path = tmp_path / name
        path.write_text(text)
        result = offline("validate", path, "--task", "checkthat", "--data", SAMPLE, *split)
        assert result.code == 4
        return result.stderr

    rows = [f"{number}\t0.5\n" for number in range(1, 53)]
    assert "missing lines: 51 lines are scored" in refused("".join(rows[:-1]), "--split", "training")
    assert "unknown lines: 53 lines are scored" in refused(
        "".join([*rows, "53\t0.5\n"]), "--split", "training"
    )
    assert "stray white space: the official" in refused("".join([*rows, "\n"]), "--split", "farm_speech")
    assert "unknown debate: name the file" in refused("".join(rows), "--split", "training", name="other.tsv")
    errors = refused("1\t0.5\n3\t0.5\n4\t1e-5\n", "--split", "training")
    assert "line 2: wrong line number" in errors and "line 3: wrong line format" in errors


def test_a_file_that_only_the_official_checker_accepts_is_not_valid(offline: Cli, tmp_path: Path) -> None:
    path = tmp_path / "farm_speech.tsv"
    rows = [f"{number}\t0.5\n" for number in range(1, 53)]
    complete, short = "".join(rows), "".join(rows[:49])
    for text, warning in ((f"{complete}\n", "stray white space"), (short, "too few lines: 49 lines")):
        path.write_text(text)
        # Without a split, the exit code follows the official format checker.
        alone = offline("validate", path, "--task", "checkthat")
        assert alone.code == 0 and warning in alone.stderr and "valid checkthat" not in alone.stderr
        message = "the official format checker accepts this file, but the official scorer stops on it"
        assert message in alone.stderr
        output = offline("validate", path, "--task", "checkthat", "--json").json
        assert (output["valid"], output["problems"], len(output["warnings"])) == (False, [], 1)
        options = ["--data", SAMPLE, "--split", "farm_speech"]
        assert offline("validate", path, "--task", "checkthat", *options).code == 4
    path.write_text(complete)
    output = offline("validate", path, "--task", "checkthat", "--json").json
    assert (output["valid"], output["warnings"]) == (True, [])


def test_a_folder_of_exported_files_has_the_figures_of_the_run(debates: Cli, tmp_path: Path) -> None:
    run = rank(debates, tmp_path / "run")
    out = tmp_path / "predictions"
    assert debates("export", run, "--out", out).code == 0
    options = ["--task", "checkthat", "--data", SAMPLE, "--split", "training"]
    of_run = debates("evaluate", run, "--json", "--per-topic").json
    files = [out / f"{name}.tsv" for name in TRAINING]
    of_folder = debates("evaluate", out, *options, "--json", "--per-topic").json
    assert of_folder["official"] == of_run["official"] and of_folder["measures"] == of_run["measures"]
    assert of_folder["source"] == ", ".join(map(str, files))
    # Each debate is scored with its own gold, whatever the order of the gold files.
    gold = [SAMPLE / "training" / f"{name}.tsv" for name in reversed(TRAINING)]
    of_gold = debates("evaluate", out, "--task", "checkthat", "--gold", *gold, "--json").json
    assert of_gold["official"]["values"] == of_run["official"]["values"]
    (out / "notes.txt").write_text("another file")
    text = debates("evaluate", out, *options, "--by", "debate").stdout
    lines = text.splitlines()
    assert max(map(len, lines)) < 150 and lines[0].endswith("predictions (3 files)")
    assert f"(3 files): {', '.join(file.name for file in files)}" in text
    # The official scorer refuses one debate too few or too many.
    extra = out / "another.tsv"
    extra.write_text("1\t0.5\n")
    surplus = debates("evaluate", out, *options)
    assert surplus.code == 4 and "Different number of gold files (3) and pred files (4)" in surplus.stderr
    extra.unlink()
    files[1].unlink()
    missing = debates("evaluate", out, *options)
    assert (
        missing.code == 4 and "predictions: 2 (missing: harbour_mayor.tsv), gold files: 3" in missing.stderr
    )
    extra.write_text("1\t0.5\n")
    unclear = debates("evaluate", out, *options)
    assert unclear.code == 2 and "has no harbour_mayor.tsv: give its files one by one" in unclear.stderr


def test_a_folder_without_a_run_needs_a_task_and_files(offline: Cli, tmp_path: Path) -> None:
    result = offline("evaluate", tmp_path)
    assert result.code == 2
    assert "is not a run directory (it has no run.json)" in result.stderr
    assert "if it has official files, give their task with --task" in result.stderr
    options = ["--task", "checkthat", "--data", SAMPLE, "--split", "training"]
    result = offline("evaluate", tmp_path, *options)
    assert result.code == 2 and "has no official file of checkthat: `searchapp export`" in result.stderr


def test_gold_files_have_all_judgments(tmp_path: Path) -> None:
    grades: dict[str, Any] = {"farm_speech": {"farm_speech:2": 1, "farm_speech:3": 0}}
    (name, write), *others = TASK.official.gold(
        grades, DataSplit(TASK.collection(SAMPLE), "training")
    ).items()
    with (tmp_path / name).open("wb") as file:
        write(file)
    labels = [line[-1] for line in (tmp_path / name).read_text().splitlines()]
    assert (name, others, labels.count("1"), labels[1]) == ("farm_speech.tsv", [], 1, "1")
