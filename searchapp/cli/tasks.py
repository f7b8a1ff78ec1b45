"""`searchapp tasks` and `data`."""

from __future__ import annotations

import json
import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from searchapp.cli.commands import (
    CommandGroup,
    DataOption,
    JsonOption,
    OverwriteOption,
    SetOption,
    TaskArgument,
    command,
    data_of,
    parameters_of,
)
from searchapp.cli.output import (
    ask,
    for_person,
    print_json,
    say,
    stderr_console,
    stdout_console,
    warn,
    warn_all,
    warn_at_once,
    warn_of_notes,
    warn_of_skipped,
)
from searchapp.config.settings import Settings
from searchapp.engines import open_engine, open_server
from searchapp.errors import DataError, EngineError, InvalidFiles, Problem, SearchappError, UsageError
from searchapp.fetching import sources
from searchapp.files import atomic_file
from searchapp.formats.problems import Problems
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.progress import byte_count
from searchapp.tasks import folders, load, names
from searchapp.text import counted, visible

if TYPE_CHECKING:
    from searchapp.app.index import OwnTask
    from searchapp.cli.output import Console
    from searchapp.fetching.download import Downloader
    from searchapp.fetching.fetch import Plan
    from searchapp.fetching.sources import Download, FileStatus, Source
    from searchapp.tasks.base import Task


app = typer.Typer()

tasks_group = typer.Typer(cls=CommandGroup)
app.add_typer(tasks_group, name="tasks")


@command(tasks_group, of_group=True)
def tasks(settings: Settings, as_json: JsonOption = False) -> None:
    """List your own tasks, then the shared ones, with their splits, recipes, official measures, data and indexes."""
    loaded = [load(name) for name in names()]
    indexed, own_tasks = _indexed(settings, loaded)
    _warn_of_unreadable_folders(settings)
    own_loaded, unreadable = [], []
    for own in own_tasks:
        try:
            task = load(str(own.file))
            own_loaded.append(task)
            indexed[task.reference] = own.documents
        except SearchappError as error:
            unreadable.append({"task": own.name, "file": str(own.file), "indexed": own.documents})
            warn(f"the task {own.name} ({counted(own.documents, 'document')} indexed) can't be read: {error}")
    loaded = [*own_loaded, *loaded]
    if as_json:
        print_json(
            {"tasks": [_task_json(settings, task, indexed) for task in loaded], "unreadable": unreadable}
        )
        return
    for task in loaded:
        _print_task(task.name, task.info.title, _task_facts(settings, task, indexed))


