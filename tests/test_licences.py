"""Dependencies have licences that searchapp accepts, and NOTICE is complete."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

from scripts import licences, tested_versions

ROOT = Path(__file__).parents[1]
NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")


def package(folder: Path, *lines: str, name: str = "some") -> Distribution:
    """Make a package whose metadata has these lines."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    text = "\n".join(("Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, ""))
    (info / "METADATA").write_text(text, encoding="utf-8")
    return PathDistribution(info)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["License-Expression: Apache-2.0 AND MIT"], "Apache-2.0 AND MIT"),
        (["Classifier: License :: OSI Approved :: MIT License", "License: see the file"], "MIT"),
        (["Classifier: License :: DFSG approved", "License: BSD-3-Clause"], "BSD-3-Clause"),
        (["License: BSD"], "BSD-3-Clause"),
        (["License: Copyright (c) 2001", "        All rights reserved."], ""),
        ([], ""),
    ],
)
def test_a_licence_comes_from_the_most_precise_metadata(
    tmp_path: Path, lines: list[str], expected: str
) -> None:
    assert licences.licence(package(tmp_path, *lines)) == expected


def test_a_licence_that_is_not_allowed_is_a_problem(tmp_path: Path) -> None:
    sentence = licences.problem(package(tmp_path, "License-Expression: MIT OR GPL-2.0-only"))
    assert sentence == (
        "some 1.0 has the licence GPL-2.0-only, which is not allowed: use another package, or add the licence to "
        "ALLOWED or EXCEPTIONS of scripts/licences.py"
    )


def test_an_exception_allows_a_licence_for_one_package(tmp_path: Path) -> None:
    line = "License-Expression: LGPL-3.0-or-later"
    assert licences.problem(package(tmp_path, line, name="pygal")) is None
    assert licences.problem(package(tmp_path, line, name="other")) is not None


def test_a_package_without_a_licence_is_a_problem(tmp_path: Path) -> None:
    assert licences.problem(package(tmp_path)) == (
        "some 1.0 has no licence in its metadata: read its licence, and name it in SPDX of scripts/licences.py"
    )


def test_the_check_of_installed_packages_and_notice_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert licences.main([]) == 0, capsys.readouterr().err


def test_users_install_no_package_under_the_gpl() -> None:
    users = tested_versions.pins("requirements.txt")
    for name, others in licences.EXCEPTIONS.items():
        assert name not in users or not any(licence.startswith("GPL") for licence in others)


def test_notice_lists_all_tables_and_only_existing_files() -> None:
    named = set(re.findall(r"searchapp/[\w/.]+\.\w+", NOTICE))
    assert all((ROOT / path).is_file() for path in named)
    tables = (ROOT / "searchapp" / "lucene" / "analysis" / "data").iterdir()
    assert {path.relative_to(ROOT).as_posix() for path in tables} <= named


def test_notice_lists_all_packages_that_users_install() -> None:
    listed = set(re.findall(r"^  ([\w.-]+): ", NOTICE.partition(licences.HEADING)[2], re.MULTILINE))
    assert len(listed) == len(tested_versions.dependencies())
