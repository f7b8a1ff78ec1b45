"""Random texts and random analysis settings from the supported subset."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Settings = dict[str, Any]

# Characters that every Java since 21 and every Python since 3.11 know.
ANY = st.characters(exclude_categories=("Cs", "Cn", "Co"))
# fmt: off
SPECIAL = st.sampled_from([
    *"aàAÀİIıſßσςΣǅﬁ¼²٣१אבكฟกຟ가アーｱあ漢字々〇_-'’＇.,:;\"!?#*&|\\$^{}()[]<>/=+~`@%0129", *" \t\n\r\x0b\x0c\x1c",
    *"\u0301\u200d\u200b\ufe0e\ufe0f\u20e3\u00a0\u2028\x85\u00ad\ufeff", *"😀👩👨🏽🇩🇪🏴𝐀𝔸🂡❤",
])
WORDS = st.sampled_from([
    "the", "The", "a", "running", "foxes", "Foxes'", "dog's", "dogs", "wi-fi", "e.g.", "can't", "flies", "ponies",
    "agreed", "hopping", "generalization", "sky", "news", "skies", "organist", "added", "relational", "is", "of",
    r"\frac", r"\mathbb R", "$x^2$", "{{eqn}}", "[[Definition:Set|set]]", "I", "Ph.D.", "3.14", "1,000", "x_1",
    "a" * 254, "b" * 255, "c" * 256, "d" * 700, "é" * 256, "😀" * 200, "𝐀" * 300, "_" * 300, "united", "states",
])
# fmt: on
PIECES = st.one_of(WORDS, WORDS, SPECIAL, SPECIAL, ANY, st.just(" "), st.just(" "))
TEXTS = st.lists(PIECES, max_size=20).map("".join)
"""Texts with words, LaTeX, emoji, combining marks, very long tokens; or nothing."""
BMP_TEXTS = TEXTS.map(lambda text: "".join(char for char in text if char <= "\uffff"))

# fmt: off
_MARKUP = [
    *("<", ">", "</", "/>", "=", "'", '"', "\\", "\\'", '\\"', "--", "&", "&#", ";", " ", "\n", "\xa0", "\x1c", "\x85"),
    *("&amp;", "&amp", "&lt;", "&nbsp;", "&eacute;", "&COPY;", "&Copy;", "&apos;", "&bogus;", "&#65;", "&#x41;"),
    *("&#x1F600;", "&#xD83D;", "&#xDE00;", "&#xDE00", "&#55357;", "&#56832;", "&#56320;", "&#55٢96;", "&#55𝟐96;"),
    *("&#1114111;", "&#1114112;", "&#x110000;", "&#xFFFFF;", "&#0065;", "&#00000065;"),
    *("<b>", "</b>", "<p>", "</p >", "<br>", "<br/>", "</br>", "< br >", "<BR", "<brx>", '<br="', "<code>", "</code>"),
    *('<div class="a b">', "<a href='x>y'>", '<a href="x>y">', " a='", ' b = "', "onclick='", "<foo", "</foo", "<foo "),
    *("<!--", "-->", "<!--#", "<!-->", "<!", "<!DOCTYPE html>", "<![CDATA[", "]]>", "<?", "?>", "<?xml ?>"),
    *("<script>", '<script src="a>b">', "</script>", "< /script>", "</ SCRIPT >", "<script", "<style>", "</style>"),
    *("<style ", "<ſcript>", "<scrİpt>", "<\u212abd>", "</kbd>", "<é>", "<x:y.z->", "<_a>", "<-a>", "<𝐀>"),
    *("<a𝐀 b='<'>", "x", "word", "😀", "é", "1x"),
]
# fmt: on
HTML = st.lists(st.sampled_from(_MARKUP), max_size=24).map("".join)
"""Pieces of HTML in any order: little of it is well-formed, most is markup to somebody."""
ESCAPED_TAGS = st.lists(
    st.sampled_from(
        ["b", "P", "br", "Script", "style", "foo", "é", "KBD", "ſtyle", "scrıpt", "scrİpt", "ﬆyle"]
    ),
    max_size=4,
)

# fmt: off
REGEXES = st.sampled_from([
    r"\s+", r"\W+", r"\w+", r"[^a-z]+", r"\d", r"[A-Za-z]+", r"(a)(b)?", r"\\[A-Za-z]+", r"'", r"\b", r"\B", r"^.",
    r"\bt", r"[\w'-]+", r".$", r"x*", r"(?i)THE", r"(?<=a).", r"(?<![a-z])[a-z]{2,}", r"\p{L}+", r"\p{Lu}",
    r"\p{Punct}", r"[\p{N}\s]", r"(o)(.)", r"\$[^$]*\$", r"(\w)\1", r"[-+*/<>=^_%#]", r"\Q.\E", r"[^\p{L}]++",
    r"(?:begin|end|e)", r"\u00e9|é", r"\h", r"(?>a|an)n?", r".", r"(?s).", r"(?m)^", r"\A\S", r"\S\z", r"o{2}",
])
# fmt: on
MAY_BE_EMPTY = (r"\b", r"\B", r"x*", "(?m)^")
REPLACEMENTS = st.sampled_from(
    ["", " ", "x", "é", "😀", "$0", "<$0>", r"\$", r"\\", "longer text", "$01", " $0 "]
)
FLAGS = st.sampled_from(["", "CASE_INSENSITIVE", "DOTALL", "MULTILINE", "CASE_INSENSITIVE|DOTALL"])


def _object(type_: str, **values: st.SearchStrategy[Any]) -> st.SearchStrategy[Settings]:
    """Settings of a piece; each of the given ones may be left out."""
    return st.fixed_dictionaries({"type": st.just(type_)}, optional=values)


def _with(type_: str, **values: st.SearchStrategy[Any]) -> st.SearchStrategy[Settings]:
    """Settings of a piece with all of the given ones."""
    return st.fixed_dictionaries({"type": st.just(type_), **values})


def _escaped(text: str) -> str:
    """A side of a mapping rule, written with escapes only."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


