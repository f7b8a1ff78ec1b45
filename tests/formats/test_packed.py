from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.formats.encoding import PieceWriter, packing, pieces, unpacked


def written(texts: list[bytes]) -> bytes:
    file = BytesIO()
    for text in texts:
        PieceWriter(file).write(text)
    return file.getvalue()


@given(st.lists(st.binary(max_size=200), max_size=6))
def test_each_piece_is_read_by_itself_and_any_tool_reads_all(texts: list[bytes]) -> None:
    held = written(texts)
    assert held == written(texts)
    assert gzip.decompress(held) == b"".join(texts)
    found = pieces(held)
    assert found is not None
    assert [unpacked(held, piece) for piece in found] == texts
    assert [piece.lines for piece in found] == [text.count(b"\n") for text in texts]
    assert [unpacked(held, piece, 3) for piece in found] == [text[:3] for text in texts]


def test_what_another_tool_compressed_has_no_pieces() -> None:
    assert pieces(gzip.compress(b"a b\n")) is None
    held = written([b"one\n", b"two\n"])
    assert pieces(held[:-1]) is None and pieces(held + b"\0") is None


@pytest.mark.parametrize("place", [-1, -20])
def test_an_altered_piece_is_told(place: int) -> None:
    held = bytearray(written([b"a line of a run\n" * 9]))
    held[place] ^= 0xFF
    found = pieces(bytes(held))
    assert found is not None
    (piece,) = found
    with pytest.raises(ValueError, match="not as it was compressed"):
        unpacked(bytes(held), piece)


def test_a_whole_file_is_packed_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with packing(tmp_path / name) as file:
            file.write(b"one\n")
            file.write(b"two\n")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert gzip.decompress((tmp_path / "a").read_bytes()) == b"one\ntwo\n"
