"""One Elasticsearch node on the loopback address, with a temporary folder of its own."""

from __future__ import annotations

import atexit
import http.client
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import psutil

from .errors import ServerFailed
from .rest import Server

START_SECONDS = 180.0
STOP_SECONDS = 40.0  # longer than the supervisor's own patience, after which it kills
PAUSE_SECONDS = 10.0
LOG_LINES = 30

LOWEST_PORT = 12000
"""Well-known servers, and those that a developer starts, listen on lower ones."""

GIVEN_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")

# Options of Java for a server that lives for minutes and never earns back what the optimizing compiler takes: without
# it a start takes two thirds of the processor time, and requests just after it half. Nor does it earn back that every
# class is verified, and every page of the heap touched, before anything asks for it. Its small heap is collected with
# the least work by the collector that does nothing beside the program: a sixth of what an index takes is saved. The
# other compiler is so cheap that it pays after a fifth of the usual number of calls: a tenth of what requests take.
# Room for classes and compiled code is there from the beginning; to make more of it takes a collection each time.
BRIEF_LIFE = (
    "-XX:TieredStopAtLevel=1",
    "-XX:CompileThresholdScaling=0.2",
    "-XX:ReservedCodeCacheSize=256m",
    "-XX:MetaspaceSize=256m",
    "-XX:-UseG1GC",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-XX:-AlwaysPreTouch",
)

Setting = str | bool | list[str]


