from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.connection import reason
from searchapp.errors import EngineRefused, EngineUnreachable, SearchappError, UsageError
from searchapp.settings import Settings
from tests.server.node import Node, free_port

MakeSettings = Callable[..., Settings]

# A socket whose TLS handshake fails is left to the garbage collector by the client's library.
pytestmark = pytest.mark.filterwarnings("ignore:.*ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collects such sockets within the test that made them."""
    yield
    gc.collect()


def connect(settings: Settings) -> str:
    """Connect, disconnect, and tell the server's version."""
    engine = ElasticsearchEngine.connect(settings)
    engine.close()
    return engine.info().version


def refusal(settings: Settings) -> SearchappError:
    """The error that connecting ends with."""
    with pytest.raises(SearchappError) as caught:
        connect(settings)
    assert "\n" not in str(caught.value)
    return caught.value


def test_the_server_tells_its_version(elasticsearch_url: str, settings_for: MakeSettings) -> None:
    assert connect(settings_for(elasticsearch_url)).startswith("9.")


def test_nobody_at_the_address(tmp_path: Path) -> None:
    error = refusal(Settings(home=tmp_path, url=f"http://127.0.0.1:{free_port()}"))
    assert isinstance(error, EngineUnreachable)
    assert "no Elasticsearch answers at" in str(error) and "SEARCHAPP_URL" in str(error)


def test_a_host_that_does_not_exist(tmp_path: Path) -> None:
    error = refusal(Settings(home=tmp_path, url="http://no-such-host.invalid:9200"))
    assert isinstance(error, EngineUnreachable)


@pytest.mark.parametrize(
    "url", ["localhost:9200", "ftp://localhost", "http://", "http://localhost:port", "///"]
)
def test_an_address_that_is_none(tmp_path: Path, url: str) -> None:
    error = refusal(Settings(home=tmp_path, url=url))
    assert isinstance(error, UsageError)
    assert "use the form http://localhost:9200" in str(error)


def test_a_password_in_the_address_is_never_shown(tmp_path: Path) -> None:
    error = refusal(Settings(home=tmp_path, url=f"http://me:secret@127.0.0.1:{free_port()}"))
    assert "secret" not in str(error)


def test_the_right_credentials_and_authority(secured_node: Node, settings_for: MakeSettings) -> None:
    settings = settings_for(
        secured_node.url,
        username=secured_node.username,
        password=secured_node.password,
        ca_certs=secured_node.ca_certs,
    )
    assert connect(settings).startswith("9.")


@pytest.mark.parametrize(
    "credentials", [{}, {"username": "elastic", "password": "wrong"}, {"api_key": "d3Jvbmc6d3Jvbmc="}]
)
def test_wrong_credentials(
    secured_node: Node, settings_for: MakeSettings, credentials: dict[str, str]
) -> None:
    error = refusal(settings_for(secured_node.url, ca_certs=secured_node.ca_certs, **credentials))
    assert isinstance(error, EngineRefused)
    assert "does not accept the credentials" in str(error)


def test_a_wrong_authority(secured_node: Node, settings_for: MakeSettings, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    for ca_certs in (None, other):
        error = refusal(settings_for(secured_node.url, username="elastic", password="x", ca_certs=ca_certs))
        assert isinstance(error, EngineUnreachable)
        assert "a certificate that is not trusted here: set SEARCHAPP_CA_CERTS" in str(error)


def test_a_file_of_authorities_that_is_missing_or_none(settings_for: MakeSettings, tmp_path: Path) -> None:
    url = "https://127.0.0.1:9200"
    assert "can't be read (No such file or directory)" in str(
        refusal(settings_for(url, ca_certs=tmp_path / "none.pem"))
    )
    (tmp_path / "ca.pem").write_text("not a certificate")
    assert "holds no certificates" in str(refusal(settings_for(url, ca_certs=tmp_path / "ca.pem")))


def test_http_and_https_mixed_up(
    secured_node: Node, elasticsearch_url: str, settings_for: MakeSettings
) -> None:
    plain = refusal(settings_for(secured_node.url.replace("https", "http")))
    assert isinstance(plain, EngineUnreachable)
    tls = refusal(settings_for(elasticsearch_url.replace("http", "https")))
    assert isinstance(tls, EngineUnreachable)
    assert "is it an https address?" in str(tls)


@pytest.mark.parametrize(
    ("error", "innermost"),
    [
        ({"type": "a", "reason": "outer", "caused_by": {"type": "b", "reason": "inner"}}, "inner"),
        ({"root_cause": [{"type": "b", "reason": "root"}], "type": "a", "reason": "outer"}, "root"),
        ({"root_cause": [{"type": "a", "reason": "same"}], "type": "a", "reason": "same"}, "same"),
        ({"type": "only_a_type"}, "only_a_type"),
        ("text", "text"),
        (None, "None"),
    ],
)
def test_the_innermost_reason_is_told(error: Any, innermost: str) -> None:
    assert reason(error) == innermost
