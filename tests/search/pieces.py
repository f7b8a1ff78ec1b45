"""Random settings of char filters, tokenizers and token filters, supported and slightly unsupported."""

from __future__ import annotations

from typing import Any

from tests.search.drawing import Draw
from tests.search.texts import SPECIAL, WORDS

Settings = dict[str, Any]

# fmt: off
REGEXES = [
    r"\s+", r"\W+", r"\w+", r"[^a-z]+", r"\d", r"[A-Za-z]+", r"(a)(b)?", r"\\[A-Za-z]+", r"'", r"\b", r"\B", r"^.",
    r"\bt", r"[\w'-]+", r".$", r"x*", r"(?i)THE", r"(?<=a).", r"(?<![a-z])[a-z]{2,}", r"\p{L}+", r"\p{Lu}",
    r"\p{Punct}", r"[\p{N}\s]", r"(o)(.)", r"\$[^$]*\$", r"(\w)\1", r"[-+*/<>=^_%#]", r"\Q.\E", r"[^\p{L}]++",
    r"(?:begin|end|e)", r"\u00e9|é", r"\h", r"(?>a|an)n?", r".", r"(?s).", r"(?m)^", r"\A\S", r"\S\z", r"o{2}",
    r"[^a]*", r"[^😀]*", r"(?=.)", r"(?!a)", r"a?", r"\p{L}*", r"$", r"(?m)$", r"(?<=.)", r"(?<!a)", r"[^\p{So}]*?",
    r"(a*)", r"(x?)(.?)", r"\x{1F600}?", r"😀", r"\P{L}", r"", r"|a", r"[\u0300-\x{10ffff}]?", r"\W*", r"(?i)[a-z]*",
]
REPLACEMENTS = ["", " ", "x", "é", "😀", "$0", "<$0>", r"\$", r"\\", "longer text", "$01", " $0 ", "a", "\u0301"]
CHARACTERS = ["letter", "digit", "whitespace", "punctuation", "symbol"]
LANGUAGES = [
    "danish", "dutch", "french", "german", "italian", "norwegian", "portuguese", "russian", "spanish", "swedish",
]
STEMMERS = [
    *LANGUAGES, "german2", "light_french", "lightGerman", "light_italian", "light_portuguese", "light_spanish",
    "minimal_french", "minimal_german",
]
SCRIPTS = [
    "arabic_normalization", "hindi_normalization", "indic_normalization", "persian_normalization",
    "sorani_normalization",
]
WITHOUT_SETTINGS = [
    "german_normalization",
    "apostrophe", "cjk_width", "decimal_digit", "keyword_repeat", "keyword_repeat", "remove_duplicates",
    "remove_duplicates", "reverse", "uppercase", "scandinavian_folding", "scandinavian_normalization", "flatten_graph",
    *SCRIPTS,
]
FLAGS = ["", "CASE_INSENSITIVE", "DOTALL", "MULTILINE", "CASE_INSENSITIVE|DOTALL", "dotall", "LITERAL", "|MULTILINE|"]
ESCAPED_TAGS = ["b", "P", "br", "Script", "style", "foo", "é", "KBD", "ſtyle", "scrıpt", "scrİpt", "ﬆyle"]
RULES = [
    "united states, usa", "dog, hound, canis lupus", "the sky => heaven", "foxes => fox, small red animal",
    "running running => ran", "a => b", "b => a", "a, a a", "states of => land", "usa => united states",
    "a b, c", "a b c => d", "b c, x y z", "c => a b c", "a b c a, b", "a, b\x85c", "a\u2028b => c", "a => b\nb => c",
    "#a => c", "a\u00a0, b", "a\\, b => c", "c => 😀", "a",
]
SYNONYM_WORDS = [
    *"aaabbccdx", "united", "states", "usa", "of", "the", "sky", "dog", "canis", "lupus", "foxes", "running", "is",
    "can't", "b\x85c", "a\u00a0",
]
CAPTURES = [
    r"(\d+)([a-z]?)", "(a)(b)?", "([a-z]+)", "(.)", "(([a-z])[a-z])", "([A-Z]+)", r"(\w+)-(\w+)", "x", "(?=(o.))", "()",
    "(^the)", "(é|😀)", r"(\p{L}{2,3})",
]
TYPES = [
    "<ALPHANUM>", "<NUM>", "<EMOJI>", "<HANGUL>", "<HIRAGANA>", "<IDEOGRAPHIC>", "<KATAKANA>", "<SOUTHEAST_ASIAN>",
    "<URL>", "<EMAIL>", "<DOUBLE>", "<SINGLE>", "word", "<HOST>", "<APOSTROPHE>", "<ACRONYM>", "<CJ>", "<COMPANY>",
]
SUBWORDS = ["foxes", "fox", "es", "running", "run", "ing", "the", "united", "unit", "ted", "a", "😀", "Gen", "ion"]
TYPE_RULES = [
    "- => ALPHA", "' => ALPHANUM", "1 => SUBWORD_DELIM", "$ => DIGIT", "a => UPPER", "\\u00e9 => LOWER",
    "\\\\ => ALPHA", ". => DIGIT", "_=>LOWER", "漢 => SUBWORD_DELIM",
]
OVERRIDES = [
    "foxes, flies => animal", "the => it", "the => he", r"\frac => \over", "a\u00a0=> b", "\u00a0a => b",
    "a => b\u2003", " a , The=>x ", "sky => foxes", "a😀 => b",
]
# fmt: on


