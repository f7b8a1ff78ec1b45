"""Commands that read files with systematic damage.

A damaged file must be reported with its name and, if it has lines or entries, the place; never with a traceback.
Damage that is accepted is listed with the reason why it is harmless.
"""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from searchapp import tasks
from searchapp.runs import directory
from tests.cli.conftest import SAMPLES, Cli, Result
from tests.cli.mutations import mutations
from tests.cli.ranked_samples import SCORED_WITH, indexed_split
from tests.profile import FULL

SAME_LAYOUT = {
    "nlps/train_set.json": "nlps/dev_set.json",
    "explanation-2021/tables": "explanation-2019/tables",
    "explanation-2021/wt-expert-ratings.train.json": "explanation-2021/wt-expert-ratings.dev.json",
    "checkthat/training": "checkthat/test_annotated",
    "smart-types-wikidata/task1_wikidata_test.json": "smart-types-dbpedia/task1_dbpedia_test.json",
    "smart-relations-wikidata/smart-2021-rl-wikidata-test-questions.json": "smart-relations-dbpedia",
}
"""Files and folders that the same code reads as others; only the others are damaged."""

ALIKE = {
    "smart-types-dbpedia/task1_dbpedia_test.json",
    "smart-types-wikidata/task1_wikidata_train.json",
    "explanation-2021/predict.txt",
    "smart-types-wikidata/task1_wikidata_predictions.json",
    "smart-relations-wikidata/smart-2021-rl-wikidata-predictions.json",
}
"""Files that almost the same code reads as others; the short profile tries fewer mutations of them."""

NOT_INDEXED = {"explanation-2021/WorldTree-V2.1-TableKnowledgeTypes.tsv"}
"""Files that only a breakdown reads."""


def _inputs() -> Iterator[tuple[str, str]]:
    """Yield task and name of one file of each layout that a task reads, for a folder its first file."""
    for task in tasks.names():
        folders = set()
        for path in sorted((SAMPLES / task).rglob("*")):
            name = path.relative_to(SAMPLES / task).as_posix()
            folder, _slash, _file = name.rpartition("/")
            if not path.is_file() or (folder and folder in folders) or f"{task}/{name}" in NOT_INDEXED:
                continue
            folders.add(folder)
            if f"{task}/{name}" not in SAME_LAYOUT and f"{task}/{folder}" not in SAME_LAYOUT:
                yield task, name


