"""Every segmentation of an index gives the answers and the statistics of a fresh index of its live documents."""

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
    compared,
    edit,
    edits,
    everything_kept,
    fields,
    folder_of,
    indexed,
    noting_analyzed,
    require_as_whole,
    shown,
    texts,
    versions,
)
from tests.engines.embedded.test_damage import DOCUMENTS as LARGER
from tests.engines.embedded.test_damage import HIGHLIGHT, QUERIES
from tests.profile import FULL

SCORED: dict[str, Any] = copy.deepcopy(MAPPING)
SCORED["settings"]["similarity"]["flat"]["k1"] = 2.5

OF_WORDS: list[Any] = [
    {"match_all": {}},
    {"exists": {"field": "tag"}},
    {"range": {"year": {"gte": 0, "lte": 2}}},
    *({"match": {"text": word}} for word in WORDS),
    {"bool": {"should": [{"match": {"text": " ".join(WORDS)}}, {"match": {"tag": WORDS[0]}}]}},
    {"bool": {"must": [{"match": {"text": WORDS[0]}}], "must_not": [{"term": {"tag": WORDS[1]}}]}},
    {"match_phrase": {"text": " ".join(WORDS[:2])}},
]


def answers(index: EmbeddedIndex, queries: Sequence[Any], size: int) -> list[Any]:
    """All that an index is asked for: rankings together and alone, hits with all that comes with them, and counts."""
    with closing(index):
        asked = [body(query, size) for query in queries]
        return [
            list(index.search(asked)),
            [list(index.search([one])) for one in asked],
            [
                [shown(one) for one in index.find(one | {"explain": True, "highlight": HIGHLIGHT})]
                for one in asked
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
def test_every_segmentation_is_as_a_fresh_index_of_the_live_documents(
    first: list[tuple[str, Any]], rounds: list[tuple[Any, str, int]], in_pieces: bool, size: int
) -> None:
    """Whatever is added, changed, deleted, comes back and is merged; however little is looked at together."""
    documents = [Document(str(number), text, others) for number, (text, others) in enumerate(first)]
    before = list(documents)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as home:
        if in_pieces:
            for module, name, few in (
                (postings, "RUN_TOKENS", 5),
                (postings, "MERGED_TOKENS", 4),
                (segments, "WINDOW", 3),
                (segments, "CHUNK", 2),
                (segments, "BUFFER_BYTES", size),
            ):
                patch.setattr(module, name, few)
        with closing(EmbeddedEngine(Path(home), "test")) as embedded:
            embedded.build("rings", spec_of(documents), documents)
            for round_, (steps, what, kept) in enumerate(rounds):
                if what == "change back":
                    documents = list(before)
                elif what == "none":
                    documents = []
                elif what == "first":
                    documents = documents[:1]
                else:
                    edit(documents, steps, round_)
                everything_kept(patch, kept)
                indexed(embedded, documents)
                require_as_whole(embedded, documents)
                assert answers(embedded.open("rings"), OF_WORDS, 30) == answers(
                    embedded.open("whole"), OF_WORDS, 30
                )


def changed(documents: Sequence[Document], chance: random.Random) -> list[Document]:
    """The documents, of which some have changed, some are gone and some are new."""
    found = []
    for document in documents:
        what = chance.random()
        other = chance.choice(LARGER)
        if what < 0.03:
            found.append(Document(f"{document.id}-{chance.randrange(999)}", other.text, document.fields))
        elif what < 0.06:
            found.append(Document(document.id, other.text, other.fields))
            continue
        elif what < 0.09:
            continue
        found.append(document)
    return found


@pytest.mark.parametrize("most", [0, 1, 9])
def test_answers_to_all_kinds_of_queries_are_those_of_a_fresh_index(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    everything_kept(monkeypatch, most)
    chance = random.Random(7)
    documents = list(LARGER)
    embedded.build("rings", spec_of(documents), documents)
    for _round in range(12 if FULL else 3):
        documents = changed(documents, chance)
        indexed(embedded, documents)
        embedded.build("whole", spec_of(documents), documents)
        assert answers(embedded.open("rings"), QUERIES, 40) == answers(embedded.open("whole"), QUERIES, 40)
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
        plan = indexed(embedded, documents)
        assert plan is not None and plan.documents > 400
        require_as_whole(embedded, documents)


# What is analyzed, kept and merged


@pytest.mark.parametrize(
    ("documents", "count"),
    [
        (DOCUMENTS[10:], 90),
        ([Document("first", "ring"), *DOCUMENTS], 100),
        (DOCUMENTS[::-1], 100),
        ([Document(one.id, "entirely new") for one in DOCUMENTS], 0),
        (DOCUMENTS[:1], 1),
        ([], 0),
        (
            [
                *(
                    Document(one.id, one.text, dict(reversed(list(one.fields.items()))))
                    for one in DOCUMENTS[:10]
                ),
                *DOCUMENTS[10:],
            ],
            90,
        ),
    ],
    ids=[
        "first gone",
        "one before",
        "turned round",
        "all changed",
        "one left",
        "none left",
        "properties turned",
    ],
)
@pytest.mark.parametrize("most", [0, 9], ids=["merged", "kept"])
def test_documents_that_have_not_changed_are_taken_over(
    embedded: EmbeddedEngine,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    documents: list[Document],
    count: int,
) -> None:
    everything_kept(monkeypatch, most)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    plan = indexed(embedded, documents)
    assert (0 if plan is None else plan.documents) == count
    require_as_whole(embedded, documents)


@pytest.mark.parametrize("most", [0, 9], ids=["merged", "kept"])
def test_only_what_is_new_is_analyzed(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    everything_kept(monkeypatch, most)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    analyzed = noting_analyzed(monkeypatch)
    one, two, three = (Document(name, f"ring {name}") for name in ("one", "two", "three"))
    for documents, expected in (
        ([*DOCUMENTS[1:], one, two], ["one", "two"]),
        ([*DOCUMENTS[1:], one, three, two], ["three"]),
        ([*DOCUMENTS[1:90], *DOCUMENTS[91:], three, one], []),
    ):
        analyzed.clear()
        progress: list[int] = []
        plan = compared(embedded, documents)
        assert plan is not None
        embedded.build("rings", spec_of(documents), documents, progress.append, carried=plan)
        assert analyzed == expected
        assert (plan.analyzed, plan.documents) == (len(expected), len(documents) - len(expected))
        assert sum(progress) == len(documents)
        require_as_whole(embedded, documents)


def test_an_id_that_goes_comes_again_as_it_was_or_as_another(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_kept(monkeypatch, 1)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    without, other = DOCUMENTS[1:], Document("0", "a field")
    for documents, dead, new in (
        (without, 1, 0),
        (DOCUMENTS, 0, 0),
        (without, 1, 0),
        ([*without, other], 1, 1),
        ([other, *without], 1, 1),
        (without, 1, 0),
        ([*without, DOCUMENTS[0]], 0, 0),
    ):
        assert indexed(embedded, documents)
        require_as_whole(embedded, documents)
        manifest = IndexManifest.read(folder_of(tmp_path))
        (kept,) = manifest.kept.values()
        assert (kept.deletions.documents, manifest.documents) == (dead, new)


def test_a_segment_that_is_kept_is_never_written_to_and_goes_when_all_is_merged(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SMALL_SEGMENT", 1)
    monkeypatch.setattr(segments, "KEPT_SHARE", 10)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    base = folder_of(tmp_path)
    before = {file.name: (file.stat().st_ctime_ns, file.read_bytes()) for file in base.iterdir()}
    for number in range(1, 11):
        documents = [*DOCUMENTS[number:], Document("new", f"ring {number}")]
        assert indexed(embedded, documents)
        assert versions(tmp_path) == [base.name, f"{number + 1:06d}"]
    assert before == {file.name: (file.stat().st_ctime_ns, file.read_bytes()) for file in base.iterdir()}
    indexed(embedded, DOCUMENTS[11:])  # the eleventh of a hundred
    assert versions(tmp_path) == ["000012"]
    indexed(embedded, [*DOCUMENTS[11:], Document("0", "ring")])
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
def test_the_policy_keeps_large_segments_beside_which_little_is(
    sizes: list[tuple[int, int]], new: int, count: int
) -> None:
    found = [
        segments.LiveSegment(None, np.arange(size) < live)  # type: ignore[arg-type]
        for size, live in sizes
    ]
    assert segments.count_kept(found, new) == count


def test_another_similarity_keeps_nothing_but_analyzes_nothing_again(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_kept(monkeypatch)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    for documents in (DOCUMENTS, EDITED):
        plan = compared(embedded, documents, SCORED)
        assert plan is not None and not plan.kept and plan.documents >= 98
        indexed(embedded, EDITED)
    indexed(embedded, EDITED, SCORED)
    embedded.build("scored", spec_of(EDITED, SCORED), EDITED)
    assert answers(embedded.open("rings"), OF_WORDS, 50) == answers(embedded.open("scored"), OF_WORDS, 50)


def test_nothing_left_of_a_frequency_that_needed_wider_numbers(embedded: EmbeddedEngine) -> None:
    often = [*DOCUMENTS, Document("often", "ring " * 300)]
    embedded.build("rings", spec_of(often), often)
    for documents in (DOCUMENTS, often, [*often, Document("oftener", "field " * 70000)], DOCUMENTS):
        plan = indexed(embedded, documents)
        assert plan is not None and plan.documents == 100 + (len(documents) > 101)
        require_as_whole(embedded, documents)


def test_many_new_documents_are_analyzed_on_all_cores_as_few_are_here(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BATCH_DOCUMENTS", 2)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    for number in (3, 30):
        documents = [
            Document(one.id, f"{one.text} {number}") if place % 3 == 0 and place < 3 * number else one
            for place, one in enumerate(DOCUMENTS)
        ]
        plan = indexed(embedded, documents)
        assert plan is not None and plan.analyzed == number
        require_as_whole(embedded, documents)


def test_what_is_stored_as_different_texts_is_compared_as_different_bytes() -> None:
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
    # Equal ones are the same bytes, whoever else refers to their parts.
    text = "a ring"
    properties = {"tag": [text, sys.intern(text), "".join(text)], text: 1.5}
    written = segments.document_bytes(Document("1", text, properties))
    again = Document("1", "a " + "ring"[:4], json.loads(json.dumps(properties)))
    assert written == segments.document_bytes(again)


# What is refused, and what is taken over from nobody


@pytest.mark.parametrize("new_bytes", [0, segments.BUFFER_BYTES])
@pytest.mark.parametrize("most", [0, 1, 2], ids=["merged", "one is kept", "two are kept"])
def test_ids_that_come_twice_are_refused(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, new_bytes: int
) -> None:
    monkeypatch.setattr(segments, "BUFFER_BYTES", new_bytes)
    everything_kept(monkeypatch)
    new = Document("new", "ring")
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    changed_one = [*DOCUMENTS[1:], Document("0", "another text"), new]
    indexed(embedded, changed_one)
    everything_kept(monkeypatch, most)
    before = versions(tmp_path)
    for twice, name in (
        ([*changed_one, DOCUMENTS[0]], "0"),  # one of each segment
        ([*changed_one, DOCUMENTS[3]], "3"),
        ([*changed_one, Document("3", "another text")], "3"),
        ([*changed_one, new], "new"),
        ([*changed_one, Document("new", "field")], "new"),
        ([*changed_one, Document("newer", "field"), Document("newer", "group")], "newer"),
    ):
        found = compared(embedded, twice)
        with pytest.raises(EngineRefused, match=f"two documents have the id {name}"):
            embedded.build("rings", spec_of(twice), twice, carried=found)
        assert versions(tmp_path) == before
    refused = [*changed_one, Document("\ud800", "ring")]
    with pytest.raises(EngineRefused, match="surrogate"):
        embedded.build("rings", spec_of(refused), refused, carried=compared(embedded, refused))
    require_as_whole(embedded, changed_one)


@pytest.mark.parametrize("most", [0, 9], ids=["merged", "kept"])
def test_documents_that_change_while_they_are_read_again_are_noticed(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    everything_kept(monkeypatch, most)
    monkeypatch.setattr(segments, "BUFFER_BYTES", 0)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    found = compared(embedded, EDITED)
    for other, count in (([*EDITED, Document("one more", "ring")], 101), (EDITED[:29], 98)):
        with pytest.raises(EngineRefused, match=f"{count} documents arrived instead of 100: index again"):
            embedded.build("rings", spec_of(EDITED), other, carried=found)


def test_another_analyzer_takes_over_nothing(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_kept(monkeypatch)
    analyzed = copy.deepcopy(MAPPING)
    analyzed["settings"]["analysis"]["filter"]["little"]["stopwords"] = ["ring"]
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert embedded.compare("rings", analyzed) is None
    indexed(embedded, EDITED)
    assert embedded.compare("rings", analyzed) is None


def test_another_version_of_the_analysis_takes_over_nothing(
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


def test_of_two_who_have_compared_the_first_one_builds(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_kept(monkeypatch)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    first, second = compared(embedded, EDITED), compared(embedded, DOCUMENTS[:95])
    embedded.build("rings", spec_of(EDITED), EDITED, carried=first)
    with pytest.raises(Replaced):
        embedded.build("rings", spec_of(DOCUMENTS[:95]), DOCUMENTS[:95], carried=second)
    require_as_whole(embedded, EDITED)
    # An index of the same names that was made again.
    found = compared(embedded, DOCUMENTS[:95])
    embedded.remove("rings")
    other = DOCUMENTS[::-1]
    embedded.build("rings", spec_of(other), other)
    assert indexed(embedded, other[1:])
    with pytest.raises(Replaced):
        embedded.build("rings", spec_of(DOCUMENTS[:95]), DOCUMENTS[:95], carried=found)
    require_as_whole(embedded, other[1:])


def test_what_can_not_be_taken_over_after_all_is_built_whole(embedded: EmbeddedEngine) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    found = compared(embedded, EDITED)
    embedded.build("rings", spec_of(DOCUMENTS[:50]), DOCUMENTS[:50])
    before = embedded.index_info("rings")
    serving = build(embedded, "rings", spec_of(EDITED), before, EDITED, "indexing", SilentProgress(), found)
    assert (serving.carried, serving.analyzed) == (0, len(EDITED))
    assert serving.note.endswith("all documents were analyzed again: another process built a newer version")
    require_as_whole(embedded, EDITED)


# What is told, and who has it open


def test_what_is_written_is_told(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    everything_kept(monkeypatch)
    caplog.set_level(logging.INFO, "searchapp.requests")
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    indexed(embedded, EDITED)
    indexed(embedded, EDITED, merged=True)
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


def test_an_index_in_segments_is_listed_as_one_of_the_size_of_all(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_kept(monkeypatch)
    for documents in (DOCUMENTS, EDITED, EDITED[3:]):
        indexed(embedded, documents)
    (stored,) = embedded.stored()
    assert (stored.version, stored.state) == ("test-rings-000003", VersionState.live)
    folder = tmp_path / "indexes" / "test-rings"
    files = [file for file in folder.rglob("*") if file.is_file() and file.parent != folder]
    assert stored.bytes == sum(file.stat().st_size for file in files)
    assert stored.info == embedded.index_info("rings") == embedded.verify("rings", SilentProgress())
    (folder / "000009").mkdir()
    assert [one.state for one in embedded.stored()] == [VersionState.live, VersionState.leftover]
    (folder / "000001" / "digests.npy").unlink()
    assert embedded.stored()[0].state is VersionState.unreadable


def test_an_open_index_answers_from_its_segments_after_all_was_merged(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_kept(monkeypatch)
    embedded.build("rings", spec_of(LARGER), LARGER)
    assert indexed(embedded, LARGER[3:])
    index = embedded.open("rings")
    twin = index.twin()
    twin.verify()
    assert twin.info == index.info
    indexed(embedded, LARGER[3:], merged=True)
    merged = answers(embedded.open("rings"), QUERIES, 40)
    assert answers(index, QUERIES, 40) == answers(twin, QUERIES, 40) == merged
    with pytest.raises(Replaced):
        twin.twin()


def opened(embedded: EmbeddedEngine, documents: Sequence[Document], *, in_segments: bool) -> EmbeddedIndex:
    """An index of documents that is new, open; in segments, without three of them."""
    with pytest.MonkeyPatch.context() as patch:
        everything_kept(patch)
        embedded.build("rings", spec_of(documents), documents)
        assert not in_segments or indexed(embedded, documents[3:])
    return embedded.open("rings")


@pytest.mark.parametrize("in_segments", [False, True])
def test_a_twin_reads_no_mapping_again(
    embedded: EmbeddedEngine, in_segments: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opened(embedded, DOCUMENTS, in_segments=in_segments)
    read, of = [], Schema.of

    def noted(mapping: Mapping[str, Any]) -> Schema:
        read.append(mapping)
        return of(mapping)

    monkeypatch.setattr(Schema, "of", noted)
    index.twin()
    assert not read
    embedded.open("rings")
    assert read


@pytest.mark.parametrize("in_segments", [False, True])
def test_a_twin_is_not_of_another_index_that_was_made_in_its_place(
    embedded: EmbeddedEngine, in_segments: bool
) -> None:
    index = opened(embedded, DOCUMENTS, in_segments=in_segments)
    embedded.remove("rings")
    opened(embedded, DOCUMENTS[1:], in_segments=in_segments)
    with pytest.raises(Replaced):
        index.twin()
