"""The questions that screens ask, and its help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll

from searchapp.tui.about import About
from searchapp.tui.content import Content, Plain
from searchapp.tui.drawing import Dialog
from searchapp.tui.keys import KeyMap, shown_key
from searchapp.tui.line import Line

Option = tuple[str, str]
"""A key, and what it means."""


def _question(text: str) -> VerticalScroll:
    """A question of any length, which leaves room for its answers: what is too long scrolls."""
    return VerticalScroll(Plain(Content(text)), classes="question", can_focus=False)


class Choose(Dialog[str | None]):
    """A question that one key answers: gives that key, or None for Escape."""

    def __init__(self, question: str, options: Sequence[Option]) -> None:
        super().__init__()
        self._question = question
        self._options = [*options, ("escape", "Back")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield _question(self._question)
            for place, (key, meaning) in enumerate(self._options):
                line = Content.assemble((f" {shown_key(key):>4} ", "bold $primary"), f" {meaning}")
                yield Plain(line, classes="option", id=f"option-{place}")

    def take(self, event: events.Key) -> bool:
        question = self.query_one(VerticalScroll)
        if event.key in (key for key, _meaning in self._options):
            self._answer(event.key)
        elif event.key in ("down", "pagedown"):
            question.scroll_page_down(animate=False)
        elif event.key in ("up", "pageup"):
            question.scroll_page_up(animate=False)
        return True

    def on_click(self, event: events.Click) -> None:
        if event.widget is not None and (event.widget.id or "").startswith("option-"):
            self._answer(self._options[int(str(event.widget.id).removeprefix("option-"))][0])

    def _answer(self, key: str) -> None:
        self.dismiss(None if key == "escape" else key)


class Words(Dialog[str | None]):
    """Asks for words: gives them, or None for Escape."""

    def __init__(self, question: str, initial: str = "") -> None:
        super().__init__()
        self._question = question
        self._line = Line(lambda words: self.dismiss(words.strip()), text=initial)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield _question(self._question)
            yield self._line
            yield Plain("↵ save    esc back", classes="hint")

    def take(self, event: events.Key) -> bool:
        if event.key == "escape":
            self.dismiss(None)
            return True
        return self._line.take(event)


class Help(Dialog[None]):
    """All keys; `about` is the pane with the focus, `before` are groups of things to type, with what they mean."""

    def __init__(
        self,
        keys: KeyMap,
        before: Mapping[str, Sequence[Option]] | None = None,
        about: About | None = None,
    ) -> None:
        super().__init__()
        self._keys = keys
        self._before = before or {}
        self._about = about

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help"):
            if self._about is not None:
                yield from self._of_pane(self._about)
            for group, things in self._before.items():
                yield _group(group)
                for typed, about in things:
                    yield _typed(typed, about)
            for group, actions in groupby(self._keys.actions, key=lambda action: action.group):
                yield _group(group)
                for action in actions:
                    yield _keys(self._keys.all_shown(action.name), action.about)
            yield Plain(
                Content.styled(
                    f"Other keys: [{self._keys.section}.keys] in the file settings.toml of the home folder.",
                    "$faint",
                ),
                classes="group",
            )

    def _of_pane(self, about: About) -> ComposeResult:
        yield Plain(Content.styled(about.title, "bold $accent"))
        yield Plain(about.words)
        for typed, meaning in about.typed:
            yield _typed(typed, meaning)
        meanings = {one.name: one.about for one in self._keys.actions}
        for name in about.actions:
            shown = self._keys.shown_in_line(name) if about.line else self._keys.all_shown(name)
            if shown:
                yield _keys(shown, meanings[name])

    def take(self, event: events.Key) -> bool:
        scroll = self.query_one(VerticalScroll)
        moves: dict[str, Callable[..., None]]
        moves = {
            "down": scroll.scroll_down,
            "up": scroll.scroll_up,
            "j": scroll.scroll_down,
            "k": scroll.scroll_up,
        }
        moves |= {
            "pagedown": scroll.scroll_page_down,
            "pageup": scroll.scroll_page_up,
            "space": scroll.scroll_page_down,
        }
        moves |= {"home": scroll.scroll_home, "end": scroll.scroll_end}
        if event.key in moves:
            moves[event.key](animate=False)
        else:
            self.dismiss(None)
        return True


def _group(name: str) -> Plain:
    return Plain(Content.styled(name, "bold $accent"), classes="group")


def _typed(typed: str, about: str) -> Plain:
    return Plain(Content.assemble((f"{typed:<18}", "bold $primary"), about))


def _keys(keys: str, about: str) -> Plain:
    return Plain(Content.assemble((f"{keys:<12}", "bold $primary"), about))
