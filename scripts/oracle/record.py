"""Record the behaviour of searchapp with the samples: output, exit codes, files and screens.

    python -m scripts.oracle.record FOLDER [--tree CHECKOUT] [--only SCENARIO ...]

Run once for each of two checkouts, then compare both folders with `python -m scripts.oracle.compare`. Each checkout
needs its `.venv`. The script does not import searchapp: it runs commands as processes, and screens on
pseudo-terminals.

`FOLDER/machine` has the output for programs: exit codes, JSON, CSV, the files of runs, exports and reports.
`FOLDER/human` has the output for people: messages, tables, help, screens. Times, versions and folders are normalised.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from tests.emulator import UNREAD, Screen, Stream

SIZES = (80, 24), (160, 45)
QUIET_SECONDS = 0.8
TIMEOUT_SECONDS = 60.0
COMMAND_SECONDS = 900.0

NORMALISED = [
    (re.compile(r'("(?:seconds|took|elapsed|duration|pace)": )(?:null|[-0-9.e]+)'), r'\1"TIME"'),
    (re.compile(r'("(?:cpu|clock|cpu_saved)": )(?:null|[-0-9.e]+)'), r'\1"TIME"'),
    (re.compile(r"^(seconds +)[0-9.]+$", re.MULTILINE), r"\1TIME"),
    (re.compile(r'("(?:created|at|time|when|written|modified|last)": )"\d{4}-\d\d-\d\d[^"]*"'), r'\1"TIME"'),
    (re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?"), "TIME"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b\d+(\.\d+)? (seconds?|s|ms|minutes?|min|h)\b"), "TIME"),
    (re.compile(r" +TIME each"), " TIME each"),
    (re.compile(r"-\d\d \d\d:\d\d,"), "TIME,"),
    (re.compile(r'"pid": \d+'), '"pid": 0'),
]
"""Patterns of text that varies between recordings of the same program, and their replacements."""

UNRECORDED = {".lock", "figures.jsonl"}
"""Files of a bench folder: a process number, and a cache whose key covers the time that a run took."""

Step = tuple[str, str]
"""Typed keys, and the name of the picture that is taken when the screen is at rest; "" takes no picture."""


class Recorder:
    """Runs the commands of a scenario in a separate home directory and working directory."""

    def __init__(self, tree: Path, folder: Path, scenario: str) -> None:
        self.tree = tree
        self.scenario = scenario
        self.folder = folder
        # Screens cut long paths, so that all recordings need a path of the same length.
        self.work = Path(tempfile.gettempdir()) / "searchapp-oracle" / scenario
        self.work.mkdir(parents=True)
        self.samples = tree / "searchapp" / "samples"
        self.environment = {
            "PATH": os.environ["PATH"],
            "SEARCHAPP_HOME": str(self.work / "home"),
            "SEARCHAPP_ANNOTATOR": "ada",
            "COLUMNS": "120",
            "LINES": "40",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }

    def run(self, name: str, *arguments: object, typed: str = "") -> str:
        """Run a command and record it; return its output.

        Output that a program reads, because of an option such as `--json`, belongs to the machine layer.
        """
        words = [str(word) for word in arguments]
        done = subprocess.run(
            [str(self.tree / ".venv/bin/searchapp"), *words],
            cwd=self.work,
            env=self.environment | {"NO_COLOR": "1"},
            input=typed,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        for_programs = {"--json", "--csv", "--latex", "--markdown"} & set(words)
        self.write("machine", f"{name}.exit", f"{done.returncode}\n")
        self.write("machine" if for_programs else "human", f"{name}.out", done.stdout)
        self.write("human", f"{name}.err", done.stderr)
        return done.stdout

    def keep(self, name: str, path: Path) -> None:
        """Record a file, or all files of a folder, that a command has written."""
        for file in sorted(path.rglob("*")) if path.is_dir() else [path] * path.exists():
            if file.is_file() and file.name not in UNRECORDED:
                record = name if file == path else f"{name}/{file.relative_to(path)}"
                self.write("machine", record, file.read_bytes().decode("utf-8", "backslashreplace"))

    def screen(self, name: str, arguments: Sequence[object], steps: Iterable[Step]) -> None:
        """Operate a screen in each size with a copy of the home directory, and record its pictures."""
        for columns, lines in SIZES:
            home = self.work / "home"
            saved = self.work / "home.saved"
            shutil.copytree(home, saved)
            try:
                for label, picture in self._pictures(arguments, list(steps), columns, lines):
                    self.write("human", f"screens/{name}-{columns}x{lines}/{label}", picture)
            finally:
                shutil.rmtree(home)
                saved.rename(home)

    def write(self, layer: str, name: str, text: str) -> None:
        path = self.folder / layer / self.scenario / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace(str(self.work), "WORK").replace(str(self.tree), "TREE")
        for digest, run in self.run_digests().items():
            text = text.replace(digest, f"DIGEST OF {run}").replace(digest[:12], f"DIGEST OF {run}")
        for pattern, replacement in NORMALISED:
            text = pattern.sub(replacement, text)
        path.write_text(text, encoding="utf-8")

    def run_digests(self) -> dict[str, str]:
        """Return the folder of each run by the digest of its manifest, which covers the time of ranking."""
        manifests = sorted(self.work.rglob("run.json"))
        digests = {json.loads(manifest.read_bytes())["digest"]: manifest.parent for manifest in manifests}
        return {digest: str(folder.relative_to(self.work)) for digest, folder in digests.items()}

    def _pictures(
        self, arguments: Sequence[object], steps: list[Step], columns: int, lines: int
    ) -> list[tuple[str, str]]:
        picture = Screen(columns, lines)
        stream = Stream(picture)
        pid, end = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            program = str(self.tree / ".venv/bin/searchapp")
            environment = {k: v for k, v in self.environment.items() if k not in ("COLUMNS", "LINES")}
            os.execve(program, [program, *map(str, arguments)], environment)
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        taken = []
        try:
            is_running = _read_until_quiet(end, stream, pid)
            for number, (keys, label) in enumerate([("", "start"), *steps]):
                if keys:
                    if not is_running:
                        break
                    os.write(end, keys.encode())
                    is_running = _read_until_quiet(end, stream, pid)
                if label:
                    rows = (row.rstrip() for row in picture.text.split("\n"))
                    taken.append((f"{number:02}-{label}.txt", "\n".join(rows) + "\n"))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(end)
        return taken


def _read_until_quiet(end: int, stream: Stream, pid: int) -> bool:
    """Read output until the program writes nothing and none of its threads runs; return False after its end."""
    begun = quiet_since = time.monotonic()
    while time.monotonic() < begun + TIMEOUT_SECONDS:
        if select.select([end], [], [], 0.1)[0]:
            try:
                output = os.read(end, 1 << 16)
            except OSError:
                return False
            if not output:
                return False
            stream.feed(UNREAD.sub(b"", output))
            quiet_since = time.monotonic()
        elif _runs(pid):
            quiet_since = time.monotonic()
        elif time.monotonic() > quiet_since + QUIET_SECONDS:
            return True
    raise TimeoutError("the screen does not come to rest")


def _runs(pid: int) -> bool:
    """Return whether a thread of the process or of its children is computing or waits for the disk."""
    try:
        program = psutil.Process(pid)
        processes = [program, *program.children(recursive=True)]
        states = [
            task.read_text().rpartition(")")[2].split()[0]
            for process in processes
            for task in Path(f"/proc/{process.pid}/task").glob("*/stat")
        ]
    except (OSError, psutil.NoSuchProcess):
        return True
    return bool({"R", "D"} & set(states))


TASKS = {
    "nlps": ("dev", "compact set", 50),
    "explanation-2019": ("dev", "gravity pulls", None),
    "explanation-2021": ("dev", "gravity pulls", None),
    "checkthat": ("training", "jobs and taxes", None),
    "smart-types-dbpedia": ("fold0", "city in a country", None),
    "smart-types-wikidata": ("fold0", "city in a country", None),
    "smart-relations-dbpedia": ("fold0", "birth place", None),
    "smart-relations-wikidata": ("fold0", "birth place", None),
}
"""For each shared task: the ranked split, words to search for, and the scorer's cut-off for the small sample."""


