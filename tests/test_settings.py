from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.config.resolution import resolve
from searchapp.config.settings import DEFAULT_URL
from searchapp.errors import UsageError


@pytest.fixture(autouse=True)
def _no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever runs the tests may have settings of their own."""
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path / "home")
    monkeypatch.chdir(tmp_path)


def test_a_flag_beats_the_environment_and_that_the_default() -> None:
    environ = {"SEARCHAPP_URL": "http://environment:9200"}
    assert resolve({}, {}).url == DEFAULT_URL
    assert resolve({"url": None}, environ).url == "http://environment:9200"
    assert resolve({"url": "http://flag:9200"}, environ).url == "http://flag:9200"


def test_every_variable_of_the_environment_is_read(tmp_path: Path) -> None:
    settings = resolve(
        {},
        {
            "SEARCHAPP_ENGINE": "elasticsearch",
            "SEARCHAPP_USERNAME": "me",
            "SEARCHAPP_PASSWORD": "secret",
            "SEARCHAPP_CA_CERTS": str(tmp_path / "ca.pem"),
            "SEARCHAPP_HOME": str(tmp_path),
            "SEARCHAPP_INDEX_PREFIX": "lab",
        },
    )
    assert (settings.username, settings.password) == ("me", "secret")
    assert settings.ca_certs == tmp_path / "ca.pem"
    assert settings.home == tmp_path
    assert settings.index_prefix == "lab"
    assert resolve({}, {"SEARCHAPP_API_KEY": "key"}).api_key == "key"


def test_an_empty_variable_is_as_good_as_none() -> None:
    assert resolve({}, {"SEARCHAPP_URL": "", "SEARCHAPP_API_KEY": ""}).api_key is None


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
def test_what_cannot_be_meant_is_refused(environ: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve({}, environ)


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
def test_an_address_selects_the_server_unless_an_engine_is_named(
    flags: dict[str, str], environ: dict[str, str], engine: str, chosen_by: str
) -> None:
    settings = resolve(flags, environ)
    assert (settings.engine, settings.engine_chosen_by) == (engine, chosen_by)


def test_a_variable_may_be_wrong_where_a_flag_comes_before_it() -> None:
    environ = {"SEARCHAPP_ENGINE": "solr"}
    assert resolve({"engine": "embedded"}, environ).engine == "embedded"
    assert resolve({"url": "http://a:1"}, environ).engine == "elasticsearch"
