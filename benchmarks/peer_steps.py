"""The steps of `peers.py`, each in a process of its own, and what some systems need beside it: a server, Java.

What this process has ever used would count for those that it starts, see getrusage(2), so it does nothing itself.
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
from usage import peak_of, work_of

LUCENE = Path(__file__).parent / "lucene"
MIB = 2**20


@dataclass(frozen=True)
class Steps:
    """Runs the steps of one size: with this many threads for a batch, and seconds at least to warm up."""

    size: str
    data: Path
    work: Path
    threads: int
    warm_up: float
    url: str | None = None

    @property
    def folder(self) -> Path:
        """Where the collection and the indexes of the size are."""
        return self.work / self.size

    def prepare(self) -> None:
        """Make the collection, unless it is there."""
        subprocess.run(self._command("prepare"), check=True)

    def run(self, step: str, system: str) -> dict[str, Any]:
        """What a step of a system reports, with the peak memory of its largest process in MiB.

        Raises:
            Unavailable: it can't be done; the message says why.
        """
        command = [*self._command(step), "--systems", system]
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(command, stdout=output, stderr=errors, text=True, env=_environment())
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            errors.seek(0)
            said, complaint = output.read().strip().splitlines(), errors.read().strip().splitlines()
        if process.returncode or not said:
            raise Unavailable(
                (complaint or [f"{step} said nothing"])[-1].removeprefix("peer_base.Unavailable: ")
            )
        report: dict[str, Any] = json.loads(said[-1])
        return {"MiB": peak_of(usage), "cpu s": work_of(usage), **report}

    def _command(self, step: str) -> list[str]:
        command = [sys.executable, str(Path(__file__).with_name("peers.py")), "--step", step]
        command += ["--size", self.size, "--data", str(self.data), "--work", str(self.work)]
        command += ["--threads", str(self.threads), "--warm-up", str(self.warm_up)]
        return [*command, *(["--url", self.url] if self.url else [])]


def _environment() -> dict[str, str]:
    """One thread for each library that would start its own."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "DISABLE_TQDM": "1"}


def with_server(steps: Steps, heap: str, stack: contextlib.ExitStack) -> Steps:
    """The same steps with an Elasticsearch, which is started for as long as the stack lasts unless one is given.

    Raises:
        Unavailable: none can be started here.
    """
    if steps.url:
        return steps
    from tests.server.distribution import ServerError
    from tests.server.node import Node, free_port

    kept = kept_indexes(steps.work)
    kept.mkdir(parents=True, exist_ok=True)
    kept.chmod(0o777)  # the server may be another user
    try:
        # On the disk that the other indexes are on, where tests would have it in memory.
        node = Node(
            heap=heap,
            port=free_port(),
            settings={"path.repo": [str(kept)]},
            within=steps.work,
        )
        return replace(steps, url=stack.enter_context(node).url)
    except ServerError as error:
        raise Unavailable(str(error)) from error


def kept_indexes(work: Path) -> Path:
    """Where a server that is started keeps its indexes for the next one, as snapshots."""
    return work.resolve() / "elasticsearch"


def compile_lucene(work: Path) -> None:
    """Compile the Java program against what Maven fetches, and tell the processes that are started where it is.

    Raises:
        Unavailable: Java 21 or newer, which Lucene 10 needs, or Maven is missing, or the artifacts can't be fetched.
    """
    os.environ["PEERS_JAVA"] = os.pathsep.join(map(str, _compiled(work / "lucene")))


def _compiled(folder: Path) -> Sequence[Path]:
    """Java's home, the jars of Lucene and the compiled program."""
    from tests.server.distribution import find_java

    home = find_java()
    if home is None or not (home / "bin" / "javac").exists():
        raise Unavailable("there is no Java 21 or newer with a compiler, which Lucene 10 needs")
    pom = LUCENE / "pom.xml"
    folder /= hashlib.sha256(pom.read_bytes()).hexdigest()[:12]  # artifacts of another version are left alone
    jars, classes = folder / "jars", folder / "classes"
    if not any(jars.glob("*.jar")):
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        command = ["mvn", "-B", "-q", "-f", str(pom), goal, f"-DoutputDirectory={jars}"]
        _run(command, "Maven could not fetch Lucene")
    classes.mkdir(parents=True, exist_ok=True)
    _run(
        [f"{home}/bin/javac", "-cp", f"{jars}/*", "-d", str(classes), str(LUCENE / "Peers.java")],
        "Peers.java does not compile",
    )
    return home, jars, classes


def _run(command: Sequence[str], problem: str) -> None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"{problem}: {error}") from error
    if answer.returncode:
        raise Unavailable(f"{problem}: {(answer.stdout + answer.stderr).strip().splitlines()[:1]}")
