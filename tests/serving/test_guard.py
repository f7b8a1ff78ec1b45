"""The server of `searchapp serve` answers only requests with its token or cookie, from its own pages."""

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
from tests.serving.client import Site, received, serve

PATHS = [
    "/", "/ws", "/static/js/textual.js", "/static/css/xterm.css", "/page/page.js", "/page/index.html", "/download/x",
    "/nothing", "/static/../server.py", "//", "/?token=", "/?token=x", "/?token=%ff%00%e2%82",
]  # fmt: skip


def test_without_token_and_cookie_everything_is_401() -> None:
    async def use(site: Site) -> None:
        for path in PATHS:
            for method in ("GET", "HEAD", "POST", "OPTIONS", "DELETE"):
                url = URL(f"{site.url}{path}", encoded=True)
                async with site.client.request(method, url, allow_redirects=False) as response:
                    assert response.status == 401, (method, path)
                    assert "Set-Cookie" not in response.headers
        for headers in ({}, {"Cookie": f"searchapp-{site.listening.port}=x"}, {"Authorization": "Bearer x"}):
            with pytest.raises(WSServerHandshakeError) as failure:
                await site.window(**headers)
            assert failure.value.status == 401

    assert not serve(use)


def test_the_token_opens_only_the_page() -> None:
    async def use(site: Site) -> None:
        for path in ("/ws", "/static/js/textual.js", "/download/x", "/nothing"):
            async with site.client.get(f"{site.url}{path}?token={site.token}") as response:
                assert response.status == 401
        async with site.client.post(site.guard.address) as response:
            assert response.status == 401

    serve(use)


def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    async def use(site: Site) -> None:
        async with site.client.get(
            f"{site.url}/?fontsize=20&token={site.token}", allow_redirects=False
        ) as response:
            assert response.status == 303
            assert response.headers["Location"] == "./?fontsize=20"
            assert response.headers["Referrer-Policy"] == "no-referrer"
            assert response.headers["Cache-Control"] == "no-store"
            cookie = response.headers["Set-Cookie"]
            assert re.fullmatch(
                rf"searchapp-{site.listening.port}=[\w-]{{43}}; HttpOnly; Path=/; SameSite=Strict", cookie
            )
            assert site.token not in cookie
        async with site.client.get(site.url) as response:
            page = await response.text()
            assert response.status == 200
            assert "<title>a &lt;title&gt;&lt;U+202E&gt;</title>" in page and site.token not in page
        for path in ("/static/js/textual.js", "/page/page.js", "/page/page.css"):
            async with site.client.get(f"{site.url}{path}") as response:
                assert response.status == 200
        for path in ("/static/", "/static/%2e%2e/server.py", "/page/../guard.py", "/download/x", "/nothing"):
            async with site.client.get(URL(f"{site.url}{path}", encoded=True)) as response:
                assert response.status in (403, 404)
        for path in ("a" * 300, "a/" * 2500, "a" * 5000, "%00", "a/" * 300 + "b" * 300):
            for folder in ("/static/", "/page/"):
                async with site.client.get(URL(f"{site.url}{folder}{path}", encoded=True)) as response:
                    assert response.status == 404
        assert await received(await site.window(), "begun")

    assert not serve(use)


def test_the_page_loads_nothing_from_other_servers() -> None:
    async def use(site: Site) -> None:
        await site.enter()
        async with site.client.get(site.url) as response:
            page = await response.text()
            policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "http" not in policy
        urls = re.findall(r'(?:src|href)="([^"]*)"', page)
        for url in urls:
            if not url.startswith("data:"):
                async with site.client.get(f"{site.url}/{url}") as response:
                    assert response.status == 200
                    style_sheet = await response.text() if url.endswith("page.css") else ""
                    urls += [path.replace("../", "") for path in re.findall(r'url\("([^"]*)"\)', style_sheet)]
        assert len(urls) == 8 and not any(url.startswith(("http", "//")) for url in urls)

    serve(use)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:9000"}, 200),  # as through ssh -L
        ({"Host": "[::1]:9000"}, 200),
        ({"Host": "127.0.0.2"}, 200),
        ({"Host": "evil.example"}, 403),  # a domain whose owner lets it resolve to this machine
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),  # another server on this machine
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
    ],
)
def test_requests_of_other_pages_are_refused_even_with_the_cookie(
    headers: Mapping[str, str], status: int
) -> None:
    async def use(site: Site) -> None:
        await site.enter()
        cookies = {"Cookie": "; ".join(f"{cookie.key}={cookie.value}" for cookie in site.client.cookie_jar)}
        async with ClientSession(cookie_jar=DummyCookieJar()) as client:
            async with client.get(site.url, headers={**cookies, **headers}) as response:
                assert response.status == status
            async with client.get(site.guard.address, headers=headers, allow_redirects=False) as response:
                assert response.status == (303 if status == 200 else status)
                assert ("Set-Cookie" in response.headers) == (status == 200)

    serve(use)


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "https://127.0.0.1"])
def test_a_window_opens_for_the_own_page_only(origin: str | None) -> None:
    async def use(site: Site) -> None:
        await site.enter()
        headers = {} if origin is None else {"Origin": origin}
        with pytest.raises(WSServerHandshakeError) as failure:
            await site.client.ws_connect(f"{site.url}/ws", headers=headers)
        assert failure.value.status == 403

    serve(use)


