"""Export of the judgment log to files, and import of files into the log.

    jsonl    every event and then the details of events, one JSON object per line: complete, and read back unchanged
    qrels    the grade that holds for each document, as TREC qrels: `topic 0 document grade`
    trec     every annotator's grade: `topic annotator document grade`
    official the task's own gold file, which tasks write and read

Importing a file again adds no event, because events have ids, and grades get ids from their content. It restores events
whose import was retracted, but not events that annotators retracted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from searchapp.errors import DataError
from searchapp.formats import trec
from searchapp.formats.encoding import foreign_kind, open_unpacked
from searchapp.formats.problems import Problems, shown
from searchapp.judging.events import Action, Author, Channel, Detail, Event, Kind
from searchapp.judging.log import Import, JudgmentLog
from searchapp.judging.view import JudgmentView, open_view
from searchapp.lucene.dataclass import dataclass

_OF_QRELS = re.compile(rb"(\xef\xbb\xbf)?\s*[^\s{]\S*\s+\S+\s+\S+\s+-?[0-9]+\s*")  # a line of TREC qrels


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A checked file."""

    path: Path
    format: str
    # The number of judgments in the file.
    judgments: int
    # The events that the log lacks.
    new: tuple[Event, ...]
    # The details of the file's events.
    details: tuple[Detail, ...] = ()
    # The number of its judgments that the log has and the annotator has undone.
    undone: int = 0


def import_file(log: JudgmentLog, task: str, incoming: IncomingFile) -> Import | None:
    """Append a file's events, all or none; return None if all of them are known.

    Raises:
        NotSaved: the log can't be written; nothing was written.
    """
    file = str(incoming.path).encode("utf-8", "backslashreplace").decode()  # its name need not be UTF-8
    return log.import_events(incoming.new, task, file, incoming.format, incoming.details)


def retract_import(log: JudgmentLog, number: int, view: JudgmentView) -> int:
    """Retract the events of an import, on behalf of their annotators; return how many of them counted.

    Raises:
        NotSaved: the log can't be written; nothing was written.
    """
    events = log.events_of(number)
    own = {event.id for event in events}
    unretracted = [event for event in events if own.issuperset(view.retractions(event.id))]
    log.append([_retraction(event, f"import {number} was undone") for event in unretracted])
    return sum(view.holds(event.id) for event in unretracted)


def _retraction(event: Event, why: str) -> Event:
    author = Author(event.annotator, event.kind, Channel.imported)
    return author.event(
        event.task, event.topic_id, event.document_id, Action.retract, text=why, refers=event.id
    )


def _restore(
    log: JudgmentLog, view: JudgmentView, known: Mapping[str, Event], in_file: Collection[str]
) -> tuple[list[Event], int]:
    """Return retractions that restore events of a retracted import, and the number of events that stay undone.

    Args:
        known: the events of the file that the log has
        in_file: the ids of the file's events; events that the file itself retracts stay retracted
    """
    retracted = {
        id_: view.retractions(id_)
        for id_, event in known.items()
        if not view.holds(id_) and not _is_of_import(event)
    }
    retractions = log.known(other for others in retracted.values() for other in others)
    restoring: list[Event] = []
    undone = 0
    for others in retracted.values():
        if all(_is_of_import(retractions[other]) and other not in in_file for other in others):
            restoring += [_retraction(retractions[other], "the file was imported again") for other in others]
        elif not any(other in in_file for other in others):
            undone += 1
    return restoring, undone


def _is_of_import(event: Event) -> bool:
    """Return whether an event retracts or restores an import, unlike an annotator's undo."""
    return event.action is Action.retract and event.channel is Channel.imported


def write_jsonl(file: BinaryIO, events: Iterable[Event], details: Iterable[Detail] = ()) -> int:
    """Write every event and detail; return how many."""
    count = 0
    records: Iterable[Event | Detail] = chain(events, details)
    for record in records:
        line = json.dumps(record.to_json(), ensure_ascii=False) + "\n"
        file.write(line.encode("utf-8", "surrogatepass"))
        count += 1
    return count


