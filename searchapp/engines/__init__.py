"""Search engines behind one protocol (`searchapp.engines.base.Engine`).

An engine and its libraries are imported when it is opened, so that other commands start fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from searchapp.errors import UsageError
from searchapp.progress import Notify, no_notice

if TYPE_CHECKING:
    from searchapp.config.settings import Settings
    from searchapp.engines.base import Engine
    from searchapp.engines.elasticsearch import ElasticsearchEngine as ElasticsearchEngine
    from searchapp.engines.elasticsearch.judgments import JudgmentIndex
    from searchapp.engines.embedded import EmbeddedEngine as EmbeddedEngine


def open_engine(
    settings: Settings,
    notify: Notify = no_notice,
    *,
    attempts: int | None = None,
    timeout: float | None = None,
) -> Engine:
    """Open the engine that the settings select.

    Args:
        settings: the engine, its address and the home directory.
        notify: receives a sentence when the engine takes unusually long.
        attempts: maximum number of attempts for a request to a server.
        timeout: time limit of a request to a server, in seconds.
    """
    if settings.uses_server:
        return open_server(settings, notify, attempts=attempts, timeout=timeout)
    return open_on_disk(settings, notify=notify)


def open_on_disk(settings: Settings, remembered: int = 0, notify: Notify = no_notice) -> EmbeddedEngine:
    """Open the embedded engine; each index caches `remembered` bytes of answers."""
    from searchapp.engines.embedded import EmbeddedEngine

    return EmbeddedEngine.at(settings, remembered, notify)


def open_server(
    settings: Settings,
    notify: Notify = no_notice,
    *,
    attempts: int | None = None,
    timeout: float | None = None,
) -> ElasticsearchEngine:
    """Open the Elasticsearch engine at the settings' address.

    Raises:
        EngineError: the server does not respond, or is not supported.
    """
    from searchapp.engines.elasticsearch import ElasticsearchEngine

    return ElasticsearchEngine.connect(settings, notify, attempts=attempts, timeout=timeout)


def lacks_compiled() -> str:
    """Return why the embedded engine has no compiled functions, as a clause; empty if it has."""
    from searchapp.lucene import native

    return native.missing_reason()


def server_roles(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the minimal role for each use of a server, by name."""
    from searchapp.engines.elasticsearch.rights import ROLES

    prefix = settings.index_prefix
    return {f"{prefix}-{role.name}": role.body(prefix) for role in ROLES}


def judgments_address(settings: Settings) -> str:
    """Return the address of the team's judgments, without a request.

    Raises:
        UsageError: the settings contain no address of a cluster.
    """
    from searchapp.engines.elasticsearch.judgments import address_of

    if not settings.uses_server and not settings.url_given:
        raise UsageError(
            "shared judgments need an Elasticsearch server: give its address with --url or SEARCHAPP_URL"
        )
    return address_of(settings)


def open_judgments(settings: Settings, attempts: int = 3, timeout: float = 30.0) -> JudgmentIndex:
    """Open the team's judgments; send requests up to `attempts` times, with `timeout` seconds each.

    Raises:
        UsageError: the settings contain no address of a cluster.
        EngineError: the cluster does not respond, or is not supported.
    """
    from searchapp.engines.elasticsearch.judgments import JudgmentIndex

    judgments_address(settings)
    return JudgmentIndex.connect(settings, attempts, timeout)
