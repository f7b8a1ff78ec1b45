"""searchapp: a bench for ranked retrieval in the terminal, and as a library.

    import searchapp as sa

    with sa.task("nlps-sample").index(build=True) as index:
        run = index.rank("dev", recipe="bm25")
    run.evaluate().official.values

Importing it imports nothing else; `searchapp.api` and its libraries are imported when a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from searchapp.api import Experiment as Experiment
    from searchapp.api import ExperimentResult as ExperimentResult
    from searchapp.api import Index as Index
    from searchapp.api import Run as Run
    from searchapp.api import SearchHits as SearchHits
    from searchapp.api import Task as Task
    from searchapp.api import compare as compare
    from searchapp.api import read_run as read_run
    from searchapp.api import task as task
    from searchapp.app.comparison import Comparison as Comparison
    from searchapp.app.evaluate import Evaluation as Evaluation
    from searchapp.errors import DataError as DataError
    from searchapp.errors import EngineError as EngineError
    from searchapp.errors import InvalidFiles as InvalidFiles
    from searchapp.errors import NotScorable as NotScorable
    from searchapp.errors import SearchappError as SearchappError
    from searchapp.errors import UsageError as UsageError
    from searchapp.model import Document as Document
    from searchapp.model import Explanation as Explanation
    from searchapp.model import Hit as Hit
    from searchapp.model import Hits as Hits
    from searchapp.model import Topic as Topic

__version__ = "0.3.0"

# The module of each public name.
_MODULES = {
    **dict.fromkeys(("Experiment", "ExperimentResult", "Index", "Run", "SearchHits", "Task"), "api"),
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
    return getattr(import_module(f"searchapp.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