@command(tasks_group)
def show(
    settings: Settings,
    task: TaskArgument,
    recipe: str | None = option(
        "Show the parameters of this recipe for --set, with their values.",
        completes="recipes",
    ),
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show all details of one task, including its recipes, grades, measures and breakdowns."""
    loaded = load(task)
    if recipe is not None or set_:
        _show_recipe(loaded, recipe or loaded.info.default_recipe, set_ or [], as_json=as_json)
        return
    indexed, _own_tasks = _indexed(settings, [loaded])
    _warn_of_unreadable_folders(settings)
    if as_json:
        print_json(
            {
                **_task_json(settings, loaded, indexed),
                "default_recipe": loaded.info.default_recipe,
                "search_recipe": loaded.info.search_recipe,
                "depth": loaded.info.default_depth,
                "judging_depth": loaded.info.judging_depth,
                "grades": list(loaded.info.grades),
                "measures": list(loaded.info.measures),
                "breakdowns": list(loaded.breakdowns),
            }
        )
        return
    _print_task(
        loaded.name, loaded.info.title, [*_task_facts(settings, loaded, indexed), *_more_facts(loaded)]
    )


@command(tasks_group)
def new(
    settings: Settings,
    path: Path = argument("File to write.", default=Path("task.toml")),
    source: str | None = option(
        "A collection in the format of other programs: beir:DIR, trec:DIR, tira:DIR, hub:DIR (a data set of the "
        "Hugging Face hub), irds:ID (of ir_datasets) or parquet:FILE.",
        "--from",
        metavar="SOURCE",
    ),
    documents: list[Path] | None = option(
        "File of documents: JSONL, CSV or TSV, also compressed with gzip, or Parquet; repeatable."
    ),
    topics: Path | None = option("File of topics, in one of these formats."),
    gold: Path | None = option("File of grades: TREC qrels, or one of these formats."),
    header: bool | None = option(
        "Whether tables begin with a line of column names; default: detected, and reported.",
        "--header/--no-header",
    ),
    from_index: str | None = option(
        "Index, alias or pattern of another program on the Elasticsearch server of the settings, which the task "
        "searches without writing to it."
    ),
    name: str | None = option("Name of the task; default: the name of the file."),
    lenient: bool = flag("Leave out entries with problems, and report them, instead of stopping."),
    overwrite: OverwriteOption = False,
) -> None:
    """Write a TOML file that describes your own task, as a starting point.

    The columns are detected from the given files: check the result. --from reads all splits of a collection; what can't
    be read in place, such as SGML, is converted into a folder beside the TOML file. With --from-index, the fields of
    the text are chosen from the index's mapping, which is written beside the task file.
    """
    from searchapp.tasks.own import starter

    if path.suffix.lower() != ".toml":
        raise UsageError(f"{path}: a task file's name must end in .toml")
    if source is not None and documents:
        raise UsageError("--from has the documents: leave out --documents")
    if gold is not None and topics is None:
        raise UsageError("gold needs topics: name their file with --topics")
    of_topics = None if topics is None else starter.detect(topics, header=header)
    of_gold = None if gold is None else starter.detect(gold, gold=True, header=header)
    name = name or starter.name_for(path)
    foreign = None
    mapping_path = path.with_suffix(".mapping.json")
    if from_index is not None:
        if source is not None or documents:
            raise UsageError("--from-index has the documents: leave out --from and --documents")
        if not settings.uses_server:
            raise UsageError(
                "--from-index needs an Elasticsearch server: give its address with --url or SEARCHAPP_URL"
            )
        with closing(open_server(settings)) as engine:
            foreign = starter.IndexedDocuments(from_index, mapping_path.name, engine.read_foreign(from_index))
    if source is None:
        of_documents = [starter.detect(file, header=header) for file in documents or ()]
        splits = {} if of_topics is None else {"dev": (of_topics, of_gold)}
        problems = Problems(lenient=lenient)
        text = starter.task_file_text(path, name, of_documents, splits, problems, foreign)
    else:
        from searchapp.tasks.own.task_sources import read_source

        text, read = read_source(
            source,
            path,
            name,
            for_person(settings),
            topics=of_topics,
            gold=of_gold,
            lenient=lenient,
            overwrite=overwrite,
        )
        of_documents, splits, problems = read.documents, read.splits, read.problems
        warn_all(read.warnings)
        if read.converted.names:
            say(settings, f"converted files into {read.converted.folder}")
    warn_of_skipped(problems.skipped)
    warn_of_notes(problems.notes)
    files = (*of_documents, *(file for of_split in splits.values() for file in of_split))
    for assumption in dict.fromkeys(file.assumed for file in files if file is not None and file.assumed):
        say(settings, assumption)
    if foreign is not None:
        with atomic_file(mapping_path, replace=overwrite) as file:
            file.write(f"{json.dumps(foreign.mapping, indent=2, ensure_ascii=False)}\n".encode())
    with atomic_file(path, replace=overwrite) as file:
        file.write(text.encode())
    if foreign is None:
        say(settings, f"wrote {path}: check it, then run `searchapp index {path}`")
    else:
        say(
            settings, f"wrote {path} and {mapping_path}: check the fields, then run `searchapp search {path}`"
        )


class CollectionFormat(StrEnum):
    """Formats of other programs for documents, topics and gold."""

    beir = "beir"
    trec = "trec"
    tira = "tira"


@command(tasks_group)
def export(
    settings: Settings,
    task: TaskArgument,
    format_: CollectionFormat = option("Format to write.", "--format", default=REQUIRED),
    out: Path = option("Folder to write.", default=REQUIRED),
    split: list[str] | None = option("Only this split; repeatable.", completes="splits"),
    data: DataOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the documents, topics and gold of a task for other programs.

    beir: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv. trec: documents in SGML, topics in XML, qrels. tira:
    documents.jsonl, queries.jsonl, qrels.txt, in a folder for each split if there are several.
    """
    from searchapp.app.export_task import export_task

    loaded = load(task)
    collection = loaded.collection(data_of(settings, loaded, data))
    progress = for_person(settings)
    exported = export_task(
        loaded, collection, format_.value, out, progress, splits=split or (), overwrite=overwrite
    )
    rows = [
        {"split": content.name, "topics": len(content.topics), "judged": len(content.grades)}
        for content in exported.splits
    ]
    warn_all(f"the split {content.name} has no gold" for content in exported.splits if not content.grades)
    said = ", ".join(f"{split.name} ({counted(len(split.topics), 'topic')})" for split in exported.splits)
    say(
        settings,
        f"{loaded.name}: wrote {counted(exported.documents, 'document')} and {said or 'no topics'} to {out}",
    )
    if as_json:
        print_json({"task": loaded.name, "out": str(out), "documents": exported.documents, "splits": rows})


def _show_recipe(task: Task, name: str, set_: list[str], *, as_json: bool) -> None:
    from searchapp.ranking import recipes

    book = task.recipe_book()
    recipe = recipes.load(book, name, parameters_of(set_))
    settable = recipes.settable(book, recipe)
    if as_json:
        parameters = [
            {
                "name": one.name,
                "full_name": one.full,
                "owner": one.of,
                "key": one.key,
                "value": one.value,
                "values": one.kind,
                "about": one.about,
            }
            for one in settable
        ]
        print_json({"task": task.name, "recipe": name, "about": recipe.about, "parameters": parameters})
        return
    rows = [
        (
            parameter.name,
            f"{'(unset)' if parameter.value is None else parameter.value}: {parameter.about} ({parameter.kind})",
        )
        for parameter in settable
    ]
    _print_task(
        f"{task.name}/{name}",
        recipe.about,
        rows or [("settable", "no parameters")],
    )


def _task_json(settings: Settings, task: Task, indexed: Mapping[str, int]) -> dict[str, object]:
    folder, remembered = _data_folder(settings, task)
    return {
        "task": task.name,
        "file": None if task.info.file is None else str(task.info.file),
        "variant": None if task.info.variant is None else str(task.info.variant),
        "title": task.info.title,
        "about": task.info.about,
        "splits": list(task.info.splits),
        "recipes": task.recipe_book().names,
        "mapping": task.info.mapping,
        "official": {"measure": task.info.official_measure, "file": task.info.official_file},
        "data": str(folder),
        "data_found": sources.has_data(folder),
        "data_remembered": remembered,
        "indexed": indexed.get(task.reference),
    }


def _data_folder(settings: Settings, task: Task) -> tuple[Path, bool]:
    with suppress(DataError):
        result = folders.find(task, settings.home)
        return result.path, result.is_remembered
    return folders.own_folder(task, settings.home), False


def _warn_of_unreadable_folders(settings: Settings) -> None:
    try:
        folders.remembered_folders(settings.home)
    except DataError as error:
        warn(str(error))


def _indexed(settings: Settings, tasks: Sequence[Task]) -> tuple[dict[str, int], list[OwnTask]]:
    """Count the indexed documents of each task, and find own tasks; return nothing without an engine."""
    from searchapp.app import index

    try:
        with closing(open_engine(settings)) as engine:
            infos = {
                task.reference: next(
                    filter(None, (index.serving_info(task, engine, name) for name in task.info.index_names)),
                    None,
                )
                for task in tasks
            }
            own_tasks = index.own_tasks(index.stored_versions(engine))
    except EngineError as error:
        warn(str(error))
        return {}, []
    return {name: info.documents if info else 0 for name, info in infos.items()}, own_tasks


# Names and values.
Facts: TypeAlias = Sequence[tuple[str, str]]


def _task_facts(settings: Settings, task: Task, indexed: Mapping[str, int]) -> Facts:
    documents = indexed.get(task.reference)
    state = "unknown" if documents is None else counted(documents, "document") if documents else "no"
    folder, remembered = _data_folder(settings, task)
    data = str(folder)
    if not sources.has_data(folder):
        advice = f"index {task.reference} --data DIR" if remembered else f"data get {task.name}"
        data += f" ({'no longer exists' if remembered else 'missing'}: run searchapp {advice})"
    elif remembered:
        data += " (remembered from `index --data`)"
    return [
        ("splits", " ".join(task.info.splits)),
        ("recipes", " ".join(task.recipe_book().names)),
        ("official", f"{task.info.official_measure}, {task.info.official_file}"),
        *(("file", str(file)) for file in (task.info.file, task.info.variant) if file is not None),
        ("data", data),
        ("indexed", state),
    ]


def _more_facts(task: Task) -> Facts:
    recipes = task.recipe_book().recipes
    grades = enumerate(task.info.grades)
    return [
        ("about", task.info.about),
        ("mapping", task.info.mapping),
        ("depth", f"{task.info.default_depth:,} ranked, {task.info.judging_depth:,} judged"),
        (
            "grades",
            ", ".join(label if label == str(grade) else f"{grade} {label}" for grade, label in grades),
        ),
        ("measures", " ".join(task.info.measures)),
        ("--by", " ".join(task.breakdowns) or "(no breakdowns)"),
        *((name, str(recipes[name].get("about", ""))) for name in sorted(recipes)),
    ]


def _print_task(name: str, title: str, facts: Facts) -> None:
    from rich.text import Text

    console = stdout_console()
    console.print(Text.assemble((visible(name), "bold"), f"  {visible(title)}"), soft_wrap=True)
    _print_facts(console, facts, max(len("official"), *(len(visible(fact)) for fact, _ in facts)))


def _print_facts(console: Console, facts: Facts, width: int) -> None:
    from rich.text import Text

    # Wrapped here because of the indentation; in a pipe the console is too wide to wrap.
    wrapper = textwrap.TextWrapper(
        max(20, console.width - width - 3), break_long_words=False, break_on_hyphens=False
    )
    for name, value in facts:
        for line in wrapper.wrap(visible(value)) or [""]:
            console.print(Text.assemble((f"  {visible(name):<{width}} ", "dim"), line), soft_wrap=True)
            name = ""  # only before the first line


_OfficialTask = Annotated[
    str, argument("Name of a task: see `searchapp data list`.", metavar="TASK", completes="official_tasks")
]

# Longer lists of a folder's files are summarised.
MOST_FILES = 10


data_group = typer.Typer(
    cls=CommandGroup, help="Fetch the official files of the tasks, and check them.", no_args_is_help=True
)
app.add_typer(data_group, name="data")


@command(data_group)
def get(
    settings: Settings,
    task: _OfficialTask,
    out: Path | None = option("Folder for the files; default: data/TASK in the home directory."),
    accept_terms: bool = flag("Accept the terms of the data without a prompt."),
    overwrite: bool = flag("Replace files that are not the official ones."),
    as_json: JsonOption = False,
) -> None:
    """Fetch the official files of a task over the network.

    Sizes, sources and terms are shown first; nothing is fetched before you accept the terms. Every file is checked
    against its digest, and the files appear together after the last one has arrived. An interrupted download resumes.
    SEARCHAPP_DATA_MIRROR sets a mirror, see docs/use/data.md.
    """
    from searchapp.fetching.fetch import make_plan

    folder = out or folders.download_folder(task, settings.home)
    plan = make_plan(sources.load(task), folder, overwrite=overwrite)
    if plan.downloads:
        if not accept_terms and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                f"there is no terminal to accept the terms of the data of {task}: read them with `searchapp "
                f"data list {task}`, and add --accept-terms"
            )
        files = _fetch(settings, plan, accepted=accept_terms, overwrite=overwrite)
        say(settings, f"{task}: fetched {counted(len(files), 'file')} into {folder}")
        if out is None:
            others = ""
            with suppress(DataError):  # fetched files do not need the list of folders
                if folder != _folder_in_use(settings, task):
                    others = f" --data {shlex.quote(str(folder))}"
            say(settings, f"next: searchapp index {task}{others}")
    else:
        files = {}
        say(settings, f"{task}: all official files are already in {folder}")
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
    """List the tasks whose official files can be fetched, with sizes, sources, terms and present files.

    Files are recognized by name and size; `searchapp data verify` compares every byte.
    """
    chosen = [sources.load(name) for name in ([task] if task else sources.names())]
    looked_at = [
        (source, folder, sources.look(source, folder))
        for source in chosen
        for folder in [_folder_in_use(settings, source.task)]
    ]
    if as_json:
        print_json({"tasks": [_source_json(*each) for each in looked_at]})
        return
    for each in looked_at:
        _print_source(*each, lists_files=task is not None)


