"""Find index mappings, query templates and recipes: in the package, or in a checkout at its root, where they
can be edited without a build."""

from __future__ import annotations

import json
import platform
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, UsageError
from searchapp.files import parse_json, parse_toml, read_text, unreadable
from searchapp.lucene.dataclass import dataclass

_PACKAGE = Path(__file__).parent

# Sample collections by task.
SAMPLES = _PACKAGE / "samples"

# The prompts of models that judge, as text files.
JUDGE_PROMPTS = _PACKAGE / "judging" / "prompts"


@dataclass(frozen=True, slots=True)
class UntestedVersion:
    """An installed version outside the tested range `lowest` to `highest`."""

    package: str
    version: str
    lowest: str
    highest: str


@cache
def untested_versions() -> tuple[UntestedVersion, ...]:
    """Return Python and installed packages outside the ranges of `tested_versions.json`.

    `scripts/tested_versions.py` writes that file.
    """
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    untested = []
    for package, (lowest, highest) in read_json(_PACKAGE / "tested_versions.json").items():
        if package == "python":
            installed = ".".join(platform.python_version_tuple()[:2])
        else:
            try:
                installed = version(package)
            except PackageNotFoundError:
                continue
        if not _release(lowest) <= _release(installed) <= _release(highest):
            untested.append(UntestedVersion(package, installed, lowest, highest))
    return tuple(untested)


def install_command(extra: str) -> str:
    """Return the command that installs an extra of searchapp into the running environment."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        required = [requirement.partition(";") for requirement in requires("searchapp") or ()]
    except PackageNotFoundError:
        required = []
    marker = re.compile(rf"extra == ['\"]{extra}['\"]")
    packages = [package.strip() for package, _, condition in required if marker.search(condition)]
    return shlex.join([sys.executable, "-m", "pip", "install", *(packages or [f".[{extra}]"])])


def _release(text: str) -> tuple[int, ...]:
    """Return the release number at the beginning of a version: (2, 4) of "2.4.0rc1"."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@cache
def folder(name: str) -> Path:
    """Return the folder `index_mappings` or `query_templates`."""
    for parent in (_PACKAGE, _PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise UsageError(f"this installation of searchapp has no folder {name}: install it again")


def index_mapping(name: str) -> dict[str, Any]:
    """Return the create-index body `index_mappings/<name>.json` without its description."""
    return without_description(read_json(folder("index_mappings") / f"{name}.json"))


def without_description(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping without `mappings._meta`, so that its digest depends only on what it does."""
    match mapping:
        case {"mappings": {"_meta": dict(), **mappings}}:
            return {**mapping, "mappings": mappings}
    return mapping


# The folder of templates and recipes that read only the text of topics.
GENERAL = "text"

# Its recipes that need training topics.
GENERAL_LEARNING = ("neighbours",)


def query_template(task: str, name: str) -> dict[str, Any]:
    """Return the search body `query_templates/<task>/<name>.json` with placeholders."""
    return read_json(folder("query_templates") / task / f"{name}.json")


@dataclass(frozen=True, slots=True)
class RecipeBook:
    """The recipes of a task and their search bodies.

    Args:
        task: the task's name
        file: the file of the recipes
        recipes: TOML tables by recipe
        template: returns a search body by name
        depth: the default window of signals
        folder: of relative paths in recipes
        rerankers: the rerankers that signals name, as `embeddings.reranker_source.RerankerSource`
    """

    task: str
    file: Path
    recipes: Mapping[str, Mapping[str, Any]]
    template: Callable[[str], dict[str, Any]]
    depth: int = 100
    folder: Path = Path()
    rerankers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return sorted(self.recipes)


def recipe_book(task: str) -> RecipeBook:
    """Return the recipes in `query_templates/<task>`."""
    file = folder("query_templates") / task / "recipes.toml"
    return RecipeBook(task, file, recipes(task), lambda name: query_template(task, name))


def recipes(task: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the TOML tables of `query_templates/<task>/recipes.toml` by recipe."""
    path = folder("query_templates") / task / "recipes.toml"
    try:
        return parse_toml(read_text(path))
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not TOML: {error}") from error


def read_utf8(path: Path) -> str:
    """Read a text file.

    Raises:
        DataError: the file is missing, unreadable, or not UTF-8.
    """
    try:
        return read_text(path)
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}") from error


def read_json(path: Path, *, file_names: bool = False) -> dict[str, Any]:
    """Read a JSON object from a file; `file_names` as in `parse_json`.

    Raises:
        DataError: the file is missing, unreadable, or not a JSON object in UTF-8.
    """
    try:
        value = parse_json(read_utf8(path), file_names=file_names)
    except json.JSONDecodeError as error:
        message = f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise DataError(message) from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: a JSON object was expected, not {type(value).__name__}")
    return value
