"""The way out for judgments that the log can't take."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from searchapp.errors import SearchappError
from searchapp.judging.session import Session


def rescue(session: Session) -> str:
    """Write the events that wait to a new file in the folder for temporary files; a sentence that says which.

    Raises:
        SearchappError: not even that is possible.
    """
    lines = [json.dumps(event.to_json(), ensure_ascii=False) for event in session.waiting_events]
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="searchapp-judgments-", suffix=".jsonl", delete=False
        ) as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SearchappError(
            f"the judgments can't be written to {tempfile.gettempdir()}: {reason}"
        ) from error
    return f"{len(lines)} judgments are in {Path(file.name)}: `searchapp judgments import` takes them in"
