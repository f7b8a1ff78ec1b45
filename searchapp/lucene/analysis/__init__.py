"""Text analysis as in Elasticsearch 9.4.

    registry = AnalysisRegistry(mapping["settings"]["analysis"])
    registry.analyzer("english").terms("The foxes")        # [("fox", 1)]

Settings that would give other results than Elasticsearch are rejected. The import of this package must not import
NumPy: functions import `bulk`, which does, and `html_strip`.
"""

import platform
import unicodedata

from searchapp.lucene.analysis.analyzer import Analyzer
from searchapp.lucene.analysis.registry import AnalysisRegistry
from searchapp.lucene.errors import BadSettings, NotSupported

__all__ = ["AnalysisRegistry", "Analyzer", "BadSettings", "NotSupported"]

VERSION = 1  # increment it with every change of terms, so that all documents are analyzed again


def identity() -> str:
    """Return the versions on which terms depend; documents are analyzed again when they change."""
    import regex  # slow to import

    versions = f"unicode {unicodedata.unidata_version}, regex {regex.__version__}"
    return f"analysis {VERSION}, Python {platform.python_version()}, {versions}"
