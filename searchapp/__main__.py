"""The program: the script `searchapp`, and `python -m searchapp`."""

# Ctrl-C during these imports prints a traceback.
import atexit
import gc
import os
import signal
import sys

from searchapp import require_unix


def main() -> None:
    """Run the command line; handle Ctrl-C during imports and cleanup as during a command."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit_on_interrupt)
    try:
        require_unix()
    except ImportError as error:
        sys.exit(f"searchapp: {error}")
    gc.set_threshold(200_000)  # imports make many objects, and no garbage
    atexit.register(gc.freeze)  # else Python visits all of them several times while it exits
    from searchapp.cli import main as run_command_line

    run_command_line()


def _exit_on_interrupt(_number: int, _frame: object) -> None:
    try:
        os.write(2, b"searchapp: interrupted\n")
    finally:  # even if stderr is closed
        os._exit(130)


if __name__ == "__main__":
    main()
