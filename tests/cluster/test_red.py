"""An index that has lost a shard: it is refused with a sentence, and never gives fewer hits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from searchapp.engines.elasticsearch import connection
from tests.cli.conftest import Cli
from tests.cluster.collection import Words
from tests.cluster.conftest import PREFIX
from tests.cluster.test_faults import refused
from tests.server.cluster import Cluster

pytestmark = pytest.mark.timeout(600)


def test_an_index_without_one_of_its_shards_is_refused_until_it_is_back(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commands("index", words.task, "--shards", 3, "--replicas", 0).code == 0
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 3.0)
    cluster.holder(f"{PREFIX}-own-words", 1).kill()
    for command in (
        ("rank", words.task, "--split", "few", "--out", tmp_path / "run"),
        ("search", words.task, "word1 word2"),
    ):
        said = refused(commands(*command))
        assert re.search(rf"searched only some shards of {PREFIX}-own-words-000001-\w+, even after 3 s", said)
        assert said.endswith("check the cluster's health and run the command again")
    assert not (tmp_path / "run").exists()
    cluster.recover()
    words.require_same(commands, tmp_path / "run")
