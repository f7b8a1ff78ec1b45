"""Elasticsearch's query DSL, parsed into Lucene's queries, which match, score and explain.

dsl           the queries of the DSL, and their normal form
query         the interface of queries and leaves; `Constant`, `Boost`; the parser
scores        score rows, and their sums
boolean, boosting, function_score   compound queries
match_all, term, number_range, phrase, fuzzy, regexp   leaf queries
fulltext      queries that analyze text

Functions raise `Refused` for queries that are invalid, unsupported or can't be scored.
"""
