"""The judgment log as files, and files as the log.

    jsonl    every event, one JSON object a line: loses nothing, and is read back as it was
    qrels    the grade that holds for each document, as TREC's assessors write it: `topic 0 document grade`
    trec     every annotator's grade: `topic annotator document grade`
    official the task's own gold file, which tasks write and read

A file that is imported a second time changes nothing: events are known by their ids, and what has none gets one that
follows from what it says. A file that contradicts the log is refused whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from searchapp.errors import DataError
from searchapp.formats import trec
from searchapp.formats.encoding import foreign, opened
from searchapp.formats.problems import Problems, shown
from searchapp.judging.events import Action, Channel, Event, Kind
from searchapp.judging.fold import View
from searchapp.judging.log import JudgmentLog


@dataclass(frozen=True, slots=True)
class Imported:
    """How many events a file holds, and how many of them the log did not have."""

    events: int
    new: int


def write_jsonl(file: BinaryIO, events: Iterable[Event]) -> int:
    """Write every event; returns how many."""
    count = 0
    for event in events:
        line = json.dumps(event.to_json(), ensure_ascii=False) + "\n"
        file.write(line.encode("utf-8", "surrogatepass"))
        count += 1
    return count


def write_annotators(file: BinaryIO, view: View, annotators: Collection[str] | None = None) -> int:
    """Write the grade of each of these annotators, or of all, for each document; returns how many.

    Raises:
        DataError: a name or id holds white space, which can't stand in the format. Nothing is written then.
    """
    lines = []
    for topic_id, document_id in view.judged_documents():
        for opinion in view.opinions(topic_id, document_id):
            if opinion.grade is None or (annotators is not None and opinion.annotator not in annotators):
                continue
            cells = (topic_id, opinion.annotator, document_id)
            for cell in cells:
                if cell.split() != [cell]:
                    raise DataError(
                        f"{shown(cell)} can't stand in a TREC file, whose columns end at white space: export jsonl"
                    )
            lines.append(" ".join((*cells, str(opinion.grade))) + "\n")
    file.write("".join(lines).encode())
    return len(lines)


def import_jsonl(log: JudgmentLog, path: Path, task: str, highest: int) -> Imported:
    """Append the events of a file that the log does not have yet, all or none; `highest` is the task's best grade.

    Raises:
        InvalidFiles: a line is no event, or one of another task; a grade is too high; an annotator is a person in one
            event and a model in another; or an event contradicts that of the same id in the log or in the file.
        NotSaved: the log can't be written.
    """
    problems = Problems()
    events = dict(_read_events(path, problems))
    known = log.known(event.id for event in events.values())
    kinds = _kinds(log, task)
    for line, event in events.items():
        where = f"line {line}"
        if event.id in known and known[event.id] != event:
            problems.add(path, "conflict", where, f"the log has another event of the id {shown(event.id)}")
        if event.task != task:
            problems.add(path, "another task", where, f"the event is of {shown(event.task)}, not of {task}")
        if event.grade is not None and event.grade > highest:
            problems.add(path, "grade out of range", where, _too_high(event.grade, highest))
        if kinds.setdefault(event.annotator, event.kind) is not event.kind:
            problems.add(path, "conflict", where, _two_kinds(event.annotator, kinds[event.annotator]))
    problems.raise_if_any()
    return Imported(len(events), log.append(list(events.values())))


def _kinds(log: JudgmentLog, task: str) -> dict[str, Kind]:
    """Who of a task's annotators is a person, and who a model."""
    return {event.annotator: event.kind for _, event in log.events(task)}


def _too_high(grade: int, highest: int) -> str:
    return f"{grade}, where the task has grades from 0 to {highest}"


def _two_kinds(annotator: str, kind: Kind) -> str:
    return f"{shown(annotator)} is a {kind.value} elsewhere: give the other one another name"


