"""Make own tasks of collections in the formats of other programs: `tasks new --from SOURCE`.

Each function in `SOURCES` finds documents, and topics and gold by split. Files that `records` can read (JSONL, CSV,
TSV, Parquet) and qrels stay where they are, and the task file names them. SGML, XML, data sets of ir_datasets, and
topics or gold in several files are converted to JSONL and qrels in a folder beside the task file.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from searchapp.errors import DataError, InvalidFiles, SearchappError, UsageError
from searchapp.files import atomic_folder, require_place
from searchapp.formats import records, trec_collections
from searchapp.formats.encoding import open_unpacked, read_utf8, write_gzip
from searchapp.formats.problems import Problems, shown, some, unusable_id
from searchapp.formats.records import Record, json_line
from searchapp.formats.trec import write_qrels
from searchapp.formats.trec_collections import TrecContent
from searchapp.lucene.dataclass import dataclass
from searchapp.progress import Progress
from searchapp.resources import install_command
from searchapp.tasks.own import starter, task_file
from searchapp.tasks.own.starter import DetectedFile

IRDS = "irds"  # the extra with ir_datasets

SPLIT = "test"  # the name of a split whose files have none

# The keys of converted documents and topics.
ID, TITLE, TEXT = "id", "title", "text"

Values = Mapping[str, Any]


class ConvertedFiles:
    """Writes converted files into a folder, which appears when all of them are complete."""

    def __init__(self, stack: ExitStack, folder: Path, progress: Progress, *, overwrite: bool) -> None:
        self.folder = folder
        self.progress = progress
        self.names: list[str] = []
        self._stack = stack
        self._overwrite = overwrite
        self._temporary: Path | None = None

    def _place(self, name: str) -> Path:
        if name in self.names:
            raise DataError(f"two files would be converted to {self.folder / name}: rename one of them")
        self.names.append(name)
        if self._temporary is None:
            self._temporary = self._stack.enter_context(atomic_folder(self.folder, replace=self._overwrite))
        return self._temporary / name

    def documents(self, values: Iterable[Values]) -> DetectedFile:
        name = "documents.jsonl.gz"
        with (
            write_gzip(self._place(name)) as file,
            self.progress.stage("converting documents") as advance,
        ):
            for document in values:
                advance(1)
                file.write(json_line({key: document[key] for key in (ID, TITLE, TEXT)}))
        return DetectedFile(self.folder / name, "jsonl", (ID, TITLE, TEXT), (), fields=(TITLE,))

    def topics(self, split: str, values: Sequence[Values]) -> DetectedFile | None:
        """Write topics with id, text and further keys, which all of them have."""
        if not values:
            return None
        name = f"{split}.topics.jsonl"
        self._place(name).write_bytes(b"".join(map(json_line, values)))
        columns = tuple(values[0])
        return DetectedFile(
            self.folder / name,
            "jsonl",
            columns,
            (),
            fields=tuple(key for key in columns if key not in (ID, TEXT)),
        )

    def gold(self, split: str, grades: Mapping[str, Mapping[str, int]]) -> DetectedFile:
        name = f"{split}.qrels"
        with self._place(name).open("wb") as file:
            write_qrels(file, grades)
        return DetectedFile(self.folder / name, task_file.TREC, (), ())

    def merged(self, name: str, files: Sequence[DetectedFile], problems: Problems) -> DetectedFile:
        """Write the records of several files with the same columns into one."""
        name = f"{name}.jsonl"
        with self._place(name).open("wb") as target:
            for file in files:
                for record in records.read_records(file.path, file.format, problems, columns=file.names):
                    target.write(json_line(record.values))
        return replace(files[0], path=self.folder / name, format="jsonl", header=True)


@dataclass
class TaskSource:
    """The files that a source has, and what users should know about them."""

    problems: Problems
    converted: ConvertedFiles
    documents: list[DetectedFile] = field(default_factory=list)
    splits: dict[str, tuple[DetectedFile, DetectedFile | None]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def detect(self, path: Path, *, gold: bool = False, required: bool = True) -> DetectedFile | None:
        """Detect the layout of a file that stays where it is; report its problems and return None."""
        try:
            file = starter.detect(path, gold=gold, lenient=True)  # `index` reports its entries
            if gold:
                starter.grade_layout(file)  # for its error
            else:
                starter.id_and_text(file)
            return file
        except InvalidFiles as error:
            for problem in error.problems:
                self.problems.add(problem.file, problem.kind, problem.where, problem.detail, skippable=False)
        except UsageError as error:
            if required:
                self.problems.add(path, "unusable file", detail=str(error), skippable=False)
            else:
                self.warnings.append(f"left out: {error}")
        return None

    def add_documents(self, paths: Iterable[Path]) -> None:
        self.documents += [starter.with_title(file) for file in map(self.detect, paths) if file]

    def add_split(self, split: str, topics: DetectedFile | None, gold: DetectedFile | None) -> None:
        if topics is None:
            return
        if split in self.splits:
            detail = f"two files are of the split {split}: rename one of them"
            self.problems.add(topics.path, "duplicate split", detail=detail, skippable=False)
        self.splits[split] = topics, gold

    def lacks(self, folder: Path, *names: str) -> None:
        detail = f"{' or '.join(names)} is expected in the folder {folder.absolute()}"
        self.problems.add(folder / names[0], "missing file", detail=detail, skippable=False)


def read_source(
    source: str,
    target: Path,
    name: str,
    progress: Progress,
    *,
    topics: DetectedFile | None = None,
    gold: DetectedFile | None = None,
    lenient: bool = False,
    overwrite: bool = False,
) -> tuple[str, TaskSource]:
    """Return the content of a task file, and the source's files; convert those that can't be read in place.

    Args:
        source: a key of `SOURCES`, a colon, and a path or name
        target: the path of the task file
        name: the name of the task
        progress: receives the converted documents
        topics: the topics of a source that has none
        gold: the gold of these topics
        lenient: leave out entries with problems
        overwrite: replace converted files

    Raises:
        UsageError: the source is unknown, its package is not installed, or files would be replaced.
        InvalidFiles: files are missing, or have problems.
    """
    kind, _, place = source.partition(":")
    if kind not in SOURCES or not place:
        kinds = ", ".join(f"{kind}:{what}" for kind, (what, _read) in SOURCES.items())
        raise UsageError(f"unknown source {source!r}: name one of {kinds}")
    require_place(target, replace=overwrite)
    folder = target.absolute().with_name(f"{target.stem}-converted")
    problems, existed = Problems(lenient=lenient), folder.exists()
    with ExitStack() as stack:
        read = TaskSource(problems, ConvertedFiles(stack, folder, progress, overwrite=overwrite))
        SOURCES[kind][1](place, read)
        if topics is not None and read.splits:
            raise UsageError(f"{source} has topics of its own: leave out --topics and --gold")
        if topics is not None:
            read.splits["dev"] = topics, gold
        problems.raise_if_any("" if problems.stopped else starter.LENIENT)
    read.warnings += [
        f"the split {split} has no qrels: its runs can't be evaluated"
        for split, (_topics, gold_of_split) in read.splits.items()
        if gold_of_split is None
    ]
    if not read.splits:
        read.warnings.append("there are no topics: name their file in [topics.NAME] of the task file")
    try:
        text = starter.task_file_text(target, name, read.documents, read.splits, problems)
    except SearchappError:
        if read.converted.names and not existed:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return text, read


# Words in names of files that say what they contain, and not which split.
_KINDS = {
    "topics",
    "topic",
    "queries",
    "query",
    "qrels",
    "qrel",
    "trec",
    *("txt", "tsv", "csv", "xml", "jsonl", "gz"),
}


def split_name(name: str, folder: str = "") -> str:
    """Return a name for the split of a file.

    >>> split_name("topics.401-450.txt"), split_name("qrels.dev.tsv"), split_name("topics.txt", "train")
    ('topics-401-450', 'dev', 'train')
    """
    words = [word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in _KINDS]
    if not words:
        return split_name(folder) if folder else SPLIT
    joined = "-".join(words)
    return joined if joined[0].isalpha() else f"topics-{joined}"


def _folder(place: str) -> Path:
    if not Path(place).is_dir():
        raise DataError(f"{place}: there is no such folder")
    return Path(place)


def _existing(folder: Path, *names: str) -> Path | None:
    """Return the first existing file of these names, also compressed."""
    paths = (folder / f"{name}{suffix}" for name in names for suffix in ("", ".gz"))
    return next((path for path in paths if path.is_file()), None)


def _distinct(found: Iterable[tuple[Path | str, Record]], problems: Problems) -> Iterator[dict[str, Any]]:
    """Yield the values of records; report repeated ids."""
    seen: set[str] = set()
    for file, (where, values) in found:
        if values[ID] in seen:
            problems.add(file, "duplicate id", where, f"{shown(values[ID])}; the first one counts")
        else:
            seen.add(values[ID])
            yield values


def beir(place: str, source: TaskSource) -> None:
    """Find `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv` in a folder."""
    folder = _folder(place)
    corpus, queries = _existing(folder, "corpus.jsonl"), _existing(folder, "queries.jsonl")
    if corpus is None:
        source.lacks(folder, "corpus.jsonl", "corpus.jsonl.gz")
    else:
        source.add_documents([corpus])
    topics = None
    if queries is None:
        source.lacks(folder, "queries.jsonl", "queries.jsonl.gz")
    else:
        topics = source.detect(queries)
    qrels = sorted(path for path in (folder / "qrels").glob("*.tsv*") if path.is_file())
    for path in qrels:
        source.add_split(split_name(path.name), topics, source.detect(path, gold=True))
    if not qrels:
        source.add_split(SPLIT, topics, None)


def trec(place: str, source: TaskSource) -> None:
    """Find documents, topics and qrels in a folder and its subfolders by their contents."""
    folder = _folder(place)
    documents: list[Path] = []
    topics: list[Path] = []
    qrels: list[Path] = []
    others: list[str] = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        try:
            with open_unpacked(path) as file:
                head = file.head
        except OSError as error:
            source.problems.add_unopened(path, error)
            continue
        content = trec_collections.content_of(head)
        lines = head.decode(errors="replace").removeprefix("\ufeff").strip().splitlines()
        if content is TrecContent.documents:
            documents.append(path)
        elif content is TrecContent.topics:
            topics.append(path)
        elif lines and starter.QRELS_LINE.fullmatch(lines[0]):
            qrels.append(path)
        else:
            others.append(str(path.relative_to(folder)))
    if others:
        source.warnings.append(f"not read, because they have no documents, topics or qrels: {some(others)}")
    if documents:
        found = (
            (path, record)
            for path in documents
            for record in trec_collections.read_documents(path, source.problems)
        )
        source.documents.append(source.converted.documents(_distinct(found, source.problems)))
    else:
        detail = "no file has an element <DOC>"
        source.problems.add(folder, "missing documents", detail=detail, skippable=False)
    _pair(folder, topics, qrels, source)


def _pair(folder: Path, topics: Sequence[Path], qrels: Sequence[Path], source: TaskSource) -> None:
    """Make splits of files of topics and of the qrels with the most of their topics."""
    read = {path: [*map(dict, (r.values for r in _topics(path, source)))] for path in topics}
    golds: dict[Path, list[Path]] = {path: [] for path in topics}
    for gold in qrels:
        judged = _judged_topics(gold)
        for values in (values for of_file in read.values() for values in of_file):
            # Old topics have numbers such as 051, and their qrels 51.
            if values[ID] not in judged and values[ID].lstrip("0") in judged:
                values[ID] = values[ID].lstrip("0")
        shared = {path: sum(values[ID] in judged for values in of_file) for path, of_file in read.items()}
        best = max(shared, key=lambda path: shared[path], default=None)
        if best is not None and shared[best]:
            golds[best].append(gold)
        else:
            source.warnings.append(f"left out, because it has no topic of a file of topics: {gold}")
    for path, of_file in read.items():
        name = _split_of(folder, path)
        file = source.converted.topics(name, of_file)
        if len(golds[path]) < 2:
            source.add_split(name, file, next((source.detect(gold, gold=True) for gold in golds[path]), None))
            continue
        for gold in golds[path]:
            source.add_split(_split_of(folder, gold), file, source.detect(gold, gold=True))


def _topics(path: Path, source: TaskSource) -> list[Record]:
    return trec_collections.read_topics(path, source.problems)


def _judged_topics(gold: Path) -> set[str]:
    layout = task_file.GradeLayout(task_file.TREC)
    grades = task_file.read_grades(gold, layout, Problems(lenient=True), starter.MAX_GRADE)
    return {grade.topic for grade in grades}


def _split_of(folder: Path, path: Path) -> str:
    return split_name(path.name, path.parent.name if path.parent != folder else "")


def tira(place: str, source: TaskSource) -> None:
    """Find `documents.jsonl`, and `queries.jsonl` (or `.xml`) and `qrels.txt`, there or in a folder for each split."""
    folder = _folder(place)
    documents = _existing(folder, "documents.jsonl", "corpus.jsonl")
    if documents is None:
        source.lacks(folder, "documents.jsonl", "corpus.jsonl.gz")
    else:
        source.add_documents([documents])
    for place_of_split in [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]:
        split = SPLIT if place_of_split == folder else split_name(place_of_split.name)
        queries = _existing(place_of_split, "queries.jsonl", "queries.xml")
        qrels = _existing(place_of_split, "qrels.txt")
        if queries is None:
            continue
        topics = (
            source.detect(queries)
            if records.format_of(queries)
            else source.converted.topics(split, [record.values for record in _topics(queries, source)])
        )
        source.add_split(split, topics, None if qrels is None else source.detect(qrels, gold=True))
    if not source.splits:
        source.lacks(folder, "queries.jsonl", "queries.xml")


def hub(place: str, source: TaskSource) -> None:
    """Find the configurations `corpus`, `queries` and of qrels in a folder of the Hugging Face hub."""
    place, _, prefix = place.partition("#")
    folder = _folder(place)
    configs = _configs(folder, source.problems)
    if prefix:
        configs = {
            name: files for name, files in configs.items() if re.match(rf"{re.escape(prefix)}(?!\w)", name)
        }
    corpora = [name for name in configs if re.search("corpus|documents", name)]
    queries = [name for name in configs if re.search("quer|topics", name)]
    for noun, names in (("corpus", corpora), ("queries", queries)):
        if len(names) != 1:
            several = f"it has {', '.join(names)}: choose with hub:{place}#PREFIX, the beginning of the names"
            detail = several if names else f"it has {some(list(configs)) or 'no data files'}"
            source.problems.add(folder, f"no single configuration {noun}", detail=detail, skippable=False)
    if len(corpora) != 1 or len(queries) != 1:
        return
    source.add_documents(path for paths in configs[corpora[0]].values() for path in paths)
    topics = {
        split: _merged(f"{split_name(split)}.topics", paths, source)
        for split, paths in configs[queries[0]].items()
    }
    for config in configs:
        for split, paths in configs[config].items() if config not in (*corpora, *queries) else ():
            of_split = topics.get(split) or next(iter(topics.values()))
            if gold := _merged(f"{split_name(split)}.gold", paths, source, gold=True):
                source.add_split(split_name(split), of_split, gold)
    if not source.splits:
        for split, file in topics.items():
            source.add_split(SPLIT if len(topics) == 1 else split_name(split), file, None)


def _merged(
    name: str, paths: Sequence[Path], source: TaskSource, *, gold: bool = False
) -> DetectedFile | None:
    # Besides qrels, a data set may have other configurations, such as candidates to rank again.
    files = [file for path in paths if (file := source.detect(path, gold=gold, required=not gold))]
    if len(files) < 2:
        return files[0] if files else None
    return source.converted.merged(name, files, source.problems)


_HUB_KEY = re.compile(r"\s*(-\s+)?(?:(config_name|split|path|data_files):\s*)?(.*?)\s*")


def _configs(folder: Path, problems: Problems) -> dict[str, dict[str, list[Path]]]:
    """Return the files of each split of each configuration, by README.md, else by the names of folders and files."""
    configs: dict[str, dict[str, list[Path]]] = {}
    readme = folder / "README.md"
    for config, split, pattern in _patterns(readme, problems) if readme.exists() else ():
        paths: list[Path] = []
        if ".." not in Path(pattern).parts:
            with suppress(ValueError, NotImplementedError):  # an invalid pattern, or an absolute path
                paths = sorted(path for path in folder.glob(pattern) if path.is_file())
        if not paths:
            detail = f"{shown(config)} needs {shown(pattern)} in the folder {folder.absolute()}"
            problems.add(readme, "missing file", detail=detail, skippable=False)
        configs.setdefault(config, {}).setdefault(split, []).extend(paths)
    if configs:
        return configs
    for path in sorted(folder.rglob("*")):
        if path.is_file() and records.format_of(path):
            stem = re.sub(r"-\d+-of-\d+$", "", path.name.removesuffix(".gz").rpartition(".")[0])
            config = stem if path.parent == folder else path.parent.name
            configs.setdefault(config, {}).setdefault(stem, []).append(path)
    return configs


def _patterns(readme: Path, problems: Problems) -> Iterator[tuple[str, str, str]]:
    """Yield configuration, split and pattern of each `data_files` in the YAML at the beginning of a README."""
    text = read_utf8(readme, problems) or ""
    front = re.match(r"\ufeff?---\r?\n(.*?)\r?\n---", text, re.S)
    config, last, items = "default", "", list[tuple[str, dict[str, list[str]]]]()
    for line in front[1].splitlines() if front else ():
        match = _HUB_KEY.fullmatch(line)
        assert match is not None
        begins, key, value = match[1], match[2] or "", match[3].strip("'\"")
        if key == "config_name":
            config = value
        elif key in ("split", "path"):
            if begins or not items:
                items.append((config, {"split": [], "path": []}))
            items[-1][1][key] += [value] if value else []
        elif value and (key == "data_files" or (begins and last == "data_files")):
            items.append((config, {"split": [], "path": [value]}))
        elif begins and value and last == "path":
            items[-1][1]["path"].append(value)
        last = key or (last if begins else "")
    for config_of_item, item in items:
        for pattern in item["path"]:
            yield config_of_item, "".join(item["split"]) or config_of_item, pattern


def irds(place: str, source: TaskSource) -> None:
    """Convert a data set of ir_datasets, or one with a data set for each split."""
    try:
        import ir_datasets
    except ImportError as error:
        raise UsageError(
            f"{IRDS}:{place} requires the package ir_datasets: install it with `{install_command(IRDS)}`"
        ) from error
    try:
        whole = ir_datasets.load(place)
    except KeyError as error:
        raise UsageError(f"ir_datasets has no data set {place!r}") from error
    children = [name for name in ir_datasets.registry if re.fullmatch(rf"{re.escape(place)}/[^/]+", name)]
    names = [place] if whole.has_queries() and whole.has_qrels() else sorted(children)
    if not whole.has_docs():
        raise UsageError(f"the data set {place} of ir_datasets has no documents: name another one")
    try:
        found = ((place, _irds_document(document, place, source.problems)) for document in whole.docs_iter())
        known = ((place, record) for _place, record in found if record is not None)
        source.documents.append(source.converted.documents(_distinct(known, source.problems)))
        for name in names:
            part = ir_datasets.load(name)
            if part.has_queries() and part.has_qrels():
                split = split_name(name.rpartition("/")[2] if "/" in name else SPLIT)
                topics = source.converted.topics(split, _irds_topics(part, name, source.problems))
                source.add_split(split, topics, source.converted.gold(split, part.qrels_dict()))
    except SearchappError:
        raise
    except Exception as error:  # ir_datasets, its downloads and a data set's own code raise any error
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"ir_datasets can't read {place}: {reason}") from error


def _irds_id(id_: str, name: str, noun: str, problems: Problems) -> bool:
    if problem := unusable_id(id_):
        problems.add(name, problem[0], f"{noun} {shown(id_)}", problem[1])
    return problem is None


def _irds_document(document: Any, name: str, problems: Problems) -> Record | None:
    if not _irds_id(document.doc_id, name, "document", problems):
        return None
    title = str(getattr(document, TITLE, None) or "").strip()
    text = document.default_text().removeprefix(title).strip()
    if title or text:
        return Record(f"document {shown(document.doc_id)}", {ID: document.doc_id, TITLE: title, TEXT: text})
    problems.add(name, "blank text", f"document {shown(document.doc_id)}", "it has neither title nor text")
    return None


def _irds_topics(part: Any, name: str, problems: Problems) -> list[dict[str, str]]:
    topics = []
    for query in part.queries_iter():
        if _irds_id(query.query_id, name, "topic", problems):
            text = query.default_text()
            others = {
                key: value for key, value in query._asdict().items() if value != text and key != "query_id"
            }
            topics.append({ID: query.query_id, TEXT: text, **others})
    keys = dict.fromkeys(key for topic in topics for key, value in topic.items() if isinstance(value, str))
    return [{key: topic.get(key) or "" for key in keys} for topic in topics]


def parquet(place: str, source: TaskSource) -> None:
    """Take the documents of a Parquet file, or of all in a folder."""
    path = Path(place)
    paths = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not paths:
        source.lacks(path, "a file that ends in .parquet")
    source.add_documents(paths)


# What follows the colon, and the function that reads it.
SOURCES: Mapping[str, tuple[str, Callable[[str, TaskSource], None]]] = {
    "beir": ("DIR", beir),
    "irds": ("ID", irds),
    "trec": ("DIR", trec),
    "tira": ("DIR", tira),
    "hub": ("DIR", hub),
    "parquet": ("FILE", parquet),
}
