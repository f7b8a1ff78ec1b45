"""The `html_strip` char filter, which the embedded engine does not have."""

from __future__ import annotations

from searchapp.analysis.char_filters import CharFilter
from searchapp.analysis.options import Options


def html_strip_filter(options: Options) -> CharFilter:
    """A char filter of type `html_strip`."""
    raise options.not_supported("the type html_strip")
