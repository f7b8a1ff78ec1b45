"""Indexes of other programs on a real server: searched, ranked and judged without writing to them."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from searchapp import tasks
from searchapp.app.index import open_index
from searchapp.app.inspection import pages as pages_module
from searchapp.app.inspection.pages import LocalFirst, RunPages
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.foreign import PointInTimeIndex, values_at
from searchapp.errors import DataError, EngineRefused, Replaced
from searchapp.progress import SilentProgress
from searchapp.ranking.paging import WINDOW, hits_in_windows
from tests.cli.conftest import Result, read_rankings, run_command
from tests.server.node import Node
from tests.server.rest import Server

BOOKS: dict[str, Any] = {
    "settings": {"number_of_replicas": 0, "analysis": {"analyzer": {"words": {"tokenizer": "letter"}}}},
    "mappings": {
        "properties": {
            "isbn": {"type": "keyword"},
            "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
            "body": {"type": "text", "analyzer": "english"},
            "year": {"type": "integer"},
            "published": {"type": "date", "format": "yyyy/MM/dd||epoch_millis"},
            "author": {"properties": {"name": {"type": "text"}}},
            "reviews": {"type": "nested", "properties": {"stars": {"type": "byte"}}},
        }
    },
}

# A body as a search page of another application sends it.
PASTED = {
    "from": 0,
    "size": 10,
    "query": {
        "bool": {
            "must": {"multi_match": {"query": "{{query}}", "fields": ["title^2", "body"]}},
            "filter": {"nested": {"path": "reviews", "query": {"range": {"reviews.stars": {"gte": 3}}}}},
        }
    },
    "aggs": {"years": {"terms": {"field": "year"}}},
}


def book(number: int) -> dict[str, Any]:
    return {
        "isbn": f"isbn-{number:02}",
        "title": f"Groups, part {number % 3}",
        "body": "The theory of " + "normal subgroups and " * (1 + number % 4) + "rings.",
        "year": 1990 + number,
        "published": f"{1990 + number}/05/06" if number % 5 else 5,
        "author": {"name": f"Author {number}"},
        "reviews": [{"stars": number % 5}, {"stars": 1}],
    }


@dataclass(frozen=True)
class Library:
    """Two indexes with one alias, on one and on three shards."""

    server: Server
    alias: str
    folder: Path

    def command(self, *arguments: object, environment: dict[str, str] | None = None) -> Result:
        given = environment or {"SEARCHAPP_URL": self.server.url}
        return run_command(*arguments, environment={"SEARCHAPP_HOME": str(self.folder / "home"), **given})

    def task(self, *, id_: str | None = "isbn", name: str = "books") -> Path:
        """Write the task as `tasks new` does, with topics, gold, the recipe `pasted`, and an id field."""
        path = self.folder / f"{name}.toml"
        (self.folder / "topics.tsv").write_text("id\ttext\nt1\tnormal subgroups\nt2\tpart 2\n")
        relevant = ("isbn-03", "isbn-05") if id_ else ("3", "5")
        (self.folder / "gold.qrels").write_text(f"t1 0 {relevant[0]} 1\nt2 0 {relevant[1]} 1\n")
        made = self.command(
            "tasks", "new", path, "--from-index", self.alias, "--topics", self.folder / "topics.tsv", "--header",
            "--gold", self.folder / "gold.qrels",
        )  # fmt: skip
        assert made.code == 0, made.stderr
        text = path.read_text()
        if id_:
            text = text.replace('# id = "sku"', f'id = "{id_}"')
        (self.folder / "pasted.json").write_text(json.dumps(PASTED))
        path.write_text(f'{text}\n[recipes.pasted]\ntemplate = "pasted.json"\n')
        return path

    def add(self, number: int, index: str = "a", id_: str | None = None, **changes: Any) -> None:
        path = f"/{self.alias}-{index}/_doc/{id_ or number}?refresh=true"
        assert self.server.request("PUT", path, {**book(number), **changes}).status in (200, 201)

    def state(self) -> object:
        """Return the totals of all writes, sequence numbers, mappings and names, as an administrator sees them."""
        stats = self.server.request("GET", f"/{self.alias}-*/_stats/indexing,docs?level=shards").json()
        described = self.server.request("GET", "/*").json()
        shards = [
            (name, copy["indexing"]["index_total"], copy["seq_no"]["max_seq_no"], copy["docs"])
            for name, index in sorted(stats["indices"].items())
            for shard in index["shards"].values()
            for copy in shard
        ]
        return (
            shards,
            sorted(described),
            [described[name] for name in described if name.startswith(self.alias)],
        )


def make_library(server: Server, folder: Path) -> Library:
    library = Library(server, f"books-{secrets.token_hex(4)}", folder)
    for suffix, shards in (("a", 1), ("b", 3)):
        name = f"{library.alias}-{suffix}"
        settings = {**BOOKS["settings"], "number_of_shards": shards}
        body = {**BOOKS, "settings": settings, "aliases": {library.alias: {}}}
        assert server.request("PUT", f"/{name}", body, timeout=60).status == 200
    lines = b""
    for number in range(24):
        action = {"index": {"_index": f"{library.alias}-{'ab'[number % 2]}", "_id": str(number)}}
        lines += json.dumps(action).encode() + b"\n" + json.dumps(book(number)).encode() + b"\n"
    answer = server.request("POST", "/_bulk?refresh=true", lines, timeout=60).json()
    assert not answer["errors"]
    return library


@pytest.fixture
def library(elasticsearch_url: str, tmp_path: Path) -> Iterator[Library]:
    made = make_library(Server(elasticsearch_url), tmp_path)
    yield made
    made.server.delete_indices(made.alias)


@pytest.fixture
def engine_of(settings_for: Callable[..., Settings]) -> Iterator[Callable[[Library], ElasticsearchEngine]]:
    engines: list[ElasticsearchEngine] = []

    def connect(library: Library) -> ElasticsearchEngine:
        engines.append(ElasticsearchEngine.connect(settings_for(library.server.url)))
        return engines[-1]

    yield connect
    for engine in engines:
        engine.close()


def test_a_reading_key_suffices_and_nothing_is_written(secured_node: Node, tmp_path: Path) -> None:
    server = secured_node.server
    library = make_library(server, tmp_path)
    reading = {"names": [f"{library.alias}*"], "privileges": ["read", "view_index_metadata"]}

    def environment(*indices: dict[str, Any]) -> dict[str, str]:
        role = {"reader": {"cluster": [], "indices": list(indices)}}
        key = server.request(
            "POST", "/_security/api_key", {"name": "reader", "role_descriptors": role}
        ).json()
        return {
            "SEARCHAPP_URL": secured_node.url,
            "SEARCHAPP_API_KEY": key["encoded"],
            "SEARCHAPP_CA_CERTS": str(secured_node.ca_certs),
        }

    before, key = library.state(), environment(reading)
    object.__setattr__(
        library, "command", lambda *arguments: Library.command(library, *arguments, environment=key)
    )
    task = library.task()
    runs = [tmp_path / "bm25", tmp_path / "pasted"]
    commands: list[tuple[object, ...]] = [
        ("index", task),
        ("search", task, '"normal subgroups" +rings', "--size", 3, "--explain"),
        ("search", task, "rings", "--recipe", "pasted"),
        ("search", task, "--document", "isbn-03", "rings"),
        *(("rank", task, "--split", "dev", "--recipe", run.name, "--out", run) for run in runs),
        ("runs", "verify", runs[0]),
        ("evaluate", *runs),
        ("compare", *runs),
        ("judgments", "pool", *runs, "--depth", 5, "--out", tmp_path / "pool"),
        ("report", *runs, "--out", tmp_path / "report.html"),
        ("explain", task, "isbn-03", "--topic", "t1"),
        ("analyze", task, "normal subgroups", "--field", "body"),
        ("tasks", "show", task),
    ]
    for command in commands:
        result = library.command(*command)
        assert result.code == 0, (command, result.stderr)
    assert set(read_rankings(runs[0])["t1"]) == {f"isbn-{number:02}" for number in range(24)}
    judged = library.command("judge", task, "--run", runs[0], "--annotator", "ann", "--topic", "t1")
    assert judged.code != 0  # without a terminal
    assert library.state() == before

    for missing in reading["privileges"]:
        rest = {**reading, "privileges": [name for name in reading["privileges"] if name != missing]}
        refused = Library.command(library, "search", task, "rings", environment=environment(rest))
        assert refused.code == 3
        assert f"`{missing}`" in refused.stderr
    server.delete_indices(library.alias)


@pytest.mark.parametrize("id_", ["isbn", None])
def test_hits_have_ids_texts_fields_and_marks(
    library: Library, engine_of: Callable[[Library], ElasticsearchEngine], id_: str | None
) -> None:
    task = tasks.load(str(library.task(id_=id_)))
    with closing(TaskSearcher.open(task, engine_of(library), SilentProgress(), library.folder)) as searcher:
        (first, *_others) = searcher.search(SearchRequest('"part 2" author'))
        number = int(first.hit.document_id.removeprefix("isbn-"))
        assert first.text == f"{book(number)['title']}\n{book(number)['body']}"
        assert [first.text[start:end] for start, end in first.matches] == ["part", "2"]
        assert first.source["reviews"] == book(number)["reviews"]
        assert first.source["author"] == book(number)["author"]
        assert searcher.matches(SearchRequest("part"), first.hit.document_id)
        explained = searcher.explain(SearchRequest('"part 2" author'), first.hit.document_id)
        assert explained is not None
        assert explained.value == pytest.approx(first.hit.score)
        assert searcher.counts(SearchRequest("part")).total == 24
        similar = searcher.search(SearchRequest(first.text, like=first.hit.document_id, literal=True))
        assert first.hit.document_id not in {hit.hit.document_id for hit in similar}
        assert searcher.document("no such id", SearchRequest("")) is None


@pytest.mark.parametrize("id_", ["isbn", None])
def test_pages_continue_after_the_last_hit_and_equal_scores_have_an_order(
    library: Library,
    engine_of: Callable[[Library], ElasticsearchEngine],
    id_: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("searchapp.ranking.paging.WINDOW", 5)
    assert WINDOW > 5
    task = tasks.load(str(library.task(id_=id_)))
    index = open_index(task, engine_of(library))
    body = {"query": {"match_all": {}}, "sort": [{"_score": "desc"}, {"id": "asc"}]}
    pages = list(hits_in_windows(index, body))
    ids = [hit.document_id for page in pages for hit in page]
    assert len(pages) == 5
    assert len({*ids}) == 24
    if id_:
        assert ids == sorted(ids)
    assert [document.id for document in index.stored_documents()] == ids
    documents = {document.id: document for document in index.stored_documents()}
    assert documents[ids[0]].fields["year"] == book(int(ids[0].removeprefix("isbn-")))["year"]


def test_a_run_says_that_ties_cannot_be_reproduced(library: Library) -> None:
    for id_, name in ((None, "by-position"), ("isbn", "by-id")):
        task, out = library.task(id_=id_, name=name), library.folder / name
        ranked = library.command("rank", task, "--split", "dev", "--out", out)
        verified = library.command("runs", "verify", out)
        assert (ranked.code, verified.code) == (0, 0)
        manifest = json.loads((out / "run.json").read_text())
        assert manifest["engine"].get("ties") == (None if id_ else "by shard and position")
        for result in (ranked, verified):
            assert ("can't be reproduced" in result.stderr) == (id_ is None)
        texts = json.loads((out / "documents.json").read_text())
        assert len(texts) == 24


def test_changes_are_seen_by_searches_and_by_judging(
    library: Library, engine_of: Callable[[Library], ElasticsearchEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = library.task()
    task, engine = tasks.load(str(path)), engine_of(library)
    searcher = TaskSearcher.open(task, engine, SilentProgress(), library.folder)
    searcher.require_serving()
    run = library.folder / "run"
    assert library.command("rank", path, "--split", "dev", "--out", run).code == 0
    settings = Settings(home=library.folder / "home", url=library.server.url, engine="elasticsearch")
    with closing(LocalFirst(settings, SilentProgress(), pytest.fail, copy=True)) as documents:
        pages = RunPages.open(task, documents, run)
        assert pages.notes == ()
        pages.page("t1", "isbn-02")
        monkeypatch.setattr(pages_module, "CHECK_SECONDS", 0.0)
        pages.page("t1", "isbn-00")
        assert pages.news == []

        library.add(2, "a", title="Another title")
        with pytest.raises(Replaced):
            searcher.require_serving()
        (hit, *_others) = searcher.search(SearchRequest("+isbn:isbn-02"))
        assert hit.source["text"].startswith("Groups")  # of one point in time
        assert pages.page("t1", "isbn-02").text.startswith("Another title") or pages.page("t1", "isbn-04")
        (news,) = pages.news
        assert news == (
            f"{library.alias} was changed by another program: documents now come from its present 24 documents"
        )
        assert pages.page("t1", "isbn-02").text.startswith("Another title")
        assert "changed since the run was ranked" in RunPages.open(task, documents, run).notes[0]
    searcher.close()


def test_a_removed_document_and_a_removed_index_are_changes(
    library: Library, engine_of: Callable[[Library], ElasticsearchEngine]
) -> None:
    task, engine = tasks.load(str(library.task())), engine_of(library)
    searcher = TaskSearcher.open(task, engine, SilentProgress(), library.folder)
    library.server.request("DELETE", f"/{library.alias}-a/_doc/4?refresh=true")
    with pytest.raises(Replaced):
        searcher.require_serving()
    newer = TaskSearcher.open(task, engine, SilentProgress(), library.folder)
    library.server.request("DELETE", f"/{library.alias}-b")
    with pytest.raises(Replaced):
        newer.require_serving()


def test_a_forgotten_point_in_time_is_a_replaced_version(
    library: Library, engine_of: Callable[[Library], ElasticsearchEngine]
) -> None:
    index = open_index(tasks.load(str(library.task())), engine_of(library))
    assert isinstance(index, PointInTimeIndex)
    twin = index.twin()
    twin.close()
    body = {"query": {"match": {"body": "rings"}}, "size": 3, "sort": [{"_score": "desc"}, {"id": "asc"}]}
    (hits,) = index.search([body])
    assert len(hits) == 3
    index.close()
    for request in (lambda: list(twin.search([body])), lambda: twin.find(body)):
        with pytest.raises(Replaced):
            request()


def test_unusable_ids_are_reported(
    library: Library, engine_of: Callable[[Library], ElasticsearchEngine]
) -> None:
    body = {"query": {"match_all": {}}, "size": 50, "sort": [{"_score": "desc"}, {"id": "asc"}]}
    task = tasks.load(str(library.task()))
    for changes, problem in (
        ({"isbn": "isbn-05"}, "several documents .* have the id isbn-05 in the field isbn"),
        ({"isbn": None}, "has no id in the field isbn"),
        ({"isbn": "a b\x1b"}, "unusable id"),
    ):
        library.add(30, "b", id_="x", **changes)
        with pytest.raises(DataError, match=problem):
            list(open_index(task, engine_of(library)).search([body]))


def test_a_changed_mapping_is_reported_but_not_a_new_field(
    library: Library, engine_of: Callable[[Library], ElasticsearchEngine]
) -> None:
    path = library.task()
    library.add(40, "a", publisher="a field of its own")
    open_index(tasks.load(str(path)), engine_of(library))
    mapping = path.with_suffix(".mapping.json")
    mapping.write_text(mapping.read_text().replace('"english"', '"standard"'))
    with pytest.raises(EngineRefused, match=r"mappings.properties.body.analyzer of .* has changed"):
        open_index(tasks.load(str(path)), engine_of(library))
    missing = library.command("tasks", "new", library.folder / "x.toml", "--from-index", "no-such-*")
    assert missing.code == 3
    assert "has no index, alias or pattern no-such-*" in missing.stderr


def test_indexes_with_different_definitions_of_a_field_are_rejected(library: Library) -> None:
    properties = {"body": {"type": "text", "analyzer": "standard"}, "pages": {"type": "integer"}}
    body = {
        "settings": BOOKS["settings"],
        "mappings": {"properties": properties},
        "aliases": {library.alias: {}},
    }
    assert library.server.request("PUT", f"/{library.alias}-c", body, timeout=60).status == 200
    result = library.command("tasks", "new", library.folder / "x.toml", "--from-index", library.alias)
    assert result.code == 3
    assert f"{library.alias}-c and other indexes of {library.alias} differ in the field body" in result.stderr
    listed = f"{library.alias}-a,{library.alias}-b"
    assert library.command("tasks", "new", library.folder / "x.toml", "--from-index", listed).code == 0


def test_commands_that_read_files_reject_the_task(library: Library) -> None:
    task, run = library.task(), library.folder / "run.trec"
    run.write_text("t1 Q0 isbn-03 1 2.0 x\n")
    for command in (
        ("runs", "import", run, "--task", task, "--split", "dev", "--out", library.folder / "imported"),
        ("tasks", "export", task, "--format", "beir", "--out", library.folder / "exported"),
    ):
        result = library.command(*command)
        assert result.code == 4, (command, result.stderr)
        assert f"are in the index {library.alias} of another program" in result.stderr
    refused = library.command("index", task, "--shards", 2)
    assert refused.code == 2
    assert "builds no index on a server" in refused.stderr
    assert library.command("validate", run, "--task", task, "--split", "dev").code == 0


def test_the_embedded_engine_searches_a_copy_alike(library: Library) -> None:
    flat = f"{library.alias}-flat"
    names = ("isbn", "title", "body", "year", "published", "reviews")
    properties = {name: BOOKS["mappings"]["properties"][name] for name in names}
    library.server.request("PUT", f"/{flat}", {"mappings": {"properties": properties}})
    for number in range(12):
        source = {name: value for name, value in book(number).items() if name in properties}
        library.server.request("PUT", f"/{flat}/_doc/{number}", source)
    library.server.request("POST", f"/{flat}/_refresh")
    path = Library(library.server, flat, library.folder).task(name="flat")
    since = {"range": {"published": {"gte": "1993/05/06||/y", "lt": "now/d", "time_zone": "+01:00"}}}
    stars = {"range": {"reviews.stars": {"gte": 3}}}
    reviewed = {
        "nested": {"path": "reviews", "query": {"bool": {"should": [stars, {"term": {"reviews.stars": 4}}]}}}
    }
    dated = {"bool": {"must": {"match": {"body": "{{topic.text}}"}}, "should": [since, reviewed]}}
    order = [{"_score": "desc"}, {"id": "asc"}]
    (library.folder / "dated.json").write_text(json.dumps({"query": dated, "sort": order}))
    path.write_text(f'{path.read_text()}\n[recipes.dated]\ntemplate = "dated.json"\n')
    here = {"SEARCHAPP_URL": "", "SEARCHAPP_ENGINE": "embedded"}
    refused = library.command("search", path, "rings", environment=here)
    assert refused.code == 3
    assert "is on an Elasticsearch server: give its address with --url" in refused.stderr
    copied = library.command("index", path, "--copy")
    assert copied.code == 0, copied.stderr
    assert "indexed 12 documents" in copied.stderr
    for recipe in ("bm25", "dated"):
        outs = [library.folder / f"{recipe}-{engine}" for engine in ("there", "here")]
        for out, environment in zip(outs, (None, here), strict=True):
            ranked = library.command(
                "rank", path, "--split", "dev", "--recipe", recipe, "--out", out, environment=environment
            )
            assert ranked.code == 0, ranked.stderr
        for name in ("run.trec", "documents.json"):
            assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes()
    assert library.command("runs", "verify", library.folder / "bm25-here").code == 0
    again = library.command("index", path, "--copy")
    assert "nothing has changed" in again.stderr
    (library.folder / "other").mkdir()
    other = Library(library.server, flat, library.folder / "other").task(name="flat")
    owned = library.command("index", other, "--copy")
    assert owned.code == 2
    assert "was made for the task" in owned.stderr
    assert library.command("index", other, "--copy", "--rebuild").code == 0
    assert library.command("index", library.task(name="nested"), "--copy").code == 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('fields = { year = "title" }', "can't be copied with the field year: choose a name"),
        ('fields = ["author.name"]', "can't be copied with the field author.name: choose a name"),
        ('text = ["body"]', ""),
        ('id = "title.raw"', "two documents have the id Groups-0"),
    ],
)
def test_a_copy_has_each_field_and_each_id_once(library: Library, line: str, problem: str) -> None:
    flat = f"{library.alias}-flat"
    properties = {name: BOOKS["mappings"]["properties"][name] for name in ("isbn", "title", "body", "year")}
    library.server.request("PUT", f"/{flat}", {"mappings": {"properties": properties}})
    for number in range(4):
        source = {name: book(number)[name] for name in properties} | {"title": f"Groups-{number % 3}"}
        library.server.request("PUT", f"/{flat}/_doc/{number}?refresh=true", source)
    path = Library(library.server, flat, library.folder).task(name="flat")
    key = line.partition(" ")[0]
    text, changed = re.subn(f"(?m)^{key} = .*$", lambda _: line, path.read_text(), count=1)
    assert changed
    path.write_text(text)
    copied = library.command("index", path, "--copy")
    assert (copied.code == 0) == (not problem), copied.stderr
    assert re.search(problem, copied.stderr)


def test_values_at_a_path() -> None:
    assert list(values_at({"a": [{"b": 1}, {"b": None}, {"c": 2}], "a.b": [3]}, "a.b")) == [1, 3]
