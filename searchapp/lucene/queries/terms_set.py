"""The query `terms_set`: documents with at least as many of several terms as a field of theirs says.

org.apache.lucene.sandbox.search.CoveringQuery
org.elasticsearch.index.query.TermsSetQueryBuilder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.mapping import BOOLEAN, Schema
from searchapp.lucene.index.reader import Mask
from searchapp.lucene.queries.boolean import Bool, with_minimum
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.query import Leaf, Parser, Query, apply_boost_parameter, explain
from searchapp.lucene.queries.scores import ScoreRows, Scores, restrict
from searchapp.lucene.queries.term import Term, of_value
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE


@dataclass(frozen=True, slots=True)
class Covering(Query):
    """Documents that match a number of clauses, at least one: a constant, or a document's value of a field."""

    clauses: tuple[Query, ...]
    minimum: int | str  # the constant, or the name of a numeric or boolean field

    def children(self) -> tuple[Query, ...]:
        return self.clauses

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return Covering(children, self.minimum)

    def rewritten(self) -> Query:
        if isinstance(self.minimum, int):
            return Bool(should=self.clauses, minimum=max(1, self.minimum))
        return super(Covering, self).rewritten()  # noqa: UP008 (slots need it)

    def _required(self, rows: ScoreRows) -> NDArray[np.float64]:
        """Return the number of clauses that each document requires; infinite for one without a value."""
        assert isinstance(self.minimum, str)
        field = rows.reader.fields[self.minimum]
        required = np.full(rows.count, np.inf)
        if field.field.type == BOOLEAN:
            required[field.present] = 1
            return required
        values = field.smallest(np.arange(rows.count))
        return np.where(np.isnan(values), required, np.maximum(np.trunc(values), 1))

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        counts = np.zeros(rows.count, np.int64)
        for clause in self.clauses:
            counts += clause.matching(rows, boost, scope)
        return np.asarray(counts >= self._required(rows))

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return restrict(
            Bool(should=self.clauses).scores(rows, boost, scope), self.matching(rows, boost, scope)
        )

    def notation(self, schema: Schema) -> str:
        clauses = ", ".join(sorted(clause.notation(schema) for clause in self.clauses))
        kind = "constant" if isinstance(self.minimum, int) else "long"
        return f"CoveringQuery(queries=[{clauses}], minimumNumberMatch={kind}({self.minimum}))"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        """Return the explanation, which lists the clauses that don't match too."""
        if not self.matching(rows, boost)[document]:
            return None
        count, details = 0, []
        for clause in self.clauses:
            detail = clause.explanation(rows, document, boost)
            count += detail is not None
            if detail is None:
                text = "no matching term"
                if isinstance(clause, Leaf) and not isinstance(clause, Term):
                    name = clause.constant_notation(rows.reader.schema)
                    text = f"{name} doesn't match id {rows.reader.number(document)}"
                detail = explain(0, text)
            details.append(detail)
        required = int(self._required(rows)[document])
        description = f"{count} matches for {required} required matches, sum of:"
        return explain(self.scores(rows, boost).values[document], description, details)


_MINIMA = ("minimum_should_match_field", "minimum_should_match")


def read_terms_set(parser: Parser, content: Any) -> Query:
    """Read `terms_set`; the number of required terms is in a field, or for all documents `minimum_should_match`."""
    name, described = parameters.single(content, "the query `terms_set`")
    described = parameters.mapping(described, f"the query `terms_set` on {name}")
    options = parser.options(described, "terms_set", ("terms", *_MINIMA))
    parameters.without_null(options, tuple(options), "the query `terms_set`")
    values = parameters.listed(options.get("terms", ()), "`terms` of the query `terms_set`")
    if any(isinstance(value, Mapping) for value in values):
        raise unsupported(f"an object as a term for {name}")
    for value in values:
        parameters.term(value, f"a term for {name}")
    given = [key for key in _MINIMA if key in options]
    if len(given) > 1 or (values and not given):
        raise invalid(f"the query `terms_set` must have either {' or '.join(f'`{key}`' for key in _MINIMA)}")
    minimum = parameters.raw_text(options[given[0]], f"`{given[0]}`") if given else ""
    field = parser.field(name)
    if not values:
        return MatchNone(late=True)
    clauses = tuple(MatchNone(late=True) if field is None else of_value(field, value) for value in values)
    if given == ["minimum_should_match"]:
        query = Covering(clauses, with_minimum(Bool(should=clauses), minimum).minimum)
    else:
        counted = parser.field(minimum)
        if counted is None or not ((counted.is_number or counted.type == BOOLEAN) and counted.has_doc_values):
            raise invalid(f"`{given[0]}` must be a numeric field with doc values, which {minimum} is not")
        query = Covering(clauses, counted.name)
    return apply_boost_parameter(query, options, "terms_set")
