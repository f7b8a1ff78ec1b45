"""Models trained on topics with gold: linear models of texts, trees over features, and their files.

Linear models

A feature is text with its kind before it, so that a model can explain itself:

    words: who wrote          one to three words in a row
    letters: wri              two to five letters in a row within a word; a blank marks its begin or end
    pattern: ^ who wrote #    one to four words and punctuation marks in a row, # for names and numbers
    begins: who               the first one to four words
    ends: river               the last one or two words

A feature weighs (1 + ln tf) * idf in a text, with idf = ln((1 + N) / (1 + df)) + 1. The features of words, of
letters, of the pattern and of both ends each form a vector of length 1. Each label has a linear support vector
machine that separates it from the rest (Fan et al., "LIBLINEAR", JMLR 2008). Results do not depend on the number or
order of jobs or processes.

Trees

Gradient-boosted regression trees (Friedman, "Greedy function approximation", 2001); their sum is the log-odds that a
candidate is relevant. A node compares one feature with a threshold and goes left if it is at most that. Every node
has a value, as if the tree ended there: the change of the value at each step is the contribution of the compared
feature (Saabas, "Interpreting random forests", 2014).

Files

A NumPy `.npz` file with a JSON header and numeric arrays; reading it executes no code, unlike a pickle.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import hashlib
import json
import platform
import re
import warnings
import zipfile
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import searchapp
from searchapp.errors import DataError, UsageError
from searchapp.files import atomic_file, digest_json, open_file, parse_json, unreadable
from searchapp.lucene.dataclass import dataclass
from searchapp.resources import install_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Float64Array = NDArray[np.float64]
    Int64Array = NDArray[np.int64]

KINDS = WORDS, LETTERS, PATTERN, BEGINS, ENDS = "words", "letters", "pattern", "begins", "ends"

# The fewest texts that must have a feature of each kind: a feature of one text generalizes to no other.
MIN_DOCUMENT_FREQUENCY: Mapping[str, int] = {WORDS: 2, LETTERS: 3, PATTERN: 2, BEGINS: 2, ENDS: 2}

# Kinds with the same number share one vector of length 1.
_BLOCKS = {WORDS: 0, LETTERS: 1, PATTERN: 2, BEGINS: 3, ENDS: 3}

# The number of a feature that the vocabulary lacks.
_NO_COLUMN = -1

# How many texts become vectors at a time, which bounds memory.
TEXTS_AT_ONCE = 2_000

_MAX_WORDS, _MAX_PATTERN = 3, 4
_CHARACTER_LENGTHS = range(2, 6)
_MAX_FIRST, _MAX_LAST = 4, 2
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


def count_features(text: str) -> Counter[str]:
    """Count the features of a text.

    >>> sorted(counted("Who?"))[:3]
    ['begins: who', 'ends: who', 'letters:  w']
    """
    words = _WORD.findall(text.lower())
    features = Counter(_ngrams(WORDS, words, _MAX_WORDS))
    for word in words:
        features.update(_character_ngrams(word))
    features.update(_ngrams(PATTERN, _pattern(text), _MAX_PATTERN))
    features.update(
        f"{BEGINS}: {' '.join(words[:length])}" for length in range(1, min(_MAX_FIRST, len(words)) + 1)
    )
    features.update(
        f"{ENDS}: {' '.join(words[-length:])}" for length in range(1, min(_MAX_LAST, len(words)) + 1)
    )
    return features


def _ngrams(kind: str, words: Sequence[str], max_length: int) -> Iterator[str]:
    for length in range(1, max_length + 1):
        for at in range(len(words) - length + 1):
            yield f"{kind}: {' '.join(words[at : at + length])}"


@lru_cache(maxsize=10_000)
def _character_ngrams(word: str) -> tuple[str, ...]:
    padded = f" {word} "
    return tuple(
        f"{LETTERS}: {padded[at : at + length]}"
        for length in _CHARACTER_LENGTHS
        for at in range(len(padded) - length + 1)
    )


def _pattern(text: str) -> list[str]:
    pattern = [_BEGIN]
    for index, token in enumerate(_TOKEN.findall(text)):
        # A run of capitalized words, except the first word of the text, is a name. Texts of the same pattern
        # often ask the same question about different names.
        if not (token.isdigit() or (index and token[0].isupper())):
            pattern.append(token.lower())
        elif pattern[-1] != _NAME:
            pattern.append(_NAME)
    return [*pattern, _END]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The features of a model, sorted, and their idf (features,)."""

    features: tuple[str, ...]
    idf: Float64Array

    @classmethod
    def of(cls, texts: Iterable[str], without: Collection[str] = ()) -> tuple[Vocabulary, Any]:
        """Return the vocabulary of texts (see `MIN_DOCUMENT_FREQUENCY`), without some kinds, and the texts' vectors."""
        import numpy as np

        counts, lines, df = _count_selected(texts, without)
        _character_ngrams.cache_clear()  # it has most of the rare features
        release_memory()
        idf = np.log((1.0 + len(counts)) / (1.0 + df)) + 1.0
        vocabulary = cls(tuple(lines.splitlines()), idf)
        return vocabulary, vocabulary._weights(counts)

    @cached_property
    def _columns(self) -> Mapping[str, int]:
        return {feature: column for column, feature in enumerate(self.features)}

    @cached_property
    def _column_blocks(self) -> NDArray[np.int64]:
        import numpy as np

        return np.array([_BLOCKS[kind_of(feature)] for feature in self.features], dtype=np.int64)

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return the feature weights of each text: a sparse matrix by rows, (texts, features), float64."""
        columns = self._columns
        return self._weights(_TextCounts(texts, lambda feature: columns.get(feature, _NO_COLUMN)))

    def _weights(self, counts: _TextCounts) -> Any:
        """Return the vectors of texts whose features are numbered by column."""
        import numpy as np
        from scipy.sparse import csr_array

        width = max(_BLOCKS.values()) + 1
        total = np.count_nonzero(counts.numbers != _NO_COLUMN)
        # In the types that the solver takes.
        values, columns = np.empty(total), np.empty(total, dtype=np.int32)
        row_ends = np.zeros(len(counts) + 1, dtype=np.int32)
        for begin in range(0, len(counts), TEXTS_AT_ONCE):
            in_text, tf, ends = counts.part(begin, begin + TEXTS_AT_ONCE)
            of_text = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
            known = np.flatnonzero(in_text != _NO_COLUMN)
            # Squares are added in the order of the features.
            known = known[np.lexsort((in_text[known], of_text[known]))]
            in_text, of_text = in_text[known], of_text[known]
            weights = (1.0 + np.log(tf[known].astype(np.float64))) * self.idf[in_text]
            blocks = width * of_text + self._column_blocks[in_text]
            weights /= np.sqrt(np.bincount(blocks, weights**2))[blocks]
            start = row_ends[begin]
            part = slice(start, start + len(known))
            values[part], columns[part] = weights, in_text
            known_ends = np.searchsorted(of_text, np.arange(len(ends)), side="right")
            row_ends[begin + 1 : begin + 1 + len(ends)] = start + known_ends
        return csr_array((values, columns, row_ends), shape=(len(counts), len(self.features)))


class _TextCounts:
    """The features of texts by number, and how often each text has them, in few bytes."""

    def __init__(self, texts: Iterable[str], number_of: Callable[[str], int]) -> None:
        self._numbers, self._counts, self._ends = array("i"), array("i"), array("q")
        for text in texts:
            counts = count_features(text)
            self._numbers.extend(map(number_of, counts))
            self._counts.extend(counts.values())
            self._ends.append(len(self._numbers))

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def numbers(self) -> NDArray[np.int32]:
        """The number of each feature of each text; writable."""
        import numpy as np

        return np.frombuffer(self._numbers, dtype=np.int32)

    def part(self, begin: int, end: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Return the numbers, the counts, and the end of each text in them, of the texts in [begin, end)."""
        import numpy as np

        ends = np.frombuffer(self._ends, dtype=np.int64)[begin:end]
        start = self._ends[begin - 1] if begin else 0
        counts = np.frombuffer(self._counts, dtype=np.int32)
        of_part = slice(start, ends[-1] if len(ends) else start)
        return self.numbers[of_part], counts[of_part], ends - start


