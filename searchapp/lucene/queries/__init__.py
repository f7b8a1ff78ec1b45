"""Elasticsearch's query DSL, read into Lucene's queries.

query         leaves, queries made of others, and their union `Query`
parser        from JSON to queries: what all readers share, and the limit of clauses
match_all, term, number_range   families of leaf queries: value, reader, matching, scoring, explanation
fulltext      `match`, `match_phrase`, `multi_match`; the leaf `Phrase`
compound      `bool`, `dis_max`, `constant_score`, `boosting`, `function_score`
rewrite       Lucene's simplifications before scoring, and ways through a query

The table of all readers is `READERS` in `search.request`."""