def record_shared_task(recorder: Recorder) -> None:
    """Record all commands on a shared task with its sample."""
    task = recorder.scenario
    split, words, cutoff = TASKS[task]
    run = recorder.run
    scoring = ["--cutoff", cutoff] if cutoff else []
    run("index", "index", task, "--data", recorder.samples / task, "--json")
    run("index-again", "index", task)
    shown = json.loads(run("show", "tasks", "show", task, "--json"))
    run("show-text", "tasks", "show", task)
    run("search", "search", task, words, "--json", "--explain")
    run("search-text", "search", task, words, "--explain")
    run("search-signs", "search", task, f'"{words}" -of +the', "--json")
    hits = json.loads(run("search-page", "search", task, words, "--from", 2, "--size", 3, "--json"))
    run("analyze", "analyze", task, f"{words}, running: $x^2$ don't 3.5%", "--json")
    run("analyze-text", "analyze", task, words)
    runs = []
    for recipe in shown["recipes"]:
        out = recorder.work / "runs" / recipe
        run(f"recipe-{recipe}", "tasks", "show", task, "--recipe", recipe, "--json")
        run(f"rank-{recipe}", "rank", task, "--split", split, "--recipe", recipe, "--out", out, "--json")
        recorder.keep(f"runs/{recipe}", out)
        if out.exists():
            runs.append(out)
        run(f"evaluate-{recipe}", "evaluate", out, *scoring, "--per-topic", "--json")
        run(f"search-{recipe}", "search", task, words, "--recipe", recipe, "--json")
    run("evaluate-text", "evaluate", *runs[:4], *scoring, "--by", "all")
    run("evaluate-groups", "evaluate", runs[0], *scoring, "--by", "all", "--json")
    for kind in ("official", "trec", "jsonl", "csv", "ir-metadata"):
        out = recorder.work / f"export-{kind}"
        run(f"export-{kind}", "export", runs[0], "--format", kind, "--out", out, *scoring)
        recorder.keep(f"exports/{kind}", out)
    official = recorder.work / "export-official"
    run("validate", "validate", official, "--task", task, "--split", split, *scoring, "--json")
    for form in ("--json", "--csv", "--latex", "--markdown"):
        run(f"compare{form}", "compare", *runs[:2], *scoring, form)
    run("compare-text", "compare", *runs[:4], *scoring, "--by", "all")
    report = recorder.work / "report.html"
    run("report", "report", *runs[:2], *scoring, "--out", report, "--json")
    recorder.keep("report.html", report)
    topics = json.loads(run("topics", "topics", task, "--run", runs[0], "--json") or "{}")
    run("topics-text", "topics", task, "--run", runs[0], "--plain")
    if topic := _first_id(topics):
        run("topic", "topics", task, "--run", runs[0], "--topic", topic, "--json")
        run("topic-text", "topics", task, "--run", runs[0], "--topic", topic, "--failures", "--plain")
        if document := _first_document(hits):
            run("explain", "explain", task, document, "--topic", topic, "--split", split, "--json")
            run("explain-text", "explain", task, document, "--topic", topic, "--split", split)
    for command in ("list", "show", "verify"):
        arguments = [] if command == "list" else [runs[0]]
        run(f"runs-{command}", "runs", command, *arguments, "--json")
        run(f"runs-{command}-text", "runs", command, *arguments)
    run("ablate", "ablate", task, "--split", split, "--recipe", "neighbours", *scoring, "--json")
    run("train", "train", task, "--split", split, "--json")
    run("indexes", "indexes", "list", "--json")
    record_judgments(recorder, task, runs, split, scoring)
    run("remove", "indexes", "remove", task, "--yes", "--json")


