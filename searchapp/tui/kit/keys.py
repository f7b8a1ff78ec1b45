"""The keys of the screens, their other settings, and the help about their panes.

    [judge.keys]
    undo = "z"
    next = ["n", "ctrl+n"]

in `settings.toml` of the home directory. Keys have Textual's names: `a`, `A`, `ctrl+a`, `space`, `f3`,
`left_square_bracket` or simply `[`. Imports no Textual, because commands read the keys before they open a
screen.
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from searchapp.config.settings import BY_NAME, KEY_SETS, SPACINGS, THEMES
from searchapp.errors import DataError
from searchapp.files import parse_toml, read_text, unreadable
from searchapp.lucene.dataclass import dataclass
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
    ("markup", "zoom", "next_pane"),
)
DOCUMENT_PANE = PaneHelp(
    "The document",
    "The full document under the cursor. The arrow keys scroll it.",
    (),
    ("markup", "zoom", "pager", "copy_text", "why", "next_pane"),
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


# The groups of the help, in its order.
_OPEN, _SEARCH, _TOPICS, _RUNS, _DOCUMENTS, _JUDGE, _MOVE, _VIEW, _OTHER = (
    "Open", "Search", "Topics", "Runs", "Documents", "Judge", "Move", "View", "Other",
)  # fmt: skip

# The actions of all screens. A key has one meaning: no two actions share one, except `open` and `clear`.
ACTIONS = {
    action.name: action
    for action in (
        KeyAction("open", _OPEN, "Open the topic under the cursor", ("enter",), "open"),
        KeyAction("index", _OPEN, "Index the task from its files, its sample or another folder", ("I",), "index"),
        KeyAction("own_task", _OPEN, "Index your own task, described by a TOML file", ("O",), "own task"),
        KeyAction("fetch", _OPEN, "Fetch the task's collection: its official files", ("C",), "fetch"),
        KeyAction("rank", _OPEN, "Rank the topics of a split of the task: make a run", ("K",), "rank"),
        KeyAction("settings", _OPEN, "Show every setting, its value and its source", ("comma",), "settings"),
        KeyAction("doctor", _OPEN, "Check whether searchapp works on this machine", ("D",), "check"),
        KeyAction("refresh", _OPEN, "Refresh engine, tasks and runs", ("f5",), "refresh"),
        KeyAction("search", _SEARCH, "Search the topic's documents for words", ("slash",), "search"),
        KeyAction("next_match", _SEARCH, "Next document with the search words", ("f3", "full_stop")),
        KeyAction("previous_match", _SEARCH, "Previous document with the search words", ("shift+f3",)),
        KeyAction("history", _SEARCH, "List recent queries", ("ctrl+r",), "history"),
        KeyAction("save", _SEARCH, "Save the search under a name", ("ctrl+s",), "save"),
        KeyAction("saved", _SEARCH, "Open or delete a saved search", ("ctrl+l",), "saved"),
        KeyAction("filter", _SEARCH, "Filter the topics by words", ("f", "f2"), "filter"),
        KeyAction("recipe", _SEARCH, "Rank with another recipe", ("r", "alt+r"), "recipe"),
        KeyAction(
            "second", _SEARCH, "Show the ranking of a second recipe beside the first, or hide it", ("V", "alt+v"),
            "second recipe",
        ),
        KeyAction("like", _SEARCH, "More like this document", ("S",), "similar"),
        KeyAction("back", _SEARCH, "Go back to the previous search", ("backspace", "alt+left"), "back"),
        KeyAction("forward", _SEARCH, "Go forward to the next search", ("alt+right",)),
        KeyAction(
            "analysis", _SEARCH, "Show how a field's analyzer changes document and query", ("A",), "analyze"
        ),
        KeyAction("next_topic", _TOPICS, "Next topic", ("right_square_bracket",), "next topic"),
        KeyAction("previous_topic", _TOPICS, "Previous topic", ("left_square_bracket",)),
        KeyAction(
            "next_unjudged_topic", _TOPICS, "Next topic with unjudged documents", ("right_curly_bracket",), "next topic"
        ),
        KeyAction("topics", _TOPICS, "Go to the list of topics, or back", ("t",), "topics"),
        KeyAction(
            "order", _TOPICS, "Sort topics: worst first, most missed first, run order", ("o",), "order"
        ),
        KeyAction("worst_topic", _TOPICS, "Go to the worst topic", ("W",), "worst"),
        KeyAction(
            "failures",
            _TOPICS,
            "Show only failing topics with their non-relevant documents, or everything",
            ("F",),
            "failures",
        ),
        KeyAction("compare", _RUNS, "Compare the run with another one, topic by topic", ("v",), "compare"),
        KeyAction(
            "evaluate", _RUNS, "Score the run with the official scorer, and show all measures", ("E",), "evaluate"
        ),
        KeyAction("measure", _RUNS, "Next measure", ("M",), "measure"),
        KeyAction("other", _RUNS, "Go to the same document in the other run", ("equals_sign",), "other run"),
        KeyAction("next", _DOCUMENTS, "Next unjudged document", ("n",), "next unjudged"),
        KeyAction("previous", _DOCUMENTS, "Previous unjudged document", ("N",)),
        KeyAction(
            "next_gold", _DOCUMENTS, "Next relevant document in the ranking", ("right_parenthesis",), "next gold"
        ),
        KeyAction(
            "previous_gold", _DOCUMENTS, "Previous relevant document in the ranking", ("left_parenthesis",)
        ),
        KeyAction("next_missed", _DOCUMENTS, "Next missed document", ("e",), "next missed"),
        KeyAction("why", _DOCUMENTS, "Explain the document's rank", ("w", "f6"), "why"),
        KeyAction(
            "document", _DOCUMENTS, "Go to a document by its id, or see why it is not there", ("i",), "id"
        ),
        KeyAction("citing", _DOCUMENTS, "List training topics with the document in their gold", ("T",)),
        KeyAction("judge", _JUDGE, "Start or stop judging with the grade keys", ("J",), "judge"),
        KeyAction("queue", _JUDGE, "Add the first hits to the judging queue of the topic", ("Q",), "queue"),
        KeyAction("undo", _JUDGE, "Undo the last action; repeat for earlier ones", ("u", "ctrl+z"), "undo"),
        KeyAction("redo", _JUDGE, "Redo the last undone action", ("U", "ctrl+y"), "redo"),
        KeyAction("skip", _JUDGE, "Skip: leave the document for later, without a grade", ("s",), "skip"),
        KeyAction("cant_tell", _JUDGE, "Can't tell: the document can't be judged", ("x",), "can't tell"),
        KeyAction("note", _JUDGE, "Annotate: write a note on the document", ("a",), "annotate"),
        KeyAction("reason", _JUDGE, "Grade with a reason", ("R",), "reason"),
        KeyAction("select", _JUDGE, "Select the document, to grade several at once", ("space",), "select"),
        KeyAction("select_down", _JUDGE, "Extend the selection down", ("shift+down",)),
        KeyAction("select_up", _JUDGE, "Extend the selection up", ("shift+up",)),
        KeyAction("guidelines", _JUDGE, "Show the guidelines: what the grades mean, with examples", ("H",)),
        KeyAction("judged", _JUDGE, "List your judgments, skips and notes; go to one of them", ("l",), "list"),
        KeyAction("clear", _MOVE, "Clear the selection, the search or the filter", ("escape",)),
        KeyAction("down", _MOVE, "Next line", ("down", "j")),
        KeyAction("up", _MOVE, "Previous line", ("up", "k")),
        KeyAction("page_down", _MOVE, "A page down", ("pagedown", "ctrl+f")),
        KeyAction("page_up", _MOVE, "A page up", ("pageup", "ctrl+b")),
        KeyAction("first", _MOVE, "First line", ("home", "g")),
        KeyAction("last", _MOVE, "Last line", ("end", "G")),
        KeyAction("next_pane", _MOVE, "Next pane", ("tab",), "next pane"),
        KeyAction("previous_pane", _MOVE, "Previous pane", ("shift+tab",)),
        KeyAction("jump", _MOVE, "Label every visible item; its label goes there", ("apostrophe", "ctrl+o"), "jump"),
        KeyAction("scroll_down", _MOVE, "Scroll the document down", ("ctrl+d", "right")),
        KeyAction("scroll_up", _MOVE, "Scroll the document up", ("ctrl+u", "left")),
        KeyAction("zoom", _VIEW, "Show only the focused pane, or all panes again", ("z", "f4"), "zoom"),
        KeyAction("reading", _VIEW, "Hide or show the lists", ("b",)),
        KeyAction("wider", _VIEW, "Make the list wider; in stacked panes, taller", ("greater_than_sign", "f8")),
        KeyAction("narrower", _VIEW, "Make the list narrower; in stacked panes, lower", ("less_than_sign", "f7")),
        KeyAction(
            "markup", _VIEW, "Switch between rendered text, raw text and LaTeX source", ("m", "f9"), "markup"
        ),
        KeyAction(
            "lines", _VIEW, "Show each hit on two lines with a bar for its score, or on one", ("L", "alt+l"), "lines"
        ),
        KeyAction("fold", _VIEW, "Fold or unfold the sections below a document", ("h",)),
        KeyAction("theme", _VIEW, "Next theme: dark, light, terminal colours", ("d",), "theme"),
        KeyAction("copy_id", _OTHER, "Copy the document's id", ("y",), "copy id"),
        KeyAction("copy_text", _OTHER, "Copy the document's text", ("Y",)),
        KeyAction("copy_command", _OTHER, "Copy the command that opens this view", ("c",), "copy command"),
        KeyAction("export", _OTHER, "Write the hits to a file: a TREC run, JSON lines or CSV", ("X",), "export"),
        KeyAction("pager", _OTHER, "Open the document in $PAGER", ("p",), "pager"),
        KeyAction("copy", _OTHER, "Copy the text selected with the mouse", ("ctrl+c", "super+c")),
        KeyAction("palette", _OTHER, "Search for an action by name, and run it", ("ctrl+p",), "palette"),
        KeyAction("help", _OTHER, "Explain this pane, and list all keys", ("question_mark", "f1"), "keys"),
        KeyAction("quit", _OTHER, "Leave", ("q", "ctrl+q"), "quit"),
    )
}  # fmt: skip

# The actions of every screen.
EVERYWHERE = ("down", "up", "page_down", "page_up", "first", "last", "next_pane", "previous_pane", "jump",
              "scroll_down", "scroll_up", "zoom", "theme", "copy", "palette", "help", "quit")  # fmt: skip


def screen_actions(*names: str, **texts: str | tuple[str, str]) -> tuple[KeyAction, ...]:
    """Return the actions of a screen in the order of the table: `EVERYWHERE` and `names`.

    `texts` gives a name its sentence on this screen, or its sentence and its word.
    """
    wanted = {*EVERYWHERE, *names, *texts}
    result = []
    for action in ACTIONS.values():
        if action.name in wanted:
            text = texts.get(action.name, action.about)
            about, word = text if isinstance(text, tuple) else (text, action.word)
            result.append(replace(action, about=about, word=word))
    assert wanted <= ACTIONS.keys()
    return tuple(result)


_READING_0_3 = {"reading": ("b", "f5"), "page_down": ("pagedown", "space"), "page_up": ("pageup",)}
_TOPICS_0_3 = {
    **_READING_0_3, "note": ("n",), "filter": ("f", "slash"), "judge": ("j", "J"), "down": ("down",),
    "first": ("home",), "last": ("end",), "scroll_up": ("ctrl+b", "left"),
}  # fmt: skip

# The keys of version 0.3 by settings section and action, where they differ.
KEYS_0_3: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "judge": {
        "note": ("n",), "reason": ("r",), "select_down": ("shift+down", "J"), "select_up": ("shift+up", "K"),
        "page_down": ("pagedown",), "page_up": ("pageup",), "first": ("home",), "last": ("end",), "next": ("g",),
        "previous": (), "next_unjudged_topic": ("G",), "filter": ("f",), "next_match": ("full_stop", "f3"),
        "previous_match": ("comma", "shift+f3"), "judged": ("l", "f6"), "reading": ("b", "f5"), "markup": ("m",),
    },
    "topics": {**_TOPICS_0_3, "next": ("g",), "previous": ("G",)},
    "compare": {
        **_TOPICS_0_3, "next": ("v",), "previous": ("V",), "next_gold": ("g",), "previous_gold": ("G",),
        "compare": ("r",), "other": ("a", "equals_sign"),
    },
    "search": {
        **_READING_0_3, "saved": ("o", "ctrl+l"), "recipe": ("r", "f3"), "like": ("s",), "citing": ("e",),
        "analysis": ("a",), "judge": ("j", "J"), "down": ("down",), "next": (), "previous": (),
        "scroll_up": ("ctrl+b", "left"),
    },
    "browse": {
        "settings": ("s",), "doctor": ("c", "f2"), "index": ("i",), "own_task": ("n",), "clear": ("x", "escape"),
        "evaluate": ("e",), "refresh": ("r", "f5"), "page_down": ("pagedown", "space"), "page_up": ("pageup",),
    },
}  # fmt: skip

# Names of actions before version 0.4.
RENAMED_ACTIONS = {
    "first_topic": "worst_topic", "maths": "markup", "next_gold": "next", "next_moved": "next", "next_unjudged": "next",
    "previous_gold": "previous", "previous_moved": "previous", "runs": "compare", "stop": "clear", "topic": "topics",
    "words": "search",
}  # fmt: skip

# The actions of the judging screen.
KEY_ACTIONS = screen_actions(
    *("undo", "redo", "skip", "cant_tell", "note", "reason", "select", "select_down", "select_up", "judged"),
    "guidelines",
    *(
        "search",
        "next_match",
        "previous_match",
        "clear",
        "next_topic",
        "previous_topic",
        "next_unjudged_topic",
    ),
    *("topics", "open", "filter", "reading", "wider", "narrower", "markup"),
    next="Next unjudged document; after a search, the next match",
    previous="Previous unjudged document; after a search, the previous match",
    document="Go to a document by its id",
    next_pane="Next pane: topics, ranking, topic, document",
    quit="Leave; everything is saved",
)

# Textual's names of the keys that type a character: its name in Unicode, except for three.
_KEY_NAMES = {
    character: unicodedata.name(character).lower().replace(" ", "_").replace("-", "_")
    for character in "[]{}()?., ;:='<>*#!"
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
    # Open the search screen where it was left.
    restore: bool = True
    # The search screen shows each hit on two lines.
    two_lines: bool = False
    # Judging goes to the next topic when a topic is done.
    next_topic: bool = False
    # Number of documents to judge in a session.
    goal: int | None = None


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
    described = _read(path)
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
    try:
        key_set = BY_NAME["key_set"].type.read(described.get("key_set", KEY_SETS[0]), "key_set", home)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    if key_set == "0.3":
        former = KEYS_0_3[section]
        actions = [replace(action, keys=former.get(action.name, action.keys)) for action in actions]
    keys = _key_map(path, _table(path, own, "keys"), section, (*grade_actions(labels), *actions))
    others: dict[str, Any] = {}
    for name, value in own.items():
        if name != "keys":
            try:
                others[name] = known[name].type.read(value, f"{section}.{name}", home)
            except ValueError as error:
                raise DataError(f"{path}: {error}") from error
    return ScreenSettings(keys, **others)


def appearance(home: Path, section: str) -> tuple[str, str]:
    """Return theme and spacing of a screen, or the defaults if the settings are invalid, which `load` reports."""
    path = home / SETTINGS_FILE
    try:
        own = _table(path, _read(path), section)
    except DataError:
        own = {}
    theme, spacing = own.get("theme"), own.get("spacing")
    return theme if theme in THEMES else THEMES[0], spacing if spacing in SPACINGS else SPACINGS[0]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return parse_toml(read_text(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unreadable(path, error) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: invalid TOML: {error}") from error


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
            new = RENAMED_ACTIONS.get(name)
            hint = f" (did you mean {new}?)" if new in actions else suggestion(name, actions)
            raise DataError(
                f"{path}: unknown action {name!r}{hint} in {table}: `?` on the screen lists all actions"
            )
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
