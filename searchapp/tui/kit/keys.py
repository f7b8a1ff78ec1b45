"""The keys of the screens: what each does, and which others a settings file gives it; what the help says of panes.

    [judge.keys]
    undo = "z"
    next_unjudged = ["g", "ctrl+g"]

in the file `settings.toml` of the home folder; those of other screens are in `[search.keys]`, `[topics.keys]`,
`[compare.keys]` and `[browse.keys]`. Keys have the names that Textual gives them: `a`, `A`, `ctrl+a`, `space`, `f3`,
`left_square_bracket` or simply `[`. Imports no Textual: the command line reads the keys before it opens a screen.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.config.settings import BY_NAME, SPACINGS, THEMES
from searchapp.errors import DataError
from searchapp.files import parse_toml, read_text, unreadable
from searchapp.text import meant

Typed = tuple[str, str]
"""Something that is typed, and what it means."""


@dataclass(frozen=True, slots=True)
class About:
    """A pane: what it is, what can be typed there, and the names of what else can be done there.

    In a `line` for words only those keys hold that type nothing.
    """

    title: str
    words: str
    typed: Sequence[Typed] = ()
    actions: Sequence[str] = ()
    line: bool = False


EDITING: Sequence[Typed] = (
    ("← →  home end", "move the cursor"),
    ("^w", "delete the word before it"),
    ("^u  ^k", "delete all before it, all behind it"),
)
"""What edits a line for words."""

FILTERING = ("a word", "leaves what has it; of several words all must be there")

TOPICS_FILTER = About(
    "The filter of the topics",
    "Enter goes to the topics that are left, escape drops the filter.",
    (FILTERING, *EDITING),
    ("jump",),
    line=True,
)
"""The line that filters a list of topics."""

TOPIC_SOUGHT = About("The topic", "What is sought. The arrows scroll it.", (), ("maths", "zoom", "next_pane"))
"""The topic whose ranking is looked at."""

DOCUMENT_READ = About(
    "The document",
    "The document that the cursor is on, whole. The arrows scroll it.",
    (),
    ("maths", "zoom", "pager", "copy_text", "why", "next_pane"),
)
"""The document of a ranking that is read."""


FILE = "settings.toml"
KEYS = "keys"


@dataclass(frozen=True, slots=True)
class KeyAction:
    """Something that keys do: its name in the settings file, what the help says, and in a word what the last line says.

    What has no word is not in the last line.
    """

    name: str
    group: str
    about: str
    keys: tuple[str, ...]
    word: str = ""


_JUDGE, _MOVE, _LOOK, _ALL = "Judge", "Move", "Look", "All else"

SHARED = {
    one.name: one
    for one in (
        KeyAction("up", _MOVE, "Previous line", ("up", "k")),
        KeyAction("page_up", _MOVE, "A page up", ("pageup",)),
        KeyAction("previous_pane", _MOVE, "Previous pane", ("shift+tab",)),
        KeyAction(
            "jump",
            _MOVE,
            "Label all that is in sight, and jump to what the label is typed of",
            ("apostrophe", "ctrl+o"),
            "jump",
        ),
        KeyAction("zoom", _LOOK, "Only the pane with the focus, and all of them again", ("z", "f4"), "zoom"),
        KeyAction("wider", _LOOK, "Make the list wider", ("greater_than_sign", "f8")),
        KeyAction("narrower", _LOOK, "Make the list narrower", ("less_than_sign", "f7")),
        KeyAction("scroll_down", _LOOK, "Scroll the document down", ("ctrl+d", "right")),
        KeyAction(
            "theme", _LOOK, "The next theme: dark, light, in the terminal's own colours", ("d",), "theme"
        ),
        KeyAction("copy", _ALL, "Copy the text that is selected with the mouse", ("ctrl+c", "super+c")),
        KeyAction("help", _ALL, "What the pane is for, and all keys", ("question_mark", "f1"), "keys"),
        KeyAction("page_down", _MOVE, "A page down", ("pagedown", "space")),
        KeyAction("quit", _ALL, "Leave", ("q", "ctrl+q"), "quit"),
    )
}
"""What the same keys do on most screens."""


def shared(*names: str) -> tuple[KeyAction, ...]:
    """Some of these, for the table of a screen."""
    return tuple(SHARED[name] for name in names)


KEY_ACTIONS = (
    KeyAction("undo", _JUDGE, "Undo the last action, any number of times", ("u", "ctrl+z"), "undo"),
    KeyAction("redo", _JUDGE, "Redo what was undone", ("U", "ctrl+y"), "redo"),
    KeyAction("skip", _JUDGE, "Skip: put the document off, which is no grade", ("s",), "skip"),
    KeyAction("cant_tell", _JUDGE, "Can't tell: the document can't be judged", ("x",), "can't tell"),
    KeyAction("note", _JUDGE, "Write a note on the document", ("n",), "note"),
    KeyAction("reason", _JUDGE, "Give a grade together with a reason", ("r",), "reason"),
    KeyAction("select", _JUDGE, "Select the document, to grade several at once", ("space",), "select"),
    KeyAction("select_down", _JUDGE, "Extend the selection down", ("shift+down", "J")),
    KeyAction("select_up", _JUDGE, "Extend the selection up", ("shift+up", "K")),
    KeyAction("clear", _JUDGE, "Drop the selection, the search or the filter", ("escape",)),
    KeyAction("down", _MOVE, "Next line", ("down", "j")),
    *shared("up"),
    KeyAction("page_down", _MOVE, "A page down", ("pagedown",)),
    *shared("page_up"),
    KeyAction("first", _MOVE, "First line", ("home",)),
    KeyAction("last", _MOVE, "Last line", ("end",)),
    KeyAction("next_unjudged", _MOVE, "Next document that is not judged", ("g",), "next unjudged"),
    KeyAction("next_topic", _MOVE, "Next topic", ("right_square_bracket",)),
    KeyAction("previous_topic", _MOVE, "Previous topic", ("left_square_bracket",)),
    KeyAction("next_unjudged_topic", _MOVE, "Next topic that has something to judge", ("G",), "next topic"),
    KeyAction("topics", _MOVE, "To the topics, and back", ("t",), "topics"),
    KeyAction("open", _MOVE, "Open the topic of the line, back to its ranking", ("enter",)),
    KeyAction("filter", _MOVE, "Filter the topics by words", ("f",), "filter"),
    KeyAction("search", _MOVE, "Search the topic's documents for words", ("slash",), "search"),
    KeyAction("next_match", _MOVE, "Next document with the words", ("full_stop", "f3")),
    KeyAction("previous_match", _MOVE, "Previous document with the words", ("comma", "shift+f3")),
    KeyAction("document", _MOVE, "Jump to a document by its id", ("i",), "id"),
    KeyAction("next_pane", _MOVE, "Next pane: topics, ranking, topic, document", ("tab",)),
    *shared("previous_pane"),
    KeyAction(
        "judged",
        _MOVE,
        "List what you have judged, skipped or noted, and go to one of them",
        ("l", "f6"),
        "list",
    ),
    *shared("jump", "zoom"),
    KeyAction("reading", _LOOK, "Hide the lists, and show them again", ("b", "f5")),
    *shared("wider", "narrower", "scroll_down"),
    KeyAction("scroll_up", _LOOK, "Scroll the document up", ("ctrl+u", "left")),
    KeyAction(
        "maths",
        _LOOK,
        "Markup as what it means, the text as it stands, LaTeX as written",
        ("m",),
        "maths",
    ),
    *shared("theme", "copy"),
    KeyAction("palette", _ALL, "Find an action by its words, and do it", ("ctrl+p",), "palette"),
    *shared("help"),
    KeyAction("quit", _ALL, "Leave; everything is saved", ("q", "ctrl+q"), "quit"),
)

_NAMES = {"[": "left_square_bracket", "]": "right_square_bracket", "/": "slash", "?": "question_mark"}
_NAMES |= {
    ".": "full_stop",
    ",": "comma",
    " ": "space",
    ";": "semicolon",
    ":": "colon",
    "-": "minus",
    "+": "plus",
}
_NAMES |= {
    "=": "equals_sign",
    "'": "apostrophe",
    "<": "less_than_sign",
    ">": "greater_than_sign",
    "*": "asterisk",
    "#": "number_sign",
    "!": "exclamation_mark",
}
_SHOWN = {name: character for character, name in _NAMES.items() if character != " "}
_SHOWN |= {
    "escape": "esc",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
}
_SHOWN |= {"enter": "↵", "shift+down": "⇧↓", "shift+up": "⇧↑", "shift+tab": "⇧tab", "shift+f3": "⇧f3"}


class KeyMap:
    """Which keys do what; `section` is that of the settings file that gives actions other keys."""

    def __init__(self, actions: Sequence[KeyAction], section: str = "judge") -> None:
        self.actions = tuple(actions)
        self.section = section
        self._by_key = {key: action.name for action in actions for key in action.keys}
        self._keys = {action.name: action.keys for action in actions}

    def only(self, others: Mapping[str, tuple[str, str]], *same: str) -> KeyMap:
        """The keys of a screen that does less: grades, the `same`, and `others` with what they do there and a word."""
        actions = []
        for one in self.actions:
            if one.name in others:
                about, word = others[one.name]
                actions.append(KeyAction(one.name, one.group, about, one.keys, word))
            elif one.name in same or one.name.startswith("grade_"):
                actions.append(one)
        return KeyMap(actions, self.section)

    def action(self, key: str) -> str | None:
        """What a key does."""
        return self._by_key.get(key)

    def shown(self, name: str) -> str:
        """The first key of an action as people know it; nothing if no key does it."""
        return next((shown_key(key) for key in self._keys[name]), "")

    def shown_in_line(self, name: str) -> str:
        """The first key of an action that types nothing, and so holds in a line of text; nothing if there is none."""
        return next((shown_key(key) for key in self._keys[name] if types_nothing(key)), "")

    def first(self, name: str) -> str:
        """The first key of an action; nothing if no key does it."""
        return next(iter(self._keys[name]), "")

    def all_shown(self, name: str) -> str:
        return " ".join(shown_key(key) for key in self._keys[name])


def types_nothing(key: str) -> bool:
    """Whether a key puts no character into a line of text.

    >>> [types_nothing(key) for key in ("f3", "ctrl+r", "f", "slash", "space")]
    [True, True, False, False, False]
    """
    return len(key) > 1 and key not in _NAMES.values()


def shown_key(key: str) -> str:
    """A key as people know it.

    >>> [shown_key(key) for key in ("slash", "ctrl+z", "A", "shift+down")]
    ['/', '^z', 'A', '⇧↓']
    """
    return _SHOWN.get(key, key.replace("ctrl+", "^"))


def grade_actions(labels: Sequence[str]) -> Iterator[KeyAction]:
    """What gives each grade of a task; a grade above 9 has no key unless the settings give it one."""
    for grade, label in enumerate(labels):
        about = f"Grade {grade}" if label == str(grade) else f"Grade {grade}: {label}"
        yield KeyAction(f"grade_{grade}", _JUDGE, about, (str(grade),) if grade < 10 else ())


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """What the settings file says of a screen; the fields have the names of its settings in `config.declared`."""

    keys: KeyMap
    theme: str = THEMES[0]
    spacing: str = SPACINGS[0]
    restore: bool = True
    """Whether it opens where it was left, if it can."""


def load(home: Path, labels: Sequence[str]) -> ScreenSettings:
    """The settings of the screens on which people judge, the defaults where a home folder says nothing.

    Raises:
        DataError: the file can't be read, or names an action, a key or a theme that it can't.
    """
    return load_section(home, "judge", (*grade_actions(labels), *KEY_ACTIONS))


def load_section(home: Path, section: str, actions: Sequence[KeyAction]) -> ScreenSettings:
    """The settings of a screen by its section of the file and what can be done there.

    Raises:
        as `load` does.
    """
    path = home / FILE
    try:
        described = parse_toml(read_text(path))
    except FileNotFoundError:
        described = {}
    except OSError as error:
        raise unreadable(path, error) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: not TOML: {error}") from error
    own = _table(path, described, section)
    known = {name.partition(".")[2]: one for name, one in BY_NAME.items() if name.startswith(f"{section}.")}
    unknown = sorted(own.keys() - known.keys())
    if unknown:
        named = f"{unknown[0]!r}{meant(unknown[0], known)}"
        raise DataError(f"{path}: [{section}] has no setting {named}: it has {', '.join(known)}")
    keys = _key_map(path, _table(path, own, KEYS), section, actions)
    others: dict[str, Any] = {}
    for name, held in own.items():
        if name != KEYS:
            try:
                others[name] = known[name].kind.from_toml(held, f"{section}.{name}", home)
            except ValueError as error:
                raise DataError(f"{path}: {error}") from error
    return ScreenSettings(keys, **others)


def _table(path: Path, described: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = described.get(name, {})
    if not isinstance(table, Mapping):
        raise DataError(f"{path}: {name} must be a table")
    return table


def _key_map(path: Path, own: Mapping[str, Any], section: str, every: Sequence[KeyAction]) -> KeyMap:
    actions = {action.name: action for action in every}
    place = f"[{section}.keys]"
    chosen: dict[str, tuple[str, ...]] = {}
    for name, keys in own.items():
        if name not in actions:
            named = f"{name!r}{meant(name, actions)}"
            raise DataError(f"{path}: {place} has no action {named}: `?` on its screen lists them all")
        listed = keys if isinstance(keys, list) else [keys]
        if not listed or not all(isinstance(key, str) and key for key in listed):
            raise DataError(
                f"{path}: the key of {name!r} in {place} must be the name of a key, or a list of names"
            )
        chosen[name] = tuple(_NAMES.get(str(key), str(key)) for key in listed)
    taken: dict[str, str] = {}
    for name, keys in chosen.items():
        for key in keys:
            if key in taken:
                raise DataError(
                    f"{path}: the key {shown_key(key)!r} in {place} is that of both {taken[key]!r} and {name!r}"
                )
            taken[key] = name
    # A key that the file gives to something no longer does what it did by default.
    kept = [
        KeyAction(
            one.name,
            one.group,
            one.about,
            chosen.get(one.name) or tuple(key for key in one.keys if key not in taken),
            one.word,
        )
        for one in actions.values()
    ]
    without = [one.name for one in kept if not one.keys and actions[one.name].keys]
    if without:
        raise DataError(
            f"{path}: {place} gives the key of {without[0]!r} to {taken[actions[without[0]].keys[0]]!r}: "
            f"give {without[0]!r} another one"
        )
    return KeyMap(kept, section)
