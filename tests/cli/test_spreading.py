from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.cli.commands import files_named, spread_words

OPTIONS = {"--gold": True, "--task": True, "--json": False}


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("p --gold a", "p --gold a"),
        ("p q --gold a b --json", "p q --gold a --gold b --json"),
        ("p q --gold a b --task t", "p q --gold a --gold b --task t"),
        ("p q --gold=a b", "p q --gold=a --gold b"),
        ("p --gold a --gold b", "p --gold a --gold b"),
        ("--gold a p --json", "--gold a p --json"),
        ("--task t --gold a p", "--task t --gold a p"),
        ("--task t p --gold a b c", "--task t p --gold a --gold b --gold c"),
        ("--gold a p --gold b c", "--gold a p --gold b --gold c"),
        ("p --gold a -- b", "p --gold a -- b"),
        ("p --json q --gold a", "p --json q --gold a"),
        ("p --gold", "p --gold"),
    ],
)
def test_words_after_gold_are_gold_once_there_was_a_prediction(typed: str, read: str) -> None:
    assert list(spread_words(typed.split(), frozenset({"--gold"}), OPTIONS)) == read.split()


def test_a_list_with_commas_is_several_files_unless_there_is_such_a_file(tmp_path: Path) -> None:
    odd = tmp_path / "a,b.tsv"
    assert files_named([Path("x.tsv, y.tsv")]) == (Path("x.tsv"), Path("y.tsv"))
    assert files_named([odd]) == (Path(f"{tmp_path}/a"), Path("b.tsv"))
    odd.touch()
    assert files_named([odd, Path("z")]) == (odd, Path("z"))
