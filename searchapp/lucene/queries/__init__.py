"""Elasticsearch's query DSL, read into Lucene's queries, which match, score and explain.

registry      the queries of the DSL, and where each is read
parser        from JSON to queries: what all readers share
query         what every query does; leaves, `Constant`, `Boost`
scores        rows of scores, and their sums
boolean, dis_max, boosting, function_score   compound queries
match_all, term, number_range, fulltext   families of leaf queries
normal_form   the form of a query in which both engines search
"""
