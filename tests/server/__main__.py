"""`python -m tests.server`: run Elasticsearch until Ctrl-C or during a command.

    python -m tests.server                      start on port 9200 and wait for Ctrl-C
    python -m tests.server --version 8.19       start the older version that the tests support
    python -m tests.server --nodes 3            start a cluster, on free ports
    python -m tests.server -- searchapp demo    start, run the command with SEARCHAPP_URL, stop

With a command, standard output has only the command's output, and the exit code is the command's.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from .cluster import Cluster
from .distribution import RELEASES, Distribution, ServerError, version_named
from .node import BRIEF_LIFE, Node, free_port

COMMAND_SECONDS = 10.0  # in which the command must end after SIGTERM


class _Stop(BaseException):
    """SIGTERM was received."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node and return the exit code."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, _stop)
    port = options.port
    if _is_in_use(port):
        port = free_port()
        _print_error(f"Port {options.port} is in use; this node uses port {port}.")
    try:
        _print_error("Starting Elasticsearch; the first start downloads it, which takes a while.")
        with _nodes(options, port) as nodes:
            version = nodes[0].server.request("GET", "/").json()["version"]["number"]
            url = ",".join(node.url for node in nodes)
            ready = f"Elasticsearch {version} is ready at {url}"
            print(ready, file=sys.stderr if options.command else sys.stdout, flush=True)
            return _run(options.command, url) if options.command else _hold(nodes)
    except ServerError as error:
        _print_error(str(error))
        return 3
    except KeyboardInterrupt:
        return 130 if options.command else 0
    except _Stop:
        return 143 if options.command else 0


@contextmanager
def _nodes(options: argparse.Namespace, port: int) -> Iterator[Sequence[Node]]:
    """Run a node at the port, or a cluster."""
    version = version_named(options.version) if options.version else None
    java = BRIEF_LIFE if options.brief else ()
    if options.nodes == 1:
        with Node(Distribution.find(version), heap=options.heap, port=port, java=java) as node:
            yield [node]
    else:
        with Cluster(options.nodes, heap=options.heap, java=java, version=version) as cluster:
            yield cluster.nodes


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.server", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--port", type=int, default=9200, help="port of 127.0.0.1; a free one if it is in use"
    )
    parser.add_argument("--version", help=f"version of the server: {' or '.join(RELEASES)}, or its beginning")
    parser.add_argument("--heap", default="512m", help="heap of the server, such as 512m or 2g")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of a cluster, which use free ports")
    parser.add_argument(
        "--brief", action="store_true", help="start faster, and run slower after some minutes"
    )
    parser.add_argument("command", nargs="*", metavar="-- COMMAND", help="command to run with SEARCHAPP_URL")
    return parser.parse_args(arguments)


def _hold(nodes: Sequence[Node]) -> int:
    while all(node.running for node in nodes):
        time.sleep(0.2)
    ended = next(node for node in nodes if not node.running)
    _print_error(f"Elasticsearch ended by itself; its log ends:\n{ended.log_tail()}")
    return 3


def _run(command: list[str], url: str) -> int:
    try:
        process = subprocess.Popen(command, env={**os.environ, "SEARCHAPP_URL": url})
    except OSError as error:
        _print_error(f"{command[0]} does not start: {error}")
        return 127
    try:
        code = _wait(process)
    except _Stop:
        process.terminate()
        try:
            process.wait(COMMAND_SECONDS)
        finally:
            process.kill()
            process.wait()
        raise
    return code if code >= 0 else 128 - code


def _wait(process: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass  # the terminal sent it to the command too, which decides whether to end


def _is_in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ports in TIME_WAIT are free
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second SIGTERM must not interrupt the end
    raise _Stop


def _print_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