def write_annotators(file: BinaryIO, view: JudgmentView, annotators: Collection[str] | None = None) -> int:
    """Write the grade of each of these annotators, or of all, for each document; return how many.

    Raises:
        DataError: a name or id contains white space. Nothing is written then.
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
                        f"{shown(cell)} can't be written to a TREC file, whose columns end at white "
                        "space: export jsonl"
                    )
            lines.append(" ".join((*cells, str(opinion.grade))) + "\n")
    file.write("".join(lines).encode())
    return len(lines)


def incoming_events(log: JudgmentLog, path: Path, task: str, highest: int) -> IncomingFile:
    """Check the events of a file; `highest` is the task's best grade.

    Raises:
        InvalidFiles: an event is invalid, of another task or contradicts another event of the file or the log.
    """
    problems = Problems()
    records = list(_read_records(path, problems))
    events = {line: record for line, record in records if isinstance(record, Event)}
    details = {line: record for line, record in records if isinstance(record, Detail)}
    known_details = log.known_details(detail.id for detail in details.values())
    known = log.known(event.id for event in events.values())
    view = open_view(log, task)
    kinds = {name: Kind(work.kind) for name, work in view.work.items()}
    for line, event in events.items():
        where = f"line {line}"
        if event.id in known and known[event.id] != event:
            problems.add(
                path, "conflict", where, f"the log has a different event with the id {shown(event.id)}"
            )
        if event.task != task:
            problems.add(path, "another task", where, f"the event is for {shown(event.task)}, not for {task}")
        if event.grade is not None and event.grade > highest:
            problems.add(path, "grade out of range", where, _too_high(event.grade, highest))
        if kinds.setdefault(event.annotator, event.kind) is not event.kind:
            problems.add(path, "conflict", where, _two_kinds(event.annotator, kinds[event.annotator]))
    in_file = {event.id for event in events.values()}
    for line, detail in details.items():
        where = f"line {line}"
        if detail.event not in in_file:
            problems.add(path, "no such event", where, f"the file has no event {shown(detail.event)}")
        if known_details.get(detail.id, detail) != detail:
            problems.add(
                path, "conflict", where, f"the log has a different detail with the id {shown(detail.id)}"
            )
    problems.raise_if_any()
    new = [event for event in events.values() if event.id not in known]
    restoring, undone = _restore(log, view, known, in_file)
    return IncomingFile(
        path, "jsonl", len(events), (*new, *restoring), tuple(details.values()), undone=undone
    )


def _too_high(grade: int, highest: int) -> str:
    return f"{grade}: the grades of the task are 0 to {highest}"


def _two_kinds(annotator: str, kind: Kind) -> str:
    return f"{shown(annotator)} is a {kind.value} elsewhere: use another name here"


def _read_records(path: Path, problems: Problems) -> Iterator[tuple[int, Event | Detail]]:
    try:
        with open_unpacked(path) as file:
            if foreign_format := foreign_kind(file.head):
                problems.add(path, "unsupported file", detail=str(foreign_format))
                return
            yield from _records_in(enumerate(file, 1), path, problems)
    except OSError as error:
        problems.add_unopened(path, error)


def _records_in(
    lines: Iterable[tuple[int, bytes]], path: Path, problems: Problems
) -> Iterator[tuple[int, Event | Detail]]:
    seen: dict[tuple[type, str], Event | Detail] = {}
    for number, raw in lines:
        if not raw.strip():
            continue
        where = f"line {number}"
        if number == 1 and _OF_QRELS.fullmatch(raw):
            detail = (
                "this is a line of qrels: import the file with --format qrels, and name the annotator "
                "with --annotator"
            )
            problems.add(path, "another format", where, detail)
            return
        try:
            value = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
            is_detail = isinstance(value, dict) and "event" in value and "id" not in value
            record = Detail.from_json(value) if is_detail else Event.from_json(value)
        except UnicodeDecodeError:
            problems.add(path, "not UTF-8", where)
        except json.JSONDecodeError as error:
            problems.add(path, "not JSON", where, error.msg)
        except (ValueError, RecursionError) as error:  # an integer of more than 4300 digits; endless brackets
            problems.add(path, "not JSON", where, str(error))
        except DataError as error:
            problems.add(path, "no event", where, str(error))
        else:
            key = type(record), record.id
            if seen.get(key, record) != record:
                kind = type(record).__name__.lower()
                problems.add(
                    path, "conflict", where, f"the file has two {kind}s with the id {shown(record.id)}"
                )
            elif key not in seen:
                seen[key] = record
                yield number, record


def incoming_grades(
    log: JudgmentLog,
    grades: Mapping[str, Mapping[str, int]],
    template: Event,
    path: Path,
    format_: str,
    highest: int,
) -> IncomingFile:
    """Check grades of one annotator, and return the new ones as events.

    Args:
        grades: by topic and document
        template: has the annotator, task, kind and time
        highest: the task's best grade

    Raises:
        InvalidFiles: a grade is too high or contradicts one in the log, or the annotator is of the other kind.
    """
    problems = Problems()
    name = template.annotator
    view = open_view(log, template.task)
    work = view.work.get(name)
    if work is not None and work.kind != template.kind:
        problems.add(path, "conflict", detail=_two_kinds(name, Kind(work.kind)))
    begin = datetime.fromisoformat(template.time)
    given: list[Event] = []
    for topic_id, of_topic in grades.items():
        where = f"topic {shown(topic_id)}"
        for document_id, grade in of_topic.items():
            if grade > highest:
                detail = f"{shown(document_id)}: {_too_high(grade, highest)}"
                problems.add(path, "grade out of range", where, detail)
            opinion = view.opinion(name, topic_id, document_id)
            if opinion is None:
                # Each a moment later, to keep the file's order, which some scorers depend on.
                time = (begin + timedelta(microseconds=len(given))).isoformat(timespec="microseconds")
                given.append(_graded(replace(template, time=time), topic_id, document_id, grade))
            elif opinion.grade != grade:
                verdict = opinion.action.value if opinion.grade is None else f"grade {opinion.grade}"
                detail = (
                    f"{shown(document_id)}: grade {grade} in the file, but {verdict} by {name} in the log"
                )
                problems.add(path, "conflict", where, detail)
    problems.raise_if_any()
    known = log.known(event.id for event in given)
    new = [event for event in given if event.id not in known]
    restoring, undone = _restore(log, view, known, ())
    return IncomingFile(path, format_, sum(map(len, grades.values())), (*new, *restoring), undone=undone)


def read_grades(path: Path) -> dict[str, dict[str, int]]:
    """Return the grades of a qrels file.

    Raises:
        InvalidFiles: it has problems, for instance negative grades.
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
    """Return an event that passes annotator, kind, task and time to `incoming_grades`."""
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
    content = "\0".join((template.annotator, template.task, topic_id, document_id, str(grade)))
    return replace(
        template,
        id=hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        topic_id=topic_id,
        document_id=document_id,
        action=Action.grade,
        grade=grade,
    )
