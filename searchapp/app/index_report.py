"""What indexing came to, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from searchapp.app.index import IndexOutcome
from searchapp.digests import data_name
from searchapp.tasks.base import Collection, Task


def sentences(task: Task, collection: Collection, outcome: IndexOutcome) -> Iterator[str]:
    """What indexing came to: what serves now, what was removed, and what can't be ranked."""
    data = collection.folder
    for index in outcome.indexes:
        info = index.info
        if index.note:
            yield f"note: {index.note}"
        if index.built:
            parts = f" ({index.carried:,} taken over, {index.analyzed:,} analyzed)" if index.carried else ""
            yield f"{task.name}: {info.documents:,} documents are indexed{parts} and serve as {info.version}"
        else:
            yield (
                f"{task.name}: nothing has changed, {info.version} with {info.documents:,} documents still serves"
            )
    for name in outcome.removed:
        yield f"{task.name}: the index {name} is removed, because {data} has no files of its splits"
    if outcome.missing:
        names = ", ".join(data_name(data, file) for file in outcome.missing)
        lost = [
            split
            for split in task.info.splits
            if any(file in outcome.missing for file in collection.split_files(split))
        ]
        can_not = f"the {'split' if len(lost) == 1 else 'splits'} {', '.join(lost)} can't be ranked"
        if any(
            file in outcome.missing for split in task.info.splits for file in collection.example_files(split)
        ):
            can_not += ", nor any other by a recipe that learns from solved topics"
        yield f"note: {data} has no {names}: {can_not}"
