"""Trains linear support vector machines, one label against the rest (Fan et al., "LIBLINEAR", JMLR 2008).

Each job has a seed of its own and does not know of the others, so that their number, their order and how many
processes share them out make no difference to a single bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchapp.errors import UsageError
from searchapp.ranking.learning.features import Vocabulary
from searchapp.ranking.learning.linear import Linear

LEAST = 1e-3
"""The least weight that is kept, as an amount: less changes no ranking that was measured, and is most of a file."""

TOLERANCE = 1e-2
"""When the solver is content; ten times less changes no figure that was measured, and takes twice as long."""

AT_ONCE = 32
"""How many labels one call of the solver takes where no text has two of them."""


@dataclass(frozen=True, slots=True)
class Job:
    """Labels that one call of the solver tells from each other and from the rest.

    `rows` has, for each label by its place in the model, the texts that have it; no text has two of them. Only the
    texts `among` these are looked at, or all where it is None. `cost` is the solver's C.
    """

    rows: Mapping[int, Sequence[int]]
    cost: float
    among: Sequence[int] | None = None


def require_learn() -> None:
    """Make sure that models can be trained here.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "models are trained with the package scikit-learn, which is not installed: install it with "
            "`pip install 'searchapp[learn]'`, or choose a recipe without a trained signal"
        ) from error


def learner() -> str:
    """What trains, with its version."""
    import sklearn

    return f"scikit-learn {sklearn.__version__}"


def jobs(rows: Mapping[int, Sequence[int]], cost: float, among: Sequence[int] | None = None) -> Iterator[Job]:
    """The jobs of labels of which no text has two, see `Job`; their order alone says how they are shared out."""
    labels = list(rows)
    for at in range(0, len(labels), AT_ONCE):
        yield Job({label: rows[label] for label in labels[at : at + AT_ONCE]}, cost, among)


def fitted(
    vocabulary: Vocabulary,
    vectors: Any,
    labels: Sequence[str],
    work: Iterable[Job],
    seed: int,
    workers: int = 1,
) -> Linear:
    """The model of `labels`, each of which is in one job, that the vectors of solved topics make.

    `vectors` is (topics, features), sparse by rows. What a label is called plays no part.
    """
    import numpy as np
    from joblib import Parallel, delayed
    from scipy.sparse import coo_array

    found = Parallel(n_jobs=workers)(delayed(_fitted)(vectors, job, seed) for job in work)
    intercepts = np.zeros(len(labels))
    places, features, amounts = [], [], []
    for label, weights, intercept in (one for of_job in found for one in of_job):
        (at,) = weights.nonzero()
        places.append(np.full(len(at), label))
        features.append(at)
        amounts.append(weights[at])
        intercepts[label] = intercept
    entries = np.concatenate(amounts), (np.concatenate(features), np.concatenate(places))
    shape = len(vocabulary.features), len(labels)
    return Linear(vocabulary, tuple(labels), coo_array(entries, shape=shape).tocsr(), intercepts)


def _fitted(vectors: Any, job: Job, seed: int) -> list[tuple[int, Any, float]]:
    """Each label of a job, the weight of each feature, and the intercept."""
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    wanted = np.full(vectors.shape[0], _REST)
    for label, rows in job.rows.items():
        wanted[list(rows)] = label
    if job.among is not None:
        vectors, wanted = vectors[list(job.among)], wanted[list(job.among)]
    known = np.unique(wanted).tolist()
    if len(known) == 1:  # nothing tells one from another
        return [(label, np.zeros(vectors.shape[1]), 1.0) for label in job.rows]
    solver = LinearSVC(C=job.cost, dual=True, tol=TOLERANCE, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # where it stops is as good, and the same every time
        solver.fit(vectors, wanted)
    coefficients, intercepts = solver.coef_, np.atleast_1d(solver.intercept_)
    if len(known) == 2:  # then the solver has those of the second alone
        coefficients, intercepts = (
            np.vstack([-coefficients, coefficients]),
            np.append(-intercepts, intercepts),
        )
    coefficients = coefficients.astype(np.float32).astype(np.float64)
    coefficients[np.abs(coefficients) < LEAST] = 0.0
    rows_of = {label: row for row, label in enumerate(known)}
    return [(label, coefficients[rows_of[label]], float(intercepts[rows_of[label]])) for label in job.rows]


_REST = -1
"""The label of texts that have none of a job's."""
