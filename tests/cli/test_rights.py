"""Each role that `doctor --roles` prints is enough for its use, and without any one of its rights a sentence names it.

Real API keys on a secured server. After every command that lacks a right all is as it was before: no version is left
half-built, no run half-written.
"""

from __future__ import annotations

import copy
import json
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines import server_roles
from searchapp.engines.elasticsearch import shards
from searchapp.engines.elasticsearch.rights import ROLES, missing_right
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import SAMPLE, Cli, Result, run_command
from tests.profile import FULL
from tests.server.node import Node

Json = dict[str, Any]
DOCUMENT = Path(__file__).parents[2] / "docs" / "use" / "elasticsearch.md"


class Lab:
    """A prefix on the secured server with an index and a team's judgments, and people with keys for it."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node = node
        self.folder = folder
        self.prefix = f"lab-{secrets.token_hex(4)}"

    def enter(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin a test as the owner, with all there that a test may have removed."""
        self.cli = cli
        self._environment = monkeypatch
        monkeypatch.setenv("SEARCHAPP_HOME", str(self.folder / "home"))
        monkeypatch.setenv("SEARCHAPP_URL", self.node.url)
        monkeypatch.setenv("SEARCHAPP_CA_CERTS", str(self.node.ca_certs))
        monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", self.prefix)
        self.be_owner()
        assert self.is_whole()
        there = self.names()
        if not any(name.startswith(f"{self.prefix}-nlps-") for name in there):
            assert cli("index", "nlps", "--data", SAMPLE).code == 0
        if not (self.folder / "run").exists():
            ranked = cli("rank", "nlps", "--split", "dev", "--recipe", "bm25", "--out", self.folder / "run")
            assert ranked.code == 0
        if not any(name.startswith(f"{self.prefix}-judgments-") for name in there):
            self.judge_at_home()
            assert cli("judgments", "sync").code == 0

    def be_owner(self) -> None:
        self._environment.delenv("SEARCHAPP_API_KEY", raising=False)
        self._environment.setenv("SEARCHAPP_USERNAME", str(self.node.username))
        self._environment.setenv("SEARCHAPP_PASSWORD", str(self.node.password))

    def be(self, body: Json) -> None:
        """From here on commands are those of somebody whose key has these rights and no others."""
        if not body["cluster"] and not body["indices"]:
            body = {"cluster": [], "indices": [{"names": ["other"], "privileges": ["read"]}]}
        made = {"name": secrets.token_hex(4), "role_descriptors": {"role": body}}
        answer = self.node.server.request("POST", "/_security/api_key", made).json()
        self._environment.delenv("SEARCHAPP_USERNAME", raising=False)
        self._environment.delenv("SEARCHAPP_PASSWORD", raising=False)
        self._environment.setenv("SEARCHAPP_API_KEY", answer["encoded"])

    def names(self) -> Json:
        """The aliases of each index that is there."""
        result: Json = self.node.server.request("GET", f"/{self.prefix}-*/_alias").json()
        return result

    def is_whole(self) -> bool:
        """Whether every index serves, and none is half-built."""
        result = self.names()
        return all(
            list(described["aliases"]) in ([re.sub(r"-\d{6}(-\w{8})?$", "", name)], [])
            and "-building" not in str(described)
            for name, described in result.items()
        )

    def judge_at_home(self) -> None:
        """A judgment that is not shared yet."""
        with JudgmentLog(self.folder / "home" / "judgments.sqlite") as log:
            event = Author("ann").event("nlps", "t", secrets.token_hex(4), Action.grade, grade=1)
            log.append([event])


