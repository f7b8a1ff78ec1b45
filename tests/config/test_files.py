"""Settings files: where they are found, and how their errors are reported."""

from __future__ import annotations

import errno
import os
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.config.resolution import (
    LARGEST,
    find_project,
    lines_of,
    read_project_file,
    read_user_file,
    resolution,
)
from searchapp.errors import DataError, InvalidFiles
from searchapp.files import open_file
from tests.config.conftest import Folders

# Finding a project file


def test_the_nearest_project_file_in_a_parent_folder_is_found(folders: Folders) -> None:
    assert find_project(folders.work) is None
    folders.project_file.touch()
    assert find_project(folders.work) == find_project(folders.project) == folders.project_file
    nearer = folders.work.parent / "searchapp.toml"
    nearer.touch()
    assert find_project(folders.work) == nearer


def test_the_search_ends_in_the_home_directory(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "searchapp.toml").touch()
    monkeypatch.setenv("HOME", str(folders.project))
    assert find_project(folders.work) is None
    folders.project_file.touch()
    assert find_project(folders.work) == folders.project_file
    monkeypatch.setenv("HOME", str(folders.work))
    assert find_project(folders.work) is None
    # Outside the home directory the search continues to the root.
    monkeypatch.setenv("HOME", str(folders.home))
    assert find_project(folders.work) == folders.project_file


def test_a_folder_named_as_a_project_file_is_ignored(folders: Folders) -> None:
    folders.project_file.touch()
    (folders.work / "searchapp.toml").mkdir()
    assert find_project(folders.work) == folders.project_file


