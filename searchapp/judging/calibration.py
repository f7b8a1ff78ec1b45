"""Calibration: annotators judge documents with known grades before they judge a study.

The judgments are in the log under a task name of their own, see `CalibrationSet.name`: exports, agreement and scores of
the study never contain them, while backups, checks and the exchange with a team include them. Documents that are judged
twice are under a second name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from searchapp.errors import UsageError
from searchapp.files import digest_json
from searchapp.judging.agreement import (
    bias,
    cohen_kappa,
    confusion,
    kappa_interval,
    share_of_equal,
    shared_grades,
)
from searchapp.judging.assignment import shuffled
from searchapp.judging.events import Action
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Feedback, JudgingSession, Session
from searchapp.judging.view import Key
from searchapp.lucene.dataclass import dataclass
from searchapp.text import counted


@dataclass(frozen=True, slots=True)
class CalibrationSet:
    """Documents with known grades."""

    task: str
    # The known grade of each topic and document.
    known: Mapping[Key, int]
    # The documents that are judged again, after all others.
    repeats: tuple[Key, ...]

    @property
    def name(self) -> str:
        """The task name of the judgments in the log: the same for everybody who judges the same set."""
        content = [[*key, grade] for key, grade in sorted(self.known.items())]
        return f"{self.task} calibration {digest_json([content, sorted(self.repeats)])[:8]}"

    @property
    def name_of_repeats(self) -> str:
        return f"{self.name} again"


def draw(
    task: str, known: Mapping[str, Mapping[str, int]], size: int, repeats: int, seed: int
) -> CalibrationSet:
    """Draw documents with known grades, as many of each grade as possible.

    Args:
        task: the name of the task
        known: the known grades by topic and document
        size: the number of documents
        repeats: how many of them are judged again
        seed: determines the selection

    Raises:
        UsageError: there are fewer documents, all of them have the same grade, or `repeats` is larger than `size`.
    """
    if repeats > size:
        raise UsageError(f"{counted(repeats, 'repeated document')} of {size:,}: repeat at most {size:,}")
    of_grade: dict[int, dict[str, Key]] = {}
    for topic, grades in known.items():
        for document, grade in grades.items():
            of_grade.setdefault(grade, {})[f"{topic}\0{document}"] = (topic, document)
    total = sum(map(len, of_grade.values()))
    if total < size:
        raise UsageError(
            f"{counted(total, 'document')} with a known grade, but {size:,} are wanted: lower --size or raise --depth"
        )
    if len(of_grade) < 2:
        raise UsageError(
            "all documents have the same known grade, which measures no agreement: raise --depth, or "
            "choose another split or other experts"
        )
    waiting = {
        grade: [keys[name] for name in shuffled(list(keys), seed, f"calibration {grade}")]
        for grade, keys in sorted(of_grade.items())
    }
    drawn: dict[Key, int] = {}
    while len(drawn) < size:
        for grade, keys in waiting.items():
            if keys and len(drawn) < size:
                drawn[keys.pop(0)] = grade
    names = {f"{topic}\0{document}": (topic, document) for topic, document in drawn}
    again = [names[name] for name in shuffled(list(names), seed, "calibration again")[:repeats]]
    return CalibrationSet(task, drawn, tuple(again))


class CalibrationJudging(JudgingSession):
    """A blind session on the documents of a calibration, or on those that are judged again."""

    def __init__(
        self, session: Session, calibration: CalibrationSet, seed: int, *, again: bool = False
    ) -> None:
        documents: dict[str, list[str]] = {}
        for topic, document in calibration.repeats if again else calibration.known:
            documents.setdefault(topic, []).append(document)
        super().__init__(
            session,
            tuple(documents),
            documents.__getitem__,
            lambda topic: len(documents[topic]),
            session.task,
            seed=seed,
        )
        self._known_grades = calibration.known

    def feedback(self, topic_id: str, document_id: str) -> Feedback | None:
        opinion = self.opinion(topic_id, document_id)
        if opinion is None or opinion.grade is None:
            return None
        known = self._known_grades[topic_id, document_id]
        guidelines = self.session.guidelines
        return Feedback(opinion.grade, known, "" if guidelines is None else guidelines.of_grade(known))


@dataclass(frozen=True, slots=True)
class Concordance:
    """How far pairs of grades agree."""

    documents: int
    # The share of equal grades; NaN without documents, like kappa.
    share: float
    # Cohen's kappa, unweighted, and its bootstrap interval.
    kappa: float
    low: float
    high: float

    @classmethod
    def of(cls, pairs: list[tuple[int, int]]) -> Concordance:
        return cls(len(pairs), share_of_equal(pairs), cohen_kappa(pairs), *kappa_interval(pairs))


@dataclass(frozen=True, slots=True)
class AnnotatorCalibration:
    """An annotator's first grades of the documents of a calibration."""

    annotator: str
    # With the known grades.
    gold: Concordance
    # The mean of the given minus the known grade: above 0 for a lenient annotator.
    bias: float
    # Of the first and the second grades of the repeated documents.
    repeated: Concordance
    # Number of documents by known and given grade.
    confusion: Mapping[int, Mapping[int, int]]

    def passes(self, calibration: CalibrationSet, least: float) -> bool:
        """Return whether every document has a grade, and kappa is at least `least`."""
        return self.gold.documents == len(calibration.known) and self.gold.kappa >= least


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The result of all annotators who judged the same set."""

    annotators: tuple[AnnotatorCalibration, ...]
    pairs: Mapping[tuple[str, str], Concordance]

    def of(self, annotator: str) -> AnnotatorCalibration | None:
        return next((each for each in self.annotators if each.annotator == annotator), None)


def evaluate_calibration(log: JudgmentLog, calibration: CalibrationSet) -> CalibrationResult:
    """Return the result of a calibration; the first grade of a document counts, which preceded the feedback."""
    first = _first_grades(log, calibration.name, calibration.known)
    again = _first_grades(log, calibration.name_of_repeats, calibration.repeats)
    annotators = []
    for name, grades in sorted(first.items()):
        repeated = again.get(name, {})
        pairs = [(calibration.known[key], grade) for key, grade in grades.items()]
        annotators.append(
            AnnotatorCalibration(
                name,
                Concordance.of(pairs),
                bias(pairs),
                Concordance.of([(grades[key], grade) for key, grade in repeated.items() if key in grades]),
                confusion(pairs),
            )
        )
    return CalibrationResult(
        tuple(annotators),
        {names: Concordance.of(pairs) for names, pairs in shared_grades(first).items() if pairs},
    )


def _first_grades(log: JudgmentLog, name: str, documents: Iterable[Key]) -> dict[str, dict[Key, int]]:
    """Return the first grade of each of these documents by annotator."""
    wanted = frozenset(documents)
    events = sorted((event for _, event in log.events(name)), key=lambda event: event.order)
    first: dict[str, dict[Key, int]] = {}
    for event in events:
        key = event.topic_id, event.document_id
        if event.action is Action.grade and event.grade is not None and key in wanted:
            first.setdefault(event.annotator, {}).setdefault(key, event.grade)
    return first
