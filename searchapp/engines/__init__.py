"""Search engines behind one protocol (`searchapp.engines.base.Engine`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchapp.engines.base import Engine
    from searchapp.settings import Settings


def open_engine(settings: Settings) -> Engine:
    """The engine that the settings select; what it needs is imported only here."""
    if settings.engine == "embedded":
        from searchapp.engines.embedded import EmbeddedEngine

        return EmbeddedEngine.at(settings)
    from searchapp.engines.elasticsearch import ElasticsearchEngine

    return ElasticsearchEngine.connect(settings)
