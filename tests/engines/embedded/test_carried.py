"""Documents that have not changed are taken over: the new version is, byte by byte, that of a whole build."""

from __future__ import annotations

import copy
import errno
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
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

import searchapp
from searchapp.app.index import build
from searchapp.engines import embedded as engine
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import Damaged, EngineRefused, Replaced, SearchappError
from searchapp.lucene.index import inverter, merge, segments, versions, writer
from searchapp.lucene.index import inverter as merger
from searchapp.lucene.index.arrays import ArrayFile
from searchapp.lucene.index.layout import MANIFEST, STAMP, Manifest
from searchapp.lucene.index.merge import Carried
from searchapp.lucene.index.segments import SmallPart
from searchapp.lucene.index.writer import Packed
from searchapp.model import Document
from searchapp.progress import Silent
from tests.engines.embedded.conftest import MAPPING, body, spec_of

WORDS = ["ring", "group", "field", "of", "the", "é", "😀", "a" * 40]

DOCUMENTS = [
    Document(
        str(number),
        f"ring {'group ' * (number % 5)} field{number % 7}",
        {"tag": ["é", f"t{number % 4}"], "year": number % 9, "weight": [0.0, -0.0, number / 3]},
    )
    for number in range(100)
]
EDITED = [
    *DOCUMENTS[1:30],
    Document("new", "a new ring", {"year": 3}),
    Document("30", "ring of another text"),
    *DOCUMENTS[31:],
]


APPEND = ArrayFile.append


def folder_of(home: Path, name: str) -> Path:
    """The folder of the version that serves."""
    folder = home / "indexes" / f"test-{name}"
    return folder / (folder / "current").read_text().split()[0]


