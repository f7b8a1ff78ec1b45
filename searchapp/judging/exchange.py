"""The judgment log as files, and files as the log.

    jsonl    every event, one JSON object a line: loses nothing, and is read back as it was
    qrels    the grade that holds for each document, as TREC's assessors write it: `topic 0 document grade`
    trec     every annotator's grade: `topic annotator document grade`

A file that is imported a second time changes nothing: events are known by their ids, and what has none gets one that
follows from what it says. A file that contradicts the log is refused whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from searchapp.errors import DataError
from searchapp.formats import trec
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


def write_annotators(file: BinaryIO, view: View) -> int:
    """Write the grade of each annotator for each document; returns how many.

    Raises:
        DataError: a name or id holds white space, which can't stand in the format. Nothing is written then.
    """
    lines = []
    for topic_id, document_id in view.judged_documents():
        for opinion in view.opinions(topic_id, document_id):
            if opinion.grade is None:
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


def import_jsonl(log: JudgmentLog, path: Path) -> Imported:
    """Append the events of a file that the log does not have yet, all or none.

    Raises:
        InvalidFiles: a line is no event, or contradicts an event of the same id in the log or in the file.
        NotSaved: the log can't be written.
    """
    problems = Problems()
    events = dict(_read_events(path, problems))
    known = log.known(event.id for event in events.values())
    for line, event in events.items():
        if event.id in known and known[event.id] != event:
            problems.add(path, "conflict", f"line {line}", f"the log has another event of the id {event.id}")
    problems.raise_if_any()
    return Imported(len(events), log.append(list(events.values())))


def _read_events(path: Path, problems: Problems) -> Iterator[tuple[int, Event]]:
    seen: dict[str, Event] = {}
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        problems.add_unopened(path, error)
        return
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        where = f"line {number}"
        try:
            event = Event.from_json(json.loads(raw.decode("utf-8", "surrogatepass")))
        except UnicodeDecodeError:
            problems.add(path, "not UTF-8", where)
        except json.JSONDecodeError as error:
            problems.add(path, "not JSON", where, error.msg)
        except DataError as error:
            problems.add(path, "no event", where, str(error))
        else:
            if seen.get(event.id, event) != event:
                problems.add(path, "conflict", where, f"the file has two events of the id {event.id}")
            elif event.id not in seen:
                seen[event.id] = event
                yield number, event


def import_grades(
    log: JudgmentLog, task: str, qrels: Mapping[str, Mapping[str, int]], template: Event, path: Path
) -> Imported:
    """Append grades as events of one annotator; those that the annotator has given already are no news.

    `template` says who graded, as which kind and when; `path` is what errors name.

    Raises:
        InvalidFiles: the annotator has given a document another grade, which still holds.
    """
    problems = Problems()
    view = View(event for _, event in log.events(task))
    events = []
    for topic_id, grades in qrels.items():
        for document_id, grade in grades.items():
            held = view.opinion(template.annotator, topic_id, document_id)
            if held is None:
                events.append(_graded(template, task, topic_id, document_id, grade))
            elif held.grade != grade:
                said = held.action.value if held.grade is None else f"grade {held.grade}"
                detail = f"{document_id}: the file says grade {grade}, {template.annotator} {said} in the log"
                problems.add(path, "conflict", f"topic {topic_id}", detail)
    problems.raise_if_any()
    return Imported(sum(map(len, qrels.values())), log.append(events))


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
                problems.add(path, "negative grade", f"topic {topic_id}", f"{grade} for {document_id}")
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
