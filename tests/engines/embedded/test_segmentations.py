"""An index in segments has the hits and statistics of a fresh index of its live documents."""

from __future__ import annotations

import copy
import json
import logging
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.app.index import build
from searchapp.engines.base import VersionState
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import EngineRefused, Replaced
from searchapp.lucene import analysis
from searchapp.lucene.index import postings, segments, writer
from searchapp.lucene.index.layout import IndexManifest
from searchapp.lucene.index.mapping import Schema
from searchapp.model import Document
from searchapp.progress import SilentProgress
from tests.engines.embedded.conftest import MAPPING, body, spec_of
from tests.engines.embedded.segmented import (
    DOCUMENTS,
    EDITED,
    WORDS,
    edit,
    edits,
    fields,
    hit_details,
    index_documents,
    keep_segments,
    live_folder,
    plan_update,
    record_analyzed,
    require_same_as_fresh,
    texts,
    versions,
)
from tests.engines.embedded.test_damage import DOCUMENTS as LARGER
from tests.engines.embedded.test_damage import HIGHLIGHT, QUERIES
from tests.profile import FULL

SCORED: dict[str, Any] = copy.deepcopy(MAPPING)
SCORED["settings"]["similarity"]["flat"]["k1"] = 2.5

WORD_QUERIES: list[Any] = [
    {"match_all": {}},
    {"exists": {"field": "tag"}},
    {"range": {"year": {"gte": 0, "lte": 2}}},
    *({"match": {"text": word}} for word in WORDS),
    {"bool": {"should": [{"match": {"text": " ".join(WORDS)}}, {"match": {"tag": WORDS[0]}}]}},
    {"bool": {"must": [{"match": {"text": WORDS[0]}}], "must_not": [{"term": {"tag": WORDS[1]}}]}},
    {"match_phrase": {"text": " ".join(WORDS[:2])}},
]


def answers(index: EmbeddedIndex, queries: Sequence[Any], size: int) -> list[Any]:
    """Return rankings in a batch and one by one, hits with details, counts and frequencies, and close the index."""
    with closing(index):
        bodies = [body(query, size) for query in queries]
        return [
            list(index.search(bodies)),
            [list(index.search([request])) for request in bodies],
            [
                [hit_details(hit) for hit in index.find(request | {"explain": True, "highlight": HIGHLIGHT})]
                for request in bodies
            ],
            [index.counts(query, {"tag": 9}) for query in queries],
            index.frequencies({"text": frozenset(WORDS), "tag": frozenset(WORDS)}),
        ]


rounds = st.lists(
    st.tuples(edits, st.sampled_from(["", "", "change back", "none", "first"]), st.integers(0, 4)),
    min_size=1,
    max_size=5,
)