LINE_ENDS = "line ends and white space between values are insignificant"
FEWER = "a shorter collection is valid as long as nothing refers to missing entries"
HARMLESS = [
    ("*.json", "CRLF", LINE_ENDS),
    ("*.json", "CR", LINE_ENDS),
    ("*", "no final newline", LINE_ENDS),
    ("*.json", "blank line at the end", LINE_ENDS),
    ("*.json", "extra key", "unknown keys are ignored"),
    ("*.json", "first entry removed", FEWER),
    ("*.json", "an empty list", "a split without topics: ranking reports it"),
    ("nlps/*_set.json", "an empty object", "a split without topics: ranking reports it"),
    ("nlps/*.json", "byte-order mark", "the official scorer accepts it"),
    ("nlps/knowledge_base.json", "entry: another text", "any text is a statement"),
    ("nlps/*_set.json", "key 0: another text", "any text is a statement"),
    ("nlps/*_set.json", "unknown id", "a topic may have any id"),
    ("nlps/*_set.json", "key 1: an empty list", "a statement may have no premises"),
    ("nlps/*_set.json", "key 1: twice in a list", "a premise counts once"),
    ("explanation-*.json", "byte-order mark", "JSON is read the same without it"),
    ("explanation-2021/questions/*", "*", "only people read the options: reported as a note"),
    ("explanation-2021/*.json", "key 0: another text", "a question may have any id"),
    ("explanation-2021/*.json", "key 1 re*", "the query of the organisers is read from the question"),
    ("explanation-*.tsv", "CRLF", "reported as a note"),
    ("explanation-*.tsv", "CR", "reported as a note"),
    ("explanation-*.tsv", "*byte-order mark*", "reported as a note"),
    ("explanation-*.tsv", "last byte cut", "reported as a note: the last line has no end"),
    ("explanation-*.tsv", "blank line*", "the organisers' tables have blank rows"),
    ("explanation-*.tsv", "line of blanks", "the organisers' tables have blank rows"),
    ("explanation-*.tsv", "lines reversed", "rows may be in any order"),
    ("explanation-*.tsv", "columns swapped", "columns are found by the header row"),
    ("explanation-*.tsv", "tabs doubled", "columns without a name are ignored"),
    ("explanation-*.tsv", "extra column everywhere", "a column of another name is ignored"),
    ("explanation-*.tsv", "a line removed", FEWER),
    ("explanation-*/tables/*", "a line twice", "reported as a note"),
    ("explanation-*/tables/*", "first cell *", "a word of a fact, which may be any"),
    ("explanation-*/tables/*", "* in the first cell", "a word of a fact, which may be any"),
    ("explanation-*/tables/*", "* last cell", "the fact's id: gold without fact is reported as a note"),
    ("explanation-*/questions/*", "* in the first cell", "a question may have any id"),
    ("explanation-*/questions/*", "* last cell", "a column that is not read"),
    ("explanation-*/questions/*", "last cell *", "a column that is not read"),
    ("checkthat/*", "CRLF", "a checkout on Windows makes them"),
    ("smart-types-*", "*byte-order mark*", "accepted where the official scorer accepts or skips it"),
    ("smart-types-*.tsv", "CR*", "every line end is one to the official scorer"),
    ("smart-types-*.tsv", "lines reversed", "rows may be in any order"),
    ("smart-types-*.json", "entry repeated", "the official files have entries twice: they are read once"),
    ("smart-types-*.json", "unknown id", "a question may have any id"),
    ("smart-types-*.json", "key 0: another text", "a question may have any id"),
    ("smart-types-wikidata/*.json", "key 0: a*number", "the official file has ids that are numbers"),
    ("smart-types-*.json", "key 1: another text", "any text is a question"),
    ("smart-types-*.json", "key 1: null", "the official files have questions that are null"),
    ("smart-types-*.json", "key 1: an empty text", "read as one that is null, as by the official scorer"),
    ("smart-types-*.json", "key 2: null", "the official files have questions without a category"),
    ("smart-types-*.json", "key 3: null", "the official files have questions without types"),
    ("smart-types-*.json", "key 3: an empty list", "the official files have questions without types"),
    ("smart-types-*.json", "key 3: twice in a list", "reported as a note"),
    ("smart-relations-*.json", "unknown id", "a question may have any id"),
    ("smart-relations-*.json", "key 0: another text", "a question may have any id"),
    ("smart-relations-*.json", "key 1: another text", "any text is a question or a label"),
    ("smart-relations-*train.json", "key 1: null", "reported as a note: there are no words to rank by"),
    (
        "smart-relations-*train.json",
        "key 1: an empty text",
        "reported as a note: there are no words to rank by",
    ),
    (
        "smart-relations-*questions.json",
        "key 1: null",
        "reported as a note: there are no words to rank by",
    ),
    (
        "smart-relations-*questions.json",
        "key 1: an empty text",
        "reported as a note: there are no words to rank by",
    ),
    (
        "smart-relations-*train.json",
        "key 2: an empty list",
        "reported as a note: nothing is learned from it",
    ),
    ("smart-relations-*train.json", "key 2: twice in a list", "a relation may be needed twice"),
    ("smart-relations-wikidata/*vocabulary.json", "byte-order mark", "the official scorer does not read it"),
    ("smart-relations-wikidata/*vocabulary.json", "key [23]: another text", "any text is a description"),
    ("smart-relations-wikidata/*vocabulary.json", "key [23] removed", "a property may lack them"),
]
"""File and mutation, both with wildcards, and the reason why it is accepted."""

PLACE = re.compile(
    r"(line|column|entry|prediction) \d|(statement|premise|property|question|fact|debate|row) \S"
)
WHOLE_FILE = re.compile(
    r"empty file|wrong shape|nested too deeply|not (readable )?JSON|no document|wrong header|no types?\b"
    r"|must contain a list|must be an object|has no value|the file has no|has no topics|rankingProblems"
    r"|no prediction (is for|has the key)|\d+ lines, too few"
)
"""Problems of a whole file, which have no place in it."""


def faults(result: Result, files: list[str], harmless: bool, mutation: str) -> list[str]:
    """List faults in the reaction of a command to a damaged file; its message must name one of `files`."""
    reaction = f"{mutation}: {result.code} {result.stderr.strip()[:400]}"
    if "Traceback" in result.stderr or "internal error" in result.stderr or result.code not in (0, 4):
        return [f"CRASHED {reaction}"]
    if result.code == 0:
        return [] if harmless else [f"PASSED {reaction}"]
    problems = []
    if not any(file in result.stderr for file in files):
        problems.append(f"NO FILE {reaction}")
    if not PLACE.search(result.stderr) and not WHOLE_FILE.search(result.stderr):
        problems.append(f"NO PLACE {reaction}")
    return problems


def message(result: list[str], harmless: str) -> str:
    """Return the message of a test with faults; `harmless` is the name of the list of accepted mutations."""
    advice = f"let the reader report it, or add it to {harmless} with the reason"
    passed = any(fault.startswith("PASSED") for fault in result)
    return "\n".join([*result, *([advice] if passed else [])])


def is_harmless(task: str, file: str, mutation: str) -> bool:
    return any(fnmatch(f"{task}/{file}", files) and fnmatch(mutation, name) for files, name, _why in HARMLESS)


def sampled(mutation: str, of: int) -> bool:
    """Whether a mutation is in a sample of one in `of`."""
    return zlib.crc32(mutation.encode()) % of == 0


