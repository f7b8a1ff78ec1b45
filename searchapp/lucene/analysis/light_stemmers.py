"""Light stemmers, which remove plurals and few other endings: French, German, Italian, Portuguese, and Spanish.

J. Savoy, "Report on CLEF-2001 experiments", 2001 (Italian, Spanish), and "Light stemming approaches for the French,
Portuguese, German and Hungarian languages", SAC 2006, as in Lucene's `GermanLightStemmer` and its neighbours.
`minimal` stemmers remove even less.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Final

from searchapp.lucene.analysis.characters import category_set, joined_units, utf16_units
from searchapp.lucene.analysis.stemmers import REMEMBERED_STEMS

_PLAIN = str.maketrans("àáâäòóôöèéêëùúûüìíîï", "aaaaooooeeeeuuuuiiii")


def normalized_german(term: str) -> str:
    """Replace umlauts and ß, also those written as ae, oe and ue (Lucene's `GermanNormalizationFilter`)."""
    normal, state = (
        "",
        "",
    )  # state "U": an e after this letter makes it an umlaut; "V": a following u is no umlaut
    for character in term:
        if character in "ao":
            state = "U"
        elif character == "u":
            state = "V" if state else "U"
        elif character == "e":
            character, state = "" if state == "U" else "e", "V"
        elif character in "iqyäöü":
            character, state = character.translate(_UMLAUTS), "V"
        else:
            character, state = "ss" if character == "ß" else character, ""
        normal += character
    return normal


_UMLAUTS = str.maketrans("äöü", "aou")
_GERMAN_PLAIN = str.maketrans("äàáâöòóôïìíîüùúû", "aaaaooooiiiiuuuu")
_ST_ENDINGS = tuple("bdfghklmnt")


def _light_german(word: str) -> str:
    word = word.translate(_GERMAN_PLAIN)
    if len(word) > 5 and word.endswith("ern"):
        word = word[:-3]
    elif len(word) > 4 and word.endswith(("em", "en", "er", "es")):
        word = word[:-2]
    elif len(word) > 3 and (word[-1] == "e" or (word[-1] == "s" and word[-2] in _ST_ENDINGS)):
        word = word[:-1]
    if len(word) > 5 and word.endswith("est"):
        return word[:-3]
    if len(word) > 4 and (word.endswith(("er", "en")) or (word.endswith("st") and word[-3] in _ST_ENDINGS)):
        return word[:-2]
    return word


def _minimal_german(word: str) -> str:
    if len(word) < 5:
        return word
    word = word.translate(_UMLAUTS)
    if len(word) > 6 and word.endswith("nen"):
        return word[:-3]
    if len(word) > 5 and word.endswith(("en", "se", "es", "er")):
        return word[:-2]
    return word[:-1] if word[-1] in "nesr" else word


def _light_spanish(word: str) -> str:
    if len(word) < 5:
        return word
    word = word.translate(_PLAIN)
    if word.endswith("eses"):
        return word[:-2]
    if word.endswith("ces"):
        return f"{word[:-3]}z"
    if word.endswith(("os", "as", "es")):
        return word[:-2]
    return word[:-1] if word[-1] in "oae" else word


def _light_italian(word: str) -> str:
    if len(word) < 6:
        return word
    word = word.translate(_PLAIN)
    if word.endswith(("ie", "he", "hi", "ii", "ia", "io")):
        return word[:-2]
    return word[:-1] if word[-1] in "eiao" else word


_PORTUGUESE_PLAIN = {**_PLAIN, **str.maketrans("ãõç", "aoc")}
# Plurals and adverbs: the length that a word must exceed, the ending, and its replacement.
_PORTUGUESE_SUFFIXES = (
    *((4, f"{before}es", before) for before in "rslz"),
    (3, "ns", "m"),
    (4, "eis", "el"),
    (4, "éis", "el"),
    (4, "ais", "al"),
    (4, "óis", "ol"),
    (4, "is", "il"),
    (3, "ões", "ão"),
    (3, "ães", "ão"),
    (6, "mente", ""),
    (3, "s", ""),
)
_PORTUGUESE_FEMININES = (
    *((7, f"{stem}a", f"{stem}o") for stem in ("inh", "iac", "eir")),
    *((6, f"{stem}a", f"{stem}o") for stem in ("os", "ic", "id", "ad", "iv", "am")),
    (6, "ona", "ão"),
    (6, "ora", "or"),
    (6, "esa", "ês"),
    (6, "na", "no"),
)

Rule = tuple[int, str, str]


def _replaced(word: str, rules: tuple[Rule, ...]) -> str:
    """Apply the first rule that matches."""
    for length, ending, replacement in rules:
        if len(word) > length and word.endswith(ending):
            return word[: len(word) - len(ending)] + replacement
    return word


def _light_portuguese(word: str) -> str:
    if len(word) < 4:
        return word
    word = _replaced(word, _PORTUGUESE_SUFFIXES)
    if len(word) > 3 and word.endswith("a"):
        word = _replaced(word, _PORTUGUESE_FEMININES)
    if len(word) > 4 and word[-1] in "eao":
        word = word[:-1]
    return word.translate(_PORTUGUESE_PLAIN)


_FRENCH_PLAIN = str.maketrans("àáâôèéêùûîç", "aaaoeeeuuic")
# The rules up to one that changes a word and does not end the search.
_FRENCH_RULES = (
    (
        (9, "issement", "ir"),
        (8, "issant", "ir"),
        (7, "ivement", "if"),
        (6, "ement", "e"),
        (11, "ficatrice", "fier"),
        (10, "ficateur", "fier"),
        (9, "catrice", "quer"),
        (8, "cateur", "quer"),
        (8, "atrice", "er"),
        (7, "ateur", "er"),
    ),
    (6, "trice", "teur"),
    (
        (5, "ième", ""),
        (7, "teuse", "ter"),
        (6, "teur", "ter"),
        (5, "euse", "eu"),
        (8, "ère", "er"),
        (7, "ive", "if"),
        (4, "folle", "fou"),
        (4, "molle", "mou"),
        (9, "nnelle", "n"),
        (9, "nnel", "n"),
    ),
    (4, "ète", "et"),
    (8, "ique", ""),
    (
        (8, "esse", "e"),
        (7, "inage", "in"),
        (12, "ualisation", "uel"),
        (9, "isation", ""),
        (9, "isateur", ""),
        (8, "ation", ""),
        (8, "ition", ""),
    ),
)


@cache
def _repeated_letters() -> re.Pattern[str]:
    return re.compile(rf"([{category_set('L', last=0xFFFF)}])\1+")


def _without_double_end(word: str) -> str:
    return word[:-1] if word[-2:-1] == word[-1:] and _repeated_letters().fullmatch(word[-2:]) else word


def _light_french(word: str) -> str:
    if len(word) > 5 and word.endswith("x"):
        word = f"{word[:-2]}l" if word.endswith("aux") and word[-4] != "e" else word[:-1]
    if len(word) > 3 and word.endswith("x"):
        word = word[:-1]
    if len(word) > 3 and word.endswith("s"):
        word = word[:-1]
    for rules in _FRENCH_RULES:
        if isinstance(rules[0], int):
            word = _replaced(word, (rules,))
            continue
        changed = _replaced(word, rules)
        if changed != word:
            word = changed
            break
    if len(word) > 4:
        word = _repeated_letters().sub(r"\1", word.translate(_FRENCH_PLAIN))
    if len(word) > 4 and word.endswith("ie"):
        word = word[:-2]
    if len(word) > 4:
        word = word.removesuffix("r").removesuffix("e").removesuffix("e")
        word = _without_double_end(word)
    return word


def _minimal_french(word: str) -> str:
    if len(word) < 6:
        return word
    if word.endswith("x"):
        return f"{word[:-2]}l" if word.endswith("aux") else word[:-1]
    word = word.removesuffix("s").removesuffix("r").removesuffix("e").removesuffix("é")
    return _without_double_end(word)


def _stemmer(change: Callable[[str], str]) -> Callable[[str], str]:
    @lru_cache(maxsize=REMEMBERED_STEMS)
    def stem(term: str) -> str:
        return joined_units(change(utf16_units(term)))

    return stem


# By the name of the language in the settings of a filter.
LIGHT: Final[Mapping[str, Callable[[str], str]]] = {
    name: _stemmer(change)
    for name, change in (
        ("light_french", _light_french),
        ("light_german", _light_german),
        ("light_italian", _light_italian),
        ("light_portuguese", _light_portuguese),
        ("light_spanish", _light_spanish),
        ("minimal_french", _minimal_french),
        ("minimal_german", _minimal_german),
    )
}
