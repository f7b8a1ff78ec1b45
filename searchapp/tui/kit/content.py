"""Harmless text for screens, in the form that the user chose for its markup.

`Content` and `Plain` replace Textual's classes: they show control characters and interpret no markup. Only
this module may import `textual.content`.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import Any, cast

from textual import content, widgets
from textual.content import Span as StyleSpan
from textual.style import Style
from textual.visual import VisualType
from textual.widget import Widget

from searchapp.formats import wiki
from searchapp.formats.markup import Rewriter, Rewritten, formulas
from searchapp.formats.markup import Style as MarkupStyle
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Markup
from searchapp.text import Span, visible_line, visible_spans


class Content(content.Content):
    """Styled text in which no character acts on a terminal or hides."""

    def __init__(
        self,
        text: str = "",
        spans: list[StyleSpan] | None = None,
        cell_length: int | None = None,
        strip_control_codes: bool = True,
    ) -> None:
        shown, positions = visible_spans(text, [(span.start, span.end) for span in spans or ()])
        if shown != text:
            cell_length = None
            spans = [
                StyleSpan(start, end, span.style)
                for (start, end), span in zip(positions, spans or (), strict=True)
            ]
        super().__init__(shown, spans, cell_length, strip_control_codes)

    # Textual's methods return its own class, made from harmless parts.

    @classmethod
    def styled(cls, text: str, style: str | Style = "", *_: object, **__: object) -> Content:
        return cls.assemble((text, style))

    @classmethod
    def assemble(cls, *parts: str | content.Content | tuple[str, str | Style], **_: object) -> Content:
        return cast("Content", super().assemble(*parts))

    def join(self, lines: Iterable[content.Content | str]) -> Content:
        harmless = (line if isinstance(line, content.Content) else Content(line) for line in lines)
        return cast("Content", super().join(harmless))

    def stylize(self, style: Style | str, start: int = 0, end: int | None = None) -> Content:
        return cast("Content", super().stylize(style, start, end))


class Plain(widgets.Static):
    """A text, shown without markup."""

    def __init__(
        self,
        text: content.Content | str = "",
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(_content(text), id=id, classes=classes)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        if layout and self._layout_required:
            # Textual may have measured the previous text meanwhile, and would keep its size.
            self._layout_updates += 1
        super().update(_content(content) if isinstance(content, str) else content, layout=layout)


def entitle(widget: Widget, title: str) -> None:
    """Set the title in a widget's border."""
    widget.border_title = Content(visible_line(title))


def _content(text: content.Content | str) -> content.Content:
    return Content(text) if isinstance(text, str) else text


# Formulas with more characters are not converted.
LONGEST_FORMULA = 3_000

_DELIMITERS = re.compile(r"^(?:\$\$?|\\\(|\\\[)|(?:\$\$?|\\\)|\\\])$")

# The brackets around the argument of a LaTeX command.
_AROUND = {
    "paren": "()", "sqbrk": "[]", "set": "\ue010\ue011", "tuple": "()", "struct": "()", "sequence": "⟨⟩",
    "family": "⟨⟩", "size": "||", "card": "||", "cmod": "||", "size*": "||", "norm": "‖‖", "floor": "⌊⌋",
    "ceiling": "⌈⌉", "order": "||", "index": "[]", "gen": "⟨⟩", "operatorname": "", "mathrm": "", "text": "",
    "mathsf": "",
}  # fmt: skip

# Patterns of commands with two arguments.
_PATTERNS = {
    "map": "{0}({1})", "dfrac": "{0}/{1}", "tfrac": "{0}/{1}", "frac": "{0}/{1}", "closedint": "[{0}, {1}]",
    "openint": "({0}, {1})", "hointr": "[{0}, {1})", "hointl": "({0}, {1}]", "innerprod": "⟨{0}, {1}⟩",
    "binom": "C({0}, {1})", "dbinom": "C({0}, {1})", "eqclass": "[{0}]_{1}", "valueat": "{0}|_{1}",
}  # fmt: skip

_FUNCTIONS = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log exp lim sup inf max min gcd lcm "
    "ker coth csch sech det dim deg arg sgn Img Dom Aut Stab Card"
)
_SYMBOLS = {
    "R": "ℝ", "Z": "ℤ", "N": "ℕ", "Q": "ℚ", "C": "ℂ", "O": "∅", "GF": "𝔽", "divides": "∣", "rd": "d", "d": "d",
    "restriction": "↾", "implies": " ⟹ ", "iff": " ⟺ ", "powerset": "𝒫", "relcomp": "∁", "preccurlyeq": "≼",
    "ds": "", "displaystyle": "", "leadsto": " ⇝ ", "land": "∧", "lor": "∨", "lnot": "¬", "quad": "  ",
    "qquad": "   ", "coloneqq": "≔", "norm": "‖", "sim": "∼", "triangleq": "≜", "cdotp": "·", "ne": "≠",
    "neq": "≠", "nmid": "∤", "degrees": "°", "lhd": "⊲", "neg": "¬", "gets": "←", "bot": "⊥", "gt": ">",
    "triangle": "△", "bmod": " mod ", **{name: f"{name} " for name in _FUNCTIONS.split()},
}  # fmt: skip
# \AA to \ZZ are script letters; some have irregular names in Unicode.
_SYMBOLS |= {
    2 * letter: unicodedata.lookup(
        f"{'' if letter in 'BEFHILMR' else 'MATHEMATICAL '}SCRIPT CAPITAL {letter}"
    )
    for letter in string.ascii_uppercase
}