@command(data_group)
def verify(
    settings: Settings,
    task: _OfficialTask,
    data: Path | None = option("Folder with the task's official files."),
    as_json: JsonOption = False,
) -> None:
    """Check that the files of a task equal the official ones, byte for byte."""
    source, folder = sources.load(task), data or _folder_in_use(settings, task)
    if not sources.has_data(folder):
        raise DataError(f"{folder} has no data of {task}: fetch it with `searchapp data get {task}`")
    files = sources.check(source, folder)
    others = sources.unofficial_files(folder, files)
    if as_json:
        print_json({**_source_json(source, folder, files), "unofficial_files": others})
    _report_files(settings, task, folder, files, others)


def _folder_in_use(settings: Settings, task: str) -> Path:
    """Return the folder of `index --data`, or else the default folder for fetched files."""
    remembered = folders.remembered_folders(settings.home).get(task)
    return remembered or folders.download_folder(task, settings.home)


def _fetch(
    settings: Settings, plan: Plan, *, accepted: bool, overwrite: bool
) -> Mapping[str, Mapping[str, Any]]:
    from searchapp.fetching.download import Downloader
    from searchapp.fetching.fetch import fetch, kept_bytes

    warn_at_once()
    with closing(Downloader(settings.data_mirror, warn)) as downloader:
        sizes = downloader.sizes(plan.downloads)
        if not settings.quiet or not accepted:
            _show_plan(plan, downloader, sizes)
        # Typer's prompt would also write to stdout, which is for results.
        if not accepted and ask("Accept these terms and fetch the files? [y/N] ").lower() not in ("y", "yes"):
            raise SearchappError("terms not accepted: nothing was fetched")
        try:
            return fetch(plan, downloader, sizes, for_person(settings), overwrite=overwrite)
        except KeyboardInterrupt:
            if received := kept_bytes(plan.folder):
                say(settings, f"kept {byte_count(received)}: run the same command again to resume")
            raise


