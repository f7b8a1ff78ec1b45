"""The field's measures, and curves of them, computed by ir-measures (MacAvaney, Macdonald and Ounis, ECIR 2022).

C. J. van Rijsbergen, Information Retrieval, 2nd edition 1979, chapter 7 (interpolated precision)
C. Buckley, E. M. Voorhees, Retrieval System Evaluation, in TREC: Experiment and Evaluation in Information
    Retrieval, 2005 (the eleven levels of recall)
"""

from __future__ import annotations

import ast
import difflib
import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from searchapp.errors import UsageError
from searchapp.lucene.dataclass import dataclass
from searchapp.resources import install_command

if TYPE_CHECKING:
    from ir_measures import Measure


# Providers that compute inside this process; the last one needs its package.
_PROVIDERS = ("pytrec_eval", "msmarco", "judged", "accuracy", "compat", "cwl_eval")

# The provider of measures of diversity, which need grades for each subtopic of a topic.
_DIVERSITY = "pyndeval"

# Parameters without a default that some measures of cwl-eval require.
_REQUIRED: Sequence[Mapping[str, int]] = ({}, {"rel": 1}, {"max_rel": 1}, {"max_rel": 1, "cutoff": 10})

ADVICE = "use ir-measures' notation, such as AP, RR, P@5, R@100 or nDCG@10"


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures by measure, under the requested names."""

    # The mean over the topics (for counts such as NumRel: the sum), nan without topics.
    values: Mapping[str, float]
    # The value of each topic of the qrels, in their order.
    per_topic: Mapping[str, Mapping[str, float]]

    @classmethod
    def none(cls) -> Measures:
        return cls({}, {})

    def of(self, topics: Collection[str]) -> dict[str, float]:
        """Return the values over some topics; empty if none of them was measured."""
        known = {
            name: {topic: of_topic[topic] for topic in topics if topic in of_topic}
            for name, of_topic in self.per_topic.items()
        }
        return {name: _aggregate(_parse(name), some) for name, some in known.items() if some}


def measure(
    rankings: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> Measures:
    """Measure rankings, given best first, on the topics of the qrels.

    A topic without a ranking or without relevant documents has the value 0; only the first occurrence of a document
    counts.

    Args:
        rankings: the documents of each topic
        qrels: the grades by topic and document
        names: measures in ir-measures' notation: AP, RR, P@5, R@100, nDCG@10, AP(rel=2)

    Raises:
        UsageError: a measure is unknown or can't be computed here.
    """
    parsed = {name: _parse(name) for name in names}
    if not parsed:
        return Measures.none()
    results: dict[Measure, dict[str, float]] = {kind: {} for kind in parsed.values()}
    topics = {_safe(topic): topic for topic in qrels}
    known = {
        safe: {_safe(document): grade for document, grade in qrels[topic].items()}
        for safe, topic in topics.items()
    }
    of_measure: dict[int, tuple[Measure, dict[str, float]]] = {}
    for result in _provider().evaluator(list(results), known).iter_calc(_scored(rankings)):
        # By identity: ir-measures makes the hash of a measure from its name, which it builds at each lookup.
        kind = result.measure
        if id(kind) not in of_measure:
            of_measure[id(kind)] = kind, results[kind]
        of_measure[id(kind)][1][topics[result.query_id]] = result.value
    per_topic = {
        name: {topic: results[kind].get(topic, 0.0) for topic in qrels} for name, kind in parsed.items()
    }
    values = {name: _aggregate(kind, per_topic[name]) for name, kind in parsed.items()}
    return Measures(values, per_topic)


def _safe(id_: str) -> str:
    """Replace an id that trec_eval can't store: its C code ends ids at NUL, and crashes at half a surrogate pair."""
    if "\0" not in id_ and not id_.startswith("\1"):
        try:
            id_.encode()
        except UnicodeEncodeError:
            pass
        else:
            return id_
    return "\1" + id_.encode("utf-8", "surrogatepass").hex()


