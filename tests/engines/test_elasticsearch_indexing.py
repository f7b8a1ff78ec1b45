"""Indexes of Elasticsearch: versions, aliases, replacement and failed builds."""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine, locks
from searchapp.errors import EngineRefused, Replaced
from searchapp.model import Document
from tests.engines.conftest import GROUPS, MAPPING, indexes, match, spec_of
from tests.server.node import Node


def rest(url: str, method: str, path: str, body: object = None) -> Any:
    """Send a request to the server and return the JSON of a successful response."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{url}/{path}", data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_a_built_index_is_live_behind_its_alias(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    info = engine.build("groups", spec_of(GROUPS), GROUPS)
    assert info == engine.index_info("groups")
    assert (info.documents, info.shards) == (4, 1)
    assert re.fullmatch(f"{index_prefix}-groups-000001-[0-9a-f]{{8}}", info.version)
    assert indexes(elasticsearch_url, index_prefix) == {info.version: [f"{index_prefix}-groups"]}


def test_a_missing_index_has_no_info_and_can_not_be_opened(engine: ElasticsearchEngine) -> None:
    assert engine.index_info("groups") is None
    with pytest.raises(EngineRefused, match="create it with `searchapp index groups`"):
        engine.open("groups")


def test_a_new_version_replaces_the_old_one(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    more = [*GROUPS, Document("4", "The order of a subgroup divides the order of the group.")]
    info = engine.build("groups", spec_of(more), more)
    assert indexes(elasticsearch_url, index_prefix) == {info.version: [f"{index_prefix}-groups"]}
    assert info.documents == 5 and "-000002-" in info.version


def test_a_search_during_a_rebuild_sees_one_complete_version(engine: ElasticsearchEngine) -> None:
    """A reader sees 4 or 40 documents, and no other number, while the index is rebuilt with each of them."""
    large = [Document(str(number), f"Every group {number}.") for number in range(40)]
    engine.build("groups", spec_of(GROUPS), GROUPS)
    counts, stop, failures = set(), threading.Event(), []

    def read() -> None:
        body = {**match("x", 100), "query": {"match_all": {}}}
        try:
            while not stop.is_set():
                with suppress(Replaced):  # the version was removed after it was opened
                    counts.add(len(engine.open("groups").find(body)))
        except Exception as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for round_ in range(6):
        documents = large if round_ % 2 == 0 else GROUPS
        engine.build("groups", spec_of(documents), documents)
    stop.set()
    reader.join(30)
    assert not failures
    assert counts <= {4, 40} and counts


def test_a_handle_on_a_replaced_version_never_mixes_it_with_the_new_one(engine: ElasticsearchEngine) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    index = engine.open("groups")
    engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2])
    searches: list[Callable[[], object]] = [
        lambda: list(index.search([match("group")])),
        lambda: index.find(match("group")),
        lambda: index.frequencies({"text": ["group"]}),
        lambda: index.analyze("group", field="text"),
    ]
    for search in searches:
        with pytest.raises(
            Replaced, match="replaced by a newer version during the search: run the command again"
        ):
            search()
    assert index.info.documents == 4
    assert len(engine.open("groups").find(match("group"))) == 2


@pytest.mark.parametrize("owner", ["index", "alias"])
def test_a_foreign_index_or_alias_is_rejected_and_not_changed(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, owner: str
) -> None:
    alias = f"{index_prefix}-groups"
    name = alias if owner == "index" else f"{index_prefix}-others"
    rest(elasticsearch_url, "PUT", name, {"aliases": {alias: {}}} if owner == "alias" else {})
    before = indexes(elasticsearch_url, index_prefix)
    with pytest.raises(EngineRefused, match="that searchapp did not make"):
        engine.build("groups", spec_of(GROUPS), GROUPS)
    assert indexes(elasticsearch_url, index_prefix) == before or owner == "index"
    assert rest(elasticsearch_url, "GET", f"{name}/_count")["count"] == 0


def test_a_foreign_index_with_the_name_of_a_version_is_not_removed(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    foreign = f"{index_prefix}-groups-000001-0123abcd"
    rest(elasticsearch_url, "PUT", foreign, {})
    info = engine.build("groups", spec_of(GROUPS), GROUPS)
    assert "-groups-000002-" in info.version
    assert foreign in indexes(elasticsearch_url, index_prefix)


def test_an_index_that_is_built_after_a_removal_has_another_name(engine: ElasticsearchEngine) -> None:
    before = engine.build("groups", spec_of(GROUPS), GROUPS)
    engine.remove("groups")
    assert engine.build("groups", spec_of(GROUPS), GROUPS).version != before.version


def test_a_failed_build_leaves_only_the_old_version(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    before = indexes(elasticsearch_url, index_prefix)

    def fail_after_1() -> Iterator[Document]:
        yield GROUPS[0]
        raise RuntimeError("the disk failed")

    with pytest.raises(RuntimeError):
        engine.build("groups", spec_of(GROUPS), fail_after_1())
    assert indexes(elasticsearch_url, index_prefix) == before


def test_a_document_that_the_mapping_rejects_is_named(engine: ElasticsearchEngine) -> None:
    documents = [*GROUPS, Document("99", "x", {"colour": "red"})]
    with pytest.raises(EngineRefused, match=r"refused the document 99: .*colour.*nothing was changed"):
        engine.build("groups", spec_of(documents), documents)
    assert engine.index_info("groups") is None


def test_the_error_for_a_rejected_mapping_gives_the_reason(engine: ElasticsearchEngine) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["text"]["analyzer"] = "klingon"
    with pytest.raises(EngineRefused, match=r"refused to create the index .* from its mapping: .*klingon"):
        engine.build("groups", spec_of(GROUPS, mapping), GROUPS)


def test_a_wrong_number_of_documents_is_detected(engine: ElasticsearchEngine) -> None:
    twice = [*GROUPS, GROUPS[0]]
    with pytest.raises(EngineRefused, match="has 4 documents instead of 5"):
        engine.build("groups", spec_of(twice), twice)


def test_a_read_only_cluster_is_reported(secured_node: Node, settings_for: Callable[..., Settings]) -> None:
    """The test uses a node of its own, because the block affects the whole cluster."""
    settings = settings_for(
        secured_node.url,
        username=secured_node.username,
        password=secured_node.password,
        ca_certs=secured_node.ca_certs,
    )

    def block(value: bool | None) -> None:
        setting = {"persistent": {"cluster.blocks.read_only": value}}
        assert secured_node.server.request("PUT", "/_cluster/settings", setting).status == 200

    with closing(ElasticsearchEngine.connect(settings)) as engine:
        block(True)
        try:
            with pytest.raises(EngineRefused, match="read-only"):
                engine.build("groups", spec_of(GROUPS), GROUPS)
        finally:
            block(None)


def test_a_read_only_old_version_stays_live(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    """On a full disk the server makes indexes read-only, so that the swap can't remove the old version."""
    old = engine.build("groups", spec_of(GROUPS), GROUPS)
    rest(elasticsearch_url, "PUT", f"{old.version}/_settings", {"index.blocks.read_only": True})
    try:
        with pytest.raises(EngineRefused, match="read-only"):
            engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2])
        assert engine.index_info("groups") == old
        assert len(engine.open("groups").find(match("group"))) == 2
    finally:
        rest(elasticsearch_url, "PUT", f"{old.version}/_settings", {"index.blocks.read_only": None})
    assert list(indexes(elasticsearch_url, index_prefix)) == [old.version]


