"""Text of messages: suggestions for misspelled names, and hostile text made harmless.

Control characters of documents, ids, notes, file names or servers can clear the screen or set the clipboard,
a bidirectional override lets one id look like another, and characters without width hide sentences. All
output passes through `visible` or `visible_line`: screens in `tui.kit.content`, commands in `cli.output`,
Rich in `console`. JSON output uses `escaped`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from searchapp.lucene.errors import closest_name as closest_name
from searchapp.lucene.errors import suggestion as suggestion

# Keys of recipes, own tasks and benches by their names before 0.3.0, which are not similar to the present ones.
RENAMED_KEYS: Mapping[str, tuple[str, ...]] = {
    "around": ("context_weight",),
    "by": ("method", "category_field"),
    "by_cost": ("category_cost",),
    "by_steepness": ("category_steepness",),
    "documents": ("feedback_documents",),
    "even": ("topic_balance",),
    "examples": ("training_split", "training"),
    "examples_mapping": ("training_mapping",),
    "fewest": ("min_samples", "min_df"),
    "growth": ("topic_weight",),
    "kind": ("kind_field",),
    "lean": ("kind_prior",),
    "leaves": ("num_leaves",),
    "length": ("length_norm",),
    "measures": ("style_weight",),
    "nearest": ("cutoff",),
    "over": ("params",),
    "parts": ("folds",),
    "place": ("position_field",),
    "position": ("position_decay",),
    "rate": ("learning_rate",),
    "reactions": ("reaction_speaker",),
    "rule": ("aggregation",),
    "scale": ("normalization",),
    "share": ("feedback_weight",),
    "speaker": ("speaker_field",),
    "terms": ("feedback_terms",),
    "topics": ("max_topics",),
    "trees": ("num_trees",),
    "within": ("group_field",),
}


def is_renamed(key: str, new: str) -> bool:
    """Return whether a key had another name before 0.3.0."""
    return new in RENAMED_KEYS.get(key, ())


def key_suggestion(key: str, known: Iterable[str]) -> str:
    """Return the suggestion for an unknown key of a recipe or TOML file: its new name, or a similar key.

    >>> key_suggestion("fusion.parts", ["k", "fusion.folds"]), key_suggestion("kin", ["k1", "kind"])
    (' (did you mean fusion.folds?)', ' (did you mean kind?)')
    """
    names = list(known)
    table, dot, name = key.rpartition(".")
    renamed = [f"{prefix}{new}" for new in RENAMED_KEYS.get(name, ()) for prefix in (f"{table}{dot}", "")]
    new = next((new for new in renamed if new in names), None)
    return suggestion(key, names) if new is None else f" (did you mean {new}?)"


def choices_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that rejects a name: a suggestion, and all choices.

    >>> "there is no task " + choices_hint("nlp", ["nlps", "checkthat"])
    "there is no task 'nlp' (did you mean nlps?): choose nlps or checkthat"
    """
    names = list(known)
    return f"{name!r}{suggestion(name, names)}: choose {' or '.join(names)}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural.

    >>> counted(1, "topic"), counted(1200, "topic")
    ('1 topic', '1,200 topics')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def have(number: int) -> str:
    """Return the verb of a number of things.

    >>> have(1), have(2)
    ('has', 'have')
    """
    return "has" if number == 1 else "have"


def be(number: int) -> str:
    """Return the verb of a number of things.

    >>> be(1), be(2)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"


def alternatives(names: Sequence[str]) -> str:
    """Join names with commas and "or".

    >>> alternatives(["dark", "light", "own"])
    'dark, light or own'
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


# Start and end of a range of characters; the end is not included.
Span = tuple[int, int]

