"""An index that an earlier searchapp wrote is rejected with what to do, and is built again; it is never misread."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import DataError
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of

DOCUMENTS = [Document("1", "a b"), Document("2", "b c")]


def of_an_earlier_format(folder: Path) -> None:
    manifest = folder / "000001" / "manifest.json"
    described = {**json.loads(manifest.read_text()), "format": 2}
    manifest.write_text(json.dumps(described))


def with_a_pointer_without_checksum(folder: Path) -> None:
    (folder / "current").write_text("000001\n")


@pytest.mark.parametrize("make_old", [of_an_earlier_format, with_a_pointer_without_checksum])
def test_an_index_of_an_earlier_searchapp_is_rejected_and_built_again(
    tmp_path: Path, make_old: Callable[[Path], None]
) -> None:
    with closing(EmbeddedEngine(tmp_path, "searchapp")) as engine:
        engine.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
        make_old(tmp_path / "indexes" / "searchapp-rings")
        with pytest.raises(
            DataError, match="was written by an earlier searchapp: index again with `searchapp index`"
        ):
            engine.open("rings")
        assert engine.index_info("rings") is None
        assert engine.compare("rings", {}) is None
        engine.build("rings", spec_of(DOCUMENTS), DOCUMENTS)
        (hits,) = engine.open("rings").search([body({"match": {"text": "a"}})])
        assert hits.document_ids == ("1",)
