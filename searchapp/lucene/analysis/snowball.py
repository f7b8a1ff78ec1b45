"""Stemmers of the Snowball project: Danish, Dutch, French, German, Italian, Norwegian, Portuguese, Russian, Spanish,
and Swedish; English is in `stemmers`.

"Stemming algorithms", snowballstem.org/algorithms, in the versions of Lucene 10.4; later versions stem some words
differently (Dutch by Kraaij and Pohlmann, French elisions, Norwegian -ers).

R1 is the part of a word after the first consonant after a vowel, R2 the same within R1. RV is a longer part for the
endings of verbs. A region is the index of its first character. Capitals mark vowels used as consonants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from searchapp.lucene.analysis.characters import joined_units, utf16_units
from searchapp.lucene.analysis.stemmers import REMEMBERED_STEMS, Endings


def _grouped(**groups: str) -> Endings:
    """Return endings, and the group of each."""
    return Endings({ending: name for name, endings in groups.items() for ending in endings.split()})


def _all(endings: str) -> Endings:
    return _grouped(all=endings)


class _StemmedWord:
    """A word whose endings are removed or replaced; an ending is in a region if it begins there."""

    def __init__(self, text: str) -> None:
        self.text = text

    def has(self, ending: str, region: int = 0) -> bool:
        return self.text.endswith(ending) and len(self.text) - len(ending) >= region

    def ends_in(self, characters: str, before: str = "", region: int = 0) -> bool:
        """Whether a character of a set precedes an ending of the word."""
        end = len(self.text) - len(before)
        return end > region and self.text[end - 1] in characters

    def cut(self, ending: str, region: int = 0, by: str = "") -> bool:
        """Replace an ending in a region, and return whether the word has it."""
        if not self.has(ending, region):
            return False
        self.text = self.text[: len(self.text) - len(ending)] + by
        return True

    def longest(self, endings: Endings, region: int = 0) -> str:
        """Return the longest ending within a region."""
        return endings.longest(self.text[region:])

    def shorten(self, endings: Endings, region: int) -> None:
        """Remove the last character if the word has one of some endings within a region."""
        if self.longest(endings, region):
            self.text = self.text[:-1]

    def cut_any(self, endings: Endings, region: int = 0) -> bool:
        """Remove the longest of some endings if it is in a region."""
        ending = self.longest(endings)
        return bool(ending) and self.cut(ending, region)


class _Regions:
    """Regions of words with the vowels of a language."""

    def __init__(self, vowels: str, rv: str = "") -> None:
        self.vowels = vowels
        self._region = re.compile(f"[^{vowels}]*[{vowels}]+[^{vowels}]", re.DOTALL)
        self._rv = re.compile(rv.replace("V", f"[{vowels}]").replace("C", f"[^{vowels}]"), re.DOTALL)

    def r1_r2(self, text: str) -> tuple[int, int]:
        r1 = self._after(self._region, text, 0)
        return r1, self._after(self._region, text, r1)

    def rv(self, text: str) -> int:
        return self._after(self._rv, text, 0) if text else 0

    @staticmethod
    def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
        match = pattern.match(text, start)
        return match.end() if match else len(text)


def _with_capitals(text: str, is_consonant: Callable[[str, str, str], bool]) -> str:
    """Capitalize the characters that are consonants by the one before, itself and the one after, from left to right."""
    marked = ""
    for index, character in enumerate(text):
        is_marked = is_consonant(marked[-1:], character, text[index + 1 : index + 2])
        marked += character.upper() if is_marked else character
    return marked


def _translator(replacements: Mapping[str, str]) -> Callable[[str], str]:
    pattern = re.compile("|".join(replacements))
    return lambda text: pattern.sub(lambda match: replacements[match[0]], text)


def _in(characters: str, *texts: str) -> bool:
    return all(text and text in characters for text in texts)


# Scandinavian languages: R1 begins after at least three characters.

_SCANDINAVIAN = {language: _Regions(f"aeiouy{more}") for language, more in (("da", "æåø"), ("sv", "äåö"))}


def _late_r1(regions: _Regions, text: str) -> int:
    r1, _r2 = regions.r1_r2(text)
    return max(r1, 3) if len(text) >= 3 else len(text)


_DANISH = _all(
    "hed ethed ered e erede ende erende ene erne ere en heden eren er heder erer heds es endes erendes enes ernes "
    "eres ens hedens erens ers ets erets et eret s"
)
_DANISH_PAIRS = _all("gd dt gt kt")
_DANISH_OTHERS = _all("ig lig elig els løst")


def _danish(word: _StemmedWord) -> None:
    r1 = _late_r1(_SCANDINAVIAN["da"], word.text)
    ending = word.longest(_DANISH, r1)
    if ending != "s" or word.ends_in("abcdfghjklmnoprtvyzå", "s"):
        word.cut(ending)
    word.shorten(_DANISH_PAIRS, r1)
    if word.has("igst"):
        word.cut("st")
    ending = word.longest(_DANISH_OTHERS, r1)
    word.cut(ending, by="løs" if ending == "løst" else "")
    if ending not in ("", "løst"):
        word.shorten(_DANISH_PAIRS, r1)
    if len(word.text) > r1 and word.text[-1] in "bcdfghjklmnpqrstvwxz" and word.text[-2:-1] == word.text[-1]:
        word.text = word.text[:-1]


_NORWEGIAN = _all(
    "a e ede ande ende ane ene hetene en heten ar er heter as es edes endes enes hetenes ens hetens ers ets et het "
    "ast s erte ert"
)
_NORWEGIAN_PAIRS = _all("dt vt")
_NORWEGIAN_OTHERS = _all("leg eleg ig eig lig elig els lov elov slov hetslov")


def _norwegian(word: _StemmedWord) -> None:
    regions = _SCANDINAVIAN["da"]
    r1 = _late_r1(regions, word.text)
    ending = word.longest(_NORWEGIAN, r1)
    is_kept = ending == "s" and not (
        word.ends_in("bcdfghjlmnoprtvyz", "s")
        or (word.has("ks") and len(word.text) > 2 and word.text[-3] not in regions.vowels)
    )
    if not is_kept:
        word.cut(ending, by="er" if ending in ("erte", "ert") else "")
    word.shorten(_NORWEGIAN_PAIRS, r1)
    word.cut(word.longest(_NORWEGIAN_OTHERS, r1))


_SWEDISH = _all(
    "a arna erna heterna orna ad e ade ande arne are aste en anden aren heten ern ar er heter or as arnas ernas "
    "ornas es ades andes ens arens hetens erns at andet het ast s"
)
_SWEDISH_PAIRS = _all("dd gd nn dt gt kt tt")
_SWEDISH_OTHERS = _all("lig ig els öst fullt")


def _swedish(word: _StemmedWord) -> None:
    r1 = _late_r1(_SCANDINAVIAN["sv"], word.text)
    ending = word.longest(_SWEDISH, r1)
    if ending != "s" or word.ends_in("bcdfghjklmnoprtvy", "s"):
        word.cut(ending)
    word.shorten(_SWEDISH_PAIRS, r1)
    ending = word.longest(_SWEDISH_OTHERS, r1)
    if ending == "fullt" or (ending == "öst" and word.ends_in("iklnprtuv", "öst")):
        word.text = word.text[:-1]
    elif ending != "öst":
        word.cut(ending)


# Dutch and German

_DUTCH_REGIONS = _Regions("aeiouyè")
_DUTCH_PLAIN = str.maketrans("äáëéïíöóüú", "aaeeiioouu")
_DUTCH_SUFFIXES = _grouped(heden="heden", en="en ene", s="s se")
_DUTCH_DERIVED = _grouped(ing="end ing", ig="ig", lijk="lijk", baar="baar", bar="bar")


def _dutch(word: _StemmedWord) -> None:
    vowels = _DUTCH_REGIONS.vowels
    text = word.text.translate(_DUTCH_PLAIN)
    text = "Y" + text[1:] if text.startswith("y") else text
    word.text = _with_capitals(
        text,
        lambda before, character, after: (
            _in(vowels, before) and (character == "y" or (character == "i" and _in(vowels, after)))
        ),
    )
    r1, r2 = _DUTCH_REGIONS.r1_r2(word.text)
    r1 = max(r1, 3)
    if len(word.text) < 3:
        r1 = r2 = len(word.text)

    def undouble() -> None:
        if word.text.endswith(("kk", "dd", "tt")):
            word.text = word.text[:-1]

    def cut_e() -> bool:
        if not word.has("e", r1) or len(word.text) < 2 or word.text[-2] in vowels:
            return False
        word.cut("e")
        undouble()
        return True

    def cut_en(ending: str) -> None:
        before = word.text[: len(word.text) - len(ending)]
        if len(before) >= r1 and before and before[-1] not in vowels and not before.endswith("gem"):
            word.text = before
            undouble()

    ending = word.longest(_DUTCH_SUFFIXES)
    kind = _DUTCH_SUFFIXES.get(ending)
    if kind == "heden":
        word.cut(ending, r1, "heid")
    elif kind == "en":
        cut_en(ending)
    elif kind == "s" and len(word.text) > len(ending) and not word.ends_in(f"{vowels}j", ending):
        word.cut(ending, r1)
    has_cut_e = cut_e()
    if word.has("heid", r2) and not word.has("cheid"):
        word.cut("heid")
        if word.has("en"):
            cut_en("en")
    ending = word.longest(_DUTCH_DERIVED)
    kind = _DUTCH_DERIVED.get(ending)
    if kind == "ing" and word.cut(ending, r2):
        if word.has("ig", r2) and not word.has("eig"):
            word.cut("ig")
        else:
            undouble()
    elif kind == "ig" and not word.has("eig"):
        word.cut(ending, r2)
    elif kind == "lijk" and word.cut(ending, r2):
        cut_e()
    elif kind == "baar" or (kind == "bar" and has_cut_e):
        word.cut(ending, r2)
    if re.search(f"[^{vowels}](?:aa|ee|oo|uu)[^{vowels}I]\\Z", word.text):
        word.text = word.text[:-2] + word.text[-1]
    word.text = word.text.replace("Y", "y").replace("I", "i")


_GERMAN_REGIONS = _Regions("aeiouyäöü")
_german_umlauts = _translator({"ß": "ss", "ae": "ä", "oe": "ö", "ue": "ü", "qu": "qu"})
_german_plain = str.maketrans("YUäöü", "yuaou")
_GERMAN_FIRST = _grouped(em="em", er="ern er", e="e en es", s="s")
_GERMAN_SECOND = _grouped(en="en er est", st="st")
_GERMAN_THIRD = _grouped(ung="end ung", ig="ig ik isch", lich="lich heit", keit="keit")
_LICH_IG = _all("lich ig")


def _german(word: _StemmedWord) -> None:
    vowels = _GERMAN_REGIONS.vowels
    word.text = _german_umlauts(
        _with_capitals(
            word.text,
            lambda before, character, after: character in "uy" and _in(vowels, before, after),
        )
    )
    r1, r2 = _GERMAN_REGIONS.r1_r2(word.text)
    r1 = max(r1, 3)
    if len(word.text) < 3:
        r1 = r2 = len(word.text)
    ending = word.longest(_GERMAN_FIRST)
    kind = _GERMAN_FIRST.get(ending)
    if kind == "em":
        if not word.has("system"):
            word.cut(ending, r1)
    elif kind == "s":
        if word.ends_in("bdfghklmnrt", "s"):
            word.cut(ending, r1)
    elif ending and word.cut(ending, r1) and kind == "e" and word.has("niss"):
        word.cut("s")
    ending = word.longest(_GERMAN_SECOND)
    if ending != "st" or (word.ends_in("bdfghklmnt", "st") and len(word.text) >= 6):
        word.cut(ending, r1)
    ending = word.longest(_GERMAN_THIRD)
    kind = _GERMAN_THIRD.get(ending)
    if kind == "ig":
        if not word.has(f"e{ending}"):
            word.cut(ending, r2)
    elif ending and word.cut(ending, r2):
        if kind == "ung" and not word.has("eig"):
            word.cut("ig", r2)
        elif kind == "lich":
            word.cut("er", r1) or word.cut("en", r1)
        elif kind == "keit":
            word.cut_any(_LICH_IG, r2)
    word.text = word.text.translate(_german_plain)


# Romance languages

_RV = "V(?:C+V|V+C)|C(?:C+V|V.)"

_FRENCH_REGIONS = _Regions("aeiouyâàëéêèïîôûù", "VV.|par|col|tap|.C*V")
_french_postlude = _translator({"He": "ë", "Hi": "ï", "H": "", "I": "i", "U": "u", "Y": "y"})
_FRENCH_STANDARD = _grouped(
    delete="ance iqUe isme able iste eux ances iqUes ismes ables istes",
    ation="atrice ateur ation atrices ateurs ations",
    logie="logie logies",
    u="usion ution usions utions",
    ence="ence ences",
    ement="ement ements",
    ité="ité ités",
    ive="if ive ifs ives",
    eaux="eaux",
    aux="aux",
    euse="euse euses",
    issement="issement issements",
    amment="amment",
    emment="emment",
    ment="ment ments",
)
_FRENCH_BEFORE_EMENT = _grouped(iv="iv", eus="eus", abl="abl iqU", ier="ièr Ièr")
_FRENCH_BEFORE_ITE = _all("abil ic iv")
_FRENCH_I_VERB = _all(
    "îmes ît îtes i ie ies ir ira irai iraIent irais irait iras irent irez iriez irions irons iront is issaIent "
    "issais issait issant issante issantes issants isse issent isses issez issiez issions issons it"
)
_FRENCH_VERB = _grouped(
    ions="ions",
    e="é ée ées és èrent er era erai eraIent erais erait eras erez eriez erions erons eront ez iez",
    a="âmes ât âtes a ai aIent ais ait ant ante antes ants as asse assent asses assiez assions",
)
_FRENCH_RESIDUAL = _grouped(ion="ion", ier="ier ière Ier Ière", e="e")


def _french(word: _StemmedWord) -> None:
    regions, vowels = _FRENCH_REGIONS, _FRENCH_REGIONS.vowels
    word.text = _french_prelude(word.text)
    rv, (r1, r2) = regions.rv(word.text), regions.r1_r2(word.text)
    if _french_standard(word, rv, r1, r2) or _french_i_verb(word, rv) or _french_verb(word, rv, r2):
        word.cut("Y", by="i") or word.cut("ç", by="c")
    else:
        before = word.text[:-1]
        if word.has("s") and before and (before.endswith("Hi") or before[-1] not in "aiouès"):
            word.cut("s")
        ending = word.longest(_FRENCH_RESIDUAL, rv)
        kind = _FRENCH_RESIDUAL.get(ending)
        if kind == "ion":
            if len(word.text) - 3 >= r2 and word.ends_in("st", "ion", rv):
                word.cut("ion")
        else:
            word.cut(ending, by="i" if kind == "ier" else "")
    if word.text.endswith(("enn", "onn", "ett", "ell", "eill")):
        word.text = word.text[:-1]
    match = re.search(f"[éè]([^{vowels}]+)\\Z", word.text)
    if match:
        word.text = f"{word.text[: match.start()]}e{match[1]}"
    word.text = _french_postlude(word.text)


def _french_prelude(text: str) -> str:
    vowels = _FRENCH_REGIONS.vowels
    characters, index = list(text), 0
    while index < len(characters):
        character, after, then = (*characters[index : index + 3], "", "")[:3]
        is_vowel = character in vowels
        if (is_vowel and (after == "y" or (after in ("u", "i") and _in(vowels, then)))) or (
            character == "q" and after == "u"
        ):
            characters[index + 1] = after.upper()
        if character in ("ë", "ï"):
            characters[index : index + 1] = "He" if character == "ë" else "Hi"
        elif character == "y" and _in(vowels, "".join(characters[index + 1 : index + 2])):
            characters[index] = "Y"
        index += 1
    return "".join(characters)


def _french_standard(word: _StemmedWord, rv: int, r1: int, r2: int) -> bool:
    """Remove a standard suffix; return False if a suffix of verbs may follow."""
    ending = word.longest(_FRENCH_STANDARD)
    kind = _FRENCH_STANDARD.get(ending)
    start = len(word.text) - len(ending)
    if kind in ("delete", "ation", "ité", "ive"):
        if not word.cut(ending, r2):
            return False
        if kind == "ation" or (kind == "ive" and word.cut("at", r2)):
            if word.has("ic"):
                word.cut("ic", r2) or word.cut("ic", by="iqU")
        elif kind == "ité":
            before = word.longest(_FRENCH_BEFORE_ITE)
            if before and not word.cut(before, r2) and before != "iv":
                word.cut(before, by={"abil": "abl", "ic": "iqU"}[before])
        return True
    if kind in ("logie", "u", "ence"):
        return word.cut(ending, r2, {"logie": "log", "u": "u", "ence": "ent"}[kind])
    if kind == "ement":
        return word.cut(ending, rv) and _french_before_ement(word, rv, r1, r2)
    if kind == "eaux":
        return word.cut(ending, by="eau")
    if kind == "aux":
        return word.cut(ending, r1, "al")
    if kind == "euse":
        return word.cut(ending, r2) or word.cut(ending, r1, "eux")
    if kind == "issement":
        is_after_consonant = start > 0 and word.text[start - 1] not in _FRENCH_REGIONS.vowels
        return is_after_consonant and word.cut(ending, r1)
    # A suffix of verbs follows these.
    if kind in ("amment", "emment"):
        word.cut(ending, rv, f"{kind[0]}nt")
    elif kind == "ment" and start - 1 >= rv and word.ends_in(_FRENCH_REGIONS.vowels, ending):
        word.cut(ending)
    return False


def _french_before_ement(word: _StemmedWord, rv: int, r1: int, r2: int) -> bool:
    ending = word.longest(_FRENCH_BEFORE_EMENT)
    kind = _FRENCH_BEFORE_EMENT.get(ending)
    if kind == "iv":
        if word.cut(ending, r2):
            word.cut("at", r2)
    elif kind == "eus":
        word.cut(ending, r2) or word.cut(ending, r1, "eux")
    elif kind == "abl":
        word.cut(ending, r2)
    elif kind == "ier":
        word.cut(ending, rv, "i")
    return True


def _french_i_verb(word: _StemmedWord, rv: int) -> bool:
    ending = word.longest(_FRENCH_I_VERB, rv)
    start = len(word.text) - len(ending)
    if not ending or start <= rv or word.text[start - 1] in f"H{_FRENCH_REGIONS.vowels}":
        return False
    return word.cut(ending)


def _french_verb(word: _StemmedWord, rv: int, r2: int) -> bool:
    ending = word.longest(_FRENCH_VERB, rv)
    kind = _FRENCH_VERB.get(ending)
    if not ending or (kind == "ions" and not word.has(ending, r2)):
        return False
    word.cut(ending)
    if kind == "a":
        word.cut("e", rv)
    return True


_SPANISH_REGIONS = _Regions("aeiouáéíóúü", _RV)
_SPANISH_PLAIN = str.maketrans("áéíóú", "aeiou")
_SPANISH_PRONOUNS = _all("me se sela selo selas selos la le lo las les los nos")
_SPANISH_BEFORE_PRONOUNS = _grouped(
    accented="iéndo ándo ár ér ír", plain="ando iendo ar er ir", yendo="yendo"
)
_SPANISH_STANDARD = _grouped(
    delete="anza anzas ico ica icos icas ismo ismos able ables ible ibles ista istas oso osa osos osas amiento "
    "amientos imiento imientos",
    ic="adora ador ación adoras adores aciones ante antes ancia ancias",
    log="logía logías",
    u="ución uciones",
    ente="encia encias",
    amente="amente",
    mente="mente",
    idad="idad idades",
    iva="iva ivo ivas ivos",
)
_BEFORE_AMENTE = _all("iv os ic ad")
_SPANISH_BEFORE_MENTE = _all("ante able ible")
_BEFORE_IDAD = _all("abil ic iv")
_SPANISH_Y_VERB = _all("ya ye yan yen yeron yendo yo yó yas yes yais yamos")
_SPANISH_VERB = _grouped(
    u="en es éis emos",
    delete="arían arías arán arás aríais aría aréis aríamos aremos ará aré erían erías erán erás eríais ería eréis "
    "eríamos eremos erá eré irían irías irán irás iríais iría iréis iríamos iremos irá iré aba ada ida ía ara iera "
    "ad ed id ase iese aste iste an aban ían aran ieran asen iesen aron ieron ado ido ando iendo ió ar er ir as "
    "abas adas idas ías aras ieras ases ieses ís áis abais íais arais ierais aseis ieseis asteis isteis ados idos "
    "amos ábamos íamos imos áramos iéramos iésemos ásemos",
)
_SPANISH_RESIDUAL = _grouped(a="os a o á í ó", e="e é")


def _spanish(word: _StemmedWord) -> None:
    rv, (r1, r2) = _SPANISH_REGIONS.rv(word.text), _SPANISH_REGIONS.r1_r2(word.text)
    pronoun = word.longest(_SPANISH_PRONOUNS)
    verb = _StemmedWord(word.text.removesuffix(pronoun))
    before = verb.longest(_SPANISH_BEFORE_PRONOUNS) if pronoun else ""
    if before and verb.has(before, rv):
        kind = _SPANISH_BEFORE_PRONOUNS[before]
        if kind == "accented":
            verb.cut(before, by=before.translate(_SPANISH_PLAIN))
        if kind != "yendo" or verb.has("uyendo"):
            word.text = verb.text
    if not _ibero_standard(word, _SPANISH_STANDARD, _SPANISH_BEFORE_MENTE, r1, r2):
        ending = word.longest(_SPANISH_Y_VERB, rv)
        if not (ending and word.has(f"u{ending}") and word.cut(ending)):
            ending = word.longest(_SPANISH_VERB, rv)
            word.cut(ending)
            if _SPANISH_VERB.get(ending) == "u" and word.has("gu"):
                word.cut("u")
    ending = word.longest(_SPANISH_RESIDUAL)
    if word.cut(ending, rv) and _SPANISH_RESIDUAL.get(ending) == "e" and word.has("gu") and word.has("u", rv):
        word.cut("u")
    word.text = word.text.translate(_SPANISH_PLAIN)


def _ibero_standard(word: _StemmedWord, endings: Endings, before_mente: Endings, r1: int, r2: int) -> bool:
    """Remove a standard suffix of Spanish or Portuguese."""
    ending = word.longest(endings)
    kind = endings.get(ending, "")
    if kind in ("log", "u", "ente"):
        return word.cut(ending, r2, kind)
    if not ending or not word.cut(ending, r1 if kind == "amente" else r2):
        return False
    if kind == "ic":
        word.cut("ic", r2)
    elif kind == "amente":
        before = word.longest(_BEFORE_AMENTE)
        if word.cut(before, r2) and before == "iv":
            word.cut("at", r2)
    elif kind in ("mente", "idad"):
        word.cut_any(before_mente if kind == "mente" else _BEFORE_IDAD, r2)
    elif kind == "iva":
        word.cut("at", r2)
    return True


_PORTUGUESE_REGIONS = _Regions("aeiouáéíóúâêô", _RV)
_portuguese_tildes = _translator({"ã": "a~", "õ": "o~"})
_portuguese_letters = _translator({"a~": "ã", "o~": "õ"})
_PORTUGUESE_STANDARD = _grouped(
    delete="eza ezas ico ica icos icas ismo ismos ável ível ista istas oso osa osos osas amento amentos imento "
    "imentos adora ador aça~o adoras adores aço~es ante antes ância",
    log="logia logias",
    u="uça~o uço~es",
    ente="ência ências",
    amente="amente",
    mente="mente",
    idad="idade idades",
    iva="iva ivo ivas ivos",
    ira="ira iras",
)
_PORTUGUESE_BEFORE_MENTE = _all("ante avel ível")
_PORTUGUESE_VERB = _all(
    "ada ida ia aria eria iria ará ara erá era irá ava asse esse isse aste este iste ei arei erei irei am iam ariam "
    "eriam iriam aram eram iram avam em arem erem irem assem essem issem ado ido ando endo indo ara~o era~o ira~o "
    "ar er ir as adas idas ias arias erias irias arás aras erás eras irás avas es ardes erdes irdes ares eres ires "
    "asses esses isses astes estes istes is ais eis íeis aríeis eríeis iríeis áreis areis éreis ereis íreis ireis "
    "ásseis ésseis ísseis áveis ados idos ámos amos íamos aríamos eríamos iríamos áramos éramos íramos ávamos emos "
    "aremos eremos iremos ássemos êssemos íssemos imos armos ermos irmos eu iu ou ira iras"
)
_PORTUGUESE_RESIDUAL = _all("os a i o á í ó")


def _portuguese(word: _StemmedWord) -> None:
    word.text = _portuguese_tildes(word.text)
    rv, (r1, r2) = _PORTUGUESE_REGIONS.rv(word.text), _PORTUGUESE_REGIONS.r1_r2(word.text)
    ending = word.longest(_PORTUGUESE_STANDARD)
    if _PORTUGUESE_STANDARD.get(ending) == "ira":
        is_changed = word.has(f"e{ending}") and word.cut(ending, rv, "ir")
    else:
        is_changed = _ibero_standard(word, _PORTUGUESE_STANDARD, _PORTUGUESE_BEFORE_MENTE, r1, r2)
    if not is_changed:
        ending = word.longest(_PORTUGUESE_VERB, rv)
        is_changed = bool(ending) and word.cut(ending)
    if not is_changed:
        word.cut_any(_PORTUGUESE_RESIDUAL, rv)
    elif word.has("ci"):
        word.cut("i", rv)
    if word.text.endswith(("e", "é", "ê")):
        if word.cut(word.text[-1], rv) and word.text.endswith(("gu", "ci")):
            word.cut(word.text[-1], rv)
    else:
        word.cut("ç", by="c")
    word.text = _portuguese_letters(word.text)


_ITALIAN_REGIONS = _Regions("aeiouàèìòù", _RV)
_ITALIAN_ACCENTS = str.maketrans("áéíóú", "àèìòù")
_ITALIAN_PRONOUNS = _all(
    "ci gli la le li lo mi ne si ti vi sene gliela gliele glieli glielo gliene mela mele meli melo mene tela tele "
    "teli telo tene cela cele celi celo cene vela vele veli velo vene"
)
_ITALIAN_BEFORE_PRONOUNS = _grouped(delete="ando endo", e="ar er ir")
_ITALIAN_STANDARD = _grouped(
    delete="anza anze ico ici ica ice iche ichi ismo ismi abile abili ibile ibili ista iste isti istà istè istì oso "
    "osi osa ose mente atrice atrici ante anti",
    ic="azione azioni atore atori",
    log="logia logie",
    u="uzione uzioni usione usioni",
    ente="enza enze",
    rv="amento amenti imento imenti",
    amente="amente",
    ità="ità",
    ivo="ivo ivi iva ive",
)
_ITALIAN_BEFORE_AMENTE = _all("iv os ic abil")
_ITALIAN_VERB = _all(
    "ammo ando ano are arono asse assero assi assimo ata ate ati ato ava avamo avano avate avi avo emmo enda ende "
    "endi endo erà erai eranno ere erebbe erebbero erei eremmo eremo ereste eresti erete erò erono essero ete eva "
    "evamo evano evate evi evo Yamo iamo immo irà irai iranno ire irebbe irebbero irei iremmo iremo ireste iresti "
    "irete irò irono isca iscano isce isci isco iscono issero ita ite iti ito iva ivamo ivano ivate ivi ivo ono "
    "uta ute uti uto ar ir"
)


def _italian(word: _StemmedWord) -> None:
    regions = _ITALIAN_REGIONS
    if word.text == "divano":
        word.text = "divan"
        return
    word.text = _with_capitals(
        word.text.translate(_ITALIAN_ACCENTS).replace("qu", "qU"),
        lambda before, character, after: character in "ui" and _in(regions.vowels, before, after),
    )
    rv, (r1, r2) = regions.rv(word.text), regions.r1_r2(word.text)
    pronoun = word.longest(_ITALIAN_PRONOUNS)
    verb = _StemmedWord(word.text.removesuffix(pronoun))
    before = verb.longest(_ITALIAN_BEFORE_PRONOUNS) if pronoun else ""
    if before and verb.has(before, rv):
        word.text = verb.text + ("e" if _ITALIAN_BEFORE_PRONOUNS[before] == "e" else "")
    if not _italian_standard(word, rv, r1, r2):
        word.cut(word.longest(_ITALIAN_VERB, rv))
    if word.ends_in("aeioàèìò", region=rv):
        word.text = word.text[:-1]
        word.cut("i", rv)
    if word.text.endswith(("ch", "gh")) and len(word.text) - 2 >= rv:
        word.cut("h")
    word.text = word.text.replace("I", "i").replace("U", "u")


def _italian_standard(word: _StemmedWord, rv: int, r1: int, r2: int) -> bool:
    ending = word.longest(_ITALIAN_STANDARD)
    kind = _ITALIAN_STANDARD.get(ending, "")
    if kind in ("log", "u", "ente"):
        return word.cut(ending, r2, kind)
    if not ending or not word.cut(ending, {"rv": rv, "amente": r1}.get(kind, r2)):
        return False
    if kind == "ic":
        word.cut("ic", r2)
    elif kind == "amente":
        before = word.longest(_ITALIAN_BEFORE_AMENTE)
        if word.cut(before, r2) and before == "iv":
            word.cut("at", r2)
    elif kind == "ità":
        word.cut_any(_BEFORE_IDAD, r2)
    elif kind == "ivo" and word.cut("at", r2):
        word.cut("ic", r2)
    return True


# Russian

_RUSSIAN_REGIONS = _Regions("аеиоуыэюя", "C*V")
_PERFECTIVE_GERUND = _grouped(after_a="в вши вшись", all="ив ивши ившись ыв ывши ывшись")
_ADJECTIVE = _all("ее ие ое ые ими ыми ей ий ой ый ем им ым ом его ого ему ому их ых ую юю ая яя ою ею")
_PARTICIPLE = _grouped(after_a="ем нн вш ющ щ", all="ивш ывш ующ")
_RUSSIAN_VERB = _grouped(
    after_a="ла на ете йте ли й л ем н ло но ет ют ны ть ешь нно",
    all="ила ыла ена ейте уйте ите или ыли ей уй ил ыл им ым ен ило ыло ено ят ует уют ит ыт ены ить ыть ишь ую ю",
)
_RUSSIAN_NOUN = _all(
    "а ев ов ие ье е иями ями ами еи ии и ией ей ой ий й иям ям ием ем ам ом о у ах иях ях ы ь ию ью ю ия ья я"
)
_DERIVATIONAL = _all("ост ость")


def _russian(word: _StemmedWord) -> None:
    text = word.text.replace("ё", "е")
    rv = _RUSSIAN_REGIONS.rv(text)
    _r1, r2 = _RUSSIAN_REGIONS.r1_r2(text)
    prefix, word.text, r2 = text[:rv], text[rv:], r2 - rv
    if not _cut_after_a(word, _PERFECTIVE_GERUND):
        word.cut("ся") or word.cut("сь")
        if word.cut_any(_ADJECTIVE):
            _cut_after_a(word, _PARTICIPLE)
        elif not _cut_after_a(word, _RUSSIAN_VERB):
            word.cut_any(_RUSSIAN_NOUN)
    word.cut("и")
    word.cut_any(_DERIVATIONAL, r2)
    if word.cut("ейше") or word.cut("ейш") or word.has("н"):
        if word.has("нн"):
            word.cut("н")
    else:
        word.cut("ь")
    word.text = prefix + word.text


def _cut_after_a(word: _StemmedWord, endings: Endings) -> bool:
    ending = word.longest(endings)
    if not ending or (endings[ending] == "after_a" and not word.ends_in("ая", ending)):
        return False
    return word.cut(ending)


def _stemmer(change: Callable[[_StemmedWord], None]) -> Callable[[str], str]:
    @lru_cache(maxsize=REMEMBERED_STEMS)
    def stem(term: str) -> str:
        word = _StemmedWord(utf16_units(term))
        change(word)
        return joined_units(word.text)

    return stem


_CHANGES: Iterable[tuple[str, Callable[[_StemmedWord], None]]] = (
    ("danish", _danish),
    ("dutch", _dutch),
    ("french", _french),
    ("german", _german),
    ("italian", _italian),
    ("norwegian", _norwegian),
    ("portuguese", _portuguese),
    ("russian", _russian),
    ("spanish", _spanish),
    ("swedish", _swedish),
)
# The stemmer of each language, for lower-case terms.
SNOWBALL: Final[Mapping[str, Callable[[str], str]]] = {
    language: _stemmer(change) for language, change in _CHANGES
}
