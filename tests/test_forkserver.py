"""What a fork of the fork server does at its end is what the interpreter does; in the full profile it is one."""

from __future__ import annotations

import signal

import pytest

from tests.programs import Program

ENDS = {
    "nothing": ("", 0),
    "a number": ("import sys; sys.exit(3)", 3),
    "a large number": ("import sys; sys.exit(259)", 3),
    "a text": ("import sys; sys.exit('words')", 1),
    "an error": ("raise ValueError('words')", 1),
    "an interruption": ("raise KeyboardInterrupt", -signal.SIGINT),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_ends_with_the_code_of_its_end(end: str) -> None:
    text, code = ENDS[end]
    with Program(text) as program:
        _said, complained = program.ended()
    assert program.returncode == code
    assert ("words" in complained) == (end in ("a text", "an error"))


LAST = """
import atexit, sys, threading, time
def late():
    time.sleep(0.05)
    sys.stdout.write("thread ")
threading.Thread(target=late).start()
atexit.register(lambda: sys.stdout.write("exit"))
sys.stdout.write("text ")
sys.stderr.write("error")
sys.exit(4)
"""


def test_threads_what_is_to_run_at_the_end_and_what_was_not_flushed_come_before_it() -> None:
    with Program(LAST) as program:
        assert program.ended() == ("text thread exit", "error")
    assert program.returncode == 4


def test_output_that_nobody_takes_is_a_failure() -> None:
    full = "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); print('words')"
    with Program(full, environment={"PYTHONUNBUFFERED": ""}) as program:
        _said, complained = program.ended()
    assert program.returncode == 120, complained