# Not from the package `regex`, whose import takes longer than the start of most commands. A test compares these with
# Unicode's properties.
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_FORMATS = (
    r"\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_WITHOUT_WIDTH = r"\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0"
_LINE_ENDS = r"\u2028\u2029"
_HALVES = r"\ud800-\udfff"

_HIDDEN = re.compile(f"[{_CONTROLS}{_FORMATS}{_WITHOUT_WIDTH}{_LINE_ENDS}{_HALVES}]")
_HIDDEN_IN_LINE = re.compile(f"[\t\n{_CONTROLS}{_FORMATS}{_WITHOUT_WIDTH}{_LINE_ENDS}{_HALVES}]")
_INVISIBLE = re.compile(f"[{_FORMATS}{_WITHOUT_WIDTH}]")

# The variation selectors and the joiner of emoji, and the blocks with the characters that they belong to. The tags of
# three flags are not among them, because tags spell hidden sentences.
_TEXT_SELECTOR, _EMOJI_SELECTOR, _JOINER = "\ufe0e\ufe0f\u200d"
_EMOJI = re.compile(
    r"[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    r"\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_KEYCAP = re.compile(r"[0-9#*]\ufe0f\u20e3")


def _is_in_emoji(text: str, position: int) -> bool:
    """Return whether the character is a selector or joiner in its place inside an emoji."""
    character = text[position]
    follows_emoji = position > 0 and _EMOJI.match(text, position - 1) is not None
    if character in (_TEXT_SELECTOR, _EMOJI_SELECTOR):
        return follows_emoji or (position > 0 and _KEYCAP.match(text, position - 1) is not None)
    if character != _JOINER:
        return False
    if position > 1 and text[position - 1] == _EMOJI_SELECTOR:
        follows_emoji = _EMOJI.match(text, position - 2) is not None
    return follows_emoji and _EMOJI.match(text, position + 1) is not None


def _sign(match: re.Match[str]) -> str:
    if _is_in_emoji(match.string, match.start()):
        return match[0]
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"


def visible(text: str) -> str:
    r"""Show control characters and invisible characters, except for line feeds and tabs.

    Control characters become Unicode's pictures of them. Others, such as bidirectional controls and
    surrogates, become `<U+XXXX>`. Emoji keep their variation selectors and joiners.

    >>> visible("a\x1b[2Jb\u202ec\nd"), visible("👩\u200d🔬 a\u200db") == "👩\u200d🔬 a<U+200D>b"
    ('a␛[2Jb<U+202E>c\nd', True)
    """
    return _HIDDEN.sub(_sign, text)


def without_invisible(text: str) -> str:
    r"""Remove characters without width, such as soft hyphens and byte order marks, except inside emoji.

    >>> without_invisible("abe\u00adlian\u200b 👩\u200d🔬") == "abelian 👩\u200d🔬"
    True
    """
    return _INVISIBLE.sub(lambda match: match[0] if _is_in_emoji(text, match.start()) else "", text)


def visible_line(text: str) -> str:
    r"""Show line feeds and tabs too.

    >>> visible_line("a\tb\nc")
    'a␉b␊c'
    """
    return _HIDDEN_IN_LINE.sub(_sign, text)


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the same characters as disjoint spans in ascending order; adjacent spans become one.

    >>> merge_spans([(4, 6), (0, 2), (1, 3), (6, 7), (9, 9)])
    [(0, 3), (4, 7)]
    """
    result: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(result[-1][1], end)
        else:
            result.append((start, end))
    return result


def visible_spans(text: str, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    r"""Return `visible(text)`, and the spans of the text in it.

    >>> visible_spans("\u200bab", [(1, 2)])
    ('<U+200B>ab', [(8, 9)])
    """
    signs = {match.start(): _sign(match) for match in _HIDDEN.finditer(text)}
    if not signs:
        return text, list(spans)
    parts = [signs.get(position, character) for position, character in enumerate(text)]
    offsets = [0, *accumulate(map(len, parts))]  # of each character, and of the end
    return "".join(parts), [(offsets[start], offsets[end]) for start, end in spans]


def escaped(json_text: str) -> str:
    r"""Escape these characters in a JSON text, which keeps its value.

    >>> escaped('"\u202e"')
    '"\\u202e"'
    """
    return _HIDDEN.sub(_escape, json_text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + ((code - 0x10000) >> 10):04x}\\u{0xDC00 + ((code - 0x10000) & 0x3FF):04x}"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table of texts as HTML for notebooks."""
    from html import escape  # slow to import

    head = "".join(f"<th>{escape(visible_line(cell))}</th>" for cell in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(visible_line(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    shown = f"<caption>{escape(visible_line(caption))}</caption>" if caption else ""
    return f"<table>{shown}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
