"""Models of solved topics: linear models of texts, trees over features, and the files of both.

Linear models

A feature is text with its kind before it, so that a model can explain itself:

    words: who wrote          one to three words in a row
    letters: wri              two to five letters in a row within a word; a blank is where the word begins or ends
    pattern: ^ who wrote #    one to four in a row of words, punctuation, # for names and numbers, and both ends
    begins: who               the first one to four words
    ends: river               the last one or two words

A name is a run of words with a capital letter, but for the first word of the text: texts of the same pattern often ask
the same question about different things. A feature weighs (1 + ln tf) * idf in a text, with idf = ln((1 + N) / (1 +
df)) + 1, and the features of words, of letters, of the pattern and of both ends have length 1 each, so that no kind
drowns the others by its number (as with one `TfidfVectorizer` of scikit-learn for each, and `sublinear_tf`).

The model has several labels and gives a margin for each, the sum of the weights of a text's features. The weights are
float32, and those near 0 are left out: the stored weights rank, also right after the training, so that a model gives
the same scores whether it was trained now or read.

Training is of linear support vector machines, one label against the rest (Fan et al., "LIBLINEAR", JMLR 2008). Each job
has a seed of its own and does not depend on the others, so that their number, their order and the number of processes
make no difference to a single bit.

Trees

Gradient-boosted regression trees (Friedman, "Greedy function approximation", 2001), as arrays.

A node compares one feature with a threshold, and goes left if it is at most that. Every node has a value, the
prediction of the tree if it stopped there. So a score can be decomposed into contributions of features: walking down,
each step changes the value by the contribution of the feature of that node for this row (Saabas, "Interpreting random
forests", 2014). Together with the values of the roots that is the score.

The trees are grown by scikit-learn's histograms with the logistic loss, in one thread: sums of several threads would
depend on their number. Their sum is the log-odds that a candidate is relevant. Ranking pairs or lists instead
(LambdaMART) was not better where it was measured, see docs/tasks/nlps.md.

Files

The file of a model: a header, which is JSON, and arrays of numbers, in one `.npz` of NumPy.

Reading it executes nothing, unlike a pickle: the arrays are numbers, or the file is rejected. The header has the digest
of everything else, so that damage is detected first.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import searchapp
from searchapp.errors import DataError, UsageError
from searchapp.files import atomic_file, digest_json, open_file, parse_json, unreadable
from searchapp.resources import install_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FeatureWeights = NDArray[np.float64]
    Whole = NDArray[np.int64]

KINDS = WORDS, LETTERS, PATTERN, BEGINS, ENDS = "words", "letters", "pattern", "begins", "ends"

FEWEST: Mapping[str, int] = {WORDS: 2, LETTERS: 3, PATTERN: 2, BEGINS: 2, ENDS: 2}
"""The fewest texts that must have a feature of each kind: a feature of one text generalizes to no other."""

_BLOCKS = {WORDS: 0, LETTERS: 1, PATTERN: 2, BEGINS: 3, ENDS: 3}
"""The kinds that have length 1 together."""

_MOST_WORDS, _MOST_OF_PATTERN = 3, 4
_LETTERS = range(2, 6)
_FIRST, _LAST = 4, 2
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_NAME, _BEGIN, _END = "#", "^", "$"


def kind_of(feature: str) -> str:
    """Return the kind of a feature."""
    return feature.partition(":")[0]


def feature_text(feature: str) -> str:
    """Return a feature as explanations show it: its kind, and the rest in quotes."""
    kind = kind_of(feature)
    return f"{kind} “{feature[len(kind) + 2 :]}”"


def counted(text: str) -> Counter[str]:
    """Return the features of a text, and their numbers.

    >>> sorted(counted("Who?"))[:3]
    ['begins: who', 'ends: who', 'letters:  w']
    """
    words = _WORD.findall(text.lower())
    features = Counter(_in_a_row(WORDS, words, _MOST_WORDS))
    for word in words:
        features.update(_letters(word))
    features.update(_in_a_row(PATTERN, _pattern(text), _MOST_OF_PATTERN))
    features.update(
        f"{BEGINS}: {' '.join(words[:length])}" for length in range(1, min(_FIRST, len(words)) + 1)
    )
    features.update(f"{ENDS}: {' '.join(words[-length:])}" for length in range(1, min(_LAST, len(words)) + 1))
    return features


def _in_a_row(kind: str, words: Sequence[str], most: int) -> Iterator[str]:
    for length in range(1, most + 1):
        for at in range(len(words) - length + 1):
            yield f"{kind}: {' '.join(words[at : at + length])}"


@lru_cache(maxsize=50_000)
def _letters(word: str) -> tuple[str, ...]:
    padded = f" {word} "
    return tuple(
        f"{LETTERS}: {padded[at : at + length]}"
        for length in _LETTERS
        for at in range(len(padded) - length + 1)
    )


def _pattern(text: str) -> list[str]:
    pattern = [_BEGIN]
    for place, token in enumerate(_TOKEN.findall(text)):
        if not (token.isdigit() or (place and token[0].isupper())):
            pattern.append(token.lower())
        elif pattern[-1] != _NAME:
            pattern.append(_NAME)
    return [*pattern, _END]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The features of a model, in the order of their text, and the idf of each: (features,)."""

    features: tuple[str, ...]
    idf: FeatureWeights

    @classmethod
    def of(cls, texts: Iterable[str], without: Collection[str] = ()) -> tuple[Vocabulary, Any]:
        """Return the features that enough texts have, see `FEWEST`, without some kinds, and the texts' vectors."""
        import numpy as np

        found = [counted(text) for text in texts]
        total = len(found)
        containing: Counter[str] = Counter()
        for features in found:
            containing.update(features.keys())
        kept = sorted(
            feature
            for feature, df in containing.items()
            if df >= FEWEST[kind := kind_of(feature)] and kind not in without
        )
        df = np.array([containing[feature] for feature in kept], dtype=np.float64)
        vocabulary = cls(tuple(kept), np.log((1.0 + total) / (1.0 + df)) + 1.0)
        return vocabulary, vocabulary._weighed(found)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {feature: place for place, feature in enumerate(self.features)}

    @cached_property
    def _block(self) -> NDArray[np.int64]:
        import numpy as np

        return np.array([_BLOCKS[kind_of(feature)] for feature in self.features], dtype=np.int64)

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return the weights of the features in each text: sparse by rows, (texts, features), float64."""
        return self._weighed([counted(text) for text in texts])

    def _weighed(self, texts: Sequence[Mapping[str, int]]) -> Any:
        import numpy as np
        from scipy.sparse import csr_array

        known = self._places
        at: list[int] = []
        tf: list[int] = []
        ends = [0]
        for text in texts:
            counts_by_place = sorted(
                (known[feature], count) for feature, count in text.items() if feature in known
            )
            at.extend(place for place, _count in counts_by_place)
            tf.extend(count for _place, count in counts_by_place)
            ends.append(len(at))
        places = np.array(at, dtype=np.int32)
        values = (1.0 + np.log(np.array(tf, dtype=np.float64))) * self.idf[places]
        # Which block of which text a value belongs to; the squares are added in the order of the features.
        of_text = np.repeat(np.arange(len(texts)), np.diff(ends))
        blocks = (max(_BLOCKS.values()) + 1) * of_text + self._block[places]
        values /= np.sqrt(np.bincount(blocks, values**2))[blocks]
        parts = values, places, np.array(ends, dtype=np.int32)  # of the kinds that the solver takes
        return csr_array(parts, shape=(len(texts), len(self.features)))


if TYPE_CHECKING:
    Floats = NDArray[np.float64]

Arrays = Mapping[str, Any]
"""NumPy arrays by name."""


class FeatureContribution(NamedTuple):
    """The contribution of a feature of a text to a margin."""

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
        """Return the distance of each text from a label's boundary, in units of the classifier's margin: (texts,
        labels).
        """
        import numpy as np

        margins = (self.vocabulary.vectors(texts) @ self.weights).toarray() + self.intercepts
        return np.asarray(margins, dtype=np.float64)

    @cached_property
    def _by_label(self) -> Any:
        return self.weights.tocsc()

    def parts(self, text: str, label: int) -> list[FeatureContribution]:
        """Return the contributions of a text's features to the margin of the label at a place, the greatest amounts
        first.

        Together with the label's intercept they are the margin.
        """
        column = self._by_label
        start, end = column.indptr[label], column.indptr[label + 1]
        known = dict(zip(column.indices[start:end].tolist(), column.data[start:end].tolist(), strict=True))
        vector = self.vocabulary.vectors([text])
        parts = [
            (self.vocabulary.features[place], known[place] * value)
            for place, value in zip(vector.indices.tolist(), vector.data.tolist(), strict=True)
            if place in known
        ]
        parts.sort(key=lambda part: (-abs(part[1]), part[0]))
        return [FeatureContribution(feature_text(feature), value) for feature, value in parts]

    def header(self) -> dict[str, Any]:
        """Return the header of its file."""
        return {"features": list(self.vocabulary.features), "labels": list(self.labels)}

    def arrays(self) -> dict[str, Any]:
        """Return the arrays of its file."""
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
        """Return the model of a `header` and `arrays`.

        Raises:
            DataError: they are invalid.
        """
        features, labels = texts(header, "features"), texts(header, "labels")
        if (
            list(features) != sorted(set(features))
            or {kind_of(feature) for feature in features} - FEWEST.keys()
        ):
            raise broken("features")
        weights = sparse(arrays, "weights", (len(features), len(labels)))
        idf, intercepts = numbers(arrays, "idf", len(features)), numbers(arrays, "intercepts", len(labels))
        return cls(Vocabulary(features, idf), labels, weights, intercepts)


def broken(name: str) -> DataError:
    """Return the error that a part of a model is invalid, although its digest is right."""
    return DataError(
        f"the model's {name} are not what they should be: train again with `searchapp train TASK --rebuild`"
    )


def texts(header: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of texts in a header.

    Raises:
        DataError: it is something else.
    """
    values = header.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise broken(name)
    return tuple(values)


