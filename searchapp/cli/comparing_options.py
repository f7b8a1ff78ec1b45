"""The options that say how runs are compared, which `compare` and `report` have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from searchapp.cli import complete

# Those of `evaluation.significance`, which takes NumPy to be imported.
PERMUTATIONS = 100_000
SEED = 20_071_109
SOLVED_FROM = 0.5

BaselineOption = Annotated[
    Path | None,
    typer.Option(
        help="The run that all others are compared with; by default the first of two, and of more runs every "
        "pair is compared.",
        show_default=False,
        autocompletion=complete.runs,
    ),
]
SolvedFromOption = Annotated[
    float, typer.Option(min=0, help="Value of the first measure from which on a topic is solved.")
]
PermutationsOption = Annotated[
    int, typer.Option(min=1, help="Sign vectors of the randomisation test, where there are more in all.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of what is drawn at random.")]
FilesOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the task's official files, if they are not where the runs had them.",
        show_default=False,
    ),
]
QrelsOption = Annotated[
    Path | None,
    typer.Option(help="Score against the grades in a TREC qrels file, instead of gold.", show_default=False),
]
