"""The queries of Elasticsearch's DSL that the embedded engine has: their names and what reads them."""

from __future__ import annotations

from collections.abc import Mapping

from searchapp.engines.embedded.queries import compound, fulltext
from searchapp.engines.embedded.queries.function_score import function_score
from searchapp.engines.embedded.queries.leaves import (
    exists,
    ids,
    match_all,
    match_none,
    number_range,
    prefix,
    term,
    term_in_set,
)
from searchapp.engines.embedded.queries.parse import Reader

READERS: Mapping[str, Reader] = {
    "bool": compound.bool_,
    "boosting": compound.boosting,
    "constant_score": compound.constant_score,
    "dis_max": compound.dis_max,
    "exists": exists.read,
    "function_score": function_score,
    "ids": ids.read,
    "match": fulltext.match,
    "match_all": match_all.read,
    "match_none": match_none.read,
    "match_phrase": fulltext.match_phrase,
    "multi_match": fulltext.multi_match,
    "prefix": prefix.read,
    "range": number_range.read,
    "term": term.read,
    "terms": term_in_set.read,
}
