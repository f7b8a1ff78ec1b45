"""The values of explanations: float32 as a rule, printed as the shortest decimal that is the same float32."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from searchapp.engines.base import Explanation
from searchapp.engines.embedded.java_numbers import printed


def shortest(value: float | np.float32) -> float:
    """The decimal by which Java prints a float32."""
    return float(printed(value))


def exact(explanation: Explanation) -> float:
    """The number that an explanation's value stands for: Lucene's few doubles are printed in full."""
    value = explanation.value
    return float(np.float32(value)) if shortest(value) == value else value


def explained(
    value: float | np.float32, description: str, details: Iterable[Explanation] = ()
) -> Explanation:
    """An explanation whose value is a float32."""
    return Explanation(shortest(value), description, tuple(details))


def constant(boost: np.float32, name: str) -> Explanation:
    """The explanation of a query by whose name all documents have one score, the boost."""
    return explained(boost, name if boost == 1 else f"{name}^{printed(boost)}")
