"""A dataclass that declares options: the command line has them and passes an instance to the command."""

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
    lenient: bool = flag("Continue.")


@dataclass(frozen=True)
class RunOptions:
    tag: Annotated[str, option("A tag.", "--tag", "-t")] = "none"
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class DerivedOptions(RunOptions):
    tag: str = option("Another help.", default="some")


def program(received: list[object], record: type[RunOptions]) -> typer.Typer:
    app = typer.Typer()

    def make(
        settings: Settings,
        *,
        names: list[str] = argument("The names."),
        run_options: RunOptions,
        out: str = option("Where to.", default=REQUIRED),
    ) -> None:
        received.extend((names, run_options, out))

    make.__annotations__["run_options"] = record.__name__
    command(app)(make)
    return app


def test_an_instance_is_made_from_the_options_of_its_fields() -> None:
    received: list[object] = []
    app = program(received, RunOptions)
    words = ["a", "b", "--out", "o", "-t", "x", "--depth", "3", "--lenient"]
    assert runner.invoke(app, words).exit_code == 0
    assert received == [["a", "b"], RunOptions("x", Limits(3, lenient=True)), "o"]
    received.clear()
    assert runner.invoke(app, ["a", "--out", "o"]).exit_code == 0
    assert received == [["a"], RunOptions(limits=Limits(depth=None, lenient=False)), "o"]


def test_options_are_in_the_order_of_parameters_and_fields() -> None:
    text = runner.invoke(program([], RunOptions), ["--help"], env={"COLUMNS": "100"}).stdout
    positions = [text.index(name) for name in ("--tag", "--depth", "--lenient", "--out", "--engine")]
    assert positions == sorted(positions)
    assert "inner" not in text and "--no-lenient" not in text


def test_a_subclass_can_redefine_an_option() -> None:
    received: list[object] = []
    app = program(received, DerivedOptions)
    text = runner.invoke(app, ["--help"], env={"COLUMNS": "100"}).stdout
    assert "Another help." in text and "A tag." not in text
    assert text.index("--tag") < text.index("--depth")
    assert runner.invoke(app, ["a", "--out", "o"]).exit_code == 0
    assert received[1] == DerivedOptions("some", Limits())


@pytest.mark.parametrize("words", [[], ["a"], ["a", "--out", "o", "--depth", "0"]])
def test_missing_and_invalid_options_are_refused(words: list[str]) -> None:
    received: list[object] = []
    assert runner.invoke(program(received, RunOptions), words).exit_code == 2
    assert received == []


OPTIONS = {"--gold": True, "--task": True, "--json": False}


@pytest.mark.parametrize(
    ("typed", "expected"),
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
def test_words_after_gold_are_gold_files_if_a_prediction_precedes(typed: str, expected: str) -> None:
    assert list(spread_words(typed.split(), frozenset({"--gold"}), OPTIONS)) == expected.split()


def test_a_name_with_commas_is_a_list_of_files_unless_it_exists(tmp_path: Path) -> None:
    path = tmp_path / "a,b.tsv"
    assert files_named([Path("x.tsv, y.tsv")]) == (Path("x.tsv"), Path("y.tsv"))
    assert files_named([path]) == (Path(f"{tmp_path}/a"), Path("b.tsv"))
    path.touch()
    assert files_named([path, Path("z")]) == (path, Path("z"))
