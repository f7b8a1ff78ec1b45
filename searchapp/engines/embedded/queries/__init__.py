"""Elasticsearch's query DSL, read into Lucene's queries.

nodes                   the queries, as Lucene has them
parse                   the DSL's entry: what all readers share, boosts
readers                 the name of each query of the DSL and its reader
fulltext, termlevel, compound, function_score   the readers by kind
graph                   the ways through a text whose synonyms reach over several words
minimum_should_match    how many optional clauses must match
settle                  what Lucene learns from the index before it searches
rewrite                 the simplifications that Lucene makes before it scores
"""
