"""An exception that another process raised arrives as it was: its class, its message, its exit code, all it knows."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pytest

import searchapp
from searchapp.engines.elasticsearch.connection import NotYet
from searchapp.engines.elasticsearch.versions import Split
from searchapp.errors import (
    BeingBuilt,
    EngineRefused,
    InvalidFiles,
    NotScorable,
    OtherDocuments,
    Problem,
    QueryRefused,
    Replaced,
    SearchappError,
)
from searchapp.fetching.download import _TransientError
from searchapp.lucene.errors import (
    CorruptIndex,
    IndexLocked,
    IndexReplaced,
    NotSupported,
    OldFormat,
    RefusedQuery,
    ReportedError,
    Undefined,
    UnreadableFile,
)
from searchapp.lucene.index.writer import NotIndexable
from searchapp.processes import ProcessEnded
from searchapp.ranking.query_language import BrokenQuery

MADE: dict[type[BaseException], Callable[[], BaseException]] = {
    BeingBuilt: lambda: BeingBuilt("the index in indexes/nlps", "4711"),
    ProcessEnded: lambda: ProcessEnded(9),
    CorruptIndex: lambda: CorruptIndex(Path("indexes/nlps/000001"), "ids.ranks.npy was altered"),
    IndexLocked: lambda: IndexLocked("the index in indexes/nlps", "4711"),
    IndexReplaced: lambda: IndexReplaced("searchapp-nlps-000001"),
    OldFormat: lambda: OldFormat(Path("indexes/nlps/000001")),
    RefusedQuery: lambda: RefusedQuery(3, "an unknown field", "a second line"),
    ReportedError: lambda: ReportedError("what is wrong:", "a first line", "a second one"),
    UnreadableFile: lambda: UnreadableFile(Path("indexes/nlps/000001/ids.ranks.npy"), "permission denied"),
    InvalidFiles: lambda: InvalidFiles([Problem("a.json", "empty file"), Problem("b", "x", "1")], "mend it"),
    NotScorable: lambda: NotScorable("a.txt: topic 7 is missing", "KeyError: '7'"),
    NotSupported: lambda: NotSupported("the token filter `kstem`"),
    NotYet: lambda: NotYet(EngineRefused("2 of 3 shards answered")),
    OtherDocuments: lambda: OtherDocuments("2 documents change", "say so"),
    QueryRefused: lambda: QueryRefused("an unknown field", 3),
    Replaced: lambda: Replaced("searchapp-nlps-000001"),
    Undefined: lambda: Undefined("filter", "lowrcase", ["lowercase"]),
    BrokenQuery: lambda: BrokenQuery("this is not closed", 3),
    Split: lambda: Split("http://localhost:9200", "searchapp-nlps", ["searchapp-nlps-000001"], "nlps"),
    NotIndexable: lambda: NotIndexable(3, "year 1910.5 is no whole number"),
    _TransientError: lambda: _TransientError("answers 503", 2.5),
}
"""How the classes are made that take more than a message."""


def exceptions() -> list[type[BaseException]]:
    """Every exception class of the package, in the order of their names."""
    found: set[type[BaseException]] = {SearchappError}
    for module in pkgutil.walk_packages(searchapp.__path__, "searchapp."):
        if not module.name.endswith("__main__"):
            members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            found |= {kind for _name, kind in members if issubclass(kind, BaseException)}
    return sorted((kind for kind in found if kind.__module__.startswith("searchapp")), key=str)


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
def test_an_exception_survives_the_way_between_processes(kind: type[BaseException]) -> None:
    error = MADE[kind]() if kind in MADE else kind("what, where: what to do")
    error.add_note("seen in another process")
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is kind
    assert (str(arrived), arrived.args) == (str(error), error.args)
    assert {name: str(value) for name, value in vars(arrived).items()} == {
        name: str(value) for name, value in vars(error).items()
    }
    assert getattr(arrived, "exit_code", None) == getattr(error, "exit_code", None)


def test_what_an_exception_knows_can_be_asked_after_the_way() -> None:
    arrived = pickle.loads(pickle.dumps(MADE[InvalidFiles]()))
    assert arrived.counts() == {"empty file": 1, "x": 1}
    scorer = pickle.loads(pickle.dumps(MADE[NotScorable]()))
    assert str(scorer.of("run")).startswith("run: a.txt: topic 7 is missing; the official scorer")


def test_a_class_that_takes_more_than_a_message_is_made_here() -> None:
    """So that one that is new is tried as its users make it."""
    own = {kind for kind in exceptions() if "__init__" in vars(kind)}
    assert own == set(MADE), "say in MADE above how it is made"
