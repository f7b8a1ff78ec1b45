"""From a query to its best documents.

searcher      an open index: rank, search, count, explain, analyze
request       a search body, read
compiled      queries that the C functions accept, and their best documents
highlight     tags around the matches in the text of hits"""
