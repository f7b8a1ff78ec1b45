"""Analyze text as Elasticsearch 9.4 does.

    registry = AnalysisRegistry(mapping["settings"]["analysis"])
    registry.analyzer("english").terms("The foxes")        # [("fox", 1)]

`AnalysisRegistry` reads the analysis settings of an index mapping; an `Analyzer` returns terms, tokens with
offsets, or the output of each of its pieces. Settings whose result would differ from Elasticsearch's are rejected.
Importing this package must not import NumPy: `bulk` does, and is imported inside functions; so is `html_strip`.
"""

import platform
import unicodedata

import regex

from searchapp.lucene.analysis.analyzer import Analyzer
from searchapp.lucene.analysis.registry import AnalysisRegistry
from searchapp.lucene.errors import BadSettings, NotSupported

__all__ = ["AnalysisRegistry", "Analyzer", "BadSettings", "NotSupported"]

VERSION = 1
"""Raised with every change of what is indexed of a text: documents are then analyzed again, whatever has changed."""


def identity() -> str:
    """What the terms of a text depend on, besides its analyzer: of another analysis no document is taken over."""
    versions = f"unicode {unicodedata.unidata_version}, regex {regex.__version__}"
    return f"analysis {VERSION}, Python {platform.python_version()}, {versions}"
