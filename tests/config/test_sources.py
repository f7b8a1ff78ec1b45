"""Which source sets each setting, and what a project file may set."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.config.resolution import Origin, Resolution, resolution
from searchapp.config.settings import (
    BY_NAME,
    COUNT,
    CREDENTIALS,
    DECLARED,
    MODEL_KEY_WAYS,
    SEED,
    SWITCH,
    SettingDeclaration,
    Settings,
)
from searchapp.errors import InvalidFiles, UsageError
from tests.config.conftest import Folders, use_as_default

FIRST_TO_LAST = (Origin.flag, Origin.environment, Origin.project, Origin.user)
ENGINES = ("embedded", "elasticsearch")
SECRETS = ("hunter2", "opensesame")
NUMBERS = (COUNT, SEED)


def value_of(setting: SettingDeclaration, origin: Origin) -> str:
    """Return a value as text, a different one for each origin if the setting has as many values."""
    number = FIRST_TO_LAST.index(origin)
    match setting.name:
        case "engine":
            return ENGINES[number % 2]
        case "url" | "data_mirror" | "proxy":
            return f"http://{origin.name}:9200"
        case _ if setting.type is SWITCH:
            return "1" if setting.flag else str(number % 2)
        case _ if setting.type in NUMBERS:
            return str(number + 1)
        case name if name.endswith(".theme"):
            return "ansi-light"
        case name if name.endswith(".spacing"):
            return "compact"
        case "key_set":
            return "0.3"
        case "team.role":
            return ("experimenter", "reproducer")[number % 2]
        case "fingerprint":
            return str(number) * 64
        case "cloud_id":
            return f"name:{b64encode(f'{origin.name}.example$es'.encode()).decode()}"
        case "headers":
            return f"X-Origin: {origin.name}"
        case _:
            return f"{origin.name}-{setting.name.replace('.', '-')}".replace("_", "-")


def in_toml(setting: SettingDeclaration, text: str) -> str:
    """Write a value as a line of a settings file."""
    table, _, key = setting.name.rpartition(".")
    if setting.name == "headers":
        text = f'{{X-Origin = "{text}"}}'
    elif setting.type is SWITCH:
        text = "true" if text == "1" else "false"
    elif setting.type in NUMBERS:
        pass
    elif setting.name == "trusted":
        text = f'["/{text}"]'
    elif setting.name.endswith(".keys"):
        text = f'{{undo = "{text}"}}'
    else:
        text = f'"{text}"'
    return f"[{table}]\n{key} = {text}\n" if table else f"{key} = {text}\n"


def origins_of(setting: SettingDeclaration) -> list[Origin]:
    """List the origins that can set a setting, first to last."""
    can_set = {
        Origin.flag: bool(setting.flag),
        Origin.environment: bool(setting.variable),
        Origin.project: setting.by_project,
        Origin.user: setting.by_user,
    }
    return [origin for origin in FIRST_TO_LAST if can_set[origin]]


SHOWN_DIFFERENTLY = (SWITCH, BY_NAME["headers"].type)
"""Types of settings whose values are not shown as they are written."""


@dataclass(frozen=True)
class Case:
    setting: SettingDeclaration
    origins: frozenset[Origin]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    setting = draw(
        st.sampled_from(
            [setting for setting in DECLARED if setting.name not in (*CREDENTIALS, *chain(*MODEL_KEY_WAYS))]
        )
    )
    return Case(setting, draw(st.frozensets(st.sampled_from(origins_of(setting)))))


def resolve(case: Case, folders: Folders) -> Resolution:
    """Resolve the settings of a trusted project in which exactly the origins of the case set a setting."""
    setting, flags, environ = case.setting, dict[str, object](), dict[str, str]()
    texts = {origin: value_of(setting, origin) for origin in case.origins}
    if Origin.flag in texts:
        flags[setting.name] = True if texts[Origin.flag] == "1" else texts[Origin.flag]
    if Origin.environment in texts:
        environ[setting.variable] = texts[Origin.environment]
    own = in_toml(setting, texts[Origin.user]) if Origin.user in texts else ""
    folders.user(own, trusting=setting.name != "trusted")
    if setting.name == "home" and (flags or environ):  # the user's file is in that home then
        folders.user_file = Path(str(flags.get("home") or environ["SEARCHAPP_HOME"])) / "settings.toml"
        folders.user_file.parent.mkdir()
        folders.user("", trusting=True)
    folders.project_file.write_text(
        in_toml(setting, texts[Origin.project]) if Origin.project in texts else "# empty\n"
    )
    return resolution(flags, environ, folders.work)


@given(case=cases())
def test_the_nearest_source_sets_a_value(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        folders = use_as_default(Folders(tmp_path_factory.mktemp("case")), monkeypatch)
        monkeypatch.chdir(folders.home.parent)
        result = resolve(case, folders).values[case.setting.name]
    expected = next((origin for origin in FIRST_TO_LAST if origin in case.origins), Origin.default)
    assert result.source.origin is expected
    if expected is Origin.default:
        default = folders.home if case.setting.name == "home" else case.setting.default
        assert result.value == default and result.where == "" and result.line is None
    elif case.setting.type not in SHOWN_DIFFERENTLY:
        assert value_of(case.setting, expected) in result.shown
    if expected in (Origin.project, Origin.user):
        path = folders.project_file if expected is Origin.project else folders.user_file
        assert result.file == path and result.line is not None
        assert case.setting.name.rpartition(".")[2] in path.read_text().splitlines()[result.line - 1]


def test_every_setting_has_a_description_an_origin_and_a_default() -> None:
    for setting in DECLARED:
        assert setting.about.endswith(".") and origins_of(setting)
        assert setting.default is not None or setting.unset or setting.name == "home"
        assert not (setting.secret and (setting.by_project or setting.flag)), "other users see command lines"


# Credentials


def test_all_credentials_come_from_the_nearest_source_with_any(folders: Folders) -> None:
    folders.user('username = "me"\npassword = "hunter2"\n')
    of_file = resolution({}, {}, folders.work).settings
    assert (of_file.username, of_file.password, of_file.api_key) == ("me", "hunter2", None)
    environ = {"SEARCHAPP_USERNAME": "ann", "SEARCHAPP_PASSWORD": "x"}
    of_environment = resolution({}, environ, folders.work).settings
    assert (of_environment.username, of_environment.password, of_environment.api_key) == ("ann", "x", None)
    key = resolution({}, {"SEARCHAPP_API_KEY": "k"}, folders.work).settings
    assert (key.username, key.password, key.api_key) == (None, None, "k")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('password = "hunter2"\n', "password in {file} is set without username there: set both or neither"),
        (
            'api_key = "hunter2"\nusername = "me"\npassword = "hunter2"\n',
            "both an API key and a user name are set: leave out api_key in {file} or username in {file}",
        ),
    ],
)
def test_contradicting_credentials_in_a_file_are_refused(folders: Folders, text: str, message: str) -> None:
    folders.user(text)
    with pytest.raises(UsageError) as refused:
        resolution({}, {}, folders.work)
    assert message.format(file=folders.user_file) in str(refused.value) and "hunter2" not in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("text", "source", "dropped"),
    [
        ('username = "me"\npassword = "hunter2"\n', "password (line 2)", ("username", "password")),
        ('api_key = "hunter2"\n', "api_key (line 1)", ("api_key",)),
        ('url = "http://me:hunter2@there:9200"\n', "url (line 1)", ("url",)),
        ('data_mirror = "http://me:hunter2@there"\n', "data_mirror (line 1)", ("data_mirror",)),
    ],
)
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_readable_secrets_are_dropped_with_a_warning(
    folders: Folders, text: str, source: str, dropped: tuple[str, ...], mode: int
) -> None:
    folders.user(f'{text}index_prefix = "lab"\n', mode)
    result = resolution({}, {}, folders.work)
    (warning,) = result.warnings
    assert source in warning and "chmod 600" in warning and "hunter2" not in warning
    assert all(result.values[name].source.origin is Origin.default for name in dropped)
    assert result.settings.index_prefix == "lab"
    folders.user_file.chmod(0o600)
    private = resolution({}, {}, folders.work)
    assert not private.warnings and all(private.values[name].source.origin is Origin.user for name in dropped)


def test_shown_values_and_representations_contain_no_secret(folders: Folders) -> None:
    folders.user(f'username = "me"\npassword = "{SECRETS[0]}"\nurl = "http://u:{SECRETS[1]}@there:9200"\n')
    result = resolution({}, {}, folders.work)
    shown = [value.shown + repr(value) + str(value.plain) for value in result.values.values()]
    assert result.settings.password == SECRETS[0]
    assert not any(secret in text for secret in SECRETS for text in [*shown, repr(result)])
    assert result.values["password"].shown == "set" and result.values["url"].shown == "http://there:9200"


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"SEARCHAPP_USERNAME": "me"}, "SEARCHAPP_USERNAME is set without SEARCHAPP_PASSWORD"),
        ({"SEARCHAPP_PASSWORD": "x"}, "SEARCHAPP_PASSWORD is set without SEARCHAPP_USERNAME"),
        (
            {"SEARCHAPP_API_KEY": "k", "SEARCHAPP_USERNAME": "me", "SEARCHAPP_PASSWORD": "x"},
            "both an API key and a user name",
        ),
        ({"SEARCHAPP_ENGINE": "solr"}, "there is no engine 'solr'"),
    ],
)
def test_contradicting_variables_are_refused(folders: Folders, environ: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolution({}, environ, folders.work)


# The engine


@pytest.mark.parametrize(
    ("project", "user", "engine", "chosen_by"),
    [
        ('url = "http://a:1"', "", "elasticsearch", "url in {project}"),
        ('url = "http://a:1"', 'engine = "embedded"', "elasticsearch", "url in {project}"),
        ('engine = "embedded"', 'url = "http://a:1"', "embedded", "engine in {project}"),
        ("", 'url = "http://a:1"', "elasticsearch", "url in {user}"),
        ("", 'url = "http://a:1"\nengine = "embedded"', "embedded", "engine in {user}"),
    ],
)
def test_an_address_in_a_file_chooses_the_server(
    folders: Folders, project: str, user: str, engine: str, chosen_by: str
) -> None:
    folders.user(user, trusting=True)
    folders.project_file.write_text(project)
    settings = resolution({}, {}, folders.work).settings
    files = {"project": folders.project_file, "user": folders.user_file}
    assert (settings.engine, settings.engine_chosen_by) == (engine, chosen_by.format(**files))
    assert settings.url_given == ("url" in project + user)


REACHING = {field.name for field in fields(Settings)} & BY_NAME.keys() - {
    *CREDENTIALS,
    *chain(*MODEL_KEY_WAYS),
}


@pytest.mark.parametrize(
    "setting",
    [setting for setting in DECLARED if setting.name in REACHING],
    ids=lambda setting: setting.name,
)
def test_every_setting_reaches_the_program(
    folders: Folders, setting: SettingDeclaration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders.home.parent)
    results = [resolve(Case(setting, frozenset({origin})), folders) for origin in origins_of(setting)]
    values = [getattr(result.settings, setting.name) for result in results]
    assert values == [result.values[setting.name].value for result in results]
    assert any(value != setting.default for value in values)


@pytest.mark.parametrize(
    ("flags", "environ", "engine", "chosen_by"),
    [
        ({}, {}, "embedded", "default"),
        ({"url": "http://a:1"}, {}, "elasticsearch", "--url"),
        ({}, {"SEARCHAPP_URL": "http://a:1"}, "elasticsearch", "SEARCHAPP_URL"),
        ({}, {"SEARCHAPP_ENGINE": "elasticsearch"}, "elasticsearch", "SEARCHAPP_ENGINE"),
        ({"engine": "embedded"}, {"SEARCHAPP_URL": "http://a:1"}, "embedded", "--engine"),
        ({"url": "http://a:1"}, {"SEARCHAPP_ENGINE": "embedded"}, "elasticsearch", "--url"),
        ({}, {"SEARCHAPP_ENGINE": "embedded", "SEARCHAPP_URL": "http://a:1"}, "embedded", "SEARCHAPP_ENGINE"),
    ],
)
def test_an_address_chooses_the_server(
    folders: Folders, flags: dict[str, str], environ: dict[str, str], engine: str, chosen_by: str
) -> None:
    settings = resolution(flags, environ, folders.work).settings
    assert (settings.engine, settings.engine_chosen_by) == (engine, chosen_by)


def test_variables_that_a_flag_overrides_are_not_checked(
    folders: Folders,
) -> None:
    environ = {"SEARCHAPP_ENGINE": "solr", "SEARCHAPP_URL": "", "SEARCHAPP_API_KEY": ""}
    settings = resolution({"engine": "embedded", "url": None}, environ, folders.work).settings
    assert (settings.engine, settings.url_given, settings.api_key) == ("embedded", False, None)
    assert resolution({"url": "http://a:1"}, environ, folders.work).settings.engine == "elasticsearch"


# Trust in project files


HARMFUL = (
    'url = "http://theirs:9200"\n',
    'engine = "elasticsearch"\n',
    'home = "theirs"\n',
    'ca_certs = "their.pem"\n',
    'index_prefix = "theirs"\n',
    "shared = true\n",
    "seed = 7\n",
    'data_mirror = "http://theirs"\n',
    'team.team = "theirs"\n',
    'team.name = "theirs"\n',
    'team.orcid = "0000-0000-0000-0001"\n',
    'team.mail = "them@example.org"\n',
    'team.github = "theirs"\n',
    'team.role = "reproducer"\n',
    'team.repository = "theirs"\n',
    'cloud_id = "theirs:dGhlaXJzLmV4YW1wbGUkZXM="\n',
    f'fingerprint = "{"0" * 64}"\n',
    'proxy = "http://theirs:3128"\n',
)


@pytest.mark.parametrize("text", HARMFUL)
def test_settings_of_an_untrusted_project_file_are_refused(folders: Folders, text: str) -> None:
    folders.project_file.write_text(f"# ours\n{text}")
    name = text.partition(" ")[0]
    with pytest.raises(UsageError) as refused:
        resolution({}, {"SEARCHAPP_API_KEY": "hunter2"}, folders.work)
    message = str(refused.value)
    assert f"{folders.project_file} sets {name} (line 2), " in message and "hunter2" not in message
    assert f'add trusted = ["{folders.project}"] to {folders.user_file}' in message
    # Following the message helps.
    folders.user("", trusting=True)
    assert resolution({}, {}, folders.work).values[name].source.origin is Origin.project
    folders.user("")
    ignoring = resolution({}, {"SEARCHAPP_PROJECT": "0"}, folders.work)
    assert ignoring.values[name].source.origin is Origin.default and ignoring.project_file is None


def test_an_untrusted_project_file_is_accepted_if_nearer_sources_override_it(folders: Folders) -> None:
    folders.project_file.write_text('url = "http://theirs:9200"\nindex_prefix = "theirs"\n')
    result = resolution({"url": "http://ours:9200"}, {"SEARCHAPP_INDEX_PREFIX": "lab"}, folders.work)
    assert (result.settings.url, result.settings.index_prefix) == ("http://ours:9200", "lab")


def test_harmful_has_every_setting_of_project_files() -> None:
    names = {text.partition(" ")[0] for text in HARMFUL}
    assert names == {setting.name for setting in DECLARED if setting.by_project}, "add the setting to HARMFUL"


def test_all_untrusted_settings_are_named_together(folders: Folders) -> None:
    folders.project_file.write_text('url = "http://theirs:9200"\nindex_prefix = "x"\nshared = true\n')
    with pytest.raises(
        UsageError, match=r"sets url \(line 1\), index_prefix \(line 2\) and shared \(line 3\),"
    ):
        resolution({}, {}, folders.work)


def test_an_untrusted_project_file_may_repeat_values_of_other_sources(folders: Folders) -> None:
    folders.project_file.write_text('url = "http://ours:9200"\nindex_prefix = "lab"\nengine = "embedded"\n')
    folders.user('url = "http://ours:9200"\nengine = "embedded"\n')
    result = resolution({}, {"SEARCHAPP_INDEX_PREFIX": "lab"}, folders.work)
    assert result.project_file == folders.project_file and not result.is_project_file_used
    assert result.values["url"].source.origin is Origin.user
    # The same address in a project file would choose the engine.
    folders.project_file.write_text('url = "http://ours:9200"\n')
    with pytest.raises(UsageError, match=r"sets url \(line 1\)"):
        resolution({}, {}, folders.work)


def test_a_project_file_must_not_set_trust_or_annotator(folders: Folders) -> None:
    for text in (f'trusted = ["{folders.project}"]\n', "project = true\n", 'annotator = "ann"\n'):
        folders.project_file.write_text(f'{text}url = "http://theirs:9200"\n')
        with pytest.raises(InvalidFiles, match="must not be set in a project file: use "):
            resolution({}, {}, folders.work)


def test_the_users_file_is_not_read_from_the_home_of_a_project(folders: Folders) -> None:
    theirs = folders.project / "theirs"
    theirs.mkdir()
    folders.project_file.write_text('home = "theirs"\n')
    (theirs / "settings.toml").write_text(f'trusted = ["{folders.project}"]\nurl = "http://theirs:9200"\n')
    with pytest.raises(UsageError, match="sets home"):
        resolution({}, {}, folders.work)
    folders.user('annotator = "ann"\n', trusting=True)
    settings = resolution({}, {}, folders.work).settings
    assert settings.home == theirs and settings.annotator == "ann" and not settings.url_given


def test_a_trusted_project_may_set_its_home(folders: Folders) -> None:
    folders.project_file.write_text('home = ".searchapp"\n')
    folders.user('annotator = "ann"\n', trusting=True)
    settings = resolution({}, {}, folders.work).settings
    assert settings.home == folders.project / ".searchapp"
    assert settings.of_user == folders.home and settings.annotator == "ann"
    other = resolution({"home": folders.home}, {}, folders.work).settings
    assert other.home == other.of_user == folders.home


def test_trust_applies_below_a_folder_and_through_links(folders: Folders, tmp_path: Path) -> None:
    folders.project_file.write_text('index_prefix = "lab"\n')
    for trusted in (tmp_path, folders.project):
        folders.user(f'trusted = ["/nowhere", "{trusted}"]\n')
        assert resolution({}, {}, folders.work).settings.index_prefix == "lab"
    (tmp_path / "link").symlink_to(folders.project)
    folders.user(f'trusted = ["{tmp_path / "link"}"]\n')
    assert resolution({}, {}, folders.work).settings.index_prefix == "lab"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for other in (folders.work, tmp_path / "proj", tmp_path / "loop"):
        folders.user(f'trusted = ["{other}"]\n')
        with pytest.raises(UsageError) as refused:
            resolution({}, {}, folders.work)
        assert f'add "{folders.project}" to trusted in {folders.user_file}' in str(refused.value)


def test_the_flag_home_also_selects_the_users_file(folders: Folders, tmp_path: Path) -> None:
    folders.user('index_prefix = "lab"\n')
    assert resolution({}, {}, folders.work).settings.index_prefix == "lab"
    other = resolution({"home": tmp_path / "other"}, {}, folders.work)
    assert other.settings.index_prefix == BY_NAME["index_prefix"].default
    assert other.user_file == tmp_path / "other" / "settings.toml" and not other.is_user_file_there
