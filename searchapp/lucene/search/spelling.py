"""Find indexed terms that resemble a misspelled one.

The candidates are those of Lucene's `DirectSpellChecker`: terms that begin with the same character and are few edits
away, the closest first, then the most frequent. An edit inserts, deletes or replaces a character, or swaps two
adjacent ones; a character that was swapped is not edited again (optimal string alignment, Lucene's
`LuceneLevenshteinDistance`). As with Elasticsearch's fuzziness `AUTO`, terms of less than six characters may differ
in one edit, longer ones in two. Terms of less than four characters have no candidates.
"""

from __future__ import annotations

from collections.abc import Iterable

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.reader import FieldReader
from searchapp.lucene.queries import fuzzy

# In characters.
SHORTEST_TERM = 4
LONGEST_TERM = 50
TWO_EDITS_FROM = 6


@dataclass(frozen=True, slots=True)
class SimilarTerm:
    """An indexed term that resembles another one."""

    term: str
    edits: int
    documents: int  # its document frequency


def edits_allowed(term: str) -> int:
    """Return the greatest number of edits between a term and a candidate; 0 if the term has no candidates.

    >>> [edits_allowed(term) for term in ("ring", "abelian", "set")]
    [1, 2, 0]
    """
    if not SHORTEST_TERM <= len(term) <= LONGEST_TERM:
        return 0
    return 2 if len(term) >= TWO_EDITS_FROM else 1


def edit_distance(term: str, other: str) -> int:
    """Return the number of edits between two terms.

    >>> edit_distance("abelain", "abelian"), edit_distance("homomorphsm", "homomorphism")
    (1, 1)
    """
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, character in enumerate(term, start=1):
        row = [i]
        for j, other_character in enumerate(other, start=1):
            edits = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (character != other_character))
            if i > 1 and j > 1 and character == other[j - 2] and term[i - 2] == other_character:
                edits = min(edits, before[j - 2] + 1)
            row.append(edits)
        before, last = last, row
    return last[-1]


def closest(candidates: Iterable[SimilarTerm], size: int) -> list[SimilarTerm]:
    """Return at most `size` candidates with the fewest edits, the most frequent first."""
    ordered = sorted(candidates, key=lambda similar: (similar.edits, -similar.documents, similar.term))
    return [similar for similar in ordered if similar.edits == ordered[0].edits][:size]


def similar_terms(segments: Iterable[FieldReader], term: str, size: int) -> list[SimilarTerm]:
    """Return the terms of a field, given by its readers in all segments, that are closest to `term`; see `closest`."""
    most = edits_allowed(term)
    if not most:
        return []
    fields = list(segments)
    edits: dict[str, int] = {}
    for field in fields:
        edits |= fuzzy.similar_terms(field.terms, term, most, 1)
    for number in range(1, most + 1):
        candidates = [
            SimilarTerm(name, number, documents)
            for name, own in edits.items()
            if own == number and (documents := fields[0].document_frequency(name))  # 0 if all were deleted
        ]
        if candidates:
            return closest(candidates, size)
    return []
