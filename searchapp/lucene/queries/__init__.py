"""Elasticsearch's query DSL, read into Lucene's queries, which match, score and explain.

dsl           the queries of the DSL, and the normal form in which both engines search
query         the interface of queries, and of leaves; `Constant`, `Boost`; the parser from JSON to queries
scores        rows of scores, and their sums
boolean, boosting, function_score   compound queries
match_all, term, number_range, fulltext   families of leaf queries
"""
