"""Measure time and memory of opening a judgment log of many events.

    python benchmarks/judgment_log.py [--events 1000000] [--keep FOLDER]

Five annotators have judged the same topics, 100 documents each; every fiftieth event is a retraction, every fortieth a
note. Each measurement is a separate process: its time including the start of Python, and its peak memory. `open` does
what `searchapp judge` does with the log before it shows the first document. The first `open` reads the log and writes a
snapshot. The aims for a million events: opened in 3 s and 300 MB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from usage import make_parser, run_measured

from searchapp.judging.events import Action, Author, Event
from searchapp.judging.log import JudgmentLog
from searchapp.judging.view import snapshot_path

TASK = "nlps"
DOCUMENTS = 100
ANNOTATORS = ("ann", "ben", "cem", "dan", "eve")

OPEN = """
import sys
from pathlib import Path
from searchapp.judging.session import JudgingSession
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
topics = [f"t{number}" for number in range(int(sys.argv[2]) + 1)]
with JudgmentLog(Path(sys.argv[1])) as log:
    session = Session(log, "nlps", Author("ann"))
    documents = [f"document-{number}" for number in range(100)]
    judging = JudgingSession(session, topics, lambda topic: documents, lambda topic: 100, "run")
    judging.order(topics[judging.next_unjudged_topic() or 0])
    session.pace.seconds
"""


def events(count: int) -> Iterator[Event]:
    """Yield synthetic events at intervals of a second."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    authors = [Author(name) for name in ANNOTATORS]
    previous = ""
    for number in range(count):
        pair, annotator = divmod(number, len(authors))
        topic, document = divmod(pair, DOCUMENTS)
        at = TASK, f"t{topic}", f"document-{document}"
        if number % 50 == 49:
            event = authors[annotator].event(*at, Action.retract, refers=previous)
        elif number % 40 == 39:
            event = authors[annotator].event(*at, Action.note, text="see the definition before it")
        else:
            event = authors[annotator].event(
                *at,
                Action.grade,
                grade=(document + annotator // 4) % 2,
                run="bm25@0123456789ab",
                rank=document + 1,
            )
        previous = event.id
        yield replace(event, time=(begin + timedelta(seconds=number)).isoformat(timespec="microseconds"))


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the log (default 1000000)")
    parser.add_argument("--keep", type=Path, help="folder for the log, which is used again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{options.events}.sqlite"
        if not path.exists():
            with JudgmentLog(path) as log:
                generated = events(options.events)
                while batch := list(islice(generated, 10_000)):
                    log.append(batch)
        snapshot_path(path, TASK).unlink(missing_ok=True)
        topics = str(options.events // (DOCUMENTS * len(ANNOTATORS)))
        opening = [sys.executable, "-c", OPEN, str(path), topics]
        searchapp = str(Path(sys.executable).with_name("searchapp"))
        judgments = [searchapp, "judgments"]
        log_options = ["--log", str(path), "--quiet"]
        export = [*judgments, "export", TASK, "--out", str(folder / "out"), "--overwrite"]
        commands = {
            "open without snapshot": opening,
            "open": opening,
            "stats": [*judgments, "stats", TASK, *log_options],
            "agreement": [*judgments, "agreement", TASK, *log_options],
            "list (eve's grade 1)": [*judgments, "list", TASK, "--annotator", "eve", "--grade", "1", *log_options],
            "export --format qrels": [*export, "--format", "qrels", *log_options],
            "export": [*export, *log_options],
            "verify": [*judgments, "verify", *log_options],
        }  # fmt: skip
        log_size = path.stat().st_size
        for label, command in commands.items():
            seconds, cpu, mib = run_measured(command, stdout=subprocess.DEVNULL)
            memory = mib * 2**20 / 1e6
            print(f"{label:32} {seconds:8.2f} s {cpu:8.2f} s processor time {memory:8.0f} MB", flush=True)
        snapshot = snapshot_path(path, TASK)
        snapshot_size = snapshot.stat().st_size if snapshot.exists() else 0
        print(f"the log has {log_size / 1e6:.0f} MB, its snapshot {snapshot_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
