"""A linear model of texts with several labels: a margin for each, the sum of what a text's features weigh.

The weights are float32, and those near 0 are left out: what is kept in a file is what ranks, also right after the
training, so that a model gives the same scores whether it was trained now or read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from searchapp.errors import DataError
from searchapp.ranking.learning.features import FEWEST, Vocabulary, kind_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Arrays = Mapping[str, Any]
"""NumPy arrays by their names."""


class Part(NamedTuple):
    """What a feature of a text adds to a margin."""

    feature: str
    value: float


@dataclass(frozen=True, eq=False)
class Linear:
    """The margins of `labels`; `weights` is sparse, (features, labels), `intercepts` (labels,), both float64."""

    vocabulary: Vocabulary
    labels: tuple[str, ...]
    weights: Any
    intercepts: Floats

    def margins(self, texts: Sequence[str]) -> Floats:
        """How far each text is on a label's side, in units of the classifier's margin: (texts, labels)."""
        import numpy as np

        found = (self.vocabulary.vectors(texts) @ self.weights).toarray() + self.intercepts
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def _by_label(self) -> Any:
        return self.weights.tocsc()

    def parts(self, text: str, label: int) -> list[Part]:
        """What the features of a text add to the margin of the label at a place, the greatest amounts first.

        Together with the label's intercept they are the margin.
        """
        column = self._by_label
        start, end = column.indptr[label], column.indptr[label + 1]
        known = dict(zip(column.indices[start:end].tolist(), column.data[start:end].tolist(), strict=True))
        vector = self.vocabulary.vectors([text])
        found = [
            Part(self.vocabulary.features[place], known[place] * value)
            for place, value in zip(vector.indices.tolist(), vector.data.tolist(), strict=True)
            if place in known
        ]
        return sorted(found, key=lambda part: (-abs(part.value), part.feature))

    def header(self) -> dict[str, Any]:
        """What a file says of it beside its arrays."""
        return {"features": list(self.vocabulary.features), "labels": list(self.labels)}

    def arrays(self) -> dict[str, Any]:
        """Its arrays, for a file."""
        import numpy as np

        return {
            "idf": self.vocabulary.idf,
            "intercepts": self.intercepts,
            "weights": self.weights.data.astype(np.float32),
            "weights_at": self.weights.indices.astype(np.int32),
            "weights_ends": self.weights.indptr.astype(np.int64),
        }

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Arrays) -> Linear:
        """The model that `header` and `arrays` describe.

        Raises:
            DataError: they describe none.
        """
        features, labels = texts(header, "features"), texts(header, "labels")
        if list(features) != sorted(set(features)) or {kind_of(one) for one in features} - FEWEST.keys():
            raise broken("features")
        weights = sparse(arrays, "weights", (len(features), len(labels)))
        idf, intercepts = numbers(arrays, "idf", len(features)), numbers(arrays, "intercepts", len(labels))
        return cls(Vocabulary(features, idf), labels, weights, intercepts)


def broken(name: str) -> DataError:
    """The error that a part of a model is not what it should be, although its digest is."""
    return DataError(
        f"the model's {name} are not what they should be: train again with `searchapp train TASK --rebuild`"
    )


def texts(header: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts in a header.

    Raises:
        DataError: it is something else.
    """
    found = header.get(name)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise broken(name)
    return tuple(found)


def numbers(arrays: Arrays, name: str, length: int, *, below: int | None = None) -> Any:
    """One array of finite float64; with `below` of whole numbers from 0 on and below that.

    Raises:
        DataError: it is missing or something else.
    """
    import numpy as np

    found = arrays.get(name)
    kind = "f" if below is None else "iu"
    if found is None or found.dtype.kind not in kind or found.shape != (length,):
        raise broken(name)
    if below is None:
        found = found.astype(np.float64)
        if not np.isfinite(found).all():
            raise broken(name)
    elif length and not (found.min() >= 0 and found.max() < below):
        raise broken(name)
    return found


def sparse(arrays: Arrays, name: str, shape: tuple[int, int]) -> Any:
    """A sparse matrix of float64 by rows: of the arrays `name`, `name`_at (columns) and `name`_ends (of rows).

    Raises:
        DataError: they are missing or make no such matrix.
    """
    import numpy as np
    from scipy.sparse import csr_array

    rows, columns = shape
    held = arrays.get(name)
    length = -1 if held is None else held.size
    values = numbers(arrays, name, length)
    at = numbers(arrays, f"{name}_at", length, below=columns)
    ends = numbers(arrays, f"{name}_ends", rows + 1, below=length + 1)
    if ends[0] != 0 or ends[-1] != length or (np.diff(ends.astype(np.int64)) < 0).any():
        raise broken(f"{name}_ends")
    return csr_array((values, at.astype(np.int64), ends.astype(np.int64)), shape=shape)