def flag(draw: Draw) -> Any:
    """Return a boolean in any form that settings allow."""
    return draw.choice([True, False, True, False, "true", "false", ""])


def small(draw: Draw, low: int, high: int) -> Any:
    """Return a number in any form that settings allow."""
    number = draw.number(low, high)
    return draw.choice([number, number, str(number), f"+{number}"])


def char_filter(draw: Draw) -> Settings:
    """Return settings of a char filter."""
    return draw.any_of(
        lambda: mapping(draw),
        lambda: pattern(draw, replacement=draw.choice(REPLACEMENTS)) | {"type": "pattern_replace"},
        lambda: {
            "type": "pattern_replace",
            "pattern": "(o)(.)",
            "replacement": draw.choice(["$2$1", "$1$1", "$12"]),
        },
        lambda: {
            "type": "html_strip",
            **draw.some_of({"escaped_tags": lambda: draw.several(lambda: draw.choice(ESCAPED_TAGS), 4)}),
        },
    )


def mapping(draw: Draw) -> Settings:
    """Return settings of a `mapping` char filter; many rules delete characters."""

    def side() -> str:
        return "".join(draw.several(lambda: draw.choice([*SPECIAL, *"abct "]), 3, 1))

    rules = {side(): draw.choice(["", "", side(), "th"]) for _ in range(draw.number(0, 6))}
    return {
        "type": "mapping",
        "mappings": [f"{_escaped(left)} => {_escaped(right)}" for left, right in rules.items()],
    }


def pattern(draw: Draw, **more: Any) -> Settings:
    """Return the settings of a pattern."""
    return {
        "pattern": draw.choice(REGEXES),
        **draw.some_of({"flags": lambda: draw.choice(FLAGS)}, 0.3),
        **more,
    }


def tokenizer(draw: Draw) -> Settings:
    """Return settings of a tokenizer."""
    return draw.any_of(
        lambda: {"type": "standard", "max_token_length": small(draw, 2, 12)},
        lambda: {"type": "standard"},
        lambda: {
            "type": "uax_url_email",
            **draw.some_of({"max_token_length": lambda: small(draw, 2, 60)}, 0.3),
        },
        lambda: gram_tokenizer(draw, "ngram", 1),
        lambda: gram_tokenizer(draw, "edge_ngram", 3),
        lambda: {
            "type": "char_group",
            "tokenize_on_chars": draw.several(lambda: draw.choice([*CHARACTERS, *"ae-", "\\n", "é", " "]), 4),
            **draw.some_of({"max_token_length": lambda: small(draw, 1, 12)}),
        },
        lambda: {"type": "whitespace", **draw.some_of({"max_token_length": lambda: small(draw, 1, 12)})},
        lambda: {"type": draw.choice(["keyword", "letter", "lowercase"])},
        lambda: {
            "type": "path_hierarchy",
            **draw.some_of(
                {
                    "delimiter": lambda: draw.choice(["/", "e", " "]),
                    "replacement": lambda: draw.choice(["-", "é"]),
                    "skip": lambda: small(draw, 0, 3),
                    "reverse": lambda: flag(draw),
                }
            ),
        },
        lambda: {
            "type": "pattern",
            **pattern(draw),
            **draw.some_of({"group": lambda: draw.choice([-1, 0, "0"])}),
        },
        lambda: {"type": "pattern", "pattern": "([a-c])([a-z]*)", "group": draw.choice([-1, 0, 1, 2, "2"])},
        lambda: {
            "type": "simple_pattern",
            "pattern": draw.choice(
                ["[a-z]{2}", "[^ ]+", "th", "[A-Za-z0-9]+", "a[bc]{1,2}", "[^a][^b]", "[^ ][a-z]{2,}"]
            ),
        },
    )