def numbers(arrays: Arrays, name: str, length: int, *, below: int | None = None) -> Any:
    """Return an array of finite float64; with `below` of whole numbers from 0 on and below that.

    Raises:
        DataError: it is missing or something else.
    """
    import numpy as np

    array = arrays.get(name)
    kind = "f" if below is None else "iu"
    if array is None or array.dtype.kind not in kind or array.shape != (length,):
        raise broken(name)
    if below is None:
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise broken(name)
    elif length and not (array.min() >= 0 and array.max() < below):
        raise broken(name)
    return array


def sparse(arrays: Arrays, name: str, shape: tuple[int, int]) -> Any:
    """Return a sparse matrix of float64 by rows: of the arrays `name`, `name`_at (columns) and `name`_ends (of rows).

    Raises:
        DataError: they are missing or make no such matrix.
    """
    import numpy as np
    from scipy.sparse import csr_array

    rows, columns = shape
    values_array = arrays.get(name)
    length = -1 if values_array is None else values_array.size
    values = numbers(arrays, name, length)
    at = numbers(arrays, f"{name}_at", length, below=columns)
    ends = numbers(arrays, f"{name}_ends", rows + 1, below=length + 1)
    if ends[0] != 0 or ends[-1] != length or (np.diff(ends.astype(np.int64)) < 0).any():
        raise broken(f"{name}_ends")
    return csr_array((values, at.astype(np.int64), ends.astype(np.int64)), shape=shape)


