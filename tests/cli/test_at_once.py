"""Two commands that build the same index at the same time."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp.app import index as indexing
from searchapp.app.index import index_examples
from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.errors import EngineRefused
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from tests.cli.conftest import SAMPLE, Cli
from tests.profile import FULL
from tests.programs import COMMAND, Program
from tests.server.rest import Server

SLOW_BUILDER = """
import sys, time
from searchapp.lucene.index.writer import IndexWriter
add_all = IndexWriter.add_all
def add_slowly(writer, *arguments, **options):
    print("building", flush=True)
    time.sleep(float(sys.argv[1]))
    add_all(writer, *arguments, **options)
IndexWriter.add_all = add_slowly
from searchapp.cli import app
app(sys.argv[2:])
"""


@pytest.fixture
def builder(offline: Cli, request: pytest.FixtureRequest) -> Iterator[Program]:
    """Another process that has begun to index the sample and needs this many seconds."""
    with Program(SLOW_BUILDER, request.param, "index", "nlps", "--data", SAMPLE) as program:
        assert program.read_line() == "building"
        yield program


@pytest.mark.parametrize("builder", [1], indirect=True)
def test_a_second_build_waits_and_uses_the_result_of_the_first(offline: Cli, builder: Program) -> None:
    second = offline("index", "nlps", "--data", SAMPLE, "--json")
    assert (second.code, second.json["built"]) == (0, False)
    assert "nothing has changed, searchapp-nlps-000001 with 70 documents is still live" in second.stderr
    _, stderr = builder.communicate()
    assert builder.returncode == 0 and "indexed 70 documents into" in stderr


@pytest.mark.parametrize("builder", [600], indirect=True)
def test_a_waiting_build_names_the_builder(
    offline: Cli, builder: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "PATIENCE_SECONDS", 0.5)
    second = offline("index", "nlps", "--data", SAMPLE)
    assert second.code == 3
    assert f"process {builder.pid} is building the index in" in second.stderr
    assert second.stderr.strip().endswith("searchapp-nlps: wait until it is done")


@pytest.mark.parametrize("builder", [600], indirect=True)
def test_a_second_build_follows_a_killed_one(
    offline: Cli, builder: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = time.sleep

    def kill_builder(seconds: float) -> None:
        builder.send_signal(signal.SIGKILL)
        builder.wait()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", kill_builder)
    second = offline("index", "nlps", "--data", SAMPLE, "--json")
    assert (second.code, second.json["built"]) == (0, True)


def test_two_rankings_index_the_same_training_topics(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    rank = ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--recipe", "neighbours", "--out")
    programs = [Program(COMMAND, *rank, tmp_path / name) for name in ("one", "two")]
    for program in programs:
        with program:
            _, stderr = program.communicate()
        assert program.returncode == 0, stderr
    assert (tmp_path / "one" / "run.trec").read_bytes() == (tmp_path / "two" / "run.trec").read_bytes()


ROUNDS = 20 if FULL else 1
PROCESSES = 4


def start(url: str, prefix: str, home: Path, *arguments: object) -> Program:
    """Start a command that uses the server, in another process."""
    environment = {"SEARCHAPP_URL": url, "SEARCHAPP_INDEX_PREFIX": prefix, "SEARCHAPP_HOME": str(home)}
    return Program(COMMAND, *arguments, environment=environment)


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_simultaneous_runs_share_an_index(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str, tmp_path: Path, _round: int
) -> None:
    outs = [tmp_path / f"run{number}" for number in range(PROCESSES)]
    rank = ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--recipe", "neighbours", "--out")
    with ExitStack() as running:
        home = tmp_path / "home"
        for program in [
            running.enter_context(start(elasticsearch_url, index_prefix, home, *rank, out)) for out in outs
        ]:
            _, stderr = program.communicate()
            assert program.returncode == 0, stderr
    assert len({(out / "run.trec").read_bytes() for out in outs}) == 1
    result = Server(elasticsearch_url).request("GET", f"/{index_prefix}-training-nlps-dev-*/_alias").json()
    ((version, aliases),) = result.items()
    assert version.startswith(f"{index_prefix}-training-nlps-dev-000001-")
    assert aliases == {"aliases": {f"{index_prefix}-training-nlps-dev": {"is_write_index": True}}}


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_simultaneous_rebuilds_leave_one_version(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str, tmp_path: Path, _round: int
) -> None:
    index = ("index", "nlps", "--data", SAMPLE, "--rebuild", "--json")
    with ExitStack() as running:
        home = tmp_path / "home"
        started = [
            running.enter_context(start(elasticsearch_url, index_prefix, home, *index))
            for _ in range(PROCESSES)
        ]
        results = [(program.communicate(), program.returncode) for program in started]
    assert [code for _, code in results] == [0] * PROCESSES, results
    (live,) = Server(elasticsearch_url).request("GET", f"/_alias/{index_prefix}-nlps").json()
    assert live in {json.loads(out)["index"] for (out, _), _ in results}
    assert indexed_server("search", "nlps", "group").code == 0


def test_ranking_is_repeated_while_others_replace_the_index_of_training_topics(
    elasticsearch_url: str, index_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others rank with other judgments and replace our index just before we open it."""
    task = load("nlps")
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix)
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        topics = index_examples(task, engine, task.collection(SAMPLE), "dev", SilentProgress())[1]
    judged = {size: tuple(replace(topic, gold={}) for topic in topics[:size]) for size in (1, 2)}
    replacements = 0
    open_index = ElasticsearchEngine.open
    if not FULL:
        monkeypatch.setattr(indexing, "TRAINING_ATTEMPTS", 2)

    def replace_and_open(engine: ElasticsearchEngine, name: str) -> object:
        nonlocal replacements
        if replacements:
            replacements -= 1
            with closing(ElasticsearchEngine.connect(settings)) as other:
                monkeypatch.setattr(ElasticsearchEngine, "open", open_index)
                index_examples(task, other, task.collection(SAMPLE), "dev", SilentProgress(), judged[2])
                monkeypatch.setattr(ElasticsearchEngine, "open", replace_and_open)
        return open_index(engine, name)

    monkeypatch.setattr(ElasticsearchEngine, "open", replace_and_open)
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        replacements = indexing.TRAINING_ATTEMPTS - 1
        index, examples = index_examples(
            task, engine, task.collection(SAMPLE), "dev", SilentProgress(), judged[1]
        )
        assert index.info.documents == len(examples)
        replacements = 100
        with pytest.raises(
            EngineRefused, match="another process is ranking with other training topics in the index"
        ):
            index_examples(task, engine, task.collection(SAMPLE), "dev", SilentProgress(), judged[1])
