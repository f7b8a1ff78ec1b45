"""Loads a JSON file as the organisers' scripts do, and says what they would report where they stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, NotScorable
from searchapp.files import unreadable
from searchapp.formats.encoding import undecodable
from searchapp.inputs import read_bytes


def load_list(path: Path, noun: str, *, bom: bool = False) -> list[dict[str, Any]]:
    """The objects that a file's list holds; nothing else is checked. `noun` names them in messages.

    NaN and infinities are read, of a repeated key the last value is kept; a byte-order mark is accepted with
    `bom` only.

    Raises:
        NotScorable: not UTF-8, not JSON.
        DataError: the file cannot be opened, or it is JSON of another shape.
    """
    value = load(path, bom=bom)
    if not isinstance(value, list):
        raise DataError(
            f"{path}: it must hold a list of {noun}, not {type(value).__name__}: see the task's format"
        )
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{path}: entry {number} must be an object, not {type(entry).__name__}")
    return value


def load(path: Path, *, bom: bool = False) -> Any:
    """The value that a file holds.

    Raises:
        NotScorable: not UTF-8, not JSON.
        DataError: the file cannot be opened.
    """
    try:
        return json.loads(read_bytes(path).decode("utf-8-sig" if bom else "utf-8"))
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise NotScorable(undecodable(path, error), official(error)) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise NotScorable(f"{path}: {where}: not JSON", f"json.decoder.JSONDecodeError: {error}") from error
    except (ValueError, RecursionError) as error:  # an integer of more than 4300 digits; brackets without end
        raise NotScorable(f"{path} is not JSON that can be read", official(error)) from error


def official(error: Exception) -> str:
    """An exception as the organisers' script would report it."""
    return f"{type(error).__name__}: {error}"