def _scored(rankings: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
    """Return the rankings with scores from the ranks: n, n - 1, ..., 1."""
    # trec_eval sorts by 32-bit scores, and ties by descending id: only distinct scores keep the order.
    scored = {}
    safe = cache(_safe)  # most documents are in many rankings
    for topic, documents in rankings.items():
        distinct = list(dict.fromkeys(map(safe, documents)))
        scored[_safe(topic)] = dict(zip(distinct, map(float, range(len(distinct), 0, -1)), strict=True))
    return scored


def require_measures(names: Sequence[str]) -> None:
    """Reject measures that can't be computed here.

    Raises:
        UsageError: a measure is unknown or can't be computed here.
    """
    for name in names:
        _parse(name)


def _parse(name: str) -> Measure:
    try:
        parsed = _read(name)
        computed = _provider().supports(parsed)
    except _NO_MEASURE as error:
        if advice := _requirements(name):
            raise UsageError(f"searchapp can't compute the measure {name!r}: {advice}") from error
        raise UsageError(f"there is no measure {name!r}: {_advice(_similar_names(name.strip()))}") from error
    if not computed:
        advice = _requirements(name) or _advice([f"{name}@10", name.rpartition("@")[0]])
        raise UsageError(f"searchapp can't compute the measure {name!r}: {advice}")
    # trec_eval takes the process down when it meets a cut-off that is not positive.
    cutoff = parsed.params.get("cutoff", 1)
    if type(cutoff) is not int or cutoff < 1:
        raise UsageError(
            f"the cut-off of the measure {name!r} must be a whole number of at least 1: {ADVICE}"
        )
    relevant_from = parsed.params.get("rel", 1)
    if type(relevant_from) is not int or relevant_from < 1:
        raise UsageError(f"`rel` of the measure {name!r} must be a whole number of at least 1: {ADVICE}")
    return parsed


# Errors of ir-measures for unknown names and parameters.
_NO_MEASURE = (AttributeError, ValueError, KeyError, TypeError, AssertionError, SyntaxError)

# Patterns of trec_eval's names of measures, and ir-measures' names of the same measures.
_OF_TREC_EVAL = {
    r"map": "AP",
    r"map_cut[._](\d+)": r"AP@\1",
    r"recip_rank": "RR",
    r"[Pp][._](\d+)": r"P@\1",
    r"recall[._](\d+)": r"R@\1",
    r"ndcg": "nDCG",
    r"ndcg_cut[._](\d+)": r"nDCG@\1",
    r"success[._](\d+)": r"Success@\1",
    r"iprec_at_recall[._](\d\.\d+)": r"IPrec@\1",
    r"num_(rel|ret)": r"Num\1",
    r"num_rel_ret": "NumRet(rel=1)",
    r"set_([PF])": r"Set\1",
    r"set_recall": "SetR",
}


def _advice(candidates: Iterable[str]) -> str:
    meant = next(filter(_is_measure, candidates), None)
    return ADVICE if meant is None else f"did you mean {meant}? Otherwise {ADVICE}"


def _similar_names(name: str) -> Iterator[str]:
    from ir_measures.measures import registry

    for pattern, other in _OF_TREC_EVAL.items():
        if match := re.fullmatch(pattern, name):
            yield match.expand(other)
    letters = "".join(itertools.takewhile(lambda letter: letter.isalpha() or letter == "_", name))
    by_letters = {str(known).casefold(): str(known) for known in sorted(registry)}
    word = letters.casefold()
    for close in (
        [word] if word in by_letters else difflib.get_close_matches(word, by_letters, n=3, cutoff=0.6)
    ):
        known = by_letters[close]
        yield from (known + name[len(letters) :], known, f"{known}@10")


def _is_measure(name: str) -> bool:
    try:
        parsed = _read(name)
        return bool(_provider().supports(parsed)) and parsed.params.get("cutoff", 1) >= 1
    except _NO_MEASURE:
        return False


def _requirements(name: str) -> str:
    """Return the missing requirements of a known measure; empty for an unknown measure."""
    from ir_measures import providers

    cwl_eval: Any = providers.registry["cwl_eval"]
    for further in _REQUIRED:
        with suppress(*_NO_MEASURE):
            complete = _read(name, further)
            if cwl_eval.supports(complete):
                lacks = []
                if not cwl_eval.is_available():
                    lacks.append(f"it needs the package cwl-eval: `{install_command('cwl-eval')}`")
                if further:
                    lacks.append(f"it needs {' and '.join(further)}: write {_with_parameters(name, further)}")
                return "; ".join(lacks)
    with suppress(*_NO_MEASURE):
        parsed = _read(name)
        others: dict[str, Any] = {
            key: provider for key, provider in providers.registry.items() if key not in _PROVIDERS
        }
        computing = [key for key, provider in others.items() if provider.supports(parsed)]
        if _DIVERSITY in computing:
            return "it needs grades of subtopics, which searchapp does not read"
        if computing:
            return f"it needs {' or '.join(computing)}, which searchapp does not run"
    return ""


def _with_parameters(name: str, further: Mapping[str, int]) -> str:
    head, at, cutoff = name.strip().partition("@")
    kind, _, given = head.partition("(")
    added = [f"{key}={value}" for key, value in further.items() if key != "cutoff"]
    inside = ",".join([*added, *filter(None, [given.rstrip(") ").strip()])])
    return f"{kind.strip()}({inside})" + (f"@{further['cutoff']}" if "cutoff" in further else at + cutoff)


def _read(name: str, further: Mapping[str, int] | None = None) -> Measure:
    """Parse a measure such as P(rel=2)@5, with `further` parameters."""
    from ir_measures.measures import registry

    # ir-measures' own `parse_measure` uses names that Python 3.14 has removed from `ast`.
    expression: ast.expr = ast.parse(name.strip(), mode="eval").body
    parameters: dict[str, Any] = {**(further or {})}
    cutoff: ast.expr | None = None
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.MatMult):
        cutoff = expression.right
        expression = expression.left
    if isinstance(expression, ast.Call) and not expression.args:
        parameters |= {str(key.arg): ast.literal_eval(key.value) for key in expression.keywords}
        expression = expression.func
    if not isinstance(expression, ast.Name):
        raise ValueError(f"{name} is not the name of a measure")
    kind: Any = registry[expression.id]
    if cutoff is not None:
        parameters[kind.AT_PARAM] = ast.literal_eval(cutoff)
    measure: Measure = kind(**parameters)
    return measure


