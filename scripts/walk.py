"""Follows a `rank` request through the layers, on the embedded engine and the sample that ships with a task.

python scripts/walk.py [TASK [RECIPE]]

The sample is indexed in a folder of its own. Then `searchapp rank` runs in this process under `sys.setprofile`, which
reports every call. Of those between modules of searchapp two things are kept: the stack at each moment when the engine
is asked to search a batch, and every call from a lower layer to a higher one. Frames of other libraries are passed
over: whoever calls them counts as the caller of what they call.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import grimp

import searchapp
from scripts.architecture import layers
from searchapp.cli import main
from searchapp.engines.embedded import EmbeddedIndex
from searchapp.tasks import load

PACKAGE = "searchapp"
SAMPLES = Path(searchapp.__file__).parent / "samples"
MOST_MODULES = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One function on the way: the module that it stands in, and its name there."""

    module: str
    function: str

    @property
    def layer(self) -> str:
        """The module or package directly below searchapp."""
        return self.module.removeprefix(f"{PACKAGE}.").partition(".")[0]


Up = tuple[Step, Step]
"""A caller, and what it calls in a higher layer."""


@dataclass(slots=True)
class Walk:
    """What was seen: the distinct ways down to the engine's search, the command first, and the calls that go up."""

    ways: list[tuple[Step, ...]] = field(default_factory=list)
    ups: set[Up] = field(default_factory=set)

    def modules(self) -> list[str]:
        """The distinct modules of all ways, in the order in which they are entered."""
        return list(dict.fromkeys(step.module for way in self.ways for step in way))

    def rises(self) -> list[Up]:
        """The calls on the ways that go from a lower layer to a higher one."""
        return [pair for way in self.ways for pair in itertools.pairwise(way) if goes_up(*pair)]

    def not_handed_down(self) -> list[Up]:
        """The calls to higher layers whose caller imports what it calls; all others were handed to it."""
        graph = grimp.build_graph(PACKAGE, cache_dir=None)
        return [
            (caller, callee)
            for caller, callee in sorted(self.ups, key=str)
            if callee.module in graph.find_modules_directly_imported_by(caller.module)
        ]


HEIGHTS = {module: -height for height, layer in enumerate(layers()) for module in layer}


def goes_up(caller: Step, callee: Step) -> bool:
    """Whether a call goes from a lower layer to a higher one."""
    return HEIGHTS[callee.layer] > HEIGHTS[caller.layer]


def walk(task: str, recipe: str | None = None) -> Walk:
    """The walk of `searchapp rank TASK` over the dev topics of its sample, or those of its first split.

    Raises:
        RuntimeError: a command failed; its words are the message.
    """
    splits = load(task).info.splits
    split = "dev" if "dev" in splits else splits[0]
    with tempfile.TemporaryDirectory() as home:
        data = ["--data", str(SAMPLES / task), "--home", home, "--engine", "embedded"]
        _run(["index", task, *data])
        rank = ["rank", task, *data, "--split", split, "--out", str(Path(home) / "run")]
        rank += ["--recipe", recipe] if recipe else []
        _run(rank)  # a first time, for solved topics are indexed when they are first asked
        seen = Walk()
        with _profiled(seen):
            _run([*rank, "--overwrite"])
    return seen


def _run(arguments: list[str]) -> None:
    """Run a command as `searchapp ARGUMENTS` does, without its output."""
    words = io.StringIO()
    before, sys.argv = sys.argv, ["searchapp", *arguments]
    try:
        with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"searchapp {' '.join(arguments)}: {words.getvalue()}") from end
    finally:
        sys.argv = before


@contextlib.contextmanager
def _profiled(seen: Walk) -> Iterator[None]:
    search = EmbeddedIndex.search.__code__
    known: dict[CodeType, bool] = {}

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not known.setdefault(frame.f_code, _is_ours(frame)):
            return
        caller = _next_of_ours(frame.f_back)
        if caller is None:
            return
        here, there = _step(frame), _step(caller)
        if here.module != there.module and goes_up(there, here):
            seen.ups.add((there, here))
        if frame.f_code is search and (way := _way(frame)) not in seen.ways:
            seen.ways.append(way)

    before: Callable[..., Any] | None = sys.getprofile()
    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(before)


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame runs a function of searchapp, not a module's body: what an import runs is no call of anybody."""
    module = str(frame.f_globals.get("__name__", ""))
    return (module == PACKAGE or module.startswith(f"{PACKAGE}.")) and frame.f_code.co_name != "<module>"


def _next_of_ours(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not _is_ours(frame):
        frame = frame.f_back
    return frame


def _way(frame: FrameType | None) -> tuple[Step, ...]:
    """The functions of searchapp on the stack, the outermost first."""
    steps = []
    while (frame := _next_of_ours(frame)) is not None:
        steps.append(_step(frame))
        frame = frame.f_back
    return tuple(reversed(steps))


def _step(frame: FrameType) -> Step:
    return Step(frame.f_globals["__name__"], frame.f_code.co_qualname)


def report(seen: Walk) -> Iterator[str]:
    """What was seen, as lines."""
    for way in seen.ways:
        modules = list(dict.fromkeys(step.module for step in way))
        yield f"{len(modules)} modules from the command down to the engine's search:"
        for module in modules:
            functions = list(dict.fromkeys(step.function for step in way if step.module == module))
            yield f"  {module:<40} {', '.join(name.replace('<locals>.', '') for name in functions)}"
    yield f"calls on these ways that go up: {len(seen.rises())}"
    yield "modules that call into a higher layer what was handed to them:"
    for caller, callee in sorted({(a.module, b.module) for a, b in seen.ups}):
        names = sorted({b.function for a, b in seen.ups if (a.module, b.module) == (caller, callee)})
        yield f"  {caller} calls {callee}: {', '.join(name.replace('<locals>.', '') for name in names)}"
    yield f"of these are imported, and so not handed down: {len(seen.not_handed_down())}"


if __name__ == "__main__":
    found = walk(*(sys.argv[1:3] or ["nlps"]))
    print("\n".join(report(found)))
    short = all(len({step.module for step in way}) <= MOST_MODULES for way in found.ways)
    sys.exit(0 if found.ways and short and not found.rises() and not found.not_handed_down() else 1)
