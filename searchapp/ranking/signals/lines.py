"""The signal `lines`: a linear model says of each line of a transcript how much it is like those that answered others.

A debate is a topic, its lines are the documents, and solved topics say which of their own lines were relevant. So the
model is one of documents: it has a single label, and sees of a line its words and what `searchapp.ranking.learning.
speech` measures of it, such as numbers, names, tense and where in the transcript it stands. `within` names the field
that says which transcript a document belongs to, which topics have as well; `place` and `speaker` name those with its
number and with who speaks.

A topic that is solved itself is ranked by a model of the others: there is one for each topic that is left out, and one
of all solved topics for those that are not among them. Each solved topic's lines weigh r ** -`even`, where r is the
number of its relevant ones: with 1, short speeches full of claims teach as much as long debates with few.

What is worth checking comes in passages, so that a line's score is the logistic function of

    m(line) + `around` * (m(line before) + m(line after))

where m is the margin by the model; the first line and the last one stand in for what is not there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from searchapp.digests import digest_json
from searchapp.engines.base import Explanation
from searchapp.errors import DataError
from searchapp.model import Document, Example, Topic
from searchapp.ranking.learning import fitting
from searchapp.ranking.learning.speech import LineModel, Seen, Spoken, seen_of
from searchapp.ranking.signals.base import Answer, Asked, Inputs, Need, Scorer, number_in
from searchapp.ranking.signals.multilabel import logistic
from searchapp.ranking.signals.trained import SEED, SHOWN, Trained, TrainedScorer, recorded, require_unseen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from searchapp.progress import Advance
    from searchapp.ranking.learning.files import Stored
    from searchapp.ranking.tables import Table

    Floats = NDArray[np.float64]

LABEL = "relevant"
"""What the only label of a model is called."""


@dataclass(frozen=True, slots=True)
class Lines(Trained):
    """Lines of what `within` names, in the order of `place`; measures weigh `measures` beside the words.

    Of `even` and `around` see the module.
    """

    kind: ClassVar[str] = "lines"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.model, Need.texts})
    meanings: ClassVar[Mapping[str, str]] = {
        **Trained.meanings,
        "fewest": "how many lines must have a word",
        "measures": "what a measure's deviation from its mean weighs beside the words",
        "even": "lines of a solved topic weigh by its number of relevant ones to the power of minus this",
        "around": "what the lines before and after count",
        "within": "the field with the transcript that a line is in, which topics have too",
        "place": "the field with a line's number",
        "speaker": "the field with who speaks",
    }
    leaves_out: ClassVar[bool] = True
    most_kept: ClassVar[int] = 256

    measures: float
    even: float
    around: float
    within: str
    place: str
    speaker: str

    @classmethod
    def read(cls, table: Table) -> Lines:
        """The signal of a table with a key for each parameter; `seed` may be left out."""
        return cls(
            table.name,
            table.weight(),
            cost=table.number("cost"),
            fewest=table.whole("fewest"),
            seed=table.whole("seed", SEED),
            measures=table.number("measures"),
            even=table.number("even"),
            around=table.number("around"),
            within=table.required_text("within"),
            place=table.required_text("place"),
            speaker=table.required_text("speaker"),
        )

    def parameters(self) -> dict[str, Any]:
        """How it is trained, and which fields say what is a transcript."""
        return {key: value for key, value in self.training().items() if key != "signal"} | {
            "around": self.around
        }

    def training(self) -> dict[str, Any]:
        # super() does not work in a method of a dataclass with slots, which is another class than the one it stands in
        fields = {"within": self.within, "place": self.place, "speaker": self.speaker}
        return Trained.training(self) | {"measures": self.measures, "even": self.even} | fields

    def train(
        self,
        examples: Sequence[Example],
        documents: Iterable[Document],
        workers: int,  # noqa: ARG002  # there is one label
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        fitting.require_learn()
        transcripts = Transcripts(self, documents)
        lines: list[Seen] = []
        wanted: list[bool] = []
        counts: list[float] = []
        for example in examples:
            found = transcripts.of(example.topic)
            if not found:
                raise DataError(
                    f"the solved topic {example.topic.id} has no documents with its {self.within}: correct the "
                    "recipe, or choose another one"
                )
            lines += seen_of([spoken for _document, spoken in found])
            own = [example.gold.get(document, 0.0) > 0 for document, _spoken in found]
            wanted += own
            counts += [max(1, sum(own)) ** -self.even] * len(own)
        if not any(wanted) or all(wanted):
            raise DataError(
                f"the lines of the {len(examples):,} solved topics are all relevant, or none is: choose another recipe"
            )
        mean = math.fsum(counts) / len(counts)
        model = LineModel.fitted(
            lines,
            wanted,
            [count / mean for count in counts],
            cost=self.cost,
            fewest=self.fewest,
            measures=self.measures,
            seed=self.seed,
        )
        return {"labels": [LABEL], **model.header()}, model.arrays()

    def scorer(self, stored: Stored) -> TrainedScorer:  # noqa: ARG002  # see `prepare`
        raise AssertionError("there is a model for each topic that is left out")

    def prepare(self, inputs: Inputs) -> Scorer:
        """Read the documents; models are read, or trained, for the topics that are asked for."""
        return _Reading(self, Transcripts(self, inputs.documents()), inputs.model)


class Transcripts:
    """The lines of transcripts, by what the field `within` has."""

    def __init__(self, signal: Lines, documents: Iterable[Document]) -> None:
        self._within = signal.within
        found: defaultdict[str, list[tuple[float, str, Spoken]]] = defaultdict(list)
        for document in documents:
            fields = document.fields
            place, speaker = number_in(document, signal.place), fields.get(signal.speaker)
            if not isinstance(speaker, str | None):
                raise DataError(
                    f"the document {document.id} has no text in {signal.speaker}: correct the recipe, or choose "
                    "another one"
                )
            of = fields.get(signal.within)
            if isinstance(of, str):
                found[of].append((place, document.id, Spoken(speaker or "", document.text)))
        self._found = {
            of: [(document, spoken) for _place, document, spoken in sorted(lines, key=lambda line: line[:2])]
            for of, lines in found.items()
        }

    def of(self, topic: Topic) -> Sequence[tuple[str, Spoken]]:
        """The documents of a topic's transcript and what is said there, in their order; none if it has none."""
        return self._found.get(str(topic.fields.get(self._within, "")), ())