def stopwords(draw: Draw) -> Any:
    """Return stop words in any form that settings allow."""
    return draw.any_of(
        lambda: draw.choice(
            [
                f"_{draw.choice(LANGUAGES)}_",
                "_english_",
                "_none_",
                ["_english_"],
                ["_none_"],
                ["the", "a"],
                [],
                [True, 5],
                "the,,a",
                " a ",
            ]
        ),
        lambda: draw.several(lambda: draw.choice(WORDS), 5),
    )


def filter_(draw: Draw) -> Settings:
    """Return settings of a token filter."""
    return draw.any_of(
        lambda: {"type": draw.choice(["lowercase", "asciifolding", "trim", "porter_stem"])},
        lambda: {"type": draw.choice(WITHOUT_SETTINGS)},
        lambda: {"type": "asciifolding", "preserve_original": flag(draw)},
        lambda: {
            "type": "elision",
            "articles": draw.choice(["l,the", ["don", "L", "wi"], "_none_", ["_none_"]]),
            **draw.some_of({"articles_case": lambda: flag(draw)}),
        },
        lambda: {
            "type": "keep",
            "keep_words": draw.choice([[], "_none_", "the", draw.several(lambda: draw.choice(WORDS), 9)]),
            **draw.some_of({"keep_words_case": lambda: flag(draw)}),
        },
        lambda: {
            "type": "stop",
            **draw.some_of({"stopwords": lambda: stopwords(draw), "ignore_case": lambda: flag(draw)}),
        },
        lambda: {
            "type": "stemmer",
            "language": draw.choice(
                [
                    "english",
                    "porter",
                    "porter2",
                    "minimal_english",
                    "possessive_english",
                    "English",
                    *STEMMERS,
                ]
            ),
        },
        lambda: {
            "type": "snowball",
            "language": draw.choice(["English", "German2", *map(str.capitalize, LANGUAGES)]),
        },
        lambda: {
            "type": "length",
            **draw.some_of({"min": lambda: small(draw, 0, 3), "max": lambda: small(draw, 3, 10)}),
        },
        lambda: {"type": "truncate", "length": small(draw, 1, 6)},
        lambda: {"type": "unique", **draw.some_of({"only_on_same_position": lambda: flag(draw)})},
        lambda: shingle(draw),
        lambda: grams(draw, "ngram", 1),
        lambda: grams(draw, "edge_ngram", 3),
        lambda: {
            "type": "keyword_marker",
            "keywords": draw.several(lambda: draw.choice(WORDS), 4),
            **draw.some_of({"ignore_case": lambda: flag(draw)}),
        },
        lambda: {
            "type": "keyword_marker",
            "keywords_pattern": draw.choice(["[a-z]{5,}", ".*s", r"\w+es", "(?i)THE"]),
        },
        lambda: word_delimiter(draw),
        lambda: common_grams(draw),
        lambda: cjk_bigram(draw),
        lambda: {
            "type": "keep_types",
            "types": draw.several(lambda: draw.choice(TYPES), 4),
            **draw.some_of({"mode": lambda: draw.choice(["include", "exclude", "Exclude"])}),
        },
        lambda: pattern_capture(draw),
        lambda: decompounder(draw),
        lambda: multiplexer(draw),
        lambda: {
            "type": "limit",
            **draw.some_of(
                {"max_token_count": lambda: small(draw, 1, 5), "consume_all_tokens": lambda: flag(draw)}
            ),
        },
        lambda: {
            "type": "fingerprint",
            **draw.some_of(
                {
                    "separator": lambda: draw.choice([" ", "+", "é"]),
                    "max_output_size": lambda: small(draw, 0, 60),
                }
            ),
        },
        lambda: {"type": "stemmer_override", "rules": draw.several(lambda: draw.choice(OVERRIDES), 3)},
        lambda: {
            "type": "pattern_replace",
            **pattern(draw, replacement=draw.choice(REPLACEMENTS)),
            **draw.some_of({"all": lambda: flag(draw)}),
        },
    )