def _show_plan(plan: Plan, downloader: Downloader, sizes: Mapping[Download, int]) -> None:
    from searchapp.fetching.fetch import plan_facts

    console = stderr_console()
    console.print(plan.source.task, style="bold")
    _print_files(console, [(path, size, "") for path, size in _grouped(plan.rows(sizes))])
    _print_facts(console, plan_facts(plan, downloader, sizes), 8)


def _print_source(source: Source, folder: Path, files: Sequence[FileStatus], *, lists_files: bool) -> None:
    from rich.text import Text

    console = stdout_console()
    console.print(Text.assemble((source.task, "bold"), "  ", _state(files)))
    rows = [(file.path, file.expected if file.size is None else file.size, file.state) for file in files]
    if lists_files:
        _print_files(console, rows)
    total = sources.size_words([size for _path, size, _state in rows])
    if any("*" in path for path, _, _ in rows):  # members of an archive that has not been fetched
        total = f"in {counted(len(source.archives), 'archive')}, size unknown"
    facts = [("files", total), ("folder", str(folder))]
    addresses = [download.url for download in source.downloads()]
    _print_facts(console, [*facts, *sources.source_facts(source, addresses)], 8)


def _print_files(console: Console, rows: Sequence[tuple[str, int | None, str]]) -> None:
    width = max((len(path) for path, _, _ in rows), default=0)
    for path, size, state in rows:
        shown = "size unknown" if size is None else byte_count(size)
        console.print(f"  {path:<{width}}  {shown:>12}  {state}".rstrip(), soft_wrap=True)


