"""The English stemmers that are small enough to say what they do in one place.

`Porter` follows M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the three departures
that Porter made in his own programs and Lucene's `PorterStemmer` has too: -bli and -logi in step 2, and words of
two letters stay. Conditions are written in the paper's notation: m is the number of vowel-consonant sequences in
what remains, *v* a vowel in it, *d a double consonant, *o consonant-vowel-consonant at its end.
"""

from __future__ import annotations

import re
from functools import lru_cache

from searchapp.analysis.endings import REMEMBERED_STEMS, longest, longest_first
from searchapp.analysis.offsets import joined_units, utf16_units


def possessive_english(term: str) -> str:
    """Without a final 's, whatever the apostrophe (Lucene's `EnglishPossessiveFilter`)."""
    if term[-1:] in ("s", "S") and term[-2:-1] in ("'", "\u2019", "\uff07"):
        return term[:-2]
    return term


def minimal_english(term: str) -> str:
    """The singular of a plural in -s, -es or -ies (Harman's S-stemmer, Lucene's `EnglishMinimalStemmer`)."""
    if not term.endswith("s") or len(utf16_units(term)) < 3 or term[-2] in "us":
        return term
    if term[-2] == "e":
        if len(term) > 3 and term[-3] == "i" and term[-4] not in "ae":
            return f"{term[:-3]}y"
        if term[-3:-2] in ("i", "a", "o", "e"):
            return term
    return term[:-1]


# fmt: off
_STEP2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "logi": "log",
}
_STEP3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate",
    "iti", "ous", "ive", "ize",
)
# fmt: on


_ENDINGS2, _ENDINGS3, _ENDINGS4 = map(longest_first, (_STEP2, _STEP3, _STEP4))


@lru_cache(maxsize=REMEMBERED_STEMS)
def porter(term: str) -> str:
    """The stem by Porter's algorithm of 1980, for a term in lower case (Lucene's `PorterStemmer`)."""
    word = utf16_units(term)
    if len(word) <= 2:
        return term
    word = _porter_step1(word)
    word = _replace_longest(word, _STEP2, _ENDINGS2)
    word = _replace_longest(word, _STEP3, _ENDINGS3)
    word = _porter_step4(word)
    word = _porter_step5(word)
    return joined_units(word)


def _porter_step1(word: str) -> str:
    """Plurals, -ed and -ing, and a final y."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        if _measure(word[:-3]) > 0:
            word = word[:-1]
    elif word.endswith("ed") and _has_vowel(word[:-2]):
        word = _repair(word[:-2])
    elif word.endswith("ing") and _has_vowel(word[:-3]):
        word = _repair(word[:-3])
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = f"{word[:-1]}i"
    return word


def _repair(stem: str) -> str:
    """What -ed or -ing has left: conflat(e), troubl(e), siz(e), hop(p), fil(e)."""
    if stem.endswith(("at", "bl", "iz")):
        return f"{stem}e"
    if _double_consonant(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    if _measure(stem) == 1 and _short_end(stem):
        return f"{stem}e"
    return stem


def _replace_longest(word: str, suffixes: dict[str, str], endings: tuple[str, ...]) -> str:
    """The longest of the suffixes that the word has is replaced where m > 0."""
    suffix = longest(word, endings)
    if suffix and _measure(word[: -len(suffix)]) > 0:
        return word[: -len(suffix)] + suffixes[suffix]
    return word


def _porter_step4(word: str) -> str:
    suffix = longest(word, _ENDINGS4)
    stem = word[: -len(suffix)] if suffix else word
    if not suffix or _measure(stem) <= 1 or (suffix == "ion" and not stem.endswith(("s", "t"))):
        return word
    return stem


def _porter_step5(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        if _measure(stem) > 1 or (_measure(stem) == 1 and not _short_end(stem)):
            word = stem
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _shape(word: str) -> str:
    """The word with c for each consonant and v for each vowel."""
    shape = ""
    for char in word:
        vowel = char in "aeiou" or (char == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(stem: str) -> int:
    return len(re.findall("v+c+", _shape(stem)))


def _has_vowel(stem: str) -> bool:
    return "v" in _shape(stem)


def _double_consonant(stem: str) -> bool:
    return len(stem) > 1 and stem[-1] == stem[-2] and _shape(stem).endswith("c")


def _short_end(stem: str) -> bool:
    return _shape(stem).endswith("cvc") and stem[-1] not in "wxy"
