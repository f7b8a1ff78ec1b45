"""Whoever installs searchapp, with pip or with make, gets the versions that it is tested with."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
BUILT_WITH = {"hatchling", "editables", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers"}
"""What building searchapp takes, which make does without fetching anything."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(requirements: list[str]) -> dict[str, str]:
    """The one version of each requirement, by its name."""
    found = {}
    for text in requirements:
        requirement = Requirement(text)
        (only,) = requirement.specifier
        assert only.operator == "==" and "*" not in only.version, text
        found[canonical(requirement.name)] = only.version
    return found


RUNS = pins(PROJECT["project"]["dependencies"])


def locked(name: str) -> dict[str, str]:
    """The versions in a requirements file, each of which has hashes."""
    entries = (ROOT / name).read_text("utf-8").replace("\\\n", " ").splitlines()
    entries = [entry for entry in entries if not entry.startswith("#")]
    assert all("--hash=sha256:" in entry for entry in entries)
    return pins([entry.partition(" --hash")[0] for entry in entries])


def test_make_installs_what_pip_installs() -> None:
    made = locked("requirements.txt")
    assert {name: version for name, version in made.items() if name not in BUILT_WITH} == RUNS
    assert made.keys() - RUNS.keys() <= BUILT_WITH
    (build,) = pins(PROJECT["build-system"]["requires"]).items()
    assert build in made.items()


def test_the_development_tools_are_pinned_and_change_no_other_version() -> None:
    developed, made = locked("requirements-dev.txt"), locked("requirements.txt")
    extras = PROJECT["project"]["optional-dependencies"]
    assert made.items() <= developed.items()
    assert pins(extras["dev"]).items() <= developed.items()
    assert pins(extras["learn"]).items() <= developed.items()
    assert pins(extras["bench"])


def test_whatever_is_needed_is_pinned() -> None:
    """Also what is needed by what is needed: else pip would take the newest of it."""
    seen: set[str] = set()
    waiting = list(PROJECT["project"]["dependencies"])
    while waiting:
        requirement = Requirement(waiting.pop())
        applies = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)
        )
        name = canonical(requirement.name)
        if not applies or name in seen:
            continue
        seen.add(name)
        assert name in RUNS, f"{name} is needed and has no version in pyproject.toml"
        try:
            found = distribution(name)
        except PackageNotFoundError:
            pytest.fail(f"{name} is not installed")
        assert found.version == RUNS[name]
        assert requirement.specifier.contains(found.version)
        waiting += found.requires or []
    assert len(seen) > len(PROJECT["project"]["dependencies"]) / 2
