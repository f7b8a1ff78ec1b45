from searchapp.api import Experiment as Experiment
from searchapp.api import ExperimentResult as ExperimentResult
from searchapp.api import Grades as Grades
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

__version__: str

__all__: list[str]

def require_unix() -> None: ...