def test_links_to_the_working_directory_are_resolved(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.project_file.write_text('index_prefix = "lab"\n')
    folders.user("", trusting=True)
    (tmp_path / "elsewhere").symlink_to(folders.work)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resolution({}, {}).project_file == folders.project_file


def test_a_removed_working_directory_has_no_project(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = folders.project / "removed"
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    try:
        assert resolution({}, {}).project_file is None
    finally:
        monkeypatch.undo()


def test_a_project_file_may_be_a_link(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text('home = "here"\n')
    folders.project_file.symlink_to(tmp_path / "real.toml")
    result = read_project_file(folders.project_file)
    assert result.values == {"home": folders.project / "here"}


# Unreadable files


def refusal(folders: Folders) -> str:
    """Return the message with which the settings are refused."""
    with pytest.raises(DataError) as refused:
        resolution({}, {}, folders.work)
    return str(refused.value)


@pytest.mark.parametrize("owner", ["user_file", "project_file"])
def test_what_is_not_a_settings_file_is_refused(folders: Folders, owner: str) -> None:
    path: Path = getattr(folders, owner)
    os.mkfifo(path)
    assert refusal(folders) == f"{path} can't be read: it is a pipe, not a file"
    path.unlink()
    path.write_bytes(b"#" * (LARGEST + 1))
    assert refusal(folders) == f"{path} is larger than 16 KiB, too large for a settings file"
    path.write_bytes(b'url = "\xff"\n')
    assert refusal(folders).startswith(f"{path}: not TOML: 'utf-8' codec can't decode")
    path.write_text('url = "http://a\n')
    assert refusal(folders).startswith(f"{path}: not TOML: ") and "line 1" in refusal(folders)
    path.write_text("trusted = " + "[" * 3000 + "]" * 3000)
    assert "nested more than 100 deep" in refusal(folders)
    path.unlink()
    path.symlink_to(path.parent / "nowhere")
    if owner == "project_file":
        assert refusal(folders) == f"{path} can't be read: no such file or directory"
    else:
        assert resolution({}, {}, folders.work).values


def test_a_device_is_refused(folders: Folders) -> None:
    folders.project_file.symlink_to("/dev/zero")
    assert refusal(folders) == f"{folders.project_file} can't be read: it is a device, not a file"


@pytest.mark.parametrize("owner", ["user_file", "project_file"])
def test_an_unreadable_file_is_refused(folders: Folders, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path: Path = getattr(folders, owner)
    path.write_text("")

    def open_refused(candidate: Path) -> object:  # permissions don't apply to root, who may run the tests
        if candidate == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_file(candidate)

    monkeypatch.setattr("searchapp.config.resolution.open_file", open_refused)
    assert refusal(folders) == f"{path} can't be read: permission denied"


def test_a_users_file_that_is_a_folder_is_refused(folders: Folders) -> None:
    folders.user_file.mkdir()
    assert refusal(folders) == f"{folders.user_file} can't be read: is a directory"


def test_a_home_that_is_a_file_or_does_not_exist_has_no_settings(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_user_file(tmp_path / "file" / "settings.toml") is None
    assert read_user_file(tmp_path / "nowhere" / "settings.toml") is None


# Contents


WRONG = [
    ('urll = "x"', "unknown setting: 'urll' (did you mean url?): `searchapp config` lists all settings"),
    ('"URL" = "http://a:1"', "unknown setting: 'URL' (did you mean url?)"),
    ('[elasticsearch]\nurl = "x"', "unknown setting: 'elasticsearch'"),
    ('"judge.theme" = "dark"', "unknown setting: 'judge.theme'"),
    ('judge.them = "dark"', "unknown setting: 'judge.them' (did you mean judge.theme?)"),
    ('judge = "dark"', "wrong value: judge must be a table that begins with [judge]"),
    ("url = 9200", "wrong value: url must be a text in quotes"),
    ('url = ""', "wrong value: url is empty: give it a value, or leave it out"),
    ('url = "localhost:9200"', "wrong value: url is not an address such as http://localhost:9200"),
    ('url = "http://a:port"', "wrong value: url is not an address"),
    ('url = "http://[::1"', "wrong value: url is not an address"),
    ('url = "http://a\\u001b[2J"', "wrong value: url is not an address"),
    (f'url = "http://{"a" * 1000}"', "wrong value: url is longer than 1,000 characters"),
    ('engine = "solr"', "wrong value: there is no engine 'solr': choose embedded or elasticsearch"),
    ('engine = "elastic"', "wrong value: there is no engine 'elastic' (did you mean elasticsearch?)"),
    ('index_prefix = "Lab"', "wrong value: 'Lab' is not a valid index_prefix: use lower-case"),
    ('shared = "yes"', "wrong value: shared must be true or false, without quotes"),
    ("shared = 1", "wrong value: shared must be true or false, without quotes"),
    ("ca_certs = true", "wrong value: ca_certs must be a text in quotes"),
    ('ca_certs = "a\\u0000b"', "wrong value: ca_certs is not a valid file name"),
    ('ca_certs = "~nobody-of-this-name/x"', "wrong value: ca_certs begins with ~, but there is no such"),
    ('api_key = ["hunter2"]', "wrong value: api_key must be a text in quotes"),
    (
        'api_key = "hunter2 "',
        "wrong value: api_key contains a space, a line end or another character that no API key contains",
    ),
    ('password = ["hunter2"]', "wrong value: password must be a text in quotes"),
    ('trusted = "/x"', "wrong value: trusted must be a list of folders"),
    ("trusted = [1]", "wrong value: trusted must be a text in quotes"),
    (
        'home = "x"',
        "misplaced setting: home must not be set in the user's file: use --home, SEARCHAPP_HOME or",
    ),
    ("quiet = true", "misplaced setting: quiet must not be set in the user's file: use --quiet"),
    (
        'judge.theme = "lihgt"',
        "wrong value: judge.theme must be dark, light, ansi-dark or ansi-light, not 'lihgt' (did you mean light?)",
    ),
    ("judge.keys = 1", "wrong value: judge.keys must be a table"),
    ("[judge.keys]\nundo = 1", "wrong value: judge.keys.undo must be a text in quotes"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text[:30] for text, _ in WRONG])
def test_an_error_is_reported_with_file_line_and_key(folders: Folders, text: str, message: str) -> None:
    folders.user(f"# mine\n\n{text}\n")
    with pytest.raises(InvalidFiles) as refused:
        resolution({}, {}, folders.work)
    assert f"{folders.user_file}: line 3: {message}" in str(refused.value)
    assert refused.value.exit_code == 4 and "hunter2" not in str(refused.value)


def test_all_problems_of_a_file_are_reported_together(folders: Folders) -> None:
    folders.project_file.write_text('urll = "x"\nengine = "x"\nindex_prefix = """\nengine = "x"\n"""\n')
    with pytest.raises(InvalidFiles) as refused:
        read_project_file(folders.project_file)
    assert [problem.where for problem in refused.value.problems] == ["line 1", "line 2", "line 3"]
    assert refused.value.lines[0] == "3 problems: wrong value (2), unknown setting (1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'api_key = "hunter2"',
            "api_key must not be set in a project file, which others can read: use SEARCHAPP_API_",
        ),
        ('password = "hunter2"', "password must not be set in a project file, which others can read"),
        (
            'url = "http://me:hunter2@a:1"',
            "url contains a user name or a password, which a project file must not",
        ),
        ('data_mirror = "http://hunter2@a"', "data_mirror contains a user name or a password"),
    ],
)
def test_project_files_must_not_contain_secrets(folders: Folders, text: str, message: str) -> None:
    folders.user("", trusting=True)
    folders.project_file.write_text(text)
    assert f"{folders.project_file}: line 1: misplaced" in refusal(folders)
    assert message in refusal(folders) and "hunter2" not in refusal(folders)


def test_paths_are_relative_to_the_file_that_sets_them(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    folders.project_file.write_text('ca_certs = "certs/ca.pem"\nhome = "~/here"\n')
    values = read_project_file(folders.project_file).values
    assert values == {"ca_certs": folders.project / "certs" / "ca.pem", "home": Path("/home/me/here")}


def test_a_file_of_keys_and_theme_alone_is_valid(folders: Folders) -> None:
    folders.user('[judge]\ntheme = "light"\n\n[judge.keys]\nundo = ["z", "u"]\ngrade_0 = "h"\n', 0o644)
    result = resolution({}, {}, folders.work)
    assert not result.warnings
    assert result.values["judge.keys"].shown == "undo: z u, grade_0: h"
    assert result.values["judge.keys"].line == 4 and result.values["judge.theme"].line == 2


# Lines


PREFIXES = ["", "# url = 1\n", 'x{} = """\nurl = 1\n[judge]\n"""\n', "y{} = [\n  1, # home\n]\n"]


@given(st.lists(st.sampled_from(("url", "api_key", "shared", "home", "judge")), unique=True), st.data())
def test_the_line_of_a_key_is_found_in_every_notation(names: list[str], data: st.DataObject) -> None:
    lines: list[str] = []
    expected: dict[str, int] = {}
    for name in names:
        prefix = data.draw(st.sampled_from(PREFIXES))
        lines.append(prefix.format(len(lines)))
        key = data.draw(
            st.sampled_from([name, f'"{name}"', f"'{name}'", f'"\\u{ord(name[0]):04x}{name[1:]}"'])
        )
        value = data.draw(st.sampled_from(["1", '"""\n\n"""', "[\n1,\n2]", "{ home = 1 }"]))
        expected[name] = "".join(lines).count("\n") + 1
        lines.append(f"{key} = {value}\n")
    text = "".join(lines)
    assert tomllib.loads(text) is not None
    result = lines_of(text)
    assert {name: result[(name,)] for name in names} == expected


def test_keys_of_tables_have_their_own_lines() -> None:
    text = "[a]\nurl = 1\n[[b.c]]\nurl = 2\n[url]\n[judge]\nkeys.undo = 'x'\n"
    result = lines_of(text)
    assert (result["url",], result["a", "url"], result["b", "c"]) == (5, 2, 3)
    assert (result["judge",], result["judge", "keys"], result["judge", "keys", "undo"]) == (6, 7, 7)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"k{number} = 1\n" for number in range(1_500)),
        "".join(f"[t{number}]\n" for number in range(1_900)),
        "a = [\n" + "1,\n" * 5_000 + "]\n",
        "a = 1\n" + "#\n" * 8_000,
        "a" + ".a" * 8_000 + " = 1\n",
    ],
    ids=["keys", "tables", "a long list", "comments", "dots"],
)
def test_a_large_file_is_read_in_seconds(folders: Folders, text: str) -> None:
    assert LARGEST * 0.8 < len(text) < LARGEST
    folders.project_file.write_text(text)
    begin = time.process_time()
    with pytest.raises(DataError):
        read_project_file(folders.project_file)
    assert time.process_time() - begin < 4
