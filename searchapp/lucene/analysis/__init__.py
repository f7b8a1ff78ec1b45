"""Analyze text as Elasticsearch 9.4 does.

    registry = AnalysisRegistry(mapping["settings"]["analysis"])
    registry.analyzer("english").terms("The foxes")        # [("fox", 1)]

`AnalysisRegistry` reads the analysis settings of an index mapping; an `Analyzer` returns terms, tokens with
offsets, or the output of each of its pieces. Settings with another result than Elasticsearch's are rejected.
The import of this package must not import NumPy: functions import `bulk`, which does, and `html_strip`.
"""

import platform
import unicodedata

import regex

from searchapp.lucene.analysis.analyzer import Analyzer
from searchapp.lucene.analysis.registry import AnalysisRegistry
from searchapp.lucene.errors import BadSettings, NotSupported

__all__ = ["AnalysisRegistry", "Analyzer", "BadSettings", "NotSupported"]

VERSION = 1
"""Increases with every change of the indexed terms of a text, so that all documents are analyzed again."""


def identity() -> str:
    """Return the versions on which the terms of a text depend; documents are analyzed again when they change."""
    versions = f"unicode {unicodedata.unidata_version}, regex {regex.__version__}"
    return f"analysis {VERSION}, Python {platform.python_version()}, {versions}"