def noting_analyzed(patch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the documents that are analyzed from now on."""
    analyzed: list[str] = []
    packed = writer.IndexWriter._packed

    def noted(self: writer.IndexWriter, batch: list[writer.Indexed]) -> list[Packed]:
        analyzed.extend(document_id for document_id, _source in batch)
        return packed(self, batch)

    patch.setattr(writer.IndexWriter, "_packed", noted)
    return analyzed


def fill_disk(patch: pytest.MonkeyPatch, pieces: int) -> None:
    """Let the disk be full once so many further pieces of arrays are written."""
    left = [pieces]

    def until_full(self: ArrayFile, piece: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        APPEND(self, piece)

    patch.setattr(ArrayFile, "append", until_full)


def files_of(home: Path, name: str) -> dict[str, bytes]:
    """All files of a version but those with its name and its date."""
    folder = folder_of(home, name)
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name not in (MANIFEST, STAMP)}


def compared(
    embedded: EmbeddedEngine, documents: Sequence[Document], mapping: Mapping[str, Any] = MAPPING
) -> Carried | None:
    """What can be carried over from the version that serves."""
    comparison = embedded.compare("rings", mapping)
    if comparison is None:
        return None
    assert list(comparison.watch(documents)) == list(documents)
    found = comparison.carried(merged=True)
    assert not isinstance(found, SmallPart)
    return found


def require_as_rebuilt(
    embedded: EmbeddedEngine,
    home: Path,
    documents: Sequence[Document],
    mapping: Mapping[str, Any] = MAPPING,
) -> int:
    """Build with what is carried over and without; returns how many documents were."""
    found = compared(embedded, documents, mapping)
    embedded.build("rings", spec_of(documents, mapping), documents, carried=found)
    embedded.build("whole", spec_of(documents, mapping), documents)
    ours, whole = files_of(home, "rings"), files_of(home, "whole")
    assert ours.keys() == whole.keys()
    assert [name for name in ours if ours[name] != whole[name]] == []
    read = [Manifest.read(folder_of(home, name)) for name in ("rings", "whole")]
    assert read[0].fields == read[1].fields and read[0].files == read[1].files
    return found.documents if found else 0


# Every edit

texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
numbers = st.one_of(st.integers(-3, 3), st.lists(st.integers(-3, 3), min_size=1, max_size=3))
weights = st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0]), min_size=1, max_size=3)
fields = st.fixed_dictionaries(
    {},
    optional={
        "tag": st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        "year": numbers,
        "weight": weights,
    },
)
edits = st.lists(
    st.tuples(
        st.sampled_from(["change", "insert", "delete", "move", "swap ids"]),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        texts,
        fields,
    ),
    min_size=1,
    max_size=6,
)


def edited(documents: list[Document], steps: Sequence[tuple[str, int, int, str, Any]], round_: int) -> None:
    for number, (kind, here, there, text, others) in enumerate(steps):
        place, other = (where % max(1, len(documents)) for where in (here, there))
        if kind == "insert" or len(documents) < 2:
            documents.insert(place, Document(f"{round_}-{number}", text, others))
        elif kind == "change":
            documents[place] = Document(documents[place].id, text, others)
        elif kind == "delete":
            del documents[place]
        elif kind == "move":
            documents.insert(other, documents.pop(place))
        else:
            one, two = documents[place], documents[other]
            documents[place] = Document(one.id, two.text, two.fields)
            documents[other] = Document(two.id, one.text, one.fields)


@hypothesis.settings(max_examples=max(8, hypothesis.settings().max_examples // 5), deadline=None)
@given(
    st.lists(st.tuples(texts, fields), min_size=1, max_size=20),
    st.lists(edits, min_size=1, max_size=3),
    st.booleans(),
)
def test_any_edits_give_the_files_of_a_whole_build(
    first: list[tuple[str, Any]], rounds: list[list[tuple[str, int, int, str, Any]]], in_pieces: bool
) -> None:
    documents = [Document(str(number), text, others) for number, (text, others) in enumerate(first)]
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as home:
        if in_pieces:
            for module, name, size in (
                (inverter, "RUN_TOKENS", 5),
                (merge, "WINDOW", 3),
                (merge, "LOOKED_THROUGH", 2),
                (merger, "MERGED_TOKENS", 4),
                (segments, "CHUNK", 2),
                (segments, "KEPT_BYTES", 100),
            ):
                patch.setattr(module, name, size)
        with closing(EmbeddedEngine(Path(home), "test")) as embedded:
            embedded.build("rings", spec_of(documents), documents)
            for round_, steps in enumerate(rounds):
                edited(documents, steps, round_)
                require_as_rebuilt(embedded, Path(home), documents)


@pytest.mark.parametrize("window", [merge.WINDOW, 500])
def test_few_edits_of_many_documents_give_the_files_of_a_whole_build(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    """What belongs to few is found in another way than what belongs to many."""
    monkeypatch.setattr(merge, "WINDOW", window)
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
        edited(documents, steps, round_)
        assert require_as_rebuilt(embedded, tmp_path, documents) > 400


def test_only_what_is_new_is_analyzed(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    found = compared(embedded, EDITED)
    assert found is not None and found.documents == 98
    analyzed = noting_analyzed(monkeypatch)
    progress: list[int] = []
    embedded.build("rings", spec_of(EDITED), EDITED, progress.append, carried=found)
    assert analyzed == ["new", "30"]
    assert sum(progress) == len(EDITED)
    monkeypatch.undo()
    assert require_as_rebuilt(embedded, tmp_path, EDITED) == len(EDITED)


def test_answers_are_those_of_a_whole_build(embedded: EmbeddedEngine) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    embedded.build("rings", spec_of(EDITED), EDITED, carried=compared(embedded, EDITED))
    embedded.build("whole", spec_of(EDITED), EDITED)
    asked = body(
        {"match": {"text": "ring group another"}},
        explain=True,
        highlight={"type": "plain", "fields": {"text": {}}, "number_of_fragments": 0},
    )
    ours, whole = (embedded.open(name) for name in ("rings", "whole"))
    assert ours.find(asked) == whole.find(asked)
    assert len(ours.find(asked)) == 50
    everywhere: dict[str, Any] = {"match_all": {}}
    assert ours.counts(everywhere, {"tag": 9}) == whole.counts(everywhere, {"tag": 9})


def test_nothing_left_of_a_frequency_that_needed_wider_numbers(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    often = [*DOCUMENTS, Document("often", "ring " * 300)]
    embedded.build("rings", spec_of(often), often)
    for documents in (DOCUMENTS, often, [*often, Document("oftener", "field " * 70000)], DOCUMENTS):
        assert require_as_rebuilt(embedded, tmp_path, documents) == 100 + (len(documents) > 101)


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        (DOCUMENTS[10:], 90),
        (DOCUMENTS[:-10], 90),
        ([Document("first", "ring"), *DOCUMENTS], 100),
        ([*DOCUMENTS[90:], *DOCUMENTS[:90]], 90),
        ([DOCUMENTS[99], *DOCUMENTS[:99]], 99),
        ([Document(one.id, "entirely new") for one in DOCUMENTS], 0),
        (DOCUMENTS[:24], 0),
    ],
    ids=["first gone", "last gone", "one before", "last ten first", "last first", "all changed", "few left"],
)
def test_as_many_documents_as_keep_their_order_are_taken_over(
    embedded: EmbeddedEngine, tmp_path: Path, changed: list[Document], count: int
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert require_as_rebuilt(embedded, tmp_path, changed) == count


def test_a_document_that_keeps_its_properties_in_another_order_is_stored_anew(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    turned = [Document(one.id, one.text, dict(reversed(list(one.fields.items())))) for one in DOCUMENTS[:10]]
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert require_as_rebuilt(embedded, tmp_path, [*turned, *DOCUMENTS[10:]]) == 90


def test_ids_that_come_twice_are_refused_as_ever(embedded: EmbeddedEngine) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    for twice in (DOCUMENTS[3], Document("3", "another text")):
        documents = [*DOCUMENTS, twice]
        with pytest.raises(EngineRefused, match="two documents have the id 3"):
            embedded.build("rings", spec_of(documents), documents, carried=compared(embedded, documents))
    assert embedded.open("rings").info.documents == 100


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
    assert len({merge.written(document) for document in documents}) == len(documents)
    # Equal ones are the same bytes, whoever else refers to their parts.
    text = "a ring"
    fields = {"tag": [text, sys.intern(text), "".join(text)], text: 1.5}
    written = merge.written(Document("1", text, fields))
    assert written == merge.written(Document("1", "a " + "ring"[:4], json.loads(json.dumps(fields))))


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=120), st.booleans())
def test_parts_that_belong_to_what_is_marked_are_marked(drawn: list[tuple[int, int]], few: bool) -> None:
    sizes = np.array([size for size, _number in drawn], np.uint16)
    marked = np.array([number == 0 if few else number < 20 for _size, number in drawn], bool)
    found = merge.marked_parts(marked, sizes)
    assert found.dtype == bool
    assert found.tolist() == np.repeat(marked, sizes).tolist()


def test_many_new_documents_are_analyzed_on_all_cores_as_few_are_here(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BATCH_DOCUMENTS", 2)
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    for number in (3, 30):
        documents = [
            Document(one.id, f"{one.text} {number}") if place % 3 == 0 and place < 3 * number else one
            for place, one in enumerate(DOCUMENTS)
        ]
        assert require_as_rebuilt(embedded, tmp_path, documents) == 100 - number


# What makes a version another one

ANALYZED: dict[str, Any] = copy.deepcopy(MAPPING)
ANALYZED["settings"]["analysis"]["filter"]["little"]["stopwords"] = ["ring"]
SCORED: dict[str, Any] = copy.deepcopy(MAPPING)
SCORED["settings"]["similarity"]["flat"]["k1"] = 2.5


def test_another_analyzer_takes_over_nothing_but_another_similarity_all(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert embedded.compare("rings", ANALYZED) is None
    assert require_as_rebuilt(embedded, tmp_path, DOCUMENTS, SCORED) == 100


def test_another_code_takes_over_nothing(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "searchapp.requests")
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert embedded.compare("rings", MAPPING) is not None
    monkeypatch.setattr(engine, "code_digest", lambda: "later")
    assert embedded.compare("rings", MAPPING) is None
    monkeypatch.setattr(engine, "code_digest", lambda: "")
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    assert embedded.compare("rings", MAPPING) is None
    later, unknown = caplog.messages
    assert "another version of searchapp" in later
    assert "its files have changed" in unknown


def test_analyzers_that_are_not_searchapps_own_take_over_nothing(tmp_path: Path) -> None:
    own = engine._analyzers
    with closing(EmbeddedEngine(tmp_path, "test", lambda analysis: own(analysis))) as embedded:
        embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
        assert embedded.compare("rings", MAPPING) is None


def test_the_code_that_counts_is_every_file_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(searchapp.__file__).parent
    shutil.copytree(package / "lucene", tmp_path / "lucene")
    (tmp_path / "engines").mkdir()
    shutil.copy(package / "engines" / "embedded.py", tmp_path / "engines")
    shutil.copy(package / "model.py", tmp_path)
    monkeypatch.setattr(searchapp, "__file__", str(tmp_path / "__init__.py"))
    digest = versions.code_digest.__wrapped__
    assert digest() == ""  # it was written after this process was started, which runs other code
    monkeypatch.setattr(versions, "_LOADED", time.time() + 3600)
    before = digest()
    assert before
    analysis = tmp_path / "lucene" / "analysis"
    (analysis / "__pycache__").mkdir(exist_ok=True)
    (analysis / "__pycache__" / "new.pyc").write_bytes(b"1")
    assert digest() == before
    data = sorted(file for file in (analysis / "data").rglob("*") if file.is_file())
    for file in (
        data[0],
        analysis / "stemmers.py",
        tmp_path / "engines" / "embedded.py",
        tmp_path / "lucene" / "index" / "merge.py",
        tmp_path / "model.py",
    ):
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        assert digest() != before
        file.write_bytes(content)
    assert digest() == before
    monkeypatch.setattr(versions, "version", lambda name: f"{name} 1")
    assert digest() != before
    (tmp_path / "model.py").unlink()
    assert digest() == ""


def test_a_version_made_by_unknown_code_is_built_anew(embedded: EmbeddedEngine) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    folder = folder_of(Path(embedded.info().location).parent, "rings")
    manifest = Manifest.read(folder)
    object.__setattr__(manifest, "analysis", "")
    manifest.write(folder)
    assert embedded.open("rings").info.documents == 100
    assert embedded.compare("rings", MAPPING) is None


# What goes wrong


def test_a_damaged_file_is_noticed_or_not_needed(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    embedded.build("whole", spec_of(EDITED), EDITED)
    whole = files_of(tmp_path, "whole")
    folder = folder_of(tmp_path, "rings")
    noticed = set()
    for file in sorted(folder.iterdir()):
        if file.name in (STAMP, MANIFEST):
            continue
        content = file.read_bytes()
        for place in (len(content) // 2, len(content) - 1):
            file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
            found = compared(embedded, EDITED)
            if found is None:
                noticed.add(file.name)
                continue
            before = folder.name
            try:
                embedded.build("rings", spec_of(EDITED), EDITED, carried=found)
            except Damaged:
                noticed.add(file.name)
                assert folder_of(tmp_path, "rings").name == before
            else:
                assert files_of(tmp_path, "rings") == whole
                # Back to the version of before.
                shutil.rmtree(folder.parent)
                embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
                folder = folder_of(tmp_path, "rings")
                file = folder / file.name
            file.write_bytes(content)
    postings = {"documents", "frequencies", "positions", "position-starts", "starts", "terms", "term-starts"}
    assert {f"field1.{part}.npy" for part in postings | {"norms", "present"}} <= noticed
    assert {"digests.npy", "documents.sqlite", "ids.terms.npy", "ids.documents.npy"} <= noticed


def test_documents_of_a_version_that_was_replaced_are_not_taken_over(embedded: EmbeddedEngine) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    found = compared(embedded, EDITED)
    embedded.build("rings", spec_of(DOCUMENTS[:50]), DOCUMENTS[:50])
    with pytest.raises(Replaced):
        embedded.build("rings", spec_of(EDITED), EDITED, carried=found)
    assert embedded.open("rings").info.documents == 50


def test_a_version_of_the_same_name_in_an_index_that_was_made_again_is_another_one(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    found, folder = compared(embedded, EDITED), folder_of(tmp_path, "rings")
    embedded.remove("rings")
    other = DOCUMENTS[::-1]
    embedded.build("rings", spec_of(other), other)
    assert folder_of(tmp_path, "rings") == folder
    before = files_of(tmp_path, "rings")
    with pytest.raises(Replaced):
        embedded.build("rings", spec_of(EDITED), EDITED, carried=found)
    assert files_of(tmp_path, "rings") == before


@pytest.mark.parametrize("name", [MANIFEST, f"{merge.DIGESTS}.npy"])
def test_verbose_says_that_a_damaged_version_can_not_be_compared(
    embedded: EmbeddedEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    file = folder_of(tmp_path, "rings") / name
    file.write_bytes(file.read_bytes()[:-9] + b"x" * 9)
    caplog.set_level(logging.INFO, "searchapp.requests")
    assert compared(embedded, EDITED) is None
    (said,) = caplog.messages
    assert said.startswith("rings: no document can be taken over, what serves can't be read: ")
    assert name in said


def test_what_can_not_be_taken_over_after_all_is_built_whole(
    embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    found = compared(embedded, EDITED)
    embedded.build("rings", spec_of(DOCUMENTS[:50]), DOCUMENTS[:50])
    before = embedded.index_info("rings")
    serving = build(embedded, "rings", spec_of(EDITED), before, EDITED, "indexing", Silent(), found)
    assert (serving.carried, serving.analyzed) == (0, len(EDITED))
    assert serving.note.endswith("all were analyzed: another version was made meanwhile")
    embedded.build("whole", spec_of(EDITED), EDITED)
    assert files_of(tmp_path, "rings") == files_of(tmp_path, "whole")


def test_a_full_disk_leaves_what_serves(
    embedded: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    before = files_of(tmp_path, "rings")
    for pieces in (0, 7, 20):
        fill_disk(monkeypatch, pieces)
        with pytest.raises(SearchappError, match="could not be written: no space left"):
            embedded.build("rings", spec_of(EDITED), EDITED, carried=compared(embedded, EDITED))
        monkeypatch.undo()
        assert files_of(tmp_path, "rings") == before
        assert [entry.name for entry in folder_of(tmp_path, "rings").parent.glob("0*")] == ["000001"]
    assert require_as_rebuilt(embedded, tmp_path, EDITED) == 98


KILLED = """
import os, signal, sys
from pathlib import Path
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.lucene.index import merge
from tests.engines.embedded.conftest import MAPPING, spec_of
from tests.engines.embedded.test_carried import EDITED, compared
joins = []

def join(*given):
    joins.append(given)
    if len(joins) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*given)

whole, merge.join = merge.join, join
embedded = EmbeddedEngine(Path(sys.argv[1]), "test")
embedded.build("rings", spec_of(EDITED), EDITED, carried=compared(embedded, EDITED))
"""


def test_what_serves_outlives_a_build_that_is_killed(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    embedded.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
    before = files_of(tmp_path, "rings")
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    assert subprocess.run(command, cwd=Path(__file__).parents[3], check=False).returncode == -signal.SIGKILL
    assert folder_of(tmp_path, "rings").with_name("000002").exists()
    assert files_of(tmp_path, "rings") == before
    assert require_as_rebuilt(embedded, tmp_path, EDITED) == 98
