"""`python -m tests.search`: search long for differences, on a new server or on `SEARCHAPP_TEST_URL`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence

from tests.analysis.parity import InlineOracle
from tests.search import analyzers, queries
from tests.search.reducing import smallest
from tests.server.rest import Server
from tests.server.shared import any_server

REPORT_SECONDS = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the search and return 1 if there is a difference."""
    options = _options(arguments)
    total = 0
    with any_server() as server:
        for kind, search, count in (
            ("analyzers", _search_analyzers, options.analyzers),
            ("queries", _search_queries, options.queries),
        ):
            progress = _Progress(kind, count)
            for checked, differences in search(server, options.seed, count, options.first):
                for difference in differences:
                    total += 1
                    print(f"difference {total} ({kind}):\n{difference}\n", flush=True)
                    if total >= options.most:
                        print(f"stopped after {total} differences in {checked:,} {kind}", flush=True)
                        return 1
                progress.report(checked)
            progress.report(count, last=True)
    print(f"{total} differences", flush=True)
    return 1 if total else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.search", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--queries", type=int, default=0, help="number of search bodies")
    parser.add_argument("--analyzers", type=int, default=0, help="number of analyzers")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random cases")
    parser.add_argument("--first", type=int, default=0, help="number of cases to skip")
    parser.add_argument("--most", type=int, default=20, help="stop after this many differences")
    return parser.parse_args(arguments)


def _search_analyzers(server: Server, seed: int, count: int, first: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of analyzers checked, and the difference of the last one."""
    not_compared = 0
    with InlineOracle(server) as oracle:
        for checked, case in enumerate(analyzers.cases(seed, count, first), 1):
            try:
                text = analyzers.difference(oracle, case)
            except analyzers.NotCompared:
                text, not_compared = None, not_compared + 1
            if text is not None:
                case = smallest(case, lambda smaller: analyzers.differs(oracle, smaller))
                text = f"{json.dumps(case)}\n{analyzers.difference(oracle, case)}"
            yield checked, [text] if text else []
    print(f"{not_compared:,} analyzers are not supported or give too many tokens", flush=True)


def _search_queries(server: Server, seed: int, count: int, first: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of queries checked, and the differences on the last index."""
    checked = 0
    with queries.engines(server) as engines:
        for case in queries.cases(seed, count, first):
            checked += len(case["bodies"])
            differences = engines.reduced_differences(case)
            yield checked, [f"{json.dumps(entry.case)}\n{entry.text}" for entry in differences]


class _Progress:
    """Print the progress of a search every 30 seconds."""

    def __init__(self, kind: str, count: int) -> None:
        self._kind, self._count = kind, count
        self._start = self._last_report = time.monotonic()

    def report(self, checked: int, last: bool = False) -> None:
        time_now = time.monotonic()
        if self._count and (last or time_now - self._last_report >= REPORT_SECONDS):
            self._last_report = time_now
            seconds = time_now - self._start
            print(f"{checked:,} of {self._count:,} {self._kind} in {seconds:,.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
