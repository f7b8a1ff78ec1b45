"""Connections to a server: addresses, versions, credentials, certificates and errors."""

from __future__ import annotations

import gc
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trustme

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.connection import reason
from searchapp.errors import EngineRefused, EngineUnreachable, SearchappError, UsageError
from tests.server import distribution
from tests.server.faults import StrangeElasticsearch
from tests.server.node import Node, free_port

MakeSettings = Callable[..., Settings]

# The client library leaves sockets with failed TLS handshakes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:.*ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collect_sockets() -> Iterator[None]:
    """Collect such sockets within their test; they are in the young generations."""
    yield
    gc.collect(1)


def connect(settings: Settings) -> str:
    """Connect, disconnect and return the server's version."""
    engine = ElasticsearchEngine.connect(settings)
    engine.close()
    return engine.info().version


def refusal(settings: Settings) -> SearchappError:
    """Return the error of connecting."""
    with pytest.raises(SearchappError) as error:
        connect(settings)
    assert "\n" not in str(error.value)
    return error.value


def test_the_server_reports_its_version(elasticsearch_url: str, settings_for: MakeSettings) -> None:
    assert connect(settings_for(elasticsearch_url)) in distribution.RELEASES


def test_no_server_at_the_address(tmp_path: Path) -> None:
    error = refusal(Settings(home=tmp_path, url=f"http://127.0.0.1:{free_port()}"))
    assert isinstance(error, EngineUnreachable)
    assert "no Elasticsearch answers at" in str(error) and "SEARCHAPP_URL" in str(error)


def test_a_host_that_does_not_exist(tmp_path: Path) -> None:
    error = refusal(Settings(home=tmp_path, url="http://no-such-host.invalid:9200"))
    assert isinstance(error, EngineUnreachable)


@pytest.mark.parametrize(
    "url", ["localhost:9200", "ftp://localhost", "http://", "http://localhost:port", "///"]
)
def test_an_invalid_address(tmp_path: Path, url: str) -> None:
    error = refusal(Settings(home=tmp_path, url=url))
    assert isinstance(error, UsageError)
    assert "use the form http://localhost:9200" in str(error)


def test_a_password_in_the_address_is_never_shown(tmp_path: Path) -> None:
    error = refusal(Settings(home=tmp_path, url=f"http://me:secret@127.0.0.1:{free_port()}"))
    assert "secret" not in str(error)


@pytest.mark.parametrize("number", ["9", "9.4", "9.4.3-SNAPSHOT", "9.x", "v9.1.0", "10", "9.4.3.1+build"])
def test_new_versions_in_any_notation_are_accepted(tmp_path: Path, number: str) -> None:
    with StrangeElasticsearch({"version": {"number": number}}) as server:
        assert connect(Settings(home=tmp_path, url=server.url)) == number


@pytest.mark.parametrize("number", ["8", "8.18.4", "7.x", "0"])
def test_old_versions_in_any_notation_are_rejected(tmp_path: Path, number: str) -> None:
    with StrangeElasticsearch({"version": {"number": number}}) as server:
        error = refusal(Settings(home=tmp_path, url=server.url))
    assert f"runs Elasticsearch {number}, and searchapp works with 8.19 and 9.x: upgrade the server" in str(
        error
    )


@pytest.mark.parametrize("number", ["", "new", ".9", "-1", 9, 9.4, True, ["9"], {"9": 4}, "x" * 10_000])
def test_an_invalid_version_is_reported(tmp_path: Path, number: object) -> None:
    with StrangeElasticsearch({"version": {"number": number}}) as server:
        error = refusal(Settings(home=tmp_path, url=server.url))
    assert isinstance(error, EngineRefused) and len(str(error)) < 200
    assert "which is not one of Elasticsearch: check the address" in str(error)


@pytest.mark.parametrize(
    "about", [{}, {"version": {}}, {"version": None}, {"version": "9.4.3"}, [], "9.4.3", 9, None]
)
def test_a_server_without_a_version_is_reported(tmp_path: Path, about: object) -> None:
    with StrangeElasticsearch(about) as server:
        error = refusal(Settings(home=tmp_path, url=server.url))
    assert isinstance(error, EngineRefused) and "is not an Elasticsearch: it reports no version" in str(error)


