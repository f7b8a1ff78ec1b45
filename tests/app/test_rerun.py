"""`runs verify` reports exactly the changes of a run's inputs, and `rerun` repeats a run from its copies of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from searchapp import resources, tasks
from searchapp.ranking import recipes
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.conftest import offline as offline
from tests.cli.conftest import samples_indexes as samples_indexes
from tests.cli.ranked_samples import split_of
from tests.profile import FULL

VOTES = """
[recipes.votes]
signals = [
  { signal = "direct", template = "half.json" },
  { signal = "neighbours", template = "bm25", k = 5, power = 1.0 },
]
parameters = { half = 0.5 }
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """An own task with its own mapping; its recipe `votes` learns from training topics, `half` does not."""
    path = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own")) / "cooking.toml"
    mapping = resources.index_mapping("text")
    mapping["settings"]["similarity"] = {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}}
    (path.parent / "mine.json").write_text(json.dumps(mapping))
    path.write_text('mapping = "mine.json"\n' + path.read_text() + VOTES)
    return path


@pytest.fixture
def runs(offline: Cli, task: Path, tmp_path: Path) -> dict[str, Path]:
    """A run of each of the two recipes."""
    assert offline("index", task).code == 0
    return {name: rank(offline, task, tmp_path / name, name) for name in ("half", "votes")}


def rank(run: Cli, task: Path | str, out: Path, recipe: str, *options: object, split: str = "dev") -> Path:
    result = run("rank", task, "--split", split, "--recipe", recipe, "--out", out, *options)
    assert result.code == 0, result.stderr
    return out


