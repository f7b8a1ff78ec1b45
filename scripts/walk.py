"""Trace a `rank` request through the layers, with the embedded engine and the sample of a task.

python scripts/walk.py [TASK [RECIPE]]

The sample is indexed in a temporary folder. Then `searchapp rank` runs in this process under `sys.setprofile`. The
script records the stack of each call of the engine's search, and all calls from a lower layer to a higher one. Frames
of other libraries are skipped: their caller counts as the caller of the functions that they call.
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
MAX_MODULES = 8


@dataclass(frozen=True, slots=True)
class Step:
    """A called function and its module."""

    module: str
    function: str

    @property
    def layer(self) -> str:
        """The module or package directly below searchapp."""
        return self.module.removeprefix(f"{PACKAGE}.").partition(".")[0]


Call = tuple[Step, Step]
"""A caller and the called function."""


@dataclass(slots=True)
class Trace:
    """Distinct paths from the command to the engine's search, and all calls to higher layers."""

    paths: list[tuple[Step, ...]] = field(default_factory=list)
    upward_calls: set[Call] = field(default_factory=set)

    def modules(self) -> list[str]:
        """Return the distinct modules of all paths in the order of their first call."""
        return list(dict.fromkeys(step.module for path in self.paths for step in path))

    def upward_steps(self) -> list[Call]:
        """Return the calls on the paths from a lower layer to a higher one."""
        return [pair for path in self.paths for pair in itertools.pairwise(path) if goes_up(*pair)]

    def imported_calls(self) -> list[Call]:
        """Return the calls to higher layers whose caller imports the module of the called function."""
        graph = grimp.build_graph(PACKAGE, cache_dir=None)
        return [
            (caller, callee)
            for caller, callee in sorted(self.upward_calls, key=str)
            if callee.module in graph.find_modules_directly_imported_by(caller.module)
        ]


HEIGHTS = {module: -height for height, layer in enumerate(layers()) for module in layer}


def goes_up(caller: Step, callee: Step) -> bool:
    """Return whether a call goes from a lower layer to a higher one."""
    return HEIGHTS[callee.layer] > HEIGHTS[caller.layer]


def trace_rank(task: str, recipe: str | None = None) -> Trace:
    """Trace `searchapp rank TASK` on the dev topics of its sample, or on the topics of its first split.

    Raises:
        RuntimeError: a command failed; its output is the message.
    """
    splits = load(task).info.splits
    split = "dev" if "dev" in splits else splits[0]
    with tempfile.TemporaryDirectory() as home:
        data = ["--data", str(SAMPLES / task), "--home", home, "--engine", "embedded"]
        _run(["index", task, *data])
        rank = ["rank", task, *data, "--split", split, "--out", str(Path(home) / "run")]
        rank += ["--recipe", recipe] if recipe else []
        _run(rank)  # the first run indexes training topics
        trace = Trace()
        with _profiled(trace):
            _run([*rank, "--overwrite"])
    return trace


def _run(arguments: list[str]) -> None:
    """Run `searchapp ARGUMENTS` in this process without its output."""
    output = io.StringIO()
    before, sys.argv = sys.argv, ["searchapp", *arguments]
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"searchapp {' '.join(arguments)}: {output.getvalue()}") from end
    finally:
        sys.argv = before


@contextlib.contextmanager
def _profiled(trace: Trace) -> Iterator[None]:
    search = EmbeddedIndex.search.__code__
    known: dict[CodeType, bool] = {}

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not known.setdefault(frame.f_code, _is_own(frame)):
            return
        caller = _next_own(frame.f_back)
        if caller is None:
            return
        callee_step, caller_step = _step(frame), _step(caller)
        if callee_step.module != caller_step.module and goes_up(caller_step, callee_step):
            trace.upward_calls.add((caller_step, callee_step))
        if frame.f_code is search and (path := _path(frame)) not in trace.paths:
            trace.paths.append(path)

    before: Callable[..., Any] | None = sys.getprofile()
    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(before)


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame runs a function of searchapp; the body of a module runs during an import."""
    module = str(frame.f_globals.get("__name__", ""))
    return (module == PACKAGE or module.startswith(f"{PACKAGE}.")) and frame.f_code.co_name != "<module>"


def _next_own(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not _is_own(frame):
        frame = frame.f_back
    return frame


def _path(frame: FrameType | None) -> tuple[Step, ...]:
    """Return the functions of searchapp on the stack, outermost first."""
    steps = []
    while (frame := _next_own(frame)) is not None:
        steps.append(_step(frame))
        frame = frame.f_back
    return tuple(reversed(steps))


def _step(frame: FrameType) -> Step:
    return Step(frame.f_globals["__name__"], frame.f_code.co_qualname)


def report(trace: Trace) -> Iterator[str]:
    """Yield the lines of a report."""
    for path in trace.paths:
        modules = list(dict.fromkeys(step.module for step in path))
        yield f"{len(modules)} modules from the command down to the engine's search:"
        for module in modules:
            functions = list(dict.fromkeys(step.function for step in path if step.module == module))
            yield f"  {module:<40} {', '.join(name.replace('<locals>.', '') for name in functions)}"
    yield f"calls to higher layers on these paths: {len(trace.upward_steps())}"
    yield "calls to higher layers by module:"
    for caller, callee in sorted({(a.module, b.module) for a, b in trace.upward_calls}):
        names = sorted(
            {b.function for a, b in trace.upward_calls if (a.module, b.module) == (caller, callee)}
        )
        yield f"  {caller} calls {callee}: {', '.join(name.replace('<locals>.', '') for name in names)}"
    yield f"calls of imported functions among them: {len(trace.imported_calls())}"


if __name__ == "__main__":
    trace = trace_rank(*(sys.argv[1:3] or ["nlps"]))
    print("\n".join(report(trace)))
    short = all(len({step.module for step in path}) <= MAX_MODULES for path in trace.paths)
    sys.exit(0 if trace.paths and short and not trace.upward_steps() and not trace.imported_calls() else 1)
