"""Text for screens: made harmless, and in one of the forms that a person can choose for its markup.

`Content` and `Plain` take the place of Textual's: control characters of others' text become visible, nothing in it is
read as markup. This is the only module that may import `textual.content`. `Notation` is the form in which texts are
shown: markup and LaTeX as Unicode, the text as stored, or LaTeX as written.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, cast

from textual import content, widgets
from textual.content import Span as StyleSpan
from textual.style import Style
from textual.visual import VisualType
from textual.widget import Widget

from searchapp.formats import wiki
from searchapp.formats.markup import Rewriter, Rewritten, Span, formulas
from searchapp.formats.markup import Style as MarkupStyle
from searchapp.model import Markup
from searchapp.text import visible_line, visible_spans


class Content(content.Content):
    """Styled text in which nothing acts on a terminal or hides; also that of any text that is put into it."""

    def __init__(
        self,
        text: str = "",
        spans: list[StyleSpan] | None = None,
        cell_length: int | None = None,
        strip_control_codes: bool = True,
    ) -> None:
        shown, places = visible_spans(text, [(span.start, span.end) for span in spans or ()])
        if shown != text:
            cell_length = None
            spans = [
                StyleSpan(start, end, span.style)
                for (start, end), span in zip(places, spans or (), strict=True)
            ]
        super().__init__(shown, spans, cell_length, strip_control_codes)

    # What Textual's methods give is of its own class, but made of what is harmless already.

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
    """A piece of text that is shown as it is."""

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
            # Textual may have measured the text before this one since it was asked to, and would keep that.
            self._layout_updates += 1
        super().update(_content(content) if isinstance(content, str) else content, layout=layout)


def entitle(widget: Widget, title: str) -> None:
    """Write a title into a widget's border."""
    widget.border_title = Content(visible_line(title))


def _content(text: content.Content | str) -> content.Content:
    return Content(text) if isinstance(text, str) else text


LONGEST_FORMULA = 3_000
"""Characters of a formula that is converted."""

_DELIMITERS = re.compile(r"^(?:\$\$?|\\\(|\\\[)|(?:\$\$?|\\\)|\\\])$")

# Commands of one argument by what is put around it; of two as a pattern.
_AROUND = {
    "paren": "()",
    "sqbrk": "[]",
    "set": "\ue010\ue011",
    "tuple": "()",
    "struct": "()",
    "sequence": "⟨⟩",
    "family": "⟨⟩",
    "size": "||",
    "card": "||",
    "cmod": "||",
    "size*": "||",
    "norm": "‖‖",
    "floor": "⌊⌋",
    "ceiling": "⌈⌉",
    "order": "||",
    "index": "[]",
    "gen": "⟨⟩",
    "operatorname": "",
    "mathrm": "",
    "text": "",
    "mathsf": "",
}
_FUNCTIONS = {
    "map": "{0}({1})",
    "dfrac": "{0}/{1}",
    "tfrac": "{0}/{1}",
    "frac": "{0}/{1}",
    "closedint": "[{0}, {1}]",
}
_FUNCTIONS |= {
    "openint": "({0}, {1})",
    "hointr": "[{0}, {1})",
    "hointl": "({0}, {1}]",
    "innerprod": "⟨{0}, {1}⟩",
}
_FUNCTIONS |= {"binom": "C({0}, {1})", "dbinom": "C({0}, {1})", "eqclass": "[{0}]_{1}", "valueat": "{0}|_{1}"}
_SYMBOLS = {
    "R": "ℝ",
    "Z": "ℤ",
    "N": "ℕ",
    "Q": "ℚ",
    "C": "ℂ",
    "O": "∅",
    "GF": "𝔽",
    "divides": "∣",
    "rd": "d",
}
_SYMBOLS |= {"d": "d", "restriction": "↾", "implies": " ⟹ ", "iff": " ⟺ ", "powerset": "𝒫", "relcomp": "∁"}
_SYMBOLS |= {
    "preccurlyeq": "≼",
    "ds": "",
    "displaystyle": "",
    "leadsto": " ⇝ ",
    "land": "∧",
    "lor": "∨",
    "lnot": "¬",
}
_SYMBOLS |= {
    "quad": "  ",
    "qquad": "   ",
    "coloneqq": "≔",
    "norm": "‖",
    "sim": "∼",
    "triangleq": "≜",
    "cdotp": "·",
    "ne": "≠",
    "neq": "≠",
    "nmid": "∤",
    "degrees": "°",
    "lhd": "⊲",
    "neg": "¬",
    "gets": "←",
    "bot": "⊥",
    "gt": ">",
    "triangle": "△",
    "bmod": " mod ",
}
_NAMES = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log exp lim sup inf max min gcd lcm "
    "ker coth csch sech det dim deg arg sgn Img Dom Aut Stab Card"
)
# \AA to \ZZ are script letters; those that Unicode had before the others have other names.
_SYMBOLS |= {
    2 * letter: unicodedata.lookup(
        f"{'' if letter in 'BEFHILMR' else 'MATHEMATICAL '}SCRIPT CAPITAL {letter}"
    )
    for letter in string.ascii_uppercase
}
_SYMBOLS |= {name: f"{name} " for name in _NAMES.split()}

