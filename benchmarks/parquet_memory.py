"""Measure time and peak memory of making a task of a Parquet file, and of reading, indexing and searching it.

    python benchmarks/parquet_memory.py [--rows 10000 100000 1000000]

Documents have ids, titles and 40 words drawn from 50,000 with a fixed seed. All rows of a file are in one row group,
the worst case for a reader that keeps a row group in memory. Each step is a process of its own; its peak is that of the
largest process that it starts. *read* goes through all documents of the task, as `index` does before it indexes.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from usage import make_parser, run_measured

WORDS, LENGTH, SEED, BATCH = 50_000, 40, 20260101, 20_000
LIMIT_MIB = 500

READ = "import searchapp, sys; print(sum(1 for _ in searchapp.task(sys.argv[1]).documents()))"


def texts() -> Iterator[str]:
    """Yield texts of words with frequencies of Zipf's law."""
    generator = random.Random(SEED)
    words = [f"w{number:x}" for number in range(WORDS)]
    weights = [1 / (rank + 1) for rank in range(WORDS)]
    while True:
        drawn = generator.choices(words, weights, k=LENGTH * BATCH)
        for start in range(0, len(drawn), LENGTH):
            yield " ".join(drawn[start : start + LENGTH])


def write(path: Path, rows: int) -> None:
    """Write a file with one row group, which pyarrow keeps in memory until it is complete."""
    from pyarrow import array, parquet, table

    source = texts()
    columns = {
        "id": array([f"d{number}" for number in range(rows)]),
        "title": array([f"title {number % 1000}" for number in range(rows)]),
        "text": array([next(source) for _ in range(rows)]),
    }
    parquet.write_table(table(columns), path, row_group_size=rows)


def main() -> int:
    """Print a row for each size; return 1 if reading or indexing took more than the limit."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--write", type=Path, help="only write a file")
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write, *arguments.rows)
        return 0
    steps = ("tasks new", "read", "index", "search")
    print(f"| rows | file, MB | {' | '.join(f'{step}, s | MiB' for step in steps)} |")
    print(f"|---:|---:|{'---:|---:|' * len(steps)}")
    highest = 0.0
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            file, task = folder / "documents.parquet", folder / "task.toml"
            # In a process of its own, because the peak of a process includes that of the one that starts it.
            run_measured([sys.executable, __file__, "--write", file, "--rows", rows])
            program = [sys.executable, "-m", "searchapp", "--quiet", "--home", folder / "home"]
            usages = [
                run_measured(command, stdout=-3, stderr=-3)
                for command in (
                    [*program, "tasks", "new", task, "--from", f"parquet:{file}"],
                    [sys.executable, "-c", READ, task],
                    [*program, "index", task],
                    [*program, "search", task, "w1 w20 w300", "--json"],
                )
            ]
            cells = [f"{usage.seconds:.1f} | {usage.mib:.0f}" for usage in usages]
            print(f"| {rows:,} | {file.stat().st_size / 1e6:.0f} | {' | '.join(cells)} |", flush=True)
            highest = max(highest, usages[1].mib, usages[2].mib)
    return int(highest > LIMIT_MIB)


if __name__ == "__main__":
    sys.exit(main())