@dataclass(frozen=True, slots=True)
class Membership:
    """The cluster that a node is one of: its name, and the transport port of each of its nodes by name."""

    cluster: str
    ports: Mapping[str, int]

    def settings(self, node: str) -> dict[str, Setting]:
        """The lines of elasticsearch.yml by which a node finds the others, on the loopback address."""
        return {
            "cluster.name": self.cluster,
            "transport.port": str(self.ports[node]),
            "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in self.ports.values()],
            "cluster.initial_master_nodes": list(self.ports),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What a node shall be: its folder, port, heap (`512m`), and whether it is secured.

    A secured node speaks TLS with `certificate` and `key`, signed by the throw-away authority in `ca_certs`,
    and knows the user `elastic` with `password`. Without `membership` it is a cluster of its own. `java` are
    further options of its Java, and `more` further lines of elasticsearch.yml.
    """

    name: str
    folder: Path
    port: int
    heap: str
    password: str | None = None
    membership: Membership | None = None
    java: Sequence[str] = ()
    more: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def java_options(self) -> str:
        """The whole of ES_JAVA_OPTS."""
        return " ".join([f"-Xms{self.heap}", f"-Xmx{self.heap}", *self.java])

    @property
    def secured(self) -> bool:
        return self.password is not None

    @property
    def certificates(self) -> Path:
        return self.folder / "conf" / "certificates"

    @property
    def certificate(self) -> Path:
        return self.certificates / "http.pem"

    @property
    def key(self) -> Path:
        return self.certificates / "http.key"

    @property
    def ca_certs(self) -> Path:
        return self.certificates / "ca.pem"

    def settings(self) -> dict[str, Setting]:
        """The lines of elasticsearch.yml that hold however the node runs."""
        settings: dict[str, Setting] = {
            "node.name": self.name,
            "action.destructive_requires_name": True,
            # A developer's nearly full disk must not turn indices read-only.
            "cluster.routing.allocation.disk.threshold_enabled": False,
            "xpack.ml.enabled": False,
            "xpack.watcher.enabled": False,
            "xpack.security.enabled": self.secured,
            "logger.org.elasticsearch.deprecation": "OFF",
        }
        if self.membership is None:
            settings |= {"cluster.name": self.name, "discovery.type": "single-node"}
        else:
            settings |= self.membership.settings(self.name)
        if self.secured:
            settings["xpack.security.autoconfiguration.enabled"] = False
            settings["xpack.security.http.ssl.enabled"] = True
            settings["xpack.security.http.ssl.key"] = f"certificates/{self.key.name}"
            settings["xpack.security.http.ssl.certificate"] = f"certificates/{self.certificate.name}"
        return settings | dict(self.more)


class Host(Protocol):
    """A way to run a node: from an unpacked distribution, or as a container."""

    def prepare(self, plan: Plan) -> None:
        """Make what a node needs before its first start; may raise ServerFailed."""

    def command(self, plan: Plan) -> list[str]:
        """The command that runs the node until SIGTERM."""

    def environment(self, plan: Plan) -> dict[str, str] | None:
        """The whole environment of that command, or None for this process's own."""

    def supervision(self, plan: Plan) -> list[str]:
        """Options for the supervisor: the user to run as, what to clean when the parent is gone."""

    def kill(self, plan: Plan) -> None:
        """What ending the command with SIGKILL leaves to do."""

    def pause(self, plan: Plan) -> None:
        """What freezing the command with SIGSTOP leaves to do."""

    def resume(self, plan: Plan) -> None:
        """What letting the command go on leaves to do."""

    def discard(self, plan: Plan) -> None:
        """Remove what `prepare` made outside of the plan's folder."""


class Node:
    """One node: `with Node() as node: ... node.url`.

    Args:
        host: how it runs; the first way that works on this machine if not given
        version: of the server, where no host is given; that of the session's tests if not given
        security: TLS on HTTP with a certificate of a throw-away authority, and a password
        heap: of the server's Java, such as `512m`
        port: of 127.0.0.1; a free one if not given
        name: of the node; a random one if not given
        membership: the cluster it is one of; one of its own if not given
        java: further options of its Java, such as `BRIEF_LIFE`
        settings: further lines of elasticsearch.yml
        within: where its temporary folder is made; where such folders are made on this machine if not given

    Raises:
        ServerUnavailable: this machine has no means to run one
    """

    def __init__(
        self,
        host: Host | None = None,
        *,
        version: str | None = None,
        security: bool = False,
        heap: str = "512m",
        port: int | None = None,
        name: str | None = None,
        membership: Membership | None = None,
        java: Sequence[str] = (),
        settings: Mapping[str, Setting] | None = None,
        within: Path | None = None,
    ) -> None:
        if host is None:
            from .choice import find_host  # there and not above: it knows the hosts, which know this module

            host = find_host(version)
        self._host = host
        self._plan = Plan(
            name=name or f"searchapp-test-{secrets.token_hex(4)}",
            folder=Path(tempfile.mkdtemp(prefix="searchapp-node-", dir=within)).resolve(),
            port=port or free_port(),
            heap=heap,
            password=secrets.token_urlsafe(16) if security else None,
            membership=membership,
            java=java,
            more=settings or {},
        )
        self._prepared = False
        self._supervisor: subprocess.Popen[bytes] | None = None
        self.start_seconds = 0.0
        atexit.register(self.close)

    @property
    def name(self) -> str:
        return self._plan.name

    @property
    def url(self) -> str:
        return f"{'https' if self._plan.secured else 'http'}://127.0.0.1:{self._plan.port}"

    @property
    def username(self) -> str | None:
        return "elastic" if self._plan.secured else None

    @property
    def password(self) -> str | None:
        return self._plan.password

    @property
    def ca_certs(self) -> Path | None:
        return self._plan.ca_certs if self._plan.secured else None

    @property
    def server(self) -> Server:
        """The node as something to send plain requests to, with its credentials."""
        return Server(self.url, self.username, self.password, self.ca_certs)

    @property
    def folder(self) -> Path:
        """The temporary folder with its configuration, data and log."""
        return self._plan.folder

    @property
    def running(self) -> bool:
        return self._supervisor is not None and self._supervisor.poll() is None

    def processes(self) -> list[psutil.Process]:
        """What runs of the node: those whose command names its folder."""
        return [one for one in psutil.process_iter() if names(one, self.folder)]

    def start(self) -> Self:
        """Start the node and wait until it answers; nothing happens if it runs already.

        Raises:
            ServerFailed: it died, or did not answer in time; the message ends with the last lines of its log
        """
        if self.running:
            return self
        begin = time.monotonic()
        self.launch()
        self.await_answer(begin + START_SECONDS)
        self.start_seconds = time.monotonic() - begin
        return self

    def launch(self) -> None:
        """Start the node without waiting for it; the nodes of a cluster answer only once they are enough."""
        try:
            if not self._prepared:
                self._prepare()
            self._supervisor = self._launch()
        except BaseException:
            self.stop()
            raise

    def await_answer(self, deadline: float) -> None:
        """Wait until the node answers, at most until `deadline` of the monotonic clock; one that does not is stopped.

        Raises:
            ServerFailed: as `start`
        """
        try:
            self._await_answer(deadline)
        except BaseException:
            self.stop()
            raise

    def pause(self) -> None:
        """Freeze the node as SIGSTOP does: its connections stay open, and nothing answers."""
        self._host.pause(self._plan)
        self._signal("pause")
        self._await_state(stopped=True)

    def resume(self) -> None:
        """Let a paused node go on."""
        self._host.resume(self._plan)
        self._signal("resume")
        self._await_state(stopped=False)

    def recover(self) -> None:
        """Let the node go on if it is paused, and start it if it does not run.

        Raises:
            ServerFailed: as `start`
        """
        if self.running:
            self.resume()
        self.start()

    def stop(self) -> None:
        """Stop the node as SIGTERM does; its data stay for another `start`."""
        self._order("stop")

    def kill(self) -> None:
        """End the node at once as `kill -9` does; its data stay for another `start`."""
        if self.running:
            self._host.kill(self._plan)
        self._order("kill")

    def restart(self) -> None:
        """Stop and start on the same port with the same data."""
        self.stop()
        self.start()

    def become(self, host: Host) -> None:
        """Run in another way from the next start on, as from a newer distribution, with the data that are there."""
        self._host = host
        if self._prepared:
            host.prepare(self._plan)

    def renew_certificates(self) -> None:
        """Write a certificate and the authority that signed it anew; a node that runs shows them after seconds."""
        write_certificates(self._plan)

    def close(self) -> None:
        """Stop the node and remove all that it left."""
        atexit.unregister(self.close)
        self.stop()
        if self._prepared:
            self._host.discard(self._plan)
            self._prepared = False
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def log_tail(self, lines: int = LOG_LINES) -> str:
        """The last lines that the server wrote."""
        log = self.folder / "console.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _prepare(self) -> None:
        self._plan.certificates.mkdir(parents=True)
        if self._plan.secured:
            write_certificates(self._plan)
        self._prepared = True  # from here on there may be something to discard
        self._host.prepare(self._plan)

    def _launch(self) -> subprocess.Popen[bytes]:
        supervisor = [sys.executable, str(Path(__file__).with_name("supervisor.py"))]
        supervisor += [*self._host.supervision(self._plan), f"--remove={self.folder}", "--"]
        with (self.folder / "console.log").open("ab") as log:
            return subprocess.Popen(
                supervisor + self._host.command(self._plan),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._host.environment(self._plan),
                start_new_session=True,  # out of reach of the terminal's Ctrl-C: stopping is our decision
            )

    def _await_answer(self, deadline: float) -> None:
        while True:
            if not self.running:
                raise ServerFailed(f"Elasticsearch ended while it started; its log ends:\n{self.log_tail()}")
            try:
                answer = self.server.request("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s")
                if answer.status == 200 and self._knows_its_password():
                    return
            except ssl.SSLCertVerificationError as error:
                raise ServerFailed(f"{self.url} is not the node that was started: {error}") from error
            except (OSError, http.client.HTTPException):
                pass  # not listening yet
            if time.monotonic() > deadline:
                late = f"Elasticsearch did not answer within {START_SECONDS:.0f} s"
                raise ServerFailed(f"{late}; its log ends:\n{self.log_tail()}")
            time.sleep(0.1)

    def _knows_its_password(self) -> bool:
        """Write the password into the security index, and thereby wait for that index.

        A secured node makes it on its own some time after it began to answer, and takes nobody's password
        while it does. Once the password is in there, an accepted request means that the index is ready.
        """
        if not self._plan.secured:
            return True
        account = f"/_security/user/{self.username}/_password"
        return self.server.request("POST", account, {"password": self.password}).status == 200

    def _signal(self, order: str) -> None:
        """Send an order after which the supervisor goes on listening."""
        if self._supervisor is None or self._supervisor.stdin is None:
            raise ServerFailed(f"the node {self.name} does not run")
        self._supervisor.stdin.write(f"{order}\n".encode())
        self._supervisor.stdin.flush()

    def _await_state(self, *, stopped: bool) -> None:
        assert self._supervisor is not None
        deadline = time.monotonic() + PAUSE_SECONDS
        while True:
            processes = psutil.Process(self._supervisor.pid).children(recursive=True)
            if processes and all((one.status() == psutil.STATUS_STOPPED) == stopped for one in processes):
                return
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"the processes of the node {self.name} were not {'paused' if stopped else 'resumed'}"
                )
            time.sleep(0.02)

    def _order(self, order: str) -> None:
        if self._supervisor is None:
            return
        try:
            # Writes the order and closes the pipe, also when the supervisor is gone already.
            self._supervisor.communicate(f"{order}\n".encode(), timeout=STOP_SECONDS)
        finally:
            self._supervisor = None


def names(process: psutil.Process, folder: Path) -> bool:
    """Whether a process still runs whose command names a folder."""
    try:
        return any(str(folder) in argument for argument in process.cmdline())
    except psutil.Error:
        return False  # it has ended meanwhile


def write_certificates(plan: Plan) -> None:
    """Write the certificate and key of the node, and the authority that signed them, as PEM files."""
    import trustme

    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(str(plan.ca_certs))
    issued.private_key_pem.write_to_path(str(plan.key))
    for number, pem in enumerate(issued.cert_chain_pems):
        pem.write_to_path(str(plan.certificate), append=number > 0)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, nor is given by the system meanwhile.

    A node takes it only when it has started, on a busy machine minutes later. One of those that the system gives to
    whoever connects would then be somebody's.
    """
    first = first_given_port()
    while first - LOWEST_PORT > 1000:
        port = LOWEST_PORT + secrets.randbelow(first - LOWEST_PORT)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:  # there are hardly any others
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_given_port() -> int:
    """The first of the ports that the system gives to whoever asks for any."""
    try:
        return int(GIVEN_PORTS.read_text(encoding="ascii").split()[0])
    except OSError:
        return 32768  # as of Linux; those of other systems are higher
