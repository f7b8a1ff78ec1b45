"""`searchapp tasks` and `data`: the tasks, a start for a new one, and the official files."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from searchapp.cli.commands import (
    Group,
    JsonOption,
    OverwriteOption,
    SetOption,
    TaskArgument,
    command,
    parameters_of,
)
from searchapp.cli.output import ask, for_person, print_json, say, stderr_console, stdout_console, warn
from searchapp.config.settings import Settings, without_passwords
from searchapp.engines import open_engine
from searchapp.errors import DataError, EngineError, InvalidFiles, Problem, SearchappError, UsageError
from searchapp.files import atomic_file
from searchapp.options import argument, flag, option
from searchapp.tasks import folders, load, names
from searchapp.text import counted, visible

if TYPE_CHECKING:
    from searchapp.app.index import OwnTask
    from searchapp.cli.output import Console
    from searchapp.fetching.download import Downloader
    from searchapp.fetching.fetch import Plan
    from searchapp.fetching.sources import Download, Found, Source
    from searchapp.tasks.base import Task


app = typer.Typer()

tasks_group = typer.Typer(cls=Group)
app.add_typer(tasks_group, name="tasks")


@command(tasks_group, of_group=True)
def tasks(settings: Settings, as_json: JsonOption = False) -> None:
    """List the tasks with their splits, recipes and official measures, their data, and what is indexed."""
    loaded = [load(name) for name in names()]
    indexed, own = _indexed(settings, loaded)
    _warn_of_what_is_remembered(settings)
    unreadable = []
    for one in own:
        try:
            loaded.append(load(str(one.file)))
            indexed[loaded[-1].reference] = one.documents
        except SearchappError as error:
            unreadable.append({"task": one.name, "file": str(one.file), "indexed": one.documents})
            warn(f"{one.name}, with {counted(one.documents, 'document')} indexed, can't be read: {error}")
    if as_json:
        described = [_task_json(settings, task, indexed) for task in loaded]
        print_json({"tasks": described, "unreadable": unreadable})
        return
    for task in loaded:
        _print_facts_of(task.name, task.info.title, _rows(settings, task, indexed))


@command(tasks_group)
def show(
    settings: Settings,
    task: TaskArgument,
    recipe: str | None = option(
        "Show what can be set of this recipe with --set, with the values that it has.",
        completes="recipes",
    ),
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything about one task: its recipes, grades, measures and breakdowns too."""
    loaded = load(task)
    if recipe is not None or set_:
        _show_recipe(loaded, recipe or loaded.info.default_recipe, set_ or [], as_json=as_json)
        return
    indexed, _own = _indexed(settings, [loaded])
    _warn_of_what_is_remembered(settings)
    if as_json:
        described = _task_json(settings, loaded, indexed)
        further = {
            "default_recipe": loaded.info.default_recipe,
            "search_recipe": loaded.info.search_recipe,
            "depth": loaded.info.default_depth,
            "judging_depth": loaded.info.judging_depth,
            "grades": list(loaded.info.grades),
            "measures": list(loaded.info.measures),
            "breakdowns": list(loaded.breakdowns),
        }
        print_json({**described, **further})
        return
    _print_facts_of(loaded.name, loaded.info.title, [*_rows(settings, loaded, indexed), *_more_rows(loaded)])


@command(tasks_group)
def new(
    settings: Settings,
    path: Path = argument("The file to write.", default=Path("task.toml")),
    documents: list[Path] | None = option(
        "A file of documents: JSONL, CSV or TSV, also with gzip; may be repeated."
    ),
    topics: Path | None = option("A file of topics, likewise."),
    gold: Path | None = option("Grades of documents for the topics: TREC qrels, or likewise."),
    header: bool | None = option(
        "Whether the first lines of tables name their columns; by default detected, and reported.",
        "--header/--no-header",
    ),
    name: str | None = option("Name of the task; by default that of the file."),
    overwrite: OverwriteOption = False,
) -> None:
    """Write a TOML file that describes a task of your own, to start from.

    The given files are read, and their columns filled in: check the result.
    """
    from searchapp.tasks.own import starter

    if path.suffix.lower() != ".toml":
        raise UsageError(f"{path}: a task file's name must end in .toml")
    of_documents = [starter.look_at(file, header=header) for file in documents or ()]
    of_topics = None if topics is None else starter.look_at(topics, header=header)
    of_gold = None if gold is None else starter.look_at(gold, gold=True, header=header)
    text = starter.text_of(path, name or starter.name_for(path), of_documents, of_topics, of_gold)
    for seen in (*of_documents, of_topics, of_gold):
        if seen is not None and seen.assumed is not None:
            say(settings, seen.assumed)
    with atomic_file(path, replace=overwrite) as file:
        file.write(text.encode())
    say(settings, f"{path} is written: look through it, and then `searchapp index {path}`")


