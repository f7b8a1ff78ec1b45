"""The analysis of text as Elasticsearch does it, without Elasticsearch.

    registry = AnalysisRegistry(mapping["settings"]["analysis"])
    registry.analyzer("english").terms("The foxes")        # [("fox", 1)]

`AnalysisRegistry` reads the analysis settings of an index mapping; an `Analyzer` gives terms, tokens with offsets,
or what each of its pieces does. What can't be done exactly as Elasticsearch 9.4 does it is refused.
"""

from searchapp.analysis.analyzer import Analyzer
from searchapp.analysis.errors import BadSettings, NotSupported
from searchapp.analysis.registry import AnalysisRegistry

__all__ = ["AnalysisRegistry", "Analyzer", "BadSettings", "NotSupported"]
