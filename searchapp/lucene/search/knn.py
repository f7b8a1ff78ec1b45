"""The section `knn` of search bodies: the documents whose vectors are nearest to a vector.

    org.elasticsearch.search.vectors.KnnSearchBuilder
    org.elasticsearch.search.dfs.DfsPhase
    org.elasticsearch.action.search.DfsQueryPhase

Elasticsearch finds the documents of each section first, and then searches for them or the query of the body.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters, vectors
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import ErrorCollector, invalid, known_only, unsupported
from searchapp.lucene.index.mapping import DENSE_VECTOR, RESULT_WINDOW, Field
from searchapp.lucene.index.reader import Numbers, SegmentReader
from searchapp.lucene.queries.boolean import Bool
from searchapp.lucene.queries.match_all import MatchNone, is_nothing
from searchapp.lucene.queries.nearest import NearestDocuments
from searchapp.lucene.queries.query import Parser, Query, apply_boost, rewrite
from searchapp.lucene.queries.scores import ScoreRows
from searchapp.lucene.similarity import Float32s

_KNOWN = {
    *("field", "query_vector", "k", "num_candidates", "filter", "similarity", "boost", "_name"),
    "query_vector_builder",
}


@dataclass(frozen=True, slots=True)
class KnnSection:
    """A search for the `k` documents nearest to a vector."""

    field: str
    vector: bytes
    k: int
    filters: tuple[Query, ...] = ()  # which the documents must match
    least: float | None = None  # the least score of a document


def read_sections(content: Any, parser: Parser, size: int) -> list[tuple[KnnSection | None, float]]:
    """Read the `knn` of a search body: sections and their boosts; None for a field that the index lacks.

    `size` is that of the body, the default of `k`.
    """
    problems = ErrorCollector()
    is_list = isinstance(content, list | tuple)
    sections = []
    for number, written in enumerate(content if is_list else [content]):
        path = f"knn[{number}]" if is_list else "knn"
        with problems.at(path):
            sections.append(_section(written, parser, size, path))
    problems.raise_if_any()
    return sections


def _section(content: Any, parser: Parser, size: int, path: str) -> tuple[KnnSection | None, float]:
    options = parameters.mapping(content, "`knn`")
    known_only(options, _KNOWN, "`knn`")
    parameters.without_null(options, (*options,), "`knn`")
    if "query_vector_builder" in options:
        raise unsupported("`query_vector_builder` of `knn`, which needs a model on the server")
    for name in ("field", "query_vector"):
        if name not in options:
            raise invalid(f"`knn` lacks `{name}`")
    for name in ("field", "_name"):
        if not isinstance(options.get(name, ""), str):
            raise invalid(f"`{name}` of `knn` must be a name, not {options[name]!r}")
    if not options["field"]:
        raise unsupported("an empty name as `field` of `knn`")
    vector = options["query_vector"]
    for number in vector if isinstance(vector, list | tuple) else [vector]:
        if not isinstance(number, str) and not parameters.is_number(number):
            raise invalid(f"`query_vector` of `knn` has {parameters.shown(number)}, which is no number")
    k = parameters.integer(options.get("k", size), "`k` of `knn`")
    candidates = parameters.integer(options.get("num_candidates", max(k, 1)), "`num_candidates` of `knn`")
    if not 1 <= k <= candidates <= RESULT_WINDOW:
        raise invalid(
            f"`k` of `knn` is {k:,} and `num_candidates` {candidates:,}, but they must be from 1 to "
            f"{RESULT_WINDOW:,}, and `num_candidates` not less than `k`"
        )
    boost = parameters.boost(options.get("boost", 1), "`knn`")
    filters = options.get("filter", ())
    queries = tuple(
        rewrite(parser.query_at(f"{path}.filter", query))
        for query in (filters if isinstance(filters, list | tuple) else [filters])
    )
    field = parser.field(options["field"], DENSE_VECTOR)
    if field is None:
        return None, boost
    if not field.is_vector:
        raise invalid(f"`field` of `knn` is {field.name}, whose type is {field.type}, not {DENSE_VECTOR}")
    least: float | None = None
    if "similarity" in options:
        threshold = parameters.to_float32(
            parameters.any_number(options["similarity"], "`similarity` of `knn`")
        )
        least = float(vectors.least_score(field.vector_similarity, field.dims, threshold))
    return KnnSection(field.name, _query_vector(vector, field), k, queries, least), boost


def _query_vector(value: Any, field: Field) -> bytes:
    if parameters.is_number(value):  # a list of one number
        value = [value]
    if isinstance(value, list | tuple) and any(isinstance(number, str) for number in value):
        raise unsupported("texts in the list `query_vector` of `knn`")
    try:
        vector = vectors.read_vector(value, field.vector_bytes)
    except NotImplementedError as error:
        raise unsupported(f"{error} in `query_vector` of `knn`") from error
    except ValueError as error:
        raise invalid(f"`query_vector` of `knn` on {field.name}: {error}") from error
    if field.vector_similarity == vectors.COSINE and not any(vector):
        raise invalid(f"`query_vector` of `knn` on {field.name} has only zeros, and no cosine")
    return vector


def joined(query: Query | None, nearest: Iterable[tuple[Query, float]]) -> Query:
    """Return the query for the documents of sections, with their boosts, or those of the query of a body."""
    queries = [*([] if query is None else [query]), *(apply_boost(leaf, boost) for leaf, boost in nearest)]
    if len(queries) == 1:
        return queries[0]
    if all(map(is_nothing, queries)):
        return MatchNone()
    return Bool(should=tuple(queries))


def find_nearest(sections: Iterable[KnnSection], rows: Sequence[ScoreRows]) -> dict[KnnSection, Query]:
    """Return the nearest documents of each section in the index; equal scores in the order of documents.

    Args:
        rows: of all segments
    """
    groups: defaultdict[tuple[str, tuple[Query, ...]], list[KnnSection]] = defaultdict(list)
    for section in dict.fromkeys(sections):
        groups[section.field, section.filters].append(section)
    found: dict[KnnSection, Query] = {}
    for group in groups.values():
        parts: list[list[tuple[Numbers, Float32s]]] = [[] for _section in group]
        for segment in rows:
            for index, part in enumerate(_of_segment(group, segment)):
                parts[index].append(part)
        for section, of_segments in zip(group, parts, strict=True):
            numbers, values = map(np.concatenate, zip(*of_segments, strict=True))
            best = np.sort(_best(values, section.k))
            found[section] = (
                NearestDocuments(numbers[best].tobytes(), values[best].tobytes())
                if len(best)
                else MatchNone()
            )
    return found


def _of_segment(sections: Sequence[KnnSection], rows: ScoreRows) -> Iterable[tuple[Numbers, Float32s]]:
    """Yield the best documents of a segment, ascending, for each section; all have the same field and filters."""
    assert isinstance(rows.reader, SegmentReader)
    field = rows.reader.fields[sections[0].field]
    documents, stored = field.vectors
    similarity, dims = field.field.vector_similarity, field.field.dims
    lengths = field.squared_lengths if vectors.needs_lengths(similarity) else None
    mask = rows.reader.live
    for query in sections[0].filters:
        matching = query.matching(rows)
        mask = matching if mask is None else mask & matching
    selected = None
    if mask is not None:
        selected = np.flatnonzero(mask[documents])
        documents = documents[selected]
    documents = (documents + rows.reader.first).astype(np.int32)
    queries = np.frombuffer(b"".join(section.vector for section in sections), np.uint8)
    queries = queries.reshape(len(sections), -1)
    step = max(1, vectors.SCORES_AT_ONCE // max(1, len(documents)))
    for first in range(0, len(sections), step):
        chunk = slice(first, first + step)
        all_scores = vectors.scores(similarity, stored, lengths, queries[chunk], dims, selected)
        for section, scores in zip(sections[chunk], all_scores, strict=True):
            best = np.sort(_best(scores, section.k))
            if section.least is not None:
                best = best[scores[best] >= np.float32(section.least)]
            yield documents[best], scores[best]


def _best(scores: Float32s, k: int) -> NDArray[np.intp]:
    """Return the indices of the `k` greatest scores, the first ones of equal scores."""
    candidates = np.arange(len(scores))
    if k < len(scores):
        candidates = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    return candidates[np.argsort(-scores[candidates], kind="stable")][:k]
