"""The recipe `best` on real data: documented figures, and the same bytes on both engines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.profile import FULL
from tests.real import real_data

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        not FULL, reason="training takes minutes; the samples are ranked in tests/cli/test_train.py"
    ),
]

DOCUMENTED = {
    "smart-types-dbpedia": {"Accuracy": 0.954046, "NDCG@5": 0.808497, "NDCG@10": 0.816472},
    "smart-types-wikidata": {"accuracy": 0.942953, "MRR": 0.652802},
    "smart-relations-dbpedia": {"F1": 0.678451},
    "nlps": {"MAP@500": 0.416942},
    "explanation-2019": {"MAP": 0.556951},
    "explanation-2021": {"mean NDCG": 0.737368},
    "checkthat": {"MAP": 0.292974},
}
"""The official figures of docs/tasks: on dev, of fold1 (the pages have means of all folds), of each debate left out."""

SPLITS = {"nlps": "dev", "explanation-2019": "dev", "explanation-2021": "dev", "checkthat": "training"}
LENIENT = {"checkthat": ("--lenient",)}
"""One debate has too few lines for P@50."""


def files_of(run: Path) -> list[str]:
    """Return the files of a run that don't depend on the engine."""
    files = (path.relative_to(run) for path in run.rglob("*") if path.is_file())
    return sorted(str(path) for path in files if path.name != "run.json")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", DOCUMENTED)
def test_a_split_has_the_documented_figures_and_the_same_bytes_on_both_engines(
    server: Cli, task: str, tmp_path: Path
) -> None:
    data = real_data(task)
    for engine in ("embedded", "elasticsearch"):
        options = ["--data", data, "--engine", engine]
        assert server("index", task, *options).code == 0
        chosen = ["--split", SPLITS.get(task, "fold1"), "--recipe", "best", "--out", tmp_path / engine]
        ranked = server("rank", task, *options, *chosen)
        assert ranked.code == 0, ranked.stderr
    files = files_of(tmp_path / "embedded")
    rankings = [name for name in files if Path(name).parent == Path() and name != "documents.json"]
    assert len(rankings) == (20 if task == "checkthat" else 2)
    assert files_of(tmp_path / "elasticsearch") == files
    for name in files:
        assert (tmp_path / "embedded" / name).read_bytes() == (tmp_path / "elasticsearch" / name).read_bytes()
    scored = server("evaluate", tmp_path / "embedded", "--json", *LENIENT.get(task, ()))
    assert scored.code == 0, scored.stderr
    for measure, value in DOCUMENTED[task].items():
        assert scored.json["official"]["values"][measure] >= 0.98 * value


@pytest.mark.timeout(1800)
def test_debates_of_kinds_left_out_of_training_have_the_documented_map() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "unlike_debates.py"
    options = ["--data", str(real_data("checkthat")), "--by", "kind", "--recipe", "best"]
    command = [sys.executable, str(script), *options]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1700).stdout
    figures = re.search(r"MAP ([.\d]+); mean of kinds ([.\d]+) ", printed)
    assert figures is not None, printed
    for figure, documented in zip(map(float, figures.groups()), (0.2495, 0.2446), strict=True):
        assert figure >= 0.98 * documented
