"""Variants: a task with recipes, query templates and mappings of a user's own, described by a TOML file.

    extends = "nlps"                  # a task that ships with searchapp, or the TOML file of one's own

    # mapping = "mine.json"           # of the documents; examples_mapping is that of the solved topics
    # recipe = "mine"                 # what `rank` ranks with, search_recipe what is searched with

    [recipes.mine]                    # as in query_templates/<task>/recipes.toml
    signals = [
      { signal = "direct", template = "mine-template.json" },
    ]

Everything else, from the files and their folder to gold, figures and judgments, is that of the task itself, whose runs
a variant's runs are compared with. Recipes stand beside those of the task, or in place of one of the same name. With
mappings of its own a variant has indexes of its own, whose names follow from the mappings. Paths are relative to the
file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from searchapp import resources
from searchapp.errors import DataError, SearchappError
from searchapp.files import digest_json, parse_toml, read_text
from searchapp.formats.problems import Problems
from searchapp.formats.toml_files import TomlFile, TomlTable
from searchapp.resources import RecipeBook
from searchapp.tasks.base import Task
from searchapp.tasks.own.task_file import own_mapping

EXTENDS = "extends"
"""The key by which a file is known as that of a variant."""


@dataclass(frozen=True, slots=True)
class _Described:
    """What the file says."""

    path: Path
    extends: str
    mapping: str | None
    examples_mapping: str | None
    recipe: str | None
    search_recipe: str | None
    recipes: Mapping[str, Mapping[str, Any]]


def is_variant(path: Path) -> bool:
    """Whether a file describes a variant, and not a task; False where it can't be read."""
    try:
        return EXTENDS in parse_toml(read_text(path))
    except (OSError, ValueError, SearchappError):
        return False


def load(path: Path, load_task: Callable[[str], Task]) -> Task:
    """The variant that a TOML file describes; `load_task` gives the task that it extends.

    Raises:
        InvalidFiles: the file has problems.
    """
    problems = Problems()
    root = TomlFile(path, problems).root
    problems.raise_if_any()
    described = _read(path, root)
    base = None
    reference = _reference(described)
    if reference.lower().endswith(".toml") and is_variant(Path(reference)):
        root.wrong(
            "unusable task",
            f"{described.extends} is a variant itself: name the task that it extends",
            EXTENDS,
        )
    else:
        try:
            base = load_task(reference)
        except SearchappError as error:
            root.wrong("unusable task", str(error), EXTENDS)
    problems.raise_if_any()
    assert base is not None
    book = _book(base, described)
    for key, name in (("recipe", described.recipe), ("search_recipe", described.search_recipe)):
        if name is not None and name not in book.recipes:
            root.wrong(
                "unknown recipe", f"there is no recipe {name!r}: {', '.join(sorted(book.recipes))}", key
            )
    problems.raise_if_any()
    info = replace(
        base.info,
        variant=path,
        default_recipe=described.recipe or base.info.default_recipe,
        search_recipe=described.search_recipe or base.info.search_recipe,
        mapping=described.mapping or base.info.mapping,
        examples_mapping=described.examples_mapping or base.info.examples_mapping,
    )
    varied = replace(base, info=info, recipe_book=lambda: _book(base, described))
    if described.mapping is None and described.examples_mapping is None:
        return varied

    @cache
    def documents() -> dict[str, Any]:
        return _mapping(described, described.mapping, base.index_mapping())

    @cache
    def examples() -> dict[str, Any] | None:
        own = base.examples_index_mapping()
        if own is None:
            if described.examples_mapping is not None:
                detail = f"{base.name} has no index of solved topics: leave out examples_mapping"
                raise DataError(f"{described.path}: {detail}")
            return None
        # Where documents and solved topics have one mapping, they keep having one.
        name = described.examples_mapping or (described.mapping if own == base.index_mapping() else None)
        return _mapping(described, name, own)

    return with_mappings(base, varied, documents, examples)


def _read(path: Path, root: TomlTable) -> _Described:
    described = _Described(
        path,
        root.text(EXTENDS, required=True) or "",
        _json(root, "mapping"),
        _json(root, "examples_mapping"),
        root.text("recipe"),
        root.text("search_recipe"),
        {table.name: table.held for table in root.tables("recipes")},
    )
    root.raw("tuned")  # what `searchapp tune` says of how it found the recipes, see `ranking.tuned`
    root.finish()
    return described


def _json(root: TomlTable, key: str) -> str | None:
    name = root.text(key)
    if name is not None and not name.endswith(".json"):
        root.wrong("wrong value", f"{key} must be the name of a .json file", key)
    return name


def _reference(described: _Described) -> str:
    """What names the task: a path is relative to the file."""
    name = described.extends
    return str(described.path.parent / name) if name.lower().endswith(".toml") else name


def _book(base: Task, described: _Described) -> RecipeBook:
    """The recipes of the task and, before them, those of the file."""
    book = base.recipe_book()

    def template(name: str) -> dict[str, Any]:
        if name.endswith(".json") and (described.path.parent / name).exists():
            return resources.read_json(described.path.parent / name)
        return book.template(name)

    return RecipeBook(book.task, described.path, {**book.recipes, **described.recipes}, template, book.depth)


def with_mappings(
    base: Task,
    varied: Task,
    documents: Callable[[], dict[str, Any]],
    examples: Callable[[], dict[str, Any] | None],
) -> Task:
    """Return a variant of a task with other mappings, whose indexes have names with the digest of these."""
    suffix = "m" + digest_json({"documents": documents(), "examples": examples()})[:8]
    names = {name: f"{name}-{suffix}" for name in base.info.index_names}
    return replace(
        varied,
        info=replace(varied.info, indexes=tuple(names.values())),
        collection=lambda folder: base.collection(folder).with_indexes(names),
        index_mapping=documents,
        examples_index_mapping=examples,
    )


def _mapping(described: _Described, name: str | None, base: dict[str, Any]) -> dict[str, Any]:
    """A mapping of the file's own, or that of the task; fields of the task that it does not name are kept."""
    if name is None:
        return base
    read = resources.read_json(described.path.parent / name)
    return own_mapping(read, base["mappings"]["properties"], described.path, name)
