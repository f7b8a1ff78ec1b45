"""Own tasks from end to end, on both engines, as documented."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLES, Cli, read_rankings

OWN = SAMPLES / "own"
RECIPES = ("bm25", "half", "neighbours", "words")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The task file of a copy of the sample."""
    return Path(shutil.copytree(OWN, tmp_path / "own")) / "cooking.toml"


@pytest.fixture
def run(cli: Cli, task: Path, tmp_path: Path) -> Path:
    """A run over the sample's dev topics."""
    out = tmp_path / "run"
    assert cli("index", task).code == 0
    assert cli("rank", task, "--split", "dev", "--out", out).code == 0
    return out


def test_every_command_takes_the_path_of_a_task_file(cli: Cli, task: Path, tmp_path: Path) -> None:
    indexed = cli("index", task, "--json").json
    assert (indexed["task"], indexed["built"], indexed["documents"]) == ("cooking", True, 42)
    assert not cli("index", task, "--json").json["built"]
    hits = cli("search", task, "soups with lentils", "--json").json["hits"]
    assert hits[0]["id"] == "r01"
    steps = cli("analyze", task, "The cook's soups", "--json").json["analyses"][0]["steps"]
    assert [token["term"] for token in steps[-1]["tokens"]] == ["cook", "soup"]
    for recipe in RECIPES:
        out = tmp_path / recipe
        assert cli("rank", task, "--split", "dev", "--recipe", recipe, "--out", out).code == 0
        of_run = cli("evaluate", out, "--json", "--per-topic").json
        assert 0.5 < of_run["official"]["value"] < 1 and of_run["official"]["measure"] == "nDCG@10"
        exported = tmp_path / f"{recipe}.trec"
        assert cli("export", out, "--out", exported).code == 0
        assert cli("validate", exported, "--task", task, "--split", "dev").code == 0
        options = ["--json", "--per-topic", "--task", task]
        of_file = cli("evaluate", exported, "--split", "dev", *options).json
        of_gold = cli("evaluate", exported, "--gold", task.parent / "gold.txt", *options).json
        assert of_run["official"] == of_file["official"] == of_gold["official"]
        assert of_run["measures"] == of_file["measures"]
        assert cli("runs", "verify", out).code == 0


def test_an_indexed_task_is_named_without_its_file(cli: Cli, task: Path, tmp_path: Path) -> None:
    unknown = cli("search", "cooking", "soups with lentils")
    assert unknown.code == 2 and "its name is enough once it is indexed" in unknown.stderr
    assert cli("index", task).code == 0
    assert cli("search", "cooking", "soups with lentils", "--json").json["hits"][0]["id"] == "r01"
    assert cli("tasks", "show", "cooking", "--json").json["file"] == str(task.resolve())
    out = tmp_path / "run"
    assert cli("rank", "cooking", "--split", "dev", "--out", out).code == 0
    assert cli("validate", out / "run.trec", "--task", "cooking", "--split", "dev").code == 0
    assert cli("evaluate", out, "--task", "cooking").code == 0
    assert cli("index", "cooking").code == 0
    removed = cli("indexes", "remove", "cooking", "--yes")
    assert removed.code == 0 and "removed own-cooking" in removed.stderr
    assert cli("search", "cooking", "soups").code == 2


