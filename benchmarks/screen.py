"""How fast the search screen is: opening it, from a key to the hits that it finds, and scrolling.

    python benchmarks/screen.py --data DIR [--keys 300] [--documents 1000000] [--beside SEARCHAPP]

DIR is the folder with the data of nlps. The program runs as people run it, on a terminal of 160 x 45 that this script
reads from the other end. Statements of the dev topics are typed, a key at a time: a key counts as answered when what
has changed of the number of hits, the first document and its score has arrived, and with it the whole frame that it is
in; keys that change none of these are not counted. Nothing is emulated: the script looks for the words in what is
written, and a time ends when the bytes came, before it looks. Then the ranking of all documents is gone through line
by line and page by page, to rank 10,000 and on from there. With `--documents` the same keys are typed in a task with
so many synthetic documents (see growth.py), whose words are those of nlps. With `--beside` another installation gets
each key in turn with this one, when the one before rests, so that both meet the same load of the machine.

Median and 99th percentile are printed, by the clock, and of what the program has worked meanwhile, all threads
together, which other work on the machine lengthens little; and how much work the machine had: the processes that were
ready to run, for each processor.

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
from usage import parser_of

from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.resolution import USER_FILE
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.progress import SilentProgress
from searchapp.tasks import load

SEARCHAPP = str(Path(sys.executable).with_name("searchapp"))
LONGEST = 40
"""Characters of a statement that are typed."""

DEEPEST = 10_000
BETWEEN_SECONDS = 0.06
"""Between an answer and the next key: nobody types faster."""

RESTING_SECONDS = 0.002
"""What a program works at most in 30 ms while it rests."""

OPENED = 5
"""How often the screen is opened."""

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
        self._searcher = TaskSearcher.open(load(task), self._engine, SilentProgress(), home)

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
        print("{:48} clock {}   work {}".format(what, *figures), f"  ({len(self.took)} times, load {load_:.1f})",
              flush=True)  # fmt: skip


def _median_and_p99(values: Sequence[float]) -> str:
    return f"{statistics.median(values):7.1f} {statistics.quantiles(values, n=100)[98]:7.1f} ms"


class Program:
    """A searchapp on a terminal, and the times that it took."""

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
        """Start it, and measure the time to the first hits."""
        begin = time.perf_counter()
        self._terminal = Terminal([self._path, "search", task], dict(environment))
        self._terminal.wait_for("Document [^ ]+ · rank 1 ")
        self._times.add(self._terminal.arrived - begin, self._terminal.cpu_seconds)

    def close(self) -> None:
        self.terminal.close()

    def press(self, key: str, *patterns: str) -> str:
        """Press a key, and measure the time until what it changes has arrived, which is returned."""
        terminal = self.terminal
        worked, begin = terminal.cpu_seconds, time.perf_counter()
        terminal.press(key)
        said = terminal.wait_for(*patterns)
        self._times.add(terminal.arrived - begin, terminal.cpu_seconds - worked)
        return said

    def erase(self) -> None:
        """Search for nothing, which finds all documents."""
        self.terminal.press(ERASE_LINE)
        self.terminal.drain(0.5)

    def rest(self) -> None:
        """Wait until it reads nothing ahead any more: another program would be slower meanwhile, and it faster."""
        for _time in range(50):
            worked = self.terminal.cpu_seconds
            self.terminal.drain(0.03)
            if self.terminal.cpu_seconds - worked < RESTING_SECONDS:
                return

    @property
    def measured(self) -> int:
        return len(self._times.took)

    def report(self, what: str) -> None:
        """Print the times since the report before, and forget them."""
        self._times.report(f"{what}{f' ({self.name})' if self.name else ''}")
        self.forget()

    def forget(self) -> None:
        self._times = Times()


def typed(programs: Sequence[Program], finder: Finder, texts: Sequence[str], keys: int) -> None:
    """From each key to what it finds."""
    for text in texts:
        for one in programs:
            one.erase()
        before = finder.seen("")
        prefix = ""
        for character in text[:LONGEST]:
            prefix += character
            expected = finder.seen(prefix)
            changed = [
                re.escape(now)
                for now, then in ((expected.hits, before.hits), (expected.document, before.document))
                if now != then
            ]
            before = expected
            for one in programs:
                if changed:
                    one.press(character, *changed)
                else:
                    one.terminal.press(character)
                one.terminal.drain(BETWEEN_SECONDS)
                if len(programs) > 1:
                    one.rest()
            if programs[0].measured == keys:
                return


def stepped(programs: Sequence[Program], key: str, most: int, deepest: int) -> None:
    """From each key that moves the cursor to the document that it is on then, `most` times or to a rank."""
    for _step in range(most):
        for one in programs:
            said = one.press(key, r"Document [^ ]+ · rank [0-9,]+ ")
            one.terminal.drain(0.03)
            if len(programs) > 1:
                one.rest()
        if int(re.findall(r"· rank ([0-9,]+) ", said)[-1].replace(",", "")) >= deepest:
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
    """Measure with one task, each step with one program after the other."""
    (home / USER_FILE).write_text("[search]\nrestore = false\n", encoding="utf-8")
    environment = {
        **os.environ,
        "SEARCHAPP_HOME": str(home),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }

    def report(what: str) -> None:
        for one in programs:
            one.report(f"{name}: {what}")

    for _time in range(OPENED):
        for one in programs:
            one.open(task, environment)
            one.close()
    report("opened")
    for one in programs:
        one.open(task, environment)
        one.terminal.drain(0.5)
        one.forget()
    with closing(Finder(task, home)) as finder:
        typed(programs, finder, texts, keys)
    report("key to its hits")
    for one in programs:
        one.erase()
    stepped(programs, DOWN, keys, deepest)
    report("a line down")
    stepped(programs, PAGE_DOWN, deepest, deepest)
    report(f"a page down, to {deepest:,}")
    stepped(programs, DOWN, keys, 2 * deepest)
    report(f"a line down from {deepest:,} on")
    for one in programs:
        one.close()


def synthetic(data: Path, folder: Path, count: int) -> Path:
    """A task with synthetic documents."""
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
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data of nlps")
    parser.add_argument("--keys", type=int, default=300, help="keys to measure (default 300)")
    parser.add_argument(
        "--documents", type=int, default=0, help="synthetic documents to measure with as well"
    )
    parser.add_argument("--synthetic", type=Path, help="folder to keep that task in, made before or now")
    parser.add_argument("--beside", metavar="SEARCHAPP", help="the program of another installation")
    parser.add_argument("--depth", type=int, default=DEEPEST, help="how far to scroll (default 10000)")
    given = parser.parse_args()
    topics = json.loads((given.data / "dev_set.json").read_text(encoding="utf-8"))
    texts = [re.sub(r"[^A-Za-z ]", "", topic["text"]).strip() for topic in topics.values()]
    programs = [Program("", SEARCHAPP)]
    if given.beside:
        programs = [Program("beside", given.beside), Program("this one", SEARCHAPP)]
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        subprocess.run([*indexing(home), "nlps", "--data", str(given.data)], check=True)
        measure("nlps", "nlps", home, texts, given.keys, given.depth, programs)
        if given.documents:
            folder = given.synthetic or home
            task = synthetic(given.data, folder, given.documents)
            home = folder / "home"
            subprocess.run([*indexing(home), str(task)], check=True)  # does nothing if that was done
            name = f"{given.documents:,} documents"
            measure(name, str(task), home, texts, given.keys, given.depth, programs)


def indexing(home: Path) -> list[str]:
    """The beginning of the command that indexes."""
    return [SEARCHAPP, "--home", str(home), "--quiet", "index"]


if __name__ == "__main__":
    main()
