"""Embed texts as sums of hashed words: the command of a table `[embeddings]` that needs no model.

    command = ["python", "benchmarks/hashed_embeddings.py"]

A word is a vector of 256 pseudorandom numbers that its SHAKE-256 gives, and a text is the sum of its words: a random
projection of the counts of words. The vectors are the same on every machine.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from functools import cache

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 256


@cache
def word_vector(word: str) -> NDArray[np.float64]:
    """Return the vector of a word."""
    digest = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest(DIMENSIONS)
    return np.frombuffer(digest, np.uint8).astype(np.float64) - 127.5


def text_vector(text: str) -> NDArray[np.float64]:
    """Return the vector of a text, which is never 0."""
    vector = sum(map(word_vector, re.findall(r"\w+", text.lower())), np.zeros(DIMENSIONS))
    return vector if vector.any() else word_vector("")


def main() -> None:
    """Answer the lines of standard input."""
    for line in sys.stdin:
        row = json.loads(line)
        print(json.dumps({"index": row["index"], "embedding": text_vector(row["text"]).tolist()}))


if __name__ == "__main__":
    main()
