"""The profile of the tests: short for `make test`, full for `make test-full`.

The short profile runs the same tests on a sample of texts, topics, characters and seeds where all of them take minutes.
"""

from __future__ import annotations

import os

PROFILE = os.environ.get("SEARCHAPP_TEST_PROFILE", "short")

FULL = PROFILE == "full"

UPDATED = bool(os.environ.get("SEARCHAPP_UPDATE_SNAPSHOTS"))
"""Whether tests write the expected pictures and texts again."""

SEED = int(os.environ.get("SEARCHAPP_TEST_SEED", "1"))
"""The seed of random cases."""
