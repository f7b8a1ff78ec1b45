"""An older state restored from a snapshot: over the present state, beside it, and in its place."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import Cli
from tests.cluster.collection import Words, ranked, stored, write_task
from tests.cluster.conftest import PREFIX
from tests.cluster.test_faults import ALIAS, aliases
from tests.server.cluster import Cluster

pytestmark = pytest.mark.timeout(600)

REPOSITORY = "/_snapshot/test-kept"
JUDGMENTS = f"{PREFIX}-judgments-000001"


class Snapshot:
    """A snapshot of all indexes of searchapp in the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        response = cluster.server.request(
            "GET", "/_nodes/settings?filter_path=nodes.*.settings.path.repo"
        ).json()
        (location,) = next(iter(response["nodes"].values()))["settings"]["path"]["repo"]
        self._request("PUT", REPOSITORY, {"type": "fs", "settings": {"location": location}})
        self._request("DELETE", f"{REPOSITORY}/one", None, 404)
        self._request("PUT", f"{REPOSITORY}/one?wait_for_completion=true", {"indices": f"{PREFIX}-*"})

    def restore(self, indexes: str, status: int = 200, **options: Any) -> bytes:
        """Restore indexes, and check the status of the response."""
        body = {"indices": indexes, "include_global_state": False, **options}
        return self._request("POST", f"{REPOSITORY}/one/_restore?wait_for_completion=true", body, status)

    def _request(self, method: str, path: str, body: object = None, status: int = 200) -> bytes:
        response = self._cluster.server.request(method, path, body, timeout=60)
        assert response.status in (200, status), response.body
        return response.body


def judge(home: Path, name: str, document: str) -> None:
    with closing(JudgmentLog(home / "judgments.sqlite")) as log:
        log.append([Author(name).event("nlps", "t", document, Action.grade, grade=1)])


def test_a_restored_older_state_loses_no_judgments_and_changes_no_run(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(
        shutil.copytree(words.task.parent, tmp_path / "words", ignore=shutil.ignore_patterns("home"))
    )
    task, home = folder / "words.toml", tmp_path / "home"
    assert commands("index", task, "--shards", 3).code == 0
    judge(home, "ann", "before")
    assert commands("judgments", "sync").code == 0
    (older,) = aliases(cluster)
    snapshot = Snapshot(cluster)
    judge(home, "ann", "after")
    assert commands("judgments", "sync").code == 0
    write_task(folder, 500, seed=2)
    assert commands("index", task, "--shards", 3).code == 0
    newer = ranked(commands, task, tmp_path / "newer", "few")
    assert newer != words.runs["few"]
    (newest,) = aliases(cluster)

    # Over the present state: annotators send later judgments again.
    cluster.server.request("POST", f"/{JUDGMENTS}/_close", timeout=60)
    snapshot.restore(JUDGMENTS)
    assert sorted(stored(cluster, JUDGMENTS).values()) == ["before"]
    assert commands("judgments", "sync", "--json").json["sent"] == 1  # the other was restored
    assert sorted(stored(cluster, JUDGMENTS).values()) == ["after", "before"]
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path / "ben"))
    assert commands("judgments", "sync", "--json").json["fetched"] == 2
    monkeypatch.setenv("SEARCHAPP_HOME", str(home))

    # Beside the present state, also under another name: only one version can be live, and the newer one stays live.
    assert b"more than one write index" in snapshot.restore(f"{ALIAS}-*", 500)
    snapshot.restore(f"{ALIAS}-*", include_aliases=False)
    snapshot.restore(
        f"{ALIAS}-*", include_aliases=False, rename_pattern="(.+)", rename_replacement=f"{PREFIX}-old-$1"
    )
    assert ranked(commands, task, tmp_path / "beside", "few") == newer
    assert commands("indexes", "repair", "own-words").code == 0
    assert aliases(cluster) == {newest: [ALIAS]}
    assert cluster.server.request("HEAD", f"/{PREFIX}-old-{older}").status == 200

    # In place of the present state: the documents differ from the files.
    cluster.server.delete_indices(ALIAS)
    snapshot.restore(f"{ALIAS}-*")
    result = commands("rank", task, "--split", "few", "--out", tmp_path / "run")
    assert result.code == 4 and not (tmp_path / "run").exists()
    assert f"{older} was built from other documents (4,000) than those in" in result.stderr
    assert "(500): build it again" in result.stderr
    assert "build it again with `searchapp index" in result.stderr
    assert commands("index", task, "--shards", 3).code == 0
    assert list(aliases(cluster).values()) == [[ALIAS]]
    assert ranked(commands, task, tmp_path / "again", "few") == newer