class _Reading(Scorer):
    """Ranks the lines of each topic by the model that has not seen the topic."""

    def __init__(
        self, signal: Lines, transcripts: Transcripts, model: Callable[[Lines, str], Stored]
    ) -> None:
        self._signal = signal
        self._transcripts = transcripts
        self._model = model
        self._used: dict[str, dict[str, Any]] = {}
        """The models that topics were ranked by, by their digests, as a run records them."""

    def answers(self, asked: Asked, advance: Advance) -> Iterator[Answer]:
        for topic in asked.topics:
            lines = self._transcripts.of(topic)
            margins = self._model_for(topic).margins(seen_of([spoken for _document, spoken in lines]))
            scores = logistic(self._with_those_around(margins)).tolist()
            yield {document: score for (document, _spoken), score in zip(lines, scores, strict=True)}
            advance(1)

    def _model_for(self, topic: Topic) -> LineModel:
        """The model of the solved topics but this one.

        Raises:
            SearchappError: it can't be read, trained or kept.
        """
        stored = self._model(self._signal, topic.id)
        require_unseen(stored, [topic])
        self._used.setdefault(stored.digest, recorded(stored))
        return LineModel.read(stored.header, stored.arrays)

    def explain(self, asked: Asked, document_id: str) -> Explanation | None:
        (topic,) = asked.topics
        lines = self._transcripts.of(topic)
        ids = [document for document, _spoken in lines]
        if document_id not in ids:
            return None
        place = ids.index(document_id)
        seen = seen_of([spoken for _document, spoken in lines])
        model = self._model_for(topic)
        margins = model.margins(seen)
        smoothed = float(self._with_those_around(margins)[place])
        parts = model.parts(seen[place])
        details = [Explanation(part.value, part.feature) for part in parts[:SHOWN]]
        if rest := parts[SHOWN:]:
            details.append(Explanation(sum(part.value for part in rest), f"{len(rest):,} further features"))
        details.append(Explanation(model.intercept, "intercept, whatever the line"))
        around = smoothed - float(margins[place])
        said = f"{self._signal.around:g} times the margins of the lines before and after"
        return Explanation(
            float(logistic(smoothed)),
            f"probability by a linear model of lines, the logistic function of {smoothed:.4f}, the sum of",
            (
                Explanation(float(margins[place]), "its margin, the sum of", tuple(details)),
                Explanation(around, said),
            ),
        )

    def _with_those_around(self, margins: Floats) -> Floats:
        """The margin of each line, and a part of those of the lines before and after it."""
        import numpy as np

        if not len(margins):
            return margins
        padded = np.pad(margins, 1, mode="edge")
        return np.asarray(margins + self._signal.around * (padded[:-2] + padded[2:]))

    def model(self) -> dict[str, Any]:
        described = list(self._used.values())
        if len(described) == 1:
            return described[0]
        return {"digest": digest_json([one["digest"] for one in described]), "models": described}
