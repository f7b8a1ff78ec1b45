"""A case for every command on the hostile task, in an order that meets each command's needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main

from searchapp.cli import app
from tests.hostile import world as worlds
from tests.hostile.world import WORD, World


@dataclass(frozen=True)
class Case:
    """A command line, the answers typed at its prompts and the expected exit code."""

    command: str
    arguments: list[object]
    typed: tuple[str, ...] = ()
    code: int = 0

    @property
    def line(self) -> list[str]:
        return [*self.command.split(), *map(str, self.arguments)]


ON_A_SCREEN = {"judge", "judgments adjudicate", "topics"}
"""Commands that open a screen, which `test_screens` drives; the cases use their prompts."""

ONLY_SCREENS = {"browse"}
"""Commands that only have a screen, which `test_screens` drives."""


def commands() -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each command of the program and its options."""

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, frozenset[str]]]:
        inner: Any = getattr(command, "commands", None)
        if path and (inner is None or getattr(command, "invoke_without_command", False)):
            yield " ".join(path), frozenset(option for param in command.params for option in param.opts)
        for name in inner or ():
            yield from below(inner[name], (*path, name))

    return below(typer.main.get_command(app), ())


def cases(world: World) -> Iterator[Case]:
    """Yield the cases; files that no command writes are written before the case that needs them."""
    task, run = world.task, world.run
    yield Case("index", [task, "--lenient"])
    yield Case("tasks", [])
    yield Case("tasks show", [task])
    yield Case("tasks export", [task, "--format", "beir", "--out", world.folder / "collection"], code=4)
    yield from _starting(world)
    yield Case("indexes list", [])
    yield Case("doctor", [])
    yield Case("config", [])
    yield Case("analyze", [task, world.hostile.text("text to analyze")])
    yield Case("analyze", [task, "word", "--analyzer", world.analyzer])
    yield Case("search", [task, WORD])
    yield Case("search", [task, WORD, "--full", "--explain"])
    yield Case("serve", [task, "--run", world.hostile.name("run to serve")], code=2)
    yield Case("serve", [task, "--host", world.hostile.id("host to listen at")], code=2)
    yield Case("mcp", ["--engine", world.hostile.id("unknown engine")], code=2)
    yield Case("rank", [task, "--split", "dev", "--out", run, "--overwrite"])
    yield Case("rank", [task, "--split", "dev", "--recipe", world.recipe, "--out", f"{run}2", "--overwrite"])
    yield Case("rerun", [run, "--out", f"{run}4", "--overwrite"])
    yield Case("embed", [task])
    yield Case("train", [task, "--split", "dev", "--recipe", world.recipe], code=2)
    yield Case("tasks show", [task, "--recipe", world.recipe])
    yield Case("explain", [task, world.documents[0], "--topic", world.topics[0], "--recipe", "fused"])
    yield Case("explain", [task, world.hostile.id("unknown document"), "--topic", world.topics[0]])
    yield Case("explain", [task, world.documents[0], "--topic", world.hostile.id("no topic")], code=2)
    yield from _tuning(world)
    yield Case("runs verify", [run])
    yield Case("compare", [run, f"{run}2", "--force"])
    report = world.folder / (world.hostile.name("report file") + ".html")
    yield Case("report", [run, f"{run}2", "--force", "--out", report, "--overwrite"])
    yield Case("bench", [worlds.bench(world)])
    yield Case("ablate", [task, "--split", "dev", "--recipe", "fused", "--lenient"])
    yield Case("learning-curve", [task, "--split", "dev", "--recipe", world.recipe], code=2)
    yield Case("runs show", [run])
    yield Case("runs list", [])
    yield Case("runs tag", [run, world.hostile.id("tag of a run")], code=2)
    yield Case(
        "runs import",
        [Path(run) / "run.trec", "--task", task, "--split", "dev", "--out", f"{run}3", "--overwrite"],
    )
    yield Case(
        "export",
        [run, "--out", world.folder / world.hostile.name("exported file"), "--format", "csv", "--overwrite"],
    )
    yield Case("evaluate", [run, f"{run}2", "--per-topic"])
    yield Case("topics", [task, "--run", run, "--order", "worst", "--plain"])
    yield Case("topics", [task, "--run", run, "--failures", "--plain"])
    yield Case(
        "topics", [task, "--run", run, "--failures", "--depth", 1, "--topic", world.topics[0], "--plain"]
    )
    yield Case("topics", [task, "--run", run, "--depth", 1, "--topic", world.topics[0], "--plain"])
    trec = worlds.trec_run(world)
    yield Case("validate", [trec, "--task", task, "--split", "dev"])
    yield Case("evaluate", [trec, run, "--task", task, "--gold", world.gold, "--per-topic"])
    worlds.judge(world)
    yield from _judging(world, trec)
    yield from _data(world)
    yield Case("demo", [])
    name = f"{worlds.TASK}-none{world.hostile.id('name of an index')}"
    yield Case("indexes remove", [name, "--yes"], code=2)
    yield Case("indexes repair", ["--url", unreachable(world)], code=3)


def unreachable(world: World) -> str:
    """Return the address of a server that does not exist."""
    return "http://127.0.0.1:1/" + world.hostile.id("address of a server").replace("/", "").replace("@", "")


