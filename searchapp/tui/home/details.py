"""What the home screen says of the task or run that the cursor is on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from searchapp.app.evaluate import Evaluation
from searchapp.app.known_runs import KnownRun
from searchapp.app.overview import Files, Overview, TaskState
from searchapp.ranking import recipes
from searchapp.tui.content import Content
from searchapp.tui.keys import KeyMap
from searchapp.tui.paths import with_tilde

LABEL_CELLS = 10

Row = tuple[str, str]


def of_task(state: TaskState, files: Files | None, overview: Overview, keys: KeyMap) -> Content:
    """A task: what there is of it, and what can be done now."""
    info = state.task.info
    title = Content.styled(info.title, "bold")
    about = Content(info.about)
    hint = Content.styled(_next_step(state, overview, keys), "$accent")
    return Content("\n").join([title, hint, Content(""), *_rows(_of_task(state, files)), Content(""), about])


def _of_task(state: TaskState, files: Files | None) -> Iterator[Row]:
    task = state.task
    if state.index is not None:
        yield "documents", f"{state.index.documents:,}"
        of_sample = ", the sample that ships with searchapp" if state.is_sample else ""
        yield "indexed", f"{_when(state.index.created)}, as {state.index.version}{of_sample}"
    else:
        yield "documents", "not indexed"
    yield "topics", _topics(state, files)
    yield "judged", f"{state.judged:,} documents" if state.judged else "nothing yet"
    yield "files", with_tilde(str(state.files) if state.files is not None else f"none in {state.folder}")
    if task.info.file is not None:
        yield "task file", with_tilde(str(task.info.file))
    yield "recipes", " ".join(recipes.names(task.recipe_book()))
    yield "official", task.info.official_measure


def _topics(state: TaskState, files: Files | None) -> str:
    if state.files is None:
        return "unknown: the files are not at hand"
    if files is None:
        return "…"
    counts = ", ".join(f"{split} {count:,}" for split, count in files.topics.items())
    return counts or files.problem or "none in the files"


def _next_step(state: TaskState, overview: Overview, keys: KeyMap) -> str:
    if overview.engine is None:
        return f"The engine does not answer: {overview.trouble}"
    index, open_ = keys.shown("index"), keys.shown("open")
    if state.index is not None:
        return f"{open_} searches the documents, {index} indexes them again."
    ways = "its sample" if state.sample is not None and not state.has_files else "its files"
    first = "Nothing is indexed yet. " if overview.is_empty else ""
    return f"{first}{index} indexes {ways} or a folder of yours; then {open_} searches it."


def of_run(run: KnownRun, figure: str, keys: KeyMap) -> Content:
    """A run: what was ranked and how, its figure, and what can be done with it."""
    made = run.manifest
    rows = [
        ("run", with_tilde(str(run.path))),
        ("task", f"{made.task} {made.split}"),
        ("recipe", run.recipe),
        ("ranked", f"{made.topics:,} topics to depth {made.depth:,}, {_when(made.created)}"),
        ("official", with_tilde(figure) or "…"),
        ("files", with_tilde(made.data)),
    ]
    hint = (
        f"{keys.shown('open')} judges it, {keys.shown('evaluate')} shows all its figures, {keys.shown('topics')} its "
        f"topics, {keys.shown('compare')} compares it."
    )
    return Content("\n").join([Content.styled(hint, "$accent"), Content(""), *_rows(rows)])


def of_evaluation(found: Evaluation) -> Content:
    """All figures of a run."""
    official = found.official
    rows = [("topics", f"{found.topics:,}")]
    rows += [(name, f"{value:.6f}  (official)") for name, value in official.values.items()]
    rows += [(name, f"{value:.6f}  (honest)") for name, value in official.honest.items()]
    rows += [(name, f"{value:.6f}") for name, value in found.measures.values.items()]
    cells = max(len(name) for name, _value in rows) + 2
    lines = [Content.assemble((f"{name:<{cells}}", "$faint"), value) for name, value in rows]
    lines += [Content.assemble(("! ", "bold $warning"), warning) for warning in found.warnings]
    return Content("\n").join(lines)


def _rows(rows: Iterator[Row] | Sequence[Row]) -> list[Content]:
    return [Content.assemble((f"{name:<{LABEL_CELLS}} ", "$faint"), value) for name, value in rows]


def _when(moment: str) -> str:
    """A moment in the time zone of whoever reads it."""
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return moment