def record_judgments(
    recorder: Recorder, task: str, runs: list[Path], split: str, scoring: Sequence[object]
) -> None:
    """Record judging in prompts by two annotators, and the commands on their judgments."""
    run = recorder.run
    for name, typed in (("ada", "1\n0\n1\ns\nu\n0\nq\n"), ("ben", "1\n1\n0\n?\nq\n")):
        run(f"judge-{name}", "judge", task, "--run", runs[0], "--plain", "--annotator", name, typed=typed)
    for command in ("list", "stats", "agreement", "imports"):
        run(f"judgments-{command}", "judgments", command, task, "--json")
        run(f"judgments-{command}-text", "judgments", command, task)
    run("judgments-verify", "judgments", "verify", "--json")
    for kind in ("qrels", "trec"):
        out = recorder.work / f"judgments-{kind}"
        run(f"judgments-export-{kind}", "judgments", "export", task, "--format", kind, "--out", out)
        recorder.keep(f"judgments/{kind}", out)
    run("judged", "evaluate", runs[0], *scoring, "--judgments", "--json")
    run("judgments-import", "judgments", "import", task, recorder.work / "judgments-qrels", "--format", "qrels",
        "--annotator", "cyd", "--json")  # fmt: skip
    run("pool", "judgments", "pool", *runs[:2], "--out", recorder.work / "pool", "--json")
    recorder.keep("pool", recorder.work / "pool")
    run("with-judgments", "rank", task, "--split", split, "--recipe", "neighbours",
        "--with-judgments", "--out", recorder.work / "judged", "--json")  # fmt: skip
    recorder.keep("runs/judged", recorder.work / "judged")