def _starting(world: World) -> Iterator[Case]:
    files = world.task.parent
    out = files / (world.hostile.name("new task file") + ".toml")
    yield Case(
        "tasks new",
        [out, "--documents", files / "documents.jsonl", "--topics", files / "topics.jsonl",
         "--gold", world.gold, "--name", "new", "--overwrite"],
    )  # fmt: skip


def _tuning(world: World) -> Iterator[Case]:
    tuned = world.folder / (world.hostile.name("tuned file") + ".toml")
    arguments = [world.task, "--recipe", world.recipe, "--split", "dev", "--allow-reported", "--lenient"]
    yield Case(
        "tune",
        [*arguments, "--param", "k1=0.5,1.5", "--search", "grid", "--out", tuned, "--overwrite"],
    )
    yield Case("tune", [*arguments, "--param", f"{world.hostile.id('parameter that is tuned')}=1,2"], code=2)
    yield Case("tasks show", [tuned])


def _judging(world: World, trec: Path) -> Iterator[Case]:
    task, folder, hostile = world.task, world.folder, world.hostile
    first, second = world.annotators
    yield Case("judgments stats", [task])
    yield Case("judgments agreement", [task, "--disputed", 5])
    yield Case("judgments agreement", [task, "--annotator", first, "--annotator", second])
    yield Case("judgments audit", [task])
    yield Case("judgments report", [task, "--out", folder / (hostile.name("report of judgments") + ".html")])
    yield Case("judgments list", [task])
    yield Case("judgments list", [task, "--annotator", first, "--with-notes"])
    yield Case("evaluate", [world.run, "--judgments", "--per-topic"])
    yield Case("judgments import", [task, worlds.events_file(world)])
    yield Case("judgments list", [task, "--topic", world.topics[1]])
    yield Case("judgments imports", [task])
    yield Case("judgments retract", [task, "--import", 1])
    yield Case(
        "judgments export",
        [task, "--overwrite", "--out", folder / (hostile.name("exported judgments") + ".jsonl")],
    )
    yield Case("judgments verify", [])
    yield Case("judgments backup", [folder / (hostile.name("backup of the log") + ".sqlite")])
    yield Case("judgments export", [task, "--format", "trec", "--out", folder / "x.trec"], code=4)
    pool = folder / hostile.name("pool")
    yield Case(
        "judgments pool", [world.run, trec, "--task", task, "--split", "dev", "--out", pool, "--overwrite"]
    )
    sample = folder / hostile.name("sample")
    strata = ("--by", "sample", "--strata", "1000=1")
    yield Case("judgments pool", [world.run, *strata, "--out", sample, "--overwrite"])
    yield Case("judgments progress", [task, "--sample", sample])
    calibration = [
        task,
        "--run",
        world.run,
        "--annotator",
        world.annotators[0],
        "--size",
        2,
        "--repeats",
        0,
        "--plain",
    ]
    yield Case("judgments calibrate", calibration, ("1", "1", "q"))
    yield Case("judgments trust", [task, first], code=2)
    probed = ["--command", "cat", "--model", hostile.id("model to probe"), "--resamples", 100]
    yield Case("judgments probe", [task, *probed])
    yield Case("evaluate", [world.run, "--judgments", "--sample", sample])
    assigned = folder / (hostile.name("assignment") + ".json")
    yield Case(
        "judgments assign",
        [
            task,
            "--split",
            "dev",
            "--out",
            assigned,
            "--quota",
            f"{first}=1",
            "--quota",
            f"{second}=2",
            "--overwrite",
        ],
    )
    yield from _prompts(world, assigned)
    yield Case("judgments sync", ["--url", unreachable(world)], code=3)


def _prompts(world: World, assigned: Path) -> Iterator[Case]:
    """Yield the cases with prompts; the terminal echoes the typed answers, so they are harmless."""
    task, first = world.task, world.annotators[0]
    typed = (
        "# 5", "1 reason", "x why", "s", "a note", "d", "topic", "/" + WORD, "m", "bulk 1-3 1", "y", "u", "U", "t",
        "]", "[", "score", "?", "i nothing", "# 1", "0", "2", "1", "0", "1", "y", "nonsense", "q",
    )  # fmt: skip
    yield Case("judge", [task, "--run", world.run, "--annotator", first, "--plain"], typed)
    yield Case(
        "judge",
        [task, "--run", world.run, "--annotator", world.annotators[1], "--plain", "--show-others", "--assignment",
         assigned],
        ("1", "1", "q"),
    )  # fmt: skip
    yield Case("judge", [task, "--run", world.run, "--annotator", first, "--plain", "--blind"], ("q",))
    decides = world.hostile.text("annotator who decides")
    yield Case(
        "judgments adjudicate",
        [task, "--annotator", decides, "--plain"],
        ("a note", "1 reason", "2", "0", "1", "y", "u", "U", "+", "-", "m", "?", "# 1", "nonsense", "q"),
    )
    yield Case(
        "judgments adjudicate",
        [task, "--annotator", decides, "--topic", world.topics[0], "--document", world.documents[1],
         "--grade", 2, "--reason", world.hostile.text("reason of a decision")],
    )  # fmt: skip
    yield Case(
        "judgments list", [task, "--annotator", decides.strip()]
    )  # the log stores names without surrounding white space


def _data(world: World) -> Iterator[Case]:
    folder = world.folder / world.hostile.name("folder of official files")
    yield Case("data list", [])
    yield Case("data verify", ["nlps", "--data", folder], code=4)
    yield Case("data get", ["nlps", "--out", folder], ("n",), code=1)
