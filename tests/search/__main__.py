"""`python -m tests.search`: a long search for counterexamples, against a server of its own or `SEARCHAPP_TEST_URL`."""

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
    """Search; answers 1 if there is a difference."""
    options = _options(arguments)
    found = 0
    with any_server() as server:
        for kind, search, count in (
            ("analyzers", _of_analyzers, options.analyzers),
            ("queries", _of_queries, options.queries),
        ):
            progress = _Progress(kind, count)
            for done, differences in search(server, options.seed, count, options.first):
                for said in differences:
                    found += 1
                    print(f"difference {found} ({kind}):\n{said}\n", flush=True)
                    if found >= options.most:
                        print(f"stopped after {found} differences, {done:,} {kind} looked at", flush=True)
                        return 1
                progress.tell(done)
            progress.tell(count, last=True)
    print(f"{found} differences", flush=True)
    return 1 if found else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.search", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--queries", type=int, default=0, help="how many search bodies")
    parser.add_argument("--analyzers", type=int, default=0, help="how many analyzers")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--first", type=int, default=0, help="leave out this many cases of the seed")
    parser.add_argument("--most", type=int, default=20, help="stop after this many differences")
    return parser.parse_args(arguments)


def _of_analyzers(server: Server, seed: int, count: int, first: int) -> Iterator[tuple[int, list[str]]]:
    """How many analyzers were looked at, and what the last one differs in."""
    not_compared = 0
    with InlineOracle(server) as oracle:
        for done, case in enumerate(analyzers.cases(seed, count, first), 1):
            try:
                said = analyzers.difference(oracle, case)
            except analyzers.NotCompared:
                said, not_compared = None, not_compared + 1
            if said is not None:
                case = smallest(case, lambda smaller: analyzers.differs(oracle, smaller))
                said = f"{json.dumps(case)}\n{analyzers.difference(oracle, case)}"
            yield done, [said] if said else []
    print(f"{not_compared:,} analyzers are refused by name or give too many tokens", flush=True)


def _of_queries(server: Server, seed: int, count: int, first: int) -> Iterator[tuple[int, list[str]]]:
    """How many queries were looked at, and what those of the last index differ in."""
    done = 0
    with queries.engines(server) as engines:
        for case in queries.cases(seed, count, first):
            done += len(case["bodies"])
            yield done, [f"{json.dumps(it.case)}\n{it.said}" for it in engines.reduced(case)]


class _Progress:
    """Says every half a minute how far the search is."""

    def __init__(self, kind: str, count: int) -> None:
        self._kind, self._count = kind, count
        self._begun = self._told = time.monotonic()

    def tell(self, done: int, last: bool = False) -> None:
        now = time.monotonic()
        if self._count and (last or now - self._told >= REPORT_SECONDS):
            self._told = now
            seconds = now - self._begun
            print(f"{done:,} of {self._count:,} {self._kind} in {seconds:,.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
