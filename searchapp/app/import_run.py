"""Import a run of another tool as a run directory."""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from searchapp.app.index import index_digest
from searchapp.app.manifests import NewRun, complete_manifest, manifest_of
from searchapp.errors import DataError, UsageError
from searchapp.files import DocumentsDigest, digest_file, digest_json, digest_text
from searchapp.formats import run_files, trec
from searchapp.formats.problems import Problems, shown
from searchapp.formats.run_files import RunRow
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hits, Ranking, Run
from searchapp.progress import Progress
from searchapp.runs import directory
from searchapp.tasks.base import Collection, DataSplit, NoOfficialFile, Task, Writer
from searchapp.text import counted

TAG = "imported"  # the tag of a run whose file has none

MOST_PROBLEMS = 1_000_000  # a small compressed file can repeat a line endlessly

ADVICE = "fix the file, or leave out the invalid lines with --lenient"


@dataclass
class _Topic:
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    locations: dict[str, str] = field(default_factory=dict)  # where each document is in the file


def import_run(
    task: Task,
    collection: Collection,
    split: str,
    file: Path,
    out: Path,
    progress: Progress,
    *,
    format_: str | None = None,
    tag: str | None = None,
    tool: str | None = None,
    lenient: bool = False,
    overwrite: bool = False,
) -> NewRun:
    """Write the run of a split in a file as the run directory `out`, atomically.

    Args:
        task: the task whose documents are ranked
        collection: the topics and documents that the file must rank
        split: the name of the split
        file: the rankings
        out: the new run directory
        progress: receives the stages of the work
        format_: one of `run_files.FORMATS`, detected by default
        tag: by default the first one of the file
        tool: the program that made the run, for the manifest
        lenient: leave out invalid lines
        overwrite: replace the run directory at `out`

    Raises:
        UsageError: the tag is invalid, or the file needs a package that is not installed.
        InvalidFiles: the file has problems, and `lenient` is not set or can't help.
        DataError: no line of the file is valid.
    """
    directory.require_writable(out, overwrite=overwrite)
    problems = Problems(lenient=lenient)
    digest = digest_file(file)
    try:
        format_ = format_ or run_files.format_of(file)
    except OSError as error:
        problems.add_unopened(file, error)
        problems.raise_if_any()
        raise
    rows = run_files.read_rows(file, format_, problems)
    described = {"file": str(file.resolve()), "digest": digest, "format": format_, "tool": tool or ""}
    unsaved = import_rows(task, collection, split, rows, file, described, progress, problems, tag)
    return unsaved.save(out, overwrite=overwrite)


def import_rows(
    task: Task,
    collection: Collection,
    split: str,
    rows: Iterable[RunRow],
    source: Path,
    described: Mapping[str, Any],
    progress: Progress,
    problems: Problems,
    tag: str | None = None,
) -> NewRun:
    """Return the run of a split from rows of a file or data frame.

    Args:
        task: the task whose documents are ranked
        collection: the topics and documents that the rows must rank
        split: the name of the split
        rows: the rankings in any order
        source: the name of their source in messages
        described: the source in the manifest
        progress: receives the stages of the work
        problems: collects invalid rows, which it may allow
        tag: by default the first one of the rows

    Raises:
        as `import_run` does.
    """
    task.info.require_split(split)
    topics = collection.topics(split, Problems(lenient=True))
    if not topics:
        raise DataError(f"{collection.folder}: the split {split} has no topics")
    with progress.stage("reading documents") as advance:
        document_source = collection.indexes[collection.index_of(split)]
        documents_digest, document_problems = DocumentsDigest(), Problems(lenient=True)
        read = documents_digest.watch(document_source.read(document_problems))
        documents = {document.id: digest_text(document.text) for document in read}
        document_problems.raise_if_any()
        advance(len(documents))
    known = [topic.id for topic in topics]
    with progress.stage("reading the run") as advance:
        rankings, tags, lines = _read(source, rows, set(known), documents, problems)
        advance(lines)
    problems.raise_if_any(ADVICE)
    if not rankings:
        raise DataError(f"{source}: the file ranks no topic of {task.name} {split}: check --task and --split")
    _note_topics(task, source, split, known, rankings, problems)
    tag = _tag(source, tag, tags, problems)
    ordered = {
        topic: _rank_documents(source, topic, rankings[topic], problems)
        for topic in known
        if topic in rankings
    }
    run = Run(tag, tuple(Ranking(topic, hits) for topic, hits in ordered.items()))
    official: Mapping[str, Writer] = {}
    shortfall = None
    try:
        official = task.official.files(run, DataSplit(collection, split))
    except (NoOfficialFile, ValueError) as error:  # ValueError: ids are not numbers
        shortfall = str(error)
    mapping = task.index_mapping()
    manifest = manifest_of(
        task,
        collection,
        split,
        [*document_source.files, *collection.split_files(split)],
        (digest_json(mapping), index_digest(mapping, documents_digest)),
    )
    manifest = replace(
        manifest,
        depth=max(len(ranking.hits) for ranking in run),
        tag=tag,
        imported={**described, "skipped": len(problems)},
    )
    ranked = {document: documents[document] for ranking in run for document in ranking.hits.document_ids}
    return NewRun(
        complete_manifest(manifest, run), run, problems, official, shortfall, lambda: ranked, topics
    )


