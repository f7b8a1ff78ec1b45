"""The tools in one process, through the SDK's client, beside the commands."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent, Tool

from searchapp.app.inspection.topics import RunTopics
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.resolution import resolve
from searchapp.config.settings import Settings
from searchapp.engines.base import require_not_cancelled
from searchapp.errors import EngineError
from searchapp.files import digest_text
from searchapp.judging.guidelines import GUIDELINES
from searchapp.judging.log import JudgmentLog
from searchapp.mcp import toolbox
from searchapp.mcp.tool_server import READING, Steps, ToolServer
from searchapp.mcp.toolbox import ModelJudge
from searchapp.ranking.search_results import SearchResult
from tests.cli.conftest import Result, run_command
from tests.mcp.conftest import DOCUMENTS, INSTRUCTION
from tests.server.node import Node

T = TypeVar("T")

ACTIVE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f]")
"""Characters with an effect on terminals, and invisible ones."""


def with_client(server: ToolServer, use: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    async def run() -> T:
        async with Client(server, mode=mode) as client:
            return await use(client)

    return asyncio.run(run())


def result_of(server: ToolServer, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
    return with_client(server, lambda client: client.call_tool(tool, dict(arguments)))


def call(server: ToolServer, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the structured result of a tool."""
    result = result_of(server, tool, arguments)
    assert not result.is_error, result.content
    structured: dict[str, Any] = result.structured_content
    assert json.loads(text_of(result)) == structured  # for clients that read only text
    return structured


def failure(server: ToolServer, tool: str, **arguments: Any) -> str:
    """Return the message of a tool that fails."""
    result = result_of(server, tool, arguments)
    assert result.is_error, result.structured_content
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def tools_of(server: ToolServer) -> dict[str, Tool]:
    async def list_tools(client: Client) -> list[Tool]:
        return (await client.list_tools()).tools

    return {tool.name: tool for tool in with_client(server, list_tools)}


def command(home: Path, *words: object) -> Result:
    result = run_command(*words, "--home", home)
    assert result.code == 0, result.stderr
    return result


def test_tools_are_read_only_and_describe_their_results(server: ToolServer) -> None:
    tools = tools_of(server)
    assert tuple(tools) == READING
    for tool in tools.values():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint and not tool.annotations.open_world_hint
        assert tool.description and tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        for name, parameter in tool.input_schema["properties"].items():
            assert parameter.get("description"), f"{tool.name} does not describe {name}"
            assert not re.search(r"path|url|file|folder|dir", name), f"{tool.name} takes a path: {name}"


def test_tasks_and_runs_are_listed(server: ToolServer, home: Path) -> None:
    tasks = {task["name"]: task for task in call(server, "tasks")["tasks"]}
    assert tasks["nlps-sample"]["documents"] > 20
    assert tasks["nlps-sample"]["splits"] == ["train", "dev", "test"]
    assert "bm25" in tasks["nlps-sample"]["recipes"]
    assert tasks["kitchen"]["grades"] == ["no", "partly", "yes"]
    assert tasks["nlps"]["documents"] is None
    runs = call(server, "runs")
    assert {run["name"] for run in runs["runs"]} == {"bm25", "votes", "kitchen"}
    assert {run["name"] for run in call(server, "runs", task="kitchen")["runs"]} == {"kitchen"}
    assert str(home) not in json.dumps(runs)


def test_a_search_returns_the_hits_of_the_command_in_pages(server: ToolServer, home: Path) -> None:
    expected = command(home, "search", "nlps-sample", "ring of sets", "--size", "7", "--json").json["hits"]
    first = call(server, "search", task="nlps-sample", words="ring of sets", size=4)
    second = call(
        server, "search", task="nlps-sample", words="ring of sets", size=3, cursor=first["next_cursor"]
    )
    found = [*first["documents"], *second["documents"]]
    assert [(hit["rank"], hit["id"], hit["score"]) for hit in found] == [
        (hit["rank"], hit["id"], hit["score"]) for hit in expected
    ]
    assert first["total"] > 7 and first["recipe"] == "words"
    assert call(server, "search", task="nlps-sample", words="prime", recipe="bm25")["recipe"] == "bm25"