def _grouped(rows: Sequence[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    """Replace the files of each large folder by one row with their number and total size."""
    grouped: dict[str, list[int | None]] = {}
    numbers = Counter(path.rpartition("/")[0] for path, _ in rows)
    for path, size in rows:
        folder = path.rpartition("/")[0]
        if folder and numbers[folder] > MOST_FILES:
            path = f"{folder}/ ({counted(numbers[folder], 'file')})"
        grouped.setdefault(path, []).append(size)
    return [
        (path, None if None in sizes else sum(size for size in sizes if size is not None))
        for path, sizes in grouped.items()
    ]


def _state(files: Sequence[FileStatus]) -> str:
    states = Counter(file.state for file in files)
    present, changed = len(files) - states["missing"], states["changed"]
    if not present:
        return "not fetched"
    state = "complete" if present == len(files) else f"{present} of {counted(len(files), 'file')}"
    return f"{state}, {changed} of another size" if changed else state


def _source_json(source: Source, folder: Path, files: Sequence[FileStatus]) -> dict[str, Any]:
    return {
        "task": source.task,
        "folder": str(folder),
        "complete": not any(file.state in ("missing", "changed") for file in files),
        "page": source.page,
        "terms": source.terms,
        "files": [asdict(file) for file in files],
    }


def _report_files(
    settings: Settings, task: str, folder: Path, files: Sequence[FileStatus], others: Sequence[str]
) -> None:
    """Report the result of `data verify`.

    Raises:
        InvalidFiles: files are missing or differ.
    """
    again = f"searchapp data get {task}"
    if folder != folders.download_folder(task, settings.home):
        again += f" --out {shlex.quote(str(folder))}"
    for path in others:
        warn(f"{folder / path} is not an official file, but may be read with them")
    unknown = [file.path for file in files if file.state == "unknown"]
    if unknown:
        warn(
            f"{', '.join(unknown)}: searchapp did not unpack these files and can't compare them: `{again}` "
            "fetches the archive and compares"
        )
    problems = [
        Problem(str(folder), f"{file.state} file", detail=file.path)
        for file in files
        if file.state in ("missing", "changed")
    ]
    if problems:
        advice = f"`{again}` fetches missing files, with --overwrite also changed ones"
        raise InvalidFiles(problems, advice)
    intact = sum(file.state == "intact" for file in files)
    say(settings, f"{task}: {counted(intact, 'file')} in {folder} equal the official ones, byte for byte")
