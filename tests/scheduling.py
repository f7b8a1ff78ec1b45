"""Which test processes run which tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdist.scheduler import LoadFileScheduling

SECURED = "secured"
"""Parameter of the tests that use the secured node, see `tests.conftest`."""

OLDER = "older"
"""Parameter of the tests that compare with an Elasticsearch of version 8, see `tests.conftest`."""

CLUSTER = "cluster"
"""Parameter of the tests that use the cluster of three nodes, see `tests.cluster.conftest`."""

LONGEST = (
    CLUSTER,
    SECURED,
    OLDER,
    "tests/cli/test_real_checkthat.py",
    "tests/cli/test_real_judged_gold.py",
    "tests/cli/test_real_data.py",
    "tests/hostile/test_screens.py",
    "tests/hostile/test_commands.py",
    "tests/cli/test_real_data_smart_types.py",
    "tests/cli/test_flow.py",
    "tests/cli/test_real_explanation.py",
    "tests/cli/test_train.py",
    "tests/cli/test_indexes.py",
    "tests/engines/test_elasticsearch_builders.py",
    "tests/engines/test_elasticsearch_repeated.py",
    "tests/engines/test_elasticsearch_indexing.py",
    "tests/analysis/test_parity_of_characters.py",
    "tests/analysis/test_parity_of_mappings.py",
    "tests/tui/test_redraw.py",
    "tests/engines/embedded/test_recorded.py",
    "tests/tui/search/test_troubles_on_a_server.py",
    "tests/tui/test_screen.py",
    "tests/tui/compare/test_screen.py",
    "tests/tui/test_snapshots.py",
    "tests/cli/test_checkthat.py",
    "tests/cli/test_shared_judgments.py",
    "tests/cli/test_mutations.py",
    "tests/engines/embedded/test_parity.py",
    "tests/engines/test_shared_judgments.py",
)
"""Units of work that take long with few tests, in the order in which they begin. Left to themselves they come last, and
one process would work on alone at the end."""


class FilesAndParts(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Keeps the tests of a file in one process; but those with one of these parameters in one, whatever their file.

    A file's tests share what it prepares. A parameter stands for something of which there shall be one in all. The
    groups that xdist has for that are suffixes to the names of tests, which pytest 9.2 does not take.

    Args:
        parameters: as they stand in the names of tests, such as `secured` in `test_one[secured-8]`
        first: the units of work to begin with, by path or parameter
        arguments: those of xdist's own
    """

    def __init__(self, parameters: Collection[str], first: Sequence[str], *arguments: object) -> None:
        super().__init__(*arguments)
        self._parameters = frozenset(parameters)
        self._first = first

    def _split_scope(self, nodeid: str) -> str:
        """The name of the unit of work that a test is of."""
        path, _, name = nodeid.partition("::")
        own = self._parameters.intersection(name.partition("[")[2].removesuffix("]").split("-"))
        return min(own, default=path)

    def _assign_work_unit(self, node: object) -> None:
        """Give a process the next unit of work."""
        for unit in reversed(self._first):
            if unit in self.workqueue:
                self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)
