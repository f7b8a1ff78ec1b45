"""An Elasticsearch node on the loopback address, with its own temporary folder."""

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
STOP_SECONDS = 40.0  # longer than the supervisor's patience, after which it kills the server
PAUSE_SECONDS = 10.0
LOG_LINES = 30

LOWEST_PORT = 12000
"""Well-known servers and servers of developers listen on lower ports."""

EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")

# Java options for a server that runs only for minutes. Without the optimizing compiler a start needs two thirds of the
# processor time, and the first requests half. The other compiler is cheap and pays off after a fifth of the usual
# number of calls, which saves a tenth of the time of requests. The serial collector saves a sixth of the time of
# indexing. Verified classes and touched heap pages do not pay off. Enough room for classes and compiled code avoids
# collections.
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

# Log to the console instead of the distribution's ten rolling files.
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
    """A node: `with Node() as node: ... node.url`.

    A secured node has HTTPS with a certificate of a temporary authority, and the user `elastic`.

    Args:
        distribution: The distribution to run; by default that of the session's tests.
        security: Whether the node is secured.
        heap: Heap size of Java, such as `512m`.
        port: Port of 127.0.0.1; by default a free one.
        name: Name of the node; by default a random one.
        java: Further options of Java, such as `BRIEF_LIFE`.
        settings: Further settings of elasticsearch.yml; with `cluster.name` the node belongs to a cluster.
        within: Folder for the temporary folder; by default the system's.
        line: A named pipe on which the node takes orders; the node ends when the last process closes it.

    Raises:
        ServerUnavailable: This machine can't run a node.
    """

    user: str | None = UNPRIVILEGED if os.geteuid() == 0 else None
    """The user that runs the server, if it differs from this process's user."""

    patience = 20.0
    """Seconds in which the server must end after SIGTERM."""

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
        """The node as a server for plain requests, with its credentials."""
        return Server(self.url, self.username, self.password, self.ca_certs)

    @property
    def running(self) -> bool:
        return self._supervisor is not None and self._supervisor.poll() is None

    def processes(self) -> list[psutil.Process]:
        """Return the node's processes, whose commands contain its folder."""
        return [process for process in psutil.process_iter() if mentions_folder(process, self.folder)]

    def start(self) -> Self:
        """Start the node, if it does not run, and wait until it answers.

        Raises:
            ServerFailed: The node ended or did not answer in time; the message has the end of its log.
        """
        if not self.running:
            self.launch()
            self.await_answer(time.monotonic() + START_SECONDS)
        return self

    def launch(self) -> None:
        """Start the node without waiting; nodes of a cluster answer only after a majority has started."""
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
        """Wait until the node answers; stop it if it does not before `deadline` of the monotonic clock.

        Raises:
            ServerFailed: As in `start`.
        """
        try:
            while not self._answers():
                if time.monotonic() > deadline:
                    raise ServerFailed(
                        f"Elasticsearch did not answer within {START_SECONDS:.0f} s; its log ends:\n{self.log_tail()}"
                    )
                time.sleep(0.1)
        except BaseException:
            self.stop()
            raise

    def pause(self) -> None:
        """Stop the node by SIGSTOP: its connections stay open without answers."""
        self._signal("pause", stopped=True)

    def resume(self) -> None:
        """Resume a paused node."""
        self._signal("resume", stopped=False)

    def recover(self) -> None:
        """Resume the node if it is paused, and start it if it does not run.

        Raises:
            ServerFailed: As in `start`.
        """
        if self.running:
            self.resume()
        self.start()

    def stop(self) -> None:
        """Stop the node by SIGTERM; its data remain for another `start`."""
        self._end("stop")

    def kill(self) -> None:
        """End the node by SIGKILL; its data remain for another `start`."""
        self._end("kill")

    def leave(self) -> None:
        """Leave the node to the processes that hold its pipe, and to the supervisor, which removes its folder."""
        atexit.unregister(self.close)
        assert self._line is not None and self._supervisor is not None
        self._line.close()
        atexit.register(
            self._supervisor.poll
        )  # keeps a reference, because Popen warns if it is deleted while it runs

    def restart(self) -> None:
        """Stop and start on the same port with the same data."""
        self.stop()
        self.start()

    def upgrade(self, version: str) -> None:
        """Stop the node; the next start runs a newer version with the same data."""
        self.stop()
        self.distribution = Distribution.find(version)
        self.prepare()

    def renew_certificates(self) -> None:
        """Write a new certificate, key and authority, which a running node uses after seconds."""
        import trustme

        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1", "localhost")
        authority.cert_pem.write_to_path(str(self._certificates / "ca.pem"))
        issued.private_key_pem.write_to_path(str(self._certificates / "http.key"))
        for number, pem in enumerate(issued.cert_chain_pems):
            pem.write_to_path(str(self._certificates / "http.pem"), append=number > 0)

    def close(self) -> None:
        """Stop the node and remove its folder."""
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
        """Return the last lines of the server's log."""
        log = self.folder / "console.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def prepare(self) -> None:
        """Write the configuration folder and the keystore, owned by the server's user.

        Data of another version are not changed.
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
            # `--force` also creates the keystore, which saves another start of Java
            self._keystore("add", "--force", "--stdin", "bootstrap.password", text=self.password)

    def settings(self) -> dict[str, Setting]:
        """Return the settings of elasticsearch.yml."""
        settings: dict[str, Setting] = {
            "node.name": self.name,
            "action.destructive_requires_name": True,
            # a nearly full disk of a developer must not make indexes read-only
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
        """Return the command of the launcher, which starts the server, waits for it and forwards SIGTERM."""
        # the launcher expects the distribution as its working folder
        enter = ["/usr/bin/env", "sh", "-c", 'cd "$ES_HOME" && exec "$@"', "launcher"]
        home = self.distribution.home
        classes = home / "lib" / "tools" / "server-launcher"
        if not classes.is_dir():  # before 9.4 the server is one of the tools
            return [*enter, *self.distribution.tool("server", self._conf)]
        launcher = ["-cp", f"{classes}/*", "org.elasticsearch.server.launcher.ServerLauncher"]
        return [*enter, self.distribution.java, *LAUNCHER_OPTIONS, f"-Des.path.home={home}", *launcher]

    def environment(self) -> dict[str, str]:
        """Return the variables that the distribution's `elasticsearch-env` sets, and no others."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "ES_HOME": str(self.distribution.home),
            "ES_PATH_CONF": str(self._conf),
            "ES_DISTRIBUTION_TYPE": "tar",
            "ES_JAVA_HOME": str(self.distribution.java_home),
            "ES_JAVA_OPTS": self._java_options,
            "CLI_JAVA_OPTS": " ".join(LAUNCHER_OPTIONS),  # for the process that computes the server's options
            "ES_TMPDIR": str(self.folder / "tmp"),
            "LIBFFI_TMPDIR": str(self.folder / "tmp"),
            "JAVA": self.distribution.java,
            "JAVA_TYPE": "ES_JAVA_HOME",
        }

    def _keystore(self, *arguments: str, text: str) -> None:
        """Run the keystore tool of the distribution."""
        account = pwd.getpwnam(self.user) if self.user else None
        process = subprocess.run(
            [*self.distribution.tool("keystore", self._conf), *arguments],
            cwd=self.distribution.home,
            env=self.environment(),
            input=text,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
            user=account and account.pw_uid,
            group=account and account.pw_gid,
            extra_groups=[] if account else None,
        )
        if process.returncode != 0:
            raise ServerFailed(f"the keystore tool failed: {process.stdout}{process.stderr}".strip())

    def _launch(self) -> subprocess.Popen[bytes]:
        if self._line_path:
            reader = os.open(self._line_path, os.O_RDONLY | os.O_NONBLOCK)  # otherwise it waits for a writer
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
                    start_new_session=True,  # Ctrl-C on the terminal must not stop the server
                )
        finally:
            os.close(reader)

    def _answers(self) -> bool:
        """Whether the started node answers and its security index is ready."""
        if not self.running:
            raise ServerFailed(f"Elasticsearch ended while it started; its log ends:\n{self.log_tail()}")
        try:
            answer = self.server.request("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s")
            if answer.status != 200 or not self.password:
                return answer.status == 200
            # A secured node creates the index some time after it begins to answer, and rejects passwords meanwhile.
            # After a successful change of the password the index exists.
            account = f"/_security/user/{self.username}/_password"
            return self.server.request("POST", account, {"password": self.password}).status == 200
        except ssl.SSLCertVerificationError as error:
            raise ServerFailed(f"{self.url} is not the node that was started: {error}") from error
        except (OSError, http.client.HTTPException):
            return False  # not listening yet

    def _signal(self, order: str, *, stopped: bool) -> None:
        """Send an order after which the supervisor keeps running, and wait until it is executed."""
        if self._supervisor is None or self._line is None:
            raise ServerFailed(f"the node {self.name} does not run")
        self._line.write(f"{order}\n".encode())
        deadline = time.monotonic() + PAUSE_SECONDS
        while True:
            processes = psutil.Process(self._supervisor.pid).children(recursive=True)
            if processes and all(
                (process.status() == psutil.STATUS_STOPPED) == stopped for process in processes
            ):
                return
            if time.monotonic() > deadline:
                raise ServerFailed(f"the node {self.name} did not {order}")
            time.sleep(0.02)

    def _end(self, order: str) -> None:
        """Send an order after which the supervisor ends, and wait for it."""
        if self._line is not None:
            with self._line, suppress(BrokenPipeError):  # the supervisor has ended
                self._line.write(f"{order}\n".encode())
        supervisor, self._supervisor, self._line = self._supervisor, None, None
        if supervisor is not None:
            supervisor.wait(STOP_SECONDS)


def mentions_folder(process: psutil.Process, folder: Path) -> bool:
    """Whether a process runs and its command contains a folder."""
    try:
        return any(str(folder) in argument for argument in process.cmdline())
    except psutil.Error:
        return False  # it has ended


def free_port() -> int:
    """Return a free port of 127.0.0.1 outside the range of ephemeral ports.

    A node listens on its port only after it has started, on a busy machine minutes later. Meanwhile the system could
    assign an ephemeral port to another connection.
    """
    try:
        first = int(EPHEMERAL_PORTS.read_text(encoding="ascii").split()[0])
    except OSError:
        first = 32768  # the first one of Linux; other systems have higher ones
    while first - LOWEST_PORT > 1000:
        port = LOWEST_PORT + secrets.randbelow(first - LOWEST_PORT)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:  # there are hardly any other ports
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
