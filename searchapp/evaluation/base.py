"""What every official scorer of ours returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OfficialScore:
    """The figure that the organisers' scorer yields for the same files.

    `measure` is its name ("MAP@500"), `value` a fraction (nan where theirs is), `per_topic` the single
    results in the order of the gold. `warnings` are sentences that say where the figure misleads.
    """

    measure: str
    value: float
    per_topic: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
