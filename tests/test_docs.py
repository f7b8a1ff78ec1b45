"""The documentation agrees with the program."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import searchapp
from scripts import architecture, engine_features, settings_reference, tools_reference
from scripts.cli_reference import TARGET, reference
from searchapp import resources
from searchapp.cli import RENAMED_OPTIONS
from searchapp.cli.commands import HEADINGS
from searchapp.config.resolution import PROJECT_FILE, USER_FILE, read_project_file, read_user_file, resolve
from searchapp.ranking import fusion
from searchapp.ranking.signals import KINDS, signal_class
from searchapp.ranking.templates import WEIGHT, WINDOW, meanings
from searchapp.tasks import names
from searchapp.text import RENAMED_KEYS

ROOT = Path(__file__).parents[1]


def test_the_reference_of_commands_is_up_to_date() -> None:
    assert TARGET.read_text(encoding="utf-8") == reference(), "run python scripts/cli_reference.py"


def test_the_reference_of_tools_is_up_to_date() -> None:
    text = tools_reference.TARGET.read_text(encoding="utf-8")
    assert text == tools_reference.reference(), "run python scripts/tools_reference.py"


def test_the_table_of_settings_is_up_to_date() -> None:
    text = settings_reference.TARGET.read_text(encoding="utf-8")
    assert settings_reference.updated(text) == text, "run python scripts/settings_reference.py"


def test_the_example_files_of_the_page_on_settings_are_valid(tmp_path: Path) -> None:
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


def test_the_diagram_of_the_layers_shows_the_import_contract() -> None:
    text = architecture.TARGET.read_text(encoding="utf-8")
    assert architecture.updated(text) == text, "run python scripts/architecture.py"


PACKAGE = ROOT / "searchapp"


@pytest.mark.parametrize("page", ["architecture.md", "extending.md"])
def test_all_paths_on_pages_about_the_architecture_exist(page: str) -> None:
    text = (ROOT / "docs" / "inside" / page).read_text(encoding="utf-8")
    for name in re.findall(r"`([\w/]+(?:/|\.(?:py|c|toml|md)))`", text):
        exists = (ROOT / name).exists() or (PACKAGE / name).exists()
        if "/" not in name.rstrip("/"):  # relative to a folder in the text before
            exists = exists or any(PACKAGE.rglob(name.rstrip("/")))
        assert exists, f"docs/inside/{page} names {name}, which does not exist"


@pytest.mark.parametrize("pattern", ["docs/**/*.md", "README.md", "CONTRIBUTING.md"])
def test_all_modules_in_documents_exist(pattern: str) -> None:
    for document in ROOT.glob(pattern):
        text = document.read_text(encoding="utf-8")
        for name in re.findall(r"\bsearchapp/[\w/]+\.(?:py|c)\b", text):
            assert (ROOT / name).exists(), f"{document.name} names {name}, which does not exist"
        for module, names_ in re.findall(r"^ +from (searchapp[\w.]*) import (.+)$", text, re.MULTILINE):
            for name in names_.split(", "):
                assert hasattr(import_module(module), name), f"{document.name} imports {name} from {module}"


def test_the_page_on_engines_lists_all_features() -> None:
    text = engine_features.TARGET.read_text(encoding="utf-8")
    assert engine_features.updated(text) == text, "run python -m scripts.engine_features"


def test_all_options_have_a_help_text() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert rows
    without_text = [row for row in rows if not re.fullmatch(r"\| `.+` \| .+ \| .*\|", row)]
    assert not without_text, "give these options a help text"


def rows(page: str, heading: str) -> list[str]:
    """Return the first cells of a page's table."""
    table = page.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [re.split(r"(?<!\\)\|", line)[1] for line in table.splitlines()[2:]]


COMMANDS = ROOT / "docs" / "reference" / "commands.md"


def test_the_page_on_commands_lists_all_commands() -> None:
    commands_of_reference = set(re.findall(r"## `searchapp ([^`]+)`", reference()))
    page, listed = COMMANDS.read_text(encoding="utf-8"), set()
    for heading, commands in HEADINGS.items():
        under_heading = rows(page.partition(f"### {heading}\n")[2], "command")
        for words in re.findall(r"`([^`]+)`", "".join(under_heading)):
            match = re.match(r"[a-z-]+(?: [a-z]+)?(?= |$)", words)
            assert match, f"{COMMANDS.name} lists {words}, which is not a command"
            assert match[0].split()[0] in commands, f"the help has {match[0]} under another heading"
            listed.add(match[0])
    assert listed == commands_of_reference, (
        "the tables of docs/reference/commands.md need a row for each command and no other rows"
    )


