"""searchapp: a bench for ranked retrieval in the terminal, and as a library.

    import searchapp as sa

    with sa.task("nlps-sample").index(build=True) as index:
        run = index.rank("dev", recipe="bm25")
    run.evaluate().official.values

Importing it imports nothing else; `searchapp.api` and its libraries are imported when a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

# The module of each public name; `__init__.pyi` has them for type checkers.
_MODULES = {
    **dict.fromkeys(
        ("Experiment", "ExperimentResult", "Grades", "Index", "Run", "SearchHits", "Task"), "api"
    ),
    **dict.fromkeys(("compare", "read_run", "task"), "api"),
    "Comparison": "app.comparison",
    "Evaluation": "app.evaluate",
    **dict.fromkeys(
        ("DataError", "EngineError", "InvalidFiles", "NotScorable", "SearchappError", "UsageError"), "errors"
    ),
    **dict.fromkeys(("Document", "Explanation", "Hit", "Hits", "Topic"), "model"),
}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'searchapp' has no attribute {name!r}")
    require_unix()
    return getattr(import_module(f"searchapp.{_MODULES[name]}"), name)


def require_unix() -> None:
    """Check that the system has the locks and processes that searchapp uses.

    Raises:
        ImportError: it is Windows.
    """
    try:
        import fcntl  # noqa: F401
    except ImportError:
        problem = "searchapp runs on Linux and macOS: on Windows, install it in WSL (`wsl --install`)"
        raise ImportError(problem) from None


def __dir__() -> list[str]:
    return sorted(__all__)
