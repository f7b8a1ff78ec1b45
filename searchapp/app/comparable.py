"""Whether runs can be compared: they rank the same topics over the same documents, and have learned from the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from searchapp.errors import DataError
from searchapp.formats.problems import some
from searchapp.runs import learned
from searchapp.runs.directory import Manifest, StoredRun


def require_comparable(runs: Sequence[StoredRun], *, anyway: bool) -> tuple[str, ...]:
    """What the runs do not share with the first of them, in clauses; nothing where they can be compared.

    Raises:
        DataError: there is something, and nobody wants them to be compared anyway; or they are of several tasks, which
            nothing can be compared of.
    """
    first, *others = runs
    for other in others:
        if (other.manifest.task, bool(other.manifest.task_file)) != (
            first.manifest.task,
            bool(first.manifest.task_file),
        ):
            raise DataError(
                f"{other.path} is a run of {other.manifest.task} and {first.path} one of {first.manifest.task}: name "
                "runs of one task"
            )
    found = tuple(
        f"{one} ({other.path}, {first.path})" for other in others for one in _differing(first, other)
    )
    if found and not anyway:
        more = f", and {len(found) - 1} more of the kind" if len(found) > 1 else ""
        raise DataError(
            f"the runs can't be compared, for {found[0]}{more}: rank again what is out of date, or "
            "compare with --anyway"
        )
    return found


def _differing(first: StoredRun, other: StoredRun) -> Iterator[str]:
    """What differs between two runs of a task, in clauses."""
    one, two = first.manifest, other.manifest
    if one.split != two.split:
        yield f"their splits differ: {two.split} and {one.split}"
    if one.task_file.get("digest") != two.task_file.get("digest"):
        yield f"the task file {Path(two.task_file['path']).name} has changed between them"
    changed = sorted(
        name
        for name in one.data_digests.keys() & two.data_digests.keys()
        if one.data_digests[name] != two.data_digests[name]
    )
    if changed:
        yield f"the data has changed between them: {some(changed)}"
    if one.variant.get("files") != two.variant.get("files"):
        pass  # somebody has chosen to rank with different mappings
    elif one.mapping_digest != two.mapping_digest:
        yield "the index mapping has changed between them, and with it the terms of the documents"
    elif one.index_digest != two.index_digest and not changed:
        yield "the documents that were indexed differ"
    yield from _topics(first, other)
    yield from _judgments(one, two)


def _topics(first: StoredRun, other: StoredRun) -> Iterator[str]:
    topics, others = (
        dict.fromkeys((*(ranking.topic_id for ranking in run.run), *run.manifest.empty))
        for run in (first, other)
    )
    for lacking, there in ((others, topics), (topics, others)):
        without = [topic for topic in there if topic not in lacking]
        if without:
            path = other.path if lacking is others else first.path
            topics_ = "topic" if len(without) == 1 else "topics"
            yield f"{path} has no ranking of {len(without):,} {topics_} of the other: {some(without)}"


def _judgments(one: Manifest, two: Manifest) -> Iterator[str]:
    """What people had judged is known to a run that was made with it: its figures are those of another experiment."""
    known, others = learned.digest(one), learned.digest(two)
    if known == others:
        return
    if known and others:
        yield "they have learned from different judgments"
    else:
        yield "one of them has learned from judgments (rank --with-judgments)"
