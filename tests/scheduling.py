"""Assignment of tests to test processes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from xdist.scheduler import LoadFileScheduling

SECURED = "secured"
"""The parameter of tests on the secured node, see `tests.conftest`."""

OLDER = "older"
"""The parameter of tests on an Elasticsearch of version 8, see `tests.conftest`."""

CLUSTER = "cluster"
"""The parameter of tests on the cluster of three nodes, see `tests.cluster.conftest`."""

LONGEST = (
    CLUSTER,
    SECURED,
    "tests/cli/test_tune.py",
    "tests/cli/test_real_judged_gold.py",
    OLDER,
    "tests/engines/embedded/test_segmented_answers.py",
    "tests/cli/test_checkthat.py",
    "tests/tui/search/test_server_failures.py",
    "tests/cli/test_real_checkthat.py",
    "tests/engines/embedded/test_recorded.py",
    "tests/tui/test_pictures.py",
    "tests/tui/search/test_screen.py",
    "tests/engines/test_elasticsearch_builders.py",
    "tests/app/test_same_hits.py",
    "tests/cli/test_same_bytes.py",
    "tests/hostile/test_screens.py",
    "tests/cli/test_flow.py",
    "tests/tui/search/test_saved_searches.py",
    "tests/tui/search/test_snapshots.py",
    "tests/tui/search/test_reasons.py",
    "tests/engines/test_elasticsearch_repeated.py",
    "tests/tui/test_snapshots.py",
    "tests/cli/test_real_explanation.py",
    "tests/tui/search/test_failures.py",
    "tests/cli/test_bench.py",
    "tests/engines/test_elasticsearch_faults.py",
    "tests/engines/test_elasticsearch_campaign.py",
    "tests/engines/test_elasticsearch_late.py",
    "tests/tui/test_screen.py",
    "tests/tui/test_redraw.py",
    "tests/tui/test_team.py",
    "tests/cli/test_real_data_smart_types.py",
    "tests/tui/compare/test_screen.py",
    "tests/cli/test_shared_judgments.py",
    "tests/tui/home/test_palette.py",
    "tests/engines/test_elasticsearch_resumed.py",
    "tests/analysis/test_parity_of_mappings.py",
    "tests/hostile/test_commands.py",
    "tests/engines/embedded/test_parity.py",
    "tests/tui/search/test_judging.py",
    "tests/app/test_requests.py",
    "tests/analysis/test_parity_of_characters.py",
    "tests/cli/test_serve.py",
    "tests/cli/test_smart_relations.py",
    "tests/engines/test_elasticsearch_indexing.py",
    "tests/tui/home/test_home.py",
    "tests/tui/search/test_document.py",
    "tests/app/test_same_figures.py",
    "tests/test_server.py",
    "tests/cli/test_own_task.py",
    "tests/engines/test_shared_judgments.py",
    "tests/cli/test_ablate.py",
    "tests/ranking/test_shards.py",
    "tests/cli/test_real_data.py",
    "tests/engines/embedded/test_queries.py",
    "tests/tui/test_stack.py",
    "tests/cli/test_indexes.py",
    "tests/tui/topics/test_screen.py",
    "tests/cli/test_at_once.py",
    "tests/cli/test_judge.py",
    "tests/engines/embedded/test_same_answers.py",
    "tests/engines/embedded/test_segmentations.py",
    "tests/engines/test_refused_topics.py",
)
"""Units of work that take long with few tests, in the order of their start.

xdist would start them last, so that a single process would run at the end. Units that mostly wait for a server or a
screen alternate with units that compute, because processors are idle while all processes wait."""


class FileAndParameterScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Runs the tests of a file in one process, and all tests with one of these parameters in one process.

    The tests of a file share fixtures. A parameter identifies a server that only one process may use. Groups of xdist
    are suffixes to the names of tests, which pytest 9.2 rejects.

    Args:
        parameters: parts of the names of tests, such as `secured` in `test_search[secured-8]`
        first: the first units of work, by path or parameter
        arguments: arguments of xdist's scheduler
    """

    def __init__(self, parameters: Collection[str], first: Sequence[str], *arguments: object) -> None:
        super().__init__(*arguments)
        self._parameters = frozenset(parameters)
        self._first = first

    def _split_scope(self, nodeid: str) -> str:
        """Return the unit of work of a test."""
        path, _, name = nodeid.partition("::")
        own = self._parameters.intersection(name.partition("[")[2].removesuffix("]").split("-"))
        return min(own, default=path)

    def _assign_work_unit(self, node: object) -> None:
        """Assign the next unit of work to a process that has collected the tests.

        When a process dies, the replacement of an earlier one may not have collected the tests yet. xdist 3.8 ends with
        a KeyError in this case. The replacement gets its unit after collecting.
        """
        if node not in self.registered_collections:
            return
        for unit in reversed(self._first):
            if unit in self.workqueue:
                self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(tryfirst=True)  # before the hook of xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `--dist loadfile`, run all tests of such a server in one process, and slow tests first."""
    if config.getvalue("dist") != "loadfile":
        return None
    return FileAndParameterScheduling([SECURED, CLUSTER, OLDER], LONGEST, config, log)
