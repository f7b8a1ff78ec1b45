"""Why a document is where it is, as text or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from searchapp.cli.output import print_json, stdout_console
from searchapp.visible import visible, visible_line

if TYPE_CHECKING:
    from searchapp.app.why import Why


def print_why(found: Why, said: str, about: Mapping[str, object], *, as_json: bool) -> None:
    """Print what became of a document: a sentence, whose rest is `said`, what each signal gave, and how it came about.

    `about` goes into the JSON document before that.
    """
    from searchapp.ranking.explanations import shortened

    if as_json:
        explanation = found.explanation.to_json() if found.explanation else None
        print_json({**about, **asdict(found), "explanation": explanation})
        return
    console = stdout_console()
    console.print(f"{visible_line(found.document_id)} {visible_line(said)}", markup=False, soft_wrap=True)
    if found.shares:
        console.print("     What each signal gave:")
    for share in found.shares:
        value = f"{'nothing':>10}" if share.value is None else f"{share.value:>10.4f}"
        votes = f", {len(share.votes):,} vote{'s' * (len(share.votes) != 1)}" if share.votes else ""
        weight = f", weight {share.weight:g}"
        console.print(
            f"     {value}  {visible_line(share.signal)}{weight}{votes}", markup=False, soft_wrap=True
        )
    if found.shares:
        console.print("     How each came about, before it is weighed:")
    for line in shortened(found.explanation) if found.explanation else ():
        console.print(
            f"     {line.value:>10.4f}  {'  ' * line.depth}{visible(line.text)}", markup=False, soft_wrap=True
        )