def release_memory() -> None:
    """Return freed memory to the system: that of Python's reused tuples, and with glibc that of its heap."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _count_selected(texts: Iterable[str], without: Collection[str]) -> tuple[_TextCounts, str, Float64Array]:
    """Return the features of texts by column, a line for each selected feature, and their document frequencies."""
    import numpy as np

    feature_numbers: dict[str, int] = {}  # of all features, in the order of their first text
    counts = _TextCounts(texts, lambda feature: feature_numbers.setdefault(feature, len(feature_numbers)))
    containing = np.bincount(counts.numbers, minlength=len(feature_numbers))
    selected = sorted(
        feature
        for feature, df in zip(feature_numbers, containing.tolist(), strict=True)
        if df >= MIN_DOCUMENT_FREQUENCY[kind := kind_of(feature)] and kind not in without
    )
    of_selected = [feature_numbers[feature] for feature in selected]
    columns = np.full(len(feature_numbers), _NO_COLUMN, dtype=np.int32)
    columns[of_selected] = np.arange(len(selected))
    counts.numbers[:] = columns[counts.numbers]
    # No feature contains a line break.
    return counts, "\n".join(selected), containing[of_selected].astype(np.float64)


# NumPy arrays by name.
Arrays = Mapping[str, Any]


class FeatureContribution(NamedTuple):
    """The contribution of a feature of a text to a margin."""

    feature: str
    value: float


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear model of `labels`."""

    vocabulary: Vocabulary
    labels: tuple[str, ...]
    weights: Any  # sparse (features, labels): float32 as trained, float64 as read
    intercepts: Float64Array  # (labels,)

    def margins(self, texts: Sequence[str]) -> Float64Array:
        """Return the distance of each text from each label's boundary, (texts, labels), in units of the margin."""
        import numpy as np

        margins = (self.vocabulary.vectors(texts) @ self.weights).toarray() + self.intercepts
        return np.asarray(margins, dtype=np.float64)

    @cached_property
    def _by_label(self) -> Any:
        return self.weights.tocsc()

    def parts(self, text: str, label: int) -> list[FeatureContribution]:
        """Return the contributions of a text's features to a label's margin, largest absolute value first.

        The contributions and the label's intercept add up to the margin.
        """
        column = self._by_label
        start, end = column.indptr[label], column.indptr[label + 1]
        weights = dict(zip(column.indices[start:end].tolist(), column.data[start:end].tolist(), strict=True))
        vector = self.vocabulary.vectors([text])
        parts = [
            (self.vocabulary.features[column], weights[column] * value)
            for column, value in zip(vector.indices.tolist(), vector.data.tolist(), strict=True)
            if column in weights
        ]
        parts.sort(key=lambda part: (-abs(part[1]), part[0]))
        return [FeatureContribution(feature_text(feature), value) for feature, value in parts]

    def header(self) -> dict[str, Any]:
        return {"features": list(self.vocabulary.features), "labels": list(self.labels)}

    def arrays(self) -> dict[str, Any]:
        import numpy as np

        return {
            "idf": self.vocabulary.idf,
            "intercepts": self.intercepts,
            "weights": self.weights.data.astype(np.float32, copy=False),
            "weights_at": self.weights.indices.astype(np.int32, copy=False),
            "weights_ends": self.weights.indptr.astype(np.int64),
        }

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Arrays) -> Linear:
        """Return the model of a file's header and arrays.

        Raises:
            DataError: they are invalid.
        """
        features, labels = texts(header, "features"), texts(header, "labels")
        if (
            list(features) != sorted(set(features))
            or {kind_of(feature) for feature in features} - MIN_DOCUMENT_FREQUENCY.keys()
        ):
            raise invalid_part("features")
        weights = sparse(arrays, "weights", (len(features), len(labels)))
        idf, intercepts = numbers(arrays, "idf", len(features)), numbers(arrays, "intercepts", len(labels))
        return cls(Vocabulary(features, idf), labels, weights, intercepts)