@hypothesis.settings(max_examples=max(10, hypothesis.settings().max_examples // 5), deadline=None)
@given(
    st.lists(st.tuples(texts, fields), min_size=1, max_size=20), rounds, st.booleans(), st.integers(0, 100)
)
def test_every_sequence_of_updates_equals_a_fresh_index(
    first: list[tuple[str, Any]], rounds: list[tuple[Any, str, int]], small_chunks: bool, size: int
) -> None:
    """Documents are added, changed, deleted, restored and merged, also in small chunks."""
    documents = [Document(str(number), text, properties) for number, (text, properties) in enumerate(first)]
    before = list(documents)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as home:
        if small_chunks:
            for module, name, value in (
                (postings, "RUN_TOKENS", 5),
                (postings, "MERGED_TOKENS", 4),
                (segments, "WINDOW", 3),
                (segments, "CHUNK", 2),
                (segments, "BUFFER_BYTES", size),
            ):
                patch.setattr(module, name, value)
        with closing(EmbeddedEngine(Path(home), "test")) as embedded:
            embedded.build("rings", spec_of(documents), documents)
            for round_, (steps, change, limit) in enumerate(rounds):
                if change == "change back":
                    documents = list(before)
                elif change == "none":
                    documents = []
                elif change == "first":
                    documents = documents[:1]
                else:
                    edit(documents, steps, round_)
                keep_segments(patch, limit)
                index_documents(embedded, documents)
                require_same_as_fresh(embedded, documents)
                assert answers(embedded.open("rings"), WORD_QUERIES, 30) == answers(
                    embedded.open("fresh"), WORD_QUERIES, 30
                )


def edit_larger(documents: Sequence[Document], chance: random.Random) -> list[Document]:
    """Insert, change and delete 3 % of the documents each."""
    result = []
    for document in documents:
        share = chance.random()
        source = chance.choice(LARGER)
        if share < 0.03:
            result.append(Document(f"{document.id}-{chance.randrange(999)}", source.text, document.fields))
        elif share < 0.06:
            result.append(Document(document.id, source.text, source.fields))
            continue
        elif share < 0.09:
            continue
        result.append(document)
    return result


@pytest.mark.parametrize("limit", [0, 1, 9])
def test_all_kinds_of_queries_return_the_hits_of_a_fresh_index(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    keep_segments(monkeypatch, limit)
    chance = random.Random(7)
    documents = list(LARGER)
    embedded.build("rings", spec_of(documents), documents)
    for _round in range(12 if FULL else 3):
        documents = edit_larger(documents, chance)
        index_documents(embedded, documents)
        embedded.build("fresh", spec_of(documents), documents)
        assert answers(embedded.open("rings"), QUERIES, 40) == answers(embedded.open("fresh"), QUERIES, 40)
        embedded.build("scored", spec_of(documents, SCORED), documents)
        assert answers(embedded.open_like("rings", SCORED), QUERIES, 40) == answers(
            embedded.open("scored"), QUERIES, 40
        )


@pytest.mark.parametrize("window", [segments.WINDOW, 500])
def test_few_edits_of_many_documents_are_merged(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(segments, "WINDOW", window)
    draw = random.Random(window)

    def text() -> str:
        return " ".join(f"w{int(draw.paretovariate(0.5)) % 900}" for _ in range(draw.randint(0, 20)))

    documents = [Document(str(number), text(), {"year": number % 9}) for number in range(500)]
    embedded.build("rings", spec_of(documents), documents)
    for round_, share in enumerate((0.002, 0.01, 0.05)):
        steps: list[tuple[str, int, int, str, Any]] = [
            (draw.choice(["change", "insert", "delete"]), draw.randrange(500), 0, text(), {})
            for _ in range(int(share * len(documents)))
        ]
        edit(documents, steps, round_)
        plan = index_documents(embedded, documents)
        assert plan is not None and plan.documents > 400
        require_same_as_fresh(embedded, documents)


# Analyzed, kept and merged documents


@pytest.mark.parametrize(
    ("documents", "count"),
    [
        (DOCUMENTS[10:], 90),
        ([Document("first", "ring"), *DOCUMENTS], 100),
        (DOCUMENTS[::-1], 100),
        ([Document(document.id, "entirely new") for document in DOCUMENTS], 0),
        (DOCUMENTS[:1], 1),
        ([], 0),
        (
            [
                *(
                    Document(document.id, document.text, dict(reversed(list(document.fields.items()))))
                    for document in DOCUMENTS[:10]
                ),
                *DOCUMENTS[10:],
            ],
            90,
        ),
    ],
    ids=[
        "first deleted",
        "inserted at the front",
        "reversed",
        "all changed",
        "all but one deleted",
        "all deleted",
        "properties reversed",
    ],
)
@pytest.mark.parametrize("limit", [0, 9], ids=["merged", "kept"])
def test_unchanged_documents_are_reused(
    embedded: EmbeddedEngine,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    documents: list[Document],
    count: int,
) -> None:
    keep_segments(monkeypatch, limit)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    plan = index_documents(embedded, documents)
    assert (0 if plan is None else plan.documents) == count
    require_same_as_fresh(embedded, documents)


@pytest.mark.parametrize("limit", [0, 9], ids=["merged", "kept"])
def test_only_new_documents_are_analyzed(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    keep_segments(monkeypatch, limit)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    analyzed = record_analyzed(monkeypatch)
    first, second, third = (Document(name, f"ring {name}") for name in ("one", "two", "three"))
    for documents, expected in (
        ([*DOCUMENTS[1:], first, second], ["one", "two"]),
        ([*DOCUMENTS[1:], first, third, second], ["three"]),
        ([*DOCUMENTS[1:90], *DOCUMENTS[91:], third, first], []),
    ):
        analyzed.clear()
        progress: list[int] = []
        plan = plan_update(embedded, documents)
        assert plan is not None
        embedded.build("rings", spec_of(documents), documents, progress.append, carried=plan)
        assert analyzed == expected
        assert (plan.analyzed, plan.documents) == (len(expected), len(documents) - len(expected))
        assert sum(progress) == len(documents)
        require_same_as_fresh(embedded, documents)


def test_deleted_ids_can_be_used_again(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_segments(monkeypatch, 1)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    without, replacement = DOCUMENTS[1:], Document("0", "a field")
    for documents, dead, new in (
        (without, 1, 0),
        (DOCUMENTS, 0, 0),
        (without, 1, 0),
        ([*without, replacement], 1, 1),
        ([replacement, *without], 1, 1),
        (without, 1, 0),
        ([*without, DOCUMENTS[0]], 0, 0),
    ):
        assert index_documents(embedded, documents)
        require_same_as_fresh(embedded, documents)
        manifest = IndexManifest.read(live_folder(tmp_path))
        (segment,) = manifest.kept.values()
        assert (segment.deletions.documents, manifest.documents) == (dead, new)


def test_kept_segments_are_never_changed_and_are_deleted_by_a_merge(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SMALL_SEGMENT", 1)
    monkeypatch.setattr(segments, "KEPT_SHARE", 10)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    base = live_folder(tmp_path)
    before = {file.name: (file.stat().st_ctime_ns, file.read_bytes()) for file in base.iterdir()}
    for number in range(1, 11):
        documents = [*DOCUMENTS[number:], Document("new", f"ring {number}")]
        assert index_documents(embedded, documents)
        assert versions(tmp_path) == [base.name, f"{number + 1:06d}"]
    assert before == {file.name: (file.stat().st_ctime_ns, file.read_bytes()) for file in base.iterdir()}
    index_documents(embedded, DOCUMENTS[11:])  # the eleventh of a hundred
    assert versions(tmp_path) == ["000012"]
    index_documents(embedded, [*DOCUMENTS[11:], Document("0", "ring")])
    assert versions(tmp_path) == ["000012", "000013"]
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert versions(tmp_path) == ["000014"]


@pytest.mark.parametrize(
    ("sizes", "new", "count"),
    [
        ([(64_000, 64_000)], 1_000, 1),
        ([(64_000, 64_000)], 1_001, 0),
        ([(64_000, 63_000)], 0, 1),
        ([(64_000, 62_999)], 0, 0),
        ([(19_999, 19_999)], 0, 0),
        ([(64_000, 64_000), (900, 900)], 100, 1),
        ([(64_000, 64_000), (900, 900)], 101, 0),
        ([(64_000, 64_000), (2_000, 1_000)], 0, 1),
        ([(2_000_000, 2_000_000), (30_000, 30_000)], 400, 2),
        ([(2_000_000, 2_000_000), (30_000, 30_000), (500, 400)], 0, 2),
        ([(2_000_000, 2_000_000), (30_000, 20_000)], 0, 1),
        ([], 10, 0),
    ],
)
def test_the_policy_keeps_large_segments_until_others_are_large_too(
    sizes: list[tuple[int, int]], new: int, count: int
) -> None:
    live_segments = [
        segments.LiveSegment(None, np.arange(size) < live)  # type: ignore[arg-type]
        for size, live in sizes
    ]
    assert segments.count_kept(live_segments, new) == count


def test_another_similarity_keeps_no_segment_but_reuses_the_analysis(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_segments(monkeypatch)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    for documents in (DOCUMENTS, EDITED):
        plan = plan_update(embedded, documents, SCORED)
        assert plan is not None and not plan.kept and plan.documents >= 98
        index_documents(embedded, EDITED)
    index_documents(embedded, EDITED, SCORED)
    embedded.build("scored", spec_of(EDITED, SCORED), EDITED)
    assert answers(embedded.open("rings"), WORD_QUERIES, 50) == answers(
        embedded.open("scored"), WORD_QUERIES, 50
    )


def test_arrays_narrow_again_after_large_frequencies_are_deleted(embedded: EmbeddedEngine) -> None:
    often = [*DOCUMENTS, Document("often", "ring " * 300)]
    embedded.build("rings", spec_of(often), often)
    for documents in (DOCUMENTS, often, [*often, Document("oftener", "field " * 70000)], DOCUMENTS):
        plan = index_documents(embedded, documents)
        assert plan is not None and plan.documents == 100 + (len(documents) > 101)
        require_same_as_fresh(embedded, documents)


def test_several_processes_analyze_many_new_documents(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FIRST_DOCUMENTS", 2)
    monkeypatch.setattr(writer, "SECONDS_ALONE", 0)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    for number in (3, 30):
        documents = [
            Document(document.id, f"{document.text} {number}")
            if position % 3 == 0 and position < 3 * number
            else document
            for position, document in enumerate(DOCUMENTS)
        ]
        plan = index_documents(embedded, documents)
        assert plan is not None and plan.analyzed == number
        require_same_as_fresh(embedded, documents)


def test_different_documents_have_different_bytes() -> None:
    class Word(str):
        __slots__ = ()

    documents = [
        Document("1", "a"),
        Document("1", Word("a")),
        Document("1", Word("b")),
        Document("1", "\ud800"),
        Document("1", "\ud801"),
        Document("1", "a", {"tag": "a", "year": 1}),
        Document("1", "a", {"year": 1, "tag": "a"}),
        *(Document("1", "a", {"year": value}) for value in (1, [1], 1.0, True, "1", None, 2**70, 0.0, -0.0)),
    ]
    assert len({segments.document_bytes(document) for document in documents}) == len(documents)
    # Equal documents have the same bytes, also if their objects are shared.
    text = "a ring"
    properties = {"tag": [text, sys.intern(text), "".join(text)], text: 1.5}
    first = segments.document_bytes(Document("1", text, properties))
    second = Document("1", "a " + "ring"[:4], json.loads(json.dumps(properties)))
    assert first == segments.document_bytes(second)


# Rejected updates


@pytest.mark.parametrize("new_bytes", [0, segments.BUFFER_BYTES])
@pytest.mark.parametrize("limit", [0, 1, 2], ids=["merged", "keeps 1", "keeps 2"])
def test_duplicate_ids_are_rejected(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, new_bytes: int
) -> None:
    monkeypatch.setattr(segments, "BUFFER_BYTES", new_bytes)
    keep_segments(monkeypatch)
    new = Document("new", "ring")
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    updated = [*DOCUMENTS[1:], Document("0", "another text"), new]
    index_documents(embedded, updated)
    keep_segments(monkeypatch, limit)
    before = versions(tmp_path)
    for duplicated, name in (
        ([*updated, DOCUMENTS[0]], "0"),  # one in each segment
        ([*updated, DOCUMENTS[3]], "3"),
        ([*updated, Document("3", "another text")], "3"),
        ([*updated, new], "new"),
        ([*updated, Document("new", "field")], "new"),
        ([*updated, Document("newer", "field"), Document("newer", "group")], "newer"),
    ):
        plan = plan_update(embedded, duplicated)
        with pytest.raises(EngineRefused, match=f"two documents have the id {name}"):
            embedded.build("rings", spec_of(duplicated), duplicated, carried=plan)
        assert versions(tmp_path) == before
    invalid = [*updated, Document("\ud800", "ring")]
    with pytest.raises(EngineRefused, match="surrogate"):
        embedded.build("rings", spec_of(invalid), invalid, carried=plan_update(embedded, invalid))
    require_same_as_fresh(embedded, updated)


@pytest.mark.parametrize("limit", [0, 9], ids=["merged", "kept"])
def test_documents_that_change_between_two_readings_are_detected(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    keep_segments(monkeypatch, limit)
    monkeypatch.setattr(segments, "BUFFER_BYTES", 0)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    plan = plan_update(embedded, EDITED)
    for documents, count in (([*EDITED, Document("one more", "ring")], 101), (EDITED[:29], 98)):
        with pytest.raises(EngineRefused, match=f"{count} documents arrived instead of 100: index again"):
            embedded.build("rings", spec_of(EDITED), documents, carried=plan)


def test_another_analyzer_reuses_no_document(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_segments(monkeypatch)
    analyzed = copy.deepcopy(MAPPING)
    analyzed["settings"]["analysis"]["filter"]["little"]["stopwords"] = ["ring"]
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert embedded.compare("rings", analyzed) is None
    index_documents(embedded, EDITED)
    assert embedded.compare("rings", analyzed) is None


def test_another_version_of_the_analysis_reuses_no_document(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "searchapp.requests")
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert embedded.compare("rings", MAPPING) is not None
    monkeypatch.setattr(analysis, "VERSION", analysis.VERSION + 1)
    assert embedded.compare("rings", MAPPING) is None
    assert caplog.messages == [
        "test-rings-000001: no document can be reused, because it was written with another version of "
        "searchapp, Python or regex"
    ]


def test_an_update_planned_for_a_replaced_version_is_rejected(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_segments(monkeypatch)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    first, second = plan_update(embedded, EDITED), plan_update(embedded, DOCUMENTS[:95])
    embedded.build("rings", spec_of(EDITED), EDITED, carried=first)
    with pytest.raises(Replaced):
        embedded.build("rings", spec_of(DOCUMENTS[:95]), DOCUMENTS[:95], carried=second)
    require_same_as_fresh(embedded, EDITED)
    # a new index with the same version names
    plan = plan_update(embedded, DOCUMENTS[:95])
    embedded.remove("rings")
    reordered = DOCUMENTS[::-1]
    embedded.build("rings", spec_of(reordered), reordered)
    assert index_documents(embedded, reordered[1:])
    with pytest.raises(Replaced):
        embedded.build("rings", spec_of(DOCUMENTS[:95]), DOCUMENTS[:95], carried=plan)
    require_same_as_fresh(embedded, reordered[1:])


def test_an_outdated_plan_leads_to_a_complete_build(embedded: EmbeddedEngine) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    plan = plan_update(embedded, EDITED)
    embedded.build("rings", spec_of(DOCUMENTS[:50]), DOCUMENTS[:50])
    before = embedded.index_info("rings")
    serving = build(embedded, "rings", spec_of(EDITED), before, EDITED, "indexing", SilentProgress(), plan)
    assert (serving.carried, serving.analyzed) == (0, len(EDITED))
    assert serving.note.endswith("all documents were analyzed again: another process built a newer version")
    require_same_as_fresh(embedded, EDITED)


# Messages, lists and open indexes


def test_verbose_reports_reused_and_analyzed_documents(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keep_segments(monkeypatch)
    caplog.set_level(logging.INFO, "searchapp.requests")
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    index_documents(embedded, EDITED)
    index_documents(embedded, EDITED, merged=True)
    assert caplog.messages == [
        "test-rings-000002: 98 documents are reused, 2 are removed, 2 are analyzed; a small part is written "
        "beside what test-rings-000001 has",
        "test-rings-000003: 100 documents are reused, 2 are removed, 0 are analyzed; all is merged with what "
        "test-rings-000002 has",
    ]
    before = embedded.index_info("rings")
    serving = build(
        embedded, "rings", spec_of(DOCUMENTS, digest="2"), before, DOCUMENTS, "", SilentProgress(), None
    )
    assert serving.carried == 0


def test_an_index_in_segments_is_listed_once_with_its_total_size(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_segments(monkeypatch)
    for documents in (DOCUMENTS, EDITED, EDITED[3:]):
        index_documents(embedded, documents)
    (stored,) = embedded.stored()
    assert (stored.version, stored.state) == ("test-rings-000003", VersionState.live)
    folder = tmp_path / "indexes" / "test-rings"
    files = [file for file in folder.rglob("*") if file.is_file() and file.parent != folder]
    assert stored.bytes == sum(file.stat().st_size for file in files)
    assert stored.info == embedded.index_info("rings") == embedded.verify("rings", SilentProgress())
    (folder / "000009").mkdir()
    assert [index.state for index in embedded.stored()] == [VersionState.live, VersionState.leftover]
    (folder / "000001" / "digests.npy").unlink()
    assert embedded.stored()[0].state is VersionState.unreadable


def test_an_open_index_searches_its_segments_after_a_merge(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_segments(monkeypatch)
    embedded.build("rings", spec_of(LARGER), LARGER)
    assert index_documents(embedded, LARGER[3:])
    index = embedded.open("rings")
    twin = index.twin()
    twin.verify()
    assert twin.info == index.info
    index_documents(embedded, LARGER[3:], merged=True)
    merged = answers(embedded.open("rings"), QUERIES, 40)
    assert answers(index, QUERIES, 40) == answers(twin, QUERIES, 40) == merged
    with pytest.raises(Replaced):
        twin.twin()


def build_and_open(
    embedded: EmbeddedEngine, documents: Sequence[Document], *, in_segments: bool
) -> EmbeddedIndex:
    """Build and open an index; in segments, an update deletes three of the documents."""
    with pytest.MonkeyPatch.context() as patch:
        keep_segments(patch)
        embedded.build("rings", spec_of(documents), documents)
        assert not in_segments or index_documents(embedded, documents[3:])
    return embedded.open("rings")


@pytest.mark.parametrize("in_segments", [False, True])
def test_a_twin_does_not_parse_the_mapping_again(
    embedded: EmbeddedEngine, in_segments: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = build_and_open(embedded, DOCUMENTS, in_segments=in_segments)
    mappings, of = [], Schema.of

    def record(mapping: Mapping[str, Any]) -> Schema:
        mappings.append(mapping)
        return of(mapping)

    monkeypatch.setattr(Schema, "of", record)
    index.twin()
    assert not mappings
    embedded.open("rings")
    assert mappings


@pytest.mark.parametrize("in_segments", [False, True])
def test_a_replaced_index_has_no_twin(embedded: EmbeddedEngine, in_segments: bool) -> None:
    index = build_and_open(embedded, DOCUMENTS, in_segments=in_segments)
    embedded.remove("rings")
    build_and_open(embedded, DOCUMENTS[1:], in_segments=in_segments)
    with pytest.raises(Replaced):
        index.twin()