SLOW_BUILD = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from searchapp.engines.elasticsearch import ElasticsearchEngine, indexing
    from searchapp.config.settings import Settings
    from tests.engines.conftest import GROUPS, spec_of

    indexing.BATCH_DOCUMENTS = 1
    engine = ElasticsearchEngine.connect(Settings(home=Path("."), url=sys.argv[1], index_prefix=sys.argv[2]))

    def slowly():
        for document in GROUPS:
            yield document
            print("sent", flush=True)
            time.sleep(0.3)

    engine.build("groups", spec_of(GROUPS[:1]), slowly())
    """
)


@pytest.fixture
def building_process(elasticsearch_url: str, index_prefix: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that is building a new version."""
    command = [sys.executable, "-c", SLOW_BUILD, elasticsearch_url, index_prefix]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sent\n"
        yield process
        if process.poll() is None:
            process.kill()


def test_a_killed_build_leaves_the_old_version_live_and_the_next_removes_leftovers(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    index_prefix: str,
    request: pytest.FixtureRequest,
) -> None:
    old = engine.build("groups", spec_of(GROUPS), GROUPS)
    process = request.getfixturevalue("building_process")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    ((leftover, (alias,)),) = (
        entry for entry in indexes(elasticsearch_url, index_prefix).items() if entry[0] != old.version
    )
    assert alias.startswith(f"{leftover}-building-")
    assert engine.index_info("groups") == old
    assert len(engine.open("groups").find(match("group"))) == 2

    new = engine.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
    assert indexes(elasticsearch_url, index_prefix) == {new.version: [f"{index_prefix}-groups"]}


def test_a_build_that_can_not_wait_names_the_building_process(
    engine: ElasticsearchEngine, building_process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.0)
    with pytest.raises(
        EngineRefused,
        match=rf"process {building_process.pid} on .* is building .*: wait until it is done",
    ):
        engine.build("groups", spec_of(GROUPS), GROUPS)


def test_a_version_that_is_deleted_during_its_build_is_not_created_again(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from searchapp.engines.elasticsearch import indexing

    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 1)

    def delete_version() -> Iterator[Document]:
        for number, document in enumerate(GROUPS):
            if number == 2:
                (version,) = indexes(elasticsearch_url, index_prefix)
                rest(elasticsearch_url, "DELETE", version)
            yield document

    with pytest.raises(EngineRefused):
        engine.build("groups", spec_of(GROUPS), delete_version())
    assert indexes(elasticsearch_url, index_prefix) == {}


def test_an_index_with_edited_metadata_is_foreign(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    name = f"{index_prefix}-groups-000001-0123abcd"
    meta = {"_meta": {"searchapp": {"alias": f"{index_prefix}-groups"}}}
    rest(elasticsearch_url, "PUT", name, {"mappings": meta, "aliases": {f"{index_prefix}-groups": {}}})
    with pytest.raises(EngineRefused, match="that searchapp did not make"):
        engine.index_info("groups")


def test_the_number_of_indexed_documents_is_reported(engine: ElasticsearchEngine) -> None:
    progress: list[int] = []
    engine.build("groups", spec_of(GROUPS), GROUPS, progress.append)
    assert sum(progress) == len(GROUPS)


def test_engines_with_other_prefixes_have_separate_indexes(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    settings_for: Callable[..., Settings],
    index_prefix: str,
) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    settings = settings_for(elasticsearch_url)
    second = ElasticsearchEngine.connect(
        Settings(home=settings.home, url=settings.url, index_prefix=f"{index_prefix}-groups")
    )
    try:
        second.build("more", spec_of(GROUPS[:1]), GROUPS[:1])
        info = engine.build("groups", spec_of(GROUPS[:2]), GROUPS[:2])
        assert second.open("more").info.documents == 1
        assert info.documents == 2
    finally:
        second.close()
