"""Packed numbers are read as they were written, by C and by NumPy, and damaged ones do not crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene import native
from searchapp.lucene.index import arrays, packed
from searchapp.lucene.index.arrays import StoredArray
from searchapp.lucene.index.packed import (
    BLOCK,
    DocumentsFile,
    FrequenciesFile,
    PackedDocuments,
    PackedFile,
    PackedFrequencies,
    PackedNumbers,
    open_starts,
    save_starts,
)
from searchapp.lucene.queries.phrase import Phrase
from searchapp.lucene.search import compiled
from searchapp.lucene.search.compiled import Pruner
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of

LENGTHS = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 20 * BLOCK + 7)

DAMAGES = 300


@pytest.fixture(params=["compiled", "NumPy"])
def code(request: pytest.FixtureRequest) -> Iterator[None]:
    with nullcontext() if request.param == "compiled" else native.without():
        yield


def numbers_of_all_widths(length: int, seed: int) -> NDArray[np.uint32]:
    """Return numbers of 0 to 32 bits; some blocks have zeros only, some the greatest number."""
    random = np.random.default_rng(seed)
    widths = random.integers(0, 33, length // BLOCK + 1).repeat(BLOCK)[:length].astype(np.uint64)
    numbers = (random.integers(0, 2**32, length, dtype=np.uint64) >> (np.uint64(32) - widths)).astype(
        np.uint32
    )
    numbers[::997] = 2**32 - 1
    return numbers


@pytest.mark.parametrize("length", LENGTHS)
def test_numbers_are_read_as_written(code: None, tmp_path: Path, length: int) -> None:
    numbers = numbers_of_all_widths(length, length)
    random = np.random.default_rng(length)
    with PackedFile(tmp_path, "numbers") as file:
        for piece in np.array_split(numbers, 9):
            file.append(piece)
    content, offsets = mapped(tmp_path, "numbers", "numbers.offsets")
    read = PackedNumbers(content, offsets, length)
    assert read.all().tolist() == numbers.tolist()
    parts = [slice(*sorted(random.integers(0, length + 1, 2).tolist())) for _ in range(50)]
    for part in parts:
        assert read[part].tolist() == numbers[part].tolist()
    assert read.parts(parts).tolist() == np.concatenate([numbers[part] for part in parts]).tolist()


def test_both_codes_write_the_same_bytes() -> None:
    numbers = numbers_of_all_widths(40 * BLOCK, 1)
    content, ends = packed.packed(numbers)
    with native.without():
        other_content, other_ends = packed.packed(numbers)
    assert content.tobytes() == other_content.tobytes()
    assert ends.tolist() == other_ends.tolist()


@given(
    st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=300, unique=True), max_size=12),
    st.data(),
)
def test_documents_of_terms_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, terms: list[list[int]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("documents")
    lists = [np.array(sorted(term), np.int32) for term in terms]
    documents = np.concatenate([np.empty(0, np.int32), *lists])
    counts = np.array(list(map(len, lists)), np.int64)
    with DocumentsFile(folder, "documents") as file:
        middle = data.draw(st.integers(0, len(lists)))
        for some in (slice(0, middle), slice(middle, len(lists))):
            file.begin_terms(counts[some])
            rest = np.concatenate([np.empty(0, np.int32), *lists[some]])
            for piece in np.array_split(rest, data.draw(st.integers(1, 5))):
                file.append(piece)
    starts = np.append(0, np.cumsum(counts))
    content, offsets, bases = mapped(folder, "documents", "documents.offsets", "documents.bases")
    read = PackedDocuments(content, offsets, bases, StoredArray(starts))
    first, end = sorted(
        (data.draw(st.integers(0, len(documents))), data.draw(st.integers(0, len(documents))))
    )
    parts = [slice(begin, stop) for begin, stop in zip(starts.tolist(), starts[1:].tolist(), strict=False)]
    for with_c in (True, False):
        with nullcontext() if with_c else native.without():
            assert read.all().tolist() == documents.tolist()
            assert read[first:end].tolist() == documents[first:end].tolist()
            for part, expected in zip(parts, lists, strict=True):
                assert read.parts([part]).tolist() == expected.tolist()
            assert read.parts(parts[::-1]).tolist() == np.concatenate([documents[:0], *lists[::-1]]).tolist()


@pytest.mark.parametrize("count", LENGTHS)
def test_starts_are_read_as_written(code: None, tmp_path: Path, count: int) -> None:
    random = np.random.default_rng(count)
    starts = np.append(0, np.cumsum(random.choice([0, 1, 30, 40_000], count)))
    save_starts(tmp_path, "starts", starts)
    read = open_starts(lambda name: arrays.mapped(tmp_path, name), "starts", is_packed=True)
    assert len(read) == count + 1
    assert read.all().tolist() == starts.tolist()
    for _ in range(50):
        first, end = sorted(random.integers(0, count + 2, 2).tolist())
        assert read[first:end].tolist() == starts[first:end].tolist()
    for index in {0, count - 1, *random.integers(0, count or 1, 20).tolist()} - {-1}:
        if index < count:
            assert read.pair(index) == tuple(starts[index : index + 2])


@pytest.mark.parametrize("length", LENGTHS)
def test_frequencies_and_their_sums_are_read_as_written(code: None, tmp_path: Path, length: int) -> None:
    random = np.random.default_rng(length)
    frequencies = random.integers(1, random.choice([2, 5, 300, 70_000], length, p=[0.7, 0.2, 0.09, 0.01]) + 1)
    with FrequenciesFile(tmp_path, "frequencies") as file:
        for piece in np.array_split(frequencies, 5):
            file.append(piece)
    read = PackedFrequencies(*frequency_arrays(tmp_path), length)
    assert read.all().tolist() == frequencies.tolist()
    sums = np.append(0, np.cumsum(frequencies))
    indices = np.sort(random.integers(0, length + 1, 60))
    assert [read.sum_before(index) for index in indices.tolist()] == sums[indices].tolist()
    assert read.sums_before(indices).tolist() == sums[indices].tolist()


def test_sums_are_continued_in_the_next_chunk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packed, "CHUNK", 5)
    frequencies = np.arange(1, 42)
    with FrequenciesFile(tmp_path, "frequencies") as file:
        file.append(frequencies)
    read = PackedFrequencies(*frequency_arrays(tmp_path), len(frequencies))
    sums = np.append(0, np.cumsum(frequencies))
    assert read.sums_before(np.arange(len(sums))).tolist() == sums.tolist()


def frequency_arrays(folder: Path) -> tuple[StoredArray, StoredArray, StoredArray]:
    content, offsets, sums = mapped(folder, "frequencies", "frequencies.offsets", "frequencies.sums")
    return content, offsets, sums


def mapped(folder: Path, *names: str) -> list[StoredArray]:
    return [arrays.mapped(folder, name) for name in names]


@pytest.fixture
def index(embedded: EmbeddedEngine) -> Iterator[EmbeddedIndex]:
    """Return an index with terms in many blocks, in parts of blocks, and in one document."""
    random = np.random.default_rng(3)
    texts = [" ".join(random.choice([*"aaaabbbccd", f"w{number % 400}"], 12)) for number in range(3_000)]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    embedded.build("packed", spec_of(documents), documents)
    with closing(embedded.open("packed")) as opened:
        yield opened


@pytest.mark.usefixtures("library")
def test_altered_numbers_do_not_crash(index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checksums of files report such damage before; the code itself reads inside its arrays and ends."""
    monkeypatch.setattr(compiled, "SIZE_SHARE", 1)
    random = np.random.default_rng(5)
    reader = index.index.searchers[0].reader
    field = reader.fields["text"]
    query = index.index.bodies.read(body({"match": {"text": "a b c d w7 w8"}}, 5)).query
    phrases = [Phrase.of("text", terms, (0, 1)) for terms in ("ab", "dc", ("a", "w7"))]
    raised = 0
    for _ in range(DAMAGES):
        postings = field._postings
        documents, frequencies, positions = postings.documents, postings.frequencies, postings.positions
        assert isinstance(documents, PackedDocuments)
        assert isinstance(frequencies, PackedFrequencies)
        assert isinstance(positions, PackedNumbers)
        altered = postings._replace(
            documents=PackedDocuments(
                damaged(documents._differences._content, random),
                damaged(documents._differences._offsets, random),
                damaged(documents._bases, random),
                postings.starts,
            ),
            frequencies=PackedFrequencies(
                damaged(frequencies._content, random),
                damaged(frequencies._offsets, random),
                damaged(frequencies._sums, random),
                len(frequencies),
            ),
            positions=PackedNumbers(
                damaged(positions._content, random), damaged(positions._offsets, random), len(positions)
            ),
        )
        with monkeypatch.context() as patch:
            for name in ("documents", "frequencies"):
                patch.setattr(field, f"_{name}", getattr(altered, name))
            patch.setattr(field, "_postings", altered)
            searches: list[Callable[[], object]] = [lambda: Pruner(reader).best(query, 5)]
            searches += [partial(phrase.postings, field) for phrase in phrases]
            for search in searches:
                try:
                    search()
                except IndexError:
                    raised += 1
    assert raised > DAMAGES


def damaged(array: StoredArray, random: np.random.Generator) -> StoredArray:
    """Return an array of the same length in which one number, or none, or all are others."""
    values: NDArray[Any] = array.all().copy()
    limits = np.iinfo(values.dtype)
    kind = random.integers(6)
    if kind == 0:
        values[random.integers(len(values))] = random.integers(limits.min, limits.max, dtype=values.dtype)
    elif kind == 1:
        values[random.integers(len(values)) :] += values.dtype.type(random.integers(1, 100))
    elif kind == 2:
        values[:] = random.permutation(values)
    return StoredArray(values)
