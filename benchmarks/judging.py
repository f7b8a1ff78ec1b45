"""Measure the judging screen: opening, and the time from a key to the saved judgment and the next document.

    python benchmarks/judging.py --data DIR [--keys 300] [--depth 10000]

DIR is the folder with the data of nlps. The program runs on a pseudo-terminal of 160 x 45 that this script reads. A key
is answered when both the line about the saved judgment and the title of the next document have arrived. The aims:
opened in under 1 s; median under 30 ms and 99th percentile under 100 ms.
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
from usage import make_parser

SEARCHAPP = str(Path(sys.executable).with_name("searchapp"))
TOPICS = 5


def prepare(data: Path, folder: Path, depth: int, environment: dict[str, str]) -> Path:
    """Index the collection, and rank a few of its topics."""
    small = folder / "data"
    small.mkdir()
    for name in ("knowledge_base.json", "train_set.json"):
        (small / name).symlink_to((data / name).resolve())
    topics = json.loads((data / "dev_set.json").read_text(encoding="utf-8"))
    first_topics = dict(list(topics.items())[:TOPICS])
    (small / "dev_set.json").write_text(json.dumps(first_topics), encoding="utf-8")
    run = folder / "run"
    for command in (["index"], ["rank", "--split", "dev", "--depth", str(depth), "--out", str(run)]):
        arguments = [SEARCHAPP, command[0], "nlps", "--data", str(small), *command[1:], "--quiet"]
        subprocess.run(arguments, check=True, env=environment)
    return run


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data of nlps")
    parser.add_argument("--keys", type=int, default=300, help="keys to press (default 300)")
    parser.add_argument("--depth", type=int, default=10_000, help="documents of the ranking (default 10000)")
    parser.add_argument(
        "--run", type=Path, help="only measure opening this run, such as one of all dev topics"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "SEARCHAPP_HOME": str(folder / "home"), "TERM": "xterm-256color"}
        environment["COLORTERM"] = "truecolor"
        run = prepare(options.data, folder, options.depth, environment)
        lines = (run / "run.trec").read_text().split("\n")
        documents = [line.split()[2] for line in lines[: options.depth] if line]
        command = [SEARCHAPP, "judge", "nlps", "--run", str(options.run or run), "--annotator", "bench"]
        command += ["--depth", "all"]
        opened = []
        for _ in range(5):
            begin = time.perf_counter()
            terminal = Terminal(command, environment)
            terminal.wait_for("Document [^ ]+ · rank 1")
            opened.append(time.perf_counter() - begin)
            terminal.close()
        print(f"opened       {statistics.median(opened) * 1000:8.1f} ms (median of {len(opened)})")
        if options.run:
            return
        terminal = Terminal(command, environment)
        terminal.wait_for("Document [^ ]+ · rank 1")
        time.sleep(1.0)
        times = []
        for number in range(options.keys):
            grade = str(number % 2)
            begin = time.perf_counter()
            terminal.press(grade)
            terminal.wait_for(f"saved  {grade} ", f"Document {documents[number + 1]} · rank {number + 2:,} ")
            times.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.05)  # people are not faster, and the program reads ahead meanwhile
        terminal.close()
        cuts = statistics.quantiles(times, n=100)
        print(f"key, median  {statistics.median(times):8.1f} ms")
        print(
            f"key, p99     {cuts[98]:8.1f} ms   ({options.keys} keys, ranking of {len(documents):,} documents)"
        )


if __name__ == "__main__":
    main()
