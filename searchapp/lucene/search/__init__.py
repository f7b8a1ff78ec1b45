"""From a query to its best documents.

request       a search body, read
searcher      search one part of an index, or two as one; count
topk          the top k of the scores of all documents, the memory of answers
kernels       which queries the C functions take; batches of topics by them
pruning       the best documents of such a query, of which not all are scored
highlight     marks in the text of hits"""
