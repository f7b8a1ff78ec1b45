"""Answers of models that judge: what a model wrote, and the grade in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from searchapp.files import parse_json, without_halves
from searchapp.lucene.dataclass import dataclass


class AnswerOutcome(StrEnum):
    """What an answer amounts to. None but `graded` is a grade, so none counts as grade 0."""

    graded = "graded"
    # The model states that it can't judge the document.
    abstained = "abstained"
    # The model or its provider declines to answer.
    refused = "refused"
    # The answer has no grade of the scale.
    unparsable = "unparsable"
    # The answer ends at the limit of its length.
    truncated = "truncated"


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer as it was received."""

    # The text of the answer; of a command, its line of output.
    text: str
    # UTC, ISO 8601.
    time: str
    # Whether the model or its provider declined to answer.
    is_refusal: bool = False
    # Why the model stopped, such as "stop" or "length", as far as the endpoint says it.
    finish_reason: str = ""
    # The name of the model that answered, as far as the endpoint says it.
    model: str = ""
    # The tokens that the model read and wrote, as far as the endpoint counts them.
    tokens_read: int | None = None
    tokens_written: int | None = None
    # From the first attempt to the answer; of a command, since its last answer.
    seconds: float = 0.0
    attempts: int = 1
    cost: float = 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ModelAnswer:
        return cls(**parse_json(text))


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """The content of an answer."""

    outcome: AnswerOutcome
    # A grade of the task, if the outcome is `graded`.
    grade: int | None = None
    reason: str = ""
    # Whether the grade was read from an answer that is not exactly of the form that was asked for.
    is_repaired: bool = False


# Models often write JSON in a code block, or after their thoughts.
_BLOCK = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)
_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")
_WHOLE_NUMBER = re.compile(r"\s*(\d{1,9})(?:\.0+)?\s*")


def read_verdict(answer: ModelAnswer, scale: Sequence[int]) -> ModelVerdict:
    """Return the verdict in an answer of the form {"grade": 2, "reason": "..."}; the grade null abstains.

    Args:
        answer: a model's answer
        scale: the task's grade for each grade 0, 1, ... that the model may give
    """
    if answer.is_refusal:
        return ModelVerdict(AnswerOutcome.refused)
    if answer.finish_reason == "length":
        return ModelVerdict(AnswerOutcome.truncated)
    for is_exact, row in _objects(answer.text):
        grade, reason = row["grade"], row.get("reason")
        reason = reason.strip() if isinstance(reason, str) else ""
        if grade is None:
            return ModelVerdict(AnswerOutcome.abstained, None, reason, not is_exact)
        number = grade
        if isinstance(grade, str | float) and (match := _WHOLE_NUMBER.fullmatch(str(grade))):
            number = int(match[1])
        if type(number) is int and 0 <= number < len(scale):
            is_repaired = not is_exact or type(grade) is not int
            return ModelVerdict(AnswerOutcome.graded, scale[number], reason, is_repaired)
        break
    return ModelVerdict(AnswerOutcome.unparsable)


def _objects(text: str) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Yield the objects with a grade: the whole text, its code blocks and flat parts, the last first."""
    parts = [text, *reversed(_BLOCK.findall(text)), *reversed(_FLAT_OBJECT.findall(text))]
    for number, part in enumerate(parts):
        try:
            row = parse_json(without_halves(part))
        except ValueError:
            continue
        if isinstance(row, dict) and "grade" in row:
            yield number == 0, row