LEAST = 1e-3
"""The least amount of a stored weight: less changes no measured ranking, and is most of a file."""

TOLERANCE = 1e-2
"""The solver's tolerance; ten times less changes no measured figure, and takes twice as long."""

AT_ONCE = 32
"""How many labels one call of the solver takes where no text has two of them."""


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """Labels that one call of the solver distinguishes from each other and from the rest.

    `rows` has, for each label by its place in the model, its texts; no text has two labels. Only the texts `among` are
    used, or all where it is None. `cost` is the solver's C.
    """

    rows: Mapping[int, Sequence[int]]
    cost: float
    among: Sequence[int] | None = None


def _no_learn() -> UsageError:
    return UsageError(
        "models are trained with the package scikit-learn, which is not installed: install it with "
        f"`{install_command('learn')}`, or choose a recipe without a trained signal"
    )


def require_learn() -> None:
    """Make sure that models can be trained here.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise _no_learn() from error


def versions() -> dict[str, str]:
    """Return the versions that a model depends on: of searchapp, Python and the packages that compute it.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    try:
        packages = {name: metadata.version(name) for name in ("scikit-learn", "numpy", "scipy")}
    except metadata.PackageNotFoundError as error:
        raise _no_learn() from error
    # Python's tables of characters decide what a word is; they change with its minor version.
    python = ".".join(platform.python_version_tuple()[:2])
    # In the order in which they are read back from the file of a model.
    return dict(sorted({"searchapp": searchapp.__version__, "python": python, **packages}.items()))


