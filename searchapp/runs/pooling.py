"""A pool of several runs, as a run directory of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import searchapp
from searchapp.errors import DataError
from searchapp.judging.pool import pool
from searchapp.model import Hits, Ranking, Run
from searchapp.runs import directory
from searchapp.runs.directory import Manifest

TAG = "pool"


def write_pool(runs: Sequence[Path], depth: int, out: Path, *, overwrite: bool = False) -> Manifest:
    """Write the first `depth` documents of several runs as one run, whole or not at all.

    The scores say nothing but the order.

    Raises:
        DataError: the runs are not of one task, split and index, or one of them is not what it should be.
    """
    directory.require_writable(out, overwrite=overwrite)
    started = time.perf_counter()
    stored = [directory.read(path) for path in runs]
    first = stored[0].manifest
    for path, one in zip(runs, stored, strict=True):
        for what in ("task", "split", "index_digest"):
            if getattr(one.manifest, what) != getattr(first, what):
                raise DataError(
                    f"{path} has another {what.replace('_', ' ')} than {runs[0]}: a pool is made of runs that "
                    "rank the same documents for the same topics"
                )
    pooled = pool((one.run for one in stored), depth)
    run = Run(
        TAG,
        tuple(
            Ranking(
                topic, Hits(documents, [float(len(documents) - place) for place in range(len(documents))])
            )
            for topic, documents in pooled.items()
        ),
    )
    manifest = replace(
        first,
        searchapp=searchapp.__version__,
        recipe={
            "name": TAG,
            "depth": depth,
            "runs": [{"tag": one.manifest.tag, "digest": one.manifest.digest} for one in stored],
        },
        depth=max((len(documents) for documents in pooled.values()), default=0),
        tag=TAG,
        topics=len(run),
        hits=sum(map(len, pooled.values())),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.perf_counter() - started, 3),
        files={},
        digest="",
    )
    return directory.write(out, manifest, run, {}, overwrite=overwrite)
