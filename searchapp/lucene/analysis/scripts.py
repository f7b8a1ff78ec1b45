"""Normalization of letters in Arabic and Indian scripts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

_YEH, _HEH, _KAF, _AE, _REH = "\u064a", "\u0647", "\u0643", "\u06d5", "\u0631"
_TATWEEL_AND_HARAKAT = "\u0640\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652"
_ZWNJ = "\u200c"

_ARABIC = str.maketrans(
    "\u0622\u0623\u0625\u0649\u0629", f"\u0627\u0627\u0627{_YEH}{_HEH}", _TATWEEL_AND_HARAKAT
)
_PERSIAN = str.maketrans("\u06cc\u06d2\u06a9\u06c0\u06c1", f"{_YEH}{_YEH}{_KAF}{_HEH}{_HEH}", "\u0654")
_HINDI = str.maketrans(
    "\u0901\u0929\u0931\u0934\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f\u0945\u0946\u0949\u094a\u090d\u090e"
    "\u0911\u0912\u0972\u0906\u0908\u090a\u0960\u0961\u0910\u0914\u0940\u0942\u0944\u0963\u0948\u094c",
    "\u0902\u0928\u0930\u0933\u0915\u0916\u0917\u091c\u0921\u0922\u092b\u092f\u0947\u0947\u094b\u094b\u090f\u090f"
    "\u0913\u0913\u0905\u0905\u0907\u0909\u090b\u090c\u090f\u0913\u093f\u0941\u0943\u0962\u0947\u094b",
    "\u093c\u200d\u200c\u094d",
)
_SORANI = str.maketrans(f"{_YEH}\u0649{_KAF}\u0629\u0692", "\u06cc\u06cc\u06a9\u06d5\u0695")

# Blocks of scripts by letter: Devanagari, Bengali, Gurmukhi, gUjarati, Oriya, Tamil, tElugu, Kannada, Malayalam.
_BLOCKS = {
    "D": 0x900, "B": 0x980, "G": 0xA00, "U": 0xA80, "O": 0xB00, "T": 0xB80, "E": 0xC00, "K": 0xC80, "M": 0xD00,
}  # fmt: skip

_ZWJ, _ZWJ_OFFSET = "\u200d", 0xFF

# Parts of a letter and the letter, as offsets in the blocks of these scripts; the first that matches counts.
_INDIC = """
05+3e+45=11:DU 05+3e+46=12:D 05+3e+47=13:DU 05+3e+48=14:DU 05+3e=06:DBGUO 05+45=72:D 05+45=0d:U 05+46=04:D
05+47=0f:U 05+48=10:GU 05+49=11:DU 05+4a=12:D 05+4b=13:DU 05+4c=14:DGU 06+45=11:DU 06+46=12:D 06+47=13:DU
06+48=14:DU 07+57=08:M 09+41=0a:D 09+57=0a:TM 0e+46=10:M 0f+45=0d:D 0f+46=0e:D 0f+47=10:D 0f+57=10:O 12+3e=13:M
12+4c=14:EK 12+55=13:E 12+57=14:TM 13+57=14:O 15+3c=58:D 16+3c=59:DG 17+3c=5a:DG 1c+3c=5b:DG 21+3c=5c:DBO
22+3c=5d:DBO 23+4d+ff=7a:M 24+4d+ff=4e:B 28+3c=29:D 28+4d+ff=7b:M 2b+3c=5e:DG 2f+3c=5f:DB 2c+41+41=0b:E
30+3c=31:D 30+4d+ff=7c:M 32+4d+ff=7d:M 33+3c=34:D 33+4d+ff=7e:M 35+41=2e:E 3e+45=49:DU 3e+46=4a:D 3e+47=4b:DU
3e+48=4c:DU 3f+55=40:K 41+41=42:G 46+3e=4a:TM 46+42+55=4b:K 46+42=4a:K 46+46=48:M 46+55=47:EK 46+56=48:EK
46+57=4c:TM 47+3e=4b:BOTM 47+57=4c:BO 4a+55=4b:K 72+3f=07:G 72+40=08:G 72+47=0f:G 73+41=09:G 73+42=0a:G 73+4b=13:G
"""


def normalized_arabic(term: str) -> str:
    """Source: org.apache.lucene.analysis.ar.ArabicNormalizer."""
    return term.translate(_ARABIC)


def normalized_persian(term: str) -> str:
    """Source: org.apache.lucene.analysis.fa.PersianNormalizer."""
    return term.translate(_PERSIAN)


def normalized_hindi(term: str) -> str:
    """Source: org.apache.lucene.analysis.hi.HindiNormalizer."""
    return term.replace("\u0928\u094d", "\u0902").translate(_HINDI)


def normalized_sorani(term: str) -> str:
    """Source: org.apache.lucene.analysis.ckb.SoraniNormalizer."""
    letters: list[str] = []
    for number, letter in enumerate(term):
        if letter == _ZWNJ:
            letters[-1:] = [_AE] if letters[-1:] == [_HEH] else letters[-1:]
        elif letter == _HEH and number + 1 == len(term):
            letters.append(_AE)
        elif letter == _REH and not letters:
            letters.append("\u0695")
        elif letter == "\u06be":
            letters.append(_HEH)
        elif letter not in _TATWEEL_AND_HARAKAT and (
            unicodedata.category(letter) != "Cf" or letter > "\uffff"
        ):
            letters.append(letter.translate(_SORANI))
    return "".join(letters)


def normalized_indic(term: str) -> str:
    """Source: org.apache.lucene.analysis.in.IndicNormalizer."""
    return _indic()(term)


@cache
def _indic() -> Callable[[str], str]:
    letters: dict[str, str] = {}
    for rule in _INDIC.split():
        parts, _, rest = rule.partition("=")
        offset, _, blocks = rest.partition(":")
        for block in blocks:
            codes = [int(part, 16) for part in parts.split("+")]
            joined = (_ZWJ if code == _ZWJ_OFFSET else chr(_BLOCKS[block] + code) for code in codes)
            letters["".join(joined)] = chr(_BLOCKS[block] + int(offset, 16))
    pattern = re.compile("|".join(letters))
    return lambda term: pattern.sub(lambda match: letters[match[0]], term)
