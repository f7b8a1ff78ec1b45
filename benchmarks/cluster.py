"""A million documents on one Elasticsearch node, and on three with 3 shards and 1 replica: rate, memory, same run.

    python benchmarks/cluster.py --data DIR [--documents 1000000] [--heap 512m] [--only one|three]

The documents are those of `growth.py`, as a task of one's own in JSON lines with 200 topics. `searchapp index` runs
as a process of its own, as people start it, with `--shards` and `--replicas` left out on one node and 3 and 1 on three;
its peak memory is what the operating system counted. Then `searchapp rank` ranks the topics to depth 100, and the two
runs are compared byte by byte. The nodes run on this machine, so that three share the processors and the disk of one.
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
from usage import measured, parser_of  # noqa: E402

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
    """The task file of a collection of so many documents, written for it; drawing them is not measured."""
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
def nodes(which: str, heap: str) -> Iterator[Server]:
    """One node, or a cluster of three."""
    if which == "one":
        with Node(heap=heap) as node:
            yield node.server
    else:
        with Cluster(3, heap=heap) as cluster:
            yield cluster.server


def main() -> None:
    """Measure one node and three, and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task nlps")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--heap", default="512m", help="of each node")
    parser.add_argument("--only", choices=["one", "three"], help="leave the other out")
    options = parser.parse_args()
    print(
        "| nodes | shards x copies | reading s | sending s | documents/s | index MiB | disk MiB | rank s | rank MiB |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    runs = []
    with tempfile.TemporaryDirectory(prefix="searchapp-cluster-") as name:
        folder = Path(name)
        task = write_task(folder, options.data, options.documents)
        for which in [options.only] if options.only else ["one", "three"]:
            home, run = folder / f"home-{which}", folder / f"run-{which}"
            with nodes(which, options.heap) as server:
                more = [task, "--data", folder, "--url", server.url, "--home", home]
                indexed = measured([*SEARCHAPP, "index", *more, *OPTIONS[which]])
                # The same files again: they are read and digested, and nothing is sent.
                again = measured([*SEARCHAPP, "index", *more])
                ranked = measured([*SEARCHAPP, "rank", *more, "--split", "dev", "--out", run])
                described = server.request(
                    "GET", "/_cat/indices/searchapp-own-growth-*?format=json&bytes=mb"
                ).json()
            runs.append((run / "run.trec").read_bytes())
            (index,) = described
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
            print(f"| {which} | {copies} | " + " | ".join(cells) + " |", flush=True)
    if len(runs) == 2:
        print(f"the runs are {'the same' if runs[0] == runs[1] else 'DIFFERENT'}, byte for byte")


if __name__ == "__main__":
    main()
