"""Who gets in to what is served, and who does not."""

from __future__ import annotations

import asyncio
import re
import socket
import string
from collections.abc import Mapping

import pytest
from aiohttp import ClientSession, DummyCookieJar, WSServerHandshakeError
from yarl import URL

from searchapp.errors import SearchappError, UsageError
from searchapp.serving.guard import listen, public_url
from tests.serving.client import Serving, received, serving

PATHS = [
    "/", "/ws", "/static/js/textual.js", "/static/css/xterm.css", "/page/page.js", "/page/index.html", "/download/x",
    "/nothing", "/static/../server.py", "//", "/?token=", "/?token=x", "/?token=%ff%00%e2%82",
]  # fmt: skip


def test_without_token_and_cookie_everything_is_401() -> None:
    async def use(one: Serving) -> None:
        for path in PATHS:
            for method in ("GET", "HEAD", "POST", "OPTIONS", "DELETE"):
                url = URL(f"{one.url}{path}", encoded=True)
                async with one.client.request(method, url, allow_redirects=False) as response:
                    assert response.status == 401, (method, path)
                    assert "Set-Cookie" not in response.headers
        for headers in ({}, {"Cookie": f"searchapp-{one.listening.port}=x"}, {"Authorization": "Bearer x"}):
            with pytest.raises(WSServerHandshakeError) as refused:
                await one.window(**headers)
            assert refused.value.status == 401

    assert not serving(use)


def test_the_token_opens_the_page_alone() -> None:
    async def use(one: Serving) -> None:
        for path in ("/ws", "/static/js/textual.js", "/download/x", "/nothing"):
            async with one.client.get(f"{one.url}{path}?token={one.token}") as response:
                assert response.status == 401
        async with one.client.post(one.guard.address) as response:
            assert response.status == 401

    serving(use)


def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    async def use(one: Serving) -> None:
        async with one.client.get(
            f"{one.url}/?fontsize=20&token={one.token}", allow_redirects=False
        ) as response:
            assert response.status == 303
            assert response.headers["Location"] == "./?fontsize=20"
            assert response.headers["Referrer-Policy"] == "no-referrer"
            assert response.headers["Cache-Control"] == "no-store"
            cookie = response.headers["Set-Cookie"]
            assert re.fullmatch(
                rf"searchapp-{one.listening.port}=[\w-]{{43}}; HttpOnly; Path=/; SameSite=Strict", cookie
            )
            assert one.token not in cookie
        async with one.client.get(one.url) as response:
            page = await response.text()
            assert response.status == 200
            assert "<title>a &lt;title&gt;&lt;U+202E&gt;</title>" in page and one.token not in page
        for path in ("/static/js/textual.js", "/page/page.js", "/page/page.css"):
            async with one.client.get(f"{one.url}{path}") as response:
                assert response.status == 200
        for path in ("/static/", "/static/%2e%2e/server.py", "/page/../guard.py", "/download/x", "/nothing"):
            async with one.client.get(URL(f"{one.url}{path}", encoded=True)) as response:
                assert response.status in (403, 404)
        for path in ("a" * 300, "a/" * 2500, "a" * 5000, "%00", "a/" * 300 + "b" * 300):
            for folder in ("/static/", "/page/"):
                async with one.client.get(URL(f"{one.url}{folder}{path}", encoded=True)) as response:
                    assert response.status == 404
        assert await received(await one.window(), "begun")

    assert not serving(use)


def test_nothing_of_the_page_comes_from_elsewhere() -> None:
    async def use(one: Serving) -> None:
        await one.enter()
        async with one.client.get(one.url) as response:
            page = await response.text()
            policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "http" not in policy
        named = re.findall(r'(?:src|href)="([^"]*)"', page)
        for name in named:
            if not name.startswith("data:"):
                async with one.client.get(f"{one.url}/{name}") as response:
                    assert response.status == 200
                    of_page = await response.text() if name.endswith("page.css") else ""
                    named += [url.replace("../", "") for url in re.findall(r'url\("([^"]*)"\)', of_page)]
        assert len(named) == 8 and not any(name.startswith(("http", "//")) for name in named)

    serving(use)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:9000"}, 200),  # as through ssh -L
        ({"Host": "[::1]:9000"}, 200),
        ({"Host": "127.0.0.2"}, 200),
        ({"Host": "evil.example"}, 403),  # a name that points here
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),  # another program of this machine
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
    ],
)
def test_pages_of_others_are_refused_even_with_the_cookie(headers: Mapping[str, str], status: int) -> None:
    async def use(one: Serving) -> None:
        await one.enter()
        kept = {"Cookie": "; ".join(f"{cookie.key}={cookie.value}" for cookie in one.client.cookie_jar)}
        async with ClientSession(cookie_jar=DummyCookieJar()) as client:
            async with client.get(one.url, headers={**kept, **headers}) as response:
                assert response.status == status
            async with client.get(
                one.guard.address, headers=headers, allow_redirects=False
            ) as response:  # and no cookie is given away
                assert response.status == (303 if status == 200 else status)
                assert ("Set-Cookie" in response.headers) == (status == 200)

    serving(use)


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "https://127.0.0.1"])
def test_a_window_opens_for_this_page_only(origin: str | None) -> None:
    async def use(one: Serving) -> None:
        await one.enter()
        headers = {} if origin is None else {"Origin": origin}
        with pytest.raises(WSServerHandshakeError) as refused:
            await one.client.ws_connect(f"{one.url}/ws", headers=headers)
        assert refused.value.status == 403

    serving(use)