def _show_recipe(task: Task, name: str, set_: list[str], *, as_json: bool) -> None:
    """Show what can be set of a recipe, and the values that it has, of which some may have been set already."""

    from searchapp.ranking import recipes

    book = task.recipe_book()
    recipe = recipes.load(book, name, parameters_of(set_))
    found = recipes.settable(book, recipe)
    if as_json:
        described = {"task": task.name, "recipe": name, "about": recipe.about}
        print_json({**described, "settable": [asdict(one) for one in found]})
        return
    rows = [(one.name, f"{_value(one.value)}: {one.about} ({one.kind})") for one in found]
    if not rows:
        rows = [("settable", "nothing: it has no parameters and no numbers")]
    _print_facts_of(f"{task.name}/{name}", recipe.about, rows)


def _value(value: object) -> str:
    return "(left out)" if value is None else str(value)


def _task_json(settings: Settings, task: Task, indexed: Mapping[str, int]) -> dict[str, object]:
    from searchapp.fetching.sources import has_data
    from searchapp.ranking import recipes

    folder, remembered = _data_folder(settings, task)
    return {
        "task": task.name,
        "file": None if task.info.file is None else str(task.info.file),
        "variant": None if task.info.variant is None else str(task.info.variant),
        "title": task.info.title,
        "about": task.info.about,
        "splits": list(task.info.splits),
        "recipes": recipes.names(task.recipe_book()),
        "mapping": task.info.mapping,
        "official": {"measure": task.info.official_measure, "file": task.info.official_file},
        "data": str(folder),
        "data_found": has_data(folder),
        "data_remembered": remembered,
        "indexed": indexed.get(task.reference),
    }


def _data_folder(settings: Settings, task: Task) -> tuple[Path, bool]:
    """Where the files of a task are looked for, and whether that is remembered from `index --data`."""
    with suppress(DataError):
        found = folders.find(task, settings.home)
        return found.path, found.is_remembered
    return folders.own_folder(task, settings.home), False


def _warn_of_what_is_remembered(settings: Settings) -> None:
    """Say once that it can't be read; where the files are that were fetched is known all the same."""
    try:
        folders.remembered_folders(settings.home)
    except DataError as error:
        warn(str(error))


def _indexed(settings: Settings, tasks: Sequence[Task]) -> tuple[dict[str, int], list[OwnTask]]:
    """The number of indexed documents of each task, and the user's own tasks; nothing without an engine to ask."""
    from searchapp.app import index

    try:
        with closing(open_engine(settings)) as engine:
            found = {
                task.reference: next(filter(None, map(engine.index_info, task.info.index_names)), None)
                for task in tasks
            }
            own = index.own_tasks(index.stored_versions(engine))
    except EngineError as error:
        warn(str(error))
        return {}, []
    return {name: info.documents if info else 0 for name, info in found.items()}, own


def _rows(settings: Settings, task: Task, indexed: Mapping[str, int]) -> list[tuple[str, str]]:
    """What people read of each task in the list."""
    from searchapp.ranking import recipes

    documents = indexed.get(task.reference)
    state = "unknown" if documents is None else counted(documents, "document") if documents else "nothing yet"
    return [
        ("splits", " ".join(task.info.splits)),
        ("recipes", " ".join(recipes.names(task.recipe_book()))),
        ("official", f"{task.info.official_measure}, {task.info.official_file}"),
        *(("file", str(file)) for file in (task.info.file, task.info.variant) if file is not None),
        ("data", _data_state(settings, task)),
        ("indexed", state),
    ]


def _data_state(settings: Settings, task: Task) -> str:
    """The folder of a task's files, and what there is to know of it."""
    from searchapp.fetching.sources import has_data

    folder, remembered = _data_folder(settings, task)
    if has_data(folder):
        return f"{folder} (remembered from `index --data`)" if remembered else str(folder)
    advice = f"index {task.reference} --data DIR" if remembered else f"data get {task.name}"
    return f"{folder} (not there{' any more' if remembered else ''}: searchapp {advice})"


