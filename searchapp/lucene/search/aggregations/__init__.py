"""Aggregations: numbers and groups of the documents that match a query.

    values      values of documents
    rounding    intervals of dates
    metrics     numbers: `sum`, `stats`, `cardinality`, ...
    buckets     groups: `terms`, `histogram`, `filters`, ...
    parsers     the readers of `aggs`

An aggregation computes its result from ascending numbers of documents, of all segments. The order of the documents is
that of the index, which counts for the last bit of sums of fractions.
"""

from searchapp.lucene.search.aggregations.buckets import Inner as Aggregations
from searchapp.lucene.search.aggregations.buckets import aggregate
from searchapp.lucene.search.aggregations.parsers import read_aggregations
from searchapp.lucene.search.aggregations.values import Documents

__all__ = ["Aggregations", "Documents", "aggregate", "read_aggregations"]
