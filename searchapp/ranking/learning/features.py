"""What a linear model sees of a text: its words, letters and pattern, its beginning and its end.

A feature is text with its kind before it, so that a model can say what it goes by:

    words: who wrote          one to three words in a row
    letters: wri              two to five letters in a row within a word; a blank is where the word begins or ends
    pattern: ^ who wrote #    one to four in a row of words, punctuation, # for names and numbers, and both ends
    begins: who               the first one to four words
    ends: river               the last one or two words

A name is a run of words with a capital letter, the first word of the text apart: texts of the same pattern often ask
for the same, whatever they ask about.

A feature weighs (1 + ln tf) * idf in a text, with idf = ln((1 + N) / (1 + df)) + 1, and the features of words, of
letters, of the pattern and of both ends have length 1 each, so that no kind drowns the others by its number (as with
one `TfidfVectorizer` of scikit-learn for each, and `sublinear_tf`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

KINDS = WORDS, LETTERS, PATTERN, BEGINS, ENDS = "words", "letters", "pattern", "begins", "ends"

FEWEST: Mapping[str, int] = {WORDS: 2, LETTERS: 3, PATTERN: 2, BEGINS: 2, ENDS: 2}
"""The texts that must have a feature of each kind: what is in one alone says nothing of others."""

_BLOCKS = {WORDS: 0, LETTERS: 1, PATTERN: 2, BEGINS: 3, ENDS: 3}
"""What has length 1 together."""

_MOST_WORDS, _MOST_OF_PATTERN = 3, 4
_LETTERS = range(2, 6)
_FIRST, _LAST = 4, 2
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_NAME, _BEGIN, _END = "#", "^", "$"


def kind_of(feature: str) -> str:
    """The kind that stands before a feature."""
    return feature.partition(":")[0]


def counted(text: str) -> Counter[str]:
    """The features of a text, and how often it has each.

    >>> sorted(counted("Who?"))[:3]
    ['begins: who', 'ends: who', 'letters:  w']
    """
    words = _WORD.findall(text.lower())
    found = Counter(_in_a_row(WORDS, words, _MOST_WORDS))
    for word in words:
        found.update(_letters(word))
    found.update(_in_a_row(PATTERN, _pattern(text), _MOST_OF_PATTERN))
    found.update(f"{BEGINS}: {' '.join(words[:length])}" for length in range(1, min(_FIRST, len(words)) + 1))
    found.update(f"{ENDS}: {' '.join(words[-length:])}" for length in range(1, min(_LAST, len(words)) + 1))
    return found


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
    found = [_BEGIN]
    for place, token in enumerate(_TOKEN.findall(text)):
        if not (token.isdigit() or (place and token[0].isupper())):
            found.append(token.lower())
        elif found[-1] != _NAME:
            found.append(_NAME)
    return [*found, _END]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The features that a model knows, in the order of their text, and the idf of each: (features,)."""

    features: tuple[str, ...]
    idf: Floats

    @classmethod
    def of(cls, texts: Iterable[str], without: Collection[str] = ()) -> tuple[Vocabulary, Any]:
        """The features that enough of some texts have, see `FEWEST`, and the vectors of these texts, see `vectors`.

        Those of the kinds `without` are left out.
        """
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
        """The weights of the features in each text: sparse by rows, (texts, features), float64."""
        return self._weighed([counted(text) for text in texts])

    def _weighed(self, texts: Sequence[Mapping[str, int]]) -> Any:
        import numpy as np
        from scipy.sparse import csr_array

        known = self._places
        at: list[int] = []
        tf: list[int] = []
        ends = [0]
        for text in texts:
            found = sorted((known[feature], count) for feature, count in text.items() if feature in known)
            at.extend(place for place, _count in found)
            tf.extend(count for _place, count in found)
            ends.append(len(at))
        places = np.array(at, dtype=np.int32)
        values = (1.0 + np.log(np.array(tf, dtype=np.float64))) * self.idf[places]
        # Which block of which text a value belongs to; the squares are added in the order of the features.
        of_text = np.repeat(np.arange(len(texts)), np.diff(ends))
        blocks = (max(_BLOCKS.values()) + 1) * of_text + self._block[places]
        values /= np.sqrt(np.bincount(blocks, values**2))[blocks]
        parts = values, places, np.array(ends, dtype=np.int32)  # of the kinds that the solver takes
        return csr_array(parts, shape=(len(texts), len(self.features)))
