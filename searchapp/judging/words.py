"""Judgments in words."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.judging.events import Action


def graded(grade: int, labels: Sequence[str]) -> str:
    """A grade with what it means.

    >>> graded(1, ("not relevant", "relevant")), graded(3, ("0", "1", "2", "3")), graded(7, ())
    ('1 relevant', '3', '7')
    """
    label = labels[grade] if grade < len(labels) else ""
    return str(grade) if label in ("", str(grade)) else f"{grade} {label}"


def said_of(action: Action, grade: int | None, labels: Sequence[str]) -> str:
    """What somebody says of a document, without reasons.

    >>> said_of(Action.cant_tell, None, ())
    "can't tell"
    """
    if grade is not None:
        return graded(grade, labels)
    return {Action.skip: "skipped", Action.cant_tell: "can't tell"}.get(action, action.value)