_RAISED = str.maketrans(
    "0123456789+-=()niabcdefghjklmoprstuvwxyz∗*′", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵃᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻ**′"
)
_LOWERED = str.maketrans("0123456789+-=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ")
_SCRIPT = re.compile(r"\s*([\^_])\s*(?:\{([^{}]*)\}|([^\s{}]))")

# Literal braces are private characters while grouping braces are removed.
_BRACES = str.maketrans({"\ue010": "{", "\ue011": "}"})


def with_formulas(text: str) -> Rewritten:
    r"""Convert the readable formulas of a text to Unicode; a span inside a formula becomes the whole
    formula.

    >>> converted = with_formulas(r"Let $x_{n+1}^2 \le \frac{a}{b}$ be 100% sure.")
    >>> converted.text, converted.moved([(0, 3), (5, 6)])
    ('Let xₙ₊₁² ≤ a/b be 100% sure.', [(0, 3), (4, 15)])
    """
    writer = Rewriter(text)
    last = 0
    for start, end in formulas(text):
        writer.keep(last, start)
        writer.replace(start, end, formula(text[start:end]))
        last = end
    writer.keep(last, len(text))
    return writer.done()


@lru_cache(maxsize=1 << 14)
def formula(latex: str) -> str:
    """Convert a formula, with or without delimiters, to Unicode, unless it is unreadable or very long."""
    if len(latex) > LONGEST_FORMULA:
        return latex
    inside = _DELIMITERS.sub("", latex)
    inside = inside.replace(r"\{", "\ue010").replace(r"\}", "\ue011")
    inside = re.sub(
        r"\\(?:left|right|mathop|bigl?|bigr|Bigl?|Bigr|limits|nolimits)(?![a-zA-Z])\s*\.?", "", inside
    )
    try:
        converted = _converter()(inside)
    except Exception:  # the parser raises many kinds of errors for faulty formulas
        return latex
    converted = _SCRIPT.sub(_script, converted)
    converted = re.sub(r"[{}]", "", converted).translate(_BRACES)
    lines = [re.sub(r"[ \t\xa0]+", " ", line).strip() for line in converted.strip().splitlines()]
    return "\n".join(filter(None, lines)) or latex


def _script(match: re.Match[str]) -> str:
    inside = (match[2] if match[2] is not None else match[3]).strip()
    table = _RAISED if match[1] == "^" else _LOWERED
    if inside and all(ord(character) in table for character in inside):
        return inside.translate(table)
    return f"{match[1]}{inside}" if len(inside) == 1 else f"{match[1]}({inside})"


@lru_cache(maxsize=1)
def _converter() -> Callable[[str], str]:
    from pylatexenc import latex2text, latexwalker, macrospec

    syntax = latexwalker.get_default_latex_context_db()
    arguments = dict.fromkeys(_SYMBOLS, "") | dict.fromkeys(_AROUND, "{") | dict.fromkeys(_PATTERNS, "{{")
    macros = [macrospec.MacroSpec(name, spec) for name, spec in arguments.items()]
    syntax.add_context_category("searchapp", macros, prepend=True)

    def spec(name: str) -> Any:
        def replacement(node: Any, l2tobj: Any) -> str:
            nodes = node.nodeargd.argnlist if node.nodeargd else []
            return _composed(
                name, [l2tobj.nodelist_to_text([node]).strip("{}") for node in nodes if node is not None]
            )

        symbol = _SYMBOLS[name] if name in _SYMBOLS and name not in _AROUND else replacement
        return latex2text.MacroTextSpec(name, simplify_repl=symbol)

    texts = latex2text.get_default_latex_context_db()
    texts.add_context_category("searchapp", list(map(spec, arguments)), prepend=True)
    unknown = latex2text.MacroTextSpec("", simplify_repl=lambda node: f"\\{node.macroname} ")
    texts.set_unknown_macro_spec(unknown)

    # Otherwise the parser spends most of its time looking up signs such as `--` at each character.
    first_of_signs = {sign.specials_chars[0] for sign in syntax.iter_specials_specs()}
    sign_at = syntax.test_for_specials
    syntax.test_for_specials = lambda s, pos, **state: (
        sign_at(s, pos, **state) if s[pos] in first_of_signs else None
    )

    class Texts(latex2text.LatexNodes2Text):  # type: ignore[misc]
        def macro_node_to_text(self, node: Any) -> str:
            text = str(super().macro_node_to_text(node))
            # LaTeX drops the blank after a command, but it separates symbols in the result.
            has_arguments = node.nodeargd is not None and any(node.nodeargd.argnlist or ())
            return text if has_arguments or not node.macro_post_space else f"{text} "

    converter = Texts(
        latex_context=texts,
        math_mode="text",
        strict_latex_spaces=False,
        keep_braced_groups=True,
        keep_braced_groups_minlen=1,
    )

    def convert(latex: str) -> str:
        parser = latexwalker.LatexWalker(latex, latex_context=syntax, tolerant_parsing=True)
        nodes, _begin, _length = parser.get_latex_nodes()
        return str(converter.nodelist_to_text(nodes))

    return convert


