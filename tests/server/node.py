"""One Elasticsearch node on the loopback address, with a temporary folder of its own."""

from __future__ import annotations

import atexit
import http.client
import json
import os
import pwd
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
from pathlib import Path
from typing import BinaryIO, Self

import psutil

from .distribution import LAUNCHER_OPTIONS, UNPRIVILEGED, Distribution, ServerFailed
from .rest import Server

START_SECONDS = 180.0
STOP_SECONDS = 40.0  # longer than the supervisor's patience, after which it kills
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

# One log on the console in place of the distribution's ten rolling files.
LOG4J2 = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%-25c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""

Setting = str | bool | list[str]


class Node:
    """One node: `with Node() as node: ... node.url`.

    A secured node speaks TLS on HTTP with a certificate of a throw-away authority, and knows the user `elastic`.

    Args:
        distribution: what it runs from; that of the session's tests if not given
        security: whether it is secured
        heap: of the server's Java, such as `512m`
        port: of 127.0.0.1; a free one if not given
        name: of the node; a random one if not given
        java: further options of its Java, such as `BRIEF_LIFE`
        settings: further lines of elasticsearch.yml; with `cluster.name` it is one of several nodes
        within: where its temporary folder is made; where such folders are made on this machine if not given
        line: a named pipe on which the node takes orders; the node ends when the last process closes it

    Raises:
        ServerUnavailable: this machine has no means to run one
    """

    user: str | None = UNPRIVILEGED if os.geteuid() == 0 else None
    """As whom the server runs, if not as this process."""

    patience = 20.0
    """Seconds that the server has to end after SIGTERM."""

    def __init__(
        self,
        distribution: Distribution | None = None,
        *,
        security: bool = False,
        heap: str = "512m",
        port: int | None = None,
        name: str | None = None,
        java: Sequence[str] = (),
        settings: Mapping[str, Setting] | None = None,
        within: Path | None = None,
        line: Path | None = None,
    ) -> None:
        self.distribution = distribution or Distribution.find()
        self.name = name or f"searchapp-test-{secrets.token_hex(4)}"
        self.folder = Path(tempfile.mkdtemp(prefix="searchapp-node-", dir=within)).resolve()
        """The temporary folder with its configuration, data and log."""
        self.port = port or free_port()
        self.password = secrets.token_urlsafe(16) if security else None
        self._conf = self.folder / "conf"
        self._certificates = self._conf / "certificates"
        self._java_options = " ".join([f"-Xms{heap}", f"-Xmx{heap}", *java])
        self._more = dict(settings or {})
        self._line_path = line
        self._prepared = False
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._line: BinaryIO | None = None
        atexit.register(self.close)

    @property
    def url(self) -> str:
        return f"{'https' if self.password else 'http'}://127.0.0.1:{self.port}"

    @property
    def username(self) -> str | None:
        return "elastic" if self.password else None

    @property
    def ca_certs(self) -> Path | None:
        return self._certificates / "ca.pem" if self.password else None

    @property
    def server(self) -> Server:
        """The node as something to send plain requests to, with its credentials."""
        return Server(self.url, self.username, self.password, self.ca_certs)

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
        if not self.running:
            self.launch()
            self.await_answer(time.monotonic() + START_SECONDS)
        return self

    def launch(self) -> None:
        """Start the node without waiting for it; the nodes of a cluster answer only once they are enough."""
        try:
            if not self._prepared:
                self._certificates.mkdir(parents=True)
                if self.password:
                    self.renew_certificates()
                self.prepare()
                self._prepared = True
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
            while not self._answers():
                if time.monotonic() > deadline:
                    late = f"Elasticsearch did not answer within {START_SECONDS:.0f} s"
                    raise ServerFailed(f"{late}; its log ends:\n{self.log_tail()}")
                time.sleep(0.1)
        except BaseException:
            self.stop()
            raise

    def pause(self) -> None:
        """Freeze the node as SIGSTOP does: its connections stay open, and nothing answers."""
        self._signal("pause", stopped=True)

    def resume(self) -> None:
        """Let a paused node go on."""
        self._signal("resume", stopped=False)

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
        self._end("stop")

    def kill(self) -> None:
        """End the node at once as `kill -9` does; its data stay for another `start`."""
        self._end("kill")

    def leave(self) -> None:
        """Leave the node to the processes that hold its line, and to the supervisor, which removes its folder."""
        atexit.unregister(self.close)
        assert self._line is not None and self._supervisor is not None
        self._line.close()
        atexit.register(self._supervisor.poll)  # one that nobody refers to is complained of while it runs

    def restart(self) -> None:
        """Stop and start on the same port with the same data."""
        self.stop()
        self.start()

    def upgrade(self, version: str) -> None:
        """Stop the node; from the next start on it is one of a newer version with the same data."""
        self.stop()
        self.distribution = Distribution.find(version)
        self.prepare()

    def renew_certificates(self) -> None:
        """Write certificate, key and the authority that signed them anew; a node that runs shows them after seconds."""
        import trustme

        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1", "localhost")
        authority.cert_pem.write_to_path(str(self._certificates / "ca.pem"))
        issued.private_key_pem.write_to_path(str(self._certificates / "http.key"))
        for number, pem in enumerate(issued.cert_chain_pems):
            pem.write_to_path(str(self._certificates / "http.pem"), append=number > 0)

    def close(self) -> None:
        """Stop the node and remove all that it left."""
        atexit.unregister(self.close)
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def log_tail(self, lines: int = LOG_LINES) -> str:
        """The last lines that the server wrote."""
        log = self.folder / "console.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def prepare(self) -> None:
        """Write the configuration folder and the keystore, and make all of it the server's own.

        Data of another version stay as they are.
        """
        for name in ("data", "logs", "tmp"):
            (self.folder / name).mkdir(exist_ok=True)
        for name in ("jvm.options", "role_mapping.yml", "roles.yml", "users", "users_roles"):
            shutil.copy(self.distribution.home / "config" / name, self._conf / name)
        (self._conf / "log4j2.properties").write_text(LOG4J2, encoding="utf-8")
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in self.settings().items()]
        (self._conf / "elasticsearch.yml").write_text("".join(lines), encoding="utf-8")
        if self.user:
            account = pwd.getpwnam(self.user)
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, account.pw_uid, account.pw_gid)
        if self.password:
            # Forced, it makes the keystore as well: another start of Java would do no more.
            self._keystore("add", "--force", "--stdin", "bootstrap.password", given=self.password)

    def settings(self) -> dict[str, Setting]:
        """The lines of elasticsearch.yml."""
        settings: dict[str, Setting] = {
            "node.name": self.name,
            "action.destructive_requires_name": True,
            # A developer's nearly full disk must not turn indices read-only.
            "cluster.routing.allocation.disk.threshold_enabled": False,
            "xpack.ml.enabled": False,
            "xpack.watcher.enabled": False,
            "xpack.security.enabled": self.password is not None,
            "logger.org.elasticsearch.deprecation": "OFF",
            "network.host": "127.0.0.1",
            "http.port": str(self.port),
            "path.data": str(self.folder / "data"),
            "path.logs": str(self.folder / "logs"),
        }
        if "cluster.name" not in self._more:
            settings |= {"cluster.name": self.name, "discovery.type": "single-node"}
        if self.password:
            settings["xpack.security.autoconfiguration.enabled"] = False
            settings["xpack.security.http.ssl.enabled"] = True
            settings["xpack.security.http.ssl.key"] = "certificates/http.key"
            settings["xpack.security.http.ssl.certificate"] = "certificates/http.pem"
        return settings | self._more

    def command(self) -> list[str]:
        """The launcher, which starts the server, waits for it, and passes SIGTERM on."""
        # It takes the folder it stands in for the distribution's.
        enter = ["/usr/bin/env", "sh", "-c", 'cd "$ES_HOME" && exec "$@"', "launcher"]
        home = self.distribution.home
        classes = home / "lib" / "tools" / "server-launcher"
        if not classes.is_dir():  # before 9.4 the server was one of the tools
            return [*enter, *self.distribution.tool("server", self._conf)]
        launcher = ["-cp", f"{classes}/*", "org.elasticsearch.server.launcher.ServerLauncher"]
        return [*enter, self.distribution.java, *LAUNCHER_OPTIONS, f"-Des.path.home={home}", *launcher]

    def environment(self) -> dict[str, str]:
        """What the distribution's `elasticsearch-env` would set, and nothing of the developer's own."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "ES_HOME": str(self.distribution.home),
            "ES_PATH_CONF": str(self._conf),
            "ES_DISTRIBUTION_TYPE": "tar",
            "ES_JAVA_HOME": str(self.distribution.java_home),
            "ES_JAVA_OPTS": self._java_options,
            "CLI_JAVA_OPTS": " ".join(LAUNCHER_OPTIONS),  # of what works out the server's own options
            "ES_TMPDIR": str(self.folder / "tmp"),
            "LIBFFI_TMPDIR": str(self.folder / "tmp"),
            "JAVA": self.distribution.java,
            "JAVA_TYPE": "ES_JAVA_HOME",
        }

    def _keystore(self, *arguments: str, given: str) -> None:
        """Run the keystore tool, which is a class in the distribution as well."""
        account = pwd.getpwnam(self.user) if self.user else None
        answer = subprocess.run(
            [*self.distribution.tool("keystore", self._conf), *arguments],
            cwd=self.distribution.home,
            env=self.environment(),
            input=given,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
            user=account and account.pw_uid,
            group=account and account.pw_gid,
            extra_groups=[] if account else None,
        )
        if answer.returncode != 0:
            raise ServerFailed(f"the keystore tool failed: {answer.stdout}{answer.stderr}".strip())

    def _launch(self) -> subprocess.Popen[bytes]:
        if self._line_path:
            reader = os.open(self._line_path, os.O_RDONLY | os.O_NONBLOCK)  # or it would wait for a writer
            writer = os.open(self._line_path, os.O_WRONLY)
        else:
            reader, writer = os.pipe()
        self._line = os.fdopen(writer, "wb", buffering=0)
        command = [sys.executable, str(Path(__file__).with_name("supervisor.py")), f"--remove={self.folder}"]
        command += [f"--patience={self.patience}", *([f"--user={self.user}"] if self.user else [])]
        try:
            with (self.folder / "console.log").open("ab") as log:
                return subprocess.Popen(
                    [*command, "--", *self.command()],
                    stdin=reader,
                    stdout=log,
                    stderr=log,
                    env=self.environment(),
                    start_new_session=True,  # out of reach of the terminal's Ctrl-C: stopping is our decision
                )
        finally:
            os.close(reader)

    def _answers(self) -> bool:
        """Whether the node that was started answers, and its security index is ready."""
        if not self.running:
            raise ServerFailed(f"Elasticsearch ended while it started; its log ends:\n{self.log_tail()}")
        try:
            answer = self.server.request("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s")
            if answer.status != 200 or not self.password:
                return answer.status == 200
            # A secured node makes that index on its own some time after it began to answer, and takes nobody's
            # password while it does. Once the password was written into it, the index is there.
            account = f"/_security/user/{self.username}/_password"
            return self.server.request("POST", account, {"password": self.password}).status == 200
        except ssl.SSLCertVerificationError as error:
            raise ServerFailed(f"{self.url} is not the node that was started: {error}") from error
        except (OSError, http.client.HTTPException):
            return False  # not listening yet

    def _signal(self, order: str, *, stopped: bool) -> None:
        """Send an order after which the supervisor goes on listening, and wait until it was obeyed."""
        if self._supervisor is None or self._line is None:
            raise ServerFailed(f"the node {self.name} does not run")
        self._line.write(f"{order}\n".encode())
        deadline = time.monotonic() + PAUSE_SECONDS
        while True:
            processes = psutil.Process(self._supervisor.pid).children(recursive=True)
            if processes and all((one.status() == psutil.STATUS_STOPPED) == stopped for one in processes):
                return
            if time.monotonic() > deadline:
                raise ServerFailed(f"the node {self.name} did not {order}")
            time.sleep(0.02)

    def _end(self, order: str) -> None:
        """Send an order after which the supervisor ends, and wait for its end."""
        if self._line is not None:
            with self._line, suppress(BrokenPipeError):  # the supervisor is gone already
                self._line.write(f"{order}\n".encode())
        supervisor, self._supervisor, self._line = self._supervisor, None, None
        if supervisor is not None:
            supervisor.wait(STOP_SECONDS)


def names(process: psutil.Process, folder: Path) -> bool:
    """Whether a process still runs whose command names a folder."""
    try:
        return any(str(folder) in argument for argument in process.cmdline())
    except psutil.Error:
        return False  # it has ended meanwhile


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, nor is given by the system meanwhile.

    A node takes it only when it has started, on a busy machine minutes later. One of those that the system gives to
    whoever connects would then be somebody's.
    """
    try:
        first = int(GIVEN_PORTS.read_text(encoding="ascii").split()[0])
    except OSError:
        first = 32768  # as of Linux; those of other systems are higher
    while first - LOWEST_PORT > 1000:
        port = LOWEST_PORT + secrets.randbelow(first - LOWEST_PORT)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:  # there are hardly any others
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