_RAISED = str.maketrans(
    "0123456789+-=()niabcdefghjklmoprstuvwxyz∗*′", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵃᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻ**′"
)
_LOWERED = str.maketrans("0123456789+-=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ")
_SCRIPT = re.compile(r"\s*([\^_])\s*(?:\{([^{}]*)\}|([^\s{}]))")

# Braces that are to be seen are hidden from those that only group.
_SEEN = str.maketrans({"\ue010": "{", "\ue011": "}"})


def with_formulas(text: str) -> Rewritten:
    r"""A text with its formulas as Unicode; one that can't be read stays as it is.

    What is moved from inside a formula becomes the whole formula.

    >>> found = with_formulas(r"Let $x_{n+1}^2 \le \frac{a}{b}$ be 100% sure.")
    >>> found.text, found.moved([(0, 3), (5, 6)])
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
    """A formula as Unicode, with its delimiters or without; as it is, if it can't be read or is very long."""
    if len(latex) > LONGEST_FORMULA:
        return latex
    inside = _DELIMITERS.sub("", latex)
    inside = inside.replace(r"\{", "\ue010").replace(r"\}", "\ue011")
    inside = re.sub(
        r"\\(?:left|right|mathop|bigl?|bigr|Bigl?|Bigr|limits|nolimits)(?![a-zA-Z])\s*\.?", "", inside
    )
    try:
        converted = _converter().latex_to_text(inside, tolerant_parsing=True)
    except Exception:  # whatever a formula that nobody has checked does to the parser
        return latex
    converted = _SCRIPT.sub(_script, converted)
    converted = re.sub(r"[{}]", "", converted).translate(_SEEN)
    lines = [re.sub(r"[ \t\xa0]+", " ", line).strip() for line in converted.strip().splitlines()]
    return "\n".join(filter(None, lines)) or latex


def _script(match: re.Match[str]) -> str:
    inside = (match[2] if match[2] is not None else match[3]).strip()
    table = _RAISED if match[1] == "^" else _LOWERED
    if inside and all(ord(character) in table for character in inside):
        return inside.translate(table)
    return f"{match[1]}{inside}" if len(inside) == 1 else f"{match[1]}({inside})"


