"""How long the tests search for counterexamples: the short profile is that of `make test`, the full one of `test-full`.

The short one takes samples of what takes minutes and has been found right: the same tests, on a part of the real texts,
topics, characters, seeds. The full one takes all of them.
"""

from __future__ import annotations

import os

PROFILE = os.environ.get("SEARCHAPP_TEST_PROFILE", "short")

FULL = PROFILE == "full"

UPDATED = bool(os.environ.get("SEARCHAPP_UPDATE_SNAPSHOTS"))
"""Whether pictures and texts that are compared with are written again."""

SEED = int(os.environ.get("SEARCHAPP_TEST_SEED", "1"))
"""Names the cases of `tests.search`."""
