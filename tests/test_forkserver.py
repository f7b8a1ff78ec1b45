"""Forks of the fork server end like the interpreter, which the full profile starts instead."""

from __future__ import annotations

import signal

import pytest

from tests.programs import Program

ENDS = {
    "normal": ("", 0),
    "a number": ("import sys; sys.exit(3)", 3),
    "a large number": ("import sys; sys.exit(259)", 3),
    "a text": ("import sys; sys.exit('words')", 1),
    "an error": ("raise ValueError('words')", 1),
    "an interruption": ("raise KeyboardInterrupt", -signal.SIGINT),
}


@pytest.mark.parametrize("end", ENDS)
def test_exit_codes_equal_those_of_the_interpreter(end: str) -> None:
    text, code = ENDS[end]
    with Program(text) as program:
        _output, errors = program.communicate()
    assert program.returncode == code
    assert ("words" in errors) == (end in ("a text", "an error"))


EXITING = """
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


def test_threads_exit_functions_and_buffers_are_completed_before_the_end() -> None:
    with Program(EXITING) as program:
        assert program.communicate() == ("text thread exit", "error")
    assert program.returncode == 4


def test_output_to_a_full_disk_is_a_failure() -> None:
    full = "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); print('words')"
    with Program(full, environment={"PYTHONUNBUFFERED": ""}) as program:
        _output, errors = program.communicate()
    assert program.returncode == 120, errors
