"""Count the modules of searchapp entered by a letter on the search screen, by a grade, and by a search body.

    python -m scripts.entered_paths [--list]

`scripts/entered.py` does the same for commands. A module counts if one of its functions is called. Each path is
measured the second time. The nlps sample is indexed and ranked in a temporary home directory.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

HOME = Path(tempfile.mkdtemp())
os.environ |= {
    "SEARCHAPP_HOME": str(HOME),
    "TEXTUAL_DRIVER": "textual.drivers.headless_driver:HeadlessDriver",
}

import searchapp  # noqa: E402

PACKAGE = Path(searchapp.__file__).parent
SAMPLE = PACKAGE / "samples" / "nlps"
WORDS = "compact subset of a Hausdorff space"

entered: set[str] = set()


def trace(frame: FrameType, event: str, _argument: object) -> None:
    """Record the module of a called function; bodies of modules and classes are not functions."""
    file = frame.f_code.co_filename
    if event == "call" and frame.f_code.co_flags & 1 and file.startswith(str(PACKAGE)):
        entered.add(file)


def run(*arguments: object) -> None:
    """Run a command of searchapp in this process."""
    from searchapp.cli import main

    sys.argv = ["searchapp", *map(str, arguments)]
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as output:
            main()
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(f"exit {stop.code}: {output.getvalue()}") from stop


def on_screen(keys: tuple[str, str], *command: object) -> list[str]:
    """Open a screen, press the first key, then measure the second until its result is saved and drawn."""
    from textual.app import App

    async def press(app: Any) -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await rest(pilot)
            await pilot.press(keys[0])
            await rest(pilot)
            entered.clear()
            await pilot.press(keys[1])
            await rest(pilot)
            result.extend(sorted(entered))

    def open_screen(app: Any, *_arguments: Any, **_options: Any) -> None:
        asyncio.run(press(app))

    result: list[str] = []
    original = App.run
    App.run = open_screen  # type: ignore[assignment]
    try:
        run(*command)
    finally:
        App.run = original  # type: ignore[method-assign]
    return result


async def rest(pilot: Any) -> None:
    """Wait until background work and drawing are complete."""
    pause: Callable[[], Awaitable[None]] = pilot.pause
    for _ in range(40):
        await pilot.app.workers.wait_for_complete()
        await pause()
        await asyncio.sleep(0.05)


def search_body() -> list[str]:
    """Search with three bodies and measure the third, for which no answer is cached."""
    from searchapp.app.index import open_index
    from searchapp.config.settings import Settings
    from searchapp.engines import open_engine
    from searchapp.tasks import load

    with closing(open_engine(Settings(home=HOME))) as engine:
        index = open_index(load("nlps"), engine)
        for words in (WORDS, "open cover", "finite group"):
            body = {
                "query": {"match": {"text": words}},
                "sort": [{"_score": "desc"}, {"id": "asc"}],
                "size": 10,
            }
            entered.clear()
            list(index.search([body]))
    return sorted(entered)


def measure(*, list_modules: bool) -> dict[str, int]:
    """Return the number of modules entered on each path; `list_modules` prints the modules, too."""
    run("index", "nlps", "--data", SAMPLE)
    run("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", HOME / "run")
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        paths = {
            "letter": on_screen(("s", "p"), "search", "nlps"),
            "grade": on_screen(("1", "2"), "judge", "nlps", "--run", HOME / "run", "--annotator", "ann"),
            "body": search_body(),
        }
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if list_modules:
        for name, files in paths.items():
            print(name, *(Path(file).relative_to(PACKAGE) for file in files), sep="\n  ", file=sys.stderr)
    return {name: len(files) for name, files in paths.items()}


if __name__ == "__main__":
    print(json.dumps(measure(list_modules="--list" in sys.argv[1:])))
