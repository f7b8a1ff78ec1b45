"""Search: from a query to its best documents.

searcher      an open index: rank, search, count, explain, analyze
request       parser of search bodies
compiled      queries that the C functions accept, and their best documents
highlight     tags around matches in the text of hits
"""
