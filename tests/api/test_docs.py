"""The examples of the pages on Python run, and the public names are those recorded in a file."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import searchapp as sa
import searchapp.pyterrier
from tests.cli.conftest import clear_variables

ROOT = Path(__file__).parents[2]

SURFACE = Path(__file__).with_name("surface.txt")


def describe() -> Iterator[str]:
    """Yield a line for each public name, and for each public method and attribute of a class."""
    public = [(name, sa) for name in sa.__all__] + [
        (name, searchapp.pyterrier) for name in searchapp.pyterrier.__all__
    ]
    for name, module in public:
        value = getattr(module, name)
        if not inspect.isclass(value):
            yield f"{name}{inspect.signature(value)}" if callable(value) else name
            continue
        yield f"class {name}"
        attributes = {**getattr(value, "__dataclass_fields__", {}), **vars(value)}
        for attribute in sorted(attributes):
            if attribute.startswith("_"):
                continue
            method = inspect.getattr_static(value, attribute, None)
            method = method.__func__ if isinstance(method, classmethod | staticmethod) else method
            shown = inspect.signature(method) if inspect.isfunction(method) else ""
            yield f"    {attribute}{shown}"


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # PyTerrier 1.1.2 with pandas 3.1
@pytest.mark.parametrize("name", ["reference/python.md", "use/pyterrier.md"])
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_variables(monkeypatch)
    monkeypatch.setenv("SEARCHAPP_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / name
    failed, attempted = doctest.testfile(str(page), module_relative=False, optionflags=doctest.REPORT_UDIFF)
    assert attempted >= 10 and not failed


def test_the_public_names_are_the_recorded_ones() -> None:
    text = "\n".join(describe()) + "\n"
    assert text == SURFACE.read_text(encoding="utf-8"), (
        f"the public Python API has changed: describe it in CHANGELOG.md, and write the new one to {SURFACE.name} "
        "with `python -m tests.api.test_docs`"
    )


def test_the_changelog_names_all_of_them() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`(?:sa\.)?([A-Za-z_]+)", changelog))
    assert [name for name in sa.__all__ if name not in known and name != "__version__"] == []


if __name__ == "__main__":
    SURFACE.write_text("\n".join(describe()) + "\n", encoding="utf-8")
