"""Suggestions for misspelt names."""

from __future__ import annotations

import pytest

from searchapp.text import choices_hint, closest_name, suggestion

TASKS = ["nlps", "explanation-2019", "explanation-2021", "checkthat"]


@pytest.mark.parametrize(
    ("name", "known", "closest"),
    [
        ("nlp", TASKS, "nlps"),
        ("NLPS", TASKS, "nlps"),
        ("chek-that", TASKS, "checkthat"),
        ("explanation-2020", TASKS, "explanation-2021"),
        ("check", TASKS, "checkthat"),
        ("chess", TASKS, None),
        ("", TASKS, None),
        ("x", [], None),
        ("neighbors", ["bm25", "neighbours"], "neighbours"),
        ("P@5", ["nDCG", "Bpref"], None),
    ],
)
def test_the_closest_name_is_suggested(name: str, known: list[str], closest: str | None) -> None:
    assert closest_name(name, known) == closest


def test_a_hint_suggests_the_closest_name_and_lists_all_names() -> None:
    assert choices_hint("nlp", TASKS[:2]) == "'nlp' (did you mean nlps?): choose nlps or explanation-2019"
    assert choices_hint("zz", TASKS[:2]) == "'zz': choose nlps or explanation-2019"
    assert suggestion("zz", TASKS) == ""
