"""The signal `lines`: a linear model predicts whether a transcript's line is like the relevant lines of other topics.

A debate is a topic, its lines are the documents, and training topics have relevance labels. The model classifies
lines:

    words       one or two in a row, with every number as 0: tf-idf as in `learning`, normalized to length 1
    measures    the style of a line rather than its content, standardized: see `MEASURES`

It is a logistic regression with an L2 penalty (Fan et al., "LIBLINEAR", JMLR 2008). Its intercept is corrected so
that a margin of 0 means even odds if half of the lines were relevant: the share of relevant lines is small and varies
(the prior correction of King and Zeng, "Logistic regression in rare events data", Political Analysis 2001). A
training topic is ranked by a model of the other topics.

A line's margin is that of the regression plus `speaker_weight` times the log-odds ratio of its speaker (naive Bayes
with text and speaker as evidence; a weight below 1 because the two depend on each other):

    ln(p / (1 - p)) - ln(q / (1 - q)),    p = (r + p1) / (n + 1)

where q is the share of relevant lines in the training topics, and the speaker has n lines in them, r of them relevant.
p1 smooths p, and is its value for speakers without lines in training topics: the share of relevant lines of the
speakers who have lines in one training topic only, smoothed likewise by q.

Claims worth checking are close to each other, so a line's score is the logistic function of

    m(line) + `context_weight` * (m(line before) + m(line after))

where m is the margin; at both ends the line itself replaces the missing one.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.errors import DataError
from searchapp.files import digest_json
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, Explanation, Topic
from searchapp.progress import Advance
from searchapp.ranking import learning
from searchapp.ranking.learning import Arrays, FeatureContribution, StoredModel, invalid_part, numbers, texts
from searchapp.ranking.signals.base import (
    Answer,
    Inputs,
    Need,
    SignalRequest,
    SignalScorer,
    TrainedLinear,
    feature_details,
    model_record,
    number_in,
    require_unseen,
)
from searchapp.ranking.signals.multilabel import logistic
from searchapp.ranking.templates import number, text, whole
from searchapp.text import counted

LineArray = NDArray[np.float64]
# The measures of a line, by name.
MEASURES: Mapping[str, str] = {
    "length": "ln(1 + words)",
    "digits": "ln(1 + numbers)",
    "percent": "whether it has a percentage",
    "money": "whether it has an amount of dollars",
    "magnitude": "ln(1 + words such as million and half)",
    "year": "whether it has the number of a year",
    "capitals": "share of capitalised words, without the first word",
    "names": "ln(1 + runs of such words)",
    "question": "whether it ends with a question mark",
    "position": "position in the transcript, from 0 to 1",
    "change": "whether another speaker spoke the line before",
    "past": "ln(1 + past-tense verbs)",
    "future": "ln(1 + modal verbs)",
    "first": "ln(1 + words such as I and our)",
    "second": "ln(1 + words such as you)",
}

# The kinds of features in an explanation, as in `learning`.
WORDS, MEASURE, SPEAKER = "words", "measure", "speaker"

MAX_NGRAM = 2
# A tenth of the tolerance changes no measured figure.
TOLERANCE = 1e-3

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


class TranscriptLine(NamedTuple):
    """A line of a transcript: its speaker and text."""

    speaker: str
    text: str


class LineFeatures(NamedTuple):
    """The features of a line: its speaker, the count of each word, and its `MEASURES` in order."""

    speaker: str
    words: Mapping[str, int]
    measures: tuple[float, ...]


def line_features(lines: Sequence[TranscriptLine]) -> list[LineFeatures]:
    """Return the features of all lines of a transcript, in order.

    >>> (line,) = line_features([TranscriptLine("ANN", "We spent $1,200.")])
    >>> sorted(line.words)
    ['0', 'spent', 'spent 0', 'we', 'we spent']
    >>> line.measures[list(MEASURES).index("money")]
    1.0
    """
    features = []
    for index, line in enumerate(lines):
        tokens = [token.replace("’", "'") for token in _TOKEN.findall(line.text)]
        words = [_NUMBER if any(map(str.isdigit, token)) else token.lower() for token in tokens]
        changes = index == 0 or lines[index - 1].speaker != line.speaker
        measures = _measures(line.text, tokens, words, (index + 1) / len(lines), changes=changes)
        features.append(LineFeatures(line.speaker, Counter(_ngrams(words)), measures))
    return features


def _ngrams(words: Sequence[str]) -> Iterator[str]:
    for length in range(1, MAX_NGRAM + 1):
        for at in range(len(words) - length + 1):
            yield " ".join(words[at : at + length])


def _measures(
    text: str, tokens: Sequence[str], words: Sequence[str], position: float, *, changes: bool
) -> tuple[float, ...]:
    capitals = [
        index for index, token in enumerate(tokens) if index and token[0].isupper() and token not in _SELF
    ]
    stems = [word.partition("'")[0] for word in words]
    measured = {
        "length": math.log1p(len(words)),
        "digits": math.log1p(words.count(_NUMBER)),
        "percent": float("%" in words or "percent" in words),
        "money": float("$" in text or not _DOLLARS.isdisjoint(words)),
        "magnitude": _log_count(_MAGNITUDES, words),
        "year": float(_YEAR.search(text) is not None),
        "capitals": len(capitals) / max(1, len(words)),
        "names": math.log1p(sum(index - 1 not in capitals for index in capitals)),
        "question": float(text.rstrip().endswith("?")),
        "position": position,
        "change": float(changes),
        "past": _log_count(_PAST, words),
        "future": _log_count(_FUTURE, words),
        "first": _log_count(_FIRST, stems),
        "second": _log_count(_SECOND, stems),
    }
    return tuple(measured[name] for name in MEASURES)


def _log_count(pattern: re.Pattern[str], words: Sequence[str]) -> float:
    return math.log1p(sum(pattern.fullmatch(word) is not None for word in words))


def speaker_log_odds(transcripts: Iterable[Iterable[tuple[str, bool]]]) -> dict[str | None, float]:
    """Return the log-odds ratio of each speaker, with None for unknown speakers; see the module for the formula.

    Args:
        transcripts: speaker of each line and whether it is relevant, neither for all lines nor for none

    >>> ratios = speaker_log_odds([[("ANN", True), ("ANN", False), ("HOST", False)], [("ANN", True), ("BEN", False)]])
    >>> {speaker: round(ratio, 2) for speaker, ratio in ratios.items()}
    {'ANN': 0.54, 'HOST': -2.23, 'BEN': -2.23, None: -1.47}
    """
    relevant: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    seen_in: Counter[str] = Counter()
    for transcript in transcripts:
        in_transcript: Counter[str] = Counter()
        for speaker, is_relevant in transcript:
            in_transcript[speaker] += 1
            relevant[speaker] += is_relevant
        lines += in_transcript
        seen_in.update(in_transcript.keys())
    share = relevant.total() / lines.total()
    new = [speaker for speaker, count in seen_in.items() if count == 1]
    of_new = (sum(relevant[speaker] for speaker in new) + share) / (
        sum(lines[speaker] for speaker in new) + 1
    )
    shares = {speaker: (relevant[speaker] + of_new) / (count + 1) for speaker, count in lines.items()}
    average = _logit(share)
    return {speaker: _logit(value) - average for speaker, value in [*shares.items(), (None, of_new)]}


def _logit(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


_ARRAYS = ("idf", "weights", "means", "weights_of_measures")


@dataclass(frozen=True, eq=False)
class LineModel:
    """The weights of a line's features."""

    words: tuple[str, ...]
    idf: LineArray  # (words,), as the weights
    weights: LineArray
    means: LineArray  # of the training lines, (measures,)
    weights_of_measures: LineArray  # of measures that are centred but not scaled, (measures,)
    intercept: float
    log_odds: Mapping[str | None, float]  # of speakers, see `speaker_log_odds`

    @classmethod
    def train(
        cls,
        lines: Sequence[LineFeatures],
        relevant: Sequence[bool],
        counts: Sequence[float],
        log_odds: Mapping[str | None, float],
        *,
        cost: float,
        min_df: int,
        style_weight: float,
        seed: int,
    ) -> LineModel:
        """Train the model that separates the `relevant` lines from the others.

        Args:
            lines: features of the lines
            relevant: whether each line is relevant
            counts: weight of each line
            log_odds: log-odds ratio of each speaker, see `speaker_log_odds`
            cost: the solver's C
            min_df: minimum lines per word
            style_weight: weight of standardized measures relative to the words
            seed: random seed
        """
        from scipy.sparse import csr_array, hstack
        from sklearn.linear_model import LogisticRegression

        containing = Counter(word for line in lines for word in line.words)
        words = sorted(word for word, df in containing.items() if df >= min_df)
        df = np.array([containing[word] for word in words], dtype=np.float64)
        idf = np.log((1.0 + len(lines)) / (1.0 + df)) + 1.0
        columns = {word: column for column, word in enumerate(words)}
        amounts = idf.tolist()
        rows = [_word_weights(line, columns, amounts) for line in lines]
        values = np.array([value for row in rows for _column, value in row])
        column_array = np.array([column for row in rows for column, _value in row], dtype=np.int32)
        ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
        measured = np.array([line.measures for line in lines])
        means, deviations = measured.mean(axis=0), measured.std(axis=0)
        factors = np.divide(style_weight, deviations, out=np.zeros_like(means), where=deviations > 0)
        vectors = hstack(
            [
                csr_array((values, column_array, ends), shape=(len(lines), len(words))),
                csr_array((measured - means) * factors),
            ]
        ).tocsr()
        # The solver requires 32-bit indices.
        vectors.indices, vectors.indptr = vectors.indices.astype(np.int32), vectors.indptr.astype(np.int32)
        solver = LogisticRegression(C=cost, solver="liblinear", tol=TOLERANCE, random_state=seed)
        solver.fit(vectors, np.array(relevant, dtype=np.int8), sample_weight=np.array(counts))
        weights = solver.coef_.ravel()
        relevant_weight = math.fsum(
            count for count, is_relevant in zip(counts, relevant, strict=True) if is_relevant
        )
        odds = relevant_weight / (math.fsum(counts) - relevant_weight)
        return cls(
            tuple(words),
            idf,
            weights[: len(words)],
            means,
            weights[len(words) :] * factors,
            float(solver.intercept_[0]) - math.log(odds),
            log_odds,
        )

    def margins(self, lines: Sequence[LineFeatures], speaker_weight: float) -> LineArray:
        """Return the logarithm of the corrected odds that each line is relevant, (lines,)."""
        weights, measure_weights = self.weights.tolist(), self._measure_weights
        margins = []
        for line in lines:
            amounts = [self.intercept, speaker_weight * self._log_odds(line.speaker)]
            amounts += [
                value * weights[column] for column, value in _word_weights(line, self._columns, self._idf)
            ]
            amounts += [
                (value - mean) * weight
                for value, (mean, weight) in zip(line.measures, measure_weights, strict=True)
            ]
            margins.append(math.fsum(amounts))
        return np.array(margins)

    def _log_odds(self, speaker: str) -> float:
        return self.log_odds.get(speaker, self.log_odds[None])

    def parts(self, line: LineFeatures, speaker_weight: float) -> list[FeatureContribution]:
        """Return the contributions of a line's features to its margin, without the intercept, largest absolute value
        first.
        """
        weights = self.weights.tolist()
        parts = [
            FeatureContribution(f"{WORDS} “{self.words[column]}”", value * weights[column])
            for column, value in _word_weights(line, self._columns, self._idf)
        ]
        parts += [
            FeatureContribution(
                f"{MEASURE} “{name}” {value:.3g}, {mean:.3g} in the mean", (value - mean) * weight
            )
            for name, value, (mean, weight) in zip(
                MEASURES, line.measures, self._measure_weights, strict=True
            )
        ]
        if speaker_weight:
            unknown = "" if line.speaker in self.log_odds else ", who is in no training topic"
            parts.append(
                FeatureContribution(
                    f"{SPEAKER} “{line.speaker}”{unknown}", speaker_weight * self._log_odds(line.speaker)
                )
            )
        return sorted(parts, key=lambda part: (-abs(part.value), part.feature))

    @cached_property
    def _columns(self) -> Mapping[str, int]:
        return {word: column for column, word in enumerate(self.words)}

    @cached_property
    def _idf(self) -> list[float]:
        return [float(value) for value in self.idf]

    @cached_property
    def _measure_weights(self) -> list[tuple[float, float]]:
        return list(zip(self.means.tolist(), self.weights_of_measures.tolist(), strict=True))

    def header(self) -> dict[str, Any]:
        return {"features": list(self.words), "measures": list(MEASURES), "speakers": self._speakers}

    @property
    def _speakers(self) -> list[str]:
        return sorted(speaker for speaker in self.log_odds if speaker is not None)

    def arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _ARRAYS} | {
            "intercepts": np.array([self.intercept]),
            "log_odds": np.array([self.log_odds[speaker] for speaker in (*self._speakers, None)]),
        }

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Arrays) -> LineModel:
        """Return the model of a file's header and arrays.

        Raises:
            DataError: they are invalid.
        """
        words = texts(header, "features")
        if list(words) != sorted(set(words)):
            raise invalid_part("features")
        if texts(header, "measures") != tuple(MEASURES):
            raise invalid_part("measures")
        speakers = texts(header, "speakers")
        if list(speakers) != sorted(set(speakers)):
            raise invalid_part("speakers")
        log_odds = numbers(arrays, "log_odds", len(speakers) + 1).tolist()
        (intercept,) = numbers(arrays, "intercepts", 1).tolist()
        lengths = len(words), len(words), len(MEASURES), len(MEASURES)
        float_arrays = {
            name: numbers(arrays, name, length) for name, length in zip(_ARRAYS, lengths, strict=True)
        }
        ratios = dict(zip((*speakers, None), log_odds, strict=True))
        return cls(words, intercept=intercept, log_odds=ratios, **float_arrays)


