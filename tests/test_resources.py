from __future__ import annotations

from pathlib import Path

import pytest

from searchapp import resources
from searchapp.errors import DataError, UsageError


def test_a_template_that_a_task_lacks_is_the_general_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, text in (
        ("text/bm25", '{"size": 1}'),
        ("text/words", '{"size": 2}'),
        ("mine/words", '{"size": 3}'),
    ):
        (tmp_path / f"{place}.json").parent.mkdir(exist_ok=True)
        (tmp_path / f"{place}.json").write_text(text)
    monkeypatch.setattr(resources, "folder", lambda _name: tmp_path)
    assert resources.query_template("mine", "bm25") == {"size": 1}
    assert resources.query_template("mine", "words") == {"size": 3}
    with pytest.raises((DataError, UsageError), match="mine/none.json"):
        resources.query_template("mine", "none")
