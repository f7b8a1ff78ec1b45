"""Commands that several people give at the same moment, as processes of their own."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp.app import index as solved_index
from searchapp.app.index import index_examples
from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.errors import EngineRefused
from searchapp.model import Example
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from tests.cli.conftest import SAMPLE, Cli
from tests.profile import FULL
from tests.programs import COMMAND, Program
from tests.server.rest import Server

ROUNDS = 20 if FULL else 1
AT_ONCE = 4


def start(url: str, prefix: str, home: Path, *arguments: object) -> Program:
    """A command on the server, as somebody else gives it at this moment."""
    own = {"SEARCHAPP_URL": url, "SEARCHAPP_INDEX_PREFIX": prefix, "SEARCHAPP_HOME": str(home)}
    return Program(COMMAND, *arguments, environment=own)


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_simultaneous_runs_share_an_index(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str, tmp_path: Path, _round: int
) -> None:
    outs = [tmp_path / f"run{number}" for number in range(AT_ONCE)]
    rank = ("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--recipe", "neighbours", "--out")
    with ExitStack() as running:
        home = tmp_path / "home"
        for program in [
            running.enter_context(start(elasticsearch_url, index_prefix, home, *rank, out)) for out in outs
        ]:
            _, said = program.ended()
            assert program.returncode == 0, said
    assert len({(out / "run.trec").read_bytes() for out in outs}) == 1
    result = Server(elasticsearch_url).request("GET", f"/{index_prefix}-examples-nlps-dev-*/_alias").json()
    ((version, described),) = result.items()
    assert version.startswith(f"{index_prefix}-examples-nlps-dev-000001-")
    assert described == {"aliases": {f"{index_prefix}-examples-nlps-dev": {"is_write_index": True}}}


@pytest.mark.parametrize("_round", range(ROUNDS))
def test_simultaneous_rebuilds_leave_one_version(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str, tmp_path: Path, _round: int
) -> None:
    index = ("index", "nlps", "--data", SAMPLE, "--rebuild", "--json")
    with ExitStack() as running:
        home = tmp_path / "home"
        started = [
            running.enter_context(start(elasticsearch_url, index_prefix, home, *index))
            for _ in range(AT_ONCE)
        ]
        ended = [(program.ended(), program.returncode) for program in started]
    assert [code for _, code in ended] == [0] * AT_ONCE, ended
    (serving,) = Server(elasticsearch_url).request("GET", f"/_alias/{index_prefix}-nlps").json()
    assert serving in {json.loads(out)["index"] for (out, _), _ in ended}
    assert indexed_server("search", "nlps", "group").code == 0


def test_solved_topics_have_indexes_of_their_own(
    elasticsearch_url: str, index_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody ranks with other judgments: their index takes the place of ours just before it is opened."""
    task = load("nlps")
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix)
    topics = index_examples_of(settings)
    judged = {size: tuple(replace(topic, gold={}) for topic in topics[:size]) for size in (1, 2)}
    others = 0
    really = ElasticsearchEngine.open
    if not FULL:
        monkeypatch.setattr(solved_index, "EXAMPLES_ATTEMPTS", 2)

    def meanwhile(engine: ElasticsearchEngine, name: str) -> object:
        nonlocal others
        if others:
            others -= 1
            with closing(ElasticsearchEngine.connect(settings)) as other:
                monkeypatch.setattr(ElasticsearchEngine, "open", really)
                index_examples(task, other, task.collection(SAMPLE), "dev", SilentProgress(), judged[2])
                monkeypatch.setattr(ElasticsearchEngine, "open", meanwhile)
        return really(engine, name)

    monkeypatch.setattr(ElasticsearchEngine, "open", meanwhile)
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        others = solved_index.EXAMPLES_ATTEMPTS - 1
        index, examples = index_examples(
            task, engine, task.collection(SAMPLE), "dev", SilentProgress(), judged[1]
        )
        assert index.info.documents == len(examples)
        others = 100
        with pytest.raises(
            EngineRefused, match="another process ranks with other solved topics in the same index"
        ):
            index_examples(task, engine, task.collection(SAMPLE), "dev", SilentProgress(), judged[1])


def index_examples_of(settings: Settings) -> list[Example]:
    """The solved topics of the sample."""
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        return index_examples(load("nlps"), engine, load("nlps").collection(SAMPLE), "dev", SilentProgress())[
            1
        ]
