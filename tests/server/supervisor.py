"""Run a server and end it, at the latest when all processes that use it have ended.

    python supervisor.py --patience S --remove FOLDER [--user NAME] -- COMMAND...

Standard input has one order of the users of the server in each line:

    stop    SIGTERM, then SIGKILL after the patience
    kill    SIGKILL
    pause   SIGSTOP to all processes of the command
    resume  SIGCONT
    (end)   all users have closed the pipe or have ended: stop the server and remove the folder

The end of a pipe shows the death of a process on every system, and despite the change of user that Elasticsearch
needs. This file uses only the standard library and is run by its path.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType

GONE_SECONDS = 5.0
SIGNALS = {"pause": signal.SIGSTOP, "resume": signal.SIGCONT}


def main() -> int:
    """Run the command until it ends or an order ends it, and return its exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--patience", type=float)
    parser.add_argument("--remove")
    parser.add_argument("--user")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    signal.signal(signal.SIGTERM, _leave)
    account = pwd.getpwnam(options.user) if options.user else None
    # In its own session, the server and its child processes can be ended as a group.
    child = subprocess.Popen(
        options.command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        user=account and account.pw_uid,
        group=account and account.pw_gid,
        extra_groups=[] if account else None,
    )
    order = ""
    try:
        order = _wait(child)
    finally:
        _end(child, 0 if order == "kill" else options.patience)
        if order == "":
            shutil.rmtree(options.remove, ignore_errors=True)
    return child.returncode


def _wait(child: subprocess.Popen[bytes]) -> str:
    """Return the order `stop` or `kill`, `gone` if the child ended, or an empty text if the pipe was closed."""
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], 0.2)
        if not readable:
            continue
        orders = os.read(sys.stdin.fileno(), 64).decode().split()
        for order in orders or [""]:
            if order not in SIGNALS:
                sys.stdin.close()  # so that no process can open a named pipe for writing
                return order
            os.killpg(child.pid, SIGNALS[order])
    return "gone"


def _end(child: subprocess.Popen[bytes], patience: float) -> None:
    if patience and child.poll() is None:
        os.killpg(child.pid, signal.SIGCONT)  # a paused process would not receive SIGTERM
        child.send_signal(signal.SIGTERM)  # only to the launcher, which waits for its server
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)
    # The rest of the group is mostly empty; with zombies macOS reports that as "not permitted".
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        # A killed server with a large heap keeps its port and its lock on the data for a moment.
        deadline = time.monotonic() + GONE_SECONDS
        while time.monotonic() < deadline:
            os.killpg(child.pid, 0)
            time.sleep(0.02)
    child.wait()


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
