"""How fast the search screen is: opening it, from a key to the hits that it finds, and scrolling.

    python benchmarks/screen.py --data DIR [--keys 300] [--documents 1000000]

DIR is the folder with the data of nlps. The program runs as people run it, on a terminal of 160 x 45 that this script
reads from the other end. Statements of the dev topics are typed, a key at a time: a key counts as answered when what
has changed of the number of hits, the first document and its score has arrived; keys that change none of these are not
counted. Then the ranking of all documents is gone through page by page, to rank 10,000. With `--documents` the same
keys are typed in a task with so many synthetic documents (see growth.py), whose words are those of nlps.

Median and 99th percentile are printed, by the clock, and of what the program has worked meanwhile, all threads
together, which other work on the machine lengthens little; and how much work the machine had: the processes that were
ready to run, for each processor.

The aims: opened in under 1 s; a key answered in under 40 ms (median) and 120 ms (99 %), under 80 ms (median) with a
million documents; a page in under 30 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from growth import Generator
from terminal import Terminal

from searchapp.app.search import Searcher, SearchRequest
from searchapp.engines import open_engine
from searchapp.progress import Silent
from searchapp.settings import Settings
from searchapp.tasks import load

SEARCHAPP = str(Path(sys.executable).with_name("searchapp"))
LONGEST = 40
"""Characters of a statement that are typed."""

DEEPEST = 10_000
BETWEEN_SECONDS = 0.06
"""Between an answer and the next key: nobody types faster."""

DOWN, PAGE_DOWN = "\x1b[B", "\x1b[6~"
ERASE_LINE = "\x15"


@dataclass(frozen=True)
class Seen:
    """What the screen says of a ranking: its title, and that of the first document."""

    hits: str
    document: str


class Finder:
    """Finds what the screen will show, with the use case that it asks too."""

    def __init__(self, task: str, home: Path) -> None:
        self._engine = open_engine(Settings(home=home))
        self._searcher = Searcher.open(load(task), self._engine, Silent(), home)

    def seen(self, text: str) -> Seen:
        request = SearchRequest(text, size=20)
        total = self._searcher.counts(request).total
        first = self._searcher.search(request)
        if not first:
            return Seen("0 documents · ", "No document matches")
        hit = first[0].hit
        many = f"{total:,} document{'s' * (total != 1)} · "
        return Seen(many, f"Document {hit.document_id} · rank 1 · {hit.score:.4f}")

    def close(self) -> None:
        self._engine.close()


@dataclass
class Times:
    """Milliseconds by the clock, and those that the program has worked meanwhile, of each time that was measured."""

    took: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)

    def add(self, took: float, worked: float) -> None:
        self.took.append(took * 1000)
        self.worked.append(worked * 1000)

    def report(self, what: str) -> None:
        """Print a line."""
        load_ = os.getloadavg()[0] / (os.cpu_count() or 1)
        figures = (_median_and_p99(self.took), _median_and_p99(self.worked))
        print("{:32} clock {}   work {}".format(what, *figures), f"  ({len(self.took)} times, load {load_:.1f})",
              flush=True)  # fmt: skip


def _median_and_p99(values: Sequence[float]) -> str:
    return f"{statistics.median(values):7.1f} {statistics.quantiles(values, n=100)[98]:7.1f} ms"


def typed(terminal: Terminal, finder: Finder, texts: Sequence[str], keys: int) -> Times:
    """From each key to what it finds."""
    times = Times()
    for text in texts:
        terminal.press(ERASE_LINE)
        terminal.drain(0.3)
        before = finder.seen("")
        prefix = ""
        for character in text[:LONGEST]:
            prefix += character
            expected = finder.seen(prefix)
            changed = [
                now
                for now, then in ((expected.hits, before.hits), (expected.document, before.document))
                if now != then
            ]
            before = expected
            cpu, begin = terminal.cpu_seconds, time.perf_counter()
            terminal.press(character)
            if changed:
                terminal.wait_for(*map(re.escape, changed))
                times.add(time.perf_counter() - begin, terminal.cpu_seconds - cpu)
            terminal.drain(BETWEEN_SECONDS)
            if len(times.took) == keys:
                return times
    return times


def scrolled(terminal: Terminal, key: str, most: int, deepest: int) -> Times:
    """From each key that moves the cursor to the document that it is on then, in the ranking of all documents."""
    terminal.press(ERASE_LINE)
    terminal.drain(0.5)
    times, rank = Times(), 1
    while rank < deepest and len(times.took) < most:
        cpu, begin = terminal.cpu_seconds, time.perf_counter()
        terminal.press(key)
        said = terminal.wait_for(r"Document [^ ]+ · rank [0-9,]+ ")
        times.add(time.perf_counter() - begin, terminal.cpu_seconds - cpu)
        rank = int(re.findall(r"· rank ([0-9,]+) ", said)[-1].replace(",", ""))
        terminal.drain(0.03)
    return times


def opened(command: list[str], environment: dict[str, str]) -> Times:
    """From the command to the first hits, five times."""
    times = Times()
    for _time in range(5):
        begin = time.perf_counter()
        terminal = Terminal(command, environment)
        terminal.wait_for("Document [^ ]+ · rank 1 ")
        times.add(time.perf_counter() - begin, terminal.cpu_seconds)
        terminal.close()
    return times


def measure(name: str, task: str, home: Path, texts: Sequence[str], keys: int, deepest: int) -> None:
    """Measure with one task."""
    environment = {
        **os.environ,
        "SEARCHAPP_HOME": str(home),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }
    command = [SEARCHAPP, "search", task]
    opened(command, environment).report(f"{name}: opened")
    terminal = Terminal(command, environment)
    terminal.wait_for("Document [^ ]+ · rank 1 ")
    terminal.drain(0.5)
    with closing(Finder(task, home)) as finder:
        typed(terminal, finder, texts, keys).report(f"{name}: key to its hits")
    scrolled(terminal, DOWN, keys, deepest).report(f"{name}: a line down")
    scrolled(terminal, PAGE_DOWN, deepest, deepest).report(f"{name}: a page down, to {deepest:,}")
    terminal.close()


def synthetic(data: Path, folder: Path, count: int) -> Path:
    """A task with synthetic documents."""
    task = folder / "synthetic.toml"
    if not task.exists():
        with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
            for document in Generator(data).documents(count):
                file.write(json.dumps(document.source()) + "\n")
        task.write_text('name = "synthetic"\n[documents]\nfile = "documents.jsonl"\n', encoding="utf-8")
    return task


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the data of nlps")
    parser.add_argument("--keys", type=int, default=300, help="keys to measure (default 300)")
    parser.add_argument(
        "--documents", type=int, default=0, help="synthetic documents to measure with as well"
    )
    parser.add_argument("--synthetic", type=Path, help="folder to keep that task in, made before or now")
    parser.add_argument("--depth", type=int, default=DEEPEST, help="how far to scroll (default 10000)")
    given = parser.parse_args()
    topics = json.loads((given.data / "dev_set.json").read_text(encoding="utf-8"))
    texts = [re.sub(r"[^A-Za-z ]", "", topic["text"]).strip() for topic in topics.values()]
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        subprocess.run([*indexing(home), "nlps", "--data", str(given.data)], check=True)
        measure("nlps", "nlps", home, texts, given.keys, given.depth)
        if given.documents:
            folder = given.synthetic or home
            task = synthetic(given.data, folder, given.documents)
            home = folder / "home"
            subprocess.run([*indexing(home), str(task)], check=True)  # does nothing if that was done
            measure(f"{given.documents:,} documents", str(task), home, texts, given.keys, given.depth)


def indexing(home: Path) -> list[str]:
    """The beginning of the command that indexes."""
    return [SEARCHAPP, "--home", str(home), "--quiet", "index"]


if __name__ == "__main__":
    main()