def replacement(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Return a function that replaces text in a file in the folder of the task file."""

    def change(task: Path) -> None:
        text = (task.parent / name).read_text()
        assert old in text
        (task.parent / name).write_text(text.replace(old, new, 1))

    return change


def reformat_template(task: Path) -> None:
    template = task.with_name("half.json")
    template.write_text(json.dumps(json.loads(template.read_text())))


def add_files(task: Path) -> None:
    for name in ("more.json", "more.tsv"):
        task.with_name(name).write_text("{}")


TASK_FILE = "cooking.toml"
CHANGES: dict[str, tuple[Callable[[Path], None], list[str], list[str]]] = {
    # A change, and the problems it causes for the run of `half` and for the run of `votes`.
    "template": (replacement("half.json", "50%", "40%"), ["half.json changed"], ["half.json changed"]),
    "mapping": (
        replacement("mine.json", '"k1": 1.2', '"k1": 0.9'),
        ["the mapping mine.json"],
        ["the mapping mine.json", "the mapping of training topics"],
    ),
    "parameter": (replacement(TASK_FILE, "half = 0.5", "half = 0.6"), ["the recipe half"], []),
    "signal": (replacement(TASK_FILE, "k = 5", "k = 6"), [], ["the recipe votes"]),
    "document": (
        replacement("recipes.jsonl", "Simmer red", "Simmer brown"),
        ["recipes.jsonl: changed"],
        ["recipes.jsonl: changed"],
    ),
    "topic": (
        replacement("questions.tsv", "soup with", "stew with"),
        ["questions.tsv: changed"],
        ["questions.tsv: changed"],
    ),
    "gold": (
        replacement("gold.txt", "q1 0 r01 2", "q1 0 r01 1"),
        ["gold.txt: changed"],
        ["gold.txt: changed"],
    ),
    "training topic": (replacement("train.tsv", "a soup made", "a stew made"), [], ["train.tsv: changed"]),
    "gold of a training topic": (replacement("train-gold.csv", ",2", ",1"), [], ["train-gold.csv: changed"]),
    "how documents are read": (
        replacement(TASK_FILE, 'text = ["title", "text"]', 'text = ["text"]'),
        ["cooking.toml: documents changed"],
        ["cooking.toml: documents changed"],
    ),
    "how topics are read": (
        replacement(TASK_FILE, 'text = "question"', 'text = "level"'),
        ["cooking.toml: topics.dev changed"],
        ["cooking.toml: topics.dev changed"],
    ),
    "which topics are training topics": (
        replacement(TASK_FILE, 'training_split = "train"', 'training_split = "dev"'),
        [],
        ["cooking.toml: topics.train changed"],
    ),
    "whether topics are documents": (
        replacement(TASK_FILE, "title =", "topics_are_documents = true\ntitle ="),
        ["topics_are_documents changed"],
        ["bm25 changed", "topics_are_documents changed"],
    ),
    "another recipe": (
        replacement(TASK_FILE, "[recipes.half]", "[recipes.more]\ntemplate = 'bm25'\n[recipes.half]"),
        [],
        [],
    ),
    "title, depth and default recipe": (
        replacement(TASK_FILE, "title =", "recipe = 'half'\ndepth = 7\n# a comment\ntitle = 'Other' #"),
        [],
        [],
    ),
    "depth, where it is the window of signals": (
        replacement(TASK_FILE, "title =", "depth = 500\ntitle ="),
        [],
        ["the recipe votes"],
    ),
    "another split": (
        replacement(TASK_FILE, "[topics.dev]", "[topics.more]\nfile = 'questions.tsv'\n[topics.dev]"),
        [],
        [],
    ),
    "white space of a template": (reformat_template, [], []),
    "files that nothing names": (add_files, [], []),
}


def test_verify_reports_exactly_the_changes_of_inputs(
    offline: Cli, task: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    original = shutil.copytree(task.parent, tmp_path / "original")
    wrong = []
    for name, (change, *expected) in CHANGES.items():
        change(task)
        for run, parts in zip(runs.values(), expected, strict=True):
            result = offline("runs", "verify", run, "--json")
            problems = result.json["problems"]
            as_expected = len(problems) == len(parts) and all(map(str.__contains__, problems, parts))
            if not as_expected or result.code != (4 if parts else 0):
                wrong.append((name, run.name, result.code, problems, result.json["notes"]))
        shutil.rmtree(task.parent)
        shutil.copytree(original, task.parent)
    assert not wrong, "\n".join(map(str, wrong))
    assert all(offline("runs", "verify", run).code == 0 for run in runs.values())


def test_rerun_uses_the_copies_of_the_run_and_not_the_files_of_the_task(
    offline: Cli, task: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    def index_versions() -> set[str]:
        return {index["version"] for index in offline("indexes", "list", "--json").json["indexes"]}

    live = index_versions()
    for name in ("template", "mapping", "parameter", "signal", "depth, where it is the window of signals"):
        CHANGES[name][0](task)
    for name, run in runs.items():
        again = tmp_path / f"{name}-again"
        result = offline("rerun", run, "--out", again, "--json")
        assert result.code == 0, result.stderr
        assert result.json["equal"] and not result.json["differences"]
        first, second = (json.loads((path / "run.json").read_text()) for path in (run, again))
        assert first["files"] == second["files"] and first["recipe"] == second["recipe"]
        for file in first["files"]:
            assert (run / file).read_bytes() == (again / file).read_bytes()
        # The copies in the repeated run can be used in turn.
        assert offline("rerun", again, "--out", tmp_path / f"{name}-third").code == 0
    task.write_text("name = 'cooking'\n[documents]\nfile = 'recipes.jsonl'\ntext = ['title', 'text']\n")
    refused = offline("rerun", runs["half"], "--out", tmp_path / "no-split")
    assert refused.code == 2 and "has no split" in refused.stderr
    assert live <= index_versions()


def test_values_of_set_are_part_of_the_run(offline: Cli, task: Path, tmp_path: Path) -> None:
    assert offline("index", task).code == 0
    run = rank(offline, task, tmp_path / "run", "votes", "--set", "k=3", "--set", "half=0.9")
    assert json.loads((run / "run.json").read_text())["recipe"]["set"] == {"k": 3, "half": 0.9}
    assert offline("runs", "verify", run).code == 0
    CHANGES["signal"][0](task)  # changes k, which --set overrides
    assert offline("runs", "verify", run).code == 0
    replacement(TASK_FILE, "power = 1.0", "power = 2.0")(task)
    changed = offline("runs", "verify", run)
    assert changed.code == 4 and "the recipe votes changed since the run was made (signals)" in changed.stderr
    assert offline("rerun", run, "--out", tmp_path / "again").code == 0


def test_rerun_reports_rankings_that_differ_because_data_changed(
    offline: Cli, task: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    CHANGES["topic"][0](task)
    result = offline("rerun", runs["half"], "--out", tmp_path / "again", "--json")
    assert result.code == 4 and not result.json["equal"]
    assert result.json["notes"] == ["questions.tsv: changed since the run was made"]
    (trec,) = [difference for difference in result.json["differences"] if "run.trec" in difference]
    assert "differs from that of" in trec and "the rankings of 1 of 8 topics: q1" in trec
    assert (tmp_path / "again" / "run.json").is_file()
    CHANGES["document"][0](task)
    refused = offline("rerun", runs["half"], "--out", tmp_path / "third")
    assert (
        refused.code == 4
        and "built from other documents (42) than those in" in refused.stderr
        and not (tmp_path / "third").exists()
    )


def test_rerun_refuses_imported_and_damaged_runs(
    offline: Cli, task: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    imported = tmp_path / "imported"
    options = ("--task", task, "--split", "dev", "--out", imported)
    assert offline("runs", "import", runs["half"] / "run.trec", *options).code == 0
    refused = offline("rerun", imported, "--out", tmp_path / "again")
    assert refused.code == 2 and "choose a run that `searchapp rank` made" in refused.stderr
    copy = runs["half"] / "inputs" / "templates.json"
    copy.write_text(copy.read_text().replace("50%", "10%"))
    refused = offline("rerun", runs["half"], "--out", tmp_path / "again")
    assert refused.code == 4 and f"{copy}: changed since the run was written" in refused.stderr
    assert offline("runs", "verify", runs["half"]).code == 4
    task.unlink()
    refused = offline("rerun", runs["votes"], "--out", tmp_path / "again")
    assert refused.code == 2 and "which no longer exists: restore it" in refused.stderr


def test_a_run_has_a_copy_of_the_judgments_it_learned_from(
    offline: Cli, task: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    qrels = tmp_path / "ann.qrels"
    qrels.write_text("q1 0 r05 2\nq2 0 r06 1\n")
    judged = offline("judgments", "import", task, qrels, "--format", "qrels", "--annotator", "ann")
    assert judged.code == 0, judged.stderr
    run = rank(offline, task, tmp_path / "judged", "votes", "--with-judgments")
    assert (run / "run.trec").read_bytes() != (runs["votes"] / "run.trec").read_bytes()
    assert json.loads((run / "inputs" / "judged.json").read_text()) == {
        "q1": {"r05": 2.0},
        "q2": {"r06": 1.0},
    }
    assert offline("judgments", "retract", task, "--import", 1).code == 0
    result = offline("rerun", run, "--out", tmp_path / "again")
    assert result.code == 0, result.stderr


def shipped_recipes() -> Iterator[tuple[str, str]]:
    """Yield every recipe of every shipped task; without the full profile only recipes that train nothing."""
    for name in tasks.names():
        book = tasks.load(name).recipe_book()
        for recipe in recipes.names(book):
            loaded = recipes.load(book, recipe)
            if FULL or not (loaded.trained or loaded.is_learned):
                yield name, recipe


@pytest.mark.shared_indexes
@pytest.mark.parametrize(("name", "recipe"), list(shipped_recipes()))
def test_a_run_of_every_shipped_recipe_is_verified_and_repeated(
    offline: Cli, name: str, recipe: str, tmp_path: Path
) -> None:
    task = tasks.load(name)
    assert offline("index", name, "--data", SAMPLES / name).code == 0
    options = () if task.info.topics_are_documents else ("--depth", 20)
    run = rank(
        offline, name, tmp_path / "run", recipe, "--data", SAMPLES / name, *options, split=split_of(task)
    )
    verified = offline("runs", "verify", run)
    assert verified.code == 0 and "warning" not in verified.stderr.lower(), verified.stderr
    result = offline("rerun", run, "--out", tmp_path / "again", "--json")
    assert result.code == 0, result.stderr
    assert result.json["equal"] and not result.json["notes"]


def test_a_run_of_an_older_layout_is_rejected_with_what_to_do(runs: dict[str, Path], offline: Cli) -> None:
    manifest = runs["half"] / "run.json"
    content: dict[str, Any] = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"format": 1}))
    for command in (["runs", "verify"], ["evaluate"]):
        refused = offline(*command, runs["half"])
        assert refused.code == 4 and "format 1 is not the format 3" in refused.stderr
        assert "rank again" in refused.stderr