def test_the_last_page_has_no_cursor(server: ToolServer) -> None:
    page = call(server, "search", task="kitchen", words="lentils", size=2)
    last = call(server, "search", task="kitchen", words="lentils", size=2, cursor=page["next_cursor"])
    assert (len(page["documents"]), len(last["documents"]), last["next_cursor"]) == (2, 1, None)
    behind = call(server, "search", task="kitchen", words="lentils", size=2, cursor="90")
    assert (behind["documents"], behind["next_cursor"]) == ([], None)


def test_a_search_suggests_other_words(server: ToolServer) -> None:
    found = call(server, "search", task="nlps-sample", words="commutativ rnig")
    assert any("ring" in note for note in found["notes"])


def test_texts_of_documents_are_data_without_active_characters(server: ToolServer) -> None:
    for page in (
        call(server, "search", task="kitchen", words="lentils"),
        call(server, "ranking", run="kitchen", topic="t1"),
        *(call(server, "document", task="kitchen", document=document["id"]) for document in DOCUMENTS),
    ):
        assert not ACTIVE.search(json.dumps(page, ensure_ascii=False)), page
    found = call(server, "document", task="kitchen", document="escape")
    assert found["text"] == "lentils ␛[2J␛]52;c;cHduZWQ=␇ <U+202E>gnp<U+202C> <U+200B><U+009B>6n end"
    assert call(server, "document", task="kitchen", document="inject")["text"] == f"lentils {INSTRUCTION}"


def test_a_long_text_has_pages_of_limited_size(server: ToolServer) -> None:
    cursor, parts, pages = None, [], 0
    while True:
        page = call(server, "document", task="kitchen", document="long", cursor=cursor)
        assert len(json.dumps(page)) < 8_000
        assert bool(page["fields"]) == (cursor is None)
        parts.append(page["text"])
        cursor, pages = page["next_cursor"], pages + 1
        if cursor is None:
            break
    assert "".join(parts) == DOCUMENTS[2]["text"] and pages > 10
    (title,) = call(server, "document", task="kitchen", document="long")["fields"]
    assert (len(title["value"]), title["is_cut"]) == (500, True)
    (long,) = (
        hit
        for hit in call(server, "search", task="kitchen", words="lentils")["documents"]
        if hit["id"] == "long"
    )
    assert len(long["text"]) <= 402 and long["is_cut"]
    assert len(json.dumps(call(server, "ranking", run="kitchen", topic="t1"))) < 8_000


def test_an_explanation_has_the_rank_and_the_parts_of_the_score(server: ToolServer, home: Path) -> None:
    found = call(server, "search", task="nlps-sample", words="prime numbers", size=3)["documents"][2]
    explained = call(server, "explain", task="nlps-sample", document=found["id"], words="prime numbers")
    assert (explained["rank"], explained["score"]) == (found["rank"], found["score"])
    assert explained["parts"][0]["value"] == pytest.approx(found["score"], rel=1e-6)
    topic = call(server, "topics", task="nlps-sample", split="dev")["topics"][0]["id"]
    document = call(server, "ranking", run="bm25", topic=topic)["documents"][0]["id"]
    by_topic = call(
        server, "explain", task="nlps-sample", document=document, topic=topic, recipe="bm25", split="dev"
    )
    told = command(
        home, "explain", "nlps-sample", document, "--topic", topic, "--recipe", "bm25", "--json"
    ).json
    assert by_topic["rank"] == told["rank"] == 1
    missing = call(server, "explain", task="nlps-sample", document="nowhere", words="prime")
    assert (missing["rank"], missing["parts"]) == (None, []) and "not indexed" in missing["sentence"]


