"""English stemmers: possessive, minimal, Porter and Porter2.

Porter: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the three departures of Porter's
own programs and Lucene's `PorterStemmer`: -bli and -logi in step 2, and words of two letters stay. Notation of the
paper: m is the number of vowel-consonant sequences, *v* a vowel, *d a double consonant, *o a final
consonant-vowel-consonant.

Porter2: "The English (Porter2) stemming algorithm", snowballstem.org, in the version of Lucene 10's `SnowballFilter`;
later versions (PyStemmer 3) stem some words differently (-ogist). R1 is the part after the first consonant after a
vowel, R2 the same within R1. Y is a y used as a consonant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from searchapp.lucene.analysis.characters import joined_units, utf16_units

REMEMBERED_STEMS = 1 << 15  # cache size of an algorithm for all analyzers, some megabytes


class Endings(dict[str, str]):
    """Endings of words and their replacements.

    >>> Endings({"ly": "", "ally": "al", "y": "i"}).longest("rationally")
    'ally'
    """

    def __init__(self, replacements: Mapping[str, str]) -> None:
        super().__init__(sorted(replacements.items(), key=lambda item: -len(item[0])))
        self._endings = tuple(self)

    def longest(self, word: str) -> str:
        if not word.endswith(self._endings):
            return ""
        return next(ending for ending in self._endings if word.endswith(ending))


def possessive_english(term: str) -> str:
    """Remove a final 's with any apostrophe (Lucene's `EnglishPossessiveFilter`)."""
    if term[-1:] in ("s", "S") and term[-2:-1] in ("'", "\u2019", "\uff07"):
        return term[:-2]
    return term


def minimal_english(term: str) -> str:
    """Return the singular of a plural in -s, -es or -ies (Harman's S-stemmer, Lucene's `EnglishMinimalStemmer`)."""
    if not term.endswith("s") or len(utf16_units(term)) < 3 or term[-2] in "us":
        return term
    if term[-2] == "e":
        if len(term) > 3 and term[-3] == "i" and term[-4] not in "ae":
            return f"{term[:-3]}y"
        if term[-3:-2] in ("i", "a", "o", "e"):
            return term
    return term[:-1]


# fmt: off
_PORTER_STEP2 = Endings({
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "logi": "log",
})
_PORTER_STEP3 = Endings({
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
})
_PORTER_STEP4 = Endings(dict.fromkeys((
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate",
    "iti", "ous", "ive", "ize",
), ""))
# fmt: on


@lru_cache(maxsize=REMEMBERED_STEMS)
def porter(term: str) -> str:
    """Stem a lower-case term by Porter's algorithm of 1980 (Lucene's `PorterStemmer`)."""
    word = utf16_units(term)
    if len(word) <= 2:
        return term
    word = _porter_step1(word)
    for step in (_PORTER_STEP2, _PORTER_STEP3):
        ending = step.longest(word)
        stem = word[: len(word) - len(ending)]
        if ending and _measure(stem) > 0:
            word = stem + step[ending]
    ending = _PORTER_STEP4.longest(word)
    stem = word[: len(word) - len(ending)]
    if ending and _measure(stem) > 1 and (ending != "ion" or stem.endswith(("s", "t"))):
        word = stem
    stem = word[:-1]
    if word.endswith("e") and (_measure(stem) > 1 or (_measure(stem) == 1 and not _short_end(stem))):
        word = stem
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return joined_units(word)


def _porter_step1(word: str) -> str:
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        if _measure(word[:-3]) > 0:
            word = word[:-1]
    elif word.endswith("ed") and _has_vowel(word[:-2]):
        word = _porter_repair(word[:-2])
    elif word.endswith("ing") and _has_vowel(word[:-3]):
        word = _porter_repair(word[:-3])
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = f"{word[:-1]}i"
    return word


def _porter_repair(stem: str) -> str:
    """Repair the stem before -ed or -ing: conflat(e), troubl(e), siz(e), hop(p), fil(e)."""
    if stem.endswith(("at", "bl", "iz")):
        return f"{stem}e"
    if len(stem) > 1 and stem[-1] == stem[-2] and _shape(stem).endswith("c"):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return f"{stem}e" if _measure(stem) == 1 and _short_end(stem) else stem


def _shape(word: str) -> str:
    shape = ""
    for char in word:
        vowel = char in "aeiou" or (char == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(stem: str) -> int:
    return _shape(stem).count("vc")


def _has_vowel(stem: str) -> bool:
    return "v" in _shape(stem)


def _short_end(stem: str) -> bool:
    return _shape(stem).endswith("cvc") and stem[-1] not in "wxy"


# fmt: off
_EXCEPTIONS = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl",
    "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
}
_UNCHANGED = frozenset({"sky", "news", "howe", "atlas", "cosmos", "bias", "andes"})
_UNCHANGED_AFTER_1A = frozenset(
    {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}
)
_PORTER2_STEP2 = Endings({
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize",
    "ization": "ize", "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al",
    "alli": "al", "fulness": "ful", "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive",
    "biliti": "ble", "bli": "ble", "ogi": "og", "fulli": "ful", "lessli": "less", "li": "",
})
_PORTER2_STEP3 = Endings({
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
})
_PORTER2_STEP4 = Endings(dict.fromkeys((
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion",
), ""))
# fmt: on
_PORTER2_STEP1B = Endings(dict.fromkeys(("eedly", "ingly", "edly", "eed", "ing", "ed"), ""))

_CONSONANT_Y = re.compile(r"^y|(?<=[aeiouy])y")
_R1_EXCEPTION = re.compile(r"gener|commun|arsen")
_REGION = re.compile(r"[^aeiouy]*[aeiouy]+[^aeiouy]")
_VOWEL = re.compile(r"[aeiouy]")
_SHORT_END = re.compile(r"(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])\Z")


@lru_cache(maxsize=REMEMBERED_STEMS)
def porter2(term: str) -> str:
    """Stem a lower-case term by the Porter2 algorithm."""
    word = utf16_units(term)
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    if len(word) <= 2 or word in _UNCHANGED:
        return term
    plain = word = word.removeprefix("'")
    while (marked := _CONSONANT_Y.sub("Y", word, count=1)) != word:
        word = marked
    has_marks = word != plain
    exception = _R1_EXCEPTION.match(word)
    r1 = exception.end() if exception else _region_after(word, 0)
    r2 = _region_after(word, r1)
    word = _porter2_step1a(word)
    if word not in _UNCHANGED_AFTER_1A:
        word = _porter2_later_steps(_porter2_step1b(word, r1), r1, r2)
    # An upper-case Y of the term stays unless a y was marked.
    return joined_units(word.replace("Y", "y") if has_marks else word)


def _region_after(word: str, start: int) -> int:
    match = _REGION.match(word, start)
    return match.end() if match else len(word)


def _porter2_step1a(word: str) -> str:
    ending = next((ending for ending in ("'s'", "'s", "'") if word.endswith(ending)), "")
    word = word.removesuffix(ending)
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _VOWEL.search(word[:-2]):
        return word[:-1]
    return word


def _porter2_step1b(word: str, r1: int) -> str:
    ending = _PORTER2_STEP1B.longest(word)
    stem = word.removesuffix(ending)
    if ending.startswith("eed"):
        return f"{stem}ee" if len(stem) >= r1 else word
    if not ending or not _VOWEL.search(stem):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return f"{stem}e"
    if stem.endswith(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")):
        return stem if len(stem) == 3 and stem[0] in "aeo" else stem[:-1]  # add, egg, off
    return f"{stem}e" if len(stem) == r1 and _SHORT_END.search(stem) else stem


def _porter2_later_steps(word: str, r1: int, r2: int) -> str:
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in "aeiouy":  # step 1c
        word = f"{word[:-1]}i"
    ending = _PORTER2_STEP2.longest(word)
    preceding = word[: len(word) - len(ending)][-1:]
    if {"ogi": preceding == "l", "li": preceding != "" and preceding in "cdeghkmnrt"}.get(ending, True):
        word = _replaced(word, ending, _PORTER2_STEP2, r1)
    ending = _PORTER2_STEP3.longest(word)
    word = _replaced(word, ending, _PORTER2_STEP3, max(r1, r2) if ending == "ative" else r1)
    ending = _PORTER2_STEP4.longest(word)
    if ending != "ion" or word.endswith(("sion", "tion")):
        word = _replaced(word, ending, _PORTER2_STEP4, r2)
    stem = word[:-1]  # step 5
    in_r1, in_r2 = len(stem) >= r1, len(stem) >= r2
    if word.endswith("e"):
        return stem if in_r2 or (in_r1 and not _SHORT_END.search(stem)) else word
    return stem if word.endswith("ll") and in_r2 else word


def _replaced(word: str, ending: str, replacements: Endings, region: int) -> str:
    stem = word[: len(word) - len(ending)]
    return stem + replacements[ending] if ending and len(stem) >= region else word
