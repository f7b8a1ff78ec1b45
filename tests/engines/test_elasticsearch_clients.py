"""Connections to servers: versions, addresses, credentials, certificates, proxies and headers."""

from __future__ import annotations

import gc
import hashlib
import logging
import ssl
import stat
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import elasticsearch
import pytest
import trustme

from searchapp.config.credentials import forget_secrets
from searchapp.config.settings import SecretSource, Settings, address_of_cloud
from searchapp.engines.elasticsearch import ElasticsearchEngine, client
from searchapp.engines.elasticsearch import client as client_module
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.errors import EngineRefused, EngineUnreachable, SearchappError, UsageError
from tests.engines.conftest import GROUPS, match, spec_of
from tests.server.faults import (
    FaultProxy,
    HttpProxy,
    LoopbackServer,
    OldElasticsearch,
    OpenSearch,
    Request,
    Response,
    StrangeElasticsearch,
)
from tests.server.node import Node, free_port
from tests.server.rest import Server

MakeSettings = Callable[..., Settings]
ABOUT = {"version": {"number": "9.4.3"}}
OWN_MAJOR = elasticsearch.__version__[0]
"""The major version of the client library, which it uses for servers of this version or newer."""

# The client library leaves sockets with failed TLS handshakes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:.*ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collect_sockets(quick_collection: None) -> Iterator[None]:
    """Collect such sockets within their test, and forget secrets."""
    yield
    gc.collect()
    forget_secrets()


def version(settings: Settings) -> str:
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        return engine.info().version


def refusal(settings: Settings) -> SearchappError:
    with pytest.raises(SearchappError) as error:
        version(settings)
    assert "\n" not in str(error.value)
    return error.value


# Versions


@pytest.mark.parametrize("number", ["8.19.0", "8.19.13", "8.20.1"])
def test_requests_to_version_8_have_its_version(tmp_path: Path, number: str) -> None:
    with OldElasticsearch(number) as server:
        with closing(Connection.open(Settings(home=tmp_path, url=server.url))) as connection:
            assert connection.server.version == number
            connection.look_up("look", lambda client: client.indices.get(index="x"))
        first, *later = server.requests
    assert first.headers["accept"] == "application/json"
    assert [request.headers["accept"] for request in later] == [
        "application/vnd.elasticsearch+json; compatible-with=8"
    ]


def test_requests_to_version_9_have_the_version_of_the_client(
    fault_proxy: FaultProxy, settings_for: MakeSettings
) -> None:
    with closing(Connection.open(settings_for(fault_proxy.url))) as connection:
        major = min(int(connection.server.version.partition(".")[0]), OWN_MAJOR)
        connection.call("look", lambda client: client.info())
    assert f"compatible-with={major}" in fault_proxy.requests[-1].headers["accept"]


class PartlyUpgraded(OldElasticsearch):
    """A node of 9.x answers the first request, an older node of the same cluster the others."""

    def respond(self, request: Request) -> Response:
        return Response.of_json(200, ABOUT) if len(self.requests) == 1 else super().respond(request)


def test_a_node_of_version_8_in_a_cluster_of_version_9_is_supported(tmp_path: Path) -> None:
    with PartlyUpgraded("8.19.13") as server:
        with closing(Connection.open(Settings(home=tmp_path, url=server.url))) as connection:
            for _ in range(2):
                assert connection.call("look", lambda client: client.info())["version"]["number"] == "8.19.13"
        versions = [request.headers["accept"].rpartition("=")[2] for request in server.requests[1:]]
    # A client of version 8 uses this version in its first request and needs no second attempt.
    assert versions == (["9", "8", "8"] if OWN_MAJOR > 8 else ["8", "8"])


def test_without_the_right_to_see_the_version_requests_have_version_8(
    fault_proxy: FaultProxy, settings_for: MakeSettings
) -> None:
    fault_proxy.answer(403, "security_exception", method="GET", path="^/$")
    with closing(Connection.open(settings_for(fault_proxy.url))) as connection:
        assert connection.server.version == "unknown"
        connection.call("look", lambda client: client.info())
    assert "compatible-with=8" in fault_proxy.requests[-1].headers["accept"]