def _provider() -> Any:
    from ir_measures import providers

    known = [providers.registry[name] for name in _PROVIDERS]
    available = [provider for provider in known if provider.is_available()]
    return providers.FallbackProvider(available)  # type: ignore[no-untyped-call]


def _aggregate(kind: Measure, values: Mapping[str, float]) -> float:
    from ir_measures.measures.base import MeanAgg

    aggregator: Any = kind.aggregator()
    if isinstance(aggregator, MeanAgg) and values:
        return math.fsum(values.values()) / len(values)
    for value in values.values():
        aggregator.add(value)
    return float(aggregator.result())


LEVELS = tuple(tenth / 10 for tenth in range(11))  # TREC's levels of recall for interpolated precision

# Depths of recall, about evenly spread on a logarithmic scale.
DEPTHS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000, 10_000)


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves of means over topics."""

    # Interpolated precision by level of recall, ascending.
    precision: Mapping[float, float]
    # Recall by rank, ascending.
    recall: Mapping[int, float]


def measures_of_curves(depth: int) -> tuple[str, ...]:
    """Return the measures for the curves of rankings of this depth."""
    return (*map(_precision, LEVELS), *map(_recall, _depths(depth)))


def curves(values: Mapping[str, float], depth: int) -> Curves:
    """Return the curves of the values of `measures_of_curves`."""
    return Curves(
        {level: values[_precision(level)] for level in LEVELS},
        {rank: values[_recall(rank)] for rank in _depths(depth)},
    )


def _depths(depth: int) -> tuple[int, ...]:
    return (*(rank for rank in DEPTHS if rank < depth), max(depth, 1))


def _precision(level: float) -> str:
    return f"IPrec@{level:.1f}"


def _recall(rank: int) -> str:
    return f"R@{rank}"
