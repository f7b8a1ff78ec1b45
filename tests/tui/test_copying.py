"""Text that is selected with the mouse, and copied."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.screen import copy_with_program
from searchapp.tui.kit.widgets import TextLine
from tests.tui.conftest import Judging, drive, settled, text_of

P = Pilot[None]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs, the only one that is searched."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("DISPLAY", ":1")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-1")
    return folder


def install(folder: Path, name: str, does: str = 'read_all > "$0.copied"') -> Path:
    """A program that keeps what it is given, and how it was called; returns the file with that."""
    path = folder / name
    body = does.replace(
        "read_all", 'while IFS= read -r line || [ -n "$line" ]; do printf \'%s\\n\' "$line"; done'
    )
    path.write_text(f'#!/bin/sh\necho "$@" > "$0.called"\n{body}\n')
    path.chmod(0o755)
    return folder / f"{name}.copied"


async def drag(pilot: P, selector: str, start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(selector, offset=start)
    await pilot.hover(selector, offset=end)
    await pilot.mouse_up(selector, offset=end)
    await pilot.pause()


def test_the_first_program_that_works_copies(programs: Path) -> None:
    assert copy_with_program("nobody") is None
    kept = install(programs, "pbcopy")
    assert copy_with_program("é 𝔸\nb") == "pbcopy" and kept.read_text() == "é 𝔸\nb\n"
    kept = install(programs, "xsel")
    assert copy_with_program("one") == "xsel" and kept.read_text() == "one\n"
    kept = install(programs, "xclip")
    assert copy_with_program("two") == "xclip" and kept.read_text() == "two\n"
    assert (programs / "xclip.called").read_text() == "-selection clipboard\n"
    kept = install(programs, "wl-copy")
    assert copy_with_program("three") == "wl-copy" and kept.read_text() == "three\n"
    install(programs, "wl-copy", "exit 1")  # no compositor answers
    assert copy_with_program("four") == "xclip"
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    assert copy_with_program("five", environment) == "pbcopy"


def test_a_program_that_hangs_is_left_alone(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("searchapp.tui.kit.screen.COPY_SECONDS", 0.1)
    install(programs, "wl-copy", "while true; do :; done")
    kept = install(programs, "xsel")
    assert copy_with_program("one") == "xsel" and kept.read_text() == "one\n"


def test_a_program_that_stays_to_serve_what_was_copied_is_not_waited_for(programs: Path) -> None:
    install(programs, "xclip", "/bin/sleep 30 &")
    assert copy_with_program("one") == "xclip"


def test_text_of_a_document_is_selected_and_copied(judging: Judging, programs: Path) -> None:
    kept = install(programs, "xclip")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = screen.document_id
        assert document is not None
        text = screen.run_pages.texts([document])[0]
        await drag(pilot, "#document", (1, 1), (11, 1))
        assert screen.get_selected_text() == text[:11]
        await pilot.press("ctrl+c")
        await settled(pilot)
        assert kept.read_text().rstrip("\n") == text[:11]
        assert "copied 11 characters with xclip" in text_of(app)
        await pilot.press("1")  # on to another document: what was selected is no longer there
        assert screen.get_selected_text() is None
        await drag(pilot, "#topic-text", (0, 0), (4, 0))
        assert screen.get_selected_text() == screen.run_pages.topic(screen.topic_id).text[:5]
        await pilot.press("escape")
        assert screen.get_selected_text() is None

    app = judging.app()
    drive(app, steps)


def test_without_a_program_the_terminal_is_asked(
    judging: Judging, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        written: list[str] = []
        driver = app._driver
        assert driver is not None
        monkeypatch.setattr(driver, "write", written.append)
        await drag(pilot, "#document", (1, 1), (3, 1))
        await pilot.press("ctrl+c")
        await settled(pilot)
        selected = screen.get_selected_text()
        assert selected and f"\x1b]52;c;{base64.b64encode(selected.encode()).decode()}\a" in written
        assert "sent 3 characters to the terminal's clipboard (OSC 52)" in text_of(app)

    app = judging.app()
    drive(app, steps)


def test_ctrl_c_without_a_selection_says_how_to_leave(judging: Judging, programs: Path) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("ctrl+c")
        assert "select text with the mouse, and ^c copies it; q leaves" in text_of(app)
        await pilot.press("space", "space", "0", "ctrl+c", "y")  # a question stays
        assert len(judging.events()) == 2

    app = judging.app()
    drive(app, steps)


def test_opinions_are_copied_too_and_hostile_text_is_harmless(judging: Judging, programs: Path) -> None:
    kept = install(programs, "wl-copy")

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await drag(pilot, "#opinions-text", (0, 0), (2, 0))
        await pilot.press("ctrl+c")
        await settled(pilot)
        assert kept.read_text() == "ann\n"
        screen.query_one("#opinions-text").update("a\x1b[2Jb")  # type: ignore[attr-defined]
        await pilot.pause()
        await drag(pilot, "#opinions-text", (0, 0), (9, 0))
        await pilot.press("ctrl+c")
        await settled(pilot)
        assert kept.read_text() == "a␛[2Jb\n"

    app = judging.adjudicating()
    drive(app, steps)


def test_what_is_typed_is_copied_from_its_line(judging: Judging, programs: Path) -> None:
    kept = install(programs, "xsel")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("f", *"ring")
        line = screen.query_one("#filter")
        line.action_select_all()  # type: ignore[attr-defined]
        await pilot.press("ctrl+c")
        await settled(pilot)
        assert kept.read_text() == "ring\n"
        await pilot.press("escape", "n", *"odd")
        app.screen.query_one(TextLine).action_select_all()
        await pilot.press("ctrl+c")
        await settled(pilot)
        assert kept.read_text() == "odd\n"
        await pilot.press("enter")
        assert judging.events()[0].text == "odd"

    app = judging.app()
    drive(app, steps)
