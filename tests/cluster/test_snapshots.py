"""An older state that somebody brings back from a snapshot: over what is there, beside it, and in place of it."""

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


class Kept:
    """A snapshot of all that searchapp has in the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        found = cluster.server.request(
            "GET", "/_nodes/settings?filter_path=nodes.*.settings.path.repo"
        ).json()
        (location,) = next(iter(found["nodes"].values()))["settings"]["path"]["repo"]
        self._request("PUT", REPOSITORY, {"type": "fs", "settings": {"location": location}})
        self._request("DELETE", f"{REPOSITORY}/one", None, 404)
        self._request("PUT", f"{REPOSITORY}/one?wait_for_completion=true", {"indices": f"{PREFIX}-*"})

    def bring_back(self, indexes: str, status: int = 200, **options: Any) -> bytes:
        """Restore some of its indexes; an answer of this status is right."""
        body = {"indices": indexes, "include_global_state": False, **options}
        return self._request("POST", f"{REPOSITORY}/one/_restore?wait_for_completion=true", body, status)

    def _request(self, method: str, path: str, body: object = None, status: int = 200) -> bytes:
        answer = self._cluster.server.request(method, path, body, timeout=60)
        assert answer.status in (200, status), answer.body
        return answer.body


def judge(home: Path, name: str, document: str) -> None:
    with closing(JudgmentLog(home / "judgments.sqlite")) as log:
        log.append([Author(name).event("nlps", "t", document, Action.grade, grade=1)])


def test_an_older_state_that_is_brought_back_loses_nothing(
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
    kept = Kept(cluster)
    judge(home, "ann", "after")
    assert commands("judgments", "sync").code == 0
    write_task(folder, 500, seed=2)
    assert commands("index", task, "--shards", 3).code == 0
    newer = ranked(commands, task, tmp_path / "newer", "few")
    assert newer != words.runs["few"]
    (newest,) = aliases(cluster)

    # Over it: the judgments of before. Whoever has later ones sends them again.
    cluster.server.request("POST", f"/{JUDGMENTS}/_close", timeout=60)
    kept.bring_back(JUDGMENTS)
    assert sorted(stored(cluster, JUDGMENTS).values()) == ["before"]
    assert commands("judgments", "sync", "--json").json["sent"] == 1  # the other is there already
    assert sorted(stored(cluster, JUDGMENTS).values()) == ["after", "before"]
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path / "ben"))
    assert commands("judgments", "sync", "--json").json["fetched"] == 2
    monkeypatch.setenv("SEARCHAPP_HOME", str(home))

    # Beside it, also under another name: the cluster lets no two of them serve, and the newer one goes on.
    assert b"more than one write index" in kept.bring_back(f"{ALIAS}-*", 500)
    kept.bring_back(f"{ALIAS}-*", include_aliases=False)
    kept.bring_back(
        f"{ALIAS}-*", include_aliases=False, rename_pattern="(.+)", rename_replacement=f"{PREFIX}-old-$1"
    )
    assert ranked(commands, task, tmp_path / "beside", "few") == newer
    assert commands("indexes", "repair", "own-words").code == 0
    assert aliases(cluster) == {newest: [ALIAS]}
    assert cluster.server.request("HEAD", f"/{PREFIX}-old-{older}").status == 200

    # In its place: the documents are not those of the files any more.
    cluster.server.delete_indices(ALIAS)
    kept.bring_back(f"{ALIAS}-*")
    refused = commands("rank", task, "--split", "few", "--out", tmp_path / "run")
    assert refused.code == 4 and not (tmp_path / "run").exists()
    assert f"{older} was built from other documents (4,000) than those in" in refused.stderr
    assert "(500): build it again" in refused.stderr
    assert "build it again with `searchapp index" in refused.stderr
    assert commands("index", task, "--shards", 3).code == 0
    assert list(aliases(cluster).values()) == [[ALIAS]]
    assert ranked(commands, task, tmp_path / "again", "few") == newer
