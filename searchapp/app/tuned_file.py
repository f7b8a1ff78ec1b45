"""The files that a tuning writes: the recipe, in a variant of its task, and mappings where these were tuned.

They say how they were found and nothing of when and where, so that the same tuning writes the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchapp.app.tune_result import TuneResult
from searchapp.errors import UsageError
from searchapp.files import require_place, whole_file
from searchapp.tasks.base import TaskInfo
from searchapp.tasks.toml_text import assignments, inline
from searchapp.visible import visible_line

NAME = "tuned"
"""What the recipe is called."""


def require_places(out: Path, *, overwrite: bool) -> None:
    """Make sure, before anything is tuned, that the file can be written.

    Raises:
        UsageError: it exists, or its folder does not, or it is no TOML file's name.
    """
    if out.suffix.lower() != ".toml":
        raise UsageError(f"{out}: the name of a file with a recipe must end in .toml")
    require_place(out, replace=overwrite)


def write(result: TuneResult, out: Path, *, overwrite: bool) -> list[Path]:
    """Write the best recipe of a tuning, and the mappings that go with it; returns the files.

    Raises:
        SearchappError: a file can't be written.
    """
    info = result.request.validation.task.info
    mappings = dict(result.mappings)
    if info.variant is not None and ".json" in (info.mapping + str(info.examples_mapping)):
        mappings = {**result.present_mappings, **mappings}  # what it varies, this one has to vary too
    written = []
    names = {}
    for part, mapping in mappings.items():
        path = out.with_name(f"{out.stem}.{part}.json")
        names["mapping" if part == "mapping" else "examples_mapping"] = path.name
        with whole_file(path, replace=True) as file:
            file.write((json.dumps(mapping, indent=2, ensure_ascii=False) + "\n").encode())
        written.append(path)
    with whole_file(out, replace=overwrite) as file:
        file.write(text(result, out, names).encode("utf-8", "backslashreplace"))
    return [out, *written]


def text(result: TuneResult, out: Path, mappings: Mapping[str, str]) -> str:
    """The file with the recipe; `mappings` are the names of the files beside it."""
    return "\n".join(_lines(result, out, mappings)) + "\n"


def _lines(result: TuneResult, out: Path, mappings: Mapping[str, str]) -> Iterator[str]:
    request, validation = result.request, result.request.validation
    info = validation.task.info
    yield from (f"# {visible_line(line)}".rstrip() for line in _comments(result, out, mappings))
    yield ""
    yield f"extends = {inline(_extended(info, out))}"
    yield f"recipe = {inline(NAME)}"
    yield from (f"{key} = {inline(name)}" for key, name in mappings.items())
    yield ""
    yield f"[recipes.{NAME}]"
    written = dict(result.best.recipe.written)
    written["about"] = f"{request.recipe}, tuned on {', '.join(validation.splits)}."
    written.pop("tuned", None)
    signals = [_in_order(_with_place(info, out, signal)) for signal in written.pop("signals")]
    if len(signals) == 1:
        written.pop("fusion", None)
    written = {key: value for key, value in _with_place(info, out, written).items() if value != {}}
    yield from assignments(written)
    yield "signals = ["
    yield from (f"  {inline(signal)}," for signal in signals)
    yield "]"
    yield ""
    yield f"[recipes.{NAME}.tuned]"
    yield from assignments(result.provenance())


def _comments(result: TuneResult, out: Path, mappings: Mapping[str, str]) -> Iterator[str]:
    """How the recipe was found, and what to do with it."""
    request, first, shipped = result.request, result.trials[0], result.shipped
    validation = request.validation
    yield f"The recipe {validation.task.name}/{request.recipe}, tuned by `searchapp tune`: rank with"
    yield ""
    if mappings:
        yield f"    searchapp index {out.name}"
    yield f"    searchapp rank {out.name} --split SPLIT --recipe {NAME} --out DIR"
    yield ""
    yield (
        f"{len(result.trials) - 1} trials, {request.search.value}, seed {validation.seed}; "
        f"{result.folds} folds of {result.topics:,} topics of {', '.join(validation.splits)}."
    )
    if result.reported:
        named = ", ".join(result.reported)
        yield f"{named} is what figures are reported for: those of this recipe there are too good."
    yield f"{result.measure} {first.value:.6f}{_interval(first.interval)}, trial {first.number}."
    if first.number == shipped.number:
        yield "No trial was better than the recipe as it was."
    else:
        yield f"The recipe as it was: {shipped.value:.6f}{_interval(shipped.interval)}."
        if first.tests is not None:
            tests = first.tests
            yield (
                f"Difference {tests.mean:+.6f}{_interval(tests.interval)}; randomisation test p = "
                f"{tests.randomisation.p:.4g}, t-test p = {tests.t_test.p:.4g}."
            )
    if result.chosen is not None:
        yield f"Each topic by the trial that is best on the other folds: {result.chosen:.6f}."


def _in_order(signal: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a signal, its kind and name first; the name is left out where it is the kind."""
    kind, name = signal["signal"], signal.get("name")
    first = {"signal": kind} | ({} if name in (kind, None) else {"name": name})
    return first | {key: value for key, value in signal.items() if key not in ("signal", "name")}


def _interval(interval: Any) -> str:
    return "" if interval is None else f" ({interval.low:.6f} to {interval.high:.6f})"


def _extended(info: TaskInfo, out: Path) -> str:
    """What the file extends: the task, or the file of a user's own by its path from there."""
    return info.name if info.file is None else _from(out, info.file)


def _with_place(info: TaskInfo, out: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """A table whose template is found from the new file, if it lies beside the variant that was tuned."""
    template = table.get("template")
    if info.variant is None or not isinstance(template, str) or not template.endswith(".json"):
        return dict(table)
    file = info.variant.parent / template
    return {**table, "template": _from(out, file)} if file.exists() else dict(table)


def _from(out: Path, file: Path) -> str:
    return os.path.relpath(file.resolve(), out.resolve().parent)
