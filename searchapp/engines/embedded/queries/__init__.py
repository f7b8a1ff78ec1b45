"""Elasticsearch's query DSL, read into Lucene's queries.

nodes                   the queries, as Lucene has them
parse                   the DSL's entry: names to readers, boosts
fulltext, termlevel, compound, functions   the readers by kind
graph                   the ways through a text whose synonyms reach over several words
parameters              values of the DSL checked one by one
minimum_should_match    how many optional clauses must match
settle                  what Lucene learns from the index before it searches
rewrite                 the simplifications that Lucene makes before it scores
"""

# Each registers its readers with `parse` when it is imported.
from searchapp.engines.embedded.queries import compound, fulltext, functions, termlevel  # noqa: F401