def test_the_address_of_a_proxy_is_accepted() -> None:
    async def use(site: Site) -> None:
        assert site.guard.address.startswith("https://search.example.org/?token=")
        host_header = {"Host": "search.example.org"}
        direct = f"{site.url}/?token={site.token}"
        async with site.client.get(direct, headers=host_header, allow_redirects=False) as response:
            assert response.status == 303 and "; Secure" in response.headers["Set-Cookie"]
            cookies = {"Cookie": response.headers["Set-Cookie"].partition(";")[0]}
        for host in ("search.example.org", "127.0.0.1:8000"):
            window = await site.window(Host=host, Origin="https://search.example.org", **cookies)
            assert await received(window, "begun")
        with pytest.raises(WSServerHandshakeError):
            await site.window(Host="search.example.org", Origin="https://other.example.org", **cookies)

    serve(use, public_url="https://search.example.org")


class FailingTemplate(string.Template):
    """A page template whose error message contains secrets."""

    def substitute(self, *_: object, **__: object) -> str:
        raise RuntimeError(self.template)


def test_neither_token_nor_cookie_is_reported() -> None:
    """By default the web server would log a malformed request completely."""
    secrets: list[str] = []

    async def use(site: Site) -> None:
        await site.enter()
        secrets.extend([site.token, *(cookie.value for cookie in site.client.cookie_jar)])
        for line in (
            "GET /?token={} HTTP/9.9",
            "GET /?token={}\x00 HTTP/1.1",
            "{}",
            "GET / HTTP/1.1\r\nCookie {}",
        ):
            for secret in secrets:
                reader, writer = await asyncio.open_connection("127.0.0.1", site.listening.port)
                writer.write(f"{line.format(secret)}\r\n\r\n".encode())
                assert b" 400 " in await reader.readline()
                writer.close()
        site.server._page = FailingTemplate(f"{' and '.join(secrets)} are secret")
        async with site.client.get(site.url) as response:
            assert response.status == 500
            assert site.token not in await response.text()
        assert site.token not in repr(site.guard) and site.token not in repr(vars(site.server))

    (message,) = serve(use)
    assert message.startswith("the web server reports: ")
    assert message.endswith("RuntimeError: … and … are secret")


def test_every_server_has_a_token_of_its_own() -> None:
    tokens: list[str] = []

    async def use(site: Site) -> None:
        tokens.append(site.token)

    serve(use)
    serve(use)
    assert tokens[0] != tokens[1] and min(map(len, tokens)) >= 43


def test_a_port_in_use_is_rejected() -> None:
    with listen("127.0.0.1", 0).socket as socket_in_use:
        with pytest.raises(SearchappError, match="is in use: give another one with --port") as failure:
            listen("127.0.0.1", socket_in_use.getsockname()[1])
        assert failure.value.exit_code == 1


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "nowhere.invalid", "", "a" * 300, "x y", "a\0b", "::1%nothing"]
)
def test_a_host_of_another_machine_is_rejected(host: str) -> None:
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
def test_the_url_of_a_host_can_be_opened_in_a_browser(host: str, is_loopback: bool, url: str) -> None:
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
    ("given", "normalised"),
    [
        ("https://search.example.org", "https://search.example.org"),
        (" https://Search.Example.org:443/ ", "https://search.example.org"),
        ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ],
)
def test_the_address_of_a_proxy_is_normalised(given: str, normalised: str) -> None:
    assert public_url(given) == normalised


@pytest.mark.parametrize(
    "given",
    ["", "search.example.org", "ftp://a", "https://", "https://a/b", "https://a?b", "https://a#b", "https://u:p@a",
     "https://a:x", "https://a:99999", "https://[::1", "https://a b"],
)  # fmt: skip
def test_an_invalid_address_of_a_proxy_is_rejected(given: str) -> None:
    with pytest.raises(UsageError, match="--public-url"):
        public_url(given)
