"""`searchapp judgments verify` and `backup`: whether the log is what was written, and copies of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import JsonOption, command
from searchapp.cli.judgments.options import LogOption, require_log
from searchapp.cli.output import print_json, say, show
from searchapp.errors import DataError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from searchapp.judging.verification import LogVerification

SHOWN = 20
"""How many problems are listed without --json."""


def register(group: typer.Typer) -> None:
    """Add the commands."""

    @command(group)
    def verify(settings: Settings, log: LogOption = None, as_json: JsonOption = False) -> None:
        """Check the whole log for damage: every event, its checksum, and the file's structure.

        Exits with 4 if anything is wrong, and says which events are damaged or gone.
        """
        from searchapp.judging.log import JudgmentLog
        from searchapp.judging.verification import verify as verified

        path = require_log(settings, log)
        with closing(JudgmentLog(path)) as opened:
            verdict = verified(opened)
        _report(settings, path, verdict, as_json)
        if not verdict.is_sound:
            raise DataError(
                f"{path} is damaged: damaged events are left out of everything; restore a backup, or keep the "
                "others, with `searchapp judgments export` and `import --log` into a new log"
            )

    @command(group)
    def backup(
        settings: Settings,
        file: Annotated[Path, typer.Argument(help="New file to write.", show_default=False)],
        log: LogOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Copy the log to a new file while people judge, and verify the copy.

        The copy is one file that opens with --log. An existing file is never replaced.
        """
        from searchapp.judging.log import JudgmentLog
        from searchapp.judging.verification import back_up

        path = require_log(settings, log)
        with closing(JudgmentLog(path)) as opened:
            verdict = back_up(opened, file)
        _report(settings, file, verdict, as_json)
        if not verdict.is_sound:
            raise DataError(
                f"{file} is written, but {path} is damaged, and so is its copy: keep earlier backups"
            )


def _report(settings: Settings, path: Path, verdict: LogVerification, as_json: bool) -> None:
    if as_json:
        print_json({"log": str(path), "sound": verdict.is_sound, **asdict(verdict)})
        return
    for problem in verdict.problems[:SHOWN]:
        show(problem)
    if len(verdict.problems) > SHOWN:
        show(f"and {len(verdict.problems) - SHOWN:,} more: --json lists them all")
    if verdict.is_sound:
        later = (
            f"; {verdict.unsealed:,} of them, of an earlier searchapp, have no checksum yet"
            if verdict.unsealed
            else ""
        )
        say(settings, f"{path}: {verdict.events:,} events, every one as it was written{later}")
