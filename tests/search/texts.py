"""Random words, characters and texts that are difficult to analyze."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache

from tests.search.drawing import Draw

# fmt: off
SPECIAL: list[str] = [
    *"aàAÀİIıſßσςΣǅﬁ¼²٣१אבكฟกຟ가アーｱあ漢字々〇_-'’＇.,:;\"!?#*&|\\$^{}()[]<>/=+~`@%0129", *" \t\n\r\x0b\x0c\x1c",
    *"\u0301\u200d\u200b\ufe0e\ufe0f\u20e3\u00a0\u2028\x85\u00ad\ufeff\ufffd", *"😀👩👨🏽🇩🇪🏴𝐀𝔸🂡❤𐐀𑀓",
]
WORDS = [
    "the", "The", "a", "PowerShot2b", "Wi-Fi500's", "O'Neil's-x", "--50-42", "x'S",
    "häuserübergreifenden", "naïveté", "continuellement", "chevaux", "rápidamente", "felizmente", "attualità", "løst",
    "mogelijkheden", "klostergården",
    "новостью", "Straße", "quells", "l'amie", "dell'acqua", "und", "les",
    "running", "foxes", "Foxes'", "dog's", "dogs", "wi-fi", "e.g.", "can't", "flies", "ponies",
    "agreed", "hopping", "generalization", "sky", "news", "skies", "organist", "added", "relational", "is", "of",
    r"\frac", r"\mathbb R", "$x^2$", "{{eqn}}", "[[Definition:Set|set]]", "I", "Ph.D.", "3.14", "1,000", "x_1",
    "a" * 254, "b" * 255, "c" * 256, "d" * 700, "é" * 256, "😀" * 200, "𝐀" * 300, "_" * 300, "united", "states",
    "Aaland", "skjøt", "öoe", "AEoO",
    "l'avion", "L’eau", "don't'", "ｶﾞｷﾞﾊﾟ", "ﾊﾟﾞ", "_none_", "true", "5", "a😀", "ab😀c", "abcde😀", "x😀y😀",
]
MARKUP = [
    *("<", ">", "</", "/>", "=", "'", '"', "\\", "\\'", '\\"', "--", "&", "&#", ";", " ", "\n", "\xa0", "\x1c", "\x85"),
    *("&amp;", "&amp", "&lt;", "&nbsp;", "&eacute;", "&COPY;", "&Copy;", "&apos;", "&bogus;", "&#65;", "&#x41;"),
    *("&#x1F600;", "&#xD83D;", "&#xDE00;", "&#xDE00", "&#55357;", "&#56832;", "&#56320;", "&#55٢96;", "&#55𝟐96;"),
    *("&#1114111;", "&#1114112;", "&#x110000;", "&#xFFFFF;", "&#0065;", "&#00000065;"),
    *("<b>", "</b>", "<p>", "</p >", "<br>", "<br/>", "</br>", "< br >", "<BR", "<brx>", '<br="', "<code>", "</code>"),
    *('<div class="a b">', "<a href='x>y'>", '<a href="x>y">', " a='", ' b = "', "onclick='", "<foo", "</foo", "<foo "),
    *("<!--", "-->", "<!--#", "<!-->", "<!", "<!DOCTYPE html>", "<![CDATA[", "]]>", "<?", "?>", "<?xml ?>"),
    *("<script>", '<script src="a>b">', "</script>", "< /script>", "</ SCRIPT >", "<script", "<style>", "</style>"),
    *("<style ", "<ſcript>", "<scrİpt>", "<\u212abd>", "</kbd>", "<é>", "<x:y.z->", "<_a>", "<-a>", "<𝐀>"),
    *("<a𝐀 b='<'>", "x", "word", "😀", "é", "1x", "foxes", "the"),
]
ADDRESSES = [
    *("http://", "HTTPS://", "ftp://", "file://", "mailto:", "MailTo:", "www.", "example.", "a.b", "x-y"),
    *("-", "_", "."),
    *("com", "co.uk", "museum", "xn--p1ai", "zw", "co", "c", "info", "local", "org", "Org", ".org", "comx", "aaa1"),
    *("/", "/path", "/%20a", "%2", "?q=1&r", "#top", ":80", ":123456", ";type=a", "~", "//", "@", "@", "'", '"', "\\"),
    *("user", "first.last", "a+b", '"q u@x"', "[1.2.3.4]", "[::1]", "[2001:db8::7]", "[IPv6:::1]"),
    *("[x", "]", "(", ")"),
    *("127.0.0.1", "1.2.3.45", "256.1.1.1", "1.2.3", "10.0.0.255.com", "0", "25", "é", "漢字", "カタ", "ひ"),
    *("한국", "ไทย"),
    *("😀", "\u200d", "\u0301", "Ⓐ", "€", " ", " ", "\n", ",", "!", "$", "a" * 60, "b.c" * 90, "x" * 250 + ".com"),
]
# fmt: on


@cache
def _assigned() -> str:
    """Return the characters assigned in Java 21 and Python 3.11 and later."""
    codes = [*range(0x3000), *range(0xA000, 0xAC80), *range(0xF900, 0x13000), *range(0x1D000, 0x20000)]
    return "".join(chr(code) for code in codes if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co"))


def piece(draw: Draw) -> str:
    """Return a word, a character or a blank."""
    kind = draw.number(0, 6)
    if kind < 2:
        return draw.choice(WORDS)
    if kind < 4:
        return draw.choice(SPECIAL)
    return " " if kind < 6 else draw.choice(_assigned())


def text(draw: Draw, maximum: int = 20) -> str:
    """Return words with LaTeX, emoji, combining marks and very long tokens, or an empty text."""
    return "".join(draw.several(lambda: piece(draw), maximum))


def sentence(draw: Draw, word: Callable[[], str]) -> str:
    """Return words with marks of sentences between them, also misplaced ones."""
    marks = [
        " ",
        " ",
        " ",
        " ",
        ", ",
        ". ",
        ". A",
        "! ",
        "? ",
        '." ',
        ".) ",
        ' "',
        " (",
        "... ",
        "\n",
        ".\n",
        " - ",
        ".- ",
        "。",
        "e.g. ",
    ]
    return "".join(draw.several(lambda: f"{word()}{draw.choice(marks)}", 40, 1))


def scripts(draw: Draw, maximum: int = 30) -> str:
    """Return words of letters and marks of one Arabic or Indian script each, many of which form other letters."""

    def word() -> str:
        block = draw.choice([0x600, *range(0x900, 0xD80, 0x80)])
        parts = [
            0x05,
            0x06,
            0x09,
            0x12,
            0x28,
            0x3C,
            0x3E,
            0x41,
            0x45,
            0x46,
            0x47,
            0x4D,
            0x55,
            0x57,
            0x72,
            0x73,
        ]
        arabic = [0x27, 0x31, 0x43, 0x47, 0x49, 0x4A, 0x4E, 0x54, 0xA9, 0xBE, 0xC0, 0xCC]

        def letter() -> str:
            if draw.chance(0.1):
                return draw.choice("\u200c\u200d\u0640x")
            few = arabic if block == 0x600 else parts
            return chr(block + (draw.choice(few) if draw.chance(0.6) else draw.number(0, 0x7F)))

        return "".join(draw.several(letter, 8, 1))

    return " ".join(draw.several(word, maximum))


def html(draw: Draw, maximum: int = 24) -> str:
    """Return pieces of HTML in any order, mostly malformed."""
    return "".join(draw.several(lambda: draw.choice(MARKUP), maximum))


def addresses(draw: Draw, maximum: int = 14) -> str:
    """Return pieces of URLs and e-mail addresses and characters of Asian scripts in any order."""
    return "".join(draw.several(lambda: draw.choice(ADDRESSES), maximum))