def _more_rows(task: Task) -> list[tuple[str, str]]:
    """What else is shown of one task."""
    recipes = task.recipe_book().recipes
    return [
        ("about", task.info.about),
        ("mapping", task.info.mapping),
        ("depth", f"{task.info.default_depth:,} ranked, {task.info.judging_depth:,} judged"),
        ("grades", ", ".join(_grade(grade, label) for grade, label in enumerate(task.info.grades))),
        ("measures", " ".join(task.info.measures)),
        ("--by", " ".join(task.breakdowns) or "(no breakdowns)"),
        *((name, str(recipes[name].get("about", ""))) for name in sorted(recipes)),
    ]


def _print_facts_of(name: str, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print a name, a title and rows; on a terminal long values go on below themselves."""
    from textwrap import TextWrapper

    from rich.text import Text

    console = stdout_console()
    console.print(Text.assemble((visible(name), "bold"), f"  {visible(title)}"), soft_wrap=True)
    width = max(len("official"), *(len(visible(name)) for name, _value in rows))
    indent = " " * (width + 3)
    wrapper = TextWrapper(
        width=console.width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for name, value in rows:
        below = wrapper.fill(visible(value)).removeprefix(indent)
        console.print(Text.assemble((f"  {visible(name):<{width}} ", "dim"), below), soft_wrap=True)


def _grade(grade: int, label: str) -> str:
    """A grade and what it is called, if it has a name."""
    return label if label == str(grade) else f"{grade} {label}"


_OfficialTask = Annotated[
    str, argument("A task: see `searchapp data list`.", metavar="TASK", completes="official_tasks")
]

SHOWN_ALONE = 10
"""Up to this many files of a folder are shown one by one, more as one line."""


data_group = typer.Typer(
    cls=Group, help="Fetch the official files of the tasks, and check them.", no_args_is_help=True
)
app.add_typer(data_group, name="data")


@command(data_group)
def get(
    settings: Settings,
    task: _OfficialTask,
    into: Path | None = option("Folder for the files; by default data/TASK in searchapp's own folder."),
    accept_terms: bool = flag("Accept the terms of the data without being asked."),
    overwrite: bool = flag("Replace files that are not the official ones."),
    as_json: JsonOption = False,
) -> None:
    """Fetch the official files of a task over the network.

    Sizes, sources and terms are shown first, and nothing is fetched before they are accepted. Every file is
    checked against its digest, and all of them appear together when the last has arrived. An interrupted
    download resumes. SEARCHAPP_DATA_MIRROR names a mirror, see docs/data.md.
    """
    from searchapp.fetching.fetch import make_plan
    from searchapp.fetching.sources import load

    folder = into if into is not None else _fetched_folder(settings, task)
    plan = make_plan(load(task), folder, overwrite=overwrite)
    if plan.downloads:
        _require_somebody(task, accept_terms)
        files = _fetch(settings, plan, accepted=accept_terms, overwrite=overwrite)
        say(settings, f"{task}: {counted(len(files), 'file')} fetched into {folder}")
        if into is None:
            others = ""
            with suppress(DataError):  # the files are here, whatever is remembered of others
                if folder != _folder_in_use(settings, task):
                    others = f" --data {shlex.quote(str(folder))}"
            say(settings, f"next: searchapp index {task}{others}")
    else:
        files = {}
        say(settings, f"{task}: every official file is in {folder} already, byte for byte")
    if as_json:
        print_json(
            {
                "task": task,
                "folder": str(folder),
                "page": plan.source.page,
                "terms": plan.source.terms,
                "fetched": [{"path": path, **entry} for path, entry in files.items()],
                "present": list(plan.present),
            }
        )


@command(data_group, "list")
def list_(
    settings: Settings,
    task: str | None = argument("Only this task.", default=None, metavar="TASK", completes="official_tasks"),
    as_json: JsonOption = False,
) -> None:
    """List the tasks whose official files can be fetched: sizes, sources, terms, and what is there.

    Files are recognized by name and size here; `searchapp data verify` compares every byte.
    """
    from searchapp.fetching.sources import load, look, names

    sources = [load(name) for name in ([task] if task else names())]
    folders = {source.task: _folder_in_use(settings, source.task) for source in sources}
    found = {source.task: look(source, folders[source.task]) for source in sources}
    if as_json:
        described = [_source_json(one, folders[one.task], found[one.task]) for one in sources]
        print_json({"tasks": described})
        return
    for source in sources:
        _print_source(source, folders[source.task], found[source.task], each=task is not None)


@command(data_group)
def verify(
    settings: Settings,
    task: _OfficialTask,
    data: Path | None = option("Folder with the task's official files."),
    as_json: JsonOption = False,
) -> None:
    """Check that the files of a task are the official ones, byte for byte."""
    from searchapp.fetching.sources import check, has_data, load, strangers

    source, folder = load(task), data if data is not None else _folder_in_use(settings, task)
    if not has_data(folder):
        raise DataError(f"there is no data of {task} in {folder}: fetch it with `searchapp data get {task}`")
    found = check(source, folder)
    others = strangers(folder, found)
    if as_json:
        print_json({**_source_json(source, folder, found), "strangers": others})
    _report_check(settings, task, folder, found, others)


def _fetched_folder(settings: Settings, task: str) -> Path:
    """Where fetched files go when nobody names another folder."""
    from searchapp.tasks.folders import fetched

    return fetched(task, settings.home)


def _folder_in_use(settings: Settings, task: str) -> Path:
    """Where every command looks for a task's files: in the folder that `index --data` has named, or there."""
    from searchapp.tasks.folders import remembered_folders

    return remembered_folders(settings.home).get(task) or _fetched_folder(settings, task)


def _require_somebody(task: str, accept_terms: bool) -> None:
    if not accept_terms and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"there is no terminal to ask on whether you accept the terms of the data of {task}: read them with "
            f"`searchapp data list {task}`, and add --accept-terms"
        )