def jobs(
    rows: Mapping[int, Sequence[int]], cost: float, among: Sequence[int] | None = None
) -> Iterator[TrainingJob]:
    """Yield the jobs of labels of which no text has two, see `TrainingJob`, divided by their order alone."""
    labels = list(rows)
    for at in range(0, len(labels), AT_ONCE):
        yield TrainingJob({label: rows[label] for label in labels[at : at + AT_ONCE]}, cost, among)


def fitted(
    vocabulary: Vocabulary,
    vectors: Any,
    labels: Sequence[str],
    work: Iterable[TrainingJob],
    seed: int,
    workers: int = 1,
) -> Linear:
    """Train the model of `labels`, each of which is in one job, from the vectors of solved topics.

    `vectors` is (topics, features), sparse by rows. The names of labels have no influence.
    """
    import numpy as np
    from joblib import Parallel, delayed
    from scipy.sparse import coo_array

    results = Parallel(n_jobs=workers)(delayed(_fitted)(vectors, job, seed) for job in work)
    intercepts = np.zeros(len(labels))
    places, features, amounts = [], [], []
    for label, weights, intercept in (label_result for of_job in results for label_result in of_job):
        (at,) = weights.nonzero()
        places.append(np.full(len(at), label))
        features.append(at)
        amounts.append(weights[at])
        intercepts[label] = intercept
    entries = np.concatenate(amounts), (np.concatenate(features), np.concatenate(places))
    shape = len(vocabulary.features), len(labels)
    return Linear(vocabulary, tuple(labels), coo_array(entries, shape=shape).tocsr(), intercepts)


def _fitted(vectors: Any, job: TrainingJob, seed: int) -> list[tuple[int, Any, float]]:
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
"""The label of texts without a label of the job."""


