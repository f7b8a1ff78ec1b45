"""Exceptions are sent between processes with their class, message, exit code and attributes."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pytest

import searchapp
from searchapp.embeddings.endpoint import RejectedRequestError, _FailedAttemptError
from searchapp.engines.elasticsearch.connection import NotYet
from searchapp.engines.elasticsearch.versions import Split
from searchapp.errors import (
    BeingBuilt,
    EngineRefused,
    InvalidFiles,
    ModelUnavailable,
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

EXAMPLES: dict[type[BaseException], Callable[[], BaseException]] = {
    BeingBuilt: lambda: BeingBuilt("the index in indexes/nlps", "4711"),
    ProcessEnded: lambda: ProcessEnded(9),
    CorruptIndex: lambda: CorruptIndex(Path("indexes/nlps/000001"), "ids.ranks.npy was altered"),
    IndexLocked: lambda: IndexLocked("the index in indexes/nlps", "4711"),
    IndexReplaced: lambda: IndexReplaced("searchapp-nlps-000001"),
    OldFormat: lambda: OldFormat(Path("indexes/nlps/000001")),
    RefusedQuery: lambda: RefusedQuery(3, "an unknown field", "a second line"),
    ReportedError: lambda: ReportedError("3 problems:", "a first line", "a second line"),
    UnreadableFile: lambda: UnreadableFile(Path("indexes/nlps/000001/ids.ranks.npy"), "permission denied"),
    InvalidFiles: lambda: InvalidFiles(
        [Problem("a.json", "empty file"), Problem("b", "x", "1")], "correct it"
    ),
    NotScorable: lambda: NotScorable("a.txt: topic 7 is missing", "KeyError: '7'"),
    NotSupported: lambda: NotSupported("the token filter `kstem`"),
    ModelUnavailable: lambda: ModelUnavailable("http://localhost:1/v1 can't be reached"),
    NotYet: lambda: NotYet(EngineRefused("2 of 3 shards answered")),
    OtherDocuments: lambda: OtherDocuments("2 documents change", "use --yes"),
    QueryRefused: lambda: QueryRefused("an unknown field", 3),
    Replaced: lambda: Replaced("searchapp-nlps-000001"),
    Undefined: lambda: Undefined("filter", "lowrcase", ["lowercase"]),
    BrokenQuery: lambda: BrokenQuery("this is not closed", 3),
    Split: lambda: Split("http://localhost:9200", "searchapp-nlps", ["searchapp-nlps-000001"], "nlps"),
    NotIndexable: lambda: NotIndexable(3, "year 1910.5 is no whole number"),
    RejectedRequestError: lambda: RejectedRequestError("answers 400: correct it", "bad request"),
    _FailedAttemptError: lambda: _FailedAttemptError("answers 503", wait=2.5, tokens=None),
    _TransientError: lambda: _TransientError("answers 503", 2.5),
}
"""Examples of classes whose arguments are not only a message."""


def exceptions() -> list[type[BaseException]]:
    """Return all exception classes of the package, sorted by name."""
    classes: set[type[BaseException]] = {SearchappError}
    for module in pkgutil.walk_packages(searchapp.__path__, "searchapp."):
        if not module.name.endswith("__main__"):
            members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            classes |= {kind for _name, kind in members if issubclass(kind, BaseException)}
    return sorted((kind for kind in classes if kind.__module__.startswith("searchapp")), key=str)


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
def test_an_exception_is_read_back_from_its_pickle(kind: type[BaseException]) -> None:
    error = EXAMPLES[kind]() if kind in EXAMPLES else kind("problem, position: remedy")
    error.add_note("raised in another process")
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is kind
    assert (str(arrived), arrived.args) == (str(error), error.args)
    attributes, expected = ({name: str(value) for name, value in vars(e).items()} for e in (arrived, error))
    assert attributes == expected
    assert getattr(arrived, "exit_code", None) == getattr(error, "exit_code", None)


def test_methods_of_an_exception_work_after_pickling() -> None:
    arrived = pickle.loads(pickle.dumps(EXAMPLES[InvalidFiles]()))
    assert arrived.counts() == {"empty file": 1, "x": 1}
    scorer = pickle.loads(pickle.dumps(EXAMPLES[NotScorable]()))
    assert str(scorer.of("run")).startswith("run: a.txt: topic 7 is missing; the official scorer")


def test_all_classes_with_own_arguments_have_an_example() -> None:
    own = {kind for kind in exceptions() if "__init__" in vars(kind)}
    assert own == set(EXAMPLES), "add the class to EXAMPLES above"