def record_own_task(recorder: Recorder) -> None:
    """Record a task of a TOML file and the experiments on it: tune, bench, learning curve."""
    folder = recorder.work / "own"
    shutil.copytree(recorder.samples / "own", folder)
    task = folder / "cooking.toml"
    run = recorder.run
    run("index", "index", task, "--json")
    run("show", "tasks", "show", task, "--json")
    runs = []
    for recipe in ("bm25", "half", "neighbours", "words"):
        runs.append(recorder.work / "runs" / recipe)
        run(f"rank-{recipe}", "rank", task, "--split", "dev", "--recipe", recipe, "--out", runs[-1], "--json")
        recorder.keep(f"runs/{recipe}", runs[-1])
    run("evaluate", "evaluate", *runs, "--json")
    run("compare", "compare", *runs, "--json")
    run("compare-text", "compare", *runs)
    run("search", "search", task, "soup for a cold day", "--json")
    run("search-filter", "search", task, "soup", "--filter", "kind=soup", "--explain-document", "1")
    over: list[object] = ["--param", "half=0,0.5,1", "--recipe", "half", "--search", "grid"]
    over += ["--folds", 2, "--split", "train"]
    run("tune", "tune", task, *over, "--out", recorder.work / "tuned.toml", "--json")
    recorder.keep("tuned.toml", recorder.work / "tuned.toml")
    run("tune-text", "tune", task, *over)
    bench = recorder.work / "bench.toml"
    bench.write_text(
        f'baseline = "bm25"\n[recipes.bm25]\n[recipes.half]\n[recipes.words]\n[tasks.cooking]\ntask = "{task}"\n'
        'splits = ["dev", "train"]\n'
    )
    run("bench", "bench", bench, "--json")
    run("bench-text", "bench", bench)
    recorder.keep("bench", recorder.work / "bench")
    run("learning-curve", "learning-curve", task, "--split", "dev", "--recipe", "neighbours", "--points", "0,2,4",
        "--repetitions", 2, "--json")  # fmt: skip
    record_judgments(recorder, str(task), runs, "dev", [])
    run("new", "tasks", "new", recorder.work / "new.toml", "--documents", folder / "recipes.jsonl", "--topics",
        folder / "questions.tsv", "--gold", folder / "gold.txt")  # fmt: skip
    recorder.keep("new.toml", recorder.work / "new.toml")