def _composed(name: str, given: Sequence[str]) -> str:
    if name in _PATTERNS and len(given) == 2:
        if name.endswith("frac"):
            given = list(map(_factor, given))
        return _PATTERNS[name].format(*given)
    if name in _AROUND and len(given) == 1:
        around = _AROUND[name]
        return f"{around[:1]}{given[0]}{around[1:]}"
    return _SYMBOLS.get(name, " ".join(given))


def _factor(term: str) -> str:
    term = term.strip()
    return term if re.fullmatch(r"[\w.′']*|\(.*\)", term) else f"({term})"


# The markup of texts with more characters is not converted.
LONGEST = 20_000

# Texts with at most this number of characters use the larger cache.
SHORT = 2_100

LOOKS = {
    wiki.BOLD: "bold",
    wiki.ITALIC: "italic",
    wiki.HEADING: "bold $accent",
    wiki.LINK: "$secondary",
    wiki.ASIDE: "$faint",
}


class Form(Enum):
    """The form of displayed texts."""

    # Wiki markup rendered, LaTeX as Unicode.
    rendered = "rendered"

    # The stored text with all blanks and line ends.
    stored = "stored"

    # Wiki markup rendered, LaTeX as written.
    written = "written"


@dataclass(frozen=True, slots=True)
class Notation:
    """The markup of a task's texts, and the form of their display."""

    markup: Markup
    form: Form = Form.rendered

    @property
    def next(self) -> Notation:
        """The next form; `written` only for texts with LaTeX."""
        forms = [form for form in Form if form is not Form.written or self.markup is not Markup.plain]
        index = forms.index(self.form) if self.form in forms else 0
        return replace(self, form=forms[(index + 1) % len(forms)])

    @property
    def about(self) -> str:
        if self.form is Form.stored:
            return "raw text"
        if self.form is Form.written:
            before = "wiki markup rendered, " if self.markup is Markup.wiki else ""
            return f"{before}LaTeX source"
        return {
            Markup.plain: "text without extra blank lines",
            Markup.latex: "LaTeX as Unicode",
            Markup.wiki: "wiki markup rendered, LaTeX as Unicode",
        }[self.markup]

    def rewritten(self, text: str) -> Rewritten:
        maths = self.form is Form.rendered
        if self.form is not Form.stored and len(text) <= LONGEST:
            if self.markup is Markup.wiki:
                return (_render_short if len(text) <= SHORT else _render_long)(text, maths=maths)
            if self.markup is Markup.latex and maths:
                return with_formulas(text)
        writer = Rewriter(text)
        writer.keep(0, len(text))
        return writer.done()


# For texts without markup, such as typed words.
AS_WRITTEN = Notation(Markup.plain)


def _render(text: str, *, maths: bool) -> Rewritten:
    return wiki.rendered(text, formula if maths else None)


# While the user types, searches return the same documents repeatedly.
_render_short = lru_cache(maxsize=4096)(_render)
_render_long = lru_cache(maxsize=64)(_render)


@dataclass(frozen=True, slots=True)
class Readable:
    """A harmless text, its marked `spans` and its emphasised ranges."""

    text: str
    spans: Sequence[Span]

    styles: Sequence[MarkupStyle]

    def content(self, match: str) -> Content:
        shown = Content(self.text)
        for start, end, name in self.styles:
            shown = shown.stylize(LOOKS[name], start, end)
        for start, end in self.spans:
            shown = shown.stylize(match, start, end)
        return shown


def readable(text: str, spans: Sequence[Span], notation: Notation) -> Readable:
    """Prepare a text for reading; the stored form keeps needless blank lines."""
    rewritten = notation.rewritten(text)
    moved, styles = rewritten.moved(spans), rewritten.styles
    shown, positions = visible_spans(
        rewritten.text, [*moved, *((style.start, style.end) for style in styles)]
    )
    if notation.form is Form.stored:
        return Readable(shown, positions, ())
    tidy = _without_gaps(shown)
    looks = [
        MarkupStyle(start, end, style.name)
        for span, style in zip(positions[len(moved) :], styles, strict=True)
        for start, end in tidy.moved([span])
    ]
    return Readable(tidy.text, tidy.moved(positions[: len(moved)]), looks)


_GAP = re.compile(r"\n[^\S\n]*+\n(?:[^\S\n]*+\n)++")
_BEGIN = re.compile(r"(?:[^\S\n]*+\n)++")


def _without_gaps(text: str) -> Rewritten:
    writer = Rewriter(text)
    begin = _BEGIN.match(text)
    last, end = begin.end() if begin else 0, len(text.rstrip())
    for gap in _GAP.finditer(text, last, end):
        writer.keep(last, gap.start() + 1)
        last = gap.end() - 1
    writer.keep(last, max(last, end))
    return writer.done()