def _read(
    file: Path, rows: Iterable[RunRow], topics: Ids[str], documents: Ids[str], problems: Problems
) -> tuple[dict[str, _Topic], dict[str, None], int]:
    topics_read: dict[str, _Topic] = {}
    tags: dict[str, None] = {}
    lines = 0
    for row in rows:
        lines += 1
        if len(problems) > MOST_PROBLEMS:
            raise DataError(
                f"{file}: {row.where}: more than {MOST_PROBLEMS:,} problems; the first is {next(iter(problems))}"
            )
        if row.topic not in topics:
            problems.add(file, "unknown topic", row.where, shown(row.topic))
            continue
        if row.document not in documents:
            problems.add(
                file, "unknown document", row.where, f"{shown(row.document)} of topic {shown(row.topic)}"
            )
            continue
        topic = topics_read.setdefault(row.topic, _Topic())
        if row.document in topic.scores:
            first = topic.locations[row.document]
            detail = f"{shown(row.document)} of topic {shown(row.topic)} is also on {first}"
            problems.add(file, "duplicate document", row.where, detail)
            continue
        if row.tag:
            tags.setdefault(row.tag)
        topic.locations[row.document] = row.where
        if row.rank is not None:
            topic.ranks[row.document] = row.rank
        topic.scores[row.document] = row.order_score
    return topics_read, tags, lines


def _note_topics(
    task: Task, file: Path, split: str, known: Sequence[str], read: Ids[str], problems: Problems
) -> None:
    missing = [topic for topic in known if topic not in read]
    if missing:
        have, they = ("has", "it counts as 0") if len(missing) == 1 else ("have", "they count as 0")
        some = ", ".join(map(shown, missing[:3])) + (", ..." if len(missing) > 3 else "")
        problems.note(
            file,
            "missing topics",
            detail=f"{len(missing):,} of the {counted(len(known), 'topic')} of {task.name} {split} {have} no "
            f"ranking ({some}): "
            f"{they}, or the official scorer rejects the run",
        )


def _tag(file: Path, given: str | None, tags: Mapping[str, None], problems: Problems) -> str:
    """Return the run's tag: the given one, or the first of the file.

    Raises:
        UsageError: the given one is invalid.
    """
    if given is not None and given.split() != [given]:
        raise UsageError(f"the tag {given!r} is empty or contains white space: choose another with --tag")
    if given is None and len(tags) > 1:
        names = ", ".join(map(shown, list(tags)[:3]))
        problems.note(
            file,
            "several tags",
            detail=f"the file has {len(tags)} tags ({names}); the run gets the first",
        )
    named = given or next(iter(tags), TAG)
    return named if named.split() == [named] else "-".join(named.split())


def _rank_documents(file: Path, topic_id: str, topic: _Topic, problems: Problems) -> Hits:
    """Return the documents of a topic, best first; note different ranks in the file."""
    scores = topic.scores
    documents = trec.by_score(scores)
    by_rank = list(_by_rank(topic))
    if len(by_rank) == len(documents) and by_rank != documents:
        rising = next((pair for pair in pairwise(by_rank) if scores[pair[1]] > scores[pair[0]]), None)
        if rising is not None:
            earlier, later = rising
            where = topic.locations[later]
            if topic.ranks:
                kind, subject = "ranks against the scores", f"rank {topic.ranks[later]}"
                other = f"rank {topic.ranks[earlier]}"
            else:
                kind, subject, other = "unsorted lines", "it", topic.locations[earlier]
            detail = (
                f"topic {shown(topic_id)}: {subject} has a higher score than {other}; the scores determine "
                "the order"
            )
            problems.note(file, kind, where, detail)
        else:
            index = next(index for index, document in enumerate(documents) if document != by_rank[index])
            detail = (
                f"topic {shown(topic_id)} has documents with equal scores; they are ordered by descending id"
            )
            problems.note(file, "equal scores", topic.locations[by_rank[index]], detail)
    return Hits(documents, [scores[document] for document in documents])


def _by_rank(topic: _Topic) -> Iterator[str]:
    if len(topic.ranks) == len(topic.scores):
        yield from sorted(topic.ranks, key=lambda document: topic.ranks[document])
    else:
        yield from topic.scores
