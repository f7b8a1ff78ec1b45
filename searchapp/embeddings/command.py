"""Models as commands, which read and write one JSON object per line."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from searchapp.config.credentials import without_secrets
from searchapp.embeddings.endpoint import InvalidAnswerError
from searchapp.errors import DataError, ModelUnavailable, UsageError
from searchapp.files import parse_json
from searchapp.formats.problems import shown
from searchapp.text import counted

Answer = TypeVar("Answer")


def command_answers(
    command: Sequence[str],
    folder: Path,
    place: str,
    questions: Sequence[Mapping[str, Any]],
    read: Callable[[dict[str, Any]], Answer],
    batch_size: int,
    *,
    in_order: bool = False,
) -> Iterator[list[tuple[int, Answer]]]:
    """Yield batches of answers with the numbers of their questions, in the order of the command's output.

    Args:
        command: the program and its arguments
        folder: where it runs
        place: where the user names the command, as messages name it
        questions: the objects that the command reads; each gets its number as `index`
        read: returns the content of an object that it writes, or raises `InvalidAnswerError`
        batch_size: the number of answers in a batch; the last one may have fewer
        in_order: an answer may have no `index`, and then answers the question of its line

    Raises:
        UsageError: the command can't be run.
        DataError: it writes no valid answer.
        ModelUnavailable: it fails, or answers too few questions.
    """
    name = f"the command {shown(command[0])}"
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=without_secrets(os.environ),
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} can't be run ({error}): correct {place}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    feeder = threading.Thread(target=_feed, args=(process.stdin, questions), daemon=True)
    answered: set[int] = set()
    batch: list[tuple[int, Answer]] = []
    failure: DataError | None = None
    try:
        feeder.start()
        for number, line in enumerate(process.stdout, 1):
            try:
                row = parse_json(line.decode())
                index = row.get("index", number - 1) if in_order else row["index"]
                if type(index) is not int or index not in range(len(questions)) or index in answered:
                    raise ValueError(index)
                batch.append((index, read(row)))
            except (ValueError, TypeError, AttributeError, KeyError, InvalidAnswerError) as error:
                what = str(error) if isinstance(error, InvalidAnswerError) else "writes no valid answer"
                failure = DataError(f"{name} {what} (line {number} of its output)")
                break
            answered.add(index)
            if len(batch) == batch_size:
                yield batch
                batch = []
        if batch:
            yield batch
        if failure is not None:
            raise failure
        code = process.wait()
    finally:
        process.kill()
        process.wait()
        feeder.join()
        process.stdout.close()
    if code or len(answered) < len(questions):
        raise ModelUnavailable(
            f"{name} ended with exit code {code} and {counted(len(answered), 'answer')} for "
            f"{counted(len(questions), 'text')}"
        )


def _feed(pipe: Any, questions: Iterable[Mapping[str, Any]]) -> None:
    try:
        with pipe:
            for index, question in enumerate(questions):
                pipe.write(json.dumps({"index": index, **question}).encode() + b"\n")
    except (OSError, ValueError):
        pass  # the command has ended, and its exit code tells why
