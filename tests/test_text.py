from __future__ import annotations

import pytest

from searchapp.text import choices_hint, closest_name, suggestion

TASKS = ["nlps", "explanation-2019", "explanation-2021", "checkthat"]


@pytest.mark.parametrize(
    ("name", "known", "like"),
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
def test_the_name_that_was_meant_is_found(name: str, known: list[str], like: str | None) -> None:
    assert closest_name(name, known) == like


def test_a_refusal_asks_for_the_name_that_is_like_it_and_lists_them_all() -> None:
    assert choices_hint("nlp", TASKS[:2]) == "'nlp' (did you mean nlps?): choose nlps or explanation-2019"
    assert choices_hint("zz", TASKS[:2]) == "'zz': choose nlps or explanation-2019"
    assert suggestion("zz", TASKS) == ""
