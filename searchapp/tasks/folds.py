"""Cross-validation folds of a file of solved questions.

A question's fold follows from the seed and its own id, by a hash whose value is fixed by a standard: the same
on every machine and Python version, whatever the order of the file and whatever else stands in it. A file that
loses or gains questions leaves the others where they are. The folds are of nearly the same size, not of exactly
the same.
"""

from __future__ import annotations

import hashlib

COUNT = 5
"""How many folds there are."""

SEED = 2021
"""The seed of all reported figures."""

NAMES = tuple(f"fold{number}" for number in range(COUNT))
"""The names of the folds, as splits: `fold0` to `fold4`."""


def fold_of(id_: str, seed: int = SEED) -> str:
    """The name of the fold that the question of this id is in, see `number_of`."""
    return NAMES[number_of(id_, seed)]


def number_of(id_: str, seed: int = SEED, count: int = COUNT) -> int:
    """The number, from 0 on, of the fold of so many that the question of this id is in.

    It is the SHA-256 of `seed:id` in UTF-8 (half a surrogate pair as its three bytes), read as one big-endian
    number, modulo the number of folds.
    """
    digest = hashlib.sha256(f"{seed}:{id_}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") % count


def in_split(split: str | None, id_: str, seed: int = SEED) -> bool:
    """Whether a question of a file belongs to a split: to its own fold only, and to every split that is no fold.

    That is what a scorer asks of gold: `fold2` of the train file is a part of it, `test` the whole test file.
    """
    return split not in NAMES or fold_of(id_, seed) == split
