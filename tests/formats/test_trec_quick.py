"""The fast reader of runs that searchapp has written."""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import InvalidFiles
from searchapp.formats import trec
from searchapp.formats.trec import LONGEST_CELL, read_as_written
from searchapp.model import Hits, Ranking, Run, float32

ids = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=8)
scores = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    topics = draw(st.lists(ids, unique=True, min_size=1, max_size=5))
    rankings = []
    for topic in topics:
        documents = draw(st.lists(ids, unique=True, min_size=1, max_size=12))
        values = draw(st.lists(scores, min_size=len(documents), max_size=len(documents)))
        rankings.append(Ranking(topic, Hits(documents, values)))
    return Run(draw(ids), tuple(rankings))


def written(run: Run) -> bytes:
    buffer = BytesIO()
    trec.write_run(buffer, run)
    return buffer.getvalue()


def read(content: bytes) -> Run | None:
    return read_as_written(BytesIO(content))


def in_pieces(content: bytes, size: int) -> Run | None:
    """Read a run in pieces of this size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "PIECE", size)
        return read(content)


sizes = st.sampled_from([0, 1, 20, 50, 200, 1 << 20])


@given(runs(), sizes)
def test_a_written_run_is_read_back(run: Run, size: int) -> None:
    assert in_pieces(written(run), size) == run


def test_the_tag_is_that_of_the_first_line() -> None:
    content = b"1 Q0 a 1 2 first\n1 Q0 b 2 1 second\n2 Q0 a 1 2 third\n"
    run = read(content)
    assert run is not None and run.tag == "first" and run == in_pieces(content, 0) == read_by_line(content)


@given(runs(), st.data(), sizes)
def test_the_fast_reader_equals_the_reader_by_line(run: Run, data: st.DataObject, size: int) -> None:
    content = bytearray(written(run))
    for _ in range(data.draw(st.integers(1, 3))):
        offset = data.draw(st.integers(0, len(content) - 1))
        content[offset] = data.draw(
            st.sampled_from(b" \n\t\r0123456789eE.+-_naif\x00\x7f\x85\xa0\xff" + b"a")
        )
    result = read(bytes(content))
    assert in_pieces(bytes(content), size) == result
    if result is not None:
        assert read_by_line(bytes(content)) == result


def read_by_line(content: bytes) -> Run | None:
    """Read a run with `trec.read_run`; return None if it is invalid."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.trec"
        path.write_bytes(b"\n" + content)  # the fast reader rejects blank lines
        assert read(path.read_bytes()) is None
        try:
            return trec.read_run(path)
        except InvalidFiles:
            return None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"1 Q0 a 1 1 t",
        b"1 Q0 a 1 1\n",
        b"1 Q0 a 1 1 t u\n",
        b"1  Q0 a 1 1 t\n",
        b" 1 Q0 a 1 1 t\n",
        b"1\tQ0 a 1 1 t\n",
        b"1 Q0 a 1 1 t\r\n",
        b"1 Q0 a 1 1 t\n\n",
        b"1 Q0 a 2 1 t\n",
        b"1 Q0 a 0 1 t\n",
        b"1 Q0 a 1 nan t\n",
        b"1 Q0 a 1 inf t\n",
        b"1 Q0 a 1 1e99 t\n",
        b"1 Q0 a 1 1_0 t\n",
        b"1 Q0 a 1 - t\n",
        b"1 Q0 a 1 1 t\n1 Q0 a 2 1 t\n",
        b"1 Q0 a 1 1 t\n2 Q0 a 1 1 t\n1 Q0 b 1 1 t\n",
        b"1 Q0 a 1 1 t\n2 Q0 a 2 1 t\n",
        "1 Q0 ä 1 1 t\n".encode(),
        b"1 Q0 a\x7f 1 1 t\n",
        b"\xef\xbb\xbf1 Q0 a 1 1 t\n",
        b"1 Q0 " + b"a" * (LONGEST_CELL + 1) + b" 1 1 t\n",
        b"\x1f\x8b\x08\x00",
    ],
)
def test_the_fast_reader_rejects_files_that_searchapp_does_not_write(content: bytes) -> None:
    assert read(content) is None


def test_scores_are_float32_and_equal_ids_are_the_same_object() -> None:
    run = read(b"1 Q0 doc-1 1 0.1 t\n2 Q0 doc-1 1 -1e-05 t\n")
    assert run is not None
    first, second = run.rankings
    assert first.hits.scores == (float32(0.1),) and second.hits.scores == (float32(-1e-05),)
    assert first.hits.document_ids[0] is second.hits.document_ids[0]
