"""From a query to its best documents.

request       a search body, read; the table of the DSL's queries
searcher      search one part of an index, or two as one; count
scoring       scores of all documents, the top k, the memory of answers
term_scores   scores of one term in its documents
pruning       which queries need not score all documents, and how these are answered
maxscore      the bounds of scores and the search by them, in NumPy
kernels       the same and batches of topics, by the C functions
highlight     marks in the text of hits
explanation   how a score came about"""
