"""Lucene's analysis, queries, index and scoring in Python and C, to the last bit as in Elasticsearch 9.4.

analysis/      text to terms: analyzers, tokenizers, filters, Java's regular expressions
queries/       the query DSL, read into Lucene's queries and rewritten as Lucene rewrites them
index/         mapping, writer, files, reader and versions of an index
search/        from a query to the best documents: scores, top-k, highlights, explanations
native/        the C functions, their compilation and the library that is loaded
similarity     BM25 in float32
parameters     values of mappings and search bodies, checked one by one; numbers as Java reads and prints them
errors         unsupported and invalid settings, mappings and queries

This `__init__` imports nothing: `analysis` must stay usable without NumPy."""
