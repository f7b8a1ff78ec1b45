"""Variants: a task with a user's own recipes, query templates and mappings, described by a TOML file.

    extends = "nlps"                  # a shipped task, or the TOML file of an own task

    # mapping = "mine.json"           # of the documents; training_mapping is for the training topics
    # recipe = "mine"                 # the recipe of `rank`; search_recipe is for searches

    [recipes.mine]                    # as in query_templates/<task>/recipes.toml
    signals = [
      { signal = "direct", template = "mine-template.json" },
    ]

The rest is the task's own, so that the runs of both are comparable. A variant with its own mappings has its own
indexes. Paths are relative to the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from searchapp import resources
from searchapp.embeddings.reranker_source import read_rerankers
from searchapp.embeddings.source import read_source
from searchapp.errors import DataError, SearchappError
from searchapp.files import digest_json, parse_toml, read_text
from searchapp.formats.problems import Problems
from searchapp.formats.toml_files import TomlFile, TomlTable
from searchapp.resources import RecipeBook
from searchapp.tasks.base import Task
from searchapp.tasks.own.task_file import own_mapping

# The key that distinguishes the file of a variant.
EXTENDS = "extends"


def is_variant(path: Path) -> bool:
    """Return whether a file describes a variant and not a task; False if it can't be read."""
    try:
        return EXTENDS in parse_toml(read_text(path))
    except (OSError, ValueError, SearchappError):
        return False


def load(path: Path, load_task: Callable[[str], Task]) -> Task:
    """Return the variant of a TOML file; `load_task` loads the task that it extends.

    Raises:
        InvalidFiles: the file has problems.
    """
    problems = Problems()
    root = TomlFile(path, problems).root
    problems.raise_if_any()
    extends = root.text(EXTENDS, "", required=True)
    mapping, training_mapping = _json_file(root, "mapping"), _json_file(root, "training_mapping")
    recipe_names = {key: root.text(key) for key in ("recipe", "search_recipe")}
    recipes = {table.name: table.content for table in root.tables("recipes")}
    embeddings = read_source(root, path.parent)
    rerankers = read_rerankers(root, path.parent)
    root.raw("tuned")  # written by `searchapp tune`, see `ranking.tuned`
    root.finish()
    base = None
    reference = str(path.parent / extends) if extends.lower().endswith(".toml") else extends
    if reference.lower().endswith(".toml") and is_variant(Path(reference)):
        root.wrong("unusable task", f"{extends} is itself a variant: name the task that it extends", EXTENDS)
    else:
        try:
            base = load_task(reference)
        except SearchappError as error:
            root.wrong("unusable task", str(error), EXTENDS)
    problems.raise_if_any()
    assert base is not None

    def recipe_book() -> RecipeBook:
        book = base.recipe_book()

        def template(name: str) -> dict[str, Any]:
            if name.endswith(".json") and (path.parent / name).exists():
                return resources.read_json(path.parent / name)
            return book.template(name)

        return RecipeBook(
            book.task,
            path,
            {**book.recipes, **recipes},
            template,
            book.depth,
            path.parent,
            {**book.rerankers, **rerankers},
        )

    known_recipes = recipe_book().recipes
    for key, name in recipe_names.items():
        if name is not None and name not in known_recipes:
            root.wrong(
                "unknown recipe",
                f"unknown recipe {name!r}: the recipes are {', '.join(sorted(known_recipes))}",
                key,
            )
    problems.raise_if_any()
    info = replace(
        base.info,
        variant=path,
        default_recipe=recipe_names["recipe"] or base.info.default_recipe,
        search_recipe=recipe_names["search_recipe"] or base.info.search_recipe,
        mapping=mapping or base.info.mapping,
        training_mapping=training_mapping or base.info.training_mapping,
        embeddings=embeddings or base.info.embeddings,
        rerankers={**base.info.rerankers, **rerankers},
    )
    variant = replace(base, info=info, recipe_book=recipe_book)
    if mapping is None and training_mapping is None:
        return variant

    def read_mapping(name: str | None, of_task: dict[str, Any]) -> dict[str, Any]:
        """Return a mapping of the variant, which stores the fields of the task's; or the task's own."""
        if name is None:
            return of_task
        fields = of_task["mappings"]["properties"]
        file = path.parent / name
        return own_mapping(resources.read_json(file), fields, file, name)

    @cache
    def documents() -> dict[str, Any]:
        return read_mapping(mapping, base.index_mapping())

    @cache
    def examples() -> dict[str, Any] | None:
        of_task = base.examples_index_mapping()
        if of_task is None:
            if training_mapping is not None:
                detail = f"{base.name} has no index of training topics: remove training_mapping"
                raise DataError(f"{path}: {detail}")
            return None
        # If documents and training topics share a mapping, they also share the variant's mapping.
        shared = mapping if of_task == base.index_mapping() else None
        return read_mapping(training_mapping or shared, of_task)

    return with_mappings(base, variant, documents, examples)


def _json_file(root: TomlTable, key: str) -> str | None:
    name = root.text(key)
    if name is not None and not name.endswith(".json"):
        root.wrong("wrong value", f"{key} must be the name of a .json file", key)
    return name


def with_mappings(
    base: Task,
    varied: Task,
    documents: Callable[[], dict[str, Any]],
    examples: Callable[[], dict[str, Any] | None],
) -> Task:
    """Return a variant with other mappings, whose digest is part of the index names."""
    suffix = "m" + digest_json({"documents": documents(), "examples": examples()})[:8]
    names = {name: f"{name}-{suffix}" for name in base.info.index_names}
    return replace(
        varied,
        info=replace(varied.info, indexes=tuple(names.values())),
        collection=lambda folder: base.collection(folder).with_indexes(names),
        index_mapping=documents,
        examples_index_mapping=examples,
    )
