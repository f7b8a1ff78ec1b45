"""What the log says of a task, remembered in a file beside it: so that a long log opens at once.

The file has what the events up to a place add up to, see `compact`, and the log's checksum at that place. Only later
events are read from the log. A file that is missing, damaged, of another format, or does not go with the log is made
again without a word: to delete it is always safe.

    one line of JSON: format, task, place, the log's checksum there, byte order, digest of the rest
    one line of JSON: annotators, retractions, topics and the sizes of what follows
    the documents of each topic, as JSON
    the columns of `compact.COLUMNS`, each of all topics one after the other
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from searchapp.errors import SearchappError
from searchapp.files import whole_file
from searchapp.inputs import parse_json
from searchapp.judging.compact import COLUMNS, Compact, TopicEvents, Work
from searchapp.judging.log import JudgmentLog

FORMAT = 1
FEW = 2_000
"""This many events are read from the log rather than computed again."""
SHARE = 10
"""Or this share of those that are remembered: one in this many."""


def compact(log: JudgmentLog, task: str) -> Compact:
    """What all events of a task in a log add up to.

    Raises:
        DataError: the log can't be read.
    """
    found = read(log, task) or Compact(log, task)
    known, later = found.count, 0
    for place, event in log.events(after=found.last):
        later += 1
        found.last = place
        if event.task == task:
            found.add(place, event)
    found.settle()
    if later > max(FEW, known // SHARE) and not log.damage.found:
        write(log, found)
    return found


def path_of(log: Path, task: str) -> Path:
    """The file that remembers a task, whatever it is called."""
    return log.with_name(f"{log.name}-view-{hashlib.blake2b(task.encode(), digest_size=4).hexdigest()}")


def write(log: JudgmentLog, found: Compact) -> None:
    """Remember what was found, if that is possible."""
    checksum = log.checksum_at(found.last)
    if checksum is None:
        return  # written by an earlier searchapp, and not covered yet
    topics = list(found.topics.items())
    listed = [topic.listed for _, topic in topics]
    meta = {
        "count": found.count,
        "works": {name: asdict(work) for name, work in found.works.items()},
        "refers": found.refers,
        "retracted_by": found.retracted_by,
        "places": found.places,
        "gone": sorted(found.gone),
        "topics": [
            (name, len(topic.columns["places"]), len(documents))
            for (name, topic), documents in zip(topics, listed, strict=True)
        ],
    }
    body = b"".join(
        (
            json.dumps(meta).encode(),
            b"\n",
            *listed,
            *(topic.columns[column].tobytes() for column in COLUMNS for _, topic in topics),
        )
    )
    head = {
        "format": FORMAT,
        "task": found.task,
        "last": found.last,
        "checksum": checksum.hex(),
        "order": sys.byteorder,
        "digest": _digest(body),
    }
    with suppress(SearchappError), whole_file(path_of(log.path, found.task)) as file:
        file.write(json.dumps(head).encode() + b"\n" + body)


def read(log: JudgmentLog, task: str) -> Compact | None:
    """What is remembered of a task; None if nothing is that goes with the log."""
    try:
        head_line, _, body = path_of(log.path, task).read_bytes().partition(b"\n")
        head = parse_json(head_line.decode())
        wanted = {"format": FORMAT, "task": task, "order": sys.byteorder, "digest": _digest(body)}
        if any(head[name] != value for name, value in wanted.items()):
            return None
        if log.checksum_at(head["last"]) != bytes.fromhex(head["checksum"]):
            return None
        return _restored(Compact(log, task), head["last"], memoryview(body))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _restored(found: Compact, last: int, body: memoryview) -> Compact:
    end = bytes(body).index(b"\n")
    # Its digest has been compared: it is as it was written here.
    meta: dict[str, Any] = json.loads(bytes(body[:end]))  # noqa: TID251
    found.last, found.count = last, meta["count"]
    found.works = {name: Work(**work) for name, work in meta["works"].items()}
    found.refers, found.retracted_by = meta["refers"], meta["retracted_by"]
    found.places, found.gone = meta["places"], set(meta["gone"])
    found.restore_numbers()
    at = end + 1
    listed: list[bytes] = []
    for _name, _count, size in meta["topics"]:
        listed.append(bytes(body[at : at + size]))
        at += size
    columns: list[dict[str, array[int]]] = [{} for _ in listed]
    for column, type_ in COLUMNS.items():
        for own, (_name, count, _size) in zip(columns, meta["topics"], strict=True):
            values = array(type_)
            size = count * values.itemsize
            values.frombytes(body[at : at + size])
            own[column] = values
            at += size
    found.topics = {
        name: TopicEvents(own, documents)
        for (name, _count, _size), own, documents in zip(meta["topics"], columns, listed, strict=True)
    }
    return found


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
