"""Options that a record declares: the command line offers them, and hands the record over."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from searchapp.cli.commands import command, files_named, spread_words
from searchapp.config.settings import Settings
from searchapp.options import REQUIRED, argument, flag, option

runner = CliRunner()


@dataclass(frozen=True)
class Limits:
    depth: int | None = option("How deep.", min=1)
    inner: str = "no option"
    lenient: bool = flag("Go on.")


@dataclass(frozen=True)
class Asked:
    tag: Annotated[str, option("A tag.", "--tag", "-t")] = "none"
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class AskedOtherwise(Asked):
    tag: str = option("Another help.", default="some")


def program(taken: list[object], record: type[Asked]) -> typer.Typer:
    app = typer.Typer()

    def make(
        settings: Settings,
        *,
        names: list[str] = argument("The names."),
        asked: Asked,
        out: str = option("Where to.", default=REQUIRED),
    ) -> None:
        taken.extend((names, asked, out))

    make.__annotations__["asked"] = record.__name__
    command(app)(make)
    return app


def test_a_record_is_made_of_the_options_of_its_fields() -> None:
    taken: list[object] = []
    app = program(taken, Asked)
    words = ["a", "b", "--out", "o", "-t", "x", "--depth", "3", "--lenient"]
    assert runner.invoke(app, words).exit_code == 0
    assert taken == [["a", "b"], Asked("x", Limits(3, lenient=True)), "o"]
    taken.clear()
    assert runner.invoke(app, ["a", "--out", "o"]).exit_code == 0
    assert taken == [["a"], Asked(limits=Limits(depth=None, lenient=False)), "o"]


def test_options_stand_in_the_order_of_parameters_and_fields() -> None:
    shown = runner.invoke(program([], Asked), ["--help"], env={"COLUMNS": "100"}).stdout
    places = [shown.index(name) for name in ("--tag", "--depth", "--lenient", "--out", "--engine")]
    assert places == sorted(places)
    assert "inner" not in shown and "--no-lenient" not in shown


def test_a_derived_record_declares_an_option_otherwise() -> None:
    taken: list[object] = []
    app = program(taken, AskedOtherwise)
    shown = runner.invoke(app, ["--help"], env={"COLUMNS": "100"}).stdout
    assert "Another help." in shown and "A tag." not in shown
    assert shown.index("--tag") < shown.index("--depth")
    assert runner.invoke(app, ["a", "--out", "o"]).exit_code == 0
    assert taken[1] == AskedOtherwise("some", Limits())


@pytest.mark.parametrize("words", [[], ["a"], ["a", "--out", "o", "--depth", "0"]])
def test_what_is_required_or_out_of_range_is_refused(words: list[str]) -> None:
    taken: list[object] = []
    assert runner.invoke(program(taken, Asked), words).exit_code == 2
    assert taken == []


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
