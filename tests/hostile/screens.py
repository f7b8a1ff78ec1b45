"""The screens with hostile text in all that they show, driven by keys on a real terminal."""

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
from tests.hostile.world import WORD, World
from tests.hostile.written import Written, read
from tests.terminal import SEARCHAPP, Terminal

BEGIN_PASTE, END_PASTE = "\x1b[200~", "\x1b[201~"
NO_PROGRAMS = {"PATH": "/nowhere"}
"""Without the system's programs, what is copied goes through the terminal."""

SCREENS = {
    "JudgeScreen": r"\d+ · rank|Document .* rank|Ranking",
    "AdjudicateScreen": r"of 2 decided",
    "Choose": r"esc  ?Back",
    "WordsDialog": r"↵ save +esc back",
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
"""What each screen shows that no other does; every screen of the program must be here and be driven below."""

PICKING, SEARCH_HELP = "choose    esc back", "these words next to each other"
"""A list to choose from, which is also the base of other screens, and the help on searching."""


@dataclass
class Driven:
    """A program on a terminal, and which of its screens were seen."""

    terminal: Terminal
    seen: set[str] = field(default_factory=set)

    def see(self, screen: str) -> None:
        self.terminal.wait_for(SCREENS[screen])
        self.seen.add(screen)

    def do(self, keys: str, shows: str) -> None:
        """Press keys, and wait for what they bring."""
        self.terminal.press(*keys.split())
        self.terminal.wait_for(shows)

    def open(self, keys: str, screen: str) -> None:
        """Press keys that open a screen."""
        self.terminal.press(*keys.split())
        self.see(screen)

    def visit(self, keys: str, screen: str) -> None:
        """Press keys that open a screen, and leave it again."""
        self.open(keys, screen)
        self.back()

    def insist(self, key: str, shows: str) -> None:
        """Press a key again and again until it brings something."""
        for _attempt in range(30):
            self.terminal.press(key)
            with suppress(AssertionError):
                self.terminal.wait_for(shows, seconds=0.5)
                return
        self.terminal.wait_for(shows)

    def back(self) -> None:
        """Leave a question."""
        self.terminal.press("escape")
        questions = ("Choose", "WordsDialog", "Help", "JudgmentList", "FilterDialog", "ExplanationDialog",
                     "ReportDialog", "ComparisonDialog", "AnalysisDialog", "TrainingTopicPage", "SectionDialog",
                     "SavedQueryDialog", "Jumping", "ExplainedTwice")  # fmt: skip
        for shown in (*(SCREENS[screen] for screen in questions), PICKING, SEARCH_HELP):
            self.terminal.wait_for(rf"(?s)\A(?!.*(?:{shown}))")

    def paste(self, text: str) -> None:
        """Paste a text into a line, with its mark behind it too, and wait until the line shows that it has it."""
        mark = text[:4]
        self.terminal.press(f"{BEGIN_PASTE}{text}.{mark}{END_PASTE}")
        self.terminal.wait_for(mark)


@dataclass(frozen=True)
class Result:
    """What a program did on a terminal."""

    written: Written
    seen: frozenset[str]
    code: int
    was_raw: bool
    is_raw: bool


def judge(world: World) -> Result:
    """Somebody judges, in all panes, lists, questions and notes, while another window of theirs is open."""
    hostile = world.hostile
    host = hostile.text("host of another window")
    with JudgmentLog(world.log) as log:
        window = Window("w", world.people[0], worlds.TASK, host, 1, time.time(), time.time() + 3600)
        log.beat(window, 0)
    arguments = ["judge", world.task, "--run", world.run, "--annotator", world.people[0], "--show-others"]
    with driven(world, *arguments) as one:
        one.see("Choose")
        one.do("g", rf"(?s)\A(?!.*(?:{SCREENS['Choose']})).*Ranking")
        one.see("JudgeScreen")
        _read_to_the_end(
            one, "home", world.documents[worlds.RANKED[0]], _mark(world, "why annotator 1 can't tell")
        )
        one.do("d", ".")
        one.do("d m m b b", "Ranking")
        _say(one, hostile.id("pasted note"), hostile.id("pasted reason"))
        one.open("l", "JudgmentList")
        for _kind in range(5):
            one.do("tab", SCREENS["JudgmentList"])
        one.paste(hostile.id("what is sought in the list"))
        one.back()
        one.visit("?", "Help")
        one.do("/", "search the documents of this topic")
        one.paste(hostile.id("what is sought in documents"))
        one.do("enter", r"no document has")
        one.terminal.press("/", "\x15", *WORD, "enter")
        one.terminal.wait_for(rf"“{WORD}”: \d of \d documents")
        one.do("f", "words or id|filter")
        one.paste(hostile.id("what topics are filtered by"))
        one.do("", "0 of 3")
        one.do("escape", "─Topics──")
        one.do("i", "Go to the document")
        one.paste(hostile.id("where to jump"))
        one.do("enter", "  this topic has no document Q")
        for key, topic in ("]", 1), ("]", 2), ("[", 1), ("[", 0):
            one.do(key, f"Topic {world.topics[topic][:4]}")
        _select_and_copy(one)
        return leave(one)


def _read_to_the_end(one: Driven, key: str, document: str, shows: str) -> None:
    """Go to a document, and read all of it in a pane as large as the screen."""
    one.do(key, f"Document {document[:4]}")
    one.do("z tab tab end", shows)
    one.do("z tab tab", "Ranking")


def _say(one: Driven, note: str, reason: str) -> None:
    """A note, a reason, and grades for several documents, in which words are pasted."""
    one.open("n", "WordsDialog")
    one.paste(note)
    one.do("enter", "saved")
    one.do("r", SCREENS["Choose"])
    one.do("2", "Reason")
    one.paste(reason)
    one.do("enter", "saved")
    one.do("space down space 1", "Grade 2 documents")
    one.do("y", "saved")
    one.do("u", "undone")
    one.do("U", "redone")


def _select_and_copy(one: Driven) -> None:
    """Select something with the mouse, and copy it."""
    columns, lines = 130, 38
    one.terminal.press(
        f"\x1b[<0;{columns};9M", f"\x1b[<32;{columns + 8};{lines}M", f"\x1b[<0;{columns};{lines}m"
    )
    one.do("\x03", r"sent [\d,]+ characters? to the terminal's clipboard")


def adjudicate(world: World) -> Result:
    """Somebody decides between the annotators."""
    hostile = world.hostile
    arguments = ["judgments", "adjudicate", world.task, "--annotator", hostile.text("who decides")]
    with driven(world, *arguments) as one:
        one.see("AdjudicateScreen")
        for key in ("down", "up"):
            one.do(key, "Opinions")
            one.do("z tab", "(?s)a person.*a person")
            one.do("tab tab z tab", "Opinions")
        one.do("n", SCREENS["WordsDialog"])
        one.paste(hostile.id("note of who decides"))
        one.do("enter", "saved")
        one.do("r", SCREENS["Choose"])
        one.do("2", "Reason")
        one.paste(hostile.id("reason of who decides"))
        one.do("enter", "1 of 2 decided")
        one.do("0", "2 of 2 decided")
        one.do("f", "words or id")
        one.paste(hostile.id("what disagreements are filtered by"))
        one.do("enter", "0 shown")
        one.do("escape", "2 of 2 decided")
        one.do("home", ".")
        one.visit("?", "Help")
        return leave(one)


def search(world: World) -> Result:
    """Somebody searches: hostile queries, hits and documents, and everything that can be asked of them."""
    hostile = world.hostile
    with driven(world, "search", world.task) as one:
        one.see("SearchScreen")
        one.paste(hostile.id("what is searched for"))
        one.do("\x13", "Save this search as")
        one.do("x enter", "saved as x")
        one.terminal.press("\x15", '"')
        one.terminal.wait_for("this quotation mark is not closed")
        one.terminal.press("\x15", *WORD, "enter")
        one.terminal.wait_for("Hits|5 documents")
        for key in ("home", *["down"] * 4):
            one.do(key, "Document .* rank")
        one.do("z tab end z", "5 documents")
        one.do("home m m m", "LaTeX as Unicode")
        one.visit("w", "ExplanationDialog")
        one.do("/ enter home v", "is marked")
        one.visit("down v", "ComparisonDialog")
        one.do("a", r"(?s)tokenizer.*another field")
        one.see("AnalysisDialog")
        one.back()
        one.visit("o", "SavedQueryDialog")
        one.visit("home '", "Jumping")
        one.visit("h", "SectionDialog")
        one.do("end e", PICKING)
        one.visit("enter", "TrainingTopicPage")
        one.do("i", "Go to the document with this id")
        one.paste(hostile.id("which document"))
        one.do("enter", rf"(?s)(has this id|is at rank|is not indexed).*{SCREENS['ExplanationDialog']}")
        one.back()
        one.open("f", "FilterDialog")
        one.do("enter", "●")
        one.paste(hostile.id("which values"))
        one.back()
        one.do("r", PICKING)
        one.back()
        one.do("s", "like ")
        one.do("\x7f", "/ words")
        one.do("\x12", PICKING)
        one.back()
        one.do("t", rf"(?s){world.topics[0][:4]}.*{PICKING}")
        one.do("down enter", "judging topic")
        one.insist("1", "saved")  # it is discarded until the hits of the topic are shown
        one.do("u", "undone")
        one.do("?", SEARCH_HELP)
        one.back()
        one.do("y", r"sent [\d,]+ characters? to the terminal's clipboard")
        return leave(one)


def topics(world: World) -> Result:
    """Somebody walks the topics of a run, reads, asks why, and judges."""
    hostile = world.hostile
    name = hostile.text("who judges topics")
    arguments = ["topics", world.task, "--run", world.run, "--annotator", name, "--depth", "1"]
    with driven(world, *arguments) as one:
        one.see("TopicsScreen")
        one.do("", r"Topic .* missed")
        for topic in (1, 2):
            one.do("]", f"Topic {world.topics[topic][:4]}")
        for topic in (1, 0):
            one.do("[", f"Topic {world.topics[topic][:4]}")
        for _line in range(4):
            one.do("down", "Document .* rank")
        one.do("o", "topics worst first")
        one.do("o o", "topics as in the run")
        one.do("F", "Failures · |no topic fails")
        one.do("F o o", "topics as in the run")
        one.visit("w", "ExplanationDialog")
        one.do("i", "Go to the document with this id")
        one.paste(hostile.id("which document of a topic"))
        one.do("enter", rf"(?s)(has this id|is at rank|is not indexed).*{SCREENS['ExplanationDialog']}")
        one.back()
        one.do("j", "judging as")
        one.do("1", "saved")
        one.do("n", SCREENS["WordsDialog"])
        one.paste(hostile.id("note on a topic's document"))
        one.do("enter", "saved")
        one.do("u", "undone")
        one.do("f", "words or id")
        one.paste(hostile.id("which topics"))
        one.do("enter", r" · 0 of 3")
        one.do("escape z tab end z", "Ranking")
        one.do("y", r"sent [\d,]+ characters? to the terminal's clipboard")
        return leave(one)


def compare(world: World) -> Result:
    """Somebody compares two runs, reads, asks why, and judges."""
    hostile = world.hostile
    name = hostile.text("who judges moved documents")
    other = world.folder / hostile.name("directory of another run")
    _turned_round(world.run, other)
    arguments = ["compare", world.run, other, "--screen", "--depth", "1"]
    with driven(world, *arguments, SEARCHAPP_ANNOTATOR=name) as one:
        one.see("CompareScreen")
        one.do("", r"Document .* rank 1 ")
        one.do("o", "largest losses first")
        one.do("o o", "as in the first run")
        one.do("W", f"Topic {world.topics[0][:4]}")
        for topic in (1, 2):
            one.do("]", f"Topic {world.topics[topic][:4]}")
        for _line in range(4):
            one.do("down", "Document .* rank")
        one.do("a home v", "Document .* rank|no more moved documents")
        one.do("M", "measure [2-9] of")
        one.do("r", "there are only two runs")
        one.visit("w", "ExplainedTwice")
        one.do("i", "Go to the document with this id")
        one.paste(hostile.id("which document of two runs"))
        one.visit("enter", "ExplainedTwice")
        one.do("j", "judging as")
        one.do("1", "judged: .* → ")
        one.do("n", SCREENS["WordsDialog"])
        one.paste(hostile.id("note on a moved document"))
        one.do("enter", "saved")
        one.do("u", "undone")
        one.do("f", "words or id")
        one.paste(hostile.id("which compared topics"))
        one.do("enter", r" · 0 of 3")
        one.do("escape z tab end z", "Missed gold")
        one.do("y", r"sent [\d,]+ characters? to the terminal's clipboard")
        return leave(one)


def _turned_round(run: Path, out: Path) -> None:
    """Write a run whose rankings begin with what those of another end with."""
    made = directory.read(run)
    rankings = [Ranking(one.topic_id, Hits(one.document_ids()[::-1], one.hits.scores)) for one in made.run]
    directory.write(out, made.manifest, Run(made.run.tag, tuple(rankings)), {})


def leave_unsaved(world: World) -> Result:
    """The log can't be written: what waits goes to a file, whose folder has a hostile name too."""
    folder = world.folder / world.hostile.name("folder for temporary files")
    folder.mkdir(exist_ok=True)
    arguments = ["judge", world.task, "--run", world.run, "--annotator", world.people[1]]
    with driven(world, *arguments, TMPDIR=str(folder)) as one, _locked(world.log):
        one.see("JudgeScreen")
        _read_to_the_end(one, "end", world.documents[worlds.RANKED[-1]], _mark(world, "reason of a model"))
        one.do("g 1", "NOT SAVED")
        one.do("q", "not saved: ")
        one.terminal.press("w")
        return leave(one, "")


def crash(world: World) -> Result:
    """An internal error in a screen: its message and the values around it are of others."""
    message = world.hostile.text("message of an internal error")
    program = (
        "import sys; from searchapp import cli; from searchapp.tui.judge.screen import JudgeScreen\n"
        "def fail(self, place):\n"
        f"    words = {message!r}\n"
        "    raise ValueError(words)\n"
        "JudgeScreen.go = fail; cli.main()"
    )
    arguments = ["judge", world.task, "--run", world.run, "--annotator", world.people[1]]
    with driven(world, *arguments, program=("-c", program)) as one:
        one.see("JudgeScreen")
        one.terminal.press("home", "g")
        return leave(one, "", bell=True)


def config(world: World) -> Result:
    """The settings, with a name of an annotator that the environment has."""
    name = world.hostile.text("annotator of the environment")
    with driven(world, "config", "--screen", SEARCHAPP_ANNOTATOR=name) as one:
        one.see("ConfigScreen")
        one.do("end", ".")
        for _line in range(12):
            one.do("up", ".")
        one.terminal.wait_for("annotator")
        return leave(one)


def browse(world: World) -> Result:
    """The home: a task and a run with hostile names, notes on files that can't be read, and the palette."""
    hostile = world.hostile
    with driven(world, "browse") as one:
        one.see("HomeScreen")
        one.do("end", "task file")
        one.do("i", SCREENS["Choose"])
        one.do("f", "The folder with the official files")
        one.paste(hostile.id("folder to index"))
        one.do("enter", "there is no folder|can't be read: file name too long")
        one.do("n", "The TOML file of your own task")
        one.paste(hostile.id("task file to index"))
        one.do("enter", "is not a task file|━Tasks")
        one.do("tab", "Run ")
        one.do("z tab z", "Run ")
        one.visit("tab tab e", "ReportDialog")
        one.terminal.press("\x10")
        one.see("Palette")
        one.paste(hostile.id("what is looked for in the palette"))
        one.terminal.press("\x15", *"search hostile")
        one.terminal.wait_for("task: search hostile")
        one.do("enter", SCREENS["SearchScreen"])
        one.do("\x11", "─Tasks|━Tasks")
        return leave(one)


@contextmanager
def driven(
    world: World, *arguments: object, program: tuple[str, ...] = SEARCHAPP, **environment: str
) -> Iterator[Driven]:
    with Terminal(
        *arguments, home=world.home, columns=160, lines=45, program=program, **NO_PROGRAMS, **environment
    ) as terminal:
        yield Driven(terminal)


def leave(one: Driven, keys: str = "q", *, bell: bool = False) -> Result:
    """End it, and say how everything was then."""
    was_raw = one.terminal.is_raw
    one.terminal.press(*keys)
    code = one.terminal.wait_for_end()
    written = read(one.terminal.raw, screen=True, bell=bell)
    return Result(written, frozenset(one.seen), code, was_raw, one.terminal.is_raw)


@contextmanager
def _locked(log: Path) -> Iterator[None]:
    """While somebody else writes the log."""
    with closing(sqlite3.connect(log, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def _mark(world: World, field: str) -> str:
    return next(mark for mark, name in world.hostile.fields.items() if name == field)
