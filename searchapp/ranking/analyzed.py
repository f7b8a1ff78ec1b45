"""What analyzers make of typed texts, for each of which a server would take a request.

The interpreter of analysis settings gives the tokens that Elasticsearch gives, so that of an index on a server they are
computed here. What it does not know, and only that, is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from searchapp.analysis.errors import BadSettings, NotSupported
from searchapp.analysis.registry import AnalysisRegistry
from searchapp.engines.base import Index
from searchapp.model import Token

REMEMBERED = 1_000
"""Texts whose tokens are kept."""

LONGEST_REMEMBERED = 1_000
"""Characters of a text that is kept."""


class Analyzed:
    """The tokens of texts on one version of an index, by the names of analyzers.

    Args:
        index: is asked for what is not known here
        mapping: the create-index body of the index
    """

    def __init__(self, index: Index, mapping: Mapping[str, Any]) -> None:
        self._index = index
        self._settings = mapping.get("settings", {}).get("analysis", {})
        self._kept: dict[tuple[str, str], Sequence[Token]] = {}

    def tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        """The tokens of a text, as `Index.analyze` ends.

        Raises:
            EngineError: the engine failed, or refused the text.
        """
        key = analyzer, text
        if key not in self._kept:
            tokens = self._tokens(analyzer, text)
            if len(text) > LONGEST_REMEMBERED:
                return tokens
            if len(self._kept) >= REMEMBERED:
                self._kept.clear()
            self._kept[key] = tokens
        return self._kept[key]

    def _tokens(self, analyzer: str, text: str) -> Sequence[Token]:
        if not self._index.is_at_hand and self._registry is not None:
            with suppress(NotSupported):
                return self._registry.analyzer(analyzer).tokens(text)
        return self._index.analyze(text, analyzer=analyzer)[-1].tokens

    @cached_property
    def _registry(self) -> AnalysisRegistry | None:
        """The analyzers of the index; None where its mapping has what Elasticsearch alone knows."""
        try:
            return AnalysisRegistry(self._settings)
        except (NotSupported, BadSettings):
            return None
