"""Search engines behind one protocol (`searchapp.engines.base.Engine`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from searchapp.errors import UsageError
from searchapp.progress import Notify, no_notice

if TYPE_CHECKING:
    from searchapp.config.settings import Settings
    from searchapp.engines.base import Engine, OnDisk, OnServer
    from searchapp.judging.team import EventIndex

# An engine and its libraries are imported where it is opened, so that commands that need none start fast.


def open_engine(
    settings: Settings,
    notify: Notify = no_notice,
    *,
    attempts: int | None = None,
    timeout: float | None = None,
) -> Engine:
    """The engine that the settings select.

    `notify` is called with a sentence when the engine waits or searches longer than a person expects. A server is asked
    `attempts` times, and given `timeout` seconds each time, or as is usual for its engine.
    """
    if settings.uses_server:
        return open_server(settings, notify, attempts=attempts, timeout=timeout)
    return open_on_disk(settings, notify=notify)


def open_on_disk(settings: Settings, remembered: int = 0, notify: Notify = no_notice) -> OnDisk:
    """The engine that needs no server, whichever the settings select.

    Each index keeps the answers of what it has searched in so many bytes `remembered`, for who asks the same often.
    `notify` is called as by `open_engine`.
    """
    from searchapp.engines.embedded import EmbeddedEngine

    return EmbeddedEngine.at(settings, remembered, notify)


def open_server(
    settings: Settings,
    notify: Notify = no_notice,
    *,
    attempts: int | None = None,
    timeout: float | None = None,
) -> OnServer:
    """The engine on the settings' server, whichever they select; see `open_engine`.

    Raises:
        EngineError: no answer, or one that says no.
    """
    from searchapp.engines.elasticsearch import ElasticsearchEngine

    return ElasticsearchEngine.connect(settings, notify, attempts=attempts, timeout=timeout)


def lacks_compiled() -> str:
    """Why the engine that needs no server has no compiled functions, as a clause for people; empty if it has."""
    from searchapp.lucene import native

    return native.lacking()


def server_roles(settings: Settings) -> dict[str, dict[str, Any]]:
    """The least role for each use of a server, by the name that it is made under; no server is asked."""
    from searchapp.engines.elasticsearch.rights import bodies

    return bodies(settings.index_prefix)


def judgments_address(settings: Settings) -> str:
    """Where the team's judgments are, without asking whether they are there.

    Raises:
        UsageError: the engine is no cluster, and no cluster's address is given.
    """
    from searchapp.engines.elasticsearch.judgments import address_of

    if not settings.uses_server and not settings.url_given:
        raise UsageError(
            "judgments are shared through an Elasticsearch: give its address with --url or SEARCHAPP_URL"
        )
    return address_of(settings)


def open_judgments(settings: Settings, attempts: int = 3, timeout: float = 30.0) -> EventIndex:
    """The team's judgments; every request is tried `attempts` times, and given `timeout` seconds each time.

    Raises:
        UsageError: the engine is no cluster.
        EngineError: the cluster does not answer, or refuses.
    """
    from searchapp.engines.elasticsearch.judgments import JudgmentIndex

    judgments_address(settings)
    return JudgmentIndex.connect(settings, attempts, timeout)