def test_the_right_credentials_and_authority(secured_node: Node, settings_for: MakeSettings) -> None:
    settings = settings_for(
        secured_node.url,
        username=secured_node.username,
        password=secured_node.password,
        ca_certs=secured_node.ca_certs,
    )
    assert connect(settings) in distribution.RELEASES


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
    untrusted = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(untrusted))
    for ca_certs in (None, untrusted):
        error = refusal(settings_for(secured_node.url, username="elastic", password="x", ca_certs=ca_certs))
        assert isinstance(error, EngineUnreachable)
        assert "a certificate that this machine does not trust: set SEARCHAPP_CA_CERTS" in str(error)


def test_a_password_can_have_any_character(secured_node: Node, settings_for: MakeSettings) -> None:
    """The password is in a setting, or escaped in the address."""
    name, password = "robber", "pä:ss@wört€/?#"
    body = {"password": password, "roles": ["superuser"]}
    assert secured_node.server.request("PUT", f"/_security/user/{quote(name)}", body).status == 200
    own = settings_for(secured_node.url, username=name, password=password, ca_certs=secured_node.ca_certs)
    assert connect(own) in distribution.RELEASES
    url = secured_node.url.replace("://", f"://{quote(name, safe='')}:{quote(password, safe='')}@")
    assert connect(settings_for(url, ca_certs=secured_node.ca_certs)) in distribution.RELEASES


CERTIFICATES: dict[str, tuple[str, str, datetime, datetime]] = {
    "expired": (
        "127.0.0.1",
        "has expired: the server's administrator must renew it, unless this machine's clock is wrong",
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2021, 1, 1, tzinfo=UTC),
    ),
    "early": (
        "127.0.0.1",
        "is not valid yet: check the clocks of this machine and of the server",
        datetime(2090, 1, 1, tzinfo=UTC),
        datetime(2091, 1, 1, tzinfo=UTC),
    ),
    "another address": (
        "127.0.0.2",
        "is for another host name: use the host name in the certificate",
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2091, 1, 1, tzinfo=UTC),
    ),
    "another name": (
        "elasticsearch.example",
        "is for another host name: use the host name in the certificate",
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2091, 1, 1, tzinfo=UTC),
    ),
}


@pytest.mark.parametrize("kind", CERTIFICATES)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_error_names_the_problem_of_a_certificate(tmp_path: Path, kind: str, host: str) -> None:
    """The remedy differs, and is never to trust another authority."""
    identity, message, begins, ends = CERTIFICATES[kind]
    if host == "localhost" and "another" not in kind:
        identity = host
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(identity, not_before=begins, not_after=ends).configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with StrangeElasticsearch({"version": {"number": "9.4.3"}}, context) as server:
        url = server.url.replace("http", "https").replace("127.0.0.1", host)
        error = refusal(Settings(home=tmp_path, url=url, ca_certs=tmp_path / "ca.pem"))
    assert isinstance(error, EngineUnreachable)
    assert message in str(error) and "SEARCHAPP_CA_CERTS" not in str(error)


def test_a_self_signed_certificate_is_not_trusted(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with StrangeElasticsearch({"version": {"number": "9.4.3"}}, context) as server:
        error = refusal(Settings(home=tmp_path, url=server.url.replace("http", "https")))
    assert "a certificate that this machine does not trust: set SEARCHAPP_CA_CERTS" in str(error)


def test_a_missing_or_invalid_file_of_authorities(settings_for: MakeSettings, tmp_path: Path) -> None:
    url = "https://127.0.0.1:9200"
    assert "can't be read (No such file or directory)" in str(
        refusal(settings_for(url, ca_certs=tmp_path / "none.pem"))
    )
    (tmp_path / "ca.pem").write_text("not a certificate")
    assert "contains no certificates" in str(refusal(settings_for(url, ca_certs=tmp_path / "ca.pem")))


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
def test_the_innermost_reason_is_reported(error: Any, innermost: str) -> None:
    assert reason(error) == innermost
