"""Elasticsearch's query DSL, read into Lucene's queries.

leaf, scored_leaf       what the engine asks of a query without others inside
leaves/                 these queries, one in each module
nodes                   the queries made of others, and the closed union of all: `Query`
disjunctions, walk      disjunctions of terms spelled out; ways through what is inside a query
parse                   what all readers of the DSL share
readers                 the name of each query of the DSL and its reader
fulltext, compound, function_score   readers of what comes to several kinds of queries, or to one made of others
graph                   the ways through a text whose synonyms reach over several words
number_value, boosts, minimum_should_match   parameters of their own kind
clauses                 how many clauses a query may have
settle                  what Lucene learns from the index before it searches
rewrite                 the simplifications that Lucene makes before it scores
recurring               queries that differ in their texts alone, read and rewritten once
"""
