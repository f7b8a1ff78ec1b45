"""The ranges in pyproject.toml, the requirements files and the installed packages agree."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from scripts import tested_versions
from searchapp import resources

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
BUILT_WITH = {"hatchling", "editables"}
"""Packages that building searchapp needs; make builds without fetching packages."""

LARGE = {"fastembed", "sentence_transformers"}
"""Packages of extras of their own, which no requirements file has."""

INSTALLED = {"": "requirements-dev.txt", "lowest": "requirements-lowest.txt"}
"""Requirements files of environments, by SEARCHAPP_TEST_VERSIONS."""

FILES = ("requirements.txt", "requirements-dev.txt", "requirements-lowest.txt")


def requirements(*extras: str) -> list[Requirement]:
    """Return the requirements of searchapp in pyproject.toml, or those of extras."""
    lists = [EXTRAS[extra] for extra in extras] if extras else [PROJECT["project"]["dependencies"]]
    return [Requirement(text) for texts in lists for text in texts]


def imported_packages() -> set[str]:
    """Return the distributions of the packages that searchapp imports."""
    names = set()
    for file in (ROOT / "searchapp").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.partition(".")[0])
    providers = importlib.metadata.packages_distributions()
    others = {name for name in names if name not in sys.stdlib_module_names} - {"searchapp", *LARGE}
    return {canonicalize_name(provider) for name in others for provider in providers[name]}


def test_the_imported_packages_are_the_direct_requirements() -> None:
    direct = [*requirements(), *requirements("irds", "learn", "mcp", "model2vec", "parquet", "pyterrier")]
    required = {canonicalize_name(requirement.name) for requirement in direct}
    assert imported_packages() == required


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_a_requirement_has_a_lower_bound_and_no_upper_bound_except_a_major_version(extra: str) -> None:
    for requirement in requirements(*([extra] if extra else [])):
        if requirement.name == "searchapp":
            assert requirement.extras <= EXTRAS.keys()
            continue
        operators = {part.operator: part.version for part in requirement.specifier}
        assert operators.keys() in ({">="}, {">=", "<"}), requirement
        assert operators.get("<", "0").isdigit(), requirement


@pytest.mark.parametrize("file", FILES)
def test_a_requirements_file_has_one_hashed_version_in_each_range(file: str) -> None:
    entries = (ROOT / file).read_text("utf-8").replace("\\\n", " ").splitlines()
    assert all("--hash=sha256:" in entry for entry in entries if not entry.startswith("#"))
    pins = tested_versions.pins(file)
    extras = {
        "requirements.txt": [],
        "requirements-dev.txt": [*EXTRAS.keys() - {"bench", *map(canonicalize_name, LARGE)}],
    }
    installed = extras.get(file, [*tested_versions.EXTRAS, "test"])
    for requirement in [*requirements(), *(requirements(*installed) if installed else [])]:
        if requirement.name != "searchapp":
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement
    assert pins.keys() >= BUILT_WITH
    (build,) = map(Requirement, PROJECT["build-system"]["requires"])
    assert build.specifier.contains(pins[build.name])


def test_development_tools_do_not_change_other_versions() -> None:
    users, developers = map(tested_versions.pins, ("requirements.txt", "requirements-dev.txt"))
    assert users.items() <= developers.items()


def test_lower_bounds_are_the_versions_of_requirements_lowest() -> None:
    pins = tested_versions.pins("requirements-lowest.txt")
    for requirement in map(Requirement, tested_versions.dependencies()):
        (lowest,) = (part.version for part in requirement.specifier if part.operator == ">=")
        assert Version(pins[canonicalize_name(requirement.name)]) == Version(lowest), requirement


def test_the_page_on_installing_lists_the_lower_bounds() -> None:
    page = (ROOT / "docs" / "start" / "install.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| (\d[\d.]*) \|", page, re.MULTILINE)
    lowest = {
        canonicalize_name(name): ends[0] for name, ends in json.loads(tested_versions.as_text()).items()
    }
    assert len(rows) == 8
    assert all(Version(lowest[canonicalize_name(name)]) == Version(bound) for name, bound in rows)


def test_the_environment_of_the_tests_equals_its_requirements_file() -> None:
    pins = tested_versions.pins(INSTALLED[os.environ.get("SEARCHAPP_TEST_VERSIONS", "")])
    for requirement in map(Requirement, tested_versions.dependencies()):
        assert importlib.metadata.version(requirement.name) == pins[canonicalize_name(requirement.name)]


def test_the_tested_versions_are_those_of_the_requirements_files() -> None:
    written = tested_versions.FILE.read_text("utf-8")
    assert written == tested_versions.as_text(), "run python scripts/tested_versions.py"
    assert json.loads(written)["python"][0] == re.sub(r"^>=", "", PROJECT["project"]["requires-python"])


def test_the_environment_of_the_tests_is_in_the_tested_range() -> None:
    assert resources.untested_versions() == ()


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.25.2", ["numpy"]),
        ("1.26.0rc1", []),  # suffixes are ignored, so that a comparison needs no package
        ("1.26", []),
        ("2.4.6", []),
        ("2.4.6.post1", []),
        ("2.4.7", ["numpy"]),
        ("2.10.0", ["numpy"]),
        ("unknown", ["numpy"]),
    ],
)
def test_untested_versions_are_reported(
    monkeypatch: pytest.MonkeyPatch, version: str, expected: list[str]
) -> None:
    def installed(package: str) -> str:
        if package == "numpy":
            return version
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", installed)
    result = resources.untested_versions.__wrapped__()
    assert [untested.package for untested in result] == expected
    for untested in result:
        assert (untested.version, untested.lowest, untested.highest) == (version, "1.26.0", "2.4.6")
