"""The rights that docs/engines.md lists are enough, and none of them is too much: real keys on a secured server."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.engines import open_judgments
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.errors import EngineRefused
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.shared import synchronize
from searchapp.settings import Settings
from tests.engines.conftest import GROUPS, match, spec_of
from tests.server.node import Node

DOCUMENT = Path(__file__).parents[2] / "docs" / "engines.md"
Rights = dict[str, list[str]]
"""Privileges by the pattern of the names of indexes that they hold for."""


def documented() -> dict[str, Rights]:
    """The rights that each row of the table in the document lists, by what they are for."""
    section = DOCUMENT.read_text(encoding="utf-8").split("### Rights")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {
        purpose.strip(): {
            "*": re.findall(r"`(\w+)`", everywhere),
            "judgments*": re.findall(r"`(\w+)`", judgments),
        }
        for purpose, everywhere, judgments in rows
    }


class Lab:
    """A prefix on the secured server, and people with keys for it."""

    def __init__(self, node: Node, home: Path, prefix: str) -> None:
        self.node = node
        self.home = home
        self.prefix = prefix

    def owner(self) -> Settings:
        return self._settings(username=self.node.username, password=self.node.password)

    def with_rights(self, rights: Rights) -> Settings:
        """Somebody whose key has these rights and no others."""
        indices = [
            {"names": [f"{self.prefix}-{pattern}"], "privileges": privileges}
            for pattern, privileges in rights.items()
            if privileges
        ]
        role = {"cluster": [], "indices": indices}
        body = {"name": f"{self.prefix}-{secrets.token_hex(4)}", "role_descriptors": {"role": role}}
        answer = self.node.server.request("POST", "/_security/api_key", body).json()
        return self._settings(api_key=answer["encoded"])

    def _settings(self, **values: str | None) -> Settings:
        return Settings(
            home=self.home,
            engine="elasticsearch",
            url=self.node.url,
            ca_certs=self.node.ca_certs,
            index_prefix=self.prefix,
            **values,  # type: ignore[arg-type]
        )


@pytest.fixture
def lab(secured_node: Node, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(secured_node, tmp_path, f"lab-{secrets.token_hex(4)}")
    with closing(ElasticsearchEngine.connect(lab.owner())) as engine:
        engine.build("groups", spec_of(GROUPS), GROUPS)
    judge(lab.owner())
    yield lab
    secured_node.server.delete_indices(lab.prefix)


def read(settings: Settings) -> None:
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        assert engine.index_info("groups") is not None and engine.index_info("none") is None
        assert engine.flaw("groups") == ""
        index = engine.open("groups")
        assert len(list(index.search([match("group")]))) == 1 and index.find(match("group"))


def analyze(settings: Settings) -> None:
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        assert engine.open("groups").analyze("a group", field="text")


def index(settings: Settings) -> None:
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2])
        engine.build("groups", spec_of(GROUPS), GROUPS)
        engine.build("new", spec_of(GROUPS), GROUPS)
        engine.repair("new")
        engine.stored()
        engine.remove("new")


def judge(settings: Settings) -> None:
    """Exchange a judgment, as `judge --shared` does."""
    name = secrets.token_hex(4)
    with (
        closing(open_judgments(settings, attempts=1)) as shared,
        JudgmentLog(settings.home / f"{name}.sqlite") as log,
    ):
        log.append([Author("ann").event("nlps", "t", name, Action.grade, grade=1)])
        synchronize(log, shared)


PURPOSES: dict[str, Callable[[Settings], None]] = {
    "`search`, `rank`, `judge`": read,
    "`judge --shared`, `judgments sync`, besides": judge,
    "`index`, `rank` with solved topics that are not indexed yet, `doctor`, `indexes repair`": index,
    "`analyze`": analyze,
}


def test_the_document_lists_what_is_tested_here() -> None:
    assert list(documented()) == list(PURPOSES)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_the_documented_rights_are_enough_and_none_is_too_much(lab: Lab, purpose: str) -> None:
    act, rights = PURPOSES[purpose], documented()[purpose]
    act(lab.with_rights(rights))
    for pattern, privileges in rights.items():
        for without in privileges:
            fewer = {**rights, pattern: [one for one in privileges if one != without]}
            if not any(fewer.values()):
                fewer = {"other": ["read"]}
            with pytest.raises(EngineRefused, match=r"does not allow this user to .*ask for a role or key"):
                act(lab.with_rights(fewer))


def test_who_judges_first_needs_the_right_to_make_the_index(lab: Lab) -> None:
    lab.node.server.request("DELETE", f"/{lab.prefix}-judgments-000001")
    rights = documented()["`judge --shared`, `judgments sync`, besides"]
    with pytest.raises(EngineRefused, match="does not allow this user to create the index"):
        judge(lab.with_rights(rights))
    judge(lab.with_rights({**rights, "judgments*": [*rights["judgments*"], "manage"]}))
