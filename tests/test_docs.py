"""What the documents say is what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import searchapp
from scripts.cli_reference import TARGET, reference
from searchapp import resources
from searchapp.tasks import names

ROOT = Path(__file__).parents[1]


def test_the_reference_is_what_the_command_line_says() -> None:
    assert TARGET.read_text(encoding="utf-8") == reference(), "run python scripts/cli_reference.py"


def test_every_option_has_a_help_text() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert rows and all(re.fullmatch(r"\| `.+` \| .+ \| .*\|", row) for row in rows)


def test_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in re.findall(r"## `searchapp ([^`]+)`", reference()):
        assert f"`{command}" in readme, f"README does not say what {command} does"


def test_readme_names_every_variable_that_is_read() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for variable in ("URL", "API_KEY", "USERNAME", "PASSWORD", "CA_CERTS", "HOME", "ENGINE", "INDEX_PREFIX"):
        assert f"`SEARCHAPP_{variable}`" in readme


def test_the_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_changelog_has_the_version_or_what_is_unreleased() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## Unreleased" in changelog or f"## {searchapp.__version__}" in changelog


@pytest.mark.parametrize(
    "path", sorted(resources.folder("index_mappings").glob("*.json")), ids=lambda path: path.stem
)
def test_a_mapping_is_strict_and_says_what_it_is_for(path: Path) -> None:
    mapping = resources.index_mapping(path.stem)
    assert mapping["mappings"]["dynamic"] == "strict"
    meta = mapping["mappings"]["_meta"]
    assert meta["for"] and meta["version"]
    described = " ".join(meta["analyzers"])
    for analyzer in mapping["settings"]["analysis"]["analyzer"]:
        assert analyzer in described, f"{path.name} does not say what the analyzer {analyzer} is for"


def test_there_is_a_folder_of_templates_for_every_task() -> None:
    assert {path.name for path in resources.folder("query_templates").iterdir()} >= set(names())
