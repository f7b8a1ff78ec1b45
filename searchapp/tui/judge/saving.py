"""The way out for judgments that the log can't take."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from searchapp.judging.session import Session


def rescue(session: Session) -> str:
    """Write the events that wait to a new file in the folder for temporary files; a sentence that says which.

    Raises:
        OSError: not even that is possible.
    """
    lines = [json.dumps(event.to_json(), ensure_ascii=False) for event in session.waiting_events]
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="searchapp-judgments-", suffix=".jsonl", delete=False
    ) as file:
        file.write("\n".join(lines) + "\n")
    return f"{len(lines)} judgments are in {Path(file.name)}: `searchapp judgments import` takes them in"
