"""The keys of the screens, their other settings, and the help about their panes.

    [judge.keys]
    undo = "z"
    next_unjudged = ["g", "ctrl+g"]

in `settings.toml` of the home directory. Keys have Textual's names: `a`, `A`, `ctrl+a`, `space`, `f3`,
`left_square_bracket` or simply `[`. Imports no Textual, because commands read the keys before they open a
screen.
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from searchapp.config.settings import BY_NAME, SPACINGS, THEMES
from searchapp.errors import DataError
from searchapp.files import parse_toml, read_text, unreadable
from searchapp.text import suggestion

SETTINGS_FILE = "settings.toml"

# Keys or text to type, and their meaning.
HelpRow = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PaneHelp:
    """The help about a pane."""

    title: str
    words: str
    # Text to type there.
    typed: Sequence[HelpRow] = ()

    # Names of useful actions.
    actions: Sequence[str] = ()

    # A line of text, where only keys that type no character have an effect.
    line: bool = False


# The keys that edit a line of text.
EDITING: Sequence[HelpRow] = (
    ("← →  home end", "move the cursor"),
    ("^w", "delete the word before the cursor"),
    ("^u  ^k", "delete to the start, to the end of the line"),
)

FILTERING = ("words", "show only lines with all of these words")

TOPICS_FILTER = PaneHelp(
    "The topic filter",
    "Enter goes to the matching topics; escape clears the filter.",
    (FILTERING, *EDITING),
    ("jump",),
    line=True,
)
TOPIC_PANE = PaneHelp(
    "The topic",
    "The topic that documents are ranked for. The arrow keys scroll it.",
    (),
    ("maths", "zoom", "next_pane"),
)
DOCUMENT_PANE = PaneHelp(
    "The document",
    "The full document under the cursor. The arrow keys scroll it.",
    (),
    ("maths", "zoom", "pager", "copy_text", "why", "next_pane"),
)


@dataclass(frozen=True, slots=True)
class KeyAction:
    """An action and its keys."""

    # The name in the settings file.
    name: str

    group: str
    # The sentence in the help.
    about: str

    keys: tuple[str, ...]
    # The word in the line of keys, which omits actions without one.
    word: str = ""


_JUDGE, _MOVE, _LOOK, _ALL = "Judge", "Move", "View", "Other"

# Actions with the same keys on most screens.
SHARED = {
    action.name: action
    for action in (
        KeyAction("skip", _JUDGE, "Skip: leave the document for later, without a grade", ("s",), "skip"),
        KeyAction("cant_tell", _JUDGE, "Can't tell: the document can't be judged", ("x",), "can't tell"),
        KeyAction("note", _JUDGE, "Write a note on the document", ("n",), "note"),
        KeyAction("down", _MOVE, "Next line", ("down",)),
        KeyAction("up", _MOVE, "Previous line", ("up", "k")),
        KeyAction("page_down", _MOVE, "A page down", ("pagedown", "space")),
        KeyAction("page_up", _MOVE, "A page up", ("pageup",)),
        KeyAction("first", _MOVE, "First line", ("home",)),
        KeyAction("last", _MOVE, "Last line", ("end",)),
        KeyAction("previous_pane", _MOVE, "Previous pane", ("shift+tab",)),
        KeyAction(
            "jump",
            _MOVE,
            "Label everything visible; type a label to jump there",
            ("apostrophe", "ctrl+o"),
            "jump",
        ),
        KeyAction("zoom", _LOOK, "Show only the focused pane, or all panes again", ("z", "f4"), "zoom"),
        KeyAction("reading", _LOOK, "Hide or show the lists", ("b", "f5")),
        KeyAction("wider", _LOOK, "Make the list wider", ("greater_than_sign", "f8")),
        KeyAction("narrower", _LOOK, "Make the list narrower", ("less_than_sign", "f7")),
        KeyAction("scroll_down", _LOOK, "Scroll the document down", ("ctrl+d", "right")),
        KeyAction("scroll_up", _LOOK, "Scroll the document up", ("ctrl+b", "left")),
        KeyAction(
            "maths",
            _LOOK,
            "Switch between rendered text, raw text and LaTeX source",
            ("m", "f9"),
            "maths",
        ),
        KeyAction("theme", _LOOK, "Next theme: dark, light, terminal colours", ("d",), "theme"),
        KeyAction("copy_id", _ALL, "Copy the document's id", ("y",), "copy id"),
        KeyAction("copy_text", _ALL, "Copy the document's text", ("Y",)),
        KeyAction("pager", _ALL, "Open the document in $PAGER", ("p",), "pager"),
        KeyAction("copy", _ALL, "Copy the text selected with the mouse", ("ctrl+c", "super+c")),
        KeyAction("palette", _ALL, "Search for an action by name, and run it", ("ctrl+p",), "palette"),
        KeyAction("help", _ALL, "Explain this pane, and list all keys", ("question_mark", "f1"), "keys"),
        KeyAction("quit", _ALL, "Leave", ("q", "ctrl+q"), "quit"),
    )
}


def shared(*names: str, **keys: tuple[str, ...]) -> tuple[KeyAction, ...]:
    """Return the shared actions `names`, then further shared actions with other `keys`."""
    others = (replace(SHARED[name], keys=own) for name, own in keys.items())
    return (*(SHARED[name] for name in names), *others)


# The actions of the judging screen.
KEY_ACTIONS = (
    KeyAction("undo", _JUDGE, "Undo the last action; repeat for earlier ones", ("u", "ctrl+z"), "undo"),
    KeyAction("redo", _JUDGE, "Redo the last undone action", ("U", "ctrl+y"), "redo"),
    *shared("skip", "cant_tell", "note"),
    KeyAction("reason", _JUDGE, "Grade with a reason", ("r",), "reason"),
    KeyAction("select", _JUDGE, "Select the document, to grade several at once", ("space",), "select"),
    KeyAction("select_down", _JUDGE, "Extend the selection down", ("shift+down", "J")),
    KeyAction("select_up", _JUDGE, "Extend the selection up", ("shift+up", "K")),
    KeyAction("clear", _JUDGE, "Clear the selection, the search or the filter", ("escape",)),
    *shared(down=("down", "j")),
    *shared("up", page_down=("pagedown",)),
    *shared("page_up", "first", "last"),
    KeyAction("next_unjudged", _MOVE, "Next unjudged document", ("g",), "next unjudged"),
    KeyAction("next_topic", _MOVE, "Next topic", ("right_square_bracket",)),
    KeyAction("previous_topic", _MOVE, "Previous topic", ("left_square_bracket",)),
    KeyAction("next_unjudged_topic", _MOVE, "Next topic with unjudged documents", ("G",), "next topic"),
    KeyAction("topics", _MOVE, "Go to the list of topics, or back", ("t",), "topics"),
    KeyAction("open", _MOVE, "Open the topic under the cursor", ("enter",)),
    KeyAction("filter", _MOVE, "Filter the topics by words", ("f",), "filter"),
    KeyAction("search", _MOVE, "Search the topic's documents for words", ("slash",), "search"),
    KeyAction("next_match", _MOVE, "Next document with the search words", ("full_stop", "f3")),
    KeyAction("previous_match", _MOVE, "Previous document with the search words", ("comma", "shift+f3")),
    KeyAction("document", _MOVE, "Go to a document by its id", ("i",), "id"),
    KeyAction("next_pane", _MOVE, "Next pane: topics, ranking, topic, document", ("tab",)),
    *shared("previous_pane"),
    KeyAction(
        "judged",
        _MOVE,
        "List your judgments, skips and notes; go to one of them",
        ("l", "f6"),
        "list",
    ),
    *shared("jump", "zoom", "reading", "wider", "narrower", "scroll_down"),
    *shared(scroll_up=("ctrl+u", "left"), maths=("m",)),
    *shared("theme", "copy", "palette", "help"),
    KeyAction("quit", _ALL, "Leave; everything is saved", ("q", "ctrl+q"), "quit"),
)

# Textual's names of the keys that type a character: its name in Unicode, except for three.
_KEY_NAMES = {
    character: unicodedata.name(character).lower().replace(" ", "_").replace("-", "_")
    for character in "[]?., ;:='<>*#!"
}
_KEY_NAMES |= {"/": "slash", "-": "minus", "+": "plus"}
_KEY_LABELS = {name: character for character, name in _KEY_NAMES.items() if character != " "}
_KEY_LABELS |= {"escape": "esc", "pagedown": "PgDn", "pageup": "PgUp", "down": "↓", "up": "↑", "left": "←"}
_KEY_LABELS |= {"right": "→", "enter": "↵", "shift+down": "⇧↓", "shift+up": "⇧↑", "shift+tab": "⇧tab"}
_KEY_LABELS |= {"shift+f3": "⇧f3"}


class KeyMap:
    """The actions of a screen by their keys."""

    def __init__(self, actions: Sequence[KeyAction], section: str = "judge") -> None:
        self.actions = tuple(actions)
        self.section = section
        self._by_name = {action.name: action for action in actions}
        self._by_key = {key: action.name for action in actions for key in action.keys}

    def __getitem__(self, name: str) -> KeyAction:
        return self._by_name[name]

    def subset(self, others: Mapping[str, tuple[str, str]], *names: str) -> KeyMap:
        """Return the grades, the actions `names`, and the actions `others` with another sentence and word."""
        actions = []
        for action in self.actions:
            if action.name in others:
                about, word = others[action.name]
                actions.append(replace(action, about=about, word=word))
            elif action.name in names or action.name.startswith("grade_"):
                actions.append(action)
        return KeyMap(actions, self.section)

    def action(self, key: str) -> str | None:
        return self._by_key.get(key)

    def first(self, name: str) -> str:
        return next(iter(self[name].keys), "")

    def shown(self, name: str, *, in_line: bool = False) -> str:
        """Return the label of an action's first key, or nothing; `in_line` allows only keys that type no
        character."""
        return next((shown_key(key) for key in self[name].keys if not in_line or types_nothing(key)), "")

    def all_shown(self, name: str) -> str:
        return " ".join(map(shown_key, self[name].keys))


def types_nothing(key: str) -> bool:
    """Return whether a key types no character.

    >>> [types_nothing(key) for key in ("f3", "ctrl+r", "f", "slash", "space")]
    [True, True, False, False, False]
    """
    return len(key) > 1 and key not in _KEY_NAMES.values()


def shown_key(key: str) -> str:
    """Return a key's label.

    >>> [shown_key(key) for key in ("slash", "ctrl+z", "A", "shift+down")]
    ['/', '^z', 'A', '⇧↓']
    """
    return _KEY_LABELS.get(key, key.replace("ctrl+", "^"))


def grade_actions(labels: Sequence[str]) -> Iterator[KeyAction]:
    """Yield the actions that give a grade; grades above 9 have no default key."""
    for grade, label in enumerate(labels):
        about = f"Grade {grade}" if label == str(grade) else f"Grade {grade}: {label}"
        yield KeyAction(f"grade_{grade}", _JUDGE, about, (str(grade),) if grade < 10 else ())


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """The settings of a screen; the fields have the names of `config.settings`."""

    keys: KeyMap
    theme: str = THEMES[0]
    spacing: str = SPACINGS[0]
    # Open the screen where it was left.
    restore: bool = True


def load(
    home: Path,
    labels: Sequence[str] = (),
    section: str = "judge",
    actions: Sequence[KeyAction] = KEY_ACTIONS,
) -> ScreenSettings:
    """Return the settings of a screen with grades `labels` and further `actions`.

    Raises:
        DataError: the settings file is unreadable, or names an unknown action, key or theme.
    """
    path = home / SETTINGS_FILE
    try:
        described = parse_toml(read_text(path))
    except FileNotFoundError:
        described = {}
    except OSError as error:
        raise unreadable(path, error) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: invalid TOML: {error}") from error
    own = _table(path, described, section)
    known = {
        name.partition(".")[2]: setting for name, setting in BY_NAME.items() if name.startswith(f"{section}.")
    }
    unknown = sorted(own.keys() - known.keys())
    if unknown:
        named = f"{unknown[0]!r}{suggestion(unknown[0], known)}"
        raise DataError(
            f"{path}: unknown setting {named} in [{section}]: its settings are {', '.join(known)}"
        )
    keys = _key_map(path, _table(path, own, "keys"), section, (*grade_actions(labels), *actions))
    others: dict[str, Any] = {}
    for name, value in own.items():
        if name != "keys":
            try:
                others[name] = known[name].type.read(value, f"{section}.{name}", home)
            except ValueError as error:
                raise DataError(f"{path}: {error}") from error
    return ScreenSettings(keys, **others)


def _table(path: Path, described: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = described.get(name, {})
    if not isinstance(table, Mapping):
        raise DataError(f"{path}: {name} must be a table")
    return table


def _key_map(path: Path, own: Mapping[str, Any], section: str, screen_actions: Sequence[KeyAction]) -> KeyMap:
    actions = {action.name: action for action in screen_actions}
    table = f"[{section}.keys]"
    chosen: dict[str, tuple[str, ...]] = {}
    used: dict[str, str] = {}
    for name, keys in own.items():
        if name not in actions:
            named = f"{name!r}{suggestion(name, actions)}"
            raise DataError(f"{path}: unknown action {named} in {table}: `?` on the screen lists all actions")
        listed = keys if isinstance(keys, list) else [keys]
        if not listed or not all(isinstance(key, str) and key for key in listed):
            raise DataError(f"{path}: {name!r} in {table} must be a key name or a list of key names")
        chosen[name] = tuple(_KEY_NAMES.get(str(key), str(key)) for key in listed)
    for name, names in chosen.items():
        for key in names:
            if key in used:
                raise DataError(
                    f"{path}: {table} assigns the key {shown_key(key)!r} to both {used[key]!r} and {name!r}"
                )
            used[key] = name
    # A key that the file gives to an action loses its default action.
    result = []
    for name, action in actions.items():
        left = chosen.get(name) or tuple(key for key in action.keys if key not in used)
        if action.keys and not left:
            raise DataError(
                f"{path}: {table} assigns the key of {name!r} to {used[action.keys[0]]!r}: assign "
                f"another key to {name!r}"
            )
        result.append(replace(action, keys=left))
    return KeyMap(result, section)
