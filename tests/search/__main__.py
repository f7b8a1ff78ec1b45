"""`python -m tests.search`: search long for differences, on a new server or on `SEARCHAPP_TEST_URL`.

It ends with how often each entry of the engine's registries was compared, in search bodies with hits and in analyzers,
also after Ctrl-C or SIGTERM. `--first` continues a search that was stopped: its output names the number of the next
case.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from tests.analysis.parity import InlineOracle
from tests.search import analyzers, entries, queries
from tests.search.reducing import smallest
from tests.server.rest import Server
from tests.server.shared import any_server

REPORT_SECONDS = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the search and return 1 if there is a difference."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    total = 0
    with any_server() as server:
        for kind, search, count in (
            ("analyzers", _search_analyzers, options.analyzers),
            ("queries", partial(_search_queries, shards=options.shards), options.queries),
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
    parser.add_argument(
        "--shards", type=int, default=1, help="shards of the server's index for search bodies"
    )
    parser.add_argument("--most", type=int, default=20, help="stop after this many differences")
    return parser.parse_args(arguments)


def _search_analyzers(server: Server, seed: int, count: int, first: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of analyzers checked, and the difference of the last one."""
    not_compared = 0
    counts: Counter[str] = Counter()
    with InlineOracle(server) as oracle:
        for checked, case in enumerate(analyzers.cases(seed, count, first), 1):
            try:
                text = analyzers.difference(oracle, case)
                counts.update(entries.analyzer_entries(case["analyzer"]))
            except analyzers.NotCompared:
                text, not_compared = None, not_compared + 1
            if text is not None:
                case = smallest(case, lambda smaller: analyzers.differs(oracle, smaller))
                text = f"{json.dumps(case)}\n{analyzers.difference(oracle, case)}"
            yield checked, [text] if text else []
    if count:
        print(f"{not_compared:,} analyzers are not supported or give too many tokens", flush=True)
        _print_counts(counts, entries.analysis())


def _search_queries(
    server: Server, seed: int, count: int, first: int, shards: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of queries checked, and the differences on the last index."""
    with queries.engines(server, shards) as engines:
        candidates = queries.CANDIDATES
        cases = queries.cases(seed, count * candidates if count else 0, first, candidates)
        try:
            for case in cases:
                differences = list(engines.reduced_differences(case))
                first += 1
                yield engines.bodies, [f"{json.dumps(entry.case)}\n{entry.text}" for entry in differences]
                if engines.bodies >= count:
                    break
        finally:
            if count:
                print(f"continue with --first {first}", flush=True)
                print(f"{engines.with_hits:,} of {engines.bodies:,} compared bodies have hits", flush=True)
                _print_counts(engines.counts, entries.known())


def _print_counts(counts: Counter[str], known: Iterable[str]) -> None:
    """Print how often each entry of the registries was used, rare ones first."""
    for entry in sorted(known, key=lambda entry: (counts[entry], entry)):
        print(f"{counts[entry]:>9,} {entry}", flush=True)


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
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
