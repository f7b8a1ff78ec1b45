"""The program: the script `searchapp`, and `python -m searchapp`."""

# What is imported here is what Ctrl-C can still interrupt with a traceback.
import os
import signal


def main() -> None:
    """Run the command line; Ctrl-C ends it in one way also while Python still imports, or clears up after a command."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)
    from searchapp.cli import main as of_command_line

    of_command_line()


def _end_at_once(_number: int, _frame: object) -> None:
    """End as a command does that is interrupted; nothing has begun, or all is done."""
    try:
        os.write(2, b"searchapp: interrupted\n")
    finally:  # where nobody listens, too
        os._exit(130)


if __name__ == "__main__":
    main()
