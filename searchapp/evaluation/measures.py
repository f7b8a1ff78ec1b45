"""The field's measures, computed by ir-measures (MacAvaney, Macdonald and Ounis, ECIR 2022)."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from searchapp.errors import UsageError
from searchapp.names import nearest

if TYPE_CHECKING:
    from ir_measures import Measure

_PROVIDERS = ("pytrec_eval", "msmarco", "judged")
"""What computes inside this process; ir-measures' others run Perl, or need further packages."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures by measure, under the names that were asked for.

    `values` has the mean over the topics (for counts such as NumRel: the sum), nan when there are no topics;
    `per_topic` has each topic of the qrels, in their order.
    """

    values: Mapping[str, float]
    per_topic: Mapping[str, Mapping[str, float]]


def measure(
    rankings: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> Measures:
    """Measure rankings, given best first, in the order in which they are given.

    `names` are in ir-measures' notation: AP, RR, P@5, R@100, nDCG@10, AP(rel=2). Exactly the topics of the
    qrels count: a topic without a ranking counts 0, and so does one without relevant documents (as in the
    official scorer of nlps; ir-measures itself counts some of these and leaves out others, for its providers
    differ). Other topics are ignored. Of a repeated document the first place counts.

    Raises:
        UsageError: a name is not one of a measure that can be computed here.
    """
    parsed = {name: _parse(name) for name in names}
    if not parsed:
        return Measures({}, {})
    results: dict[Measure, dict[str, float]] = {kind: {} for kind in parsed.values()}
    topics = {_safe(topic): topic for topic in qrels}
    known = {
        safe: {_safe(document): grade for document, grade in qrels[topic].items()}
        for safe, topic in topics.items()
    }
    for result in _provider().evaluator(list(results), known).iter_calc(_scored(rankings)):
        results[result.measure][topics[result.query_id]] = result.value
    per_topic = {
        name: {topic: results[kind].get(topic, 0.0) for topic in qrels} for name, kind in parsed.items()
    }
    values = {name: _aggregate(kind, per_topic[name]) for name, kind in parsed.items()}
    return Measures(values, per_topic)


def _safe(id_: str) -> str:
    """Another id in place of one that trec_eval, which is written in C, cannot hold: it ends ids at a NUL
    character, and takes the process down at half a surrogate pair. Different ids stay different."""
    if "\0" not in id_ and not id_.startswith("\1"):
        try:
            id_.encode()
        except UnicodeEncodeError:
            pass
        else:
            return id_
    return "\1" + id_.encode("utf-8", "surrogatepass").hex()


def _scored(rankings: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
    """The rankings with scores made from the ranks: n, n - 1, ..., 1.

    trec_eval, which does the counting, sorts by score and breaks ties by descending document id, whatever the
    order of the run. The scores of a run may well be tied, also because trec_eval keeps them as 32-bit
    floats. Made from ranks they never are: whole numbers up to 2^24 are exact there.
    """
    scored = {}
    for topic, documents in rankings.items():
        distinct = list(dict.fromkeys(map(_safe, documents)))
        scored[_safe(topic)] = {
            document: float(len(distinct) - rank) for rank, document in enumerate(distinct)
        }
    return scored


def _parse(name: str) -> Measure:
    advice = "use ir-measures' notation, such as AP, RR, P@5, R@100 or nDCG@10"
    try:
        parsed = _read(name)
        computed = _provider().supports(parsed)
    except (AttributeError, ValueError, KeyError, TypeError, AssertionError, SyntaxError) as error:
        raise UsageError(f"there is no measure {name!r}{_meant(name)}: {advice}") from error
    if not computed:
        raise UsageError(f"the measure {name!r} cannot be computed here: {advice}")
    # trec_eval takes the process down when it meets a cut-off that is not positive.
    cutoff = parsed.params.get("cutoff", 1)
    if type(cutoff) is not int or cutoff < 1:
        raise UsageError(f"the cut-off of the measure {name!r} must be a whole number from 1 on: {advice}")
    relevant_from = parsed.params.get("rel", 1)
    if type(relevant_from) is not int or relevant_from < 1:
        raise UsageError(f"`rel` of the measure {name!r} must be a whole number from 1 on: {advice}")
    return parsed


def _meant(name: str) -> str:
    """What a name with a slip in it was meant to be, as a question; a cut-off and parameters stay as they are."""
    from ir_measures.measures import registry

    given = name.strip()
    kind = re.match(r"\w*", given)
    known = [one.NAME for one in registry.values()]  # without the names that some have besides
    like = nearest(kind[0], known) if kind and kind[0] not in registry else None
    return "" if kind is None or like is None else f" (did you mean {like}{given[kind.end() :]}?)"


def _read(name: str) -> Measure:
    """A measure by its name, such as P(rel=2)@5.

    ir-measures' own `parse_measure` uses names of the module `ast` that Python 3.14 has no longer.
    """
    from ir_measures.measures import registry

    expression: ast.expr = ast.parse(name.strip(), mode="eval").body
    parameters: dict[str, Any] = {}
    cutoff: ast.expr | None = None
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.MatMult):
        cutoff = expression.right
        expression = expression.left
    if isinstance(expression, ast.Call) and not expression.args:
        parameters = {str(one.arg): ast.literal_eval(one.value) for one in expression.keywords}
        expression = expression.func
    if not isinstance(expression, ast.Name):
        raise ValueError(f"{name} is no name of a measure")
    kind: Any = registry[expression.id]
    if cutoff is not None:
        parameters[kind.AT_PARAM] = ast.literal_eval(cutoff)
    measure: Measure = kind(**parameters)
    return measure


def _provider() -> Any:
    from ir_measures import providers

    return providers.FallbackProvider(  # type: ignore[no-untyped-call]
        [providers.registry[name] for name in _PROVIDERS]
    )


def _aggregate(kind: Measure, values: Mapping[str, float]) -> float:
    aggregator: Any = kind.aggregator()
    for value in values.values():
        aggregator.add(value)
    return float(aggregator.result())
