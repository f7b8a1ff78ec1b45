"""Files in the shapes of the organisers, with the samples as their content.

They have what the samples lack: test files without gold, ids of the type that files of each year have, all columns,
and the peculiarities of real files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from searchapp.fetching import sources
from searchapp.resources import SAMPLES

COLUMNS_OF_2019 = (
    *("questionID", "originalQuestionID", "totalPossiblePoint", "AnswerKey", "isMultipleChoiceQuestion"),
    *("includesDiagram", "examName", "grade", "year", "AnswerKey", "Question", "explanation", "notes"),
    *("explanation annotators", "flags", "subject", "category", "fold"),
)
COLUMNS_OF_WORLDTREE_2 = (
    *("QuestionID", "originalQuestionID", "totalPossiblePoint", "AnswerKey", "isMultipleChoiceQuestion"),
    *("includesDiagram", "examName", "schoolGrade", "subject", "category", "year", "topic", "explanation"),
    *("question", "flags", "arcset"),
)
LONG_ID = "326496263310236798796308065117976245415"
"""Ids of nlps are 128-bit integers."""


def files_of(task: str) -> dict[str, bytes]:
    """Return the official files of a task by their names in its folder."""
    files = dict(_sample(task))
    if task == "checkthat":
        return _checkthat(files)
    assert task in _MAKERS, f"add to _MAKERS a function that makes official files from the sample of {task}"
    return files | _MAKERS[task](files)


def put(files: dict[str, bytes], folder: Path) -> Path:
    """Write files into a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def _sample(task: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted((SAMPLES / task).rglob("*")):
        if path.is_file():
            yield path.relative_to(SAMPLES / task).as_posix(), path.read_bytes()


def _json(value: Any, **layout: Any) -> bytes:
    return json.dumps(value, **layout).encode()


def _nlps(files: dict[str, bytes]) -> dict[str, bytes]:
    dev = list(json.loads(files["dev_set.json"]).values())
    masked = {LONG_ID: dev[0]["text"], "7000001": dev[1]["text"]}
    return {
        "test_set.json": _json({id_: {"text": text, "premises": []} for id_, text in masked.items()}),
    }


def _checkthat(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return a debate of the sample under each name of the official files."""
    debates_by_name = {}
    for number, file in enumerate(sources.load("checkthat").files):
        part = file.path.partition("/")[0]
        debates = [content for name, content in files.items() if name.startswith(f"{part}/")]
        debates_by_name[file.path] = debates[number % len(debates)]
    return debates_by_name


def questions_of_2019(content: bytes, columns: tuple[str, ...], *, masked: bool = False) -> bytes:
    """Write the questions of a sample file with other columns; `masked` ones have no explanations."""
    header, *rows = [line.split("\t") for line in content.decode().splitlines()]
    lines = ["\t".join(columns)]
    for row in rows:
        cells = {**dict.fromkeys(columns, ""), **dict(zip(header, row, strict=True))}
        cells |= {"QuestionID": cells["questionID"], "question": cells["Question"]}
        cells |= {"explanation": ""} if masked else {}
        lines.append("\t".join(cells[column] for column in columns))
    return "".join(f"{line}\n" for line in lines).encode()


def _explanation_2019(files: dict[str, bytes]) -> dict[str, bytes]:
    folder = "questions/ARC-Elementary+EXPL-"
    dev = files[f"{folder}Dev.tsv"]
    return {
        f"{folder}Train.tsv": questions_of_2019(files[f"{folder}Train.tsv"], COLUMNS_OF_2019),
        f"{folder}Dev.tsv": questions_of_2019(dev, COLUMNS_OF_2019),
        f"{folder}Test-Masked.tsv": questions_of_2019(
            dev.replace(b"\nD_", b"\nT_"), COLUMNS_OF_2019, masked=True
        ),
    }


def _explanation_2021(files: dict[str, bytes]) -> dict[str, bytes]:
    questions = json.loads(files["wt-expert-ratings.dev.json"])["rankingProblems"]
    masked = [
        {**question, "qid": question["qid"].replace("D_", "T_"), "qClass": ["CEL_CYCLES"], "documents": []}
        for question in questions
    ]
    return {"wt-expert-ratings.test.json": _json({"rankingProblems": masked}, indent=4)}


def _numbered(entries: list[dict[str, Any]], start: int) -> list[dict[str, Any]]:
    return [{**entry, "id": number} for number, entry in enumerate(entries, start)]


def _masked(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": entry["id"], "question": entry["question"]} for entry in entries]


def _types_dbpedia_2021(files: dict[str, bytes]) -> dict[str, bytes]:
    train, test = (json.loads(files[f"task1_dbpedia_{part}.json"]) for part in ("train", "test"))
    unusual = [
        {"id": 0, "question": None, "category": "literal", "type": ["date"]},
        {"id": 0, "question": "Who sails the Orrin?", "category": None, "type": None},
        {"id": 0, "question": "Who sails the Immer?", "category": "resource", "type": []},
        {
            "id": 0,
            "question": "Where is Sorn?",
            "category": "resource",
            "type": ["dbo:Location", "dbo:Place"],
        },
        {
            "id": 0,
            "question": "What is Sorn?",
            "category": "resource",
            "type": ["dbo:NotListed", "dbo:Place"],
        },
    ]
    return {
        "task1_dbpedia_train.json": _json(_numbered(train + unusual, 0), indent=2),
        "task1_dbpedia_test.json": _json(_masked(_numbered(test, 50_500)), indent=2),
    }


def types_dbpedia_2020(*, gold: bool) -> dict[str, bytes]:
    """Return the files of 2020, whose test file has gold or not."""
    files = dict(_sample("smart-types-dbpedia"))
    test = json.loads(files.pop("task1_dbpedia_test.json"))
    files["smarttask_dbpedia_train.json"] = files.pop("task1_dbpedia_train.json")
    files["smarttask_dbpedia_test_questions.json"] = _json(_masked(test))
    if gold:
        files["smarttask_dbpedia_test.json"] = _json(test)
    return files


def _types_wikidata_2021(files: dict[str, bytes]) -> dict[str, bytes]:
    test = json.loads(files["task1_wikidata_test.json"])
    return {"task1_wikidata_test.json": _json(_masked(test), indent=2)}


def types_wikidata_2020(*, gold: bool) -> dict[str, bytes]:
    """Return the files of 2020, whose test file has gold or not."""
    files = dict(_sample("smart-types-wikidata"))
    test = json.loads(files.pop("task1_wikidata_test.json"))
    files["lcquad2_anstype_wikidata_train.json"] = files.pop("task1_wikidata_train.json")
    files["lcquad2_anstype_wikidata_test.json"] = _json(_masked(test))
    if gold:
        files["lcquad2_anstype_wikidata_test_gold.json"] = _json(test, indent=4)
    return files


def _relations(files: dict[str, bytes]) -> dict[str, bytes]:
    (name,) = (name for name in files if name.endswith("-test-questions.json"))
    base = name.removesuffix("-questions.json")
    masked = [
        {"id": f"{base}-{number}", "question": entry["question"]}
        for number, entry in enumerate(json.loads(files[name]))
    ]
    return {name: _json(masked, indent=2)}


def relations_with_gold(base: str) -> dict[str, bytes]:
    """Return the files of relation prediction with a second test file that has gold."""
    files = dict(_sample(f"smart-relations-{base}"))
    train = json.loads(files[f"smart-2021-rl-{base}-train.json"])
    gold = [{**entry, "id": f"test-{number}"} for number, entry in enumerate(train[:5])]
    return {**files, f"smart-2021-rl-{base}-test.json": _json(gold, indent=2)}


_MAKERS = {
    "nlps": _nlps,
    "explanation-2019": _explanation_2019,
    "explanation-2021": _explanation_2021,
    "smart-types-dbpedia": _types_dbpedia_2021,
    "smart-types-wikidata": _types_wikidata_2021,
    "smart-relations-dbpedia": _relations,
    "smart-relations-wikidata": _relations,
}
