"""Recorded cases of the official scorers: small invented files with the output of the organisers' scripts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.real import real_data

RECORDED = Path(__file__).parent / "fixtures" / "conformance"

COUNTS = {
    "checkthat": 0,  # its files are folders of debates, see tests/evaluation/test_checkthat.py
    "nlps": 13,
    "explanation-2019": 11,
    "explanation-2021": 13,
    "smart-types-dbpedia": 14,
    "smart-types-wikidata": 12,
    "smart-relations-dbpedia": 12,
    "smart-relations-wikidata": 10,
}
"""The number of cases of each task."""


@dataclass(frozen=True)
class Case:
    """The files and the recorded results of a case."""

    folder: Path

    @cached_property
    def recorded(self) -> Mapping[str, Any]:
        """The content of `case.json`."""
        case: Mapping[str, Any] = json.loads((self.folder / "case.json").read_text(encoding="utf-8"))
        return case

    @property
    def task(self) -> str:
        return str(self.recorded["task"])

    @property
    def predictions(self) -> Path:
        return self.folder / str(self.recorded["inputs"]["predictions"])

    @property
    def gold(self) -> Path:
        return self.folder / str(self.recorded["inputs"]["gold"])

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the official script under the names of the options of `evaluate`."""
        names = {"nearest": "cutoff"}
        return {names.get(name, name): value for name, value in self.recorded.get("options", {}).items()}

    @property
    def expected(self) -> Mapping[str, Any]:
        return dict(self.recorded["expected"])

    @property
    def hierarchy(self) -> Path | None:
        """The type hierarchy that a case names; the organisers' own file is not part of the project."""
        if "hierarchy" in self.recorded["inputs"]:
            return self.folder / str(self.recorded["inputs"]["hierarchy"])
        if "hierarchy" not in self.recorded:
            return None
        return real_data("smart-types-dbpedia") / "dbpedia_types.tsv"

    def __str__(self) -> str:
        return f"{self.folder.parents[1].name}/{self.folder.parent.name}/{self.folder.name}"


def _cases() -> Iterator[Case]:
    folders = [RECORDED, *(Path(name) for name in [os.environ.get("SEARCHAPP_TEST_CONFORMANCE")] if name)]
    for folder in folders:
        for task, count in COUNTS.items():
            cases = [Case(path.parent) for path in sorted(folder.glob(f"{task}/*/case.json"))]
            assert not count or len(cases) == count, f"{folder} has {len(cases)} cases of {task}, not {count}"
            yield from cases if count else ()


CASES = list(_cases())


def assert_as_recorded(
    expected: Mapping[str, Any], values: Mapping[str, float], per_topic: Mapping[str, Any]
) -> None:
    """Check figures and single results, and their order, against the output of the organisers' script."""
    recorded, computed = (
        {name: float(value) for name, value in figures.items()} for figures in (expected["values"], values)
    )
    assert computed == pytest.approx(recorded, rel=0, abs=1e-12, nan_ok=True)
    if "per_topic" in expected:
        assert list(per_topic) == list(expected["per_topic"])
        for topic, figures in expected["per_topic"].items():
            _assert_close(per_topic[topic], figures)
    if "per_prediction" in expected:
        _assert_predictions(per_topic, expected["per_prediction"])


def _assert_close(actual: Any, expected: Any) -> None:
    if not isinstance(expected, Mapping):
        assert actual == pytest.approx(expected, rel=0, abs=1e-12)
        return
    for name, value in expected.items():
        if value is None:
            assert actual[name] is None
        else:
            assert actual[name] == pytest.approx(value, rel=0, abs=1e-12)


def _assert_predictions(per_topic: Mapping[str, Any], expected: Sequence[Mapping[str, Any]]) -> None:
    assert [name.split(" (")[0] for name in per_topic] == [str(single["id"]) for single in expected]
    for result, single in zip(per_topic.values(), expected, strict=True):
        assert result == {"rank": single["rank"], "rr": single["rr"]}
