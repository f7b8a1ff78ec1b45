"""English stemmers: possessive, minimal, Porter and Porter2.

Porter: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the three departures of
Porter's own programs and Lucene's `PorterStemmer`: -bli and -logi in step 2, and words of two letters stay.
Conditions are written in the paper's notation: m is the number of vowel-consonant sequences in the stem, *v* a
vowel in it, *d a double consonant, *o consonant-vowel-consonant at its end.

Porter2: "The English (Porter2) stemming algorithm", snowballstem.org, in the version of Lucene 10's
`SnowballFilter`. Later versions of Snowball (PyStemmer 3) stem some words differently (-ogist). R1 is the part
after the first consonant after a vowel, R2 the same within R1. Y stands for a y that is a consonant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from searchapp.lucene.analysis.characters import joined_units, utf16_units

REMEMBERED_STEMS = 1 << 15
"""How many stems an algorithm remembers, for all analyzers: some megabytes, and indexes share most of their words."""


def longest_first(endings: Iterable[str]) -> tuple[str, ...]:
    """Endings in the order in which `longest` takes them."""
    return tuple(sorted(endings, key=len, reverse=True))


def longest(word: str, endings: tuple[str, ...]) -> str:
    """The longest of some endings, which come longest first, that a word has; empty if it has none.

    >>> longest("rationally", longest_first(["ly", "ally", "y"]))
    'ally'
    """
    if not word.endswith(endings):
        return ""
    return next(ending for ending in endings if word.endswith(ending))


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
_PORTER_STEP2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
    "logi": "log",
}
_PORTER_STEP3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_PORTER_STEP4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate",
    "iti", "ous", "ive", "ize",
)
# fmt: on


_PORTER_ENDINGS2, _PORTER_ENDINGS3, _PORTER_ENDINGS4 = map(
    longest_first, (_PORTER_STEP2, _PORTER_STEP3, _PORTER_STEP4)
)


@lru_cache(maxsize=REMEMBERED_STEMS)
def porter(term: str) -> str:
    """The stem by Porter's algorithm of 1980, for a term in lower case (Lucene's `PorterStemmer`)."""
    word = utf16_units(term)
    if len(word) <= 2:
        return term
    word = _porter_step1(word)
    word = _replace_longest(word, _PORTER_STEP2, _PORTER_ENDINGS2)
    word = _replace_longest(word, _PORTER_STEP3, _PORTER_ENDINGS3)
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
    suffix = longest(word, _PORTER_ENDINGS4)
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


# fmt: off
_EXCEPTIONS: Final = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl",
    "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
}
_UNCHANGED: Final = frozenset({"sky", "news", "howe", "atlas", "cosmos", "bias", "andes"})
_UNCHANGED_AFTER_1A: Final = frozenset(
    {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}
)
_PORTER2_STEP2: Final = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize",
    "ization": "ize", "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al",
    "alli": "al", "fulness": "ful", "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive",
    "biliti": "ble", "bli": "ble", "ogi": "og", "fulli": "ful", "lessli": "less", "li": "",
}
_PORTER2_STEP3: Final = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
}
_PORTER2_STEP4: Final = dict.fromkeys((
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion",
), "")
# fmt: on

_CONSONANT_Y = re.compile(r"^y|(?<=[aeiouy])y")
_R1_EXCEPTION = re.compile(r"gener|commun|arsen")
_REGION = re.compile(r"[^aeiouy]*[aeiouy]+[^aeiouy]")
_VOWEL = re.compile(r"[aeiouy]")
_SHORT_END = re.compile(r"(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])\Z")


_PORTER2_STEP1B = ("eedly", "ingly", "edly", "eed", "ing", "ed")
_PORTER2_ENDINGS2, _PORTER2_ENDINGS3, _PORTER2_ENDINGS4 = map(
    longest_first, (_PORTER2_STEP2, _PORTER2_STEP3, _PORTER2_STEP4)
)


@lru_cache(maxsize=REMEMBERED_STEMS)
def porter2(term: str) -> str:
    """The stem of a term in lower case."""
    word = utf16_units(term)
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    if len(word) <= 2 or word in _UNCHANGED:
        return term
    return joined_units(_Word(word).stem())


class _Word:
    """A word while it loses its endings; R1 and R2 stay where they began."""

    def __init__(self, word: str) -> None:
        plain = word.removeprefix("'")
        self._word = self._with_consonant_ys(plain)
        self._has_marks = self._word != plain
        special = _R1_EXCEPTION.match(self._word)
        self._r1 = special.end() if special else self._region_after(0)
        self._r2 = self._region_after(self._r1)

    def stem(self) -> str:
        self._step_1a()
        if self._word not in _UNCHANGED_AFTER_1A:
            self._step_1b()
            self._step_1c()
            self._step_2()
            self._step_3()
            self._step_4()
            self._step_5()
        # A Y that was there before, in a term that is not in lower case, stays if no y was marked.
        return self._word.replace("Y", "y") if self._has_marks else self._word

    @staticmethod
    def _with_consonant_ys(word: str) -> str:
        """A y at the beginning or after a vowel becomes Y, from left to right."""
        while (marked := _CONSONANT_Y.sub("Y", word, count=1)) != word:
            word = marked
        return word

    def _region_after(self, start: int) -> int:
        match = _REGION.match(self._word, start)
        return match.end() if match else len(self._word)

    def _step_1a(self) -> None:
        """Apostrophes and plurals."""
        for ending in ("'s'", "'s", "'"):
            if self._word.endswith(ending):
                self._word = self._word.removesuffix(ending)
                break
        word = self._word
        if word.endswith("sses"):
            self._word = word[:-2]
        elif word.endswith(("ied", "ies")):
            self._word = word[:-2] if len(word) > 4 else word[:-1]
        elif word.endswith("s") and not word.endswith(("us", "ss")) and _VOWEL.search(word[:-2]):
            self._word = word[:-1]

    def _step_1b(self) -> None:
        """Past tense and gerund."""
        ending = longest(self._word, _PORTER2_STEP1B)
        stem = self._word.removesuffix(ending)
        if ending.startswith("eed"):
            if len(stem) >= self._r1:
                self._word = f"{stem}ee"
        elif ending and _VOWEL.search(stem):
            if stem.endswith(("at", "bl", "iz")):
                stem += "e"
            elif stem.endswith(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")):
                if not (len(stem) == 3 and stem[0] in "aeo"):  # add, egg, off
                    stem = stem[:-1]
            elif len(stem) == self._r1 and _SHORT_END.search(stem):
                stem += "e"
            self._word = stem

    def _step_1c(self) -> None:
        word = self._word
        if len(word) > 2 and word[-1] in "yY" and word[-2] not in "aeiouy":
            self._word = f"{word[:-1]}i"

    def _step_2(self) -> None:
        ending = longest(self._word, _PORTER2_ENDINGS2)
        before = self._word[: len(self._word) - len(ending)][-1:]
        fits = {"ogi": before == "l", "li": before != "" and before in "cdeghkmnrt"}.get(ending, True)
        if ending and fits:
            self._replace(ending, _PORTER2_STEP2, self._r1)

    def _step_3(self) -> None:
        ending = longest(self._word, _PORTER2_ENDINGS3)
        if ending:
            region = max(self._r1, self._r2) if ending == "ative" else self._r1
            self._replace(ending, _PORTER2_STEP3, region)

    def _step_4(self) -> None:
        ending = longest(self._word, _PORTER2_ENDINGS4)
        if ending and (ending != "ion" or self._word.endswith(("sion", "tion"))):
            self._replace(ending, _PORTER2_STEP4, self._r2)

    def _step_5(self) -> None:
        """A final e, and one of two final l."""
        stem = self._word[:-1]
        in_r1, in_r2 = len(stem) >= self._r1, len(stem) >= self._r2
        if self._word.endswith("e"):
            if in_r2 or (in_r1 and not _SHORT_END.search(stem)):
                self._word = stem
        elif self._word.endswith("ll") and in_r2:
            self._word = stem

    def _replace(self, ending: str, replacements: Mapping[str, str], region: int) -> None:
        """Replace the ending if it lies in the region that begins at this index."""
        stem = self._word[: -len(ending)]
        if len(stem) >= region:
            self._word = stem + replacements[ending]