@pytest.mark.parametrize("number", ["2.19.1", "7.10.2", None, 3])
@pytest.mark.parametrize("names_itself", [True, False])
def test_an_opensearch_server_is_rejected_by_name_with_the_reason(
    tmp_path: Path, number: object, names_itself: bool
) -> None:
    with OpenSearch(number, names_itself) as server:
        error = refusal(Settings(home=tmp_path, url=server.url))
    assert isinstance(error, EngineRefused)
    name = f"OpenSearch {number}" if isinstance(number, str) else "OpenSearch"
    assert f"runs {name}, which searchapp does not support, because" in str(error)
    assert "use one of 8.19 and 9.x, or the embedded engine" in str(error)


def test_a_server_that_sends_no_product_header_is_too_old(tmp_path: Path) -> None:
    class Ancient(LoopbackServer):
        def respond(self, request: Request) -> Response:
            body = b'{"version": {"number": "6.8.23"}, "tagline": "You Know, for Search"}'
            return Response(200, {"Content-Type": "application/json"}, body)

    with Ancient() as server:
        error = refusal(Settings(home=tmp_path, url=server.url))
    assert "runs Elasticsearch 6.8.23, and searchapp works with 8.19 and 9.x: upgrade the server" in str(
        error
    )


# Addresses


def test_another_address_is_used_if_one_does_not_answer(
    fault_proxy: FaultProxy, settings_for: MakeSettings
) -> None:
    url = f"http://127.0.0.1:{free_port()},{fault_proxy.url}, http://127.0.0.1:{free_port()}"
    settings = settings_for(url)
    for _ in range(3):  # the client begins with a random one
        with closing(ElasticsearchEngine.connect(settings)) as engine:
            engine.build("groups", spec_of(GROUPS), GROUPS)
            (hits,) = engine.open("groups").search([match("field")])
            assert [hit.document_id for hit in hits] == ["3"]
            assert engine.info().location == settings.address


def test_an_address_that_fails_during_a_build_is_not_used_again(
    elasticsearch_url: str, settings_for: MakeSettings
) -> None:
    with FaultProxy(elasticsearch_url) as leaving, FaultProxy(elasticsearch_url) as staying:
        leaving.refuse_from(2, path="/_bulk$")
        with closing(ElasticsearchEngine.connect(settings_for(f"{leaving.url},{staying.url}"))) as engine:
            documents = [type(GROUPS[0])(str(number), f"group {number}") for number in range(3000)]
            built = engine.build("groups", spec_of(documents), documents)
            assert built.documents == 3000 and not engine.flaw("groups")
        assert staying.count(path="/_bulk$") >= 1


