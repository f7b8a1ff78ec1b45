"""How long a judgment log of many events takes to open, and how much memory.

    python benchmarks/judgment_log.py [--events 1000000] [--keep FOLDER]

Five annotators have judged the same topics, 100 documents each; every fiftieth event takes one back, every fortieth is
a note. Each measurement is a process of its own: its seconds from start to end, Python's own included, and its peak
memory. `open` is what `searchapp judge` does with the log before it shows the first document; the first time the log is
read, and what it adds up to is remembered beside it. The aims, for a million events: opened in 3 s and 300 MB.
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

from usage import measured, parser_of

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
    """Synthetic events, one second after the other."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    authors = [Author(name) for name in ANNOTATORS]
    made: list[Event] = []
    for number in range(count):
        pair, which = divmod(number, len(authors))
        topic, document = divmod(pair, DOCUMENTS)
        at = TASK, f"t{topic}", f"document-{document}"
        if number % 50 == 49:
            event = authors[which].event(*at, Action.retract, refers=made[-1].id)
        elif number % 40 == 39:
            event = authors[which].event(*at, Action.note, text="see the definition before it")
        else:
            event = authors[which].event(
                *at,
                Action.grade,
                grade=(document + which // 4) % 2,
                run="bm25@0123456789ab",
                rank=document + 1,
            )
        made = [replace(event, time=(begin + timedelta(seconds=number)).isoformat(timespec="microseconds"))]
        yield made[0]


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the log (default 1000000)")
    parser.add_argument("--keep", type=Path, help="folder in which the log stays, and is used again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{given.events}.sqlite"
        if not path.exists():
            with JudgmentLog(path) as log:
                made = events(given.events)
                while some := list(islice(made, 10_000)):
                    log.append(some)
        snapshot_path(path, TASK).unlink(missing_ok=True)
        topics = str(given.events // (DOCUMENTS * len(ANNOTATORS)))
        opening = [sys.executable, "-c", OPEN, str(path), topics]
        searchapp = str(Path(sys.executable).with_name("searchapp"))
        judgments = [searchapp, "judgments"]
        of_log = ["--log", str(path), "--quiet"]
        export = [*judgments, "export", TASK, "--out", str(folder / "out"), "--overwrite"]
        commands = {
            "open, nothing remembered": opening,
            "open": opening,
            "stats": [*judgments, "stats", TASK, *of_log],
            "agreement": [*judgments, "agreement", TASK, *of_log],
            "list (eve's grade 1)": [*judgments, "list", TASK, "--annotator", "eve", "--grade", "1", *of_log],
            "export --format qrels": [*export, "--format", "qrels", *of_log],
            "export": [*export, *of_log],
            "verify": [*judgments, "verify", *of_log],
        }  # fmt: skip
        sizes = [path.stat().st_size / 1e6]
        for label, command in commands.items():
            seconds, at_work, mib = measured(command, stdout=subprocess.DEVNULL)
            memory = mib * 2**20 / 1e6
            print(f"{label:32} {seconds:8.2f} s {at_work:8.2f} s at work {memory:8.0f} MB", flush=True)
        sizes.append(
            snapshot_path(path, TASK).stat().st_size / 1e6 if snapshot_path(path, TASK).exists() else 0.0
        )
        print(f"the log has {sizes[0]:.0f} MB, what is remembered of it {sizes[1]:.0f} MB")


if __name__ == "__main__":
    main()
