"""Metadata of runs in the ir_metadata format."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from searchapp.formats import run_files

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.one_of(
    texts.filter(bool), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(scalars, min_size=1, max_size=3),
        st.dictionaries(texts.filter(bool), inner, min_size=1, max_size=3),
        st.lists(st.dictionaries(texts.filter(bool), inner, min_size=1, max_size=3), min_size=1, max_size=2),
    ),
    max_leaves=8,
)


def read(tag: str, parts: dict[str, Any]) -> Any:
    buffer = BytesIO()
    run_files.write_ir_metadata(buffer, tag, parts)
    text = buffer.getvalue().decode()
    assert text.startswith("# ir_metadata.start\n") and text.endswith("\n# ir_metadata.end\n")
    return yaml.safe_load(text)


@given(texts.filter(bool), st.dictionaries(texts.filter(bool), values, min_size=1, max_size=3))
def test_written_metadata_is_valid_yaml(tag: str, part: dict[str, Any]) -> None:
    assert read(tag, {"method": part}) == {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": tag,
        "method": part,
    }


def test_empty_values_are_omitted_and_parts_follow_the_order_of_the_schema() -> None:
    parts = {
        "data": {"x": "1"},
        "actor": {"name": ""},
        "platform": {"a": [], "b": {"c": None}, "d": [{}, "e"]},
    }
    written = read("t", parts)
    assert written == {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": "t",
        "platform": {"d": ["e"]},
        "data": {"x": "1"},
    }
    assert list(written)[3:] == ["platform", "data"]
