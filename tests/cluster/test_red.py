"""An index without one of its shards is rejected and never returns fewer hits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from searchapp.engines.elasticsearch import connection
from tests.cli.conftest import Cli
from tests.cluster.collection import Words
from tests.cluster.conftest import PREFIX
from tests.cluster.test_faults import engine_error
from tests.server.cluster import Cluster

pytestmark = pytest.mark.timeout(600)


def test_an_index_without_one_of_its_shards_is_rejected_until_the_shard_is_back(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commands("index", words.task, "--shards", 3, "--replicas", 0).code == 0
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 3.0)
    cluster.holder(f"{PREFIX}-own-words", 1).kill()
    for command in (
        ("rank", words.task, "--split", "few", "--out", tmp_path / "run"),
        ("search", words.task, "word1 word2"),
    ):
        message = engine_error(commands(*command))
        assert re.search(
            rf"searched only some shards of {PREFIX}-own-words-000001-\w+, even after 3 s", message
        )
        assert message.endswith("check the cluster's health and run the command again")
    assert not (tmp_path / "run").exists()
    cluster.recover()
    words.require_same(commands, tmp_path / "run")
