"""The engine that needs no server: Elasticsearch's ranking, to the last bit, from files.

    schema       a create-index body, as far as it is supported
    parameters   values of mappings and search bodies, checked one by one
    storage/     where an index is kept, and how it is written, swapped and opened
    queries/     the query DSL, read into Lucene's queries and simplified as Lucene does
    similarity   BM25 in float32
    rows, sums, may_match, functions, scoring, topk
                                           from a query to its best documents
    together, kernels                          the same for a batch of queries, by the functions compiled from kernels.c
    pruning, prunable, bounded_clause, laid_out, maxscore, accumulated, candidates
                                           the same in a large index, where not all documents are scored
    compiled_maxscore, compiled_phrases        the same by the functions compiled from maxscore.c and phrases.c
    parts, searcher                            an index in two parts, each of which is searched by itself
    native, compiling                          the library of compiled functions
    highlight, explain, describe, source       what a person sees of a hit
    body, index, engine                        the protocols of `engines.base`

What it does not support it refuses by name, see `refusals`.
"""

from __future__ import annotations

from searchapp.engines.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
