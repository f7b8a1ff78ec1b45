"""What the documents say is what the program does."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import searchapp
from scripts import architecture, settings_reference
from scripts.cli_reference import TARGET, reference
from searchapp import resources
from searchapp.cli import RENAMED_OPTIONS
from searchapp.cli.commands import HEADINGS
from searchapp.config.resolution import PROJECT_FILE, USER_FILE, read_project_file, read_user_file, resolve
from searchapp.lucene.analysis import registry
from searchapp.lucene.queries.dsl import KINDS as QUERIES
from searchapp.ranking import fusion
from searchapp.ranking.signals import KINDS, signal_class
from searchapp.ranking.templates import WEIGHT, WINDOW, meanings
from searchapp.tasks import names
from searchapp.text import RENAMED_KEYS

ROOT = Path(__file__).parents[1]


def test_the_reference_is_what_the_command_line_says() -> None:
    assert TARGET.read_text(encoding="utf-8") == reference(), "run python scripts/cli_reference.py"


def test_the_table_of_settings_is_that_of_the_program() -> None:
    text = settings_reference.TARGET.read_text(encoding="utf-8")
    assert settings_reference.written(text) == text, "run python scripts/settings_reference.py"


def test_the_files_that_the_page_on_settings_shows_can_be_read(tmp_path: Path) -> None:
    text = settings_reference.TARGET.read_text(encoding="utf-8")
    blocks = [
        block.replace("    ", "") for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    ]
    own, project = (block for block in blocks if re.search(r"^\w+ = ", block, re.MULTILINE))
    (tmp_path / USER_FILE).write_text(own)
    (tmp_path / PROJECT_FILE).write_text(project)
    read = read_user_file(tmp_path / USER_FILE)
    assert read is not None and {"annotator", "trusted", "judge.theme"} < read.values.keys()
    assert {"url", "shared"} < read_project_file(tmp_path / PROJECT_FILE).values.keys()


def test_the_picture_of_the_layers_is_that_of_the_import_contract() -> None:
    text = architecture.TARGET.read_text(encoding="utf-8")
    assert architecture.drawn(text) == text, "run python scripts/architecture.py"


PACKAGE = ROOT / "searchapp"


@pytest.mark.parametrize("page", ["architecture.md", "extending.md"])
def test_every_path_that_the_architecture_names_exists(page: str) -> None:
    text = (ROOT / "docs" / "inside" / page).read_text(encoding="utf-8")
    for name in re.findall(r"`([\w/]+(?:/|\.(?:py|c|toml|md)))`", text):
        result = (ROOT / name).exists() or (PACKAGE / name).exists()
        if "/" not in name.rstrip("/"):  # a file or folder of one that was named before
            result = result or any(PACKAGE.rglob(name.rstrip("/")))
        assert result, f"docs/inside/{page} names {name}, which is not there"


@pytest.mark.parametrize("where", ["docs/**/*.md", "README.md", "CONTRIBUTING.md"])
def test_every_module_that_a_document_names_exists(where: str) -> None:
    for document in ROOT.glob(where):
        text = document.read_text(encoding="utf-8")
        for name in re.findall(r"\bsearchapp/[\w/]+\.(?:py|c)\b", text):
            assert (ROOT / name).exists(), f"{document.name} names {name}, which is not there"
        for module, names_ in re.findall(r"^ +from (searchapp[\w.]*) import (.+)$", text, re.MULTILINE):
            for name in names_.split(", "):
                assert hasattr(import_module(module), name), f"{document.name} imports {name} from {module}"


def rows_of_support() -> dict[str, set[str]]:
    """The names in the table of what the embedded engine supports, by its first column."""
    text = (ROOT / "docs" / "reference" / "engines.md").read_text(encoding="utf-8")
    table = (
        text.partition("## What the embedded engine supports")[2]
        .partition("|---|---|\n")[2]
        .partition("\n\n")[0]
    )
    cells = (re.split(r"(?<!\\)\|", line) for line in table.splitlines())
    # What stands in brackets behind a name says what of it is supported.
    return {cell[1].strip(): set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", cell[2]))) for cell in cells}


@pytest.mark.parametrize(
    ("row", "there"),
    [
        ("queries", QUERIES),
        ("char filters", registry.CHAR_FILTERS),
        ("tokenizers", registry.TOKENIZERS),
        ("token filters", [*registry.TOKEN_FILTERS, registry.SYNONYMS]),
    ],
)
def test_the_page_on_engines_names_all_that_the_embedded_one_supports(row: str, there: Iterable[str]) -> None:
    assert rows_of_support()[row] == set(there), (
        f"correct the row {row!r} of the table in docs/reference/engines.md"
    )


def test_every_option_has_a_help_text() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert rows
    silent = [row for row in rows if not re.fullmatch(r"\| `.+` \| .+ \| .*\|", row)]
    assert not silent, "give these options a help text"


def rows(page: str, heading: str) -> list[str]:
    """The first cells of a page's table."""
    table = page.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [re.split(r"(?<!\\)\|", line)[1] for line in table.splitlines()[2:]]


COMMANDS = ROOT / "docs" / "reference" / "commands.md"


