"""The compiled functions return the ids, order and score bits of NumPy, and outdated libraries are not used."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import QueryRefused
from searchapp.lucene import native
from searchapp.lucene.native import compilation
from searchapp.lucene.queries import scores as row_sums
from searchapp.lucene.queries.boolean import disjunction_max
from searchapp.lucene.queries.scores import ROW, FieldRows, ScoreRow, Scores
from searchapp.lucene.search import searcher
from searchapp.lucene.search.compiled import SUM, BatchClause, BatchTopic, Workspace, best_of_batch
from searchapp.lucene.search.searcher import top_k
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of
from tests.engines.embedded.test_pruning import INDEXES, QUERIES, match

Json = dict[str, Any]

EVERYTHING: Json = {"match_all": {"boost": 0}}

SIZES = (0, 1, 3, 10, 100, 1_000)


@pytest.fixture(scope="module", autouse=True)
def batch_always() -> Iterator[None]:
    """Score even a few topics in a batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searcher, "SMALLEST_BATCH", 0)
        yield


@pytest.fixture(scope="module")
def indexes(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, EmbeddedIndex]]:
    collections = {**INDEXES, "empty": []}
    with closing(EmbeddedEngine(tmp_path_factory.mktemp("kernels"), "test")) as engine:
        for name, documents in collections.items():
            engine.build(name, spec_of(documents), documents)
        yield {name: engine.open(name) for name in collections}


def search_compiled_and_numpy(index: EmbeddedIndex, bodies: Sequence[Json]) -> tuple[list[Any], list[Any]]:
    """Return the hits of the compiled functions and of NumPy, with scores as doubles, which keep all bits."""
    compiled = list(index.search(bodies))
    with native.without():
        return compiled, list(index.search(bodies))


def recipe(clauses: Sequence[Json], excluded: str) -> Json:
    """Return the query of a recipe, which matches all documents except one."""
    return {"bool": {"must": [EVERYTHING], "should": list(clauses), "must_not": [{"term": {"id": excluded}}]}}


WORDS = st.lists(st.sampled_from([*"abcdefg", "absent"]), min_size=1, max_size=9)
BOOSTS = st.sampled_from([1.0, 0.3, 1e-20, 1e20, 3e-39, 0.0])
CLAUSES = st.lists(
    st.builds(match, WORDS, st.sampled_from(["text", "text.gaps", "text.alike", "tag"]), BOOSTS),
    min_size=1,
    max_size=5,
)
TOPICS = st.one_of(
    QUERIES,
    st.builds(recipe, CLAUSES, st.sampled_from(["0", "1", "absent"])),
    st.builds(lambda clauses: {"bool": {"should": clauses}}, CLAUSES),
    st.builds(
        lambda clauses, tie: {"dis_max": {"queries": clauses, "tie_breaker": tie}},
        CLAUSES,
        st.sampled_from([0.0, 0.1, 0.7, 1.0]),
    ),
)


@given(
    st.sampled_from([*INDEXES, "empty"]),
    st.lists(TOPICS, min_size=1, max_size=4),
    st.sampled_from(SIZES),
    st.integers(0, 4),
)
def test_compiled_functions_return_the_hits_of_numpy(
    indexes: dict[str, EmbeddedIndex], name: str, topics: list[Json], size: int, first: int
) -> None:
    bodies = [body(topic, size, **{"from": first}) for topic in topics]
    compiled, expected = search_compiled_and_numpy(indexes[name], bodies)
    assert compiled == expected


SCORES = np.array([0.5, 1, 1, 1.5, 2.0**-30, 2.0**30, 3.4e38, 1e-45, 1 / 3], np.float32)
COUNT = 40


def random_clauses(seed: int, is_part: bool) -> list[list[ScoreRow]]:
    """Return clauses of rows in an index of `COUNT` documents, or in a segment of a larger index.

    NumPy draws them, because hypothesis is slow for arrays.
    """
    random = np.random.default_rng(seed)

    def row() -> ScoreRow:
        size = int(random.choice([0, 1, 2, 5, 12, COUNT]))
        documents = np.sort(random.choice(COUNT, size, replace=False)).astype(np.int32)
        greatest = random.integers(1, len(SCORES), endpoint=True)  # most rows do not have the greatest scores
        frequency = size + int(random.choice([0, 1, 3, COUNT])) if is_part else None
        return ScoreRow(
            documents,
            random.choice(SCORES[:greatest], size),
            True,
            bool(random.integers(2)),
            index_frequency=frequency,
        )

    return [[row() for _ in range(random.integers(7))] for _ in range(random.integers(1, 5))]


