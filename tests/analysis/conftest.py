from __future__ import annotations

from collections.abc import Iterator

import pytest

from searchapp.lucene.analysis import bulk
from tests.analysis.parity import InlineOracle
from tests.server.rest import Server


@pytest.fixture(scope="module")
def oracle(elasticsearch_url: str) -> Iterator[InlineOracle]:
    with InlineOracle(Server(elasticsearch_url)) as oracle:
        yield oracle


@pytest.fixture(scope="module")
def pieces_of_few_texts() -> Iterator[None]:
    """Divide texts by pieces even if these are hardly repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "FEWEST_REPETITIONS", 0)
        yield