@lru_cache(maxsize=1)
def _converter() -> Any:
    from pylatexenc import latex2text, latexwalker, macrospec

    walker = latexwalker.get_default_latex_context_db()
    arguments = {
        **dict.fromkeys(_AROUND, "{"),
        **dict.fromkeys(_FUNCTIONS, "{{"),
        **dict.fromkeys(_SYMBOLS, ""),
    }
    walker.add_context_category(
        "searchapp", [macrospec.MacroSpec(name, spec) for name, spec in arguments.items()], prepend=True
    )
    texts = latex2text.get_default_latex_context_db()

    def shown(name: str) -> Any:
        def replacement(node: Any, l2tobj: Any) -> str:
            given = [
                l2tobj.nodelist_to_text([one]).strip("{}")
                for one in (node.nodeargd.argnlist if node.nodeargd else [])
                if one is not None
            ]
            return _composed(name, given)

        return latex2text.MacroTextSpec(name, simplify_repl=replacement)

    symbols = [
        latex2text.MacroTextSpec(name, simplify_repl=_SYMBOLS[name])
        for name in _SYMBOLS
        if name not in _AROUND
    ]
    texts.add_context_category("searchapp", [*symbols, *map(shown, (*_AROUND, *_FUNCTIONS))], prepend=True)
    texts.set_unknown_macro_spec(
        latex2text.MacroTextSpec("", simplify_repl=lambda node: f"\\{node.macroname} ")
    )

    # Most of the time would go to a look for signs such as `--` at each character.
    first_of_signs = {one.specials_chars[0] for one in walker.iter_specials_specs()}
    sign_at = walker.test_for_specials
    walker.test_for_specials = lambda s, pos, **state: (
        sign_at(s, pos, **state) if s[pos] in first_of_signs else None
    )

    class Texts(latex2text.LatexNodes2Text):  # type: ignore[misc]
        def macro_node_to_text(self, node: Any) -> str:
            text = str(super().macro_node_to_text(node))
            # LaTeX drops the blank behind a command; people have set it to tell symbols apart.
            has_arguments = node.nodeargd is not None and any(node.nodeargd.argnlist or ())
            return text if has_arguments or not node.macro_post_space else f"{text} "

    converter = Texts(
        latex_context=texts,
        math_mode="text",
        strict_latex_spaces=False,
        keep_braced_groups=True,
        keep_braced_groups_minlen=1,
    )

    class Converter:
        def latex_to_text(self, latex: str, tolerant_parsing: bool) -> str:
            parser = latexwalker.LatexWalker(latex, latex_context=walker, tolerant_parsing=tolerant_parsing)
            nodes, _begin, _length = parser.get_latex_nodes()
            return str(converter.nodelist_to_text(nodes))

    return Converter()


def _composed(name: str, given: Sequence[str]) -> str:
    if name in _FUNCTIONS and len(given) == 2:
        first, second = given
        if name.endswith("frac"):
            first, second = _apart(first), _apart(second)
        return _FUNCTIONS[name].format(first, second)
    if name in _AROUND and len(given) == 1:
        around = _AROUND[name]
        opening, closing = around[:1], around[1:]
        return f"{opening}{given[0]}{closing}"
    return _SYMBOLS.get(name, " ".join(given))


def _apart(term: str) -> str:
    """A term as it can stand beside a stroke: in brackets, unless it is one thing."""
    term = term.strip()
    return term if re.fullmatch(r"[\w.′']*|\(.*\)", term) else f"({term})"


LONGEST = 20_000
"""Characters of a text that is shown as what its markup means; a longer one is shown as it is written."""

SHORT = 2_100
"""Characters of a text that is not long: what is looked at for a line of a list is none."""

LOOKS = {
    wiki.BOLD: "bold",
    wiki.ITALIC: "italic",
    wiki.HEADING: "bold $accent",
    wiki.LINK: "$secondary",
    wiki.ASIDE: "$faint",
}


class Form(Enum):
    """How a text is shown."""

    rendered = "rendered"
    """As what its markup means: wiki markup, and LaTeX as Unicode."""

    stored = "stored"
    """As it stands, with every blank and line end."""

    written = "written"
    """LaTeX as it is written, wiki markup as what it means."""


