"""The steps of `peers.py`, each in a separate process, and requirements of some systems: a server, Java.

The peak memory of this process would count for its children, see getrusage(2), so that this process does no work.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from peer_base import Unavailable
from usage import cpu_seconds_of, peak_mib_of

LUCENE = Path(__file__).parent / "lucene"
MIB = 2**20


@dataclass(frozen=True)
class Steps:
    """Runs the steps of a size, with a number of threads for batches and the minimum seconds to warm up."""

    size: str
    data: Path
    work: Path
    threads: int
    warm_up: float
    url: str | None = None

    @property
    def folder(self) -> Path:
        """The folder of the collection and of the indexes."""
        return self.work / self.size

    def prepare(self) -> None:
        """Make the collection unless it is up to date."""
        subprocess.run(self._command("prepare"), check=True)

    def run(self, step: str, system: str) -> dict[str, Any]:
        """Run a step of a system; return its report, with the peak memory of its largest process in MiB.

        Raises:
            Unavailable: the step failed; the message has the reason.
        """
        command = [*self._command(step), "--systems", system]
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(command, stdout=output, stderr=errors, text=True, env=_environment())
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            errors.seek(0)
            lines, messages = (file.read().strip().splitlines() for file in (output, errors))
        if process.returncode or not lines:
            message = (messages or [f"{step} printed nothing"])[-1]
            raise Unavailable(message.removeprefix("peer_base.Unavailable: "))
        report: dict[str, Any] = json.loads(lines[-1])
        return {"MiB": peak_mib_of(usage), "cpu s": cpu_seconds_of(usage), **report}

    def _command(self, step: str) -> list[str]:
        command = [sys.executable, str(Path(__file__).with_name("peers.py")), "--step", step]
        command += ["--size", self.size, "--data", str(self.data), "--work", str(self.work)]
        command += ["--threads", str(self.threads), "--warm-up", str(self.warm_up)]
        return [*command, *(["--url", self.url] if self.url else [])]


def _environment() -> dict[str, str]:
    """Return variables that limit libraries to one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "DISABLE_TQDM": "1"}


def with_server(steps: Steps, heap: str, stack: contextlib.ExitStack) -> Steps:
    """Return the steps with an Elasticsearch; start one until the stack is closed unless the steps have one.

    Raises:
        Unavailable: Elasticsearch can't be started.
    """
    if steps.url:
        return steps
    from tests.server.distribution import ServerError
    from tests.server.node import Node, free_port

    snapshots = snapshot_folder(steps.work)
    snapshots.mkdir(parents=True, exist_ok=True)
    snapshots.chmod(0o777)  # the server may run as another user
    try:
        # On the same disk as the other indexes; nodes of tests are in memory.
        node = Node(heap=heap, port=free_port(), settings={"path.repo": [str(snapshots)]}, within=steps.work)
        return replace(steps, url=stack.enter_context(node).url)
    except ServerError as error:
        raise Unavailable(str(error)) from error


def snapshot_folder(work: Path) -> Path:
    """Return the folder of snapshots, from which the next started server restores its indexes."""
    return work.resolve() / "elasticsearch"


def compile_lucene(work: Path) -> None:
    """Fetch Lucene by Maven, compile the Java program, and set PEERS_JAVA for child processes.

    Raises:
        Unavailable: Maven or Java 21 or newer is missing, or the artifacts can't be fetched.
    """
    os.environ["PEERS_JAVA"] = os.pathsep.join(map(str, _compile(work / "lucene")))


def _compile(folder: Path) -> Sequence[Path]:
    """Return the home of Java, the jars of Lucene and the compiled program."""
    from tests.server.distribution import find_java

    home = find_java()
    if home is None or not (home / "bin" / "javac").exists():
        raise Unavailable("there is no Java 21 or newer with a compiler, which Lucene 10 needs")
    pom = LUCENE / "pom.xml"
    folder /= hashlib.sha256(pom.read_bytes()).hexdigest()[:12]  # other versions have other folders
    jars, classes = folder / "jars", folder / "classes"
    if not any(jars.glob("*.jar")):
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        command = ["mvn", "-B", "-q", "-f", str(pom), goal, f"-DoutputDirectory={jars}"]
        _run(command, "Maven could not fetch Lucene")
    classes.mkdir(parents=True, exist_ok=True)
    command = [f"{home}/bin/javac", "-cp", f"{jars}/*", "-d", str(classes), str(LUCENE / "Peers.java")]
    _run(command, "Peers.java does not compile")
    return home, jars, classes


def _run(command: Sequence[str], problem: str) -> None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"{problem}: {error}") from error
    if answer.returncode:
        raise Unavailable(f"{problem}: {(answer.stdout + answer.stderr).strip().splitlines()[:1]}")
