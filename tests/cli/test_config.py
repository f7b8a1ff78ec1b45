"""`searchapp config`: every setting with its value and source; settings files apply to all commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import DECLARED
from tests.cli.conftest import SAMPLE, Cli, Result


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home directory of the fixture `offline`."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project; commands run in a folder inside it."""
    work = tmp_path / "project" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    return work.parent


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def settings_of(result: Result) -> dict[str, Any]:
    assert result.code == 0, result.stderr
    return {setting["name"]: setting for setting in result.json["settings"]}


def test_config_lists_every_setting(
    offline: Cli, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write(home / "settings.toml", f'trusted = ["{project}"]\n\nannotator = "ann"\n')
    theirs = write(project / "searchapp.toml", '# ours\nindex_prefix = "lab"\n')
    monkeypatch.setenv("SEARCHAPP_SHARED", "1")
    result = offline("config", "--json", "--url", "http://there:9200")
    names = [setting.name for setting in DECLARED]
    settings = settings_of(result)
    assert list(settings) == names
    values = {
        name: (setting["value"], setting["from"], setting["where"], setting["line"])
        for name, setting in settings.items()
    }
    assert values["engine"] == ("elasticsearch", "flag", "--url", None)
    assert values["url"] == ("http://there:9200", "flag", "--url", None)
    assert values["shared"] == (True, "environment", "SEARCHAPP_SHARED", None)
    assert values["index_prefix"] == ("lab", "project file", str(theirs), 2)
    assert values["annotator"] == ("ann", "user file", str(own), 3)
    assert values["trusted"] == ([str(project)], "user file", str(own), 1)
    assert values["home"] == (str(home), "environment", "SEARCHAPP_HOME", None)
    assert values["api_key"] == (None, "default", None, None)
    assert result.json["files"] == {
        "user": {"path": str(own), "exists": True},
        "project": {"path": str(theirs), "used": True},
    }
    lines = offline("config", "--url", "http://there:9200").stdout.splitlines()
    assert [line.split()[0] for line in lines[1 : len(DECLARED) + 1]] == names
    assert ["index_prefix", "lab", "project", "file", f"{theirs}:2"] in [line.split() for line in lines]
    assert lines[-2:] == [f"user file: {own}", f"project file: {theirs}"]


def test_without_files_the_path_of_the_users_file_is_printed(offline: Cli, home: Path, project: Path) -> None:
    lines = offline("config").stdout.splitlines()
    assert lines[-2:] == [f"user file: {home / 'settings.toml'} (does not exist)", "project file: none"]


def test_project_files_can_be_disabled(
    offline: Cli, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "searchapp.toml", "nonsense")
    assert offline("config").code == 4
    monkeypatch.setenv("SEARCHAPP_PROJECT", "0")
    result = offline("config")
    assert result.code == 0
    assert result.stdout.endswith("project file: none (project files are disabled by SEARCHAPP_PROJECT)\n")
    monkeypatch.delenv("SEARCHAPP_PROJECT")
    write(home / "settings.toml", "project = false\n")
    assert "disabled by project in " in offline("config").stdout


SOURCES = {
    "the environment": {"SEARCHAPP_USERNAME": "me", "SEARCHAPP_PASSWORD": "hunter2"},
    "a key": {"SEARCHAPP_API_KEY": "hunter2"},
    "an address": {"SEARCHAPP_URL": "http://me:hunter2@127.0.0.1:9"},
    "a mirror": {"SEARCHAPP_DATA_MIRROR": "http://me:hunter2@127.0.0.1:9"},
}


@pytest.mark.parametrize("variables", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("options", [(), ("--json",), ("--verbose",), ("--screen",)])
def test_secrets_in_variables_are_not_printed(
    offline: Cli, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], options: tuple[str, ...]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = offline("config", *options)
    assert result.code == (2 if "--screen" in options else 0)
    assert "hunter2" not in result.stdout + result.stderr


@pytest.mark.parametrize("mode", [0o600, 0o644])
@pytest.mark.parametrize(
    "text",
    [
        'username = "me"\npassword = "hunter2"\n',
        'api_key = "hunter2"\n',
        'url = "http://me:hunter2@127.0.0.1:9"\n',
        'password = "hunter2"\n',
        'password = "hunter2"\napi_key = "hunter2"\nusername = "hunter2"\n',
        'password = ["hunter2"]\n',
        'password = "hunter2\n',
        'url = "hunter2@nowhere"\n',
        'url = "http://me:hunter2@127.0.0.1:port"\n',
    ],
)
def test_secrets_in_files_are_not_printed(
    offline: Cli, home: Path, project: Path, text: str, mode: int
) -> None:
    path = write(home / "settings.toml", text, mode)
    for file in (path, project / "searchapp.toml"):
        path = path.rename(file)
        for command in (("config",), ("config", "--json"), ("tasks", "--json"), ("config", "--verbose")):
            result = offline(*command)
            assert "hunter2" not in result.stdout + result.stderr, (file, command)


def test_control_characters_of_a_file_are_not_printed(offline: Cli, home: Path, project: Path) -> None:
    write(home / "settings.toml", 'annotator = "\\u001b[2Jann\\n\\u202e"\n"\\u001b[2J" = 1\n')
    bad = offline("config")
    assert bad.code == 4 and "line 2: unknown setting" in bad.stderr and "\x1b" not in bad.stderr
    write(home / "settings.toml", f'annotator = "\\u001b[2Jann\\n\\u202e"\ntrusted = ["{project}"]\n')
    good = offline("config")
    assert "␛[2Jann␊<U+202E>" in good.stdout and "\x1b" not in good.stdout
    assert settings_of(offline("config", "--json"))["annotator"]["value"] == "\x1b[2Jann\n\u202e"
    assert "\x1b" not in offline("config", "--json").stdout
    folder = project / "\x1b[2J\u202e"
    folder.mkdir()
    write(folder / "searchapp.toml", 'engine = "elasticsearch"\n')
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.chdir(folder)
        write(home / "settings.toml", "")
        refused = offline("config")
        assert refused.code == 2 and "\x1b" not in refused.stderr and "\u202e" not in refused.stderr
        assert 'add trusted = ["' in refused.stderr


def test_errors_in_settings_files_stop_every_command(offline: Cli, home: Path, project: Path) -> None:
    path = write(project / "searchapp.toml", '\nurll = "http://a:1"\n')
    for command in (("config",), ("tasks",), ("search", "nlps", "group"), ("doctor",)):
        result = offline(*command)
        assert result.code == 4 and not result.stdout
        assert result.stderr == (
            f"searchapp: {path}: line 2: unknown setting: 'urll' (did you mean url?): `searchapp config` "
            "lists all settings\n"
        )


def test_project_files_can_not_redirect_credentials(
    offline: Cli, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_API_KEY", "hunter2")
    write(project / "searchapp.toml", 'url = "http://127.0.0.1:9"\n')
    result = offline("search", "nlps", "group")
    assert result.code == 2 and "sets url (line 1), but its folder is not trusted" in result.stderr
    write(home / "settings.toml", f'trusted = ["{project}"]\n')
    trusted = offline("search", "nlps", "group")
    assert trusted.code == 3 and "127.0.0.1:9" in trusted.stderr


def test_the_users_file_applies_to_commands(offline: Cli, home: Path, project: Path) -> None:
    write(home / "settings.toml", 'url = "http://127.0.0.1:9"\n')
    result = offline("index", "nlps", "--data", SAMPLE)
    assert result.code == 3 and "127.0.0.1:9" in result.stderr
    assert offline("index", "nlps", "--data", SAMPLE, "--engine", "embedded").code == 0
    assert "chosen by url in " in offline("doctor").stdout


def test_a_warning_about_a_file_is_printed_to_stderr(offline: Cli, home: Path) -> None:
    path = write(home / "settings.toml", 'api_key = "hunter2"\n', 0o644)
    result = offline("config", "--json")
    assert settings_of(result)["api_key"]["value"] is None
    assert result.stderr == (
        f"warning: other users can read {path}, so its api_key (line 1) is not used: run `chmod 600` on it\n"
    )


def test_the_screen_needs_a_terminal_and_prints_no_json(offline: Cli) -> None:
    assert "needs a terminal" in offline("config", "--screen").stderr
    assert "give one of them" in offline("config", "--screen", "--json").stderr
