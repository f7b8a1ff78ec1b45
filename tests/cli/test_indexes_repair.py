from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import SAMPLE, Cli
from tests.engines.conftest import spoil
from tests.server.rest import Server


@pytest.fixture
def split(indexed_server: Cli, elasticsearch_url: str, index_prefix: str) -> Cli:
    """The sample of nlps is indexed, and its alias on a second version as well."""
    server, alias = Server(elasticsearch_url), f"{index_prefix}-nlps"
    (serving,) = server.request("GET", f"/_alias/{alias}").json()
    described = server.request("GET", f"/{serving}").json()[serving]
    kept = {name: described["settings"]["index"][name] for name in ("analysis", "similarity")}
    body: dict[str, Any] = {"mappings": described["mappings"], "settings": kept, "aliases": {alias: {}}}
    assert server.request("PUT", f"/{alias}-000009-0123abcd", body, timeout=60).status == 200
    return indexed_server


def test_an_ambiguous_alias_is_refused_until_repaired(split: Cli, index_prefix: str) -> None:
    (sound,) = (
        one["version"]
        for one in split("indexes", "list", "--json").json["indexes"]
        if "-000001-" in one["version"]
    )
    for command in (("search", "nlps", "group"), ("index", "nlps", "--data", SAMPLE, "--rebuild")):
        result = split(*command)
        assert result.code == 3 and "`searchapp indexes repair nlps`" in result.stderr
    repaired = split("indexes", "repair", "nlps", "--json")
    assert repaired.code == 0
    (one,) = repaired.json["indexes"]
    # The newest is empty, which is not what it says it was built from.
    assert one == {
        "name": "nlps",
        "serving": sound,
        "removed": [f"{index_prefix}-nlps-000009-0123abcd"],
        "problem": None,
    }
    assert split("search", "nlps", "group").code == 0
    assert split("indexes", "repair").stdout == f"nlps: {sound} serves\n"


def test_irreparable_indexes_are_errors(
    indexed_server: Cli, elasticsearch_url: str, index_prefix: str
) -> None:
    spoil(elasticsearch_url, f"{index_prefix}-nlps")
    result = indexed_server("indexes", "repair")
    assert result.code == 3 and "searchapp index nlps --rebuild" in result.stderr


def test_there_is_nothing_to_repair(server: Cli) -> None:
    result = server("indexes", "repair")
    assert result.code == 0 and "has no index yet" in result.stderr


def test_the_embedded_engine_needs_no_repair(offline: Cli) -> None:
    result = offline("indexes", "repair")
    assert result.code == 2 and "--url" in result.stderr
