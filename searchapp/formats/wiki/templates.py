"""What templates mean, those of ProofWiki above all, and the names of styles."""

from __future__ import annotations

from typing import NamedTuple

BOLD, ITALIC, HEADING, LINK, ASIDE = "bold", "italic", "heading", "link", "aside"
"""The styles; asides are references and templates without a known meaning."""

WORDS = {
    "iff": "if and only if",
    "wrt": "with respect to",
    "wlog": "without loss of generality",
    "wff": "well-formed formula",
    "lhs": "left hand side",
    "rhs": "right hand side",
    "aka": "also known as",
    "=": "=",
    "!": "|",
    "qed": "∎",
    "proofwiki": "ProofWiki",
    "euclidsaid": "In the words of Euclid:",
    "begin-eqn": "",
    "end-eqn": "",
    "begin-axiom": "",
    "end-axiom": "",
}
"""Templates that stand for words, by their names in lower case."""


class Shown(NamedTuple):
    """What a template shows: words around one of its arguments, the first that it has of these names.

    An argument without a name has its number, from 1 on; 0 is the last one.
    """

    before: str
    arguments: tuple[str, ...]
    behind: str = ""


SHOWN = {
    "defof": Shown("", ("2", "1")),
    "authorref": Shown("", ("2", "1")),
    "bookreference": Shown("", ("1",)),
    "booklink": Shown("", ("1",)),
    "wp": Shown("", ("0",)),
    "eucliddefrefnocat": Shown("", ("3",)),
    "euclidpropstatement": Shown("", ("body",)),
    "hypsiclespropstatement": Shown("", ("body",)),
    "namedfor": Shown("This entry was named for ", ("1",), "."),
    "namedfordef": Shown("This entry was named for ", ("1",), "."),
    "oeis": Shown("", ("1",), " in the OEIS"),
    "tfae": Shown("The following definitions of the concept of ", ("view", "def"), " are equivalent:"),
    "tfaenocat": Shown("The following definitions of the concept of ", ("view", "def"), " are equivalent:"),
}
"""Templates that show one of their arguments, by their names in lower case."""

EQUATIONS = {"eqn", "axiom"}
"""A line of aligned formulas."""

PARTS = ("n", "lc", "q", "ll", "ml", "l", "lo", "mo", "o", "ro", "mr", "r", "rr", "m", "t", "rc", "c")
"""The arguments of such a line, from left to right."""

IN_WORDS = {"lc", "rc", "c", "t"}
"""Those that are text, the others are formulas without delimiters."""
