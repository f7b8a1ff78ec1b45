"""The setting `seed` replaces the default of every --seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from searchapp.cli import app
from searchapp.evaluation.significance import SEED
from tests.cli.conftest import SAMPLE, Cli

pytestmark = pytest.mark.shared_indexes


def test_every_seed_option_can_be_replaced_by_the_setting() -> None:
    defaults: dict[str, object] = {}

    def walk(command: object, path: str) -> None:
        for name, below in getattr(command, "commands", {}).items():
            walk(below, f"{path} {name}".strip())
        for parameter in getattr(command, "params", ()):
            if "--seed" in parameter.opts:
                defaults[path] = parameter.default

    walk(typer.main.get_command(app), "")
    assert defaults.keys() == {
        "ablate", "compare", "judge", "judgments assign", "judgments calibrate", "judgments pool", "judgments probe",
        "judgments trust", "learning-curve", "report", "tune",
    }  # fmt: skip
    assert set(defaults.values()) == {None}


def test_assignments_follow_the_setting(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = ("--quota", "ann=5", "--quota", "ben=5")

    def assigned(name: str, *options: object) -> object:
        given = ("--split", "dev", "--data", SAMPLE, "--out", tmp_path / name)
        assert offline("judgments", "assign", "nlps", *given, *quotas, *options).code == 0
        output = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        return output["seed"], output["topics"]

    usual, seven = assigned("usual"), assigned("seven", "--seed", 7)
    assert usual[0] == 0 and seven[0] == 7 and usual[1] != seven[1]  # type: ignore[index]
    monkeypatch.setenv("SEARCHAPP_SEED", "7")
    assert assigned("by-variable") == seven
    assert assigned("by-option", "--seed", 0) == usual
    monkeypatch.setenv("SEARCHAPP_SEED", "-7")
    refused = offline("judgments", "assign", "nlps", "--split", "dev", "--out", tmp_path / "x", *quotas)
    assert refused.code == 2 and "SEARCHAPP_SEED must be a whole number from 0" in refused.stderr


def test_comparisons_follow_the_setting(
    indexed: Cli, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = tmp_path / "words"
    ranked = indexed(
        "rank", "nlps", "--data", SAMPLE, "--split", "dev", "--recipe", "neighbours", "--out", words
    )
    assert ranked.code == 0, ranked.stderr
    command = ("compare", run, words, "--cutoff", 50, "--permutations", 200, "--json")
    first = indexed(*command)
    assert first.code == 0, first.stderr
    assert first.json["seed"] == SEED
    monkeypatch.setenv("SEARCHAPP_SEED", "7")
    assert indexed(*command).json == indexed(*command, "--seed", 7).json
    assert indexed(*command).json["seed"] == 7
