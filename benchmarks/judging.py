"""How fast the judging screen answers: opening it, and from a key to the judgment saved and the next document drawn.

    python benchmarks/judging.py --data DIR [--keys 300] [--depth 10000]

DIR is the folder with the data of nlps. The program runs as people run it, on a terminal of 160 x 45 that this script
reads from the other end: a key counts as answered when both the line that says that the judgment is saved and the title
of the next document have arrived. The aims: opened in under 1 s; median under 30 ms and 99 % under 100 ms.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from terminal import Terminal
from usage import parser_of

SEARCHAPP = str(Path(sys.executable).with_name("searchapp"))
TOPICS = 5


def prepare(data: Path, folder: Path, depth: int, environment: dict[str, str]) -> Path:
    """Index the collection, and rank it for a few of its topics."""
    small = folder / "data"
    small.mkdir()
    for name in ("knowledge_base.json", "train_set.json"):
        (small / name).symlink_to((data / name).resolve())
    topics = json.loads((data / "dev_set.json").read_text(encoding="utf-8"))
    few = dict(list(topics.items())[:TOPICS])
    (small / "dev_set.json").write_text(json.dumps(few), encoding="utf-8")
    run = folder / "run"
    for command in (["index"], ["rank", "--split", "dev", "--depth", str(depth), "--out", str(run)]):
        arguments = [SEARCHAPP, command[0], "nlps", "--data", str(small), *command[1:], "--quiet"]
        subprocess.run(arguments, check=True, env=environment)
    return run


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data of nlps")
    parser.add_argument("--keys", type=int, default=300, help="keys to press (default 300)")
    parser.add_argument("--depth", type=int, default=10_000, help="documents of the ranking (default 10000)")
    parser.add_argument(
        "--run", type=Path, help="open this run (all of dev, for instance) and measure only that"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "SEARCHAPP_HOME": str(folder / "home"), "TERM": "xterm-256color"}
        environment["COLORTERM"] = "truecolor"
        run = prepare(given.data, folder, given.depth, environment)
        lines = (run / "run.trec").read_text().split("\n")
        documents = [line.split()[2] for line in lines[: given.depth] if line]
        command = [SEARCHAPP, "judge", "nlps", "--run", str(given.run or run), "--annotator", "bench"]
        command += ["--depth", "all"]
        opened = []
        for _ in range(5):
            begin = time.perf_counter()
            terminal = Terminal(command, environment)
            terminal.wait_for("Document [^ ]+ · rank 1")
            opened.append(time.perf_counter() - begin)
            terminal.close()
        print(f"opened       {statistics.median(opened) * 1000:8.1f} ms (median of {len(opened)})")
        if given.run:
            return
        terminal = Terminal(command, environment)
        terminal.wait_for("Document [^ ]+ · rank 1")
        time.sleep(1.0)
        took = []
        for place in range(given.keys):
            grade = str(place % 2)
            begin = time.perf_counter()
            terminal.press(grade)
            terminal.wait_for(
                f"saved  {grade} ",
                f"Document {documents[place + 1]} · rank {place + 2:,} ",
            )
            took.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.05)  # nobody is faster, and what is fetched ahead is part of the design
        terminal.close()
        cuts = statistics.quantiles(took, n=100)
        print(f"key, median  {statistics.median(took):8.1f} ms")
        print(
            f"key, p99     {cuts[98]:8.1f} ms   ({given.keys} keys, ranking of {len(documents):,} documents)"
        )


if __name__ == "__main__":
    main()