@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from([SUM, SUM, 0.0, 0.3, 1.0]),
    st.sampled_from([1, 5, COUNT, 2 * COUNT]),
    st.sampled_from([0, 3, 10**6]),
    st.booleans(),
)
def test_rows_are_added_in_the_order_of_numpy(
    library: Path, seed: int, all_match: bool, tie: float, size: int, few: int, is_part: bool
) -> None:
    """The scores differ so much that each order of summation gives other bits."""
    functions, clauses = native.library(), random_clauses(seed, is_part)
    assert functions is not None
    ranks = np.arange(COUNT, dtype=np.int32)[::-1].copy()
    batch_clauses = []
    for clause in clauses:
        other_segments, rows = [], []
        for position, row in enumerate(clause):
            if is_part and position % 2 and not len(row.documents):
                other_segments += [row.frequency] if row.frequency else []
            else:
                rows.append(row.packed)
        batch_clauses.append(BatchClause(b"".join(rows), True, (len(other_segments), sum(other_segments))))
    topic = BatchTopic(batch_clauses, size, all_match, float(np.float32(tie)), [2, 7])
    (answer,) = best_of_batch(functions, [topic], Workspace(ranks, ranks), few)
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore", invalid="ignore"):
        patch.setattr(row_sums, "FEW", few)
        if tie == SUM:
            sums = [row_sums.total_of_few(clause) or row_sums.total(COUNT, clause) for clause in clauses]
            rows_of_few = [total for total in sums if isinstance(total, ScoreRow)]
            expected = row_sums.total(
                COUNT, rows_of_few, [total for total in sums if isinstance(total, Scores)]
            )
        else:
            expected = disjunction_max([row_sums.total(COUNT, clause) for clause in clauses], tie)
        values, mask = expected.values, np.ones(COUNT, bool) if all_match else expected.values > 0
    if not np.isfinite(values).all():
        assert answer is None
        return
    mask[[2, 7]] = False
    documents = top_k(Scores(np.where(mask, values, np.float32(0)), mask), ranks, size)
    assert answer is not None
    assert answer[0].tolist() == documents.tolist()
    assert answer[1].view(np.int32).tolist() == values[documents].view(np.int32).tolist()


def test_the_smallest_of_many_ids_are_selected_if_nearly_all_scores_are_equal(
    library: Path, embedded: EmbeddedEngine
) -> None:
    documents = [
        Document(f"{number * 7919 % 30_011}", "a b" if number % 3 else "a") for number in range(20_000)
    ]
    embedded.build("equal", spec_of(documents), documents)
    bodies = [body(match(words), size) for words, size in itertools.product(["a", "ab", "b"], [1, 50, 9_000])]
    compiled, expected = search_compiled_and_numpy(embedded.open("equal"), bodies)
    assert compiled == expected


def test_verbose_counts_queries_scored_by_compiled_functions(
    indexes: dict[str, EmbeddedIndex], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "searchapp.requests")
    index = indexes["random"]
    search_compiled_and_numpy(
        index, [body(match("ab")), body({"match_phrase": {"text": "a b"}}), body({"prefix": {"tag": "x"}})]
    )
    compiled = f"{index.info.version}: 3 queries, 0 of them pruned, 2 scored by compiled functions"
    assert caplog.messages == [compiled, f"{index.info.version}: 3 queries, 0 of them pruned"]


def test_scores_beyond_float32_are_rejected_with_the_position_of_the_body(
    indexes: dict[str, EmbeddedIndex],
) -> None:
    huge = {"bool": {"should": [match("a", boost=3e38), match("b", "text.gaps", 3e38)]}}
    with pytest.raises(QueryRefused, match="infinite") as error:
        list(indexes["random"].search([body(match("a")), body(huge)]))
    assert error.value.place == 1


def one_row(documents: list[int]) -> ScoreRow:
    return ScoreRow(np.array(documents, np.int32), np.ones(len(documents), np.float32), True)


def query_of(row: ScoreRow) -> BatchTopic:
    return BatchTopic([BatchClause(row.packed, is_rounded=False)], 5, False, SUM, [])


@pytest.mark.parametrize("documents", [[0, COUNT], [0, -1]])
def test_invalid_postings_raise_an_error_instead_of_crashing(library: Path, documents: list[int]) -> None:
    functions = native.library()
    assert functions is not None
    ranks = np.arange(COUNT, dtype=np.int32)
    row = one_row(documents)
    with pytest.raises(IndexError, match="postings"):
        best_of_batch(functions, [query_of(row)], Workspace(ranks, ranks), 3)


