"""A linear model of the lines of transcripts, such as debates and speeches: which of them are like the relevant ones.

It sees of a line

    words       one or two in a row, with every number as 0: tf-idf as in `learning.features`, of length 1 together
    measures    how something is said rather than what: see `MEASURES`; each less its mean, by its standard deviation

and is a logistic regression with an L2 penalty (Fan et al., "LIBLINEAR", JMLR 2008). Its intercept is corrected so that
a margin of 0 means even odds if as many lines were relevant as not: few are, and in some transcripts far more than in
others (the prior correction of King and Zeng, "Logistic regression in rare events data", Political Analysis 2001).
Words and their idf, means and deviations are those of the lines that it was trained on, so that nothing of a transcript
that was left out is in it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from searchapp.ranking.learning.linear import Arrays, Part, broken, numbers, texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MEASURES: Mapping[str, str] = {
    "length": "ln(1 + words)",
    "digits": "ln(1 + numbers)",
    "percent": "whether it has a percentage",
    "money": "whether it has an amount of dollars",
    "magnitude": "ln(1 + words such as million and half)",
    "year": "whether it has the number of a year",
    "capitals": "share of words with a capital letter, the first apart",
    "names": "ln(1 + runs of such words)",
    "question": "whether it ends with a question mark",
    "position": "how much of the transcript has gone by, from 0 to 1",
    "change": "whether another speaker had the line before",
    "past": "ln(1 + verbs in the past)",
    "future": "ln(1 + verbs of what will or may be)",
    "first": "ln(1 + words such as I and our)",
    "second": "ln(1 + words such as you)",
}
"""What is measured of a line, by the name of the measure."""

WORDS, MEASURE = "words", "measure"
"""What stands before a feature in an explanation, as in `learning.features`."""

MOST_WORDS = 2
TOLERANCE = 1e-3
"""When the solver is content; ten times less changes no figure that was measured."""

_TOKEN = re.compile(r"\$?\d(?:[\d,.]*\d)?|\w+(?:['’]\w+)*|[%?$]")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NUMBER = "0"
_SELF = frozenset({"I", "I'm", "I've", "I'll", "I'd"})
_DOLLARS = frozenset({"dollar", "dollars"})
_MAGNITUDES = re.compile(
    "(?:hundred|thousand|million|billion|trillion)s?|percent|half|double|twice|third|quarter"
)
_PAST = re.compile(
    r"\w{3,}ed|was|were|had|did|went|said|got|made|took|came|left|gave|knew|told|saw|lost|won|paid|spent|rose|fell|cut"
    "|put|began|became|brought|built|grew|led|ran|sent|sold|thought|wrote"
)
_FUTURE = re.compile(r"will|shall|\w+'ll|going|gonna|would|could|should|can|may|might|let(?:'s)?|want|must")
_FIRST = re.compile("i|me|my|mine|we|us|our")
_SECOND = re.compile("yours?|you")


class Spoken(NamedTuple):
    """A line of a transcript: who speaks, and what."""

    speaker: str
    text: str


class Seen(NamedTuple):
    """What a model sees of a line: how often it has which words, and its `MEASURES`, in their order."""

    words: Mapping[str, int]
    measures: tuple[float, ...]


def seen_of(lines: Sequence[Spoken]) -> list[Seen]:
    """What a model sees of the lines of a transcript, which are given whole and in their order.

    >>> (line,) = seen_of([Spoken("ANN", "We spent $1,200.")])
    >>> sorted(line.words)
    ['0', 'spent', 'spent 0', 'we', 'we spent']
    >>> line.measures[list(MEASURES).index("money")]
    1.0
    """
    found = []
    for place, line in enumerate(lines):
        tokens = [token.replace("’", "'") for token in _TOKEN.findall(line.text)]
        words = [_NUMBER if any(map(str.isdigit, token)) else token.lower() for token in tokens]
        changes = place == 0 or lines[place - 1].speaker != line.speaker
        measures = _measures(line.text, tokens, words, (place + 1) / len(lines), changes=changes)
        found.append(Seen(Counter(_in_a_row(words)), measures))
    return found


def _in_a_row(words: Sequence[str]) -> Iterator[str]:
    for length in range(1, MOST_WORDS + 1):
        for at in range(len(words) - length + 1):
            yield " ".join(words[at : at + length])


def _measures(
    text: str, tokens: Sequence[str], words: Sequence[str], position: float, *, changes: bool
) -> tuple[float, ...]:
    capitals = [
        place for place, token in enumerate(tokens) if place and token[0].isupper() and token not in _SELF
    ]
    stems = [word.partition("'")[0] for word in words]
    measured = {
        "length": math.log1p(len(words)),
        "digits": math.log1p(words.count(_NUMBER)),
        "percent": float("%" in words or "percent" in words),
        "money": float("$" in text or not _DOLLARS.isdisjoint(words)),
        "magnitude": _count(_MAGNITUDES, words),
        "year": float(_YEAR.search(text) is not None),
        "capitals": len(capitals) / max(1, len(words)),
        "names": math.log1p(sum(place - 1 not in capitals for place in capitals)),
        "question": float(text.rstrip().endswith("?")),
        "position": position,
        "change": float(changes),
        "past": _count(_PAST, words),
        "future": _count(_FUTURE, words),
        "first": _count(_FIRST, stems),
        "second": _count(_SECOND, stems),
    }
    return tuple(measured[name] for name in MEASURES)


def _count(pattern: re.Pattern[str], words: Sequence[str]) -> float:
    return math.log1p(sum(pattern.fullmatch(word) is not None for word in words))


@dataclass(frozen=True, eq=False)
class LineModel:
    """What a line's features weigh: `idf` and `weights` of words, (words,), `means` and `weights_of_measures`,
    (measures,), all float64, the latter of measures as they come, and the `intercept`."""

    words: tuple[str, ...]
    idf: Floats
    weights: Floats
    means: Floats
    weights_of_measures: Floats
    intercept: float

    @classmethod
    def fitted(
        cls,
        lines: Sequence[Seen],
        wanted: Sequence[bool],
        counts: Sequence[float],
        *,
        cost: float,
        fewest: int,
        measures: float,
        seed: int,
    ) -> LineModel:
        """The model that tells the `wanted` lines from the others.

        Each line counts as much as `counts` says. Words are those of at least `fewest` lines; a measure's deviation
        from its mean weighs `measures` beside the words, whose vectors have length 1; `cost` is the solver's C.
        """
        import numpy as np
        from scipy.sparse import csr_array, hstack
        from sklearn.linear_model import LogisticRegression

        containing = Counter(word for line in lines for word in line.words)
        words = sorted(word for word, df in containing.items() if df >= fewest)
        df = np.array([containing[word] for word in words], dtype=np.float64)
        idf = np.log((1.0 + len(lines)) / (1.0 + df)) + 1.0
        places = {word: place for place, word in enumerate(words)}
        amounts = idf.tolist()
        rows = [_weighed(line, places, amounts) for line in lines]
        values = np.array([value for row in rows for _place, value in row])
        at = np.array([place for row in rows for place, _value in row], dtype=np.int32)
        ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
        measured = np.array([line.measures for line in lines])
        means, deviations = measured.mean(axis=0), measured.std(axis=0)
        by = np.divide(measures, deviations, out=np.zeros_like(means), where=deviations > 0)
        vectors = hstack(
            [
                csr_array((values, at, ends), shape=(len(lines), len(words))),
                csr_array((measured - means) * by),
            ]
        ).tocsr()
        # What only 32 bits number is taken by the solver.
        vectors.indices, vectors.indptr = vectors.indices.astype(np.int32), vectors.indptr.astype(np.int32)
        solver = LogisticRegression(C=cost, solver="liblinear", tol=TOLERANCE, random_state=seed)
        solver.fit(vectors, np.array(wanted, dtype=np.int8), sample_weight=np.array(counts))
        weights = solver.coef_.ravel()
        of_wanted = math.fsum(count for count, is_wanted in zip(counts, wanted, strict=True) if is_wanted)
        odds = of_wanted / (math.fsum(counts) - of_wanted)
        return cls(
            tuple(words),
            idf,
            weights[: len(words)],
            means,
            weights[len(words) :] * by,
            float(solver.intercept_[0]) - math.log(odds),
        )

    def margins(self, lines: Sequence[Seen]) -> Floats:
        """How far each line is on the side of the relevant ones, the logarithm of the corrected odds: (lines,)."""
        import numpy as np

        weights, of_measures = self.weights.tolist(), self._of_measures
        found = []
        for line in lines:
            amounts = [self.intercept]
            amounts += [value * weights[place] for place, value in _weighed(line, self._places, self._idf)]
            amounts += [
                (value - mean) * weight
                for value, (mean, weight) in zip(line.measures, of_measures, strict=True)
            ]
            found.append(math.fsum(amounts))
        return np.array(found)

    def parts(self, line: Seen) -> list[Part]:
        """What the features of a line add to its margin, the greatest amounts first; the intercept apart."""
        weights = self.weights.tolist()
        parts = [
            Part(f"{WORDS} “{self.words[place]}”", value * weights[place])
            for place, value in _weighed(line, self._places, self._idf)
        ]
        parts += [
            Part(f"{MEASURE} “{name}” {value:.3g}, {mean:.3g} in the mean", (value - mean) * weight)
            for name, value, (mean, weight) in zip(MEASURES, line.measures, self._of_measures, strict=True)
        ]
        return sorted(parts, key=lambda part: (-abs(part.value), part.feature))

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def _idf(self) -> list[float]:
        return [float(value) for value in self.idf]

    @cached_property
    def _of_measures(self) -> list[tuple[float, float]]:
        """Mean and weight of each measure."""
        return list(zip(self.means.tolist(), self.weights_of_measures.tolist(), strict=True))

    def header(self) -> dict[str, Any]:
        """What a file says of it beside its arrays."""
        return {"features": list(self.words), "measures": list(MEASURES)}

    def arrays(self) -> dict[str, Any]:
        """Its arrays, for a file."""
        import numpy as np

        return {
            "idf": self.idf,
            "weights": self.weights,
            "means": self.means,
            "weights_of_measures": self.weights_of_measures,
            "intercepts": np.array([self.intercept]),
        }

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Arrays) -> LineModel:
        """The model that `header` and `arrays` describe.

        Raises:
            DataError: they describe none.
        """
        words = texts(header, "features")
        if list(words) != sorted(set(words)):
            raise broken("features")
        if texts(header, "measures") != tuple(MEASURES):
            raise broken("measures")
        (intercept,) = numbers(arrays, "intercepts", 1).tolist()
        return cls(
            words,
            numbers(arrays, "idf", len(words)),
            numbers(arrays, "weights", len(words)),
            numbers(arrays, "means", len(MEASURES)),
            numbers(arrays, "weights_of_measures", len(MEASURES)),
            intercept,
        )


def _weighed(line: Seen, places: Mapping[str, int], idf: Sequence[float]) -> list[tuple[int, float]]:
    """The words of a line that a model knows, by their places, and what each weighs: of length 1 together."""
    found = sorted((places[word], count) for word, count in line.words.items() if word in places)
    weighed = [(place, (1.0 + math.log(count)) * idf[place]) for place, count in found]
    length = math.sqrt(math.fsum(value * value for _place, value in weighed))
    return [(place, value / length) for place, value in weighed]
