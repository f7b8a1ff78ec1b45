"""Two commands that build the same index at the same time."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp.app import index as indexing
from tests.cli.conftest import SAMPLE, Cli
from tests.programs import COMMAND, Program

SLOW_BUILDER = """
import sys, time
from searchapp.lucene.index.writer import IndexWriter
add_all = IndexWriter.add_all
def slow(writer, *given, **more):
    print("building", flush=True)
    time.sleep(float(sys.argv[1]))
    add_all(writer, *given, **more)
IndexWriter.add_all = slow
from searchapp.cli import app
app(sys.argv[2:])
"""


@pytest.fixture
def builder(offline: Cli, request: pytest.FixtureRequest) -> Iterator[Program]:
    """Another process that has begun to index the sample, and takes this many seconds for it."""
    with Program(SLOW_BUILDER, request.param, "index", "nlps", "--data", SAMPLE) as program:
        assert program.heard() == "building"
        yield program


@pytest.mark.parametrize("builder", [1], indirect=True)
def test_the_second_waits_and_takes_what_the_first_has_built(offline: Cli, builder: Program) -> None:
    second = offline("index", "nlps", "--data", SAMPLE, "--json")
    assert (second.code, second.json["built"]) == (0, False)
    assert "nothing has changed, searchapp-nlps-000001 with 70 documents still serves" in second.stderr
    _, told = builder.ended()
    assert builder.returncode == 0 and "70 documents are indexed and serve" in told


@pytest.mark.parametrize("builder", [600], indirect=True)
def test_a_waiting_build_names_the_builder(
    offline: Cli, builder: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "PATIENCE_SECONDS", 0.5)
    second = offline("index", "nlps", "--data", SAMPLE)
    assert second.code == 3
    assert f"process {builder.pid} is building the index in" in second.stderr
    assert second.stderr.strip().endswith("at this moment: wait until it is done")


@pytest.mark.parametrize("builder", [600], indirect=True)
def test_a_second_build_follows_a_killed_one(
    offline: Cli, builder: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = time.sleep

    def killed(seconds: float) -> None:
        builder.send_signal(signal.SIGKILL)
        builder.wait()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", killed)
    second = offline("index", "nlps", "--data", SAMPLE, "--json")
    assert (second.code, second.json["built"]) == (0, True)


def test_two_rankings_that_index_the_same_solved_topics(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", "nlps", "--data", SAMPLE).code == 0
    rank = ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--recipe", "neighbours", "--out")
    both = [Program(COMMAND, *rank, tmp_path / name) for name in ("one", "two")]
    for program in both:
        with program:
            _, told = program.ended()
        assert program.returncode == 0, told
    assert (tmp_path / "one" / "run.trec").read_bytes() == (tmp_path / "two" / "run.trec").read_bytes()
