"""Writes docs/reference/keys.md, the keys of all screens, from the tables of actions.

    python -m scripts.keys_page

A test fails while the file is not what this writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from searchapp.tui.adjudicate import screen as adjudicate
from searchapp.tui.compare import screen as compare
from searchapp.tui.config import screen as config
from searchapp.tui.home import screen as home
from searchapp.tui.kit.keys import ACTIONS, EVERYWHERE, KEY_ACTIONS, KeyAction, KeyMap, shown_key
from searchapp.tui.search import actions as search
from searchapp.tui.topics import screen as topics

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "keys.md"

HEAD = """# Keys

Made by `python -m scripts.keys_page`. A key has one meaning on all screens: no two actions share a key, except that
`enter` and `escape` may. Grade keys are `0` to `9` where you judge. `?` on a screen lists its keys.
[Settings](settings.md) of a table such as `[judge.keys]` change them, and `key_set = "0.3"` restores the keys of
version 0.3.

Brackets contain what an action does on single screens.
"""

# The actions of the screens by the names that the page gives them.
SCREENS: Mapping[str, Sequence[KeyAction]] = {
    "home": home.KEY_ACTIONS,
    "search": search.KEY_ACTIONS,
    "judge": KEY_ACTIONS,
    "adjudicate": KeyMap(KEY_ACTIONS).subset(adjudicate.OTHER, *adjudicate.SAME).actions,
    "topics": topics.KEY_ACTIONS,
    "compare": compare.KEY_ACTIONS,
    "settings": KeyMap(KEY_ACTIONS).subset(config.ACTION_TEXTS, *EVERYWHERE).actions,
}


def page() -> str:
    """Return the page: a table of actions for each group of the help."""
    parts = [HEAD]
    for group, actions in groupby(ACTIONS.values(), lambda action: action.group):
        parts += [f"## {group}\n", "| action | keys | meaning | screens |", "|---|---|---|---|"]
        parts += [*map(_row, actions), ""]
    return "\n".join(parts).rstrip() + "\n"


def _row(action: KeyAction) -> str:
    names = [name for name, actions in SCREENS.items() if any(own.name == action.name for own in actions)]
    screens = "all" if len(names) == len(SCREENS) else ", ".join(names)
    keys = " ".join(f"`{shown_key(key)}`" for key in action.keys).replace("|", r"\|")
    others = "; ".join(_other_meanings(action))
    meanings = f"{action.about} ({others})" if others else action.about
    return f"| `{action.name}` | {keys} | {meanings} | {screens} |"


def _other_meanings(action: KeyAction) -> Iterator[str]:
    """Yield the sentences of screens that have another one."""
    of_screens: dict[str, list[str]] = {}
    for name, actions in SCREENS.items():
        for own in actions:
            if own.name == action.name and own.about != action.about:
                of_screens.setdefault(own.about, []).append(name)
    for about, names in of_screens.items():
        yield f"{', '.join(names)}: {about}"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
