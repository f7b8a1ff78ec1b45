from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.analysis.parity import InlineOracle
from tests.server.rest import Server


@pytest.fixture(scope="module")
def oracle(elasticsearch_url: str) -> Iterator[InlineOracle]:
    with InlineOracle(Server(elasticsearch_url)) as oracle:
        yield oracle