def test_a_hanging_address_is_abandoned_and_a_slow_one_is_not(
    elasticsearch_url: str,
    settings_for: MakeSettings,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A paused node accepts connections and does not answer; requests keep their timeout of 60 s."""
    monkeypatch.setattr(client, "ALIVE_AFTER_SECONDS", 0.3)
    monkeypatch.setattr(client, "ALIVE_SECONDS", 0.3)
    settings = settings_for(f"{fault_proxy.url},{elasticsearch_url}")
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        fault_proxy.delay(1.0, path="_bulk$")
        assert engine.build("slow", spec_of(GROUPS), GROUPS).documents == 4
        assert fault_proxy.count(path="_bulk$") <= 1, (
            "the slow address got the request once and was waited for"
        )
        fault_proxy.delay(20.0, None)
        start = time.monotonic()
        assert engine.build("hangs", spec_of(GROUPS), GROUPS).documents == 4
        assert time.monotonic() - start < 15


def test_no_server_at_any_address(tmp_path: Path) -> None:
    first, second = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    error = refusal(Settings(home=tmp_path, url=f"{first},{second}"))
    assert isinstance(error, EngineUnreachable)
    assert f"no Elasticsearch answers at {first}, {second}, so searchapp could not connect" in str(error)


@pytest.mark.parametrize("url", ["http://a:9200,b:9200", "http://a:9200,http://", "http://a:9200,ftp://b"])
def test_one_invalid_address_among_several(tmp_path: Path, url: str) -> None:
    assert "is not the address of a server" in str(refusal(Settings(home=tmp_path, url=url)))


def test_a_password_in_one_address_is_used_for_all_and_two_passwords_are_rejected(
    secured_node: Node, settings_for: MakeSettings
) -> None:
    with_password = secured_node.url.replace("://", f"://elastic:{secured_node.password}@")
    settings = settings_for(f"{with_password},{secured_node.url}", ca_certs=secured_node.ca_certs)
    for _ in range(4):
        assert version(settings) == version(settings)
    other_password = secured_node.url.replace("://", "://elastic:other@")
    error = refusal(settings_for(f"{with_password},{other_password}", ca_certs=secured_node.ca_certs))
    assert isinstance(error, UsageError) and "the addresses contain different user names or passwords" in str(
        error
    )


@pytest.mark.parametrize(
    ("content", "address"),
    [
        ("eu-west-1.aws.found.io$abc123$def", "https://abc123.eu-west-1.aws.found.io:443"),
        ("example.com:9243$es.name$", "https://es.name.example.com:9243"),
        ("example.com$es", "https://es.example.com:443"),
    ],
)
def test_a_cloud_id_gives_the_address_that_the_client_library_gives(content: str, address: str) -> None:
    from elastic_transport.client_utils import parse_cloud_id

    cloud_id = f"my:name:{b64encode(content.encode()).decode()}"
    assert address_of_cloud(cloud_id) == address
    parsed = parse_cloud_id(cloud_id.removeprefix("my:")).es_address
    assert parsed is not None and f"https://{parsed[0]}:{parsed[1]}" == address


# Credentials


def test_an_api_key_and_a_token_of_a_service_account(secured_node: Node, settings_for: MakeSettings) -> None:
    server = secured_node.server
    key = server.request("POST", "/_security/api_key", {"name": "mine"}).json()["encoded"]
    path = "/_security/service/elastic/fleet-server/credential/token/searchapp"
    token = server.request("POST", path).json()["token"]["value"]
    for credentials in ({"api_key": key}, {"bearer_token": token}):
        assert "." in version(settings_for(secured_node.url, ca_certs=secured_node.ca_certs, **credentials))
    for wrong in ({"api_key": key[:-4] + "AAA="}, {"bearer_token": token[:-4] + "AAAA"}):
        error = refusal(settings_for(secured_node.url, ca_certs=secured_node.ca_certs, **wrong))
        assert isinstance(error, EngineRefused)
        assert (
            "does not accept the credentials: check the user name and password, API key or bearer token"
            in str(error)
        )


def secret_file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_password_from_a_file_or_a_command(
    secured_node: Node, settings_for: MakeSettings, tmp_path: Path
) -> None:
    path = secret_file(tmp_path / "password", f"{secured_node.password}\n")
    for source in (
        SecretSource("password_file", path=path),
        SecretSource("password_command", command=f"cat '{path}'"),
    ):
        assert "." in version(
            settings_for(
                secured_node.url, username="elastic", password=source, ca_certs=secured_node.ca_certs
            )
        )


def test_a_command_runs_once_and_again_after_its_secret_was_rejected(
    secured_node: Node, settings_for: MakeSettings, tmp_path: Path
) -> None:
    script = secret_file(
        tmp_path / "script", f"#!/bin/sh\necho x >> {tmp_path}/calls\ncat {tmp_path}/password\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    secret_file(tmp_path / "password", "wrong")
    settings = settings_for(
        secured_node.url,
        username="elastic",
        password=SecretSource("password_command", command=str(script)),
        ca_certs=secured_node.ca_certs,
    )
    assert "does not accept the credentials" in str(refusal(settings))
    secret_file(tmp_path / "password", str(secured_node.password))
    for _ in range(3):
        assert "." in version(settings)
    assert (tmp_path / "calls").read_text().count("x") == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"command": "no-such-program hunter2"}, "the command in K can't be run"),
        ({"command": "sh -c 'exit 3' hunter2"}, "the command in K failed with exit code 3: run it yourself"),
        ({"command": "echo 'unclosed hunter2"}, "the command in K can't be run"),
        ({"command": "   "}, "the command in K can't be run"),
        (
            {"command": "printf 'hunter2\\nsecond\\n'"},
            "the command in K must be only the secret, in one line",
        ),
        (
            {"command": "yes hunter2"},
            "the command in K printed more than 16,384 bytes: it must print only the secret",
        ),
        ({"command": "sh -c 'sleep 30; echo hunter2'"}, "the command in K took longer than 1 s"),
        ({"command": "sh -c 'sleep 30 & echo hunter2'"}, "the command in K took longer than 1 s"),
        ({"command": "true hunter2"}, "the command in K must be only the secret, in one line"),
        ({"command": "printf '\\377hunter2'"}, "the command in K is not UTF-8 text"),
        (
            {"path": Path("/nowhere/password")},
            "can't be read (No such file or directory): K must name a file",
        ),
        ({"path": Path("/")}, "can't be read"),
    ],
)
def test_the_error_for_an_unreadable_secret_gives_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any], message: str
) -> None:
    if "sleep" in str(source):
        monkeypatch.setattr("searchapp.config.credentials.COMMAND_SECONDS", 1.0)
    settings = Settings(home=tmp_path, url="http://127.0.0.1:9", api_key=SecretSource("K", **source))
    error = refusal(settings)
    assert isinstance(error, UsageError) and message in str(error) and "hunter2" not in str(error)


def test_a_command_does_not_get_the_secrets_of_searchapp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_API_KEY", "hunter2")
    monkeypatch.setenv("SEARCHAPP_HEADERS", "X-Key: hunter2")
    source = SecretSource("K", command=f"sh -c 'env > {tmp_path}/environ; echo key'")
    with StrangeElasticsearch(ABOUT) as server:
        version(Settings(home=tmp_path, url=server.url, api_key=source))
        assert server.requests[0].headers["authorization"] == "ApiKey key"
    environ = (tmp_path / "environ").read_text()
    assert "PATH=" in environ and "hunter2" not in environ


# Secrets without TLS


SECRETS: list[dict[str, Any]] = [
    {"api_key": "hunter2"},
    {"bearer_token": "hunter2"},
    {"username": "me", "password": "hunter2"},
    {"headers": (("X-Gate", "hunter2"),)},
    {"url": "http://me:hunter2@192.0.2.1:9200"},
    {"url": "https://192.0.2.1,http://me:hunter2@192.0.2.1:9200"},
]


@pytest.mark.parametrize("values", SECRETS)
def test_secrets_are_sent_to_another_machine_only_with_tls(tmp_path: Path, values: dict[str, Any]) -> None:
    settings = Settings(**{"home": tmp_path, "url": "http://192.0.2.1:9200", **values})
    error = refusal(settings)
    assert isinstance(error, UsageError) and "hunter2" not in str(error)
    assert "http://192.0.2.1:9200 has no TLS" in str(error) and "--insecure" in str(error)
    allowed = Settings(**{"home": tmp_path, "url": "http://192.0.2.1:9200", "insecure": True, **values})
    client_module.make_client(allowed, 1.0)[0].close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.1.2.3"])
def test_secrets_are_sent_to_this_machine_without_tls(tmp_path: Path, host: str) -> None:
    settings = Settings(home=tmp_path, url=f"http://{host}:9200", api_key="key")
    client_module.make_client(settings, 1.0)[0].close()


@pytest.mark.parametrize(
    "host", ["127.0.0.1.example", "0.0.0.0", "10.0.0.1", "localhost.example", "[fe80::1]"]
)
def test_similar_names_are_not_this_machine(tmp_path: Path, host: str) -> None:
    settings = Settings(home=tmp_path, url=f"http://{host}:9200", api_key="key")
    with pytest.raises(UsageError, match="has no TLS"):
        client_module.make_client(settings, 1.0)


def test_behind_a_proxy_localhost_is_another_machine(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, url="http://localhost:9200", api_key="key", proxy="http://there:3128")
    with pytest.raises(UsageError, match="has no TLS"):
        client_module.make_client(settings, 1.0)


# Certificates


def fingerprint(pem: bytes) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()


def test_a_server_is_trusted_by_the_fingerprint_of_its_certificate(
    secured_node: Node, settings_for: MakeSettings
) -> None:
    certificate = ssl.get_server_certificate(("127.0.0.1", int(secured_node.url.rpartition(":")[2])))
    settings = settings_for(
        secured_node.url,
        username="elastic",
        password=secured_node.password,
        fingerprint=fingerprint(certificate.encode()),
    )
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        assert engine.build("groups", spec_of(GROUPS), GROUPS).documents == len(GROUPS)
        engine.remove("groups")
    error = refusal(settings_for(secured_node.url, username="elastic", password="x", fingerprint="0" * 64))
    assert isinstance(error, EngineUnreachable)
    assert "has no certificate with the fingerprint in SEARCHAPP_FINGERPRINT: ask its administrator" in str(
        error
    )


def tls_context(*chain: trustme.Blob, key: trustme.Blob, folder: Path) -> ssl.SSLContext:
    """Return the TLS context of a server with a chain of certificates."""
    path = folder / "chain.pem"
    path.write_bytes(b"".join(certificate.bytes() for certificate in chain))
    (folder / "key.pem").write_bytes(key.bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, folder / "key.pem")
    return context


def test_a_server_is_trusted_by_the_fingerprint_of_its_authority(tmp_path: Path) -> None:
    """A server prints this fingerprint at its first start; the host name in its certificate does not matter."""
    authority = trustme.CA()
    leaf = authority.issue_cert("elsewhere.example")
    context = tls_context(
        leaf.cert_chain_pems[0], authority.cert_pem, key=leaf.private_key_pem, folder=tmp_path
    )
    with StrangeElasticsearch(ABOUT, context) as server:
        settings = Settings(
            home=tmp_path,
            url=server.url.replace("http", "https"),
            api_key="key",
            fingerprint=fingerprint(authority.cert_pem.bytes()),
        )
        assert version(settings) == "9.4.3"
        assert [request.headers["authorization"] for request in server.requests] == ["ApiKey key"]


def test_an_authority_that_did_not_sign_the_certificate_is_not_trusted(tmp_path: Path) -> None:
    """An attacker can send the authority's certificate after a forged one that claims to be signed by it."""
    authority, forged = trustme.CA(organization_name="Real"), trustme.CA(organization_name="Real")
    leaf = forged.issue_cert("127.0.0.1")
    for chain in (
        (leaf.cert_chain_pems[0], authority.cert_pem),
        (leaf.cert_chain_pems[0], forged.cert_pem, authority.cert_pem),
    ):
        context = tls_context(*chain, key=leaf.private_key_pem, folder=tmp_path)
        with StrangeElasticsearch(ABOUT, context) as server:
            settings = Settings(
                home=tmp_path,
                url=server.url.replace("http", "https"),
                api_key="key",
                fingerprint=fingerprint(authority.cert_pem.bytes()),
            )
            assert isinstance(refusal(settings), EngineUnreachable)
            assert server.requests == []


def test_a_certificate_that_is_replaced_while_a_command_runs_is_not_trusted(tmp_path: Path) -> None:
    authority, second_authority = trustme.CA(), trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    context = tls_context(leaf.cert_chain_pems[0], key=leaf.private_key_pem, folder=tmp_path)
    with StrangeElasticsearch(ABOUT, context) as server:
        settings = Settings(
            home=tmp_path,
            url=server.url.replace("http", "https"),
            fingerprint=fingerprint(leaf.cert_chain_pems[0].bytes()),
        )
        with closing(Connection.open(settings)) as connection:
            new_leaf = second_authority.issue_cert("127.0.0.1")
            tls_context(new_leaf.cert_chain_pems[0], key=new_leaf.private_key_pem, folder=tmp_path)
            context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
            with pytest.raises(
                EngineUnreachable, match="a certificate that this machine does not trust: .* was replaced"
            ):
                connection.call("look", lambda client: client.info())


def test_a_fingerprint_needs_tls(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, url="https://a:9200,http://b:9200", fingerprint="0" * 64)
    assert "begin each address with https" in str(refusal(settings))


def test_only_the_given_file_of_authorities_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client library alone would add the authorities of the package certifi."""
    public, own = trustme.CA(), trustme.CA()
    public.cert_pem.write_to_path(str(tmp_path / "certifi.pem"))
    own.cert_pem.write_to_path(str(tmp_path / "own.pem"))
    monkeypatch.setattr(
        "elastic_transport._node._http_urllib3.DEFAULT_CA_CERTS", str(tmp_path / "certifi.pem")
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    public.issue_cert("127.0.0.1").configure_cert(context)
    with StrangeElasticsearch(ABOUT, context) as server:
        url = server.url.replace("http", "https")
        error = refusal(Settings(home=tmp_path, url=url, ca_certs=tmp_path / "own.pem"))
    assert "a certificate that this machine does not trust: set SEARCHAPP_CA_CERTS" in str(error)


# Proxies and headers


def test_a_server_is_reached_through_a_proxy(elasticsearch_url: str, settings_for: MakeSettings) -> None:
    with HttpProxy() as proxy:
        with closing(ElasticsearchEngine.connect(settings_for(elasticsearch_url, proxy=proxy.url))) as engine:
            assert engine.build("groups", spec_of(GROUPS), GROUPS).documents == len(GROUPS)
        assert f"GET {elasticsearch_url}/" in proxy.request_lines and len(proxy.request_lines) > 10


@pytest.mark.parametrize("option", ["ca_certs", "fingerprint"])
def test_a_server_with_tls_is_reached_through_a_tunnel(
    secured_node: Node, settings_for: MakeSettings, option: str
) -> None:
    address = secured_node.url.removeprefix("https://")
    certificate = ssl.get_server_certificate(("127.0.0.1", int(address.rpartition(":")[2])))
    values = {"ca_certs": secured_node.ca_certs, "fingerprint": fingerprint(certificate.encode())}
    credentials = {"username": "elastic", "password": secured_node.password, option: values[option]}
    authorization = "Basic " + b64encode(b"me:p@ss").decode()
    with HttpProxy(authorization) as proxy:
        with_password = proxy.url.replace("://", "://me:p%40ss@")
        assert "." in version(settings_for(secured_node.url, proxy=with_password, **credentials))
        assert set(proxy.request_lines) == {f"CONNECT {address}"}
        error = refusal(settings_for(secured_node.url, proxy=proxy.url, **credentials))
        assert isinstance(error, EngineUnreachable)


def test_every_request_has_the_headers_and_opaque_id_and_is_logged(
    fault_proxy: FaultProxy, settings_for: MakeSettings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="searchapp.requests")
    settings = settings_for(
        fault_proxy.url, headers=(("X-Team", "hunter2"),), opaque_id="searchapp/index/1234", api_key="hunter2"
    )
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        engine.build("groups", spec_of(GROUPS), GROUPS)
    for request in fault_proxy.requests:
        assert request.headers["x-team"] == "hunter2"
        assert request.headers["x-opaque-id"] == "searchapp/index/1234"
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == len(fault_proxy.requests)
    assert all(line.endswith("searchapp/index/1234") and "hunter2" not in line for line in lines)
    (bulk,) = (line for line in lines if "_bulk" in line)
    (bulk_request,) = (request for request in fault_proxy.requests if request.path.endswith("_bulk"))
    assert f"PUT {bulk_request.path} at {fault_proxy.url}: 200, " in bulk
    assert f" ms, {len(bulk_request.body)} bytes sent, " in bulk


def test_failed_requests_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="searchapp.requests")
    refusal(Settings(home=tmp_path, url=f"http://127.0.0.1:{free_port()}"))
    (line,) = (record.getMessage() for record in caplog.records if record.name == "searchapp.requests")
    assert "ConnectionError, " in line


def test_the_opaque_id_reaches_the_tasks_of_the_server(
    elasticsearch_url: str, settings_for: MakeSettings
) -> None:
    settings = settings_for(elasticsearch_url, opaque_id="searchapp/test/5678")
    with closing(Connection.open(settings)) as connection:
        headers = {"accept": "application/json"}
        tasks = connection.client.perform_request(
            "GET", "/_tasks?actions=*lists&detailed", headers=headers
        ).body
    task_headers = [task["headers"] for node in tasks["nodes"].values() for task in node["tasks"].values()]
    assert {"X-Opaque-Id": "searchapp/test/5678"} in task_headers
    assert Server(elasticsearch_url).request("GET", "/").status == 200
