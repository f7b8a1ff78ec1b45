"""A search library: Lucene's analysis, queries, index and scoring in Python and C, bit-equal to Elasticsearch 9.4.

It is usable without the rest of searchapp:

    >>> import tempfile, pathlib
    >>> from searchapp.lucene import Document, Index
    >>> mapping = {"mappings": {"properties": {"id": {"type": "keyword"}, "text": {"type": "text"}}}}
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> index = Index.create(folder, mapping, [Document("1", "prime numbers"), Document("2", "prime ideals")])
    >>> index.add([Document("3", "real numbers")])
    >>> body = {"query": {"match": {"text": "numbers"}}, "sort": [{"_score": "desc"}, {"id": "asc"}]}
    >>> [hit.id for hit in Index.open(folder).search(body)]
    ['1', '3']
    >>> index.explain(body, "3").description
    'weight(text:numbers in 2) [PerFieldSimilarity], result of:'
    >>> [token.term for token in index.analyze("Real Numbers", field="text")[-1].tokens]
    ['real', 'numbers']

analysis/      text to terms: analyzers, tokenizers, filters, Java's regular expressions
queries/       the query DSL, parsed into Lucene's queries
index/         mapping, writer, files, reader and versions of an index
search/        from a query to the best documents
native/        C functions, their compilation and loading
similarity     BM25 in float32
parameters     values of mappings and search bodies; numbers as in Java
records        documents, tokens, hits, explanations, counts
errors         all errors

Names are imported on first use: `analysis` works without NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchapp.lucene.errors import LuceneError
    from searchapp.lucene.records import Document, ScoredDocument
    from searchapp.lucene.search.searcher import Index

__all__ = ["Document", "Index", "LuceneError", "ScoredDocument"]

_MODULES = {
    "Document": "records",
    "Index": "search.searcher",
    "LuceneError": "errors",
    "ScoredDocument": "records",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