@pytest.mark.parametrize("starts", [[0, 3], [1, 0], [-1, 2], [0, 2, 1]])
def test_rows_of_a_field_outside_its_postings_are_rejected(starts: list[int]) -> None:
    row = one_row([0, 1])
    frequencies = np.ones(len(starts) - 1, np.int64)
    rows = FieldRows(
        row.documents, row.scores, True, starts=np.array(starts), frequencies=frequencies, common=5
    )
    with pytest.raises(IndexError, match="postings"):
        _ = rows.packed_rows


def test_the_rows_of_a_field_are_the_rows_of_its_terms() -> None:
    documents, scores = np.array([3, 5, 5, 0, 2, 9], np.int32), np.arange(1, 7, dtype=np.float32)
    starts, frequencies = [0, 2, 2, 3, 6], [2, 8, 1, 4]
    rows = FieldRows(
        documents,
        scores,
        True,
        starts=np.array(starts),
        frequencies=np.array(frequencies),
        common=3,
    )
    for rank, (begin, end) in enumerate(itertools.pairwise(starts)):
        frequency = frequencies[rank]
        row = ScoreRow(documents[begin:end], scores[begin:end], True, frequency > 3, None, frequency)
        found, expected = ROW.unpack(rows.packed_rows[rank].tobytes()), ROW.unpack(row.packed)
        assert found[2:] == expected[2:]
        assert found[:2] == expected[:2] or begin == end  # NumPy moves the start of empty arrays


@pytest.mark.parametrize("number", [-1, COUNT, 2**31 - 1])
@pytest.mark.parametrize("altered", ["ranks", "by_rank"])
def test_invalid_ranks_raise_an_error_instead_of_crashing(library: Path, altered: str, number: int) -> None:
    functions = native.library()
    assert functions is not None
    arrays = {name: np.arange(COUNT, dtype=np.int32) for name in ("ranks", "by_rank")}
    arrays[altered][7] = number
    row = one_row([3, 7])
    with pytest.raises(IndexError, match="postings"):
        best_of_batch(functions, [query_of(row)], Workspace(**arrays), 3)


def test_a_library_compiled_from_another_source_is_not_loaded(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / "kernels.c"
    (source,) = (path for path in compilation.SOURCES if path.name == older.name)
    older.write_text(source.read_text() + "/* older */\n")
    path = tmp_path / "older.so"
    assert compilation.compile_library(path, [older]) == ""
    monkeypatch.setattr(compilation, "LIBRARY", path)
    native._loaded.cache_clear()
    assert native.library() is None
    assert "another version" in native.missing_reason()
    monkeypatch.setattr(compilation, "LIBRARY", tmp_path / "nothing.so")
    native._loaded.cache_clear()
    assert native.library() is None
    assert "not compiled" in native.missing_reason()
    native._loaded.cache_clear()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096])  # the system kills a process that reads beyond the end


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def delete_the_checksum(path: Path) -> None:
    compilation.checksum_of(path).unlink()


@pytest.mark.parametrize("harm", [cut_short, flip_a_bit, delete_the_checksum])
def test_a_library_altered_after_compilation_is_not_loaded(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    path = tmp_path / library.name
    shutil.copy(library, path)
    shutil.copy(compilation.checksum_of(library), compilation.checksum_of(path))
    monkeypatch.setattr(compilation, "LIBRARY", path)
    native._loaded.cache_clear()
    assert native.library() is not None
    path.unlink()  # changing a loaded library would kill this process
    shutil.copy(library, path)
    harm(path)
    native._loaded.cache_clear()
    assert native.library() is None
    assert native.missing_reason() == f"{path} has changed since it was compiled: build searchapp again"
    native._loaded.cache_clear()


def test_the_compiler_can_have_options(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", f"{os.environ.get('CC') or 'cc'} -g0")
    assert compilation.compile_library(tmp_path / "made.so", compilation.SOURCES[-1:]) == ""
    assert compilation.is_sound(tmp_path / "made.so")
    compilation.remove(tmp_path / "made.so")
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("CC", "'cc")
    assert compilation.compile_library(tmp_path / "made.so") == "CC is not a command: 'cc"


def test_a_failing_compiler_leaves_no_files(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "kernels.c"
    source.write_text("#error no\n")
    assert "failed: " in compilation.compile_library(tmp_path / "made.so", [source])
    assert "failed: " in compilation.compile_library(tmp_path / "absent" / "made.so")
    monkeypatch.setenv("CC", "no-such-compiler")
    assert compilation.compile_library(tmp_path / "made.so") == "there is no C compiler"
    assert [path.name for path in tmp_path.iterdir()] == ["kernels.c"]
