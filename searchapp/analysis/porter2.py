"""Porter's second English stemmer, as Lucene's `SnowballFilter` runs it.

The algorithm is M. F. Porter's "The English (Porter2) stemming algorithm" at snowballstem.org, in the version
that Lucene 10 carries. Later versions of Snowball, such as the one in PyStemmer 3, stem some words in another way
(-ogist), which is why it is written out here.

R1 is what follows the first consonant after a vowel, R2 the same within R1. Y stands for a y that is a consonant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from searchapp.analysis.endings import REMEMBERED_STEMS, longest, longest_first
from searchapp.analysis.offsets import joined_units, utf16_units

# fmt: off
_EXCEPTIONS: Final = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl",
    "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
}
_UNCHANGED: Final = frozenset({"sky", "news", "howe", "atlas", "cosmos", "bias", "andes"})
_UNCHANGED_AFTER_1A: Final = frozenset(
    {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}
)
_STEP2: Final = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize",
    "ization": "ize", "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al",
    "alli": "al", "fulness": "ful", "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive",
    "biliti": "ble", "bli": "ble", "ogi": "og", "fulli": "ful", "lessli": "less", "li": "",
}
_STEP3: Final = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
}
_STEP4: Final = dict.fromkeys((
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion",
), "")
# fmt: on

_CONSONANT_Y = re.compile(r"^y|(?<=[aeiouy])y")
_R1_EXCEPTION = re.compile(r"gener|commun|arsen")
_REGION = re.compile(r"[^aeiouy]*[aeiouy]+[^aeiouy]")
_VOWEL = re.compile(r"[aeiouy]")
_SHORT_END = re.compile(r"(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])\Z")


_STEP1B = ("eedly", "ingly", "edly", "eed", "ing", "ed")
_ENDINGS2, _ENDINGS3, _ENDINGS4 = map(longest_first, (_STEP2, _STEP3, _STEP4))


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
        ending = longest(self._word, _STEP1B)
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
        ending = longest(self._word, _ENDINGS2)
        before = self._word[: len(self._word) - len(ending)][-1:]
        fits = {"ogi": before == "l", "li": before != "" and before in "cdeghkmnrt"}.get(ending, True)
        if ending and fits:
            self._replace(ending, _STEP2, self._r1)

    def _step_3(self) -> None:
        ending = longest(self._word, _ENDINGS3)
        if ending:
            region = max(self._r1, self._r2) if ending == "ative" else self._r1
            self._replace(ending, _STEP3, region)

    def _step_4(self) -> None:
        ending = longest(self._word, _ENDINGS4)
        if ending and (ending != "ion" or self._word.endswith(("sion", "tion"))):
            self._replace(ending, _STEP4, self._r2)

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