def _read_events(path: Path, problems: Problems) -> Iterator[tuple[int, Event]]:
    seen: dict[str, Event] = {}
    try:
        with opened(path) as file:
            if found := foreign(file.head):
                problems.add(path, "unsupported file", detail=str(found))
                return
            lines = file.read().split(b"\n")
    except OSError as error:
        problems.add_unopened(path, error)
        return
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        where = f"line {number}"
        try:
            event = Event.from_json(json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8")))
        except UnicodeDecodeError:
            problems.add(path, "not UTF-8", where)
        except json.JSONDecodeError as error:
            problems.add(path, "not JSON", where, error.msg)
        except (
            ValueError,
            RecursionError,
        ) as error:  # an integer of more than 4300 digits; brackets without end
            problems.add(path, "not JSON", where, str(error))
        except DataError as error:
            problems.add(path, "no event", where, str(error))
        else:
            if seen.get(event.id, event) != event:
                problems.add(path, "conflict", where, f"the file has two events of the id {shown(event.id)}")
            elif event.id not in seen:
                seen[event.id] = event
                yield number, event


def import_grades(
    log: JudgmentLog,
    task: str,
    grades: Mapping[str, Mapping[str, int]],
    template: Event,
    path: Path,
    highest: int,
) -> Imported:
    """Append grades as events of one annotator; those that the annotator has given already are no news.

    `template` says who graded, as which kind and when; `path` is what errors name, `highest` the task's best grade.

    Raises:
        InvalidFiles: a grade is too high, the annotator has given a document another one, which still holds, or was
            of the other kind.
    """
    problems = Problems()
    name = template.annotator
    view = View(event for _, event in log.events(task))
    if (kind := _kinds(log, task).get(name, template.kind)) is not template.kind:
        problems.add(path, "conflict", detail=_two_kinds(name, kind))
    begin = datetime.fromisoformat(template.time)
    events: list[Event] = []
    for topic_id, of_topic in grades.items():
        where = f"topic {shown(topic_id)}"
        for document_id, grade in of_topic.items():
            if grade > highest:
                detail = f"{shown(document_id)}: {_too_high(grade, highest)}"
                problems.add(path, "grade out of range", where, detail)
            held = view.opinion(name, topic_id, document_id)
            if held is None:
                # Each a moment later: what has the same time is in no order, and some scorers go by that of the gold.
                time = (begin + timedelta(microseconds=len(events))).isoformat(timespec="microseconds")
                events.append(_graded(replace(template, time=time), task, topic_id, document_id, grade))
            elif held.grade != grade:
                said = held.action.value if held.grade is None else f"grade {held.grade}"
                detail = f"{shown(document_id)}: the file says grade {grade}, {name} {said} in the log"
                problems.add(path, "conflict", where, detail)
    problems.raise_if_any()
    return Imported(sum(map(len, grades.values())), log.append(events))


def read_grades(path: Path) -> dict[str, dict[str, int]]:
    """The grades of a qrels file.

    Raises:
        InvalidFiles: it has problems, negative grades among them.
    """
    problems = Problems()
    qrels = trec.read_qrels(path, problems)
    for topic_id, grades in qrels.items():
        for document_id, grade in grades.items():
            if grade < 0:
                detail = f"{grade} for {shown(document_id)}"
                problems.add(path, "negative grade", f"topic {shown(topic_id)}", detail)
    problems.raise_if_any()
    return qrels


def template(annotator: str, kind: Kind, task: str, time: str) -> Event:
    """An event that says who graded and when, for `import_grades`."""
    event = Event(
        id="template",
        time=time,
        annotator=annotator,
        kind=kind,
        channel=Channel.imported,
        task=task,
        topic_id="-",
        document_id="-",
        action=Action.skip,
    )
    event.check()
    return event


def _graded(template: Event, task: str, topic_id: str, document_id: str, grade: int) -> Event:
    said = "\0".join((template.annotator, task, topic_id, document_id, str(grade)))
    return replace(
        template,
        id=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        topic_id=topic_id,
        document_id=document_id,
        action=Action.grade,
        grade=grade,
    )