def profile_mutations(task: str, path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the mutations of a file that the profile tries."""
    alike = f"{task}/{path.name}" in ALIKE
    for mutation, damaged in mutations(path, path.read_bytes()):
        if FULL or sampled(f"{path.name} {mutation}", 10 if alike else 5):
            yield mutation, damaged


@pytest.mark.parametrize(("task", "name"), list(_inputs()), ids=lambda value: value)
def test_a_damaged_input_is_reported_with_its_place(
    offline: Cli, task: str, name: str, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(SAMPLES / task, tmp_path / "data"))
    path, problems = data / name, []
    # A reference to a removed entry is reported at the reference, and a missing document at the folder.
    names = [file.name for file in data.rglob("*.*")]
    for mutation, damaged in profile_mutations(task, path):
        path.write_bytes(damaged)
        result = offline("index", task, "--data", data, "--quiet")
        shorter = mutation.startswith(("cut", "first entry", "an empty", "a line", "unknown id", "columns"))
        expected = [*names, f"{data} has no document"] if shorter else [path.name]
        problems += faults(result, expected, is_harmless(task, name, mutation), mutation)
    assert not problems, message(problems, "HARMLESS")


@pytest.mark.parametrize("task", tasks.names())
def test_ranking_reports_damaged_topics_and_examples(offline: Cli, task: str, tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLES / task, tmp_path / "data"))
    assert offline("index", task, "--data", data).code == 0
    loaded, split, result = tasks.load(task), indexed_split(task), []
    out = ["--out", tmp_path / "run", "--overwrite", "--depth", 5, "--quiet"]
    files = {*loaded.collection(data).split_files(split), *loaded.collection(data).example_files(split)}
    for path in sorted(files - set(loaded.collection(data).documents.files))[:2]:
        good = path.read_bytes()
        for mutation, damaged in mutations(path, good):
            if sampled(mutation, 6 if FULL else 12):
                path.write_bytes(damaged)
                ranked = offline("rank", task, "--data", data, "--split", split, *out)
                result += faults(ranked, [path.name, str(data)], True, mutation)
        path.write_bytes(good)
    assert not result, "\n".join(result)


SKIPPED = "the official scorer skips it"
OFFICIAL_HARMLESS = [
    ("*.json", "CRLF", LINE_ENDS),
    ("*.json", "CR", LINE_ENDS),
    ("*", "no final newline", LINE_ENDS),
    ("*.json", "blank line at the end", LINE_ENDS),
    ("*.json", "extra key", SKIPPED),
    ("task1_wikidata*", "byte-order mark", SKIPPED),
    ("smart-2021-rl-*", "key 1: twice in a list", "a relation may be needed twice"),
    ("predict.txt", "byte-order mark", SKIPPED),
    ("predict.txt", "CR*", LINE_ENDS),
    ("predict.txt", "*blank*", SKIPPED),
    ("predict.txt", "*line removed", "enough lines remain, except if every fact is required"),
    ("predict.txt", "lines reversed", "any order is a ranking"),
    ("*_debate.tsv", "CR*", LINE_ENDS),
    ("*_debate.tsv", "* in the last cell", "any score in fixed point is valid"),
]
"""Mutations that `validate` accepts; see HARMLESS."""


@pytest.mark.shared_indexes
@pytest.mark.parametrize("task", tasks.names())
def test_damaged_official_files_are_invalid(offline: Cli, task: str, tmp_path: Path) -> None:
    data, split, run = SAMPLES / task, indexed_split(task), tmp_path / "run"
    assert offline("index", task, "--data", data).code == 0
    assert offline("rank", task, "--data", data, "--split", split, "--recipe", "bm25", "--out", run).code == 0
    loaded = tasks.load(task)
    # The sample of nlps is smaller than the official cut-off.
    nearest = SCORED_WITH.get(task, [])
    if nearest and not (run / loaded.info.official_file).exists():
        assert offline("export", run, "--out", run / loaded.info.official_file, *nearest).code == 0
    files = sorted(
        file
        for file in run.iterdir()
        if file.is_file() and file.name not in (directory.MANIFEST, directory.RANKINGS, directory.DOCUMENTS)
    )
    options = ["--task", task, "--data", data, "--split", split, *nearest]
    path, others = files[0], files[1:]
    assert offline("validate", path, *options).code == 0
    result = []
    for mutation, damaged in profile_mutations(task, path):
        path.write_bytes(damaged)
        passes = any(
            fnmatch(path.name, file) and fnmatch(mutation, name) for file, name, _why in OFFICIAL_HARMLESS
        )
        result += faults(offline("validate", path, *options), [path.name], passes, f"validate, {mutation}")
        scored = offline("evaluate", path, *others, *options)
        result += faults(scored, [path.name], True, f"evaluate, {mutation}")
    assert not result, message(result, "OFFICIAL_HARMLESS")
