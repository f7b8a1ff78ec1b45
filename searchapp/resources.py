"""Finds the JSON and TOML that ship with searchapp: index mappings, query templates, recipes.

In an installed wheel they lie inside the package; in a checkout they are the folders of the same name at its
root, so that they can be edited and tried without building anything.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, UsageError
from searchapp.files import unreadable
from searchapp.inputs import parse_json, parse_toml, read_text

_PACKAGE = Path(__file__).parent

SAMPLES = _PACKAGE / "samples"
"""The sample collections that ship with searchapp, each in a folder of its task's name."""


@cache
def folder(name: str) -> Path:
    """The folder `index_mappings` or `query_templates`, wherever this installation keeps it."""
    for parent in (_PACKAGE, _PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise UsageError(f"this installation of searchapp has no folder {name}: install it again")


def index_mapping(name: str) -> dict[str, Any]:
    """The create-index body `index_mappings/<name>.json`: `settings` and `mappings`."""
    return read_json(folder("index_mappings") / f"{name}.json")


GENERAL = "text"
"""The folder of templates and recipes that need nothing of a task but text."""

GENERAL_LEARNING = ("neighbours",)
"""Those of its recipes that rank by solved topics, and are no recipes of a task that has none."""


def query_template(task: str, name: str) -> dict[str, Any]:
    """The search body with placeholders `query_templates/<task>/<name>.json`."""
    return read_json(folder("query_templates") / task / f"{name}.json")


@dataclass(frozen=True, slots=True)
class RecipeBook:
    """The recipes of a task as they are written, by name, and the search bodies that they refer to.

    `task` is the task's name, `file` where the recipes are to be corrected; `template` gives a body by its name.
    """

    task: str
    file: Path
    recipes: Mapping[str, Mapping[str, Any]]
    template: Callable[[str], dict[str, Any]]


def recipe_book(task: str) -> RecipeBook:
    """The recipes in the folder `query_templates/<task>`."""
    file = folder("query_templates") / task / "recipes.toml"
    return RecipeBook(task, file, recipes(task), lambda name: query_template(task, name))


def recipes(task: str) -> Mapping[str, Mapping[str, Any]]:
    """The recipes of a task, by name, from `query_templates/<task>/recipes.toml`."""
    path = folder("query_templates") / task / "recipes.toml"
    try:
        return parse_toml(read_text(path))
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not TOML: {error}") from error


def read_json(path: Path, *, file_names: bool = False) -> dict[str, Any]:
    """A JSON object from a file; `file_names` as in `inputs.parse_json`.

    Raises:
        DataError: the file is missing or can't be read, is not UTF-8, not JSON or no object.
    """
    try:
        value = parse_json(read_text(path), file_names=file_names)
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        message = f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise DataError(message) from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: a JSON object was expected, not {type(value).__name__}")
    return value