def common_grams(draw: Draw) -> Settings:
    """Return settings of a `common_grams` filter."""
    return {
        "type": "common_grams",
        "common_words": draw.choice(["_english_", ["_none_"], draw.several(lambda: draw.choice(WORDS), 9)]),
        **draw.some_of({"ignore_case": lambda: flag(draw), "query_mode": lambda: flag(draw)}),
    }


def cjk_bigram(draw: Draw) -> Settings:
    """Return settings of a `cjk_bigram` filter."""
    scripts = ["han", "hiragana", "katakana", "hangul", "other"]
    return {
        "type": "cjk_bigram",
        **draw.some_of(
            {
                "ignored_scripts": lambda: draw.several(lambda: draw.choice(scripts), 3),
                "output_unigrams": lambda: flag(draw),
            }
        ),
    }


def with_types(draw: Draw) -> Settings:
    """Return an analyzer of tokens with types."""
    return {
        "char_filter": draw.several(lambda: char_filter(draw), 1),
        "tokenizer": draw.any_of(
            lambda: {"type": draw.choice(["standard", "uax_url_email", "classic"])},
            lambda: {
                "type": draw.choice(["standard", "uax_url_email", "classic"]),
                "max_token_length": draw.number(2, 60),
            },
        ),
        "filter": [
            *([filter_(draw)] if draw.chance(0.3) else []),
            *([cjk_bigram(draw)] if draw.chance(0.4) else []),
            *([{"type": "classic"}] if draw.chance(0.4) else []),
            *([filter_(draw)] if draw.chance(0.3) else []),
        ],
    }


def pattern_capture(draw: Draw) -> Settings:
    """Return settings of a `pattern_capture` filter."""
    return {
        "type": "pattern_capture",
        "patterns": draw.several(lambda: draw.choice(CAPTURES), 3, 1),
        **draw.some_of({"preserve_original": lambda: flag(draw)}),
    }


def multiplexer(draw: Draw) -> Settings:
    """Return settings of a `multiplexer` filter of filters without settings."""
    names = [
        "lowercase",
        "porter_stem",
        "reverse",
        "uppercase",
        "asciifolding",
        "stop",
        "shingle",
        *WITHOUT_SETTINGS,
    ]
    chains = draw.several(lambda: ", ".join(draw.several(lambda: draw.choice(names), 3, 1)), 3)
    return {
        "type": "multiplexer",
        "filters": chains,
        **draw.some_of({"preserve_original": lambda: flag(draw)}),
    }


def decompounder(draw: Draw) -> Settings:
    """Return settings of a `dictionary_decompounder` filter."""
    sizes = ("min_word_size", "min_subword_size", "max_subword_size")
    return {
        "type": "dictionary_decompounder",
        "word_list": draw.several(lambda: draw.choice(SUBWORDS), 9, 1),
        **draw.some_of({name: lambda: small(draw, 0, 6) for name in sizes}, 0.4),
        **draw.some_of({"word_list_case": lambda: flag(draw), "only_longest_match": lambda: flag(draw)}),
    }


def normalizing_filter(draw: Draw) -> Settings:
    """Return settings of a token filter for a normalizer."""
    return draw.any_of(
        lambda: {
            "type": draw.choice(["lowercase", "asciifolding", "trim", "cjk_width", "decimal_digit", *SCRIPTS])
        },
        lambda: {"type": "elision", "articles": draw.choice(["l,the", ["don", "L"]])},
        lambda: {
            "type": "pattern_replace",
            "pattern": draw.choice(["x", "[^a-z]", "^", "$", "é"]),
            "replacement": draw.choice(["", "y", "É"]),
        },
    )


def word_delimiter(draw: Draw) -> Settings:
    """Return settings of a filter that splits words."""
    flags = [
        "generate_word_parts",
        "generate_number_parts",
        "split_on_case_change",
        "split_on_numerics",
        "stem_english_possessive",
        "preserve_original",
        "catenate_words",
        "catenate_numbers",
        "catenate_all",
    ]
    kind = draw.choice(["word_delimiter", "word_delimiter_graph", "word_delimiter_graph"])
    if kind == "word_delimiter_graph":
        flags += ["adjust_offsets", "ignore_keywords"]
    return {
        "type": kind,
        **draw.some_of(dict.fromkeys(flags, lambda: flag(draw)), 0.4),
        **draw.some_of(
            {
                "type_table": lambda: draw.several(lambda: draw.choice(TYPE_RULES), 4, 1),
                "protected_words": lambda: draw.choice(
                    ["_none_", draw.several(lambda: draw.choice(WORDS), 6)]
                ),
                "protected_words_case": lambda: flag(draw),
            },
            0.2,
        ),
    }