def _fetch(
    settings: Settings, plan: Plan, *, accepted: bool, overwrite: bool
) -> Mapping[str, Mapping[str, Any]]:
    from searchapp.fetching.download import Downloader
    from searchapp.fetching.fetch import fetch

    with closing(Downloader(settings.data_mirror, warn)) as downloader:
        sizes = downloader.sizes(plan.downloads)
        if not settings.quiet or not accepted:
            _show_plan(plan, downloader, sizes)
        # Not asked by Typer: it writes to stdout as well, which is for results.
        if not accepted and ask("Fetch them, and accept these terms? [y/N] ").lower() not in ("y", "yes"):
            raise SearchappError("the terms were not accepted: nothing was fetched")
        try:
            return fetch(plan, downloader, sizes, for_person(settings), overwrite=overwrite).files
        except KeyboardInterrupt:
            _say_what_is_kept(settings, plan)
            raise


def _say_what_is_kept(settings: Settings, plan: Plan) -> None:
    from rich.filesize import decimal

    from searchapp.fetching.fetch import kept_bytes

    if kept := kept_bytes(plan.folder):
        say(settings, f"{decimal(kept)} have arrived and are kept: the same command resumes")


def _show_plan(plan: Plan, downloader: Downloader, sizes: Mapping[Download, int]) -> None:
    """What is about to be fetched, from where, and under which terms: on stderr."""
    from rich.filesize import decimal

    from searchapp.fetching.fetch import kept_bytes

    rows = [(file.path, sizes.get(file.download)) for file in plan.files]
    rows += [(one.download.url.rpartition("/")[2], sizes.get(one.download)) for one in plan.archives]
    facts = [("fetch", _total(rows))]
    if plan.present:
        facts.append(("present", f"{counted(len(plan.present), 'file')}, byte for byte"))
    if kept := kept_bytes(plan.folder):
        facts.append(("kept", f"{decimal(kept)} from an earlier attempt"))
    facts.append(("into", str(plan.folder)))
    addresses = _addresses(without_passwords(downloader.address(one)) for one in plan.downloads)
    facts += [("from", address) for address in addresses]
    facts += [("home", plan.source.page), ("terms", plan.source.terms)]
    console = stderr_console()
    console.print(plan.source.task, style="bold")
    _print_files(console, [(path, size, "") for path, size in _grouped(rows)])
    _print_facts(console, facts)


def _print_source(source: Source, folder: Path, found: Sequence[Found], *, each: bool) -> None:
    """One task of `data list`: on stdout."""
    from rich.text import Text

    console = stdout_console()
    console.print(Text.assemble((source.task, "bold"), "  ", _state(found)))
    rows = [(one.path, one.size if one.size is not None else one.expected) for one in found]
    if each:
        _print_files(console, [(*row, one.state) for row, one in zip(rows, found, strict=True)])
    packed = any("*" in path for path, _size in rows)  # what an archive holds is known when it is there
    files = f"in {counted(len(source.archives), 'archive')}, size unknown" if packed else _total(rows)
    facts = [("files", files), ("folder", str(folder))]
    facts += [("from", address) for address in _addresses(one.url for one in source.downloads())]
    _print_facts(console, [*facts, ("home", source.page), ("terms", source.terms)])


