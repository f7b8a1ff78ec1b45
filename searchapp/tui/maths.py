r"""LaTeX as Unicode mathematics, so that `\forall x \in \R` reads as ∀ x ∈ ℝ in a terminal.

pylatexenc does the conversion. What is here are the commands that ProofWiki defines for itself, powers and indexes;
`formats.latex` finds where formulas stand. Nothing outside of them is touched: a per cent sign there is no comment.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from searchapp.formats.latex import formulas
from searchapp.formats.rewriting import Rewriter, Rewritten

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