def test_topics_of_a_split_and_of_a_run(server: ToolServer, home: Path) -> None:
    told = command(
        home, "topics", "nlps-sample", "--run", home / "runs" / "bm25", "--json", "--order", "worst"
    )
    page = call(server, "topics", run="bm25", order="worst")
    assert page["measure"] == told.json["measure"]
    assert [(topic["id"], topic["value"], topic["missed"]) for topic in page["topics"]] == [
        (topic["id"], topic["value"], topic["missed"]) for topic in told.json["topics"]
    ]
    plain = call(server, "topics", task="nlps-sample", split="dev")
    assert sorted(topic["id"] for topic in plain["topics"]) == sorted(topic["id"] for topic in page["topics"])
    assert all(topic["text"] for topic in plain["topics"])


def test_a_ranking_is_that_of_the_run(server: ToolServer, home: Path) -> None:
    lines = [line.split() for line in (home / "runs" / "bm25" / "run.trec").read_text().splitlines()]
    topic = lines[0][0]
    ranked = [line[2] for line in lines if line[0] == topic]
    first = call(server, "ranking", run="bm25", topic=topic)
    second = call(server, "ranking", run="bm25", topic=topic, cursor=first["next_cursor"])
    shown = [document["id"] for page in (first, second) for document in page["documents"]]
    assert shown == ranked[: len(shown)] and len(shown) > 10 and first["total"] == len(ranked)
    assert all(document["is_indexed"] and document["text"] for document in first["documents"])
    assert first["topic_text"]


def test_figures_are_those_of_the_commands(server: ToolServer, home: Path) -> None:
    runs = home / "runs"
    told = command(home, "evaluate", runs / "kitchen", "--json").json
    scored = call(server, "evaluate", run="kitchen", measures=["AP", "nDCG@10"])
    assert scored["official"] == told["official"]["values"]
    assert 0 < scored["measures"]["AP"] <= 1
    assert "has 69 premises" in failure(server, "evaluate", run="bm25")
    at_10 = command(home, "evaluate", runs / "bm25", "--cutoff", "10", "--json").json
    assert call(server, "evaluate", run="bm25", cutoff=10)["official"] == at_10["official"]["values"]
    compared = call(server, "compare", runs=["bm25", "votes"], measures=["AP"], baseline="bm25", cutoff=10)
    expected = command(
        home,
        "compare",
        runs / "bm25",
        runs / "votes",
        "--measure",
        "AP",
        "--baseline",
        runs / "bm25",
        "--cutoff",
        "10",
        "--json",
    ).json
    (of_command,) = (measure for measure in expected["measures"] if measure["measure"] == "AP")
    assert compared["means"]["AP"] == of_command["means"]
    (pair,) = (pair for pair in compared["pairs"] if pair["measure"] == "AP")
    assert (pair["first"], pair["second"]) == ("bm25", "votes")
    assert pair["difference"] == of_command["pairs"][0]["tests"]["mean"]
    assert str(home) not in json.dumps([scored, compared])


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("serch", {}, "unknown tool 'serch' (did you mean search?)"),
        ("search", {"task": "nlps-sample", "query": "x"}, "search has no argument 'query'"),
        ("search", {"task": "nlps-sample"}, "wrong arguments of search: words: Field required"),
        ("search", {"task": "nlps-sample", "words": "x", "size": 1000}, "size: Input should be less than"),
        (
            "search",
            {"task": "nlps-sampl", "words": "x"},
            "unknown task 'nlps-sampl' (did you mean nlps-sample?)",
        ),
        ("search", {"task": "kitchn", "words": "x"}, "(did you mean kitchen?)"),
        ("search", {"task": "nlps-sample", "words": '"open'}, "this quotation mark is not closed"),
        ("search", {"task": "nlps-sample", "words": "x", "recipe": "bm26"}, "(did you mean bm25?)"),
        ("search", {"task": "nlps-sample", "words": "x", "cursor": "-1"}, "unknown cursor '-1'"),
        ("search", {"task": "nlps", "words": "x"}, "searchapp index nlps"),
        ("document", {"task": "nlps-sample", "document": "nowhere"}, "has the id 'nowhere'"),
        ("document", {"task": "nlps-sample", "document": ""}, "has the id ''"),
        ("topics", {"task": "nlps-sample", "split": "dve"}, "(did you mean dev?)"),
        ("topics", {"task": "nlps-sample"}, "give the task and the split"),
        ("topics", {"task": "nlps-sample", "split": "dev", "order": "worst"}, "the order worst needs a run"),
        ("topics", {"run": "bm25", "order": "best"}, "order: Input should be 'file', 'worst' or 'missed'"),
        ("explain", {"task": "nlps-sample", "document": "1"}, "give either words or a topic"),
        ("ranking", {"run": "bm52", "topic": "1"}, "unknown run 'bm52' (did you mean bm25?)"),
        ("ranking", {"run": "bm25", "topic": "x"}, "the run has no topic 'x'"),
        ("evaluate", {"run": "bm25", "cutoff": 10, "measures": ["nCDG"]}, "nCDG"),
        ("compare", {"runs": ["bm25"]}, "at least 2 items"),
        ("compare", {"runs": ["bm25", "kitchen"]}, "compare runs of one task"),
        ("compare", {"runs": ["bm25", "votes"], "baseline": "x"}, "the baseline 'x': choose bm25 or votes"),
        ("judge", {"run": "bm25", "topic": "1", "document": "1", "grade": 1}, "unknown tool 'judge'"),
    ],
)
def test_wrong_arguments_are_reported_in_a_sentence(
    server: ToolServer, home: Path, tool: str, arguments: Mapping[str, Any], expected: str
) -> None:
    message = failure(server, tool, **arguments)
    assert expected in message
    assert str(home) not in message and "Traceback" not in message and "pydantic" not in message