_SIDES = st.lists(st.one_of(SPECIAL, st.sampled_from("abct")), min_size=1, max_size=3).map("".join)
_RULES = st.dictionaries(_SIDES, st.one_of(st.just(""), _SIDES, st.just("th")), max_size=6)
CHAR_FILTERS = st.one_of(
    _RULES.map(
        lambda rules: {
            "type": "mapping",
            "mappings": [f"{_escaped(a)} => {_escaped(b)}" for a, b in rules.items()],
        }
    ),
    _with("pattern_replace", pattern=REGEXES, replacement=REPLACEMENTS, flags=FLAGS),
    _with(
        "pattern_replace",
        pattern=st.just("(o)(.)"),
        replacement=st.sampled_from(["$2$1", "$1$1", "$12"]),
    ),
    _object("html_strip", escaped_tags=ESCAPED_TAGS),
)

TOKENIZERS = st.one_of(
    _object("standard", max_token_length=st.integers(2, 12)),
    st.just({"type": "standard"}),
    _object("whitespace", max_token_length=st.integers(1, 12)),
    st.sampled_from([{"type": "keyword"}, {"type": "letter"}, {"type": "lowercase"}]),
    _object("pattern", pattern=REGEXES, flags=FLAGS, group=st.sampled_from([-1, 0])),
    _with("pattern", pattern=st.just("([a-c])([a-z]*)"), group=st.sampled_from([-1, 0, 1, 2])),
    _with(
        "simple_pattern", pattern=st.sampled_from(["[a-z]{2}", "[^ ]+", "th", "[A-Za-z0-9]+", "a[bc]{1,2}"])
    ),
)

STOPWORDS = st.one_of(
    st.sampled_from(["_english_", "_none_", ["_english_"], ["the", "a"], []]),
    st.lists(WORDS, max_size=5),
)
FILTERS = st.one_of(
    st.sampled_from(
        [{"type": "lowercase"}, {"type": "asciifolding"}, {"type": "trim"}, {"type": "porter_stem"}]
    ),
    _object("stop", stopwords=STOPWORDS, ignore_case=st.booleans()),
    _with(
        "stemmer",
        language=st.sampled_from(["english", "porter", "porter2", "minimal_english", "possessive_english"]),
    ),
    _with("snowball", language=st.just("English")),
    _object("length", min=st.integers(0, 3), max=st.integers(3, 10)),
    _with("truncate", length=st.integers(1, 6)),
    _object("unique", only_on_same_position=st.booleans()),
    st.tuples(st.integers(2, 4), st.integers(0, 2)).flatmap(
        lambda sizes: _object(
            "shingle",
            output_unigrams=st.booleans(),
            output_unigrams_if_no_shingles=st.booleans(),
            token_separator=st.sampled_from(["", " ", "_+_"]),
            filler_token=st.sampled_from(["_", "", "filler"]),
        ).map(
            lambda settings: settings | {"min_shingle_size": sizes[0], "max_shingle_size": sum(sizes)},
        )
    ),
    st.integers(1, 4).flatmap(
        lambda low: _object("ngram", preserve_original=st.booleans()).map(
            lambda settings: settings | {"min_gram": low, "max_gram": low + 1}
        )
    ),
    st.integers(1, 4).flatmap(
        lambda low: _object("edge_ngram", preserve_original=st.booleans()).map(
            lambda settings: settings | {"min_gram": low, "max_gram": low + 3}
        )
    ),
    _with("keyword_marker", keywords=st.lists(WORDS, max_size=4), ignore_case=st.booleans()),
    _with("keyword_marker", keywords_pattern=st.sampled_from(["[a-z]{5,}", ".*s", r"\w+es"])),
    _with(
        "stemmer_override",
        rules=st.sampled_from([["foxes, flies => animal"], ["the => it", "the => he", r"\frac => \over"]]),
    ),
    _with("pattern_replace", pattern=REGEXES, replacement=REPLACEMENTS, all=st.booleans(), flags=FLAGS),
)
# fmt: off
SYNONYMS = st.lists(
    st.sampled_from([
        "united states, usa", "dog, hound, canis lupus", "the sky => heaven", "foxes => fox, small red animal",
        "running running => ran", "a => b", "b => a", "a, a a", "states of => land", "usa => united states",
        "a b, c", "a b c => d", "b c, x y z", "c => a b c", "a b c a, b",
    ]),
    max_size=6,
)
# fmt: on
SYNONYM_TEXTS = st.lists(
    st.sampled_from(
        [
            "a",
            "a",
            "a",
            "b",
            "b",
            "c",
            "c",
            "d",
            "x",
            "united",
            "states",
            "usa",
            "of",
            "the",
            "sky",
            "dog",
            "canis",
            "lupus",
            "foxes",
            "running",
            "is",
            "can't",
        ]
    ),
    max_size=14,
).map(" ".join)


@st.composite
def analyzers(draw: st.DrawFn) -> Settings:
    """The definition of a custom analyzer, its pieces in place, as `_analyze` takes it."""
    return {
        "char_filter": draw(st.lists(CHAR_FILTERS, max_size=2)),
        "tokenizer": draw(TOKENIZERS),
        "filter": draw(st.lists(FILTERS, max_size=4)),
    }
