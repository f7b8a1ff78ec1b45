"""Which test processes run which tests."""

from __future__ import annotations

from collections.abc import Collection

from xdist.scheduler import LoadFileScheduling


class FilesAndParts(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Keeps the tests of a file in one process; but those with one of these parameters in one, whatever their file.

    A file's tests share what it prepares. A parameter stands for something of which there shall be one in all. The
    groups that xdist has for that are suffixes to the names of tests, which pytest 9.2 does not take.

    Args:
        parameters: as they stand in the names of tests, such as `secured` in `test_one[secured-8]`
        arguments: those of xdist's own
    """

    def __init__(self, parameters: Collection[str], *arguments: object) -> None:
        super().__init__(*arguments)
        self._parameters = frozenset(parameters)

    def _split_scope(self, nodeid: str) -> str:
        """The name of the unit of work that a test is of."""
        path, _, name = nodeid.partition("::")
        own = self._parameters.intersection(name.partition("[")[2].removesuffix("]").split("-"))
        return min(own, default=path)