def test_no_name_is_a_path(server: ToolServer, prepared: Path, home: Path) -> None:
    file = prepared / "data" / "kitchen.toml"
    assert file.is_file() and (home / "runs" / "bm25").is_dir()
    for name in (str(file), f"../{file.parent.name}/kitchen.toml", "http://127.0.0.1:9", "\x1b[2J"):
        message = failure(server, "search", task=name, words="lentils")
        assert message.startswith("unknown task") and not ACTIVE.search(message)
    for name in (str(home / "runs" / "bm25"), "runs/bm25", "../runs/bm25", "."):
        assert failure(server, "evaluate", run=name).startswith("unknown run")


def test_a_run_whose_name_another_has_is_named_with_its_digest(
    server: ToolServer, home: Path, tmp_path: Path
) -> None:
    command(
        home,
        "rank",
        "nlps-sample",
        "--split",
        "dev",
        "--recipe",
        "neighbours",
        "--out",
        tmp_path / "runs" / "bm25",
    )
    names = [run["name"] for run in call(server, "runs", task="nlps-sample")["runs"]]
    assert len(names) == 3 and sum(bool(re.fullmatch("bm25@[0-9a-f]{12}", name)) for name in names) == 2
    assert "(did you mean bm25@" in failure(server, "evaluate", run="bm25")
    assert call(server, "ranking", run=names[0], topic=topic_of(home))["run"] == names[0]


def topic_of(home: Path, run: str = "bm25") -> str:
    return (home / "runs" / run / "run.trec").read_text().split(maxsplit=1)[0]


def test_a_newer_index_is_searched(
    server: ToolServer, prepared: Path, index_documents: Callable[[str], None]
) -> None:
    assert call(server, "search", task="kitchen", words="lentils")["total"] == 3
    before = (prepared / "data" / "documents.jsonl").read_text()
    index_documents(before + json.dumps({"id": "new", "text": "more lentils"}) + "\n")
    assert call(server, "search", task="kitchen", words="lentils")["total"] == 4
    assert call(server, "document", task="kitchen", document="new")["text"] == "more lentils"


