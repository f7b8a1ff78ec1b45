"""Index a million documents on one Elasticsearch node, and on three nodes with 3 shards and 1 replica.

    python benchmarks/cluster.py --data DIR [--documents 1000000] [--heap 512m] [--only one|three]

The documents are those of `growth.py`, as an own task in JSON lines with 200 topics. `searchapp index` runs as a
separate process, on three nodes with `--shards 3 --replicas 1`; its peak memory is that of the operating system. Then
`searchapp rank` ranks the topics to depth 100, and the two runs are compared byte by byte. The nodes run on this
machine and share its processors and disk.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from growth import QUERIES, Generator  # noqa: E402
from usage import make_parser, run_measured  # noqa: E402

from tests.server.cluster import Cluster  # noqa: E402
from tests.server.node import Node  # noqa: E402
from tests.server.rest import Server  # noqa: E402

TASK = """
name = "growth"
depth = 100

[documents]
file = "documents.jsonl"
id = "id"
text = "text"

[topics.dev]
file = "topics.jsonl"
id = "id"
text = "text"
"""

SEARCHAPP = (sys.executable, "-m", "searchapp")
OPTIONS = {"one": [], "three": ["--shards", "3", "--replicas", "1"]}


def write_task(folder: Path, data: Path, count: int) -> Path:
    """Write a task with this number of documents; return its file. Drawing them is not measured."""
    generator = Generator(data)
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
        for document in generator.documents(count):
            file.write(json.dumps({"id": document.id, "text": document.text}) + "\n")
    with (folder / "topics.jsonl").open("w", encoding="utf-8") as file:
        for number, text in enumerate(generator.queries(QUERIES)):
            file.write(json.dumps({"id": f"q{number}", "text": text}) + "\n")
    task = folder / "growth.toml"
    task.write_text(TASK, encoding="utf-8")
    return task


@contextmanager
def nodes(cluster_size: str, heap: str) -> Iterator[Server]:
    """Start one node or a cluster of three."""
    if cluster_size == "one":
        with Node(heap=heap) as node:
            yield node.server
    else:
        with Cluster(3, heap=heap) as cluster:
            yield cluster.server


def main() -> None:
    """Measure one node and three, and print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--heap", default="512m", help="heap of each node")
    parser.add_argument("--only", choices=["one", "three"], help="measure only this")
    options = parser.parse_args()
    print(
        "| nodes | shards x copies | reading s | sending s | documents/s | index MiB | disk MiB | rank s | rank MiB |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    runs = []
    with tempfile.TemporaryDirectory(prefix="searchapp-cluster-") as name:
        folder = Path(name)
        task = write_task(folder, options.data, options.documents)
        for cluster_size in [options.only] if options.only else ["one", "three"]:
            home, run = folder / f"home-{cluster_size}", folder / f"run-{cluster_size}"
            with nodes(cluster_size, options.heap) as server:
                more = [task, "--data", folder, "--url", server.url, "--home", home]
                indexed = run_measured([*SEARCHAPP, "index", *more, *OPTIONS[cluster_size]])
                # The second command reads and digests the same files, and sends nothing.
                again = run_measured([*SEARCHAPP, "index", *more])
                ranked = run_measured([*SEARCHAPP, "rank", *more, "--split", "dev", "--out", run])
                listing = server.request(
                    "GET", "/_cat/indices/searchapp-own-growth-*?format=json&bytes=mb"
                ).json()
            runs.append((run / "run.trec").read_bytes())
            (index,) = listing
            sending = indexed.seconds - again.seconds
            cells = [
                f"{again.seconds:.0f}",
                f"{sending:.0f}",
                f"{options.documents / sending:,.0f}",
                f"{indexed.mib:.0f}",
                index["store.size"],
                f"{ranked.seconds:.0f}",
                f"{ranked.mib:.0f}",
            ]
            copies = f"{index['pri']} x {1 + int(index['rep'])}"
            print(f"| {cluster_size} | {copies} | " + " | ".join(cells) + " |", flush=True)
    if len(runs) == 2:
        print(f"the runs are {'equal' if runs[0] == runs[1] else 'DIFFERENT'}, byte for byte")


if __name__ == "__main__":
    main()
