"""From a query to its best documents.

request       a search body, read; the table of the DSL's queries
searcher      search one part of an index, or two as one; count
scoring       scores of all documents, the top k, the memory of answers
term_scores   scores of one term in its documents
kernels       which queries the C functions take; batches of topics by them
pruning       the best documents of such a query, of which not all are scored
highlight     marks in the text of hits
explanation   how a score came about"""
