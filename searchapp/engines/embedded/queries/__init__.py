"""Elasticsearch's query DSL, read into Lucene's queries.

nodes                   the queries, as Lucene has them
rewrite                 the simplifications that Lucene makes before it scores
parse                   the DSL's entry: names to readers, boosts
parameters              values of the DSL checked one by one
fulltext, termlevel, compound, functions   the readers by kind
minimum_should_match    how many optional clauses must match
"""
