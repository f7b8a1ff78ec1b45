"""The table of keys: the page made from it, and that a key has one meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from scripts.keys_page import SCREENS, TARGET, page
from searchapp.tui.adjudicate import screen as adjudicate
from searchapp.tui.compare import screen as compare
from searchapp.tui.config import screen as config
from searchapp.tui.home import screen as home
from searchapp.tui.judge import screen as judge
from searchapp.tui.kit.keys import ACTIONS, EVERYWHERE, KeyAction, KeyMap, grade_actions
from searchapp.tui.search import actions as search
from searchapp.tui.topics import screen as topics

# These keys open what is under the cursor and leave it, so several actions may have them.
SHARED_KEYS = {"enter", "escape"}
MOST_IN_FOOTER = 8

FOOTERS: dict[str, Sequence[Sequence[str]]] = {
    "home": [home.IN_LAST_LINE],
    "search": [search.IN_LINE, search.IN_HITS],
    "judge": [judge.IN_LAST_LINE],
    "adjudicate": [adjudicate.IN_LAST_LINE],
    "topics": [topics.IN_LAST_LINE],
    "compare": [compare.IN_LAST_LINE],
    "settings": [config.IN_LAST_LINE],
}


def shared(actions: Sequence[KeyAction]) -> set[str]:
    keys = Counter(key for action in actions for key in action.keys)
    return {key for key, count in keys.items() if count > 1}


def test_the_page_is_made_from_the_table() -> None:
    assert TARGET.read_text(encoding="utf-8") == page(), "run `python -m scripts.keys_page`"


def test_no_two_actions_share_a_key() -> None:
    assert shared([*ACTIONS.values(), *grade_actions([""] * 10)]) <= SHARED_KEYS


@pytest.mark.parametrize("name", SCREENS)
def test_a_key_has_one_action_on_a_screen(name: str) -> None:
    actions = SCREENS[name]
    assert not shared([*actions, *grade_actions([""] * 10)])
    for action in actions:
        assert action.keys == ACTIONS[action.name].keys, action.name


@pytest.mark.parametrize("name", SCREENS)
def test_the_actions_of_every_screen_are_on_it(name: str) -> None:
    assert set(EVERYWHERE) <= {action.name for action in SCREENS[name]}


def test_every_action_is_on_a_screen() -> None:
    assert {action.name for actions in SCREENS.values() for action in actions} == ACTIONS.keys()


@pytest.mark.parametrize("name", SCREENS)
def test_footers_have_few_entries_and_each_has_a_word(name: str) -> None:
    keys = KeyMap(SCREENS[name])
    for footer in FOOTERS[name]:
        assert 0 < len(footer) <= MOST_IN_FOOTER and len(set(footer)) == len(footer)
        assert all(keys[action].word for action in footer), footer