@pytest.fixture(scope="function" if FULL else "module")
def same_lab(secured_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of each test's own, or in the short profile one that tests leave to each other."""
    lab = Lab(secured_node, tmp_path_factory.mktemp("lab"))
    yield lab
    secured_node.server.delete_indices(lab.prefix)


@pytest.fixture
def lab(same_lab: Lab, offline: Cli, monkeypatch: pytest.MonkeyPatch) -> Lab:
    same_lab.enter(offline, monkeypatch)
    return same_lab


def reading(lab: Lab) -> Iterator[Result]:
    yield lab.cli("search", "nlps", "group", "--json")
    yield ranked(lab, "bm25")
    yield lab.cli("topics", "nlps", "--recipe", "bm25", "--json")
    run = lab.folder / "run"
    yield run_command("judge", "nlps", "--run", run, "--annotator", "ann", "--plain", typed="q\n")


def ranked(lab: Lab, recipe: str) -> Result:
    out = lab.folder / "again"
    result = lab.cli("rank", "nlps", "--split", "dev", "--recipe", recipe, "--out", out)
    assert out.exists() == (result.code == 0), "a run is there whole or not at all"
    shutil.rmtree(out, ignore_errors=True)
    return result


def indexing(lab: Lab) -> Iterator[Result]:
    yield lab.cli("index", "nlps", "--rebuild")
    yield lab.cli("analyze", "nlps", "a group")
    yield ranked(lab, "neighbours")
    yield lab.cli("indexes", "list", "--json")
    yield lab.cli("indexes", "repair", "nlps")
    yield lab.cli("indexes", "remove", "nlps", "--yes")
    yield lab.cli("index", "nlps")
    yield from reading(lab)


def judging(lab: Lab) -> Iterator[Result]:
    lab.judge_at_home()
    yield lab.cli("judgments", "sync", "--json")
    yield from reading(lab)


def administration(lab: Lab) -> Iterator[Result]:
    lab.node.server.request("DELETE", f"/{lab.prefix}-judgments-000001")
    yield from judging(lab)
    yield from indexing(lab)


USES: dict[str, Callable[[Lab], Iterator[Result]]] = {
    "reading": reading,
    "indexing": indexing,
    "judging": judging,
    "administration": administration,
}


def printed(lab: Lab) -> dict[str, Json]:
    """The roles as the command prints them."""
    roles: dict[str, Json] = lab.cli("doctor", "--roles").json["roles"]
    return roles


def test_the_roles_are_those_of_the_uses_that_are_tried_here() -> None:
    assert [role.name for role in ROLES] == list(USES)
    assert list(server_roles(Settings(home=Path("x"), index_prefix="p"))) == [f"p-{name}" for name in USES]


def test_roles_are_printed_without_asking_any_server(offline: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHAPP_URL", "http://127.0.0.1:9")
    result = offline("doctor", "--roles")
    assert (result.code, result.json) == (0, {"roles": server_roles(Settings(home=Path("x")))})


def test_the_server_accepts_what_is_printed(lab: Lab) -> None:
    server, roles = lab.node.server, printed(lab)
    together = server.request("POST", "/_security/role", {"roles": roles})
    assert sorted(together.json()["created"]) == sorted(roles)
    for name, body in roles.items():
        assert server.request("PUT", f"/_security/role/{name}", body).json() == {"role": {"created": False}}
        kept = server.request("GET", f"/_security/role/{name}").json()[name]
        assert [index["names"] for index in kept["indices"]] == [index["names"] for index in body["indices"]]
        server.request("DELETE", f"/_security/role/{name}")


@pytest.mark.parametrize("use", USES)
def test_a_role_is_enough_for_its_use(lab: Lab, use: str) -> None:
    lab.be(printed(lab)[f"{lab.prefix}-{use}"])
    for result in USES[use](lab):
        assert result.code == 0, result.stderr
    assert lab.is_whole()
    checks = {check["name"]: check for check in lab.cli("doctor", "--json").json["checks"]}
    assert checks[f"rights for {use}"]["verdict"] == "ok", checks


def rights(use: str) -> list[tuple[str, int | None, str]]:
    """Each privilege of a role: on the cluster, or in which of its groups of indexes."""
    (role,) = (role for role in ROLES if role.name == use)
    on_cluster: list[tuple[str, int | None, str]] = [(use, None, one) for one in role.cluster]
    return on_cluster + [
        (use, place, one) for place, some in enumerate(role.indices.values()) for one in some
    ]


def without(body: Json, place: int | None, privilege: str) -> Json:
    fewer = copy.deepcopy(body)
    if place is None:
        fewer["cluster"].remove(privilege)
    else:
        fewer["indices"][place]["privileges"].remove(privilege)
        fewer["indices"] = [index for index in fewer["indices"] if index["privileges"]]
    return fewer


@pytest.mark.parametrize(
    ("use", "place", "privilege"), [right for use in USES for right in rights(use)], ids=str
)
def test_missing_rights_are_named(
    lab: Lab, use: str, place: int | None, privilege: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "WORTHWHILE", 1)  # so that the cluster's nodes are asked for
    name = f"{lab.prefix}-{use}"
    body = printed(lab)[name]
    group = None if place is None else body["indices"][place]["names"][0]
    lab.be(without(body, place, privilege))
    refused = []
    for result in USES[use](lab):
        assert result.code in (0, 2, 3), result.stderr  # 2: what another command could not make is not there
        assert "action [" not in result.stderr and "Traceback" not in result.stderr
        if result.code == 3:
            refused += [line for line in result.stderr.splitlines() if "does not allow this user" in line]
        elif place is None and "the cluster privilege `monitor`" in result.stderr:
            refused.append(f"the cluster privilege `{privilege}` on {lab.prefix}")
    assert any(f"`{privilege}`" in line and lab.prefix in line for line in refused), refused
    checks = {check["name"]: check for check in lab.cli("doctor", "--json").json["checks"]}
    found = checks[f"rights for {use}"]
    assert found["verdict"] == ("failed" if use == "reading" else "warning")
    assert f"`{privilege}` on {group or 'the cluster'}" in found["finding"]
    assert lab.is_whole()
    lab.be_owner()
    if use not in ("indexing", "administration"):  # others may have removed it, which they may
        assert lab.cli("search", "nlps", "group", "--json").code == 0


def test_readers_and_builders_do_not_see_judgments(lab: Lab) -> None:
    lab.judge_at_home()
    for use in ("reading", "indexing"):
        lab.be(printed(lab)[f"{lab.prefix}-{use}"])
        result = lab.cli("judgments", "sync")
        assert result.code == 3
        assert f"on {lab.prefix}-judgments" in result.stderr


def test_without_security_everybody_may_do_everything(server: Cli) -> None:
    checks = {check["name"]: check["finding"] for check in server("doctor", "--json").json["checks"]}
    assert checks["rights"] == "security is disabled on the server: every user has all rights"


def test_the_document_lists_the_roles() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").split("## Rights")[1].split("\n## ")[0]
    for role in ROLES:
        body = json.dumps(role.body("searchapp"))
        row = next(line for line in section.splitlines() if line.startswith(f"| `searchapp-{role.name}` |"))
        for privilege in {one for some in (role.cluster, *role.indices.values()) for one in some}:
            assert f"`{privilege}`" in row, body


@pytest.mark.parametrize(
    ("detail", "sentence"),
    [
        (
            "action [indices:data/write/bulk] is unauthorized for API key id [x] of user [elastic], this action is "
            "granted by the index privileges [create_doc,create,delete,index,write,all]",
            "the index privilege `create` is missing",
        ),
        (
            "action [cluster:monitor/health] is unauthorized for user [ann] with effective roles [r], this action is "
            "granted by the cluster privileges [monitor,manage,all]",
            "the cluster privilege `monitor` or `manage` is missing",
        ),
        (
            "action [indices:admin/other] is unauthorized for user [a on indices [x]] on indices [a,b], this action "
            "is granted by the index privileges [rare,all]",
            "the index privilege `rare` on a, b is missing",
        ),
        ("something else", None),
    ],
)
def test_what_a_server_says_of_a_right_is_read(detail: str, sentence: str | None) -> None:
    assert missing_right(detail) == sentence
