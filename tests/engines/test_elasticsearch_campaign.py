"""Random faults on a node of the newest and the oldest version, see `tests.campaign`."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from tests.campaign import Campaign, run_batch
from tests.profile import FULL

BATCHES = 10 if FULL else 1
FAULTS = 10 if FULL else 14
"""Number of faults in a batch."""

pytestmark = pytest.mark.timeout(1800)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_faults_leave_no_wrong_document(
    compared_url: str, compared_prefix: str, tmp_path: Path, batch: int, request: pytest.FixtureRequest
) -> None:
    settings = Settings(home=tmp_path, index_prefix=compared_prefix)
    run_batch(request.node.name, Campaign(settings, compared_url, seed=batch), FAULTS)
