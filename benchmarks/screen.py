"""Measure the search screen: opening, the time from a key to its hits, and scrolling.

    python benchmarks/screen.py --data DIR [--keys 300] [--documents 1000000] [--beside SEARCHAPP]

DIR is the folder with the data of nlps. The program runs on a pseudo-terminal of 160 x 45 that this script reads. The
script types statements of the dev topics key by key. A key is answered when the changed parts of the number of hits,
the first document and its score have arrived in a complete frame; keys that change none of them are not counted. The
script does not emulate a terminal: it searches the output for texts, and uses the arrival time of the bytes. Then it
scrolls through the ranking of all documents by line and by page, to rank 10,000 and further. With `--documents`, it
types the same keys in a task with this number of synthetic documents (see growth.py). With `--beside`, another
installation gets the same keys in turn, each when the other program is idle, so that both have the same load of the
machine.

The script prints median and 99th percentile of the wall-clock time and of the processor time of all threads of the
program, which depends less on other processes, and the load of the machine for each processor.

The aims: opened in under 1 s; a key answered in under 40 ms (median) and 120 ms (99 %), under 80 ms (median) with a
million documents; a line or a page in under 30 ms at any depth.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from growth import Generator
from terminal import Terminal
from usage import make_parser

from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.resolution import USER_FILE
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.progress import SilentProgress
from searchapp.tasks import load

SEARCHAPP = str(Path(sys.executable).with_name("searchapp"))
TYPED_CHARACTERS = 40
"""Number of typed characters of a statement."""

DEFAULT_DEPTH = 10_000
PAUSE_SECONDS = 0.06
"""Pause between an answer and the next key; people do not type faster."""

IDLE_SECONDS = 0.002
"""Maximum processor time of an idle program in 30 ms."""

OPENINGS = 5
"""Number of measured openings."""

DOWN, PAGE_DOWN = "\x1b[B", "\x1b[6~"
ERASE_LINE = "\x15"


@dataclass(frozen=True)
class Titles:
    """The titles of a ranking and of its first document on the screen."""

    hits: str
    document: str


class ExpectedTitles:
    """Computes the titles that the screen will show, with the use case of the screen."""

    def __init__(self, task: str, home: Path) -> None:
        self._engine = open_engine(Settings(home=home))
        self._searcher = TaskSearcher.open(load(task), self._engine, SilentProgress(), home)

    def of(self, text: str) -> Titles:
        request = SearchRequest(text, size=20)
        total = self._searcher.counts(request).total
        first = self._searcher.search(request)
        if not first:
            return Titles("0 documents · ", "No document matches")
        hit = first[0].hit
        if not text:  # all documents, without ranks
            return Titles(f"{total:,} documents · ", f"Document {hit.document_id}")
        title = f"{total:,} document{'s' * (total != 1)} · "
        return Titles(title, f"Document {hit.document_id} · rank 1 · {hit.score:.4f}")

    def long_query(self, texts: Sequence[str], hits: int) -> str:
        """Return the fewest first statements that find more than `hits` documents, or all."""
        queries = (" ".join(texts[:count]) for count in range(1, len(texts)))
        return next(
            (q for q in queries if self._searcher.counts(SearchRequest(q)).total > hits), " ".join(texts)
        )

    def close(self) -> None:
        self._engine.close()


@dataclass
class Times:
    """Wall-clock time and processor time of each measurement in milliseconds."""

    clock: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, clock: float, cpu: float) -> None:
        self.clock.append(clock * 1000)
        self.cpu.append(cpu * 1000)

    def report(self, label: str) -> None:
        """Print a line."""
        load_ = os.getloadavg()[0] / (os.cpu_count() or 1)
        figures = (_median_and_p99(self.clock), _median_and_p99(self.cpu))
        print("{:48} clock {}   cpu {}".format(label, *figures), f"  ({len(self.clock)} times, load {load_:.1f})",
              flush=True)  # fmt: skip


def _median_and_p99(values: Sequence[float]) -> str:
    return f"{statistics.median(values):7.1f} {statistics.quantiles(values, n=100)[98]:7.1f} ms"


class Program:
    """A searchapp on a pseudo-terminal, and its measured times."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self._path = path
        self._terminal: Terminal | None = None
        self._times = Times()

    @property
    def terminal(self) -> Terminal:
        assert self._terminal is not None
        return self._terminal

    def open(self, task: str, environment: Mapping[str, str]) -> None:
        """Start the program, and measure the time to the first hits."""
        begin = time.perf_counter()
        self._terminal = Terminal([self._path, "search", task], dict(environment))
        self._terminal.wait_for("Document [^ ]+")
        self._times.add(self._terminal.arrived - begin, self._terminal.cpu_seconds)

    def close(self) -> None:
        self.terminal.close()

    def press(self, key: str, *patterns: str) -> str:
        """Press a key, and measure the time until the patterns have arrived; return the output."""
        terminal = self.terminal
        cpu, begin = terminal.cpu_seconds, time.perf_counter()
        terminal.press(key)
        output = terminal.wait_for(*patterns)
        self._times.add(terminal.arrived - begin, terminal.cpu_seconds - cpu)
        return output

    def erase(self) -> None:
        """Search for an empty text, which has all documents as hits."""
        self.terminal.press(ERASE_LINE)
        self.terminal.drain(0.5)

    def wait_until_idle(self) -> None:
        """Wait until the program does not read ahead any more, which would slow down other programs."""
        for _ in range(50):
            cpu = self.terminal.cpu_seconds
            self.terminal.drain(0.03)
            if self.terminal.cpu_seconds - cpu < IDLE_SECONDS:
                return

    @property
    def measured(self) -> int:
        return len(self._times.clock)

    def report(self, label: str) -> None:
        """Print and drop the times since the last report."""
        self._times.report(f"{label}{f' ({self.name})' if self.name else ''}")
        self.reset()

    def reset(self) -> None:
        self._times = Times()


