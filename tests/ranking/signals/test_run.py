"""The signal `run` fuses the run of another system, from a run directory or a TREC run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from searchapp.formats import trec
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.conftest import offline as offline

RUN = """\
q1 Q0 r04 1 7.5 foreign
q1 Q0 r01 2 7.5 foreign
q1 Q0 r03 3 2 foreign
q2 Q0 r02 1 1 foreign
"""

RECIPES = """
[recipes.foreign]
template = "bm25"
signals = [{ signal = "run", file = "foreign.trec" }]

[recipes.fused]
signals = [{ signal = "direct", template = "bm25" }, { signal = "run", file = "foreign.trec", weight = 2.0 }]
fusion = { method = "rrf" }

[recipes.several]
template = "bm25"
signals = [{ signal = "run", file = "part-*.trec" }]

[recipes.directory]
template = "bm25"
signals = [{ signal = "run", file = "../half" }]
"""


@pytest.fixture
def task(offline: Cli, tmp_path: Path) -> Path:
    path = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own")) / "cooking.toml"
    path.write_text(path.read_text() + RECIPES)
    (path.parent / "foreign.trec").write_text(RUN)
    assert offline("index", path).code == 0
    return path


def ranked(run: Cli, task: Path, recipe: str) -> dict[str, list[tuple[str, float]]]:
    out = task.parent.parent / recipe
    result = run("rank", task, "--split", "dev", "--recipe", recipe, "--out", out)
    assert result.code == 0, result.stderr
    return {ranking.topic_id: list(ranking.hits) for ranking in trec.read_run(out / "run.trec")}


def test_the_documents_and_scores_are_those_of_the_file_in_its_order(offline: Cli, task: Path) -> None:
    assert ranked(offline, task, "foreign") == {
        "q1": [("r04", 7.5), ("r01", 7.5), ("r03", 2.0)],
        "q2": [("r02", 1.0)],
    }


def test_a_fusion_ranks_the_documents_of_both_systems(offline: Cli, task: Path) -> None:
    lexical, fused = ranked(offline, task, "bm25"), ranked(offline, task, "fused")
    for topic, foreign in (("q1", ["r04", "r01", "r03"]), ("q2", ["r02"]), ("q3", [])):
        expected: dict[str, float] = {}
        for weight, ids in ((1, [document for document, _score in lexical[topic]]), (2, foreign)):
            for rank, document in enumerate(ids, 1):
                expected[document] = expected.get(document, 0) + weight / (60 + rank)
        assert dict(fused[topic]) == pytest.approx(expected, rel=1e-6)


def test_a_pattern_names_several_files_and_a_directory_its_run(offline: Cli, task: Path) -> None:
    for number, line in enumerate((RUN.splitlines()[0], RUN.splitlines()[3])):
        (task.parent / f"part-{number}.trec").write_text(f"{line}\n")
    assert ranked(offline, task, "several") == {"q1": [("r04", 7.5)], "q2": [("r02", 1.0)]}
    assert ranked(offline, task, "half") == ranked(offline, task, "directory")


def test_a_run_is_repeated_and_a_changed_file_is_reported(offline: Cli, task: Path) -> None:
    ranked(offline, task, "fused")
    out = task.parent.parent
    again = offline("rerun", out / "fused", "--out", out / "again")
    assert again.code == 0, again.stderr
    assert (out / "again" / "run.trec").read_bytes() == (out / "fused" / "run.trec").read_bytes()
    (task.parent / "foreign.trec").write_text(RUN.replace("q1 Q0 r03", "q1 Q0 r05"))
    verified = offline("runs", "verify", out / "fused", "--json")
    assert "foreign.trec" in json.dumps(json.loads(verified.stdout))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("foreign.trec", None, "there is no run"),
        (
            "foreign.trec",
            "q1 Q0 r99 1 1 x\nq1 Q0 zz 2 1 x\n",
            "ranks 2 documents (r99, zz) that are not in the index",
        ),
        ("foreign.trec", "q99 Q0 r01 1 1 x\n", "ranks none of the topics"),
        ("foreign.trec", "q1 Q0 r01 1 nan x\n", "foreign.trec"),
        ("part-2.trec", "q1 Q0 r01 1 1 x\n", "a file before it ranks the topic q1 too"),
    ],
)
def test_what_cannot_be_fused_is_reported(
    offline: Cli, task: Path, name: str, content: str | None, problem: str
) -> None:
    (task.parent / "part-1.trec").write_text(RUN)
    (task.parent / name).unlink() if content is None else (task.parent / name).write_text(content)
    out = task.parent.parent / "out"
    recipe = "several" if name.startswith("part") else "fused"
    result = offline("rank", task, "--split", "dev", "--recipe", recipe, "--out", out)
    assert result.code in (1, 3, 4) and problem in result.stderr
    assert not out.exists()
