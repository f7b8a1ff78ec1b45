"""How a server is reached: by which address, as whom, with which certificate, through what, in which version."""

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
"""The major version of the client library, which says what it speaks to servers that are as new or newer."""

# A socket whose TLS handshake fails is left to the garbage collector by the client's library.
pytestmark = pytest.mark.filterwarnings("ignore:.*ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected(quick_collection: None) -> Iterator[None]:
    """Collects such sockets within the test that made them, and forgets secrets that were read."""
    yield
    gc.collect()
    client_module.forget_secrets()


def version(settings: Settings) -> str:
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        return engine.info().version


def refusal(settings: Settings) -> SearchappError:
    with pytest.raises(SearchappError) as caught:
        version(settings)
    assert "\n" not in str(caught.value)
    return caught.value


# Versions


@pytest.mark.parametrize("number", ["8.19.0", "8.19.13", "8.20.1"])
def test_version_8_is_spoken_to_in_its_own_version(tmp_path: Path, number: str) -> None:
    with OldElasticsearch(number) as server:
        with closing(Connection.open(Settings(home=tmp_path, url=server.url))) as connection:
            assert connection.server.version == number
            connection.look_up("look", lambda client: client.indices.get(index="x"))
        first, *others = server.requests
    assert first.headers["accept"] == "application/json"
    assert [one.headers["accept"] for one in others] == [
        "application/vnd.elasticsearch+json; compatible-with=8"
    ]


def test_version_9_is_spoken_to_in_the_clients_own_version(
    fault_proxy: FaultProxy, settings_for: MakeSettings
) -> None:
    with closing(Connection.open(settings_for(fault_proxy.url))) as connection:
        asked = min(int(connection.server.version.partition(".")[0]), OWN_MAJOR)
        connection.call("look", lambda client: client.info())
    assert f"compatible-with={asked}" in fault_proxy.requests[-1].headers["accept"]


class Upgraded(OldElasticsearch):
    """A node of 9.x answers at first, then one in the same cluster that is not upgraded yet."""

    def respond(self, request: Request) -> Response:
        return Response.of_json(200, ABOUT) if len(self.requests) == 1 else super().respond(request)


def test_a_node_of_version_8_among_others_of_9_is_understood(tmp_path: Path) -> None:
    with Upgraded("8.19.13") as server:
        with closing(Connection.open(Settings(home=tmp_path, url=server.url))) as connection:
            for _ in range(2):
                assert connection.call("look", lambda client: client.info())["version"]["number"] == "8.19.13"
        versions = [one.headers["accept"].rpartition("=")[2] for one in server.requests[1:]]
    # A client of version 8 speaks this version from the first request, which then needs no second attempt.
    assert versions == (["9", "8", "8"] if OWN_MAJOR > 8 else ["8", "8"])


def test_who_may_not_ask_for_the_version_speaks_as_both_understand(
    fault_proxy: FaultProxy, settings_for: MakeSettings
) -> None:
    fault_proxy.answer(403, "security_exception", method="GET", path="^/$")
    with closing(Connection.open(settings_for(fault_proxy.url))) as connection:
        assert connection.server.version == "unknown"
        connection.call("look", lambda client: client.info())
    assert "compatible-with=8" in fault_proxy.requests[-1].headers["accept"]


@pytest.mark.parametrize("number", ["2.19.1", "7.10.2", None, 3])
@pytest.mark.parametrize("names_itself", [True, False])
def test_an_opensearch_is_refused_by_name_with_the_reason(
    tmp_path: Path, number: object, names_itself: bool
) -> None:
    with OpenSearch(number, names_itself) as server:
        error = refusal(Settings(home=tmp_path, url=server.url))
    assert isinstance(error, EngineRefused)
    name = f"OpenSearch {number}" if isinstance(number, str) else "OpenSearch"
    assert f"runs {name}, which searchapp does not support, because" in str(error)
    assert "use one of 8.19 and 9.x, or the embedded engine" in str(error)


def test_a_server_from_before_they_named_themselves_is_too_old(tmp_path: Path) -> None:
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


def test_another_address_is_asked_when_one_does_not_answer(
    fault_proxy: FaultProxy, settings_for: MakeSettings
) -> None:
    url = f"http://127.0.0.1:{free_port()},{fault_proxy.url}, http://127.0.0.1:{free_port()}"
    settings = settings_for(url)
    for _ in range(3):  # the client begins with any of them
        with closing(ElasticsearchEngine.connect(settings)) as engine:
            engine.build("groups", spec_of(GROUPS), GROUPS)
            (hits,) = engine.open("groups").search([match("field")])
            assert [hit.document_id for hit in hits] == ["3"]
            assert engine.info().location == settings.address


def test_an_address_that_goes_in_the_middle_is_left_alone(
    elasticsearch_url: str, settings_for: MakeSettings
) -> None:
    with FaultProxy(elasticsearch_url) as leaving, FaultProxy(elasticsearch_url) as staying:
        leaving.refuse_from(2, path="/_bulk$")
        with closing(ElasticsearchEngine.connect(settings_for(f"{leaving.url},{staying.url}"))) as engine:
            documents = [type(GROUPS[0])(str(number), f"group {number}") for number in range(3000)]
            built = engine.build("groups", spec_of(documents), documents)
            assert built.documents == 3000 and not engine.flaw("groups")
        assert staying.count(path="/_bulk$") >= 1


def test_an_address_that_hangs_is_given_up_soon_and_one_that_is_slow_is_not(
    elasticsearch_url: str,
    settings_for: MakeSettings,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node that is paused takes connections and answers nothing; requests keep their 60 s."""
    monkeypatch.setattr(client, "ALIVE_AFTER_SECONDS", 0.3)
    monkeypatch.setattr(client, "ALIVE_SECONDS", 0.3)
    settings = settings_for(f"{fault_proxy.url},{elasticsearch_url}")
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        fault_proxy.delay(1.0, path="_bulk$")
        assert engine.build("slow", spec_of(GROUPS), GROUPS).documents == 4
        assert fault_proxy.count(path="_bulk$") <= 1, "it was asked once, and waited for"
        fault_proxy.delay(20.0, None)
        begun = time.monotonic()
        assert engine.build("hangs", spec_of(GROUPS), GROUPS).documents == 4
        assert time.monotonic() - begun < 15


def test_nobody_at_any_of_the_addresses(tmp_path: Path) -> None:
    first, second = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    error = refusal(Settings(home=tmp_path, url=f"{first},{second}"))
    assert isinstance(error, EngineUnreachable)
    assert f"no Elasticsearch answers at {first}, {second}, so searchapp could not connect" in str(error)


@pytest.mark.parametrize("url", ["http://a:9200,b:9200", "http://a:9200,http://", "http://a:9200,ftp://b"])
def test_one_address_among_others_that_is_none(tmp_path: Path, url: str) -> None:
    assert "is not the address of a server" in str(refusal(Settings(home=tmp_path, url=url)))


def test_a_password_in_one_address_is_for_all_and_two_are_one_too_many(
    secured_node: Node, settings_for: MakeSettings
) -> None:
    with_password = secured_node.url.replace("://", f"://elastic:{secured_node.password}@")
    both = settings_for(f"{with_password},{secured_node.url}", ca_certs=secured_node.ca_certs)
    for _ in range(4):
        assert version(both) == version(both)
    other = secured_node.url.replace("://", "://elastic:other@")
    error = refusal(settings_for(f"{with_password},{other}", ca_certs=secured_node.ca_certs))
    assert isinstance(error, UsageError) and "the addresses contain different user names or passwords" in str(
        error
    )


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("eu-west-1.aws.found.io$abc123$def", "https://abc123.eu-west-1.aws.found.io:443"),
        ("example.com:9243$es.name$", "https://es.name.example.com:9243"),
        ("example.com$es", "https://es.example.com:443"),
    ],
)
def test_a_cloud_id_is_the_address_that_the_client_makes_of_it(told: str, address: str) -> None:
    from elastic_transport.client_utils import parse_cloud_id

    cloud_id = f"my:name:{b64encode(told.encode()).decode()}"
    assert address_of_cloud(cloud_id) == address
    parsed = parse_cloud_id(cloud_id.removeprefix("my:")).es_address
    assert parsed is not None and f"https://{parsed[0]}:{parsed[1]}" == address


# Who asks


def test_an_api_key_and_a_token_of_a_service_account(secured_node: Node, settings_for: MakeSettings) -> None:
    server = secured_node.server
    key = server.request("POST", "/_security/api_key", {"name": "mine"}).json()["encoded"]
    path = "/_security/service/elastic/fleet-server/credential/token/searchapp"
    token = server.request("POST", path).json()["token"]["value"]
    for who in ({"api_key": key}, {"bearer_token": token}):
        assert "." in version(settings_for(secured_node.url, ca_certs=secured_node.ca_certs, **who))
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
    for kept in (
        SecretSource("password_file", path=path),
        SecretSource("password_command", command=f"cat '{path}'"),
    ):
        assert "." in version(
            settings_for(secured_node.url, username="elastic", password=kept, ca_certs=secured_node.ca_certs)
        )


def test_a_command_is_asked_once_and_again_when_its_answer_was_refused(
    secured_node: Node, settings_for: MakeSettings, tmp_path: Path
) -> None:
    script = secret_file(
        tmp_path / "script", f"#!/bin/sh\necho x >> {tmp_path}/asked\ncat {tmp_path}/password\n"
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
    assert (tmp_path / "asked").read_text().count("x") == 2


@pytest.mark.parametrize(
    ("kept", "said"),
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
def test_a_secret_that_can_not_be_had_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any], said: str
) -> None:
    if "sleep" in str(kept):
        monkeypatch.setattr(client_module, "COMMAND_SECONDS", 1.0)
    settings = Settings(home=tmp_path, url="http://127.0.0.1:9", api_key=SecretSource("K", **kept))
    error = refusal(settings)
    assert isinstance(error, UsageError) and said in str(error) and "hunter2" not in str(error)


def test_a_command_does_not_get_the_secrets_of_this_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHAPP_API_KEY", "hunter2")
    monkeypatch.setenv("SEARCHAPP_HEADERS", "X-Key: hunter2")
    kept = SecretSource("K", command=f"sh -c 'env > {tmp_path}/environ; echo key'")
    with StrangeElasticsearch(ABOUT) as server:
        version(Settings(home=tmp_path, url=server.url, api_key=kept))
        assert server.requests[0].headers["authorization"] == "ApiKey key"
    environ = (tmp_path / "environ").read_text()
    assert "PATH=" in environ and "hunter2" not in environ


# Without TLS


SECRET: list[dict[str, Any]] = [
    {"api_key": "hunter2"},
    {"bearer_token": "hunter2"},
    {"username": "me", "password": "hunter2"},
    {"headers": (("X-Gate", "hunter2"),)},
    {"url": "http://me:hunter2@192.0.2.1:9200"},
    {"url": "https://192.0.2.1,http://me:hunter2@192.0.2.1:9200"},
]


@pytest.mark.parametrize("values", SECRET)
def test_a_secret_goes_to_another_machine_with_tls_only(tmp_path: Path, values: dict[str, Any]) -> None:
    settings = Settings(**{"home": tmp_path, "url": "http://192.0.2.1:9200", **values})
    error = refusal(settings)
    assert isinstance(error, UsageError) and "hunter2" not in str(error)
    assert "http://192.0.2.1:9200 has no TLS" in str(error) and "--insecure" in str(error)
    allowed = Settings(**{"home": tmp_path, "url": "http://192.0.2.1:9200", "insecure": True, **values})
    client_module.make_client(allowed, 1.0)[0].close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.1.2.3"])
def test_a_secret_goes_to_this_machine_without_tls(tmp_path: Path, host: str) -> None:
    settings = Settings(home=tmp_path, url=f"http://{host}:9200", api_key="key")
    client_module.make_client(settings, 1.0)[0].close()


@pytest.mark.parametrize(
    "host", ["127.0.0.1.example", "0.0.0.0", "10.0.0.1", "localhost.example", "[fe80::1]"]
)
def test_what_looks_like_this_machine_is_another_one(tmp_path: Path, host: str) -> None:
    settings = Settings(home=tmp_path, url=f"http://{host}:9200", api_key="key")
    with pytest.raises(UsageError, match="has no TLS"):
        client_module.make_client(settings, 1.0)


def test_through_a_proxy_a_server_on_this_machine_is_another_one(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, url="http://localhost:9200", api_key="key", proxy="http://there:3128")
    with pytest.raises(UsageError, match="has no TLS"):
        client_module.make_client(settings, 1.0)


# Certificates


def fingerprint(pem: bytes) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()


def test_a_real_server_is_believed_by_the_fingerprint_of_its_certificate(
    secured_node: Node, settings_for: MakeSettings
) -> None:
    shown = ssl.get_server_certificate(("127.0.0.1", int(secured_node.url.rpartition(":")[2])))
    settings = settings_for(
        secured_node.url,
        username="elastic",
        password=secured_node.password,
        fingerprint=fingerprint(shown.encode()),
    )
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        assert engine.build("groups", spec_of(GROUPS), GROUPS).documents == len(GROUPS)
        engine.remove("groups")
    error = refusal(settings_for(secured_node.url, username="elastic", password="x", fingerprint="0" * 64))
    assert isinstance(error, EngineUnreachable)
    assert "has no certificate with the fingerprint in SEARCHAPP_FINGERPRINT: ask its administrator" in str(
        error
    )


def speaking_tls(*chain: trustme.Blob, key: trustme.Blob, folder: Path) -> ssl.SSLContext:
    """A server's context that shows these certificates."""
    path = folder / "chain.pem"
    path.write_bytes(b"".join(one.bytes() for one in chain))
    (folder / "key.pem").write_bytes(key.bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, folder / "key.pem")
    return context


def test_a_server_is_believed_by_the_fingerprint_of_its_authority(tmp_path: Path) -> None:
    """As a server prints it at its first start, whatever name its own certificate is made out to."""
    authority = trustme.CA()
    leaf = authority.issue_cert("elsewhere.example")
    context = speaking_tls(
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
        assert [one.headers["authorization"] for one in server.requests] == ["ApiKey key"]


def test_an_authority_that_a_server_only_shows_proves_nothing(tmp_path: Path) -> None:
    """Anybody can show the certificate of an authority beside one of their own that says it is signed by it."""
    authority, forged = trustme.CA(organization_name="Real"), trustme.CA(organization_name="Real")
    leaf = forged.issue_cert("127.0.0.1")
    for chain in (
        (leaf.cert_chain_pems[0], authority.cert_pem),
        (leaf.cert_chain_pems[0], forged.cert_pem, authority.cert_pem),
    ):
        context = speaking_tls(*chain, key=leaf.private_key_pem, folder=tmp_path)
        with StrangeElasticsearch(ABOUT, context) as server:
            settings = Settings(
                home=tmp_path,
                url=server.url.replace("http", "https"),
                api_key="key",
                fingerprint=fingerprint(authority.cert_pem.bytes()),
            )
            assert isinstance(refusal(settings), EngineUnreachable)
            assert server.requests == []


def test_a_certificate_that_was_changed_while_a_command_runs_is_not_believed(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    context = speaking_tls(leaf.cert_chain_pems[0], key=leaf.private_key_pem, folder=tmp_path)
    with StrangeElasticsearch(ABOUT, context) as server:
        settings = Settings(
            home=tmp_path,
            url=server.url.replace("http", "https"),
            fingerprint=fingerprint(leaf.cert_chain_pems[0].bytes()),
        )
        with closing(Connection.open(settings)) as connection:
            changed = other.issue_cert("127.0.0.1")
            speaking_tls(changed.cert_chain_pems[0], key=changed.private_key_pem, folder=tmp_path)
            context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
            with pytest.raises(
                EngineUnreachable, match="a certificate that this machine does not trust: .* was replaced"
            ):
                connection.call("look", lambda client: client.info())


def test_a_fingerprint_needs_tls(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, url="https://a:9200,http://b:9200", fingerprint="0" * 64)
    assert "begin each address with https" in str(refusal(settings))


def test_a_file_of_authorities_is_the_only_one_that_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's library would add those that come with the package certifi."""
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
        assert f"GET {elasticsearch_url}/" in proxy.asked and len(proxy.asked) > 10


@pytest.mark.parametrize("believed", ["ca_certs", "fingerprint"])
def test_a_server_with_tls_is_reached_through_a_tunnel(
    secured_node: Node, settings_for: MakeSettings, believed: str
) -> None:
    place = secured_node.url.removeprefix("https://")
    shown = ssl.get_server_certificate(("127.0.0.1", int(place.rpartition(":")[2])))
    how = {"ca_certs": secured_node.ca_certs, "fingerprint": fingerprint(shown.encode())}
    credentials = {"username": "elastic", "password": secured_node.password, believed: how[believed]}
    told = "Basic " + b64encode(b"me:p@ss").decode()
    with HttpProxy(told) as proxy:
        right = proxy.url.replace("://", "://me:p%40ss@")
        assert "." in version(settings_for(secured_node.url, proxy=right, **credentials))
        assert set(proxy.asked) == {f"CONNECT {place}"}
        error = refusal(settings_for(secured_node.url, proxy=proxy.url, **credentials))
        assert isinstance(error, EngineUnreachable)


def test_headers_and_the_opaque_id_go_with_every_request_and_the_log_has_a_line_for_each(
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
    (sent,) = (request for request in fault_proxy.requests if request.path.endswith("_bulk"))
    assert f"PUT {sent.path} at {fault_proxy.url}: 200, " in bulk
    assert f" ms, {len(sent.body)} bytes sent, " in bulk


def test_a_request_that_fails_is_logged_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="searchapp.requests")
    refusal(Settings(home=tmp_path, url=f"http://127.0.0.1:{free_port()}"))
    (line,) = (one.getMessage() for one in caplog.records if one.name == "searchapp.requests")
    assert "ConnectionError, " in line


def test_the_servers_own_tasks_name_who_asks(elasticsearch_url: str, settings_for: MakeSettings) -> None:
    """The header reaches the server: its list of tasks has it."""
    settings = settings_for(elasticsearch_url, opaque_id="searchapp/test/5678")
    with closing(Connection.open(settings)) as connection:
        asked = {"accept": "application/json"}
        tasks = connection.client.perform_request(
            "GET", "/_tasks?actions=*lists&detailed", headers=asked
        ).body
    named = [task["headers"] for node in tasks["nodes"].values() for task in node["tasks"].values()]
    assert {"X-Opaque-Id": "searchapp/test/5678"} in named
    assert Server(elasticsearch_url).request("GET", "/").status == 200
