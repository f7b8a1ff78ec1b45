"""Each role that `doctor --roles` prints suffices for its use, and an error names each right that is missing.

The tests use real API keys on a secured server. A command that lacks a right leaves neither an incomplete version of
an index nor an incomplete run.
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


class Workspace:
    """A prefix on the secured server with an index and shared judgments, and users with API keys for it."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node = node
        self.folder = folder
        self.prefix = f"lab-{secrets.token_hex(4)}"

    def enter(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin a test as the owner, and restore what earlier tests have removed."""
        self.cli = cli
        self._environment = monkeypatch
        monkeypatch.setenv("SEARCHAPP_HOME", str(self.folder / "home"))
        monkeypatch.setenv("SEARCHAPP_URL", self.node.url)
        monkeypatch.setenv("SEARCHAPP_CA_CERTS", str(self.node.ca_certs))
        monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", self.prefix)
        self.be_owner()
        assert self.is_consistent()
        names = self.names()
        if not any(name.startswith(f"{self.prefix}-nlps-") for name in names):
            assert cli("index", "nlps", "--data", SAMPLE).code == 0
        if not (self.folder / "run").exists():
            rank = cli("rank", "nlps", "--split", "dev", "--recipe", "bm25", "--out", self.folder / "run")
            assert rank.code == 0
        if not any(name.startswith(f"{self.prefix}-judgments-") for name in names):
            self.add_judgment()
            assert cli("judgments", "sync").code == 0

    def be_owner(self) -> None:
        self._environment.delenv("SEARCHAPP_API_KEY", raising=False)
        self._environment.setenv("SEARCHAPP_USERNAME", str(self.node.username))
        self._environment.setenv("SEARCHAPP_PASSWORD", str(self.node.password))

    def use_role(self, body: Json) -> None:
        """Run further commands with a new API key that has the rights of a role only."""
        if not body["cluster"] and not body["indices"]:
            body = {"cluster": [], "indices": [{"names": ["other"], "privileges": ["read"]}]}
        key = {"name": secrets.token_hex(4), "role_descriptors": {"role": body}}
        answer = self.node.server.request("POST", "/_security/api_key", key).json()
        self._environment.delenv("SEARCHAPP_USERNAME", raising=False)
        self._environment.delenv("SEARCHAPP_PASSWORD", raising=False)
        self._environment.setenv("SEARCHAPP_API_KEY", answer["encoded"])

    def names(self) -> Json:
        """Return each index with its aliases."""
        result: Json = self.node.server.request("GET", f"/{self.prefix}-*/_alias").json()
        return result

    def is_consistent(self) -> bool:
        """Whether every index has no other alias than its own, and none is incomplete."""
        return all(
            list(index["aliases"]) in ([re.sub(r"-\d{6}(-\w{8})?$", "", name)], [])
            and "-building" not in str(index)
            for name, index in self.names().items()
        )

    def add_judgment(self) -> None:
        """Add a judgment to the local log that is not shared yet."""
        with JudgmentLog(self.folder / "home" / "judgments.sqlite") as log:
            event = Author("ann").event("nlps", "t", secrets.token_hex(4), Action.grade, grade=1)
            log.append([event])


@pytest.fixture(scope="function" if FULL else "module")
def shared_workspace(secured_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace for each test, or in the short profile one that tests share."""
    workspace = Workspace(secured_node, tmp_path_factory.mktemp("lab"))
    yield workspace
    secured_node.server.delete_indices(workspace.prefix)


@pytest.fixture
def workspace(shared_workspace: Workspace, offline: Cli, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    shared_workspace.enter(offline, monkeypatch)
    return shared_workspace


def reading(workspace: Workspace) -> Iterator[Result]:
    yield workspace.cli("search", "nlps", "group", "--json")
    yield rank(workspace, "bm25")
    yield workspace.cli("topics", "nlps", "--recipe", "bm25", "--json")
    run = workspace.folder / "run"
    yield run_command("judge", "nlps", "--run", run, "--annotator", "ann", "--plain", typed="q\n")


def rank(workspace: Workspace, recipe: str) -> Result:
    out = workspace.folder / "again"
    result = workspace.cli("rank", "nlps", "--split", "dev", "--recipe", recipe, "--out", out)
    assert out.exists() == (result.code == 0), "a run is complete or does not exist"
    shutil.rmtree(out, ignore_errors=True)
    return result


def indexing(workspace: Workspace) -> Iterator[Result]:
    yield workspace.cli("index", "nlps", "--rebuild")
    yield workspace.cli("analyze", "nlps", "a group")
    yield rank(workspace, "neighbours")
    yield workspace.cli("indexes", "list", "--json")
    yield workspace.cli("indexes", "repair", "nlps")
    yield workspace.cli("indexes", "remove", "nlps", "--yes")
    yield workspace.cli("index", "nlps")
    yield from reading(workspace)


def judging(workspace: Workspace) -> Iterator[Result]:
    workspace.add_judgment()
    yield workspace.cli("judgments", "sync", "--json")
    yield from reading(workspace)


def administration(workspace: Workspace) -> Iterator[Result]:
    workspace.node.server.request("DELETE", f"/{workspace.prefix}-judgments-000001")
    yield from judging(workspace)
    yield from indexing(workspace)


USES: dict[str, Callable[[Workspace], Iterator[Result]]] = {
    "reading": reading,
    "indexing": indexing,
    "judging": judging,
    "administration": administration,
}


def printed_roles(workspace: Workspace) -> dict[str, Json]:
    """Return the roles that the command prints."""
    roles: dict[str, Json] = workspace.cli("doctor", "--roles").json["roles"]
    return roles


def test_every_role_has_a_use_in_these_tests() -> None:
    assert [role.name for role in ROLES] == list(USES)
    assert list(server_roles(Settings(home=Path("x"), index_prefix="p"))) == [f"p-{name}" for name in USES]


def test_roles_are_printed_without_a_server(offline: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHAPP_URL", "http://127.0.0.1:9")
    result = offline("doctor", "--roles")
    assert (result.code, result.json) == (0, {"roles": server_roles(Settings(home=Path("x")))})


def test_the_server_accepts_the_printed_roles(workspace: Workspace) -> None:
    server, roles = workspace.node.server, printed_roles(workspace)
    created = server.request("POST", "/_security/role", {"roles": roles}).json()["created"]
    assert sorted(created) == sorted(roles)
    for name, body in roles.items():
        assert server.request("PUT", f"/_security/role/{name}", body).json() == {"role": {"created": False}}
        stored = server.request("GET", f"/_security/role/{name}").json()[name]
        assert [group["names"] for group in stored["indices"]] == [
            group["names"] for group in body["indices"]
        ]
        server.request("DELETE", f"/_security/role/{name}")


@pytest.mark.parametrize("use", USES)
def test_a_role_suffices_for_its_use(workspace: Workspace, use: str) -> None:
    workspace.use_role(printed_roles(workspace)[f"{workspace.prefix}-{use}"])
    for result in USES[use](workspace):
        assert result.code == 0, result.stderr
    assert workspace.is_consistent()
    checks = {check["name"]: check for check in workspace.cli("doctor", "--json").json["checks"]}
    assert checks[f"rights for {use}"]["verdict"] == "ok", checks


def rights_of(use: str) -> list[tuple[str, int | None, str]]:
    """List the privileges of a role, each with the number of its group of indexes, None for the cluster."""
    (role,) = (role for role in ROLES if role.name == use)
    on_cluster: list[tuple[str, int | None, str]] = [(use, None, privilege) for privilege in role.cluster]
    return on_cluster + [
        (use, group, privilege)
        for group, privileges in enumerate(role.indices.values())
        for privilege in privileges
    ]


def without(body: Json, group: int | None, privilege: str) -> Json:
    """Return a copy of a role that lacks a privilege."""
    role = copy.deepcopy(body)
    if group is None:
        role["cluster"].remove(privilege)
    else:
        role["indices"][group]["privileges"].remove(privilege)
        role["indices"] = [index for index in role["indices"] if index["privileges"]]
    return role


@pytest.mark.parametrize(
    ("use", "group", "privilege"), [right for use in USES for right in rights_of(use)], ids=str
)
def test_missing_rights_are_named(
    workspace: Workspace, use: str, group: int | None, privilege: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "WORTHWHILE", 1)  # so that the nodes of the cluster are counted
    name = f"{workspace.prefix}-{use}"
    body = printed_roles(workspace)[name]
    target = "the cluster" if group is None else body["indices"][group]["names"][0]
    workspace.use_role(without(body, group, privilege))
    refused = []
    for result in USES[use](workspace):
        assert result.code in (0, 2, 3), result.stderr  # 2: an earlier command failed
        assert "action [" not in result.stderr and "Traceback" not in result.stderr
        if result.code == 3:
            refused += [line for line in result.stderr.splitlines() if "does not allow this user" in line]
        elif group is None and "the cluster privilege `monitor`" in result.stderr:
            refused.append(f"the cluster privilege `{privilege}` on {workspace.prefix}")
    assert any(f"`{privilege}`" in line and workspace.prefix in line for line in refused), refused
    checks = {check["name"]: check for check in workspace.cli("doctor", "--json").json["checks"]}
    check = checks[f"rights for {use}"]
    assert check["verdict"] == ("failed" if use == "reading" else "warning")
    assert f"`{privilege}` on {target}" in check["finding"]
    assert workspace.is_consistent()
    workspace.be_owner()
    if use not in ("indexing", "administration"):  # these may remove the index
        assert workspace.cli("search", "nlps", "group", "--json").code == 0


def test_readers_and_builders_do_not_see_judgments(workspace: Workspace) -> None:
    workspace.add_judgment()
    for use in ("reading", "indexing"):
        workspace.use_role(printed_roles(workspace)[f"{workspace.prefix}-{use}"])
        result = workspace.cli("judgments", "sync")
        assert result.code == 3
        assert f"on {workspace.prefix}-judgments" in result.stderr


def test_without_security_every_user_has_all_rights(server: Cli) -> None:
    checks = {check["name"]: check["finding"] for check in server("doctor", "--json").json["checks"]}
    assert checks["rights"] == "security is disabled on the server: every user has all rights"


def test_the_documentation_lists_the_roles() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").split("## Rights")[1].split("\n## ")[0]
    for role in ROLES:
        body = json.dumps(role.body("searchapp"))
        row = next(line for line in section.splitlines() if line.startswith(f"| `searchapp-{role.name}` |"))
        for privileges in (role.cluster, *role.indices.values()):
            assert all(f"`{privilege}`" in row for privilege in privileges), body


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
def test_the_missing_right_is_read_from_the_error_of_the_server(detail: str, sentence: str | None) -> None:
    assert missing_right(detail) == sentence
