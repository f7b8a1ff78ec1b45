"""Names of classes and modules are unique in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "searchapp").rglob("*.py"))

SHARED_CLASSES = {"Index", "Retriever", "Run", "Task"}
"""Classes of the public API, which carry the names of what they wrap or of their kind in PyTerrier, and others."""

ROLES = {
    "__init__",  # a package
    "base",  # the interface that the other modules of a folder implement
    "errors",  # of the search library, which can be used without searchapp, and of searchapp
    "options",  # settings of a piece of an analyzer, and options of commands
    "panes",  # of one screen
    "prompts",  # the line-by-line alternative to a screen, and their common part
    "records",  # the data classes of the search library, and the records of a user's file
    "scorer",  # of one shared task
    "screen",  # of one folder of screens
    "task",  # of one folder of tasks
    "versions",  # of an index, in each engine
}
"""Names of modules that state the role of a module in its folder."""

LAYERS = {
    "calibration": {"app", "cli", "judging"},  # the command, drawing documents, and measuring
    "evaluate": {"app", "cli"},  # a use case and its command
    "explanation": {"app/inspection", "tui/kit"},  # finding and showing it
    "judging": {"cli", "tui/kit", "tui/search"},  # starting it, and doing it on screens
    "judgments": {"cli", "engines/elasticsearch", "judging"},  # reporting, sharing and reading them
    "overview": {"app", "tui/home"},  # collecting and showing it
    "pages": {"app/inspection", "report"},  # of a ranking on a screen, and of a report
    "runs": {"app", "cli"},  # a use case and its command
    "search": {"app", "cli"},  # a use case and its command
    "trust": {"app", "cli", "judging"},  # the command, texts and systems, and measuring
    "vectors": {"lucene", "ranking/signals"},  # scoring them, and the signal of a recipe
}
"""Names that modules of several layers share because they serve the same subject, with their folders."""


def test_a_class_name_is_used_once_in_the_package() -> None:
    modules = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(path.relative_to(ROOT).as_posix())
    repeated = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert repeated.keys() == SHARED_CLASSES, repeated


def test_a_module_name_is_used_once_except_for_roles_and_subjects_of_several_layers() -> None:
    folders = defaultdict(set)
    for path in MODULES:
        folders[path.stem].add(path.parent.relative_to(ROOT / "searchapp").as_posix())
    repeated = {name: parents for name, parents in folders.items() if len(parents) > 1 and name not in ROLES}
    assert repeated == LAYERS


def test_the_glossary_explains_the_class_name_that_is_used_twice() -> None:
    glossary = (ROOT / "docs" / "start" / "glossary.md").read_text(encoding="utf-8")
    (row,) = (line for line in glossary.splitlines() if line.startswith("| index |"))
    assert "`searchapp.engines.base.Index`" in row and "`searchapp.lucene.Index`" in row
