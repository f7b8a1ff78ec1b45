"""`validate` rejects every recorded file that the organisers' scorer refuses, and none that it scores."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from searchapp.app.evaluate import validate
from searchapp.errors import DataError
from searchapp.evaluation.base import ScorerOptions
from searchapp.resources import SAMPLES
from searchapp.tasks import load, names
from searchapp.tasks.base import DataSplit

RECORDED = Path(__file__).parents[1] / "fixtures" / "conformance"

NOT_THE_FILE = {
    "06-unknown-knowledge-base": "an option of the script",
    "20-file-counts-differ": "how many files there are",
    "23-same-prediction-twice": "one file given twice",
}
"""Cases in which the scorer stops for another reason than the content of a prediction file."""


def cases(*, stopping: bool) -> Iterator[Any]:
    """Yield the recorded cases in which the scorer stops, or those in which it does not."""
    for task in names():
        for path in sorted((RECORDED / task).glob("*/case.json")):
            case = json.loads(path.read_text(encoding="utf-8"))
            is_scored = (
                case.get("options", {}).get("mode") != "check" and path.parent.name not in NOT_THE_FILE
            )
            if is_scored and ("error" in case["expected"]) is stopping:
                yield pytest.param(task, path.parent, case, id=f"{task}-{path.parent.name}")


def read_entries(path: Path) -> list[Any]:
    """Read the entries of a JSON file; a file of something else has none."""
    value = json.loads(path.read_text(encoding="utf-8-sig"))
    return value if isinstance(value, list) else []


def read_rows(path: Path) -> list[list[str]]:
    """Read the rows of a TSV file that are not empty."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row for row in csv.reader(file, delimiter="\t") if row]


def types_folder(task: str) -> Callable[[Path, Path, Any], str]:
    def make(folder: Path, case: Path, inputs: Any) -> str:
        shutil.copytree(SAMPLES / task, folder)
        shutil.copy(case / inputs["gold"], folder / f"task1_{task.rpartition('-')[2]}_test.json")
        if "hierarchy" in inputs:
            shutil.copy(case / inputs["hierarchy"], folder / "dbpedia_types.tsv")
        return "test"

    return make


def relations_folder(task: str) -> Callable[[Path, Path, Any], str]:
    def make(folder: Path, case: Path, inputs: Any) -> str:
        shutil.copytree(SAMPLES / task, folder)
        base = folder / f"smart-2021-rl-{task.rpartition('-')[2]}"
        shutil.copy(case / inputs["gold"], f"{base}-test-questions.json")
        known = {
            relation
            for file in ("gold", "predictions")
            for entry in read_entries(case / inputs[file])
            for group in entry.get("relations") or ()
            for relation in (group if isinstance(group, list) else [group])
        }
        vocabulary = (
            sorted(relation for relation in known if ":" in relation)
            if task.endswith("dbpedia")
            else {relation: {"id": relation, "label": relation} for relation in sorted(known)}
        )
        Path(f"{base}-relation-vocabulary.json").write_text(json.dumps(vocabulary))
        return "test"

    return make


def nlps_folder(folder: Path, case: Path, inputs: Any) -> str:
    folder.mkdir()
    shutil.copy(case / inputs["gold"], folder / "dev_set.json")
    premises = {row[-1] for row in read_rows(case / inputs["predictions"])}
    (folder / "knowledge_base.json").write_text(json.dumps(dict.fromkeys(sorted(premises), "A text.")))
    return "dev"


def explanation_folder(name: str) -> Callable[[Path, Path, Any], str]:
    def make(folder: Path, case: Path, inputs: Any) -> str:
        (folder / "tables").mkdir(parents=True)
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(case / inputs["gold"], folder / name)
        facts = {row[-1] for row in read_rows(case / inputs["predictions"])} | {"another"}
        lines = [f"a text\t{fact}" for fact in sorted(facts) if fact.split() == [fact]]
        (folder / "tables" / "KINDOF.tsv").write_text("\n".join(["TEXT\t[SKIP] UID", *lines, ""]))
        return "dev"

    return make


FOLDERS: dict[str, Callable[[Path, Path, Any], str]] = {
    **{f"smart-types-{kb}": types_folder(f"smart-types-{kb}") for kb in ("dbpedia", "wikidata")},
    **{f"smart-relations-{kb}": relations_folder(f"smart-relations-{kb}") for kb in ("dbpedia", "wikidata")},
    "nlps": nlps_folder,
    "explanation-2019": explanation_folder("questions/ARC-Elementary+EXPL-Dev.tsv"),
    "explanation-2021": explanation_folder("wt-expert-ratings.dev.json"),
}


def problems_of(task: str, case_folder: Path, case: Any, folder: Path) -> list[str]:
    """Return the kinds of problems in the prediction files of a case."""
    loaded, inputs = load(task), case["inputs"]
    options = ScorerOptions(case.get("options", {}).get("nearest"))
    try:
        if task != "checkthat":
            split = FOLDERS[task](folder, case_folder, inputs)
            path = case_folder / inputs["predictions"]
            part = DataSplit(loaded.collection(folder), split, options)
            return [problem.kind for problem in validate(loaded, path, part)]
        kinds = []
        for number, (gold, predictions) in enumerate(zip(inputs["gold"], inputs["predictions"], strict=True)):
            debate = folder / "test_annotated" / f"debate_{number}.tsv"
            debate.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(case_folder / gold, debate)
            path = folder / debate.name
            shutil.copy(case_folder / predictions, path)
            part = DataSplit(loaded.collection(folder), debate.stem, options)
            kinds += [problem.kind for problem in validate(loaded, path, part)]
        return kinds
    except DataError as error:
        return [type(error).__name__]


@pytest.mark.parametrize(("task", "case_folder", "case"), list(cases(stopping=True)))
def test_a_file_that_the_scorer_refuses_is_not_valid(
    task: str, case_folder: Path, case: Any, tmp_path: Path
) -> None:
    assert problems_of(task, case_folder, case, tmp_path / "data")


@pytest.mark.parametrize(("task", "case_folder", "case"), list(cases(stopping=False)))
def test_a_file_that_the_scorer_accepts_has_no_problem_that_stops_it(
    task: str, case_folder: Path, case: Any, tmp_path: Path
) -> None:
    kinds = problems_of(task, case_folder, case, tmp_path / "data")
    assert not {"not scorable", "part of a label", "too few lines"} & set(kinds)