def test_the_page_on_commands_lists_every_command_and_no_other() -> None:
    there = set(re.findall(r"## `searchapp ([^`]+)`", reference()))
    page, listed = COMMANDS.read_text(encoding="utf-8"), set()
    for heading, commands in HEADINGS.items():
        under_heading = rows(page.partition(f"### {heading}\n")[2], "command")
        for words in re.findall(r"`([^`]+)`", "".join(under_heading)):
            match = re.match(r"[a-z-]+(?: [a-z]+)?(?= |$)", words)
            assert match, f"{COMMANDS.name} lists {words}, which is no command"
            assert match[0].split()[0] in commands, f"the help has {match[0]} under another heading"
            listed.add(match[0])
    assert listed == there, (
        "the tables of docs/reference/commands.md have a row of each command and of no other"
    )


class Asked(dict[str, str]):
    """An empty environment that records which variables are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return default


def test_the_page_on_commands_lists_every_variable_that_is_read_and_no_other() -> None:
    environ = Asked()
    resolve({}, environ)
    assert len(environ.names) > 8
    listed = re.findall(r"`([A-Z_]+)`", "".join(rows(COMMANDS.read_text(encoding="utf-8"), "variable")))
    assert sorted(listed) == sorted(environ.names), (
        "the table of variables in docs/reference/commands.md has each of these and no other"
    )


@pytest.mark.parametrize("where", ["searchapp/**/*.py", "docs/**/*.md", "README.md", ".env.example"])
def test_no_sentence_names_a_variable_that_is_not_read(where: str) -> None:
    environ = Asked()
    resolve({}, environ)
    for path in set(ROOT.glob(where)) - {ROOT / "docs/inside/contributing.md"}:  # it names those of the tests
        named = re.findall(r"(?<!_)SEARCHAPP_(?!TEST_)[A-Z_]*[A-Z]", path.read_text(encoding="utf-8"))
        assert set(named) <= environ.names, path


def test_the_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_changelog_has_a_date_for_every_version_the_newest_first() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, *older = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    released = [newest, *older] if newest != "Unreleased" else older
    versions = []
    for heading in released:
        match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d{2}-\d{2})", heading)
        assert match, f"`## {heading}` is no version with its date"
        date.fromisoformat(match[4])
        versions.append(tuple(int(part) for part in match.groups()[:3]))
    assert versions == sorted(set(versions), reverse=True)
    running = tuple(int(part) for part in searchapp.__version__.split("."))
    if newest == "Unreleased":
        assert not versions or running >= versions[0]
    else:
        assert running == versions[0], "the changelog and the program name different versions"


def test_the_citation_names_the_running_version_and_the_authors_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == searchapp.__version__
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in project["authors"]
    ]
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]


def test_the_page_on_own_tasks_has_every_signal_with_its_keys_and_every_fusion() -> None:
    text = (ROOT / "docs" / "use" / "own-task.md").read_text(encoding="utf-8")
    for name in KINDS:
        row = re.search(rf"^\| `{name}` \|.*\|$", text, re.MULTILINE)
        assert row, f"docs/use/own-task.md lacks a row of the signal `{name}`"
        for key in meanings(signal_class(name)).keys() - {WEIGHT, WINDOW}:
            assert f"`{key}`" in row[0], f"docs/use/own-task.md does not name `{key}` in the row of `{name}`"
    for name in fusion.KINDS:
        assert f'method = "{name}"' in text, f'docs/use/own-task.md lacks the fusion "{name}"'


def test_every_renamed_option_and_key_is_on_the_page_on_upgrading() -> None:
    page = (ROOT / "docs" / "reference" / "upgrading.md").read_text(encoding="utf-8")
    renamed = [
        *RENAMED_OPTIONS.items(),
        *((old, new) for old, names in RENAMED_KEYS.items() for new in names),
    ]
    for name in (name for pair in renamed for name in pair):
        assert re.search(rf"`{re.escape(name)}\b", page), f"docs/reference/upgrading.md lacks {name}"
    for name in RENAMED_OPTIONS.values():
        assert f"| `{name}` |" in reference(), f"there is no option {name}"


def test_the_page_on_reports_has_every_section() -> None:
    page = (ROOT / "docs" / "use" / "report.md").read_text(encoding="utf-8")
    source = (ROOT / "searchapp" / "report" / "pages.py").read_text(encoding="utf-8")
    sections = source.partition("    sections = {\n")[2].partition("    }\n")[0]
    headings = re.findall(r'"\w+": "(.+?)"', sections)
    assert headings == [one.strip() for one in rows(page, "section")], (
        "docs/use/report.md has a row of each, in order"
    )


@pytest.mark.parametrize(
    "path", sorted(resources.folder("index_mappings").glob("*.json")), ids=lambda path: path.stem
)
def test_a_mapping_is_strict_and_describes_its_analyzers(path: Path) -> None:
    mapping = json.loads(path.read_text(encoding="utf-8"))
    assert mapping["mappings"]["dynamic"] == "strict"
    meta = mapping["mappings"]["_meta"]
    assert meta["for"] and meta["version"]
    described = " ".join(meta["analyzers"])
    for analyzer in mapping["settings"]["analysis"]["analyzer"]:
        assert analyzer in described, f"{path.name} does not say what the analyzer {analyzer} is for"


def test_there_is_a_folder_of_templates_for_every_task() -> None:
    there = {path.name for path in resources.folder("query_templates").iterdir()}
    missing = ", ".join(sorted(set(names()) - there))
    assert not missing, f"query_templates/ has no folder with the recipes.toml of {missing}"