def shingle(draw: Draw) -> Settings:
    """Return settings of a `shingle` filter."""
    shortest = draw.number(2, 4)
    return {
        "type": "shingle",
        "min_shingle_size": shortest,
        "max_shingle_size": shortest + draw.number(0, 2),
        **draw.some_of(
            {
                "output_unigrams": lambda: flag(draw),
                "output_unigrams_if_no_shingles": lambda: flag(draw),
                "token_separator": lambda: draw.choice(["", " ", "_+_"]),
                "filler_token": lambda: draw.choice(["_", "", "filler"]),
            }
        ),
    }


def grams(draw: Draw, type_: str, range_: int) -> Settings:
    """Return settings of an n-gram filter."""
    low = draw.number(1, 4)
    more = draw.some_of({"preserve_original": lambda: flag(draw)})
    return {"type": type_, "min_gram": low, "max_gram": low + range_, **more}


def gram_tokenizer(draw: Draw, type_: str, range_: int) -> Settings:
    """Return settings of an n-gram tokenizer."""
    low = draw.number(1, 4)
    sizes = {"type": type_, "min_gram": low, "max_gram": low + range_}
    chosen = draw.several(lambda: draw.choice([*CHARACTERS, "custom", "Letter"]), 3)
    more = {"custom_token_chars": draw.choice(["+-_", "a^]", "'"])} if "custom" in chosen else {}
    return {**sizes, "token_chars": chosen, **more} if draw.chance(0.7) else sizes


def synonym(draw: Draw) -> Settings:
    """Return settings of a filter of synonyms."""
    rules = draw.several(lambda: draw.choice(RULES), 6)
    kind = draw.choice(["synonym", "synonym_graph"])
    more = draw.some_of({"expand": lambda: flag(draw), "lenient": lambda: flag(draw)})
    return {"type": kind, "synonyms": rules, **more}


def analyzer(draw: Draw) -> Settings:
    """Return a custom analyzer with inline definitions, as `_analyze` takes it."""
    return {
        "char_filter": draw.several(lambda: char_filter(draw), 2),
        "tokenizer": tokenizer(draw),
        "filter": draw.several(lambda: filter_(draw), 4),
    }


def with_synonyms(draw: Draw) -> Settings:
    """Return an analyzer with synonyms and sometimes a filter after them."""
    after = [
        {"type": "ngram"},
        {"type": "edge_ngram", "max_gram": 2},
        {"type": "unique"},
        {"type": "truncate", "length": 2},
        {"type": "flatten_graph"},
        {"type": "flatten_graph"},
        synonym(draw),
    ]
    return {
        "char_filter": [],
        "tokenizer": {"type": "whitespace"},
        "filter": [
            *([{"type": "stop", "stopwords": ["is", "can't"]}] if draw.chance(0.5) else []),
            synonym(draw),
            {"type": "stop", "stopwords": ["red", "y"]},
            *([draw.choice(after)] if draw.chance(0.5) else []),
        ],
    }


def with_scripts(draw: Draw) -> Settings:
    """Return an analyzer of Arabic and Indian scripts."""
    names = draw.several(lambda: draw.choice([*SCRIPTS, "decimal_digit"]), 3, 1)
    return {
        "char_filter": [],
        "tokenizer": {"type": "whitespace"},
        "filter": [{"type": name} for name in names],
    }


def with_html(draw: Draw) -> Settings:
    """Return an analyzer of HTML."""
    after: list[Settings] = [
        {"type": "html_strip"},
        {"type": "mapping", "mappings": ["word => longer", "\\n => ", "x => "]},
        {"type": "pattern_replace", "pattern": "x", "replacement": ""},
    ]
    strip = {"type": "html_strip", "escaped_tags": draw.several(lambda: draw.choice(ESCAPED_TAGS), 4)}
    return {
        "char_filter": [strip, *([draw.choice(after)] if draw.chance(0.5) else [])],
        "tokenizer": draw.any_of(
            lambda: {"type": draw.choice(["keyword", "whitespace", "standard", "letter"])},
            lambda: {"type": "standard", "max_token_length": draw.number(2, 6)},
        ),
        "filter": [],
    }


def _escaped(text: str) -> str:
    """Return a side of a mapping rule as escapes."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
