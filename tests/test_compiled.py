from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests import compiled


def test_what_is_compiled_is_what_pytest_reads(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "TESTS", tmp_path)
    (tmp_path / "deep").mkdir()
    for name in ("conftest.py", "deep/test_one.py", "deep/helper.py"):
        (tmp_path / name).write_text("def check(one):\n    assert one == 2\n")
    paths = list(compiled.rewritten_modules())
    assert [path.name for path in paths] == ["conftest.py", "test_one.py"]
    compiled.compile_these(paths, pytestconfig)
    for path in paths:
        code = rewrite._read_pyc(path, compiled.written(path))
        assert code is not None, "pytest finds it, and takes it for current"
        module: dict[str, object] = {"__name__": "one"}
        exec(code, module)
        with pytest.raises(AssertionError, match="assert 1 == 2"):
            module["check"](1)  # type: ignore[operator]
    assert len(list(tmp_path.rglob("*.pyc"))) == 2


def test_nothing_is_compiled_where_it_may_not_be_written(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "TESTS", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "test_one.py").write_text("")
    compiled.compile_tests(pytestconfig)
    assert not list(tmp_path.rglob("*.pyc"))