def record_general(recorder: Recorder) -> None:
    """Record commands without a task: help, settings, checks, the demonstration and usage errors."""
    run = recorder.run
    reference = (recorder.tree / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for command in re.findall(r"^## `searchapp (.+)`$", reference, re.MULTILINE):
        run(f"help-{command.replace(' ', '-')}", *command.split(), "--help")
    run("help", "--help")
    run("demo", "demo")
    run("tasks", "tasks", "--json")
    run("tasks-text", "tasks")
    run("config", "config", "--json")
    run("config-text", "config")
    run("data", "data", "list", "--json")
    run("roles", "doctor", "--roles")
    run("bench-example", "bench", "--example")
    for name, arguments in {
        "unknown-command": ["rnak"],
        "unknown-task": ["index", "nlsp"],
        "unknown-option": ["index", "nlps", "--dta", "x"],
        "no-data": ["index", "nlps"],
        "not-indexed": ["search", "nlps", "words"],
        "unknown-recipe": ["search", "nlps", "words", "--recipe", "bm52"],
        "no-run": ["evaluate", "missing"],
        "bad-number": ["search", "nlps", "words", "--size", "-3"],
        "no-server": ["--url", "http://127.0.0.1:9", "indexes", "list"],
        "bad-url": ["--url", "nonsense", "indexes", "list"],
        "no-log": ["judgments", "list", "nlps", "--log", "missing.db"],
    }.items():
        run(f"wrong-{name}", *arguments)


def record_screens(recorder: Recorder) -> None:
    """Record all screens in each size."""
    runs = recorder.work / "runs"
    recorder.run("index", "index", "nlps", "--data", recorder.samples / "nlps")
    for recipe in ("bm25", "neighbours"):
        recorder.run(
            f"rank-{recipe}", "rank", "nlps", "--split", "dev", "--recipe", recipe, "--out", runs / recipe
        )
    for name, typed in (("ada", "1\n0\n1\nq\n"), ("ben", "0\n0\n1\nq\n")):
        words = ["judge", "nlps", "--run", runs / "bm25", "--plain", "--annotator", name]
        recorder.run(f"judge-{name}", *words, typed=typed)
    recorder.screen("home", ["browse"], [
        ("\x1bOP", "help"), ("\x1b", ""), ("\x10", "palette"), ("\x1b", ""), ("\t", "next-pane"), ("q", ""),
    ])  # fmt: skip
    recorder.screen("search", ["search", "nlps"], [
        ("compact set", "hits"), ("\r", "document"), ("w", "why"), ("\x1b", ""), ("\x1bOP", "help"), ("\x1b", ""),
    ])  # fmt: skip
    recorder.screen("judge", ["judge", "nlps", "--run", runs / "neighbours"], [
        ("1", "graded"), ("0", "graded-again"), ("u", "undone"), ("n", "note"), ("unsure\r", "noted"), ("l", "list"),
        ("\x1b", ""), ("]", "next-topic"), ("t", "topics"), ("?", "help"), ("\x1b", ""), ("m", "markup"),
        ("'", "labels"), ("\x1b", ""), ("z", "zoomed"),
    ])  # fmt: skip
    recorder.screen("topics", ["topics", "nlps", "--run", runs / "bm25"], [
        ("o", "worst-first"), ("\r", "opened"), ("w", "why"), ("\x1b", ""), ("e", "missed"), ("F", "failures"),
        ("?", "help"), ("\x1b", ""), ("J1", "judged"),
    ])  # fmt: skip
    recorder.screen("compare", ["compare", runs / "bm25", runs / "neighbours", "--cutoff", 50, "--screen"], [
        ("v", "moved"), ("M", "measure"), ("w", "why"), ("\x1b", ""), ("?", "help"),
    ])  # fmt: skip
    recorder.screen("adjudicate", ["judgments", "adjudicate", "nlps", "--annotator", "cyd"], [
        ("1", "decided"), ("?", "help"),
    ])  # fmt: skip
    recorder.screen("config", ["config", "--screen"], [("\x1b[B\x1b[B", "down"), ("?", "help")])


SCENARIOS: dict[str, Callable[[Recorder], None]] = {
    "screens": record_screens,
    **dict.fromkeys(TASKS, record_shared_task),
    "own": record_own_task,
    "general": record_general,
}


def _first_id(topics: object) -> str:
    """Return the first value of a key `topic` or `id` within a JSON document, or ""."""
    if isinstance(topics, dict):
        for key in ("topic", "id"):
            if isinstance(topics.get(key), str):
                return str(topics[key])
        topics = list(topics.values())
    return next(filter(None, map(_first_id, topics)), "") if isinstance(topics, list) else ""


def _first_document(hits: object) -> str:
    """Return the id of the first hit of `search --json`, or ""."""
    return _first_id(hits["hits"]) if isinstance(hits, dict) and "hits" in hits else ""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="new folder for the recording")
    parser.add_argument(
        "--tree", type=Path, default=Path(__file__).parents[2], help="checkout with its .venv"
    )
    parser.add_argument("--only", nargs="*", choices=SCENARIOS, default=list(SCENARIOS), help="scenarios")
    options = parser.parse_args()
    folder, tree = options.folder.resolve(), options.tree.resolve()

    def record(scenario: str) -> None:
        recorder = Recorder(tree, folder, scenario)
        try:
            SCENARIOS[scenario](recorder)
        finally:
            shutil.rmtree(recorder.work)
        print(f"recorded {scenario}", file=sys.stderr)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(record, options.only))


if __name__ == "__main__":
    main()