class RecordingEnvironment(dict[str, str]):
    """An empty environment that records the names of read variables."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return default


def test_the_page_on_commands_lists_all_variables() -> None:
    environ = RecordingEnvironment()
    resolve({}, environ)
    assert len(environ.names) > 8
    listed = re.findall(r"`([A-Z_]+)`", "".join(rows(COMMANDS.read_text(encoding="utf-8"), "variable")))
    assert sorted(listed) == sorted(environ.names), (
        "the table of variables in docs/reference/commands.md must list exactly these"
    )


@pytest.mark.parametrize("pattern", ["searchapp/**/*.py", "docs/**/*.md", "README.md", ".env.example"])
def test_all_named_variables_are_read(pattern: str) -> None:
    environ = RecordingEnvironment()
    resolve({}, environ)
    for path in set(ROOT.glob(pattern)) - {
        ROOT / "docs/inside/contributing.md"
    }:  # it names variables of tests
        named = re.findall(r"(?<!_)SEARCHAPP_(?!TEST_)[A-Z_]*[A-Z]", path.read_text(encoding="utf-8"))
        assert set(named) <= environ.names, path


def test_targets_of_links_between_documents_exist() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_changelog_has_versions_with_dates_newest_first() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, *older = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    released = [newest, *older] if newest != "Unreleased" else older
    versions = []
    for heading in released:
        match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d{2}-\d{2})", heading)
        assert match, f"`## {heading}` is not a version with a date"
        date.fromisoformat(match[4])
        versions.append(tuple(int(part) for part in match.groups()[:3]))
    assert versions == sorted(set(versions), reverse=True)
    running = tuple(int(part) for part in searchapp.__version__.split("."))
    if newest == "Unreleased":
        assert not versions or running >= versions[0]
    else:
        assert running == versions[0], "the changelog and the program name different versions"


def test_the_citation_has_the_version_and_the_authors_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == searchapp.__version__
    cited, authors = ([author["name"] for author in source["authors"]] for source in (citation, project))
    assert cited == authors
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]


def test_the_page_on_own_tasks_lists_all_signals_keys_and_fusions() -> None:
    text = (ROOT / "docs" / "use" / "own-task.md").read_text(encoding="utf-8")
    for name in KINDS:
        row = re.search(rf"^\| `{name}` \|.*\|$", text, re.MULTILINE)
        assert row, f"docs/use/own-task.md lacks a row for the signal `{name}`"
        for key in meanings(signal_class(name)).keys() - {WEIGHT, WINDOW}:
            assert f"`{key}`" in row[0], f"docs/use/own-task.md does not name `{key}` in the row of `{name}`"
    for name in fusion.KINDS:
        assert f'method = "{name}"' in text, f'docs/use/own-task.md lacks the fusion "{name}"'


def test_the_page_on_upgrading_lists_all_renamed_options_and_keys() -> None:
    page = (ROOT / "docs" / "reference" / "upgrading.md").read_text(encoding="utf-8")
    renamed = [
        *RENAMED_OPTIONS.items(),
        *((old, new) for old, names in RENAMED_KEYS.items() for new in names),
    ]
    for name in (name for pair in renamed for name in pair):
        assert re.search(rf"`{re.escape(name)}\b", page), f"docs/reference/upgrading.md lacks {name}"
    for name in RENAMED_OPTIONS.values():
        assert f"| `{name}` |" in reference(), f"unknown option {name}"


def test_the_page_on_reports_lists_all_sections() -> None:
    page = (ROOT / "docs" / "use" / "report.md").read_text(encoding="utf-8")
    source = (ROOT / "searchapp" / "report" / "pages.py").read_text(encoding="utf-8")
    sections = source.partition("    sections = {\n")[2].partition("    }\n")[0]
    headings = re.findall(r'"\w+": "(.+?)"', sections)
    assert headings == [cell.strip() for cell in rows(page, "section")], (
        "docs/use/report.md needs a row for each section, in order"
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
        assert analyzer in described, f"{path.name} does not describe the analyzer {analyzer}"


def test_all_tasks_have_a_folder_of_templates() -> None:
    folders = {path.name for path in resources.folder("query_templates").iterdir()}
    missing = ", ".join(sorted(set(names()) - folders))
    assert not missing, f"query_templates/ has no folder with the recipes.toml of {missing}"
