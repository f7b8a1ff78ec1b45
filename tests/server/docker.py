"""How a node runs as a container of the official image."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass

from .distribution import VERSION
from .errors import ServerFailed, ServerUnavailable
from .node import Plan

ANSWER_SECONDS = 15
PULL_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Docker:
    """A Docker engine, by the path of its client, and the version whose image it runs."""

    client: str
    version: str = VERSION

    @property
    def image(self) -> str:
        return f"elasticsearch:{self.version}"

    @classmethod
    def find(cls, version: str) -> Docker:
        """The Docker engine of this machine, with the image of a version pulled.

        Raises:
            ServerUnavailable: no client, no engine that answers, or no image
        """
        client = shutil.which("docker")
        if client is None:
            raise ServerUnavailable("Docker is not installed")
        docker = cls(client, version)
        docker._call("info", seconds=ANSWER_SECONDS)
        try:
            docker._call("image", "inspect", docker.image, seconds=ANSWER_SECONDS)
        except ServerUnavailable:
            docker._call("pull", "--quiet", docker.image, seconds=PULL_SECONDS)
        return docker

    def prepare(self, plan: Plan) -> None:
        """Create the container, which `docker start` then starts as often as the node is started."""
        # What is not in an unpacked distribution, and would look for the internet.
        settings = plan.settings() | {"ingest.geoip.downloader.enabled": False}
        environment = {name: str(value).lower() if value in (True, False) else str(value)
                       for name, value in settings.items()}  # fmt: skip
        environment["ES_JAVA_OPTS"] = plan.java_options
        options = ["--name", plan.name, "--publish", f"127.0.0.1:{plan.port}:9200"]
        if plan.password is not None:
            environment["ELASTIC_PASSWORD"] = plan.password
            plan.certificates.chmod(0o755)  # the image's user is another than this one
            plan.key.chmod(0o644)
            folder = "/usr/share/elasticsearch/config/certificates"
            options += ["--volume", f"{plan.certificates}:{folder}:ro"]
        for name, value in environment.items():
            options += ["--env", f"{name}={value}"]
        try:
            self._call("create", *options, self.image, seconds=ANSWER_SECONDS * 4)
        except ServerUnavailable as error:
            raise ServerFailed(str(error)) from error

    def command(self, plan: Plan) -> list[str]:
        """Start the container and stay attached: the client passes SIGTERM on and ends with the server."""
        return [self.client, "start", "--attach", plan.name]

    def environment(self, plan: Plan) -> None:
        return None

    def supervision(self, plan: Plan) -> list[str]:
        return [f"--finally={shlex.join([self.client, *_removal(plan)])}"]

    def kill(self, plan: Plan) -> None:
        self._call("kill", plan.name, seconds=ANSWER_SECONDS)  # SIGKILL of the client would not reach it

    def pause(self, plan: Plan) -> None:
        self._call("pause", plan.name, seconds=ANSWER_SECONDS)  # SIGSTOP stops the client alone

    def resume(self, plan: Plan) -> None:
        self._call("unpause", plan.name, seconds=ANSWER_SECONDS)

    def discard(self, plan: Plan) -> None:
        self._call(*_removal(plan), seconds=ANSWER_SECONDS * 4)

    def _call(self, *arguments: str, seconds: float) -> None:
        try:
            answer = subprocess.run(
                [self.client, *arguments], capture_output=True, text=True, timeout=seconds, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerUnavailable(f"docker {arguments[0]} did not answer: {error}") from error
        if answer.returncode != 0:
            reason = answer.stderr.strip().splitlines() or ["no reason given"]
            raise ServerUnavailable(f"docker {arguments[0]} failed: {reason[-1]}")


def _removal(plan: Plan) -> list[str]:
    return ["rm", "--force", "--volumes", plan.name]