@dataclass(frozen=True, slots=True)
class Notation:
    """The markup of a task's texts, and the form that they are shown in."""

    markup: Markup
    form: Form = Form.rendered

    @property
    def next(self) -> Notation:
        """The next form; where there is no LaTeX, one is left out."""
        forms = [one for one in Form if one is not Form.written or self.markup is not Markup.plain]
        place = forms.index(self.form) if self.form in forms else 0
        return replace(self, form=forms[(place + 1) % len(forms)])

    @property
    def about(self) -> str:
        """What is shown, in words."""
        if self.form is Form.stored:
            return "the text as it stands"
        if self.form is Form.written:
            before = "wiki markup as what it means, " if self.markup is Markup.wiki else ""
            return f"{before}LaTeX as it is written"
        return {
            Markup.plain: "the text without needless blank lines",
            Markup.latex: "LaTeX as Unicode",
            Markup.wiki: "wiki markup as what it means, LaTeX as Unicode",
        }[self.markup]

    def rewritten(self, text: str) -> Rewritten:
        """A text as it is shown in this form."""
        if self.form is Form.stored or self.markup is Markup.plain or len(text) > LONGEST:
            return unchanged(text)
        if self.markup is Markup.wiki:
            shown = _short if len(text) <= SHORT else _long
            return shown(text, maths=self.form is Form.rendered)
        return with_formulas(text) if self.form is Form.rendered else unchanged(text)


AS_WRITTEN = Notation(Markup.plain)
"""Texts without markup, such as what people type."""


def unchanged(text: str) -> Rewritten:
    """A text as it is written."""
    writer = Rewriter(text)
    writer.keep(0, len(text))
    return writer.done()


def _wiki(text: str, *, maths: bool) -> Rewritten:
    return wiki.rendered(text, formula if maths else None)


# What is typed finds the same documents again and again: many of the texts that lists show are kept, a few long ones.
_short = lru_cache(maxsize=4096)(_wiki)
_long = lru_cache(maxsize=64)(_wiki)


@dataclass(frozen=True, slots=True)
class Readable:
    """A text as it is read: harmless, with the ranges that are marked and what is emphasized in it."""

    text: str
    spans: Sequence[Span]
    styles: Sequence[MarkupStyle]

    def content(self, match: str) -> Content:
        """The text as it looks, `match` is what marked ranges look like."""
        shown = Content(self.text)
        for start, end, name in self.styles:
            shown = shown.stylize(LOOKS[name], start, end)
        for start, end in self.spans:
            shown = shown.stylize(match, start, end)
        return shown


def readable(text: str, spans: Sequence[Span], notation: Notation) -> Readable:
    """A text for reading; without needless blank lines, unless it is to be shown as it stands."""
    found = notation.rewritten(text)
    moved, styles = found.moved(spans), found.styles
    shown, places = visible_spans(found.text, [*moved, *((one.start, one.end) for one in styles)])
    names = [one.name for one in styles]
    if notation.form is Form.stored:
        return Readable(shown, places, ())
    tidy = _without_gaps(shown)
    marked = tidy.moved(places[: len(moved)])
    looks = [
        MarkupStyle(start, end, name)
        for place, name in zip(places[len(moved) :], names, strict=True)
        for start, end in tidy.moved([place])
    ]
    return Readable(tidy.text, marked, looks)


_GAP = re.compile(r"\n[^\S\n]*+\n(?:[^\S\n]*+\n)++")
_BEGIN = re.compile(r"(?:[^\S\n]*+\n)++")


def _without_gaps(text: str) -> Rewritten:
    """At most one blank line between paragraphs, none at the beginning and the end."""
    writer = Rewriter(text)
    begin = _BEGIN.match(text)
    last, end = begin.end() if begin else 0, len(text.rstrip())
    for gap in _GAP.finditer(text, last, end):
        writer.keep(last, gap.start() + 1)
        last = gap.end() - 1
    writer.keep(last, max(last, end))
    return writer.done()