def type_statements(
    programs: Sequence[Program], expected_titles: ExpectedTitles, texts: Sequence[str], keys: int
) -> None:
    """Measure the time from each key to its hits."""
    for text in texts:
        for program in programs:
            program.erase()
        before = expected_titles.of("")
        prefix = ""
        for character in text[:TYPED_CHARACTERS]:
            prefix += character
            expected = expected_titles.of(prefix)
            changed = [
                re.escape(title)
                for title, old in ((expected.hits, before.hits), (expected.document, before.document))
                if title != old
            ]
            before = expected
            for program in programs:
                if changed:
                    program.press(character, *changed)
                else:
                    program.terminal.press(character)
                program.terminal.drain(PAUSE_SECONDS)
                if len(programs) > 1:
                    program.wait_until_idle()
            if programs[0].measured == keys:
                return


def scroll(programs: Sequence[Program], key: str, count: int, deepest: int) -> None:
    """Measure the time from a key to the next document, `count` times or to a rank."""
    for _ in range(count):
        for program in programs:
            output = program.press(key, r"Document [^ ]+ · rank [0-9,]+ ")
            program.terminal.drain(0.03)
            if len(programs) > 1:
                program.wait_until_idle()
        if int(re.findall(r"· rank ([0-9,]+) ", output)[-1].replace(",", "")) >= deepest:
            return


def measure(
    name: str,
    task: str,
    home: Path,
    texts: Sequence[str],
    keys: int,
    deepest: int,
    programs: Sequence[Program],
) -> None:
    """Measure with a task; programs do each step in turn."""
    (home / USER_FILE).write_text("[search]\nrestore = false\n", encoding="utf-8")
    environment = {
        **os.environ,
        "SEARCHAPP_HOME": str(home),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }

    def report(label: str) -> None:
        for program in programs:
            program.report(f"{name}: {label}")

    for _ in range(OPENINGS):
        for program in programs:
            program.open(task, environment)
            program.close()
    report("opened")
    for program in programs:
        program.open(task, environment)
        program.terminal.drain(0.5)
        program.reset()
    with closing(ExpectedTitles(task, home)) as expected_titles:
        type_statements(programs, expected_titles, texts, keys)
        words = expected_titles.long_query(texts, deepest + keys)
    report("key to its hits")
    for program in programs:
        program.erase()
        program.terminal.press(words)
        program.terminal.drain(1.0)
        program.wait_until_idle()
    scroll(programs, DOWN, keys, deepest)
    report("a line down")
    scroll(programs, PAGE_DOWN, deepest, deepest)
    report(f"a page down, to {deepest:,}")
    scroll(programs, DOWN, keys, 2 * deepest)
    report(f"a line down from {deepest:,} on")
    for program in programs:
        program.close()


def synthetic(data: Path, folder: Path, count: int) -> Path:
    """Write a task with synthetic documents unless it exists; return its file."""
    task = folder / "synthetic.toml"
    if not task.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
            for document in Generator(data).documents(count):
                file.write(json.dumps(document.source()) + "\n")
        task.write_text('name = "synthetic"\n[documents]\nfile = "documents.jsonl"\n', encoding="utf-8")
    return task


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data of nlps")
    parser.add_argument("--keys", type=int, default=300, help="keys to measure (default 300)")
    parser.add_argument(
        "--documents", type=int, default=0, help="also measure with this number of synthetic documents"
    )
    parser.add_argument("--synthetic", type=Path, help="folder of that task, which is used again")
    parser.add_argument("--beside", metavar="SEARCHAPP", help="the program of another installation")
    parser.add_argument("--depth", type=int, default=DEFAULT_DEPTH, help="how far to scroll (default 10000)")
    options = parser.parse_args()
    topics = json.loads((options.data / "dev_set.json").read_text(encoding="utf-8"))
    texts = [re.sub(r"[^A-Za-z ]", "", topic["text"]).strip() for topic in topics.values()]
    programs = [Program("", SEARCHAPP)]
    if options.beside:
        programs = [Program("beside", options.beside), Program("this one", SEARCHAPP)]
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        subprocess.run([*indexing(home), "nlps", "--data", str(options.data)], check=True)
        measure("nlps", "nlps", home, texts, options.keys, options.depth, programs)
        if options.documents:
            folder = options.synthetic or home
            task = synthetic(options.data, folder, options.documents)
            home = folder / "home"
            subprocess.run(
                [*indexing(home), str(task)], check=True
            )  # does nothing if the index is up to date
            name = f"{options.documents:,} documents"
            measure(name, str(task), home, texts, options.keys, options.depth, programs)


def indexing(home: Path) -> list[str]:
    """Return the beginning of the command for indexing."""
    return [SEARCHAPP, "--home", str(home), "--quiet", "index"]


if __name__ == "__main__":
    main()
