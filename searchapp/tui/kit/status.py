"""What is said in one line: of judgments, of errors, of a path; in the first line of a screen and by the prompts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from searchapp.errors import SearchappError
from searchapp.judging.events import Action, Event, grade_label, verdict_label
from searchapp.judging.judgments import duration
from searchapp.judging.session import Summary
from searchapp.judging.view import Opinion
from searchapp.tui.kit.content import AS_WRITTEN, Notation
from searchapp.tui.kit.widgets import RowPart, fitted, one_line


def with_tilde(text: str) -> str:
    """A text in which each path in the user's own folder begins with ~.

    >>> with_tilde(f"user file: {Path.home() / 'settings.toml'} (there is none)")
    'user file: ~/settings.toml (there is none)'
    """
    try:
        own = str(Path.home())
    except RuntimeError:  # nobody knows where that is
        return text
    if own == str(Path(own).parent):
        return text
    return re.sub(rf"(?<![\w/.~-]){re.escape(own)}(?![\w.~-])", "~", text)


UNJUDGED, SKIPPED, CANT_TELL, NOTED = "·", "»", "?", "✎"
"""How what was said of a document is shown, besides by its grade; none of these is grade 0."""

UNSCORED = "– "
"""What stands before a document without a score."""

BEGINNING_CELLS = 44

_NAMES = {
    Action.grade: ("grade", "grades"),
    Action.skip: ("skip", "skips"),
    Action.cant_tell: ("“can't tell”", "“can't tell”"),
    Action.note: ("note", "notes"),
    Action.retract: ("undo", "undos"),
    Action.adjudicate: ("decision", "decisions"),
}


def error_text(error: BaseException | None) -> str:
    """What an error says; of one that was not foreseen also its kind.

    >>> error_text(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    return str(error) if isinstance(error, SearchappError) else f"{type(error).__name__}: {error}"


def unsaved(count: int, why: str | None) -> str:
    """That judgments wait to be saved, and why."""
    things = "1 judgment is" if count == 1 else f"{count} judgments are"
    return f"▲ {things} NOT SAVED yet, tried again all the time: {why or ''}"


def beginning(document: str, text: str | None, notation: Notation = AS_WRITTEN) -> str:
    """How a document begins, by which people know it; its id where it says nothing."""
    line = one_line(text or "", notation)
    return f"“{fitted(line, BEGINNING_CELLS).rstrip()}”" if line else document


def instead_of(what: str, before: Opinion | None, labels: Sequence[str]) -> str:
    """What is said of a document now, and what was said of it before, if that was something else.

    >>> instead_of("0 not relevant", None, ())
    '0 not relevant'
    """
    was = "" if before is None else standing(before, labels)
    return what if was in ("", what) else f"{what}, was {was}"


def standing(opinion: Opinion, labels: Sequence[str]) -> str:
    """What somebody says of a document, without reasons."""
    return verdict_label(opinion.action, opinion.grade, labels)


def judged_already(opinions: Sequence[Opinion | None], labels: Sequence[str]) -> str:
    """How many of some documents are judged already, and how; nothing if none is.

    Each opinion is that of one document.
    """
    judged = Counter(
        standing(one, labels) for one in opinions if one is not None and one.action is not Action.skip
    )
    if not judged:
        return ""
    each = ", ".join(f"{count} × {what}" for what, count in sorted(judged.items()))
    return f"{judged.total()} of them {'is' if judged.total() == 1 else 'are'} judged already ({each})"


def came_in(events: Sequence[Event], annotator: str) -> str:
    """What was written elsewhere: by the same annotator in another window, and by others.

    Of others only how much it is: what they say is to be seen where it may be seen.
    """
    own = Counter(event.action for event in events if event.annotator == annotator)
    parts = []
    if own:
        counts = [_counted(count, *_NAMES[action]) for action, count in own.items()]
        parts.append(f"{_listed(counts)} came from another window of yours")
    others = list(dict.fromkeys(event.annotator for event in events if event.annotator != annotator))
    if others:
        count = len(events) - own.total()
        parts.append(f"{_counted(count, 'judgment', 'judgments')} of {_listed(others)} came in")
    return "; ".join(parts)


def no_such_grade(grade: str, labels: Sequence[str]) -> str:
    """The answer to a grade that the task does not have."""
    ends = [grade_label(grade, labels) for grade in (0, len(labels) - 1)]
    return f"there is no grade {grade}: the grades go from {ends[0]} to {ends[1]}"


def summed_up(found: Summary, labels: Sequence[str]) -> list[str]:
    """What was judged in one sitting, how fast, and how much is left, in a few sentences."""
    if not (found.judged or found.skipped or found.noted):
        return []
    counts = [f"{count} × {grade_label(grade, labels)}" for grade, count in found.grades.items()]
    aside = (("can't tell", found.cant_tell), ("skipped", found.skipped), ("noted", found.noted))
    counts += [f"{count} × {what}" for what, count in aside if count]
    judged, topics = (
        _counted(found.judged, "document", "documents"),
        _counted(found.topics, "topic", "topics"),
    )
    pace = "" if found.seconds is None else f", {duration(found.seconds)} each"
    lines = [f"judged {judged} of {topics}{pace}: {', '.join(counts)}"]
    if found.left:
        time = "" if found.seconds is None else f", about {duration(found.left * found.seconds)} at this pace"
        left = _counted(found.left, "document", "documents")
        lines.append(f"{left} of {_counted(found.topics_left or 0, 'topic', 'topics')} left{time}")
    elif found.left == 0:
        lines.append("nothing is left to judge")
    return lines


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def mark(opinion: Opinion | None, top_grade: int) -> RowPart:
    """What was said of a document, in a sign."""
    if opinion is None:
        return UNJUDGED, "rows--faint"
    if opinion.action is Action.skip:
        return SKIPPED, "rows--aside"
    if opinion.grade is None:
        return CANT_TELL, "rows--aside"
    look = "zero" if opinion.grade == 0 else "most" if opinion.grade == top_grade else "some"
    return str(opinion.grade), f"rows--{look}"
