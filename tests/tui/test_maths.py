from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.formats.markup import Span
from searchapp.tui.kit.content import with_formulas


def unicode_maths(text: str, spans: Sequence[Span] = ()) -> tuple[str, list[Span]]:
    """A text with its formulas as Unicode, and where ranges of its characters are then."""
    found = with_formulas(text)
    return found.text, found.moved(spans)


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"$x \le y$", "x ≤ y"),
        (r"$x_{n+1}^2$", "xₙ₊₁²"),
        (r"$x^{2 m}$", "x^(2 m)"),
        (r"$\frac {a + b} c$", "(a + b)/c"),
        (r"$\dfrac{1}{2}$", "1/2"),
        (r"$\forall x \in \R: \map f x = \set {1, 2}$", "∀ x ∈ ℝ: f(x) = {1, 2}"),
        (r"$\left\{{a, b}\right\}$", "{a, b}"),
        (r"$\struct {R, +, \circ}$", "(R, +, ∘)"),
        (r"$\map \cos {x + y}$", "cos (x + y)"),
        (r"$\displaystyle \sum_{k \mathop = 1}^n k$", "∑_(k = 1)ⁿ k"),
        (r"$f: S \to T$", "f: S → T"),
        (r"\[ \alpha \to \beta \]", "α → β"),
        (r"$\unheardof + 1$", r"\unheardof + 1"),
    ],
)
def test_formulas_read_as_mathematics(latex: str, shown: str) -> None:
    assert unicode_maths(latex)[0] == shown


@pytest.mark.parametrize(
    "text", ["100% sure & more # here", "costs $5", r"C:\temp", "", "a_b^c", r"\$5 and \$6"]
)
def test_what_is_no_formula_stays(text: str) -> None:
    assert unicode_maths(text) == (text, [])


@pytest.mark.parametrize(
    "formula", ["$x_{$", r"$\frac$", "$}{$", r"$\left($", r"$\begin{x}$", "$^$", "$_{}^{}$"]
)
def test_broken_formulas_break_nothing(formula: str) -> None:
    assert unicode_maths(f"a {formula} b")[0].startswith("a ")


def test_ranges_move_with_the_text() -> None:
    text = r"Let $x \le y$ hold, $\alpha$ too."
    spans = [(0, 3), (7, 10), (14, 18)]
    shown, moved = unicode_maths(text, spans)
    assert [shown[start:end] for start, end in sorted(moved)] == ["Let", "x ≤ y", "hold"]


@given(
    st.text(r"ab $\{}^_%&é" + "\n", max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)))
)
def test_ranges_stay_within_the_text(text: str, ranges: list[tuple[int, int]]) -> None:
    spans = [(min(one), max(one)) for one in ranges if max(one) <= len(text) and min(one) < max(one)]
    shown, moved = unicode_maths(text, spans)
    assert all(0 <= start <= end <= len(shown) for start, end in moved)
