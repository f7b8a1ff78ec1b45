"""Text is selected with the mouse and copied."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.app import copy_with_program
from searchapp.tui.kit.widgets import TextLine
from tests.tui.conftest import JudgingHarness, drive, screen_text, wait_until_idle

P = Pilot[None]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder for programs and let PATH contain only it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("DISPLAY", ":1")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-1")
    return folder


def install(folder: Path, name: str, body: str = 'read_all > "$0.copied"') -> Path:
    """Install a program that saves its input and its arguments, and return the path of the saved input."""
    path = folder / name
    script = body.replace(
        "read_all", 'while IFS= read -r line || [ -n "$line" ]; do printf \'%s\\n\' "$line"; done'
    )
    path.write_text(f'#!/bin/sh\necho "$@" > "$0.called"\n{script}\n')
    path.chmod(0o755)
    return folder / f"{name}.copied"


async def drag(pilot: P, selector: str, start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(selector, offset=start)
    await pilot.hover(selector, offset=end)
    await pilot.mouse_up(selector, offset=end)
    await pilot.pause()


def test_the_first_program_that_works_copies(programs: Path) -> None:
    assert copy_with_program("nobody") is None
    for name in ("pbcopy", "xsel", "xclip", "wl-copy"):  # each is preferred to those before it
        copied_file = install(programs, name)
        assert copy_with_program(f"é 𝔸\n{name}") == name and copied_file.read_text() == f"é 𝔸\n{name}\n"
    assert (programs / "xclip.called").read_text() == "-selection clipboard\n"
    install(programs, "wl-copy", "exit 1")  # as without a compositor
    assert copy_with_program("four") == "xclip"
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    assert copy_with_program("five", environment) == "pbcopy"


def test_tmux_copies_inside_tmux(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = install(programs, "tmux")
    monkeypatch.delenv("TMUX", raising=False)
    assert copy_with_program("one") is None and not copied.exists()
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    assert copy_with_program("two") == "tmux" and copied.read_text() == "two\n"
    assert (programs / "tmux.called").read_text() == "load-buffer -w -\n"
    install(programs, "tmux", "exit 1")  # before tmux 3.2, which does not know -w
    assert copy_with_program("three") is None
    install(programs, "xclip")
    assert copy_with_program("four") == "xclip"


def test_a_program_that_hangs_is_abandoned(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("searchapp.tui.kit.app.COPY_SECONDS", 0.1)
    install(programs, "wl-copy", "while true; do :; done")
    copied_file = install(programs, "xsel")
    assert copy_with_program("one") == "xsel" and copied_file.read_text() == "one\n"


def test_a_program_that_keeps_running_is_not_waited_for(programs: Path) -> None:
    install(programs, "xclip", "/bin/sleep 30 &")
    assert copy_with_program("one") == "xclip"


def test_text_of_a_document_is_selected_and_copied(judging: JudgingHarness, programs: Path) -> None:
    copied_file = install(programs, "xclip")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = screen.document_id
        assert document is not None
        text = screen.run_pages.texts([document])[0]
        await drag(pilot, "#document", (1, 1), (11, 1))
        assert screen.get_selected_text() == text[:11]
        await pilot.press("ctrl+c")
        await wait_until_idle(pilot)
        assert copied_file.read_text().rstrip("\n") == text[:11]
        assert "copied 11 characters with xclip" in screen_text(pilot)
        await pilot.press("1")  # moves to another document, which ends the selection
        assert screen.get_selected_text() is None
        await drag(pilot, "#topic", (1, 1), (5, 1))
        assert screen.get_selected_text() == screen.run_pages.topic(screen.topic_id).text[:5]
        await pilot.press("escape")
        assert screen.get_selected_text() is None

    drive(judging.app(), steps)


def test_without_a_program_the_terminal_copies(
    judging: JudgingHarness, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        written: list[str] = []
        driver = app._driver
        assert driver is not None
        monkeypatch.setattr(driver, "write", written.append)
        await drag(pilot, "#document", (1, 1), (3, 1))
        await pilot.press("ctrl+c")
        await wait_until_idle(pilot)
        selected = screen.get_selected_text()
        assert selected and f"\x1b]52;c;{base64.b64encode(selected.encode()).decode()}\a" in written
        assert "sent 3 characters to the terminal's clipboard (OSC 52)" in screen_text(pilot)

    app = judging.app()
    drive(app, steps)


def test_ctrl_c_without_a_selection_shows_how_to_leave(judging: JudgingHarness, programs: Path) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("ctrl+c")
        assert "select text with the mouse, and ^c copies it; q leaves" in screen_text(pilot)
        await pilot.press("space", "space", "0", "ctrl+c", "y")  # a question stays open
        assert len(judging.events()) == 2

    drive(judging.app(), steps)


def test_opinions_are_copied_and_hostile_text_is_escaped(judging: JudgingHarness, programs: Path) -> None:
    copied_file = install(programs, "wl-copy")

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await drag(pilot, "#opinions-text", (0, 0), (2, 0))
        await pilot.press("ctrl+c")
        await wait_until_idle(pilot)
        assert copied_file.read_text() == "ann\n"
        screen.query_one("#opinions-text").update("a\x1b[2Jb")  # type: ignore[attr-defined]
        await pilot.pause()
        await drag(pilot, "#opinions-text", (0, 0), (9, 0))
        await pilot.press("ctrl+c")
        await wait_until_idle(pilot)
        assert copied_file.read_text() == "a␛[2Jb\n"

    drive(judging.adjudicating(), steps)


def test_text_in_an_input_line_is_copied(judging: JudgingHarness, programs: Path) -> None:
    copied_file = install(programs, "xsel")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("f", *"ring")
        line = screen.query_one("#filter")
        line.action_select_all()  # type: ignore[attr-defined]
        await pilot.press("ctrl+c")
        await wait_until_idle(pilot)
        assert copied_file.read_text() == "ring\n"
        await pilot.press("escape", "a", *"odd")
        app.screen.query_one(TextLine).action_select_all()
        await pilot.press("ctrl+c")
        await wait_until_idle(pilot)
        assert copied_file.read_text() == "odd\n"
        await pilot.press("enter")
        assert judging.events()[0].text == "odd"

    app = judging.app()
    drive(app, steps)
