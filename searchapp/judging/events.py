"""The events of the judgment log, and their wording."""

from __future__ import annotations

import getpass
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from searchapp.errors import DataError, UsageError
from searchapp.formats.problems import encodable
from searchapp.lucene.dataclass import dataclass


class Action(StrEnum):
    """The action of an annotator."""

    grade = "grade"
    # Put the document off; not grade 0.
    skip = "skip"
    # State that the document can't be judged; not grade 0.
    cant_tell = "cant_tell"
    note = "note"
    # Take back the event that `Event.refers` names.
    retract = "retract"
    # Give the grade that decides between annotators.
    adjudicate = "adjudicate"


LIMIT = 2**31  # grades and ranks are lower, so that every storage supports them

# Years of events: a later event needs a later time, which does not exist after the last year.
YEARS = range(1970, 9999)

GRADED = (Action.grade, Action.adjudicate)


class Channel(StrEnum):
    """The source of an event: the screens, the prompts, or an imported file."""

    interface = "interface"
    plain = "plain"
    imported = "import"


class Kind(StrEnum):
    """The kind of an annotator."""

    person = "person"
    model = "model"


@dataclass(frozen=True, slots=True)
class Event:
    """One action of an annotator."""

    # Globally unique.
    id: str
    # UTC, ISO 8601 with microseconds.
    time: str
    annotator: str
    kind: Kind
    channel: Channel
    task: str
    topic_id: str
    document_id: str
    action: Action
    grade: int | None = None
    # The note, or the reason for the grade.
    text: str = ""
    # The run in which the document was seen; `rank` is its rank there.
    run: str = ""
    rank: int | None = None
    # The id of the event that a retraction takes back.
    refers: str = ""
    # Whether the annotator could see others' opinions on the document; None if unknown, as in imported
    # grades.
    saw_others: bool | None = None

    @property
    def order(self) -> tuple[datetime, str]:
        """The sort key of events, the same in every log."""
        return datetime.fromisoformat(self.time), self.id

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Event:
        """Return the event of a JSON object.

        Raises:
            DataError: a field is missing, unknown or invalid.
        """
        if not isinstance(value, Mapping):
            raise DataError(f"an event must be an object, not {type(value).__name__}")
        unknown = sorted(value.keys() - {field.name for field in fields(cls)})
        if unknown:
            raise DataError(
                f"unknown field {unknown[0]!r} of an event: a newer version of searchapp may know it"
            )
        try:
            event = cls(
                **{
                    **value,
                    "kind": Kind(value["kind"]),
                    "channel": Channel(value["channel"]),
                    "action": Action(value["action"]),
                }
            )
        except KeyError as error:
            raise DataError(f"an event lacks the field {error.args[0]!r}") from None
        except (TypeError, ValueError) as error:
            raise DataError(
                f"an event can't be read: {error}; a newer version of searchapp may know it"
            ) from None
        event.check()
        return event

    def check(self) -> None:
        """Check the fields and their combination.

        Raises:
            DataError: a field is invalid.
        """
        for name in ("id", "time", "annotator", "task", "topic_id", "document_id", "text", "run", "refers"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise DataError(f"the field {name!r} of an event must be text")
            if not encodable(text):
                raise DataError(f"the field {name!r} of an event has half of a surrogate pair: {text!r}")
        for name in ("id", "annotator", "task", "topic_id", "document_id"):
            if not getattr(self, name):
                raise DataError(f"the field {name!r} of an event is empty")
        if not self.annotator.strip():
            raise DataError("the annotator's name in an event is blank")
        for name in ("grade", "rank"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise DataError(f"the {name} of an event must be a whole number")
            if value is not None and not 0 <= value < LIMIT:
                raise DataError(f"the {name} of an event must be a whole number from 0 to {LIMIT - 1}")
        if self.saw_others is not None and not isinstance(self.saw_others, bool):
            raise DataError("the field 'saw_others' of an event must be true or false, or left out")
        try:
            moment = datetime.fromisoformat(self.time)
        except ValueError:
            raise DataError(f"the time {self.time!r} of an event is not ISO 8601") from None
        if moment.tzinfo is None:
            raise DataError(f"the time {self.time!r} of an event names no time zone")
        if moment.year not in YEARS:
            raise DataError(f"the time {self.time!r} of an event is not from {YEARS[0]} to {YEARS[-1]}")
        if (self.grade is None) == (self.action in GRADED):
            needs = "needs a grade" if self.action in GRADED else "has no grade"
            raise DataError(f"an event {self.action.value!r} {needs}")
        if bool(self.refers) != (self.action is Action.retract):
            raise DataError("an event must refer to another one if it retracts it, and only then")
        if self.action is Action.note and not self.text:
            raise DataError("a note must have text")


LONGEST_NAME = 64  # characters of the name of a detail


@dataclass(frozen=True, slots=True)
class Detail:
    """A side record of an event, which versions before 0.4 do not read: an event has at most one of each name."""

    # The id of the event.
    event: str
    # What it records, such as "guidelines".
    name: str
    # A JSON object.
    value: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.name}/{self.event}"

    def to_json(self) -> dict[str, Any]:
        return {"event": self.event, "name": self.name, "value": dict(self.value)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Detail:
        """Return the detail of a JSON object.

        Raises:
            DataError: a field is missing, unknown or invalid.
        """
        if not isinstance(value, Mapping):
            raise DataError(f"a detail must be an object, not {type(value).__name__}")
        names = [field.name for field in fields(cls)]
        if unknown := sorted(value.keys() - set(names)):
            raise DataError(
                f"unknown field {unknown[0]!r} of a detail: a newer version of searchapp may know it"
            )
        for name in names:
            if name not in value:
                raise DataError(f"a detail lacks the field {name!r}")
        detail = cls(**value)
        detail.check()
        return detail

    def check(self) -> None:
        """Check the fields.

        Raises:
            DataError: a field is invalid.
        """
        for field_name in ("event", "name"):
            text = getattr(self, field_name)
            if not isinstance(text, str) or not text or not encodable(text):
                raise DataError(f"the field {field_name!r} of a detail must be text")
        if len(self.name) > LONGEST_NAME:
            raise DataError(f"the name of a detail has more than {LONGEST_NAME} characters")
        if not isinstance(self.value, Mapping):
            raise DataError("the field 'value' of a detail must be an object")
        try:
            json.dumps(self.value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(f"the value of a detail can't be written as JSON: {error}") from None


@dataclass(frozen=True, slots=True)
class Author:
    """The annotator of new events."""

    annotator: str
    kind: Kind = Kind.person
    channel: Channel = Channel.interface

    def event(
        self,
        task: str,
        topic_id: str,
        document_id: str,
        action: Action,
        *,
        grade: int | None = None,
        text: str = "",
        run: str = "",
        rank: int | None = None,
        refers: str = "",
        saw_others: bool | None = None,
        after: datetime | None = None,
    ) -> Event:
        """Return a new event with the present time, which is always later than `after`."""
        now = datetime.now(UTC)
        if after is not None and now <= after:
            now = after.astimezone(UTC) + timedelta(microseconds=1)
        event = Event(
            id=uuid.uuid4().hex,
            time=now.isoformat(timespec="microseconds"),
            annotator=self.annotator,
            kind=self.kind,
            channel=self.channel,
            task=task,
            topic_id=topic_id,
            document_id=document_id,
            action=action,
            grade=grade,
            text=text,
            run=run,
            rank=rank,
            refers=refers,
            saw_others=saw_others,
        )
        event.check()
        return event


def grade_label(grade: int, labels: Sequence[str]) -> str:
    """Return a grade with its label, such as "1 relevant"."""
    label = labels[grade] if grade < len(labels) else ""
    return str(grade) if label in ("", str(grade)) else f"{grade} {label}"


def verdict_label(action: Action, grade: int | None, labels: Sequence[str]) -> str:
    """Return an annotator's verdict in words, without reasons."""
    if grade is not None:
        return grade_label(grade, labels)
    return {Action.skip: "skipped", Action.cant_tell: "can't tell"}.get(action, action.value)


def is_timed(event: Event) -> bool:
    """Return whether an event's time counts for the pace: a judgment with the document on the screen."""
    return event.action in (Action.grade, Action.cant_tell) and event.rank is not None


def annotator_name(given: str | None) -> str:
    """Return the given name of the annotator, or the name of the account.

    Raises:
        UsageError: there is neither.
    """
    try:
        name = (given or getpass.getuser()).strip()
    except (OSError, KeyError):
        name = ""
    if not name:
        raise UsageError("no annotator: give your name with --annotator NAME")
    return name