def test_behind_a_proxy_its_address_counts() -> None:
    async def use(one: Serving) -> None:
        assert one.guard.address.startswith("https://search.example.org/?token=")
        there = {"Host": "search.example.org"}
        direct = f"{one.url}/?token={one.token}"
        async with one.client.get(direct, headers=there, allow_redirects=False) as response:
            assert response.status == 303 and "; Secure" in response.headers["Set-Cookie"]
            kept = {"Cookie": response.headers["Set-Cookie"].partition(";")[0]}
        for host in ("search.example.org", "127.0.0.1:8000"):
            window = await one.window(Host=host, Origin="https://search.example.org", **kept)
            assert await received(window, "begun")
        with pytest.raises(WSServerHandshakeError):
            await one.window(Host="search.example.org", Origin="https://other.example.org", **kept)

    serving(use, public_url="https://search.example.org")


class Failing(string.Template):
    """A page that can't be made; the reason has what is secret."""

    def substitute(self, *_: object, **__: object) -> str:
        raise RuntimeError(self.template)


def test_neither_token_nor_cookie_is_reported() -> None:
    """What is no HTTP would be reported by the web server, with all of it."""
    secrets: list[str] = []

    async def use(one: Serving) -> None:
        await one.enter()
        secrets.extend([one.token, *(cookie.value for cookie in one.client.cookie_jar)])
        for line in (
            "GET /?token={} HTTP/9.9",
            "GET /?token={}\x00 HTTP/1.1",
            "{}",
            "GET / HTTP/1.1\r\nCookie {}",
        ):
            for secret in secrets:
                reader, writer = await asyncio.open_connection("127.0.0.1", one.listening.port)
                writer.write(f"{line.format(secret)}\r\n\r\n".encode())
                assert b" 400 " in await reader.readline()
                writer.close()
        one.server._page = Failing(f"{' and '.join(secrets)} are secret")
        async with one.client.get(one.url) as response:
            assert response.status == 500
            assert one.token not in await response.text()
        assert one.token not in repr(one.guard) and one.token not in repr(vars(one.server))

    (told,) = serving(use)
    assert told.startswith("the web server reports: ") and told.endswith("RuntimeError: … and … are secret")


def test_every_server_has_a_token_of_its_own() -> None:
    tokens: list[str] = []

    async def use(one: Serving) -> None:
        tokens.append(one.token)

    serving(use)
    serving(use)
    assert tokens[0] != tokens[1] and min(map(len, tokens)) >= 43


def test_a_port_that_is_taken_is_said_to_be() -> None:
    with listen("127.0.0.1", 0).socket as taken:
        with pytest.raises(SearchappError, match="is in use: give another one with --port") as failed:
            listen("127.0.0.1", taken.getsockname()[1])
        assert failed.value.exit_code == 1


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "nowhere.invalid", "", "a" * 300, "x y", "a\0b", "::1%nothing"]
)
def test_a_host_that_is_not_here_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="--host"), listen(host or "256.1.1.1", 0).socket:
        pass


@pytest.mark.parametrize(
    ("host", "is_loopback", "url"),
    [
        ("127.0.0.1", True, "http://127.0.0.1"),
        ("localhost", True, "http://localhost"),
        ("::1", True, "http://[::1]"),
        ("0.0.0.0", False, f"http://{socket.gethostname()}"),
    ],
)
def test_an_address_is_said_as_a_browser_takes_it(host: str, is_loopback: bool, url: str) -> None:
    try:
        listening = listen(host, 0)
    except SearchappError:
        if host == "::1":
            pytest.skip("this machine has no IPv6")
        raise
    with listening.socket:
        assert listening.url == f"{url}:{listening.port}"
        assert listening.is_loopback == is_loopback


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("https://search.example.org", "https://search.example.org"),
        (" https://Search.Example.org:443/ ", "https://search.example.org"),
        ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ],
)
def test_the_address_of_a_proxy_is_written_as_browsers_do(given: str, right: str) -> None:
    assert public_url(given) == right


@pytest.mark.parametrize(
    "given",
    ["", "search.example.org", "ftp://a", "https://", "https://a/b", "https://a?b", "https://a#b", "https://u:p@a",
     "https://a:x", "https://a:99999", "https://[::1", "https://a b"],
)  # fmt: skip
def test_what_is_no_address_of_a_proxy_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="--public-url"):
        public_url(given)
