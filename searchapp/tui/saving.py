"""The way out for judgments that the log can't take."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from searchapp.errors import SearchappError
from searchapp.files import reason
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
        raise SearchappError(
            f"the judgments can't be written to {tempfile.gettempdir()}: {reason(error)}"
        ) from error
    return f"{len(lines)} judgments are in {Path(file.name)}: `searchapp judgments import` imports them"


def leave_by_prompts(session: Session, say: Callable[[str], None], ask: Callable[[str], str]) -> bool:
    """Whether one may leave: everything is saved, or was written to a file, after asking what to do."""
    if not session.waiting or session.save_waiting().is_saved:
        return True
    say(f"{session.waiting} judgments are not saved: {session.not_saved}")
    try:
        answer = ask("Try again (t), write them to a file and leave (w), stay (s)? ").strip()
    except EOFError:
        answer = "w"
    if answer == "w":
        say(rescue(session))
        return True
    return answer == "t" and leave_by_prompts(session, say, ask)