def test_a_server_that_is_down_is_reported_without_its_password(home: Path, tmp_path: Path) -> None:
    environment = {
        "SEARCHAPP_URL": "http://127.0.0.1:9",
        "SEARCHAPP_USERNAME": "me",
        "SEARCHAPP_PASSWORD": "hunter2",
    }
    server = ToolServer(resolve({"home": str(home)}, environment), tmp_path)
    try:
        message = failure(server, "search", task="nlps-sample", words="ring")
        assert "127.0.0.1:9" in message and "hunter2" not in message
        listed = call(server, "tasks")
        assert listed["engine"] is None and "127.0.0.1:9" in listed["problem"]
        assert "hunter2" not in json.dumps(listed)
        assert call(server, "evaluate", run="bm25", cutoff=10, measures=["AP"])["measures"]["AP"] > 0
    finally:
        assert server.close()


@pytest.mark.parametrize("engine", ["embedded"], indirect=True)
def test_wrong_credentials_are_reported_without_them(home: Path, secured_node: Node, tmp_path: Path) -> None:
    variables = {
        **os.environ,
        "SEARCHAPP_URL": secured_node.url,
        "SEARCHAPP_USERNAME": "elastic",
        "SEARCHAPP_PASSWORD": "hunter2",
        "SEARCHAPP_CA_CERTS": str(secured_node.ca_certs),
    }
    server = ToolServer(resolve({}, variables), tmp_path)
    try:
        message, listed = failure(server, "search", task="nlps-sample", words="ring"), call(server, "tasks")
        assert "does not accept the credentials" in message
        assert listed["engine"] is None and "does not accept the credentials" in listed["problem"]
        assert "hunter2" not in message + listed["problem"]
    finally:
        assert server.close()


