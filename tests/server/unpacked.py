"""How a node runs from an unpacked distribution, which has no start script of its own."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .distribution import VERSION, cache_folder, fetch
from .errors import ServerFailed, ServerUnavailable
from .java import OLDEST, find_java
from .node import Plan

# Elasticsearch refuses to run as root.
UNPRIVILEGED = "nobody"

# The launcher only starts the server and forwards signals: it needs a small heap and a quick start.
LAUNCHER_OPTIONS = ["-Xms4m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

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


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A distribution in a folder, the home of the Java that runs it, and its version."""

    home: Path
    java: Path
    version: str = VERSION

    @classmethod
    def find(cls, version: str) -> Unpacked:
        """The distribution from the cache folder, fetched first when it is not there.

        Raises:
            ServerUnavailable: no Java that is new enough, or no distribution to be had
        """
        java = find_java()
        if java is None:
            raise ServerUnavailable(f"no Java {OLDEST} or newer was found")
        cache = cache_folder()
        if os.geteuid() == 0 and (closed := closed_to_others(cache) or closed_to_others(java)):
            raise ServerUnavailable(
                f"the user {UNPRIVILEGED}, as whom Elasticsearch runs for root, cannot enter {closed}; "
                "set SEARCHAPP_TEST_CACHE or JAVA_HOME to another place"
            )
        return cls(fetch(cache, version), java, version)

    @property
    def user(self) -> str | None:
        return UNPRIVILEGED if os.geteuid() == 0 else None

    def prepare(self, plan: Plan) -> None:
        """Write the configuration folder and the keystore, and make all of it the server's own.

        Data of another version stay as they are.
        """
        conf = plan.folder / "conf"
        for name in ("data", "logs", "tmp"):
            (plan.folder / name).mkdir(exist_ok=True)
        for name in ("jvm.options", "role_mapping.yml", "roles.yml", "users", "users_roles"):
            shutil.copy(self.home / "config" / name, conf / name)
        (conf / "log4j2.properties").write_text(LOG4J2, encoding="utf-8")
        settings = plan.settings() | {
            "network.host": "127.0.0.1",
            "http.port": str(plan.port),
            "path.data": str(plan.folder / "data"),
            "path.logs": str(plan.folder / "logs"),
        }
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in settings.items()]
        (conf / "elasticsearch.yml").write_text("".join(lines), encoding="utf-8")
        self._give_away(plan.folder)
        if plan.password is not None:
            # Forced, it makes the keystore as well: another start of Java would do no more.
            self._keystore(plan, "add", "--force", "--stdin", "bootstrap.password", given=plan.password)

    def command(self, plan: Plan) -> list[str]:
        """The launcher, which starts the server, waits for it, and passes SIGTERM on."""
        # It takes the folder it stands in for the distribution's.
        enter = ["/usr/bin/env", "sh", "-c", 'cd "$ES_HOME" && exec "$@"', "launcher"]
        classes = self.home / "lib" / "tools" / "server-launcher"
        if not classes.is_dir():  # before 9.4 the server was one of the tools
            return [*enter, *self._tool(plan, "server")]
        launcher = ["-cp", f"{classes}/*", "org.elasticsearch.server.launcher.ServerLauncher"]
        return [*enter, self._java, *LAUNCHER_OPTIONS, f"-Des.path.home={self.home}", *launcher]

    def environment(self, plan: Plan) -> dict[str, str]:
        """What the distribution's `elasticsearch-env` would set, and nothing of the developer's own."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(plan.folder),
            "ES_HOME": str(self.home),
            "ES_PATH_CONF": str(plan.folder / "conf"),
            "ES_DISTRIBUTION_TYPE": "tar",
            "ES_JAVA_HOME": str(self.java),
            "ES_JAVA_OPTS": plan.java_options,
            "CLI_JAVA_OPTS": " ".join(
                LAUNCHER_OPTIONS
            ),  # of the program that works out the server's own options
            "ES_TMPDIR": str(plan.folder / "tmp"),
            "LIBFFI_TMPDIR": str(plan.folder / "tmp"),
            "JAVA": self._java,
            "JAVA_TYPE": "ES_JAVA_HOME",
        }

    def supervision(self, plan: Plan) -> list[str]:
        return [f"--user={self.user}"] if self.user else []

    def kill(self, plan: Plan) -> None:
        """Nothing: the supervisor kills launcher and server as one group."""

    def pause(self, plan: Plan) -> None:
        """Nothing: the supervisor stops launcher and server as one group."""

    def resume(self, plan: Plan) -> None:
        """Nothing, for the same reason."""

    def discard(self, plan: Plan) -> None:
        """Nothing: all of it is in the plan's folder."""

    @property
    def _java(self) -> str:
        return str(self.java / "bin" / "java")

    def _give_away(self, folder: Path) -> None:
        if self.user is None:
            return
        account = pwd.getpwnam(self.user)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, account.pw_uid, account.pw_gid)

    def _tool(self, plan: Plan, name: str) -> list[str]:
        """The command that runs a tool of the distribution in its folder."""
        conf = plan.folder / "conf"
        command = [self._java, *LAUNCHER_OPTIONS, f"-Dcli.name={name}", f"-Dcli.libs=lib/tools/{name}-cli"]
        command += [f"-Des.path.home={self.home}", f"-Des.path.conf={conf}", "-Des.distribution.type=tar"]
        command += ["-cp", f"{self.home}/lib/*:{self.home}/lib/cli-launcher/*"]
        return [*command, "org.elasticsearch.launcher.CliToolLauncher"]

    def _keystore(self, plan: Plan, *arguments: str, given: str = "") -> None:
        """Run the keystore tool, which is a class in the distribution as well."""
        account = pwd.getpwnam(self.user) if self.user else None
        answer = subprocess.run(
            [*self._tool(plan, "keystore"), *arguments],
            cwd=self.home,
            env=self.environment(plan),
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


def closed_to_others(path: Path) -> Path | None:
    """The first folder on the way to `path` that only its owner may enter, or None."""
    for folder in reversed([path, *path.parents]):
        if folder.is_dir() and not folder.stat().st_mode & 0o001:
            return folder
    return None