def invalid_part(name: str) -> DataError:
    """Return the error for an invalid part of a model whose digest is right."""
    return DataError(f"the model's {name} are invalid: train again with `searchapp train TASK --rebuild`")


def texts(header: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of texts in a header.

    Raises:
        DataError: it is missing or something else.
    """
    values = header.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise invalid_part(name)
    return tuple(values)


def numbers(arrays: Arrays, name: str, length: int, *, below: int | None = None) -> Any:
    """Return an array of finite float64, or with `below` of integers in [0, below).

    Raises:
        DataError: it is missing or something else.
    """
    import numpy as np

    array = arrays.get(name)
    kind = "f" if below is None else "iu"
    if array is None or array.dtype.kind not in kind or array.shape != (length,):
        raise invalid_part(name)
    if below is None:
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise invalid_part(name)
    elif length and not (array.min() >= 0 and array.max() < below):
        raise invalid_part(name)
    return array


def sparse(arrays: Arrays, name: str, shape: tuple[int, int]) -> Any:
    """Return the sparse matrix of `name` (values), `name`_at (columns) and `name`_ends (of rows), float64.

    Raises:
        DataError: an array is missing or invalid.
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
        raise invalid_part(f"{name}_ends")
    # With numbers of 32 bits, columns are not copied; a file has fewer cells than they count.
    return csr_array((values, at.astype(np.int32, copy=False), ends.astype(np.int32)), shape=shape)


# The least amount of a stored weight: smaller ones change no measured ranking, and are most of a file.
MIN_WEIGHT = 1e-3

# A tenth of the tolerance changes no measured figure and takes twice as long.
TOLERANCE = 1e-2

# How many labels one call of the solver trains if no text has two of them.
LABELS_PER_JOB = 32


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """Labels that one call of the solver distinguishes from each other and from the rest."""

    rows: Mapping[int, Sequence[int]]  # the texts of each label, by its column in the model; no text has two
    cost: float  # the solver's C
    among: Sequence[int] | None = None  # the texts to train on; None for all


def _missing_scikit_learn() -> UsageError:
    return UsageError(
        "models are trained with the package scikit-learn, which is not installed: install it with "
        f"`{install_command('learn')}`, or choose a recipe without a trained signal"
    )


def require_learn() -> None:
    """Make sure that models can be trained here.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    # Without an import, which takes more memory than some trainings.
    if find_spec("sklearn") is None:
        raise _missing_scikit_learn()


def versions() -> dict[str, str]:
    """Return the versions of searchapp, Python and packages that training depends on.

    Raises:
        UsageError: scikit-learn is not installed.
    """
    from importlib import metadata  # slow to import

    try:
        packages = {name: metadata.version(name) for name in ("scikit-learn", "numpy", "scipy")}
    except metadata.PackageNotFoundError as error:
        raise _missing_scikit_learn() from error
    # Python's tables of characters decide what a word is; they change with its minor version.
    python = ".".join(platform.python_version_tuple()[:2])
    # Sorted, as they are read back from the file of a model.
    return dict(sorted({"searchapp": searchapp.__version__, "python": python, **packages}.items()))


def processor() -> str:
    """Return the kind of this processor, which the last bits of floating-point sums depend on."""
    from threadpoolctl import threadpool_info

    kernels = {str(library["architecture"]) for library in threadpool_info() if "architecture" in library}
    return " ".join([platform.machine(), *sorted(kernels)])


def training_jobs(
    rows: Mapping[int, Sequence[int]], cost: float, among: Sequence[int] | None = None
) -> Iterator[TrainingJob]:
    """Yield the jobs of labels in their order; no text has two of the labels."""
    labels = list(rows)
    for at in range(0, len(labels), LABELS_PER_JOB):
        yield TrainingJob({label: rows[label] for label in labels[at : at + LABELS_PER_JOB]}, cost, among)


def train_linear(
    vocabulary: Vocabulary,
    vectors: Any,
    labels: Sequence[str],
    jobs: Iterable[TrainingJob],
    seed: int,
    workers: int = 1,
) -> Linear:
    """Train the model of `labels` from `vectors`: (topics, features), sparse by rows; each label is in one job."""
    import numpy as np
    from joblib import Parallel, delayed
    from scipy.sparse import csc_array

    results = Parallel(n_jobs=workers)(delayed(_train_job)(vectors, job, seed) for job in jobs)
    by_label = sorted((result for of_job in results for result in of_job), key=lambda result: result.label)
    del results
    ends = np.cumsum([0, *(len(result.features) for result in by_label)])
    shape = len(vocabulary.features), len(labels)
    features = np.concatenate([result.features for result in by_label])
    weights = np.concatenate([result.weights for result in by_label])
    intercepts = np.array([result.intercept for result in by_label])
    del by_label
    by_feature = csc_array((weights, features, ends.astype(np.int32)), shape=shape).tocsr()
    return Linear(vocabulary, tuple(labels), by_feature, intercepts)


class _LabelWeights(NamedTuple):
    """The weights of a label other than 0, in the types of the file, and its intercept."""

    label: int
    features: NDArray[np.int32]  # ascending columns of the vectors
    weights: NDArray[np.float32]
    intercept: float


def _train_job(vectors: Any, job: TrainingJob, seed: int) -> list[_LabelWeights]:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    classes = np.full(vectors.shape[0], _REST)
    for label, rows in job.rows.items():
        classes[list(rows)] = label
    if job.among is not None:
        vectors, classes = vectors[list(job.among)], classes[list(job.among)]
    distinct = np.unique(classes).tolist()
    if len(distinct) == 1:  # a single class: nothing to separate
        empty = np.zeros(0, np.int32), np.zeros(0, np.float32)
        return [_LabelWeights(label, *empty, 1.0) for label in job.rows]
    solver = LinearSVC(C=job.cost, dual=True, tol=TOLERANCE, random_state=seed)
    with warnings.catch_warnings():
        # An unconverged model ranks as well, and is the same every time.
        warnings.simplefilter("ignore", ConvergenceWarning)
        solver.fit(vectors, classes)
    coefficients, intercepts = solver.coef_, np.atleast_1d(solver.intercept_)
    if len(distinct) == 2:  # the solver returns the coefficients of the second class only
        coefficients, intercepts = (
            np.vstack([-coefficients, coefficients]),
            np.append(-intercepts, intercepts),
        )
    rows_of = {label: row for row, label in enumerate(distinct)}
    results = []
    for label in job.rows:
        # As stored, so that a new model gives the same scores as one read from its file.
        weights = coefficients[rows_of[label]].astype(np.float32)
        features = np.flatnonzero(np.abs(weights.astype(np.float64)) >= MIN_WEIGHT).astype(np.int32)
        results.append(_LabelWeights(label, features, weights[features], float(intercepts[rows_of[label]])))
    return results


# The label of texts without a label of the job.
_REST = -1


_NAMES = ("feature", "threshold", "left", "right", "value", "roots")


@dataclass(frozen=True, eq=False)
class Trees:
    """Regression trees over `features`, with all nodes in one sequence."""

    features: tuple[str, ...]
    feature: Int64Array  # the column that each node compares; (nodes,), as the next four
    threshold: Float64Array
    left: Int64Array  # a child comes after its parent; a leaf is its own child
    right: Int64Array
    value: Float64Array
    roots: Int64Array  # the first node of each tree, (trees,)

    def scores(self, rows: Float64Array) -> Float64Array:
        """Return the sum of the trees' values (rows,) for rows of features (rows, features)."""
        import numpy as np

        at = self._start(rows)
        while (followers := self._followers(rows, at)) is not None:
            at = followers
        return np.asarray(self.value[at].sum(axis=1))

    def parts(self, rows: Float64Array) -> Float64Array:
        """Return each feature's contribution to each row's score, (rows, features); with `bias` they add up to it."""
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
        return float(self.value[self.roots].sum())

    @property
    def least(self) -> float:
        import numpy as np

        leaves = np.where(self.left == np.arange(len(self.left)), self.value, np.inf)
        return float(np.minimum.reduceat(leaves, self.roots).sum())

    def _start(self, rows: Float64Array) -> Int64Array:
        import numpy as np

        return np.broadcast_to(self.roots, (len(rows), len(self.roots)))

    def _followers(self, rows: Float64Array, at: Int64Array) -> Int64Array | None:
        import numpy as np

        if not len(rows) or bool((self.left[at] == at).all()):
            return None
        values = rows[np.arange(len(rows))[:, None], self.feature[at]]
        return np.where(values <= self.threshold[at], self.left[at], self.right[at])

    def header(self) -> dict[str, Any]:
        return {"features": list(self.features), "trees": len(self.roots)}

    def arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Arrays) -> Trees:
        """Return the trees of a file's header and arrays.

        Raises:
            DataError: they are invalid.
        """
        import numpy as np

        names = texts(header, "features")
        nodes, trees = (getattr(arrays.get(name), "size", -1) for name in ("value", "roots"))
        limits = {"feature": len(names), "left": nodes, "right": nodes, "roots": nodes}
        columns = {
            name: _stored_type(
                name, numbers(arrays, name, trees if name == "roots" else nodes, below=limits.get(name))
            )
            for name in _NAMES
        }
        node_numbers = np.arange(nodes)
        is_leaf = columns["left"] == node_numbers
        # A child comes after its parent, so that every walk ends.
        for children in (columns["left"], columns["right"]):
            if ((children < node_numbers) | ((children == node_numbers) != is_leaf)).any():
                raise invalid_part("trees")
        return cls(names, **columns)