def test_messages_have_no_passwords_and_no_folders_of_the_user(
    server: ToolServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[SearchResult]:
        raise EngineError(
            f"http://me:hunter2@host:9200 \x1b[2J and {home}/indexes and {Path.home()}/x " + "y" * 9_000
        )

    monkeypatch.setattr(TaskSearcher, "search", fail)
    message = failure(server, "search", task="nlps-sample", words="ring")
    assert message.startswith("http://host:9200 ␛[2J and HOME/indexes and ~/x ") and len(message) == 2_000


def test_an_internal_error_reveals_nothing(
    server: ToolServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> list[SearchResult]:
        raise RuntimeError("secret")

    monkeypatch.setattr(TaskSearcher, "search", fail)
    assert failure(server, "search", task="nlps-sample", words="ring") == "Error executing tool search"
    assert "secret" in caplog.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_cancelled_search_stops_and_its_answer_is_dropped(
    server: ToolServer, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    begun, stopped = threading.Event(), threading.Event()
    search = TaskSearcher.search

    def slow(self: TaskSearcher, request: SearchRequest) -> list[SearchResult]:
        if request.text == "slow":
            begun.set()
            try:
                until = time.monotonic() + 60
                while time.monotonic() < until:
                    require_not_cancelled()
                    time.sleep(0.005)
            finally:
                stopped.set()
        return search(self, request)

    monkeypatch.setattr(TaskSearcher, "search", slow)

    async def use(client: Client) -> CallToolResult:
        cancelled = asyncio.create_task(client.call_tool("search", {"task": "nlps-sample", "words": "slow"}))
        await asyncio.to_thread(begun.wait)
        cancelled.cancel()
        return await client.call_tool("search", {"task": "nlps-sample", "words": "ring"})

    started = time.monotonic()
    assert not with_client(server, use, mode).is_error
    assert stopped.is_set() and time.monotonic() - started < 30


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_progress_rises_and_ends_before_the_result(
    server: ToolServer, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr("searchapp.mcp.tool_server.REPORT_SECONDS", 0.0)
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def use(client: Client) -> CallToolResult:
        result = await client.call_tool("topics", {"run": "bm25"}, progress_callback=note)
        await asyncio.sleep(0.05)
        return result

    assert not with_client(server, use, mode).is_error
    progress = [done for done, _total, _message in told]
    assert progress == sorted(set(progress)) and progress[-1] == 10
    assert told[-1] == (10, 10, "reading rankings")


def test_the_progress_of_stages_never_falls() -> None:
    steps = Steps()
    assert [
        steps.advance(*report) for report in (("a", 0, 3), ("a", 3, 3), ("b", 0, None), ("b", 2, None))
    ] == [
        (0, 3),
        (3, 3),
        (3, None),
        (5, None),
    ]
    assert steps.advance("b", 1, None) == (5, None)  # work that restarts
    assert steps.advance("c", 1, 4) == (6, 9)


def test_requests_at_the_same_time_are_all_answered(server: ToolServer) -> None:
    async def use(client: Client) -> list[CallToolResult]:
        calls = [
            client.call_tool("search", {"task": task, "words": "lentils ring"})
            for task in ("nlps-sample", "kitchen") * 5
        ]
        return await asyncio.gather(*calls)

    results = with_client(server, use, "legacy")
    assert {(result.structured_content or {})["task"] for result in results} == {"nlps-sample", "kitchen"}


def test_a_cancelled_report_of_a_run_can_be_repeated(
    server: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = RunTopics.figures
    monkeypatch.setattr(RunTopics, "figures", lambda self, run: pytest.fail("not reached"))
    begun = threading.Event()
    rankings = RunTopics.rankings

    def slow(self: RunTopics) -> Any:
        begun.set()
        for ranking in rankings(self):
            time.sleep(0.02)
            yield ranking

    monkeypatch.setattr(RunTopics, "rankings", slow)

    async def use(client: Client) -> None:
        cancelled = asyncio.create_task(client.call_tool("topics", {"run": "bm25"}))
        await asyncio.to_thread(begun.wait)
        cancelled.cancel()

    with_client(server, use, "legacy")
    assert begun.is_set()
    monkeypatch.setattr(RunTopics, "rankings", rankings)
    monkeypatch.setattr(RunTopics, "figures", figures)
    assert call(server, "topics", run="bm25")["measure"]


def judging(settings: Settings, folder: Path, limit: int = 10, name: str = "gpt") -> ToolServer:
    return ToolServer(settings, folder, ModelJudge(name, limit))


def test_judgments_are_saved_as_those_of_a_model(
    settings: Settings, home: Path, prepared: Path, tmp_path: Path
) -> None:
    guidelines = prepared / "data" / "guidelines.md"
    server = judging(settings, tmp_path)
    try:
        assert call(server, "guidelines", task="kitchen")["total"] == 0
        guidelines.write_text(f"## 2 yes\n{'salt ' * 1200}\x1b[31mred {INSTRUCTION}")
        server.close()
        server = judging(settings, tmp_path)
        begin, end = (call(server, "guidelines", task="kitchen", cursor=each) for each in (None, "6000"))
        assert (begin["next_cursor"], end["next_cursor"], len(begin["text"])) == ("6000", None, 6000)
        assert begin["text"].startswith("## 2 yes\nsalt") and INSTRUCTION in end["text"]
        assert not ACTIVE.search(end["text"])
        tool = tools_of(server)["judge"]
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is False and tool.annotations.destructive_hint is False
        assert {"kitchen", "nlps"} <= {task["name"] for task in call(server, "tasks")["tasks"]}
        saved = call(
            server, "judge", run="kitchen", topic="t1", document="long", grade=2, reason="It says so."
        )
        assert (saved["label"], saved["left"], saved["annotator"]) == ("2 yes", 9, "gpt")
        call(server, "judge", run="kitchen", topic="t1", document="escape", grade=None, reason="illegible")
        shown = call(server, "ranking", run="kitchen", topic="t1")["documents"]
        assert {document["id"]: document["grade"] for document in shown} == {
            "long": 2,
            "escape": None,
            "inject": None,
        }
    finally:
        assert server.close()
        digest = digest_text(guidelines.read_text())
        guidelines.unlink()  # other tests share the task
    with JudgmentLog(home / "judgments.sqlite") as log:
        first, second = (event for _, event in log.events())
        digests = {detail.event: detail.value["digest"] for detail in log.details("kitchen", GUIDELINES)}
    assert digests == {first.id: digest, second.id: digest}
    assert (first.annotator, first.kind.value, first.action.value) == ("gpt", "model", "grade")
    assert (first.grade, first.text, first.saw_others) == (2, "It says so.", False)
    assert first.run.startswith("kitchen@") and first.rank
    assert (second.action.value, second.grade) == ("cant_tell", None)
    # Judgments of models count only where they are named.
    assert command(home, "judgments", "stats", "kitchen", "--json").json


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"grade": 3}, "kitchen has no grade 3: give one of 0 no, 1 partly, 2 yes, or null"),
        ({"grade": -1}, "kitchen has no grade -1"),
        ({"grade": "2"}, "grade: Input should be a valid integer"),
        ({"grade": True}, "grade: Input should be a valid integer"),
        ({"grade": 1.5}, "grade: Input should be a valid integer"),
        ({}, "grade: Field required"),
        ({"grade": 1, "topic": "t2"}, "the run has no topic 't2'"),
        ({"grade": 1, "document": "lnog"}, "does not rank 'lnog' for the topic t1 (did you mean long?)"),
        ({"grade": 1, "reason": "x" * 1_001}, "reason: String should have at most 1000 characters"),
        ({"grade": 1, "run": "kitchn"}, "unknown run 'kitchn' (did you mean kitchen?)"),
    ],
)
def test_a_wrong_judgment_is_refused(
    settings: Settings, home: Path, tmp_path: Path, arguments: Mapping[str, Any], expected: str
) -> None:
    server = judging(settings, tmp_path)
    try:
        given = {"run": "kitchen", "topic": "t1", "document": "long", **arguments}
        assert expected in failure(server, "judge", **given)
        assert call(server, "judge", run="kitchen", topic="t1", document="long", grade=0)["left"] == 9
    finally:
        assert server.close()


def test_the_limit_of_judgments_holds(settings: Settings, home: Path, tmp_path: Path) -> None:
    server = judging(settings, tmp_path, limit=2)
    try:
        for left in (1, 0):
            assert call(server, "judge", run="kitchen", topic="t1", document="long", grade=1)["left"] == left
        assert "limit of judgments" in failure(
            server, "judge", run="kitchen", topic="t1", document="long", grade=1
        )
    finally:
        assert server.close()
    with JudgmentLog(home / "judgments.sqlite") as log:
        assert len(list(log.events())) == 2


def test_a_model_can_not_judge_as_a_person(settings: Settings, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "ann.txt"
    file.write_text("t1 0 long 1\n")
    command(home, "judgments", "import", "kitchen", file, "--annotator", "ann", "--format", "qrels")
    server = judging(settings, tmp_path, name="ann")
    try:
        message = failure(server, "judge", run="kitchen", topic="t1", document="long", grade=1)
        assert "ann is a person who has judged kitchen" in message
    finally:
        assert server.close()


def test_a_document_whose_text_has_changed_is_not_judged(
    settings: Settings, prepared: Path, tmp_path: Path, index_documents: Callable[[str], None]
) -> None:
    before = (prepared / "data" / "documents.jsonl").read_text()
    index_documents(before.replace(INSTRUCTION, "and beans"))
    server = judging(settings, tmp_path)
    try:
        message = failure(server, "judge", run="kitchen", topic="t1", document="inject", grade=1)
        assert "has changed since it was ranked" in message
        assert "the index has changed" in " ".join(
            call(server, "ranking", run="kitchen", topic="t1")["notes"]
        )
    finally:
        assert server.close()


def test_sizes_of_pages_are_limited(server: ToolServer) -> None:
    page = call(server, "search", task="nlps-sample", words="set ring number group", size=toolbox.MOST_HITS)
    assert len(json.dumps(page)) < 20_000