_NAMES = ("feature", "threshold", "left", "right", "value", "roots")


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees over `features`, with all nodes in one sequence; all arrays are (nodes,) but `roots`.

    `feature` is the column that a node compares, `left` and `right` are its children; a leaf is its own child. `roots`
    (trees,) are the first nodes, and no child comes before its parent.
    """

    features: tuple[str, ...]
    feature: Whole
    threshold: FeatureWeights
    left: Whole
    right: Whole
    value: FeatureWeights
    roots: Whole

    def scores(self, rows: FeatureWeights) -> FeatureWeights:
        """Return the sum of the trees' values for each row of features, (rows, features): (rows,)."""
        import numpy as np

        at = self._start(rows)
        while (followers := self._followers(rows, at)) is not None:
            at = followers
        return np.asarray(self.value[at].sum(axis=1))

    def parts(self, rows: FeatureWeights) -> FeatureWeights:
        """Return the contribution of each feature to the score of each row: (rows, features); plus `bias` they are the
        score.
        """
        import numpy as np

        at = self._start(rows)
        contributions = np.zeros(rows.shape)
        numbers_ = np.arange(len(rows))
        while (followers := self._followers(rows, at)) is not None:
            change = self.value[followers] - self.value[at]
            for tree in range(at.shape[1]):
                np.add.at(contributions, (numbers_, self.feature[at[:, tree]]), change[:, tree])
            at = followers
        return contributions

    @property
    def bias(self) -> float:
        """The sum of the values of the roots."""
        return float(self.value[self.roots].sum())

    @property
    def least(self) -> float:
        """The least possible score: the sum of the least leaf of each tree."""
        import numpy as np

        leaves = np.where(self.left == np.arange(len(self.left)), self.value, np.inf)
        return float(np.minimum.reduceat(leaves, self.roots).sum())

    def _start(self, rows: FeatureWeights) -> Whole:
        import numpy as np

        return np.broadcast_to(self.roots, (len(rows), len(self.roots)))

    def _followers(self, rows: FeatureWeights, at: Whole) -> Whole | None:
        import numpy as np

        if not len(rows) or bool((self.left[at] == at).all()):
            return None
        asked = rows[np.arange(len(rows))[:, None], self.feature[at]]
        return np.where(asked <= self.threshold[at], self.left[at], self.right[at])

    def header(self) -> dict[str, Any]:
        """Return the header of its file."""
        return {"features": list(self.features), "trees": len(self.roots)}

    def arrays(self) -> dict[str, Any]:
        """Return the arrays of its file."""
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Arrays) -> Trees:
        """Return the trees of a `header` and `arrays`.

        Raises:
            DataError: they are invalid.
        """
        import numpy as np

        names = texts(header, "features")
        nodes, trees = (getattr(arrays.get(name), "size", -1) for name in ("value", "roots"))
        limits = {"feature": len(names), "left": nodes, "right": nodes, "roots": nodes}
        read = {
            name: _as_kept(
                name, numbers(arrays, name, trees if name == "roots" else nodes, below=limits.get(name))
            )
            for name in _NAMES
        }
        places = np.arange(nodes)
        is_leaf = read["left"] == places
        # A child comes after its parent, so that every walk ends.
        for children in (read["left"], read["right"]):
            if ((children < places) | ((children == places) != is_leaf)).any():
                raise broken("trees")
        return cls(names, **read)


def joined(features: Sequence[str], grown: Sequence[Mapping[str, Any]]) -> Trees:
    """Return trees from the arrays of each: `feature`, `threshold`, `left`, `right` and `value` of its nodes, the root
    first.

    A leaf has `left` -1. The numbers of nodes are those within their tree.
    """
    import numpy as np

    sizes = [len(tree["value"]) for tree in grown]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    columns: dict[str, list[Any]] = {name: [] for name in _NAMES[:-1]}
    for root, tree in zip(roots, grown, strict=True):
        places = np.arange(len(tree["value"]))
        is_leaf = np.asarray(tree["left"]) < 0
        for name in ("left", "right"):
            columns[name].append(root + np.where(is_leaf, places, tree[name]))
        columns["feature"].append(np.where(is_leaf, 0, tree["feature"]))
        columns["threshold"].append(np.where(is_leaf, 0.0, tree["threshold"]))
        columns["value"].append(np.asarray(tree["value"], dtype=np.float64))
    arrays = {name: np.concatenate(of_trees) for name, of_trees in columns.items()}
    return Trees(tuple(features), roots=roots, **{name: _as_kept(name, arrays[name]) for name in arrays})


def _as_kept(name: str, array: Any) -> Any:
    return array if name in ("threshold", "value") else array.astype("int64")


_NO_FOLLOWER = -1