def _word_weights(
    line: LineFeatures, columns: Mapping[str, int], idf: Sequence[float]
) -> list[tuple[int, float]]:
    """Return the positions and weights of a line's known words, normalized to length 1."""
    counts = sorted((columns[word], count) for word, count in line.words.items() if word in columns)
    weights = [(column, (1.0 + math.log(count)) * idf[column]) for column, count in counts]
    length = math.sqrt(math.fsum(value * value for _column, value in weights))
    return [(column, value / length) for column, value in weights]


# The name of a model's only label.
LABEL = "relevant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(TrainedLinear):
    """Lines of the transcript `group_field`, in the order of `position_field`."""

    kind: ClassVar[str] = "lines"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.model, Need.texts})
    leaves_out: ClassVar[bool] = True
    most_kept: ClassVar[int] = 256

    ranking_only: ClassVar[frozenset[str]] = frozenset({"context_weight", "speaker_weight"})
    listed_first: ClassVar[tuple[str, ...]] = (
        "weight",
        "cost",
        "min_samples",
        "seed",
        "style_weight",
        "topic_balance",
        "speaker_weight",
        "context_weight",
    )

    min_samples: int = whole("minimum number of lines with a word", key="min_df")
    style_weight: float = number("weight of the style measures relative to the words")
    topic_balance: float = number(
        "lines of a training topic weigh its number of relevant lines to the power of minus this"
    )
    group_field: str = text("the field with the transcript of a line, which topics have too")
    position_field: str = text("the field with a line's number")
    speaker_field: str = text("the field with the speaker")
    reaction_speaker: str | None = text(
        "the speaker of reactions, which are ranked last and not used for training", default=None
    )
    speaker_weight: float = number(
        "weight of the log-odds that lines of the speaker are relevant in training topics", default=0.0
    )
    context_weight: float = number("weight of the lines before and after")

    def train(
        self,
        examples: Sequence[Example],
        documents: Iterable[Document],
        workers: int,  # noqa: ARG002  # a single label
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        learning.require_learn()
        transcripts = Transcripts(self, documents)
        lines: list[LineFeatures] = []
        labels: list[bool] = []
        counts: list[float] = []
        spoken_lines: list[list[tuple[str, bool]]] = []
        for example in examples:
            transcript = transcripts.of(example.topic)
            if not transcript:
                raise DataError(
                    f"the training topic {example.topic.id} has no documents with its "
                    f"{self.group_field}: correct the "
                    "recipe, or choose another one"
                )
            lines += line_features([spoken for _document, spoken in transcript])
            relevant = [example.gold.get(document, 0.0) > 0 for document, _spoken in transcript]
            labels += relevant
            spoken_lines.append(
                [
                    (spoken.speaker, label)
                    for (_document, spoken), label in zip(transcript, relevant, strict=True)
                ]
            )
            # With `topic_balance` = 1, short speeches full of claims weigh as much as long debates with few.
            counts += [max(1, sum(relevant)) ** -self.topic_balance] * len(relevant)
        if not any(labels) or all(labels):
            raise DataError(
                f"the lines of the {counted(len(examples), 'training topic')} are all relevant or all "
                "not relevant: choose "
                "another recipe"
            )
        mean = math.fsum(counts) / len(counts)
        model = LineModel.train(
            lines,
            labels,
            [count / mean for count in counts],
            speaker_log_odds(spoken_lines),
            cost=self.cost,
            min_df=self.min_samples,
            style_weight=self.style_weight,
            seed=self.seed,
        )
        return {"labels": [LABEL], **model.header()}, model.arrays()

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _LineScorer(self, Transcripts(self, inputs.documents()), inputs.model)


class Transcripts:
    """The lines and reactions of transcripts, by the field `group_field`."""

    def __init__(self, signal: Lines, documents: Iterable[Document]) -> None:
        self._within = signal.group_field
        lines_of: defaultdict[str, list[tuple[float, str, TranscriptLine]]] = defaultdict(list)
        self._reactions: defaultdict[str, list[str]] = defaultdict(list)
        for document in documents:
            fields = document.fields
            position, speaker = number_in(document, signal.position_field), fields.get(signal.speaker_field)
            if not isinstance(speaker, str | None):
                raise DataError(
                    f"the document {document.id} has no text in the field {signal.speaker_field}: "
                    "correct the recipe, or choose "
                    "another one"
                )
            transcript = fields.get(signal.group_field)
            if not isinstance(transcript, str):
                continue
            # Lines such as "(APPLAUSE)" rank last; the model and the neighbours' margins ignore them.
            if speaker is not None and speaker == signal.reaction_speaker:
                self._reactions[transcript].append(document.id)
            else:
                lines_of[transcript].append(
                    (position, document.id, TranscriptLine(speaker or "", document.text))
                )
        self._lines = {
            transcript: [
                (document, spoken) for _position, document, spoken in sorted(lines, key=lambda line: line[:2])
            ]
            for transcript, lines in lines_of.items()
        }

    def of(self, topic: Topic) -> Sequence[tuple[str, TranscriptLine]]:
        """Return the documents and lines of a topic's transcript, in order; empty without a transcript."""
        return self._lines.get(str(topic.fields.get(self._within, "")), ())

    def reactions(self, topic: Topic) -> Sequence[str]:
        return self._reactions.get(str(topic.fields.get(self._within, "")), ())


class _LineScorer(SignalScorer):
    def __init__(
        self, signal: Lines, transcripts: Transcripts, model: Callable[[Lines, str], StoredModel]
    ) -> None:
        self._signal = signal
        self._transcripts = transcripts
        self._model = model
        # The models used so far, by digest, as a run records them.
        self._used: dict[str, dict[str, Any]] = {}

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic in request.topics:
            lines = self._transcripts.of(topic)
            features = line_features([spoken for _document, spoken in lines])
            margins = self._model_for(topic).margins(features, self._signal.speaker_weight)
            scores = logistic(self._smoothed(margins)).tolist()
            scores_by_document = {
                document: score for (document, _spoken), score in zip(lines, scores, strict=True)
            }
            yield scores_by_document | dict.fromkeys(self._transcripts.reactions(topic), 0.0)
            advance(1)

    def _model_for(self, topic: Topic) -> LineModel:
        stored = self._model(self._signal, topic.id)
        require_unseen(stored, [topic])
        self._used.setdefault(stored.digest, model_record(stored))
        return LineModel.read(stored.header, stored.arrays)

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        lines = self._transcripts.of(topic)
        ids = [document for document, _spoken in lines]
        if document_id in self._transcripts.reactions(topic):
            return Explanation(0.0, "a reaction, which is ranked last")
        if document_id not in ids:
            return None
        index = ids.index(document_id)
        features = line_features([spoken for _document, spoken in lines])
        model = self._model_for(topic)
        speaker_weight = self._signal.speaker_weight
        margins = model.margins(features, speaker_weight)
        smoothed = float(self._smoothed(margins)[index])
        details = feature_details(model.parts(features[index], speaker_weight), model.intercept, "line")
        around = smoothed - float(margins[index])
        description = f"{self._signal.context_weight:g} times the margins of the lines before and after"
        return Explanation(
            float(logistic(smoothed)),
            f"probability by a linear model of lines, the logistic function of {smoothed:.4f}, the sum of",
            (
                Explanation(float(margins[index]), "its margin, the sum of", details),
                Explanation(around, description),
            ),
        )

    def _smoothed(self, margins: LineArray) -> LineArray:
        """Return the margin of each line, with a part of its neighbours' margins."""
        if not len(margins):
            return margins
        padded = np.pad(margins, 1, mode="edge")
        return np.asarray(margins + self._signal.context_weight * (padded[:-2] + padded[2:]))

    def model(self) -> dict[str, Any]:
        models = list(self._used.values())
        if len(models) == 1:
            return models[0]
        return {"digest": digest_json([model["digest"] for model in models]), "models": models}
