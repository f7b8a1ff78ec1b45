"""The libraries of `peers.py`: tantivy, bm25s and PISA."""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from peer_base import COMPARED_HITS, K1, B, Hits, Query, System, Unavailable, lines
from peer_collections import Collection


class Tantivy(System):
    """tantivy through its Python binding, with ids in a fast field; threads share a batch."""

    package = "tantivy"
    modules = ("tantivy",)

    def build(self, collection: Collection) -> None:
        import tantivy

        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        schema = tantivy.SchemaBuilder()
        schema.add_unsigned_field("id", fast=True)
        schema.add_text_field("text", tokenizer_name="whitespace")  # a tokenizer of tantivy
        index = tantivy.Index(schema.build(), path=str(self.folder))
        # One thread with the maximum of memory writes the fewest segments, mostly one.
        writer = index.writer(heap_size=3_900_000_000, num_threads=1)
        for id_, text in lines(collection):
            document = tantivy.Document()
            document.add_unsigned("id", int(id_))
            document.add_text("text", text)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()

    def open(self, collection: Collection) -> None:  # noqa: ARG002
        import tantivy

        self._tantivy = tantivy
        index = tantivy.Index.open(str(self.folder))
        self._schema, self._searcher = index.schema, index.searcher()

    def query(self, terms: Query, depth: int) -> Hits:
        query, should = self._tantivy.Query, self._tantivy.Occur.Should
        clauses = [(should, query.term_query(self._schema, "text", term)) for term in terms]
        hits = self._searcher.search(query.boolean_query(clauses), depth, count=False).hits
        ids = self._searcher.fast_field_values("id", [address for _, address in hits])
        return [str(id_) for id_ in ids], [score for score, _ in hits]

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        with ThreadPoolExecutor(self.threads) as pool:
            return sum(len(ids) for ids, _ in pool.map(lambda terms: self.query(terms, depth), queries))

    def facts(self) -> dict[str, Any]:
        return {"segments": self._searcher.num_segments}


class Bm25s(System):
    """bm25s with method `lucene`, which computes all scores while indexing."""

    package = "bm25s"
    modules = ("bm25s",)
    backend = "numpy"

    def build(self, collection: Collection) -> None:
        import bm25s

        tokens, starts = collection.token_arrays()
        vocabulary = {f"w{number}": number for number in range(collection.facts["terms"])}
        index = bm25s.BM25(k1=K1, b=B, method="lucene", backend=self.backend)
        index.index(_Rows(tokens, starts).with_vocabulary(vocabulary), show_progress=False)
        index.save(str(self.folder), show_progress=False)

    def open(self, collection: Collection) -> None:
        import bm25s

        self._index = bm25s.BM25.load(str(self.folder), backend=self.backend)
        self._count = collection.facts["documents"]

    def query(self, terms: Query, depth: int) -> Hits:
        (documents,), (scores,) = self._index.retrieve(
            [list(terms)], k=min(depth, self._count), show_progress=False, n_threads=0
        )
        return [str(number) for number in documents.tolist()], scores.tolist()

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        documents, scores = self._index.retrieve(
            [list(terms) for terms in queries],
            k=min(depth, self._count),
            show_progress=False,
            n_threads=self.threads,
        )
        rankings = [[str(number) for number in row] for row in documents.tolist()]
        return sum(map(len, rankings)) if len(scores) else 0


class Bm25sNumba(Bm25s):
    """bm25s on its compiled backend; compilation is not measured."""

    backend = "numba"

    @property
    def version(self) -> str:
        return f"{super().version}, numba {importlib.metadata.version('numba')}"


class _Rows:
    """The documents' term numbers in the form that bm25s accepts.

    Makes the lists on demand, because all lists would need 30 times the memory.
    """

    def __init__(self, tokens: Any, starts: Any) -> None:
        self._tokens, self._starts = tokens, starts
        self.ids: Iterable[Sequence[int]] = self
        self.vocab: dict[str, int] = {}

    def with_vocabulary(self, vocabulary: dict[str, int]) -> _Rows:
        self.vocab = vocabulary
        return self

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[list[int]]:
        for start, end in zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True):
            yield self._tokens[start:end].tolist()


class Pisa(System):
    """An algorithm of PISA through pyterrier-pisa, with postings in SIMD-BP128 blocks.

    The package returns data frames of pandas, which takes a millisecond for each query. Therefore this class calls the
    function that the package calls.
    """

    package = "pyterrier-pisa"
    algorithm = "ranked_or"

    def build(self, collection: Collection) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._pisa().index({"docno": id_, "text": text} for id_, text in lines(collection))
        self._retriever()  # computes the maximum score of each block, once for all algorithms

    def measure(self, collection: Collection, size: str, warm_up: float) -> dict[str, Any]:
        self._pisa()  # loads the library
        return super().measure(collection, size, warm_up)

    def open(self, collection: Collection) -> None:  # noqa: ARG002
        self._index = self._retriever()

    def query(self, terms: Query, depth: int) -> Hits:
        ids, scores = self._answers([terms], depth, 1)
        return ids.tolist(), scores.tolist()

    def batch(self, queries: Sequence[Query], depth: int) -> int:
        ids, scores = self._answers(queries, depth, self.threads)
        return min(len(ids.tolist()), len(scores.tolist()))

    def _answers(self, queries: Sequence[Query], depth: int, threads: int) -> tuple[Any, Any]:
        import numpy as np
        from pyterrier_pisa import _pisathon

        capacity = len(queries) * depth
        ids, scores = np.empty(capacity, object), np.empty(capacity, np.float32)
        size = _pisathon.retrieve(
            self._index._ctxt,
            self.algorithm,
            [(number, " ".join(terms)) for number, terms in enumerate(queries)],
            k=depth,
            threads=threads,
            query_weighted=0,
            pretokenised=False,
            result_qidxs=np.empty(capacity, np.int32),
            result_docnos=ids,
            result_ranks=np.empty(capacity, np.int32),
            result_scores=scores,
        )
        return ids[:size], scores[:size]

    def _retriever(self) -> Any:
        return self._pisa().bm25(
            k1=K1, b=B, num_results=COMPARED_HITS, threads=1, query_algorithm=self.algorithm
        )

    def _pisa(self) -> Any:
        try:
            from pyterrier_pisa import PisaIndex
        except (ImportError, KeyError, OSError) as error:
            raise Unavailable(f"pyterrier-pisa does not load: {error}") from error
        return PisaIndex(str(self.folder), text_field="text", stemmer="none", stops="none", threads=1)


class PisaMaxScore(Pisa):
    """PISA with MaxScore."""

    algorithm = "maxscore"


class PisaBlockMaxWand(Pisa):
    """PISA with block-max WAND."""

    algorithm = "block_max_wand"