def join_trees(features: Sequence[str], trees: Sequence[Mapping[str, Any]]) -> Trees:
    """Return the trees of arrays of nodes: `feature`, `threshold`, `left`, `right` and `value`, the root first.

    A leaf has `left` -1. Node numbers count within their tree.
    """
    import numpy as np

    sizes = [len(tree["value"]) for tree in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    columns: dict[str, list[Any]] = {name: [] for name in _NAMES[:-1]}
    for root, tree in zip(roots, trees, strict=True):
        node_numbers = np.arange(len(tree["value"]))
        is_leaf = np.asarray(tree["left"]) < 0
        for name in ("left", "right"):
            columns[name].append(root + np.where(is_leaf, node_numbers, tree[name]))
        columns["feature"].append(np.where(is_leaf, 0, tree["feature"]))
        columns["threshold"].append(np.where(is_leaf, 0.0, tree["threshold"]))
        columns["value"].append(np.asarray(tree["value"], dtype=np.float64))
    arrays = {name: np.concatenate(of_trees) for name, of_trees in columns.items()}
    return Trees(tuple(features), roots=roots, **{name: _stored_type(name, arrays[name]) for name in arrays})


def _stored_type(name: str, array: Any) -> Any:
    return array if name in ("threshold", "value") else array.astype("int64")


_NO_FOLLOWER = -1


def grow_trees(
    names: Sequence[str],
    rows: Any,
    relevant: NDArray[np.bool_],
    *,
    num_trees: int,
    num_leaves: int,
    min_samples: int,
    learning_rate: float,
    seed: int,
) -> Trees:
    """Grow trees from rows of the features `names`.

    Args:
        names: features
        rows: float64 (candidates, features)
        relevant: (candidates,)
        num_trees: number of trees
        num_leaves: maximum leaves of a tree
        min_samples: minimum samples per leaf
        learning_rate: shrinkage of each tree
        seed: random seed
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    learner = HistGradientBoostingClassifier(
        max_iter=num_trees,
        max_leaf_nodes=num_leaves,
        min_samples_leaf=min_samples,
        learning_rate=learning_rate,
        early_stopping=False,
        random_state=seed,
    )
    # Sums of several threads would depend on their number.
    with threadpool_limits(limits=1):
        learner.fit(rows, relevant)
    # Private parts of scikit-learn; a test checks that the scores equal scikit-learn's.
    arrays = [_node_arrays(of_round[0].nodes) for of_round in learner._predictors]
    arrays[0]["value"] += learner._baseline_prediction.item()
    return join_trees(names, arrays)


def _node_arrays(nodes: Any) -> dict[str, Any]:
    import numpy as np

    is_leaf = nodes["is_leaf"].astype(bool)
    left = np.where(is_leaf, _NO_FOLLOWER, nodes["left"].astype(np.int64))
    right = np.where(is_leaf, _NO_FOLLOWER, nodes["right"].astype(np.int64))
    value, count = nodes["value"].astype(np.float64), nodes["count"].astype(np.float64)
    for node in range(len(nodes) - 1, -1, -1):  # children come after their parent
        if not is_leaf[node]:
            children = [left[node], right[node]]
            value[node] = float((count[children] * value[children]).sum() / count[node])
    return {
        "feature": nodes["feature_idx"].astype(np.int64),
        "threshold": nodes["num_threshold"].astype(np.float64),
        "left": left,
        "right": right,
        "value": value,
    }


# The format of the files; models of another one are trained again.
MODEL_FORMAT = 3

_HEADER = "header"
_NUMBERS = frozenset({"f", "i", "u"})
# The maximum unpacked size of a file, larger than any model.
_MAX_BYTES = 4 << 30


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model as stored in a file: header of JSON values, numeric arrays, and the digest of both."""

    header: Mapping[str, Any]
    arrays: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> StoredModel:
        return cls(header, arrays, digest_of(header, arrays))


def digest_of(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a header and of the type, shape and content of each array."""
    import numpy as np

    digest = hashlib.sha256(digest_json({**header, "format": MODEL_FORMAT}).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.ravel().view(np.uint8).data)
    return digest.hexdigest()


def write_model(path: Path, stored: StoredModel) -> None:
    """Write a model's file atomically; the same model gives the same bytes.

    Raises:
        SearchappError: the file can't be written.
    """
    import numpy as np

    header = {**stored.header, "format": MODEL_FORMAT, "digest": stored.digest}
    text = json.dumps(header, ensure_ascii=False, sort_keys=True).encode("utf-8", "backslashreplace")
    arrays: dict[str, Any] = {_HEADER: np.frombuffer(text, dtype=np.uint8), **stored.arrays}
    with atomic_file(path) as file:
        np.savez_compressed(file, **arrays)


_AGAIN = "remove it, or train again with `searchapp train TASK --rebuild`"


def read_model(path: Path, again: str = _AGAIN) -> StoredModel:
    """Read a model's file; `again` tells how to replace a damaged one.

    Raises:
        DataError: the file is unreadable, damaged, or not a model.
    """
    import numpy as np

    try:
        with open_file(path) as file, zipfile.ZipFile(file) as packed:
            if sum(item.file_size for item in packed.infolist()) > _MAX_BYTES:
                raise ValueError("it is larger than any model")
        with open_file(path) as file, np.load(file, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        if not all(isinstance(item, np.ndarray) and item.dtype.kind in _NUMBERS for item in arrays.values()):
            raise ValueError("it contains other values than numbers")
        header = parse_json(arrays.pop(_HEADER).tobytes().decode())
        if not isinstance(header, dict):
            raise ValueError("its header is not an object")
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,  # such as NotImplementedError for unsupported kinds of zip files
    ) as error:
        # A damaged file makes zipfile seek before its beginning, which is an invalid argument.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise unreadable(path, error) from error
        raise DataError(f"{path} is not a model of searchapp, or is damaged: {again}") from error
    if header.get("format") != MODEL_FORMAT:
        raise DataError(f"{path} was written by another version of searchapp: {again}")
    digest = header.pop("digest", None)
    if digest != digest_of(header, arrays):
        raise DataError(f"{path} is damaged (wrong digest): {again}")
    return StoredModel(header, arrays, digest)
