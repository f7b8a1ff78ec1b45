"""Faults by chance on one node of the newest and of the oldest version, see `tests.campaign`."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from tests.campaign import Campaign, run_batch
from tests.profile import FULL

BATCHES = 10 if FULL else 1
FAULTS = 10 if FULL else 14
"""In a batch, of which there are as many for each of the two versions."""

pytestmark = pytest.mark.timeout(1800)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_fault_leaves_a_wrong_document(
    compared_url: str, compared_prefix: str, tmp_path: Path, batch: int, request: pytest.FixtureRequest
) -> None:
    settings = Settings(home=tmp_path, index_prefix=compared_prefix)
    run_batch(request.node.name, Campaign(settings, compared_url, seed=batch), FAULTS)
