"""Drive every screen by keys on a real terminal, with hostile text in all that the screens show."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from searchapp.judging.log import JudgmentLog, Window
from searchapp.model import Hits, Ranking, Run
from searchapp.runs import directory
from tests.hostile import world as worlds
from tests.hostile.output import TerminalOutput, read
from tests.hostile.world import WORD, World
from tests.terminal import SEARCHAPP, Terminal

BEGIN_PASTE, END_PASTE = "\x1b[200~", "\x1b[201~"
NO_PROGRAMS = {"PATH": "/nowhere"}
"""An empty PATH: without clipboard programs, searchapp copies through the terminal."""

SCREENS = {
    "JudgeScreen": r"\d+ · rank|Document .* rank|Ranking",
    "AdjudicateScreen": r"of 2 decided",
    "Choose": r"esc  ?Back",
    "WordsDialog": r"↵ save +esc back",
    "PathDialog": r"tab complete +esc back",
    "Help": r"Undo the last action",
    "JudgmentList": r"tab graded, skipped",
    "SearchScreen": r"documents? · ",
    "FilterDialog": r"choose or drop",
    "ExplanationDialog": r"scroll    esc back",
    "ComparisonDialog": r"Why .* is above",
    "AnalysisDialog": r"another field",
    "TrainingTopicPage": r"Training topic ",
    "SectionDialog": r"fold or unfold",
    "ConfigScreen": r"Settings  .*",
    "TopicsScreen": r"Missed gold · ",
    "CompareScreen": r"by topic · largest gains first",
    "ExplainedTwice": r" in both runs",
    "HomeScreen": r"smart-relations-wikidata",
    "ReportDialog": r"│  ↑↓ scroll    esc back",
    "Palette": "what to do, in a few letters",
    "SavedQueryDialog": r"\^x delete",
    "Jumping": r"\n[a-z] +1 ",
}
"""A pattern that only this screen shows. Each screen of the program has an entry and is driven below."""

PICKING, SEARCH_HELP = "choose    esc back", "these words next to each other"
"""Patterns of a list of choices, whose class has subclasses, and of the help on searching."""


@dataclass
class ScreenDriver:
    """A program on a terminal, driven by keys."""

    terminal: Terminal
    visited: set[str] = field(default_factory=set)

    def wait_for_screen(self, screen: str) -> None:
        self.terminal.wait_for(SCREENS[screen])
        self.visited.add(screen)

    def do(self, keys: str, pattern: str) -> None:
        """Press keys and wait until the screen shows a pattern."""
        self.terminal.press(*keys.split())
        self.terminal.wait_for(pattern)

    def open(self, keys: str, screen: str) -> None:
        """Press keys that open a screen and wait for it."""
        self.terminal.press(*keys.split())
        self.wait_for_screen(screen)

    def visit(self, keys: str, screen: str) -> None:
        """Press keys that open a screen and close it again."""
        self.open(keys, screen)
        self.back()

    def press_until(self, key: str, pattern: str) -> None:
        """Press a key repeatedly until the screen shows a pattern."""
        for _attempt in range(30):
            self.terminal.press(key)
            with suppress(AssertionError):
                self.terminal.wait_for(pattern, seconds=0.5)
                return
        self.terminal.wait_for(pattern)

    def back(self) -> None:
        """Close a dialog."""
        self.terminal.press("escape")
        dialogs = ("Choose", "WordsDialog", "PathDialog", "Help", "JudgmentList", "FilterDialog", "ExplanationDialog",
                     "ReportDialog", "ComparisonDialog", "AnalysisDialog", "TrainingTopicPage", "SectionDialog",
                     "SavedQueryDialog", "Jumping", "ExplainedTwice")  # fmt: skip
        for pattern in (*(SCREENS[screen] for screen in dialogs), PICKING, SEARCH_HELP):
            self.terminal.wait_for(rf"(?s)\A(?!.*(?:{pattern}))")

    def paste(self, text: str) -> None:
        """Paste a text, followed by its mark, into an input line and wait until the line shows the mark."""
        mark = text[:4]
        self.terminal.press(f"{BEGIN_PASTE}{text}.{mark}{END_PASTE}")
        self.terminal.wait_for(mark)


@dataclass(frozen=True)
class Result:
    """How a driven program ended.

    `was_raw` and `is_raw` tell whether the terminal was in raw mode before the last keys and after the end.
    """

    output: TerminalOutput
    visited: frozenset[str]
    code: int
    was_raw: bool
    is_raw: bool


def judge(world: World) -> Result:
    """Judge in all panes, lists, dialogs and notes while the same annotator has another window open."""
    hostile = world.hostile
    host = hostile.text("host of another window")
    with JudgmentLog(world.log) as log:
        window = Window("w", world.annotators[0], worlds.TASK, host, 1, time.time(), time.time() + 3600)
        log.beat(window, 0)
    arguments = ["judge", world.task, "--run", world.run, "--annotator", world.annotators[0], "--show-others"]
    with drive(world, *arguments) as driver:
        driver.wait_for_screen("Choose")
        driver.do("g", rf"(?s)\A(?!.*(?:{SCREENS['Choose']})).*Ranking")
        driver.wait_for_screen("JudgeScreen")
        _read_whole_document(
            driver, "home", world.documents[worlds.RANKED[0]], _mark(world, "why annotator 1 can't tell")
        )
        driver.do("d", ".")
        driver.do("d m m b b", "Ranking")
        _annotate(driver, hostile.id("pasted note"), hostile.id("pasted reason"))
        driver.open("l", "JudgmentList")
        for _kind in range(5):
            driver.do("tab", SCREENS["JudgmentList"])
        driver.paste(hostile.id("search in the judgment list"))
        driver.back()
        driver.visit("?", "Help")
        driver.do("/", "search the documents of this topic")
        driver.paste(hostile.id("search in documents"))
        driver.do("enter", r"no document has")
        driver.terminal.press("/", "\x15", *WORD, "enter")
        driver.terminal.wait_for(rf"“{WORD}”: \d of \d documents")
        driver.do("f", "words or id|filter")
        driver.paste(hostile.id("filter of topics"))
        driver.do("", "0 of 3")
        driver.do("escape", "─Topics──")
        driver.do("i", "Go to the document")
        driver.paste(hostile.id("document to jump to"))
        driver.do("enter", "  this topic has no document Q")
        for key, topic in ("]", 1), ("]", 2), ("[", 1), ("[", 0):
            driver.do(key, f"Topic {world.topics[topic][:4]}")
        _select_and_copy(driver)
        return leave(driver)


def _read_whole_document(driver: ScreenDriver, key: str, document: str, pattern: str) -> None:
    """Go to a document and scroll to its end in a maximized pane."""
    driver.do(key, f"Document {document[:4]}")
    driver.do("z tab tab end", pattern)
    driver.do("z tab tab", "Ranking")


def _annotate(driver: ScreenDriver, note: str, reason: str) -> None:
    """Paste a note and a reason; grade several documents, undo and redo."""
    driver.open("a", "WordsDialog")
    driver.paste(note)
    driver.do("enter", "saved")
    driver.do("R", SCREENS["Choose"])
    driver.do("2", "Reason")
    driver.paste(reason)
    driver.do("enter", "saved")
    driver.do("space down space 1", "Grade 2 documents")
    driver.do("y", "saved")
    driver.do("u", "undone")
    driver.do("U", "redone")


def _select_and_copy(driver: ScreenDriver) -> None:
    """Select text with the mouse and copy it."""
    columns, lines = 130, 38
    driver.terminal.press(
        f"\x1b[<0;{columns};9M", f"\x1b[<32;{columns + 8};{lines}M", f"\x1b[<0;{columns};{lines}m"
    )
    driver.do("\x03", r"sent [\d,]+ characters? to the terminal's clipboard")


def adjudicate(world: World) -> Result:
    """Adjudicate the documents on which the annotators disagree."""
    hostile = world.hostile
    arguments = ["judgments", "adjudicate", world.task, "--annotator", hostile.text("adjudicator")]
    with drive(world, *arguments) as driver:
        driver.wait_for_screen("AdjudicateScreen")
        for key in ("down", "up"):
            driver.do(key, "Opinions")
            driver.do("z tab", "(?s)a person.*a person")
            driver.do("tab tab z tab", "Opinions")
        driver.do("a", SCREENS["WordsDialog"])
        driver.paste(hostile.id("note of the adjudicator"))
        driver.do("enter", "saved")
        driver.do("R", SCREENS["Choose"])
        driver.do("2", "Reason")
        driver.paste(hostile.id("reason of the adjudicator"))
        driver.do("enter", "1 of 2 decided")
        driver.do("0", "2 of 2 decided")
        driver.do("f", "words or id")
        driver.paste(hostile.id("filter of disagreements"))
        driver.do("enter", "0 shown")
        driver.do("escape", "2 of 2 decided")
        driver.do("home", ".")
        driver.visit("?", "Help")
        return leave(driver)


def search(world: World) -> Result:
    """Search with hostile queries and open each dialog on hits and documents."""
    hostile = world.hostile
    with drive(world, "search", world.task) as driver:
        driver.wait_for_screen("SearchScreen")
        driver.paste(hostile.id("query"))
        driver.do("\x13", "Save this search as")
        driver.do("x enter", "saved as x")
        driver.terminal.press("\x15", '"')
        driver.terminal.wait_for("this quotation mark is not closed")
        driver.terminal.press("\x15", *WORD, "enter")
        driver.terminal.wait_for("Hits|5 documents")
        for key in ("home", *["down"] * 4):
            driver.do(key, "Document .* rank")
        driver.do("z tab end z", "5 documents")
        driver.do("home m m m", "LaTeX as Unicode")
        driver.visit("w", "ExplanationDialog")
        driver.do("/ enter home v", "is marked")
        driver.visit("down v", "ComparisonDialog")
        driver.do("A", r"(?s)tokenizer.*another field")
        driver.wait_for_screen("AnalysisDialog")
        driver.back()
        driver.terminal.press("\x0c")
        driver.wait_for_screen("SavedQueryDialog")
        driver.back()
        driver.visit("home '", "Jumping")
        driver.visit("h", "SectionDialog")
        driver.do("end T", PICKING)
        driver.visit("enter", "TrainingTopicPage")
        driver.do("i", "Go to the document with this id")
        driver.paste(hostile.id("document to find"))
        driver.do("enter", rf"(?s)(has this id|is at rank|is not indexed).*{SCREENS['ExplanationDialog']}")
        driver.back()
        driver.open("f", "FilterDialog")
        driver.do("enter", "●")
        driver.paste(hostile.id("value to filter by"))
        driver.back()
        driver.do("r", PICKING)
        driver.back()
        driver.do("S", "like ")
        driver.do("\x7f", "/ search")
        driver.do("\x12", PICKING)
        driver.back()
        driver.do("t", rf"(?s){world.topics[0][:4]}.*{PICKING}")
        driver.do("down enter", "judging topic")
        driver.press_until("1", "saved")  # the screen ignores the key until it shows the hits of the topic
        driver.do("u", "undone")
        driver.do("?", SEARCH_HELP)
        driver.back()
        driver.do("y", r"sent [\d,]+ characters? to the terminal's clipboard")
        return leave(driver)


def topics(world: World) -> Result:
    """Go through the topics of a run: read, explain and judge."""
    hostile = world.hostile
    name = hostile.text("annotator of topics")
    arguments = ["topics", world.task, "--run", world.run, "--annotator", name, "--depth", "1"]
    with drive(world, *arguments) as driver:
        driver.wait_for_screen("TopicsScreen")
        driver.do("", r"Topic .* missed")
        for topic in (1, 2):
            driver.do("]", f"Topic {world.topics[topic][:4]}")
        for topic in (1, 0):
            driver.do("[", f"Topic {world.topics[topic][:4]}")
        for _line in range(4):
            driver.do("down", "Document .* rank")
        driver.do("o", "topics worst first")
        driver.do("o o", "topics as in the run")
        driver.do("F", "failures|no topic fails")
        driver.do("F o o", "topics as in the run")
        driver.visit("w", "ExplanationDialog")
        driver.do("i", "Go to the document with this id")
        driver.paste(hostile.id("document to find in a topic"))
        driver.do("enter", rf"(?s)(has this id|is at rank|is not indexed).*{SCREENS['ExplanationDialog']}")
        driver.back()
        driver.do("J", "J stops judging")
        driver.do("1", "saved")
        driver.do("a", SCREENS["WordsDialog"])
        driver.paste(hostile.id("note on a topic's document"))
        driver.do("enter", "saved")
        driver.do("u", "undone")
        driver.do("f", "words or id")
        driver.paste(hostile.id("filter of topics of a run"))
        driver.do("enter", r" · 0 of 3")
        driver.do("escape z tab end z", "Ranking")
        driver.do("y", r"sent [\d,]+ characters? to the terminal's clipboard")
        return leave(driver)


def compare(world: World) -> Result:
    """Compare two runs: read, explain and judge."""
    hostile = world.hostile
    name = hostile.text("annotator of moved documents")
    reversed_run = world.folder / hostile.name("directory of another run")
    _write_reversed(world.run, reversed_run)
    arguments = ["compare", world.run, reversed_run, "--screen", "--depth", "1"]
    with drive(world, *arguments, SEARCHAPP_ANNOTATOR=name) as driver:
        driver.wait_for_screen("CompareScreen")
        driver.do("", r"Document .* rank 1 ")
        driver.do("o", "largest losses first")
        driver.do("o o", "as in the first run")
        driver.do("W", f"Topic {world.topics[0][:4]}")
        for topic in (1, 2):
            driver.do("]", f"Topic {world.topics[topic][:4]}")
        for _line in range(4):
            driver.do("down", "Document .* rank")
        driver.do("= home n", "Document .* rank|no more moved documents")
        driver.do("M", "measure [2-9] of")
        driver.do("v", "there are only two runs")
        driver.visit("w", "ExplainedTwice")
        driver.do("i", "Go to the document with this id")
        driver.paste(hostile.id("document to find in two runs"))
        driver.visit("enter", "ExplainedTwice")
        driver.do("J", "J stops judging")
        driver.do("1", "judged: .* → ")
        driver.do("a", SCREENS["WordsDialog"])
        driver.paste(hostile.id("note on a moved document"))
        driver.do("enter", "saved")
        driver.do("u", "undone")
        driver.do("f", "words or id")
        driver.paste(hostile.id("filter of compared topics"))
        driver.do("enter", r" · 0 of 3")
        driver.do("escape z tab end z", "Missed gold")
        driver.do("y", r"sent [\d,]+ characters? to the terminal's clipboard")
        return leave(driver)


def _write_reversed(run: Path, out: Path) -> None:
    """Write a copy of a run with the documents of each ranking in reverse order."""
    source = directory.read(run)
    rankings = tuple(
        Ranking(ranking.topic_id, Hits(ranking.document_ids()[::-1], ranking.hits.scores))
        for ranking in source.run
    )
    directory.write(out, source.manifest, Run(source.run.tag, rankings), {})


def leave_unsaved(world: World) -> Result:
    """Leave while the log is locked: unsaved judgments go to a file in a folder with a hostile name."""
    folder = world.folder / world.hostile.name("folder for temporary files")
    folder.mkdir(exist_ok=True)
    arguments = ["judge", world.task, "--run", world.run, "--annotator", world.annotators[1]]
    with drive(world, *arguments, TMPDIR=str(folder)) as driver, _lock(world.log):
        driver.wait_for_screen("JudgeScreen")
        _read_whole_document(
            driver, "end", world.documents[worlds.RANKED[-1]], _mark(world, "reason of a model")
        )
        driver.do("n 1", "NOT SAVED")
        driver.do("q", "not saved: ")
        driver.terminal.press("w")
        return leave(driver, "")


def crash(world: World) -> Result:
    """Raise an internal error in a screen, with hostile text in its message and in local variables."""
    message = world.hostile.text("message of an internal error")
    program = (
        "import sys; from searchapp import cli; from searchapp.tui.judge.screen import JudgeScreen\n"
        "def fail(self, place):\n"
        f"    words = {message!r}\n"
        "    raise ValueError(words)\n"
        "JudgeScreen.go = fail; cli.main()"
    )
    arguments = ["judge", world.task, "--run", world.run, "--annotator", world.annotators[1]]
    with drive(world, *arguments, program=("-c", program)) as driver:
        driver.wait_for_screen("JudgeScreen")
        driver.terminal.press("home", "n")
        return leave(driver, "", bell=True)


def config(world: World) -> Result:
    """Scroll the settings, with a hostile annotator name from the environment."""
    name = world.hostile.text("annotator of the environment")
    with drive(world, "config", "--screen", SEARCHAPP_ANNOTATOR=name) as driver:
        driver.wait_for_screen("ConfigScreen")
        driver.do("end", ".")
        for _line in range(31):
            driver.do("up", ".")
        driver.terminal.wait_for("annotator")
        return leave(driver)


def browse(world: World) -> Result:
    """Browse a task and a run with hostile names, enter unreadable paths and search in the palette."""
    hostile = world.hostile
    with drive(world, "browse") as driver:
        driver.wait_for_screen("HomeScreen")
        driver.do("home", "task file")
        driver.do("I", SCREENS["Choose"])
        driver.open("f", "PathDialog")
        driver.paste(hostile.id("folder to index"))
        driver.do("enter", rf"(?s)(there is no folder|file name too long).*{SCREENS['PathDialog']}")
        driver.back()
        driver.open("O", "PathDialog")
        driver.paste(hostile.id("task file to index"))
        driver.do("enter", rf"(?s)(end in \.toml|can't be read).*{SCREENS['PathDialog']}")
        driver.back()
        driver.do("tab", "Run ")
        driver.do("z tab z", "Run ")
        driver.visit("tab tab E", "ReportDialog")
        driver.terminal.press("\x10")
        driver.wait_for_screen("Palette")
        driver.paste(hostile.id("search in the palette"))
        driver.terminal.press("\x15", *"search hostile")
        driver.terminal.wait_for("task: search hostile")
        driver.do("enter", SCREENS["SearchScreen"])
        driver.do("\x11", "─Tasks|━Tasks")
        return leave(driver)


@contextmanager
def drive(
    world: World, *arguments: object, program: tuple[str, ...] = SEARCHAPP, **environment: str
) -> Iterator[ScreenDriver]:
    """Start the program on a terminal."""
    with Terminal(
        *arguments, home=world.home, columns=160, lines=45, program=program, **NO_PROGRAMS, **environment
    ) as terminal:
        yield ScreenDriver(terminal)


def leave(driver: ScreenDriver, keys: str = "q", *, bell: bool = False) -> Result:
    """Press the last keys, wait for the end and return what the program wrote."""
    was_raw = driver.terminal.is_raw
    driver.terminal.press(*keys)
    code = driver.terminal.wait_for_end()
    output = read(driver.terminal.raw, screen=True, bell=bell)
    return Result(output, frozenset(driver.visited), code, was_raw, driver.terminal.is_raw)


@contextmanager
def _lock(log: Path) -> Iterator[None]:
    """Hold the write lock of the log."""
    with closing(sqlite3.connect(log, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def _mark(world: World, field: str) -> str:
    return next(mark for mark, name in world.hostile.fields.items() if name == field)