def _print_files(console: Console, rows: Sequence[tuple[str, int | None, str]]) -> None:
    from rich.filesize import decimal

    width = max((len(path) for path, _size, _state in rows), default=0)
    for path, size, state in rows:
        shown = "size unknown" if size is None else decimal(size)
        console.print(f"  {path:<{width}}  {shown:>12}  {state}".rstrip(), soft_wrap=True)


def _print_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    from rich.text import Text

    for name, value in facts:
        # Wrapped here for the indentation; into a pipe no line is, for the console has no width there.
        lines = textwrap.wrap(
            value, max(20, console.width - 11), break_long_words=False, break_on_hyphens=False
        )
        for place, line in enumerate(lines):
            console.print(Text.assemble((f"  {'' if place else name:<9}", "dim"), line), soft_wrap=True)


def _grouped(rows: Sequence[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    """The files with their sizes; those of a folder of many together."""
    grouped: dict[str, list[int | None]] = {}
    folders = Counter(path.rpartition("/")[0] for path, _size in rows)
    for path, size in rows:
        folder = path.rpartition("/")[0]
        many = folder and folders[folder] > SHOWN_ALONE
        grouped.setdefault(f"{folder}/ ({counted(folders[folder], 'file')})" if many else path, []).append(
            size
        )
    return [
        (path, None if None in sizes else sum(size for size in sizes if size is not None))
        for path, sizes in grouped.items()
    ]


def _total(rows: Sequence[tuple[str, int | None]]) -> str:
    from rich.filesize import decimal

    known = [size for _path, size in rows if size is not None]
    unknown = len(rows) - len(known)
    if not known:
        return f"{counted(len(rows), 'file')}, size unknown"
    return f"{counted(len(rows), 'file')}, {decimal(sum(known))}" + (
        f" and {unknown} of unknown size" if unknown else ""
    )


def _addresses(urls: Iterable[str]) -> list[str]:
    """Where files come from: the folders of several, the addresses of single ones."""
    folders: dict[str, list[str]] = {}
    for url in urls:
        folders.setdefault(url.rpartition("/")[0] + "/", []).append(url)
    return [folder if len(of_folder) > 1 else of_folder[0] for folder, of_folder in folders.items()]


def _state(found: Sequence[Found]) -> str:
    states = Counter(one.state for one in found)
    here, changed = len(found) - states["missing"], states["changed"]
    if not here:
        return "nothing yet"
    told = "complete" if here == len(found) else f"{here} of {counted(len(found), 'file')}"
    return f"{told}, {changed} of another size" if changed else told


def _source_json(source: Source, folder: Path, found: Sequence[Found]) -> dict[str, Any]:
    states = Counter(one.state for one in found)
    return {
        "task": source.task,
        "folder": str(folder),
        "complete": not states["missing"] and not states["changed"],
        "page": source.page,
        "terms": source.terms,
        "files": [asdict(one) for one in found],
    }


def _report_check(
    settings: Settings, task: str, folder: Path, found: Sequence[Found], others: Sequence[str]
) -> None:
    """Say what `data verify` has found; files that are not as they should be are an error."""
    again = f"searchapp data get {task}"
    if folder != _fetched_folder(settings, task):
        again += f" --into {shlex.quote(str(folder))}"
    for path in others:
        warn(f"{folder / path} is not one of the official files, but may be read with them")
    unknown = [one.path for one in found if one.state == "unknown"]
    if unknown:
        warn(
            f"{', '.join(unknown)}: not unpacked by searchapp, so there is nothing to compare with: "
            f"`{again}` fetches the archive and compares"
        )
    problems = [
        Problem(str(folder), f"{one.state} file", detail=one.path)
        for one in found
        if one.state in ("missing", "changed")
    ]
    if problems:
        advice = f"`{again}` fetches what is missing, with --overwrite also what has changed"
        raise InvalidFiles(problems, advice)
    intact = sum(one.state == "intact" for one in found)
    say(settings, f"{task}: {counted(intact, 'file')} in {folder}, byte for byte the official ones")
