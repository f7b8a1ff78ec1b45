"""The judgment log as files, and files as the log.

    jsonl    every event, one JSON object per line: loses nothing, and is read back as it was
    qrels    the grade that holds for each document, as TREC's assessors write it: `topic 0 document grade`
    trec     every annotator's grade: `topic annotator document grade`
    official the task's own gold file, which tasks write and read

A file that is imported a second time changes nothing: events are known by their ids, and what has none gets one that
follows from what it says. A file that contradicts the log is refused whole.

What came with a file is known as an import, see `log`, and can be taken back as one: by retractions, since nothing is
ever deleted. To import the file again brings it back, by retractions of these; what an annotator has undone stays so.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from searchapp.errors import DataError
from searchapp.formats import trec
from searchapp.formats.encoding import foreign, opened
from searchapp.formats.problems import Problems, shown
from searchapp.judging.events import Action, Author, Channel, Event, Kind
from searchapp.judging.judgments import View
from searchapp.judging.log import Import, JudgmentLog

_OF_QRELS = re.compile(rb"(\xef\xbb\xbf)?\s*[^\s{]\S*\s+\S+\s+\S+\s+-?[0-9]+\s*")
"""A line of TREC qrels, which can be no event."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """What a file says and the log takes in, once it was checked: `new` are the events that the log lacks.

    `judgments` counts what the file holds, `undone` what of it the log had and the annotator has taken back.
    """

    path: Path
    format: str
    judgments: int
    new: tuple[Event, ...]
    undone: int = 0


def take_in(log: JudgmentLog, task: str, incoming: Incoming) -> Import | None:
    """Append what a file says, all or none; None when the log had all of it before.

    Raises:
        NotSaved: the log can't be written; nothing was.
    """
    file = str(incoming.path).encode("utf-8", "backslashreplace").decode()  # its name need not be UTF-8
    return log.take_in(incoming.new, task, file, incoming.format)


def take_back(log: JudgmentLog, number: int, view: View) -> int:
    """Retract what came with an import, as if it had never come; returns how many of its events stood until now.

    What the file itself retracts is retracted once more: its own retractions hold no longer. The retractions are the
    annotators' whose events they take back.

    Raises:
        NotSaved: the log can't be written; nothing was.
    """
    events = log.events_of(number)
    own = {event.id for event in events}
    open_ = [event for event in events if own.issuperset(view.retractions(event.id))]
    log.append([_retraction(event, f"import {number} was taken back") for event in open_])
    return sum(view.holds(event.id) for event in open_)


def _retraction(event: Event, why: str) -> Event:
    author = Author(event.annotator, event.kind, Channel.imported)
    return author.event(
        event.task, event.topic_id, event.document_id, Action.retract, text=why, refers=event.id
    )


def _brought_back(
    log: JudgmentLog, view: View, known: Mapping[str, Event], in_file: Collection[str]
) -> tuple[list[Event], int]:
    """What lets events count again that came with an import which was taken back, and how many stay undone.

    `known` are events of a file that the log has. Where the file itself says that one is retracted, it stays so.
    """
    gone = {
        id_: view.retractions(id_)
        for id_, event in known.items()
        if not view.holds(id_) and not _takes_back(event)
    }
    retractions = log.known(other for others in gone.values() for other in others)
    back: list[Event] = []
    undone = 0
    for others in gone.values():
        if all(_takes_back(retractions[other]) and other not in in_file for other in others):
            back += [_retraction(retractions[other], "the file was imported again") for other in others]
        elif not any(other in in_file for other in others):
            undone += 1
    return back, undone


def _takes_back(event: Event) -> bool:
    """Whether an event is there because an import was taken back, or made again: no annotator has undone anything."""
    return event.action is Action.retract and event.channel is Channel.imported


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


def incoming_events(log: JudgmentLog, path: Path, task: str, highest: int) -> Incoming:
    """The events of a file; `highest` is the task's best grade.

    Raises:
        InvalidFiles: a line is no event, or one of another task; a grade is too high; an annotator is a person in one
            event and a model in another; or an event contradicts that of the same id in the log or in the file.
    """
    problems = Problems()
    events = dict(_read_events(path, problems))
    known = log.known(event.id for event in events.values())
    in_log = [event for _, event in log.events(task)]
    kinds = _kinds(in_log)
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
    in_file = {event.id for event in events.values()}
    new = [event for event in events.values() if event.id not in known]
    back, undone = _brought_back(log, View(in_log), known, in_file)
    return Incoming(path, "jsonl", len(events), (*new, *back), undone)


def _kinds(events: Iterable[Event]) -> dict[str, Kind]:
    """Who of the annotators is a person, and who a model."""
    return {event.annotator: event.kind for event in events}


def _too_high(grade: int, highest: int) -> str:
    return f"{grade}, where the task has grades from 0 to {highest}"


def _two_kinds(annotator: str, kind: Kind) -> str:
    return f"{shown(annotator)} is a {kind.value} elsewhere: give the other one another name"


def _read_events(path: Path, problems: Problems) -> Iterator[tuple[int, Event]]:
    try:
        with opened(path) as file:
            if found := foreign(file.head):
                problems.add(path, "unsupported file", detail=str(found))
                return
            yield from _events_in(enumerate(file, 1), path, problems)
    except OSError as error:
        problems.add_unopened(path, error)


def _events_in(
    lines: Iterable[tuple[int, bytes]], path: Path, problems: Problems
) -> Iterator[tuple[int, Event]]:
    seen: dict[str, Event] = {}
    for number, raw in lines:
        if not raw.strip():
            continue
        where = f"line {number}"
        if number == 1 and _OF_QRELS.fullmatch(raw):
            detail = "it is a line of qrels: import the file with --format qrels, and --annotator says whose grades"
            problems.add(path, "another format", where, detail)
            return
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


def incoming_grades(
    log: JudgmentLog,
    grades: Mapping[str, Mapping[str, int]],
    template: Event,
    path: Path,
    format_: str,
    highest: int,
) -> Incoming:
    """Grades as events of one annotator; those that the annotator has given already are no news.

    `template` says who graded, of which task, as which kind and when; `path` and `format_` are those of the file that
    the grades are from, `highest` is the task's best grade.

    Raises:
        InvalidFiles: a grade is too high, the annotator has given a document another one, which still holds, or was
            of the other kind.
    """
    problems = Problems()
    name = template.annotator
    in_log = [event for _, event in log.events(template.task)]
    view = View(in_log)
    if (kind := _kinds(in_log).get(name, template.kind)) is not template.kind:
        problems.add(path, "conflict", detail=_two_kinds(name, kind))
    begin = datetime.fromisoformat(template.time)
    given: list[Event] = []
    for topic_id, of_topic in grades.items():
        where = f"topic {shown(topic_id)}"
        for document_id, grade in of_topic.items():
            if grade > highest:
                detail = f"{shown(document_id)}: {_too_high(grade, highest)}"
                problems.add(path, "grade out of range", where, detail)
            held = view.opinion(name, topic_id, document_id)
            if held is None:
                # Each a moment later: what has the same time is in no order, and some scorers go by that of the gold.
                time = (begin + timedelta(microseconds=len(given))).isoformat(timespec="microseconds")
                given.append(_graded(replace(template, time=time), topic_id, document_id, grade))
            elif held.grade != grade:
                said = held.action.value if held.grade is None else f"grade {held.grade}"
                detail = f"{shown(document_id)}: the file says grade {grade}, {name} {said} in the log"
                problems.add(path, "conflict", where, detail)
    problems.raise_if_any()
    known = log.known(event.id for event in given)
    new = [event for event in given if event.id not in known]
    back, undone = _brought_back(log, view, known, ())
    return Incoming(path, format_, sum(map(len, grades.values())), (*new, *back), undone)


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
    """An event that says who graded and when, for `incoming_grades`."""
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


def _graded(template: Event, topic_id: str, document_id: str, grade: int) -> Event:
    said = "\0".join((template.annotator, template.task, topic_id, document_id, str(grade)))
    return replace(
        template,
        id=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        topic_id=topic_id,
        document_id=document_id,
        action=Action.grade,
        grade=grade,
    )
