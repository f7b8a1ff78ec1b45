"""What the user allows models to get: hosts, keys, commands, and the cost of requests.

Texts leave this machine only for hosts that the settings name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from urllib.parse import urlsplit

from searchapp.config.credentials import is_this_machine
from searchapp.config.settings import MODEL_KEYS, SecretSource, Settings
from searchapp.errors import ModelUnavailable, UsageError
from searchapp.formats.problems import shown
from searchapp.lucene.dataclass import dataclass

# Models cut English text into tokens of about four bytes, and formulas into shorter ones.
BYTES_PER_TOKEN = 3

# A request fails after this number of attempts; one for a waiting user, whom the other signals serve, after fewer.
ATTEMPTS, WORD_ATTEMPTS = 8, 2


@dataclass(frozen=True, slots=True)
class Access:
    """What the user allows: hosts beside this machine, keys, requests without TLS, commands of task files, and a
    cost."""

    hosts: frozenset[str] = frozenset()
    # By the name of the setting.
    keys: Mapping[str, str | SecretSource | None] = field(default_factory=dict)
    insecure: bool = False
    commands: bool = False
    # Of the requests for the words of a search, and to rerankers.
    max_cost: float | None = None

    @classmethod
    def of(cls, settings: Settings, *, commands: bool = False, max_cost: float | None = None) -> Access:
        hosts = (host.strip().lower() for host in (settings.model_hosts or "").split(","))
        keys = {name: getattr(settings, name) for name in MODEL_KEYS}
        return cls(frozenset(filter(None, hosts)), keys, settings.insecure, commands, max_cost)

    def require_command(self, command: str) -> None:
        """Check that a program that a task file names may be run.

        Raises:
            UsageError: it must not.
        """
        if not self.commands:
            raise UsageError(
                f"the task file gives texts to a command ({shown(command)}): read it, and allow it "
                "with --run-command"
            )

    def require_url(self, url: str) -> None:
        """Check that texts may be sent to an address.

        Raises:
            UsageError: they must not.
        """
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        if is_this_machine(host):
            return
        if host not in self.hosts:
            raise UsageError(
                f"texts are not sent to {shown(host)} unless you allow it: add the host to the setting "
                "model_hosts, or to SEARCHAPP_MODEL_HOSTS"
            )
        if parts.scheme != "https" and not self.insecure:
            raise UsageError(
                f"{host} has no TLS, so others on the network could read the key and the texts: use https, or "
                "allow it with --insecure"
            )


class OverBudget(ModelUnavailable):
    """The next request could exceed the greatest cost."""


class Budget:
    """The requests and tokens of a job, and their cost.

    A request of unknown outcome counts with the estimate of its cost. Threads share a budget.
    """

    def __init__(self, max_cost: float | None = None) -> None:
        self.requests = 0
        self.tokens = 0
        self._max_cost = max_cost
        self._spent = self._reserved = Fraction()
        self._lock = threading.Lock()

    @property
    def cost(self) -> float:
        return float(self._spent)

    def reserve(self, cost: Fraction) -> None:
        """Count a request and the estimate of its cost.

        Raises:
            OverBudget: it could exceed the greatest cost.
        """
        with self._lock:
            if self._max_cost is not None and self._spent + self._reserved + cost > self._max_cost:
                raise OverBudget(
                    f"stopped at a cost of {self.cost:.4g}, because the next request could exceed --max-cost"
                )
            self._reserved += cost
            self.requests += 1

    def settle(self, reserved: Fraction, cost: Fraction, tokens: int) -> None:
        """Replace the estimate of a request by its cost and tokens."""
        with self._lock:
            self._reserved -= reserved
            self._spent += cost
            self.tokens += tokens


def estimated_tokens(texts: Iterable[str]) -> int:
    """Return an estimate of the number of tokens of texts."""
    return sum(-(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN) for text in texts)
