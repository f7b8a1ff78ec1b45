"""The queries of Elasticsearch's DSL that the embedded engine has: their names and what reads them."""

from __future__ import annotations

from collections.abc import Mapping

from searchapp.engines.embedded.queries import compound, fulltext, termlevel
from searchapp.engines.embedded.queries.function_score import function_score
from searchapp.engines.embedded.queries.parse import Reader

READERS: Mapping[str, Reader] = {
    "bool": compound.bool_,
    "boosting": compound.boosting,
    "constant_score": compound.constant_score,
    "dis_max": compound.dis_max,
    "exists": termlevel.exists,
    "function_score": function_score,
    "ids": termlevel.ids,
    "match": fulltext.match,
    "match_all": compound.match_all,
    "match_none": compound.match_none,
    "match_phrase": fulltext.match_phrase,
    "multi_match": fulltext.multi_match,
    "prefix": termlevel.prefix,
    "range": termlevel.range_,
    "term": termlevel.term,
    "terms": termlevel.terms,
}