def test_a_bench_names_an_indexed_task_without_its_file(
    cli: Cli, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    plan = (
        '[recipes.bm25]\n[tasks.cooking]\nsplits = "dev"\n[tasks.again]\ntask = "cooking"\nsplits = "dev"\n'
    )
    Path("plan.toml").write_text(plan)
    unknown = cli("bench", "plan.toml")
    assert unknown.code == 4 and "its name is enough once it is indexed" in unknown.stderr
    assert cli("index", task).code == 0
    columns = cli("bench", "plan.toml", "--json").json["columns"]
    assert [column["task"] for column in columns] == ["cooking", "again"]
    assert all(cell["error"] is None for column in columns for cell in column["cells"])
    out = tmp_path / "run"
    assert cli("rank", task, "--split", "dev", "--out", out).code == 0
    ranked = Path("plan", columns[1]["cells"][0]["run"], "run.trec")
    assert ranked.read_bytes() == (out / "run.trec").read_bytes()


def test_an_indexed_task_whose_file_was_moved_is_reported_with_the_file(cli: Cli, task: Path) -> None:
    assert cli("index", task).code == 0
    task.rename(task.with_name("moved.toml"))
    result = cli("search", "cooking", "soups")
    assert result.code == 4 and str(task) in result.stderr


def test_both_engines_rank_to_the_same_bytes(server: Cli, task: Path, tmp_path: Path) -> None:
    for engine in ("elasticsearch", "embedded"):
        server("index", task, "--engine", engine)
        for recipe in RECIPES:
            out = tmp_path / f"{engine}-{recipe}"
            options = ["--split", "dev", "--recipe", recipe, "--engine", engine, "--out", out]
            assert server("rank", task, *options).code == 0
    for recipe in RECIPES:
        runs = [tmp_path / f"{engine}-{recipe}" / "run.trec" for engine in ("elasticsearch", "embedded")]
        assert runs[0].read_bytes() == runs[1].read_bytes() != b""


def test_a_run_records_its_task_file_and_its_changes_are_reported(cli: Cli, run: Path, task: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["task"] == "cooking"
    assert manifest["task_file"] == str(task.resolve())
    task.write_text(task.read_text() + "\n# changed\n")
    assert cli("runs", "verify", run).code == 0
    assert "has changed" not in cli("evaluate", run).stderr
    task.write_text(task.read_text().replace('text = "question"', 'text = ["question", "level"]'))
    changed = cli("runs", "verify", run)
    assert changed.code == 4 and f"{task.resolve()}: topics.dev changed since the run" in changed.stderr
    evaluated = cli("evaluate", run)
    assert evaluated.code == 0 and "topics.dev has changed since the run" in evaluated.stderr


def test_a_task_file_that_was_moved_can_be_named(cli: Cli, run: Path, task: Path, tmp_path: Path) -> None:
    moved = task.rename(task.with_name("moved.toml"))
    for command in (["evaluate", run], ["export", run, "--out", tmp_path / "x.trec"]):
        result = cli(*command)
        assert result.code == 2
        assert "which no longer exists: give its present path with --task" in result.stderr
        assert cli(*command, "--task", moved).code == 0
        wrong = cli(*command, "--task", "nlps")
        assert wrong.code == 2 and "is a run of cooking, not of nlps" in wrong.stderr
    assert cli("export", run, "--format", "csv", "--out", tmp_path / "x.csv").code == 0  # needs no task
    verified = cli("runs", "verify", run)
    assert verified.code == 0 and "cooking.toml: no longer exists" in verified.stderr


def test_two_files_of_one_name_are_noticed(cli: Cli, run: Path, task: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(task.parent, tmp_path / "other")) / task.name
    for command in (["search", other, "soup"], ["rank", other, "--split", "dev", "--out", tmp_path / "run2"]):
        result = cli(*command)
        assert result.code == 3
        assert f"was made for the task {task.resolve()}, not for {other}" in result.stderr
    refused = cli("index", other)
    assert refused.code == 2 and "replace the index with --rebuild" in refused.stderr
    assert cli("search", task, "soup").code == 0
    assert cli("index", other, "--rebuild").code == 0
    assert cli("search", other, "soup").code == 0
    assert cli("search", task, "soup").code == 3


def test_the_error_for_a_missing_index_names_the_command_to_build_it(cli: Cli, task: Path) -> None:
    result = cli("search", task, "soup")
    assert result.code == 3
    assert f"cooking is not indexed yet: build the index with `searchapp index {task}`" in result.stderr


def test_problems_of_all_files_are_reported_with_their_lines(cli: Cli, task: Path) -> None:
    with (task.parent / "recipes.jsonl").open("a") as file:
        file.write('{"id": "r01", "title": "x", "text": "x"}\n{"id": "r99"\n')
    with (task.parent / "gold.txt").open("a") as file:
        file.write("q1 0 r77 1\n")
    result = cli("index", task)
    assert result.code == 4
    for part in (
        "recipes.jsonl: line 43: duplicate id: r01",
        "recipes.jsonl: line 44: not JSON",
    ):
        assert part in result.stderr
    lenient = cli("index", task, "--lenient", "--json")
    assert (lenient.code, lenient.json["documents"]) == (0, 42)
    assert "warning: unusual, but not an error" in lenient.stderr
    assert "gold.txt: line 21: unknown document: r77" in lenient.stderr


def test_a_field_of_the_mapping_can_be_searched(cli: Cli, task: Path) -> None:
    mapping = {
        "mappings": {
            "properties": {"id": {"type": "keyword"}, "text": {"type": "text"}, "kind": {"type": "keyword"}}
        }
    }
    template = {
        "size": "{{depth}}",
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {"constant_score": {"filter": {"term": {"kind": "{{topic.text}}"}}}},
    }
    (task.parent / "own.json").write_text(json.dumps(mapping))
    (task.parent / "kind.json").write_text(json.dumps(template))
    recipe = '[recipes.kind]\nabout = "x"\ntemplate = "kind.json"\n'
    task.write_text('mapping = "own.json"\n' + task.read_text() + recipe)
    assert cli("index", task).code == 0
    hits = cli("search", task, "fish", "--recipe", "kind", "--json").json["hits"]
    assert [hit["id"] for hit in hits] == ["r32", "r33", "r34"]


NESTED_TASK = """name = "NAME"
mapping = "mapping.json"
[documents]
file = "documents.jsonl"
fields = ["parts"]
[topics.dev]
file = "topics.tsv"
[recipes.parts]
about = "x"
template = "parts.json"
"""


def write_nested_task(folder: Path, name: str, documents: Mapping[int, int]) -> Path:
    """Write a task on nested objects; `documents` has a number for each, which gives its objects."""
    folder.mkdir(exist_ok=True)
    of = {"type": "nested", "properties": {"name": {"type": "keyword"}}}
    parts = {"name": {"type": "text"}, "grams": {"type": "integer"}, "of": of}
    properties = {
        "id": {"type": "keyword"},
        "text": {"type": "text"},
        "parts": {"type": "nested", "properties": parts},
    }
    inner = {"nested": {"path": "parts.of", "query": {"term": {"parts.of.name": "lemon"}}}}
    words = {"match": {"parts.name": "{{topic.text}}"}}
    some = {"bool": {"must": words, "filter": {"range": {"parts.grams": {"gte": 3}}}, "should": inner}}
    nested = {"nested": {"path": "parts", "score_mode": "max", "query": some}}
    query = {"bool": {"should": [{"match": {"text": "{{topic.text}}"}}, nested]}}
    names = ["red lentil", "onion", "onion and carrot", "soup", "garlic"]
    lines = [
        {
            "id": f"d{number}",
            "text": f"soup {'lentil ' * (value % 4)}",
            "parts": [
                {
                    "name": names[(value + part) % 5],
                    "grams": value % 7,
                    "of": [{"name": "lemon"}] * (part % 3),
                }
                for part in range(value % 5)
            ],
        }
        for number, value in documents.items()
    ]
    (folder / "mapping.json").write_text(json.dumps({"mappings": {"properties": properties}}))
    (folder / "parts.json").write_text(json.dumps({"query": query}))
    (folder / "topics.tsv").write_text("id\ttext\nq1\tonion soup\nq2\tlentil\n")
    (folder / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "task.toml").write_text(NESTED_TASK.replace("NAME", name))
    return folder / "task.toml"


def test_changed_documents_with_nested_objects_rank_as_in_a_new_index(cli: Cli, tmp_path: Path) -> None:
    def answers(path: Path) -> list[object]:
        out = path.with_name("run")
        assert cli("rank", path, "--split", "dev", "--recipe", "parts", "--out", out, "--overwrite").code == 0
        hits = cli("search", path, "onion", "--recipe", "parts", "--json").json["hits"]
        return [read_rankings(out), hits, cli("search", path, "--body", body, "--json").json["hits"]]

    body = tmp_path / "body.json"
    query = {"nested": {"path": "parts", "query": {"match": {"parts.name": "lentil"}}}}
    body.write_text(json.dumps({"query": query, "size": 90, "highlight": {"fields": {"parts.name": {}}}}))
    documents = dict.fromkeys(range(90), 0) | {number: number * number for number in range(80)}
    changed = write_nested_task(tmp_path / "changed", "changed", documents)
    assert cli("index", changed).code == 0
    for step in range(1, 4):
        documents |= {number: number + step for number in range(step, 90, 17)} | {100 + step: 4}
        del documents[7 * step]
        write_nested_task(changed.parent, "changed", documents)
        assert cli("index", changed).code == 0
        new = write_nested_task(tmp_path / f"new{step}", f"new{step}", documents)
        assert cli("index", new).code == 0
        assert answers(changed) == answers(new) != [{}, [], []]
    shown = cli("search", changed, "--document", "d103").stdout
    assert '"grams": ' in shown and '"of": [{"name": "lemon"}]' in shown


def test_first_document_in_order_decides_the_type_of_an_unmapped_field(cli: Cli, tmp_path: Path) -> None:
    def ids(query: Mapping[str, object]) -> list[str]:
        (tmp_path / "body.json").write_text(json.dumps({"query": query}))
        hits = cli("search", task, "--body", tmp_path / "body.json", "--json").json["hits"]["hits"]
        return [hit["_id"] for hit in hits]

    def index(*sizes: object) -> str:
        lines = [
            {"id": f"d{n}", "text": "soup", "size": size, "at": "2020-01-02"} for n, size in enumerate(sizes)
        ]
        (tmp_path / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return cli("index", task, "--replace").stderr

    properties = {"id": {"type": "keyword"}, "text": {"type": "text"}}
    (tmp_path / "mapping.json").write_text(
        json.dumps({"mappings": {"dynamic": True, "properties": properties}})
    )
    task = tmp_path / "task.toml"
    task.write_text(
        'name = "added"\nmapping = "mapping.json"\n[documents]\nfile = "documents.jsonl"\nfields = ["size", "at"]\n'
    )
    half = {"term": {"size": 1.5}}
    index(None, "1.5", 2, 1.5)
    assert ids({"term": {"size.keyword": "1.5"}}) == ["d1", "d3"]
    assert ids({"range": {"at": {"gte": "2020-01-02"}}}) == ["d0", "d1", "d2", "d3"]
    index(None, "1.5", 3, 1.5)
    assert ids({"term": {"size.keyword": "3"}}) == ["d2"]
    assert "reused" not in index(1.0, "1.5", 3, 1.5) and ids(half) == ["d1", "d3"]
    assert "reused" not in index(2, "1.5", 3, 1.5) and ids(half) == []


def test_a_body_of_another_application_orders_by_score_and_then_by_id(cli: Cli, task: Path) -> None:
    template = {
        "query": {"constant_score": {"filter": {"match": {"text": "{{query}}"}}}},
        "size": 3,
        "highlight": {"fields": {"text": {"type": "unified"}}},
    }
    (task.parent / "plain.json").write_text(json.dumps(template))
    task.write_text(task.read_text() + '[recipes.plain]\nabout = "x"\ntemplate = "plain.json"\n')
    assert cli("index", task).code == 0
    hits = cli("search", task, "lentils soup", "--recipe", "plain", "--json").json["hits"]
    ids = [hit["id"] for hit in hits]
    assert len(ids) > 3 and ids == sorted(ids)


def test_messages_about_one_document_are_in_the_singular(offline: Cli, tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "soup"}\n')
    task = tmp_path / "one.toml"
    task.write_text('name = "one"\n[documents]\nfile = "docs.jsonl"\n')
    assert "indexed 1 document into" in offline("index", task).stderr
    assert "with 1 document is still live" in offline("index", task).stderr
    assert "1 document" in offline("tasks", "show", task).stdout
    assert "1 documents" not in offline("search", task, "soup", "--from", 2).stderr


WITHOUT_TRAINING = """name = "untrained"
[documents]
file = "recipes.jsonl"
text = ["title", "text"]
[topics.dev]
file = "questions.tsv"
id = "id"
text = "question"
[recipes.rm3]
about = "x"
signals = [
  { signal = "direct", template = "bm25" },
  { signal = "expansion", method = "rm3", feedback_documents = 5, feedback_terms = 10, feedback_weight = 0.5 },
]
[recipes.cosine]
about = "x"
template = "bm25"
signals = [{ signal = "cosine" }]
[recipes.power]
about = "x"
template = "bm25"
signals = [{ signal = "power", k = 5, power = 1.0 }]
"""


def test_rm3_and_the_cosine_need_no_training_topics(offline: Cli, task: Path, tmp_path: Path) -> None:
    own = task.with_name("untrained.toml")
    own.write_text(WITHOUT_TRAINING)
    assert offline("index", own).code == 0
    for recipe in ("rm3", "cosine"):
        out = tmp_path / recipe
        ranked = offline("rank", own, "--split", "dev", "--recipe", recipe, "--out", out)
        assert (ranked.code, ranked.stderr.count("warning")) == (0, 0)
        assert offline("runs", "verify", out).code == 0
        assert offline("search", own, "soup with lentils", "--recipe", recipe, "--json").json["hits"]
    refused = offline("rank", own, "--split", "dev", "--recipe", "power", "--out", tmp_path / "power")
    assert refused.code == 4
    assert "the signal power needs training topics, and this task has none" in refused.stderr


@pytest.mark.parametrize("recipe", ["bm25", "words"])
def test_a_topic_that_is_a_document_is_not_ranked_for_itself(
    cli: Cli, task: Path, tmp_path: Path, recipe: str
) -> None:
    own = task.with_name("alike.toml")
    own.write_text(
        'name = "alike"\ntopics_are_documents = true\n[documents]\nfile = "recipes.jsonl"\n'
        '[topics.all]\nfile = "recipes.jsonl"\n'
    )
    assert cli("index", own).code == 0
    out = tmp_path / "alike"
    assert cli("rank", own, "--split", "all", "--recipe", recipe, "--out", out).code == 0
    rows = [line.split() for line in (out / "run.trec").read_text().splitlines()]
    assert rows and all(topic != document for topic, _q0, document, *_rest in rows)


@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_a_run_is_exported_for_other_programs(cli: Cli, run: Path, tmp_path: Path, format_: str) -> None:
    out = tmp_path / f"out.{format_}"
    assert cli("export", run, "--format", format_, "--out", out).code == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file)) if format_ == "csv" else [json.loads(line) for line in file]
    expected = [line.split() for line in (run / "run.trec").read_text().splitlines()]
    assert len(rows) == len(expected) > 0
    for row, (topic, _q0, document, rank, score, _tag) in zip(rows, expected, strict=True):
        assert (row["topic"], row["document"], str(row["rank"])) == (topic, document, rank)
        assert float(row["score"]) == pytest.approx(float(score), rel=1e-7)


def test_a_topic_without_any_hit_is_a_topic_of_the_run(offline: Cli, task: Path, tmp_path: Path) -> None:
    template = json.loads((task.parent / "half.json").read_text())
    words = {"query": "{{topic.text}}", "minimum_should_match": "60%"}
    half = {**template, "query": {"match": {"text": words}}}
    filtered = {**template, "query": {"bool": {"must": [half["query"], {"term": {"id": "no such"}}]}}}
    with task.open("a") as file:
        for name, body in (("strict", half), ("none", filtered)):
            (task.parent / f"{name}.json").write_text(json.dumps(body))
            file.write(f'\n[recipes.{name}]\nabout = "{name}"\ntemplate = "{name}.json"\n')
    assert offline("index", task).code == 0
    default, strict, empty = (tmp_path / name for name in ("default", "strict", "none"))
    assert offline("rank", task, "--split", "dev", "--out", default).code == 0
    ranked = offline("rank", task, "--split", "dev", "--recipe", "strict", "--out", strict)
    assert "warning: no document found for 1 of 8 topics: q2" in ranked.stderr
    ranked = offline("rank", task, "--split", "dev", "--recipe", "none", "--out", empty)
    assert "no document found for 8 of 8 topics: q1, q2, q3 and 5 more" in ranked.stderr
    topics = offline("topics", task, "--run", strict, "--order", "worst", "--json").json["topics"]
    assert (topics[0]["id"], topics[0]["value"], len(topics)) == ("q2", 0, 8)
    of_topic = offline("topics", task, "--run", strict, "--topic", "q2")
    assert "missed: filtered  r07" in of_topic.stdout  # it has two words of the topic
    for document, reason in (
        ("r07", "matches part of the query, but less"),
        ("r01", "matches no part of"),
    ):
        result = offline("explain", task, document, "--topic", "q2", "--recipe", "strict")
        assert result.stdout.startswith(f"{document} {reason}"), result.stdout
    compared = offline("compare", default, strict, empty)
    assert compared.code == 0 and "although" not in compared.stderr
    assert offline("evaluate", empty, "--json").json["official"]["value"] == 0
    assert offline("export", empty, "--format", "csv", "--out", tmp_path / "none.csv").code == 0
    assert offline("runs", "verify", strict).code == 0


def test_tasks_new_writes_a_task_file_that_works(cli: Cli, tmp_path: Path, task: Path) -> None:
    new = task.with_name("mine.toml")
    names = (("--documents", "recipes.jsonl"), ("--topics", "questions.tsv"), ("--gold", "gold.txt"))
    options = [word for option, name in names for word in (option, task.parent / name)]
    assert cli("tasks", "new", new, *options).code == 0
    refused = cli("tasks", "new", new)
    assert refused.code == 2 and "exists already" in refused.stderr
    assert cli("index", new).code == 0
    assert cli("rank", new, "--split", "dev", "--out", tmp_path / "run").code == 0
    assert cli("evaluate", tmp_path / "run", "--json").json["official"]["value"] > 0.5
    assert cli("tasks", "new", new, "--overwrite", "--name", "other").code == 0
    assert 'name = "other"' in new.read_text()
    assert cli("tasks", "new", tmp_path / "x.txt").code == 2


def test_the_documented_figures_are_those_of_the_example(offline: Cli, task: Path, tmp_path: Path) -> None:
    documented = (Path(__file__).parents[2] / "docs" / "use" / "own-task.md").read_text()
    assert offline("index", task).code == 0
    for recipe in RECIPES:
        out = tmp_path / recipe
        assert offline("rank", task, "--split", "dev", "--recipe", recipe, "--out", out).code == 0
        measures = offline("evaluate", out, "--json").json
        figures = [measures["official"]["value"], measures["measures"]["AP"], measures["measures"]["RR"]]
        assert f"| {recipe} | {' | '.join(f'{figure:.6f}' for figure in figures)} |" in documented
    new = task.with_name("mine.toml")
    files = [task.parent / name for name in ("recipes.jsonl", "questions.tsv", "gold.txt")]
    offline("tasks", "new", new, "--documents", files[0], "--topics", files[1], "--gold", files[2])
    offline("index", new)
    offline("rank", new, "--split", "dev", "--out", tmp_path / "new")
    value = offline("evaluate", tmp_path / "new", "--json").json["official"]["value"]
    assert f"nDCG@10 (official)   {value:.6f}\n" in documented


def test_a_task_may_rank_deeper_than_one_window_of_an_engine(offline: Cli, tmp_path: Path) -> None:
    texts = [f"soup {'lentils ' * (number % 5)}" for number in range(10_300)]
    lines = [json.dumps({"id": f"d{number}", "text": text}) for number, text in enumerate(texts)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "topics.tsv").write_text("id\ttext\nq\tsoup\n")
    (tmp_path / "gold.qrels").write_text("q 0 d9999 1\nq 0 d10295 1\n")
    task, run, shallow = (tmp_path / name for name in ("deep.toml", "run", "shallow"))
    task.write_text(
        'name = "deep"\ndepth = 10200\njudging_depth = 20000\n[documents]\nfile = "docs.jsonl"\n'
        '[topics.dev]\nfile = "topics.tsv"\ngold = "gold.qrels"\n'
    )
    assert offline("index", task).code == 0
    assert offline("rank", task, "--split", "dev", "--out", run).code == 0
    ranked = (run / "run.trec").read_text().splitlines()
    # Shorter texts have higher scores, and equal scores are ordered by id.
    order = sorted(range(10_300), key=lambda number: (number % 5, f"d{number}"))
    assert [line.split()[2] for line in ranked] == [f"d{number}" for number in order[:10_200]]
    assert offline("rank", task, "--split", "dev", "--depth", 5, "--out", shallow).code == 0
    missed = offline("topics", task, "--run", shallow, "--topic", "q", "--json").json["missed"]
    expected = {f"d{number}": order.index(number) + 1 for number in (9_999, 10_295)}
    assert {document["id"]: document["rank"] for document in missed} == expected
    assert max(expected.values()) > 10_000
    topics = offline("topics", task, "--depth", 10_100, "--json").json["topics"]
    assert [topic["missed"] for topic in topics] == [sum(rank > 10_100 for rank in expected.values())]


def test_a_task_is_shown(cli: Cli, task: Path) -> None:
    assert cli("index", task).code == 0
    result = cli("tasks", "show", task)
    assert result.code == 0
    for part in (
        "cooking  Recipes for a cook's questions",
        "2 answers the question",
        "indexed    42 documents",
    ):
        assert part in result.stdout
    output = cli("tasks", "show", task, "--json").json
    assert (output["task"], output["file"], output["indexed"]) == ("cooking", str(task), 42)
    assert cli("tasks", "show", "nlps", "--json").json["file"] is None


def test_options_before_a_command_are_refused_or_apply_to_the_group(offline: Cli, tmp_path: Path) -> None:
    result = offline("tasks", "--json", "show", "nlps")
    assert result.code == 2 and "put the options of show after its name" in result.stderr
    before = offline("tasks", "--home", tmp_path / "elsewhere", "show", "nlps", "--json")
    assert before.json["data"].startswith(str(tmp_path / "elsewhere"))


def test_own_files_may_be_compressed_with_gzip(cli: Cli, tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    files = {
        "docs.jsonl": "".join(f'{{"id": "d{n}", "text": "soup number {n}"}}\n' for n in range(9)),
        "topics.tsv": "id\ttext\nq1\tsoup number 3\nq2\tnumber 5\n",
        "gold.qrels": "q1 0 d3 1\nq2 0 d5 1\n",
    }
    figures = []
    for folder, suffix, name in ((plain, "", "plain"), (packed, ".gz", "packed")):
        folder.mkdir()
        for file, content in files.items():
            data = content.encode()
            (folder / f"{file}{suffix}").write_bytes(gzip.compress(data) if suffix else data)
        task = folder / "task.toml"
        new = cli(
            "tasks", "new", task, "--name", name, "--documents", folder / f"docs.jsonl{suffix}",
            "--topics", folder / f"topics.tsv{suffix}", "--gold", folder / f"gold.qrels{suffix}",
        )  # fmt: skip
        assert new.code == 0, new.stderr
        assert cli("index", task).code == 0
        assert cli("rank", task, "--split", "dev", "--out", folder / "run").code == 0
        run = folder / "run.trec"
        assert cli("export", folder / "run", "--format", "trec", "--out", run).code == 0
        if suffix:
            run = run.with_suffix(".trec.gz")
            run.write_bytes(gzip.compress((folder / "run.trec").read_bytes()))
        assert cli("validate", run, "--task", task, "--split", "dev").code == 0
        gold = folder / f"gold.qrels{suffix}"
        for more in (["--split", "dev"], ["--gold", gold]):
            result = cli("evaluate", run, "--task", task, *more, "--json")
            assert result.code == 0, result.stderr
            figures.append(result.json["measures"])
        by_qrels = cli("evaluate", folder / "run", "--qrels", gold, "--json")
        assert by_qrels.code == 0, by_qrels.stderr
        imported = cli(
            "judgments", "import", task, gold, "--format", "qrels", "--annotator", "ann",
            "--log", folder / "log.sqlite", "--json",
        )  # fmt: skip
        assert imported.json["new"] == 2
        events = folder / "events.jsonl"
        assert cli("judgments", "export", task, "--log", folder / "log.sqlite", "--out", events).code == 0
        events.write_bytes(gzip.compress(events.read_bytes()) if suffix else events.read_bytes())
        again = cli("judgments", "import", task, events, "--log", folder / "other.sqlite", "--json")
        assert again.json["new"] == 2
    assert all(figure == figures[0] for figure in figures) and len(figures) == 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "docs.jsonl",
            gzip.compress(b'{"id": "1", "text": "x"}\n', mtime=0)[:-4],
            "the gzip file ends too early",
        ),
        ("docs.jsonl", b"\x1f\x8bother content", "the gzip file is damaged"),
        (
            "docs.csv",
            b"PAR1\x15\0\xff",
            "unsupported file: it is a Parquet file: write its rows as JSONL or CSV",
        ),
        ("docs.csv", b"%PDF-1.7\n", "unsupported file: it is a PDF file: extract its text"),
        ("docs.csv", b"PK\x03\x04\x14\0xl/workbook.xml", "it is an Excel workbook: save its table as CSV"),
        (
            "docs.csv",
            b"PK\x03\x04\x14\0docs.csv",
            "it is compressed with zip: unpack it, or compress it with gzip",
        ),
        (
            "docs.tsv",
            "id\ttext\n1\tx\n".encode("utf-16"),
            "it is UTF-16: save it as UTF-8, for instance with `iconv",
        ),
        (
            "docs.csv",
            b"id;text\n1;x\n",
            "its cells are separated by semicolons, not by commas: save it with commas",
        ),
        (
            "docs.csv",
            b"id\ttext\n1\tx\n",
            'separated by tabs, not by commas: set format = "tsv" in the task file',
        ),
        (
            "docs.jsonl",
            b'[{"id": "1"}]\n',
            "it is a JSON array: write one object per line, for instance with `jq",
        ),
        ("docs.jsonl", b'[\n{"id": "1"}\n]\n', "it is a JSON array: write one object per line"),
    ],
)
def test_the_format_of_an_unsupported_file_is_named(
    offline: Cli, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """`tasks new` reports the same as `index`, except for separators, which it writes into the task file."""
    (tmp_path / name).write_bytes(content)
    task = tmp_path / "task.toml"
    task.write_text(f'name = "mine"\n[documents]\nfile = "{name}"\n')
    result = offline("index", task)
    assert result.code == 4
    assert message in result.stderr and result.stderr.count("\n") == 1
    new = offline("tasks", "new", tmp_path / "new.toml", "--documents", tmp_path / name)
    if "separated by tabs" in message:
        assert new.code == 0 and 'format = "tsv"' in (tmp_path / "new.toml").read_text()
    else:
        assert new.code == 4
        assert message.partition(", not by")[0] in new.stderr
        assert not (tmp_path / "new.toml").exists()


def test_damaged_gzip_files_of_runs_and_gold_are_refused(offline: Cli, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "1", "text": "x"}\n')
    (tmp_path / "q.qrels").write_text("1 0 1 1\n")
    task = tmp_path / "task.toml"
    task.write_text(
        'name = "mine"\n[documents]\nfile = "d.jsonl"\n[topics.dev]\nfile = "d.jsonl"\ngold = "q.qrels"\n'
    )
    run = tmp_path / "run.gz"
    run.write_bytes(gzip.compress(b"1 Q0 1 1 1.0 t\n")[:-3])
    for arguments in (["validate", run, "--task", task], ["evaluate", run, "--task", task, "--split", "dev"]):
        result = offline(*arguments)
        assert result.code == 4
        assert (
            "run.gz: unreadable file: the gzip file ends too early: fetch it or compress it again"
            in result.stderr
        )
    run.write_bytes(gzip.compress(b"1 0 1 1\n")[:-3])
    result = offline("evaluate", "--task", task, "--gold", run, tmp_path / "d.jsonl")
    assert result.code == 4 and "Traceback" not in result.stderr


def test_assumptions_about_header_lines_are_reported(offline: Cli, tmp_path: Path) -> None:
    documents, task = tmp_path / "d.tsv", tmp_path / "task.toml"
    documents.write_text("d1\tfirst soup\nd2\tsecond soup\n")
    new = offline("tasks", "new", task, "--documents", documents)
    assert new.code == 0
    assert f"{documents}: it seems to have no header line" in new.stderr
    assert "indexed 2 documents" in offline("index", task).stderr
    forced = offline("tasks", "new", task, "--documents", documents, "--header", "--overwrite")
    assert "header line" not in forced.stderr
    assert 'id = "d1"' in task.read_text()


def test_topics_of_the_gold_outside_the_split_do_not_count(offline: Cli, task: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert offline("index", task).code == 0
    assert offline("rank", task, "--split", "dev", "--out", run).code == 0
    before = offline("evaluate", run, "--json").json
    with (task.parent / "gold.txt").open("a") as gold:
        gold.writelines(f"other{number} 0 r01 1\n" for number in range(8))
    assert "other0 is not in the split dev" in offline("index", task, "--lenient").stderr
    official = tmp_path / "official.trec"
    assert offline("export", run, "--out", official).code == 0
    for source in ([run], [official, "--task", task, "--split", "dev"]):
        after = offline("evaluate", *source, "--json").json
        assert (after["official"], after["measures"]) == (before["official"], before["measures"])
        assert after["topics"] == before["topics"] == 8
        warning = "8 of the 16 topics with gold are not in the split dev"
        assert any(warning in line for line in after["warnings"])


def test_a_split_of_a_shared_topics_file_has_the_topics_of_its_gold(
    offline: Cli, task: Path, tmp_path: Path
) -> None:
    lines = (task.parent / "gold.txt").read_text().splitlines(keepends=True)
    first = {"q1", "q2", "q3"}
    for split in ("first", "test"):
        path = task.parent / f"{split}.qrels"
        path.write_text("".join(line for line in lines if (line.split()[0] in first) == (split == "first")))
    text = task.read_text().partition("[topics.dev]")
    shared = "".join(
        f'[topics.{split}]\nfile = "questions.tsv"\ntext = "question"\nfields = ["level"]\n'
        + ("" if split == "unjudged" else f'gold = "{split}.qrels"\n')
        for split in ("first", "test", "unjudged")
    )
    training = "[topics.train]" + text[2].partition("[topics.train]")[2]
    task.write_text(text[0] + shared + training)
    assert offline("index", task).code == 0
    for split, topics in (("first", 3), ("test", 5), ("unjudged", 8)):
        run = tmp_path / split
        assert offline("rank", task, "--split", split, "--json", "--out", run).json["topics"] == topics
    scored = offline("evaluate", tmp_path / "test", "--json").json
    assert scored["topics"] == 5 and scored["warnings"] == []
    assert offline("validate", tmp_path / "test/run.trec", "--task", task, "--split", "test").code == 0
    (task.parent / "test.qrels").unlink()
    refused = offline("rank", task, "--split", "test", "--out", tmp_path / "no-gold")
    assert refused.code == 4 and refused.stderr.count("missing file") == 1


def test_the_official_file_of_a_run_with_equal_scores_has_its_figures(
    offline: Cli, task: Path, tmp_path: Path
) -> None:
    run, official = tmp_path / "run", tmp_path / "official.trec"
    (task.parent / "questions.tsv").write_text("id\tquestion\tlevel\nq1\tsoup\teasy\n")
    (task.parent / "recipes.jsonl").write_text(
        "".join(
            json.dumps({"id": f"r0{n}", "title": "a soup", "text": "", "kind": "", "minutes": 1}) + "\n"
            for n in range(1, 5)
        )
    )
    (task.parent / "gold.txt").write_text("q1 0 r01 2\n")
    task.write_text(task.read_text().partition("[topics.train]")[0].replace('training_split = "train"', ""))
    assert offline("index", task).code == 0
    assert offline("rank", task, "--split", "dev", "--out", run).code == 0
    assert len({line.split()[4] for line in (run / "run.trec").read_text().splitlines()}) == 1
    assert offline("export", run, "--out", official).code == 0
    of_run = offline("evaluate", run, "--json").json
    of_file = offline("evaluate", official, "--task", task, "--split", "dev", "--json").json
    assert of_run["official"] == of_file["official"]
    assert of_run["official"]["value"] == 1
    # The file run.trec has the equal scores of the engine, which trec_eval orders by descending id.
    of_engine = offline("evaluate", run / "run.trec", "--task", task, "--split", "dev", "--json").json
    assert of_engine["measures"]["RR"] == 1 / 4