def grown(
    names: Sequence[str],
    rows: Any,
    relevant: NDArray[np.bool_],
    *,
    trees: int,
    leaves: int,
    fewest: int,
    rate: float,
    seed: int,
) -> Trees:
    """Grow trees from rows of the features `names`, (candidates, features) float64; `relevant` is (candidates,).

    Args:
        names: the features
        rows: their values
        relevant: whether a candidate is relevant
        trees: the number of trees
        leaves: the most leaves of a tree
        fewest: the minimum samples per leaf
        rate: the learning rate
        seed: the seed; the same rows give the same trees, with the same version of scikit-learn
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    learner = HistGradientBoostingClassifier(
        max_iter=trees,
        max_leaf_nodes=leaves,
        min_samples_leaf=fewest,
        learning_rate=rate,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(limits=1):
        learner.fit(rows, relevant)
    # What scikit-learn has no public name for; the test that the scores are its own guards it.
    arrays = [_tree(of_round[0].nodes) for of_round in learner._predictors]
    arrays[0]["value"] += learner._baseline_prediction.item()
    return joined(names, arrays)


def _tree(nodes: Any) -> dict[str, Any]:
    import numpy as np

    is_leaf = nodes["is_leaf"].astype(bool)
    left = np.where(is_leaf, _NO_FOLLOWER, nodes["left"].astype(np.int64))
    right = np.where(is_leaf, _NO_FOLLOWER, nodes["right"].astype(np.int64))
    value, count = nodes["value"].astype(np.float64), nodes["count"].astype(np.float64)
    for place in range(len(nodes) - 1, -1, -1):  # who follows lies behind
        if not is_leaf[place]:
            below = [left[place], right[place]]
            value[place] = float((count[below] * value[below]).sum() / count[place])
    return {
        "feature": nodes["feature_idx"].astype(np.int64),
        "threshold": nodes["num_threshold"].astype(np.float64),
        "left": left,
        "right": right,
        "value": value,
    }


MODEL_FORMAT = 1
"""The format of the files; models of another one are trained again."""

_HEADER = "header"
_NUMBERS = frozenset({"f", "i", "u"})
_MOST_BYTES = 4 << 30
"""The greatest unpacked size of a file: no model comes near."""


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model: a header of JSON values, NumPy arrays of numbers by name, and the digest of both, see `digest_of`."""

    header: Mapping[str, Any]
    arrays: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> StoredModel:
        """Return a model that was just trained."""
        return cls(header, arrays, digest_of(header, arrays))


def digest_of(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a header, and of type, shape and content of each array by name."""
    import numpy as np

    found = hashlib.sha256(digest_json({**header, "format": MODEL_FORMAT}).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def write_model(path: Path, stored: StoredModel) -> None:
    """Write a model's file atomically; the same model gives the same bytes.

    Raises:
        SearchappError: it can't be written.
    """
    import numpy as np

    header = {**stored.header, "format": MODEL_FORMAT, "digest": stored.digest}
    text = json.dumps(header, ensure_ascii=False, sort_keys=True).encode("utf-8", "backslashreplace")
    arrays: dict[str, Any] = {_HEADER: np.frombuffer(text, dtype=np.uint8), **stored.arrays}
    with atomic_file(path) as file:
        np.savez_compressed(file, **arrays)


def read_model(path: Path) -> StoredModel:
    """Return the model in a file.

    Raises:
        DataError: the file can't be read, is no model, or damaged.
    """
    import numpy as np

    try:
        with open_file(path) as file, zipfile.ZipFile(file) as packed:
            if sum(item.file_size for item in packed.infolist()) > _MOST_BYTES:
                raise ValueError("it unpacks to more than any model")
        with open_file(path) as file, np.load(file, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        if not all(isinstance(item, np.ndarray) and item.dtype.kind in _NUMBERS for item in arrays.values()):
            raise ValueError("it has something else than numbers")
        header = parse_json(arrays.pop(_HEADER).tobytes().decode())
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
    except OSError as error:
        raise unreadable(path, error) from error
    except (
        ValueError,
        KeyError,
        EOFError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,  # NotImplementedError among them: what zip files can have and these do not
    ) as error:
        raise DataError(f"{path} is not a model of searchapp, or damaged: {_AGAIN}") from error
    if header.get("format") != MODEL_FORMAT:
        raise DataError(f"{path} is a model of another version of searchapp: {_AGAIN}")
    digest = header.pop("digest", None)
    if digest != digest_of(header, arrays):
        raise DataError(f"{path} is damaged, for its digest is not that of its content: {_AGAIN}")
    return StoredModel(header, arrays, digest)


_AGAIN = "remove it, or train again with `searchapp train TASK --rebuild`"
